//! Parameters of TFMCC, with the RFC's names and values.

use crate::rate::start::Doubling;
use crate::rate::{Bounds, Sending, Start};
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::published`] is RFC 4654, [`Config::transport`] is for real networks.
///
/// Of the common options, `rtt` is the first largest round-trip time, "R_max". `start=doubling` is the RFC's own
/// slow start: up to twice the rate that the slowest receiver gets, until somebody loses a packet. `start=linear` begins
/// with the increase that holds after it, a packet per largest round-trip time each time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// The law of report delays.
    pub timer: TimerLaw,
    /// Reports less than this part below the lowest of a round are suppressed, "g".
    pub near: f64,
    /// The largest round-trip time keeps this part in a round without a larger one.
    pub rtt_max_kept: f64,
    /// Whether receivers follow one-way delays between measurements.
    pub one_way: OneWay,
    /// Whether long open loss intervals discount older ones.
    pub discounting: Discounting,
    /// Where the first loss interval comes from.
    pub first: FirstInterval,
    /// Losses within so many round-trip times of the first are one event; one is RFC 4654, 5.
    pub event: f64,
    /// What a calculated rate grows by after a loss event.
    pub recovery: Recovery,
    /// How fast the source rises to what the limiting receiver says.
    pub rise: Rise,
    /// The rate does not rise so soon after the limiting receiver has left, nor in six largest round-trip times.
    pub hold: Span,
    /// Nothing that a receiver calculates lowers the rate below this; silence does.
    pub least: Rate,
    /// Over how many round-trip times receivers measure the rate that they get, "k".
    pub received_over: f64,
    /// The limiting receiver is not missed before this time, whatever the round-trip time.
    pub patience: Span,
}

/// The law of report delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerLaw {
    /// Exponential up to six largest round-trip times.
    Rfc,
    /// The simulations of the paper of 2001: up to four, a third of it by the rate.
    Of2001,
}

/// Whether a receiver follows the one-way delay between measurements of its round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneWay {
    /// It does.
    Followed,
    /// Measurements alone count.
    Ignored,
}

/// Whether long open loss intervals discount older ones (RFC 4654, 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discounting {
    /// They do.
    On,
    /// All intervals count by their place alone.
    Off,
}

/// What the loss interval before the first loss is calculated from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstInterval {
    /// The square root alone (RFC 4654, 5.6). At a few packets per round-trip time the equation makes of it much less than
    /// what was received: at one packet, a thirtieth.
    Rfc4654,
    /// The whole equation (RFC 5348, 6.3.1): it gives back what was received.
    Rfc5348,
}

/// What a calculated rate grows by after a loss event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// What the equation makes of the open loss interval: at most a seventh of a packet per round-trip time in each, or a quarter
    /// where older intervals are discounted.
    Equation,
    /// At least what TCP does: from half of what was received, a packet per round-trip time in each (RFC 5681, 3.1).
    Tcp,
}

/// How fast the source rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rise {
    /// By a packet per largest round-trip time in each (RFC 4654, 2.2).
    Packet,
    /// Up to twofold in a largest round-trip time, as a single TFRC flow may (RFC 5348, 4.3).
    Double,
}

impl Config {
    /// RFC 4654, with packets of 1000 bytes.
    pub fn published() -> Config {
        let sending = Sending::published();
        let slowest = Rate::of(u64::from(sending.packet_size), Span::from_secs(8));
        Config {
            sending: Sending {
                initial_rtt: Span::from_millis(500),
                shortest_rtt: Span::from_millis(1),
                start: Start::Doubling(Doubling::default()),
                bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
                ..sending
            },
            timer: TimerLaw::Rfc,
            near: 0.1,
            rtt_max_kept: 0.9,
            one_way: OneWay::Followed,
            discounting: Discounting::On,
            first: FirstInterval::Rfc4654,
            event: 1.0,
            recovery: Recovery::Equation,
            rise: Rise::Packet,
            hold: Span::ZERO,
            least: Rate::ZERO,
            received_over: 3.0,
            patience: Span::ZERO,
        }
    }

    /// A real network: the first largest round-trip time is 20 ms (a longer one counts at once) and is halved per round where
    /// paths are shorter, the first loss interval is that of RFC 5348, slow start doubles what came in the latest round trip
    /// alone (over three it grows by a third in each, and a TCP beside it takes the path first), and a host that is held up
    /// for less than 200 ms is not missed.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending { initial_rtt: Span::from_millis(20), ..Sending::transport(packet_size) },
            rtt_max_kept: 0.5,
            first: FirstInterval::Rfc5348,
            received_over: 1.0,
            patience: Span::from_millis(200),
            ..Config::published()
        }
    }
}
