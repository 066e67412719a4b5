//! LE-SBCC's source: of the loss reports of all receivers, it follows about as many as the worst receiver sends.

use super::cascade::Cascade;
use super::config::Config;
use super::round_trip::RoundTrip;
use crate::node::{Cx, Observation};
use crate::packet::{Cause, Echo, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{AnyPolicy, Congestion, Growth, Operating, PolicyChoice, RatePolicy, SendController};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::time::{Span, Time};

/// The source of an LE-SBCC session. It has state for each receiver that reports losses.
pub type Source = PacedSource<Policy>;

/// The decisions of an LE-SBCC source.
#[derive(Debug)]
pub struct Policy {
    config: Config,
    policy: AnyPolicy,
    /// Controls the sending rate.
    controller: SendController,
    round_trip: RoundTrip,
    /// Round-trip time from samples of loss reports only: when packets are lost, the queue is full.
    full_round_trip: RoundTrip,
    cascade: Cascade,
}

/// The content of a report of losses.
#[derive(Debug, Clone, Copy)]
struct Losses {
    echo: Echo,
    first: Seq,
    count: u16,
}

/// Maximum fraction of the rate that remains when a reduction ends a start-up, because the rate has just been doubled.
const AFTER_START_UP: f64 = 0.5;
/// Maximum number of packets of one report from which round-trip samples are taken.
const MAX_SAMPLES: u16 = 64;

impl Policy {
    /// Returns the round-trip time with a full queue, divided by the mean round-trip time; one if all samples are of loss
    /// reports.
    fn fullness(&self) -> f64 {
        let (full, mean) = (self.full_round_trip.mean(), self.round_trip.mean());
        (full.as_secs_f64() / mean.as_secs_f64()).max(1.0)
    }

    fn operating(&self) -> Operating {
        Operating {
            rate: self.controller.rate(),
            rtt: self.period(),
            full_rtt: self.period().scaled(self.fullness()),
            deviation: self.round_trip.deviation(),
            packet_size: self.config.sending.packet_size,
        }
    }

    /// Handles a report of lost packets: each lost packet is a loss indication.
    fn on_losses(&mut self, from: ReceiverId, losses: Losses, cx: &mut Cx<'_>) {
        let now = cx.now;
        if losses.count == 0 {
            return;
        }
        if self.controller.is_of_interruption(losses.first) {
            return;
        }
        let Some(reporter) = self.cascade.reporter(from) else { return };
        if self.cascade.names(reporter, losses.echo.seq) {
            self.time(from, losses, now);
        }
        let keep = if self.controller.is_starting() { AFTER_START_UP } else { 1.0 };
        self.controller.end_start_up();
        let reductions = self.cascade.on_indications(reporter, losses.count, &self.round_trip, now, cx.rng);
        (0..reductions).for_each(|_| self.reduce(self.config.beta.min(keep), now));
    }

    /// Takes round-trip samples from all indications, including those that a filter stops later (appendix A).
    // Paper gap: appendix A times every indication. A repeated request would add the receiver's retry interval to the round-trip
    // time, so only the first report of a packet by a receiver is timed.
    fn time(&mut self, from: ReceiverId, losses: Losses, now: Time) {
        let Losses { echo, first, count } = losses;
        // If the echo is the first lost packet, the report stands for one report per lost packet. So each of these packets gives
        // a sample.
        let names_lost_packet = echo.seq == first && echo.hold == Span::ZERO;
        let samples = if names_lost_packet { u64::from(count.min(MAX_SAMPLES)) } else { 1 };
        for nth in 0..samples {
            let echo = Echo { seq: Seq(echo.seq.0 + nth), hold: echo.hold };
            if let Some(sample) = self.controller.sample(echo, now) {
                self.round_trip.add(sample);
                self.full_round_trip.add(sample);
                self.controller.on_rtt(from, sample, now);
            }
        }
    }

    /// Performs a rate reduction, "RR": the fraction `keep` of the rate remains, and a silence follows.
    fn reduce(&mut self, keep: f64, now: Time) {
        let congestion = Congestion { level: self.controller.rate(), keep };
        let lowered = self.policy.on_congestion(self.operating(), congestion);
        self.controller.set_rate(lowered, now);
        if self.config.is_silent_after_reductions() {
            self.controller.hold_until(now + self.round_trip.silence(), now);
        }
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        let mut controller = SendController::new(config.sending);
        if let Some(rate) = config.initial_rate {
            controller.set_rate(rate, Time::ZERO);
        }
        Policy {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller,
            round_trip: RoundTrip::new(&config, config.sending.initial_rtt),
            full_round_trip: RoundTrip::new(&config, Span::ZERO),
            cascade: Cascade::new(&config),
        }
    }

    fn controller(&self) -> &SendController {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut SendController {
        &mut self.controller
    }

    fn rtt(&self) -> Span {
        self.round_trip.mean()
    }

    /// Returns the interval between two increases of the rate: SRTT + 2 sigma for the increase by steps, a round-trip time for
    /// the equation.
    fn period(&self) -> Span {
        match self.config.policy {
            PolicyChoice::Equation(_) => self.round_trip.mean(),
            PolicyChoice::Aimd | PolicyChoice::Binomial(_) | PolicyChoice::Own(_) => self.round_trip.window(),
        }
    }

    fn stamp(&mut self, _size: u16, _now: Time) -> (Signal, Mark) {
        (Signal::None, Mark::None)
    }

    fn on_departed(&mut self, _now: Time) {
        self.policy.on_departure();
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let from = report.from;
        match report.content {
            ReportContent::Lost { echo, first, count, .. } => {
                self.on_losses(from, Losses { echo, first, count }, cx);
            }
            ReportContent::Congested { echo, cause: Cause::Loss | Cause::Mark, .. } => {
                self.on_losses(from, Losses { echo, first: echo.seq, count: 1 }, cx);
            }
            ReportContent::Selective { echo, .. } => self.on_alive(from, echo, cx.now),
            _ => {} // this scheme's receivers do not send it
        }
    }

    /// Handles "RateIncreaseTimer": the rate grows, except shortly after a reduction (appendix A).
    fn on_tick(&mut self, interval: Span, now: Time) {
        if self.controller.watch(interval, now) == Growth::Allowed && !self.cascade.is_congested(now) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
        }
    }

    fn forget(&mut self, receiver: ReceiverId, _now: Time) {
        self.cascade.forget(receiver);
    }

    fn on_start_again(&mut self, _now: Time) {
        self.policy = self.config.policy.policy_after(self.config.sending.start);
        self.round_trip = RoundTrip::new(&self.config, self.controller.rtt_max());
        self.full_round_trip = RoundTrip::new(&self.config, Span::ZERO);
        self.cascade.forget_all();
    }

    fn observe(&self, seen: Observation) -> Observation {
        Observation {
            limiting: self.cascade.worst(),
            cuts: self.cascade.reductions(),
            tally: self.cascade.tally(),
            ..seen
        }
    }

    fn on_start(&mut self, now: Time) {
        if self.controller.rtt_is_known() {
            self.round_trip = RoundTrip::new(&self.config, self.controller.rtt_max());
        }
        self.cascade.start(&self.round_trip, now);
    }

    fn on_resume(&mut self, pause: Span, _now: Time) {
        self.cascade.resume(pause);
    }

    /// Before the first loss, samples from any receiver count; afterwards, only samples from the worst receiver.
    // Paper gap: 2.1.1 takes samples from loss indications only. If a transport's receivers also send signs of life, samples of
    // the worst receiver count too. Otherwise a fast path would retain the round-trip time of its last congestion for minutes.
    fn on_sample(&mut self, from: ReceiverId, sample: Span) {
        if self.cascade.worst().is_none_or(|worst| worst == from) {
            self.round_trip.add(sample);
        }
    }

    fn deadline(&self) -> Time {
        self.cascade.deadline()
    }

    fn on_deadline(&mut self, now: Time) {
        self.cascade.on_deadline(&self.round_trip, now);
    }
}

#[cfg(test)]
impl Source {
    pub(super) const fn round_trip(&self) -> &RoundTrip {
        &self.policy.round_trip
    }
}
