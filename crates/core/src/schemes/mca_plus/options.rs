//! MCA+'s parameters as text.

use super::config::{AcrossSwitch, Config, Samples, Suppress, WhileInvalid};
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::schemes::mca::options::{get_measuring, set_measuring, with_measuring};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

const OPTIONS: [Opt; 24] = with_measuring([
    Opt { name: "policy", meaning: PolicyChoice::MEANING },
    Opt { name: "beta", meaning: "part of the rate that is kept at accumulation, 0.5 to 1" },
    Opt { name: "beta-loss", meaning: "part of the rate that is kept at loss, 0.5 to 1" },
    Opt {
        name: "k",
        meaning: "a receiver replaces the representative below its mean less so many deviations, 0 to 100",
    },
    Opt { name: "n", meaning: "periods that a silent representative is waited for, 1 to 1000" },
    Opt { name: "alpha", meaning: "gain of a receiver's mean of its throughput at congestion, 0 to 1" },
    Opt { name: "window", meaning: "throughput is measured over at least so many seconds, 0 to 10" },
    Opt { name: "counted", meaning: "over how many packets the rate of congestion is taken, 100 to 10000" },
    Opt {
        name: "suppress",
        meaning: "faster | slower | nobody: who keeps silent; the thesis prints slower where it means faster",
    },
    Opt {
        name: "across-switch",
        meaning: "restart | continue: the mean round-trip time when the representative changes",
    },
    Opt { name: "samples", meaning: "followed | all: whose reports give round-trip samples" },
    Opt {
        name: "invalid",
        meaning: "spread | at-once: when receivers report while there is no representative",
    },
    Opt { name: "period", meaning: "no round-trip time counts as shorter than this, in seconds" },
    Opt { name: "spread", meaning: "steepness of the law of report delays, above 0" },
]);

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "mca-plus",
        number: 4,
        summary: "one rate; avoids congestion, following the receiver with the lowest throughput when queues fill",
        source: "seed 000, chapter 5",
        sender: "names one receiver its representative; cuts by a tenth when packets pile up, by a quarter at loss; asks all again when it is silent",
        receiver: "measures how many bytes wait in the network; reports when it is the representative, or slower than that",
        options: &OPTIONS,
        deviations: &[
            "It is for networks of its own: beside flows that fill queues until they overflow it gets little.",
            "Receivers that are faster than the representative keep silent; one section of the thesis prints the opposite.",
            "Reports carry how long the receiver held them, so that their random delay is no round-trip time.",
            "On real networks reports are spread at random while there is no representative, as in ORMCC.",
            "The control packet that ends congestion is not counted again in the next measurement.",
            "The round-trip time begins anew with another representative.",
            "On real networks thresholds grow with the rate and with the noise that is measured, and a queue that never changes counts as a longer route.",
            "On real networks the session starts by doubling in rounds, and no round-trip time counts as shorter than 20 ms.",
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
        let whole = |least: u16, most: u16| value.parse().ok().filter(|n| (least..=most).contains(n));
        match (option, value) {
            ("policy", _) => self.policy = value.parse().ok()?,
            ("beta", _) => self.keep_at_accumulation = within(value, 0.5, 1.0)?,
            ("beta-loss", _) => self.keep_at_loss = within(value, 0.5, 1.0)?,
            ("k", _) => self.switch_deviations = within(value, 0.0, 100.0)?,
            ("n", _) => self.patience = whole(1, 1000)?,
            ("alpha", _) => self.alpha = positive(value).filter(|alpha| *alpha <= 1.0)?,
            ("window", _) => self.window = Span::from_secs_f64(within(value, 0.0, 10.0)?),
            ("counted", _) => self.counted = whole(100, 10_000)?,
            ("suppress", "faster") => self.suppress = Suppress::Faster,
            ("suppress", "slower") => self.suppress = Suppress::Slower,
            ("suppress", "nobody") => self.suppress = Suppress::Nobody,
            ("across-switch", "restart") => self.across_switch = AcrossSwitch::Restart,
            ("across-switch", "continue") => self.across_switch = AcrossSwitch::Continue,
            ("samples", "followed") => self.samples = Samples::Followed,
            ("samples", "all") => self.samples = Samples::All,
            ("invalid", "spread") => self.while_invalid = WhileInvalid::Spread,
            ("invalid", "at-once") => self.while_invalid = WhileInvalid::AtOnce,
            ("period", _) => self.sending.shortest_rtt = Span::from_secs_f64(positive(value)?),
            ("spread", _) => {
                self.delay_law = TruncatedExponential::new(positive(value).filter(|l| *l <= 50.0)? as f32);
            }
            _ => return set_measuring(&mut self.measuring, option, value),
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "policy" => self.policy.to_string(),
            "beta" => number(self.keep_at_accumulation),
            "beta-loss" => number(self.keep_at_loss),
            "k" => number(self.switch_deviations),
            "n" => self.patience.to_string(),
            "alpha" => number(self.alpha),
            "window" => number(self.window.as_secs_f64()),
            "counted" => self.counted.to_string(),
            "suppress" => match self.suppress {
                Suppress::Faster => "faster".into(),
                Suppress::Slower => "slower".into(),
                Suppress::Nobody => "nobody".into(),
            },
            "across-switch" => match self.across_switch {
                AcrossSwitch::Restart => "restart".into(),
                AcrossSwitch::Continue => "continue".into(),
            },
            "samples" => match self.samples {
                Samples::Followed => "followed".into(),
                Samples::All => "all".into(),
            },
            "invalid" => match self.while_invalid {
                WhileInvalid::Spread => "spread".into(),
                WhileInvalid::AtOnce => "at-once".into(),
            },
            "period" => number(self.sending.shortest_rtt.as_secs_f64()),
            "spread" => number(f64::from(self.delay_law.steepness())),
            _ => get_measuring(&self.measuring, option),
        }
    }
}
