//! Messages between two `faircast doctor` processes, in UDP datagrams. All messages have the same layout.
//!
//! ```text
//! 0 "fcdoctor" ‖ 8 u8 version (1) ‖ 9 u8 kind ‖ 10 u16 step ‖ 12 u32 number ‖ 16 u64 test ‖ 24 u64 token ‖ 32 4 × u64 values
//! ‖ 64 tag (16): BLAKE3 in keyed mode over all other bytes ‖ 80 zeros up to the length       (little endian)
//! ```
//!
//! The key of the tag is derived from the group key, or from a constant if there is no group key. Processes with different keys
//! therefore refuse each other's messages.

use crate::key::GroupKey;
use std::fmt;

/// Length of a message without its padding, in bytes.
pub const LEN: usize = 80;
const MAGIC: [u8; 8] = *b"fcdoctor";
const VERSION: u8 = 1;
const TAG: std::ops::Range<usize> = 64..80;

/// The key that authenticates messages.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Returns the key for hosts with this group key, or for hosts without a group key.
    pub fn of(group: Option<&GroupKey>) -> Key {
        let context = "faircast 2026 doctor: messages between hosts";
        match group {
            Some(key) => Key(blake3::derive_key(context, key.to_line().as_bytes())),
            None => Key(blake3::derive_key(context, b"open")),
        }
    }

    /// Writes the tag of a message. Returns `false` if the message is shorter than [`LEN`] bytes.
    pub fn seal(&self, bytes: &mut [u8]) -> bool {
        let is_whole = bytes.len() >= LEN;
        if is_whole {
            let tag = self.tag(bytes);
            bytes[TAG].copy_from_slice(&tag);
        }
        is_whole
    }

    fn tag(&self, bytes: &[u8]) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(&bytes[..TAG.start]).update(&bytes[TAG.end..]);
        let mut tag = [0; 16];
        tag.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        tag
    }
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Requests a token; with a token, requests a test.
    Hello = 1,
    /// Carries the token. The message is sent to the address of the request, so only a host at that address receives the token.
    Token = 2,
    /// The test may begin. Values: nanoseconds since 1970, MTU of the interface, receive buffer.
    Ready = 3,
    /// Another test is in progress.
    Busy = 4,
    /// A datagram of a train.
    Data = 5,
    /// Requests the counts of a train, or of datagrams to the group.
    Count = 6,
    /// Returns the counts. Values: number of datagrams, nanoseconds from the first to the last datagram, number of reordered
    /// datagrams, number of datagrams to the group.
    Counted = 7,
    /// Requests a train. Values: number of datagrams, interval in nanoseconds, bytes of each.
    Pull = 8,
    /// A datagram whose length is tested.
    Size = 9,
    /// The answer to [`Kind::Size`], with the length of the received datagram as its value. Also the answer to
    /// [`Kind::PullSize`]: a datagram of the requested length.
    Sized = 10,
    /// Requests a datagram of this length.
    PullSize = 11,
    /// A datagram to the group.
    Group = 12,
    /// Requests datagrams to the group.
    PullGroup = 13,
    /// Ends the test.
    Bye = 14,
    /// Answers a datagram to the group. The answer is sent from the port of a receiver and repeats the step of the datagram.
    Heard = 15,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 15] = [
        Kind::Hello,
        Kind::Token,
        Kind::Ready,
        Kind::Busy,
        Kind::Data,
        Kind::Count,
        Kind::Counted,
        Kind::Pull,
        Kind::Size,
        Kind::Sized,
        Kind::PullSize,
        Kind::Group,
        Kind::PullGroup,
        Kind::Bye,
        Kind::Heard,
    ];
}

/// A message between two `faircast doctor` processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Kind of the message.
    pub kind: Kind,
    /// Identifies the train or the request; answers repeat this number.
    pub step: u16,
    /// Number of the datagram in the train.
    pub number: u32,
    /// Number of the test, drawn by the requesting host.
    pub test: u64,
    /// Token of the answering host; 0 before it is known.
    pub token: u64,
    /// Meaning depends on the kind.
    pub values: [u64; 4],
}

impl Message {
    /// Writes the message, padded to `len` bytes. The minimum length is [`LEN`].
    pub fn encode(&self, key: &Key, len: usize, out: &mut Vec<u8>) {
        out.clear();
        out.extend(MAGIC);
        out.extend([VERSION, self.kind as u8]);
        out.extend(self.step.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.test.to_le_bytes());
        out.extend(self.token.to_le_bytes());
        self.values.iter().for_each(|value| out.extend(value.to_le_bytes()));
        out.resize(len.max(LEN), 0);
        key.seal(out);
    }

    /// Parses a message; `None` if it is malformed or has another key.
    pub fn parse(bytes: &[u8], key: &Key) -> Option<Message> {
        let (head, _) = bytes.split_first_chunk::<LEN>()?;
        if head[..8] != MAGIC || head[8] != VERSION || head[TAG] != key.tag(bytes) {
            return None;
        }
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u8 == head[9])?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| head[at + n]));
        Some(Message {
            kind,
            step: u16::from_le_bytes([head[10], head[11]]),
            number: word(12) as u32,
            test: word(16),
            token: word(24),
            values: [word(32), word(40), word(48), word(56)],
        })
    }
}

/// Counts of a train at its receiver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Step of the train.
    pub step: u16,
    /// Number of received datagrams without duplicates.
    pub received: u64,
    /// Time from the first to the last datagram, in nanoseconds.
    pub span: u64,
    /// Number of reordered datagrams, which arrived after a later datagram of the train.
    pub reordered: u64,
    first: u64,
    /// Number of the next datagram, if datagrams arrive in order.
    next: u64,
}

impl Tally {
    /// Returns the counts that another host reported.
    pub fn reported(step: u16, [received, span, reordered]: [u64; 3]) -> Tally {
        Tally { step, received, span, reordered, ..Tally::default() }
    }

    /// Counts a datagram that arrived at time `now`, in nanoseconds. A new step resets the counts.
    pub fn take(&mut self, step: u16, number: u32, now: u64) {
        if self.received == 0 || step != self.step {
            *self = Tally { step, first: now, ..Tally::default() };
        }
        self.received += 1;
        self.span = now.saturating_sub(self.first);
        if u64::from(number) < self.next {
            self.reordered += 1;
        }
        self.next = self.next.max(u64::from(number) + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            kind: Kind::Pull,
            step: 300,
            number: 70_000,
            test: 1 << 40,
            token: 9,
            values: [1, 2, 3, u64::MAX],
        }
    }

    #[test]
    fn message_round_trips_at_any_length_and_damage_is_refused() {
        let key = Key::of(None);
        let mut bytes = Vec::new();
        for len in [0, LEN, 128, 1_472] {
            message().encode(&key, len, &mut bytes);
            assert_eq!((bytes.len(), Message::parse(&bytes, &key)), (len.max(LEN), Some(message())));
        }
        for have in 0..bytes.len() {
            assert_eq!(Message::parse(&bytes[..have], &key), None, "{have} bytes");
        }
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert_eq!(Message::parse(&bytes, &key), None, "byte {at} changed");
            bytes[at] ^= 1;
        }
    }

    #[test]
    fn messages_open_only_with_the_key_that_sealed_them() {
        let (a, b) = (GroupKey::generate().expect("a key"), GroupKey::generate().expect("a key"));
        let keys = [Key::of(Some(&a)), Key::of(Some(&b)), Key::of(None)];
        let mut bytes = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            message().encode(key, LEN, &mut bytes);
            let heard: Vec<_> = keys.iter().map(|key| Message::parse(&bytes, key).is_some()).collect();
            assert_eq!(heard, (0..3).map(|other| other == n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn train_counts_late_packets_as_reordered() {
        let mut tally = Tally::default();
        for (at, number) in [(10, 0), (20, 2), (30, 1), (40, 3)] {
            tally.take(1, number, at);
        }
        assert_eq!((tally.received, tally.span, tally.reordered), (4, 30, 1));
        tally.take(2, 7, 100);
        assert_eq!((tally.step, tally.received, tally.span, tally.reordered), (2, 1, 0, 0));
    }
}
