//! Random early detection.

use crate::discipline::{Decision, Discipline, DropCause, Offer};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span};

/// Parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Buffer, in packets that wait.
    pub limit: u32,
}

/// The discipline's state.
#[derive(Debug, Clone)]
pub struct Red {
    config: Config,
}

impl Red {
    /// For a link of this rate and delay.
    pub fn new(config: Config, _rate: Rate, _delay: Span) -> Red {
        Red { config }
    }
}

impl Discipline for Red {
    fn on_arrival(&mut self, offer: &Offer, _rng: &mut Rng) -> Decision {
        if offer.waiting >= self.config.limit { Decision::Drop(DropCause::Overflow) } else { Decision::Accept }
    }
}
