//! MCA's parameters as text, and those of the measurement, which MCA+ has too.

use super::config::{Config, Excess, Gate, Mode};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, measuring, spread};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "mca",
        number: 3,
        summary: "one rate; avoids congestion: lowers it when the session's own packets pile up in a queue",
        source: "seed 000, appendix D",
        sender: "filters reports so that one receiver's count (explicit rates), or as many as the worst one's (binary)",
        receiver: "measures how many bytes wait in the network; reports congestion once per control packet, without suppression",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
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

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::choice(
            "mode",
            choice!(mode: "er" => Mode::Er, "bin" => Mode::Bin),
            "reports say how fast packets arrived, or only that there is congestion",
        ),
        Opt::number("beta", Within::of(0.5, 1.0), field!(beta), "part of the rate that is kept after a cut"),
        Opt::choice(
            "excess",
            choice!(excess: "once" => Excess::Once, "twice" => Excess::Twice),
            "how often a late cut with binary reports takes off what the rate grew by meanwhile; the thesis prints twice",
        ),
        Opt::choice(
            "gate",
            choice!(gate: "off" => Gate::Off, "on" => Gate::On),
            "whether explicit rates cut only once per round-trip time",
        ),
        Opt::seconds(
            "window",
            Within::POSITIVE,
            field!(window),
            "over this time egress rates are measured, at least eight packets",
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
            "steepness of the law of answers to the start-up",
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
