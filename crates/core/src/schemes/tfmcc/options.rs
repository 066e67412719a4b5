//! TFMCC's parameters as text.

use super::config::{Config, Discounting, FirstInterval, OneWay, TimerLaw};
use crate::packet::Mark;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, SaysRate, Wire};
use crate::spec::{Opt, Within};
use crate::{choice, field};

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "tfmcc",
        number: 6,
        summary: "one rate; receivers calculate TCP's rate at their loss, the source follows the lowest",
        source: "RFC 4654; seed 000, 1.6.2.3",
        sender: "sends as fast as the limiting receiver says; repeats the lowest report of a round, which silences others",
        receiver: "measures loss events and round-trip time, calculates TCP's rate; reports after a random delay unless another was slower",
        feedback: Feedback::Reports,
        says_rate: SaysRate::Always,
        wires: &[Wire::Native],
        layers: LayerRates::One,
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

    const OPTIONS: &'static [Opt<Config>] = &[
        Opt::choice(
            "timer",
            choice!(timer: "rfc" => TimerLaw::Rfc, "2001" => TimerLaw::Of2001),
            "the law of report delays",
        ),
        Opt::number(
            "g",
            Within::of(0.0, 0.5),
            field!(near),
            "reports this near the lowest of a round are suppressed",
        ),
        Opt::number(
            "rtt-max-kept",
            Within::of(0.1, 1.0),
            field!(rtt_max_kept),
            "part of the largest round-trip time that is kept in a round without a larger one",
        ),
        Opt::choice(
            "one-way",
            choice!(one_way: "followed" => OneWay::Followed, "ignored" => OneWay::Ignored),
            "one-way delays between measurements of the round-trip time",
        ),
        Opt::choice(
            "discounting",
            choice!(discounting: "on" => Discounting::On, "off" => Discounting::Off),
            "long loss intervals discount older ones",
        ),
        Opt::choice(
            "first",
            choice!(first: "4654" => FirstInterval::Rfc4654, "5348" => FirstInterval::Rfc5348),
            "the RFC whose rule gives the loss interval before the first loss",
        ),
        Opt::number(
            "k",
            Within::of(1.0, 10.0),
            field!(received_over),
            "over how many round-trip times a received rate is measured",
        ),
        Opt::seconds(
            "patience",
            Within::of(0.0, 60.0),
            field!(patience),
            "the limiting receiver is not missed before this time",
        ),
    ];

    const MARK: Mark = Mark::EQUATION;

    fn published() -> Config {
        Config::published()
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
}
