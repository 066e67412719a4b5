//! GMCC's parameters as text.

use super::config::{Assumed, Config, CorMean, Joins, LayerScheme, LeaveNotice, Output, TafSample};
use super::taf::MOST;
use crate::half::Half;
use crate::packet::{LayerStates, Mark};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, policy};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "gmcc",
        number: 7,
        summary: "layers that adapt to one receiver each; receivers join as many as their bottleneck takes",
        source: "seed 000, chapter 4",
        sender: "follows the most congested receiver of each layer, and switches layers on and off as they are asked for",
        receiver: "compares its congestion with that of each layer's representative; joins a layer when it is far less, leaves one when it holds two back",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
        wires: &[Wire::Native],
        layers: LayerRates::Adaptive,
        deviations: &[
            "Every packet carries its own layer's representative, and for all layers whether they are on and followed.",
            "A representative without any sample gives way to everybody who has one.",
            "Reports say how long they were held, and at what rate the layer arrives.",
            "On real networks losses are compared with arrivals of a quarter of a second instead of one packet's interval.",
            "On real networks intervals between losses are averaged, not their reciprocals.",
            "On real networks silence of a receiver adds up, so that old losses do not hold it back for ever.",
            "On real networks N is 10 and J is 5 instead of 30, so that layers are found within a transfer.",
            "On real networks a leave takes three checks in a row, and a layer that was left is not joined again at once.",
            "On real networks heartbeats come every 25 ms at most, and at most eight reports per round-trip time.",
            "On real networks every layer starts by doubling in rounds, and a representative says that it leaves.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::whole(
            "layers",
            1,
            LayerStates::LAYERS as u64,
            field!(layers as u8),
            "how many layers there are at most",
        ),
        Opt::choice(
            "control",
            choice!(control: "aimd" => LayerScheme::Aimd, "ormcc" => LayerScheme::Ormcc, "tfmcc" => LayerScheme::Tfmcc, "pgmcc" => LayerScheme::Pgmcc),
            "what moves the rate of a layer",
        ),
        policy!(),
        Opt::number(
            "beta",
            Within::of(0.5, 1.0),
            field!(beta),
            "with control=ormcc, part of the throughput at congestion that is kept after a cut",
        ),
        Opt::whole("n", 2, MOST as u64, field!(samples as u8), "samples that statistics are made of"),
        Opt::whole("j", 1, 200, field!(comparisons as u8), "comparisons in a row that a join takes"),
        Opt::choice(
            "taf",
            choice!(taf: "smoothed" => TafSample::Smoothed, "product" => TafSample::Product),
            "what a sample of the attenuation factor is",
        ),
        Opt::choice(
            "cor",
            choice!(cor: "mean" => CorMean::Mean, "harmonic" => CorMean::Harmonic),
            "how intervals between losses are averaged",
        ),
        Opt::choice(
            "output",
            choice!(output: "pair" => Output::Pair, "window" => Output::Window),
            "how the rate before a loss is measured",
        ),
        Opt::seconds("window", Within::POSITIVE, field!(window), "over this time arrivals are counted"),
        Opt::choice(
            "assumed",
            choice!(assumed: "once" => Assumed::Once, "each" => Assumed::Each),
            "what losses that only the representative has count for",
        ),
        Opt::choice(
            "joins",
            choice!(joins: "compared" => Joins::Compared, "early" => Joins::Early),
            "layers are joined at comparisons of losses, or also where a start-up or the representative's losses alone show room",
        ),
        Opt::whole("checks", 1, 200, field!(checks as u8), "checks in a row that a leave takes"),
        Opt::seconds(
            "rejoin",
            Within::of(0.0, 3600.0),
            field!(rejoin),
            "least time before a layer that was left is joined again",
        ),
        Opt::number(
            "rho",
            Within::PART,
            field!(shift_probability),
            "probability that bandwidth is shifted between two cuts",
        ),
        Opt::number("delta", Within::PART, field!(shift), "part of a layer's rate that is shifted"),
        Opt::seconds(
            "beat",
            Within::of(0.0, 10.0),
            field!(shortest_beat),
            "least time between two heartbeats",
        ),
        Opt::choice(
            "farewell",
            choice!(farewell: "silent" => LeaveNotice::Silent, "told" => LeaveNotice::Told),
            "whether a representative says that it leaves a layer",
        ),
    ];

    const MARK: Mark = Mark::Layered {
        id: None,
        mean: f32::INFINITY,
        error: 0.0,
        rtt: 0.0,
        above: Half(0),
        updates: 0,
        states: LayerStates(0),
    };

    fn published() -> Config {
        Config::published()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }

    fn layers(&self) -> u8 {
        self.layers
    }

    fn set_layers(&mut self, layers: u8) {
        self.layers = layers;
    }
}
