//! A sender's control block (RFC 9293, 3.3.1): sequence numbers, congestion window, retransmission timer, and the state of loss
//! recovery.

use super::aimd::Aimd;
use super::config::{AfterMark, Config, Handshake, Samples};
use super::law::Law;
use super::rto::RetransmissionTimer;
use super::window::CongestionWindow;
use crate::Ack;
use faircast_core::time::Time;

/// Number of duplicate acknowledgements that indicate a loss (RFC 5681, 3.2).
pub(super) const DUPLICATES: u32 = 3;

/// No packet waits in [`ControlBlock::urgent`].
pub(super) const NONE: u32 = u32::MAX;

/// The latest reaction to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reaction {
    None,
    FastRetransmit,
    /// A completed fast recovery.
    Recovered,
    /// A reduction of the window without a detected loss, because a mark was echoed or a coordinator requested it. A loss in the
    /// same window of data is repaired and causes no further reduction.
    Reduced,
    Timeout,
}

/// Reason for sending a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is retransmitted regardless of the window.
    Urgent,
    /// The window has room.
    Window,
}

/// State of a connection at its sender. It includes all information that connections can share (RFC 9040).
#[derive(Debug, Clone)]
pub(super) struct ControlBlock {
    /// Oldest packet not acknowledged.
    pub(super) una: u32,
    /// Next packet in order.
    pub(super) nxt: u32,
    /// Highest packet sent, plus 1.
    pub(super) max: u32,
    /// End of the new packets that may be sent.
    pub(super) limit: u32,
    /// End of the application's packets.
    pub(super) supply: u32,
    /// A packet that is sent immediately, whatever the window is; [`NONE`] if there is no such packet.
    pub(super) urgent: u32,
    /// Value of [`ControlBlock::max`] when the latest loss was detected. Another fast retransmit is allowed only for packets
    /// beyond this value. 0 before the first loss.
    pub(super) recover: u32,
    /// A loss of a packet below this number reduces no window, because a coordinator has already made the reduction. Initially 0.
    pub(super) covered: u32,
    pub(super) duplicates: u32,
    pub(super) reaction: Reaction,
    /// Whether a mark was echoed while the window was one packet or less.
    pub(super) echo_at_one: bool,
    /// Whether the receiver must be notified of a reduction (CWR; RFC 3168, 6.1.2).
    pub(super) say_cwr: bool,
    /// Window at the opening of the connection, in packets.
    pub(super) initial_window: u32,
    pub(super) window: CongestionWindow,
    pub(super) timer: RetransmissionTimer,
    /// The law of the variant; `None` for Vegas and for variants with Reno's rules.
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

    /// Returns the number of outstanding packets (RFC 5681, 2, `FlightSize`).
    #[inline]
    pub(super) const fn flight(&self) -> u32 {
        self.max - self.una
    }

    /// Moves the left edge of the window, takes a sample of the round-trip time, and restarts the timer (RFC 6298, 5.3). The
    /// function is inlined because a call would cost 8 instructions per acknowledgement.
    #[inline(always)]
    pub(super) fn advance(&mut self, ack: &Ack, echo: bool, now: Time) {
        self.duplicates = 0;
        self.una = ack.next;
        self.nxt = self.nxt.max(ack.next);
        let stamped = self.config.samples == Samples::Timestamps;
        if stamped {
            self.timer.rtt.sample(ack.echo, now, &self.config);
        }
        let timed_at = self.timer.end_timing(ack.next);
        // The timeout stays doubled while marks are echoed although the window is only one packet. A timestamp measures
        // retransmitted packets, too (RFC 7323, 4.1), so with timestamps every such acknowledgement ends the doubling.
        if (stamped || timed_at.is_some()) && !(echo && self.echo_at_one) {
            self.timer.rtt.end_backoff(&self.config);
            self.echo_at_one = false;
        }
        if let Some(timed_at) = timed_at.filter(|_| !stamped) {
            self.timer.rtt.sample(timed_at, now, &self.config);
        }
        self.timer.restart(now);
    }

    /// Grows the window at an acknowledgement of `newly` new packets.
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

    /// Returns whether a loss at the left edge belongs to a congestion event for which a coordinator has already made a
    /// reduction.
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

    /// Reduces the window because of congestion, and schedules the notification of the receiver (CWR).
    pub(super) fn reduce(&mut self, threshold: f64, window: f64) {
        if let Some(law) = self.law.as_deref_mut() {
            law.on_reduction(&self.window);
        }
        self.window.reduce(threshold, window);
        self.say_cwr = true;
    }

    /// Returns whether a loss at the left edge is a new loss. Otherwise it belongs to a window of data in which losses were
    /// already repaired (ns-2's `bugFix_`; RFC 6582, 3.2, step 1).
    pub(super) fn is_new_loss(&self) -> bool {
        let first = u32::from(self.config.handshake == Handshake::None);
        let by_law = || self.law.as_deref().is_some_and(Law::tells_losses_from_marks);
        self.una > self.recover || self.una == first || self.reaction == Reaction::Reduced && by_law()
    }

    /// Processes the echo of a mark if the variant has no law. A variant with a law processes marks by its law.
    #[cold]
    pub(super) fn on_plain_echo(&mut self, next: u32) {
        if self.law.is_none() {
            self.on_echo(next);
        }
    }

    /// Processes the echo of a mark: reduces the window at most once per window of data; no packet is sent again (RFC 3168,
    /// 6.1.2).
    pub(super) fn on_echo(&mut self, next: u32) {
        // ns-2 also reduces for marks of packets that were outstanding at a timeout.
        let again = self.reaction == Reaction::Timeout && self.config.after_mark == AfterMark::Always;
        if next <= self.covered || next <= self.recover && !again {
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
        // The window may fall below one packet. No packet is then sent before the timer expires (RFC 3168, 6.1.2).
        self.window.set(half);
    }
}
