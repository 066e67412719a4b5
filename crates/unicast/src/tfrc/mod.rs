//! TCP-friendly rate control (RFC 5348): the receiver measures the loss event rate, and the sender computes its allowed rate from
//! this loss event rate by TCP's formula.
//!
//! There are two sets of rules: the rules of the standard, and the rules of ns-2.35. Tests compare results by the rules of
//! ns-2.35 with results of ns-2.35 itself.
//!
//! | module | content |
//! |---|---|
//! | `sender` | slow start, the equation, limits, pacing |
//! | `sink` | loss events, received rate, reports |
//! | `intervals` | the mean loss interval with history discounting |

mod intervals;
mod sender;
mod sink;
#[cfg(test)]
mod tests;

pub use sender::Sender;
pub use sink::Sink;

use crate::tcp::Switch;

/// Rules on which the standard and ns-2.35 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// The rules of ns-2.35's `tfrc.cc`: the timeout is estimated like TCP's, in ticks of 0.1 s. The time between packets is
    /// corrected by the square root of the round-trip time. The rate grows by at most one packet per round trip.
    Ns235,
    /// The rules of RFC 5348: the timeout is four round-trip times, and the rate computed by the equation is used immediately.
    Rfc5348,
}

/// Parameters of a TFRC flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Bytes of a packet on the link.
    pub packet_size: u16,
    /// The rules to follow.
    pub rules: Rules,
    /// Explicit congestion notification: marks begin loss events.
    pub ecn: Switch,
}

impl Config {
    /// Returns the defaults of ns-2.35.
    pub const fn ns235() -> Config {
        Config { packet_size: 1000, rules: Rules::Ns235, ecn: Switch::Off }
    }

    /// Returns the values of RFC 5348.
    pub const fn rfc() -> Config {
        Config { rules: Rules::Rfc5348, ..Config::ns235() }
    }
}
