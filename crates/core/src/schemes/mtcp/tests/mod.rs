//! Tests of MTCP on a small tree.

mod external_repair;
mod localization;
mod lost_reports;
mod nodes;
mod silence;
mod tree;
mod windows;

use super::*;
use crate::node::{Source as _, SourceControl};
use crate::packet::{Echo, Hole, Holes, Layer, ReceiverId, Report, ReportContent, Seq};
use crate::rng::Rng;
use crate::schemes::bench::{self, Bench, Ear};
use crate::time::{Span, Time};
use tree::{Path, TestTree};

/// Returns a report that all packets up to this one have arrived.
fn all_up_to(from: u64, seq: u64) -> Report {
    lacking(from, seq, 0, &[])
}

/// Returns a report of packets up to `seq` with the holes `missing`, newest first. Each hole is its first packet and its number
/// of packets.
fn lacking(from: u64, seq: u64, behind: u16, missing: &[(u64, u16)]) -> Report {
    let mut holes = Holes::default();
    for (place, (first, count)) in holes.0.iter_mut().zip(missing) {
        *place = Hole { back: (seq - first) as u16, count: *count };
    }
    let echo = Echo { seq: Seq(seq), hold: Span::ZERO };
    let content = ReportContent::Acknowledged { echo, behind, holes, newer: 0 };
    Report { from: id(from), layer: Layer(0), content }
}

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("not zero")
}

type Sender = Bench<Source>;

impl Sender {
    /// Creates a source that expects `children` children and starts at `seconds`.
    fn new(config: Config, children: usize, seconds: f64) -> Sender {
        let now = Time::from_secs_f64(seconds);
        let mut sender = Bench::of(Source::new(config), 1000, now, Rng::new(1, 1));
        sender.source.control(SourceControl::Members(children), Time::ZERO);
        sender.call(|source, cx| source.start(cx));
        sender
    }

    fn departs(&mut self, packets: u64) {
        (0..packets).for_each(|_| _ = self.depart(Layer(0)));
    }

    fn receives(&mut self, report: &Report) {
        self.call(|source, cx| source.on_report(report, cx));
    }
}
