//! An exit of an active router: the receivers behind it, and the packets that wait to be sent.

use super::binds;
use crate::event::RelayBelow;
use crate::members::Members;
use crate::trace::{RELAY, Scope};
use faircast_core::packet::{ReceiverId, Seq, SessionId};
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Announce, DataPacket, Hashes, HopKey, Member, MemberState, Message, SourceCodec, Status,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Number of sent datagrams that are cached, so that they can be sent again unchanged.
const SENT: usize = 2048;

/// Maximum number of datagrams that wait to be sent. Further datagrams are dropped, as in a network queue.
const MAX_WAITING: usize = 1024;

/// Maximum size of the answers in a status message, bytes.
const ANSWERS: usize = 600;

/// Maximum time for which repeated answers wait for the source's next status, which can carry them.
const ANSWER_EVERY: Span = Span::from_millis(20);

/// Parameters of a new exit.
#[derive(Debug)]
pub(crate) struct ExitSetup {
    /// Random number of the exit.
    pub(crate) boot: u64,
    /// Local address from which packets are sent.
    pub(crate) local: SocketAddr,
    /// Size of the IP and UDP headers of each datagram, bytes.
    pub(crate) overhead: usize,
}

/// State of an exit.
#[derive(Debug)]
pub(super) struct Exit {
    setup: ExitSetup,
    codec: Option<SourceCodec>,
    pub(super) members: Members,
    /// Sent datagrams with their packet numbers.
    sent: Vec<(u64, Vec<u8>)>,
    out: VecDeque<Out>,
    spare: Vec<Vec<u8>>,
    /// Packets that the router delays: the block number of each packet, by packet number.
    held: BTreeMap<u64, u32>,
    /// Latest status of the source.
    status: Option<Box<Status>>,
    answered_at: Time,
    /// Number of the newest packet sent at this exit.
    newest: u64,
    /// Maximum size of a datagram, bytes.
    limit: usize,
    /// Number of datagrams dropped because the queue was full.
    pub(super) dropped: u64,
}

/// A packet that waits to be sent.
#[derive(Debug)]
enum Out {
    /// A data packet, given by its packet number.
    Data(u64),
    Word(Vec<u8>),
}

impl Exit {
    pub(super) fn new(setup: ExitSetup) -> Exit {
        Exit {
            setup,
            codec: None,
            members: Members::of_relay(),
            sent: Vec::new(),
            out: VecDeque::new(),
            spare: Vec::new(),
            held: BTreeMap::new(),
            status: None,
            answered_at: Time::ZERO,
            newest: 0,
            limit: 0,
            dropped: 0,
        }
    }

    pub(super) fn begin(
        &mut self,
        session: SessionId,
        me: ReceiverId,
        key: Option<&HopKey>,
        announce: &Announce,
    ) {
        let codec = SourceCodec::of_relay(session, key, announce.salt, me, self.setup.boot);
        self.codec = Some(codec.with_given_numbers());
        self.sent = vec![(u64::MAX, Vec::new()); SENT];
        self.newest = 0;
        self.members.trace_in(Scope::new(announce.name.as_str(), RELAY));
        self.limit = usize::from(announce.packet_size).saturating_sub(self.setup.overhead);
        self.announce(announce);
    }

    pub(super) fn move_to(&mut self, local: SocketAddr, announce: &Announce) {
        self.setup.local = local;
        self.announce(announce);
    }

    /// Opens a packet from behind this exit; returns `None` if the packet is not accepted.
    pub(super) fn open<'b>(
        &mut self,
        bytes: &'b mut [u8],
        from: SocketAddr,
        now: Time,
    ) -> Option<(u64, Message<'b>)> {
        let codec = self.codec.as_mut()?;
        let form = codec.form();
        let (number, message) = codec.open(bytes, from).ok()?;
        let is_elsewhere = |id| binds(form) && self.members.is_elsewhere(id, from, now);
        if message.from().is_none_or(is_elsewhere) { None } else { Some((number, message)) }
    }

    /// Processes a member's echo. If the echo names a recent packet, the member receives the packets of this exit.
    pub(super) fn on_member(&mut self, member: &Member, now: Time) {
        let (echo, next) = (member.echo.seq, Seq(self.newest + 1));
        match member.state {
            MemberState::Asking => self.members.on_asking(member.from, next),
            _ => self.members.on_answer(member.from, (echo < next).then_some(echo), next, now),
        }
    }

    /// Whether any receiver behind the exit still needs packets.
    pub(super) fn is_wanted(&self) -> bool {
        self.members.unfinished() > 0
    }

    pub(super) fn relays(&self) -> Vec<RelayBelow> {
        self.members.relays()
    }

    /// Sends a data packet.
    pub(super) fn send(&mut self, packet: &DataPacket<'_>) {
        let Some(codec) = &mut self.codec else { return };
        let seq = packet.data.seq.0;
        self.newest = self.newest.max(seq);
        self.held.remove(&seq);
        if self.out.len() >= MAX_WAITING {
            self.dropped += 1;
            return;
        }
        let (number, bytes) = &mut self.sent[seq as usize % SENT];
        if *number != u64::MAX && *number > seq {
            return; // the slot holds a newer packet; this one is too late
        }
        bytes.clear();
        *number = match codec.encode_data(bytes, packet) {
            Ok(()) => seq,
            Err(_) => u64::MAX, // the packet number was used already, or is too old
        };
        if *number == seq {
            self.out.push_back(Out::Data(seq));
        }
    }

    /// Sends a packet again unchanged. Returns `false` if the packet is not cached any longer.
    pub(super) fn send_again(&mut self, seq: u64) -> bool {
        let is_there = self.sent.get(seq as usize % SENT).is_some_and(|(number, _)| *number == seq);
        if is_there && self.out.len() < MAX_WAITING {
            self.out.push_back(Out::Data(seq));
        }
        is_there
    }

    /// Returns the number of packets delayed by the router.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Records that the router delays a packet.
    pub(super) fn hold(&mut self, seq: u64, block: u32) {
        self.held.insert(seq, block);
        self.held = self.held.split_off(&seq.saturating_sub(SENT as u64));
    }

    /// Discards packets that were delayed, but that the router has stopped holding.
    pub(super) fn let_go(&mut self, holds: impl Fn(u64) -> bool) {
        self.held.retain(|seq, _| holds(*seq));
    }

    pub(super) fn announce(&mut self, announce: &Announce) {
        let hops = announce.hops.saturating_add(1);
        self.word(&Message::Announce(Announce { parent: self.setup.local, hops, ..*announce }));
    }

    pub(super) fn pass_page(&mut self, page: &Hashes) {
        self.word(&Message::Hashes(page.clone()));
    }

    /// Forwards a status of the source, with this exit's answers to its members.
    pub(super) fn pass_status(&mut self, status: &Status, now: Time) {
        self.status = Some(Box::new(status.clone()));
        self.answer(now);
    }

    /// Answers new, joined and completed members. The answers are sent in a copy of the source's last status.
    pub(super) fn answer(&mut self, now: Time) {
        let Some(status) = self.status.take() else { return };
        self.answered_at = now;
        let (confirmed, welcomed) = self.members.take_confirmations(ANSWERS);
        let spread = self.members.spread(now, Span::from_millis(status.spread_ms.into()));
        // Packets that this router delays will still be sent.
        let (next, complete) = match self.held.first_key_value() {
            Some((seq, block)) => (status.next_seq.min(*seq), status.complete_to.min(*block)),
            None => (status.next_seq, status.complete_to),
        };
        let relayed = Status {
            next_seq: next,
            complete_to: complete,
            members: self.members.speaking() as u32,
            spread_ms: (spread.as_secs_f64() * 1e3).ceil() as u32,
            confirmed,
            welcomed,
            flags: status.flags | Status::BY_NUMBER,
            lagging: Vec::new(),
            dropped: Vec::new(),
            ..*status.clone()
        };
        self.word(&Message::Status(relayed));
        self.status = Some(status);
    }

    /// Sends answers if a member waits for its first answer.
    pub(super) fn answer_news(&mut self, now: Time) {
        if self.members.has_confirmations() {
            self.answer(now);
        }
    }

    /// Sends repeated answers, at intervals.
    pub(super) fn answer_again(&mut self, now: Time) {
        if self.members.has_any_confirmation() && now.since(self.answered_at) >= ANSWER_EVERY {
            self.answer(now);
        }
    }

    /// Notifies the members of the end of the session.
    pub(super) fn close(&mut self, now: Time) {
        if let Some(status) = &mut self.status {
            status.flags |= Status::CLOSING;
            self.answer(now);
        }
    }

    fn word(&mut self, message: &Message<'_>) {
        let Some(codec) = &mut self.codec else { return };
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        // A message that cannot be encoded is treated like a lost message: a later message replaces it.
        match codec.encode(&mut bytes, message, self.limit) {
            Ok(_) if self.out.len() < MAX_WAITING => self.out.push_back(Out::Word(bytes)),
            _ => self.spare.push(bytes),
        }
    }

    /// Writes the next datagram to `out`; returns whether there is one.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> bool {
        while let Some(next) = self.out.pop_front() {
            out.clear();
            match next {
                Out::Data(seq) => {
                    let (number, bytes) = &self.sent[seq as usize % SENT];
                    if *number != seq {
                        continue; // a newer packet has the slot
                    }
                    out.extend_from_slice(bytes);
                }
                Out::Word(bytes) => {
                    out.extend_from_slice(&bytes);
                    self.spare.push(bytes);
                }
            }
            return true;
        }
        false
    }

    pub(super) fn has_any(&self) -> bool {
        !self.out.is_empty()
    }
}
