//! Parameters of ORMCC, with the paper's symbols and values.

use crate::packet::Mark;
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, policy};
use crate::schemes::declare::configuration;
use crate::spec::{Field, NumberRange, Opt};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

configuration! {
    /// Parameters of ORMCC. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// Parameters of sending that all schemes share.
        sending: Sending = Sending::published();
        /// The rate policy.
        policy: PolicyChoice = PolicyChoice::Aimd => option[policy!()];
        /// Decrease factor "beta" (paper 000, 3.1.5).
        beta: f64 = 0.75
            => number["beta", NumberRange::of(0.5, 1.0),
                "fraction of the throughput at congestion that remains after a cut"];
        /// Weight of a new sample in the receiver's mean throughput at congestion, "alpha".
        alpha_receiver: f64 = 0.125;
        /// Weight of a new sample in the source's mean and deviation of the representative's throughput at congestion.
        alpha_source: f64 = 0.125
            => option[Opt::number("alpha", NumberRange::up_to(1.0), ALPHA,
                "gain of the means at source and receivers")];
        /// Maximum duration over which throughput at congestion is measured (paper 000, 3.1.1, footnote 9).
        trac_window: Span = Span::from_secs(1)
            => seconds["window", NumberRange::POSITIVE,
                "maximum interval over which throughput at congestion is measured"];
        /// Minimum duration over which throughput at congestion is measured. The actual duration is the longest of this minimum,
        /// the largest round-trip time, and the duration of sixteen packets; `trac_window` limits it. The thesis always measures
        /// over `trac_window`, which is many round trips of a short path. The measured throughput is then well below the current
        /// rate, so a session over a short path is cut too far. [`Config::transport`] sets a tenth of a second.
        trac_least: Span = Span::from_secs(1)
            => seconds["window-least", NumberRange::POSITIVE,
                "minimum interval over which throughput at congestion is measured; at least the largest round-trip time and the time of 16 packets"];
        /// Distribution of the delay of reports from receivers other than the representative (paper 000, 3.1.4).
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "steepness of the distribution of report delays"];
        /// The value that the source compares before it changes the representative.
        switch_on: SwitchOn = SwitchOn::Sample
            => choice["switch-on", { "sample" => Sample, "average" => Average },
                "value that the source compares before it changes the representative"];
        /// The treatment of the statistics when the representative changes.
        across_switch: AcrossSwitch = AcrossSwitch::Restart
            => choice["across-switch", { "restart" => Restart, "continue" => Continue },
                "statistics of the representative after a change"];
        // Paper gap: appendix B.2 sends a report at each loss. At 100,000 packets a second this floods the source, which uses
        // only one report per round-trip time. `Config::transport` sends at most eight.
        /// Maximum number of reports that the representative sends per largest round-trip time. `None`: a report at each loss, as
        /// in the paper.
        reports_per_rtt: Option<u16> = None;
        // Paper gap: 3.1.4 spreads reports over two largest round-trip times. The headers of later packets suppress them. If
        // packets are farther apart than that interval, as in a stream of a few packets a second, every receiver of a large group
        // reports. `Config::transport` spreads reports over the time of at least four packets.
        /// Minimum time over which receivers other than the representative spread their reports, as the sending time of this
        /// number of packets; at most one second. `None`: always two largest round-trip times, as in the paper.
        spread_packets: Option<u8> = None;
    }

    /// The values of the thesis: linear start, beta 0.75, packets of 1000 bytes. A silent group does not stop the source.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::REPRESENTATIVE;
    }
}

/// The value that the source compares with the representative's mean minus its deviation.
// Paper gap: appendix B.1 compares the sample; 3.1.2 compares averages. The receiver has already compared its average, and
// comparing the sample gives a fairer rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchOn {
    /// The report's own sample.
    Sample,
    /// The reporting receiver's mean.
    Average,
}

/// Treatment of the representative's statistics when the representative changes.
// Paper gap: appendix B.1 updates the statistics when the representative changes, which would mix values of two receivers. By
// default they restart here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcrossSwitch {
    /// The new receiver's sample becomes the mean.
    Restart,
    /// The new representative's sample updates the old representative's statistics, literally as in the paper.
    Continue,
}

impl Config {
    /// Returns the parameters for a real network: doubling start, all guards, at least one packet per 8 s.
    ///
    /// Beta is 0.65, the thesis's value for tests at user level (paper 000, 3.1.5). Throughput at congestion is measured over the
    /// packets just before the congestion (`docs/design/congestion-control.md`).
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

/// Catalogue entry of the scheme.
const ENTRY: Entry = Entry {
    name: "ormcc",
    number: 1,
    summary: "one rate; follows the receiver with the lowest throughput at congestion",
    source: "paper 000, chapter 3",
    sender: "names one receiver its representative and follows its reports; requests reports from all when the representative is silent",
    receiver: "measures its throughput at congestion; reports if it is the representative, or slower than the representative",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::StartUp,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "Reports state the delay at the receiver, so that random delays do not count as round-trip time.",
        "On real networks throughput at congestion is measured over 0.1 to 1 s, depending on round-trip time and rate.",
        "The rate grows by a packet per round-trip time as measured at congestion, although other feedback measures the present, shorter round-trip time.",
        "On real networks the session starts by doubling its rate in each round, instead of starting with a packet per round-trip time.",
        "On real networks the representative sends at most eight reports per round-trip time.",
        "The rate does not grow while the source does not use it, or while no receiver seems to receive.",
    ],
};

/// One option that sets both gains.
const ALPHA: Field<Config, f64> = Field {
    get: |config| Some(config.alpha_source),
    set: |config, gain| {
        if let Some(gain) = gain {
            (config.alpha_source, config.alpha_receiver) = (gain, gain);
        }
    },
};
