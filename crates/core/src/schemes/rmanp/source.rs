//! RMANP's source: grows with what all have acknowledged, goes down to what congestion indications say (seed 003, 2.3 and 2.4).

use super::config::{Answers, Config, Repair};
use super::exclusion::LowRates;
use super::fusion::{Fusion, newest_of};
use crate::node::{Cx, Departure, Effect, Observation, SourceControl, Stamp, Tally, To};
use crate::packet::{
    Body, Cause, Data, Flags, Layer, Mark, Packet, Payload, ReceiverId, Report, ReportContent, Seq,
    SessionId, ShortId, Signal,
};
use crate::rate::bounds::Guard;
use crate::rate::{Growth, SendController, Start};
use crate::schemes::pgmcc;
use crate::schemes::pgmcc::timeout::Timeout;
use crate::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// The source of an RMANP session.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    controller: SendController,
    /// What acknowledges: the first active routers, or receivers themselves.
    children: Fusion<ReceiverId>,
    /// All have the packets below this one.
    acked: u64,
    /// Packets that are to be sent again, in the order in which they were asked for.
    again: VecDeque<u64>,
    /// What was sent again lately, and when.
    repeated: VecDeque<(u64, Time)>,
    timeout: Timeout,
    timeout_at: Time,
    growth: Growth,
    low: LowRates,
    excluded: Option<(ShortId, Time)>,
    limiting: Option<ReceiverId>,
    members: usize,
    tick_at: Time,
    expire_at: Time,
    cuts: u64,
    tally: Tally,
}

/// So many children are told apart; beyond, the one that was silent longest is forgotten.
const MOST_CHILDREN: usize = 4096;
/// So many packets wait to be sent again, and so many that were are remembered.
const MOST_AGAIN: usize = 100;
/// A time-out is no shorter than so many packets take.
const PACKETS_OF_TIMEOUT: u64 = 2;
/// Where few answer, each does so no more often and no less often than this, in seconds.
const TURNS: (f64, f64) = (0.02, 10.0);
/// So many turns may fail until a child is silent, or acknowledgements are late.
const MISSED_TURNS: f64 = 3.0;
/// Packets name who is excluded for so long, so that one of them comes to it.
const EXCLUDED_FOR: Span = Span::from_secs(10);
/// Children are looked at so often.
const LOOK: Span = Span::from_secs(1);

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        Source {
            controller: SendController::new(config.sending),
            children: Fusion::new(),
            acked: 0,
            again: VecDeque::new(),
            repeated: VecDeque::new(),
            timeout: new_timeout(&config),
            timeout_at: Time::NEVER,
            growth: Growth::Allowed,
            low: LowRates::default(),
            excluded: None,
            limiting: None,
            members: 0,
            tick_at: Time::NEVER,
            expire_at: Time::ZERO,
            cuts: 0,
            tally: Tally::default(),
            config,
        }
    }

    /// Round-trip time until all have acknowledged; before there is a sample, the assumed one.
    fn rtt(&self) -> Span {
        let sending = &self.config.sending;
        self.timeout.smoothed().unwrap_or(self.controller.rtt_max()).max(sending.shortest_rtt)
    }

    /// How often each receiver acknowledges, in seconds.
    fn turns(&self) -> f64 {
        match self.config.answers {
            Answers::All => 0.0,
            Answers::Few => (self.members as f64 / self.config.answers_per_second).clamp(TURNS.0, TURNS.1),
        }
    }

    /// The same with what may go wrong.
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
        self.controller.next_seq().0 > self.acked && !self.is_idle()
    }

    /// Whether there is nothing to be done. Where the source repairs, the last packets and a closed window are waited for.
    fn is_idle(&self) -> bool {
        let is_done = self.config.repair == Repair::Session || self.acked >= self.controller.next_seq().0;
        is_done && self.controller.is_idle()
    }

    fn restart_timer(&mut self, now: Time) {
        let least = self.controller.pace().span_of(self.size()) * PACKETS_OF_TIMEOUT + self.some_turns();
        let waits = self.waits_for_acks() && !self.controller.is_starting();
        self.timeout_at = if waits { now + self.timeout.span().max(least) } else { Time::NEVER };
    }

    /// All have these packets more.
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
        if !self.children.knows(report.from) && self.children.len() >= MOST_CHILDREN {
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

    /// Somebody misses packets.
    fn on_missing(&mut self, first: Seq, count: u16, now: Time) {
        if self.config.repair == Repair::Session {
            return;
        }
        let end = first.0.saturating_add(count.into()).min(self.controller.next_seq().0);
        let begin = first.0.max(end.saturating_sub(MOST_AGAIN as u64));
        let lately = self.rtt().min(super::requests::RETRY);
        while self.repeated.front().is_some_and(|(_, at)| now.since(*at) >= lately) {
            self.repeated.pop_front();
        }
        for seq in begin..end {
            let is_on_its_way = self.repeated.iter().any(|(other, _)| *other == seq);
            if !is_on_its_way && self.again.len() < MOST_AGAIN && !self.again.contains(&seq) {
                self.again.push_back(seq);
            }
        }
    }

    /// A packet leaves again, in place of the next new one.
    fn repeat(&mut self, cx: &mut Cx<'_>) {
        let Some(seq) = self.again.pop_front() else { return };
        if self.repeated.len() >= MOST_AGAIN {
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
        self.controller.hold_until(cx.now + self.controller.pace().span_of(self.size()));
    }

    /// A congestion indication says what rate would have been right.
    fn on_indication(&mut self, report: &Report, level: f32, now: Time) {
        let (from, seq) = (report.from, report.content.echo().seq);
        // What is lost behind a router is that one's matter.
        let is_loss = matches!(report.content, ReportContent::Congested { cause: Cause::Loss, .. });
        self.tally.indications += 1;
        let asked = Rate::from_bps(f64::from(level));
        if !level.is_finite() || level < 0.0 || self.controller.is_of_interruption(seq) {
            return;
        }
        if asked.bps() < self.config.least.bps()
            && is_loss
            && let Some(rule) = self.config.exclusion()
            && self.low.on_low(from, rule, now)
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

    /// Another rate, lower than the present one but not below the least.
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

    /// No acknowledgement came in time (seed 003, 2.2).
    // Seed gap: the time-out is named, and neither its length nor the reaction is defined: it is TCP's (RFC 6298), at least a second, and
    // the reaction is that to a congestion indication.
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

    /// Once per round-trip time: see to guards.
    fn tick(&mut self, now: Time) {
        let rtt = self.rtt();
        let next = self.tick_at + rtt;
        self.tick_at = if next > now { next } else { now + rtt };
        self.growth = self.controller.watch(rtt, now);
        if now >= self.expire_at {
            self.expire_at = now + LOOK;
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

    fn start_again(&mut self, now: Time) {
        self.controller.start_again(now);
        self.children = Fusion::new();
        self.acked = self.controller.next_seq().0;
        (self.again, self.repeated) = (VecDeque::new(), VecDeque::new());
        self.timeout = new_timeout(&self.config);
        self.tick_at = now + self.rtt();
        self.limiting = None;
        self.timeout_at = Time::NEVER;
    }

    /// Whether as much is out as the caches on the way can keep.
    fn is_full(&self) -> bool {
        let out = self.controller.next_seq().0.saturating_sub(self.acked);
        self.config.outstanding.is_some_and(|most| out >= most.into()) && !self.children.is_empty()
    }
}

fn new_timeout(config: &Config) -> Timeout {
    Timeout::new(&pgmcc::Config {
        shortest_rto: config.shortest_rto,
        first_rto: config.first_rto,
        longest_rto: config.longest_rto,
        ..pgmcc::Config::published()
    })
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        if self.config.sending.start == Start::Linear {
            self.controller.set_rate(self.config.least, cx.now);
        }
        // What left before were probes.
        self.acked = self.controller.next_seq().0;
        self.tick_at = cx.now + self.rtt();
        self.expire_at = cx.now + LOOK;
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) if self.is_full() => Departure::AfterReport,
            // What is sent again goes first.
            Layer(0) if !self.again.is_empty() => Departure::AfterReport,
            Layer(0) => Departure::At(self.controller.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let now = cx.now;
        if self.controller.is_running() && self.controller.resume(now).is_some() {
            self.tick_at = now + self.rtt();
            self.restart_timer(now);
        }
        let mark = self.mark(now);
        let departed = self.controller.depart(size, self.rtt(), now);
        if self.controller.is_running() && self.timeout_at.is_never() {
            self.restart_timer(now);
        }
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal: Signal::None, mark }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        let echo = report.content.echo();
        if !self.controller.has_left(echo) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(echo.seq, now);
        let has_excluded =
            self.excluded.is_some_and(|(id, until)| now < until && ReceiverId::from(id) == from);
        if has_excluded && !matches!(report.content, ReportContent::Congested { cause: Cause::Leaving, .. }) {
            return;
        }
        match report.content {
            ReportContent::Selective { .. } => self.on_acknowledged(report, now),
            ReportContent::Lost { first, count, .. } => self.on_missing(first, count, now),
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.forget(from, now),
            ReportContent::Congested {
                level,
                cause: Cause::Loss | Cause::Accumulation | Cause::Mark,
                ..
            } => self.on_indication(report, level, now),
            ReportContent::Received { echo, rate, loss } => {
                let starting = self.controller.is_starting();
                let rate = Rate::from_bps(f64::from(rate));
                self.controller.on_received(from, echo, rate, loss, now);
                if let Some(sample) = self.controller.sample(echo, now) {
                    self.controller.on_alive(from, sample, now);
                }
                if starting && !self.controller.is_starting() {
                    self.restart_timer(now);
                }
            }
            ReportContent::Alive { echo }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                if let Some(sample) = self.controller.sample(echo, now) {
                    self.controller.on_alive(from, sample, now);
                }
            }
            _ => {} // this scheme's receivers do not say it
        }
        // A deadline is never now.
        if now >= self.controller.departure() {
            self.repeat(cx);
        }
    }

    fn deadline(&self) -> Time {
        if !self.controller.is_running() {
            return Time::NEVER;
        }
        let again = if self.again.is_empty() { Time::NEVER } else { self.controller.departure() };
        if self.is_idle() {
            return self.tick_at.min(again);
        }
        self.tick_at.min(self.controller.deadline()).min(self.timeout_at).min(again)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            self.tick(now);
        }
        if self.is_idle() {
            self.timeout_at = Time::NEVER;
            self.tick_at = self.controller.rest_until(self.tick_at);
        } else {
            let starting = self.controller.is_starting();
            self.controller.on_deadline(now);
            if starting && !self.controller.is_starting() {
                self.restart_timer(now);
            }
            if now >= self.timeout_at {
                self.time_out(now);
            }
        }
        if now >= self.controller.departure() {
            self.repeat(cx);
        }
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.forget(receiver, now),
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Members(members) => self.members = members,
            SourceControl::Limits(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.rtt(),
            limiting: self.limiting,
            level: None,
            rtt_max: self.controller.rtt_max(),
            cuts: self.cuts,
            tally: self.tally,
            starting: self.controller.is_starting(),
        }
    }
}

#[cfg(test)]
impl Source {
    /// Packets that all have, and those that are to be sent again.
    pub(super) fn inside(&self) -> (u64, usize) {
        (self.acked, self.again.len())
    }
}
