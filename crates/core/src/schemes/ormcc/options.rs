//! ORMCC's parameters as text.

use super::config::{AcrossSwitch, Config, SwitchOn};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, policy, spread};
use crate::spec::{Field, Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "ormcc",
        number: 1,
        summary: "one rate; follows the receiver with the lowest throughput at congestion",
        source: "seed 000, chapter 3",
        sender: "names one receiver its representative and adapts the rate to that one's reports; asks all again when it is silent",
        receiver: "measures its throughput at congestion; reports when it is the representative, or slower than that",
        feedback: Feedback::Reports,
        says_rate: SaysRate::StartUp,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[
            "Reports carry how long the receiver held them, so that their random delay is no round-trip time.",
            "On real networks throughput at congestion is measured over a tenth of a second to a second, by distance and rate.",
            "A packet per round trip is a packet per round-trip time at congestion, where a transport's other answers tell the present one.",
            "On real networks the session starts by doubling in rounds instead of a packet per round-trip time.",
            "On real networks the representative sends at most eight reports per round-trip time.",
            "A rate that is not used does not grow, nor does one that nobody seems to receive.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        policy!(),
        Opt::number(
            "beta",
            Within::of(0.5, 1.0),
            field!(beta),
            "part of the throughput at congestion that is kept after a cut",
        ),
        Opt::number("alpha", Within::up_to(1.0), ALPHA, "gain of means at source and receivers"),
        Opt::seconds(
            "window",
            Within::POSITIVE,
            field!(trac_window),
            "over this time throughput at congestion is measured at most",
        ),
        Opt::seconds(
            "window-least",
            Within::POSITIVE,
            field!(trac_least),
            "and at least: this time, the largest round-trip time, and what 16 packets take",
        ),
        Opt::number("spread", Within::up_to(50.0), SPREAD, "steepness of the law of report delays"),
        Opt::choice(
            "switch-on",
            choice!(switch_on: "sample" => SwitchOn::Sample, "average" => SwitchOn::Average),
            "what is compared before the representative changes",
        ),
        Opt::choice(
            "across-switch",
            choice!(across_switch: "restart" => AcrossSwitch::Restart, "continue" => AcrossSwitch::Continue),
            "the representative's statistics at a change",
        ),
    ];

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

/// One gain for both.
const ALPHA: Field<Config, f64> = Field {
    get: |config| Some(config.alpha_source),
    set: |config, gain| {
        if let Some(gain) = gain {
            (config.alpha_source, config.alpha_receiver) = (gain, gain);
        }
    },
};

const SPREAD: Field<Config, f64> = spread!(delay_law);
