//! Parameters of RMANP, with the paper's symbols and values.

use super::exclusion::Exclusion;
use super::router;
use crate::node::RouterSpec;
use crate::packet::Mark;
use crate::rate::{Bounds, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::{Field, NumberRange, Opt};
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

configuration! {
    /// Everything that can be chosen at source and receivers. [`Config::published`] is the paper, [`Config::transport`] is for real
    /// networks. Active routers have parameters of their own ([`crate::schemes::rmanp::router::Config`]).
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = published_sending();
        /// The least rate that the application accepts, "Rm", which is also the first one.
        least: Rate = Rate::from_bps(16_000.0)
            => option[Opt::rate("least", NumberRange::POSITIVE, least(),
                "minimum rate that the application accepts, and the first rate")];
        /// Part of the rate at which a lost packet was sent that is asked for, "Da".
        decrease: f64 = 0.8
            => number["da", NumberRange::of(0.01, 1.0),
                "part of the rate of a lost packet that a congestion indication asks for"];
        /// Part of the least rate that the rate grows by with each packet acknowledged, "Is".
        increase: f64 = 0.005
            => number["is", NumberRange::of(0.0, 100.0),
                "part of the least rate that the rate grows by with each packet acknowledged"];
        /// The nodes that repair losses.
        repair: Repair = Repair::Tree
            => choice["repair", { "tree" => Tree, "session" => Session },
                "source and active routers send again what is lost, or a delivery beside the scheme repairs"];
        /// The feedback of receivers, and its times.
        answers: Answers = Answers::All
            => choice["answers", { "all" => All, "few" => Few },
                "all receivers acknowledge each packet, or as many as the source can hear"];
        /// Where a receiver begins.
        begin: Begin = Begin::Here
            => choice["begin", { "here" => Here, "start" => AtStart },
                "a receiver begins with the first packet that it receives, or with the session's first"];
        /// Packets that are sent and not acknowledged, at most; `None` for any number.
        outstanding: Option<u16> = Some(100)
            => whole["outstanding" or "any", 2, 10_000, "packets that are sent and not acknowledged, at most"];
        /// The number of requests for a packet after which a receiver signals congestion.
        // Paper gap: "a certain threshold".
        requests: u8 = 3 => whole["requests", 1, 100, "requests for a packet until a receiver signals congestion"];
        /// The number of requests for less than the least rate, within `exclude_within`, after which a receiver is excluded; never when 0.
        exclude: u8 = 5
            => whole["exclude", 0, 100,
                "requests for less than the least rate until a receiver is excluded; 0: never"];
        /// In this time.
        exclude_within: Span = Span::from_secs(10) => seconds["exclude-within", NumberRange::POSITIVE, "in this time"];
        /// The duration of silence after which a receiver holds no other back.
        silence: Span = Span::from_secs(3)
            => seconds["silence", NumberRange::POSITIVE, "time of silence after which a receiver no longer holds others back"];
        /// Shortest acknowledgement time-out.
        // Paper gap: the time-out is named and not defined.
        min_rto: Span = Span::from_secs(1)
            => seconds["rto-min", NumberRange::up_to(60.0), "shortest acknowledgement time-out"];
        /// Before the first round-trip sample.
        first_rto: Span = Span::from_secs(3)
            => seconds["rto-first", NumberRange::up_to(60.0), "time-out before the first round-trip sample"];
        /// No time-out is longer, however often it was doubled.
        max_rto: Span = Span::from_secs(64) => seconds["rto-max", NumberRange::up_to(3600.0), "longest time-out"];
        /// Where few answer: the number of acknowledgements of all receivers together, per second.
        answers_per_second: f64 = 50.0
            => number["others", NumberRange::of(0.1, 1e6),
                "acknowledgements per second of all receivers together, where few answer"];
        /// Where few answer: the law of the delay of congestion indications, and of answers to the start-up.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "steepness of the law of congestion indications' delays, where few answer"];
    }

    /// The paper: packets of 1057 bytes, 16 kb/s at first (paper 003, 3).
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::FLOOR;

        // Paper gap: the paper's cache of 100 packets and queue of 10 are for 180 kb/s.
        fn routers(&self) -> Option<Box<dyn RouterSpec>> {
            Some(Box::new(router::Config {
                cache: REAL_CACHE,
                queue: REAL_QUEUE,
                absolute: self.decrease,
                increase: self.increase * FASTER_HOPS,
                // Receivers that are too slow on a real network are the session's matter.
                exclude: 0,
                silence: self.silence,
                ..router::Config::default()
            }))
        }
    }
}

/// The nodes that repair losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repair {
    /// Source and active routers, under the old numbers: the paper.
    Tree,
    /// A delivery next to the scheme, under new numbers. Active routers repeat stored packets; those that they lack never come, and no
    /// receiver waits for them.
    Session,
}

/// The feedback of receivers, and its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every receiver acknowledges each packet and reports each loss at once: the paper, whose active routers merge reports.
    All,
    /// As many as the source can process, until an active router states that it listens.
    // Paper gap: the paper has no answer to a large group without active routers.
    Few,
}

/// Where a receiver begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// With the first packet that it receives.
    Here,
    /// With the first packet of the session, whatever it has missed.
    AtStart,
}

impl Config {
    /// A real network: delivery repairs, few answer, no receiver is excluded, the rate starts by doubling and then grows by 800 bit/s with
    /// each packet, e-fold in 15 s with packets of 1,500 bytes.
    // Paper gap: with the paper's values the rate grows e-fold in 106 s, whatever it is.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            increase: 0.05,
            repair: Repair::Session,
            answers: Answers::Few,
            outstanding: None,
            exclude: 0,
            first_rto: Span::from_secs(1),
            max_rto: Span::from_secs(1),
            ..Config::published()
        }
    }

    /// When a receiver is excluded; `None` for never.
    pub(super) const fn exclusion(&self) -> Option<Exclusion> {
        match self.exclude {
            0 => None,
            count => Some(Exclusion { count, within: self.exclude_within }),
        }
    }
}

/// How packets are sent in the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published().with_packet_size(1057);
    let least = Rate::from_bps(16_000.0);
    Sending { bounds: Bounds { min: least, max: sending.bounds.max }, ..sending }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "rmanp",
    number: 12,
    summary: "one rate; active routers see losses, limit their exits, keep and repeat packets, and make one acknowledgement of many",
    source: "paper 003",
    sender: "grows with each packet that all have, and goes down to the rate of a congestion indication",
    receiver: "acknowledges each packet, requests missing packets, and reports the rate that would have been right",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "A receiver that asks for less than the least rate five times in ten seconds is excluded; the paper does not say how.",
        "An acknowledgement that is late counts as one that nobody sends: the time-out is TCP's, and at least a second.",
        "A receiver or router that is silent for three seconds no longer holds others back.",
        "A full cache gives up the oldest packet that somebody lacks; the source has it still.",
        "The packet behind one that a full queue dropped is marked, too: the router that dropped it has reported that congestion.",
        "An ECN mark counts as a loss.",
        "On real networks delivery repairs beside the scheme: a packet that no active router has is waited for no more.",
        "On real networks as many receivers answer as the source can hear, and each packet is acknowledged only to active routers.",
        "A rate that is not used does not grow, nor, on real networks, does one that nobody seems to receive.",
    ],
};

/// The number of packets that active routers store on real networks, and that may wait at an exit.
const REAL_CACHE: u16 = 1000;
const REAL_QUEUE: u16 = 200;
/// Limits at exits grow faster than the source's rate by this, "In" over "Is".
const FASTER_HOPS: f64 = 10.0;

/// The least rate is the lower limit as well, where the paper has no other.
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
