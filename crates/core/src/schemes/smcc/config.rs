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
    /// The base layer's highest rate; each further layer may have twice the one below it.
    pub cap: Rate,
}

impl Config {
    /// As the thesis describes it: 1, 2, 4 .. Mbit/s, seven layers for 100 Mbit/s.
    pub fn seed() -> Config {
        Config { control: tfmcc::Config::seed(), layers: 8, cap: Rate::from_mbps(1.0) }
    }

    /// A sender on a real network.
    pub fn transport(packet_size: u16) -> Config {
        Config { control: tfmcc::Config::transport(packet_size), ..Config::seed() }
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
