//! Parameters of RLC, with the paper's names.

use super::timetable::Timetable;
use crate::rate::Sending;
use crate::time::{Rate, Span};

/// Everything that can be chosen. [`Config::published`] reproduces the paper, [`Config::transport`] is for real networks.
///
/// Of the common options, the start and the assumed round-trip time have no effect: the rates are fixed and nobody
/// answers. The lowest rate of the limits raises the base layer; the highest takes away layers from the top.
// Seed gap: the values of section 3's parameters are lost in the copy that was at hand. Packets of 500 bytes every 125 ms,
// with W = 8 and P = 1, are the one reading that gives a synchronisation point per second at the lowest level, as the text
// aims for; number of layers, length of the burst and the deaf period are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// How many layers there are at most, 1 to 16.
    pub layers: u8,
    /// How fast the base layer is.
    pub pace: Pace,
    /// A burst every so many slots, "W".
    pub distance: u16,
    /// So many bursts between two synchronisation points of the lowest level, "P".
    pub bursts: u16,
    /// A burst lasts so many slots, and the silence after it as many. Less than half of the distance between bursts;
    /// longer ones are shortened to that.
    pub burst: u16,
    /// How far apart the synchronisation points of a level are.
    pub points: Points,
    /// How long packets of a layer still come after a receiver has left it.
    pub leave_delay: Span,
    /// After going down, losses count for nothing this long. `None` for a little more than the delay of leaving.
    pub deaf: Option<Span>,
    /// Losses as far apart as those of a TCP flow of the level's rate with this round-trip time cost no layer; `None`: each does.
    // Seed gap: section 3 leaves a layer at every loss outside of bursts. Beside a TCP flow that fills the queue, that is each time it does,
    // and coming back takes longer than TCP needs. `Config::transport` takes the losses that TCP itself would have.
    pub beside: Option<Span>,
    /// A burst that takes this many times as long as it should counts as if a packet of it were lost; `None` for never.
    // Seed gap: section 3 names longer times between a burst's packets as a sign of congestion, and gives no rule. The
    // rule here is off unless asked for.
    pub stretch: Option<f64>,
}

/// How fast the base layer is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// A packet each so often, "tau": the rate follows from the packet size.
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
    /// Every burst is a point of every level, and receivers choose by what they have met: a level that was never too much
    /// is joined at the first burst that comes through, one that was is waited for as long as a TCP flow of half the
    /// round-trip time would take, and twice as long after each visit that was short.
    // Seed gap: with section 3's points, 2^i apart, a receiver needs two minutes for the way up to the seventh level,
    // whatever its link. `Config::transport` starts as TCP does, quickly up to the first loss.
    Every,
}

/// A layer is left when nobody answered two queries, a second apart (IGMPv2; RFC 2236, 8.8).
const LEAVE_DELAY: Span = Span::from_secs(2);

/// Chosen by measurement (`bench/layers/fill`), of 30, 40, 50, 60 and 80 ms: at 8 Mbit/s the others keep receivers a level lower.
const BESIDE: Span = Span::from_millis(50);

impl Config {
    /// The paper: 32 kbit/s on the base layer, 4.1 Mbit/s on all eight.
    pub fn published() -> Config {
        Config {
            sending: Sending::published().with_packet_size(500),
            layers: 8,
            pace: Pace::Every(Span::from_millis(125)),
            distance: 8,
            bursts: 1,
            burst: 1,
            points: Points::Doubling,
            leave_delay: LEAVE_DELAY,
            deaf: None,
            beside: None,
            stretch: None,
        }
    }

    /// A real network: from 0.5 to 64 Mbit/s, every burst a point. Less than half a megabit is of no use to those who push files, and eight
    /// layers of it end below what an ordinary access line carries twice. Slots are shorter then than the paper's, so
    /// there are six times as many to a burst and between bursts: a burst still lasts an eighth of a second, long enough
    /// to fill a queue, and points of the lowest level are still a second apart.
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
