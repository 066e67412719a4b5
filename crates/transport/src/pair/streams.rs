//! Live streams in layers: the output of each layer is in order, even if packets are lost or receivers leave layers.

use super::*;
use crate::config::Pacing;
use crate::event::{Flow, StreamReceived};
use crate::object::ObjectError;
use crate::source::scheduler::streams::Feed;
use faircast_core::time::Rate;
use std::collections::BTreeSet;

/// RLC with two layers of 0.5 Mbit/s each.
const RLC: &str = "rlc,base=500000,layers=2";

/// Size of a record, bytes. Streams consist of numbered records, so any part of a stream shows its position.
const RECORD: usize = 20;

/// A synthetic input: live records at a rate, or a file of records.
#[derive(Debug, Clone)]
pub(super) struct LiveInput {
    rate: Option<Rate>,
    bytes: usize,
    taken: usize,
}

impl LiveInput {
    /// Returns an input of `bytes` bytes, which become available from the start at `mbps` Mbit/s.
    pub(super) fn live(mbps: f64, bytes: usize) -> LiveInput {
        LiveInput { rate: Some(Rate::from_mbps(mbps)), bytes, taken: 0 }
    }

    /// Returns an input of this number of bytes, all of which are available at once.
    pub(super) fn file(bytes: usize) -> LiveInput {
        LiveInput { rate: None, bytes, taken: 0 }
    }

    fn all(bytes: usize) -> Vec<u8> {
        LiveInput::part(0..bytes)
    }

    fn part(range: Range<usize>) -> Vec<u8> {
        let first = range.start / RECORD;
        let records = (first..range.end.div_ceil(RECORD)).map(|number| format!("record {number:012}\n"));
        let begin = range.start - first * RECORD;
        records.collect::<String>().into_bytes()[begin..begin + range.len()].to_vec()
    }
}

impl Feed for LiveInput {
    fn take(&mut self, most: usize, _: Span, now: Time) -> Result<Option<Vec<u8>>, ObjectError> {
        let come = self.rate.map_or(self.bytes, |rate| rate.bytes_in(now.since(Time::ZERO)) as usize);
        let there = come.min(self.bytes) - self.taken;
        if there == 0 || there < most && come < self.bytes {
            return Ok(None);
        }
        let len = there.min(most);
        self.taken += len;
        Ok(Some(LiveInput::part(self.taken - len..self.taken)))
    }

    fn is_finished(&self) -> bool {
        self.taken == self.bytes
    }

    fn pacing(&self) -> Pacing {
        if self.rate.is_some() { Pacing::Live } else { Pacing::Waits }
    }
}

fn access(mbps: f64) -> Link {
    Link::millis(5).mbps(mbps).fifo(20_000)
}

impl Net {
    /// Returns the output of a receiver for a layer.
    fn got(&self, receiver: usize, layer: u8) -> Vec<u8> {
        let dir = std::fs::read_dir(&self.receivers[receiver].dir).expect("it has a directory");
        let end = format!(".layer{layer}");
        let mut files = dir.filter_map(|entry| Some(entry.ok()?.path()));
        let file = files.find(|path| path.to_string_lossy().ends_with(&end));
        file.map_or_else(Vec::new, |path| std::fs::read(path).expect("it can be read"))
    }

    /// Returns the report about one layer from a receiver that ended successfully.
    fn stream(&self, receiver: usize, layer: usize) -> &StreamReceived {
        &self.receivers[receiver].report().streams[layer]
    }

    fn flows(&self, receiver: usize, of: u8) -> Vec<Flow> {
        let flow = |event: &Event| match event {
            Event::Output { layer, flow, .. } if *layer == of => Some(*flow),
            _ => None,
        };
        self.receivers[receiver].events.iter().filter_map(|(_, event)| flow(event)).collect()
    }
}

/// Returns the numbers of the complete records in a part of a stream.
fn records(part: &[u8]) -> Vec<usize> {
    let lines = std::str::from_utf8(part).expect("records are text").lines();
    lines.filter_map(|line| line.strip_prefix("record ")?.get(..12)?.parse().ok()).collect()
}

fn assert_in_order(part: &[u8]) {
    let numbers = records(part);
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "out of order or twice");
}

#[test]
fn stream_of_each_layer_reaches_the_receivers_that_joined_it() {
    let mut net = Net::new(1);
    let fast = net.receivers(1, access(5.0), Link::millis(5)).start;
    let slow = net.receivers(1, access(0.8), Link::millis(5)).start;
    let (base, upper) = (LiveInput::live(0.4, 600_000), LiveInput::live(0.4, 600_000));
    let source = net.source(Offer::streams(&[base, upper], secs(5)).by(RLC).expect(2));
    net.run_to_end(secs(60));
    let report = net.sources[source].report();
    assert!(report.ok && report.verified == 2, "{report:?}");
    assert_eq!(report.streams.iter().map(|stream| stream.blocks_dropped).sum::<u64>(), 0, "{report:?}");
    assert!(net.got(fast, 0) == LiveInput::all(600_000), "{:?}", net.stream(fast, 0));
    let upper = net.got(fast, 1);
    assert!(LiveInput::all(600_000).ends_with(&upper), "joined at the present: {:?}", net.stream(fast, 1));
    assert!(upper.len() > 350_000, "{:?}", net.stream(fast, 1));
    assert_eq!(net.flows(fast, 1), [Flow::Starts, Flow::Stops]);
    // The slow receiver sometimes probes the enhancement layer, and then loses some packets of the base layer.
    let base = net.got(slow, 0);
    assert_in_order(&base);
    assert!(base.len() > 550_000, "{:?}", net.stream(slow, 0));
    assert!(
        net.stream(slow, 1).joined_for.as_secs_f64() < net.stream(fast, 1).joined_for.as_secs_f64() / 2.0,
        "{:?}",
        net.stream(slow, 1)
    );
}

#[test]
fn unrepaired_blocks_of_a_stream_are_skipped_and_counted() {
    let mut net = Net::new(2);
    net.trace.record = true;
    let lossy = net.receivers(1, access(5.0).losing(0.03), Link::millis(5)).start;
    let worse = net.receivers(1, access(5.0).losing(0.25), Link::millis(5)).start;
    let base = LiveInput::live(0.3, 400_000);
    net.source(Offer::streams(&[base, LiveInput::live(0.1, 1_000)], secs(5)).by(RLC).expect(2));
    net.run_to_end(secs(60));
    let (lossy_base, worse_base) = (net.got(lossy, 0), net.got(worse, 0));
    let stream = net.stream(lossy, 0);
    assert!(lossy_base.len() > 395_000 && stream.blocks_lost <= 1, "{stream:?}");
    let stream = net.stream(worse, 0);
    assert!(stream.blocks_lost > 0 && stream.bytes == worse_base.len() as u64, "{stream:?}");
    assert!(worse_base.len() > 100_000, "a gap holds up nothing: {stream:?}");
    assert_in_order(&worse_base);
    let mut missing: BTreeSet<_> = (0..400_000 / RECORD).collect();
    records(&worse_base).iter().for_each(|number| _ = missing.remove(number));
    assert!(!missing.is_empty());
    let asked = net.trace.up.iter().filter(|(_, _, bytes)| {
        faircast_wire::peek(bytes).is_ok_and(|header| header.kind == faircast_wire::Kind::Request)
    });
    assert_eq!(asked.count(), 0, "nobody asks for anything");
    assert!(!net.trace.up.is_empty());
}

#[test]
fn late_joiner_starts_at_the_live_position() {
    let mut net = Net::new(3);
    let first = net.receivers(1, access(5.0), Link::millis(5)).start;
    let inputs = [LiveInput::live(0.4, 600_000), LiveInput::live(0.4, 600_000)];
    net.source(Offer::streams(&inputs, secs(5)).by(RLC).expect(1));
    net.run_for(secs(5));
    let late = net.receivers(1, access(5.0), Link::millis(5)).start;
    net.run_to_end(secs(60));
    assert!(net.got(first, 0) == LiveInput::all(600_000));
    let got = net.got(late, 0);
    assert!(LiveInput::all(600_000).ends_with(&got), "the end of the stream, without gaps");
    assert!((250_000..400_000).contains(&got.len()), "{} of the last 7 s", got.len());
    assert_eq!(net.stream(late, 0).blocks_lost, 0, "what was before it came is not lost");
}

#[test]
fn rejoined_layer_continues_at_the_live_position() {
    let mut net = Net::new(4);
    let receiver = net.receivers(1, access(5.0), Link::millis(5)).start;
    let inputs = [LiveInput::live(0.4, 1_200_000), LiveInput::live(0.4, 1_200_000)];
    net.source(Offer::streams(&inputs, secs(5)).by(RLC).expect(1));
    net.run_until(secs(10), |net| net.flows(receiver, 1) == [Flow::Starts]);
    net.run_for(secs(2));
    net.group_of(receiver).down.set_link(access(0.6));
    net.run_until(secs(10), |net| net.flows(receiver, 1) == [Flow::Starts, Flow::Stops]);
    net.run_for(secs(1));
    net.group_of(receiver).down.set_link(access(5.0));
    net.run_to_end(secs(60));
    assert_eq!(net.flows(receiver, 1).len() % 2, 0, "each start has its stop");
    assert!(net.flows(receiver, 1).len() >= 4, "{:?}", net.flows(receiver, 1));
    let upper = net.got(receiver, 1);
    assert_in_order(&upper);
    assert!(upper.ends_with(b"record 000000059999\n"), "{:?}", net.stream(receiver, 1));
    assert!(
        net.stream(receiver, 1).blocks_lost < 20,
        "only while it was joined: {:?}",
        net.stream(receiver, 1)
    );
    assert!(net.got(receiver, 0).len() > 1_100_000, "{:?}", net.stream(receiver, 0));
}

#[test]
fn live_blocks_beyond_a_layers_rate_are_dropped_and_counted() {
    let mut net = Net::new(5);
    let receiver = net.receivers(1, access(5.0), Link::millis(5)).start;
    let inputs = [LiveInput::live(0.9, 1_100_000), LiveInput::live(0.2, 200_000)];
    let source = net.source(Offer::streams(&inputs, secs(1)).by(RLC).expect(1));
    net.run_to_end(secs(60));
    let report = net.sources[source].report();
    assert!(report.streams[0].blocks_dropped > 0 && report.streams[1].blocks_dropped == 0, "{report:?}");
    let warned: Vec<Time> = net.sources[source]
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Warning { message, .. } if message.contains("layer 0 is sent more slowly")))
        .map(|(at, _)| *at)
        .collect();
    assert!(warned.len() > 2, "{warned:?}");
    assert!(warned.windows(2).all(|pair| pair[1].since(pair[0]) >= secs(1)), "once a second: {warned:?}");
    let ended = net.receivers[receiver].ended_at;
    assert!(ended.since(Time::ZERO) < secs(14), "the delay does not grow: {ended:?}");
    assert_in_order(&net.got(receiver, 0));
    let missing = net.stream(receiver, 0).blocks_lost;
    assert_eq!(missing, report.streams[0].blocks_dropped, "nothing else is missing");
}

#[test]
fn layer_inputs_from_files_wait_and_lose_no_block() {
    let mut net = Net::new(6);
    let receiver = net.receivers(1, access(5.0), Link::millis(5)).start;
    let inputs = [LiveInput::file(300_000), LiveInput::file(500_000)];
    let source = net.source(Offer::streams(&inputs, secs(1)).by(RLC).expect(1));
    net.run_to_end(secs(60));
    let report = net.sources[source].report();
    let sent: Vec<_> = report.streams.iter().map(|stream| (stream.bytes, stream.blocks_dropped)).collect();
    assert_eq!(sent, [(300_000, 0), (500_000, 0)]);
    assert!(net.got(receiver, 0) == LiveInput::all(300_000));
    assert!(LiveInput::all(500_000).ends_with(&net.got(receiver, 1)));
}
