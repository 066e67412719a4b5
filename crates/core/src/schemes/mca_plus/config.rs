//! Parameters of MCA+, with the seed's symbols and values.

use crate::estimate::Measuring;
use crate::rate::{PolicyChoice, Sending};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// What moves the rate.
    pub policy: PolicyChoice,
    /// How accumulation is measured.
    pub measuring: Measuring,
    /// What is kept of the rate at accumulation (seed 000, 5.2.1.2).
    pub keep_at_accumulation: f64,
    /// What is kept of the rate at loss (seed 000, 5.2.1.2).
    pub keep_at_loss: f64,
    /// A receiver slower than the representative's mean less this many deviations replaces it, "k" (seed 000, 5.2.1.3).
    pub switch_deviations: f64,
    /// A representative is absent when it is silent for so many periods at a high rate, "n" (seed 000, 5.2.1.3).
    pub patience: u16,
    /// Gain of a receiver's mean and deviation of its throughput at congestion.
    pub alpha: f64,
    /// Throughput is measured over at least this time, the largest round-trip time and eight packets.
    pub window: Span,
    /// The congestion rate "p" is taken over so many sequence numbers.
    pub counted: u16,
    /// Who keeps silent.
    pub suppress: Suppress,
    /// What becomes of the round-trip time when the representative changes.
    pub across_switch: AcrossSwitch,
    /// Which reports give round-trip samples.
    pub samples: Samples,
    /// When receivers report while nobody is valid.
    pub while_invalid: WhileInvalid,
    /// The law of the delay of reports while nobody is valid, and of answers to the start-up.
    pub delay_law: TruncatedExponential,
    // Seed gap: 5.2.2 sends a report at each loss, which at 100,000 packets a second is a flood that the source ignores
    // but for one per round-trip time. `Config::transport` sends at most eight.
    /// A receiver sends at most this many reports per largest round-trip time; `None` for one at each loss, as in the
    /// seed.
    pub reports_per_rtt: Option<u16>,
}

/// Who keeps silent about congestion, besides the representative, which never does.
// Seed gap: 5.2.2.2 silences receivers that are slower than the representative, the only ones whose reports count
// (5.2.1.3); the introduction of chapter 5 silences the faster ones. `Suppress::Slower` is the letter of 5.2.2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suppress {
    /// Those that are not slower than the representative's mean less its deviation.
    Faster,
    /// Those that are.
    Slower,
    /// Nobody.
    Nobody,
}

/// The round-trip time at a change of the representative.
// Seed gap: 5.2.1.1 smooths samples of all representatives in a row, so that every change between a near and a far one
// counts as deviation and slows growth, which is by the square of the period. Here the mean begins anew with the new
// one's sample, and the deviation is at most what a doubling of the mean would have left, an eighth. On the star of 5.3.3
// the session then gets as much as single receivers do, as the thesis reports, instead of three quarters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcrossSwitch {
    /// The new representative's sample is the mean.
    Restart,
    /// The sample updates the mean (the letter of the seed).
    Continue,
}

/// Which reports of congestion give round-trip samples.
// Seed gap: 5.2.1.1 takes a sample from every report that arrives. The round-trip times of receivers that are not
// followed would set the pace of the one that is, so theirs do not count unless asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// Those of the representative, also of a new one.
    Followed,
    /// All.
    All,
}

/// When receivers report while there is no valid representative, so that all may.
// Seed gap: 5.2.2.2 has no delay, so that all receivers of a large group would report at once. `Config::transport`
// spreads their reports as in ORMCC (seed 000, 3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileInvalid {
    /// At random moments within two largest round-trip times.
    Spread,
    /// At once.
    AtOnce,
}

impl Config {
    /// The thesis: cuts to 0.9 and 0.75, linear start, packets of 1000 bytes.
    // Seed gap: 5.2.1.3 leaves open over which period congestion is counted, and says "number of CIs", which would make
    // a receiver that is silenced look better. Here instances of congestion count, over 1000 sequence numbers.
    pub fn published() -> Config {
        Config {
            sending: Sending::published(),
            policy: PolicyChoice::Aimd,
            measuring: Measuring::published(),
            keep_at_accumulation: 0.9,
            keep_at_loss: 0.75,
            switch_deviations: 1.0,
            patience: 4,
            alpha: 0.125,
            window: Span::ZERO,
            counted: 1000,
            suppress: Suppress::Faster,
            across_switch: AcrossSwitch::Restart,
            samples: Samples::Followed,
            while_invalid: WhileInvalid::AtOnce,
            delay_law: TruncatedExponential::default(),
            reports_per_rtt: None,
        }
    }

    /// A sender on a real network: doubling start, all guards, thresholds that survive the noise of hosts
    /// ([`Measuring::transport`]).
    ///
    /// Noise makes congestion visible only after some ten milliseconds, so the rate must not move faster than that:
    /// no round-trip time counts as shorter than 20 ms. Throughput is taken over at least a tenth of a second, so that a
    /// few milliseconds of noise are a few percent.
    pub fn transport(packet_size: u16) -> Config {
        let sending = Sending { shortest_rtt: Span::from_millis(20), ..Sending::transport(packet_size) };
        Config {
            sending,
            measuring: Measuring::transport(),
            window: Span::from_millis(100),
            while_invalid: WhileInvalid::Spread,
            reports_per_rtt: Some(8),
            ..Config::published()
        }
    }
}
