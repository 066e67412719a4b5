//! Parameters of TFMCC, with the RFC's names and values.

use crate::packet::Mark;
use crate::rate::start::Doubling;
use crate::rate::{Bounds, Sending, Start};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::time::{Rate, Span};

configuration! {
    /// Everything that can be chosen. [`Config::published`] is RFC 4654, [`Config::transport`] is for real networks.
    ///
    /// The common option `rtt` is the first largest round-trip time, "R_max". `start=doubling` is the RFC's own slow start: up to twice the
    /// rate that the slowest receiver gets, until a receiver loses a packet. `start=linear` begins with the increase that holds after it, a
    /// packet per largest round-trip time each time.
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = published_sending();
        /// The law of report delays.
        timer: TimerLaw = TimerLaw::Rfc
            => choice["timer", { "rfc" => Rfc, "2001" => Of2001 }, "the law of report delays"];
        /// Reports less than this part below the lowest of a round are suppressed, "g".
        near: f64 = 0.1
            => number["g", NumberRange::of(0.0, 0.5), "reports this near the lowest of a round are suppressed"];
        /// The largest round-trip time keeps this part in a round without a larger one.
        rtt_max_kept: f64 = 0.9
            => number["rtt-max-kept", NumberRange::of(0.1, 1.0),
                "part of the largest round-trip time that is kept in a round without a larger one"];
        /// Whether receivers follow one-way delays between measurements.
        one_way: OneWay = OneWay::Followed
            => choice["one-way", { "followed" => Followed, "ignored" => Ignored },
                "one-way delays between measurements of the round-trip time"];
        /// Whether long open loss intervals discount older ones.
        discounting: Discounting = Discounting::On
            => choice["discounting", { "on" => On, "off" => Off }, "long loss intervals discount older ones"];
        /// Where the first loss interval comes from.
        first: FirstInterval = FirstInterval::Rfc4654
            => choice["first", { "4654" => Rfc4654, "5348" => Rfc5348 },
                "the RFC whose rule gives the loss interval before the first loss"];
        /// The number of round-trip times from the first within which losses are one event; one is RFC 4654, 5.
        event: f64 = 1.0;
        /// The increase of a calculated rate after a loss event.
        recovery: Recovery = Recovery::Equation;
        /// How fast the source rises to the rate that the limiting receiver reports.
        rise: Rise = Rise::Packet;
        /// The rate does not rise so soon after the limiting receiver has left, nor in six largest round-trip times.
        hold: Span = Span::ZERO;
        /// Nothing that a receiver calculates lowers the rate below this; silence does.
        least: Rate = Rate::ZERO;
        /// Over how many round-trip times receivers measure the rate that they get, "k".
        received_over: f64 = 3.0
            => number["k", NumberRange::of(1.0, 10.0), "over how many round-trip times a received rate is measured"];
        /// The limiting receiver is not missed before this time, whatever the round-trip time.
        patience: Span = Span::ZERO
            => seconds["patience", NumberRange::of(0.0, 60.0), "the limiting receiver is not missed before this time"];
    }

    /// RFC 4654, with packets of 1000 bytes.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::EQUATION;
    }
}

/// The law of report delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerLaw {
    /// Exponential up to six largest round-trip times.
    Rfc,
    /// The simulations of the paper of 2001: up to four, a third of it by the rate.
    Of2001,
}

/// Whether a receiver follows the one-way delay between measurements of its round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneWay {
    /// It does.
    Followed,
    /// Measurements alone count.
    Ignored,
}

/// Whether long open loss intervals discount older ones (RFC 4654, 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discounting {
    /// They do.
    On,
    /// All intervals count by their place alone.
    Off,
}

/// The basis of the loss interval before the first loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstInterval {
    /// The square root alone (RFC 4654, 5.6). At a few packets per round-trip time the equation turns it into much less than the received
    /// rate: at one packet, a thirtieth.
    Rfc4654,
    /// The whole equation (RFC 5348, 6.3.1): it gives back the received rate.
    Rfc5348,
}

/// The increase of a calculated rate after a loss event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The equation's result for the open loss interval: at most a seventh of a packet per round-trip time in each, or a quarter where
    /// older intervals are discounted.
    Equation,
    /// At least TCP's increase: from half of the received rate, a packet per round-trip time in each (RFC 5681, 3.1).
    Tcp,
}

/// How fast the source rises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rise {
    /// By a packet per largest round-trip time in each (RFC 4654, 2.2).
    Packet,
    /// Up to twofold in a largest round-trip time, as a single TFRC flow may (RFC 5348, 4.3).
    Double,
}

impl Config {
    /// A real network: the first largest round-trip time is 20 ms (a longer one counts at once) and is halved per round where paths are
    /// shorter. The first loss interval is that of RFC 5348. Slow start doubles the rate received in the latest round trip alone (over
    /// three it grows by a third in each, and a competing TCP flow takes the path first). A host that is held up for less than 200 ms is
    /// not missed.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending { initial_rtt: Span::from_millis(20), ..Sending::transport(packet_size) },
            rtt_max_kept: 0.5,
            first: FirstInterval::Rfc5348,
            received_over: 1.0,
            patience: Span::from_millis(200),
            ..Config::published()
        }
    }
}

/// How packets are sent in the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published();
    let slowest = Rate::of(u64::from(sending.packet_size), Span::from_secs(8));
    Sending {
        initial_rtt: Span::from_millis(500),
        min_rtt: Span::from_millis(1),
        start: Start::Doubling(Doubling::default()),
        bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
        ..sending
    }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "tfmcc",
    number: 6,
    summary: "one rate; receivers calculate TCP's rate at their loss, the source follows the lowest",
    source: "RFC 4654; paper 000, 1.6.2.3",
    sender: "sends at the rate that the limiting receiver reports; repeats the lowest report of a round, which silences others",
    receiver: "measures loss events and round-trip time, calculates TCP's rate; reports after a random delay unless another was slower",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
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
