//! Parameters of TFMCC, with the RFC's names and values.

use crate::packet::Mark;
use crate::rate::start::Doubling;
use crate::rate::{Bounds, Sending, Start};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::time::{Rate, Span};

configuration! {
    /// Parameters of TFMCC. [`Config::published`] has the values of RFC 4654, [`Config::transport`] is for real networks.
    ///
    /// The common option `rtt` is the initial largest round-trip time, "R_max". `start=doubling` selects the RFC's slow start:
    /// until a receiver loses a packet, the rate rises to at most twice the rate that the slowest receiver gets. `start=linear`
    /// skips slow start: from the beginning, the rate rises by one packet per largest round-trip time in each largest round-trip
    /// time.
    pub struct Config {
        /// Parameters of sending that all schemes share.
        sending: Sending = published_sending();
        /// Distribution of report delays.
        timer: TimerLaw = TimerLaw::Rfc
            => choice["timer", { "rfc" => Rfc, "2001" => Of2001 }, "distribution of report delays"];
        /// A report is suppressed unless its rate is below the lowest rate of the round by at least this fraction, "g".
        near: f64 = 0.1
            => number["g", NumberRange::of(0.0, 0.5),
                "fraction above the lowest rate of a round within which other reports are suppressed"];
        /// Factor that reduces the largest round-trip time after a round without a larger sample.
        rtt_max_kept: f64 = 0.9
            => number["rtt-max-kept", NumberRange::of(0.1, 1.0),
                "factor on the largest round-trip time after a round without a larger one"];
        /// Whether receivers follow one-way delays between measurements.
        one_way: OneWay = OneWay::Followed
            => choice["one-way", { "followed" => Followed, "ignored" => Ignored },
                "treatment of one-way delays between measurements of the round-trip time"];
        /// Whether a long open loss interval reduces the weight of older intervals.
        discounting: Discounting = Discounting::On
            => choice["discounting", { "on" => On, "off" => Off },
                "whether a long open loss interval discounts older ones"];
        /// Rule for the first loss interval.
        first: FirstInterval = FirstInterval::Rfc4654
            => choice["first", { "4654" => Rfc4654, "5348" => Rfc5348 },
                "RFC whose rule gives the loss interval before the first loss"];
        /// Duration of a loss event, in round-trip times from its first loss; 1 in RFC 4654, 5.
        event: f64 = 1.0;
        /// Increase of a calculated rate after a loss event.
        recovery: Recovery = Recovery::Equation;
        /// Rise of the rate towards the rate that the limiting receiver reports.
        rise: Rise = Rise::Packet;
        /// Duration for which the rate does not rise after the limiting receiver has left; at least the longest report delay.
        hold: Span = Span::ZERO;
        /// Lower bound to which reports can reduce the rate. Silence can reduce the rate further.
        least: Rate = Rate::ZERO;
        /// Number of round-trip times over which receivers measure their received rate, "k".
        received_over: f64 = 3.0
            => number["k", NumberRange::of(1.0, 10.0),
                "number of round-trip times over which the received rate is measured"];
        /// Minimum duration of the limiting receiver's silence before the source responds, even if the round-trip time is short.
        patience: Span = Span::ZERO
            => seconds["patience", NumberRange::of(0.0, 60.0),
                "minimum silence of the limiting receiver before the source responds"];
    }

    /// RFC 4654, with packets of 1000 bytes.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::EQUATION;
    }
}

/// Distribution of report delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerLaw {
    /// Exponential distribution up to six largest round-trip times.
    Rfc,
    /// Distribution in the simulations of the paper of 2001: up to four largest round-trip times. A third of the delay depends on
    /// the rate.
    Of2001,
}

/// Whether a receiver follows the one-way delay between measurements of its round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OneWay {
    /// Every packet's one-way delay moves the estimate.
    Followed,
    /// Only measurements change the estimate.
    Ignored,
}

/// Whether a long open loss interval reduces the weight of older intervals (RFC 4654, 5.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discounting {
    /// A long open interval reduces the weight of older intervals.
    On,
    /// The weight of an interval depends only on its position.
    Off,
}

/// Rule for the loss interval before the first loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstInterval {
    /// Only the square-root term of the equation (RFC 4654, 5.6). At a few packets per round-trip time, the whole equation would
    /// convert this interval back into a much lower rate. At one packet per round-trip time, the result is a thirtieth of the
    /// received rate.
    Rfc4654,
    /// The whole equation (RFC 5348, 6.3.1), which yields the received rate.
    Rfc5348,
}

/// Increase of a calculated rate after a loss event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// The equation's result for the open loss interval. In each round trip, the rate in packets per round-trip time rises by at
    /// most a seventh of a packet. It rises by at most a quarter of a packet while older intervals are discounted.
    Equation,
    /// At least TCP's increase. Starting at half of the received rate, the rate rises by one packet per round-trip time in each
    /// round trip (RFC 5681, 3.1).
    Tcp,
}

/// Rise of the source's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rise {
    /// In each largest round-trip time, the rate rises by one packet per largest round-trip time (RFC 4654, 2.2).
    Packet,
    /// The rate at most doubles in a largest round-trip time, as in a single TFRC flow (RFC 5348, 4.3).
    Double,
}

impl Config {
    /// Returns the parameters for a real network. The largest round-trip time is 20 ms initially. A larger sample replaces it at
    /// once; after a round without a larger sample it is halved. The first loss interval is that of RFC 5348. Slow start doubles
    /// the rate received in the latest round trip. If slow start used the latest three round trips, the rate would rise by only a
    /// third per round trip. A competing TCP flow would then fill the path first. The source does not respond to a host that is
    /// silent for less than 200 ms.
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

/// Returns the parameters of sending in the paper's simulations.
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

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "tfmcc",
    number: 6,
    summary: "one rate; receivers calculate TCP's rate from their losses, and the source follows the lowest one",
    source: "RFC 4654; paper 000, 1.6.2.3",
    sender: "sends at the rate that the limiting receiver reports; repeats the lowest report of a round, which suppresses others",
    receiver: "measures loss events and round-trip time, calculates TCP's rate; reports after a random delay, unless a lower rate was reported",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "The reverse delay is ts_i - tr_r'; the RFC prints it with the other sign, which doubles the difference of the clocks.",
        "The rate grows by one packet in each largest round-trip time, independent of the number of reports.",
        "\"RTTs\" that belong to no receiver are largest round-trip times.",
        "A receiver with too few packets to measure their rate uses the rate at which they were sent.",
        "A receiver does not leave automatically when its rate stays below a packet per 8 s.",
        "On real networks the largest round-trip time is halved, not lowered by a tenth, after a round without a larger one.",
        "On real networks the first loss interval is that of RFC 5348: with RFC 4654's, a loss at a few packets per round trip lowers the rate to a thirtieth.",
        "On real networks slow start begins with 10 packets per round trip and doubles the received rate of the latest round trip.",
        "On real networks a silence below 200 ms never counts as absence.",
    ],
};
