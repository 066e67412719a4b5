//! Schemes of other crates, named `own:NAME`. They run in simulations.

use super::LayerRates;
use super::catalogue::{Configure, Entry, Feedback, StatedRate};
use crate::node;
use crate::own::{Boxed, Own, OwnFactory, Registry};
use crate::packet::ReceiverId;
use crate::rate::Sending;
use crate::spec::Opt;

/// The schemes that this program has registered.
pub static SCHEMES: Registry<dyn SchemeFactory> = Registry::new("scheme");

/// Creates the sources and receivers of a scheme of another crate.
pub trait SchemeFactory: OwnFactory {
    /// Creates a source that has not started. [`super::paced::PacedSource`] is a source for schemes with one rate.
    fn source(&self, options: &str, sending: &Sending) -> Box<dyn node::Source + Send>;
    /// Creates a receiver.
    fn receiver(&self, options: &str, sending: &Sending, me: ReceiverId) -> Box<dyn node::Receiver + Send>;
}

/// Configuration of a scheme of another crate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The factory and its options.
    pub own: Own<dyn SchemeFactory>,
    /// Packet size, limits of the rate, start and guards. At first the parameters of the papers' simulations.
    pub sending: Sending,
}

impl Config {
    /// Returns the configuration with the parameters of [`Sending::published`].
    pub fn new(own: Own<dyn SchemeFactory>) -> Config {
        Config { own, sending: Sending::published() }
    }
}

impl Configure for Config {
    const ENTRY: Entry = Entry {
        name: "own",
        number: 0,
        summary: "a scheme of another crate",
        source: "the crate that registered it",
        sender: "defined by the crate",
        receiver: "defined by the crate",
        feedback: Feedback::Reports,
        stated_rate: StatedRate::Always,
        wires: &[],
        layers: LayerRates::One,
        deviations: &[],
    };
    const OPTIONS: &'static [Opt<Config>] = &[];

    fn published() -> Config {
        unreachable!("a scheme of another crate has no presets")
    }

    fn transport(_packet_size: u16) -> Config {
        unreachable!("a scheme of another crate has no presets")
    }

    fn sending(&self) -> &Sending {
        &self.sending
    }

    fn sending_mut(&mut self) -> &mut Sending {
        &mut self.sending
    }
}

/// The source of a scheme of another crate.
pub type Source = Boxed<dyn node::Source + Send>;

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        Boxed(config.own.factory().source(config.own.options(), &config.sending))
    }
}

/// The receiver of a scheme of another crate.
pub type Receiver = Boxed<dyn node::Receiver + Send>;

impl Receiver {
    /// Creates a receiver.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Boxed(config.own.factory().receiver(config.own.options(), &config.sending, me))
    }
}
