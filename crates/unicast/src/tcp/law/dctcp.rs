//! DCTCP (RFC 8257): marks reduce the window in proportion to the share of marked packets, once per round trip. Prague
//! (draft-briscoe-iccrg-prague-congestion-control) is DCTCP on the Internet: its packets carry ECT(1) and are paced. Below a
//! round trip of 25 ms its rate changes as if the round trip had this length.
//!
//! Differences from the draft: receivers of Prague echo marks by DCTCP's rule (RFC 8257, 3.2). They acknowledge at every change
//! of marking. Without loss of acknowledgements this gives the same information as AccECN's counters. Reactions to a classic
//! queue (RFC 9331, 4.3) are missing.

use super::Received;
use crate::Ack;
use crate::tcp::config::{Config, Variant};
use crate::tcp::window::CongestionWindow;
use faircast_core::time::{Span, Time};

/// Minimum round-trip time in Prague's rules (`RTT_virt`).
const VIRTUAL_RTT: Span = Span::from_millis(25);

/// State variables of RFC 8257, 3.3.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Dctcp {
    /// Estimated share of marked packets (`DCTCP.Alpha`).
    alpha: f64,
    /// Weight of a new share (`g`).
    gain: f64,
    /// Number of acknowledged packets of this window, and of marked packets among them.
    acked: u32,
    marked: u32,
    /// Packet number whose acknowledgement ends the window of observation, and the earliest time of that end.
    window_end: u32,
    not_before: Time,
    /// Earliest time of the next reduction.
    reduces_from: Time,
    rtt: Span,
    is_prague: bool,
}

impl Dctcp {
    pub(super) fn new(config: &Config) -> Dctcp {
        Dctcp {
            alpha: 1.0,
            gain: 0.5_f64.powi(i32::from(config.gain_shift)),
            acked: 0,
            marked: 0,
            window_end: 0,
            not_before: Time::ZERO,
            reduces_from: Time::ZERO,
            rtt: Span::ZERO,
            is_prague: config.variant == Variant::Prague,
        }
    }

    pub(super) const fn alpha(&self) -> f64 {
        self.alpha
    }

    pub(super) fn on_received(&mut self, ack: &Ack, received: &Received) {
        self.rtt = received.rtt;
        let newly = ack.next.saturating_sub(received.una);
        self.acked += newly;
        if ack.ece {
            self.marked += newly;
        }
        if ack.next > self.window_end && self.acked > 0 && received.now >= self.not_before {
            let share = f64::from(self.marked) / f64::from(self.acked);
            self.alpha += self.gain * (share - self.alpha);
            (self.acked, self.marked) = (0, 0);
            self.window_end = received.nxt;
            if self.is_prague {
                self.not_before = received.now + VIRTUAL_RTT.saturating_sub(received.rtt);
            }
        }
    }

    /// Returns whether an echoed mark reduces the window now. Like all reductions, DCTCP's are at least a window apart; Prague's
    /// are also at least a virtual round trip apart.
    pub(super) fn heeds_marks(&mut self, now: Time) -> bool {
        let due = !self.is_prague || now >= self.reduces_from;
        if due {
            self.reduces_from = now + self.rtt.max(VIRTUAL_RTT);
        }
        due
    }

    /// Grows like Reno. For short round trips, Prague scales the growth by the square of the round trip divided by the virtual
    /// one. Its rate then grows like that of a flow with the virtual round trip.
    pub(super) fn grow(&self, window: &mut CongestionWindow, newly: u32) {
        let newly = f64::from(newly);
        let slow_start = (window.threshold() - window.packets()).clamp(0.0, newly);
        window.set(window.packets() + slow_start);
        let mut share = 1.0;
        if self.is_prague && self.rtt < VIRTUAL_RTT {
            share = (self.rtt.as_secs_f64() / VIRTUAL_RTT.as_secs_f64()).powi(2);
        }
        window.set(window.packets() + share * (newly - slow_start) / window.packets());
    }

    /// Returns the time between packets: Prague spaces them over the round trip, and half as far apart in slow start.
    pub(super) fn gap(&self, window: &CongestionWindow, rtt: Span) -> Option<Span> {
        let per_round = window.packets() * if window.is_in_slow_start() { 2.0 } else { 1.0 };
        self.is_prague.then(|| rtt.scaled(1.0 / per_round.max(1.0)))
    }
}
