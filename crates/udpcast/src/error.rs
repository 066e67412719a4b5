//! Errors that only sessions with udpcast have.

use faircast_transport::error::{Class, Error, FormatError, FormatFault};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Reason why a session with udpcast could not start or has failed. [`Error::Format`] contains it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UdpcastError {
    /// udpcast supports only IPv4.
    #[error("{0} is an IPv6 address, but udpcast uses IPv4; choose an IPv4 group and interface")]
    NeedsIpv4(IpAddr),
    /// The content is not a single file or stream.
    #[error("cannot send {what} to udpcast receivers, which receive one file or stream; send an archive")]
    Content {
        /// Description of the requested content.
        what: String,
    },
    /// The source cannot derive the reports of this scheme from udpcast's answers.
    #[error(
        "udpcast receivers do not send the reports that {scheme} needs; choose ormcc, le-sbcc, pgmcc or tfmcc"
    )]
    Scheme {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Datagrams are too short for the questions to the receivers.
    #[error("datagrams of {datagram} bytes are too small for udpcast; use at least {least} bytes")]
    Datagram {
        /// Size of a datagram, in bytes.
        datagram: usize,
        /// Minimum size, in bytes.
        least: usize,
    },
    /// The receivers' port has no successor, which the sender uses.
    #[error(
        "port {0} cannot be the port of udpcast receivers, because the sender uses the next one; choose a port below 65535"
    )]
    Port(u16),
    /// No receiver has joined.
    #[error(
        "no udpcast receiver has joined within {} s; start udp-receiver with port base {port} in the same network, and allow UDP ports {port} and {sender}",
        .waited.as_secs(), sender = port + 1
    )]
    NoReceiver {
        /// Time for which the source waited.
        waited: Duration,
        /// Port of the receivers.
        port: u16,
    },
    /// The sender has refused this receiver, because the transfer has begun.
    #[error(
        "{0} has refused this receiver, because its transfer has begun; start the receiver before the transfer"
    )]
    Refused(Ipv4Addr),
    /// The sender works without answers of receivers.
    #[error("{0} sends in udpcast's asynchronous mode, which is not supported; start it without that option")]
    Asynchronous(Ipv4Addr),
    /// The sender's messages contradict each other.
    #[error("{from} has sent contradictory messages: {what}; {bytes} bytes have arrived")]
    Contradiction {
        /// Address of the sender.
        from: Ipv4Addr,
        /// The contradiction.
        what: &'static str,
        /// Bytes of content delivered.
        bytes: u64,
    },
    /// The sender went silent.
    #[error(
        "the sender has been silent for {silent:?} before the end of the content; {bytes} bytes have arrived"
    )]
    Silent {
        /// Duration of the silence.
        silent: Duration,
        /// Bytes of content delivered.
        bytes: u64,
    },
}

impl FormatFault for UdpcastError {
    fn class(&self) -> Class {
        match self {
            UdpcastError::NoReceiver { .. }
            | UdpcastError::Refused(_)
            | UdpcastError::Contradiction { .. }
            | UdpcastError::Silent { .. } => Class::Transfer,
            UdpcastError::NeedsIpv4(_)
            | UdpcastError::Content { .. }
            | UdpcastError::Scheme { .. }
            | UdpcastError::Datagram { .. }
            | UdpcastError::Port(_)
            | UdpcastError::Asynchronous(_) => Class::Usage,
        }
    }

    fn may_be_the_network(&self) -> bool {
        matches!(self, UdpcastError::NoReceiver { .. } | UdpcastError::Silent { .. })
    }
}

impl From<UdpcastError> for Error {
    fn from(error: UdpcastError) -> Error {
        Error::Format(FormatError::from(error))
    }
}
