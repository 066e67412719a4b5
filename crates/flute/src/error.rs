//! Errors of sessions over ALC only.

use faircast_transport::error::{Class, Error, FormatError, FormatFault};
use std::time::Duration;

/// Why a session over ALC could not run, or failed. It is inside of [`Error::Format`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlcError {
    /// Content that FLUTE cannot carry.
    #[error("cannot send {what} over ALC: its files have names and lengths; write it to a file first")]
    Content {
        /// The requested value.
        what: &'static str,
    },
    /// A file that is too long for the erasure code.
    #[error(
        "{} has {bytes} bytes, but with these datagrams the erasure code {fec} reaches {most}; use larger ones or the other code",
        .path.display()
    )]
    TooLong {
        /// The file.
        path: std::path::PathBuf,
        /// Its length.
        bytes: u64,
        /// The code.
        fec: &'static str,
        /// The longest file that it reaches.
        most: u64,
    },
    /// Layers beyond the last address or port.
    #[error(
        "layer {layer} of the group {group} would be no multicast group; choose a lower address, or fewer layers"
    )]
    Layer {
        /// The layer.
        layer: u8,
        /// The session's group.
        group: std::net::SocketAddr,
    },
    /// A packet could not be written: a number that the format has no room for.
    #[error("cannot write an ALC packet: {0}")]
    Encode(#[from] crate::codec::EncodeError),
    /// Nothing was heard.
    #[error(
        "no ALC session was found on {group} within {waited:?}; is the source sending there, within its time to live?"
    )]
    NoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// How long the receiver waited.
        waited: Duration,
    },
    /// The session ended, or nothing of it came any more, before everything was there.
    #[error(
        "{why} before all data had arrived: {files} of {known} files are complete, and parts of {stored} others are stored; start again while the source sends, or let the source send more generations"
    )]
    Ended {
        /// Reason, as a sentence without an end.
        why: &'static str,
        /// Files that are whole.
        files: u64,
        /// Files of the table.
        known: u64,
        /// Files with a part that the next run goes on with.
        stored: u64,
    },
}

impl FormatFault for AlcError {
    fn class(&self) -> Class {
        match self {
            AlcError::NoSession { .. } | AlcError::Ended { .. } => Class::Transfer,
            AlcError::Content { .. } | AlcError::TooLong { .. } | AlcError::Layer { .. } => Class::Usage,
            AlcError::Encode(_) => Class::System,
        }
    }

    fn may_be_the_network(&self) -> bool {
        matches!(self, AlcError::NoSession { .. } | AlcError::Ended { .. })
    }
}

impl From<AlcError> for Error {
    fn from(error: AlcError) -> Error {
        Error::Format(FormatError::from(error))
    }
}
