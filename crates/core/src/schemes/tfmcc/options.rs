//! TFMCC's parameters as text.

use super::config::{Config, Discounting, FirstInterval, OneWay, TimerLaw};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, within};
use crate::time::Span;

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "tfmcc",
        number: 6,
        summary: "one rate; receivers calculate TCP's rate at their loss, the source follows the lowest",
        source: "RFC 4654; seed 000, 1.6.2.3",
        sender: "sends as fast as the limiting receiver says; repeats the lowest report of a round, which silences others",
        receiver: "measures loss events and round-trip time, calculates TCP's rate; reports after a random delay unless another was slower",
        options: &[
            Opt { name: "timer", meaning: "rfc | 2001: the law of report delays" },
            Opt { name: "g", meaning: "reports this near the lowest of a round are suppressed, 0 to 0.5" },
            Opt {
                name: "rtt-max-kept",
                meaning: "part of the largest round-trip time that is kept in a round without a larger one, 0.1 to 1",
            },
            Opt {
                name: "one-way",
                meaning: "followed | ignored: one-way delays between measurements of the round-trip time",
            },
            Opt { name: "discounting", meaning: "on | off: long loss intervals discount older ones" },
            Opt {
                name: "first",
                meaning: "4654 | 5348: the RFC whose rule gives the loss interval before the first loss",
            },
            Opt { name: "k", meaning: "over how many round-trip times a received rate is measured, 1 to 10" },
            Opt {
                name: "patience",
                meaning: "the limiting receiver is not missed before this time, 0 to 60 seconds",
            },
        ],
        deviations: &[
            "The reverse delay is ts_i - tr_r'; the RFC prints it with the other sign, which doubles the difference of the clocks.",
            "Increases are a packet per largest round-trip time for each one that has passed, however many reports come.",
            "\"RTTs\" without a receiver count as largest round-trip times.",
            "A receiver that has too little to tell how fast packets come takes the rate that they were sent at.",
            "A receiver does not leave by itself when its rate stays below a packet per 8 s.",
            "On real networks the largest round-trip time is halved, not lowered by a tenth, in a round without a larger one.",
            "On real networks the first loss interval is that of RFC 5348: with the RFC's own, a loss at a few packets per round trip lowers the rate to a thirtieth.",
            "On real networks slow start begins with 10 packets per round trip and doubles what came in the latest one.",
            "On real networks a silence of less than 200 ms is never taken for an absence.",
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
            ("timer", "rfc") => self.timer = TimerLaw::Rfc,
            ("timer", "2001") => self.timer = TimerLaw::Of2001,
            ("g", _) => self.near = within(value, 0.0, 0.5)?,
            ("rtt-max-kept", _) => self.rtt_max_kept = within(value, 0.1, 1.0)?,
            ("one-way", "followed") => self.one_way = OneWay::Followed,
            ("one-way", "ignored") => self.one_way = OneWay::Ignored,
            ("discounting", "on") => self.discounting = Discounting::On,
            ("discounting", "off") => self.discounting = Discounting::Off,
            ("first", "4654") => self.first = FirstInterval::Rfc4654,
            ("first", "5348") => self.first = FirstInterval::Rfc5348,
            ("k", _) => self.received_over = within(value, 1.0, 10.0)?,
            ("patience", _) => self.patience = Span::from_secs_f64(within(value, 0.0, 60.0)?),
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "timer" => match self.timer {
                TimerLaw::Rfc => "rfc".into(),
                TimerLaw::Of2001 => "2001".into(),
            },
            "g" => number(self.near),
            "rtt-max-kept" => number(self.rtt_max_kept),
            "one-way" => match self.one_way {
                OneWay::Followed => "followed".into(),
                OneWay::Ignored => "ignored".into(),
            },
            "discounting" => match self.discounting {
                Discounting::On => "on".into(),
                Discounting::Off => "off".into(),
            },
            "first" => match self.first {
                FirstInterval::Rfc4654 => "4654".into(),
                FirstInterval::Rfc5348 => "5348".into(),
            },
            "k" => number(self.received_over),
            "patience" => number(self.patience.as_secs_f64()),
            _ => String::new(),
        }
    }
}
