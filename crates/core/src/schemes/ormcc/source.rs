//! ORMCC's source: it follows one receiver and adapts the rate only to this receiver.

use super::config::{AcrossSwitch, Config, SwitchOn};
use crate::estimate::Ewma;
use crate::node::{Cx, Observation, Tally};
use crate::packet::{Cause, Echo, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{AnyPolicy, Congestion, CutGate, Growth, Operating, RatePolicy, SendController};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::schemes::representative::Representative;
use crate::time::{Rate, Span, Time};

/// The source of an ORMCC session. Its state does not depend on the number of receivers.
pub type Source = PacedSource<Policy>;

/// The decisions of an ORMCC source.
#[derive(Debug)]
pub struct Policy {
    config: Config,
    policy: AnyPolicy,
    /// Sends packets at the rate that the scheme sets, "lambda".
    controller: SendController,
    representative: Representative,
    /// The representative's throughput at congestion: mean "E(mu_cr)" and deviation.
    level: Ewma,
    rtt: Ewma,
    /// Round-trip time from the representative's congestion reports only: at congestion, the queue of its bottleneck is full.
    full_rtt: Ewma,
    /// Time from the moment when the bottleneck counts as full to the representative's report, "T^cr".
    response: Ewma,
    check: Option<Check>,
    grace_until: Time,
    gate: CutGate,
    last_report: Option<(ReceiverId, Seq)>,
    tally: Tally,
}

/// The representative's bottleneck counts as full since `since`. If no report arrives by `expires`, the representative is
/// inactive.
#[derive(Debug, Clone, Copy)]
struct Check {
    since: Time,
    expires: Time,
}

/// Number of deviations. The bottleneck counts as full if the rate exceeds the representative's mean by this number of deviations (paper
/// 000, 3.1.3).
const FULL: f64 = 4.0;
/// Number of deviations of the response time in the timeout for the representative's report (paper 000, 3.1.3).
const PATIENCE: f64 = 8.0;
/// Initial deviation of a level, as a fraction of the level.
const FIRST_DEVIATION: f64 = 0.25;
const RTT_GAIN: f64 = 0.125;
const RESPONSE_GAIN: f64 = 0.125;

impl Policy {
    fn operating(&self) -> Operating {
        Operating {
            rate: self.controller.rate(),
            rtt: self.rtt(),
            full_rtt: self.full_rtt.mean().map_or(Span::ZERO, Span::from_secs_f64).max(self.rtt()),
            deviation: Span::from_secs_f64(self.rtt.deviation()),
            packet_size: self.config.sending.packet_size,
        }
    }

    /// Marks the representative as invalid: from now on, headers permit every receiver to report.
    fn distrust(&mut self) {
        self.representative.distrust();
        self.check = None;
    }

    /// Starts the timeout for the representative's report if the rate is so high that it should fill the representative's
    /// bottleneck.
    fn watch_representative(&mut self, now: Time, rtt: Span) {
        let Some(mean) = self.level.mean() else { return };
        let full = mean + FULL * self.level.deviation();
        if self.representative.is_valid() && self.check.is_none() && self.controller.rate().bps() >= full {
            self.check = Some(Check { since: now, expires: now + self.patience(rtt) });
        }
    }

    /// Returns "T_max": the maximum time from the moment when the bottleneck counts as full to the representative's report.
    // Paper gap: 3.1.3 has no value before the first response time. Here it is 16 largest round-trip times and at least 2 s.
    // After the first response it is at least two round-trip times.
    fn patience(&self, rtt: Span) -> Span {
        match self.response.mean() {
            Some(mean) => Span::from_secs_f64(mean + PATIENCE * self.response.deviation()).max(rtt * 2),
            None => (self.controller.rtt_max() * 16).max(Span::from_secs(2)),
        }
    }

    fn on_congested(&mut self, from: ReceiverId, echo: Echo, level: Rate, mean: Rate, now: Time) {
        if self.last_report == Some((from, echo.seq)) || !level.is_usable() {
            return;
        }
        if self.controller.is_of_interruption(echo.seq) {
            return;
        }
        self.tally.indications += 1;
        let sample = self.controller.sample(echo, now);
        let accepted = if self.representative.is(from) {
            self.representative.elect(from);
            self.on_congestion_of_representative(level, sample, now);
            true
        } else {
            self.elect(from, level, mean, sample, now)
        };
        if accepted {
            self.last_report = Some((from, echo.seq));
            if let Some(sample) = sample {
                self.controller.on_rtt(from, sample, now);
            }
            self.tally.events += 1;
            self.tally.followed += 1;
            self.cut(level, now);
        }
    }

    fn on_congestion_of_representative(&mut self, level: Rate, sample: Option<Span>, now: Time) {
        if let Some(check) = self.check.take() {
            let waited = now.since(check.since).as_secs_f64();
            self.response.add(waited, waited / 2.0);
        }
        self.level.add(level.bps(), level.bps() * FIRST_DEVIATION);
        if let Some(sample) = sample {
            self.rtt.add(sample.as_secs_f64(), 0.0);
            self.full_rtt.add(sample.as_secs_f64(), 0.0);
        }
    }

    /// Makes receiver `from` the representative if it is more congested than the present one. Returns whether the representative
    /// changed (paper 000, 3.1.3 and appendix B.1).
    // Paper gap: appendix B.1 starts with a largest round-trip time of 0, which would make the grace period and the receivers'
    // delays 0. Here the assumed round-trip time is used until the first sample.
    fn elect(&mut self, from: ReceiverId, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if !self.representative.is_valid() {
            self.grace_until = now + self.controller.rtt_max() * 2;
        } else if !self.is_worse(level, mean, sample, now) {
            return false;
        }
        self.representative.elect(from);
        self.check = None;
        let (value, guess) = (level.bps(), level.bps() * FIRST_DEVIATION);
        match (self.config.across_switch, self.level.mean()) {
            (AcrossSwitch::Continue, _) => self.level.add(value, guess),
            (AcrossSwitch::Restart, None) => self.level.restart(value, guess),
            (AcrossSwitch::Restart, Some(_)) => self.level.restart(value, guess.min(self.level.deviation())),
        }
        if let Some(sample) = sample {
            self.rtt.restart(sample.as_secs_f64(), 0.0);
            self.full_rtt.restart(sample.as_secs_f64(), 0.0);
        }
        true
    }

    /// Returns whether a receiver is more congested than the representative. During the grace period, the receiver with the
    /// longer round-trip time is more congested; afterwards, the receiver with the lower throughput.
    fn is_worse(&self, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if now < self.grace_until {
            return sample.is_some_and(|sample| sample > self.rtt());
        }
        let value = match self.config.switch_on {
            SwitchOn::Sample => level,
            SwitchOn::Average => mean,
        };
        let followed = self.level.mean().unwrap_or(f64::INFINITY);
        value.bps() < followed - self.level.deviation()
    }

    /// Reduces the rate to a fraction of the throughput at congestion, at most once per round-trip time (paper 000, 3.1.5).
    fn cut(&mut self, level: Rate, now: Time) {
        self.controller.end_start_up();
        if !self.gate.is_open(now, self.rtt()) {
            return;
        }
        let level = self.controller.cut_from(level, now);
        let congestion = Congestion { level, keep: self.config.beta };
        let lowered = self.policy.on_congestion(self.operating(), congestion);
        self.gate.close(now);
        self.check = None;
        self.controller.set_rate(lowered, now);
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        Policy {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller: SendController::new(config.sending),
            representative: Representative::default(),
            level: Ewma::new(config.alpha_source),
            rtt: Ewma::new(RTT_GAIN),
            full_rtt: Ewma::new(RTT_GAIN),
            response: Ewma::new(RESPONSE_GAIN),
            check: None,
            grace_until: Time::ZERO,
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

    /// Returns the representative's round-trip time; before the representative's first sample, the largest round-trip time of the
    /// group.
    fn rtt(&self) -> Span {
        self.controller.rtt_or_max(self.rtt.mean().map(Span::from_secs_f64))
    }

    fn stamp(&mut self, _size: u16, _now: Time) -> (Signal, Mark) {
        let level = self.level.mean().map(|mean| (mean, self.level.deviation()));
        (Signal::None, self.representative.mark(level, self.controller.rtt_max()))
    }

    fn on_departed(&mut self, _now: Time) {
        self.policy.on_departure();
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            ReportContent::Congested { echo, level, mean, cause: Cause::Loss | Cause::Mark } => {
                self.on_congested(from, echo, bps(level), bps(mean), now);
            }
            ReportContent::Selective { echo, .. } => self.on_alive(from, echo, now),
            _ => {} // this scheme's receivers do not send it
        }
    }

    /// Raises the rate once per round-trip time (paper 000, 3.1.5 and appendix B.1).
    fn on_tick(&mut self, rtt: Span, now: Time) {
        if self.controller.watch(rtt, now) == Growth::Allowed && self.gate.is_open(now, rtt) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
            self.watch_representative(now, rtt);
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
        self.level = Ewma::new(self.config.alpha_source);
        self.rtt = Ewma::new(RTT_GAIN);
        self.full_rtt = Ewma::new(RTT_GAIN);
        self.response = Ewma::new(RESPONSE_GAIN);
        self.policy = self.config.policy.policy_after(self.config.sending.start);
    }

    fn observe(&self, seen: Observation) -> Observation {
        Observation {
            limiting: self.representative.named(),
            level: self.level.mean().map(Rate::from_bps),
            cuts: self.gate.cuts(),
            tally: self.tally,
            ..seen
        }
    }

    fn on_resume(&mut self, pause: Span, _now: Time) {
        if let Some(check) = &mut self.check {
            check.since += pause;
            check.expires += pause;
        }
    }

    // Paper gap: 3.1.6 takes samples from congestion reports only. If receivers of a transport also send other feedback, samples
    // of the representative count too. Otherwise a fast path would have the round-trip time of its last congestion for minutes.
    fn on_sample(&mut self, from: ReceiverId, sample: Span) {
        if self.representative.times(from, self.controller.is_starting()) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
    }

    fn deadline(&self) -> Time {
        self.check.map_or(Time::NEVER, |check| check.expires)
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.deadline() {
            self.distrust();
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn check_since(&self) -> Option<Time> {
        self.policy.check.map(|check| check.since)
    }

    pub(super) fn patience_now(&self) -> Span {
        self.policy.patience(self.policy.rtt())
    }
}
