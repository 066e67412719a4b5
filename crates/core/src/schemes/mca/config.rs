//! Parameters of MCA, with the seed's symbols and values.

use crate::estimate::Measuring;
use crate::rate::Sending;
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// How accumulation is measured.
    pub measuring: Measuring,
    /// What reports say and how they are filtered.
    pub mode: Mode,
    /// Decrease factor "beta" (seed 000, D.2).
    pub beta: f64,
    /// How often the growth since a cut was due is taken off the rate of Bin-CI.
    pub excess: Excess,
    /// Whether ER-CI lowers the rate only once per `RTT + 2 sigma`.
    pub gate: Gate,
    /// Receivers measure their egress rate over this time, at least eight packets.
    pub window: Span,
    /// The law of the delay of answers to the start-up.
    pub delay_law: TruncatedExponential,
    /// A receiver sends at most this many reports per largest round-trip time; `None` for one at each loss, as in the
    /// seed.
    pub reports_per_rtt: Option<u16>,
}

/// Which of the two schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Binary indications (seed 000, D.2).
    Bin,
    /// Explicit rates (seed 000, D.3).
    Er,
}

/// How often Bin-CI takes `V_s - V_d` off, what the rate has grown by since a cut was due.
// Seed gap: D.2 goes back to V_d, responds, "and cancels excessive increment due to late response": beta (V_d - V_e) - (V_s - V_d).
// The excess is gone with going back; taken off again, a session whose events pass late gets less than one whose events
// pass at once, and figure D.8 has them equal. It is as printed unless asked for otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// `beta (V_d - V_e)`: the rate that a cut at the due moment would have left.
    Once,
    /// `beta (V_d - V_e) - (V_s - V_d)`, as printed.
    Twice,
}

/// Whether cuts are limited to one per round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Every accepted report counts, as in the seed: a second one with the same rate changes nothing.
    Off,
    /// One per round-trip time.
    On,
}

impl Config {
    /// The thesis, with explicit rates: beta 0.9, packets of 1000 bytes, linear start.
    // Seed gap: D.3 does not say over how long a receiver measures its egress rate. Here it is the time between two
    // control packets, at least eight packets.
    pub fn published() -> Config {
        Config {
            sending: Sending::published(),
            measuring: Measuring::published(),
            mode: Mode::Er,
            beta: 0.9,
            excess: Excess::Twice,
            gate: Gate::Off,
            window: Span::from_millis(50),
            delay_law: TruncatedExponential::default(),
            reports_per_rtt: None,
        }
    }

    /// A sender on a real network: doubling start, all guards, thresholds that survive the noise of hosts
    /// ([`Measuring::transport`]).
    ///
    /// Noise makes congestion visible only after some ten milliseconds, so the rate must not move faster than that:
    /// no round-trip time counts as shorter than 20 ms. Egress rates are taken over a tenth of a second, so that a few
    /// milliseconds of noise are a few percent, and lower the rate once per round trip, because the lowest of several
    /// noisy samples is too low.
    pub fn transport(packet_size: u16) -> Config {
        let sending = Sending { shortest_rtt: Span::from_millis(20), ..Sending::transport(packet_size) };
        Config {
            sending,
            measuring: Measuring::transport(),
            gate: Gate::On,
            window: Span::from_millis(100),
            reports_per_rtt: Some(8),
            ..Config::published()
        }
    }
}
