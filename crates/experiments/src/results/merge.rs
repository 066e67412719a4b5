//! Merges the results of several shards. The merged files are identical to the files of a single run without shards.

use super::WriteError;
use super::write::{MANIFEST, Manifest, list, put};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why results could not be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// No directory was given.
    #[error("there is nothing to merge: name at least one directory of results")]
    Nothing,
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file that does not belong to the results of a run.
    #[error("{path} is not the result of a run: {reason}", path = path.display())]
    NotResults {
        /// The file.
        path: PathBuf,
        /// The fault.
        reason: String,
    },
    /// A file was changed after the run.
    #[error("{path} was changed after the run (its hash differs from the manifest); repeat the run", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Results of different experiments.
    #[error("{a} and {b} cannot be merged: their `{what}` differs; merge only results of the same experiment", a = a.display(), b = b.display())]
    Different {
        /// A directory.
        a: PathBuf,
        /// Another directory.
        b: PathBuf,
        /// The part that differs.
        what: &'static str,
    },
    /// A run that two directories contain.
    #[error("the run of point {point} with seed {seed} is in {path} and also in another directory; name only one of them", path = path.display())]
    Twice {
        /// The directory in which the run appears again.
        path: PathBuf,
        /// Number of the point.
        point: u64,
        /// The seed.
        seed: u64,
    },
    /// The result cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Merged results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// Number of runs in the merged results.
    pub runs: usize,
    /// Runs that are still missing: point and seed.
    pub missing: Vec<(u64, u64)>,
    /// Paths of the files that were written.
    pub files: Vec<PathBuf>,
}

/// Number of the point, and seed.
type Job = (u64, u64);

struct Part {
    directory: PathBuf,
    manifest: Manifest,
}

/// Merges the results in several directories into another directory. The directories may contain different shards or seeds.
///
/// # Errors
/// If a directory contains no results or changed results, or if the directories belong to different experiments or contain a run
/// twice.
pub fn merge(directories: &[PathBuf], into: &Path) -> Result<Merged, MergeError> {
    let parts: Vec<Part> =
        directories.iter().map(|directory| read_part(directory)).collect::<Result<_, _>>()?;
    let first = parts.first().ok_or(MergeError::Nothing)?;
    let mut owners: BTreeSet<Job> = BTreeSet::new();
    for part in &parts {
        if let Some(what) = difference(&first.manifest, &part.manifest) {
            return Err(MergeError::Different {
                a: first.directory.clone(),
                b: part.directory.clone(),
                what,
            });
        }
        for &(point, seed) in &part.manifest.runs {
            if !owners.insert((point, seed)) {
                return Err(MergeError::Twice { path: part.directory.clone(), point, seed });
            }
        }
    }
    let all = all_jobs(&first.manifest);
    let (runs, missing): (Vec<Job>, Vec<Job>) = all.into_iter().partition(|job| owners.contains(job));
    let files = merge_files(&parts, &runs)?;
    let mut manifest = first.manifest.clone();
    manifest.shard = None;
    manifest.runs.clone_from(&runs);
    manifest.files = list(&files);
    let files = put(into, &files, &manifest)?;
    Ok(Merged { runs: runs.len(), missing, files })
}

/// Returns the first property that differs, among those that must be equal in both results.
fn difference(a: &Manifest, b: &Manifest) -> Option<&'static str> {
    let checks = [
        ("faircast", a.faircast == b.faircast),
        ("scenario", a.scenario == b.scenario),
        ("points", a.points == b.points),
        ("seeds", a.seeds == b.seeds),
    ];
    checks.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
}

/// Returns all runs in the order of results.
fn all_jobs(manifest: &Manifest) -> Vec<Job> {
    let points = 0..manifest.points.len() as u64;
    points.flat_map(|point| manifest.seeds.iter().map(move |seed| (point, *seed))).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, MergeError> {
    fs::read(path).map_err(|source| MergeError::Read { path: path.to_owned(), source })
}

fn read_part(directory: &Path) -> Result<Part, MergeError> {
    let path = directory.join(MANIFEST);
    let bytes = read(&path)?;
    let manifest = serde_json::from_slice(&bytes)
        .map_err(|error| MergeError::NotResults { path, reason: error.to_string() })?;
    Ok(Part { directory: directory.to_owned(), manifest })
}

/// Returns the names of a part's files, and their hashes.
fn files_of(part: &Part) -> impl Iterator<Item = (&str, &str)> {
    part.manifest.files.iter().map(|file| (file.name.as_str(), file.blake3.as_str()))
}

fn merge_files(parts: &[Part], runs: &[Job]) -> Result<Vec<(String, Vec<u8>)>, MergeError> {
    // Order the files as in a single run: first in the order of the part with the most files, then the remaining files by name.
    let fullest = parts.iter().max_by_key(|part| files_of(part).count());
    let mut names: Vec<&str> = fullest.into_iter().flat_map(files_of).map(|(name, _)| name).collect();
    let others: BTreeSet<&str> = parts.iter().flat_map(files_of).map(|(name, _)| name).collect();
    names.extend(others.iter().filter(|name| !names.contains(name)).copied().collect::<Vec<_>>());
    names.retain(|name| !name.ends_with(PARQUET)); // made anew, from the merged table
    let rank = |name: &str| super::measure::TABLES.iter().position(|table| name == format!("{table}.csv"));
    names.sort_by_key(|name| match (*name, rank(name)) {
        ("scenario.toml", _) => (0, 0, 0),
        (_, Some(rank)) => (1, rank, 0),
        (name, None) => (2, 0, capture_order(name, runs)),
    });
    let mut files = Vec::new();
    for name in names {
        let mut contents = Vec::new();
        for part in parts {
            if let Some((_, hash)) = files_of(part).find(|(known, _)| *known == name) {
                let path = part.directory.join(name);
                let bytes = read(&path)?;
                if blake3::hash(&bytes).to_hex().as_str() != hash {
                    return Err(MergeError::Changed { path });
                }
                contents.push((path, bytes));
            }
        }
        let Some(table) = name.strip_suffix(".csv") else {
            files.push((name.to_owned(), contents.swap_remove(0).1));
            continue;
        };
        let merged = merge_csv(&contents, runs)?;
        let columnar = merge_parquet(parts, table, &merged)?;
        files.push((name.to_owned(), merged));
        files.extend(columnar);
    }
    Ok(files)
}

/// Extension of Parquet files.
const PARQUET: &str = ".parquet";

/// Returns a merged table as a Parquet file. Returns `None` if no part has this file.
#[cfg(feature = "parquet")]
fn merge_parquet(parts: &[Part], table: &str, text: &[u8]) -> Result<Option<(String, Vec<u8>)>, MergeError> {
    let name = format!("{table}{PARQUET}");
    let Some(part) = parts.iter().find(|part| files_of(part).any(|(known, _)| known == name)) else {
        return Ok(None);
    };
    let path = part.directory.join(&name);
    let file = fs::File::open(&path).map_err(|source| MergeError::Read { path: path.clone(), source })?;
    let merged = super::parquet::typed(table, text, file)
        .and_then(|table| super::parquet::to_parquet(&table).map_err(|error| error.to_string()));
    let bytes = merged.map_err(|reason| MergeError::NotResults { path, reason })?;
    Ok(Some((name, bytes)))
}

/// Returns `None`, because this build writes no Parquet files.
#[cfg(not(feature = "parquet"))]
fn merge_parquet(_: &[Part], _: &str, _: &[u8]) -> Result<Option<(String, Vec<u8>)>, MergeError> {
    Ok(None)
}

/// Returns the position of the run of a capture in the order of runs.
fn capture_order(name: &str, runs: &[Job]) -> usize {
    let place =
        runs.iter().position(|(point, seed)| name == super::capture::file_name(*point as usize, *seed));
    place.unwrap_or(runs.len())
}

/// Returns the rows of all parts, in the order of the runs.
fn merge_csv(contents: &[(PathBuf, Vec<u8>)], runs: &[Job]) -> Result<Vec<u8>, MergeError> {
    let mut header = None;
    let mut rows: BTreeMap<Job, Vec<csv::ByteRecord>> = BTreeMap::new();
    for (path, bytes) in contents {
        let bad = |reason: String| MergeError::NotResults { path: path.clone(), reason };
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let names = reader.byte_headers().map_err(|error| bad(error.to_string()))?.clone();
        let seed_at = names.iter().position(|name| name == b"seed").ok_or_else(|| bad("no `seed`".into()))?;
        header.get_or_insert(names);
        for record in reader.into_byte_records() {
            let record = record.map_err(|error| bad(error.to_string()))?;
            let number =
                |at: usize| -> Option<u64> { std::str::from_utf8(record.get(at)?).ok()?.parse().ok() };
            let job =
                number(0).zip(number(seed_at)).ok_or_else(|| bad("a row without point and seed".into()))?;
            rows.entry(job).or_default().push(record);
        }
    }
    let mut out = csv::Writer::from_writer(Vec::new());
    if let Some(header) = header {
        out.write_byte_record(&header).expect("a vector takes all that is written");
    }
    for row in runs.iter().filter_map(|job| rows.get(job)).flatten() {
        out.write_byte_record(row).expect("a vector takes all that is written");
    }
    Ok(out.into_inner().expect("a vector takes all that is written"))
}
