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
    /// Parameters of source and receivers. [`Config::published`] has the paper's values, [`Config::transport`] is for real
    /// networks. Active routers have separate parameters ([`crate::schemes::rmanp::router::Config`]).
    pub struct Config {
        /// Parameters of sending that all schemes share.
        sending: Sending = published_sending();
        /// Minimum rate that the application accepts, "Rm"; also the initial rate.
        least: Rate = Rate::from_bps(16_000.0)
            => option[Opt::rate("least", NumberRange::POSITIVE, least(),
                "minimum rate that the application accepts; also the initial rate")];
        /// Requested rate after a loss, as a fraction of the sending rate, "Da".
        decrease: f64 = 0.8
            => number["da", NumberRange::of(0.01, 1.0),
                "rate that a congestion indication requests, as a fraction of the lost packet's rate"];
        /// Growth of the rate per acknowledged packet, as a fraction of the least rate, "Is".
        increase: f64 = 0.005
            => number["is", NumberRange::of(0.0, 100.0),
                "growth of the rate per acknowledged packet, as a fraction of the minimum rate"];
        /// The nodes that repair losses.
        repair: Repair = Repair::Tree
            => choice["repair", { "tree" => Tree, "session" => Session },
                "repair of lost packets: by the source and active routers, or by the session itself"];
        /// Amount and timing of the receivers' feedback.
        answers: Answers = Answers::All
            => choice["answers", { "all" => All, "few" => Few },
                "acknowledgements of each packet by all receivers (all), or limited to a number that the source can process (few)"];
        /// Number of packets that one acknowledgement covers. A repaired packet and a packet after a gap are acknowledged at once.
        // Paper gap: the paper does not state how many packets one acknowledgement covers.
        together: u8 = 1
            => whole["together", 1, 100,
                "with answers=all, number of packets that one acknowledgement covers"];
        /// First packet that a receiver requires.
        begin: Begin = Begin::Here
            => choice["begin", { "here" => Here, "start" => AtStart },
                "first packet that a receiver requires: the first one that it receives, or the session's first"];
        /// Maximum number of sent packets without an acknowledgement; `None` for no limit.
        outstanding: Option<u16> = Some(100)
            => whole["outstanding" or "any", 2, 10_000, "maximum number of unacknowledged packets"];
        /// A receiver signals congestion after this number of requests for the same packet.
        // Paper gap: the paper requires only "a certain threshold".
        requests: u8 = 3
            => whole["requests", 1, 100,
                "number of requests for a packet after which a receiver signals congestion"];
        /// Number of requests for less than the least rate, in `exclude_within`, after which a receiver is excluded if it has
        /// acknowledged less than the least rate; 0 for no exclusion.
        exclude: u8 = 5
            => whole["exclude", 0, 100,
                "number of requests for less than the minimum rate after which a receiver is excluded; 0: never"];
        /// Minimum time over which requests for less than the least rate are counted.
        exclude_within: Span = Span::from_secs(30)
            => seconds["exclude-within", NumberRange::POSITIVE,
                "time over which the requests of `exclude` are counted, and in which the receiver acknowledges less than the minimum rate"];
        /// Duration of silence after which the source stops waiting for a receiver.
        silence: Span = Span::from_secs(3)
            => seconds["silence", NumberRange::POSITIVE,
                "silence after which the source stops waiting for a receiver"];
        /// Minimum acknowledgement timeout.
        // Paper gap: the paper names the timeout but does not define it.
        min_rto: Span = Span::from_secs(1)
            => seconds["rto-min", NumberRange::up_to(60.0), "minimum acknowledgement timeout"];
        /// Timeout before the first round-trip sample.
        first_rto: Span = Span::from_secs(3)
            => seconds["rto-first", NumberRange::up_to(60.0), "timeout before the first round-trip sample"];
        /// Maximum timeout after doublings.
        max_rto: Span = Span::from_secs(64)
            => seconds["rto-max", NumberRange::up_to(3600.0), "maximum timeout"];
        /// With limited feedback: total number of acknowledgements from all receivers, per second.
        answers_per_second: f64 = 50.0
            => number["others", NumberRange::of(0.1, 1e6),
                "with answers=few, acknowledgements per second of all receivers together"];
        /// With limited feedback: distribution of the delay of congestion indications and of answers in start-up rounds.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread",
                "with answers=few, steepness of the distribution of delays of congestion indications"];
    }

    /// The paper's values: packets of 1057 bytes, initial rate of 16 kb/s (paper 003, 3).
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        // Routers detect losses, and receivers request the lost packets.
        const TOLERATES_LOSSES: bool = false;
        const MARK: Mark = Mark::FLOOR;

        // Paper gap: the paper's cache of 100 packets and queue of 10 are for 180 kb/s.
        fn routers(&self) -> Option<Box<dyn RouterSpec>> {
            Some(Box::new(router::Config {
                cache: REAL_CACHE,
                queue: REAL_QUEUE,
                absolute: self.decrease,
                increase: self.increase * FASTER_HOPS,
                // On a real network the session handles receivers that are too slow.
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
    /// The source and the active routers repair losses under the original packet numbers, as in the paper.
    Tree,
    /// The session's delivery repairs losses under new packet numbers. Active routers repeat only packets that they store, and
    /// receivers do not wait for other missing packets.
    Session,
}

/// Amount and timing of the receivers' feedback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every receiver acknowledges each packet and reports each loss at once, as in the paper. Active routers merge these
    /// reports.
    All,
    /// Receivers limit their feedback to the capacity of the source, unless an active router on the path merges the feedback.
    // Paper gap: the paper has no rule for a large group without active routers.
    Few,
}

/// First packet that a receiver requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begin {
    /// The first packet that arrives at the receiver.
    Here,
    /// The first packet of the session, even if the receiver joins later.
    AtStart,
}

impl Config {
    /// Returns the parameters for a real network: the session's delivery repairs losses, feedback is limited, and no receiver is
    /// excluded. The rate doubles at the start. Later it grows by 800 bit/s per packet: by a factor of e in 15 s with packets of
    /// 1,500 bytes.
    // Paper gap: with the paper's values any rate needs 106 s to grow e-fold.
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

    /// Returns the rule for excluding receivers; `None` if receivers are never excluded.
    pub(super) fn exclusion(&self) -> Option<Exclusion> {
        match self.exclude {
            0 => None,
            count => {
                let bits = f64::from(self.sending.packet_size) * 8.0;
                Some(Exclusion { count, within: self.exclude_within, least: self.least.bps() / bits })
            }
        }
    }
}

/// Returns the parameters of sending in the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published().with_packet_size(1057);
    let least = Rate::from_bps(16_000.0);
    Sending { bounds: Bounds { min: least, max: sending.bounds.max }, ..sending }
}

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "rmanp",
    number: 12,
    summary: "one rate; active routers detect losses, limit the rate of their outputs, cache and repair packets, and merge acknowledgements",
    source: "paper 003",
    sender: "increases the rate with each packet that all receivers have; reduces it to the rate of a congestion indication",
    receiver: "acknowledges each packet, requests missing packets, and reports the rate that would have caused no loss",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "A receiver is excluded if it requests less than the minimum rate five times over at least 30 s and acknowledges less than four fifths of this rate meanwhile; if an active router does so, all receivers behind the router. The paper defines no rule.",
        "A late acknowledgement counts as missing: the timeout is TCP's, and at least a second.",
        "The source does not wait for a receiver or router that is silent for three seconds. A router does not wait for a receiver that leaves packets unanswered for three seconds.",
        "A router repeats the first missing packet of a receiver if it has sent the receiver nothing for a second.",
        "A packet that a router repeats states at most the present rate.",
        "A full cache discards the oldest packet that a receiver lacks; the source still has it.",
        "The packet behind one that a full queue dropped is marked, too: the router that dropped the packet has reported that congestion.",
        "An ECN mark counts as a loss.",
        "On real networks the session itself repairs losses: no receiver waits for a packet that no active router has.",
        "On real networks the number of answering receivers is limited to what the source can process, and each packet is acknowledged only to active routers.",
        "The rate does not grow while the source does not use it, or, on real networks, while no receiver seems to receive.",
    ],
};

/// Number of packets that an active router stores on a real network. `REAL_QUEUE` is the number of packets that may wait at an
/// exit.
const REAL_CACHE: u16 = 1000;
const REAL_QUEUE: u16 = 200;
/// Ratio of the growth of limits at exits to the growth of the source's rate, "In" / "Is".
const FASTER_HOPS: f64 = 10.0;

/// Option for the least rate. If the minimum rate of the session was equal to the old least rate, the minimum rate changes with
/// it.
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
