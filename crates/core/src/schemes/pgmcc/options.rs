//! PGMCC's parameters as text.

use super::config::{Config, Formula, Measure, Tokens};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire};
use crate::spec::{Field, Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "pgmcc",
        number: 5,
        summary: "one rate; a TCP-like window between the source and the receiver with the lowest throughput by TCP's formula",
        source: "draft-ietf-rmt-bb-pgmcc-03; seed 000, 1.6.2.2",
        sender: "names one receiver its acker, runs a window over its acknowledgements, compares all that report losses with it",
        receiver: "acknowledges each packet that names it the acker; else reports losses after a random delay",
        feedback: Feedback::Reports,
        says_rate: SaysRate::StartUp,
        wires: &[Wire::Native, Wire::Pgm],
        layers: LayerRates::One,
        deviations: &[
            "The token of a lost packet comes back when the loss is noticed; in the draft it is gone until a timeout.",
            "The filter's constant is a gain of 500/65536; the draft's formula has it on the wrong side.",
            "The acker sends no loss reports of its own: its acknowledgements say the same.",
            "Only acknowledgements show that the acker is there; in the draft the loss reports of others do too.",
            "The acker's round-trip time is smoothed before it is compared.",
            "Repairs are packets with numbers of their own, so a report is never cancelled by a repair.",
            "The window grows only while tokens run out; a pause longer than a timeout closes it to ssthresh.",
            "start=doubling opens the window exponentially until the first loss, as TCP does.",
            "An ECN mark at the acker counts as a loss.",
            "On real networks the acker acknowledges every fourth packet, or once a millisecond, unless one is missing.",
            "On real networks bursts are spread: at most 1.25 windows leave per round-trip time.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::number(
            "c",
            Within::of(0.1, 1.0),
            field!(hysteresis),
            "the acker changes for a throughput below this part of the acker's",
        ),
        Opt::number(
            "ssthresh",
            Within::of(1.0, 1000.0),
            field!(ssthresh),
            "window up to which the opening is exponential, in packets",
        ),
        Opt::choice(
            "formula",
            choice!(formula: "full" => Formula::Full, "simple" => Formula::Simple),
            "TCP's formula for comparing throughputs",
        ),
        Opt::choice(
            "measure",
            choice!(measure: "time" => Measure::Time, "packets" => Measure::Packets),
            "the unit of round-trip times in that comparison",
        ),
        Opt::seconds(
            "nak-backoff",
            Within::up_to(10.0),
            field!(nak_backoff),
            "longest random delay of a loss report",
        ),
        Opt::whole(
            "ack-every",
            1,
            16,
            field!(ack_every as u8),
            "packets per acknowledgement of a fast stream",
        ),
        Opt::number(
            "loss-gain",
            Within::of(1.0, 65_536.0),
            LOSS_GAIN,
            "gain of the receivers' loss filter, in 65536ths",
        ),
        Opt::choice(
            "tokens",
            choice!(tokens: "returned" => Tokens::Returned, "kept" => Tokens::Kept),
            "the tokens of lost packets; kept is the draft",
        ),
        Opt::seconds("rto-min", Within::up_to(60.0), field!(shortest_rto), "shortest timeout"),
        Opt::seconds(
            "rto-first",
            Within::up_to(60.0),
            field!(first_rto),
            "timeout before the first round-trip sample",
        ),
        Opt::or(
            "off",
            Opt::number(
                "pacing",
                Within::of(1.0, 10.0),
                field!(pacing?),
                "how many windows leave per round-trip time at most",
            ),
        ),
    ];

    const MARK: Mark = Mark::Acker { id: None };

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

const LOSS_GAIN: Field<Config, f64> = Field {
    get: |config| Some(config.loss_gain * 65_536.0),
    set: |config, gain| {
        if let Some(gain) = gain {
            config.loss_gain = gain / 65_536.0;
        }
    },
};
