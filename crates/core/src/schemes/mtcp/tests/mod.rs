//! MTCP at work: the checklist of the specification, on a small tree.

mod beside;
mod grove;
mod localization;
mod lost_reports;
mod nodes;
mod silence;
mod windows;

use super::*;
use crate::packet::{Echo, Hole, Holes, Layer, ReceiverId, Report, ReportContent, Seq};
use crate::time::Span;
use grove::{Grove, Path};

/// A report that everything up to this packet has arrived.
fn all_up_to(from: u64, seq: u64) -> Report {
    lacking(from, seq, 0, &[])
}

/// The same with these holes, the newest first, as first number and count.
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
