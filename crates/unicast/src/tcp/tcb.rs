//! A sender's control block, the state of loss recovery (RFC 9293, 3.3.1): sequence numbers, congestion window,
//! retransmission timer.

use super::aimd::Aimd;
use super::config::{Config, Handshake, Samples};
use super::law::Law;
use super::rto::RetransmissionTimer;
use super::window::CongestionWindow;
use crate::Ack;
use faircast_core::time::Time;

/// Duplicate acknowledgements that mean a loss (RFC 5681, 3.2).
pub(super) const DUPLICATES: u32 = 3;

/// No packet waits in [`ControlBlock::urgent`].
pub(super) const NONE: u32 = u32::MAX;

/// The latest reaction to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    None,
    FastRetransmit,
    /// A fast recovery that is over.
    Recovered,
    /// The window was reduced, and nothing was found lost: a mark was echoed, or a coordinator wanted it. A loss of the same
    /// window of data is repaired and reduces nothing again.
    Reduced,
    Timeout,
}

/// Why a packet leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is retransmitted regardless of the window.
    Urgent,
    /// The window has room.
    Window,
}

/// A connection as its sender knows it; with everything in it that neighbours can share (RFC 9040).
#[derive(Debug, Clone)]
pub(super) struct ControlBlock {
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
    /// A packet that leaves at once, regardless of the window.
    pub(super) urgent: u32,
    /// [`ControlBlock::max`] at the latest loss; fast retransmit again only beyond it. 0: no loss yet.
    pub(super) recover: u32,
    /// A loss of packets below this reduces nothing: a coordinator has made the reduction that it asks for. 0: none has.
    pub(super) covered: u32,
    pub(super) duplicates: u32,
    pub(super) reaction: Reaction,
    /// An echo came while the window was one packet.
    pub(super) echo_at_one: bool,
    /// Whether the receiver is to be notified of a reduction (CWR; RFC 3168, 6.1.2).
    pub(super) say_cwr: bool,
    /// The window with which the connection opens, in packets.
    pub(super) initial_window: u32,
    pub(super) window: CongestionWindow,
    pub(super) timer: RetransmissionTimer,
    /// How the window moves, where that is not Reno's law or Vegas'.
    pub(super) law: Option<Box<Law>>,
    pub(super) config: Config,
}

impl ControlBlock {
    pub(super) fn new(config: Config) -> ControlBlock {
        let syn = config.handshake == Handshake::Syn;
        let cwnd = if syn { 1.0 } else { f64::from(config.initial_window) };
        ControlBlock {
            una: 0,
            nxt: 0,
            max: 0,
            limit: 0,
            supply: 0,
            urgent: NONE,
            recover: 0,
            covered: 0,
            duplicates: 0,
            reaction: Reaction::None,
            echo_at_one: false,
            say_cwr: false,
            initial_window: config.initial_window,
            window: CongestionWindow::new(cwnd, f64::from(config.receiver_window)),
            timer: RetransmissionTimer::new(&config),
            law: Law::of(&config),
            config,
        }
    }

    /// Packets that are out (RFC 5681, 2, `FlightSize`).
    #[inline]
    pub(super) const fn flight(&self) -> u32 {
        self.max - self.una
    }

    /// The window's left edge moves; round-trip sample; the timer restarts (RFC 6298, 5.3). A call would cost 8 instructions
    /// per acknowledgement.
    #[inline(always)]
    pub(super) fn advance(&mut self, ack: &Ack, echo: bool, now: Time) {
        self.duplicates = 0;
        self.una = ack.next;
        self.nxt = self.nxt.max(ack.next);
        let stamped = self.config.samples == Samples::Timestamps;
        if stamped {
            self.timer.rtt.sample(ack.echo, now, &self.config);
        }
        if let Some(timed_at) = self.timer.end_timing(ack.next) {
            // With a window of one packet that is still being marked the timeout stays doubled.
            if !(echo && self.echo_at_one) {
                self.timer.rtt.end_backoff(&self.config);
                self.echo_at_one = false;
            }
            if !stamped {
                self.timer.rtt.sample(timed_at, now, &self.config);
            }
        }
        self.timer.restart(now);
    }

    /// An acknowledgement of `newly` packets opens the window.
    #[inline]
    pub(super) fn grow(&mut self, newly: u32) {
        if self.law.is_some() {
            return self.grow_by_law(newly);
        }
        Aimd::of(&self.config).grow(&mut self.window, newly);
    }

    #[cold]
    fn grow_by_law(&mut self, newly: u32) {
        if let Some(law) = self.law.as_deref_mut() {
            law.grow(&mut self.window, newly);
        }
    }

    /// Whether a loss at the left edge is part of a congestion that was answered.
    pub(super) const fn is_covered(&self) -> bool {
        self.una < self.covered
    }

    /// Returns the window after a loss.
    pub(super) fn half(&self) -> f64 {
        match self.law.as_deref() {
            None => Aimd::of(&self.config).half(&self.window, self.flight()),
            Some(law) => law.after_loss(&self.window),
        }
    }

    /// Reduces the window because of congestion, and schedules the notification of the receiver.
    pub(super) fn reduce(&mut self, threshold: f64, window: f64) {
        if let Some(law) = self.law.as_deref_mut() {
            law.on_reduction(&self.window);
        }
        self.window.reduce(threshold, window);
        self.say_cwr = true;
    }

    /// Whether a loss at the left edge is a new one, not an echo of a window that was already repaired
    /// (ns-2's `bugFix_`; RFC 6582, 3.2, step 1).
    pub(super) fn is_new_loss(&self) -> bool {
        let first = u32::from(self.config.handshake == Handshake::None);
        let by_law = || self.law.as_deref().is_some_and(Law::tells_losses_from_marks);
        self.una > self.recover || self.una == first || self.reaction == Reaction::Reduced && by_law()
    }

    /// A congestion mark was echoed; a law takes it itself.
    #[cold]
    pub(super) fn on_plain_echo(&mut self, next: u32) {
        if self.law.is_none() {
            self.on_echo(next);
        }
    }

    /// A congestion mark was echoed: halve once per window, send nothing again (RFC 3168, 6.1.2).
    pub(super) fn on_echo(&mut self, next: u32) {
        if next <= self.covered || next <= self.recover && self.reaction != Reaction::Timeout {
            return;
        }
        self.recover = self.max;
        self.reaction = Reaction::Reduced;
        if self.window.packets() > 1.0 {
            self.echo_at_one = false;
        } else if self.echo_at_one {
            self.timer.rtt.back_off(&self.config);
        } else {
            self.echo_at_one = true;
        }
        let half = match self.law.as_deref() {
            None => Aimd::of(&self.config).half_at_mark(&self.window, self.flight()),
            Some(law) => law.after_mark(&self.window),
        };
        self.reduce(half, half);
        // Below one packet nothing leaves before the timer has run out (RFC 3168, 6.1.2).
        self.window.set(half);
    }
}
