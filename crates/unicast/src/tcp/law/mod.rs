//! Congestion control of today's TCP, above recovery by selective acknowledgements: how the window moves, and how packets are spaced.
//!
//! | module | what it holds |
//! |---|---|
//! | `cubic` | CUBIC (RFC 9438) |
//! | `hystart` | HyStart++, the end of slow start by delay (RFC 9406) |
//! | `dctcp` | DCTCP (RFC 8257), and Prague, which adds independence of the round trip |
//! | `bbr` | BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00) |
//! | `delivery` | samples of the delivery rate for it (draft-cheng-iccrg-delivery-rate-estimation-00) |

mod bbr;
mod cubic;
mod dctcp;
mod delivery;
mod hystart;
#[cfg(test)]
mod tests;

pub(super) use bbr::{Bbr, Seen};

use super::config::{Config, Recovery, Samples, Shrinking, Variant};
use super::window::CongestionWindow;
use crate::Ack;
use cubic::Cubic;
use dctcp::Dctcp;
use faircast_core::time::{Span, Time};

/// How a window moves, where that is not by the law of Reno.
#[derive(Debug, Clone)]
pub(super) enum Law {
    Cubic(Cubic),
    Dctcp(Dctcp),
    Bbr(Box<Bbr>),
}

/// Information of an acknowledgement of new data, or of a mark, for a law before loss recovery processes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub now: Time,
    /// The smoothed round-trip time; zero before the first sample.
    pub rtt: Span,
    /// The first packet that was not acknowledged, and the next one to be sent.
    pub una: u32,
    pub nxt: u32,
}

impl Law {
    /// The law of this variant; `None` where it is Reno's or Vegas'.
    pub(super) fn of(config: &Config) -> Option<Box<Law>> {
        match config.variant {
            Variant::Cubic => Some(Law::Cubic(Cubic::new(config.hystart, config.fast_convergence))),
            Variant::Dctcp | Variant::Prague => Some(Law::Dctcp(Dctcp::new(config))),
            Variant::Bbr => Some(Law::Bbr(Box::new(Bbr::new(config)))),
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack | Variant::Vegas => None,
        }
        .map(Box::new)
    }

    /// Returns the configuration with the values that such a law needs in any case: BBR counts the packets in
    /// the pipe itself, and a sender that spaces its packets has no other delay before them.
    pub(super) const fn settle(mut config: Config) -> Config {
        if matches!(config.variant, Variant::Bbr) {
            config.recovery = Recovery::Scoreboard;
            config.shrinking = Shrinking::AtOnce;
            config.samples = Samples::Timestamps;
        }
        if matches!(config.variant, Variant::Bbr | Variant::Prague) {
            config.jitter = Span::ZERO;
        }
        config
    }

    /// An acknowledgement, before anything else is done with it.
    pub(super) fn on_received(&mut self, ack: &Ack, received: &Received) {
        match self {
            Law::Cubic(cubic) => cubic.on_received(ack, received),
            Law::Dctcp(dctcp) => dctcp.on_received(ack, received),
            Law::Bbr(_) => {}
        }
    }

    /// Whether an echoed mark reduces the window now.
    pub(super) fn heeds_marks(&mut self, now: Time) -> bool {
        match self {
            Law::Cubic(_) => true,
            Law::Dctcp(dctcp) => dctcp.heeds_marks(now),
            Law::Bbr(_) => false,
        }
    }

    /// Whether a loss halves a window that a mark reduced just before: a mark is no loss to this law (RFC 8257, 3.5).
    pub(super) const fn tells_losses_from_marks(&self) -> bool {
        matches!(self, Law::Dctcp(_))
    }

    /// An acknowledgement of `newly` packets opens the window.
    pub(super) fn grow(&mut self, window: &mut CongestionWindow, newly: u32) {
        match self {
            Law::Cubic(cubic) => cubic.grow(window, newly),
            Law::Dctcp(dctcp) => dctcp.grow(window, newly),
            Law::Bbr(_) => {} // its model moves the window
        }
    }

    /// Returns the window after a loss.
    pub(super) fn after_loss(&self, window: &CongestionWindow) -> f64 {
        match self {
            Law::Cubic(_) => (window.packets() * cubic::BETA).max(2.0),
            Law::Dctcp(_) => (window.packets() / 2.0).max(2.0),
            Law::Bbr(_) => window.packets(),
        }
    }

    /// Returns the window after an echoed mark.
    pub(super) fn after_mark(&self, window: &CongestionWindow) -> f64 {
        match self {
            Law::Dctcp(dctcp) => (window.packets() * (1.0 - dctcp.alpha() / 2.0)).max(2.0),
            Law::Cubic(_) | Law::Bbr(_) => self.after_loss(window),
        }
    }

    /// The window is about to be reduced.
    pub(super) fn on_reduction(&mut self, window: &CongestionWindow) {
        match self {
            Law::Cubic(cubic) => cubic.on_reduction(window.packets()),
            Law::Bbr(bbr) => bbr.on_reduction(window),
            Law::Dctcp(_) => {}
        }
    }

    /// Nothing was out for a while.
    pub(super) const fn on_idle(&mut self) {
        if let Law::Cubic(cubic) = self {
            cubic.on_idle();
        }
    }

    /// How long after a packet the next one may leave; `None` where packets are not spaced.
    pub(super) fn gap(&self, window: &CongestionWindow, rtt: Span) -> Option<Span> {
        match self {
            Law::Cubic(_) => None,
            Law::Dctcp(dctcp) => dctcp.gap(window, rtt),
            Law::Bbr(bbr) => bbr.gap(),
        }
    }
}
