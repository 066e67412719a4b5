//! Parameters of RLC.

use crate::rate::Sending;

/// Everything that can be chosen. [`Config::seed`] reproduces the document, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// How many layers there are at most.
    pub layers: u8,
}

impl Config {
    /// As the document has it.
    pub fn seed() -> Config {
        Config { sending: Sending::seed(), layers: 8 }
    }

    /// A sender on a real network.
    pub fn transport(packet_size: u16) -> Config {
        Config { sending: Sending::transport(packet_size), ..Config::seed() }
    }
}
