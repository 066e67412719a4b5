//! GMCC's parameters as text.

use super::config::{Assumed, Config, Control, CorMean, Farewell, Joins, Output, TafSample};
use super::taf::MOST;
use crate::packet::Standings;
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::time::Span;

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "gmcc",
        number: 7,
        summary: "layers that adapt to one receiver each; receivers join as many as their bottleneck takes",
        source: "seed 000, chapter 4",
        sender: "follows the most congested receiver of each layer, and switches layers on and off as they are asked for",
        receiver: "compares its congestion with that of each layer's representative; joins a layer when it is far less, leaves one when it holds two back",
        options: OPTIONS,
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

    fn seed() -> Config {
        Config::seed()
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

    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match (option, value) {
            ("layers", _) => self.layers = whole(value, 1, Standings::LAYERS)?,
            ("control", "aimd") => self.control = Control::Aimd,
            ("control", "ormcc") => self.control = Control::Ormcc,
            ("control", "tfmcc") => self.control = Control::Tfmcc,
            ("control", "pgmcc") => self.control = Control::Pgmcc,
            ("policy", _) => self.policy = value.parse().ok()?,
            ("beta", _) => self.beta = within(value, 0.5, 1.0)?,
            ("n", _) => self.samples = whole(value, 2, MOST as u8)?,
            ("j", _) => self.comparisons = whole(value, 1, 200)?,
            ("taf", "smoothed") => self.taf = TafSample::Smoothed,
            ("taf", "product") => self.taf = TafSample::Product,
            ("cor", "mean") => self.cor = CorMean::Mean,
            ("cor", "harmonic") => self.cor = CorMean::Harmonic,
            ("output", "pair") => self.output = Output::Pair,
            ("output", "window") => self.output = Output::Window,
            ("window", _) => self.window = Span::from_secs_f64(positive(value)?),
            ("assumed", "once") => self.assumed = Assumed::Once,
            ("assumed", "each") => self.assumed = Assumed::Each,
            ("joins", "compared") => self.joins = Joins::Compared,
            ("joins", "early") => self.joins = Joins::Early,
            ("checks", _) => self.checks = whole(value, 1, 200)?,
            ("rejoin", _) => self.rejoin = Span::from_secs_f64(within(value, 0.0, 3600.0)?),
            ("rho", _) => self.shift_probability = within(value, 0.0, 1.0)?,
            ("delta", _) => self.shift = within(value, 0.0, 1.0)?,
            ("beat", _) => self.shortest_beat = Span::from_secs_f64(within(value, 0.0, 10.0)?),
            ("farewell", "silent") => self.farewell = Farewell::Silent,
            ("farewell", "told") => self.farewell = Farewell::Told,
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "layers" => self.layers.to_string(),
            "control" => match self.control {
                Control::Aimd => "aimd".into(),
                Control::Ormcc => "ormcc".into(),
                Control::Tfmcc => "tfmcc".into(),
                Control::Pgmcc => "pgmcc".into(),
            },
            "policy" => self.policy.to_string(),
            "beta" => number(self.beta),
            "n" => self.samples.to_string(),
            "j" => self.comparisons.to_string(),
            "window" => number(self.window.as_secs_f64()),
            "checks" => self.checks.to_string(),
            "rejoin" => number(self.rejoin.as_secs_f64()),
            "rho" => number(self.shift_probability),
            "delta" => number(self.shift),
            "beat" => number(self.shortest_beat.as_secs_f64()),
            _ => self.measure(option).into(),
        }
    }
}

impl Config {
    /// The name of a choice about how congestion is measured, and of how a layer is left.
    fn measure(&self, option: &str) -> &'static str {
        let choose = |first, one, other| if first { one } else { other };
        match option {
            "taf" => choose(self.taf == TafSample::Smoothed, "smoothed", "product"),
            "cor" => choose(self.cor == CorMean::Mean, "mean", "harmonic"),
            "output" => choose(self.output == Output::Pair, "pair", "window"),
            "assumed" => choose(self.assumed == Assumed::Once, "once", "each"),
            "joins" => choose(self.joins == Joins::Compared, "compared", "early"),
            "farewell" => choose(self.farewell == Farewell::Silent, "silent", "told"),
            _ => "",
        }
    }
}

/// A whole number between these two, both included.
fn whole(value: &str, least: u8, most: u8) -> Option<u8> {
    value.parse().ok().filter(|number| (least..=most).contains(number))
}

const OPTIONS: &[Opt] = &[
    Opt { name: "layers", meaning: "how many layers there are at most, 1 to 16" },
    Opt { name: "control", meaning: "aimd | ormcc | tfmcc | pgmcc: what moves the rate of a layer" },
    Opt { name: "policy", meaning: PolicyChoice::MEANING },
    Opt {
        name: "beta",
        meaning: "with control=ormcc, part of the throughput at congestion that is kept after a cut, 0.5 to 1",
    },
    Opt { name: "n", meaning: "samples that statistics are made of, 2 to 30" },
    Opt { name: "j", meaning: "comparisons in a row that a join takes, 1 to 200" },
    Opt { name: "taf", meaning: "smoothed | product: what a sample of the attenuation factor is" },
    Opt { name: "cor", meaning: "mean | harmonic: how intervals between losses are averaged" },
    Opt { name: "output", meaning: "pair | window: how the rate before a loss is measured" },
    Opt { name: "window", meaning: "over how many seconds arrivals are counted" },
    Opt { name: "assumed", meaning: "once | each: what losses that only the representative has count for" },
    Opt {
        name: "joins",
        meaning: "compared | early: layers are joined at comparisons of losses, or also where a start-up or the representative's losses alone show room",
    },
    Opt { name: "checks", meaning: "checks in a row that a leave takes, 1 to 200" },
    Opt { name: "rejoin", meaning: "least seconds before a layer that was left is joined again, 0 to 3600" },
    Opt { name: "rho", meaning: "probability that bandwidth is shifted between two cuts, 0 to 1" },
    Opt { name: "delta", meaning: "part of a layer's rate that is shifted, 0 to 1" },
    Opt { name: "beat", meaning: "least seconds between two heartbeats, 0 to 10" },
    Opt { name: "farewell", meaning: "silent | told: whether a representative says that it leaves a layer" },
];
