//! GMCC's parameters as text.

use super::config::Config;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "gmcc",
        number: 7,
        summary: "layers that adapt to one receiver each; receivers join as many as their bottleneck takes",
        source: "seed 000, chapter 4",
        sender: "sends",
        receiver: "receives",
        options: &[Opt { name: "layers", meaning: "how many layers there are at most, 1 to 8" }],
        deviations: &[],
    };

    fn seed() -> Config {
        Config::seed()
    }

    fn transport(packet_size: u16) -> Config {
        Config::transport(packet_size)
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }

    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match option {
            "layers" => self.layers = value.parse().ok().filter(|layers| (1..=8).contains(layers))?,
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "layers" => self.layers.to_string(),
            _ => String::new(),
        }
    }
}
