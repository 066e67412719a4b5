//! SMCC's parameters as text.

use super::config::{Config, Joins, LAYERS, Lower};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire};
use crate::schemes::tfmcc::{Recovery, Rise};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "smcc",
        number: 9,
        summary: "layers with fixed highest rates, each controlled as by TFMCC",
        source: "seed 000, 4.1",
        sender: "sends each layer as fast as its limiting receiver says, up to the layer's highest rate",
        receiver: "calculates TCP's rate over its layers; joins and leaves layers by it, and reports what the lower ones leave over",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
        wires: &[Wire::Native],
        layers: LayerRates::Bounded,
        deviations: &[
            "Joins are not preceded by attempts that raise the rate step by step: the new layer itself begins slowly.",
            "On real networks lower layers count with the rates at which they are sent, not with their highest rates.",
            "On real networks start-up goes on after losses in the lowest two layers that no others follow, and layers have a lowest rate.",
            "On real networks a layer makes room for who joins it, may double in a round trip, and does not rise while a leave takes.",
            "A layer that nobody reports about for 10 s is off.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::whole("layers", 1, LAYERS as u64, field!(layers as u8), "how many layers there are at most"),
        Opt::choice(
            "lower",
            choice!(lower: "caps" => Lower::Caps, "rates" => Lower::Rates),
            "lower layers count with their highest rates, or with those at which they are sent",
        ),
        Opt::choice(
            "joins",
            choice!(joins: "rounds" => Joins::Rounds, "early" => Joins::Early),
            "after a feedback round, or in start-up after four round trips; layers are left after four with too little, and who joins too much stays away for longer",
        ),
        Opt::number(
            "least",
            Within::of(0.0, 0.5),
            field!(least),
            "an upper layer is never slower than this part of its highest rate; who has less left for it leaves it",
        ),
        Opt::number(
            "event",
            Within::of(1.0, 4.0),
            field!(control.event),
            "losses within so many round-trip times of the first are one event",
        ),
        Opt::choice(
            "recovery",
            choice!(control.recovery: "equation" => Recovery::Equation, "tcp" => Recovery::Tcp),
            "rates grow by the equation, or at least as TCP's after a loss",
        ),
        Opt::choice(
            "rise",
            choice!(control.rise: "packet" => Rise::Packet, "double" => Rise::Double),
            "a layer rises by a packet per round trip in each, or up to twofold",
        ),
        Opt::seconds(
            "hold",
            Within::of(0.0, 60.0),
            field!(control.hold),
            "a layer does not rise this long after its limiting receiver has left",
        ),
        Opt::rate(
            "cap1",
            Within::of(1e3, 1e11),
            field!(cap),
            "highest rate of the base layer; others: twice the one below",
        ),
    ];

    const MARK: Mark = Mark::EQUATION;

    fn published() -> Config {
        Config::published()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    fn sending(&self) -> &Sending {
        &self.control.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.control.sending
    }

    fn layers(&self) -> u8 {
        self.layers
    }

    fn set_layers(&mut self, layers: u8) {
        self.layers = layers;
    }
}
