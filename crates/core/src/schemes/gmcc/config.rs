//! Parameters of GMCC, with the seed's symbols and values.

use crate::rate::{Averaging, PolicyChoice, Sending};
use crate::suppress::TruncatedExponential;
use crate::time::Span;

/// Everything that can be chosen. [`Config::published`] reproduces the thesis, [`Config::transport`] is for real networks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// How packets are sent, whatever the scheme.
    pub sending: Sending,
    /// How many layers there are at most.
    pub layers: u8,
    /// What moves the rate within a layer.
    pub control: LayerScheme,
    /// Which policy, where `control` is [`LayerScheme::Aimd`] or [`LayerScheme::Ormcc`].
    pub policy: PolicyChoice,
    /// Part of the throughput at congestion that a cut keeps with [`LayerScheme::Ormcc`], "beta" of seed 000, 3.1.5.
    pub beta: f64,
    /// Samples that statistics are made of, "N" (seed 000, 4.1.1.2).
    pub samples: u8,
    /// Comparisons in a row that a join takes, "J" (seed 000, 4.1.4.1).
    pub comparisons: u8,
    /// What a sample of the attenuation factor is.
    pub taf: TafSample,
    /// How intervals between congestion epochs are averaged.
    pub cor: CorMean,
    /// How the output rate in an attenuation factor is measured.
    pub output: Output,
    /// Over how long arrivals are counted: for [`Output::Window`], and for the rate that reports carry.
    pub window: Span,
    /// What silence of a receiver counts for when the representative loses.
    pub assumed: Assumed,
    /// Whether layers are joined before statistics of losses are there.
    pub joins: Joins,
    /// Checks in a row that a leave takes.
    // Seed gap: 4.1.5 leaves at the first check that says so. With few samples a check errs more often, so
    // `Config::transport` wants several.
    pub checks: u8,
    /// A layer that was left is not joined again for this long, and twice as long after each leave that comes soon.
    // Seed gap: 4.1.5 lets a receiver join again what it has just left. On a local network that is a join a second.
    // `Config::transport` waits.
    pub rejoin: Span,
    /// Probability that a rate control period is one of shifted bandwidth, "rho" (seed 000, 4.1.4.3).
    pub shift_probability: f64,
    /// Part of a layer's rate that is shifted to it, "delta".
    pub shift: f64,
    /// Heartbeats come once per round-trip time, but not more often than this; silence is counted in the same unit.
    // Seed gap: 4.1.3 has a heartbeat each round-trip time, a thousand a second on a local network, and calls a layer
    // without a representative after eight of them, which a host that is held up misses. `Config::transport` has one in
    // 25 ms at most.
    pub shortest_beat: Span,
    /// The representative reports at most so many losses per round-trip time; `None` for each.
    pub reports_per_rtt: Option<u16>,
    /// Whether a representative says that it leaves a layer.
    pub farewell: LeaveNotice,
    /// The law of the delay of reports while there is no representative.
    pub delay_law: TruncatedExponential,
}

/// What moves the rate of a layer (seed 000, 4.1.2: other mechanisms "can be used in place of the current one").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerScheme {
    /// A packet more per round-trip time, half at a loss.
    Aimd,
    /// ORMCC's: down to a part of the throughput at congestion.
    Ormcc,
    /// TCP's formula.
    Tfmcc,
    /// PGMCC's window, run by acknowledgements of the layer's representative.
    Pgmcc,
}

/// What a sample of the throughput attenuation factor is.
// Seed gap: 4.1.1.2 first defines a sample as the product of two samples and then averages both factors before the
// product. The second is what "we collect a certain number of samples, average the samples and use the mean value for TAF
// calculation" says, and it is what this does unless asked for the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TafSample {
    /// Mean of the latest N individual factors times mean of the latest N rates of occurrence.
    Smoothed,
    /// The two of one epoch multiplied.
    Product,
}

/// How the rate of congestion occurrence is averaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CorMean {
    /// Mean of the reciprocals of intervals: the seed.
    Mean,
    /// Reciprocal of the mean interval, which a single short interval does not change much.
    // Seed gap: 4.1.1.2 averages reciprocals, of which those of two losses in a row outweigh all others. With this mean,
    // receivers join and leave as chapter 4 reports in more of its networks.
    Harmonic,
}

/// How the output rate is measured that an individual throughput attenuation factor compares with the input rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// By the interval of the two packets before the loss: the seed.
    Pair,
    /// By the arrivals of the latest while.
    // Seed gap: 4.1.1.1 measures by one interval. On hosts, packets leave and are read in bursts and times are uncertain by
    // milliseconds, so that one interval says nothing. `Config::transport` counts the arrivals of a quarter of a second.
    Window,
}

/// What it counts for that a receiver lost nothing while its representative did (seed 000, 4.1.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumed {
    /// One assumed sample in place of the oldest one, whatever happened before: the seed.
    Once,
    /// As many assumed samples as the representative has reported since the receiver's latest loss.
    // Seed gap: 4.1.4.2 discards each assumed sample. A receiver that has gathered N samples in a bad time and loses nothing
    // from then on would keep its N - 1 old ones for ever and stay where it is. `Config::transport` lets silence add up.
    Each,
}

/// When a layer may be joined.
// Seed gap: 4.1.4 compares statistics of N losses. `Config::transport` takes what a layer's start-up has shown, and the
// representative's losses alone, for evidence too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// At comparisons of losses: the seed.
    Compared,
    /// Also where a start-up, or losses of the representative alone, show room.
    Early,
}

/// Whether the representative of a layer tells the source that it leaves the layer.
// Seed gap: 4.1.3 lets the source notice a representative's leave by its silence. On real networks it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveNotice {
    /// It falls silent: the seed.
    Silent,
    /// It says so.
    Told,
}

impl Config {
    /// The thesis: linear start, packets of 1000 bytes, halving, N and J 30.
    pub fn published() -> Config {
        Config {
            sending: Sending::published(),
            layers: 8,
            control: LayerScheme::Aimd,
            policy: PolicyChoice::Aimd,
            beta: 0.75,
            samples: 30,
            comparisons: 30,
            taf: TafSample::Smoothed,
            cor: CorMean::Mean,
            output: Output::Pair,
            window: Span::from_secs(1),
            assumed: Assumed::Once,
            joins: Joins::Compared,
            checks: 1,
            rejoin: Span::ZERO,
            shift_probability: 0.1,
            shift: 0.1,
            shortest_beat: Span::ZERO,
            reports_per_rtt: None,
            farewell: LeaveNotice::Silent,
            delay_law: TruncatedExponential::default(),
        }
    }

    /// A sender on a real network: doubling start, all guards, measures that survive what hosts do to times, and fewer
    /// samples, so that layers are found within a transfer: on local networks of 1 to 100 Mbit/s the first join comes after
    /// 1 to 10 s, with the seed's 30 and 30 after 3 to 40 s, or not within a minute. With 6 and 3 it comes little sooner,
    /// and there are more joins.
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
            shortest_beat: Span::from_millis(25),
            reports_per_rtt: Some(8),
            farewell: LeaveNotice::Told,
            ..Config::published()
        }
    }

    /// The policy that moves the rate of a layer; for [`LayerScheme::Pgmcc`] it only stands by.
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
