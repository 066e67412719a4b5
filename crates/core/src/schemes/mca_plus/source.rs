//! MCA+'s source: follows one receiver and adapts the rate to it alone.

use super::config::{AcrossSwitch, Config, Samples};
use crate::estimate::{ControlClock, Ewma};
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::{AnyPolicy, Congestion, CutGate, Growth, Operating, RatePolicy, SendController};
use crate::time::{Rate, Span, Time};

/// The source of an MCA+ session. Its state does not depend on the number of receivers.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    policy: AnyPolicy,
    controller: SendController,
    control: ControlClock,
    representative: Option<ReceiverId>,
    trust: Trust,
    /// Its good throughput at congestion, "U" and "D", in bit/s.
    level: Option<Level>,
    /// "SRTT" and "sigma", in seconds.
    rtt: Ewma,
    /// When the representative counts as absent.
    absent_at: Option<Time>,
    gate: CutGate,
    last_report: Option<(ReceiverId, Seq)>,
    tick_at: Time,
    tally: Tally,
}

/// Whether the source trusts its representative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust {
    Valid,
    Invalid,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    mean: f64,
    deviation: f64,
}

const RTT_GAIN: f64 = 0.125;
/// Deviations in the period of growth and cuts (seed 000, 5.2.1.2).
const PERIOD: u64 = 4;
/// Deviations above the mean at which the bottleneck counts as full (seed 000, 5.2.1.3).
const FULL: f64 = 4.0;

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        Source {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller: SendController::new(config.sending),
            control: ControlClock::new(config.measuring.interval),
            representative: None,
            trust: Trust::Invalid,
            level: None,
            rtt: Ewma::new(RTT_GAIN),
            absent_at: None,
            gate: CutGate::default(),
            last_report: None,
            tick_at: Time::NEVER,
            tally: Tally::default(),
        }
    }

    /// A receiver left or is excluded: it is not followed any longer.
    fn forget(&mut self, receiver: ReceiverId) {
        if self.representative == Some(receiver) {
            self.representative = None;
            self.distrust();
        }
    }

    /// The group is another one now: what was learned about the old one's paths does not hold.
    fn start_again(&mut self, now: Time) {
        self.representative = None;
        self.distrust();
        self.level = None;
        self.rtt = Ewma::new(RTT_GAIN);
        self.controller.start_again(now);
        self.tick_at = now + self.period();
    }

    /// Headers say from now on that everybody may report.
    fn distrust(&mut self) {
        self.trust = Trust::Invalid;
        self.absent_at = None;
    }

    fn mean_rtt(&self) -> Span {
        let followed = self.rtt.mean().map(Span::from_secs_f64);
        followed.unwrap_or(self.controller.rtt_max()).max(self.config.sending.shortest_rtt)
    }

    /// `SRTT + 4 sigma`, which times growth, cuts and patience.
    // Seed gap: 5.2.1.1 prints sigma = 7/8 sigma + 1/8 (|SRTT - s| - sigma), which takes sigma off twice. Here the plain
    // mean deviation.
    fn period(&self) -> Span {
        self.mean_rtt() + Span::from_secs_f64(self.rtt.deviation()) * PERIOD
    }

    fn operating(&self) -> Operating {
        Operating {
            rate: self.controller.rate(),
            rtt: self.period(),
            full_rtt: self.period(),
            deviation: Span::ZERO, // the period has it
            packet_size: self.config.sending.packet_size,
        }
    }

    /// Every period (seed 000, 5.2.1.2).
    fn tick(&mut self, now: Time) {
        let period = self.period();
        let next = self.tick_at + period;
        self.tick_at = if next > now { next } else { now + period };
        if self.controller.watch(period, now) == Growth::Allowed && self.gate.is_open(now, period) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
            self.watch_representative(now, period);
        }
    }

    /// The rate has come to where the representative's bottleneck should be full: begin to wait for its report.
    fn watch_representative(&mut self, now: Time, period: Span) {
        let Some(level) = self.level else { return };
        let full = level.mean + FULL * level.deviation;
        let rate = self.controller.rate().bps();
        if self.trust == Trust::Valid && self.absent_at.is_none() && rate >= full {
            self.absent_at = Some(now + period * u64::from(self.config.patience));
        }
    }

    /// The application sends again: what was timed goes on where it stopped.
    fn resume(&mut self, now: Time) {
        let Some(pause) = self.controller.resume(now) else { return };
        self.absent_at = self.absent_at.map(|at| at + pause);
        self.tick_at = now + self.period();
    }

    // Seed gap: 5.2.1.1 takes round-trip samples from reports of congestion only. Where a transport's receivers also
    // show that they are there, those of the representative count too.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller.sample(echo, now) else { return };
        if self.representative == Some(from)
            || (self.representative.is_none() && !self.controller.is_starting())
        {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
        self.controller.on_alive(from, sample, now);
    }

    fn on_congested(&mut self, from: ReceiverId, echo: Echo, level: Level, keep: f64, now: Time) {
        if self.last_report == Some((from, echo.seq)) {
            return;
        }
        if self.controller.is_of_interruption(echo.seq) {
            return;
        }
        self.tally.indications += 1;
        let sample = self.controller.sample(echo, now);
        let accepted = self.accepts(from, level);
        if let Some(sample) = sample.filter(|_| accepted || self.config.samples == Samples::All) {
            let sample_secs = sample.as_secs_f64();
            let another = accepted && self.representative != Some(from);
            if another && self.config.across_switch == AcrossSwitch::Restart {
                self.rtt.restart(sample_secs, self.rtt.deviation().min(sample_secs * RTT_GAIN));
            } else {
                self.rtt.add(sample_secs, 0.0);
            }
            self.controller.on_rtt(from, sample, now);
        }
        if accepted {
            self.last_report = Some((from, echo.seq));
            self.representative = Some(from);
            self.trust = Trust::Valid;
            self.level = Some(level);
            self.absent_at = None;
            self.tally.events += 1;
            self.tally.followed += 1;
            self.cut(level, keep, now);
        }
    }

    /// The representative's own reports, and those of one that is to replace it (seed 000, 5.2.1.3 and 5.2.1.4).
    fn accepts(&self, from: ReceiverId, level: Level) -> bool {
        let Some(followed) = self.level else { return true };
        let margin = self.config.switch_deviations * followed.deviation;
        self.trust == Trust::Invalid
            || self.representative == Some(from)
            || level.mean < followed.mean - margin
    }

    /// At most once per period: down to a part of the rate.
    fn cut(&mut self, level: Level, keep: f64, now: Time) {
        let starting = self.controller.is_starting();
        self.controller.end_start_up();
        if !self.gate.is_open(now, self.period()) {
            return;
        }
        let rate = self.controller.rate();
        // Doubling may have gone far beyond the path: begin from what arrived.
        let reached = if starting { rate.min(Rate::from_bps(level.mean)) } else { rate };
        let lowered = self.policy.on_congestion(self.operating(), Congestion { level: reached, keep });
        self.gate.close(now);
        self.controller.set_rate(lowered, now);
    }

    fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        self.controller.on_received(from, echo, rate, loss, now);
        self.on_alive(from, echo, now);
    }

    /// What is kept of the rate at this kind of congestion; `None` for what is none.
    const fn keep(&self, cause: Cause) -> Option<f64> {
        match cause {
            Cause::Accumulation | Cause::Mark => Some(self.config.keep_at_accumulation),
            Cause::Loss => Some(self.config.keep_at_loss),
            Cause::Heartbeat | Cause::Leaving | Cause::Joining => None,
        }
    }
}

impl Level {
    /// From a report's two numbers: the mean, and that less the deviation.
    fn of_report(level: f32, mean: f32) -> Option<Level> {
        let (low, mean) = (f64::from(level), f64::from(mean));
        let sound = mean.is_finite() && mean > 0.0 && low.is_finite() && low >= 0.0;
        sound.then(|| Level { mean, deviation: (mean - low).max(0.0) })
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        self.tick_at = cx.now + self.period();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.controller.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.resume(cx.now);
        let rtt = self.mean_rtt();
        let gap = self.controller.pace().span_of(u64::from(size));
        let signal = self.control.on_departure(gap, rtt, cx.now);
        let rtt_max = self.controller.rtt_max().as_secs_f64() as f32;
        let departed = self.controller.depart(size, rtt, cx.now);
        self.policy.on_departure();
        let id = self.representative.filter(|_| self.trust == Trust::Valid);
        let (mean, deviation) = match (id, self.level) {
            (Some(_), Some(level)) => (level.mean as f32, level.deviation as f32),
            _ => (f32::INFINITY, 0.0),
        };
        let mark = Mark::Representative { id, mean, deviation, rtt_max };
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal, mark }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        if !self.controller.has_left(report.content.echo()) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(report.content.echo().seq, now);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.forget(from),
            ReportContent::Congested { echo, level, mean, cause } => {
                match (self.keep(cause), Level::of_report(level, mean)) {
                    (None, _) => self.on_alive(from, echo, now),
                    (Some(keep), Some(level)) => self.on_congested(from, echo, level, keep, now),
                    (Some(_), None) => {}
                }
            }
            ReportContent::Alive { echo } | ReportContent::Selective { echo, .. } => {
                self.on_alive(from, echo, now)
            }
            ReportContent::Received { echo, rate, loss } => {
                self.on_received(from, echo, bps(rate), loss, now)
            }
            _ => {} // this scheme's receivers do not say it
        }
    }

    fn deadline(&self) -> Time {
        if self.controller.is_idle() {
            return self.tick_at;
        }
        self.tick_at.min(self.absent_at.unwrap_or(Time::NEVER)).min(self.controller.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            self.tick(now);
        }
        if self.controller.is_idle() {
            self.tick_at = self.controller.rest_until(self.tick_at);
            return;
        }
        if self.absent_at.is_some_and(|at| now >= at) {
            self.distrust();
        }
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.forget(receiver),
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Members(_) | SourceControl::Limits(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.mean_rtt(),
            limiting: self.representative.filter(|_| self.trust == Trust::Valid),
            level: self.level.map(|level| Rate::from_bps(level.mean)),
            rtt_max: self.controller.rtt_max(),
            cuts: self.gate.cuts(),
            tally: self.tally,
            starting: self.controller.is_starting(),
        }
    }
}
