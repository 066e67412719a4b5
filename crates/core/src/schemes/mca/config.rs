//! Parameters of MCA, with the paper's symbols and values.

use crate::estimate::Measuring;
use crate::field;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, measuring};
use crate::schemes::declare::configuration;
use crate::spec::{NumberRange, Opt};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

configuration! {
    /// All settings of MCA. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// The content of reports and their filters.
        mode: Mode = Mode::Er
            => choice["mode", { "er" => Er, "bin" => Bin },
                "content of reports: the received rate (er), or congestion alone (bin)"];
        /// Settings of the measurement of accumulation.
        measuring: Measuring = Measuring::published();
        /// Decrease factor "beta" (paper 000, D.2).
        beta: f64 = 0.9
            => number["beta", NumberRange::of(0.5, 1.0), "fraction of the rate that remains after a cut"];
        /// Number of times that a cut of Bin-CI subtracts the growth of the rate since the moment when the cut was due.
        excess: Excess = Excess::Twice
            => choice["excess", { "once" => Once, "twice" => Twice },
                "with binary reports, number of times that a late cut subtracts the growth of the rate since the cut was due; the thesis prints twice"];
        /// Whether ER-CI lowers the rate at most once per `RTT + 2 sigma`.
        gate: Gate = Gate::Off
            => choice["gate", { "off" => Off, "on" => On },
                "whether explicit rates cut the rate only once per round-trip time"];
        /// Minimum duration over which receivers measure their egress rate; at least the duration of eight packets.
        window: Span = Span::from_millis(50)
            => seconds["window", NumberRange::POSITIVE,
                "interval over which egress rates are measured; at least eight packets"];
        /// Settings of packet sending that all schemes share.
        sending: Sending = Sending::published()
            => option[Opt::seconds("period", NumberRange::POSITIVE, field!(sending.min_rtt),
                "lower bound of the round-trip time")];
        /// Distribution of the delay of answers to the start-up.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "steepness of the distribution of delays of answers to the start-up"];
        /// Maximum number of reports that a receiver sends per largest round-trip time. `None`: one report at each loss, as in
        /// the paper.
        reports_per_rtt: Option<u16> = None;
    }

    /// The values of the thesis, with explicit rates: beta 0.9, packets of 1000 bytes, linear start.
    // Paper gap: D.3 does not state the duration over which a receiver measures its egress rate. Here it is the time between two
    // control packets, at least eight packets.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MORE: &'static [Opt<Config>] = &measuring!();

        const MARK: Mark = Mark::REPRESENTATIVE;
    }
}

/// The variant of the scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Binary indications (paper 000, D.2).
    Bin,
    /// Explicit rates (paper 000, D.3).
    Er,
}

/// Number of times that a cut of Bin-CI subtracts `V_s - V_d`, the growth of the rate since the moment when the cut was due.
// Paper gap: D.2 returns to V_d, responds, "and cancels excessive increment due to late response": beta (V_d - V_e) - (V_s -
// V_d). The return to V_d already removes the excess. With the second subtraction, a session with late events gets less than a
// session with early ones, but figure D.8 shows equal rates. The printed formula is the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Excess {
    /// `beta (V_d - V_e)`: the rate that a cut at the due moment would have set.
    Once,
    /// `beta (V_d - V_e) - (V_s - V_d)`, as printed in the thesis.
    Twice,
}

/// Whether cuts are limited to one per round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Every accepted report cuts the rate, as in the paper. A second report of the same egress rate has no further effect.
    Off,
    /// At most one cut per round-trip time.
    On,
}

impl Config {
    /// Returns the settings for a real network: doubling start, all guards, thresholds that tolerate the noise of hosts
    /// ([`Measuring::transport`]).
    ///
    /// Noise hides congestion for a few tens of milliseconds, so the rate must not change faster: every round-trip time counts as
    /// at least 20 ms. Egress rates are measured over a tenth of a second, so a few milliseconds of noise change them by a few
    /// percent. Reports of egress rates lower the rate at most once per round trip, because the minimum of several noisy
    /// measurements is too low.
    pub fn transport(packet_size: u16) -> Config {
        let sending = Sending { min_rtt: Span::from_millis(20), ..Sending::transport(packet_size) };
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

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "mca",
    number: 3,
    summary: "one rate; avoids congestion: reduces the rate when the session's own packets form a queue",
    source: "paper 000, appendix D",
    sender: "filters reports down to those of one receiver (explicit rates), or to as many as the worst receiver sends (binary)",
    receiver: "measures the number of bytes in the network; reports congestion once per control packet, without suppression",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "The scheme is meant for dedicated networks: it gets little bandwidth next to flows that fill queues until they overflow.",
        "Binary indications pass the last filter when the latest one is more than a round trip old; the thesis prints the opposite.",
        "Counts of the receivers' events decay slowly, as in LE-SBCC.",
        "The control packet that ends congestion is not counted again in the next measurement.",
        "On real networks thresholds grow with the rate and with the measured noise, and a constant queue counts as a longer route.",
        "On real networks the session starts by doubling its rate in each round, and the round-trip time has a lower bound of 20 ms.",
        "The rate does not grow while the source does not use it, or while no receiver seems to receive.",
    ],
};
