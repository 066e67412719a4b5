//! The messages of udpcast. One datagram has one message, and all integers are big-endian.
//!
//! ```text
//!   0       2       4               8
//!   +-------+-------+---------------+--
//!   |opcode |   0   | fields of the message
//!   +-------+-------+---------------+--
//!
//!   HELLO          capabilities @4, group @8 (16 octets, IPv4 in the first four), block size u16 @24, 2 unused
//!   CONNECT_REQ    capabilities @4, receive buffer @8
//!   CONNECT_REPLY  client number i32 @4 (-1: refused), block size @8, capabilities @12, group @16
//!   DATA, FEC      slice @4, block u16 @8, 0 @10, bytes of the slice @12, payload @16
//!   REQACK         slice @4, bytes of the slice @8, poll @12, ready map @16 (128 octets)
//!   OK             slice @4
//!   RETRANSMIT     slice @4, poll @8, map of present blocks @12 (128 octets)
//!   GO, DISCONNECT nothing
//! ```

#[cfg(test)]
mod tests;

use std::net::Ipv4Addr;

/// Maximum number of blocks of a slice, and maximum number of clients of a session.
pub const MAP_BITS: usize = 1024;
/// Octets of a map.
pub const MAP_LEN: usize = MAP_BITS / 8;
/// Octets before the payload of a data packet.
pub const DATA_HEADER_LEN: usize = 16;
/// Capabilities of this implementation: messages of the new generation, in big-endian order.
pub const CAPABILITIES: u32 = 0x1 | 0x8;
/// Capability of a sender that receives no messages.
pub const ASYNCHRONOUS: u32 = 0x20;
/// Client number of a refused request.
pub const REFUSED: i32 = -1;

const OK: u16 = 0;
const RETRANSMIT: u16 = 1;
const GO: u16 = 2;
const CONNECT_REQ: u16 = 3;
const DISCONNECT: u16 = 4;
const REQACK: u16 = 6;
const CONNECT_REPLY: u16 = 7;
const DATA: u16 = 8;
const FEC: u16 = 9;
const HELLO_OLD: u16 = 0x000a;
const HELLO_STREAMING: u16 = 0x000b;
const HELLO: u16 = 0x0500;

/// A map of blocks or of clients: bit `i` is in octet `i / 8`, with the value `1 << (i % 8)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map(pub [u8; MAP_LEN]);

impl Map {
    /// The map without any bit.
    pub const EMPTY: Map = Map([0; MAP_LEN]);
    /// The map with all bits.
    pub const FULL: Map = Map([u8::MAX; MAP_LEN]);

    /// Returns whether this bit is set; false for numbers outside the map.
    #[must_use]
    pub fn has(&self, bit: usize) -> bool {
        self.0.get(bit / 8).is_some_and(|octet| octet >> (bit % 8) & 1 == 1)
    }

    /// Sets this bit. A number outside the map has no effect.
    pub fn set(&mut self, bit: usize) {
        if let Some(octet) = self.0.get_mut(bit / 8) {
            *octet |= 1 << (bit % 8);
        }
    }

    /// Clears this bit. A number outside the map has no effect.
    pub fn clear(&mut self, bit: usize) {
        if let Some(octet) = self.0.get_mut(bit / 8) {
            *octet &= !(1 << (bit % 8));
        }
    }

    /// Returns the numbers below `end` whose bits are not set.
    pub fn missing(&self, end: usize) -> impl Iterator<Item = usize> + '_ {
        let octets = self.0.iter().enumerate().filter(|(_, octet)| **octet != u8::MAX);
        let numbers = octets.flat_map(|(at, octet)| {
            (0..8).filter(move |bit| octet >> bit & 1 == 0).map(move |bit| at * 8 + bit)
        });
        numbers.take_while(move |number| *number < end)
    }

    /// Returns the number of set bits among the first `end` bits.
    #[must_use]
    pub fn count(&self, end: usize) -> usize {
        end.min(MAP_BITS) - self.missing(end.min(MAP_BITS)).count()
    }
}

/// The announcement of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hello {
    /// Capabilities of the sender.
    pub capabilities: u32,
    /// Group of the data.
    pub group: Ipv4Addr,
    /// Size of a block, in bytes.
    pub block_size: u16,
    /// Whether the transfer has already begun, and late receivers may join.
    pub is_streaming: bool,
}

/// The answer to a request to take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectReply {
    /// Number of the client, or [`REFUSED`].
    pub client: i32,
    /// Size of a block, in bytes.
    pub block_size: u32,
    /// Capabilities of the sender.
    pub capabilities: u32,
    /// Group of the data.
    pub group: Ipv4Addr,
}

/// A block of a slice, or a parity packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'a> {
    /// Number of the slice.
    pub slice: u32,
    /// Number of the block or parity packet in its slice.
    pub number: u16,
    /// Size of the slice, in bytes.
    pub slice_bytes: u32,
    /// Content.
    pub payload: &'a [u8],
}

/// A question about the blocks of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReqAck {
    /// Number of the slice.
    pub slice: u32,
    /// Size of the slice, in bytes; 0 at the end of the content.
    pub slice_bytes: u32,
    /// Number of the question, which [`Message::Retransmit`] repeats.
    pub poll: u32,
    /// Clients that do not answer.
    pub ready: Map,
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// From the sender: a session is announced.
    Hello(Hello),
    /// From a receiver: it asks to take part.
    ConnectReq {
        /// Capabilities of the receiver.
        capabilities: u32,
        /// Size of its receive buffer, in bytes; 0 if unknown.
        receive_buffer: u32,
    },
    /// From the sender: a receiver takes part, or is refused.
    ConnectReply(ConnectReply),
    /// From a receiver: the session is to start now.
    Go,
    /// From a receiver: it leaves.
    Disconnect,
    /// From the sender: a block.
    Data(Block<'a>),
    /// From the sender: a parity packet.
    Fec {
        /// Number of stripes of the slice.
        stripes: u16,
        /// The parity.
        block: Block<'a>,
    },
    /// From the sender: which blocks are present?
    ReqAck(ReqAck),
    /// From a receiver: the slice is complete.
    Ok {
        /// Number of the slice.
        slice: u32,
    },
    /// From a receiver: the slice is incomplete.
    Retransmit {
        /// Number of the slice.
        slice: u32,
        /// Number of the question.
        poll: u32,
        /// Blocks that are present.
        present: Map,
    },
}

/// Reason why a datagram is not a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The datagram is shorter than its message.
    #[error("a message of {need} bytes has only {have} bytes")]
    Truncated {
        /// Size of the message, in bytes.
        need: usize,
        /// Size of the datagram, in bytes.
        have: usize,
    },
    /// The message has an unknown opcode.
    #[error("opcode {0:#06x} is unknown")]
    UnknownOpcode(u16),
}

/// Parses a datagram. Bytes after the message have no meaning.
///
/// # Errors
/// If the opcode is unknown, or the datagram is too short.
pub fn parse(bytes: &[u8]) -> Result<Message<'_>, ParseError> {
    let at = Fields(bytes);
    Ok(match at.u16(0)? {
        OK => Message::Ok { slice: at.u32(4)? },
        RETRANSMIT => {
            Message::Retransmit { slice: at.u32(4)?, poll: at.u32(8)?, present: Map(at.array(12)?) }
        }
        GO => Message::Go,
        CONNECT_REQ => Message::ConnectReq { capabilities: at.u32(4)?, receive_buffer: at.u32(8)? },
        DISCONNECT => Message::Disconnect,
        REQACK => Message::ReqAck(ReqAck {
            slice: at.u32(4)?,
            slice_bytes: at.u32(8)?,
            poll: at.u32(12)?,
            ready: Map(at.array(16)?),
        }),
        CONNECT_REPLY => Message::ConnectReply(ConnectReply {
            client: at.u32(4)? as i32,
            block_size: at.u32(8)?,
            capabilities: at.u32(12)?,
            group: at.array::<4>(16)?.into(),
        }),
        DATA => Message::Data(at.block()?),
        FEC => Message::Fec { stripes: at.u16(2)?, block: at.block()? },
        opcode @ (HELLO | HELLO_OLD | HELLO_STREAMING) => Message::Hello(Hello {
            capabilities: at.u32(4)?,
            group: at.array::<4>(8)?.into(),
            block_size: at.u16(24)?,
            is_streaming: opcode == HELLO_STREAMING,
        }),
        opcode => return Err(ParseError::UnknownOpcode(opcode)),
    })
}

/// Appends a message to `out`.
pub fn encode(out: &mut Vec<u8>, message: &Message<'_>) {
    let put = |out: &mut Vec<u8>, opcode: u16, second: u16, fields: &[u32]| {
        out.extend_from_slice(&opcode.to_be_bytes());
        out.extend_from_slice(&second.to_be_bytes());
        fields.iter().for_each(|field| out.extend_from_slice(&field.to_be_bytes()));
    };
    let put_block = |out: &mut Vec<u8>, opcode, second, block: &Block<'_>| {
        put(out, opcode, second, &[block.slice, u32::from(block.number) << 16, block.slice_bytes]);
        out.extend_from_slice(block.payload);
    };
    match message {
        Message::Ok { slice } => put(out, OK, 0, &[*slice]),
        Message::Retransmit { slice, poll, present } => {
            put(out, RETRANSMIT, 0, &[*slice, *poll]);
            out.extend_from_slice(&present.0);
        }
        Message::Go => put(out, GO, 0, &[]),
        Message::ConnectReq { capabilities, receive_buffer } => {
            put(out, CONNECT_REQ, 0, &[*capabilities, *receive_buffer]);
        }
        Message::Disconnect => put(out, DISCONNECT, 0, &[]),
        Message::ReqAck(asked) => {
            put(out, REQACK, 0, &[asked.slice, asked.slice_bytes, asked.poll]);
            out.extend_from_slice(&asked.ready.0);
        }
        Message::ConnectReply(reply) => {
            let fields =
                [reply.client as u32, reply.block_size, reply.capabilities, reply.group.into(), 0, 0, 0];
            put(out, CONNECT_REPLY, 0, &fields);
        }
        Message::Data(block) => put_block(out, DATA, 0, block),
        Message::Fec { stripes, block } => put_block(out, FEC, *stripes, block),
        Message::Hello(hello) => {
            let opcode = if hello.is_streaming { HELLO_STREAMING } else { HELLO };
            let size = u32::from(hello.block_size) << 16;
            put(out, opcode, 0, &[hello.capabilities, hello.group.into(), 0, 0, 0, size]);
        }
    }
}

/// The bytes of a datagram, with fields at fixed offsets.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(self, offset: usize) -> Result<[u8; N], ParseError> {
        let field = self.0.get(offset..).and_then(|rest| rest.first_chunk());
        field.copied().ok_or(ParseError::Truncated { need: offset + N, have: self.0.len() })
    }

    fn u16(self, offset: usize) -> Result<u16, ParseError> {
        self.array(offset).map(u16::from_be_bytes)
    }

    fn u32(self, offset: usize) -> Result<u32, ParseError> {
        self.array(offset).map(u32::from_be_bytes)
    }

    fn block(self) -> Result<Block<'a>, ParseError> {
        let slice_bytes = self.u32(12)?;
        let payload = self.0.get(DATA_HEADER_LEN..).unwrap_or_default();
        Ok(Block { slice: self.u32(4)?, number: self.u16(8)?, slice_bytes, payload })
    }
}
