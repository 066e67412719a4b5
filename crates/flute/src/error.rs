//! Errors that only sessions over ALC have.

use faircast_transport::error::{Class, Error, FormatError, FormatFault};
use std::time::Duration;

/// Reason why a session over ALC could not run, or failed. It is wrapped in [`Error::Format`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AlcError {
    /// FLUTE cannot carry the content.
    #[error(
        "cannot send {what} over ALC, which sends only files with a name and a length; write it to a file first"
    )]
    Content {
        /// The requested value.
        what: &'static str,
    },
    /// A file is too long for the erasure code.
    #[error(
        "{} has {bytes} bytes, but with this datagram size the erasure code {fec} supports at most {most}; use larger datagrams{others}",
        .path.display()
    )]
    TooLong {
        /// The file.
        path: std::path::PathBuf,
        /// Length of the file, in bytes.
        bytes: u64,
        /// The code.
        fec: &'static str,
        /// Maximum length of a file with this code.
        most: u64,
        /// The other codes that support the file, with their maxima, as the end of the message.
        others: String,
    },
    /// The groups of the layers exceed the last address or port.
    #[error(
        "layer {layer} of the group {group} would not have a multicast address; choose a lower group address, or fewer layers"
    )]
    Layer {
        /// The layer.
        layer: u8,
        /// The session's group.
        group: std::net::SocketAddr,
    },
    /// A packet could not be encoded, because a number does not fit the format.
    #[error("cannot write an ALC packet: {0}")]
    Encode(#[from] crate::codec::EncodeError),
    /// No packet of a session arrived.
    #[error(
        "no ALC session was found on {group} within {waited:?}; check that the source sends to this group, and that its time to live suffices"
    )]
    NoSession {
        /// The group.
        group: std::net::SocketAddr,
        /// Waiting time of the receiver.
        waited: Duration,
    },
    /// The session ended, or its packets stopped, before all files were complete.
    #[error(
        "{why} before all data had arrived: {files} of {known} files are complete, and parts of {stored} incomplete files are stored; start again while the source sends, or let the source send more generations"
    )]
    Ended {
        /// Reason, as the beginning of a sentence.
        why: &'static str,
        /// Number of complete files.
        files: u64,
        /// Number of files of the table.
        known: u64,
        /// Number of incomplete files with a stored part, from which the next run can continue.
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
