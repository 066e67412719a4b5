//! Traffic of applications: amounts of data and times.

use faircast_core::rng::Rng;
use faircast_core::time::Span;

/// Distribution of a random quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Always the same value.
    Constant {
        /// The value.
        mean: f64,
    },
    /// Exponential distribution.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Pareto distribution with this shape (above 1) and mean; the scale is `mean * (shape - 1) / shape`.
    Pareto {
        /// The mean.
        mean: f64,
        /// The shape "a".
        shape: f64,
    },
    /// Uniform distribution from zero to twice the mean.
    Uniform {
        /// The mean.
        mean: f64,
    },
}

impl Law {
    /// Draws a value.
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        match *self {
            Law::Constant { mean } => mean,
            Law::Exponential { mean } => rng.exponential(mean),
            Law::Pareto { mean, shape } => {
                mean * (shape - 1.0) / shape * (1.0 - rng.unit()).powf(-1.0 / shape)
            }
            Law::Uniform { mean } => 2.0 * mean * rng.unit(),
        }
    }

    /// Draws a time, for a distribution in seconds.
    pub fn span(&self, rng: &mut Rng) -> Span {
        Span::from_secs_f64(self.draw(rng))
    }

    /// Returns the mean.
    pub const fn mean(&self) -> f64 {
        match *self {
            Law::Constant { mean }
            | Law::Exponential { mean }
            | Law::Pareto { mean, .. }
            | Law::Uniform { mean } => mean,
        }
    }
}

/// Number of a trace of a network ([`Network::trace`](crate::Network::trace)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub u32);

/// Data of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ApplicationData {
    /// An unlimited amount of data.
    Endless,
    /// This number of packets.
    Packets(u32),
    /// Unlimited data in on periods, and no new data in off periods. The first period is an on period.
    OnOff {
        /// Length of an on period, in seconds.
        on: Law,
        /// Length of an off period, in seconds.
        off: Law,
    },
    /// The data of a trace, on one connection.
    Trace(TraceId),
    /// Consecutive transfers, each on a new connection.
    Transfers {
        /// Number of packets of a transfer, rounded; at least 1.
        packets: Law,
        /// Time from the end of a transfer to the start of the next, seconds.
        pause: Law,
    },
}
