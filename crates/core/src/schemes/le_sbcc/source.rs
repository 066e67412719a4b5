//! LE-SBCC's source: makes of all receivers' loss reports what a path to the worst of them would give.

use super::cascade::Cascade;
use super::config::Config;
use super::round_trip::RoundTrip;
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp};
use crate::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{AnyPolicy, Congestion, Growth, Operating, PolicyChoice, RatePolicy, SendController};
use crate::time::{Rate, Span, Time};

/// The source of an LE-SBCC session. It remembers each receiver that reports losses.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    policy: AnyPolicy,
    /// Sends at the rate that the scheme allows.
    controller: SendController,
    round_trip: RoundTrip,
    /// Samples of losses alone: with the queue full that lost the packets.
    full_round_trip: RoundTrip,
    cascade: Cascade,
    /// When the rate may grow next, "RateIncreaseTimer".
    tick_at: Time,
}

/// What a report of losses says.
#[derive(Debug, Clone, Copy)]
struct Losses {
    echo: Echo,
    first: Seq,
    count: u16,
}

/// The reduction that ends a start-up keeps no more than this part of a rate that has just been doubled.
const AFTER_START_UP: f64 = 0.5;
/// Of one report, no more than so many packets are timed.
const MOST_SAMPLES: u16 = 64;

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        let mut controller = SendController::new(config.sending);
        if let Some(rate) = config.initial_rate {
            controller.set_rate(rate, Time::ZERO);
        }
        Source {
            config,
            policy: config.policy.policy_after(config.sending.start),
            controller,
            round_trip: RoundTrip::new(&config, config.sending.initial_rtt),
            full_round_trip: RoundTrip::new(&config, Span::ZERO),
            cascade: Cascade::new(&config),
            tick_at: Time::NEVER,
        }
    }

    /// How often the rate may grow: SRTT + 2 sigma for steps, every round trip for the equation.
    fn interval(&self) -> Span {
        match self.config.policy {
            PolicyChoice::Equation(_) => self.round_trip.mean(),
            PolicyChoice::Aimd | PolicyChoice::Binomial(_) => self.round_trip.window(),
        }
    }

    /// How much longer a round trip is with the queue full that loses packets: one where all samples are of losses.
    fn fullness(&self) -> f64 {
        let (full, mean) = (self.full_round_trip.mean(), self.round_trip.mean());
        (full.as_secs_f64() / mean.as_secs_f64()).max(1.0)
    }

    fn operating(&self) -> Operating {
        Operating {
            rate: self.controller.rate(),
            rtt: self.interval(),
            full_rtt: self.interval().scaled(self.fullness()),
            deviation: self.round_trip.deviation(),
            packet_size: self.config.sending.packet_size,
        }
    }

    /// The rate grows unless it was just reduced; the timer keeps its pace (appendix A).
    fn tick(&mut self, now: Time) {
        let interval = self.interval();
        let next = self.tick_at + interval;
        self.tick_at = if next > now { next } else { now + interval };
        if self.controller.watch(interval, now) == Growth::Allowed && !self.cascade.is_congested(now) {
            let raised = self.policy.on_tick(self.operating());
            self.controller.set_rate(raised, now);
        }
    }

    /// Negative acknowledgements arrive: each of these packets is a loss indication.
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

    /// Round-trip samples, also from indications that are filtered (appendix A).
    // Seed gap: appendix A times every indication. A request that is repeated would count the receiver's own patience as
    // round trip, so only the first report of a packet by a receiver is timed.
    fn time(&mut self, from: ReceiverId, losses: Losses, now: Time) {
        let Losses { echo, first, count } = losses;
        // A report that names the lost packet itself stands for one such report of each packet of the burst.
        let names_lost_packet = echo.seq == first && echo.hold == Span::ZERO;
        let samples = if names_lost_packet { u64::from(count.min(MOST_SAMPLES)) } else { 1 };
        for nth in 0..samples {
            let echo = Echo { seq: Seq(echo.seq.0 + nth), hold: echo.hold };
            if let Some(sample) = self.controller.sample(echo, now) {
                self.round_trip.add(sample);
                self.full_round_trip.add(sample);
                self.controller.on_rtt(from, sample, now);
            }
        }
    }

    /// A reduction, "RR", to this part of the rate; and silence.
    fn reduce(&mut self, keep: f64, now: Time) {
        let congestion = Congestion { level: self.controller.rate(), keep };
        let lowered = self.policy.on_congestion(self.operating(), congestion);
        self.controller.set_rate(lowered, now);
        if self.config.is_silent_after_reductions() {
            self.controller.hold_until(now + self.round_trip.silence());
        }
    }

    /// A receiver is there. Before the first loss, any of them times the round trip; later only the worst one does.
    // Seed gap: 2.1.1 knows samples from loss indications only. Where a transport's receivers also show that they are
    // there, the worst one's samples count too, or a fast path would be timed by its last congestion for minutes.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller.sample(echo, now) else { return };
        if self.cascade.worst().is_none_or(|worst| worst == from) {
            self.round_trip.add(sample);
        }
        self.controller.on_alive(from, sample, now);
    }

    /// The group is another one now: what was learned about the old one's paths does not hold.
    fn start_again(&mut self, now: Time) {
        self.controller.start_again(now);
        self.policy = self.config.policy.policy_after(self.config.sending.start);
        self.round_trip = RoundTrip::new(&self.config, self.controller.rtt_max());
        self.full_round_trip = RoundTrip::new(&self.config, Span::ZERO);
        self.cascade.forget_all();
        self.tick_at = now + self.interval();
    }

    /// The application sends again: what was timed goes on where it stopped.
    fn resume(&mut self, now: Time) {
        let Some(pause) = self.controller.resume(now) else { return };
        self.cascade.resume(pause);
        self.tick_at = now + self.interval();
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        if self.controller.rtt_is_known() {
            self.round_trip = RoundTrip::new(&self.config, self.controller.rtt_max());
        }
        self.cascade.start(&self.round_trip, cx.now);
        self.tick_at = cx.now + self.interval();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.controller.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.resume(cx.now);
        let departed = self.controller.depart(size, self.round_trip.mean(), cx.now);
        self.policy.on_departure();
        Stamp {
            seq: departed.seq,
            rate: departed.rate,
            flags: departed.flags,
            signal: Signal::None,
            mark: Mark::None,
        }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        if !self.controller.has_left(report.content.echo()) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(report.content.echo().seq, now);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            ReportContent::Lost { echo, first, count, .. } => {
                self.on_losses(from, Losses { echo, first, count }, cx);
            }
            ReportContent::Congested { echo, cause: Cause::Loss | Cause::Mark, .. } => {
                self.on_losses(from, Losses { echo, first: echo.seq, count: 1 }, cx);
            }
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.cascade.forget(from),
            ReportContent::Alive { echo }
            | ReportContent::Selective { echo, .. }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.on_alive(from, echo, now);
            }
            ReportContent::Received { echo, rate, loss } => {
                self.controller.on_received(from, echo, bps(rate), loss, now);
                self.on_alive(from, echo, now);
            }
            _ => {} // this scheme's receivers do not say it
        }
    }

    fn deadline(&self) -> Time {
        if self.controller.is_idle() {
            return self.tick_at;
        }
        self.tick_at.min(self.cascade.deadline()).min(self.controller.deadline())
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
        self.cascade.on_deadline(&self.round_trip, now);
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.cascade.forget(receiver),
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Members(_) | SourceControl::Limits(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.round_trip.mean(),
            limiting: self.cascade.worst(),
            level: None,
            rtt_max: self.controller.rtt_max(),
            cuts: self.cascade.reductions(),
            tally: self.cascade.tally(),
            starting: self.controller.is_starting(),
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn sent(&self, seq: Seq) -> Option<Time> {
        self.controller.sent_at(seq)
    }

    pub(super) fn next_seq(&self) -> Seq {
        self.controller.next_seq()
    }

    pub(super) const fn round_trip(&self) -> &RoundTrip {
        &self.round_trip
    }
}
