//! Parameters of PGMCC, with the draft's names and values.

use crate::packet::Mark;
use crate::rate::{Bounds, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::{Field, NumberRange, Opt};
use crate::time::{Rate, Span};

configuration! {
    /// Everything that can be chosen. [`Config::published`] is the draft, [`Config::transport`] is for real networks.
    ///
    /// The common option `start=linear` is the draft's opening: exponential up to `ssthresh`, then linear. `start=doubling` opens
    /// exponentially until the first loss, as TCP does, and after a timeout or a pause back to half or three quarters of the former window.
    /// The doubling in rounds of the rate-based schemes does not fit a window.
    pub struct Config {
        /// How packets are sent, whatever the scheme.
        sending: Sending = published_sending();
        /// The acker changes only for a receiver with less than this part of its throughput, "c".
        hysteresis: f64 = 0.75
            => number["c", NumberRange::of(0.1, 1.0), "the acker changes for a throughput below this part of the acker's"];
        /// Up to this window the opening is exponential, "SSTHRESH".
        ssthresh: f64 = 4.0
            => number["ssthresh", NumberRange::of(1.0, 1000.0),
                "window up to which the opening is exponential, in packets"];
        /// How throughputs are compared.
        formula: Formula = Formula::Full
            => choice["formula", { "full" => Full, "simple" => Simple }, "TCP's formula for comparing throughputs"];
        /// How round-trip times are measured for that comparison.
        measure: Measure = Measure::Time
            => choice["measure", { "time" => Time, "packets" => Packets },
                "the unit of round-trip times in that comparison"];
        /// The longest random delay of a negative acknowledgement.
        nak_backoff: Span = Span::from_millis(50)
            => seconds["nak-backoff", NumberRange::up_to(10.0), "longest random delay of a loss report"];
        /// The number of packets per acknowledgement of the acker. It acknowledges the first one after a millisecond at once, and each
        /// while any is missing.
        ack_every: u8 = 1 => whole["ack-every", 1, 16, "packets per acknowledgement of a fast stream"];
        /// Gain of the loss filter.
        loss_gain: f64 = 500.0 / 65_536.0
            => option[Opt::number("loss-gain", NumberRange::of(1.0, 65_536.0), LOSS_GAIN,
                "gain of the receivers' loss filter, in 65536ths")];
        /// The treatment of the tokens of lost packets.
        tokens: Tokens = Tokens::Returned
            => choice["tokens", { "returned" => Returned, "kept" => Kept },
                "the tokens of lost packets; kept is the draft"];
        /// The shortest retransmission timeout.
        min_rto: Span = Span::from_millis(200) => seconds["rto-min", NumberRange::up_to(60.0), "shortest timeout"];
        /// The timeout before the first round-trip sample.
        first_rto: Span = Span::from_secs(3)
            => seconds["rto-first", NumberRange::up_to(60.0), "timeout before the first round-trip sample"];
        /// No timeout is longer, however often it was doubled, but for a longer round-trip time.
        max_rto: Span = Span::from_secs(64);
        /// Packets leave no faster than this times the window per round-trip time; `None` for at once when there is a token.
        pacing: Option<f64> = None
            => number["pacing" or "off", NumberRange::of(1.0, 10.0), "maximum number of windows sent per round-trip time"];
    }

    /// The draft: linear start, packets of 1000 bytes, no pacing.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::Acker { id: None };
    }
}

/// How the throughputs of two receivers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// TCP's formula with timeouts.
    Full,
    /// The square root alone (paper 000, 1.6.2.2).
    Simple,
}

/// How round-trip times of receivers are measured for the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// In seconds, by the packet that a report answers.
    Time,
    /// In packets between the newest one sent and the newest one received (paper 000, 1.6.2.2).
    Packets,
}

/// The treatment of the token of a packet that is declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// It comes back: the packet has left the network.
    // The draft never gives it back, so that each loss takes a token until a timeout.
    Returned,
    /// It is gone until a timeout: the letter of the draft.
    Kept,
}

/// The draft's longest timeout, and so its slowest sending.
const MAX_RTO: Span = Span::from_secs(64);

impl Config {
    /// A real network: exponential opening, bursts spread, at least a packet per 8 s, an acknowledgement for four
    /// packets of a fast stream, and a first timeout of 1 s as in RFC 6298, 2.1.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            first_rto: Span::from_secs(1),
            max_rto: Span::from_secs(1),
            pacing: Some(1.25),
            ack_every: 4,
            ..Config::published()
        }
    }
}

/// How packets are sent in the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published();
    let slowest = Rate::of(u64::from(sending.packet_size), MAX_RTO);
    Sending { bounds: Bounds { min: slowest, max: Rate::UNLIMITED }, ..sending }
}

/// The scheme as a user sees it.
const ENTRY: Entry = Entry {
    name: "pgmcc",
    number: 5,
    summary: "one rate; a TCP-like window between the source and the receiver with the lowest throughput by TCP's formula",
    source: "draft-ietf-rmt-bb-pgmcc-03; paper 000, 1.6.2.2",
    sender: "names one receiver its acker, runs a window over its acknowledgements, compares all that report losses with it",
    receiver: "acknowledges each packet that names it the acker; else reports losses after a random delay",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Pgm],
    layers: LayerRates::One,
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

const LOSS_GAIN: Field<Config, f64> = Field {
    get: |config| Some(config.loss_gain * 65_536.0),
    set: |config, gain| {
        if let Some(gain) = gain {
            config.loss_gain = gain / 65_536.0;
        }
    },
};
