//! The source of content, as an output directory remembers it.

use std::fmt;
use std::net::IpAddr;

/// The source of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: IpAddr,
    /// Its host name, of [`Origin::LONGEST_HOST`] bytes at most.
    pub host: String,
    /// Whether a key that the receiver has shows that it is allowed to send: the session is sealed, or its content signed.
    pub proven: bool,
}

impl Origin {
    /// Bytes of a host name at most.
    pub const LONGEST_HOST: usize = 63;

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
