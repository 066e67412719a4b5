//! RLC's parameters as text.

use super::config::{Config, Pace, Points};
use super::source::LAYERS;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::time::{Rate, Span};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "rlc",
        number: 8,
        summary: "layers of fixed, doubling rates; receivers join and leave on their own, without any report",
        source: "seed 004",
        sender: "sends each layer by a timetable, with bursts at double rate that try out the next layer; hears nothing",
        receiver: "leaves a layer at a loss, joins one at a synchronisation point after a burst without loss; reports nothing",
        options: &[
            Opt { name: "layers", meaning: "how many layers there are at most, 1 to 16" },
            Opt {
                name: "tau0",
                meaning: "time between packets of the base layer in seconds, or auto: by its rate",
            },
            Opt { name: "base", meaning: "rate of the base layer in bit/s, or auto: by tau0" },
            Opt { name: "w", meaning: "a burst every so many packets of the base layer, 3 to 1024" },
            Opt {
                name: "p",
                meaning: "bursts between synchronisation points of the lowest level, 1 to 1024",
            },
            Opt {
                name: "b",
                meaning: "duration of a burst in times between packets of the base layer, 1 to 511; less than half of w",
            },
            Opt {
                name: "points",
                meaning: "doubling | mcl | every: points of level i are 2^i or 2^(i+1)-1 times as far apart as of level 0, or every burst is one and receivers wait by what they have met",
            },
            Opt {
                name: "leave-delay",
                meaning: "packets of a layer still come this long after it is left, 0 to 60 seconds",
            },
            Opt {
                name: "deaf",
                meaning: "losses count for nothing this long after going down, 0 to 600 seconds, or auto: a little more than leave-delay",
            },
            Opt {
                name: "beside",
                meaning: "losses as rare as those of TCP at the level's rate over a round trip of so many seconds cost no layer, 0.001 to 1, or off",
            },
            Opt {
                name: "stretch",
                meaning: "off, or a burst that takes so many times its time blocks going up, 1 to 100",
            },
        ],
        deviations: &[
            "A burst has come through when all its packets did, as far as the receiver's level goes: a lost last packet is noticed at once, and a source that does not fill its bursts makes nobody join.",
            "A mark of a queue counts as a lost packet.",
            "On real networks the base layer has 0.5 Mbit/s, and bursts, as long and as far apart as in the paper, have more packets.",
            "On real networks losses as rare as those of a TCP flow beside would be cost no layer.",
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
            ("layers", _) => self.layers = whole(value, 1, LAYERS as u16)? as u8,
            ("tau0" | "base", "auto") => {}
            ("tau0", _) => self.pace = Pace::Every(Span::from_secs_f64(within(value, 1e-6, 60.0)?)),
            ("base", _) => self.pace = Pace::Rate(Rate::from_bps(positive(value)?)),
            ("w", _) => self.distance = whole(value, 3, 1024)?,
            ("p", _) => self.bursts = whole(value, 1, 1024)?,
            ("b", _) => self.burst = whole(value, 1, 511)?,
            ("points", "doubling") => self.points = Points::Doubling,
            ("points", "mcl") => self.points = Points::Mcl,
            ("points", "every") => self.points = Points::Every,
            ("leave-delay", _) => self.leave_delay = Span::from_secs_f64(within(value, 0.0, 60.0)?),
            ("deaf", "auto") => self.deaf = None,
            ("deaf", _) => self.deaf = Some(Span::from_secs_f64(within(value, 0.0, 600.0)?)),
            ("beside", "off") => self.beside = None,
            ("beside", _) => self.beside = Some(Span::from_secs_f64(within(value, 0.001, 1.0)?)),
            ("stretch", "off") => self.stretch = None,
            ("stretch", _) => self.stretch = Some(within(value, 1.0, 100.0)?),
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match (option, self.pace) {
            ("layers", _) => self.layers.to_string(),
            ("tau0", Pace::Every(interval)) => number(interval.as_secs_f64()),
            ("base", Pace::Rate(rate)) => number(rate.bps()),
            ("tau0" | "base", _) => "auto".into(),
            ("w", _) => self.distance.to_string(),
            ("p", _) => self.bursts.to_string(),
            ("b", _) => self.burst.to_string(),
            ("points", _) => match self.points {
                Points::Doubling => "doubling".into(),
                Points::Mcl => "mcl".into(),
                Points::Every => "every".into(),
            },
            ("leave-delay", _) => number(self.leave_delay.as_secs_f64()),
            ("deaf", _) => self.deaf.map_or("auto".into(), |deaf| number(deaf.as_secs_f64())),
            ("beside", _) => self.beside.map_or("off".into(), |rtt| number(rtt.as_secs_f64())),
            ("stretch", _) => self.stretch.map_or("off".into(), number),
            _ => String::new(),
        }
    }
}

/// A whole number between these two, both included.
fn whole(value: &str, least: u16, most: u16) -> Option<u16> {
    value.parse().ok().filter(|number| (least..=most).contains(number))
}
