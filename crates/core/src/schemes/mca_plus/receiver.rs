//! MCA+'s receiver: it detects congestion, measures its throughput at congestion, and suppresses unneeded reports.

use super::config::{Config, Suppress, WhileInvalid};
use super::congestion_rate::CongestionRate;
use crate::estimate::Ewma;
use crate::estimate::accumulation::{Detector, Instance};
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of an MCA+ session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    /// The newest header's copy; `None` before the first packet.
    newest: Option<NewestHeader>,
    detector: Detector,
    rate: CongestionRate,
    /// Mean and deviation of the good throughput at congestion, "u" and "d", in bit/s.
    level: Ewma,
    pending: Option<Pending>,
    start_up: StartUpReceiver,
    counts: Counts,
    settings: Settings,
    last_arrival: Time,
    last_report: Option<Time>,
}

const _: () = assert!(size_of::<Receiver>() <= 480);

/// Numbers of sent and suppressed reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Congestion reports sent.
    pub sent: u32,
    /// Congestion events that were not reported.
    pub suppressed: u32,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    window: Span,
    suppress: Suppress,
    while_invalid: WhileInvalid,
    reports_per_rtt: Option<u16>,
    law: TruncatedExponential,
}

/// The newest packet's header.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    seq: Seq,
    layer: Layer,
    phase: Phase,
    representative: Option<ReceiverId>,
    /// The representative's mean and deviation, "U" and "D".
    mean: f32,
    deviation: f32,
    rtt_max: Span,
}

/// Whether the source is in start-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Running,
}

/// A delayed congestion report.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: Time,
    event_at: Time,
    /// The packet that gives the round-trip sample (paper 000, 5.2.1.1).
    trigger: Seq,
    cause: Cause,
}

/// Whether and when a receiver may report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// The receiver does not report.
    Never,
    /// At once.
    Now,
    /// At a random time, because every receiver may report.
    Later,
}

/// Minimum time over which throughput is measured.
const MIN_WINDOW: Span = Span::from_millis(5);
/// Assumed largest round-trip time of the group, until a header states it.
const DEFAULT_RTT_MAX: Span = Span::from_millis(100);
/// Range of the largest round-trip time in headers.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));
/// Number of largest round-trip times without packets after which a pending report is obsolete.
const STALE_AFTER: u64 = 10;
/// Initial deviation, as a part of the mean.
const FIRST_DEVIATION: f64 = 0.25;
// Paper gap: 5.2.1.3 weights throughput with one minus the rate of congestion, which is zero if every packet shows congestion.
// Here the weight is at least a tenth, so a level is always a positive rate.
const MIN_WEIGHT: f64 = 0.1;

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        let settings = Settings {
            window: config.window,
            suppress: config.suppress,
            while_invalid: config.while_invalid,
            reports_per_rtt: config.reports_per_rtt,
            law: config.delay_law,
        };
        Receiver {
            me,
            newest: None,
            detector: Detector::new(config.measuring),
            rate: CongestionRate::new(config.counted),
            level: Ewma::new(config.alpha),
            pending: None,
            start_up: StartUpReceiver::default(),
            counts: Counts::default(),
            settings,
            last_arrival: Time::ZERO,
            last_report: None,
        }
    }

    /// Returns the numbers of sent and suppressed reports.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the mean and deviation of the good throughput at congestion.
    pub const fn level(&self) -> &Ewma {
        &self.level
    }

    /// Returns whether this receiver is the representative according to the newest header.
    pub fn is_representative(&self) -> bool {
        self.newest.is_some_and(|newest| newest.representative == Some(self.me))
    }

    /// Decides whether the receiver reports congestion (paper 000, 5.2.2.2).
    fn turn(&self) -> Turn {
        let (Some(newest), Some(mean)) = (&self.newest, self.level.mean()) else { return Turn::Never };
        let Some(representative) = newest.representative else {
            return match self.settings.while_invalid {
                WhileInvalid::Spread => Turn::Later,
                WhileInvalid::AtOnce => Turn::Now,
            };
        };
        let slower = mean < f64::from(newest.mean) - f64::from(newest.deviation);
        let speaks = match self.settings.suppress {
            Suppress::Faster => slower,
            Suppress::Slower => !slower,
            Suppress::Nobody => true,
        };
        if speaks || representative == self.me { Turn::Now } else { Turn::Never }
    }

    fn rtt_max(&self) -> Span {
        self.newest.map_or(DEFAULT_RTT_MAX, |newest| newest.rtt_max)
    }

    /// Copies the packet's header, unless the header of a newer packet was copied before.
    fn copy_header(&mut self, data: &Data, layer: Layer) {
        if self.newest.is_some_and(|newest| data.seq <= newest.seq) {
            return;
        }
        self.rate.receive(data.seq);
        let before = self.newest.map(|newest| newest.phase);
        let phase = if data.flags.has(Flags::STARTING) { Phase::Starting } else { Phase::Running };
        let mut newest = NewestHeader {
            seq: data.seq,
            layer,
            phase,
            representative: None,
            mean: f32::INFINITY,
            deviation: 0.0,
            rtt_max: self.rtt_max(),
        };
        if let Mark::Representative { id, mean, deviation, rtt_max } = data.mark {
            (newest.representative, newest.mean, newest.deviation) = (id, mean, deviation);
            if rtt_max.is_finite() {
                newest.rtt_max = Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1);
            }
        }
        self.newest = Some(newest);
        let least = match phase {
            Phase::Starting => MIN_WINDOW,
            Phase::Running => self.settings.window,
        };
        if before == Some(Phase::Starting) && phase == Phase::Running {
            self.detector.remeasure();
        }
        self.detector.measure_over(newest.rtt_max.max(least));
    }

    fn on_congestion(&mut self, instance: Instance, data: &Data, cx: &mut Cx<'_>) {
        let often = self.rate.count(data.seq);
        let Some(throughput) = self.detector.egress(data, cx.now) else { return };
        let level = throughput.bps() * (1.0 - often).max(MIN_WEIGHT);
        self.level.add(level, level * FIRST_DEVIATION);
        let turn = if self.speaks_too_often(cx.now) { Turn::Never } else { self.turn() };
        let event =
            Pending { at: cx.now, event_at: cx.now, trigger: instance.trigger, cause: instance.cause };
        match turn {
            Turn::Never => self.counts.suppressed += 1,
            Turn::Now => {
                self.pending = None;
                self.report(event, cx);
            }
            Turn::Later if self.pending.is_none() => {
                let delay = self.settings.law.delay(self.rtt_max() * 2, cx.rng);
                self.pending = Some(Pending { at: cx.now + delay, ..event });
            }
            Turn::Later => {}
        }
    }

    fn speaks_too_often(&self, now: Time) -> bool {
        let (Some(limit), Some(last)) = (self.settings.reports_per_rtt, self.last_report) else {
            return false;
        };
        now.since(last) < self.rtt_max() / u64::from(limit.max(1))
    }

    /// Sends "CI(u, d)". The report contains the mean, and the mean minus the deviation.
    fn report(&mut self, event: Pending, cx: &mut Cx<'_>) {
        let Some(mean) = self.level.mean() else { return };
        self.counts.sent += 1;
        self.last_report = Some(cx.now);
        let echo = Echo { seq: event.trigger, hold: cx.now.since(event.event_at) };
        let level = (mean - self.level.deviation()).max(0.0) as f32;
        self.send(ReportContent::Congested { echo, level, mean: mean as f32, cause: event.cause }, cx);
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        let layer = self.newest.map_or(Layer::default(), |newest| newest.layer);
        cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
    }

    /// Cancels the pending report if the newest header has made it unnecessary.
    fn reconsider(&mut self) {
        if self.pending.is_some() && self.turn() == Turn::Never {
            self.pending = None;
            self.counts.suppressed += 1;
        }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        crate::node::Receiver::on_deadline(self, cx);
        self.copy_header(data, layer);
        self.last_arrival = cx.now;
        let starting = data.flags.has(Flags::STARTING);
        if (starting || self.start_up.is_active()) && !arrival.late {
            let (rtt_max, law) = (self.rtt_max(), self.settings.law);
            self.start_up.on_data(data, arrival, rtt_max, law, cx);
        }
        self.reconsider();
        if let Some(instance) = self.detector.on_data(data, arrival, cx.now) {
            self.on_congestion(instance, data, cx);
        }
    }

    fn deadline(&self) -> Time {
        let report = self.pending.map_or(Time::NEVER, |pending| pending.at);
        report.min(self.start_up.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now < crate::node::Receiver::deadline(self) {
            return;
        }
        let stale = cx.now.since(self.last_arrival) > self.rtt_max() * STALE_AFTER;
        if let Some(due) = self.pending.take_if(|pending| pending.at <= cx.now) {
            if stale || self.turn() == Turn::Never {
                self.counts.suppressed += 1;
            } else {
                self.report(due, cx);
            }
        }
        if let Some(content) = self.start_up.take_due(cx.now)
            && !stale
        {
            self.send(content, cx);
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.pending = None;
        self.start_up.cancel();
        let (Some(newest), true) = (self.newest, self.is_representative()) else { return };
        let echo = Echo { seq: newest.seq, hold: cx.now.since(self.last_arrival) };
        let level = self.level.mean().unwrap_or(0.0) as f32;
        self.send(ReportContent::Congested { echo, level, mean: level, cause: Cause::Leaving }, cx);
    }

    fn suppressed(&self) -> u32 {
        self.counts.suppressed
    }
}
