//! Parameters of RACCOOM, with the paper's symbols and values.

use super::law::{Gains, Law};
use super::router;
use crate::node::{RelaySpec, RouterSpec};
use crate::packet::Mark;
use crate::rate::{Bounds, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span};

configuration! {
    /// All settings of RACCOOM. [`Config::published`] is the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// Settings of packet sending that all schemes share.
        sending: Sending = published_sending();
        /// The control law that sets the rate from the number of queued packets.
        law: Law = Law::Printed
            => choice["law", { "steady" => Steady, "printed" => Printed, "seconds" => Seconds },
                "control law that sets the rate from the queue; printed is the law of the thesis, which oscillates"];
        /// Gain for the difference between the wanted and the actual queue; `None` for the default of the law.
        k1: Option<f64> = None
            => number["k1" or "own", NumberRange::of(0.0, 100.0),
                "gain for the distance from the target queue; own: the default of the law"];
        /// Gain for the integral of this difference.
        k2: f64 = 0.25
            => number["k2", NumberRange::of(0.0, 100.0),
                "gain for the integral of the distance from the target queue"];
        /// Half of the width of the dead zone around the wanted queue, in packets, "Delta"; `None` for the default of the law.
        delta: Option<f64> = None
            => number["delta" or "own", NumberRange::of(0.0, 1000.0),
                "half width, in packets, of the zone around the target queue in which the accumulated rate is constant; own: the default of the law"];
        /// The goal that determines the wanted queue.
        aim: Aim = Aim::Weighted
            => choice["aim", { "weighted" => Weighted, "friendly" => Friendly, "growing" => Growing },
                "goal of the target queue: a share by weight, or the share of a TCP flow, with a queue that changes at cuts alone (friendly) or also grows between cuts (growing)"];
        /// Ratio of the session's share of the bottleneck to the share of a session with weight 1.
        weight: f64 = 1.0
            => number["weight", NumberRange::of(0.01, 1000.0), "share, in units of a session of weight 1"];
        /// Wanted queue of a session of weight 1, in packets, "E".
        queue: f64 = 4.0
            => number["queue", NumberRange::of(0.1, 10_000.0),
                "target queue, in packets, of a session of weight 1; for a friendly session, the initial target queue"];
        /// Initial rate of a linear start; `None`: one packet per assumed round-trip time.
        first_rate: Option<Rate> = Some(Rate::from_bps(40_000.0))
            => rate["first" or "rtt", NumberRange::POSITIVE,
                "initial rate of a linear start; rtt: a packet per assumed round-trip time"];
        /// Number of former target receivers whose shortest round-trip times are stored.
        table: u8 = 0
            => whole["table", 0, 255, "number of former targets whose minimum round-trip time is stored"];
        /// If for this duration no round-trip time is near the shortest one, the source briefly lowers its rate (a probe).
        /// `None`: never.
        probe: Option<Span> = None
            => seconds["probe" or "off", NumberRange::POSITIVE,
                "time without an empty path after which the source slows down briefly to measure an empty path"];
        /// Rate during a probe, as a fraction of the accumulated rate "R_a".
        probe_part: f64 = 0.5
            => number["probe-part", NumberRange::of(0.01, 1.0),
                "fraction of the rate at which the source sends while it measures an empty path"];
        /// Minimum acknowledgement timeout.
        min_rto: Span = Span::from_millis(200)
            => seconds["rto-min", NumberRange::up_to(60.0), "minimum acknowledgement timeout"];
        /// Acknowledgement timeout before the first round-trip sample.
        first_rto: Span = Span::from_secs(3)
            => seconds["rto-first", NumberRange::up_to(60.0), "timeout before the first round-trip sample"];
        /// Maximum acknowledgement timeout after repeated doubling.
        max_rto: Span = Span::from_secs(64)
            => seconds["rto-max", NumberRange::up_to(3600.0), "maximum timeout"];
        /// Which receivers acknowledge packets, and which packets they acknowledge.
        answers: Answers = Answers::All
            => choice["answers", { "all" => All, "few" => Few },
                "receivers that acknowledge each packet: all receivers (all), or only the target, while other receivers acknowledge some packets (few)"];
        /// With `Answers::Few`: number of packets that the target acknowledges together. If its latest acknowledgement is at
        /// least a millisecond old, it acknowledges a packet at once.
        ack_every: u8 = 1
            => whole["ack-every", 1, 16, "with answers=few, packets per acknowledgement of the target"];
        /// With `Answers::Few`: number of acknowledgements per second that all receivers other than the target send together.
        others: f64 = 50.0
            => number["others", NumberRange::of(0.1, 1e6),
                "with answers=few, acknowledgements per second of all other receivers together"];
        /// With `Answers::Few`: a receiver becomes the target if its round-trip time is longer than the target's by this factor.
        hysteresis: f64 = 1.1
            => number["hysteresis", NumberRange::of(1.0, 10.0),
                "with answers=few, a receiver becomes the target if its round-trip time is longer by this factor"];
        /// With `Answers::Few`: distribution of two delays: of loss reports, and of answers to the start-up.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "with answers=few, steepness of the distribution of delays of loss reports"];
    }

    /// The values of the thesis: packets of 500 bytes, 5000 bytes/s at first, and the equations as printed (paper 002, 3.9).
    /// These equations make the rate oscillate; the stable law is [`Law::Steady`].
    // Paper gap: 3.9 prints k1 = 4 and k2 = 0.25, and alpha = 2, beta = 6 for E = 4.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::TARGET;

        fn agents(&self) -> Option<&dyn RelaySpec> {
            Some(self)
        }

        fn routers(&self) -> Option<Box<dyn RouterSpec>> {
            Some(Box::new(router::Config))
        }
    }
}

/// The goal that determines the wanted queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aim {
    /// A share in proportion to the weight (paper 002, 3.6).
    Weighted,
    /// The rate of a TCP flow with the same losses (3.7).
    Friendly,
    /// As `Friendly`, and between cuts the wanted queue grows as the window of a TCP flow.
    Growing,
}

/// Which receivers acknowledge packets, and which packets they acknowledge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    /// Every receiver acknowledges every packet, as in the thesis. For networks whose routers or designated receivers aggregate
    /// the acknowledgements.
    All,
    /// The target acknowledges every packet. Other receivers acknowledge occasionally, and when they detect a loss that no cut
    /// has answered.
    // Paper gap: the thesis has no rule for a large group without aggregation.
    Few,
}

/// Default gains of the control laws.
const STEADY_K1: f64 = 0.5;
const PRINTED_K1: f64 = 4.0;
const STEADY_DELTA: f64 = 0.5;
const PRINTED_DELTA: f64 = 2.0;
/// Packet interval at the lowest rate.
const MIN_PACKETS: Span = Span::from_secs(5);

impl Config {
    /// Returns the settings for a real network: the stable law, a wanted queue like that of a TCP flow, start by doubling, probes
    /// for the shortest round-trip time, and acknowledgements of few receivers.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            first_rate: None,
            law: Law::Steady,
            aim: Aim::Growing,
            table: 64,
            probe: Some(Span::from_secs(10)),
            first_rto: Span::from_secs(1),
            max_rto: Span::from_secs(1),
            answers: Answers::Few,
            ack_every: 4,
            ..Config::published()
        }
    }

    /// Returns the gains of the control law.
    pub(super) fn gains(&self) -> Gains {
        let (k1, delta) = match self.law {
            Law::Steady => (STEADY_K1, STEADY_DELTA),
            Law::Printed => (PRINTED_K1, PRINTED_DELTA),
            Law::Seconds => (PRINTED_K1, STEADY_DELTA),
        };
        let (k1, delta) = (self.k1.unwrap_or(k1), self.delta.unwrap_or(delta));
        Gains { law: self.law, k1, k2: self.k2, delta }
    }
}

/// Returns the sending settings of the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published().with_packet_size(500);
    let bounds = Bounds { min: Rate::of(500, MIN_PACKETS), max: sending.bounds.max };
    Sending { bounds, ..sending }
}

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "raccoom",
    number: 11,
    summary: "one rate; keeps a few packets in the queues of the path with the longest round-trip time, halves the rate at losses",
    source: "paper 002, chapter 3",
    sender: "follows the receiver that is the last to acknowledge each packet, with a control law like that of TCP Vegas; cuts the rate once for all losses of a window",
    receiver: "acknowledges each packet; routers or designated receivers merge the acknowledgements of all receivers into one",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "The rate follows the distance to the target queue; with (3.1) it would not change at an empty queue.",
        "The number of queued packets follows from the measured rate; with (3.2) each acknowledgement multiplies the rate by k1.",
        "k1 is 0.5 per round trip; with the printed 4 the loop has no phase margin.",
        "If several receivers have the lowest acknowledgement, the one forwarded before is forwarded again.",
        "An acknowledgement that reports only a new loss gives no round-trip sample.",
        "The minimum round-trip times of former targets are stored.",
        "The acknowledgement timeout, which the thesis names and does not define, is TCP's; on real networks the guard against silence lowers the rate instead.",
        "On real networks the target queue of (3.10) also grows between cuts, to the value that a cut would set then.",
        "The target queue of (3.10) stays between 1 packet and 64, or twice the expected packets in flight.",
        "An ECN mark counts as a loss.",
        "On real networks few receivers acknowledge: the target each packet, others at long intervals and at losses that no cut has answered.",
        "On real networks the source slows down briefly if it has not measured an empty path for a long time.",
        "The rate does not grow while the source does not use it, or, on real networks, while no receiver seems to receive.",
    ],
};
