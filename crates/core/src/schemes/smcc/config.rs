//! Parameters of SMCC.

use crate::schemes::tfmcc;
use crate::time::Rate;

/// At most so many layers.
pub(super) const LAYERS: usize = 16;

/// Everything that can be chosen. [`Config::seed`] is what the thesis says of it, [`Config::transport`] is for real networks.
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

impl Config {
    /// As the thesis describes it: 1, 2, 4 .. Mbit/s, seven layers for 100 Mbit/s.
    pub fn seed() -> Config {
        Config { control: tfmcc::Config::seed(), layers: 8, lower: Lower::Caps, cap: Rate::from_mbps(1.0) }
    }

    /// A sender on a real network.
    pub fn transport(packet_size: u16) -> Config {
        Config { control: tfmcc::Config::transport(packet_size), lower: Lower::Rates, ..Config::seed() }
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
