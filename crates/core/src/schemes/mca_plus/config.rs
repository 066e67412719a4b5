//! Parameters of MCA+, with the paper's symbols and values.

use crate::estimate::Measuring;
use crate::field;
use crate::packet::Mark;
use crate::rate::{PolicyChoice, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, measuring, policy};
use crate::schemes::declare::configuration;
use crate::spec::{NumberRange, Opt};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

configuration! {
    /// All settings of MCA+. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
    pub struct Config {
        /// The rate policy.
        policy: PolicyChoice = PolicyChoice::Aimd => option[policy!()];
        /// Fraction of the rate that remains after a cut because of accumulation (paper 000, 5.2.1.2).
        keep_at_accumulation: f64 = 0.9
            => number["beta", NumberRange::of(0.5, 1.0),
                "fraction of the rate that remains after accumulation"];
        /// Settings of the measurement of accumulation.
        measuring: Measuring = Measuring::published();
        /// Fraction of the rate that remains after a cut because of a loss (paper 000, 5.2.1.2).
        keep_at_loss: f64 = 0.75
            => number["beta-loss", NumberRange::of(0.5, 1.0),
                "fraction of the rate that remains after a loss"];
        /// Number of deviations, "k" (paper 000, 5.2.1.3). A receiver replaces the representative if its mean is lower than the
        /// representative's mean by more than this number of deviations.
        switch_deviations: f64 = 1.0
            => number["k", NumberRange::of(0.0, 100.0),
                "a receiver replaces the representative if its throughput is this number of deviations below the representative's mean"];
        /// The number of periods at a high rate without a report, "n" (paper 000, 5.2.1.3). Then the representative counts as
        /// absent.
        patience: u16 = 4
            => whole["n", 1, 1000, "periods of silence after which the representative is absent"];
        /// Weight of a new sample in a receiver's mean and deviation of the throughput at congestion.
        alpha: f64 = 0.125
            => number["alpha", NumberRange::up_to(1.0), "gain of a receiver's mean throughput at congestion"];
        /// Minimum duration over which throughput is measured; at least the largest round-trip time and the duration of eight
        /// packets.
        window: Span = Span::ZERO
            => seconds["window", NumberRange::of(0.0, 10.0),
                "minimum interval over which throughput is measured"];
        /// Number of packets over which the congestion rate "p" is measured.
        counted: u16 = 1000
            => whole["counted", 100, 10_000,
                "number of packets over which the rate of congestion is measured"];
        /// The receivers that do not report.
        suppress: Suppress = Suppress::Faster
            => choice["suppress", { "faster" => Faster, "slower" => Slower, "nobody" => Nobody },
                "receivers that send no reports; the thesis prints slower where it means faster"];
        /// The way in which the round-trip time is updated when the representative changes.
        across_switch: AcrossSwitch = AcrossSwitch::Restart
            => choice["across-switch", { "restart" => Restart, "continue" => Continue },
                "mean round-trip time after a change of the representative"];
        /// The reports that give round-trip samples.
        samples: Samples = Samples::Followed
            => choice["samples", { "followed" => Followed, "all" => All },
                "receivers whose reports give round-trip samples: the representative, or all"];
        /// Time of reports without a valid representative.
        while_invalid: WhileInvalid = WhileInvalid::AtOnce
            => choice["invalid", { "spread" => Spread, "at-once" => AtOnce },
                "timing of reports while there is no representative"];
        /// Settings of packet sending that all schemes share.
        sending: Sending = Sending::published()
            => option[Opt::seconds("period", NumberRange::POSITIVE, field!(sending.min_rtt),
                "lower bound of the round-trip time")];
        /// Distribution of two delays: of reports while no representative is valid, and of answers to the start-up.
        delay_law: TruncatedExponential = TruncatedExponential::default()
            => spread["spread", "steepness of the distribution of report delays"];
        // Paper gap: 5.2.2 sends a report at each loss. At 100,000 packets per second the source would ignore all of these
        // reports except one per round-trip time. `Config::transport` sends at most eight.
        /// Maximum number of reports that a receiver sends per largest round-trip time. `None`: one report at each loss, as in
        /// the paper.
        reports_per_rtt: Option<u16> = None;
    }

    /// The values of the thesis: cuts to 0.9 and 0.75, linear start, packets of 1000 bytes.
    // Paper gap: 5.2.1.3 does not state the period over which congestion is counted. It counts the "number of CIs", which would
    // make a suppressed receiver appear less congested. Here instances of congestion are counted, over 1000 sequence numbers.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MORE: &'static [Opt<Config>] = &measuring!();

        const MARK: Mark = Mark::REPRESENTATIVE;
    }
}

/// The receivers that do not report congestion. The representative always reports.
// Paper gap: 5.2.2.2 suppresses receivers that are slower than the representative, but only their reports count (5.2.1.3). The
// introduction of chapter 5 suppresses the faster receivers. `Suppress::Slower` is the literal rule of 5.2.2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suppress {
    /// Receivers whose throughput is at least the representative's mean minus its deviation.
    Faster,
    /// Receivers whose throughput is below the representative's mean minus its deviation.
    Slower,
    /// No receivers.
    Nobody,
}

/// The way in which the round-trip time is updated when the representative changes.
// Paper gap: 5.2.1.1 smooths the samples of all representatives together. Each change between a near and a far one increases the
// deviation and slows growth, which depends on the square of the period. Here the mean restarts with the new representative's
// sample. The deviation is limited to an eighth, the value after a doubling of the mean. On the star of 5.3.3 the session then
// gets as much as single receivers, as the thesis reports, instead of three quarters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcrossSwitch {
    /// The new representative's sample becomes the mean.
    Restart,
    /// The sample of the new representative updates the mean of the old one, as in the paper.
    Continue,
}

/// The congestion reports that give round-trip samples.
// Paper gap: 5.2.1.1 takes a sample from every report. The round-trip times of other receivers would then control the growth for
// the representative, so by default their reports give no samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// Reports of the representative, and of a receiver that the report makes the representative.
    Followed,
    /// All reports.
    All,
}

/// Time at which a receiver reports while no representative is valid. In this state all receivers may report.
// Paper gap: 5.2.2.2 has no delay, so all receivers of a large group would report at once. `Config::transport` spreads their
// reports as in ORMCC (paper 000, 3.1.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhileInvalid {
    /// At random times within two largest round-trip times.
    Spread,
    /// At once.
    AtOnce,
}

impl Config {
    /// Returns the settings for a real network: doubling start, all guards, thresholds that tolerate the noise of hosts
    /// ([`Measuring::transport`]).
    ///
    /// Noise hides congestion for a few tens of milliseconds, so the rate must not change faster: every round-trip time counts as
    /// at least 20 ms. Throughput is measured over at least a tenth of a second, so a few milliseconds of noise change it by a
    /// few percent.
    pub fn transport(packet_size: u16) -> Config {
        let sending = Sending { min_rtt: Span::from_millis(20), ..Sending::transport(packet_size) };
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

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "mca-plus",
    number: 4,
    summary: "one rate; avoids congestion: follows the receiver with the lowest throughput when queues grow",
    source: "paper 000, chapter 5",
    sender: "names one receiver its representative; cuts the rate by a tenth at accumulation, by a quarter at a loss; requests reports from all when the representative is silent",
    receiver: "measures the number of bytes in the network; reports if it is the representative, or slower than the representative",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::One,
    deviations: &[
        "The scheme is meant for dedicated networks: it gets little bandwidth next to flows that fill queues until they overflow.",
        "Receivers that are faster than the representative send no reports; one section of the thesis prints the opposite.",
        "Reports state the delay at the receiver, so that random delays do not count as round-trip time.",
        "On real networks reports have random delays while there is no representative, as in ORMCC.",
        "The control packet that ends congestion is not counted again in the next measurement.",
        "The mean round-trip time restarts when the representative changes.",
        "On real networks thresholds grow with the rate and with the measured noise, and a constant queue counts as a longer route.",
        "On real networks the session starts by doubling its rate in each round, and the round-trip time has a lower bound of 20 ms.",
        "The rate does not grow while the source does not use it, or while no receiver seems to receive.",
    ],
};
