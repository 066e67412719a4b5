//! Losses on the wire, independent of the queue.

use faircast_core::rng::Rng;

/// How packets get lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossSpec {
    /// Each with this probability, independently.
    Bernoulli(f64),
    /// Two states, good and bad (Gilbert 1960, Elliott 1963); one step of the chain per packet.
    GilbertElliott {
        /// Probability to go from good to bad before a packet.
        to_bad: f64,
        /// Probability to go from bad to good before a packet.
        to_good: f64,
        /// Loss probability in the good state.
        good: f64,
        /// Loss probability in the bad state.
        bad: f64,
    },
}

/// A lossy wire's state.
#[derive(Debug, Clone)]
pub struct Loss {
    spec: LossSpec,
    bad: bool,
}

impl Loss {
    /// In the good state.
    pub const fn new(spec: LossSpec) -> Loss {
        Loss { spec, bad: false }
    }

    /// Whether the next packet is lost.
    pub fn strikes(&mut self, rng: &mut Rng) -> bool {
        match self.spec {
            LossSpec::Bernoulli(probability) => rng.chance(probability),
            LossSpec::GilbertElliott { to_bad, to_good, good, bad } => {
                let leaves = if self.bad { to_good } else { to_bad };
                self.bad ^= rng.chance(leaves);
                rng.chance(if self.bad { bad } else { good })
            }
        }
    }
}
