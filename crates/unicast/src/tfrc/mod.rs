//! TCP-friendly rate control (RFC 5348): the receiver measures the loss event rate, the sender takes from TCP's formula how
//! fast it may go.
//!
//! Two sets of rules: the standard's, and those of ns-2.35, whose numbers ours are compared with.
//!
//! | module | what it holds |
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

/// Where the standard and ns-2.35 differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    /// ns-2.35's `tfrc.cc`: timeout as TCP measures it in ticks of 0.1 s, spacing corrected by the square root of the round
    /// trip, one packet per round trip more at most.
    Ns235,
    /// RFC 5348: timeout of four round trips, the equation's rate at once.
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
    /// The defaults of ns-2.35.
    pub const fn ns235() -> Config {
        Config { packet_size: 1000, rules: Rules::Ns235, ecn: Switch::Off }
    }

    /// Returns the values of RFC 5348.
    pub const fn rfc() -> Config {
        Config { rules: Rules::Rfc5348, ..Config::ns235() }
    }
}
