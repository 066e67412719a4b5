//! The attacker in a fuzzed world. It changes observed packets, corrects their checksum or encrypts them with the session's key,
//! and sends them.

use super::nodes::{SALT, SESSION};
use super::places::{BRANCH, RELAY, SOURCE, STRANGER};
use faircast_core::packet::ReceiverId;
use faircast_wire::{
    GroupKey, Kind, Message, Newest, ReceiverCodec, SourceCodec, encode, encode_data, parse, peek,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Number of datagrams stored for each direction.
const KEPT: usize = 16;

/// Number of members that the attacker can impersonate.
const MAX_MEMBERS: usize = 16;

/// The direction of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pool {
    /// From the source to relays and receivers.
    Down,
    /// From a relay to its children.
    Below,
    /// To the source.
    Up,
    /// To a relay.
    Within,
}

impl Pool {
    pub(super) fn of(from: SocketAddr, to: SocketAddr) -> Pool {
        match (from, to) {
            (SOURCE, _) => Pool::Down,
            (_, SOURCE) => Pool::Up,
            (_, RELAY | BRANCH) => Pool::Within,
            _ => Pool::Below,
        }
    }

    fn is_down(self) -> bool {
        matches!(self, Pool::Down | Pool::Below)
    }
}

/// Datagrams observed in one direction.
#[derive(Default)]
struct RecordedPackets {
    /// The datagrams as they were sent.
    raw: VecDeque<Vec<u8>>,
    /// The decrypted datagrams.
    plain: VecDeque<Vec<u8>>,
}

/// The state of an attacker that may have the session's key.
pub(super) struct Hostile {
    correct: fn(&mut [u8]),
    key: Option<GroupKey>,
    received: [RecordedPackets; 4],
    /// Codecs that decrypt observed datagrams: packets of sources and relays, and packets of receivers.
    spies: (ReceiverCodec, SourceCodec),
    /// Codecs that encrypt in the name of the source, a relay, and members.
    source: SourceCodec,
    relay: SourceCodec,
    members: BTreeMap<ReceiverId, ReceiverCodec>,
    /// The source's announcement, which codecs need before other packets.
    announced: Option<Vec<u8>>,
}

/// The description of a datagram that the attacker is to make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    /// The observed datagram to change. Bits 0 to 3: its index; bits 4 and 5: its direction; bit 6: start from an empty datagram.
    pub(super) pick: u8,
    /// Start of the change, in bytes.
    pub(super) offset: u8,
    pub(super) change: &'a [u8],
    /// Whether the changed datagram is sent as it is, without a corrected checksum and without encryption.
    pub(super) is_raw: bool,
}

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("it is not zero")
}

impl Hostile {
    pub(super) fn new(key: Option<GroupKey>, correct: fn(&mut [u8])) -> Hostile {
        let hop = key.as_ref().map(GroupKey::hop);
        let mut spy = ReceiverCodec::new(key.as_slice(), id(9_999), 1);
        spy.follow(SESSION);
        Hostile {
            correct,
            received: Default::default(),
            spies: (spy, SourceCodec::new(SESSION, key.as_ref(), SALT)),
            source: SourceCodec::new(SESSION, key.as_ref(), SALT).after(1 << 20),
            relay: SourceCodec::of_relay(SESSION, hop.as_ref(), SALT, id(9_998), 1),
            members: BTreeMap::new(),
            announced: None,
            key,
        }
    }

    /// Records an observed datagram.
    pub(super) fn record(&mut self, pool: Pool, bytes: &[u8]) {
        let plain = match &self.key {
            None => Some(bytes.to_vec()),
            Some(_) => self.open(pool, bytes),
        };
        let is_first = self.announced.is_none() && pool == Pool::Down;
        if is_first && peek(bytes).is_ok_and(|header| header.kind == Kind::Announce) {
            self.announced = Some(bytes.to_vec());
            if let Some(Ok((_, announce))) = plain.as_ref().map(|plain| parse(plain, &Newest::default())) {
                for codec in [&mut self.source, &mut self.relay] {
                    let _ = codec.encode(&mut Vec::new(), &announce, 1_472);
                }
            }
        }
        let received = &mut self.received[pool as usize];
        keep(&mut received.raw, bytes.to_vec());
        plain.into_iter().for_each(|plain| keep(&mut received.plain, plain));
    }

    /// Returns the decrypted content of a sealed datagram.
    fn open(&mut self, pool: Pool, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut sealed, mut plain) = (bytes.to_vec(), Vec::new());
        let seq = peek(bytes).ok()?.seq;
        let message = match pool.is_down() {
            true => self.spies.0.open(&mut sealed, if pool == Pool::Down { SOURCE } else { BRANCH }).ok()?.1,
            false => self.spies.1.open(&mut sealed, STRANGER).ok()?.1,
        };
        put(&mut plain, seq, &message).then_some(plain)
    }

    /// Makes a datagram. Returns it, and whether a host may accept it as part of the session.
    pub(super) fn make(
        &mut self,
        order: Order<'_>,
        is_down: bool,
        as_relay: bool,
    ) -> Option<(Vec<u8>, bool)> {
        let received = &self.received[usize::from(order.pick >> 4 & 3)];
        let stored = if order.is_raw { &received.raw } else { &received.plain };
        let base = stored.iter().rev().nth(usize::from(order.pick & 15)).filter(|_| order.pick & 0x40 == 0);
        let mut bytes = base.cloned().unwrap_or_default();
        let from = usize::from(order.offset).min(bytes.len());
        let (over, beyond) = order.change.split_at(order.change.len().min(bytes.len() - from));
        bytes[from..].iter_mut().zip(over).for_each(|(byte, change)| *byte ^= change);
        bytes.extend(beyond);
        if order.is_raw {
            return Some((bytes, self.key.is_none()));
        }
        (self.correct)(&mut bytes);
        if self.key.is_none() {
            return Some((bytes, true));
        }
        let (_, message) = parse(&bytes, &Newest::default()).ok()?;
        self.seal(&message, is_down, as_relay).map(|sealed| (sealed, true))
    }

    /// Encrypts a message with the session's key, in the name of its sender.
    fn seal(&mut self, message: &Message<'_>, is_down: bool, as_relay: bool) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let is_whole = match (message.from(), is_down) {
            (Some(from), false) => {
                let announced = self.announced.as_ref()?;
                if self.members.len() >= MAX_MEMBERS && !self.members.contains_key(&from) {
                    self.members.pop_first();
                }
                let member = self.members.entry(from).or_insert_with(|| {
                    let mut codec = ReceiverCodec::new(self.key.as_slice(), from, 0xbad);
                    let _ = codec.open(&mut announced.clone(), SOURCE);
                    codec.follow(SESSION);
                    codec
                });
                member.encode(&mut out, SESSION, message).is_ok()
            }
            _ => {
                let codec = if as_relay { &mut self.relay } else { &mut self.source };
                match message {
                    Message::Data(data) => codec.encode_data(&mut out, data).is_ok(),
                    other => codec.encode(&mut out, other, 1_472).is_ok(),
                }
            }
        };
        is_whole.then_some(out)
    }
}

fn keep(all: &mut VecDeque<Vec<u8>>, bytes: Vec<u8>) {
    if all.len() >= KEPT {
        all.pop_front();
    }
    all.push_back(bytes);
}

fn put(out: &mut Vec<u8>, seq: u32, message: &Message<'_>) -> bool {
    match message {
        Message::Data(data) => encode_data(out, SESSION, data).is_ok(),
        other => encode(out, SESSION, seq, other, 1_472).is_ok(),
    }
}
