//! Output of results as files: a CSV for each table, captures, and `manifest.json`.
//!
//! The bytes of these files do not depend on the host or the time. [`write_run`] writes the run's duration and number of threads
//! to `run.json`.

use super::{Results, Totals};
use crate::scenario::Point;
use crate::table::{Column, Table};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reason why results could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system refused an operation.
    #[error("cannot write {path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A table cannot be written as Parquet.
    #[cfg(feature = "parquet")]
    #[error("cannot write {path} as Parquet: {reason}", path = path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// The library's error.
        reason: String,
    },
}

/// File name of the manifest.
pub const MANIFEST: &str = "manifest.json";

/// Writes tables as CSV, captures, the scenario and the manifest into a directory. Creates the directory if it is missing.
/// Removes the files of an earlier run from the directory. Returns the paths of the written files; the path of the manifest is
/// the last.
///
/// # Errors
/// If a file cannot be written.
pub fn write(results: &Results, directory: &Path) -> Result<Vec<PathBuf>, WriteError> {
    let mut files: Vec<(String, Vec<u8>)> =
        vec![("scenario.toml".into(), results.identity.scenario.clone().into_bytes())];
    for table in results.tables.iter().filter(|table| table.rows() > 0) {
        files.push((format!("{}.csv", table.name), to_csv(table)));
        #[cfg(feature = "parquet")]
        {
            let name = format!("{}.parquet", table.name);
            let bytes = super::parquet::to_parquet(table).map_err(|error| WriteError::Parquet {
                path: directory.join(&name),
                reason: error.to_string(),
            })?;
            files.push((name, bytes));
        }
    }
    for capture in &results.captures {
        files.push((capture.file_name(), capture.bytes.clone()));
    }
    put(directory, &files, &manifest(results, &files))
}

/// Name of the file with the duration and the number of threads of a run.
const RUN: &str = "run.json";

/// The part of `run.json` that lists the files that are not in the manifest.
#[derive(Deserialize)]
struct ListedFiles {
    #[serde(default)]
    others: Vec<String>,
}

/// Removes the files of an earlier run from a directory. First removes all files that `manifest.json` and `run.json` list, then
/// these two files.
///
/// # Errors
/// If a file cannot be removed.
pub fn clear(directory: &Path) -> Result<(), WriteError> {
    let read = |name: &str| fs::read(directory.join(name)).unwrap_or_default();
    let mut names = Vec::new();
    if let Ok(manifest) = serde_json::from_slice::<Manifest>(&read(MANIFEST)) {
        names.extend(manifest.files.into_iter().map(|file| file.name));
        names.push(MANIFEST.to_owned());
    }
    if let Ok(made) = serde_json::from_slice::<ListedFiles>(&read(RUN)) {
        names.extend(made.others);
        names.push(RUN.to_owned());
    }
    // Skip files in other directories, because they are not part of the run.
    for name in names.iter().filter(|name| Path::new(name).file_name() == Some(name.as_str().as_ref())) {
        let path = directory.join(name);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(WriteError::Io { path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes files and a manifest.
pub(super) fn put(
    directory: &Path,
    files: &[(String, Vec<u8>)],
    manifest: &Manifest,
) -> Result<Vec<PathBuf>, WriteError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| WriteError::Io { path, source }
    };
    fs::create_dir_all(directory).map_err(fail(directory))?;
    clear(directory)?;
    let mut paths = Vec::new();
    let text = serde_json::to_string_pretty(manifest).expect("lists and texts have a JSON text") + "\n";
    let manifest = (MANIFEST.to_owned(), text.into_bytes());
    for (name, bytes) in files.iter().chain([&manifest]) {
        let path = directory.join(name);
        fs::write(&path, bytes).map_err(fail(&path))?;
        paths.push(path);
    }
    Ok(paths)
}

/// The manifest of a set of results: its runs, and the files with their hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of faircast that produced the results.
    pub faircast: String,
    /// BLAKE3 hash of the scenario's text.
    pub scenario: String,
    /// All seeds, including those of other shards.
    pub seeds: Vec<u64>,
    /// All points, with the value on each axis.
    pub points: Vec<BTreeMap<String, String>>,
    /// The shard, such as `2/8`; `None` if the results are complete.
    pub shard: Option<String>,
    /// The runs in these results: number of the point, and seed.
    pub runs: Vec<(u64, u64)>,
    /// All files of the results except the manifest.
    pub files: Vec<Listed>,
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Name of the file.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// BLAKE3 hash of the contents.
    pub blake3: String,
}

fn manifest(results: &Results, files: &[(String, Vec<u8>)]) -> Manifest {
    let identity = &results.identity;
    let values =
        |point: &Point| point.values.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    Manifest {
        faircast: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: blake3::hash(identity.scenario.as_bytes()).to_hex().to_string(),
        seeds: identity.seeds.clone(),
        points: results.points.iter().map(values).collect(),
        shard: identity.shard.map(|shard| shard.to_string()),
        runs: results.jobs.iter().map(|(point, seed)| (*point as u64, *seed)).collect(),
        files: list(files),
    }
}

/// Lists names, sizes and hashes of files.
pub(super) fn list(files: &[(String, Vec<u8>)]) -> Vec<Listed> {
    let entry = |(name, bytes): &(String, Vec<u8>)| Listed {
        name: name.clone(),
        bytes: bytes.len() as u64,
        blake3: blake3::hash(bytes).to_hex().to_string(),
    };
    files.iter().map(entry).collect()
}

/// Returns a table as CSV. Numbers have enough digits to be read back exactly; NaN is an empty field.
pub fn to_csv(table: &Table) -> Vec<u8> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let header = table.columns.iter().map(|(name, _)| name.as_str());
    out.write_record(header).expect("a vector takes all that is written");
    let mut field = String::new();
    for row in 0..table.rows() {
        for (_, column) in &table.columns {
            field.clear();
            match column {
                Column::Whole(values) => write_display(&mut field, values[row]),
                Column::Number(values) if values[row].is_nan() => {}
                Column::Number(values) => write_display(&mut field, values[row]),
                Column::Text(values) => field.push_str(&values[row]),
            }
            out.write_field(&field).expect("a vector takes all that is written");
        }
        out.write_record(None::<&[u8]>).expect("a vector takes all that is written");
    }
    out.into_inner().expect("a vector takes all that is written")
}

fn write_display(out: &mut String, value: impl std::fmt::Display) {
    use std::fmt::Write;
    write!(out, "{value}").expect("a string takes all that is written");
}

/// Writes `run.json`: the duration of the run, the number of threads, and the names of additional files such as figures. The
/// manifest does not list `run.json`, because the content of `run.json` differs between equal runs.
///
/// # Errors
/// If the file cannot be written.
pub fn write_run(
    directory: &Path,
    totals: &Totals,
    others: &[&str],
    threads: usize,
    took: Duration,
) -> Result<PathBuf, WriteError> {
    let run = json!({
        "seconds": took.as_secs_f64(),
        "threads": threads,
        "system": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        "traversals": totals.traversals,
        "arrivals": totals.arrivals,
        "events": totals.events,
        "digest": format!("{:016x}", totals.digest),
        "others": others,
    });
    let path = directory.join(RUN);
    let text = serde_json::to_string_pretty(&run).expect("a tree of JSON values has a text") + "\n";
    fs::create_dir_all(directory).map_err(|source| WriteError::Io { path: directory.to_owned(), source })?;
    fs::write(&path, text).map_err(|source| WriteError::Io { path: path.clone(), source })?;
    Ok(path)
}
