//! DCTCP (RFC 8257): once per round trip, the window is reduced in proportion to the share of marked packets. Prague
//! (draft-briscoe-iccrg-prague-congestion-control) is DCTCP for the Internet: its packets carry ECT(1) and are paced. If the
//! round-trip time is below 25 ms, Prague's rate changes as if the round-trip time were 25 ms.
//!
//! Differences from the draft: Receivers of Prague echo marks by DCTCP's rule (RFC 8257, 3.2): they send an acknowledgement
//! whenever a marked packet follows an unmarked packet or the reverse. If no acknowledgement is lost, these acknowledgements give
//! the same information as the counters of AccECN. The reaction to classic queues (RFC 9331, 4.3) is not implemented.

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
    /// Number of packets acknowledged in this window of observation, and number of marked packets among them.
    acked: u32,
    marked: u32,
    /// Packet number whose acknowledgement ends the window of observation, and the earliest time at which the window may end.
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

    /// Returns whether an echoed mark reduces the window now. At least one window of data must have been sent between two
    /// reductions. With Prague, at least one virtual round-trip time must also have passed.
    pub(super) fn heeds_marks(&mut self, now: Time) -> bool {
        let due = !self.is_prague || now >= self.reduces_from;
        if due {
            self.reduces_from = now + self.rtt.max(VIRTUAL_RTT);
        }
        due
    }

    /// Grows the window like Reno. With Prague and a round-trip time below the virtual round-trip time, the growth is multiplied
    /// by the square of their quotient. The rate then grows as fast as at the virtual round-trip time.
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

    /// Returns the time between two packets: Prague spaces packets evenly over the round trip, and in slow start by half of that
    /// time. `None` for DCTCP.
    pub(super) fn gap(&self, window: &CongestionWindow, rtt: Span) -> Option<Span> {
        let per_round = window.packets() * if window.is_in_slow_start() { 2.0 } else { 1.0 };
        self.is_prague.then(|| rtt.scaled(1.0 / per_round.max(1.0)))
    }
}
