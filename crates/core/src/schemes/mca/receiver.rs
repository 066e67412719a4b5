//! MCA's receiver: it reports congestion once per control packet, and reports losses.

use super::config::Config;
use crate::estimate::accumulation::{Detector, Instance};
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of an MCA session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    /// The newest packet's number, layer and header; `None` before the first packet.
    newest: Option<NewestHeader>,
    detector: Detector,
    start_up: StartUpReceiver,
    /// Number of reports sent.
    sent: u32,
    last_arrival: Time,
    last_report: Option<Time>,
    window: Span,
    reports_per_rtt: Option<u16>,
    law: TruncatedExponential,
}

const _: () = assert!(size_of::<Receiver>() <= 328);

/// The newest packet's header.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    seq: Seq,
    layer: Layer,
    limiting: Option<ReceiverId>,
    rtt_max: Span,
    phase: Phase,
}

/// Whether the source is in start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
}

/// Minimum time over which a receiver measures the arrival rate in start-up.
const MIN_WINDOW: Span = Span::from_millis(5);
/// Assumed largest round-trip time of the group, until a header states it.
const DEFAULT_RTT_MAX: Span = Span::from_millis(100);
/// Range of the largest round-trip time in headers.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            me,
            newest: None,
            detector: Detector::new(config.measuring),
            start_up: StartUpReceiver::default(),
            sent: 0,
            last_arrival: Time::ZERO,
            last_report: None,
            window: config.window,
            reports_per_rtt: config.reports_per_rtt,
            law: config.delay_law,
        }
    }

    /// Returns the number of congestion reports sent.
    pub const fn sent(&self) -> u32 {
        self.sent
    }

    fn rtt_max(&self) -> Span {
        self.newest.map_or(DEFAULT_RTT_MAX, |newest| newest.rtt_max)
    }

    /// Copies the packet's header, unless the header of a newer packet was copied before.
    fn copy_header(&mut self, data: &Data, layer: Layer) {
        if self.newest.is_some_and(|newest| data.seq <= newest.seq) {
            return;
        }
        let (limiting, rtt_max) = match data.mark {
            Mark::Representative { id, rtt_max, .. } if rtt_max.is_finite() => {
                (id, Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1))
            }
            Mark::Representative { id, .. } => (id, self.rtt_max()),
            _ => (None, self.rtt_max()),
        };
        let phase = if data.flags.has(Flags::STARTING) { Phase::Starting } else { Phase::Running };
        let before = self.newest.map(|newest| newest.phase);
        self.newest = Some(NewestHeader { seq: data.seq, layer, limiting, rtt_max, phase });
        match phase {
            Phase::Starting => self.detector.measure_over(rtt_max.max(MIN_WINDOW)),
            Phase::Running => {
                if before == Some(Phase::Starting) {
                    self.detector.remeasure();
                }
                self.detector.measure_over(self.window);
            }
        }
    }

    fn on_congestion(&mut self, instance: Instance, data: &Data, cx: &mut Cx<'_>) {
        let Some(egress) = self.detector.egress(data, cx.now) else { return };
        if self.speaks_too_often(cx.now) {
            return;
        }
        self.sent += 1;
        self.last_report = Some(cx.now);
        let level = egress.bps() as f32;
        let echo = Echo { seq: instance.first, hold: Span::ZERO };
        self.send(ReportContent::Congested { echo, level, mean: level, cause: instance.cause }, cx);
    }

    // Paper gap: D.1 reports every loss. At 100,000 packets per second the source would ignore all of these reports except one
    // per round-trip time. `Config::transport` sends at most eight reports per round-trip time.
    fn speaks_too_often(&self, now: Time) -> bool {
        let (Some(limit), Some(last)) = (self.reports_per_rtt, self.last_report) else { return false };
        now.since(last) < self.rtt_max() / u64::from(limit.max(1))
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        let layer = self.newest.map_or(Layer::default(), |newest| newest.layer);
        cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        crate::node::Receiver::on_deadline(self, cx);
        self.copy_header(data, layer);
        self.last_arrival = cx.now;
        let starting = data.flags.has(Flags::STARTING);
        if (starting || self.start_up.is_active()) && !arrival.late {
            self.start_up.on_data(data, arrival, self.rtt_max(), self.law, cx);
        }
        if let Some(instance) = self.detector.on_data(data, arrival, cx.now) {
            self.on_congestion(instance, data, cx);
        }
    }

    fn deadline(&self) -> Time {
        self.start_up.deadline()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if let Some(content) = self.start_up.take_due(cx.now) {
            self.send(content, cx);
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.start_up.cancel();
        let Some(newest) = self.newest.filter(|newest| newest.limiting == Some(self.me)) else { return };
        let echo = Echo { seq: newest.seq, hold: cx.now.since(self.last_arrival) };
        self.send(ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving }, cx);
    }
}
