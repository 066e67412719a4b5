//! Results as files: a CSV for each table, captures, and `manifest.json`.
//!
//! Nothing in these files depends on the machine or the clock. The run's duration and number of threads go to
//! `run.json` by [`write_run`].

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

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The system's refusal.
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

/// The manifest's name.
pub const MANIFEST: &str = "manifest.json";

/// Write tables as CSV, captures, the scenario and the manifest into a directory, which is made when it is not there.
/// The files of an earlier run in it are removed. The paths of the files, the manifest last.
///
/// # Errors
/// When a file cannot be written.
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

/// The name of the file about how a run was made.
const RUN: &str = "run.json";

/// The part of `run.json` that names files which no manifest lists.
#[derive(Deserialize)]
struct ListedFiles {
    #[serde(default)]
    others: Vec<String>,
}

/// Removes the files of an earlier run from a directory: those that its `manifest.json` and its `run.json` list, and these two.
///
/// # Errors
/// When a file cannot be removed.
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
    // A file elsewhere is no file of the run.
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

/// Write files and a manifest.
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

/// Files that belong together, and the hashes of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version that ran it.
    pub faircast: String,
    /// BLAKE3 hash of the scenario's text.
    pub scenario: String,
    /// All seeds, also those of other shards.
    pub seeds: Vec<u64>,
    /// All points, with the value on each axis.
    pub points: Vec<BTreeMap<String, String>>,
    /// The shard, such as `2/8`; none when this is everything.
    pub shard: Option<String>,
    /// The runs that are here: number of a point, and seed.
    pub runs: Vec<(u64, u64)>,
    /// The files beside this one.
    pub files: Vec<Listed>,
}

/// A file in a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its hash.
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

/// Names, sizes and hashes.
pub(super) fn list(files: &[(String, Vec<u8>)]) -> Vec<Listed> {
    let entry = |(name, bytes): &(String, Vec<u8>)| Listed {
        name: name.clone(),
        bytes: bytes.len() as u64,
        blake3: blake3::hash(bytes).to_hex().to_string(),
    };
    files.iter().map(entry).collect()
}

/// A table as CSV. Numbers have as many digits as it takes to read them back to the last bit; not-a-number is an empty
/// field.
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

/// Writes `run.json`: how long the run took, with how many threads, and the names of files beside its results, such as
/// figures. It is not listed in the manifest, for it is another one each time.
///
/// # Errors
/// When it cannot be written.
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
