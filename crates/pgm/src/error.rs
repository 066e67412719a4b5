//! Errors that only sessions over PGM have.

use faircast_transport::error::{Class, Error, FormatError, FormatFault};
use std::time::Duration;

/// Reason why a session over PGM could not start or has failed. [`Error::Format`] contains it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PgmError {
    /// PGM over UDP is supported only on IPv4.
    #[error("{0} is an IPv6 address, but sessions over PGM use IPv4; choose an IPv4 group and interface")]
    NeedsIpv4(std::net::IpAddr),
    /// A message or an application data unit does not fit into packets.
    #[error(
        "messages of {size} bytes do not fit; with this datagram size and without ZeroMQ's framing, a message has 1 to {most} bytes"
    )]
    Message {
        /// Requested size of a message, in bytes.
        size: usize,
        /// Largest size that fits, in bytes.
        most: usize,
    },
    /// The content is not a single file or stream. A PGM source can send only one.
    #[error("cannot send {what} over PGM, which carries one file or stream; send an archive")]
    Content {
        /// Description of the requested content.
        what: String,
    },
    /// A packet could not be encoded, for example because a number does not fit its field.
    #[error("cannot write a PGM packet: {0}")]
    Encode(#[from] crate::codec::EncodeError),
    /// The PGM source has reported a failure of its session.
    #[error("the source has reset the session (OPT_RST); the data received before the reset is stored")]
    Reset,
    /// The PGM source went silent.
    #[error(
        "the source has been silent for {silent:?} without announcing the end; {bytes} bytes have arrived"
    )]
    Silent {
        /// Duration of the silence.
        silent: Duration,
        /// Bytes of content delivered.
        bytes: u64,
    },
    /// The scheme sends in several layers, which PGM does not support.
    #[error(
        "PGM is not supported with {scheme}, which sends in layers: choose another scheme, or another format"
    )]
    Layers {
        /// The scheme's name.
        scheme: &'static str,
    },
}

impl FormatFault for PgmError {
    fn class(&self) -> Class {
        match self {
            PgmError::Reset | PgmError::Silent { .. } => Class::Transfer,
            PgmError::NeedsIpv4(_)
            | PgmError::Message { .. }
            | PgmError::Content { .. }
            | PgmError::Layers { .. } => Class::Usage,
            PgmError::Encode(_) => Class::System,
        }
    }

    fn may_be_the_network(&self) -> bool {
        matches!(self, PgmError::Silent { .. })
    }
}

impl From<PgmError> for Error {
    fn from(error: PgmError) -> Error {
        Error::Format(FormatError::from(error))
    }
}

/// A line of content does not fit into a message. [`StorageError::Pipe`](faircast_transport::error::StorageError::Pipe) contains
/// this error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than {most} bytes; send messages of a fixed size")]
pub struct LineTooLong {
    /// Maximum length of a line, in bytes.
    pub most: usize,
}
