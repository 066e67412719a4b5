//! Conversion of packet payloads to content. Payloads are processed in order: fragments are joined to units, and messages are
//! extracted from frames.

use super::{Framing, Messages};
use crate::codec::{Fragment, MAX_APDU, MessageSink, Unframer};
use std::io::{self, Write};

/// Maximum length of a message, in bytes.
const MAX_MESSAGE: u64 = 64 << 20;

/// Writes content.
pub(super) struct ContentWriter {
    to: Target,
    framing: Framing,
    unframer: Unframer,
    unit: Unit,
    broken_units: u64,
    /// Number of payloads that were not part of a stream of messages.
    pub(super) malformed: u64,
}

/// An application data unit that arrives in fragments.
#[derive(Debug, Default)]
struct Unit {
    bytes: Vec<u8>,
    /// Number of the unit's first packet; `None` if no unit is incomplete.
    first: Option<u32>,
}

/// Destination and counts of content.
struct Target {
    to: Box<dyn Write + Send>,
    /// Bytes written after each ZeroMQ message.
    end: &'static [u8],
    message: Vec<u8>,
    bytes: u64,
    messages: u64,
    broken: u64,
    failed: Option<io::Error>,
}

impl ContentWriter {
    pub(super) fn new(
        to: Box<dyn Write + Send>,
        framing: Framing,
        messages: Option<Messages>,
    ) -> ContentWriter {
        let end: &[u8] = match (framing, messages) {
            (Framing::Zmq, None | Some(Messages::Lines)) => b"\n",
            _ => b"",
        };
        let target = Target { to, end, message: Vec::new(), bytes: 0, messages: 0, broken: 0, failed: None };
        ContentWriter {
            to: target,
            framing,
            unframer: Unframer::new(MAX_MESSAGE),
            unit: Unit::default(),
            broken_units: 0,
            malformed: 0,
        }
    }

    /// Processes the next packet in order.
    pub(super) fn packet(&mut self, fragment: Option<Fragment>, payload: &[u8]) -> io::Result<()> {
        match fragment {
            Some(fragment) if fragment.len as usize != payload.len() => {
                if self.unit.add(fragment, payload, &mut self.broken_units) {
                    let whole = std::mem::take(&mut self.unit.bytes);
                    self.whole(&whole);
                    self.unit.bytes = whole;
                    self.unit.bytes.clear();
                }
            }
            _ => {
                self.unit.drop_part(&mut self.broken_units);
                self.whole(payload);
            }
        }
        self.to.failed.take().map_or(Ok(()), Err)
    }

    /// Handles the permanent loss of packets at this position.
    pub(super) fn loss(&mut self) {
        self.unit.drop_part(&mut self.broken_units);
        if self.framing == Framing::Zmq {
            self.unframer.on_loss(&mut self.to);
        }
    }

    fn whole(&mut self, unit: &[u8]) {
        match self.framing {
            Framing::None => {
                self.to.write(unit);
                self.to.messages += 1;
            }
            Framing::Zmq => self.malformed += u64::from(self.unframer.packet(unit, &mut self.to).is_err()),
        }
    }

    /// Writes all buffered content.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.to.to.flush()
    }

    /// Returns the number of bytes written.
    pub(super) fn bytes(&self) -> u64 {
        self.to.bytes
    }

    /// Returns the number of messages or units written.
    pub(super) fn messages(&self) -> u64 {
        self.to.messages
    }

    /// Returns the number of messages or units that were not completely received and therefore not written.
    pub(super) fn broken(&self) -> u64 {
        self.to.broken + self.broken_units
    }
}

impl Unit {
    /// Adds the next fragment and returns whether the unit is complete.
    fn add(&mut self, fragment: Fragment, payload: &[u8], broken: &mut u64) -> bool {
        let fits = fragment.len as usize <= MAX_APDU
            && fragment.offset as usize + payload.len() <= fragment.len as usize;
        if fragment.offset == 0 && fits {
            self.drop_part(broken);
            self.first = Some(fragment.first);
        }
        // The fragment does not continue the present unit, because a preceding fragment is lost.
        if !fits || self.first != Some(fragment.first) || self.bytes.len() != fragment.offset as usize {
            self.drop_part(broken);
            return false;
        }
        self.bytes.extend_from_slice(payload);
        let whole = self.bytes.len() == fragment.len as usize;
        if whole {
            self.first = None;
        }
        whole
    }

    /// Drops the incomplete part of a unit.
    fn drop_part(&mut self, broken: &mut u64) {
        *broken += u64::from(self.first.take().is_some());
        self.bytes.clear();
    }
}

impl Target {
    fn write(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if self.failed.is_none() {
            self.failed = self.to.write_all(bytes).err();
        }
    }
}

impl MessageSink for Target {
    fn bytes(&mut self, part: &[u8]) {
        self.message.extend_from_slice(part);
    }

    fn end(&mut self) {
        let mut message = std::mem::take(&mut self.message);
        message.extend_from_slice(self.end);
        self.write(&message);
        self.messages += 1;
        message.clear();
        self.message = message;
    }

    fn broken(&mut self) {
        self.broken += u64::from(!self.message.is_empty());
        self.message.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn part(offset: u32, len: u32) -> Option<Fragment> {
        Some(Fragment { first: 9, offset, len })
    }

    #[test]
    fn fragments_of_a_unit_are_joined() {
        let out = Shared::default();
        let mut writer = ContentWriter::new(Box::new(out.clone()), Framing::None, None);
        for (fragment, bytes) in [(part(0, 6), "ab"), (part(2, 6), "cd"), (part(4, 6), "ef"), (None, "gh")] {
            writer.packet(fragment, bytes.as_bytes()).expect("memory");
        }
        assert_eq!(
            (&out.0.lock().expect("nobody panics")[..], writer.messages(), writer.broken()),
            (&b"abcdefgh"[..], 2, 0)
        );
    }

    #[test]
    fn unit_with_a_missing_fragment_is_not_written() {
        let out = Shared::default();
        let mut writer = ContentWriter::new(Box::new(out.clone()), Framing::None, None);
        writer.packet(part(0, 6), b"ab").expect("memory");
        writer.loss();
        writer.packet(part(4, 6), b"ef").expect("memory");
        writer.packet(None, b"gh").expect("memory");
        assert_eq!(
            (&out.0.lock().expect("nobody panics")[..], writer.messages(), writer.broken()),
            (&b"gh"[..], 1, 1)
        );
    }

    #[test]
    fn fragments_with_an_invalid_position_are_not_written() {
        let mut writer = ContentWriter::new(Box::new(io::sink()), Framing::None, None);
        for fragment in [part(0, 100_000), part(5, 6), part(u32::MAX, u32::MAX)] {
            writer.packet(fragment, b"ab").expect("nothing is written");
        }
        assert_eq!(writer.bytes(), 0);
    }
}
