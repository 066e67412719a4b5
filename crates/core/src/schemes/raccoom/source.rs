//! RACCOOM's source: it follows the target path, and answers the losses among all packets in flight with one cut.

use super::aggregate::{Aggregate, Aggregator};
use super::config::{Aim, Answers, Config};
use super::friendly::Friendly;
use super::law::{AckMeasurements, Rates};
use super::probing::{ProbeAction, Probing};
use super::target::Target;
use crate::bounds::Guard;
use crate::node::{Cx, Observation, SourceControl, Tally};
use crate::packet::{Echo, Mark, ReceiverId, Report, ShortId, Signal};
use crate::rate::{Growth, SendController, Start};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::schemes::pgmcc::timeout::Timeout;
use crate::time::{Rate, Span, Time};

/// The source of a RACCOOM session.
pub type Source = PacedSource<Policy>;

/// The decisions of a RACCOOM source.
#[derive(Debug, Clone)]
pub struct Policy {
    config: Config,
    controller: SendController,
    /// The hosts that acknowledge to the source: the first router or, without routers, the receivers.
    children: Aggregator<ReceiverId>,
    target: Target,
    /// "R_a", in bit/s.
    accumulated: Rate,
    /// Highest packet acknowledged by all receivers, "AckSeq"; numbered from 1.
    acked: u64,
    /// "LastCut"; numbered from 1.
    last_cut: u64,
    /// Until this time, losses count as losses of the start-up.
    settles_until: Time,
    friendly: Friendly,
    probing: Probing,
    /// Time of the latest application of the control law.
    applied_at: Time,
    growth: Growth,
    timeout: Timeout,
    timeout_at: Time,
    /// With `Answers::Few`: number of consecutive timeouts. After `SILENCES` timeouts the source gives up the target.
    silences: u32,
    /// With `Answers::Few`: the target's newest round-trip time.
    newest_rtt: Span,
    members: usize,
    cuts: u64,
    tally: Tally,
}

/// Number of consecutive timeouts after which another target is selected.
const SILENCES: u32 = 2;
/// Number of round trips after the cut that ends a start-up. In this time, losses count as losses of the start-up.
const SETTLING: u64 = 2;
/// Minimum timeout, as the transmission time of this number of packets.
const PACKETS_OF_TIMEOUT: u64 = 2;
/// With `Answers::Few`: minimum and maximum interval between reports of a receiver other than the target, in seconds.
const TURNS: (f64, f64) = (0.02, 10.0);

impl Policy {
    /// Returns "E", in packets.
    fn wanted(&self, now: Time) -> f64 {
        match self.config.aim {
            Aim::Weighted => self.config.weight * self.config.queue,
            Aim::Friendly => self.friendly.queue(),
            Aim::Growing => {
                let shortest = self.target.shortest().unwrap_or_default();
                self.friendly.growing(
                    self.packets(self.controller.rate()) * shortest.as_secs_f64(),
                    self.rtt(),
                    now,
                )
            }
        }
    }

    /// Returns a rate in packets per second.
    fn packets(&self, rate: Rate) -> f64 {
        rate.bps() / (8.0 * f64::from(self.config.sending.packet_size))
    }

    fn rate_of(&self, packets: f64) -> Rate {
        let rate = Rate::from_bps(packets * 8.0 * f64::from(self.config.sending.packet_size));
        self.controller.config().bounds.clamp(rate)
    }

    fn restart_timer(&mut self, now: Time) {
        let waits = self.controller.next_seq().0 > self.acked && !self.controller.is_idle();
        let size = u64::from(self.config.sending.packet_size);
        let least = self.controller.pace().span_of(size) * PACKETS_OF_TIMEOUT;
        self.timeout_at = if waits { now + self.timeout.span().max(least) } else { Time::NEVER };
    }

    /// Starts the control law at the present rate.
    fn begin(&mut self, now: Time) {
        self.accumulated = self.controller.rate();
        self.applied_at = now;
        self.probing.restart(now);
    }

    /// Starts the control law; the initial rate is the rate at the end of the start-up.
    fn take_over(&mut self, now: Time) {
        self.begin(now);
        if self.config.aim == Aim::Growing {
            self.friendly.begin(now);
        }
        self.restart_timer(now);
    }

    /// Handles an acknowledgement of a receiver, router or designated receiver.
    fn on_newest(&mut self, from: ReceiverId, echo: Echo, mut reported: Aggregate, now: Time) {
        let sent = self.controller.next_seq().0;
        if reported.lost > sent {
            reported.lost = 0; // of a packet that has not left
        }
        let sample = reported.of.and_then(|_| self.controller.sample(echo, now));
        let starting = self.controller.is_starting();
        if let (Some(of), Some(sample)) = (reported.of, sample) {
            self.controller.on_alive(of.into(), sample, now);
        }
        if starting && !self.controller.is_starting() {
            self.take_over(now);
        }
        let news = match self.config.answers {
            Answers::All => self.children.on_report(from, reported, now),
            Answers::Few => self.of_few(reported, sample),
        };
        let Some(up) = news else { return };
        // The aggregate may be the report of another child. Then the sample is taken from the packet in that child's report.
        let sample = match self.config.answers {
            Answers::All => self.controller.sample(echo_of(&up), now).filter(|_| up.of.is_some()),
            Answers::Few => sample,
        };
        self.on_news(up, sample, now);
    }

    /// With `Answers::Few`: returns the aggregate if its report is from the target or from a new target, or if it contains a new
    /// loss.
    fn of_few(&mut self, reported: Aggregate, sample: Option<Span>) -> Option<Aggregate> {
        let farther = sample.is_some_and(|sample| sample > self.newest_rtt.scaled(self.config.hysteresis));
        let is_target = self.target.id().is_none() || reported.of == self.target.id() || farther;
        if is_target && reported.of.is_some() {
            self.newest_rtt = sample.unwrap_or(self.newest_rtt);
            return Some(reported);
        }
        (reported.lost > self.last_cut).then_some(Aggregate { newest: 0, of: None, ..reported })
    }

    fn on_news(&mut self, up: Aggregate, sample: Option<Span>, now: Time) {
        let moved = up.of.is_some() && (up.newest > self.acked || up.of != self.target.id());
        let progress = up.newest > self.acked;
        self.acked = self.acked.max(up.newest);
        if let (Some(of), Some(sample), true) = (up.of, sample, moved) {
            self.target.sample(of, sample, now);
            self.timeout.sample(sample);
        }
        if progress {
            self.timeout.end_back_off();
            self.silences = 0;
            self.restart_timer(now);
        }
        if now < self.settles_until {
            // Packets sent directly after the cut met the queue that the start-up had filled.
            self.last_cut = self.last_cut.max(up.lost);
        }
        if up.lost > self.last_cut {
            self.on_loss(up.lost, now);
        } else if let (Some(sample), true) = (sample, moved) {
            self.on_acknowledged(sample, now);
        }
    }

    fn on_loss(&mut self, lost: u64, now: Time) {
        self.tally.indications += 1;
        if self.controller.is_of_interruption(crate::packet::Seq(lost - 1)) {
            return;
        }
        self.tally.events += 1;
        self.tally.followed += 1;
        self.cut(now);
    }

    /// Performs a cut (figure 3.4, lines 3 to 5).
    fn cut(&mut self, now: Time) {
        let starting = self.controller.is_starting();
        if starting {
            self.controller.end_start_up();
            self.take_over(now);
            self.settles_until = now + self.rtt() * SETTLING;
        }
        let rate = self.controller.rate();
        if let Some(shortest) = self.target.shortest().filter(|_| !starting) {
            let expected = self.packets(rate) * shortest.as_secs_f64();
            self.friendly.on_cut(expected, self.rtt(), now);
        }
        self.cuts += 1;
        self.accumulated = self.controller.config().bounds.clamp(self.accumulated * 0.5);
        self.controller.set_rate(rate * 0.5, now);
        self.last_cut = self.controller.next_seq().0;
        self.applied_at = now;
        self.probing.restart(now);
    }

    /// Applies the control law (figure 3.3) after an acknowledgement without a loss.
    fn on_acknowledged(&mut self, rtt: Span, now: Time) {
        let Some(shortest) = self.target.shortest() else { return };
        if self.controller.is_starting() {
            return;
        }
        match self.probing.sample(rtt, shortest, now) {
            ProbeAction::No => {}
            ProbeAction::Begins => {
                return self.controller.set_rate(self.accumulated * self.config.probe_part, now);
            }
            ProbeAction::Lasts => return,
            ProbeAction::Over(seen) => {
                self.target.set_shortest(seen.unwrap_or(shortest), now);
                self.applied_at = now;
                return self.controller.set_rate(self.accumulated, now);
            }
        }
        let seen = AckMeasurements {
            outstanding: self.controller.next_seq().0.saturating_sub(self.acked) as f64,
            wanted: self.wanted(now),
            shortest: shortest.max(self.config.sending.min_rtt),
            rtt: rtt.max(self.config.sending.min_rtt),
            passed: now.since(self.applied_at),
        };
        self.applied_at = now;
        let before = Rates {
            accumulated: self.packets(self.accumulated),
            sending: self.packets(self.controller.rate()),
        };
        let after = self.config.gains().apply(before, &seen);
        let (accumulated, sending) = (self.rate_of(after.accumulated), self.rate_of(after.sending));
        if self.growth == Growth::Frozen {
            // The rate must not grow. One exception: when a queue drains, the sending rate may return to the accumulated rate.
            let most = self.accumulated.max(self.controller.rate());
            self.accumulated = accumulated.min(self.accumulated);
            self.controller.set_rate(sending.min(most), now);
        } else {
            self.accumulated = accumulated;
            self.controller.set_rate(sending, now);
        }
    }

    /// Handles a missing acknowledgement.
    // Paper gap: figure 3.4 names the timeout and does not define it. Here it is TCP's (RFC 6298), and at least the time of two
    // packets.
    fn time_out(&mut self, now: Time) {
        self.timeout.back_off();
        self.silences += 1;
        if self.config.answers == Answers::Few
            && self.silences >= SILENCES
            && let Some(id) = self.target.id()
        {
            self.target.forget(id);
            self.newest_rtt = Span::ZERO;
        }
        // If the guard against silence is on, the guard itself lowers the rate and restores it.
        if self.config.sending.silent_group_guard == Guard::Off {
            self.cut(now);
        }
        self.restart_timer(now);
    }

    /// Returns the interval in seconds between two reports of a receiver other than the target.
    fn turns(&self) -> f32 {
        match self.config.answers {
            Answers::All => 0.0,
            Answers::Few => (self.members as f64 / self.config.others).clamp(TURNS.0, TURNS.1) as f32,
        }
    }

    fn mark(&self) -> Mark {
        if self.config.answers == Answers::All {
            return Mark::TARGET;
        }
        // Packets are numbered from 1 here, and this packet is not counted yet.
        let since_cut = match self.last_cut {
            0 => u16::MAX,
            cut => u16::try_from(self.controller.next_seq().0 - cut).unwrap_or(u16::MAX),
        };
        let rtt_max = self.controller.rtt_max().as_secs_f64() as f32;
        Mark::Target { id: self.target.id(), since_cut, rtt_max, every: self.turns() }
    }
}

/// Returns the echo of an aggregate's packet.
fn echo_of(up: &Aggregate) -> Echo {
    *up.content().echo_mut()
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        Policy {
            controller: SendController::new(config.sending),
            children: Aggregator::new(),
            target: Target::new(config.table),
            accumulated: Rate::ZERO,
            acked: 0,
            last_cut: 0,
            settles_until: Time::ZERO,
            friendly: Friendly::new(config.queue),
            probing: Probing::new(config.probe),
            applied_at: Time::ZERO,
            growth: Growth::Allowed,
            timeout: Timeout::new(config.min_rto, config.first_rto, config.max_rto),
            timeout_at: Time::NEVER,
            silences: 0,
            newest_rtt: Span::ZERO,
            members: 0,
            cuts: 0,
            tally: Tally::default(),
            config,
        }
    }

    fn controller(&self) -> &SendController {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut SendController {
        &mut self.controller
    }

    fn rtt(&self) -> Span {
        self.controller.rtt_or_max(self.timeout.smoothed())
    }

    fn stamp(&mut self, _size: u16, _now: Time) -> (Signal, Mark) {
        (Signal::None, self.mark())
    }

    fn on_departed(&mut self, now: Time) {
        if self.controller.is_running() && self.timeout_at.is_never() && !self.controller.is_starting() {
            self.restart_timer(now);
        }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        if let Some(reported) = Aggregate::reported_by(&report.content) {
            self.on_newest(report.from, report.content.echo(), reported, cx.now);
        }
    }

    /// Updates the guards once per round-trip time.
    fn on_tick(&mut self, rtt: Span, now: Time) {
        let starting = self.controller.is_starting();
        let before = self.controller.rate();
        self.growth = self.controller.watch(rtt, now);
        let after = self.controller.rate();
        if !starting && !self.controller.is_starting() && after.bps() < before.bps() {
            // The guard against silence or against idleness has lowered the rate.
            self.accumulated = self.accumulated * (after.bps() / before.bps());
        }
    }

    fn forget(&mut self, receiver: ReceiverId, now: Time) {
        if let Some(id) = ShortId::of(receiver) {
            self.target.forget(id);
        }
        if let Some(up) = self.children.leave(receiver) {
            let sample = self.controller.sample(echo_of(&up), now);
            self.on_news(up, sample, now);
        }
        self.newest_rtt = self.target.id().map_or(Span::ZERO, |_| self.newest_rtt);
    }

    fn on_start_again(&mut self, now: Time) {
        self.children = Aggregator::new();
        self.target = Target::new(self.config.table);
        self.timeout.forget();
        self.friendly = Friendly::new(self.config.queue);
        self.newest_rtt = Span::ZERO;
        self.last_cut = self.controller.next_seq().0;
        self.acked = self.acked.max(self.last_cut);
        self.timeout_at = Time::NEVER;
        if !self.controller.is_starting() {
            self.take_over(now);
        }
    }

    fn observe(&self, seen: Observation) -> Observation {
        let limiting = self.target.id().map(ReceiverId::from);
        Observation { limiting, cuts: self.cuts, tally: self.tally, ..seen }
    }

    fn on_start(&mut self, now: Time) {
        if let (Start::Linear, Some(first)) = (self.config.sending.start, self.config.first_rate) {
            self.controller.set_rate(first, now);
        }
        // Earlier packets were probes.
        self.last_cut = self.controller.next_seq().0;
        self.acked = self.last_cut;
        self.begin(now);
    }

    fn on_resume(&mut self, _pause: Span, now: Time) {
        self.begin(now);
    }

    fn on_started(&mut self, now: Time) {
        self.take_over(now);
    }

    fn deadline(&self) -> Time {
        if self.controller.is_starting() { Time::NEVER } else { self.timeout_at }
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.deadline() {
            self.time_out(now);
        }
    }

    fn on_idle(&mut self) {
        self.timeout_at = Time::NEVER;
    }

    fn control(&mut self, control: SourceControl, _now: Time) {
        match control {
            SourceControl::Members(members) => self.members = members,
            SourceControl::Limits(bounds) => self.accumulated = bounds.clamp(self.accumulated),
            SourceControl::Forget(_) | SourceControl::StartAgain | SourceControl::SignOfLife => {}
        }
    }
}

#[cfg(test)]
impl Source {
    /// Returns "R_a", "LastCut" and "E".
    pub(super) fn inside(&self) -> (Rate, u64, f64) {
        (self.policy.accumulated, self.policy.last_cut, self.policy.wanted(self.policy.applied_at))
    }

    /// Returns "RTT_min".
    pub(super) fn shortest(&self) -> Option<Span> {
        self.policy.target.shortest()
    }
}
