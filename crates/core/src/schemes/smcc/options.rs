//! SMCC's parameters as text.

use super::config::{Config, Joins, LAYERS, Lower};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, within};
use crate::schemes::tfmcc::{Recovery, Rise};
use crate::time::{Rate, Span};

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
                name: "joins",
                meaning: "rounds | early: after a feedback round, or in start-up after four round trips; who joins too much stays away for longer",
            },
            Opt {
                name: "least",
                meaning: "an upper layer is never slower than this part of its highest rate, 0 to 0.5; who has less left for it leaves it",
            },
            Opt {
                name: "event",
                meaning: "losses within so many round-trip times of the first are one event, 1 to 4",
            },
            Opt {
                name: "recovery",
                meaning: "equation | tcp: rates grow by the equation, or at least as TCP's after a loss",
            },
            Opt {
                name: "rise",
                meaning: "packet | double: a layer rises by a packet per round trip in each, or up to twofold",
            },
            Opt {
                name: "hold",
                meaning: "a layer does not rise this long after its limiting receiver has left, 0 to 60 seconds",
            },
            Opt {
                name: "cap1",
                meaning: "highest rate of the base layer in bit/s, 1000 to 1e11; others: twice the one below",
            },
        ],
        deviations: &[
            "Joins are not preceded by attempts that raise the rate step by step: the new layer itself begins slowly.",
            "On real networks lower layers count with the rates at which they are sent, not with their highest rates.",
            "On real networks start-up goes on after losses in the lowest two layers that no others follow, and layers have a lowest rate.",
            "On real networks a layer makes room for who joins it, may double in a round trip, and does not rise while a leave takes.",
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
            "joins" => {
                self.joins = match value {
                    "rounds" => Joins::Rounds,
                    "early" => Joins::Early,
                    _ => return None,
                }
            }
            "least" => self.least = within(value, 0.0, 0.5)?,
            "event" => self.control.event = within(value, 1.0, 4.0)?,
            "recovery" => {
                self.control.recovery = match value {
                    "equation" => Recovery::Equation,
                    "tcp" => Recovery::Tcp,
                    _ => return None,
                }
            }
            "rise" => {
                self.control.rise = match value {
                    "packet" => Rise::Packet,
                    "double" => Rise::Double,
                    _ => return None,
                }
            }
            "hold" => self.control.hold = Span::from_secs_f64(within(value, 0.0, 60.0)?),
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
            "joins" => match self.joins {
                Joins::Rounds => "rounds".into(),
                Joins::Early => "early".into(),
            },
            "least" => number(self.least),
            "event" => number(self.control.event),
            "recovery" => match self.control.recovery {
                Recovery::Equation => "equation".into(),
                Recovery::Tcp => "tcp".into(),
            },
            "rise" => match self.control.rise {
                Rise::Packet => "packet".into(),
                Rise::Double => "double".into(),
            },
            "hold" => number(self.control.hold.as_secs_f64()),
            "cap1" => number(self.cap.bps()),
            _ => String::new(),
        }
    }
}
