//! The messages of NORM (RFC 5740, 4). One datagram has one message, and all integers are big-endian.
//!
//! ```text
//!   0               4               8
//!   +-------+-------+---------------+----
//!   |version, type  |header words   |sequence number
//!   |source node                    |
//!   |instance       |grtt   |backoff, group size       messages of the sender
//!   |flags or kind  |FEC ID |object |
//!   |block (24 bits), symbol (8)    |                  FEC Encoding ID 5
//!   |block                          |                  FEC Encoding ID 129
//!   |symbols of block|symbol        |
//!   |header extensions              |
//!   |payload
//!
//!   |server node                    |                  NACK and ACK
//!   |instance       |type   |ID     |
//!   |time of the answered probe, seconds, microseconds |
//!   |header extensions              |
//!   |requests, or acknowledged position
//! ```
//!
//! Objects are files coded with Reed-Solomon over GF(2^8): [`Fec`]. Messages about objects with other codes, and
//! application-defined commands, are not parsed.

mod feedback;
pub mod quantities;
mod reader;
mod sender;
#[cfg(test)]
mod tests;

pub use feedback::{Answer, CcReport, Feedback, FeedbackKind, Form, Item, Request, Requests, push_request};
pub use sender::{CcNode, CcNodes, Command, Fti, Nodes, ObjectHeader, SenderMessage, SenderState};

use reader::Reader;

/// How objects are coded, and how messages describe it: the FEC Encoding ID. The code is the same for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fec {
    /// FEC Encoding ID 5: Reed-Solomon over GF(2^8) (RFC 5510).
    #[default]
    ReedSolomon,
    /// FEC Encoding ID 129 with instance 0: small block systematic codes (RFC 5445, 4). libnorm's instance 0 is Reed-Solomon.
    SmallBlock,
}

impl Fec {
    /// Both encodings.
    pub const ALL: [Fec; 2] = [Fec::ReedSolomon, Fec::SmallBlock];

    /// Returns the FEC Encoding ID.
    pub const fn id(self) -> u8 {
        match self {
            Fec::ReedSolomon => 5,
            Fec::SmallBlock => 129,
        }
    }

    /// Returns the octets of a data packet before its payload.
    pub const fn data_header_len(self) -> usize {
        self.info_header_len() + self.id_len()
    }

    /// Returns the octets of a packet with information about an object before the information.
    pub const fn info_header_len(self) -> usize {
        16 + self.fti_len()
    }

    /// Returns the octets of a payload ID.
    const fn id_len(self) -> usize {
        match self {
            Fec::ReedSolomon => 4,
            Fec::SmallBlock => 8,
        }
    }

    /// Returns the octets of the extension with the FEC object transmission information.
    const fn fti_len(self) -> usize {
        match self {
            Fec::ReedSolomon => 12,
            Fec::SmallBlock => 16,
        }
    }

    const fn parse(id: u8) -> Result<Fec, ParseError> {
        match id {
            5 => Ok(Fec::ReedSolomon),
            129 => Ok(Fec::SmallBlock),
            other => Err(ParseError::Fec(other)),
        }
    }

    /// Reads a payload ID, and the number of source symbols of the block: 0 if the encoding does not state it.
    fn read_id(self, reader: &mut Reader<'_>) -> Result<(PayloadId, u16), ParseError> {
        let first = reader.u32()?;
        match self {
            Fec::ReedSolomon => Ok((PayloadId { block: first >> 8, symbol: first as u8 }, 0)),
            Fec::SmallBlock => {
                let (len, symbol) = (reader.u16()?, small("symbol", reader.u16()?)?);
                Ok((PayloadId { block: first, symbol }, len))
            }
        }
    }

    /// Appends a payload ID.
    fn put_id(self, (id, block_len): (PayloadId, u16), out: &mut Vec<u8>) {
        match self {
            Fec::ReedSolomon => {
                out.extend_from_slice(&(id.block << 8 | u32::from(id.symbol)).to_be_bytes());
            }
            Fec::SmallBlock => {
                out.extend_from_slice(&id.block.to_be_bytes());
                out.extend_from_slice(&block_len.to_be_bytes());
                out.extend_from_slice(&[0, id.symbol]);
            }
        }
    }
}

/// Returns a number of symbols in eight bits.
fn small(what: &'static str, value: u16) -> Result<u8, ParseError> {
    u8::try_from(value).map_err(|_| ParseError::SmallBlock { what, value })
}

const VERSION: u8 = 1;
const INFO: u8 = 1;
const DATA: u8 = 2;
const CMD: u8 = 3;
const NACK: u8 = 4;
const ACK: u8 = 5;

/// Bits of `cc_flags`: the receiver's role and state in congestion control (RFC 5740, 4.2.3.4).
pub mod cc_flags {
    /// The current limiting receiver.
    pub const CLR: u8 = 0x01;
    /// A potential limiting receiver.
    pub const PLR: u8 = 0x02;
    /// The round-trip time is measured.
    pub const RTT: u8 = 0x04;
    /// The receiver has not lost a packet; its rate is the received rate.
    pub const START: u8 = 0x08;
    /// The receiver is leaving.
    pub const LEAVE: u8 = 0x10;
}

/// Bits of the flags of an object's messages (RFC 5740, 4.2.1).
pub mod object_flags {
    /// The packet is a repair.
    pub const REPAIR: u8 = 0x01;
    /// The repair is a symbol that was requested by its number.
    pub const EXPLICIT: u8 = 0x02;
    /// The object has a NORM_INFO message.
    pub const INFO: u8 = 0x04;
    /// The object is a file.
    pub const FILE: u8 = 0x10;
}

/// Bits of the flags of a repair request: the requested parts (RFC 5740, 4.3.1).
pub mod request_flags {
    /// The listed symbols.
    pub const SEGMENT: u8 = 0x01;
    /// The listed blocks.
    pub const BLOCK: u8 = 0x02;
    /// The NORM_INFO messages of the listed objects.
    pub const INFO: u8 = 0x04;
    /// The listed objects.
    pub const OBJECT: u8 = 0x08;
}

/// Number of a NORM node.
pub type NodeId = u32;

/// Position of a symbol in its object: the FEC payload ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadId {
    /// Number of the block; 24 bits with FEC Encoding ID 5.
    pub block: u32,
    /// Number of the symbol in the block. Parity symbols follow the source symbols.
    pub symbol: u8,
}

impl PayloadId {
    /// Number of blocks that an object can have.
    pub const MAX_BLOCKS: u64 = 1 << 24;
}

/// A message with its common header.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet<'a> {
    /// Sequence number of the message.
    pub sequence: u16,
    /// The node that has sent the message.
    pub source: NodeId,
    /// Content of the message.
    pub message: Message<'a>,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Message<'a> {
    /// A message of a sender.
    Sender(SenderState, SenderMessage<'a>),
    /// A NACK or an ACK of a receiver.
    Feedback(Feedback<'a>),
}

/// Reason why a datagram is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// The datagram ends within a field.
    #[error("the message ends within a field of {need} bytes: only {have} bytes remain")]
    Truncated {
        /// Number of bytes of the field.
        need: usize,
        /// Number of remaining bytes.
        have: usize,
    },
    /// The version is unknown.
    #[error("NORM version {0} is unknown")]
    Version(u8),
    /// The type, or the kind of a command, is unknown.
    #[error("message type {0} with kind {1} is unknown")]
    Unknown(u8, u8),
    /// The header is shorter than the fields of its type, or longer than the datagram.
    #[error("a header of {0} words does not fit the message")]
    Header(u8),
    /// A header extension does not fit into the header.
    #[error("the header extension of type {0} does not fit into the header")]
    Extension(u8),
    /// The object is coded with another code.
    #[error("FEC encoding {0} is not supported")]
    Fec(u8),
    /// FEC Encoding ID 129 with another instance, or with more symbols than Reed-Solomon has.
    #[error(
        "{what} {value} of FEC encoding 129 is not supported; only instance 0 and blocks of at most 255 symbols are"
    )]
    SmallBlock {
        /// The number.
        what: &'static str,
        /// Its value.
        value: u16,
    },
    /// A list has a part of an entry.
    #[error("a list of {0} bytes has a part of an entry")]
    List(usize),
    /// A repair request has an unknown form.
    #[error("repair requests of form {0} are unknown")]
    Form(u8),
}

/// Parses a datagram.
///
/// # Errors
/// If the datagram is not a message of NORM, or is about an object with another code.
pub fn parse(bytes: &[u8]) -> Result<Packet<'_>, ParseError> {
    let mut reader = Reader::new(bytes);
    let [first, words] = reader.array()?;
    let (sequence, source) = (reader.u16()?, reader.u32()?);
    if first >> 4 != VERSION {
        return Err(ParseError::Version(first >> 4));
    }
    let header = usize::from(words) * 4;
    if header < reader.at() || header > bytes.len() {
        return Err(ParseError::Header(words));
    }
    let (header, body) = bytes.split_at(header);
    let mut reader = Reader::after(header, reader.at());
    let message = match first & 15 {
        kind @ (INFO | DATA | CMD) => {
            let state = SenderState::parse(&mut reader)?;
            Message::Sender(state, SenderMessage::parse(kind, &mut reader, body)?)
        }
        kind @ (NACK | ACK) => Message::Feedback(Feedback::parse(kind, &mut reader, body)?),
        other => return Err(ParseError::Unknown(other, 0)),
    };
    Ok(Packet { sequence, source, message })
}

/// Appends the bytes of a message.
pub fn encode(out: &mut Vec<u8>, packet: &Packet<'_>) {
    let start = out.len();
    let kind = match &packet.message {
        Message::Sender(_, message) => message.kind(),
        Message::Feedback(feedback) => feedback.message_type(),
    };
    out.extend_from_slice(&[VERSION << 4 | kind, 0]);
    out.extend_from_slice(&packet.sequence.to_be_bytes());
    out.extend_from_slice(&packet.source.to_be_bytes());
    let header = match &packet.message {
        Message::Sender(state, message) => {
            state.encode(out);
            message.encode(out)
        }
        Message::Feedback(feedback) => feedback.encode(out),
    };
    // Headers have at most ten words.
    out[start + 1] = ((header - start) / 4) as u8;
}
