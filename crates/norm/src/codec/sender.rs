//! Messages of a sender: objects, their data, and commands (RFC 5740, 4.2).

use super::reader::Reader;
use super::{CMD, DATA, Fec, INFO, Item, NodeId, ParseError, PayloadId, small};

const FLUSH: u8 = 1;
const EOT: u8 = 2;
const SQUELCH: u8 = 3;
const CC: u8 = 4;

const EXT_FTI: u8 = 64;
const EXT_RATE: u8 = 128;

/// Fields of every message of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SenderState {
    /// Number of this run of the sender.
    pub instance: u16,
    /// Code of the largest round-trip time of the group.
    pub grtt: u8,
    /// Maximum delay of a NACK, in largest round-trip times; at most 15.
    pub backoff: u8,
    /// Code of the number of receivers; at most 15.
    pub group_size: u8,
}

impl SenderState {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<SenderState, ParseError> {
        let (instance, grtt, last) = (reader.u16()?, reader.u8()?, reader.u8()?);
        Ok(SenderState { instance, grtt, backoff: last >> 4, group_size: last & 15 })
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.instance.to_be_bytes());
        out.extend_from_slice(&[self.grtt, self.backoff << 4 | self.group_size & 15]);
    }
}

/// A message of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SenderMessage<'a> {
    /// Information about an object: here, the name of a file.
    Info {
        /// The object.
        object: ObjectHeader,
        /// The information.
        info: &'a [u8],
    },
    /// A symbol of an object.
    Data {
        /// The object.
        object: ObjectHeader,
        /// Position of the symbol.
        id: PayloadId,
        /// Number of source symbols of the block; 0 if the encoding does not state it.
        block_len: u16,
        /// The symbol. The last source symbol of an object may be shorter than the others.
        symbol: &'a [u8],
    },
    /// A command.
    Command(Command<'a>),
}

/// The object of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectHeader {
    /// Flags of [`super::object_flags`].
    pub flags: u8,
    /// The encoding.
    pub fec: Fec,
    /// Number of the object.
    pub id: u16,
    /// How the object is divided and coded.
    pub fti: Option<Fti>,
}

/// FEC object transmission information (RFC 5510, 5.2; RFC 5445, 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fti {
    /// Length of the object, in bytes; at most 48 bits.
    pub size: u64,
    /// Length of a symbol, in bytes.
    pub segment: u16,
    /// Maximum number of source symbols of a block.
    pub max_block: u8,
    /// Number of parity symbols of a block.
    pub parity: u8,
}

/// A command of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Command<'a> {
    /// Everything up to this position has been sent. Receivers request missing parts, and the listed nodes acknowledge.
    Flush {
        /// The position.
        at: Item,
        /// The nodes that acknowledge.
        nodes: Nodes<'a>,
    },
    /// The sender has ended.
    Eot,
    /// Objects before this position cannot be repaired.
    Squelch {
        /// The position.
        at: Item,
        /// Numbers of later objects that cannot be repaired either, two bytes each.
        invalid: &'a [u8],
    },
    /// A probe of the round-trip time and of congestion control.
    Cc {
        /// Number of the probe.
        sequence: u16,
        /// Time of sending, seconds and microseconds of the sender's clock.
        sent: (u32, u32),
        /// Code of the sending rate; `None` without congestion control.
        rate: Option<u16>,
        /// Measurements of receivers.
        nodes: CcNodes<'a>,
    },
}

/// A list of nodes, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Nodes<'a>(pub &'a [u8]);

impl Nodes<'_> {
    /// Returns the nodes.
    pub fn iter(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.0.chunks_exact(4).map(|id| u32::from_be_bytes([id[0], id[1], id[2], id[3]]))
    }
}

/// A list of measurements of receivers, as bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CcNodes<'a>(pub &'a [u8]);

/// A measurement of a receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CcNode {
    /// The receiver.
    pub id: NodeId,
    /// Flags of [`super::cc_flags`].
    pub flags: u8,
    /// Code of its round-trip time.
    pub rtt: u8,
    /// Code of its rate.
    pub rate: u16,
}

impl CcNode {
    /// Octets of an entry.
    const LEN: usize = 8;

    /// Appends the bytes of the entry to a list.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_be_bytes());
        out.extend_from_slice(&[self.flags, self.rtt]);
        out.extend_from_slice(&self.rate.to_be_bytes());
    }
}

impl CcNodes<'_> {
    /// Returns the measurements.
    pub fn iter(&self) -> impl Iterator<Item = CcNode> + '_ {
        self.0.chunks_exact(CcNode::LEN).map(|entry| CcNode {
            id: u32::from_be_bytes([entry[0], entry[1], entry[2], entry[3]]),
            flags: entry[4],
            rtt: entry[5],
            rate: u16::from_be_bytes([entry[6], entry[7]]),
        })
    }
}

impl<'a> SenderMessage<'a> {
    /// Returns the message type.
    pub(super) const fn kind(&self) -> u8 {
        match self {
            SenderMessage::Info { .. } => INFO,
            SenderMessage::Data { .. } => DATA,
            SenderMessage::Command(_) => CMD,
        }
    }

    pub(super) fn parse(
        kind: u8,
        header: &mut Reader<'a>,
        body: &'a [u8],
    ) -> Result<SenderMessage<'a>, ParseError> {
        if kind == CMD {
            return Command::parse(header, body).map(SenderMessage::Command);
        }
        let (flags, fec, id) = (header.u8()?, Fec::parse(header.u8()?)?, header.u16()?);
        let position = if kind == DATA { Some(fec.read_id(header)?) } else { None };
        let mut fti = None;
        while let Some((het, content)) = header.extension()? {
            if het == EXT_FTI {
                fti = Some(Fti::parse(fec, content)?);
            }
        }
        let object = ObjectHeader { flags, fec, id, fti };
        Ok(match position {
            Some((id, block_len)) => SenderMessage::Data { object, id, block_len, symbol: body },
            None => SenderMessage::Info { object, info: body },
        })
    }

    /// Appends the message after the fields of every message. Returns the end of the header in `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> usize {
        let (object, body) = match self {
            SenderMessage::Command(command) => return command.encode(out),
            SenderMessage::Info { object, info } => (object, info),
            SenderMessage::Data { object, symbol, .. } => (object, symbol),
        };
        out.extend_from_slice(&[object.flags, object.fec.id()]);
        out.extend_from_slice(&object.id.to_be_bytes());
        if let SenderMessage::Data { id, block_len, .. } = self {
            object.fec.put_id((*id, *block_len), out);
        }
        if let Some(fti) = object.fti {
            fti.encode(object.fec, out);
        }
        let header = out.len();
        out.extend_from_slice(body);
        header
    }
}

impl Fti {
    fn parse(fec: Fec, content: &[u8]) -> Result<Fti, ParseError> {
        let mut reader = Reader::new(content);
        let size = u64::from(reader.u16()?) << 32 | u64::from(reader.u32()?);
        if fec == Fec::SmallBlock {
            match reader.u16()? {
                0 => {}
                value => return Err(ParseError::SmallBlock { what: "instance", value }),
            }
        }
        let segment = reader.u16()?;
        let (max_block, parity) = match fec {
            Fec::ReedSolomon => (reader.u8()?, reader.u8()?),
            Fec::SmallBlock => (small("block", reader.u16()?)?, small("parity", reader.u16()?)?),
        };
        Ok(Fti { size, segment, max_block, parity })
    }

    fn encode(self, fec: Fec, out: &mut Vec<u8>) {
        out.extend_from_slice(&[EXT_FTI, (fec.fti_len() / 4) as u8]);
        out.extend_from_slice(&self.size.to_be_bytes()[2..]);
        match fec {
            Fec::ReedSolomon => {
                out.extend_from_slice(&self.segment.to_be_bytes());
                out.extend_from_slice(&[self.max_block, self.parity]);
            }
            Fec::SmallBlock => {
                out.extend_from_slice(&[0, 0]);
                out.extend_from_slice(&self.segment.to_be_bytes());
                out.extend_from_slice(&[0, self.max_block, 0, self.parity]);
            }
        }
    }
}

impl<'a> Command<'a> {
    fn parse(header: &mut Reader<'a>, body: &'a [u8]) -> Result<Command<'a>, ParseError> {
        let kind = header.u8()?;
        match kind {
            FLUSH | SQUELCH => {
                let (fec, object) = (Fec::parse(header.u8()?)?, header.u16()?);
                let (id, block_len) = fec.read_id(header)?;
                let at = Item { fec, object, id, block_len };
                while header.extension()?.is_some() {}
                let entry = if kind == FLUSH { 4 } else { 2 };
                if !body.len().is_multiple_of(entry) {
                    return Err(ParseError::List(body.len()));
                }
                Ok(match kind {
                    FLUSH => Command::Flush { at, nodes: Nodes(body) },
                    _ => Command::Squelch { at, invalid: body },
                })
            }
            EOT => header.take(3).map(|_| Command::Eot),
            CC => {
                let (_, sequence) = (header.u8()?, header.u16()?);
                let (sent, mut rate) = ((header.u32()?, header.u32()?), None);
                while let Some((het, content)) = header.extension()? {
                    if het == EXT_RATE {
                        rate = Some(Reader::new(content).u16()?);
                    }
                }
                if !body.len().is_multiple_of(CcNode::LEN) {
                    return Err(ParseError::List(body.len()));
                }
                Ok(Command::Cc { sequence, sent, rate, nodes: CcNodes(body) })
            }
            other => Err(ParseError::Unknown(CMD, other)),
        }
    }

    /// Appends the command. Returns the end of the header in `out`.
    fn encode(&self, out: &mut Vec<u8>) -> usize {
        let body = match *self {
            Command::Flush { at, nodes } => {
                at.encode([FLUSH, at.fec.id()], out);
                nodes.0
            }
            Command::Squelch { at, invalid } => {
                at.encode([SQUELCH, at.fec.id()], out);
                invalid
            }
            Command::Eot => {
                out.extend_from_slice(&[EOT, 0, 0, 0]);
                &[]
            }
            Command::Cc { sequence, sent, rate, nodes } => {
                out.extend_from_slice(&[CC, 0]);
                out.extend_from_slice(&sequence.to_be_bytes());
                out.extend_from_slice(&sent.0.to_be_bytes());
                out.extend_from_slice(&sent.1.to_be_bytes());
                if let Some(rate) = rate {
                    out.extend_from_slice(&[EXT_RATE, 0]);
                    out.extend_from_slice(&rate.to_be_bytes());
                }
                nodes.0
            }
        };
        let header = out.len();
        out.extend_from_slice(body);
        header
    }
}
