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
    /// Everything that can be chosen. [`Config::published`] reproduces the paper, [`Config::transport`] is for real networks.
    ///
    /// The start and the assumed round-trip time, two common options, have no effect: the rates are fixed and no receiver answers. The
    /// lowest rate of the limits raises the base layer; the highest takes away layers from the top.
    // Paper gap: the values of section 3's parameters are lost in the copy that was at hand. Packets of 500 bytes every 125 ms,
    // with W = 8 and P = 1, are the one reading that gives a synchronisation point per second at the lowest level, as the text
    // aims for; number of layers, length of the burst and the deaf period are chosen.
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = Sending::published().with_packet_size(500);
        /// How many layers there are at most, 1 to 16.
        layers: u8 = 8 => whole["layers", 1, LAYERS as u64, "maximum number of layers"];
        /// How fast the base layer is.
        pace: Pace = Pace::Every(Span::from_millis(125))
            => option[Opt::or("auto", Opt::seconds("tau0", NumberRange::of(1e-6, 60.0), INTERVAL,
                "time between packets of the base layer; auto: by its rate"))]
            => option[Opt::or("auto", Opt::rate("base", NumberRange::POSITIVE, BASE,
                "rate of the base layer; auto: by tau0"))];
        /// The distance of bursts in slots, "W".
        distance: u16 = 8 => whole["w", 3, 1024, "packets of the base layer from one burst to the next"];
        /// The number of bursts between two synchronisation points of the lowest level, "P".
        bursts: u16 = 1 => whole["p", 1, 1024, "bursts between synchronisation points of the lowest level"];
        /// The duration of a burst in slots, and that of the silence after it. Less than half of the distance between bursts; longer ones
        /// are shortened to that.
        burst: u16 = 1
            => whole["b", 1, 511,
                "duration of a burst in times between packets of the base layer; less than half of w"];
        /// How far apart the synchronisation points of a level are.
        points: Points = Points::Doubling
            => choice["points", { "doubling" => Doubling, "mcl" => Mcl, "every" => Every },
                "points of level i are 2^i or 2^(i+1)-1 times as far apart as of level 0, or every burst is one and receivers wait by what they have met"];
        /// How long packets of a layer still come after a receiver has left it.
        leave_delay: Span = LEAVE_DELAY
            => seconds["leave-delay", NumberRange::of(0.0, 60.0),
                "packets of a layer still come this long after it is left"];
        /// After going down, losses count for nothing this long. `None` for a little more than the delay of leaving.
        deaf: Option<Span> = None
            => seconds["deaf" or "auto", NumberRange::of(0.0, 600.0),
                "losses count for nothing this long after going down; auto: a little more than leave-delay"];
        /// Losses as far apart as those of a TCP flow of the level's rate with this round-trip time cost no layer; `None`: each does.
        // Paper gap: section 3 leaves a layer at every loss outside of bursts. Beside a TCP flow that fills the queue, that is each time it does,
        // and coming back takes longer than TCP needs. `Config::transport` takes the losses that TCP itself would have.
        beside: Option<Span> = None
            => seconds["beside" or "off", NumberRange::of(0.001, 1.0),
                "losses as rare as those of TCP at the level's rate over such a round-trip time cost no layer"];
        /// A burst that takes this many times as long as it should counts as if a packet of it were lost; `None` for never.
        // Paper gap: section 3 names longer times between a burst's packets as a sign of congestion, and gives no rule. The
        // rule here is off unless asked for.
        stretch: Option<f64> = None
            => number["stretch" or "off", NumberRange::of(1.0, 100.0),
                "ratio of a burst's duration to its nominal one that prevents a join"];
    }

    /// The paper: 32 kbit/s on the base layer, 4.1 Mbit/s on all eight.
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

/// How fast the base layer is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// The time between packets, "tau": the rate follows from the packet size.
    Every(Span),
    /// At this rate: the time between packets follows from their size.
    Rate(Rate),
}

/// How far apart the synchronisation points of level i are, in those of level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// 2^i: all of them are also points of the level below.
    Doubling,
    /// 2^(i+1) - 1, as the MCL library has it. They are not always points of the level below.
    Mcl,
    /// Every burst is a point of every level, and receivers choose by experience. A level that was never too much is joined at the first
    /// burst that comes through. One that was too much is joined after the time that a TCP flow of half the round-trip time would take,
    /// doubled after each visit that was short.
    // Paper gap: with section 3's points, 2^i apart, a receiver needs two minutes for the way up to the seventh level,
    // whatever its link. `Config::transport` starts as TCP does, quickly up to the first loss.
    Every,
}

/// A layer is left when no receiver answered two queries, a second apart (IGMPv2; RFC 2236, 8.8).
const LEAVE_DELAY: Span = Span::from_secs(2);

/// Chosen by measurement (`bench/layers/fill`), of 30, 40, 50, 60 and 80 ms: at 8 Mbit/s the others keep receivers a level lower.
const BESIDE: Span = Span::from_millis(50);

impl Config {
    /// A real network: from 0.5 to 64 Mbit/s, every burst a point. Less than half a megabit is of no use for file transfers, and eight
    /// layers of it end below twice the rate of an ordinary access line. Slots are shorter then than the paper's, so there are six times as
    /// many to a burst and between bursts. A burst still lasts an eighth of a second, long enough to fill a queue, and points of the lowest
    /// level are still a second apart.
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

    /// The rate of the base layer within the limits.
    pub fn base(&self) -> Rate {
        let wanted = match self.pace {
            Pace::Every(interval) => Rate::of(u64::from(self.sending.packet_size), interval),
            Pace::Rate(rate) => rate,
        };
        self.sending.bounds.clamp(wanted)
    }

    /// How long losses count for nothing after going down.
    pub fn deaf_period(&self) -> Span {
        self.deaf.unwrap_or_else(|| self.leave_delay.scaled(1.1) + Span::from_millis(500))
    }

    /// The timetable.
    pub fn timetable(&self) -> Timetable {
        let slot = self.base().span_of(u64::from(self.sending.packet_size));
        Timetable::new(slot, self.distance, self.burst)
    }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "rlc",
    number: 8,
    summary: "layers of fixed, doubling rates; receivers join and leave on their own, without any report",
    source: "paper 004",
    sender: "sends each layer by a timetable, with bursts at double rate that try out the next layer; receives no feedback",
    receiver: "leaves a layer at a loss, joins one at a synchronisation point after a burst without loss; reports nothing",
    feedback: Feedback::None,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Alc],
    layers: LayerRates::Bounded,
    deviations: &[
        "A burst has come through when all its packets did, as far as the receiver's level goes: a lost last packet is noticed at once, and a source that does not fill its bursts makes nobody join.",
        "A mark of a queue counts as a lost packet.",
        "On real networks the base layer has 0.5 Mbit/s, and bursts, as long and as far apart as in the paper, have more packets.",
        "On real networks losses as rare as those of a TCP flow beside would be cost no layer.",
    ],
};

/// The interval of the base layer, where it is given by that.
const INTERVAL: Field<Config, Span> = Field {
    get: |config| match config.pace {
        Pace::Every(interval) => Some(interval),
        Pace::Rate(_) => None,
    },
    set: |config, interval| config.pace = interval.map_or(config.pace, Pace::Every),
};

/// The rate of the base layer, where it is given by that.
const BASE: Field<Config, Rate> = Field {
    get: |config| match config.pace {
        Pace::Rate(rate) => Some(rate),
        Pace::Every(_) => None,
    },
    set: |config, rate| config.pace = rate.map_or(config.pace, Pace::Rate),
};
