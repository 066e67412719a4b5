//! Parameters of GMCC, with the paper's symbols and values.

use crate::half::Half;
use crate::packet::{LayerStates, Mark};
use crate::rate::{Averaging, PolicyChoice, Sending};
use crate::schemes::catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire, policy};
use crate::schemes::declare::configuration;
use crate::spec::NumberRange;
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// Maximum number of stored samples.
pub(super) const MAX_SAMPLES: usize = 30;

configuration! {
    /// All settings of GMCC. [`Config::published`] has the values of paper 000, [`Config::transport`] is for real networks.
    pub struct Config {
        /// Settings of packet sending that all schemes share.
        sending: Sending = Sending::published();
        /// Maximum number of layers.
        layers: u8 = 8 => whole["layers", 1, LayerStates::LAYERS as u64, "maximum number of layers"];
        /// Rate control within a layer.
        control: LayerScheme = LayerScheme::Aimd
            => choice["control", { "aimd" => Aimd, "ormcc" => Ormcc, "tfmcc" => Tfmcc, "pgmcc" => Pgmcc },
                "rate control within a layer"];
        /// The rate policy, used if `control` is [`LayerScheme::Aimd`] or [`LayerScheme::Ormcc`].
        policy: PolicyChoice = PolicyChoice::Aimd => option[policy!()];
        /// With [`LayerScheme::Ormcc`]: ratio of the rate after a cut to the throughput at congestion, "beta" (paper 000, 3.1.5).
        beta: f64 = 0.75
            => number["beta", NumberRange::of(0.5, 1.0),
                "with control=ormcc, fraction of the throughput at congestion that remains after a cut"];
        /// Number of samples in a statistic, "N" (paper 000, 4.1.1.2).
        samples: u8 = 30 => whole["n", 2, MAX_SAMPLES as u64, "number of samples in each statistic"];
        /// Number of consecutive comparisons required for a join, "J" (paper 000, 4.1.4.1).
        comparisons: u8 = 30 => whole["j", 1, 200, "consecutive comparisons required for a join"];
        /// Definition of a sample of the attenuation factor.
        taf: TafSample = TafSample::Smoothed
            => choice["taf", { "smoothed" => Smoothed, "product" => Product },
                "definition of a sample of the throughput attenuation factor"];
        /// Kind of mean over the intervals between congestion epochs.
        cor: CorMean = CorMean::Mean
            => choice["cor", { "mean" => Mean, "harmonic" => Harmonic },
                "averaging of the intervals between losses"];
        /// Method of measuring the output rate in an attenuation factor.
        output: Output = Output::Pair
            => choice["output", { "pair" => Pair, "window" => Window },
                "measurement of the received rate before a loss"];
        /// Duration over which arrivals are counted, both for [`Output::Window`] and for the rate in reports.
        window: Span = Span::from_secs(1)
            => seconds["window", NumberRange::POSITIVE, "interval over which arrivals are counted"];
        /// Samples that are assumed for a receiver without losses when the representative loses packets.
        assumed: Assumed = Assumed::Once
            => choice["assumed", { "once" => Once, "each" => Each },
                "samples assumed for a receiver without losses when the representative loses packets"];
        /// Whether layers are joined before loss statistics exist.
        joins: Joins = Joins::Compared
            => choice["joins", { "compared" => Compared, "early" => Early },
                "evidence for a join: comparisons of losses alone (compared), or also the start-up of a layer and losses of the representative alone (early)"];
        /// Number of consecutive checks required for a leave.
        // Paper gap: 4.1.5 leaves at the first positive check. With few samples a check errs more often, so `Config::transport`
        // requires several.
        checks: u8 = 1 => whole["checks", 1, 200, "consecutive checks required for a leave"];
        /// Duration for which a receiver does not rejoin a layer that it has left. The duration doubles each time that the
        /// receiver leaves the layer soon after a join.
        // Paper gap: 4.1.5 lets a receiver rejoin a layer immediately after leaving it. On a local network that causes about one
        // join per second. `Config::transport` waits.
        rejoin: Span = Span::ZERO
            => seconds["rejoin", NumberRange::of(0.0, 3600.0),
                "minimum time between leaving a layer and joining it again"];
        /// Probability that bandwidth is shifted during a rate control period, "rho" (paper 000, 4.1.4.3).
        shift_probability: f64 = 0.1
            => number["rho", NumberRange::PART,
                "probability of shifted bandwidth in the interval between two cuts"];
        /// Bandwidth that is shifted to a layer, as a fraction of this layer's rate, "delta".
        shift: f64 = 0.1 => number["delta", NumberRange::PART, "shifted fraction of a layer's rate"];
        /// Minimum interval between the heartbeats of a representative; a longer round-trip time is used instead. The source
        /// measures the silence of a representative in these intervals.
        // Paper gap: 4.1.3 sends a heartbeat each round-trip time, a thousand per second on a local network. After eight missed
        // heartbeats the layer loses its representative, which a short stall of a host can cause. `Config::transport` sends at
        // most one per 25 ms.
        min_beat: Span = Span::ZERO
            => seconds["beat", NumberRange::of(0.0, 10.0), "minimum time between two heartbeats"];
        /// Reports of the representative that give samples of the round-trip time.
        timed: Timed = Timed::Losses
            => choice["timed", { "losses" => Losses, "all" => All },
                "reports of the representative that give samples of the round-trip time"];
        /// Maximum number of losses that the representative reports per round-trip time; `None` for no limit.
        reports_per_rtt: Option<u16> = None;
        /// Whether a representative reports that it leaves a layer.
        farewell: LeaveNotice = LeaveNotice::Silent
            => choice["farewell", { "silent" => Silent, "told" => Reported },
                "whether a representative reports that it leaves a layer"];
        /// Distribution of the delay of reports while there is no representative.
        delay_law: TruncatedExponential = TruncatedExponential::default();
    }

    /// The values of paper 000: linear start, packets of 1000 bytes, rates halved at a loss, N = J = 30.
    pub fn published;

    impl Configure for Config {
        sending: sending;
        const ENTRY: Entry = ENTRY;
        const MARK: Mark = Mark::Layered {
            id: None,
            mean: f32::INFINITY,
            error: 0.0,
            rtt: 0.0,
            above: Half(0),
            updates: 0,
            states: LayerStates(0),
        };

        fn layers(&self) -> u8 {
            self.layers
        }

        fn set_layers(&mut self, layers: u8) {
            self.layers = layers;
        }
    }
}

/// Rate control within a layer (paper 000, 4.1.2: other mechanisms "can be used in place of the current one").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerScheme {
    /// Increases the rate by one packet per round-trip time in each round trip, and halves the rate at a loss.
    Aimd,
    /// ORMCC's control: at congestion, cuts the rate to a fraction of the throughput.
    Ormcc,
    /// TCP's throughput equation.
    Tfmcc,
    /// PGMCC's window. Acknowledgements from the layer's representative control the window.
    Pgmcc,
}

/// Definition of a sample of the throughput attenuation factor.
// Paper gap: 4.1.1.2 first defines a sample as the product of two samples. It then averages both factors before it multiplies
// them: "we collect a certain number of samples, average the samples and use the mean value for TAF calculation". The second
// definition is the default here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TafSample {
    /// The mean of the latest N individual factors, multiplied by the mean of the latest N rates of occurrence.
    Smoothed,
    /// Product of the two factors of one epoch.
    Product,
}

/// Kind of mean for the rate of congestion occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorMean {
    /// Mean of the reciprocals of intervals, as in the paper.
    Mean,
    /// Reciprocal of the mean interval. A single short interval changes it little.
    // Paper gap: 4.1.1.2 averages reciprocals, where two losses in a row outweigh all other samples. With the harmonic mean,
    // joins and leaves match the results of chapter 4 in more of its networks.
    Harmonic,
}

/// Method of measuring the output rate, which an individual throughput attenuation factor compares with the input rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The interval between the two packets before the loss, as in the paper.
    Pair,
    /// The arrivals within the configured window.
    // Paper gap: 4.1.1.1 measures one interval. Hosts send and read packets in bursts, and their times are uncertain by
    // milliseconds, so a single interval is meaningless. `Config::transport` counts the arrivals of a quarter of a second.
    Window,
}

/// Samples that are assumed for a receiver without losses when its representative loses packets (paper 000, 4.1.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    /// One assumed sample replaces the oldest sample, regardless of earlier assumed samples, as in the paper.
    Once,
    /// One assumed sample for each report of the representative since the receiver's latest loss.
    // Paper gap: 4.1.4.2 discards each assumed sample. A receiver with N samples from a congested period and no losses afterwards
    // would keep its N - 1 old samples indefinitely and never join. `Config::transport` accumulates the assumed samples.
    Each,
}

/// The conditions for joining a layer.
// Paper gap: 4.1.4 compares statistics of N losses. `Config::transport` also accepts two other kinds of evidence: a layer's
// start-up, and losses of the representative alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// A comparison of losses, as in the paper.
    Compared,
    /// The comparison, and two further kinds of evidence for available bandwidth: a start-up without losses, and losses of the
    /// representative alone.
    Early,
}

/// Reports of the representative that give samples of the round-trip time.
// Paper gap: 4.1.2 collects samples "at the receipt of CIs", so SRTT is the round-trip time with a full queue. On real networks
// minutes can pass between two losses, so `Config::transport` takes a sample of each report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Reports of losses, as in the paper.
    Losses,
    /// Reports of losses, and heartbeats.
    All,
}

/// Whether the representative of a layer notifies the source that it leaves the layer.
// Paper gap: in 4.1.3 the source detects a representative's leave by its silence. On real networks the representative sends a
// report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveNotice {
    /// Sends nothing, as in the paper.
    Silent,
    /// Sends a report.
    Reported,
}

impl Config {
    /// Returns the settings for a real network: a doubling start, all guards, measurements that tolerate timing errors of hosts,
    /// and few enough samples to join layers within a transfer. On local networks of 1 to 100 Mbit/s, the first join occurs after
    /// 1 to 10 s. With the paper's 30 samples and 30 comparisons, the first join occurs after 3 to 40 s, or not within a minute.
    /// With 6 samples and 3 comparisons, the first join occurs slightly sooner, but joins are more frequent.
    pub fn transport(packet_size: u16) -> Config {
        Config {
            sending: Sending::transport(packet_size),
            samples: 10,
            comparisons: 5,
            cor: CorMean::Harmonic,
            output: Output::Window,
            window: Span::from_millis(250),
            assumed: Assumed::Each,
            joins: Joins::Early,
            checks: 3,
            rejoin: Span::from_secs(2),
            min_beat: Span::from_millis(25),
            timed: Timed::All,
            reports_per_rtt: Some(8),
            farewell: LeaveNotice::Reported,
            ..Config::published()
        }
    }

    /// Returns the policy that controls the rate of a layer. The policy has no effect with [`LayerScheme::Pgmcc`].
    pub(super) fn policy_choice(&self) -> PolicyChoice {
        match self.control {
            LayerScheme::Tfmcc => match self.policy {
                PolicyChoice::Equation(averaging) => PolicyChoice::Equation(averaging),
                _ => PolicyChoice::Equation(Averaging::Rfc5348),
            },
            _ => self.policy,
        }
    }
}

/// The scheme's entry in the catalogue.
const ENTRY: Entry = Entry {
    name: "gmcc",
    number: 7,
    summary: "several layers, each at the rate of its most congested receiver; a receiver joins as many layers as its bottleneck can carry",
    source: "paper 000, chapter 4",
    sender: "follows the most congested receiver of each layer; switches layers on and off on request",
    receiver: "compares its congestion with that of each layer's representative; joins a layer if it is far less congested, leaves one if it limits two layers",
    feedback: Feedback::Reports,
    stated_rate: StatedRate::Always,
    wires: &[Wire::Native],
    layers: LayerRates::Adaptive,
    deviations: &[
        "Every packet carries the representative of its own layer, and the state of all layers: off, on, or followed.",
        "A receiver with at least one sample replaces a representative without samples.",
        "Reports state the delay at the receiver and the received rate of the layer.",
        "On real networks the received rate is measured over a quarter of a second instead of one packet interval.",
        "On real networks the intervals between losses are averaged, not their reciprocals.",
        "On real networks each loss report of the representative adds one assumed sample to a receiver without losses, so that its old losses expire.",
        "On real networks N is 10 and J is 5 instead of 30, so that receivers find their layers within a transfer.",
        "On real networks a leave takes three consecutive checks, and a receiver waits before it joins the same layer again.",
        "On real networks heartbeats give samples of the round-trip time, too.",
        "On real networks there are at least 25 ms between heartbeats, and at most eight reports per round-trip time.",
        "On real networks every layer starts by doubling its rate in each round, and a representative reports that it leaves.",
    ],
};
