//! Sources that run for months: packet numbers and times wrap, keys change, and silences last for hours.
//!
//! Time is virtual, so slow sessions cost little. The live stream rarely has a block, while announcements, status messages and
//! reports continue as usual. To test the wrap of a counter, the counter starts just below its maximum.

use super::*;
use faircast_wire::GroupKey;
use std::fs;

/// Number of different packet numbers. In packets, packet numbers have 32 bits.
const WRAP: u64 = 1 << 32;

/// A sender changes its key after this number of packets.
const TURN: u64 = 1 << 18;

const MINUTE: Span = Span::from_secs(60);
const HOUR: u64 = 60;
const DAY: u64 = 24 * HOUR;

/// Frequency of status messages while no data is sent.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// Five times a second.
    Usual,
    /// Once a second, as in a session with at most 10 kbit/s.
    Slow,
}

/// A live stream in which each block contains its own number.
struct Stream {
    net: Net,
    source: usize,
    fed: Vec<u8>,
    /// Number of bytes fed before each receiver joined.
    since: Vec<usize>,
}

impl Stream {
    /// Starts a receiver, and a source with this scheme. The source numbers its announcements and status messages as if it had
    /// already sent `sent` of each kind.
    fn new(scheme: &'static str, key: Option<GroupKey>, sent: u64, pace: Pace) -> Stream {
        let mut net = Net::new(41);
        net.trace.off = true;
        net.receivers_with(1, Link::millis(100), Link::millis(100), None, key.clone());
        let offer = Offer::live(secs(600), sent).by(scheme).datagrams_of(424).in_blocks_of(2).wait_secs(30);
        let offer = if pace == Pace::Slow { offer.at_most_mbps(0.01) } else { offer };
        let source = net.source(key.into_iter().fold(offer, Offer::sealed));
        let mut stream = Stream { net, source, fed: Vec::new(), since: vec![0] };
        stream.pass(1);
        stream
    }

    /// Adds a receiver.
    fn join(&mut self, key: Option<GroupKey>) {
        self.net.receivers_with(1, Link::millis(100), Link::millis(100), None, key);
        self.since.push(self.fed.len());
        self.net.run_for(secs(20));
    }

    /// Runs for some minutes without new blocks.
    fn pass(&mut self, minutes: u64) {
        for _ in 0..minutes {
            self.net.run_for(MINUTE);
            self.net.sources[self.source].events.clear();
            self.net.receivers.iter_mut().for_each(|node| node.events.clear());
        }
    }

    /// Feeds a block, then runs for this number of minutes.
    fn block(&mut self, minutes: u64) {
        let byte = (self.fed.len() / 100 % 251) as u8;
        self.fed.extend(self.net.feed(self.source, byte));
        self.pass(minutes);
    }

    /// Ends the stream. Checks that every receiver has all data sent since that receiver joined, and that the source counts each
    /// receiver as complete.
    fn end(mut self) {
        self.net.end_feed(self.source);
        self.net.run_to_end(secs(120));
        let report = self.net.sources[self.source].report();
        assert!(report.ok, "{report:?}");
        assert_eq!(report.verified, self.since.len() as u64);
        for (node, since) in self.net.receivers.iter().zip(&self.since) {
            assert!(node.report().ok, "{}", node.host);
            let file = fs::read_dir(&node.dir).expect("its directory").next().expect("the stream's file");
            let got = fs::read(file.expect("it can be seen").path()).expect("it can be read");
            // A late joiner may have more data, because it starts with the newest stored blocks.
            let least = self.fed.len() - since;
            assert!(
                self.fed.ends_with(&got) && got.len() >= least,
                "{}: {} bytes of {least}",
                node.host,
                got.len()
            );
        }
    }
}

fn keys() -> [Option<GroupKey>; 2] {
    [None, Some(GroupKey::from_bytes([5; 32]))]
}

/// Packets state their departure time in microseconds, in 32 bits, which wrap after 71.6 minutes. After a silence of half this
/// time, such a timestamp is ambiguous.
#[test]
fn stream_continues_after_silence_beyond_the_timestamp_range() {
    for scheme in ["ormcc", "tfmcc", "pgmcc", "mca-plus", "le-sbcc"] {
        for key in keys() {
            let mut stream = Stream::new(scheme, key.clone(), 0, Pace::Usual);
            for silence in [0, 40, 1, 80, 3 * HOUR, 0] {
                (0..10).for_each(|_| stream.block(0));
                stream.pass(silence + 1);
            }
            stream.join(key);
            (0..10).for_each(|_| stream.block(0));
            stream.pass(1);
            stream.end();
        }
    }
}

/// At five status messages per second, the status number exceeds the tested value within minutes.
#[test]
fn stream_continues_after_counters_wrap_and_keys_change() {
    for key in keys() {
        for at in [TURN, WRAP / 2, WRAP, 2 * WRAP] {
            let mut stream = Stream::new("ormcc", key.clone(), at - 500, Pace::Usual);
            for _ in 0..4 {
                stream.block(1);
            }
            stream.join(key.clone());
            for _ in 0..4 {
                stream.block(1);
            }
            stream.end();
        }
    }
}

/// A simulated day takes seconds: a block every ten minutes, a silence of three hours, and late joiners.
#[test]
fn source_serves_early_and_late_receivers_for_a_day() {
    days(1, 40_000);
}

/// The same test for 365 days. Run it with `cargo test --release -p faircast-transport --lib -- --ignored
/// source_serves_early_and_late_receivers_for_a_year --nocapture`.
#[test]
#[ignore = "takes the better part of an hour of a processor"]
fn source_serves_early_and_late_receivers_for_a_year() {
    days(365, 15_000_000);
}

/// Runs a stream for this number of days. The source's status number wraps after `before` status messages, in the middle of the
/// run.
fn days(days: u64, before: u64) {
    let key = Some(GroupKey::from_bytes([5; 32]));
    let mut stream = Stream::new("ormcc", key.clone(), WRAP - before, Pace::Slow);
    let begin = std::time::Instant::now();
    for day in 0..days {
        for _ in 0..126 {
            stream.block(10);
        }
        stream.pass(DAY - 126 * 10);
        if day % 90 == 0 {
            stream.join(key.clone());
        }
        if day % 7 == 0 {
            println!("day {}: {} bytes, {:.0} s", day + 1, stream.fed.len(), begin.elapsed().as_secs_f64());
        }
    }
    let (receivers, bytes) = (stream.since.len(), stream.fed.len());
    stream.end();
    println!(
        "{days} days: {receivers} receivers, {bytes} bytes, {:.0} s of real time",
        begin.elapsed().as_secs_f64()
    );
}
