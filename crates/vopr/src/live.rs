//! Live streams: bytes that arrive over time at the source, and the bytes that readers receive.

use crate::clock::Clock;
use crate::content;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_transport::{Input, Output};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// All streams of a world.
pub(crate) struct Streams {
    clock: Clock,
    /// For each start of the source: the complete bytes of each layer.
    versions: Vec<Vec<Arc<Vec<u8>>>>,
    /// For each host: the reader of its newest process.
    sinks: Vec<Sink>,
    /// For each host: the number of processes so far. Each process has a separate directory.
    runs: Vec<u32>,
    /// For each host: the number of its processes that received the end of a stream, and whether the newest process did.
    ended: Vec<(usize, bool)>,
    served: Vec<bool>,
}

/// Reader of a stream's layer 0.
#[derive(Clone)]
struct Sink {
    taken: Arc<Mutex<Vec<u8>>>,
    /// Rate of the reader, in bytes per second; `None`: unlimited.
    slow: Option<f64>,
    since: Time,
    clock: Clock,
    /// Whether the reader accepts all bytes from now on.
    open: bool,
    /// Whether the last byte of each write is corrupted.
    spoilt: bool,
}

/// Bytes that arrive over time.
struct Comes {
    bytes: Arc<Vec<u8>>,
    /// Times, each with the number of bytes that have arrived by then, in order of time.
    steps: Vec<(Time, usize)>,
    read: usize,
    clock: Clock,
}

/// Comparison of received bytes with a stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Number of gaps between the received pieces.
    pub(crate) gaps: usize,
    /// Whether the end of the stream was received.
    pub(crate) ends: bool,
}

/// Number of bytes that identify a position in a stream.
const WINDOW: usize = 24;

/// Maximum duration of a stream that starts after the end of all faults.
const MAX_DURATION: Span = Span::from_secs(6);

impl Streams {
    /// Creates the state for this number of hosts, without streams. With `spoilt`, readers get a wrong byte.
    pub(crate) fn new(hosts: usize, clock: Clock, spoilt: bool) -> Streams {
        let taken = Arc::default();
        let sink = Sink { taken, slow: None, since: Time::ZERO, clock: clock.clone(), open: true, spoilt };
        Streams {
            clock,
            versions: Vec::new(),
            sinks: vec![sink; hosts],
            runs: vec![0; hosts],
            ended: vec![(0, false); hosts],
            served: vec![false; hosts],
        }
    }

    /// Starts a new stream on each of `lanes` layers, and returns the inputs of the source. Streams that start before `calm` may
    /// last beyond it.
    pub(crate) fn begin(&mut self, lanes: usize, now: Time, calm: Time, rng: &mut Rng) -> Vec<Input> {
        let left = Span::from_nanos(calm.since(now).as_nanos() + 2_000_000_000);
        let mut made = Vec::new();
        let inputs = (0..lanes).map(|_| {
            let longest = if rng.chance(0.5) { left.max(MAX_DURATION) } else { MAX_DURATION };
            let lasts = longest.scaled(rng.unit());
            let bytes = Arc::new(content::bytes(1 + 2f64.powf(rng.unit() * 16.0) as usize, rng));
            let mut steps: Vec<(Time, usize)> = (0..rng.below(30))
                .map(|_| (now + lasts.scaled(rng.unit()), rng.below(bytes.len() as u64 + 1) as usize))
                .collect();
            steps.push((now + lasts, bytes.len()));
            steps.sort_unstable();
            made.push(bytes.clone());
            let comes = Comes { bytes, steps, read: 0, clock: self.clock.clone() };
            Input::polling(comes, self.clock.monotonic())
        });
        let inputs = inputs.collect();
        self.versions.push(made);
        inputs
    }

    /// Registers a new process of this host that writes to files. Returns its directory below `out`.
    pub(crate) fn directory(&mut self, host: usize, out: &Path) -> PathBuf {
        self.begin_run(host);
        self.sinks[host].taken = Arc::default();
        self.directory_now(host, out)
    }

    fn directory_now(&self, host: usize, out: &Path) -> PathBuf {
        out.join(format!("run{}", self.runs[host]))
    }

    /// Registers a new process of this host that writes to a reader. Returns its output.
    pub(crate) fn output(&mut self, host: usize, slow: bool, rng: &mut Rng) -> Output {
        self.begin_run(host);
        let slow = slow.then(|| 2_000.0 + 60_000.0 * rng.unit());
        let (since, clock) = (self.clock.now(), self.clock.clone());
        let spoilt = self.sinks[host].spoilt;
        let sink = Sink { taken: Arc::default(), slow, since, clock, open: false, spoilt };
        self.sinks[host] = sink.clone();
        Output::polling(sink)
    }

    fn begin_run(&mut self, host: usize) {
        self.runs[host] += 1;
        self.ended[host].1 = false;
    }

    /// Checks that all bytes that this host has received are a part of some stream, in order. Returns the part of layer 0, or
    /// `None` without received bytes. If the process followed several sessions, the part belongs to the newest stream.
    pub(crate) fn check(&mut self, host: usize, out: &Path) -> Result<Option<Part>, String> {
        let taken = self.sinks[host].taken.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut newest = self.part_of(0, &taken)?;
        for (lane, path) in files(&self.directory_now(host, out)) {
            let bytes = fs::read(&path).map_err(|error| error.to_string())?;
            let part = self.part_of(lane, &bytes).map_err(|why| format!("{}: {why}", path.display()))?;
            if lane == 0 {
                newest = newest.into_iter().chain(part).max_by_key(|(version, part)| (*version, part.ends));
            }
        }
        let newest = newest.map(|(_, part)| part);
        let (ended, newest_has) = &mut self.ended[host];
        if newest.as_ref().is_some_and(|part| part.ends) && !*newest_has {
            (*ended, *newest_has) = (*ended + 1, true);
        }
        Ok(newest)
    }

    /// Returns the number of the stream of layer `lane` that contains `bytes`, and the comparison of `bytes` with this stream.
    fn part_of(&self, lane: usize, bytes: &[u8]) -> Result<Option<(usize, Part)>, String> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let parts_with = |gaps: fn(&[u8], &[u8]) -> Option<usize>| -> Vec<(usize, Part)> {
            let newest_first = self.versions.iter().enumerate().rev();
            let found = newest_first
                .filter_map(|(version, lanes)| Some((version, part(bytes, lanes.get(lane)?, gaps)?)));
            found.collect()
        };
        let mut parts = parts_with(gaps);
        if parts.is_empty() {
            parts = parts_with(gaps_of_short_pieces);
        }
        // Several streams may contain these bytes, because all streams begin with the same mark.
        let place = parts.iter().position(|(_, part)| part.ends).unwrap_or(0);
        let found = parts.into_iter().nth(place).map(Some);
        found.ok_or_else(|| {
            format!("{} bytes of layer {lane} are no part of any stream, in order", bytes.len())
        })
    }

    /// Records that a process of this host has ended without an error.
    pub(crate) fn serve(&mut self, host: usize) {
        self.served[host] = true;
    }

    pub(crate) fn has_served(&self, host: usize) -> bool {
        self.served[host]
    }

    /// Returns the number of processes of this host that received the end of a stream. After a kill, a restarted process may
    /// receive the end again.
    pub(crate) fn ended(&self, host: usize) -> usize {
        self.ended[host].0.max(usize::from(self.served[host]))
    }
}

/// Lists the files of streams in an output directory, and their layers.
fn files(out: &Path) -> Vec<(usize, PathBuf)> {
    let entries = fs::read_dir(out).into_iter().flatten().flatten();
    let file = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_prefix("stream-")?;
        let lane = name.split_once(".layer").map_or(Some(0), |(_, lane)| lane.parse().ok());
        Some((lane?, path))
    };
    let mut all: Vec<(usize, PathBuf)> = entries.filter_map(|entry| file(entry.path())).collect();
    all.sort();
    all
}

/// Returns the first position of `window` in `all` at or after `from`.
fn find(all: &[u8], from: usize, window: &[u8]) -> Option<usize> {
    let rest = all.get(from..)?;
    rest.windows(window.len()).position(|here| here == window).map(|at| from + at)
}

/// Compares `bytes` with the stream `all`. Returns `None` unless `bytes` consists of pieces of `all`, in order.
fn part(bytes: &[u8], all: &[u8], gaps: fn(&[u8], &[u8]) -> Option<usize>) -> Option<Part> {
    let found = gaps(bytes, all)?;
    let end = &bytes[bytes.len().saturating_sub(WINDOW)..];
    // The last piece may be shorter than a window.
    let ends_so = |len: usize| {
        let (before, end) = bytes.split_at(bytes.len() - len);
        all.ends_with(end) && gaps(before, &all[..all.len() - len]).is_some()
    };
    Some(Part { gaps: found, ends: all.ends_with(end) || (1..end.len()).rev().any(ends_so) })
}

/// Returns the number of gaps between pieces of `all`. Every piece must have at least the length of a window.
fn gaps(bytes: &[u8], all: &[u8]) -> Option<usize> {
    let (mut done, mut at, mut gaps) = (0, 0, 0);
    while done < bytes.len() {
        let alike = bytes[done..].iter().zip(&all[at.min(all.len())..]).take_while(|(a, b)| a == b).count();
        (done, at) = (done + alike, at + alike);
        if done == bytes.len() {
            break;
        }
        // The next piece begins later in the stream. The last equal bytes may belong to the next piece, and equal the present
        // piece only by chance.
        let farther = (0..=WINDOW.min(done)).rev().find_map(|back| {
            let from = done - back;
            let window = &bytes[from..bytes.len().min(from + WINDOW)];
            find(all, (at - back).saturating_add(1).min(all.len()), window).map(|at| (from, at))
        });
        let (from, place) = farther?;
        gaps += usize::from(from > 0);
        (done, at) = (from, place);
    }
    Some(gaps)
}

/// Like `gaps`, but a piece may be as short as a byte: a block holds the bytes that had arrived when the block was built, and the
/// adjacent blocks may be lost. Tries all possible pieces, the longest first.
fn gaps_of_short_pieces(bytes: &[u8], all: &[u8]) -> Option<usize> {
    Pieces { bytes, all, seen: BTreeSet::new(), left: MAX_EXAMINED }.gaps(0, 0)
}

struct Pieces<'a> {
    bytes: &'a [u8],
    all: &'a [u8],
    /// Failed states: the number of matched bytes, and the first possible position of the next piece.
    seen: BTreeSet<(usize, usize)>,
    /// Number of bytes that may still be examined.
    left: usize,
}

/// Maximum number of bytes that are examined before the search fails.
const MAX_EXAMINED: usize = 50_000_000;

/// Lengths of search windows, each with its number of positions to try.
const LENGTHS: [(usize, usize); 5] = [(WINDOW, 4), (12, 4), (6, 4), (3, 8), (1, 8)];

impl Pieces<'_> {
    /// Returns the number of gaps after `done` matched bytes. The next piece begins at `at` or later.
    fn gaps(&mut self, done: usize, at: usize) -> Option<usize> {
        let (bytes, all) = (self.bytes, self.all);
        let alike = bytes[done..].iter().zip(&all[at..]).take_while(|(a, b)| a == b).count();
        let (done, at) = (done + alike, at + alike);
        if done == bytes.len() {
            return Some(0);
        }
        if self.left == 0 || !self.seen.insert((done, at)) {
            return None;
        }
        // The last bytes may be equal by chance.
        for back in 0..=alike.min(2) {
            let from = done - back;
            for (length, places) in LENGTHS {
                let window = &bytes[from..bytes.len().min(from + length)];
                let mut next = at - back + 1;
                for _ in 0..places {
                    let place = find(all, next.min(all.len()), window);
                    self.left = self.left.saturating_sub(place.unwrap_or(all.len()) - next.min(all.len()));
                    let Some(place) = place else { break };
                    if let Some(gaps) = self.gaps(from, place) {
                        return Some(gaps + usize::from(from > 0));
                    }
                    next = place + 1;
                }
            }
        }
        None
    }
}

impl Read for Comes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let now = self.clock.now();
        let come = self.steps.iter().filter(|(at, _)| *at <= now).map(|(_, to)| *to).max().unwrap_or(0);
        if self.read == self.bytes.len() {
            let ends = self.steps.last().is_none_or(|(at, _)| *at <= now);
            return if ends { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let len = into.len().min(come.saturating_sub(self.read));
        if len == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        into[..len].copy_from_slice(&self.bytes[self.read..][..len]);
        self.read += len;
        Ok(len)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let room = match self.slow.filter(|_| !self.open) {
            Some(rate) => (rate * self.clock.now().since(self.since).as_secs_f64()) as usize,
            None => usize::MAX,
        };
        let len = bytes.len().min(room.saturating_sub(taken.len()));
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        taken.extend_from_slice(&bytes[..len]);
        if self.spoilt
            && let Some(last) = taken.last_mut()
        {
            *last ^= 1;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.open = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_and_end_of_a_received_stream_are_found() {
        let all = content::bytes(5_000, &mut Rng::new(1, 1));
        let of = |ranges: &[std::ops::Range<usize>]| {
            let bytes: Vec<u8> = ranges.iter().flat_map(|range| all[range.clone()].to_vec()).collect();
            let found = part(&bytes, &all, gaps).or_else(|| part(&bytes, &all, gaps_of_short_pieces));
            found.map(|part| (part.gaps, part.ends))
        };
        let one = |range: std::ops::Range<usize>| of(std::slice::from_ref(&range));
        assert_eq!(one(0..5_000), Some((0, true)));
        assert_eq!(one(0..300), Some((0, false)));
        assert_eq!(one(1_000..5_000), Some((0, true)), "who comes late has no gap");
        assert_eq!(one(640..900), Some((0, false)), "also when it begins as the stream does");
        assert_eq!(one(4_997..5_000), Some((0, true)), "however little that is");
        assert_eq!(of(&[7..1_000, 1_200..1_300, 4_000..5_000]), Some((2, true)));
        assert_eq!(of(&[0..1_000, 1_200..1_210, 4_000..5_000]), Some((2, true)), "a block of few bytes");
        assert_eq!(
            of(&[900..1_000, 1_200..1_203, 2_000..2_005, 4_000..5_000]),
            Some((3, true)),
            "and more of them"
        );
        assert_eq!(of(&[10..20, 4_993..5_000]), Some((1, true)), "also where the end is one");
        assert_eq!(of(&[10..20, 4_990..4_997]), Some((1, false)));
        assert_eq!(of(&[1_000..2_000, 0..1_000]), None, "not in order");
        assert_eq!(of(&[0..1_000, 500..1_000]), None, "twice");
        let mut wrong = all.clone();
        wrong[2_500] ^= 1;
        assert_eq!((part(&wrong, &all, gaps), part(&wrong, &all, gaps_of_short_pieces)), (None, None));
    }

    #[test]
    fn reads_and_writes_of_a_stream_wait_for_virtual_time() {
        let mut streams = Streams::new(1, Clock::new(), false);
        let mut rng = Rng::new(2, 2);
        let inputs = streams.begin(2, Time::ZERO, Time::ZERO, &mut rng);
        assert_eq!((inputs.len(), streams.versions[0].len()), (2, 2));
        let bytes = streams.versions[0][0].clone();
        let steps = vec![(Time::from_secs_f64(1.0), 10), (Time::from_secs_f64(2.0), bytes.len())];
        let mut comes = Comes { bytes, steps, read: 0, clock: streams.clock.clone() };
        let mut into = [0; 64];
        let waits = |read: io::Result<usize>| read.is_err_and(|why| why.kind() == io::ErrorKind::WouldBlock);
        assert!(waits(comes.read(&mut into)));
        streams.clock.set(Time::from_secs_f64(1.0));
        assert_eq!(comes.read(&mut into).expect("some have come"), 10);
        assert!(waits(comes.read(&mut into)));
        let _output = streams.output(0, true, &mut rng);
        let mut sink = streams.sinks[0].clone();
        assert!(waits(sink.write(&[1; 10])));
        streams.clock.set(Time::from_secs_f64(1.001));
        assert!((2..=62).contains(&sink.write(&[1; 100]).expect("some are taken")));
        sink.flush().expect("it takes all");
        assert_eq!(sink.write(&[1; 100]).expect("all are taken"), 100);
    }

    #[test]
    fn end_of_stream_counts_only_in_the_newest_file() {
        let out = tempfile::tempdir().expect("a directory");
        let mut streams = Streams::new(1, Clock::new(), false);
        let mut rng = Rng::new(3, 3);
        let run = streams.directory(0, out.path());
        std::fs::create_dir_all(&run).expect("a directory");
        let versions: Vec<Arc<Vec<u8>>> = (0..2).map(|_| Arc::new(content::bytes(2_000, &mut rng))).collect();
        streams.versions = versions.iter().map(|bytes| vec![bytes.clone()]).collect();
        std::fs::write(run.join("stream-aaaaaaaa"), &versions[0][..800]).expect("a file");
        std::fs::write(run.join("stream-bbbbbbbb"), &versions[1][..]).expect("a file");
        let part = streams.check(0, out.path()).expect("both are parts of streams");
        assert_eq!(part, Some(Part { gaps: 0, ends: true }));
        std::fs::write(run.join("stream-aaaaaaaa"), &versions[0][..]).expect("a file");
        std::fs::write(run.join("stream-bbbbbbbb"), &versions[1][..900]).expect("a file");
        let part = streams.check(0, out.path()).expect("both are parts of streams");
        assert_eq!(part, Some(Part { gaps: 0, ends: false }), "the end of an older stream is not enough");
    }
}
