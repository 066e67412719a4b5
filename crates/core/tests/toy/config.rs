//! Parameters of the toy scheme, also as text.

use crate::field;
use crate::rate::Sending;
use crate::schemes::catalogue::{Configure, Entry, Feedback, LayerRates, StatedRate, Wire};
use crate::spec::{Opt, NumberRange};

/// Parameters of the toy scheme.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Parameters of sending that all schemes share.
    pub sending: Sending,
    /// Fraction of the rate that remains after a loss.
    pub keep: f64,
}

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "toy",
        number: 250,
        summary: "one rate, which halves at a loss",
        source: "nowhere",
        sender: "halves its rate when anybody loses something",
        receiver: "reports losses",
        feedback: Feedback::Reports,
        stated_rate: StatedRate::StartUp,
        wires: &[Wire::Native],
        layers: LayerRates::One,
        deviations: &[],
    };

    const OPTIONS: &'static [Opt<Config>] =
        &[Opt::number("keep", NumberRange::of(0.1, 0.9), field!(keep), "part of the rate that is kept at a loss")];

    fn published() -> Config {
        Config { sending: Sending::published(), keep: 0.5 }
    }

    fn transport(packet_size: u16) -> Config {
        Config { sending: Sending::transport(packet_size), keep: 0.5 }
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }
}
