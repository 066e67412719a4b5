//! RLC's parameters as text.

use super::config::{Config, Pace, Points};
use super::source::LAYERS;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire};
use crate::spec::{Field, Opt, Within};
use crate::time::{Rate, Span};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "rlc",
        number: 8,
        summary: "layers of fixed, doubling rates; receivers join and leave on their own, without any report",
        source: "seed 004",
        sender: "sends each layer by a timetable, with bursts at double rate that try out the next layer; hears nothing",
        receiver: "leaves a layer at a loss, joins one at a synchronisation point after a burst without loss; reports nothing",
        feedback: Feedback::None,
        says_rate: SaysRate::StartUp,
        wires: &[Wire::Native, Wire::Alc],
        layers: LayerRates::Bounded,
        deviations: &[
            "A burst has come through when all its packets did, as far as the receiver's level goes: a lost last packet is noticed at once, and a source that does not fill its bursts makes nobody join.",
            "A mark of a queue counts as a lost packet.",
            "On real networks the base layer has 0.5 Mbit/s, and bursts, as long and as far apart as in the paper, have more packets.",
            "On real networks losses as rare as those of a TCP flow beside would be cost no layer.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::whole("layers", 1, LAYERS as u64, field!(layers as u8), "how many layers there are at most"),
        Opt::or(
            "auto",
            Opt::seconds(
                "tau0",
                Within::of(1e-6, 60.0),
                INTERVAL,
                "time between packets of the base layer; auto: by its rate",
            ),
        ),
        Opt::or("auto", Opt::rate("base", Within::POSITIVE, BASE, "rate of the base layer; auto: by tau0")),
        Opt::whole("w", 3, 1024, field!(distance as u16), "a burst every so many packets of the base layer"),
        Opt::whole(
            "p",
            1,
            1024,
            field!(bursts as u16),
            "bursts between synchronisation points of the lowest level",
        ),
        Opt::whole(
            "b",
            1,
            511,
            field!(burst as u16),
            "duration of a burst in times between packets of the base layer; less than half of w",
        ),
        Opt::choice(
            "points",
            choice!(points: "doubling" => Points::Doubling, "mcl" => Points::Mcl, "every" => Points::Every),
            "points of level i are 2^i or 2^(i+1)-1 times as far apart as of level 0, or every burst is one and receivers wait by what they have met",
        ),
        Opt::seconds(
            "leave-delay",
            Within::of(0.0, 60.0),
            field!(leave_delay),
            "packets of a layer still come this long after it is left",
        ),
        Opt::or(
            "auto",
            Opt::seconds(
                "deaf",
                Within::of(0.0, 600.0),
                field!(deaf?),
                "losses count for nothing this long after going down; auto: a little more than leave-delay",
            ),
        ),
        Opt::or(
            "off",
            Opt::seconds(
                "beside",
                Within::of(0.001, 1.0),
                field!(beside?),
                "losses as rare as those of TCP at the level's rate over such a round-trip time cost no layer",
            ),
        ),
        Opt::or(
            "off",
            Opt::number(
                "stretch",
                Within::of(1.0, 100.0),
                field!(stretch?),
                "a burst that takes so many times its time blocks going up",
            ),
        ),
    ];

    const MARK: Mark = Mark::Timetable { slot: 0 };

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

/// The interval of the base layer, where it is given by that.
const INTERVAL: Field<Config, Span> = Field {
    get: |config| match config.pace {
        Pace::Every(interval) => Some(interval),
        Pace::Rate(_) => None,
    },
    set: |config, interval| config.pace = interval.map_or(config.pace, Pace::Every),
};

/// The rate of the base layer, where it is given by that.
const BASE: Field<Config, Rate> = Field {
    get: |config| match config.pace {
        Pace::Rate(rate) => Some(rate),
        Pace::Every(_) => None,
    },
    set: |config, rate| config.pace = rate.map_or(config.pace, Pace::Rate),
};
