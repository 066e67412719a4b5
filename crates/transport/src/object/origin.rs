//! The source of content, as an output directory remembers it.

use faircast_wire::Name;
use std::fmt;
use std::net::IpAddr;

/// The source of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: IpAddr,
    /// Its host name.
    pub host: Name,
    /// Whether a key that the receiver has shows that it is allowed to send: the session is sealed, or its content signed.
    pub proven: bool,
}

impl Origin {
    /// Whether another source is this one: it has this address or this name. A name that a key has confirmed needs a key again.
    pub(super) fn is_same(&self, other: &Origin) -> bool {
        self.address == other.address || self.host == other.host && (other.proven || !self.proven)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.host, self.address)
    }
}
