//! The receiver's session: finds a source, collects blocks, requests missing symbols, and reports.
//!
//! [`ReceiverSession`] has no socket and no clock: it is given datagrams and the time, and returns feedback and events.
//! [`crate::driver`] connects it to the network.
//!
//! ```text
//!   Searching -- announced --> Receiving -- all verified and placed --> Confirming -- heard --> Over
//! ```

mod attaching;
mod batches;
pub(crate) mod block_sink;
mod children;
mod decoding;
mod endpoint;
mod feedback;
mod finishing;
mod flood;
mod fountain;
mod layers;
mod objections;
mod one_file;
mod outbox;
mod pages;
mod parent_link;
#[cfg(any(test, fuzzing))]
mod plain;
mod progress;
mod reachability;
mod reasons;
mod reassembly;
mod receipts;
mod role;
mod searching;
mod sequence_bounds;
pub(crate) mod service;
mod storage;
mod streams;
pub(crate) mod symbol_sink;
mod takeover;
pub(crate) mod trust;
mod window;

use crate::backoff::RequestBackoff;
use crate::config::{Destination, Durability, FilePolicy, ReplayPolicy};
use crate::endpoint::{Backlog, Transmit};
use crate::error::{EndReason, Error, JoinObstacle, StartError, TransferError};
use crate::event::{Event, RefusedPackets, Setting};
use crate::members::{alive_every, stretched};
use crate::object::Finished;
use crate::object::host::disk::Disk;
use crate::session_filter::SessionFilter;
use crate::trace::{RECEIVER, RELAY, Scope};
use crate::worker::Worker;
use attaching::Attaching;
use faircast_core::node::{Cx, Effects, Receiver};
use faircast_core::packet::{Echo, Layer, Payload, ReceiverId, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{
    Announce, DataPacket, Kind, MemberState, Message, OpenError, ParseError, ReceiverCodec, VerifyKeys, peek,
};
use layers::{ForScheme, Layers};
use objections::Objections;
use outbox::Outbox;
use parent_link::ParentLink;
use reachability::Reach;
use reasons::reason;
pub(crate) use reassembly::INCOMPLETE;
pub(crate) use role::Relaying;
use searching::Candidates;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use symbol_sink::SymbolSink;
use trust::Trust;
use window::Window;

/// Number of later packets after which a packet counts as lost, because networks reorder packets.
pub(crate) const REORDERING: u8 = 3;

/// Added to the nonce in membership messages, so that their answers differ from the answers to queries.
const JOINED: u16 = 1;

/// Minimum interval of reports about downstream changes at a relay.
const CHANGES: Span = Span::from_millis(20);

/// Time for which a completed receiver waits for the confirmation of its source.
const CONFIRM_TIMEOUT: Span = Span::from_secs(3);

/// Shortest time between two checks for results of jobs.
const LOOK_SOONEST: Span = Span::from_millis(1);

/// The setup of a receiver session.
pub(crate) struct Setup {
    pub(crate) codec: ReceiverCodec,
    /// The filter of the sessions to follow.
    pub(crate) accept: SessionFilter,
    pub(crate) id: ReceiverId,
    /// A random number that the source returns.
    pub(crate) nonce: u16,
    /// Random seed for the times at which the transport sends messages.
    pub(crate) seed: u64,
    /// The scheme's random stream, which is used by the scheme only.
    pub(crate) scheme_rng: Rng,
    /// Number of later packets after which a missing packet counts as lost.
    pub(crate) reordering: u8,
    pub(crate) host: String,
    pub(crate) destination: Destination,
    /// Files for the streams of single layers, in place of the destination.
    pub(crate) layers_to: Vec<(Layer, PathBuf)>,
    pub(crate) durability: Durability,
    /// The directory of unnamed files if the destination is not a directory.
    pub(crate) temporary: PathBuf,
    /// The rules for accepted files and their metadata.
    pub(crate) files: FilePolicy,
    /// Public keys; one of them must have signed the content.
    pub(crate) verify: Option<VerifyKeys>,
    /// The key that signs a receipt.
    pub(crate) sign_receipts: Option<faircast_wire::SigningKey>,
    /// The only accepted source, if set.
    pub(crate) only: Option<IpAddr>,
    /// Size of the IP and UDP headers of a datagram, in bytes.
    pub(crate) overhead: usize,
    pub(crate) join_timeout: Option<Span>,
    /// Maximum duration without packets of the source, or without data.
    pub(crate) idle_timeout: Span,
    pub(crate) group: SocketAddr,
    pub(crate) replay_policy: ReplayPolicy,
    /// Seconds since 1970 at session time zero.
    pub(crate) unix_secs: u64,
    /// Approximate size of the memory for incomplete blocks, bytes; see [`INCOMPLETE`].
    pub(crate) memory: usize,
    /// Hosts that may serve this receiver by unicast, and groups in which relays are searched for.
    pub(crate) parents: Vec<SocketAddr>,
    /// Whether to wait for an invitation from a source.
    pub(crate) invited: bool,
    /// Performs work on files that may take long.
    pub(crate) worker: Worker,
    pub(crate) disk: Disk,
    /// At a relay, the destination of symbols, instead of `destination`.
    pub(crate) relay: Option<Box<dyn Relaying>>,
}

/// One run of a receiver.
pub(crate) struct ReceiverSession {
    setup: Fixed,
    codec: ReceiverCodec,
    phase: Phase,
    stream: Option<Stream>,
    candidates: Candidates,
    objections: Objections,
    attaching: Option<Attaching>,
    under: ParentLink,
    service: service::Service,
    receipts: receipts::Outgoing,
    rng: Rng,
    scheme_rng: Rng,
    effects: Effects,
    events: VecDeque<Event>,
    outbox: Outbox,
    /// Delays requests.
    asks: RequestBackoff,
    clocks: Clocks,
    totals: Totals,
    failure: Option<Error>,
    finished: Option<Finished>,
    /// The obstacle to joining a session, as far as it can be derived from packets.
    seen: Option<JoinObstacle>,
    /// The obstacle one second ago, and the last reported obstacle.
    seen_before: Option<JoinObstacle>,
    seen_reported: Option<JoinObstacle>,
    scope: Scope,
}

struct Fixed {
    accept: SessionFilter,
    id: ReceiverId,
    nonce: u16,
    host: String,
    destination: Destination,
    layers_to: Vec<(Layer, PathBuf)>,
    durability: Durability,
    temporary: PathBuf,
    files: FilePolicy,
    verify: Option<VerifyKeys>,
    only: Option<IpAddr>,
    overhead: usize,
    join_timeout: Option<Span>,
    idle_timeout: Span,
    group: SocketAddr,
    replay_policy: ReplayPolicy,
    unix_secs: u64,
    reordering: u8,
    memory: usize,
    worker: Worker,
    disk: Disk,
    relay: Option<Box<dyn Relaying>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Searching,
    Receiving,
    /// The receiver has completed or failed, and waits for the source to confirm this.
    Confirming {
        until: Time,
    },
    /// The session has ended.
    Over,
}

/// The packet stream of the source that is being followed.
struct Stream {
    session: SessionId,
    source: SocketAddr,
    announced: Announce,
    announced_at: Time,
    reach: Reach,
    receiver: Box<dyn Receiver + Send>,
    layers: Layers,
    sink: Box<dyn SymbolSink>,
    /// The key and signatures of signed content.
    trust: Option<Trust>,
    /// The newest packet of the base layer.
    newest: Echo,
    newest_at: Time,
    /// Number of packets that the source had sent before its latest status.
    sent: u64,
    rtt: Span,
    spread: Span,
    since: Time,
    /// Whether the source serves this receiver later and accepts no requests now.
    deferred: bool,
    /// Whether content has arrived; earlier packets are probes.
    begun: bool,
    /// Whether content has arrived. After that, other sessions replace this session less easily.
    place_stored: bool,
    registered: bool,
    /// Whether the latest membership message was sent before the missing blocks were known.
    searched: bool,
    content_reported: bool,
    /// First name of the content, and number of other names, once known.
    title: Option<String>,
    /// Whether forged packet numbers were reported.
    forgery_reported: bool,
    blocks: Option<u32>,
    root: Option<[u8; 32]>,
    /// Number of files that the source has withdrawn. The root hash depends on them.
    withdrawn: u32,
    member_at: Time,
    member_tries: u32,
    member_sent_at: Time,
    /// Whether the latest membership message was a sign of life, which needs no answer.
    reports_alive: bool,
    /// Number of group members that take turns, as the source counts them.
    members: u32,
    /// The relays attached to this relay, as last reported.
    reported_tree: Vec<SocketAddr>,
    /// Number of downstream receivers in the last report, number of completed receivers among them, and whether one of them
    /// lacked everything.
    sent_counts: (u32, u32, bool),
    window: Window,
    /// Start time of the renaming of files, after all blocks were stored.
    finishing_since: Option<Time>,
    /// Start time of the running jobs on files; `look_at`: time of the next check whether these have ended.
    works_since: Option<Time>,
    look_at: Time,
    /// The reason for which the source has ended the session.
    closed: Option<EndReason>,
}

#[derive(Debug)]
struct Clocks {
    second_at: Time,
    received_at: Time,
    /// Whether the silence of the source was reported.
    silence_reported: bool,
}

#[derive(Debug, Default)]
struct Totals {
    packets: u64,
    lost: u64,
    bytes: u64,
    bytes_last: u64,
    /// Rate during the latest second.
    rate: Rate,
    lost_last: u64,
    packets_last: u64,
    refused: RefusedPackets,
    /// The latest fill of the socket's buffer.
    backlog: Backlog,
    symbols: u64,
    symbols_needed: u64,
    repaired: u64,
    first_packet: Option<Time>,
    finished: Time,
}

impl ReceiverSession {
    pub(crate) fn new(setup: Setup, now: Time) -> ReceiverSession {
        let rng = Rng::new(setup.seed, setup.id.get());
        let mut session = ReceiverSession {
            setup: Fixed {
                accept: setup.accept,
                id: setup.id,
                nonce: setup.nonce,
                host: setup.host,
                destination: setup.destination,
                temporary: setup.temporary,
                layers_to: setup.layers_to,
                durability: setup.durability,
                files: setup.files,
                verify: setup.verify,
                only: setup.only,
                overhead: setup.overhead,
                join_timeout: setup.join_timeout,
                idle_timeout: setup.idle_timeout,
                group: setup.group,
                replay_policy: setup.replay_policy,
                unix_secs: setup.unix_secs,
                reordering: setup.reordering,
                memory: setup.memory,
                worker: setup.worker,
                disk: setup.disk,
                relay: setup.relay,
            },
            codec: setup.codec,
            phase: Phase::Searching,
            stream: None,
            candidates: Candidates::default(),
            objections: Objections::default(),
            attaching: Attaching::new(setup.parents, setup.invited, now),
            under: ParentLink::default(),
            service: service::Service::default(),
            receipts: receipts::Outgoing::new(setup.sign_receipts),
            rng,
            scheme_rng: setup.scheme_rng,
            effects: Effects::new(),
            events: VecDeque::new(),
            outbox: Outbox::default(),
            asks: RequestBackoff::default(),
            clocks: Clocks { second_at: now + Span::from_secs(1), received_at: now, silence_reported: false },
            totals: Totals::default(),
            failure: None,
            finished: None,
            seen: None,
            seen_before: None,
            seen_reported: None,
            scope: Scope::default(),
        };
        session.scope = session.setup.scope("");
        session.look_at_the_clock(now);
        session
    }

    /// Passes the present time to the codec, if announcements are accepted depending on their age.
    fn look_at_the_clock(&mut self, now: Time) {
        if self.setup.replay_policy == ReplayPolicy::Clock {
            let unix_secs = self.setup.unix_secs + now.as_nanos() / 1_000_000_000;
            self.codec.check_time(unix_secs, ReceiverCodec::SKEW);
        }
    }

    /// Whether to take no more data out of the socket for now, because the reader of the output is too slow.
    fn waits_for_output(&mut self, now: Time) -> bool {
        let waits = self.stream.as_ref().is_some_and(|stream| stream.sink.waits_for_output());
        if waits {
            self.clocks.received_at = now; // the source is not silent: its packets are not read
            self.service.rest();
        }
        waits
    }

    /// Handles a datagram from the group. `arrived` is the kernel's time, which is not later than `now`.
    fn on_datagram(&mut self, bytes: &mut [u8], from: &SocketAddr, marked: bool, arrived: Time, now: Time) {
        if self.setup.only.is_some_and(|only| only != from.ip()) {
            return;
        }
        self.codec.set_now(now);
        let (author, is_handed_on);
        let from = match self.attaching.is_some() {
            true if self.on_agents_word(bytes, *from, now) => return,
            true => {
                (author, is_handed_on) = self.author(bytes, *from, now);
                &author
            }
            false => {
                is_handed_on = false;
                from
            }
        };
        let header = match peek(bytes) {
            Ok(header) => header,
            Err(error) => return self.on_refused(&error.into(), *from, now),
        };
        if self.is_from_elsewhere(&header, from) || self.is_uninvited(&header, from) {
            self.totals.refused.sender += 1;
            return;
        }
        if self.is_implausible(&header, arrived) {
            self.totals.refused.implausible += 1;
            return;
        }
        let raw = self.raw_for_children(&header, bytes);
        let size = (bytes.len() + self.setup.overhead) as u16;
        let mut packet = DataPacket::EMPTY;
        let mut opened = match header.kind {
            Kind::Data => self.codec.open_data(bytes, *from, &mut packet).map(|session| (session, None)),
            _ => self.codec.open(bytes, *from).map(|(session, message)| (session, Some(message))),
        };
        // Borrowed, because a move would copy the bytes of the largest message for each packet.
        let (session, message) = match &mut opened {
            Ok((session, message)) => (*session, message),
            Err(error) => return self.on_refused(error, *from, now),
        };
        if let Some(attaching) = &mut self.attaching {
            attaching.on_sign_of_life(*from);
        }
        match message {
            Some(Message::Announce(announce)) => {
                self.hand_on(raw, None, size, now);
                return self.on_announce(session, *announce, *from, now);
            }
            Some(Message::Token(token)) => return self.on_token(token, *from, now),
            Some(Message::Invite(invite)) => return self.on_invite(invite, *from, now),
            _ => {}
        }
        if let Some(Message::Status(status)) = message
            && self.stream.as_ref().is_none_or(|stream| stream.session != session || stream.source != *from)
        {
            self.on_answer(session, *from, status, now);
        }
        let Some(stream) = &mut self.stream else { return };
        if stream.session != session || stream.source != *from {
            self.totals.refused.session += 1;
            return;
        }
        self.clocks.received_at = now;
        self.hand_on(raw, message.is_none().then_some(&packet), size, now);
        match message {
            None => {
                if is_handed_on {
                    self.mark_handed_on(&mut packet.data);
                }
                self.service.on_data(now);
                self.on_data(&packet, size, marked, arrived, now);
            }
            Some(Message::Status(status)) => {
                self.check_numbers(status, arrived, now);
                let Some(stream) = &mut self.stream else { return };
                if let Some(trust) = &mut stream.trust {
                    trust.filter(status);
                }
                self.on_status(status, now);
            }
            Some(Message::Hashes(page)) => {
                let Some(stream) = &mut self.stream else { return };
                let progressed = stream.sink.on_page(page, now, &mut self.rng);
                self.progressed(progressed, now);
            }
            Some(_) => self.totals.refused.unexpected += 1,
        }
    }

    fn on_data(&mut self, packet: &DataPacket<'_>, size: u16, marked: bool, arrived: Time, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let Some(input) = stream.layers.on_packet(packet.layer, packet.data.seq, packet.data.signal, arrived)
        else {
            self.totals.refused.implausible += 1;
            return;
        };
        self.totals.packets += 1;
        self.totals.bytes += u64::from(size);
        // Probes precede the start of the session and are not reported to the scheme.
        let is_probe = packet.data.payload == Payload::NONE;
        if !is_probe {
            self.totals.first_packet.get_or_insert(now);
        }
        if let ForScheme::Subscribed(mut arrival) = input {
            (arrival.size, arrival.marked) = (size, marked);
            self.totals.lost += u64::from(arrival.lost);
            if !arrival.late && packet.layer == BASE {
                stream.newest = Echo { seq: packet.data.seq, hold: Span::ZERO };
                stream.newest_at = arrived;
                stream.window.on_packet(packet.data.seq, arrived, now);
            }
            self.join_first(now);
            let Some(stream) = &mut self.stream else { return };
            if !is_probe && !std::mem::replace(&mut stream.begun, true) {
                stream.layers.begin(packet.data.seq, now);
                arrival.lost = 0;
            }
            if !is_probe && !stream.deferred && self.phase == Phase::Receiving {
                let mut cx = Cx { now: arrived, rng: &mut self.scheme_rng, effects: &mut self.effects };
                stream.receiver.on_data(&packet.data, packet.layer, arrival, &mut cx);
                self.carry_out(now.since(arrived), now);
            }
        }
        self.data_comes((packet.layer == BASE).then_some(packet.data.seq.0));
        if self.phase == Phase::Receiving && packet.symbols > 0 {
            let Some(stream) = &mut self.stream else { return };
            if !std::mem::replace(&mut stream.place_stored, true) {
                self.keep_place();
            }
            let Some(stream) = &mut self.stream else { return };
            let progressed = stream.sink.on_symbol(packet, now, &mut self.rng);
            self.progressed(progressed, now);
        }
    }

    /// Returns the groups of the enhancement layers to join, lowest layer first. The driver leaves all other groups of layers.
    fn wanted_groups(&self) -> &[SocketAddr] {
        match &self.stream {
            Some(stream) if self.phase == Phase::Receiving => stream.layers.groups(),
            _ => &[],
        }
    }

    /// Handles a failure to join the group of a layer. The scheme observes that no packets arrive on this layer; the session
    /// continues with the lower layers.
    fn on_join_failed(&mut self, layer: Layer, why: &dyn std::fmt::Display, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if stream.layers.refuse(layer) {
            let joined = stream.layers.subscription().joined;
            self.events.push_back(Event::warning(format!(
                "cannot join layer {}, so only {joined} layers are received: {why}",
                layer.0
            )));
        }
        let subscription = stream.layers.subscription();
        let stopped = stream.sink.subscribe(subscription, now);
        self.events.push_back(Event::Layers(subscription));
        if let Err(error) = stopped {
            self.fail(error, now);
        }
    }

    /// Runs the work that is due.
    fn on_time(&mut self, now: Time) {
        if self.clocks.second_at <= now {
            // A process that was stopped for some time skips the missed seconds.
            self.clocks.second_at =
                (self.clocks.second_at + Span::from_secs(1)).max(now + Span::from_millis(1));
            self.look_at_the_clock(now);
            self.report_seen();
            self.emit_progress(now);
            self.send_tree(now);
            self.look_for_flooding(now);
            self.look_at_service(now);
            if self.phase == Phase::Receiving && self.has_lost_place() {
                self.give_way(now);
            }
        }
        let silent = now.since(self.clocks.received_at);
        self.report_silence(silent);
        self.watch_agent(now);
        if self.phase == Phase::Searching || self.may_move() {
            self.ask(now);
            self.attach(now);
        }
        self.refuse_sessions(now);
        match self.phase {
            Phase::Searching => {
                if let Some(waited) = self.setup.join_timeout.filter(|timeout| silent >= *timeout) {
                    let waited = std::time::Duration::from_nanos(waited.as_nanos());
                    let place = self.attaching.as_ref().and_then(Attaching::place);
                    let group = place.unwrap_or(self.setup.group);
                    self.failure =
                        Some(Error::Start(StartError::NoSession { group, waited, seen: self.why_nothing() }));
                    self.phase = Phase::Over;
                }
            }
            Phase::Receiving => {
                self.look_after_files(now);
                if self.phase != Phase::Receiving {
                    return;
                }
                if self.needs_no_packets() {
                    return self.report_membership(now);
                }
                let outdated = self.stream.as_ref().is_some_and(|stream| stream.sink.is_outdated(now));
                if silent >= self.setup.idle_timeout && !self.is_storing() || outdated {
                    let silent = std::time::Duration::from_nanos(silent.as_nanos());
                    self.name_unfinished();
                    self.failure = Some(Error::Transfer(TransferError::SourceSilent {
                        silent,
                        verified_bytes: self.stored_bytes(),
                        resumes: self.resumes(),
                    }));
                    self.phase = Phase::Over;
                    return;
                }
                self.look_for_data(now);
                if self.phase == Phase::Receiving {
                    self.run_timers(now);
                }
            }
            Phase::Confirming { until } => {
                if now >= until {
                    self.phase = Phase::Over;
                } else {
                    self.send_receipts(now);
                    self.report_membership(now);
                }
            }
            Phase::Over => {}
        }
    }

    /// Returns the time of the next call of [`ReceiverSession::on_time`].
    fn next_timeout(&self, now: Time) -> Time {
        let tree_at = self.watch_at().min(self.speak_at());
        let at = self.clocks.second_at.min(self.attach_at(now)).min(tree_at).min(match self.phase {
            Phase::Searching | Phase::Receiving | Phase::Confirming { .. } => {
                self.candidates.deadline().min(self.objections.deadline())
            }
            Phase::Over => Time::NEVER,
        });
        let Some(stream) = &self.stream else { return at };
        match self.phase {
            Phase::Receiving => {
                let at = at.min(stream.member_at).min(self.receipts_at()).min(stream.look_at);
                if self.needs_no_packets() {
                    return at;
                }
                // A deferred receiver sends no feedback, so the deadlines of feedback do not count.
                if stream.deferred {
                    at
                } else {
                    let asks_at = if self.under.may_ask() { stream.sink.deadline() } else { Time::NEVER };
                    at.min(stream.receiver.deadline())
                        .min(asks_at.max(self.asks.free_at()))
                        .min(stream.changes_at(self.setup.relay.as_deref()))
                        .min(stream.window.deadline())
                }
            }
            Phase::Confirming { until } => at.min(until).min(stream.member_at).min(self.receipts_at()),
            Phase::Searching | Phase::Over => at,
        }
    }

    /// Whether the receiver may leave a silent parent for another parent. It may do so until its completion is confirmed.
    fn may_move(&self) -> bool {
        match self.phase {
            Phase::Receiving => true,
            Phase::Confirming { .. } => self.failure.is_none(),
            Phase::Searching | Phase::Over => false,
        }
    }

    /// Writes the oldest pending message to `out`.
    fn next_feedback(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            let mut waiting = self.outbox.waiting.pop_front()?;
            let Some(to) = waiting.to.or_else(|| self.sends_to()) else { continue };
            waiting.hold_until(now);
            out.clear();
            // Messages that cannot be encoded are skipped, for example before the first announcement.
            if self.codec.encode(out, waiting.session, &waiting.message).is_ok() {
                self.scope.sent(&waiting.message, now);
                return Some(Transmit { segment: out.len(), to, hops: waiting.hops });
            }
        }
    }

    /// Stops early and notifies the source.
    fn leave(&mut self, now: Time) {
        self.failure = Some(Error::Transfer(TransferError::Stopped));
        self.totals.finished = now;
        self.leave_layers(now);
        self.send_membership(MemberState::Leaving, 0, now);
        self.phase = Phase::Over;
    }

    fn next_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.events.extend(self.stream.iter_mut().flat_map(|stream| stream.sink.take_events()));
        }
        self.events.pop_front()
    }

    /// Whether the session has ended because its source was lost and may be found again.
    pub(crate) const fn is_lost(&self) -> bool {
        matches!(
            self.failure,
            Some(
                Error::Transfer(TransferError::SourceRestarted)
                    | Error::Transfer(TransferError::SourceSilent { .. })
                    | Error::Transfer(TransferError::Superseded { .. })
                    | Error::Transfer(TransferError::GaveWay { .. })
            )
        )
    }

    fn on_refused(&mut self, error: &OpenError, from: SocketAddr, now: Time) {
        if matches!(error, OpenError::OtherSession(_) | OpenError::NotAnnounced(_)) {
            return;
        }
        self.totals.refused.count(error);
        self.seen = match error {
            OpenError::NeedsKey(session) => return self.object(*session, from, JoinObstacle::Sealed, now),
            OpenError::Unsealed(session) => return self.object(*session, from, JoinObstacle::Unsealed, now),
            OpenError::OtherKey { session, key } => {
                return self.object(*session, from, JoinObstacle::OtherKey(*key), now);
            }
            OpenError::Stale { .. } => Some(JoinObstacle::Stale),
            OpenError::Elsewhere { stated, from } => {
                Some(JoinObstacle::Elsewhere { stated: *stated, from: *from })
            }
            // The rest of a packet of another version cannot be read. A single such packet is sufficient evidence of the version.
            OpenError::Parse(ParseError::Version(version)) => {
                return self.object(SessionId(0), from, JoinObstacle::Version(*version), now);
            }
            // All other errors, such as a duplicate or a packet meant for a source, do not show that the keys differ.
            OpenError::Forged | OpenError::Parse(_) if self.stream.is_none() => {
                Some(JoinObstacle::DoesNotOpen)
            }
            _ => self.seen,
        };
    }

    /// Reports the obstacle to joining a session, if it persists while no session is found.
    fn report_seen(&mut self) {
        let (now, before) = (self.seen.filter(|_| self.phase == Phase::Searching), self.seen_before);
        self.seen_before = now;
        if let Some(seen) = now
            && before == now
            && self.seen_reported != now
        {
            self.seen_reported = now;
            self.events.push_back(match seen {
                JoinObstacle::NoAgents | JoinObstacle::NoRouter(_) => {
                    Event::warning_of(Setting::Role, seen.to_string())
                }
                seen => Event::warning(seen.to_string()),
            });
        }
    }

    fn stored_bytes(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.sink.stored_bytes())
    }

    /// Reports a failure of this receiver to the source, then ends.
    fn fail(&mut self, error: Error, now: Time) {
        let reason = reason(&error);
        self.scope.failed(&error, now);
        self.failure = Some(error);
        self.totals.finished = now;
        self.leave_layers(now);
        self.send_membership(MemberState::Failed, reason, now);
        self.phase = Phase::Confirming { until: now + Span::from_millis(300) };
    }
}

impl Fixed {
    fn scope(&self, session: &str) -> Scope {
        Scope::new(session, if self.relay.is_some() { RELAY } else { RECEIVER }).of(self.id)
    }

    /// Returns the congestion control of this receiver, or of a relay with downstream receivers.
    fn control(&self, scheme: &Scheme) -> Box<dyn Receiver + Send> {
        let own = self.relay.as_ref().and_then(|relay| relay.control());
        own.unwrap_or_else(|| Box::new(scheme.receiver(self.id)))
    }
}

impl Stream {
    /// Returns the time at which a relay must report that downstream receivers have joined or completed.
    fn changes_at(&self, relay: Option<&dyn Relaying>) -> Time {
        let changed = relay.is_some_and(|relay| {
            let (receivers, done) = relay.receivers();
            self.sent_counts != (receivers, done, self.lacks_everything()) || relay.has_unsent()
        });
        if changed && self.registered { self.member_sent_at + CHANGES } else { Time::NEVER }
    }

    /// Whether no block has been stored here, or by one of the downstream receivers.
    fn lacks_everything(&self) -> bool {
        self.blocks.is_none_or(|blocks| self.sink.missing() >= blocks)
    }

    /// Sets the number of group members. Members send signs of life in turns, so the interval grows with the number.
    fn set_members(&mut self, members: u32, now: Time) {
        let before = alive_every(std::mem::replace(&mut self.members, members));
        if self.reports_alive {
            self.member_at = stretched(self.member_at, now, before, alive_every(members));
        }
    }
}

/// Returns the receiver's position in the packet stream, as the echo of its reports.
fn echo(stream: &Stream, now: Time) -> Echo {
    Echo { seq: stream.newest.seq, hold: now.since(stream.newest_at) }
}

const BASE: Layer = Layer(0);
