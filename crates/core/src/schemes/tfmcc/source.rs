//! TFMCC's source: follows the limiting receiver, times the feedback rounds, and returns stamps (RFC 4654, 3 and 4).

use super::config::{Config, Rise};
use super::echoes::{Echo, Echoes, Urgency};
use super::timer;
use crate::bounds::Guard;
use crate::node::{Cx, Observation, SourceControl, Tally};
use crate::packet::{self, Knows, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::send_controller::PROBED_EVERY;
use crate::rate::{Growth, SendController, Sending, Start};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::time::{Rate, Span, Time};

/// The source of a TFMCC session. Its state does not depend on the number of receivers.
pub type Source = PacedSource<Policy>;

/// The decisions of a TFMCC source.
#[derive(Debug, Clone)]
pub struct Policy {
    config: Config,
    /// Controls sending at the rate of the scheme, "X".
    controller: SendController,
    phase: Phase,
    limiting: Option<Limiting>,
    /// The rate does not rise before this time, because a slower receiver has just left.
    hold_until: Time,
    /// Time of the latest rise or reset of the rate. The next rise is proportional to the time since then.
    raised_at: Time,
    growth: Growth,
    rtt_max: Span,
    round: FeedbackRound,
    echoes: Echoes,
    received_at: Time,
    /// Whether the rate was lowered because no reports arrived, and no report has arrived since then.
    is_silent: bool,
    /// Whether a silence has ended since the latest tick.
    is_received_again: bool,
    cuts: u64,
    tally: Tally,
}

/// The rule that determines the rate.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Phase {
    /// No receiver has lost a packet. The rate moves to twice the rate of the slowest receiver within a round trip.
    SlowStart(Ramp),
    /// After a pause or a silence the rate doubles up to its earlier value.
    Resuming {
        /// The earlier rate.
        to: Rate,
    },
    /// The equation determines the rate.
    Steady,
}

/// A rate that changes linearly over one largest round-trip time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ramp {
    from: Rate,
    to: Rate,
    since: Time,
}

/// The current limiting receiver, "CLR".
#[derive(Debug, Clone, Copy)]
struct Limiting {
    id: ReceiverId,
    since: Time,
    received_at: Time,
    /// The receiver's latest adjusted rate.
    rate: Rate,
    /// The receiver's latest round-trip time, measured by the source.
    rtt: Span,
    /// The receiver's latest stamp.
    echo: Echo,
    /// Latest time at which this receiver's stamp was returned.
    echoed_at: Time,
    /// Latest time at which the rate was halved because this receiver was silent.
    halved_at: Time,
    leaves: bool,
}

/// A feedback round.
#[derive(Debug, Clone, Copy)]
struct FeedbackRound {
    number: u8,
    since: Time,
    /// Reports with a rate above this value are suppressed, "X_supp".
    suppress_above: f32,
    /// Whether a receiver that is not the limiting one has reported.
    answered: bool,
    /// The largest round-trip time of the round, "R_peak".
    peak: Span,
    /// Whether a round-trip time measured in this round exceeded the largest round-trip time, "R_max".
    grew: bool,
}

impl FeedbackRound {
    const fn new(number: u8, since: Time) -> FeedbackRound {
        FeedbackRound {
            number,
            since,
            suppress_above: f32::INFINITY,
            answered: false,
            peak: Span::ZERO,
            grew: false,
        }
    }
}

/// A validated report of a calculated rate.
#[derive(Debug, Clone, Copy)]
struct Calculated {
    from: ReceiverId,
    rate: Rate,
    /// The rate, corrected with the round-trip time that the source has measured if the receiver has no measurement.
    adjusted: Rate,
    rtt: Span,
    knows: Knows,
    echo: Echo,
}

/// Duration of the limiting receiver's silence, in largest round-trip times, after which the rate is halved.
const MISSED_AFTER: u64 = 4;
/// Duration of silence, in largest round-trip times, after which the limiting receiver is given up. The silence of a new limiting
/// receiver halves the rate only after this duration.
const GIVEN_UP_AFTER: u64 = 10;
/// Maximum plausible round-trip time; longer samples are errors.
const MAX_RTT: Span = Span::from_secs(10);

impl Policy {
    /// Returns a rate of one packet per largest round-trip time. The rate may rise by this amount in each largest round-trip
    /// time.
    fn step(&self) -> Rate {
        Rate::of(u64::from(self.config.sending.packet_size), self.rtt_max)
    }

    /// Returns the duration of `rtts` largest round-trip times, or the minimum duration that tolerates delayed hosts if that is
    /// longer.
    fn rounds(&self, rtts: u64) -> Span {
        (self.rtt_max * rtts).max(self.config.patience * rtts / MISSED_AFTER)
    }

    fn begin(&mut self, now: Time) {
        let first = self.controller.rate().max(self.config.least);
        self.controller.set_rate(first, now);
        self.phase = match self.config.sending.start {
            Start::Linear => Phase::Steady,
            Start::Doubling(_) => Phase::SlowStart(Ramp {
                from: self.controller.rate(),
                to: self.controller.rate(),
                since: now,
            }),
        };
        self.round = FeedbackRound::new(self.round.number, now);
        (self.limiting, self.received_at, self.raised_at) = (None, now, now);
    }

    /// Sets the initial rate if probes have measured the round-trip time. Slow start then begins with an initial window (RFC
    /// 6928) instead of one packet, as in the other schemes.
    fn begin_at_known_distance(&mut self, now: Time) {
        if let Start::Doubling(doubling) = self.config.sending.start
            && self.controller.rtt_is_known()
        {
            let first = doubling.initial_rate(self.controller.rtt_max(), self.config.sending.packet_size);
            self.controller.set_rate(first, now);
        }
    }

    fn set_rate(&mut self, rate: Rate, now: Time) {
        if rate.bps() < self.controller.rate().bps() {
            self.cuts += 1;
        }
        self.controller.set_rate(rate, now);
    }

    fn is_starting(&self) -> bool {
        matches!(self.phase, Phase::SlowStart(_))
    }

    /// Sets the present rate of slow start.
    fn advance(&mut self, now: Time) {
        let Phase::SlowStart(ramp) = self.phase else { return };
        if self.controller.is_idle() || ramp.to.bps() <= ramp.from.bps() {
            return;
        }
        let part = (now.since(ramp.since).as_secs_f64() / self.rtt_max.as_secs_f64()).min(1.0);
        let rate = ramp.from * (1.0 - part) + ramp.to * part;
        self.controller.set_rate(rate.max(self.controller.rate()), now);
    }

    fn on_calculated(&mut self, report: &Report, now: Time) {
        let Some(report) = self.checked(report, now) else { return };
        self.note_round_trip(report.from, report.rtt, now);
        let limits = self.limiting.is_some_and(|limiting| limiting.id == report.from);
        let has_loss = report.knows.has(Knows::LOSS);
        if has_loss && self.is_starting() {
            self.phase = Phase::Steady;
            self.raised_at = now;
        }
        if !limits {
            self.note_answer(&report);
        }
        self.tally.indications += u64::from(has_loss);
        let lower = report.adjusted.bps() < self.controller.rate().bps();
        self.tally.events += u64::from(has_loss && lower);
        let before = self.limiting.map(|limiting| limiting.id);
        self.follow(&report, now);
        let follows = self.limiting.is_some_and(|limiting| limiting.id == report.from);
        self.tally.followed += u64::from(has_loss && lower && follows);
        self.plan_echo(&report, follows, before != Some(report.from));
        if !limits && now >= self.round.since + timer::longest(self.config.timer, self.rtt_max) {
            self.end_round(now);
        }
    }

    /// Validates a report; returns `None` for impossible values.
    fn checked(&self, report: &Report, now: Time) -> Option<Calculated> {
        let ReportContent::Calculated { echo, rate, stamp, round, knows } = report.content else {
            return None;
        };
        let bps = Rate::from_bps(f64::from(rate));
        let rtt = self.controller.sample(echo, now)?.max(self.config.sending.min_rtt);
        if !bps.is_usable() {
            return None;
        }
        // A receiver without a measured round-trip time has calculated with the largest round-trip time of the group.
        let guessed = knows.has(Knows::LOSS) && !knows.has(Knows::RTT);
        let adjusted =
            if guessed { bps * (self.rtt_max.as_secs_f64() / rtt.as_secs_f64()).max(1.0) } else { bps };
        let echo = Echo { to: report.from, stamp, came: now, urgency: Urgency::Measured, round, rate };
        Some(Calculated { from: report.from, rate: bps, adjusted, rtt, knows, echo })
    }

    fn note_round_trip(&mut self, from: ReceiverId, rtt: Span, now: Time) {
        self.controller.on_rtt(from, rtt, now);
        if self.config.sending.rtt_max_memory.is_some() {
            return self.follow_group();
        }
        self.round.peak = self.round.peak.max(rtt);
        if rtt > self.rtt_max {
            self.rtt_max = rtt.min(MAX_RTT);
            self.round.grew = true;
        }
    }

    /// Sets "R_max" from the group's recent samples.
    // RFC 4654, 2.4.2 accepts any larger sample at once, so one late answer would lengthen the feedback rounds for minutes. On
    // real networks a receiver has to confirm the sample.
    fn follow_group(&mut self) {
        let packet = self.controller.rate().span_of(u64::from(self.config.sending.packet_size));
        let largest = self.controller.rtt_max().max(packet);
        self.rtt_max = largest.clamp(self.config.sending.min_rtt, MAX_RTT);
    }

    /// Records an answer of a receiver that is not the limiting one. The rate in this answer suppresses reports of rates that are
    /// not clearly lower.
    fn note_answer(&mut self, report: &Calculated) {
        self.round.answered = true;
        let rate = report.rate.bps() as f32;
        if report.echo.round == self.round.number && self.round.suppress_above > rate {
            self.round.suppress_above = (1.0 - self.config.near as f32) * rate;
        }
    }

    /// Updates the limiting receiver and the rate from a report (RFC 4654, 3.2).
    fn follow(&mut self, report: &Calculated, now: Time) {
        let leaves = report.knows.has(Knows::LEAVING);
        match &mut self.limiting {
            Some(limiting) if limiting.id == report.from => {
                (limiting.received_at, limiting.leaves) = (now, leaves);
                (limiting.rate, limiting.rtt, limiting.echo) = (report.adjusted, report.rtt, report.echo);
                self.approach(report.adjusted, now);
            }
            _ if leaves => {}
            Some(limiting) if !limiting.leaves => {
                // Before the first loss the sending rate is below all reported rates, so a reported rate is compared with the
                // limiting receiver's reported rate.
                let level = if matches!(self.phase, Phase::SlowStart(_)) {
                    limiting.rate
                } else {
                    self.controller.rate()
                };
                if report.adjusted.bps() < level.bps() {
                    self.limit_by(report, now);
                    self.approach(report.adjusted, now);
                }
            }
            replaced => {
                if replaced.is_some() && report.adjusted.bps() > self.controller.rate().bps() {
                    self.hold_until = now + self.hold();
                }
                self.limit_by(report, now);
                self.approach(report.adjusted, now);
            }
        }
    }

    fn limit_by(&mut self, report: &Calculated, now: Time) {
        self.limiting = Some(Limiting {
            id: report.from,
            since: now,
            received_at: now,
            rate: report.adjusted,
            rtt: report.rtt,
            echo: report.echo,
            echoed_at: Time::ZERO,
            halved_at: now,
            leaves: false,
        });
    }

    /// Moves the rate towards `target`: immediately if the target is lower, otherwise by at most the permitted rise.
    fn approach(&mut self, target: Rate, now: Time) {
        let (rate, target) = (self.controller.rate(), target.max(self.config.least));
        if let Phase::SlowStart(_) = self.phase {
            let target = target.max(self.step());
            let from = if target.bps() < rate.bps() { target } else { rate };
            self.phase = Phase::SlowStart(Ramp { from, to: target, since: now });
            if target.bps() < rate.bps() {
                self.set_rate(target, now);
            }
            return;
        }
        if target.bps() <= rate.bps() {
            if let Phase::Resuming { .. } = self.phase {
                self.phase = Phase::Steady;
            }
            self.raised_at = now;
            return self.set_rate(target, now);
        }
        if now < self.hold_until || self.growth == Growth::Frozen {
            self.raised_at = now;
            return;
        }
        let part = (now.since(self.raised_at).as_secs_f64() / self.rtt_max.as_secs_f64()).min(1.0);
        self.raised_at = now;
        let raised = match self.phase {
            Phase::Resuming { to } if rate.bps() < to.bps() => (rate * (1.0 + part)).min(to),
            _ => match self.config.rise {
                Rise::Packet => rate + self.step() * part,
                Rise::Double => rate + rate.max(self.step()) * part,
            },
        };
        self.controller.set_rate(raised.min(target), now);
    }

    /// Returns the duration without a rise after the limiting receiver has left.
    fn hold(&self) -> Span {
        timer::longest(self.config.timer, self.rtt_max).max(self.config.hold)
    }

    fn plan_echo(&mut self, report: &Calculated, limits: bool, is_new: bool) {
        let measured = report.knows.has(Knows::RTT);
        let urgency = match (limits, is_new, measured) {
            (true, true, _) | (true, _, false) => Urgency::NewlyLimiting,
            (true, false, true) => Urgency::Limiting,
            (false, _, false) => Urgency::Unmeasured,
            (false, _, true) => Urgency::Measured,
        };
        let echo = Echo { urgency, ..report.echo };
        if let Some(limiting) = self.limiting.as_mut().filter(|limiting| limiting.id == report.from) {
            limiting.echo = echo;
        }
        self.echoes.add(echo);
    }

    /// Returns the stamp for the next packet: the most urgent stamp, except that the limiting receiver's stamp is returned at
    /// least once per round.
    fn next_echo(&mut self, now: Time) -> Option<Echo> {
        let overdue = timer::longest(self.config.timer, self.rtt_max);
        if let Some(limiting) = &mut self.limiting
            && now.since(limiting.echoed_at) >= overdue
        {
            limiting.echoed_at = now;
            return Some(limiting.echo);
        }
        let limiting = self.limiting.as_mut();
        match self.echoes.take() {
            Some(echo) => {
                if let Some(limiting) = limiting.filter(|limiting| limiting.id == echo.to) {
                    limiting.echoed_at = now;
                }
                Some(echo)
            }
            None => limiting.map(|limiting| {
                limiting.echoed_at = now;
                limiting.echo
            }),
        }
    }

    fn round_deadline(&self) -> Time {
        let longest = timer::longest(self.config.timer, self.rtt_max);
        self.round.since + if self.round.answered { longest } else { longest * 2 }
    }

    fn end_round(&mut self, now: Time) {
        if self.config.sending.rtt_max_memory.is_some() {
            self.follow_group();
        } else if !self.round.grew {
            let packet = self.controller.rate().span_of(u64::from(self.config.sending.packet_size));
            let lower = self.rtt_max.scaled(self.config.rtt_max_kept).max(self.round.peak).max(packet);
            self.rtt_max = lower.clamp(self.config.sending.min_rtt, MAX_RTT);
        }
        self.round = FeedbackRound::new(self.round.number.wrapping_add(1), now);
    }

    /// Halves the rate because no reports arrive. After reports have returned, the rate grows back by doubling.
    fn halve(&mut self, now: Time) {
        let before = self.controller.rate();
        let sending = &self.config.sending;
        let lower = match sending.start {
            Start::Linear => before * 0.5,
            Start::Doubling(_) => (before * 0.5).max(Rate::of(u64::from(sending.packet_size), PROBED_EVERY)),
        };
        match &mut self.phase {
            Phase::SlowStart(ramp) => *ramp = Ramp { from: lower, to: lower, since: now },
            Phase::Steady if sending.start != Start::Linear => self.phase = Phase::Resuming { to: before },
            Phase::Steady | Phase::Resuming { .. } => {}
        }
        self.raised_at = now;
        self.is_silent = true;
        self.set_rate(lower, now);
    }

    /// Removes the limiting receiver. The next receiver that reports replaces it, and the rate does not rise during `hold`.
    fn forget_limiting(&mut self, hold: Span, now: Time) {
        self.limiting = None;
        self.hold_until = now + hold;
        self.received_at = now;
    }

    /// Sets the initial rate after a silence. The rate does not exceed the rate before the silence.
    fn come_back(&mut self, now: Time) {
        let sending = &self.config.sending;
        let Start::Doubling(doubling) = sending.start else { return };
        let first =
            doubling.initial_rate(self.controller.rtt_max(), sending.packet_size).max(self.config.least);
        let first = match &self.phase {
            Phase::Resuming { to } => first.min(*to),
            _ => first,
        };
        if first.bps() <= self.controller.rate().bps() {
            return;
        }
        if let Phase::SlowStart(ramp) = &mut self.phase {
            *ramp = Ramp { from: first, to: first, since: now };
        }
        self.raised_at = now;
        self.controller.set_rate(first, now);
        self.follow_group();
    }
}

impl Source {
    /// Limits the present rate to `rate` for a receiver that is about to join, even if another receiver is the limiting one.
    pub fn make_room(&mut self, rate: Rate, now: Time) {
        let policy = &mut self.policy;
        let rate = rate.max(policy.config.least);
        if rate.bps() < policy.controller.rate().bps() {
            policy.raised_at = now;
            policy.set_rate(rate, now);
        }
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        // TFMCC has its own rules for start-up and silence.
        let sending = Sending { start: Start::Linear, silent_group_guard: Guard::Off, ..config.sending };
        Policy {
            config,
            controller: SendController::new(sending),
            phase: Phase::Steady,
            limiting: None,
            hold_until: Time::ZERO,
            raised_at: Time::ZERO,
            growth: Growth::Allowed,
            rtt_max: config.sending.initial_rtt,
            round: FeedbackRound::new(0, Time::ZERO),
            echoes: Echoes::new(),
            received_at: Time::ZERO,
            is_silent: false,
            is_received_again: false,
            cuts: 0,
            tally: Tally::default(),
        }
    }

    fn controller(&self) -> &SendController {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut SendController {
        &mut self.controller
    }

    /// Returns the largest round-trip time, "R_max".
    fn rtt(&self) -> Span {
        self.rtt_max
    }

    fn on_start(&mut self, now: Time) {
        if self.controller.rtt_is_known() {
            self.rtt_max = self.controller.rtt_max();
        }
        self.begin_at_known_distance(now);
        self.begin(now);
    }

    fn stamp(&mut self, _size: u16, now: Time) -> (Signal, Mark) {
        self.advance(now);
        let echo = self.next_echo(now);
        let limiting = self.limiting.map(|limiting| limiting.id);
        let mark = Mark::Equation {
            suppress_above: self.round.suppress_above,
            rtt_max: self.rtt_max.as_secs_f64() as f32,
            round: self.round.number,
            to: echo.map(|echo| echo.to),
            echo: echo.map_or(0, |echo| echo.adjusted(now)),
            limiting: echo.is_some_and(|echo| Some(echo.to) == limiting),
        };
        (Signal::None, mark)
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        self.on_calculated(report, cx.now);
    }

    /// Records the round-trip time of a receiver that sends a sign of life.
    fn on_alive(&mut self, from: ReceiverId, echo: packet::Echo, now: Time) {
        if let Some(sample) = self.controller.sample(echo, now) {
            self.note_round_trip(from, sample.max(self.config.sending.min_rtt), now);
        }
    }

    /// Checks once per largest round-trip time whether the limiting receiver or the whole group is silent.
    fn on_tick(&mut self, _period: Span, now: Time) {
        if std::mem::take(&mut self.is_received_again) {
            self.come_back(now);
        }
        self.growth = self.controller.watch(self.rtt_max, now);
        self.advance(now);
        if self.controller.is_idle() {
            return;
        }
        let (missed, given_up) = (self.rounds(MISSED_AFTER), self.rounds(GIVEN_UP_AFTER));
        if let Some(limiting) = &mut self.limiting {
            let silent = now.since(limiting.received_at);
            if silent > given_up {
                self.forget_limiting(timer::longest(self.config.timer, self.rtt_max), now);
            } else if silent > missed
                && now.since(limiting.since) > given_up
                && now.since(limiting.halved_at.max(limiting.received_at)) >= missed
            {
                limiting.halved_at = now;
                self.halve(now);
            }
        } else if now.since(self.received_at) >= given_up {
            self.received_at = now;
            self.halve(now);
        }
    }

    /// Restores timers after a pause of the application. After a long pause the rate restarts low and doubles.
    fn on_resume(&mut self, pause: Span, now: Time) {
        if let Some(limiting) = &mut self.limiting {
            limiting.received_at += pause;
            limiting.since += pause;
            limiting.halved_at = limiting.halved_at.max(limiting.received_at);
        }
        (self.received_at, self.raised_at, self.growth) = (now, now, Growth::Allowed);
        self.round = FeedbackRound::new(self.round.number.wrapping_add(1), now);
        let rate = self.controller.rate();
        if pause > self.rtt_max * GIVEN_UP_AFTER {
            let lowest = self.step().min(rate);
            self.phase = match self.phase {
                Phase::SlowStart(_) => Phase::SlowStart(Ramp { from: lowest, to: lowest, since: now }),
                _ => Phase::Resuming { to: rate },
            };
            self.set_rate(lowest, now);
        }
    }

    fn forget(&mut self, receiver: ReceiverId, now: Time) {
        self.echoes.forget(receiver);
        if self.limiting.is_some_and(|limiting| limiting.id == receiver) {
            self.forget_limiting(self.hold(), now);
        }
    }

    /// Records the arrival of packet `seq` at a receiver. The group is silent while no newer packet arrives at any receiver.
    fn on_arrived(&mut self, seq: Seq, now: Time) -> bool {
        let Some(confirmed_at) = self.controller.confirmed_at(seq, now) else { return false };
        let is_news = confirmed_at > self.received_at;
        if is_news {
            self.received_at = confirmed_at;
        }
        // A report does not raise the rate immediately; the next tick raises it.
        let is_over = is_news && std::mem::take(&mut self.is_silent);
        self.is_received_again |= is_over;
        is_over
    }

    /// Resets the state for a new group.
    fn on_start_again(&mut self, now: Time) {
        self.echoes.clear();
        self.rtt_max = self.config.sending.initial_rtt;
        self.controller.set_rate(self.controller.config().initial_rate().min(self.controller.rate()), now);
        self.begin(now);
    }

    fn deadline(&self) -> Time {
        if self.controller.is_running() { self.round_deadline() } else { Time::NEVER }
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.round_deadline() {
            self.end_round(now);
        }
    }

    // The number of members is not needed: groups of any size up to the assumed bound send a similar number of reports.
    fn control(&mut self, control: SourceControl, now: Time) {
        if control == SourceControl::SignOfLife {
            self.received_at = now;
        }
    }

    fn observe(&self, seen: Observation) -> Observation {
        Observation {
            rtt: self.limiting.map_or(self.rtt_max, |limiting| limiting.rtt),
            limiting: self.limiting.map(|limiting| limiting.id),
            level: self.limiting.map(|limiting| limiting.rate),
            rtt_max: match self.config.sending.rtt_max_memory {
                Some(_) => seen.rtt_max, // without the packet time that `follow_group` adds at low rates
                None => self.rtt_max,
            },
            cuts: self.cuts,
            tally: self.tally,
            starting: self.is_starting(),
            ..seen
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn round_state(&self) -> (u8, f32) {
        (self.policy.round.number, self.policy.round.suppress_above)
    }

    pub(super) fn allowed(&self) -> Rate {
        self.policy.controller.rate()
    }

    pub(super) fn force(&mut self, rate: Rate, now: Time) {
        self.policy.controller.set_rate(rate, now);
    }
}
