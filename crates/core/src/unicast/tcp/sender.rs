//! The sending end: what all variants share, and the loss recovery of Tahoe, Reno and NewReno.

use super::config::{Config, Counting, CwrOn, Halving, Handshake, Idle, Inflation, Samples, Switch, Variant};
use super::rto::RoundTrip;
use super::sack::Board;
use super::vegas::Rounds;
use crate::node::{Cx, Departure};
use crate::time::{Rate, Span, Time};
use crate::unicast::{Ack, Feedback, Segment, SegmentFlags, SenderView};

/// Duplicate acknowledgements that mean a loss (RFC 5681, 3.2).
pub(super) const DUPLICATES: u32 = 3;

/// No packet waits in [`Sender::urgent`].
const NONE: u32 = u32::MAX;

/// How far the connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    /// The SYN may leave.
    SynReady,
    SynSent,
    Open,
}

/// The latest reaction to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    None,
    FastRetransmit,
    /// A fast recovery that is over.
    Recovered,
    Echo,
    Timeout,
}

/// Why a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is sent again whatever the window says.
    Urgent,
    /// The window has room.
    Window,
}

/// A TCP sender.
#[derive(Debug, Clone)]
pub struct Sender {
    /// Oldest packet not acknowledged.
    pub(super) una: u32,
    /// Next packet in order.
    pub(super) nxt: u32,
    /// Highest packet sent, plus 1.
    pub(super) max: u32,
    /// New packets below this may leave.
    pub(super) limit: u32,
    /// The application's packets are below this.
    pub(super) supply: u32,
    /// So many packets may still leave on this acknowledgement.
    budget: u32,
    /// A packet that leaves at once, whatever the window says.
    pub(super) urgent: u32,
    /// [`Sender::max`] at the latest loss; fast retransmit again only beyond it. 0: no loss yet.
    pub(super) recover: u32,
    pub(super) duplicates: u32,
    /// Packets that duplicate acknowledgements add to the window.
    inflation: u32,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Not before this may a window that has opened be used.
    release: Time,
    /// When the retransmission timer runs out.
    timer: Time,
    timed_at: Time,
    timed: u32,
    timing: bool,
    phase: Phase,
    pub(super) reaction: Reaction,
    /// CWR is to be said.
    say_cwr: bool,
    /// An echo came while the window was one packet.
    echo_at_one: bool,
    /// The timer was restarted in this recovery (NewReno, "Impatient"; RFC 6582, 4).
    partial_seen: bool,
    pub(super) rtt: RoundTrip,
    initial_window: u32,
    again: u32,
    sent: u64,
    pub(super) cuts: u32,
    timeouts: u32,
    pub(super) sack: Option<Box<Board>>,
    pub(super) vegas: Option<Box<Rounds>>,
    pub(super) config: Config,
}

const _: () = assert!(size_of::<Sender>() <= 320);

impl Sender {
    /// A closed connection.
    pub fn new(config: Config) -> Sender {
        let syn = config.handshake == Handshake::Syn;
        Sender {
            una: 0,
            nxt: 0,
            max: 0,
            limit: 0,
            supply: 0,
            budget: 0,
            urgent: NONE,
            recover: 0,
            duplicates: 0,
            inflation: 0,
            cwnd: if syn { 1.0 } else { f64::from(config.initial_window) },
            ssthresh: f64::from(config.receiver_window),
            release: if config.jitter == Span::ZERO { Time::ZERO } else { Time::NEVER },
            timer: Time::NEVER,
            timed_at: Time::ZERO,
            timed: 0,
            timing: false,
            phase: Phase::Closed,
            reaction: Reaction::None,
            say_cwr: false,
            echo_at_one: false,
            partial_seen: false,
            rtt: RoundTrip::new(&config),
            initial_window: config.initial_window,
            again: 0,
            sent: 0,
            cuts: 0,
            timeouts: 0,
            sack: (config.variant == Variant::Sack).then(Box::default),
            vegas: (config.variant == Variant::Vegas).then(Box::default),
            config,
        }
    }

    /// New packets that may leave, the application permitting: the end of the range.
    #[inline]
    fn open_to(&self) -> u32 {
        if self.budget == 0 { self.nxt } else { self.limit.min(self.supply) }
    }

    /// After every call that may have moved the window.
    #[inline]
    fn plan(&mut self, cx: &mut Cx<'_>) {
        let window = (self.cwnd as u32).saturating_add(self.inflation).min(self.config.receiver_window);
        self.limit = self.una.saturating_add(window);
        self.budget = self.config.max_burst;
        if self.duplicates > 0 {
            self.plan_amid_duplicates();
        }
        if self.config.jitter > Span::ZERO && self.release.is_never() && self.nxt < self.open_to() {
            self.release = cx.now + self.config.jitter.scaled(cx.rng.unit());
        }
    }

    fn plan_amid_duplicates(&mut self) {
        let few = self.duplicates < DUPLICATES;
        match self.config.variant {
            Variant::Vegas => return,
            // Two new packets at most for every duplicate (ns-2's NewReno).
            Variant::NewReno if !few => self.budget = self.budget.min(2),
            _ => {}
        }
        if few && self.config.limited_transmit == Switch::On {
            let end = self.una.saturating_add(self.config.receiver_window);
            self.limit = self.limit.saturating_add(self.duplicates).min(end);
            let waits = self.config.jitter > Span::ZERO && self.urgent == NONE;
            if waits && self.una < self.nxt && self.nxt < self.open_to() {
                self.urgent = self.nxt; // no window has opened: nothing to wait for
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let now = cx.now;
        match self.phase {
            Phase::Open if ack.next <= self.max => {}
            Phase::SynSent | Phase::SynReady if ack.syn && ack.next == 0 => {
                self.open(now);
                return self.plan(cx);
            }
            _ => return,
        }
        let echo = ack.ece && self.config.ecn == Switch::On;
        if echo {
            self.on_echo(ack.next);
        }
        match self.config.variant {
            Variant::Sack => self.on_sack(ack, echo, now),
            Variant::Vegas => self.on_vegas(ack, echo, now),
            _ if ack.next > self.una => self.on_advance(ack, echo, now),
            _ if ack.next == self.una && !ack.syn => self.on_duplicate(now),
            _ => return,
        }
        if !echo {
            self.echo_at_one = false;
        }
        self.plan(cx);
        if self.sack.is_some() {
            self.plan_recovery();
        }
    }

    /// The SYN was acknowledged.
    fn open(&mut self, now: Time) {
        self.phase = Phase::Open;
        if self.timing {
            self.timing = false;
            self.rtt.end_backoff(&self.config);
            self.rtt.sample(self.timed_at, now, &self.config);
        }
        self.cwnd = f64::from(self.initial_window);
        self.restart_timer(now);
    }

    /// New data was acknowledged: Tahoe, Reno and NewReno.
    #[inline]
    fn on_advance(&mut self, ack: &Ack, echo: bool, now: Time) {
        if self.inflation > 0 || self.reaction == Reaction::FastRetransmit {
            let in_recovery = self.reaction == Reaction::FastRetransmit;
            if self.config.variant == Variant::NewReno && in_recovery && ack.next < self.recover {
                return self.on_partial(ack.next, now);
            }
            self.leave_recovery(ack.next);
        }
        self.partial_seen = false;
        let newly = ack.next - self.una;
        self.advance(ack, echo, now);
        if !echo {
            self.grow(newly);
        }
    }

    fn leave_recovery(&mut self, next: u32) {
        self.inflation = 0;
        if self.reaction == Reaction::FastRetransmit && self.config.variant != Variant::Tahoe {
            self.reaction = Reaction::Recovered;
            if self.config.variant == Variant::NewReno && self.config.halving == Halving::Flight {
                // RFC 6582, 3.2, step 3, the first choice.
                let flight = f64::from((self.max - next).max(1) + 1);
                self.cwnd = self.ssthresh.min(flight);
            }
        }
    }

    /// Part of what was out at the loss is still missing (RFC 6582, 3.2, step 3).
    fn on_partial(&mut self, next: u32, now: Time) {
        if !self.partial_seen {
            self.partial_seen = true;
            self.restart_timer(now);
        }
        let newly = next - self.una;
        if self.inflation > newly {
            self.inflation -= newly - 1;
        } else {
            self.cwnd = (self.cwnd - f64::from(newly - self.inflation)).max(1.0);
            self.inflation = 1;
        }
        self.una = next;
        self.nxt = self.nxt.max(next);
        if self.timing && next > self.timed {
            self.timing = false;
            self.rtt.end_backoff(&self.config);
        }
        self.urgent = next;
    }

    /// The window's left edge moves; round-trip sample; the timer restarts (RFC 6298, 5.3).
    #[inline]
    pub(super) fn advance(&mut self, ack: &Ack, echo: bool, now: Time) {
        self.duplicates = 0;
        self.una = ack.next;
        self.nxt = self.nxt.max(ack.next);
        let stamped = self.config.samples == Samples::Timestamps;
        if stamped {
            self.rtt.sample(ack.echo, now, &self.config);
        }
        if self.timing && ack.next > self.timed {
            self.timing = false;
            // With a window of one packet that is still being marked the timeout stays doubled.
            if !(echo && self.echo_at_one) {
                self.rtt.end_backoff(&self.config);
                self.echo_at_one = false;
            }
            if !stamped {
                self.rtt.sample(self.timed_at, now, &self.config);
            }
        }
        self.restart_timer(now);
    }

    /// Slow start and congestion avoidance (RFC 5681, 3.1), at an acknowledgement of `newly` packets.
    #[inline]
    pub(super) fn grow(&mut self, newly: u32) {
        let mut counts = 1.0;
        if self.config.counting == Counting::Packets {
            counts = f64::from(newly);
            let slow_start = (self.ssthresh - self.cwnd).clamp(0.0, counts);
            self.cwnd += slow_start;
            counts -= slow_start;
        } else if self.cwnd < self.ssthresh {
            self.cwnd += 1.0;
            return;
        }
        self.cwnd += counts / self.cwnd;
    }

    fn on_duplicate(&mut self, now: Time) {
        if self.una == self.max {
            return; // nothing is out that could be missing
        }
        self.duplicates += 1;
        let always = self.config.inflation == Inflation::Always;
        let inflates = self.config.variant != Variant::Tahoe;
        if self.duplicates == DUPLICATES {
            self.on_third_duplicate(now);
            if inflates && always {
                self.inflation = DUPLICATES;
            }
        } else if self.duplicates > DUPLICATES
            && inflates
            && (always || self.reaction == Reaction::FastRetransmit)
        {
            self.inflation += 1;
        }
    }

    /// Whether a loss at the left edge is a new one, not an echo of a window that was already repaired
    /// (ns-2's `bugFix_`; RFC 6582, 3.2, step 1).
    pub(super) fn is_new_loss(&self) -> bool {
        let first = u32::from(self.config.handshake == Handshake::None);
        self.una > self.recover || self.una == first
    }

    fn on_third_duplicate(&mut self, now: Time) {
        let amid = self.config.variant == Variant::Reno && self.reaction == Reaction::FastRetransmit;
        let tahoe = self.config.variant == Variant::Tahoe;
        if self.is_new_loss() || amid {
            self.recover = self.max;
            let half = self.half();
            self.cut(half, if tahoe { 1.0 } else { half });
        } else if self.config.ecn == Switch::On && self.reaction == Reaction::Echo {
            // The window was already cut for this congestion.
            if tahoe {
                self.cut(self.ssthresh, 1.0);
            }
        } else {
            return;
        }
        self.reaction = Reaction::FastRetransmit;
        self.rewind(now);
        if tahoe {
            self.nxt = self.una;
        } else {
            self.urgent = self.una;
            self.inflation = DUPLICATES;
        }
    }

    /// What a loss leaves of the window.
    pub(super) fn half(&self) -> f64 {
        let limit = self.config.receiver_window;
        match self.config.halving {
            Halving::Window => (self.cwnd + f64::from(self.inflation)).min(f64::from(limit)) / 2.0,
            Halving::WholeWindow => {
                f64::from((self.cwnd as u32).saturating_add(self.inflation).min(limit) / 2)
            }
            Halving::Flight => (f64::from(self.max - self.una) / 2.0).max(2.0),
        }
    }

    /// The window is reduced.
    pub(super) fn cut(&mut self, threshold: f64, window: f64) {
        self.ssthresh = threshold.floor().max(2.0);
        self.cwnd = window.max(1.0);
        self.cuts += 1;
        self.say_cwr = true;
    }

    /// What was timed is no longer of use, and the timer starts again.
    pub(super) fn rewind(&mut self, now: Time) {
        self.timing = false;
        self.restart_timer(now);
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer = now + self.rtt.timeout();
    }

    /// A congestion mark was echoed: halve once per window, send nothing again (RFC 3168, 6.1.2).
    fn on_echo(&mut self, next: u32) {
        if next <= self.recover && self.reaction != Reaction::Timeout {
            return;
        }
        self.recover = self.max;
        self.reaction = Reaction::Echo;
        if self.cwnd > 1.0 {
            self.echo_at_one = false;
        } else if self.echo_at_one {
            self.rtt.back_off(&self.config);
        } else {
            self.echo_at_one = true;
        }
        let half = if self.config.halving == Halving::Flight { self.cwnd / 2.0 } else { self.half() };
        self.cut(half, half);
        // Below one packet nothing leaves before the timer has run out (RFC 3168, 6.1.2).
        self.cwnd = half;
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::SynSent {
            self.phase = Phase::SynReady;
            self.initial_window = 1;
            self.ssthresh = 2.0;
        } else if self.una == self.max {
            self.on_idle();
            return self.plan(cx);
        } else if self.config.variant == Variant::Vegas {
            self.on_vegas_timeout(cx.now);
        } else if self.reaction == Reaction::Echo && self.una < self.recover {
            self.inflation = 0;
            self.cut(self.ssthresh, 1.0);
        } else {
            self.inflation = 0;
            let half = self.half();
            self.cut(half, 1.0);
        }
        self.timeouts += 1;
        self.duplicates = 0;
        self.urgent = NONE;
        self.recover = self.max;
        self.reaction = Reaction::Timeout;
        self.nxt = self.una;
        if let Some(board) = &mut self.sack {
            board.on_timeout();
        }
        self.rtt.back_off(&self.config);
        self.rewind(cx.now);
        self.plan(cx);
    }

    /// Nothing was out for as long as a timeout.
    fn on_idle(&mut self) {
        self.timer = Time::NEVER;
        self.duplicates = 0;
        self.inflation = 0;
        match self.config.idle {
            Idle::OnePacket => {
                self.recover = self.max;
                self.reaction = Reaction::Timeout;
                self.cwnd = 1.0;
                self.say_cwr = true;
            }
            Idle::InitialWindow => self.cwnd = self.cwnd.clamp(1.0, f64::from(self.config.initial_window)),
        }
    }

    /// Stamps packet `seq`, which leaves now.
    #[inline]
    fn send(&mut self, seq: u32, now: Time) -> Segment {
        if self.timer.is_never() || self.una == self.max {
            self.restart_timer(now);
        }
        let mut flags = SegmentFlags::default();
        if self.config.ecn == Switch::On {
            flags = flags.with(SegmentFlags::ECT);
        }
        if seq < self.max {
            self.again += 1;
            flags = flags.with(SegmentFlags::AGAIN);
        } else {
            self.max = seq + 1;
            if !self.timing {
                self.timing = true;
                self.timed = seq;
                self.timed_at = now;
            }
        }
        let new = seq + 1 == self.max && !flags.has(SegmentFlags::AGAIN);
        if self.say_cwr && (new || self.config.cwr_on == CwrOn::AnyPacket) {
            self.say_cwr = false;
            if self.config.ecn == Switch::On {
                flags = flags.with(SegmentFlags::CWR);
            }
        }
        self.sent += 1;
        Segment { seq, flags, sent_at: now, rtt: Span::ZERO }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        self.phase = Phase::SynSent;
        self.timing = self.sent == 0;
        self.timed_at = now;
        self.restart_timer(now);
        self.sent += 1;
        Segment { seq: 0, flags: SegmentFlags::SYN, sent_at: now, rtt: Span::ZERO }
    }
}

impl crate::unicast::Sender for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        if self.phase != Phase::Closed {
            return;
        }
        // The connection's clock ticks independently of others'.
        self.rtt.set_phase(self.config.tick.scaled(cx.rng.unit()));
        let syn = self.config.handshake == Handshake::Syn && self.config.variant != Variant::Vegas;
        self.phase = if syn { Phase::SynReady } else { Phase::Open };
        self.plan(cx);
    }

    fn supply(&mut self, packets: u32, now: Time) {
        self.supply = packets.max(self.max);
        self.budget = self.budget.max(1);
        if self.phase == Phase::Open && self.release.is_never() && self.nxt < self.open_to() {
            self.release = now;
        }
    }

    #[inline]
    fn departure(&self) -> Departure {
        if self.phase == Phase::Open {
            if self.urgent != NONE {
                Departure::At(Time::ZERO)
            } else if self.nxt < self.open_to() {
                Departure::At(self.release)
            } else {
                Departure::AfterReport
            }
        } else if self.phase == Phase::SynReady && self.supply > 0 {
            Departure::At(Time::ZERO)
        } else {
            Departure::AfterReport
        }
    }

    #[inline]
    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        if self.phase == Phase::SynReady {
            return self.send_syn(cx.now);
        }
        let origin = if self.urgent == NONE { Origin::Window } else { Origin::Urgent };
        let seq = if origin == Origin::Window {
            self.nxt += 1;
            self.budget = self.budget.saturating_sub(1);
            self.nxt - 1
        } else {
            let seq = std::mem::replace(&mut self.urgent, NONE);
            if seq == self.nxt && seq > self.una {
                self.nxt += 1;
            }
            seq
        };
        let segment = self.send(seq, cx.now);
        if let Some(rounds) = &mut self.vegas {
            rounds.on_send(seq, self.una, cx.now);
        }
        if self.sack.is_some() {
            self.on_sack_sent(seq, origin);
        }
        if self.config.jitter > Span::ZERO && self.nxt >= self.open_to() {
            self.release = Time::NEVER;
        }
        segment
    }

    #[inline]
    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        if let Feedback::Ack(ack) = feedback {
            self.on_ack(ack, cx);
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.timer
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.timer {
            self.on_timeout(cx);
        }
    }

    fn observe(&self) -> SenderView {
        let rtt = self.rtt.smoothed(&self.config);
        let bytes = self.cwnd * f64::from(self.config.packet_size);
        let rate = if rtt == Span::ZERO { 0.0 } else { bytes * 8.0 / rtt.as_secs_f64() };
        SenderView {
            window: self.cwnd,
            threshold: self.ssthresh,
            rtt,
            rate: Rate::from_bps(rate),
            sent: self.sent,
            again: u64::from(self.again),
            acked: u64::from(self.una),
            cuts: u64::from(self.cuts),
            timeouts: u64::from(self.timeouts),
        }
    }
}
