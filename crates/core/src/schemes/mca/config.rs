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
    /// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// The content of reports and their filters.
        mode: Mode = Mode::Er
            => choice["mode", { "er" => Er, "bin" => Bin },
                "reports say how fast packets arrived, or only that there is congestion"];
        /// How accumulation is measured.
        measuring: Measuring = Measuring::published();
        /// Decrease factor "beta" (paper 000, D.2).
        beta: f64 = 0.9 => number["beta", NumberRange::of(0.5, 1.0), "part of the rate that is kept after a cut"];
        /// How often the growth since a cut was due is taken off the rate of Bin-CI.
        excess: Excess = Excess::Twice
            => choice["excess", { "once" => Once, "twice" => Twice },
                "how many times a late cut with binary reports subtracts the rate's growth since then; the thesis prints twice"];
        /// Whether ER-CI lowers the rate only once per `RTT + 2 sigma`.
        gate: Gate = Gate::Off
            => choice["gate", { "off" => Off, "on" => On },
                "whether explicit rates cut only once per round-trip time"];
        /// Receivers measure their egress rate over this time, at least eight packets.
        window: Span = Span::from_millis(50)
            => seconds["window", NumberRange::POSITIVE,
                "over this time egress rates are measured, at least eight packets"];
        /// How packets are sent, whatever the scheme.
        sending: Sending = Sending::published()
            => option[Opt::seconds("period", NumberRange::POSITIVE, field!(sending.min_rtt),
                "no round-trip time counts as shorter than this")];
        /// The law of the delay of answers to the start-up.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "steepness of the law of answers to the start-up"];
        /// A receiver sends at most this many reports per largest round-trip time; `None` for one at each loss, as in the
        /// paper.
        reports_per_rtt: Option<u16> = None;
    }

    /// The thesis, with explicit rates: beta 0.9, packets of 1000 bytes, linear start.
    // Paper gap: D.3 does not say over how long a receiver measures its egress rate. Here it is the time between two
    // control packets, at least eight packets.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MORE: &'static [Opt<Config>] = &measuring!();

        const MARK: Mark = Mark::REPRESENTATIVE;
    }
}

/// Which of the two schemes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Binary indications (paper 000, D.2).
    Bin,
    /// Explicit rates (paper 000, D.3).
    Er,
}

/// How often Bin-CI takes `V_s - V_d` off, the growth of the rate since a cut was due.
// Paper gap: D.2 goes back to V_d, responds, "and cancels excessive increment due to late response": beta (V_d - V_e) - (V_s - V_d).
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
    /// Every accepted report counts, as in the paper: a second one with the same rate changes nothing.
    Off,
    /// One per round-trip time.
    On,
}

impl Config {
    /// A sender on a real network: doubling start, all guards, thresholds that survive the noise of hosts
    /// ([`Measuring::transport`]).
    ///
    /// Noise makes congestion visible only after some ten milliseconds, so the rate must not move faster than that: no round-trip time
    /// counts as shorter than 20 ms. Egress rates are taken over a tenth of a second, so that a few milliseconds of noise are a few
    /// percent. They lower the rate once per round trip, because the lowest of several noisy samples is too low.
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

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "mca",
    number: 3,
    summary: "one rate; avoids congestion: lowers it when the session's own packets pile up in a queue",
    source: "paper 000, appendix D",
    sender: "filters reports so that one receiver's count (explicit rates), or as many as the worst one's (binary)",
    receiver: "measures how many bytes wait in the network; reports congestion once per control packet, without suppression",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "It is for networks of its own: beside flows that fill queues until they overflow it gets little.",
        "Binary indications pass the last filter when the latest one is more than a round trip ago; the thesis prints the opposite.",
        "Events of receivers are forgotten slowly, as in LE-SBCC.",
        "The control packet that ends congestion is not counted again in the next measurement.",
        "On real networks thresholds grow with the rate and with the noise that is measured, and a queue that never changes counts as a longer route.",
        "On real networks the session starts by doubling in rounds, and no round-trip time counts as shorter than 20 ms.",
        "A rate that is not used does not grow, nor does one that nobody seems to receive.",
    ],
};
