//! PGMCC's parameters as text.

use super::config::{Config, Formula, Measure, Tokens};
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Opt, number, positive, within};
use crate::time::Span;

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "pgmcc",
        number: 5,
        summary: "one rate; a TCP-like window between the source and the receiver with the lowest throughput by TCP's formula",
        source: "draft-ietf-rmt-bb-pgmcc-03; seed 000, 1.6.2.2",
        sender: "names one receiver its acker, runs a window over its acknowledgements, compares all that report losses with it",
        receiver: "acknowledges each packet that names it the acker; else reports losses after a random delay",
        options: &[
            Opt {
                name: "c",
                meaning: "the acker changes for a throughput below this part of the acker's, 0.1 to 1",
            },
            Opt {
                name: "ssthresh",
                meaning: "window up to which the opening is exponential, 1 to 1000 packets",
            },
            Opt { name: "formula", meaning: "full | simple: TCP's formula for comparing throughputs" },
            Opt {
                name: "measure",
                meaning: "time | packets: the unit of round-trip times in that comparison",
            },
            Opt { name: "nak-backoff", meaning: "longest random delay of a loss report, in seconds" },
            Opt { name: "ack-every", meaning: "packets per acknowledgement of a fast stream, 1 to 16" },
            Opt { name: "loss-gain", meaning: "gain of the receivers' loss filter, in 65536ths" },
            Opt { name: "tokens", meaning: "returned | kept: the tokens of lost packets; kept is the draft" },
            Opt { name: "rto-min", meaning: "shortest timeout, in seconds" },
            Opt { name: "rto-first", meaning: "timeout before the first round-trip sample, in seconds" },
            Opt { name: "pacing", meaning: "off, or how many windows per round-trip time at most, 1 to 10" },
        ],
        deviations: &[
            "The token of a lost packet comes back when the loss is noticed; in the draft it is gone until a timeout.",
            "The filter's constant is a gain of 500/65536; the draft's formula has it on the wrong side.",
            "The acker sends no loss reports of its own: its acknowledgements say the same.",
            "Only acknowledgements show that the acker is there; in the draft the loss reports of others do too.",
            "The acker's round-trip time is smoothed before it is compared.",
            "Repairs are packets with numbers of their own, so a report is never cancelled by a repair.",
            "The window grows only while tokens run out; a pause longer than a timeout closes it to ssthresh.",
            "start=doubling opens the window exponentially until the first loss, as TCP does.",
            "An ECN mark at the acker counts as a loss.",
            "On real networks the acker acknowledges every fourth packet, or once a millisecond, unless one is missing.",
            "On real networks bursts are spread: at most 1.25 windows leave per round-trip time.",
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
        let span = |longest| Some(Span::from_secs_f64(positive(value).filter(|secs| *secs <= longest)?));
        match (option, value) {
            ("c", _) => self.hysteresis = within(value, 0.1, 1.0)?,
            ("ssthresh", _) => self.ssthresh = within(value, 1.0, 1000.0)?,
            ("formula", "full") => self.formula = Formula::Full,
            ("formula", "simple") => self.formula = Formula::Simple,
            ("measure", "time") => self.measure = Measure::Time,
            ("measure", "packets") => self.measure = Measure::Packets,
            ("nak-backoff", _) => self.nak_backoff = span(10.0)?,
            ("ack-every", _) => {
                self.ack_every = value.parse().ok().filter(|count| (1..=16).contains(count))?
            }
            ("loss-gain", _) => self.loss_gain = within(value, 1.0, 65_536.0)? / 65_536.0,
            ("tokens", "returned") => self.tokens = Tokens::Returned,
            ("tokens", "kept") => self.tokens = Tokens::Kept,
            ("rto-min", _) => self.shortest_rto = span(60.0)?,
            ("rto-first", _) => self.first_rto = span(60.0)?,
            ("pacing", "off") => self.pacing = None,
            ("pacing", _) => self.pacing = Some(within(value, 1.0, 10.0)?),
            _ => return None,
        }
        Some(())
    }

    fn get(&self, option: &str) -> String {
        match option {
            "c" => number(self.hysteresis),
            "ssthresh" => number(self.ssthresh),
            "formula" => match self.formula {
                Formula::Full => "full".into(),
                Formula::Simple => "simple".into(),
            },
            "measure" => match self.measure {
                Measure::Time => "time".into(),
                Measure::Packets => "packets".into(),
            },
            "nak-backoff" => number(self.nak_backoff.as_secs_f64()),
            "ack-every" => self.ack_every.to_string(),
            "loss-gain" => number(self.loss_gain * 65_536.0),
            "tokens" => match self.tokens {
                Tokens::Returned => "returned".into(),
                Tokens::Kept => "kept".into(),
            },
            "rto-min" => number(self.shortest_rto.as_secs_f64()),
            "rto-first" => number(self.first_rto.as_secs_f64()),
            "pacing" => self.pacing.map_or("off".into(), number),
            _ => String::new(),
        }
    }
}
