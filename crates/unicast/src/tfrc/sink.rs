//! The receiver: measures the loss event rate and the received rate, and sends a report per round trip (RFC 5348, 5 and 6).

use super::Config;
use super::intervals::Intervals;
use crate::{Feedback, RateReport, Segment};
use faircast_core::node::Cx;
use faircast_core::rate::formula::Path;
use faircast_core::time::{Span, Time};

/// A TFRC receiver.
#[derive(Debug, Clone)]
pub struct Sink {
    packet_size: u16,
    /// Next packet expected.
    next: u32,
    received: u64,
    intervals: Intervals,
    /// First packet of the open loss interval.
    interval_from: u32,
    /// Time at which the packet that began the interval was sent, and the sender's feedback round at the start of the interval.
    event_at: Time,
    event_round: Option<u32>,
    /// The sender's feedback round, unwrapped.
    round: u32,
    /// The newest packet received.
    newest: Option<Segment>,
    newest_at: Time,
    reported_at: Time,
    /// Number of packets since the latest report.
    since_report: u32,
    /// Received packets per second before the latest report.
    earlier: f64,
    due: Time,
}

impl Sink {
    /// Creates a receiver that waits for its first packet.
    pub fn new(config: &Config) -> Sink {
        Sink {
            packet_size: config.packet_size,
            next: 0,
            received: 0,
            intervals: Intervals::default(),
            interval_from: 0,
            event_at: Time::ZERO,
            event_round: None,
            round: 0,
            newest: None,
            newest_at: Time::ZERO,
            reported_at: Time::ZERO,
            since_report: 0,
            earlier: 0.0,
            due: Time::NEVER,
        }
    }

    /// Returns whether a lost or marked packet begins a loss event. The packet belongs to the latest event if it was sent within
    /// a round-trip time after the start of the event. It also belongs to this event if it was sent before the sender received a
    /// report of the event (RFC 5348, 5.2; the second rule is ns-2's `PreciseLoss_`).
    fn begins_event(&self, sent_at: Time, segment: &Segment) -> bool {
        match self.event_round {
            None => true,
            Some(round) => sent_at.since(self.event_at) > segment.rtt && round != self.round,
        }
    }

    /// Counts loss events up to packet `segment`. Returns whether a new event began.
    fn count_losses(&mut self, segment: &Segment, marked: bool, now: Time) -> bool {
        let before = self.newest.map_or(segment.sent_at, |newest| newest.sent_at);
        let gap = segment.seq - self.next;
        let step = segment.sent_at.since(before) / u64::from(gap + 1);
        let mut begun = false;
        for lost in 0..gap {
            let sent_at = before + step * u64::from(lost + 1);
            if self.begins_event(sent_at, segment) {
                begun = true;
                self.begin_event(self.next + lost, sent_at, segment, now);
            }
        }
        if marked && self.begins_event(segment.sent_at, segment) {
            begun = true;
            self.begin_event(segment.seq, segment.sent_at, segment, now);
        }
        begun
    }

    fn begin_event(&mut self, seq: u32, sent_at: Time, segment: &Segment, now: Time) {
        let length = if self.intervals.is_empty() {
            // The first interval has the length for which the formula gives the received rate (RFC 5348, 6.3.1).
            let path = Path::new(self.packet_size, segment.rtt);
            let rate = self.received_rate(segment.rtt, now) * f64::from(self.packet_size) * 8.0;
            1.0 / path.loss_at(faircast_core::time::Rate::from_bps(rate))
        } else {
            f64::from(seq - self.interval_from)
        };
        self.intervals.close(length);
        self.interval_from = seq;
        self.event_at = sent_at;
        self.event_round = Some(self.round);
    }

    /// Returns the received rate in packets per second, measured over at least a round trip.
    fn received_rate(&self, rtt: Span, now: Time) -> f64 {
        let (span, rtt) = (now.since(self.reported_at).as_secs_f64(), rtt.as_secs_f64());
        let packets = f64::from(self.since_report);
        if rtt <= 0.0 {
            1.0 // ns-2's value: the sender does not use the first report's
        } else if span >= rtt {
            packets / span
        } else {
            (packets + self.earlier * (rtt - span)) / rtt
        }
    }

    fn report(&mut self, now: Time) -> Option<Feedback> {
        let newest = self.newest?;
        let rate = self.received_rate(newest.rtt, now);
        let open = f64::from((self.next - self.interval_from).saturating_sub(1));
        let report = RateReport {
            echo: newest.sent_at,
            hold: now.since(self.newest_at),
            received: (rate * f64::from(self.packet_size)) as f32,
            loss: self.intervals.loss(open) as f32,
        };
        self.earlier = rate;
        self.reported_at = now;
        self.since_report = 0;
        self.due = if newest.rtt > Span::ZERO { now + newest.rtt.scaled(1.5) } else { Time::NEVER };
        Some(Feedback::Rate(report))
    }
}

impl crate::Sink for Sink {
    fn on_segment(&mut self, segment: &Segment, marked: bool, cx: &mut Cx<'_>) -> Option<Feedback> {
        self.received += 1;
        self.since_report += 1;
        if segment.seq < self.next {
            return None; // late: it already counts as lost
        }
        self.round += (u32::from(segment.flags.round()).wrapping_sub(self.round)) & 7;
        let begun = self.count_losses(segment, marked, cx.now);
        self.newest = Some(*segment);
        self.newest_at = cx.now;
        self.next = segment.seq + 1;
        let a_round_trip_passed = segment.rtt > Span::ZERO && cx.now.since(self.reported_at) >= segment.rtt;
        if begun || a_round_trip_passed || segment.flags.has(crate::SegmentFlags::URGENT) {
            return self.report(cx.now);
        }
        None
    }

    fn deadline(&self) -> Time {
        self.due
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) -> Option<Feedback> {
        if cx.now < self.due {
            return None;
        }
        self.due = Time::NEVER;
        if self.since_report > 0 { self.report(cx.now) } else { None }
    }

    fn delivered(&self) -> u64 {
        self.received
    }
}
