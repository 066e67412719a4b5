//! Traffic of applications: amounts and times.

use faircast_core::rng::Rng;
use faircast_core::time::Span;

/// The law of a random length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Law {
    /// Always the mean.
    Constant {
        /// The value.
        mean: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Pareto with this shape (above 1) and mean: scale `mean * (shape - 1) / shape`.
    Pareto {
        /// The mean.
        mean: f64,
        /// The shape "a".
        shape: f64,
    },
    /// Uniform from zero to twice the mean.
    Uniform {
        /// The mean.
        mean: f64,
    },
}

impl Law {
    /// A value.
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

    /// A time, for a law in seconds.
    pub fn span(&self, rng: &mut Rng) -> Span {
        Span::from_secs_f64(self.draw(rng))
    }

    /// Its mean.
    pub const fn mean(&self) -> f64 {
        match *self {
            Law::Constant { mean }
            | Law::Exponential { mean }
            | Law::Pareto { mean, .. }
            | Law::Uniform { mean } => mean,
        }
    }
}

/// A trace of a network ([`Network::trace`](crate::Network::trace)).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceId(pub u32);

/// Data of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ApplicationData {
    /// There is always more.
    Endless,
    /// This number of packets, then nothing.
    Packets(u32),
    /// Always more while on, nothing new while off. Begins with an on period.
    OnOff {
        /// Length of an on period, in seconds.
        on: Law,
        /// Length of an off period, in seconds.
        off: Law,
    },
    /// The data of a trace, on one connection.
    Trace(TraceId),
    /// Transfers on new connections, one after the other.
    Transfers {
        /// Packets of a transfer; rounded, at least 1.
        packets: Law,
        /// Seconds from the end of a transfer to the start of the next.
        pause: Law,
    },
}
