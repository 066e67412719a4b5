//! Parameters of RLC, with the paper's names.

use super::timetable::Timetable;
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::{Field, NumberRange, Opt};
use crate::time::{Rate, Span};

/// The highest number of layers.
pub(super) const LAYERS: usize = 16;

configuration! {
    /// Parameters of RLC. [`Config::published`] reproduces the paper, [`Config::transport`] is for real networks.
    ///
    /// Two common options have no effect: the start, because the rates are fixed, and the assumed round-trip time, because
    /// receivers send no feedback. A configured minimum rate raises the rate of the base layer; a configured maximum rate removes
    /// the highest layers.
    // Paper gap: the available copy lacks the values of section 3's parameters. Packets of 500 bytes every 125 ms, with W = 8 and
    // P = 1, are the only values found that give the text's one synchronisation point per second at the lowest level. Number of
    // layers, duration of the burst and deaf period are our choice.
    pub struct Config {
        /// Parameters of sending that all schemes share.
        sending: Sending = Sending::published().with_packet_size(500);
        /// Maximum number of layers, 1 to 16.
        layers: u8 = 8 => whole["layers", 1, LAYERS as u64, "maximum number of layers"];
        /// Rate of the base layer.
        pace: Pace = Pace::Every(Span::from_millis(125))
            => option[Opt::or("auto", Opt::seconds("tau0", NumberRange::of(1e-6, 60.0), INTERVAL,
                "time between packets of the base layer; auto: from its rate"))]
            => option[Opt::or("auto", Opt::rate("base", NumberRange::POSITIVE, BASE,
                "rate of the base layer; auto: from tau0"))];
        /// Distance of bursts in slots, "W".
        distance: u16 = 8
            => whole["w", 3, 1024, "number of packets of the base layer from one burst to the next"];
        /// Number of bursts between two synchronisation points of the lowest level, "P".
        bursts: u16 = 1
            => whole["p", 1, 1024, "number of bursts between synchronisation points of the lowest level"];
        /// Duration of a burst in slots, and duration of the silence after the burst. It is less than half of the distance
        /// between bursts.
        burst: u16 = 1
            => whole["b", 1, 511,
                "duration of a burst, in times between packets of the base layer; less than half of w"];
        /// Distance between the synchronisation points of a level.
        points: Points = Points::Doubling
            => choice["points", { "doubling" => Doubling, "mcl" => Mcl, "every" => Every },
                "distance of level i's synchronisation points, relative to level 0: 2^i (doubling) or 2^(i+1)-1 (mcl); every: each burst is a point, and receivers wait after failed joins"];
        /// Duration for which packets of a layer still arrive after a receiver has left the layer.
        leave_delay: Span = LEAVE_DELAY
            => seconds["leave-delay", NumberRange::of(0.0, 60.0),
                "time for which packets of a layer still arrive after a leave"];
        /// Deaf period: for this duration after a step down, losses are ignored. `None`: slightly longer than the leave delay.
        deaf: Option<Span> = None
            => seconds["deaf" or "auto", NumberRange::of(0.0, 600.0),
                "time after a leave in which losses are ignored; auto: slightly longer than leave-delay"];
        /// Round-trip time of a TCP flow with the rate of the receiver's level. A loss costs no layer if the receiver's losses
        /// are at least as rare as the losses of this flow. `None`: each loss costs a layer.
        // Paper gap: section 3 leaves a layer at every loss outside of bursts. A competing TCP flow causes such a loss each time
        // it fills the queue, and RLC needs longer to recover than TCP. `Config::transport` ignores losses that TCP itself would
        // have.
        beside: Option<Span> = None
            => seconds["beside" or "off", NumberRange::of(0.001, 1.0),
                "round-trip time of a TCP flow; losses as rare as that flow's at the level's rate cost no layer"];
        /// Ratio of a burst's actual duration to its nominal duration. From this ratio on, a receiver treats the burst like a
        /// burst with a lost packet. `None`: the duration is ignored.
        // Paper gap: section 3 names longer times between a burst's packets as a sign of congestion, but gives no rule. This rule
        // is off by default.
        stretch: Option<f64> = None
            => number["stretch" or "off", NumberRange::of(1.0, 100.0),
                "ratio of a burst's duration to its nominal duration that prevents a join"];
    }

    /// The values of the paper: 32 kbit/s on the base layer, 4.1 Mbit/s on all eight layers together.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::Timetable { slot: 0 };

        fn layers(&self) -> u8 {
            self.layers
        }

        fn set_layers(&mut self, layers: u8) {
            self.layers = layers;
        }
    }
}

/// Rate of the base layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Time between packets, "tau"; the rate follows from the packet size.
    Every(Span),
    /// Rate; the time between packets follows from the packet size.
    Rate(Rate),
}

/// Distance between two synchronisation points of level i, divided by the distance of level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// 2^i. Each synchronisation point of a level is also one of the level below.
    Doubling,
    /// 2^(i+1) - 1, as in the MCL library. The synchronisation points of a level are not always points of the level below.
    Mcl,
    /// Every burst ends in a synchronisation point of every level. At the first burst without congestion, a receiver joins a
    /// level that was never too fast for it. It waits before it joins a level that was too fast: for the time that a TCP flow
    /// with half the round-trip time would need. This time doubles after each short visit of the level.
    // Paper gap: with section 3's points, 2^i apart, a receiver needs two minutes to reach the seventh level, whatever its link.
    // `Config::transport` starts as TCP does, quickly up to the first loss.
    Every,
}

/// A router stops forwarding a layer after two unanswered queries, which are one second apart (IGMPv2; RFC 2236, 8.8).
const LEAVE_DELAY: Span = Span::from_secs(2);

/// The value is the result of a measurement (`bench/layers/fill`) with 30, 40, 50, 60 and 80 ms. With the other values, receivers
/// stay one level lower on a path of 8 Mbit/s.
const BESIDE: Span = Span::from_millis(50);

impl Config {
    /// Returns the parameters for a real network: rates from 0.5 to 64 Mbit/s, and synchronisation points at every burst. Less
    /// than half a megabit per second is of no use for file transfers. Eight layers reach 64 Mbit/s; this is less than twice the
    /// rate of an ordinary access line. Slots are shorter than in the paper, so a burst has six times as many slots, and so has
    /// the distance between bursts. A burst still lasts an eighth of a second, long enough to fill a queue. Synchronisation
    /// points of the lowest level are still one second apart.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            pace: Pace::Rate(Rate::from_mbps(0.5)),
            distance: 48,
            burst: 6,
            points: Points::Every,
            beside: Some(BESIDE),
            ..Config::published()
        }
    }

    /// Returns the rate of the base layer, raised to the configured minimum if necessary.
    pub fn base(&self) -> Rate {
        let wanted = match self.pace {
            Pace::Every(interval) => Rate::of(u64::from(self.sending.packet_size), interval),
            Pace::Rate(rate) => rate,
        };
        self.sending.bounds.clamp(wanted)
    }

    /// Returns the duration after a step down in which losses are ignored.
    pub fn deaf_period(&self) -> Span {
        self.deaf.unwrap_or_else(|| self.leave_delay.scaled(1.1) + Span::from_millis(500))
    }

    /// Returns the timetable of these parameters.
    pub fn timetable(&self) -> Timetable {
        let slot = self.base().span_of(u64::from(self.sending.packet_size));
        Timetable::new(slot, self.distance, self.burst)
    }
}

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "rlc",
    number: 8,
    summary: "layers of fixed rates, each twice the one below; receivers join and leave independently, without reports",
    source: "paper 004",
    sender: "sends each layer by a timetable, with bursts at double rate that test the next layer; receives no feedback",
    receiver: "leaves a layer at a loss, and joins the next layer at a synchronisation point after a burst without loss; sends no reports",
    feedback: Feedback::None,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Alc],
    layers: LayerRates::Bounded,
    deviations: &[
        "A burst is complete when all its packets for the receiver's level arrived: the loss of the last packet is detected at once, and incomplete bursts of a source cause no joins.",
        "An ECN mark counts as a loss.",
        "On real networks the base layer has 0.5 Mbit/s; bursts have the length and distance of the paper, but more packets.",
        "On real networks losses as rare as those of a competing TCP flow cost no layer.",
    ],
};

/// Option for the base layer as a time between packets.
const INTERVAL: Field<Config, Span> = Field {
    get: |config| match config.pace {
        Pace::Every(interval) => Some(interval),
        Pace::Rate(_) => None,
    },
    set: |config, interval| config.pace = interval.map_or(config.pace, Pace::Every),
};

/// Option for the base layer as a rate.
const BASE: Field<Config, Rate> = Field {
    get: |config| match config.pace {
        Pace::Rate(rate) => Some(rate),
        Pace::Every(_) => None,
    },
    set: |config, rate| config.pace = rate.map_or(config.pace, Pace::Rate),
};
