//! Conversion of content to payloads of packets.

use super::{Framing, Messages};
use crate::codec::{DATA_HEADER_LEN, Fragment, MAX_APDU, MAX_FRAGMENTS, put_message, put_offset};
use crate::error::LineTooLong;
use std::collections::VecDeque;
use std::io;

/// Maximum length of a line that becomes one ZeroMQ message, in bytes.
const MAX_LINE: usize = 64 << 20;
/// Bytes of the options that locate a fragment.
pub(super) const FRAGMENT_LEN: usize = 20;
/// Bytes of the options of a packet that is not a fragment in a session with fragments.
const JOIN_LEN: usize = 12;
/// Bytes of ZeroMQ's offset.
const OFFSET_LEN: usize = 2;
/// Bytes requested from the input at once.
const CHUNK: usize = 64 << 10;

/// The input of content.
pub(super) trait Input: Send {
    /// Appends up to `most` bytes.
    fn read(&mut self, most: usize, into: &mut Vec<u8>) -> io::Result<ReadResult>;
}

/// Result of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadResult {
    /// Some bytes were read.
    Bytes,
    /// No bytes are available now.
    NotYet,
    /// The content has ended.
    End,
}

/// Result of requesting the next payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// A packet.
    Packet(Option<Fragment>),
    /// No content is available now.
    NotYet,
    /// The content has ended.
    End,
}

/// Divides content into payloads.
pub(super) struct Feed {
    input: Box<dyn Input>,
    framing: Framing,
    messages: Messages,
    /// Maximum length of a payload, in bytes.
    room: usize,
    /// Bytes read from the content. The first `cut` bytes are processed. Among the other bytes, the first `searched` bytes
    /// contain no line end.
    raw: Vec<u8>,
    cut: usize,
    searched: usize,
    input_state: ReadResult,
    /// Bytes to be sent in packets. The bytes before offset `at` are already sent.
    stream: Vec<u8>,
    at: usize,
    /// Offsets in `stream` at which messages begin.
    begins: VecDeque<usize>,
    /// Number of the first packet of the application data unit in `stream`.
    first: u32,
    counts: Counts,
}

/// Counts of the content sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) messages: u64,
}

impl Feed {
    /// Creates a feed that returns payloads of at most `room` bytes.
    pub(super) fn new(
        input: Box<dyn Input>,
        framing: Framing,
        messages: Option<Messages>,
        room: usize,
    ) -> Feed {
        let messages = messages.unwrap_or(match framing {
            Framing::None => Messages::Sized(room),
            Framing::Zmq => Messages::Lines,
        });
        Feed {
            input,
            framing,
            messages,
            room,
            raw: Vec::new(),
            cut: 0,
            searched: 0,
            input_state: ReadResult::NotYet,
            stream: Vec::new(),
            at: 0,
            begins: VecDeque::new(),
            first: 0,
            counts: Counts::default(),
        }
    }

    /// Returns the counts so far.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Stops reading. Only messages that were already taken from the content are still sent.
    pub(super) fn stop(&mut self) {
        self.input_state = ReadResult::End;
        self.raw.truncate(self.cut);
    }

    /// Clears `out` and writes the payload of packet `sqn` to it.
    pub(super) fn take(&mut self, sqn: u32, out: &mut Vec<u8>) -> io::Result<Take> {
        out.clear();
        match self.framing {
            Framing::None => self.take_unit(sqn, out),
            Framing::Zmq => self.take_stream(out),
        }
    }

    /// Takes the next application data unit, or its next fragment if the unit does not fit into one packet.
    fn take_unit(&mut self, sqn: u32, out: &mut Vec<u8>) -> io::Result<Take> {
        if self.at == self.stream.len() {
            (self.at, self.first) = (0, sqn);
            self.stream.clear();
            if !self.next_message()? {
                return Ok(if self.input_state == ReadResult::End { Take::End } else { Take::NotYet });
            }
        }
        if self.stream.len() <= self.room - if self.may_divide() { JOIN_LEN } else { 0 } {
            out.append(&mut self.stream);
            self.at = 0;
            return Ok(Take::Packet(None));
        }
        let len = (self.room - FRAGMENT_LEN).min(self.stream.len() - self.at);
        out.extend_from_slice(&self.stream[self.at..self.at + len]);
        let (offset, len_of_all) = (self.at as u32, self.stream.len() as u32);
        self.at += len;
        Ok(Take::Packet(Some(Fragment { first: self.first, offset, len: len_of_all })))
    }

    /// Returns whether units may be longer than a packet.
    pub(super) fn may_divide(&self) -> bool {
        match (self.framing, self.messages) {
            (Framing::Zmq, _) => false,
            (Framing::None, Messages::Lines) => true,
            (Framing::None, Messages::Sized(size)) => size > self.room,
        }
    }

    /// Takes the next part of the stream of messages, as long as fits into one packet.
    fn take_stream(&mut self, out: &mut Vec<u8>) -> io::Result<Take> {
        let want = self.room - OFFSET_LEN;
        while self.stream.len() - self.at < want && self.next_message()? {}
        let len = want.min(self.stream.len() - self.at);
        if len == 0 {
            return Ok(if self.input_state == ReadResult::End { Take::End } else { Take::NotYet });
        }
        let end = self.at + len;
        put_offset(out, self.begins.front().filter(|at| **at < end).map(|at| at - self.at));
        out.extend_from_slice(&self.stream[self.at..end]);
        while self.begins.front().is_some_and(|at| *at < end) {
            self.begins.pop_front();
        }
        self.at = end;
        if self.at > CHUNK {
            self.stream.drain(..self.at);
            self.begins.iter_mut().for_each(|at| *at -= self.at);
            self.at = 0;
        }
        Ok(Take::Packet(None))
    }

    /// Appends the next message of the content to `stream`. Returns whether a complete message was available.
    fn next_message(&mut self) -> io::Result<bool> {
        loop {
            if let Some(len) = self.whole()? {
                self.put(len);
                return Ok(true);
            }
            if self.input_state == ReadResult::End {
                return Ok(false);
            }
            self.raw.drain(..self.cut);
            self.cut = 0;
            self.input_state = self.input.read(CHUNK, &mut self.raw)?;
            if self.input_state == ReadResult::NotYet {
                return Ok(false);
            }
        }
    }

    /// Returns the length of the next message in bytes, if the message has been read completely. At the end of the content, the
    /// remaining bytes count as a message.
    fn whole(&mut self) -> io::Result<Option<usize>> {
        let left = &self.raw[self.cut..];
        let ended = self.input_state == ReadResult::End && !left.is_empty();
        let most = match self.framing {
            Framing::None => max_unit(self.room),
            Framing::Zmq => MAX_LINE,
        };
        let found = match self.messages {
            Messages::Sized(size) if left.len() >= size => Some(size),
            Messages::Sized(_) => ended.then_some(left.len()),
            Messages::Lines => {
                let newline = left[self.searched..].iter().position(|byte| *byte == b'\n');
                let len = newline.map(|at| self.searched + at + 1);
                self.searched = if len.is_some() { 0 } else { left.len() };
                len.or(ended.then_some(left.len()))
            }
        };
        match found.unwrap_or(left.len()) {
            long if long > most && self.messages == Messages::Lines => Err(too_long(most)),
            _ => Ok(found),
        }
    }

    fn put(&mut self, len: usize) {
        let mut message = &self.raw[self.cut..self.cut + len];
        self.counts.bytes += len as u64;
        self.counts.messages += 1;
        match self.framing {
            Framing::None => self.stream.extend_from_slice(message),
            Framing::Zmq => {
                if self.messages == Messages::Lines {
                    message = message.strip_suffix(b"\n").unwrap_or(message);
                }
                self.begins.push_back(self.stream.len());
                put_message(&mut self.stream, message);
            }
        }
        self.cut += len;
        self.searched = 0;
    }
}

/// Returns the maximum length of an application data unit if each packet has a payload of at most `room` bytes.
pub(super) fn max_unit(room: usize) -> usize {
    room.max(((room - FRAGMENT_LEN) * MAX_FRAGMENTS).min(MAX_APDU))
}

/// Returns the number of bytes of payload that fit into a datagram of `datagram` bytes with `options` bytes of options.
pub(super) fn room(datagram: usize, options: usize) -> usize {
    datagram - DATA_HEADER_LEN - options
}

fn too_long(most: usize) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, LineTooLong { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes(Option<Vec<u8>>);

    impl Input for Bytes {
        fn read(&mut self, _most: usize, out: &mut Vec<u8>) -> io::Result<ReadResult> {
            let bytes = self.0.take();
            bytes.map_or(Ok(ReadResult::End), |bytes| {
                out.extend_from_slice(&bytes);
                Ok(ReadResult::Bytes)
            })
        }
    }

    /// Returns the length of each payload, and whether it is a fragment.
    fn payloads(messages: Messages, content: &str) -> Vec<(usize, bool)> {
        let input = Box::new(Bytes(Some(content.into())));
        let mut feed = Feed::new(input, Framing::None, Some(messages), 30);
        let (mut out, mut taken) = (Vec::new(), Vec::new());
        while let Take::Packet(fragment) = feed.take(taken.len() as u32, &mut out).expect("memory") {
            taken.push((out.len(), fragment.is_some()));
        }
        taken
    }

    #[test]
    fn units_beside_fragments_have_room_for_an_option() {
        let lines = format!("{}\n{}\n", "a".repeat(17), "b".repeat(18));
        assert_eq!(payloads(Messages::Lines, &lines), [(18, false), (10, true), (9, true)]);
        assert_eq!(payloads(Messages::Sized(30), &"s".repeat(36)), [(30, false), (6, false)]);
    }
}
