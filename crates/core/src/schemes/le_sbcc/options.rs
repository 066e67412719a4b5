//! LE-SBCC's parameters as text.

use super::config::{Config, Echoes, Part, Selection, Silence};
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::time::{Rate, Span};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "le-sbcc",
        number: 2,
        summary: "one rate; receivers only report losses, the source makes of all reports as many as the worst receiver's",
        source: "seed 000, chapter 2",
        sender: "filters all receivers' loss reports down to one receiver's worth and halves the rate at most once in 1.5 round-trip times",
        receiver: "reports losses, as the receivers of any reliable protocol do",
        options: &[
            Opt { name: "policy", meaning: PolicyChoice::MEANING },
            Opt { name: "beta", meaning: "part of the rate that a reduction keeps, 0.1 to 1" },
            Opt { name: "rate0", meaning: "first rate in bit/s, or auto for a packet per round-trip time" },
            Opt {
                name: "li2le",
                meaning: "on | off: one loss event of a receiver's reports of a round trip",
            },
            Opt { name: "filter", meaning: "max-lprf | lprf | none: which receivers' loss events pass" },
            Opt { name: "atf", meaning: "on | off: at most one reduction in 1.5 round-trip times" },
            Opt {
                name: "silence",
                meaning: "auto | on | off: half a round trip of silence after a reduction; auto: with ATF and not with an equation",
            },
            Opt { name: "prune", meaning: "on | off: throw away round-trip samples below half the mean" },
            Opt { name: "rtt-literal", meaning: "on | off: weigh new round-trip samples by 7/8, as printed" },
            Opt {
                name: "decay",
                meaning: "part of the counts that is left after 100 round trips, 0.01 to 1",
            },
            Opt { name: "backoff", meaning: "longest random delay of a loss report, in seconds" },
            Opt { name: "spacing", meaning: "least time between two loss reports of a receiver, in seconds" },
            Opt {
                name: "echo",
                meaning: "lost | revealing: the packet that a report names for the round trip",
            },
        ],
        deviations: &[
            "The mean round-trip time weighs a new sample by 1/8, where appendix A prints 7/8.",
            "Sixteen round-trip samples below half the mean in a row are believed, or a faster path would never be.",
            "With the equation there is no silence, and the first loss interval is one that halves the rate.",
            "On real networks a reduction keeps 0.75 of the rate instead of half: packets are paced more evenly than TCP's.",
            "On real networks reports name the packet that revealed the loss and say how long they were held.",
            "On real networks a receiver reports losses at most once in 5 ms.",
            "On real networks other answers time the round trip too: anybody's before the first loss, then the worst receiver's.",
            "The longer round trip at congestion makes the steps smaller, where other answers tell the present one.",
            "On real networks the session starts by doubling in rounds instead of a packet per round-trip time.",
            "A rate that is not used does not grow, nor does one that nobody seems to receive.",
        ],
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
            "policy" => self.policy = value.parse().ok()?,
            "beta" => self.beta = within(value, 0.1, 1.0)?,
            "rate0" if value == "auto" => self.initial_rate = None,
            "rate0" => self.initial_rate = Some(Rate::from_bps(positive(value)?)),
            "li2le" => self.li2le = part(value)?,
            "filter" => {
                self.filter = match value {
                    "max-lprf" => Selection::MaxLprf,
                    "lprf" => Selection::Lprf,
                    "none" => Selection::All,
                    _ => return None,
                }
            }
            "atf" => self.atf = part(value)?,
            "silence" => {
                self.silence = match value {
                    "auto" => Silence::Suited,
                    "on" => Silence::On,
                    "off" => Silence::Off,
                    _ => return None,
                }
            }
            "prune" => self.prune = part(value)?,
            "rtt-literal" => self.rtt_literal = part(value)?,
            "decay" => self.decay = within(value, 0.01, 1.0)?,
            "backoff" => self.backoff = Span::from_secs_f64(within(value, 0.0, LONGEST_WAIT)?),
            "spacing" => self.spacing = Span::from_secs_f64(within(value, 0.0, LONGEST_WAIT)?),
            "echo" => {
                self.echoes = match value {
                    "lost" => Echoes::Lost,
                    "revealing" => Echoes::Revealing,
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "policy" => self.policy.to_string(),
            "beta" => number(self.beta),
            "rate0" => self.initial_rate.map_or("auto".into(), |rate| number(rate.bps())),
            "li2le" => text(self.li2le).into(),
            "filter" => match self.filter {
                Selection::MaxLprf => "max-lprf".into(),
                Selection::Lprf => "lprf".into(),
                Selection::All => "none".into(),
            },
            "atf" => text(self.atf).into(),
            "silence" => match self.silence {
                Silence::Suited => "auto".into(),
                Silence::On => "on".into(),
                Silence::Off => "off".into(),
            },
            "prune" => text(self.prune).into(),
            "rtt-literal" => text(self.rtt_literal).into(),
            "decay" => number(self.decay),
            "backoff" => number(self.backoff.as_secs_f64()),
            "spacing" => number(self.spacing.as_secs_f64()),
            "echo" => match self.echoes {
                Echoes::Lost => "lost".into(),
                Echoes::Revealing => "revealing".into(),
            },
            _ => String::new(),
        }
    }
}

/// Receivers hold no report longer than this, in seconds.
const LONGEST_WAIT: f64 = 10.0;

fn part(value: &str) -> Option<Part> {
    match value {
        "on" => Some(Part::On),
        "off" => Some(Part::Off),
        _ => None,
    }
}

fn text(part: Part) -> &'static str {
    match part {
        Part::On => "on",
        Part::Off => "off",
    }
}
