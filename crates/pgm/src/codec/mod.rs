//! A second wire format of faircast: PGM (RFC 3208), encapsulated in UDP as in OpenPGM.
//!
//! ```text
//!  0               1               2               3
//!  0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7
//! +-------------------------------+-------------------------------+
//! |          source port          |        destination port       |
//! +---+---+-------+-+-+-------+-+-+-------------------------------+
//! | 0 |   | type  |P|T|       |N|E|           checksum            |
//! +---+---+-------+-+-+-------+-+-+-------------------------------+
//! |                   global source id (GSI)                      |
//! +                               +-------------------------------+
//! |                               |          TSDU length          |
//! +-------------------------------+-------------------------------+
//! |  fields of the type, then options (if E), then TSDU bytes     |
//! P: parity   T: varying lengths of parity packets   N: options for routers   E: options are present
//! ```
//!
//! [`parse`] accepts any bytes, never panics and never allocates. [`encode()`] appends to a buffer. The two ports in a packet are
//! PGM's ports; one of them and the GSI identify the session. In packets towards the source, the two ports are swapped. The ports
//! of UDP belong to the sockets.
//!
//! faircast adds one option to PGM, [`OPT_FAIRCAST`]. It contains either the fields of a source's scheme for its receivers
//! ([`Stamp`]), or a report of a receiver's scheme. Other programs skip this option (RFC 3208, 9: the extensibility bits are
//! zero).

mod encode;
mod option;
mod parse;
#[cfg(test)]
mod tests;
mod zmq;

pub use encode::{EncodeError, checksum, data_len, encode};
pub use faircast_wire::stamp::Stamp;
pub use option::{
    BackOff, BackOffRange, Fragment, NakList, Options, OwnOption, PgmccData, PgmccFeedback, SEQUENCES_PER_NAK,
};
pub use parse::{Flaw, ParseError, parse};
pub use zmq::{FrameError, Joint, MessageSink, Unframer, joint, put_message, put_offset};

use std::fmt;
use std::net::IpAddr;

/// Bytes of the header that all packets have.
pub const HEADER_LEN: usize = 16;
/// Bytes of a data packet before its options, or before its payload if it has no options.
pub const DATA_HEADER_LEN: usize = HEADER_LEN + 8;
/// The option for the fields of faircast's schemes. RFC 3208 does not assign this number.
pub const OPT_FAIRCAST: u8 = 0x7e;
/// Maximum length of an application data unit, in bytes. OpenPGM refuses longer units.
pub const MAX_APDU: usize = 65_535;
/// Maximum number of fragments of an application data unit. OpenPGM refuses units with more fragments.
pub const MAX_FRAGMENTS: usize = 16;

/// The identifier of a source, which the source chooses at random (RFC 3208, 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gsi(pub [u8; 6]);

/// The identifier of a session: the GSI and the source port of the source (RFC 3208, 8: "transport session identifier").
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tsi {
    /// Identifier of the source.
    pub gsi: Gsi,
    /// Port of the source, which distinguishes its sessions.
    pub port: u16,
}

/// A packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet<'a> {
    /// Identifier of the source, even in packets that receivers send.
    pub gsi: Gsi,
    /// PGM's own source port.
    pub source_port: u16,
    /// PGM's own destination port.
    pub destination_port: u16,
    /// The fields of its type.
    pub body: Body,
    /// Its options.
    pub options: Options<'a>,
    /// Payload; empty except in data packets.
    pub payload: &'a [u8],
}

/// Fields that depend on the type of the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Body {
    /// Address of the source, and the limits of its window (RFC 3208, 8.1: "source path message").
    Spm(Spm),
    /// Original data (8.2).
    Odata(Data),
    /// Repair data (8.2).
    Rdata(Data),
    /// Request for missing packets (8.3).
    Nak(Nak),
    /// Notice of a host that packets were missing and that another host has requested them (8.3).
    Nnak(Nak),
    /// Confirmation that the source has received a NAK (8.3: "NAK confirmation").
    Ncf(Nak),
    /// A receiver requests a source path message (13.6).
    Spmr,
    /// Poll for counting receivers (14.7). faircast does not send polls and does not answer them.
    Poll,
    /// Response to a poll.
    Polr,
    /// Acknowledgement of recent packets (draft-ietf-rmt-bb-pgmcc, in OpenPGM's encoding).
    Ack(Ack),
}

/// Fields of a source path message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spm {
    /// Number of the message.
    pub sqn: u32,
    /// Number of the oldest packet that the source can repair.
    pub trail: u32,
    /// Number of the newest packet sent; `trail` minus one before the first packet is sent.
    pub lead: u32,
    /// Address for negative acknowledgements.
    pub path: IpAddr,
}

/// Fields of original and repair data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Number of the packet.
    pub sqn: u32,
    /// Number of the oldest packet that the source can repair.
    pub trail: u32,
}

/// Fields of a negative acknowledgement (NAK), or of its confirmation (NCF).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nak {
    /// Number of the first missing packet. The option [`Options::nak_list`] contains the numbers of further missing packets.
    pub sqn: u32,
    /// Address of the source.
    pub source: IpAddr,
    /// The group.
    pub group: IpAddr,
}

/// Fields of a positive acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ack {
    /// Number of the newest packet received.
    pub newest: u32,
    /// Bit k is set if packet `newest - k` has been received.
    pub bitmap: u32,
}

impl Body {
    /// Returns the number of the type.
    pub const fn kind(&self) -> u8 {
        match self {
            Body::Spm(_) => 0x00,
            Body::Poll => 0x01,
            Body::Polr => 0x02,
            Body::Odata(_) => 0x04,
            Body::Rdata(_) => 0x05,
            Body::Nak(_) => 0x08,
            Body::Nnak(_) => 0x09,
            Body::Ncf(_) => 0x0a,
            Body::Spmr => 0x0c,
            Body::Ack(_) => 0x0d,
        }
    }

    /// Returns whether receivers send packets of this type. The ports in such packets are swapped.
    pub const fn is_upstream(&self) -> bool {
        matches!(self, Body::Nak(_) | Body::Nnak(_) | Body::Spmr | Body::Polr | Body::Ack(_))
    }
}

impl Packet<'_> {
    /// Returns the session of the packet, whichever endpoint sent it.
    pub const fn tsi(&self) -> Tsi {
        let port = if self.body.is_upstream() { self.destination_port } else { self.source_port };
        Tsi { gsi: self.gsi, port }
    }
}

impl fmt::Display for Gsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Tsi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.gsi, self.port)
    }
}
