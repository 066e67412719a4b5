//! MCA+'s parameters as text.

use super::config::{AcrossSwitch, Config, Samples, Suppress, WhileInvalid};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{
    Configure, Entry, Feedback, LayerRates, SaysRate, Wire, measuring, policy, spread,
};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "mca-plus",
        number: 4,
        summary: "one rate; avoids congestion, following the receiver with the lowest throughput when queues fill",
        source: "seed 000, chapter 5",
        sender: "names one receiver its representative; cuts by a tenth when packets pile up, by a quarter at loss; asks all again when it is silent",
        receiver: "measures how many bytes wait in the network; reports when it is the representative, or slower than that",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[
            "It is for networks of its own: beside flows that fill queues until they overflow it gets little.",
            "Receivers that are faster than the representative keep silent; one section of the thesis prints the opposite.",
            "Reports carry how long the receiver held them, so that their random delay is no round-trip time.",
            "On real networks reports are spread at random while there is no representative, as in ORMCC.",
            "The control packet that ends congestion is not counted again in the next measurement.",
            "The round-trip time begins anew with another representative.",
            "On real networks thresholds grow with the rate and with the noise that is measured, and a queue that never changes counts as a longer route.",
            "On real networks the session starts by doubling in rounds, and no round-trip time counts as shorter than 20 ms.",
            "A rate that is not used does not grow, nor does one that nobody seems to receive.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        policy!(),
        Opt::number(
            "beta",
            Within::of(0.5, 1.0),
            field!(keep_at_accumulation),
            "part of the rate that is kept at accumulation",
        ),
        Opt::number(
            "beta-loss",
            Within::of(0.5, 1.0),
            field!(keep_at_loss),
            "part of the rate that is kept at loss",
        ),
        Opt::number(
            "k",
            Within::of(0.0, 100.0),
            field!(switch_deviations),
            "a receiver replaces the representative below its mean less so many deviations",
        ),
        Opt::whole(
            "n",
            1,
            1000,
            field!(patience as u16),
            "periods that a silent representative is waited for",
        ),
        Opt::number(
            "alpha",
            Within::up_to(1.0),
            field!(alpha),
            "gain of a receiver's mean of its throughput at congestion",
        ),
        Opt::seconds(
            "window",
            Within::of(0.0, 10.0),
            field!(window),
            "throughput is measured over at least this time",
        ),
        Opt::whole(
            "counted",
            100,
            10_000,
            field!(counted as u16),
            "over how many packets the rate of congestion is taken",
        ),
        Opt::choice(
            "suppress",
            choice!(suppress: "faster" => Suppress::Faster, "slower" => Suppress::Slower, "nobody" => Suppress::Nobody),
            "who keeps silent; the thesis prints slower where it means faster",
        ),
        Opt::choice(
            "across-switch",
            choice!(across_switch: "restart" => AcrossSwitch::Restart, "continue" => AcrossSwitch::Continue),
            "the mean round-trip time when the representative changes",
        ),
        Opt::choice(
            "samples",
            choice!(samples: "followed" => Samples::Followed, "all" => Samples::All),
            "whose reports give round-trip samples",
        ),
        Opt::choice(
            "invalid",
            choice!(while_invalid: "spread" => WhileInvalid::Spread, "at-once" => WhileInvalid::AtOnce),
            "when receivers report while there is no representative",
        ),
        Opt::seconds(
            "period",
            Within::POSITIVE,
            field!(sending.shortest_rtt),
            "no round-trip time counts as shorter than this",
        ),
        Opt::number(
            "spread",
            Within::up_to(50.0),
            spread!(delay_law),
            "steepness of the law of report delays",
        ),
    ];

    const MORE: &'static [Opt<Config>] = &measuring!();

    const MARK: Mark = Mark::REPRESENTATIVE;

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
}
