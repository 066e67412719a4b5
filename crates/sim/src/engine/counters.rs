//! Counts of flows and links before given moments.
//!
//! Agents and links may be ahead of each other, and hosts are not woken up for a count. An agent or link therefore records its
//! counts at a moment later, when the first packet after the moment arrives. No event has changed the counts in the meantime.

use super::Island;
use super::agents::SenderKind;
use super::links::UNICAST;
use super::nanos::{put, time};
use super::record::Records;
use crate::frame::{Body, Frame};
use crate::outcome::{FlowCounts, LinkTally};
use faircast_unicast::{SegmentFlags, SenderView};
use std::ops::Range;

impl Records {
    /// Stores the counts of a flow's agent at these moments.
    pub fn count(&mut self, flow: u32, moments: Range<usize>, counts: &FlowCounts) {
        self.flows[flow as usize].counts[moments].iter_mut().for_each(|into| into.add(counts));
    }
}

impl Island {
    /// Returns the next moment at which the counts of a link are recorded.
    pub(super) fn next_count(&self, link: u32) -> u64 {
        self.moments.0[self.link_moments.passed[link as usize] as usize]
    }

    /// Records the counts of a link at the moments up to `now`. Called before an event of the link.
    pub(super) fn count_link(&mut self, link: u32, now: u64) {
        let it = &mut self.links[link as usize];
        let passed = &mut self.link_moments.passed[link as usize];
        let first = link as usize * self.moments.0.len();
        while let Some(&moment) = self.moments.0.get(*passed as usize) {
            if moment > now {
                return;
            }
            let departed_bytes = it.link.departed_bytes(time(moment.min(self.until)));
            let tally = LinkTally::new(&it.link.counts(), departed_bytes);
            self.link_moments.tallies[first + *passed as usize] = tally;
            *passed += 1;
        }
        it.end_count();
    }

    /// Updates the meter of a session's source. Called before the source sends, if the current bin or interval has ended.
    #[cold]
    pub(super) fn turn_source(&mut self, number: u32, now: u64) {
        let it = &mut self.sessions[number as usize];
        let counts = it.sent_counts();
        let (passed, done) = it.sent_meter.turn(now, self.bin, &self.moments);
        self.records.count(it.flow, passed, &counts);
        if let Some(done) = done {
            self.records.sent(it.flow, done);
        }
    }

    /// Updates the meter of a session's member. Called before a packet arrives, if the current bin or interval has ended.
    #[cold]
    pub(super) fn turn_member(&mut self, session: u32, member: u32, now: u64) {
        let session = &mut self.sessions[session as usize];
        let it = &mut session.members[member as usize];
        let counts = it.counts();
        let (passed, done) = it.meter.turn(now, self.bin, &self.moments);
        let bins =
            it.extra.as_mut().and_then(|extra| extra.bins.as_mut().map(|bins| (bins, &mut extra.counts)));
        if let Some((bins, kept)) = bins {
            kept.resize(passed.end, counts);
            if let Some(done) = done {
                put(bins, done);
            }
        }
        self.records.count(session.flow, passed, &counts);
        if let Some(done) = done {
            self.records.received(session.flow, done);
        }
    }

    /// Updates the meter of a unicast sender. Called before a packet is sent, if the current bin or interval has ended.
    #[cold]
    pub(super) fn turn_sender(&mut self, number: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        let counts = it.counts();
        let (passed, done) = it.sent_meter.turn(now, self.bin, &self.moments);
        self.records.count(it.flow, passed, &counts);
        if let Some(done) = done {
            self.records.sent(it.flow, done);
        }
    }

    /// Updates the meter of a unicast receiver. Called before a packet arrives, if the current bin or interval has ended.
    #[cold]
    pub(super) fn turn_sink(&mut self, number: u32, now: u64) {
        let flow = self.senders[number as usize].flow;
        let it = &mut self.sinks[number as usize];
        let counts = it.counts();
        let (passed, done) = it.meter.turn(now, self.bin, &self.moments);
        self.records.count(flow, passed, &counts);
        if let Some(done) = done {
            self.records.received(flow, done);
        }
    }

    /// Records the cuts of the sender's window or rate since the last inspection.
    #[cold]
    pub(super) fn note_cuts(&mut self, number: u32, now: u64) {
        let it = &mut self.senders[number as usize];
        let SenderKind::Controlled(sender) = &it.kind else { return };
        let rate = sender.observe().rate;
        for _ in it.cuts..sender.cuts() {
            self.records.cut(it.flow, now, rate, None);
        }
        it.cuts = sender.cuts();
    }

    /// Counts a packet that a link has lost, if it carries data of a unicast flow.
    #[cold]
    pub(super) fn note_loss(&mut self, now: u64, frame: &Frame) {
        match frame.body {
            Body::Segment(segment) if !segment.flags.has(SegmentFlags::SYN) => {}
            Body::Datagram(_) => {}
            _ => return,
        }
        let later = self.moments.0.partition_point(|at| *at <= now);
        let first = (frame.flow & !UNICAST) as usize * (self.moments.0.len() + 1);
        self.records.lost[first + later] += 1;
    }
}

/// Returns the view of a sender, including the counts of earlier connections.
pub fn after(before: &SenderView, view: SenderView) -> SenderView {
    SenderView {
        sent: before.sent + view.sent,
        again: before.again + view.again,
        acked: before.acked + view.acked,
        cuts: before.cuts + view.cuts,
        timeouts: before.timeouts + view.timeouts,
        ..view
    }
}
