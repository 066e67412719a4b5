//! ORMCC's parameters as text.

use super::config::{AcrossSwitch, Config, SwitchOn};
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "ormcc",
        number: 1,
        summary: "one rate; follows the receiver with the lowest throughput at congestion",
        source: "seed 000, chapter 3",
        sender: "names one receiver its representative and adapts the rate to that one's reports; asks all again when it is silent",
        receiver: "measures its throughput at congestion; reports when it is the representative, or slower than that",
        options: &[
            Opt { name: "policy", meaning: PolicyChoice::MEANING },
            Opt {
                name: "beta",
                meaning: "part of the throughput at congestion that is kept after a cut, 0.5 to 1",
            },
            Opt { name: "alpha", meaning: "gain of means at source and receivers, 0 to 1" },
            Opt {
                name: "window",
                meaning: "over how many seconds throughput at congestion is measured at most",
            },
            Opt {
                name: "window-least",
                meaning: "and at least: so many seconds, the largest round-trip time, and what 16 packets take",
            },
            Opt { name: "spread", meaning: "steepness of the law of report delays, above 0" },
            Opt {
                name: "switch-on",
                meaning: "sample | average: what is compared before the representative changes",
            },
            Opt {
                name: "across-switch",
                meaning: "restart | continue: the representative's statistics at a change",
            },
        ],
        deviations: &[
            "Reports carry how long the receiver held them, so that their random delay is no round-trip time.",
            "On real networks throughput at congestion is measured over a tenth of a second to a second, by distance and rate.",
            "A packet per round trip is a packet per round-trip time at congestion, where a transport's other answers tell the present one.",
            "On real networks the session starts by doubling in rounds instead of a packet per round-trip time.",
            "On real networks the representative sends at most eight reports per round-trip time.",
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
        match (option, value) {
            ("policy", _) => self.policy = value.parse().ok()?,
            ("beta", _) => self.beta = within(value, 0.5, 1.0)?,
            ("alpha", _) => {
                self.alpha_receiver = positive(value).filter(|alpha| *alpha <= 1.0)?;
                self.alpha_source = self.alpha_receiver;
            }
            ("window", _) => self.trac_window = Span::from_secs_f64(positive(value)?),
            ("window-least", _) => self.trac_least = Span::from_secs_f64(positive(value)?),
            ("spread", _) => {
                self.delay_law = TruncatedExponential::new(positive(value).filter(|l| *l <= 50.0)? as f32);
            }
            ("switch-on", "sample") => self.switch_on = SwitchOn::Sample,
            ("switch-on", "average") => self.switch_on = SwitchOn::Average,
            ("across-switch", "restart") => self.across_switch = AcrossSwitch::Restart,
            ("across-switch", "continue") => self.across_switch = AcrossSwitch::Continue,
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "policy" => self.policy.to_string(),
            "beta" => number(self.beta),
            "alpha" => number(self.alpha_source),
            "window" => number(self.trac_window.as_secs_f64()),
            "window-least" => number(self.trac_least.as_secs_f64()),
            "spread" => number(f64::from(self.delay_law.steepness())),
            "switch-on" => match self.switch_on {
                SwitchOn::Sample => "sample".into(),
                SwitchOn::Average => "average".into(),
            },
            "across-switch" => match self.across_switch {
                AcrossSwitch::Restart => "restart".into(),
                AcrossSwitch::Continue => "continue".into(),
            },
            _ => String::new(),
        }
    }
}
