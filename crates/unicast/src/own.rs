//! Protocols of other crates, named `own:NAME`.

use faircast_core::own::{Boxed, Own, OwnFactory, Registry};
use faircast_core::spec::Opt;

/// The protocols that this program has registered.
pub static PROTOCOLS: Registry<dyn ProtocolFactory> = Registry::new("protocol");

/// Creates the ends of a protocol of another crate.
pub trait ProtocolFactory: OwnFactory {
    /// Creates the sending end. `packet_size` is the size of a packet on the link, in bytes.
    fn sender(&self, options: &str, packet_size: u16) -> Box<dyn super::Sender + Send>;
    /// Creates the receiving end.
    fn sink(&self, options: &str) -> Box<dyn super::Sink + Send>;
}

/// Configuration of a protocol of another crate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The factory and its options.
    pub own: Own<dyn ProtocolFactory>,
    /// Size of a packet on the link, in bytes.
    pub packet_size: u16,
}

impl Config {
    /// Returns the configuration with packets of 1000 bytes.
    pub const fn new(own: Own<dyn ProtocolFactory>) -> Config {
        Config { own, packet_size: 1000 }
    }
}

/// The factory itself reads the options.
pub(crate) const OPTIONS: &[Opt<Config>] = &[];

/// The sending end.
pub type Sender = Boxed<dyn super::Sender + Send>;

/// The receiving end.
pub type Sink = Boxed<dyn super::Sink + Send>;

impl Config {
    pub(crate) fn sender(&self) -> Sender {
        Boxed(self.own.factory().sender(self.own.options(), self.packet_size))
    }

    pub(crate) fn sink(&self) -> Sink {
        Boxed(self.own.factory().sink(self.own.options()))
    }
}
