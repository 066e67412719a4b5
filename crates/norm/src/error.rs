//! Errors that only sessions over NORM have.

use faircast_transport::error::{Class, Error, FormatError, FormatFault};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a session over NORM could not start or has failed. [`Error::Format`] contains it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NormError {
    /// The content is not a list of files.
    #[error("cannot send {what} over NORM, which carries files; write it into a file first")]
    Content {
        /// Description of the requested content.
        what: &'static str,
    },
    /// The scheme needs reports that NORM receivers do not send.
    #[error("NORM receivers do not send the reports that {scheme} needs; choose tfmcc")]
    Scheme {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Datagrams are too short.
    #[error("datagrams of {datagram} bytes are too small for NORM; use at least {least} bytes")]
    Datagram {
        /// Size of a datagram, in bytes.
        datagram: usize,
        /// Minimum size, in bytes.
        least: usize,
    },
    /// A file has too many blocks.
    #[error("{} has {bytes} bytes, but NORM can carry {most} with these datagrams; divide the file", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Its size, in bytes.
        bytes: u64,
        /// Maximum size, in bytes.
        most: u64,
    },
    /// The name of a file does not fit into a packet.
    #[error("the name of {} has {bytes} bytes, but NORM carries names of {most} bytes with these datagrams; shorten it", .path.display())]
    LongName {
        /// The file.
        path: PathBuf,
        /// Length of the name, in bytes.
        bytes: usize,
        /// Maximum length, in bytes.
        most: usize,
    },
    /// No receiver has answered.
    #[error(
        "no NORM receiver has answered within {} s; start receivers with group {group}, and allow UDP port {} in both directions",
        .waited.as_secs(), .group.port()
    )]
    NoReceiver {
        /// Time for which the source waited.
        waited: Duration,
        /// Group and port of the session.
        group: SocketAddr,
    },
}

impl FormatFault for NormError {
    fn class(&self) -> Class {
        match self {
            NormError::NoReceiver { .. } => Class::Transfer,
            NormError::Content { .. }
            | NormError::Scheme { .. }
            | NormError::Datagram { .. }
            | NormError::TooLong { .. }
            | NormError::LongName { .. } => Class::Usage,
        }
    }

    fn may_be_the_network(&self) -> bool {
        matches!(self, NormError::NoReceiver { .. })
    }
}

impl From<NormError> for Error {
    fn from(error: NormError) -> Error {
        Error::Format(FormatError::from(error))
    }
}
