//! The record of a receiver: the numbers of the sessions that it has received of each series, and the numbers that it lacks.

use super::record;
use faircast::Series;
use serde::{Deserialize, Serialize};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Path of the record below the output directory.
const FILE: &str = ".faircast/sequences.json";

/// Maximum number of recorded series. The one that was received longest ago is forgotten first.
const MAX_SERIES: usize = 64;

/// Maximum number of recorded gaps of a series. The oldest gap is forgotten first.
const MAX_GAPS: usize = 1_000;

/// Consecutive numbers that were not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    pub first: u64,
    pub last: u64,
    /// Time at which a later number was received, in seconds since 1970.
    noticed: u64,
}

/// The received numbers of one series.
#[derive(Debug, Serialize, Deserialize)]
struct Received {
    /// Random number of the series, in hexadecimal.
    series: String,
    /// Host name of the source.
    host: String,
    first: u64,
    last: u64,
    /// Number of received sessions with different numbers.
    received: u64,
    missing: Vec<Gap>,
    /// Time of the latest received session, in seconds since 1970.
    updated: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Stored {
    sources: Vec<Received>,
}

/// The numbers that a receiver has received.
#[derive(Debug)]
pub struct Sequences {
    path: PathBuf,
    stored: Stored,
}

impl Received {
    fn forget_oldest(&mut self) {
        let excess = self.missing.len().saturating_sub(MAX_GAPS);
        self.missing.drain(..excess);
    }
}

impl Sequences {
    /// Reads the record of an output directory.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(out: &Path) -> io::Result<Sequences> {
        let path = out.join(FILE);
        Ok(Sequences { stored: record::read(&path)?.unwrap_or_default(), path })
    }

    /// Records a received session. Returns the numbers before it that are found missing now.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn receive(&mut self, of: Series, host: &str, unix_secs: u64) -> io::Result<Option<Gap>> {
        let gap = self.note(of, host, unix_secs);
        let made = |directory| DirBuilder::new().recursive(true).mode(0o700).create(directory);
        self.path.parent().map_or(Ok(()), made)?;
        record::replace(&self.path, &self.stored)?;
        Ok(gap)
    }

    fn note(&mut self, of: Series, host: &str, unix_secs: u64) -> Option<Gap> {
        let (series, number) = (format!("{:016x}", of.id), of.number);
        let sources = &mut self.stored.sources;
        let Some(at) = sources.iter().position(|one| one.series == series) else {
            if sources.len() == MAX_SERIES {
                let oldest = (0..sources.len()).min_by_key(|at| sources[*at].updated);
                oldest.into_iter().for_each(|at| _ = sources.remove(at));
            }
            let host = host.to_owned();
            let (first, last, received, missing) = (number, number, 1, Vec::new());
            sources.push(Received { series, host, first, last, received, missing, updated: unix_secs });
            return None;
        };
        let one = &mut sources[at];
        (one.host, one.updated) = (host.to_owned(), unix_secs);
        if number > one.last {
            let gap = Gap { first: one.last + 1, last: number - 1, noticed: unix_secs };
            (one.last, one.received) = (number, one.received.saturating_add(1));
            let gap = Some(gap).filter(|gap| gap.first <= gap.last);
            one.missing.extend(gap);
            one.forget_oldest();
            return gap;
        }
        if let Some(at) = one.missing.iter().position(|gap| (gap.first..=gap.last).contains(&number)) {
            let gap = one.missing.remove(at);
            let after = Gap { first: number + 1, ..gap };
            let before = Gap { last: number - 1, ..gap };
            let rest = [before, after].into_iter().filter(|rest| rest.first <= rest.last);
            one.missing.splice(at..at, rest);
            one.forget_oldest();
            one.received = one.received.saturating_add(1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(sequences: &Sequences, at: usize) -> Vec<(u64, u64)> {
        sequences.stored.sources[at].missing.iter().map(|gap| (gap.first, gap.last)).collect()
    }

    #[test]
    fn gaps_of_each_source_are_found_and_filled_across_restarts() {
        let out = tempfile::tempdir().expect("a directory");
        let open = || Sequences::open(out.path()).expect("a record");
        let receive = |sequences: &mut Sequences, id, number| {
            let gap = sequences.receive(Series { id, number }, "lab", 100 + number).expect("room");
            gap.map(|gap| (gap.first, gap.last))
        };
        let mut sequences = open();
        let found = [4, 5, 5, 9].map(|number| receive(&mut sequences, 1, number));
        assert_eq!(found, [None, None, None, Some((6, 8))], "the first number begins the record");
        assert_eq!(receive(&mut sequences, 2, 1), None, "another source");
        let mut sequences = open();
        assert_eq!(receive(&mut sequences, 1, 7), None, "it comes late");
        assert_eq!((ranges(&sequences, 0), ranges(&sequences, 1)), (vec![(6, 6), (8, 8)], vec![]));
        assert_eq!(receive(&mut sequences, 1, 12), Some((10, 11)));
        assert_eq!([6, 8, 2].map(|number| receive(&mut sequences, 1, number)), [None; 3]);
        let sequences = open();
        assert_eq!(ranges(&sequences, 0), [(10, 11)]);
        assert_eq!(sequences.stored.sources[0].received, 7);
    }

    #[test]
    fn record_of_extreme_numbers_and_many_gaps_is_bounded() {
        let out = tempfile::tempdir().expect("a directory");
        let mut sequences = Sequences::open(out.path()).expect("a record");
        for id in 0..2 * MAX_SERIES as u64 {
            sequences.note(Series { id, number: 1 }, "lab", id);
        }
        assert_eq!(sequences.stored.sources.len(), MAX_SERIES);
        let id = 2 * MAX_SERIES as u64 - 1;
        for number in 1..3 * MAX_GAPS as u64 {
            sequences.note(Series { id, number: 2 * number }, "lab", number);
        }
        assert_eq!(ranges(&sequences, MAX_SERIES - 1).len(), MAX_GAPS);
        for number in [u64::MAX, 0, u64::MAX] {
            sequences.note(Series { id, number }, "lab", number);
        }
        assert_eq!(sequences.stored.sources[MAX_SERIES - 1].last, u64::MAX);
    }
}
