//! RMANP's parameters as text.

use super::config::{Answers, Begin, Config, Repair};
use crate::node::RouterSpec;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::routers::rmanp;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire, spread};
use crate::spec::{Field, Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "rmanp",
        number: 12,
        summary: "one rate; active routers see losses, limit their exits, keep and repeat packets, and make one acknowledgement of many",
        source: "seed 003",
        sender: "grows with each packet that all have, and goes down to what a congestion indication says",
        receiver: "acknowledges each packet, asks for what is missing, and tells the rate that would have been right",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[
            "A receiver that asks for less than the least rate five times in ten seconds is excluded; the paper does not say how.",
            "An acknowledgement that is late counts as one that nobody sends: the time-out is TCP's, and at least a second.",
            "A receiver or router that is not heard for three seconds holds nobody back.",
            "A full cache gives up the oldest packet that somebody lacks; the source has it still.",
            "The packet behind one that a full queue dropped is marked, too: the router that dropped it has told of that congestion.",
            "An ECN mark counts as a loss.",
            "On real networks delivery repairs beside the scheme: a packet that no active router has is waited for no more.",
            "On real networks as many receivers answer as the source can hear, and each packet is acknowledged only to active routers.",
            "A rate that is not used does not grow, nor, on real networks, does one that nobody seems to receive.",
        ],
    };

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::rate(
            "least",
            Within::POSITIVE,
            least(),
            "the least rate that the application accepts, and the first one",
        ),
        Opt::number(
            "da",
            Within::of(0.01, 1.0),
            field!(decrease),
            "part of the rate of a lost packet that a congestion indication asks for",
        ),
        Opt::number(
            "is",
            Within::of(0.0, 100.0),
            field!(increase),
            "part of the least rate that the rate grows by with each packet acknowledged",
        ),
        Opt::choice(
            "repair",
            choice!(repair: "tree" => Repair::Tree, "session" => Repair::Session),
            "source and active routers send again what is lost, or a delivery beside the scheme repairs",
        ),
        Opt::choice(
            "answers",
            choice!(answers: "all" => Answers::All, "few" => Answers::Few),
            "all receivers acknowledge each packet, or as many as the source can hear",
        ),
        Opt::choice(
            "begin",
            choice!(begin: "here" => Begin::Here, "start" => Begin::AtStart),
            "a receiver begins with the first packet that it hears, or with the session's first",
        ),
        Opt::or(
            "any",
            Opt::whole(
                "outstanding",
                2,
                10_000,
                Field {
                    get: |config: &Config| config.outstanding.map(u64::from),
                    set: |config, most| config.outstanding = most.map(|most| most as u16),
                },
                "packets that are sent and not acknowledged, at most",
            ),
        ),
        Opt::whole(
            "requests",
            1,
            100,
            field!(requests as u8),
            "requests for a packet until a receiver signals congestion",
        ),
        Opt::whole(
            "exclude",
            0,
            100,
            field!(exclude as u8),
            "requests for less than the least rate until a receiver is excluded; 0: never",
        ),
        Opt::seconds("exclude-within", Within::POSITIVE, field!(exclude_within), "in this time"),
        Opt::seconds(
            "silence",
            Within::POSITIVE,
            field!(silence),
            "who is not heard for so long holds nobody back",
        ),
        Opt::seconds(
            "rto-min",
            Within::up_to(60.0),
            field!(shortest_rto),
            "shortest acknowledgement time-out",
        ),
        Opt::seconds(
            "rto-first",
            Within::up_to(60.0),
            field!(first_rto),
            "time-out before the first round-trip sample",
        ),
        Opt::seconds("rto-max", Within::up_to(3600.0), field!(longest_rto), "longest time-out"),
        Opt::number(
            "others",
            Within::of(0.1, 1e6),
            field!(answers_per_second),
            "acknowledgements per second of all receivers together, where few answer",
        ),
        Opt::number(
            "spread",
            Within::up_to(50.0),
            spread!(delay_law),
            "steepness of the law of congestion indications' delays, where few answer",
        ),
    ];

    const MARK: Mark = Mark::FLOOR;

    fn published() -> Config {
        Config::published()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    // Seed gap: the paper's cache of 100 packets and queue of 10 are for 180 kb/s.
    fn routers(&self) -> Option<Box<dyn RouterSpec>> {
        Some(Box::new(rmanp::Config {
            cache: REAL_CACHE,
            queue: REAL_QUEUE,
            absolute: self.decrease,
            increase: self.increase * FASTER_HOPS,
            // Who is too slow on a real network is the session's matter.
            exclude: 0,
            silence: self.silence,
            ..rmanp::Config::default()
        }))
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }
}

/// What active routers keep on real networks, in packets, and what waits at an exit of theirs at most.
const REAL_CACHE: u16 = 1000;
const REAL_QUEUE: u16 = 200;
/// Limits at exits grow faster than the source's rate by this, "In" over "Is".
const FASTER_HOPS: f64 = 10.0;

/// The least rate is the lower limit as well, where the document has no other.
const fn least() -> Field<Config, crate::time::Rate> {
    Field {
        get: |config| Some(config.least),
        set: |config, least| {
            if let Some(least) = least {
                if config.sending.bounds.min.bps() == config.least.bps() {
                    config.sending.bounds.min = least;
                }
                config.least = least;
            }
        },
    }
}
