//! ZeroMQ's messages over PGM: a byte stream of ZMTP 1.0 frames that is divided into packets.
//!
//! ```text
//! packet:   +-----------------+------------------------+      offset: where in `bytes` the first message begins,
//!           |  offset (u16)   |  bytes of the stream   |      0xffff when none does
//!           +-----------------+------------------------+
//! message:  +-----------+-----------+-----------+             length counts the flags octet too
//!           | length u8 | flags u8  |   body    |             flags bit 0: another part follows
//!           +-----------+-----------+-----------+
//! long:     +------+------------------------+-----------+-----------+
//!           | 0xff |     length u64         | flags u8  |   body    |     from a length of 255 on
//!           +------+------------------------+-----------+-----------+
//! ```
//!
//! The offset lets a receiver find the next message, if the receiver joined late or has permanently lost packets.

/// Value of the offset in a packet in which no message begins.
const NONE_BEGINS: u16 = 0xffff;
const LONG: u8 = 0xff;
const MORE: u8 = 1;

/// The bytes of the stream in a packet, and the position of the first message that begins in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joint<'a> {
    /// Offset in `bytes` of the first message.
    pub begins: Option<usize>,
    /// The stream's bytes.
    pub bytes: &'a [u8],
}

/// Reason why a stream of frames cannot be read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The payload is too short for an offset.
    #[error("a packet of {0} bytes has no offset; the source does not use ZeroMQ's framing")]
    NoOffset(usize),
    /// The offset exceeds the packet.
    #[error(
        "a message would begin {offset} bytes into a packet of {len} bytes; the source does not use ZeroMQ's framing"
    )]
    Offset {
        /// Offset in the packet.
        offset: usize,
        /// Bytes of the stream in the packet.
        len: usize,
    },
    /// A frame has length zero. Even a frame without a body must contain an octet of flags.
    #[error("a frame has length zero; the source does not use ZeroMQ's framing")]
    Empty,
    /// A message is longer than allowed.
    #[error("a message of {len} bytes is longer than the {most} allowed")]
    TooLong {
        /// Its length.
        len: u64,
        /// Limit.
        most: u64,
    },
}

/// Appends a whole message as a frame.
pub fn put_message(out: &mut Vec<u8>, body: &[u8]) {
    match u8::try_from(body.len() + 1) {
        Ok(len) if len < LONG => out.extend_from_slice(&[len, 0]),
        _ => {
            out.push(LONG);
            out.extend_from_slice(&(body.len() as u64 + 1).to_be_bytes());
            out.push(0);
        }
    }
    out.extend_from_slice(body);
}

/// Appends the offset, which is the first two octets of a packet.
pub fn put_offset(out: &mut Vec<u8>, begins: Option<usize>) {
    let offset = begins.and_then(|at| u16::try_from(at).ok()).unwrap_or(NONE_BEGINS);
    out.extend_from_slice(&offset.to_be_bytes());
}

/// Reads a packet's offset.
///
/// # Errors
/// When the offset is invalid.
pub fn joint(payload: &[u8]) -> Result<Joint<'_>, FrameError> {
    let Some((offset, bytes)) = payload.split_first_chunk::<2>() else {
        return Err(FrameError::NoOffset(payload.len()));
    };
    match u16::from_be_bytes(*offset) {
        NONE_BEGINS => Ok(Joint { begins: None, bytes }),
        offset if usize::from(offset) <= bytes.len() => Ok(Joint { begins: Some(offset.into()), bytes }),
        offset => Err(FrameError::Offset { offset: offset.into(), len: bytes.len() }),
    }
}

/// Extracts the bodies of messages from a stream of frames.
#[derive(Debug)]
pub struct Unframer {
    most: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The unframer waits for a packet in which a message begins.
    Lost,
    Length,
    LongLength {
        got: u8,
        len: u64,
    },
    Flags {
        len: u64,
    },
    Body {
        left: u64,
        more: More,
    },
}

/// Whether the message has another part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum More {
    Yes,
    No,
}

/// Receives a stream of messages.
pub trait MessageSink {
    /// Receives some bytes of a message's body.
    fn bytes(&mut self, part: &[u8]);
    /// Ends the present message. The parts of a multipart message form one message.
    fn end(&mut self);
    /// Reports that the rest of the present message, if there is one, is lost.
    fn broken(&mut self);
}

impl Unframer {
    /// Creates an unframer for messages of up to `most` bytes.
    pub fn new(most: u64) -> Unframer {
        Unframer { most, state: State::Lost }
    }

    /// Handles the permanent loss of packets at this position of the stream: the unframer continues at the next message.
    pub fn on_loss(&mut self, sink: &mut impl MessageSink) {
        if self.state != State::Lost {
            sink.broken();
        }
        self.state = State::Lost;
    }

    /// Processes the next packet's payload.
    ///
    /// # Errors
    /// When the payload is not part of a ZeroMQ stream. The unframer then continues at the next message.
    pub fn packet(&mut self, payload: &[u8], sink: &mut impl MessageSink) -> Result<(), FrameError> {
        let joint = joint(payload)?;
        let mut bytes = joint.bytes;
        if self.state == State::Lost {
            let Some(begins) = joint.begins else { return Ok(()) };
            bytes = &bytes[begins..];
            self.state = State::Length;
        }
        while !bytes.is_empty() {
            if let Err(error) = self.step(&mut bytes, sink) {
                self.on_loss(sink);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Processes a part of `bytes`, which must not be empty, and removes it from `bytes`.
    fn step(&mut self, bytes: &mut &[u8], sink: &mut impl MessageSink) -> Result<(), FrameError> {
        if let State::Body { left, more } = self.state {
            let len = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            let (part, rest) = bytes.split_at(len);
            sink.bytes(part);
            *bytes = rest;
            return self.body(left - len as u64, more, sink);
        }
        let Some((&byte, rest)) = bytes.split_first() else { return Ok(()) };
        *bytes = rest;
        self.state = match self.state {
            State::Length if byte == LONG => State::LongLength { got: 0, len: 0 },
            State::Length => self.checked(byte.into())?,
            State::LongLength { got, len } => {
                let len = len << 8 | u64::from(byte);
                if got == 7 { self.checked(len)? } else { State::LongLength { got: got + 1, len } }
            }
            State::Flags { len } => {
                let more = if byte & MORE != 0 { More::Yes } else { More::No };
                return self.body(len - 1, more, sink);
            }
            other => other,
        };
        Ok(())
    }

    fn checked(&self, len: u64) -> Result<State, FrameError> {
        match len {
            0 => Err(FrameError::Empty),
            len if len - 1 > self.most => Err(FrameError::TooLong { len: len - 1, most: self.most }),
            len => Ok(State::Flags { len }),
        }
    }

    fn body(&mut self, left: u64, more: More, sink: &mut impl MessageSink) -> Result<(), FrameError> {
        self.state = if left > 0 { State::Body { left, more } } else { State::Length };
        if left == 0 && more == More::No {
            sink.end();
        }
        Ok(())
    }
}
