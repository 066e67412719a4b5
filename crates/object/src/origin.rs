//! The identity of a source, as recorded in an output directory.

use std::fmt;
use std::net::IpAddr;

/// The source of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub address: IpAddr,
    /// Host name of the source, shortened by [`Origin::new`] to at most [`Origin::MAX_HOST`] bytes.
    pub(crate) host: String,
    /// Whether a key of the receiver proves that the source is permitted to send: the session is sealed, or its content is
    /// signed.
    pub proven: bool,
}

impl Origin {
    /// Maximum number of bytes of a host name.
    pub const MAX_HOST: usize = 63;

    /// Creates the identity of the source at `address`. Control characters are removed from the host name, and at most
    /// [`Origin::MAX_HOST`] bytes of it are stored.
    pub fn new(address: IpAddr, host: &str, proven: bool) -> Origin {
        let mut stored = String::new();
        for letter in host.chars().filter(|letter| !letter.is_control()) {
            if stored.len() + letter.len_utf8() > Origin::MAX_HOST {
                break;
            }
            stored.push(letter);
        }
        Origin { address, host: stored, proven }
    }

    /// Returns whether both identities are of one source: they have the same address or the same host name. Equal host names
    /// count only if `other` is proven by a key, or if `self` is not.
    pub(crate) fn is_same(&self, other: &Origin) -> bool {
        self.address == other.address || self.host == other.host && (other.proven || !self.proven)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.host, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_name_is_shortened_without_control_characters() {
        let origin = |host: &str| Origin::new(IpAddr::from([192, 0, 2, 1]), host, false).host;
        assert_eq!(origin("lab1"), "lab1");
        assert_eq!(origin("la\x1b[1mb\n"), "la[1mb");
        assert_eq!(origin(&"ä".repeat(40)), "ä".repeat(31), "62 bytes of whole letters");
        assert_eq!(origin(&"a".repeat(70)).len(), Origin::MAX_HOST);
    }
}
