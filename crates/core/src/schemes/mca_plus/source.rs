//! MCA+'s source: follows one receiver and adapts the rate to this receiver alone.

use super::config::{AcrossSwitch, Config, Samples};
use crate::estimate::{ControlClock, Ewma};
use crate::node::{Cx, Observation, Tally};
use crate::packet::{Cause, Echo, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{AnyPolicy, Congestion, CutGate, Growth, Operating, RatePolicy, SendController};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::schemes::representative::Representative;
use crate::time::{Rate, Span, Time};

/// The source of an MCA+ session. Its state does not depend on the number of receivers.
pub type Source = PacedSource<Policy>;

/// The decisions of an MCA+ source.
#[derive(Debug)]
pub struct Policy {
    config: Config,
    policy: AnyPolicy,
    controller: SendController,
    control: ControlClock,
    representative: Representative,
    /// The representative's good throughput at congestion, "U" and "D", in bit/s.
    level: Option<Level>,
    /// "SRTT" and "sigma", in seconds.
    rtt: Ewma,
    /// Time from which the representative counts as absent.
    absent_at: Option<Time>,
    gate: CutGate,
    last_report: Option<(ReceiverId, Seq)>,
    tally: Tally,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    mean: f64,
    deviation: f64,
}

const RTT_GAIN: f64 = 0.125;
/// Number of deviations in the period in which the rate grows once and is cut at most once (paper 000, 5.2.1.2).
const PERIOD: u64 = 4;
/// Number of deviations. The bottleneck counts as full if the rate exceeds the representative's mean by more (paper 000,
/// 5.2.1.3).
const FULL: f64 = 4.0;

impl Policy {
    /// Makes headers state that every receiver may report.
    fn distrust(&mut self) {
        self.representative.distrust();
        self.absent_at = None;
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

    /// Starts the timeout for a report of the representative once the rate is so high that it should have filled the
    /// representative's bottleneck.
    fn watch_representative(&mut self, now: Time, period: Span) {
        let Some(level) = self.level else { return };
        let full = level.mean + FULL * level.deviation;
        let rate = self.controller.rate().bps();
        if self.representative.is_valid() && self.absent_at.is_none() && rate >= full {
            self.absent_at = Some(now + period * u64::from(self.config.patience));
        }
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
            let another = accepted && !self.representative.is(from);
            if another && self.config.across_switch == AcrossSwitch::Restart {
                self.rtt.restart(sample_secs, self.rtt.deviation().min(sample_secs * RTT_GAIN));
            } else {
                self.rtt.add(sample_secs, 0.0);
            }
            self.controller.on_rtt(from, sample, now);
        }
        if accepted {
            self.last_report = Some((from, echo.seq));
            self.representative.elect(from);
            self.level = Some(level);
            self.absent_at = None;
            self.tally.events += 1;
            self.tally.followed += 1;
            self.cut(level, keep, now);
        }
    }

    /// Returns whether the report is from the representative, or from a receiver that should replace it (paper 000, 5.2.1.3 and
    /// 5.2.1.4).
    fn accepts(&self, from: ReceiverId, level: Level) -> bool {
        let Some(followed) = self.level else { return true };
        let margin = self.config.switch_deviations * followed.deviation;
        !self.representative.is_valid() || self.representative.is(from) || level.mean < followed.mean - margin
    }

    /// Lowers the rate to the fraction `keep` of it, at most once per period.
    fn cut(&mut self, level: Level, keep: f64, now: Time) {
        let starting = self.controller.is_starting();
        self.controller.end_start_up();
        if !self.gate.is_open(now, self.period()) {
            return;
        }
        let rate = self.controller.rate();
        // Doubling may have far exceeded the path's capacity, so the cut starts from the arrival rate.
        let arrived = Rate::from_bps(level.mean);
        let reached = if starting { rate.min(self.controller.cut_from(arrived, now)) } else { rate };
        let lowered = self.policy.on_congestion(self.operating(), Congestion { level: reached, keep });
        self.gate.close(now);
        self.controller.set_rate(lowered, now);
    }

    /// Returns the fraction of the rate that remains after a cut for this cause; `None` if the cause is not congestion.
    const fn keep(&self, cause: Cause) -> Option<f64> {
        match cause {
            Cause::Accumulation | Cause::Mark => Some(self.config.keep_at_accumulation),
            Cause::Loss => Some(self.config.keep_at_loss),
            Cause::Heartbeat | Cause::Leaving | Cause::Joining => None,
        }
    }
}

impl Level {
    /// Creates a level from the two numbers of a report: the mean minus the deviation, and the mean.
    fn of_report(level: f32, mean: f32) -> Option<Level> {
        let (low, mean) = (f64::from(level), f64::from(mean));
        let sound = mean.is_finite() && mean > 0.0 && low.is_finite() && low >= 0.0;
        sound.then(|| Level { mean, deviation: (mean - low).max(0.0) })
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        Policy {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller: SendController::new(config.sending),
            control: ControlClock::new(config.measuring.interval),
            representative: Representative::default(),
            level: None,
            rtt: Ewma::new(RTT_GAIN),
            absent_at: None,
            gate: CutGate::default(),
            last_report: None,
            tally: Tally::default(),
        }
    }

    fn controller(&self) -> &SendController {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut SendController {
        &mut self.controller
    }

    fn rtt(&self) -> Span {
        self.controller.rtt_or_max(self.rtt.mean().map(Span::from_secs_f64))
    }

    /// Returns `SRTT + 4 sigma`: the interval between increases, the minimum interval between cuts, and the unit of timeouts.
    // Paper gap: 5.2.1.1 prints sigma = 7/8 sigma + 1/8 (|SRTT - s| - sigma), which subtracts sigma twice. Here the usual mean
    // deviation is used.
    fn period(&self) -> Span {
        self.rtt() + Span::from_secs_f64(self.rtt.deviation()) * PERIOD
    }

    fn stamp(&mut self, size: u16, now: Time) -> (Signal, Mark) {
        let gap = self.controller.pace().span_of(u64::from(size));
        let signal = self.control.on_departure(gap, self.rtt(), now);
        let level = self.level.map(|level| (level.mean, level.deviation));
        (signal, self.representative.mark(level, self.controller.rtt_max()))
    }

    fn on_departed(&mut self, _now: Time) {
        self.policy.on_departure();
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match report.content {
            ReportContent::Congested { echo, level, mean, cause } => {
                if let (Some(keep), Some(level)) = (self.keep(cause), Level::of_report(level, mean)) {
                    self.on_congested(report.from, echo, level, keep, cx.now);
                }
            }
            ReportContent::Selective { echo, .. } => self.on_alive(report.from, echo, cx.now),
            _ => {} // this scheme's receivers do not send it
        }
    }

    /// Updates the rate once per period (paper 000, 5.2.1.2).
    fn on_tick(&mut self, period: Span, now: Time) {
        if self.controller.watch(period, now) == Growth::Allowed && self.gate.is_open(now, period) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
            self.watch_representative(now, period);
        }
    }

    fn forget(&mut self, receiver: ReceiverId, _now: Time) {
        if self.representative.is(receiver) {
            self.representative = Representative::default();
            self.distrust();
        }
    }

    fn on_start_again(&mut self, _now: Time) {
        self.representative = Representative::default();
        self.distrust();
        self.level = None;
        self.rtt = Ewma::new(RTT_GAIN);
    }

    fn observe(&self, seen: Observation) -> Observation {
        Observation {
            limiting: self.representative.named(),
            level: self.level.map(|level| Rate::from_bps(level.mean)),
            cuts: self.gate.cuts(),
            tally: self.tally,
            ..seen
        }
    }

    fn on_resume(&mut self, pause: Span, _now: Time) {
        self.absent_at = self.absent_at.map(|at| at + pause);
    }

    // Paper gap: 5.2.1.1 takes round-trip samples from congestion reports only. If a transport's receivers also send signs of
    // life, those of the representative count too.
    fn on_sample(&mut self, from: ReceiverId, sample: Span) {
        if self.representative.times(from, self.controller.is_starting()) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
    }

    fn deadline(&self) -> Time {
        self.absent_at.unwrap_or(Time::NEVER)
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.deadline() {
            self.distrust();
        }
    }
}
