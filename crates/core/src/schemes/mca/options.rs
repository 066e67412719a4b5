//! MCA's parameters as text, and those of the measurement, which MCA+ has too.

use super::config::{Config, Gate, Mode};
use crate::estimate::Measuring;
use crate::estimate::accumulation::{Carry, Interval};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// Options of the measurement of accumulation.
pub(in crate::schemes) const MEASURING: [Opt; 10] = [
    Opt { name: "cp", meaning: Interval::MEANING },
    Opt { name: "high", meaning: "accumulation that is congestion, in packets, above 0" },
    Opt { name: "low", meaning: "accumulation that ends congestion, in packets, above 0" },
    Opt { name: "floor", meaning: "congestion is at least what is sent in so many seconds, 0 to 1" },
    Opt { name: "noise", meaning: "and in so many mean differences of two delays in a row, 0 to 100" },
    Opt { name: "confirm", meaning: "control packets in a row that show congestion, 1 to 100" },
    Opt { name: "persist", meaning: "for how many seconds at least, 0 to 1" },
    Opt {
        name: "carry",
        meaning: "rest | all: what is left after congestion counts with or without the control packet",
    },
    Opt {
        name: "resync",
        meaning: "after how many seconds a quiet moment becomes the synchronisation point",
    },
    Opt {
        name: "reroute",
        meaning: "never | control packets in a row with an unchanging accumulation, 1 to 10000: the route became longer",
    },
];

const NEVER: &str = "never";

/// Give an option of the measurement a value; `None` when it does not fit.
pub(in crate::schemes) fn set_measuring(measuring: &mut Measuring, option: &str, value: &str) -> Option<()> {
    let seconds = |value| within(value, 0.0, 1.0).map(Span::from_secs_f64);
    let whole = |value: &str, most: u16| value.parse().ok().filter(|count| (1..=most).contains(count));
    match (option, value) {
        ("cp", _) => measuring.interval = value.parse().ok()?,
        ("high", _) => measuring.high = positive(value)?,
        ("low", _) => measuring.low = positive(value)?,
        ("floor", _) => measuring.floor = seconds(value)?,
        ("noise", _) => measuring.noise = within(value, 0.0, 100.0)?,
        ("confirm", _) => measuring.confirm = whole(value, 100)? as u8,
        ("persist", _) => measuring.persist = seconds(value)?,
        ("carry", "rest") => measuring.carry = Carry::Rest,
        ("carry", "all") => measuring.carry = Carry::All,
        ("resync", _) => measuring.resync = Span::from_secs_f64(positive(value)?),
        ("reroute", NEVER) => measuring.reroute = None,
        ("reroute", _) => measuring.reroute = Some(whole(value, 10_000)?),
        _ => return None,
    }
    Some(())
}

/// The value of an option of the measurement; empty for one that is none.
pub(in crate::schemes) fn get_measuring(measuring: &Measuring, option: &str) -> String {
    match option {
        "cp" => measuring.interval.to_string(),
        "high" => number(measuring.high),
        "low" => number(measuring.low),
        "floor" => number(measuring.floor.as_secs_f64()),
        "noise" => number(measuring.noise),
        "confirm" => measuring.confirm.to_string(),
        "persist" => number(measuring.persist.as_secs_f64()),
        "carry" => match measuring.carry {
            Carry::Rest => "rest".into(),
            Carry::All => "all".into(),
        },
        "resync" => number(measuring.resync.as_secs_f64()),
        "reroute" => measuring.reroute.map_or(NEVER.into(), |count| count.to_string()),
        _ => String::new(),
    }
}

/// A scheme's own options, then those of the measurement: `ALL` together.
pub(in crate::schemes) const fn with_measuring<const OWN: usize, const ALL: usize>(
    own: [Opt; OWN],
) -> [Opt; ALL] {
    let mut all = [MEASURING[0]; ALL];
    let mut place = 0;
    while place < ALL {
        all[place] = if place < OWN { own[place] } else { MEASURING[place - OWN] };
        place += 1;
    }
    all
}

const OPTIONS: [Opt; 16] = with_measuring([
    Opt {
        name: "mode",
        meaning: "er | bin: reports say how fast packets arrived, or only that there is congestion",
    },
    Opt { name: "beta", meaning: "part of the rate that is kept after a cut, 0.5 to 1" },
    Opt { name: "gate", meaning: "off | on: whether explicit rates cut only once per round-trip time" },
    Opt {
        name: "window",
        meaning: "over how many seconds egress rates are measured, at least eight packets",
    },
    Opt { name: "period", meaning: "no round-trip time counts as shorter than this, in seconds" },
    Opt { name: "spread", meaning: "steepness of the law of answers to the start-up, above 0" },
]);

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "mca",
        number: 3,
        summary: "one rate; avoids congestion: lowers it when the session's own packets pile up in a queue",
        source: "seed 000, appendix D",
        sender: "filters reports so that one receiver's count (explicit rates), or as many as the worst one's (binary)",
        receiver: "measures how many bytes wait in the network; reports congestion once per control packet, without suppression",
        options: &OPTIONS,
        deviations: &[
            "It is for networks of its own: beside flows that fill queues until they overflow it gets little.",
            "Binary indications pass the last filter when the latest one is more than a round trip ago; the thesis prints the opposite.",
            "Events of receivers are forgotten slowly, as in LE-SBCC.",
            "The control packet that ends congestion is not counted again in the next measurement.",
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
        match (option, value) {
            ("mode", "er") => self.mode = Mode::Er,
            ("mode", "bin") => self.mode = Mode::Bin,
            ("beta", _) => self.beta = within(value, 0.5, 1.0)?,
            ("gate", "off") => self.gate = Gate::Off,
            ("gate", "on") => self.gate = Gate::On,
            ("window", _) => self.window = Span::from_secs_f64(positive(value)?),
            ("period", _) => self.sending.shortest_rtt = Span::from_secs_f64(positive(value)?),
            ("spread", _) => {
                self.delay_law = TruncatedExponential::new(positive(value).filter(|l| *l <= 50.0)? as f32);
            }
            _ => return set_measuring(&mut self.measuring, option, value),
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match (option, self.mode, self.gate) {
            ("mode", Mode::Er, _) => "er".into(),
            ("mode", Mode::Bin, _) => "bin".into(),
            ("beta", ..) => number(self.beta),
            ("gate", _, Gate::Off) => "off".into(),
            ("gate", _, Gate::On) => "on".into(),
            ("window", ..) => number(self.window.as_secs_f64()),
            ("period", ..) => number(self.sending.shortest_rtt.as_secs_f64()),
            ("spread", ..) => number(f64::from(self.delay_law.steepness())),
            _ => get_measuring(&self.measuring, option),
        }
    }
}
