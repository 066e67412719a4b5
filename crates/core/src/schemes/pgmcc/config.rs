//! Parameters of PGMCC, with the draft's names and values.

use crate::packet::Mark;
use crate::rate::{Bounds, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::schemes::declare::configuration;
use crate::spec::{Field, NumberRange, Opt};
use crate::time::{Rate, Span};

configuration! {
    /// Parameters of PGMCC. [`Config::published`] has the draft's values, [`Config::transport`] is for real networks.
    ///
    /// The common option `start=linear` selects the draft's window growth: exponential up to `ssthresh`, then linear. With
    /// `start=doubling` the growth is exponential until the first loss, as in TCP. After a later timeout, it is exponential up to
    /// half of the former window; after a pause, up to three quarters of the former window. Rate-based schemes double the rate
    /// once per round; a window grows with each acknowledgement instead.
    pub struct Config {
        /// Parameters of sending that all schemes share.
        sending: Sending = published_sending();
        /// A receiver replaces the acker only if its throughput is below the acker's throughput times this factor, "c".
        hysteresis: f64 = 0.75
            => number["c", NumberRange::of(0.1, 1.0),
                "a receiver becomes the acker if its throughput is below this fraction of the acker's"];
        /// Window in packets up to which growth is exponential, "SSTHRESH".
        ssthresh: f64 = 4.0
            => number["ssthresh", NumberRange::of(1.0, 1000.0),
                "window, in packets, up to which slow start lasts"];
        /// Formula by which the throughputs of receivers are compared.
        formula: Formula = Formula::Full
            => choice["formula", { "full" => Full, "simple" => Simple },
                "TCP's formula by which throughputs are compared"];
        /// Unit of the round-trip times in the comparison of throughputs.
        measure: Measure = Measure::Time
            => choice["measure", { "time" => Time, "packets" => Packets },
                "unit of round-trip times in the comparison of throughputs"];
        /// Maximum random delay of a negative acknowledgement.
        nak_backoff: Span = Span::from_millis(50)
            => seconds["nak-backoff", NumberRange::up_to(10.0), "maximum random delay of a loss report"];
        /// Number of packets per acknowledgement. The acker acknowledges a packet at once if the latest acknowledgement was sent
        /// at least a millisecond ago, or if a packet is missing.
        ack_every: u8 = 1 => whole["ack-every", 1, 16, "packets per acknowledgement of a fast stream"];
        /// Gain of the loss filter.
        loss_gain: f64 = 500.0 / 65_536.0
            => option[Opt::number("loss-gain", NumberRange::of(1.0, 65_536.0), LOSS_GAIN,
                "gain of the receivers' loss filter, in 65536ths")];
        /// Treatment of the tokens of lost packets.
        tokens: Tokens = Tokens::Returned
            => choice["tokens", { "returned" => Returned, "kept" => Kept },
                "treatment of the tokens of lost packets; the draft keeps them"];
        /// Minimum retransmission timeout.
        min_rto: Span = Span::from_millis(200)
            => seconds["rto-min", NumberRange::up_to(60.0), "minimum timeout"];
        /// The timeout before the first round-trip sample.
        first_rto: Span = Span::from_secs(3)
            => seconds["rto-first", NumberRange::up_to(60.0), "timeout before the first round-trip sample"];
        /// Maximum timeout after doublings; a longer round-trip time still extends it.
        max_rto: Span = Span::from_secs(64);
        /// Maximum pace, as a multiple of the window per round-trip time. With `None`, a packet is sent as soon as a token is
        /// available.
        pacing: Option<f64> = None
            => number["pacing" or "off", NumberRange::of(1.0, 10.0),
                "maximum number of windows sent per round-trip time"];
    }

    /// The draft's values: linear start, packets of 1000 bytes, no pacing.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::Acker { id: None };
    }
}

/// Formula by which the throughputs of two receivers are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formula {
    /// TCP's formula with timeouts.
    Full,
    /// Only the square-root term of the loss rate (paper 000, 1.6.2.2).
    Simple,
}

/// Unit of the round-trip times in the comparison of receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Seconds, measured with the packet that a report answers.
    Time,
    /// Packets, counted from the newest received packet to the newest sent packet (paper 000, 1.6.2.2).
    Packets,
}

/// Treatment of the token of a packet that is declared lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokens {
    /// The token is returned, because the packet has left the network.
    // The draft does not return the token, so each loss removes a token until a timeout.
    Returned,
    /// The token is lost until a timeout, which is the literal rule of the draft.
    Kept,
}

/// The draft's maximum timeout, which also determines the minimum rate.
const MAX_RTO: Span = Span::from_secs(64);

impl Config {
    /// Returns the parameters for a real network. Growth is exponential at the start, bursts are paced, and at least one packet
    /// is sent per 8 s. A fast stream has one acknowledgement per four packets, and the first timeout is 1 s as in RFC 6298, 2.1.
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

/// Returns the parameters of sending in the paper's simulations.
fn published_sending() -> Sending {
    let sending = Sending::published();
    let slowest = Rate::of(u64::from(sending.packet_size), MAX_RTO);
    Sending { bounds: Bounds { min: slowest, max: Rate::UNLIMITED }, ..sending }
}

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "pgmcc",
    number: 5,
    summary: "one rate; a window as in TCP between the source and the receiver with the lowest throughput by TCP's formula",
    source: "draft-ietf-rmt-bb-pgmcc-03; paper 000, 1.6.2.2",
    sender: "names one receiver its acker and runs a window over its acknowledgements; compares the acker with every receiver that reports losses",
    receiver: "acknowledges each packet while it is the acker; otherwise reports losses after a random delay",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native, Wire::Pgm],
    layers: LayerRates::One,
    deviations: &[
        "The token of a lost packet returns when the loss is detected; in the draft it is missing until a timeout.",
        "The filter's constant is a gain of 500/65536; the draft's formula has the constant on the wrong side.",
        "The acker sends no separate loss reports: its acknowledgements contain the same information.",
        "Only acknowledgements show that the acker is present; in the draft the loss reports of other receivers do, too.",
        "The acker's round-trip time is smoothed before it is compared.",
        "Repairs are packets with new numbers, so a repair never cancels a report.",
        "The window grows only while tokens run out; a pause longer than a timeout closes it to ssthresh.",
        "start=doubling opens the window exponentially until the first loss, as TCP does.",
        "An ECN mark at the acker counts as a loss.",
        "On real networks the acker acknowledges every fourth packet, or once a millisecond, and every packet while one is missing.",
        "On real networks packets are spaced: at most 1.25 windows are sent per round-trip time.",
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
