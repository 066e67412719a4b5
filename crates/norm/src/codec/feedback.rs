//! Messages of a receiver: NACKs and ACKs (RFC 5740, 4.3).

use super::reader::Reader;
use super::{ACK, Fec, NACK, NodeId, ParseError, PayloadId};

const ACK_CC: u8 = 1;
const ACK_FLUSH: u8 = 2;
const EXT_CC: u8 = 3;
/// Words of the extension with a report for congestion control.
const CC_WORDS: u8 = 3;

/// A NACK or an ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feedback<'a> {
    /// The sender to which the message is directed.
    pub server: NodeId,
    /// Number of the run of the sender.
    pub instance: u16,
    /// Sending time of the newest probe, plus the time since its arrival: seconds and microseconds of the sender's clock. Zero
    /// before the first probe.
    pub response: (u32, u32),
    /// The report for congestion control.
    pub cc: Option<CcReport>,
    /// The kind of the message.
    pub kind: FeedbackKind<'a>,
}

/// The kind of a feedback message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedbackKind<'a> {
    /// Requests for repairs.
    Nack(Requests<'a>),
    /// An answer to a command.
    Ack {
        /// The answered command.
        answer: Answer,
        /// Number of the request.
        id: u8,
    },
}

/// The command that an ACK answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A probe.
    Cc,
    /// A flush. Everything up to this position has arrived.
    Flush(Item),
}

/// A receiver's report for congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CcReport {
    /// Number of the newest probe.
    pub sequence: u16,
    /// Flags of [`super::cc_flags`].
    pub flags: u8,
    /// Code of the receiver's round-trip time.
    pub rtt: u8,
    /// Code of the loss event rate.
    pub loss: u16,
    /// Code of the calculated rate, or of the received rate before a loss.
    pub rate: u16,
}

/// The list of repair requests of a NACK, as bytes. Parsed lists have valid entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests<'a>(&'a [u8]);

/// How the items of a request are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Each item is a request.
    Items,
    /// Each pair of items is an inclusive range.
    Ranges,
    /// Each item is a block, and its symbol is a number of erasures.
    Erasures,
}

/// A repair request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request<'a> {
    /// How the items are to be read.
    pub form: Form,
    /// Flags of [`super::request_flags`].
    pub flags: u8,
    items: &'a [u8],
}

/// A position in a session: an item of a repair request, or the position of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// The encoding.
    pub fec: Fec,
    /// The object.
    pub object: u16,
    /// Position in the object.
    pub id: PayloadId,
    /// Number of source symbols of the block; 0 if the encoding does not state it.
    pub block_len: u16,
}

impl Item {
    /// Returns a position that states no number of source symbols.
    pub const fn new(fec: Fec, object: u16, id: PayloadId) -> Item {
        Item { fec, object, id, block_len: 0 }
    }

    fn parse(reader: &mut Reader<'_>) -> Result<Item, ParseError> {
        let fec = Fec::parse(reader.u8()?)?;
        let (_, object) = (reader.u8()?, reader.u16()?);
        let (id, block_len) = fec.read_id(reader)?;
        Ok(Item { fec, object, id, block_len })
    }

    /// Appends the position after two bytes that differ between messages.
    pub(super) fn encode(self, first: [u8; 2], out: &mut Vec<u8>) {
        out.extend_from_slice(&first);
        out.extend_from_slice(&self.object.to_be_bytes());
        self.fec.put_id((self.id, self.block_len), out);
    }
}

impl<'a> Requests<'a> {
    /// Creates a list from bytes that [`push_request`] has written.
    ///
    /// # Errors
    /// If an entry is invalid.
    pub fn parse(bytes: &'a [u8]) -> Result<Requests<'a>, ParseError> {
        let mut reader = Reader::new(bytes);
        while reader.at() < bytes.len() {
            Request::parse(&mut reader)?;
        }
        Ok(Requests(bytes))
    }

    /// Returns the requests.
    pub fn iter(&self) -> impl Iterator<Item = Request<'a>> + use<'a> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || Request::parse(&mut reader).ok())
    }
}

impl<'a> Request<'a> {
    fn parse(reader: &mut Reader<'a>) -> Result<Request<'a>, ParseError> {
        let form = match reader.u8()? {
            1 => Form::Items,
            2 => Form::Ranges,
            3 => Form::Erasures,
            other => return Err(ParseError::Form(other)),
        };
        let (flags, len) = (reader.u8()?, usize::from(reader.u16()?));
        let items = reader.take(len)?;
        let mut each = Reader::new(items);
        while each.at() < len {
            let item = Item::parse(&mut each).and_then(|first| match form {
                Form::Ranges => Item::parse(&mut each),
                Form::Items | Form::Erasures => Ok(first),
            });
            // The length of an item depends on its encoding.
            item.map_err(|error| match error {
                ParseError::Truncated { .. } => ParseError::List(len),
                other => other,
            })?;
        }
        Ok(Request { form, flags, items })
    }

    /// Returns the first and the last item of each range. A single item is a range of one item.
    pub fn ranges(&self) -> impl Iterator<Item = (Item, Item)> + use<'a> {
        let (form, mut reader) = (self.form, Reader::new(self.items));
        std::iter::from_fn(move || {
            let first = Item::parse(&mut reader).ok()?;
            let last = if form == Form::Ranges { Item::parse(&mut reader).ok()? } else { first };
            Some((first, last))
        })
    }
}

/// Appends a repair request to the bytes of a list.
pub fn push_request(out: &mut Vec<u8>, form: Form, flags: u8, items: &[Item]) {
    let form = match form {
        Form::Items => 1,
        Form::Ranges => 2,
        Form::Erasures => 3,
    };
    out.extend_from_slice(&[form, flags]);
    let start = out.len();
    out.extend_from_slice(&[0, 0]);
    items.iter().for_each(|item| item.encode([item.fec.id(), 0], out));
    let len = (out.len() - start - 2) as u16;
    out[start..start + 2].copy_from_slice(&len.to_be_bytes());
}

impl<'a> Feedback<'a> {
    /// Returns the message type.
    pub(super) const fn message_type(&self) -> u8 {
        match self.kind {
            FeedbackKind::Nack(_) => NACK,
            FeedbackKind::Ack { .. } => ACK,
        }
    }

    pub(super) fn parse(
        kind: u8,
        header: &mut Reader<'a>,
        body: &'a [u8],
    ) -> Result<Feedback<'a>, ParseError> {
        let (server, instance) = (header.u32()?, header.u16()?);
        let ([ack, id], response) = (header.array()?, (header.u32()?, header.u32()?));
        let mut cc = None;
        while let Some((het, content)) = header.extension()? {
            if het == EXT_CC {
                cc = Some(CcReport::parse(content)?);
            }
        }
        let kind = match (kind, ack) {
            (NACK, _) => FeedbackKind::Nack(Requests::parse(body)?),
            (_, ACK_CC) => FeedbackKind::Ack { answer: Answer::Cc, id },
            (_, ACK_FLUSH) => {
                let answer = Answer::Flush(Item::parse(&mut Reader::new(body))?);
                FeedbackKind::Ack { answer, id }
            }
            (_, other) => return Err(ParseError::Unknown(ACK, other)),
        };
        Ok(Feedback { server, instance, response, cc, kind })
    }

    /// Appends the message after the common header. Returns the end of the header in `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> usize {
        out.extend_from_slice(&self.server.to_be_bytes());
        out.extend_from_slice(&self.instance.to_be_bytes());
        out.extend_from_slice(&match self.kind {
            FeedbackKind::Nack(_) => [0, 0],
            FeedbackKind::Ack { answer: Answer::Cc, id } => [ACK_CC, id],
            FeedbackKind::Ack { answer: Answer::Flush(_), id } => [ACK_FLUSH, id],
        });
        out.extend_from_slice(&self.response.0.to_be_bytes());
        out.extend_from_slice(&self.response.1.to_be_bytes());
        if let Some(cc) = self.cc {
            cc.encode(out);
        }
        let header = out.len();
        match self.kind {
            FeedbackKind::Nack(requests) => out.extend_from_slice(requests.0),
            FeedbackKind::Ack { answer: Answer::Flush(at), .. } => at.encode([at.fec.id(), 0], out),
            FeedbackKind::Ack { answer: Answer::Cc, .. } => {}
        }
        header
    }
}

impl CcReport {
    fn parse(content: &[u8]) -> Result<CcReport, ParseError> {
        let mut reader = Reader::new(content);
        let sequence = reader.u16()?;
        let [flags, rtt] = reader.array()?;
        Ok(CcReport { sequence, flags, rtt, loss: reader.u16()?, rate: reader.u16()? })
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[EXT_CC, CC_WORDS]);
        out.extend_from_slice(&self.sequence.to_be_bytes());
        out.extend_from_slice(&[self.flags, self.rtt]);
        out.extend_from_slice(&self.loss.to_be_bytes());
        out.extend_from_slice(&self.rate.to_be_bytes());
        out.extend_from_slice(&[0, 0]);
    }
}
