//! ORMCC's source: follows one receiver and adapts the rate to it alone.

use super::config::{AcrossSwitch, Config, SwitchOn};
use crate::estimate::Ewma;
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{AnyPolicy, Congestion, CutGate, Growth, Operating, RatePolicy, SendController};
use crate::time::{Rate, Span, Time};

/// The source of an ORMCC session. Its state does not depend on the number of receivers.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    policy: AnyPolicy,
    /// Sends at the rate that the scheme allows, "lambda".
    controller: SendController,
    representative: Option<ReceiverId>,
    /// Whether it is known to be active; otherwise everybody may report.
    trust: Trust,
    /// Its throughput at congestion, "E(mu_cr)" and deviation.
    level: Ewma,
    rtt: Ewma,
    /// Samples from its reports of congestion alone: with its bottleneck's queue full.
    full_rtt: Ewma,
    /// How long the representative takes to report once its bottleneck is full, "T^cr".
    response: Ewma,
    check: Option<Check>,
    grace_until: Time,
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

/// The bottleneck is taken for full since `since`; without a report until `expires` the representative is inactive.
#[derive(Debug, Clone, Copy)]
struct Check {
    since: Time,
    expires: Time,
}

/// Deviations above the mean at which the bottleneck counts as full (seed 000, 3.1.3).
const FULL: f64 = 4.0;
/// Deviations of the response time that are waited for (seed 000, 3.1.3).
const PATIENCE: f64 = 8.0;
/// Initial deviation of a level, as a part of the level.
const FIRST_DEVIATION: f64 = 0.25;
const RTT_GAIN: f64 = 0.125;
const RESPONSE_GAIN: f64 = 0.125;

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        Source {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller: SendController::new(config.sending),
            representative: None,
            trust: Trust::Invalid,
            level: Ewma::new(config.alpha_source),
            rtt: Ewma::new(RTT_GAIN),
            full_rtt: Ewma::new(RTT_GAIN),
            response: Ewma::new(RESPONSE_GAIN),
            check: None,
            grace_until: Time::ZERO,
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

    /// The group is another one now (a slow part was set aside, or is served at last): what was learned about the old one's
    /// paths does not hold.
    fn start_again(&mut self, now: Time) {
        self.representative = None;
        self.distrust();
        self.level = Ewma::new(self.config.alpha_source);
        self.rtt = Ewma::new(RTT_GAIN);
        self.full_rtt = Ewma::new(RTT_GAIN);
        self.response = Ewma::new(RESPONSE_GAIN);
        self.policy = self.config.policy.policy_after(self.config.sending.start);
        self.controller.start_again(now);
        self.tick_at = now + self.control_rtt();
    }

    /// The round-trip time that times the rate: the representative's; before there is one, the largest.
    fn control_rtt(&self) -> Span {
        let followed = self.rtt.mean().map(Span::from_secs_f64);
        followed.unwrap_or(self.controller.rtt_max()).max(self.config.sending.shortest_rtt)
    }

    fn operating(&self) -> Operating {
        Operating {
            rate: self.controller.rate(),
            rtt: self.control_rtt(),
            full_rtt: self.full_rtt.mean().map_or(Span::ZERO, Span::from_secs_f64).max(self.control_rtt()),
            deviation: Span::from_secs_f64(self.rtt.deviation()),
            packet_size: self.config.sending.packet_size,
        }
    }

    /// Headers say from now on that everybody may report. Who was followed is remembered: a report from it
    /// makes it valid again.
    fn distrust(&mut self) {
        self.trust = Trust::Invalid;
        self.check = None;
    }

    /// Every round-trip time (seed 000, 3.1.5 and appendix B.1).
    fn tick(&mut self, now: Time) {
        let rtt = self.control_rtt();
        let next = self.tick_at + rtt;
        self.tick_at = if next > now { next } else { now + rtt };
        if self.controller.watch(rtt, now) == Growth::Allowed && self.gate.is_open(now, rtt) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
            self.watch_representative(now, rtt);
        }
    }

    /// The rate has come to where the representative's bottleneck should be full: begin to wait for its report.
    fn watch_representative(&mut self, now: Time, rtt: Span) {
        let Some(mean) = self.level.mean() else { return };
        let full = mean + FULL * self.level.deviation();
        if self.trust == Trust::Valid && self.check.is_none() && self.controller.rate().bps() >= full {
            self.check = Some(Check { since: now, expires: now + self.patience(rtt) });
        }
    }

    /// "T_max": how long the representative may take to report from a full bottleneck.
    // Seed gap: 3.1.3 has no value before the first response time. Here it is 16 largest round-trip times, at least
    // 2 s; afterwards at least two round-trip times.
    fn patience(&self, rtt: Span) -> Span {
        match self.response.mean() {
            Some(mean) => Span::from_secs_f64(mean + PATIENCE * self.response.deviation()).max(rtt * 2),
            None => (self.controller.rtt_max() * 16).max(Span::from_secs(2)),
        }
    }

    /// The application sends again: what was timed goes on where it stopped.
    fn resume(&mut self, now: Time) {
        let Some(pause) = self.controller.resume(now) else { return };
        if let Some(check) = &mut self.check {
            check.since += pause;
            check.expires += pause;
        }
        self.tick_at = now + self.control_rtt();
    }

    /// A receiver that is not necessarily followed is alive.
    // Seed gap: 3.1.6 knows samples from congestion reports only. Where a transport's receivers also show that they are
    // there, those of the representative count too; otherwise a fast path would be timed by its last congestion for
    // minutes.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller.sample(echo, now) else { return };
        if self.representative == Some(from)
            || (self.representative.is_none() && !self.controller.is_starting())
        {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
        self.controller.on_alive(from, sample, now);
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
        let accepted = if self.representative == Some(from) {
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
        self.trust = Trust::Valid;
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

    /// Whether this receiver becomes the representative, and if so, make it that (seed 000, 3.1.3 and appendix B.1).
    // Seed gap: appendix B.1 starts with a largest round-trip time of 0, which would make the grace period and the
    // receivers' delays 0. Here the assumed round-trip time stands in until the first sample.
    fn elect(&mut self, from: ReceiverId, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if self.trust == Trust::Invalid {
            self.grace_until = now + self.controller.rtt_max() * 2;
        } else if !self.is_worse(level, mean, sample, now) {
            return false;
        }
        self.representative = Some(from);
        self.trust = Trust::Valid;
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

    /// Whether a receiver is more congested than the representative: farther away within the grace period, else slower.
    fn is_worse(&self, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if now < self.grace_until {
            return sample.is_some_and(|sample| sample > self.control_rtt());
        }
        let value = match self.config.switch_on {
            SwitchOn::Sample => level,
            SwitchOn::Average => mean,
        };
        let followed = self.level.mean().unwrap_or(f64::INFINITY);
        value.bps() < followed - self.level.deviation()
    }

    /// At most once per round-trip time: down to a part of the throughput at congestion (seed 000, 3.1.5).
    fn cut(&mut self, level: Rate, now: Time) {
        self.controller.end_start_up();
        if !self.gate.is_open(now, self.control_rtt()) {
            return;
        }
        let congestion = Congestion { level, keep: self.config.beta };
        let lowered = self.policy.on_congestion(self.operating(), congestion);
        self.gate.close(now);
        self.check = None;
        self.controller.set_rate(lowered, now);
    }

    fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        self.controller.on_received(from, echo, rate, loss, now);
        self.on_alive(from, echo, now);
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        self.tick_at = cx.now + self.control_rtt();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.controller.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.resume(cx.now);
        let rtt_max = self.controller.rtt_max();
        let departed = self.controller.depart(size, self.control_rtt(), cx.now);
        self.policy.on_departure();
        let id = self.representative.filter(|_| self.trust == Trust::Valid);
        let (mean, deviation) = match (id, self.level.mean()) {
            (Some(_), Some(mean)) => (mean as f32, self.level.deviation() as f32),
            _ => (f32::INFINITY, 0.0),
        };
        let mark = Mark::Representative { id, mean, deviation, rtt_max: rtt_max.as_secs_f64() as f32 };
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal: Signal::None, mark }
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
            ReportContent::Congested { echo, level, mean, cause: Cause::Loss | Cause::Mark } => {
                self.on_congested(from, echo, bps(level), bps(mean), now);
            }
            ReportContent::Alive { echo }
            | ReportContent::Selective { echo, .. }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.on_alive(from, echo, now);
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
        let check = self.check.map_or(Time::NEVER, |check| check.expires);
        self.tick_at.min(check).min(self.controller.deadline())
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
        if self.check.is_some_and(|check| now >= check.expires) {
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
            rtt: self.control_rtt(),
            limiting: self.representative.filter(|_| self.trust == Trust::Valid),
            level: self.level.mean().map(Rate::from_bps),
            rtt_max: self.controller.rtt_max(),
            cuts: self.gate.cuts(),
            tally: self.tally,
            starting: self.controller.is_starting(),
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn history_next(&self) -> Seq {
        self.controller.next_seq()
    }

    pub(super) fn sent(&self, seq: Seq) -> Option<Time> {
        self.controller.sent_at(seq)
    }

    pub(super) fn check_since(&self) -> Option<Time> {
        self.check.map(|check| check.since)
    }

    pub(super) fn patience_now(&self) -> Span {
        self.patience(self.control_rtt())
    }
}
