//! RMANP's source: its rate grows with packets that all receivers have acknowledged, and falls to the rate of congestion
//! indications (paper 003, 2.3 and 2.4).

use super::config::{Answers, Config, Repair};
use super::exclusion::LowRates;
use super::fusion::{Fusion, newest_of};
use crate::bounds::Guard;
use crate::node::{Cx, Effect, Observation, SourceControl, Tally, To};
use crate::packet::{
    Body, Cause, Data, Flags, Layer, Mark, Packet, Payload, ReceiverId, Report, ReportContent, Seq,
    SessionId, ShortId, Signal,
};
use crate::rate::{Growth, SendController, Start};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::schemes::pgmcc::timeout::Timeout;
use crate::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// The source of an RMANP session.
pub type Source = PacedSource<Policy>;

/// The decisions of an RMANP source.
#[derive(Debug, Clone)]
pub struct Policy {
    config: Config,
    controller: SendController,
    /// The children that acknowledge packets: active routers, or receivers.
    children: Fusion<ReceiverId>,
    /// Number below which all children have all packets.
    acked: u64,
    /// Packets to be repeated, in the order of their requests.
    again: VecDeque<u64>,
    /// Recently repeated packets, with the times of repetition.
    repeated: VecDeque<(u64, Time)>,
    timeout: Timeout,
    timeout_at: Time,
    growth: Growth,
    low: LowRates,
    excluded: Option<(ShortId, Time)>,
    limiting: Option<ReceiverId>,
    members: usize,
    expire_at: Time,
    cuts: u64,
    tally: Tally,
}

/// Maximum number of children; beyond it, the child with the longest silence is removed.
const MAX_CHILDREN: usize = 4096;
/// Maximum number of packets that wait to be repeated; also of stored packets that were repeated recently.
const MAX_AGAIN: usize = 100;
/// With limited feedback: bounds of the interval between two acknowledgements of a receiver, in seconds.
const TURNS: (f64, f64) = (0.02, 10.0);
/// After this number of missed acknowledgement intervals, a child counts as silent and acknowledgements count as late.
const MISSED_TURNS: f64 = 3.0;
/// Duration for which packets name an excluded receiver, in case some of them are lost.
const EXCLUDED_FOR: Span = Span::from_secs(10);
/// Interval of the check for silent children.
const LOOK: Span = Span::from_secs(1);

impl Policy {
    /// Returns the interval between acknowledgements of each receiver, in seconds.
    fn turns(&self) -> f64 {
        match self.config.answers {
            Answers::All => 0.0,
            Answers::Few => (self.members as f64 / self.config.answers_per_second).clamp(TURNS.0, TURNS.1),
        }
    }

    /// Returns the time after which acknowledgements are late.
    fn some_turns(&self) -> Span {
        Span::from_secs_f64(self.turns() * MISSED_TURNS)
    }

    fn mark(&self, now: Time) -> Mark {
        let rtt_max = match self.config.answers {
            Answers::All => 0.0,
            Answers::Few => self.controller.rtt_max().as_secs_f64() as f32,
        };
        let excluded = self.excluded.filter(|(_, until)| now < *until).map(|(id, _)| id);
        Mark::Floor { least: self.config.least.bps() as f32, rtt_max, every: self.turns() as f32, excluded }
    }

    fn size(&self) -> u64 {
        u64::from(self.config.sending.packet_size)
    }

    fn waits_for_acks(&self) -> bool {
        self.controller.next_seq().0 > self.acked && !self.is_at_rest()
    }

    /// Returns whether the application has nothing to send. If the source repairs losses, all packets must be acknowledged, too.
    fn is_at_rest(&self) -> bool {
        let is_done = self.config.repair == Repair::Session || self.acked >= self.controller.next_seq().0;
        is_done && self.controller.is_idle()
    }

    fn restart_timer(&mut self, now: Time) {
        // An acknowledgement is late when the next packet, too, should have been acknowledged.
        let packets = u64::from(self.config.together) + 1;
        let least = self.controller.pace().span_of(self.size()) * packets + self.some_turns();
        let waits = self.waits_for_acks() && !self.controller.is_starting();
        self.timeout_at = if waits { now + self.timeout.span().max(least) } else { Time::NEVER };
    }

    /// Raises the rate for the packets that all children have acknowledged since the previous call.
    fn on_progress(&mut self, now: Time) {
        let Some(least) = self.children.least().filter(|least| *least > self.acked) else { return };
        let count = least - self.acked;
        self.acked = least;
        self.timeout.end_back_off();
        if self.growth == Growth::Allowed && !self.controller.is_starting() {
            let step = self.config.least * (self.config.increase * count as f64);
            self.controller.set_rate(self.controller.rate() + step, now);
        }
        self.restart_timer(now);
    }

    fn on_acknowledged(&mut self, report: &Report, now: Time) {
        let Some(acked) = newest_of(&report.content) else { return };
        let before = self.acked;
        if !self.children.knows(report.from) && self.children.len() >= MAX_CHILDREN {
            self.children.forget_oldest();
        }
        self.children.on_ack(report.from, acked, now);
        let starting = self.controller.is_starting();
        if let Some(sample) = self.controller.sample(report.content.echo(), now) {
            self.controller.on_alive(report.from, sample, now);
            if self.children.least().is_some_and(|least| least > before) {
                self.timeout.sample(sample);
            }
        }
        if starting && !self.controller.is_starting() {
            self.restart_timer(now);
        }
        self.on_progress(now);
    }

    /// Schedules the repetition of packets that a receiver has reported as missing.
    fn on_missing(&mut self, first: Seq, count: u16, now: Time) {
        if self.config.repair == Repair::Session {
            return;
        }
        let end = first.0.saturating_add(count.into()).min(self.controller.next_seq().0);
        let begin = first.0.max(end.saturating_sub(MAX_AGAIN as u64));
        let lately = self.rtt().min(super::requests::RETRY);
        while self.repeated.front().is_some_and(|(_, at)| now.since(*at) >= lately) {
            self.repeated.pop_front();
        }
        for seq in begin..end {
            let is_on_its_way = self.repeated.iter().any(|(other, _)| *other == seq);
            if !is_on_its_way && self.again.len() < MAX_AGAIN && !self.again.contains(&seq) {
                self.again.push_back(seq);
            }
        }
    }

    /// Repeats a packet in place of the next new packet.
    fn repeat(&mut self, cx: &mut Cx<'_>) {
        let Some(seq) = self.again.pop_front() else { return };
        if self.repeated.len() >= MAX_AGAIN {
            self.repeated.pop_front();
        }
        self.repeated.push_back((seq, cx.now));
        let size = self.config.sending.packet_size;
        let data = Data {
            seq: Seq(seq),
            sent_at: self.controller.sent_at(Seq(seq)).unwrap_or(cx.now),
            rate: self.controller.pace().bps() as f32,
            payload: Payload::NONE,
            flags: Flags::REPAIR,
            signal: Signal::None,
            mark: self.mark(cx.now),
        };
        let packet = Packet { session: SessionId(0), layer: Layer(0), size, body: Body::Data(data) };
        cx.effects.push(Effect::Send { to: To::Group, packet });
        self.controller.hold_until(cx.now + self.controller.pace().span_of(self.size()), cx.now);
    }

    /// Lowers the rate to the rate of a congestion indication, or excludes the receiver that sent the indication.
    fn on_indication(&mut self, report: &Report, level: f32, now: Time) {
        let (from, seq) = (report.from, report.content.echo().seq);
        // A loss behind a router is handled by that router.
        let is_loss = matches!(report.content, ReportContent::Congested { cause: Cause::Loss, .. });
        self.tally.indications += 1;
        let asked = Rate::from_bps(f64::from(level));
        if !level.is_finite() || level < 0.0 || self.controller.is_of_interruption(seq) {
            return;
        }
        if asked.bps() < self.config.least.bps()
            && is_loss
            && let Some(rule) = self.config.exclusion()
            && self.low.on_low(from, self.children.acked(from).unwrap_or(0), rule, now)
        {
            self.excluded = ShortId::of(from).map(|id| (id, now + EXCLUDED_FOR));
            return self.forget(from, now);
        }
        self.tally.events += 1;
        if asked.bps() < self.controller.rate().bps() {
            self.limiting = Some(from);
            self.cut(asked, now);
        }
    }

    /// Lowers the rate, but not below the least rate.
    fn cut(&mut self, to: Rate, now: Time) {
        if self.controller.is_starting() {
            self.controller.end_start_up();
        }
        let before = self.controller.rate();
        let rate = Rate::from_bps(to.bps().max(self.config.least.bps()).min(before.bps()));
        if rate.bps() < before.bps() {
            self.tally.followed += 1;
            self.cuts += 1;
            self.controller.set_rate(rate, now);
        }
        if self.timeout_at.is_never() {
            self.restart_timer(now);
        }
    }

    /// Responds to the acknowledgement timeout (paper 003, 2.2).
    // Paper gap: the paper names the timeout, but defines neither its duration nor the response. Here the duration is TCP's (RFC
    // 6298), at least a second, and the response is that to a congestion indication.
    fn time_out(&mut self, now: Time) {
        self.timeout.back_off();
        if self.config.sending.silent_group_guard == Guard::Off {
            self.cut(self.controller.rate() * self.config.decrease, now);
        }
        let (first, next) = (Seq(self.acked), self.controller.next_seq());
        if first < next {
            self.on_missing(first, 1, now);
        }
        self.restart_timer(now);
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        Policy {
            controller: SendController::new(config.sending),
            children: Fusion::new(),
            acked: 0,
            again: VecDeque::new(),
            repeated: VecDeque::new(),
            timeout: Timeout::new(config.min_rto, config.first_rto, config.max_rto),
            timeout_at: Time::NEVER,
            growth: Growth::Allowed,
            low: LowRates::default(),
            excluded: None,
            limiting: None,
            members: 0,
            expire_at: Time::ZERO,
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

    /// Returns the time from sending a packet until all children have acknowledged it; before the first sample, the assumed
    /// round-trip time.
    fn rtt(&self) -> Span {
        self.controller.rtt_or_max(self.timeout.smoothed())
    }

    fn on_start(&mut self, now: Time) {
        if self.config.sending.start == Start::Linear {
            self.controller.set_rate(self.config.least, now);
        }
        // Earlier packets were probes.
        self.acked = self.controller.next_seq().0;
        self.expire_at = now + LOOK;
    }

    /// Returns whether new packets must wait: the maximum number of unacknowledged packets is reached, or a repetition is
    /// pending.
    fn awaits_report(&self) -> bool {
        let out = self.controller.next_seq().0.saturating_sub(self.acked);
        let is_full = self.config.outstanding.is_some_and(|most| out >= most.into());
        (is_full && !self.children.is_empty()) || !self.again.is_empty()
    }

    fn is_idle(&self) -> bool {
        self.is_at_rest() && self.again.is_empty()
    }

    fn accepts(&self, from: ReceiverId, now: Time) -> bool {
        self.excluded.is_none_or(|(id, until)| now >= until || ReceiverId::from(id) != from)
    }

    fn stamp(&mut self, _size: u16, now: Time) -> (Signal, Mark) {
        (Signal::None, self.mark(now))
    }

    fn on_departed(&mut self, now: Time) {
        if self.controller.is_running() && self.timeout_at.is_never() {
            self.restart_timer(now);
        }
    }

    fn on_resume(&mut self, _pause: Span, now: Time) {
        self.restart_timer(now);
    }

    fn on_started(&mut self, now: Time) {
        self.restart_timer(now);
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match report.content {
            ReportContent::Selective { .. } => self.on_acknowledged(report, cx.now),
            ReportContent::Lost { first, count, .. } => self.on_missing(first, count, cx.now),
            ReportContent::Congested { level, .. } => self.on_indication(report, level, cx.now),
            _ => {} // this scheme's receivers do not send it
        }
    }

    /// Checks the guards once per round-trip time, and removes silent children.
    fn on_tick(&mut self, rtt: Span, now: Time) {
        self.growth = self.controller.watch(rtt, now);
        if now >= self.expire_at {
            self.expire_at = now + LOOK;
            if self.is_at_rest() {
                self.low.clear(); // a source without data does not show which rate a receiver can have
            }
            let silence = self.config.silence.max(self.some_turns());
            if now > Time::ZERO + silence && self.children.expire(now - silence) {
                self.on_progress(now);
            }
        }
    }

    fn forget(&mut self, receiver: ReceiverId, now: Time) {
        self.children.leave(receiver);
        if self.limiting == Some(receiver) {
            self.limiting = None;
        }
        self.on_progress(now);
    }

    fn on_start_again(&mut self, _now: Time) {
        self.children = Fusion::new();
        self.acked = self.controller.next_seq().0;
        (self.again, self.repeated) = (VecDeque::new(), VecDeque::new());
        self.timeout.forget();
        self.limiting = None;
        self.timeout_at = Time::NEVER;
    }

    fn deadline(&self) -> Time {
        let again = if self.again.is_empty() { Time::NEVER } else { self.controller.departure() };
        self.timeout_at.min(again)
    }

    fn on_deadline(&mut self, now: Time) {
        if now >= self.timeout_at {
            self.time_out(now);
        }
    }

    fn on_idle(&mut self) {
        self.timeout_at = Time::NEVER;
    }

    /// Repeats a pending packet at once if it may be sent now, because a deadline must be in the future.
    fn finish(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.controller.departure() {
            self.repeat(cx);
        }
    }

    fn control(&mut self, control: SourceControl, _now: Time) {
        if let SourceControl::Members(members) = control {
            self.members = members;
        }
    }

    fn observe(&self, seen: Observation) -> Observation {
        Observation { limiting: self.limiting, cuts: self.cuts, tally: self.tally, ..seen }
    }
}

#[cfg(test)]
impl Source {
    /// Returns the number below which all children have all packets, and the number of pending repetitions.
    pub(super) fn inside(&self) -> (u64, usize) {
        (self.policy.acked, self.policy.again.len())
    }
}
