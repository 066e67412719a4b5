//! DCTCP (RFC 8257): a mark takes from the window what the share of marked packets says, once per round trip. And Prague
//! (draft-briscoe-iccrg-prague-congestion-control), which is DCTCP on the Internet: packets say ECT(1), are spaced, and below a
//! round trip of 25 ms the rate grows and shrinks as if it were that long.
//!
//! Differences from the draft: Prague's receivers here echo by DCTCP's rule which packets were marked (RFC
//! 8257, 3.2). With an acknowledgement at every change that has the information of AccECN's counters when none
//! is lost. Its reactions to a classic queue (RFC 9331, 4.3) are missing.

use super::Received;
use crate::Ack;
use crate::tcp::config::{Config, Variant};
use crate::tcp::window::CongestionWindow;
use faircast_core::time::{Span, Time};

/// Round trip as which shorter ones count (Prague, `RTT_virt`).
const VIRTUAL_RTT: Span = Span::from_millis(25);

/// State of RFC 8257, 3.3.
#[derive(Debug, Clone)]
pub(in crate::tcp) struct Dctcp {
    /// Estimated share of marked packets (`DCTCP.Alpha`).
    alpha: f64,
    /// Weight of a new share (`g`).
    gain: f64,
    /// Acknowledged packets of this window, and those of them that were marked.
    acked: u32,
    marked: u32,
    /// The window of observation ends when this is acknowledged, and not before a moment.
    window_end: u32,
    not_before: Time,
    /// The next reduction.
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

    /// DCTCP's reductions are a window apart, as all are; Prague's also a virtual round trip.
    pub(super) fn heeds_marks(&mut self, now: Time) -> bool {
        let due = !self.is_prague || now >= self.reduces_from;
        if due {
            self.reduces_from = now + self.rtt.max(VIRTUAL_RTT);
        }
        due
    }

    /// As Reno; Prague by the square of the round trip's share of the virtual one: in packets per second per second as a flow of that round trip.
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

    /// Prague spaces packets over the round trip, and twice as closely in slow start.
    pub(super) fn gap(&self, window: &CongestionWindow, rtt: Span) -> Option<Span> {
        let per_round = window.packets() * if window.is_in_slow_start() { 2.0 } else { 1.0 };
        self.is_prague.then(|| rtt.scaled(1.0 / per_round.max(1.0)))
    }
}
