//! Parameters of SMCC.

use crate::packet::Mark;
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::schemes::tfmcc;
use crate::schemes::tfmcc::{Recovery, Rise};
use crate::spec::{NumberRange, Opt};
use crate::time::{Rate, Span};
use crate::{choice, field};

/// Maximum number of layers.
pub(super) const LAYERS: usize = 16;
/// Maximum time between packets of an enhancement layer.
const SLOWEST_GAP: Span = Span::from_secs(8);

configuration! {
    /// Parameters of SMCC. [`Config::published`] has the values of paper 000, [`Config::transport`] is for real networks.
    ///
    /// A minimum rate of the session raises the rate of the base layer. A maximum rate of the session lowers the rates of the
    /// enhancement layers.
    pub struct Config {
        /// Maximum number of layers, 1 to 16.
        layers: u8 = 8 => whole["layers", 1, LAYERS as u64, "maximum number of layers"];
        /// Rate that a receiver assumes for the lower layers. The assumed rate determines the remaining rate for a layer, and
        /// when the receiver joins or leaves a layer.
        lower: Lower = Lower::Caps
            => choice["lower", { "caps" => Caps, "rates" => Rates },
                "rate that counts for a lower layer: its highest rate (caps), or its sending rate (rates)"];
        /// Condition for joining a layer.
        joins: Joins = Joins::Rounds
            => choice["joins", { "rounds" => Rounds, "early" => Early },
                "condition for a join: a feedback round (rounds), or also four round trips of a start-up (early), with leaves after four round trips and pauses after short stays"];
        /// Minimum rate of an enhancement layer, as a fraction of its highest rate. A receiver with less remaining rate leaves
        /// the layer.
        // Paper gap: 4.1 has no lowest rate. A receiver with almost no remaining rate for its highest layer then slows that layer
        // almost to a stop. Receivers that join the layer meanwhile wait for its first packet in vain.
        least: f64 = 0.0
            => number["least", NumberRange::of(0.0, 0.5),
                "minimum rate of an enhancement layer, as a fraction of its highest rate; a receiver with a smaller remainder leaves the layer"];
        /// Parameters of the control of each layer.
        control: tfmcc::Config = tfmcc::Config::published()
            => option[Opt::number("event", NumberRange::of(1.0, 4.0), field!(control.event),
                "number of round-trip times, from the first loss, whose losses are one event")]
            => option[Opt::choice("recovery", choice!(control.recovery: "equation" => Recovery::Equation,
                "tcp" => Recovery::Tcp),
                "growth of a calculated rate after a loss: by the equation, or at least TCP's")]
            => option[Opt::choice("rise", choice!(control.rise: "packet" => Rise::Packet,
                "double" => Rise::Double),
                "growth of a layer per round trip: a packet, or up to twofold")]
            => option[Opt::seconds("hold", NumberRange::of(0.0, 60.0), field!(control.hold),
                "time without growth of a layer after its limiting receiver has left")];
        /// Highest rate of the base layer; each further layer has twice the highest rate of the layer below.
        cap: Rate = Rate::from_mbps(1.0)
            => rate["cap1", NumberRange::of(1e3, 1e11),
                "highest rate of the base layer; each further layer has twice the highest rate of the one below"];
    }

    /// The values of paper 000: layers of 1, 2, 4 .. Mbit/s. Seven layers are enough for 100 Mbit/s.
    pub fn published;

    impl Configure for Config {
        sending: control.sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::EQUATION;

        fn layers(&self) -> u8 {
            self.layers
        }

        fn set_layers(&mut self, layers: u8) {
            self.layers = layers;
        }
    }
}

/// Rate assumed for the lower layers.
// Paper gap: 4.1 uses the highest rates. A lower layer that is shared with a slower receiver is sent below its highest rate. The
// faster receiver may compensate for this only after its estimate exceeds the highest rate. `Config::transport` uses the rates at
// which layers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lower {
    /// The highest rates of the lower layers, as in the paper.
    Caps,
    /// The rates at which the lower layers are sent.
    Rates,
}

/// Condition for joining a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// The estimate exceeded the required rate for a whole feedback round.
    Rounds,
    /// In start-up, the estimate needs to exceed the required rate for only four round-trip times. Start-up continues after
    /// losses in the lowest layers, if no further losses follow. A layer slows down for a receiver that joins it. A receiver that
    /// leaves a layer after a short stay waits before it rejoins, and longer after each further short stay.
    // Paper gap: 4.1 joins by the estimate only. At the beginning competing flows slow the base layer down, and the estimate
    // reflects only this slow rate, not a fast path. Sixty seconds later a receiver at 100 Mbit/s had a quarter of its share.
    Early,
}

/// Duration for which packets of a layer still arrive after a receiver has left it (IGMPv2; RFC 2236, 8.8).
const LEAVE_DELAY: Span = Span::from_millis(2200);

impl Config {
    /// Returns the parameters for a real network.
    pub fn transport(packet_size: u16) -> Config {
        let control = tfmcc::Config {
            // A full queue drops packets until its flows have detected the losses, one round trip later. Losses that are reported
            // once per round trip are detected even later, and would otherwise count as two events.
            event: 1.5,
            recovery: tfmcc::Recovery::Tcp,
            rise: tfmcc::Rise::Double,
            hold: LEAVE_DELAY,
            ..tfmcc::Config::transport(packet_size)
        };
        Config { control, lower: Lower::Rates, joins: Joins::Early, least: 0.2, ..Config::published() }
    }

    /// Returns the rate to which silence may reduce an enhancement layer.
    pub fn slowest(&self) -> Rate {
        Rate::of(u64::from(self.control.sending.packet_size), SLOWEST_GAP)
    }

    /// Returns the lowest rate of enhancement layer `layer` while receivers report about it.
    pub fn least_of(&self, layer: u8) -> Rate {
        self.slowest().max(self.cap_of(layer) * self.least)
    }

    /// Returns the highest rate of `layer`.
    pub fn cap_of(&self, layer: u8) -> Rate {
        self.cap * (1u64 << layer.min(63)) as f64
    }

    /// Returns the sum of the highest rates of layers 0 to `layer`.
    pub fn cap_up_to(&self, layer: u8) -> Rate {
        self.cap * ((2u64 << layer.min(62)) - 1) as f64
    }

    /// Returns the sum of the highest rates of all layers below `layer`.
    pub fn cap_below(&self, layer: u8) -> Rate {
        layer.checked_sub(1).map_or(Rate::ZERO, |below| self.cap_up_to(below))
    }
}

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "smcc",
    number: 9,
    summary: "layers with fixed highest rates, each controlled as by TFMCC",
    source: "paper 000, 4.1",
    sender: "sends each layer at the rate that its limiting receiver reports, up to the layer's highest rate",
    receiver: "calculates TCP's rate over its layers; joins and leaves layers by this rate, and reports the remainder above the lower layers",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::Bounded,
    deviations: &[
        "No attempts with stepwise rates precede a join: a new layer starts slowly by itself.",
        "On real networks a lower layer counts with its sending rate, not with its highest rate.",
        "On real networks start-up continues after isolated losses in the lowest two layers, and each layer has a minimum rate.",
        "On real networks a layer starts at the rate that a joining receiver can take, may double in a round trip, and does not grow during the time of a leave.",
        "A layer is off after 10 s without a report.",
    ],
};
