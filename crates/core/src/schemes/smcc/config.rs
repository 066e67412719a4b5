//! Parameters of SMCC.

use crate::schemes::tfmcc;
use crate::time::{Rate, Span};

/// At most so many layers.
pub(super) const LAYERS: usize = 16;
/// An upper layer is not sent slower than a packet in this time.
const SLOWEST_GAP: Span = Span::from_secs(8);

/// Everything that can be chosen. [`Config::published`] is what the thesis says of it, [`Config::transport`] is for real networks.
///
/// The lowest rate of the limits raises the base layer; the highest takes from the upper layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How each layer is controlled.
    pub control: tfmcc::Config,
    /// How many layers there are at most, 1 to 16.
    pub layers: u8,
    /// What of the layers below counts where a receiver says what is left for a layer, joins and leaves.
    pub lower: Lower,
    /// When layers are joined.
    pub joins: Joins,
    /// An upper layer is never slower than this part of its highest rate; who has less left for it leaves it.
    // Seed gap: 4.1 has no lowest rate. Who has nearly nothing left for its highest layer then slows it to nearly nothing, and those who
    // join it meanwhile wait for its first packet in vain.
    pub least: f64,
    /// The base layer's highest rate; each further layer may have twice the one below it.
    pub cap: Rate,
}

/// What the lower layers are taken for.
// Seed gap: 4.1 compares with highest rates. A receiver that shares a lower layer with a slower one gets less of it than
// that, and would need the whole highest rate as its share before it may make up for it. `Config::transport` takes the
// rates at which layers are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lower {
    /// For their highest rates: the seed.
    Caps,
    /// For the rates at which they are sent.
    Rates,
}

/// When layers are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// When the estimate was above what the layers may have for a whole feedback round.
    Rounds,
    /// In start-up after four round-trip times, which goes on where the lowest layers' losses were not followed by others. A layer makes
    /// room for who joins it, and who has left it soon stays away, longer each time.
    // Seed gap: 4.1 joins by the estimate alone. At the beginning that is what the flows beside have made of the base layer, whose slow
    // rate says little about a fast path: sixty seconds later a receiver at 100 Mbit/s had a quarter of its share.
    Early,
}

/// What is sent in a layer still comes so long after its leave (IGMPv2; RFC 2236, 8.8).
const LEAVE_DELAY: Span = Span::from_millis(2200);

impl Config {
    /// As the thesis describes it: 1, 2, 4 .. Mbit/s, seven layers for 100 Mbit/s.
    pub fn published() -> Config {
        Config {
            control: tfmcc::Config::published(),
            layers: 8,
            lower: Lower::Caps,
            joins: Joins::Rounds,
            least: 0.0,
            cap: Rate::from_mbps(1.0),
        }
    }

    /// A sender on a real network.
    pub fn transport(packet_size: u16) -> Config {
        let control = tfmcc::Config {
            // A queue that overflows goes on doing so until its flows have heard of it, a round trip later. What is reported once per round
            // trip is heard of later still, and would be two events.
            event: 1.5,
            recovery: tfmcc::Recovery::Tcp,
            rise: tfmcc::Rise::Double,
            hold: LEAVE_DELAY,
            ..tfmcc::Config::transport(packet_size)
        };
        Config { control, lower: Lower::Rates, joins: Joins::Early, least: 0.2, ..Config::published() }
    }

    /// The rate to which silence may bring an upper layer.
    pub fn slowest(&self) -> Rate {
        Rate::of(u64::from(self.control.sending.packet_size), SLOWEST_GAP)
    }

    /// The lowest rate of `layer`, an upper one, while it is heard of.
    pub fn least_of(&self, layer: u8) -> Rate {
        self.slowest().max(self.cap_of(layer) * self.least)
    }

    /// The highest rate of `layer`.
    pub fn cap_of(&self, layer: u8) -> Rate {
        self.cap * (1u64 << layer.min(63)) as f64
    }

    /// The highest rate of layers 0 to `layer` together.
    pub fn cap_up_to(&self, layer: u8) -> Rate {
        self.cap * ((2u64 << layer.min(62)) - 1) as f64
    }

    /// The highest rate of all layers below `layer` together.
    pub fn cap_below(&self, layer: u8) -> Rate {
        layer.checked_sub(1).map_or(Rate::ZERO, |below| self.cap_up_to(below))
    }
}
