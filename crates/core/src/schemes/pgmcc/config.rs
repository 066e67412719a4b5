//! Parameters of PGMCC, with the draft's names and values.

use crate::rate::{Bounds, Sending};
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::published`] is the draft, [`Config::transport`] is for real networks.
///
/// Of the common options, `start=linear` is the draft's opening: exponential up to `ssthresh`, then linear.
/// `start=doubling` opens exponentially until the first loss, as TCP does, and after a timeout or a pause back to half or
/// three quarters of the window that was. The doubling in rounds of the rate-based schemes does not fit a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// The acker changes only for a receiver with less than this part of its throughput, "c".
    pub hysteresis: f64,
    /// Up to this window the opening is exponential, "SSTHRESH".
    pub ssthresh: f64,
    /// How throughputs are compared.
    pub formula: Formula,
    /// How round-trip times are measured for that comparison.
    pub measure: Measure,
    /// The longest random delay of a negative acknowledgement.
    pub nak_backoff: Span,
    /// The acker acknowledges every so many packets, the first one after a millisecond at once, and each while any is
    /// missing.
    pub ack_every: u8,
    /// Gain of the loss filter.
    pub loss_gain: f64,
    /// What becomes of the tokens of lost packets.
    pub tokens: Tokens,
    /// The shortest retransmission timeout.
    pub shortest_rto: Span,
    /// The timeout before the first round-trip sample.
    pub first_rto: Span,
    /// No timeout is longer, however often it was doubled, but for a longer round-trip time.
    pub longest_rto: Span,
    /// Packets leave no faster than this times the window per round-trip time; `None` for at once when there is a token.
    pub pacing: Option<f64>,
}

/// How the throughputs of two receivers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// TCP's formula with timeouts.
    Full,
    /// The square root alone (seed 000, 1.6.2.2).
    Simple,
}

/// How round-trip times of receivers are measured for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// In seconds, by the packet that a report answers.
    Time,
    /// In packets between the newest one sent and the newest one received (seed 000, 1.6.2.2).
    Packets,
}

/// What becomes of the token of a packet that is declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// It comes back: the packet has left the network.
    // The draft never gives it back, so that each loss takes a token for ever, until a timeout.
    Returned,
    /// It is gone until a timeout: the letter of the draft.
    Kept,
}

/// The draft's longest timeout, and so its slowest sending.
const LONGEST_RTO: Span = Span::from_secs(64);

impl Config {
    /// The draft: linear start, packets of 1000 bytes, no pacing.
    pub fn published() -> Config {
        let sending = Sending::published();
        let slowest = Rate::of(u64::from(sending.packet_size), LONGEST_RTO);
        Config {
            sending: Sending { bounds: Bounds { min: slowest, max: Rate::UNLIMITED }, ..sending },
            hysteresis: 0.75,
            ssthresh: 4.0,
            formula: Formula::Full,
            measure: Measure::Time,
            nak_backoff: Span::from_millis(50),
            ack_every: 1,
            loss_gain: 500.0 / 65_536.0,
            tokens: Tokens::Returned,
            shortest_rto: Span::from_millis(200),
            first_rto: Span::from_secs(3),
            longest_rto: Span::from_secs(64),
            pacing: None,
        }
    }

    /// A real network: exponential opening, bursts spread, at least a packet per 8 s, an acknowledgement for four
    /// packets of a fast stream, and a first timeout of 1 s as in RFC 6298, 2.1.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            first_rto: Span::from_secs(1),
            longest_rto: Span::from_secs(1),
            pacing: Some(1.25),
            ack_every: 4,
            ..Config::published()
        }
    }
}
