//! Congestion control of current TCP variants: growth and reduction of the window, and pacing. Losses are recovered by selective
//! acknowledgements.
//!
//! | module | content |
//! |---|---|
//! | `cubic` | CUBIC (RFC 9438) |
//! | `hystart` | HyStart++, the end of slow start by delay (RFC 9406) |
//! | `dctcp` | DCTCP (RFC 8257), and Prague, whose rate is also independent of short round-trip times |
//! | `bbr` | BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00) |
//! | `delivery` | samples of the delivery rate for BBR (draft-cheng-iccrg-delivery-rate-estimation-00) |

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

/// The law of a TCP variant: its rules for the window, unless it uses Reno's rules.
#[derive(Debug, Clone)]
pub(super) enum Law {
    Cubic(Cubic),
    Dctcp(Dctcp),
    Bbr(Box<Bbr>),
}

/// Information that a law gets about an acknowledgement or a mark before loss recovery processes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub now: Time,
    /// The smoothed round-trip time; zero before the first sample.
    pub rtt: Span,
    /// The first unacknowledged packet before this acknowledgement, and the next new packet.
    pub una: u32,
    pub nxt: u32,
}

impl Law {
    /// Returns the law of this variant; `None` for Vegas and for variants with Reno's rules.
    pub(super) fn of(config: &Config) -> Option<Box<Law>> {
        match config.variant {
            Variant::Cubic => Some(Law::Cubic(Cubic::new(config.hystart, config.fast_convergence))),
            Variant::Dctcp | Variant::Prague => Some(Law::Dctcp(Dctcp::new(config))),
            Variant::Bbr => Some(Law::Bbr(Box::new(Bbr::new(config)))),
            Variant::Tahoe | Variant::Reno | Variant::NewReno | Variant::Sack | Variant::Vegas => None,
        }
        .map(Box::new)
    }

    /// Returns the configuration with the values that its law requires. BBR needs the scoreboard and timestamps. A sender that
    /// paces its packets adds no random delay.
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

    /// Processes an acknowledgement before all other processing.
    pub(super) fn on_received(&mut self, ack: &Ack, received: &Received) {
        match self {
            Law::Cubic(cubic) => cubic.on_received(ack, received),
            Law::Dctcp(dctcp) => dctcp.on_received(ack, received),
            Law::Bbr(_) => {}
        }
    }

    /// Returns whether an echoed mark reduces the window now.
    pub(super) fn heeds_marks(&mut self, now: Time) -> bool {
        match self {
            Law::Cubic(_) => true,
            Law::Dctcp(dctcp) => dctcp.heeds_marks(now),
            Law::Bbr(_) => false,
        }
    }

    /// Returns whether this law reacts to losses and marks separately (RFC 8257, 3.5). If so, a loss halves the window even if a
    /// mark has just reduced it.
    pub(super) const fn tells_losses_from_marks(&self) -> bool {
        matches!(self, Law::Dctcp(_))
    }

    /// Grows the window at an acknowledgement of `newly` new packets.
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

    /// Prepares for a reduction of the window, which follows this call.
    pub(super) fn on_reduction(&mut self, window: &CongestionWindow) {
        match self {
            Law::Cubic(cubic) => cubic.on_reduction(window.packets()),
            Law::Bbr(bbr) => bbr.on_reduction(window),
            Law::Dctcp(_) => {}
        }
    }

    /// Processes a period without outstanding packets.
    pub(super) const fn on_idle(&mut self) {
        if let Law::Cubic(cubic) = self {
            cubic.on_idle();
        }
    }

    /// Returns the time between two packets; `None` if packets are not paced.
    pub(super) fn gap(&self, window: &CongestionWindow, rtt: Span) -> Option<Span> {
        match self {
            Law::Cubic(_) => None,
            Law::Dctcp(dctcp) => dctcp.gap(window, rtt),
            Law::Bbr(bbr) => bbr.gap(),
        }
    }
}
