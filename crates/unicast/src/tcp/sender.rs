//! The sender: opens the connection, passes acknowledgements to loss recovery, and selects the packets to send.

use super::config::{AfterMark, Config, CwrOn, Handshake, Idle, Switch, Variant};
use super::fast::{self, FastRecovery};
use super::law::Law;
use super::sack::Scoreboard;
use super::tcb::{ControlBlock, DUPLICATES, NONE, Origin, Reaction};
use super::vegas::Vegas;
use super::window::CongestionWindow;
use crate::cocoon::{Recovery as Repair, Verdict, View};
use crate::rtt::RttEstimate;
use crate::{Ack, Feedback, Segment, SegmentFlags, SenderView};
use faircast_core::node::{Cx, Departure};
use faircast_core::time::{Rate, Span, Time};

mod lawful;

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Closed,
    /// The SYN may be sent.
    SynReady,
    SynSent,
    Open,
}

/// Detection and repair of losses.
#[derive(Debug, Clone)]
enum Recovery {
    /// Recovery of Tahoe, Reno and NewReno.
    Fast(FastRecovery),
    Sack(Box<Scoreboard>),
    Vegas(Box<Vegas>),
}

/// A TCP sender.
#[derive(Debug, Clone)]
pub struct Sender {
    tcb: ControlBlock,
    recovery: Recovery,
    phase: Phase,
    /// Number of packets that may still be sent in response to the latest acknowledgement.
    budget: u32,
    /// Time before which new packets that the window allows are not sent.
    release: Time,
    again: u32,
    timeouts: u32,
    sent: u64,
}

const _: () = assert!(size_of::<Sender>() <= 320);

/// Amount by which a coordinator reduces the window of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reduction {
    /// By half, as after a loss that the sender itself detects ([`Config::halving`]).
    Half,
    /// To this window and this slow-start threshold, in packets. A smaller window stays unchanged.
    To {
        /// The window.
        window: f64,
        /// The slow-start threshold.
        threshold: f64,
    },
}

/// Whether a window was reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Reduced {
    /// It was reduced.
    Done,
    /// The window was not reduced, because packets that were outstanding at the latest reduction are still outstanding, or
    /// because no packet is outstanding.
    Already,
}

impl Sender {
    /// Creates a closed connection.
    pub fn new(config: Config) -> Sender {
        let recovery = match config.variant {
            Variant::Tahoe | Variant::Reno | Variant::NewReno => Recovery::Fast(FastRecovery::default()),
            Variant::Vegas => Recovery::Vegas(Box::default()),
            _ => Recovery::Sack(Box::default()),
        };
        let config = Law::settle(config);
        Sender {
            recovery,
            phase: Phase::Closed,
            budget: 0,
            release: if config.jitter == Span::ZERO { Time::ZERO } else { Time::NEVER },
            again: 0,
            timeouts: 0,
            sent: 0,
            tcb: ControlBlock::new(config),
        }
    }

    /// Sets the window and the slow-start threshold, in packets, for a reason other than congestion. For example, a new
    /// connection gets the values of other connections or a share of their windows. A fast recovery continues with the new
    /// window. A connection that has not sent its SYN will open with the new window, rounded down to whole packets. The window is
    /// limited to at least 1 and at most the receiver's window, the threshold to at least 2.
    ///
    /// As after every call, read `departure` and `deadline` again.
    pub fn set_window(&mut self, window: f64, threshold: f64, cx: &mut Cx<'_>) {
        let tcb = &mut self.tcb;
        let window = window.max(1.0).min(f64::from(tcb.config.receiver_window));
        tcb.initial_window = window as u32;
        tcb.window.set_threshold(threshold.max(2.0));
        if self.phase == Phase::Open || tcb.config.handshake == Handshake::None {
            tcb.window.set(window);
        }
        if self.phase == Phase::Open {
            self.plan(cx);
        }
    }

    /// Reduces the window because another connection detected congestion on the shared path. No packet is retransmitted. A later
    /// loss or mark of a packet that is outstanding now causes no further reduction, except a loss of the connection's very first
    /// packet. If a packet that was outstanding at the latest reduction is still outstanding, the call has no effect. The
    /// reduction counts in [`SenderView::cuts`], and with ECN the receiver is notified.
    ///
    /// As after every call, read `departure` and `deadline` again.
    pub fn reduce(&mut self, to: Reduction, cx: &mut Cx<'_>) -> Reduced {
        let tcb = &mut self.tcb;
        if tcb.flight() == 0 || tcb.una < tcb.recover {
            return Reduced::Already;
        }
        let (window, threshold) = match to {
            Reduction::Half => (tcb.half(), tcb.half()),
            Reduction::To { window, threshold } => (window.min(tcb.window.packets()), threshold),
        };
        tcb.recover = tcb.max;
        tcb.reaction = Reaction::Reduced;
        tcb.reduce(threshold, window);
        if let Recovery::Vegas(vegas) = &mut self.recovery {
            vegas.on_reduction(&tcb.window, cx.now);
        }
        self.plan(cx);
        Reduced::Done
    }

    /// Returns a view of this connection for a coordinator (paper 002, 4.3). The caller must add when the first unacknowledged
    /// packet was sent, because the sender does not store this time.
    pub fn view(&self) -> View {
        let tcb = &self.tcb;
        let recovery = match tcb.reaction {
            Reaction::FastRetransmit => Repair::Fast,
            Reaction::Timeout if tcb.una < tcb.recover => Repair::Timeout,
            _ => Repair::None,
        };
        View {
            recovery,
            has_data: self.phase != Phase::Closed && tcb.max < tcb.supply,
            ..View::in_packets(
                u64::from(tcb.una),
                u64::from(tcb.max),
                tcb.window.packets(),
                tcb.window.threshold(),
            )
        }
    }

    /// Carries out a coordinator's verdict (paper 002, 4.3): reduces window and threshold, and sends the first unacknowledged
    /// packet again if the verdict requires it. A reduction of the window counts in [`SenderView::cuts`].
    ///
    /// As after every call, read `departure` and `deadline` again.
    pub fn obey(&mut self, verdict: &Verdict, cx: &mut Cx<'_>) {
        let sacked = matches!(&self.recovery, Recovery::Sack(scoreboard) if scoreboard.is_recovering());
        let tcb = &mut self.tcb;
        let before = tcb.window.packets();
        let threshold = verdict.ssthresh.unwrap_or(tcb.window.threshold()).max(2.0);
        match verdict.cwnd {
            Some(window) if window < before => tcb.reduce(threshold, window.max(1.0)),
            _ => tcb.window.set_threshold(threshold),
        }
        if self.phase != Phase::Open {
            return;
        }
        if verdict.send_again && tcb.flight() > 0 && tcb.urgent == NONE && !sacked {
            tcb.urgent = tcb.una;
            tcb.timer.rewind(cx.now);
        }
        self.plan(cx);
    }

    /// Sets a packet number below which losses cause no reduction, because a reduction was already made for the same congestion
    /// event.
    pub fn cover(&mut self, before: u64) {
        self.tcb.covered = u32::try_from(before).unwrap_or(u32::MAX).min(self.tcb.max);
    }

    /// Sets the estimate of the round-trip time from other connections; the next sample is added to this estimate. The resulting
    /// timeout applies when the timer is next started.
    pub fn set_round_trip(&mut self, estimate: RttEstimate) {
        self.tcb.timer.rtt.set(estimate, &self.tcb.config);
    }

    /// Returns the estimate of the round-trip time; `None` before the first sample.
    pub fn round_trip(&self) -> Option<RttEstimate> {
        self.tcb.timer.rtt.estimate(&self.tcb.config)
    }

    /// Returns the congestion window.
    pub const fn window(&self) -> &CongestionWindow {
        &self.tcb.window
    }

    /// Returns the number of outstanding packets (RFC 5681, 2, `FlightSize`).
    pub const fn flight_size(&self) -> u32 {
        self.tcb.flight()
    }

    /// Returns the end of the packets that were outstanding at the latest reaction to congestion. Losses below this end belong to
    /// the same congestion event. Returns 0 before the first reaction, and after a recovery by selective acknowledgements.
    pub const fn recovery_point(&self) -> u32 {
        self.tcb.recover
    }

    /// Returns the end of the new packets that may be sent: within the budget, the window and the application's supply.
    #[inline]
    fn open_to(&self) -> u32 {
        if self.budget == 0 { self.tcb.nxt } else { self.tcb.limit.min(self.tcb.supply) }
    }

    /// Plans the packets that may be sent. Called after every change that may affect the window.
    #[inline]
    fn plan(&mut self, cx: &mut Cx<'_>) {
        let tcb = &mut self.tcb;
        tcb.limit = tcb.una.saturating_add(tcb.window.allowed(tcb.config.receiver_window));
        self.budget = tcb.config.max_burst;
        if tcb.duplicates > 0 {
            self.plan_amid_duplicates();
        }
        if let Recovery::Sack(scoreboard) = &mut self.recovery {
            scoreboard.plan(&mut self.tcb);
        }
        self.draw_release(cx);
    }

    /// Draws the random delay if packets may be sent and no delay has been drawn for them yet.
    #[inline]
    fn draw_release(&mut self, cx: &mut Cx<'_>) {
        if self.tcb.config.jitter > Span::ZERO && self.release.is_never() && self.waits() {
            self.release = cx.now + self.tcb.config.jitter.scaled(cx.rng.unit());
        }
    }

    /// Returns whether packets must wait for [`Self::release`]. These are new packets and, in a recovery by selective
    /// acknowledgements, all holes except the first (as in ns-2's `send_much`).
    #[inline]
    fn waits(&self) -> bool {
        self.tcb.nxt < self.open_to() || self.hole_waits()
    }

    #[inline]
    fn hole_waits(&self) -> bool {
        match &self.recovery {
            Recovery::Sack(_) if self.tcb.law.is_some() => self.tcb.urgent != NONE,
            Recovery::Sack(scoreboard) => self.tcb.urgent != NONE && scoreboard.is_hole_after_the_first(),
            Recovery::Fast(_) | Recovery::Vegas(_) => false,
        }
    }

    fn plan_amid_duplicates(&mut self) {
        let few = self.tcb.duplicates < DUPLICATES;
        match self.tcb.config.variant {
            Variant::Vegas => return,
            // At most two new packets are sent for each duplicate (as in ns-2's NewReno).
            Variant::NewReno if !few => self.budget = self.budget.min(2),
            _ => {}
        }
        if few && self.tcb.config.limited_transmit == Switch::On {
            let tcb = &mut self.tcb;
            let end = tcb.una.saturating_add(tcb.config.receiver_window);
            tcb.limit = tcb.limit.saturating_add(tcb.duplicates).min(end);
            let waits = tcb.config.jitter > Span::ZERO && tcb.urgent == NONE;
            if waits && tcb.una < tcb.nxt && self.tcb.nxt < self.open_to() {
                self.tcb.urgent = self.tcb.nxt; // no window has opened: nothing to wait for
            }
        }
    }

    fn on_ack(&mut self, ack: &Ack, cx: &mut Cx<'_>) {
        let now = cx.now;
        match self.phase {
            Phase::Open if ack.next <= self.tcb.max => {}
            Phase::SynSent | Phase::SynReady if ack.syn && ack.next == 0 => {
                self.open(now);
                return self.plan(cx);
            }
            _ => return,
        }
        let tcb = &mut self.tcb;
        let echo = ack.ece && tcb.config.ecn == Switch::On;
        if echo {
            tcb.on_plain_echo(ack.next);
        }
        match &mut self.recovery {
            Recovery::Fast(recovery) if ack.next > tcb.una => recovery.on_advance(tcb, ack, echo, now),
            Recovery::Fast(_) if ack.next == tcb.una && !ack.syn => fast::on_duplicate(tcb, now),
            Recovery::Fast(_) => return,
            Recovery::Sack(_) if tcb.law.is_some() => self.on_ack_by_law(ack, echo, cx),
            Recovery::Sack(scoreboard) => scoreboard.on_ack(tcb, ack, echo, now),
            Recovery::Vegas(vegas) => vegas.on_ack(tcb, ack, echo, now),
        }
        if !echo {
            self.tcb.echo_at_one = false;
        }
        self.plan(cx);
    }

    /// Opens the connection after the SYN was acknowledged.
    fn open(&mut self, now: Time) {
        self.phase = Phase::Open;
        let tcb = &mut self.tcb;
        if let Some(timed_at) = tcb.timer.end_timing_syn() {
            tcb.timer.rtt.end_backoff(&tcb.config);
            tcb.timer.rtt.sample(timed_at, now, &tcb.config);
        }
        tcb.window.set(f64::from(tcb.initial_window));
        tcb.timer.restart(now);
    }

    fn on_timeout(&mut self, cx: &mut Cx<'_>) {
        let tcb = &mut self.tcb;
        if self.phase == Phase::SynSent {
            self.phase = Phase::SynReady;
            tcb.initial_window = 1;
            tcb.window.set_threshold(2.0);
        } else if tcb.flight() == 0 {
            self.on_idle();
            return self.plan(cx);
        } else if let Recovery::Vegas(vegas) = &mut self.recovery {
            vegas.on_timeout(tcb, cx.now);
        } else {
            tcb.window.set_inflation(0);
            let half = tcb.half();
            let fresh = tcb.una < tcb.recover || tcb.config.after_mark == AfterMark::Always;
            let reduced = tcb.reaction == Reaction::Reduced && fresh;
            tcb.reduce(if reduced { tcb.window.threshold() } else { half }, 1.0);
        }
        self.timeouts += 1;
        let tcb = &mut self.tcb;
        if let Some(Law::Bbr(bbr)) = tcb.law.as_deref_mut() {
            bbr.on_timeout();
        }
        tcb.duplicates = 0;
        tcb.urgent = NONE;
        tcb.recover = tcb.max;
        tcb.reaction = Reaction::Timeout;
        tcb.nxt = tcb.una;
        if let Recovery::Sack(scoreboard) = &mut self.recovery {
            scoreboard.on_timeout();
        }
        tcb.timer.rtt.back_off(&tcb.config);
        tcb.timer.rewind(cx.now);
        self.plan(cx);
    }

    /// Processes an idle period of a timeout's length.
    fn on_idle(&mut self) {
        let tcb = &mut self.tcb;
        tcb.timer.stop();
        tcb.duplicates = 0;
        tcb.window.set_inflation(0);
        if let Some(law) = tcb.law.as_deref_mut() {
            law.on_idle();
        }
        match tcb.config.idle {
            Idle::OnePacket => {
                tcb.recover = tcb.max;
                tcb.reaction = Reaction::Timeout;
                tcb.window.set(1.0);
                tcb.say_cwr = true;
            }
            Idle::InitialWindow => {
                tcb.window.set(tcb.window.packets().clamp(1.0, f64::from(tcb.config.initial_window)));
            }
        }
    }

    /// Stamps packet `seq`, which is sent now.
    #[inline]
    fn send(&mut self, seq: u32, now: Time) -> Segment {
        let tcb = &mut self.tcb;
        if tcb.timer.expires().is_never() || tcb.flight() == 0 {
            tcb.timer.restart(now);
        }
        let mut flags = match tcb.config.ecn {
            Switch::Off => SegmentFlags::default(),
            Switch::On => may_be_marked(tcb.config.variant),
        };
        let new = seq >= tcb.max;
        let says_cwr = match tcb.config.cwr_on {
            CwrOn::NewData => new,
            CwrOn::Latest => seq + 1 >= tcb.max,
            CwrOn::AnyPacket => true,
        };
        if new {
            tcb.max = seq + 1;
            tcb.timer.time(seq, now);
        } else {
            self.again += 1;
            flags = flags.with(SegmentFlags::AGAIN);
        }
        if tcb.say_cwr && says_cwr {
            tcb.say_cwr = false;
            if tcb.config.ecn == Switch::On {
                flags = flags.with(SegmentFlags::CWR);
            }
        }
        self.sent += 1;
        Segment { seq, flags, sent_at: now, rtt: Span::ZERO }
    }

    fn send_syn(&mut self, now: Time) -> Segment {
        self.phase = Phase::SynSent;
        self.tcb.timer.time_syn(self.sent, now);
        self.tcb.timer.restart(now);
        self.sent += 1;
        Segment { seq: 0, flags: SegmentFlags::SYN, sent_at: now, rtt: Span::ZERO }
    }
}

/// Returns the flags of a packet that may be marked. ECT(1) announces that the sender reacts to the share of marked packets (RFC
/// 9331, 4.1).
#[cold]
fn may_be_marked(variant: Variant) -> SegmentFlags {
    match variant {
        Variant::Prague => SegmentFlags::ECT.with(SegmentFlags::ECT1),
        _ => SegmentFlags::ECT,
    }
}

impl crate::Sender for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        if self.phase != Phase::Closed {
            return;
        }
        // The clock of each connection ticks independently.
        let config = &self.tcb.config;
        let syn = config.handshake == Handshake::Syn && config.variant != Variant::Vegas;
        self.tcb.timer.rtt.set_phase(config.tick.scaled(cx.rng.unit()));
        self.phase = if syn { Phase::SynReady } else { Phase::Open };
        self.plan(cx);
    }

    fn supply(&mut self, packets: u32, now: Time) {
        self.tcb.supply = packets.max(self.tcb.max);
        self.budget = self.budget.max(1);
        if self.phase == Phase::Open && self.release.is_never() && self.tcb.nxt < self.open_to() {
            self.release = now;
        }
    }

    #[inline]
    fn departure(&self) -> Departure {
        if self.phase == Phase::Open {
            if self.tcb.urgent != NONE {
                Departure::At(if self.hole_waits() { self.release } else { Time::ZERO })
            } else if self.tcb.nxt < self.open_to() {
                Departure::At(self.release)
            } else {
                Departure::AfterReport
            }
        } else if self.phase == Phase::SynReady && self.tcb.supply > 0 {
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
        let tcb = &mut self.tcb;
        let origin = if tcb.urgent == NONE { Origin::Window } else { Origin::Urgent };
        let seq = if origin == Origin::Window {
            tcb.nxt += 1;
            self.budget = self.budget.saturating_sub(1);
            tcb.nxt - 1
        } else {
            let seq = std::mem::replace(&mut tcb.urgent, NONE);
            if seq == tcb.nxt && seq > tcb.una {
                tcb.nxt += 1;
            }
            seq
        };
        let segment = self.send(seq, cx.now);
        match &mut self.recovery {
            Recovery::Fast(_) => {}
            Recovery::Sack(scoreboard) => {
                scoreboard.on_sent(&mut self.tcb, seq, origin);
                if self.tcb.law.is_some() {
                    self.on_sent_by_law(seq, segment.flags.has(SegmentFlags::AGAIN), cx.now);
                }
            }
            Recovery::Vegas(vegas) => vegas.on_sent(seq, self.tcb.una, cx.now),
        }
        if self.tcb.config.jitter > Span::ZERO && !self.waits() {
            self.release = Time::NEVER;
        }
        self.draw_release(cx);
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
        self.tcb.timer.expires()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.tcb.timer.expires() {
            self.on_timeout(cx);
        }
    }

    #[inline]
    fn cuts(&self) -> u32 {
        self.tcb.window.reductions()
    }

    fn observe(&self) -> SenderView {
        let ControlBlock { window, timer, una, config, .. } = &self.tcb;
        let rtt = timer.rtt.smoothed(config);
        let bytes = window.packets() * f64::from(config.packet_size);
        let rate = if rtt == Span::ZERO { 0.0 } else { bytes * 8.0 / rtt.as_secs_f64() };
        SenderView {
            window: window.packets(),
            threshold: window.threshold(),
            rtt,
            rate: Rate::from_bps(rate),
            sent: self.sent,
            again: u64::from(self.again),
            acked: u64::from(*una),
            cuts: u64::from(window.reductions()),
            timeouts: u64::from(self.timeouts),
        }
    }
}
