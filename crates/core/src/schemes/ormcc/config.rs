//! Parameters of ORMCC, with the seed's symbols and values.

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
    /// Decrease factor "beta" (seed 000, 3.1.5).
    pub beta: f64,
    /// Gain of the receiver's mean throughput at congestion, "alpha".
    pub alpha_receiver: f64,
    /// Gain of the source's mean and deviation of it.
    pub alpha_source: f64,
    /// Over how long throughput at congestion is measured at most (seed 000, 3.1.1, footnote 9).
    pub trac_window: Span,
    /// And at least: so long, the largest round-trip time, and what sixteen packets take. The thesis measures the whole
    /// `trac_window`, which is many round trips of a near path; then the throughput at congestion lies well below what had
    /// been reached, and a session is cut the more, the shorter its path. [`Config::transport`] measures a tenth of a second.
    pub trac_least: Span,
    /// The law of the delay of other receivers' reports (seed 000, 3.1.4).
    pub delay_law: TruncatedExponential,
    /// What the source compares before it changes the representative.
    pub switch_on: SwitchOn,
    /// What becomes of the statistics when the representative changes.
    pub across_switch: AcrossSwitch,
    // Seed gap: appendix B.2 sends a report at each loss, which at 100,000 packets a second is a flood that the source
    // ignores but for one per round-trip time. `Config::transport` sends at most eight.
    /// The representative sends at most this many reports per largest round-trip time; `None` for one at each loss,
    /// as in the seed.
    pub reports_per_rtt: Option<u16>,
    // Seed gap: 3.1.4 spreads reports over two largest round-trip times. What suppresses them comes in the headers of later packets: where
    // packets are farther apart than that, as on a stream of a few a second, nobody is suppressed and all of a large group report.
    // `Config::transport` spreads them over four packets at least.
    /// The others' reports are spread over what so many packets take, a second at most, where that is longer than two largest round-trip
    /// times; `None` for those alone, as in the seed.
    pub spread_packets: Option<u8>,
}

/// What the source compares with the representative's mean less its deviation.
// Seed gap: appendix B.1 compares the sample, 3.1.2 speaks of averages. The receiver has already compared its average;
// comparing the sample gives a fairer rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchOn {
    /// The report's own sample.
    Sample,
    /// The reporting receiver's mean.
    Average,
}

/// The representative's statistics at a change.
// Seed gap: appendix B.1 says "update" where the representative changes, which would mix two receivers' statistics.
// Here they begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcrossSwitch {
    /// The new receiver's sample is the mean.
    Restart,
    /// The sample updates the old receiver's statistics (the letter of the seed).
    Continue,
}

impl Config {
    /// The thesis: linear start, beta 0.75, packets of 1000 bytes, never silenced by a silent group.
    pub fn published() -> Config {
        Config {
            sending: Sending::published(),
            policy: PolicyChoice::Aimd,
            beta: 0.75,
            alpha_receiver: 0.125,
            alpha_source: 0.125,
            trac_window: Span::from_secs(1),
            trac_least: Span::from_secs(1),
            delay_law: TruncatedExponential::default(),
            switch_on: SwitchOn::Sample,
            across_switch: AcrossSwitch::Restart,
            reports_per_rtt: None,
            spread_packets: None,
        }
    }

    /// A sender on a real network: doubling start, all guards, at least a packet per 8 s.
    ///
    /// Beta is the 0.65 that the thesis uses at user level (seed 000, 3.1.5), and throughput at congestion is measured over what
    /// was reached just before it (`docs/decisions/`, the one on beta).
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            beta: 0.65,
            trac_least: Span::from_millis(100),
            reports_per_rtt: Some(8),
            spread_packets: Some(4),
            ..Config::published()
        }
    }
}
