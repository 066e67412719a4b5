//! SMCC's parameters as text.

use super::config::{Config, LAYERS, Lower};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, within};
use crate::time::Rate;

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "smcc",
        number: 9,
        summary: "layers with fixed highest rates, each controlled as by TFMCC",
        source: "seed 000, 4.1",
        sender: "sends each layer as fast as its limiting receiver says, up to the layer's highest rate",
        receiver: "calculates TCP's rate over its layers; joins and leaves layers by it, and reports what the lower ones leave over",
        options: &[
            Opt { name: "layers", meaning: "how many layers there are at most, 1 to 16" },
            Opt {
                name: "lower",
                meaning: "caps | rates: lower layers count with their highest rates, or with those at which they are sent",
            },
            Opt {
                name: "cap1",
                meaning: "highest rate of the base layer in bit/s, 1000 to 1e11; others: twice the one below",
            },
        ],
        deviations: &[
            "Joins are not preceded by attempts that raise the rate step by step: the new layer itself begins slowly.",
            "On real networks lower layers count with the rates at which they are sent, not with their highest rates.",
            "A layer that nobody reports about for 10 s is off.",
        ],
    };

    fn seed() -> Config {
        Config::seed()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    fn sending(&self) -> &Sending {
        &self.control.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.control.sending
    }

    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match option {
            "layers" => {
                self.layers = value.parse().ok().filter(|layers| (1..=LAYERS as u8).contains(layers))?
            }
            "lower" => {
                self.lower = match value {
                    "caps" => Lower::Caps,
                    "rates" => Lower::Rates,
                    _ => return None,
                }
            }
            "cap1" => self.cap = Rate::from_bps(within(value, 1e3, 1e11)?),
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "layers" => self.layers.to_string(),
            "lower" => match self.lower {
                Lower::Caps => "caps".into(),
                Lower::Rates => "rates".into(),
            },
            "cap1" => number(self.cap.bps()),
            _ => String::new(),
        }
    }
}
