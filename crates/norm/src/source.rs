//! The source of a session: probes receivers, sends files at the rate of TFMCC, repairs, and collects acknowledgements.
//!
//! ```text
//!   Gather -- enough receivers have answered probes --> Send -- all is sent and acknowledged --> Close -- EOT --> Over
//! ```

use super::NormSendReport;
use super::codec::{
    self, Answer, CcNodes, CcReport, Command, Feedback, FeedbackKind, Item, Message, NodeId,
    Nodes as NodeList, ObjectHeader, Packet, PayloadId, Requests, SenderMessage, SenderState, cc_flags,
    object_flags, quantities,
};
use super::error::NormError;
use super::files::Files;
use super::nodes::{Nodes, State, node_id, receiver_id};
use super::probes::Probes;
use super::repairs::{Repair, Repairs};
use faircast_core::node::{Cx, Departure, Effects, Source as _, SourceControl};
use faircast_core::packet::{Layer, Mark, Report};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnySource, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::{Datagram, Endpoint, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, IncompleteReceiver, Progress, ReceiverState};
use faircast_transport::units::mean_rate;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

const BASE: Layer = Layer(0);
/// Maximum number of datagrams in one system call, and maximum number of bytes.
const MAX_SEGMENTS: usize = 64;
const MAX_BYTES: usize = 65_000;
/// Packets whose times of sending are within this period are sent together. The default socket buffer of a receiver holds about 90
/// packets.
const BURST: Span = Span::from_micros(500);
/// Interval of probes before the first data packet.
const GATHER_EVERY: Span = Span::from_millis(250);
/// Without an expected number of receivers, the session starts this time after the first answer.
const GATHER_MORE: Span = Span::from_secs(1);
/// Minimum interval of probes. Otherwise the interval is the round-trip time of the limiting receiver (RFC 5740, 5.5.1).
const PROBE_MIN: Span = Span::from_millis(5);
/// Minimum time over which receivers may measure their received rate. Otherwise it is four round-trip times.
const MEASURED_OVER: Span = Span::from_millis(250);
/// Maximum delay of a NACK, in largest round-trip times: the default of RFC 5740.
const BACKOFF: u8 = 4;
/// Range of the stated largest round-trip time, and its value before the first measurement. Hosts that are a few milliseconds late
/// are normal, so the minimum is longer than the shortest round-trip times.
const GRTT_MIN: Span = Span::from_millis(10);
const GRTT_MAX: Span = Span::from_secs(10);
const GRTT_FIRST: Span = Span::from_millis(100);
/// Number of announcements of the end of the content without an answer (RFC 5740, 5.1.1: the robustness factor), and their minimum
/// interval. Otherwise the interval is two largest round-trip times.
const FLUSHES: u32 = 20;
const FLUSH_MIN: Span = Span::from_millis(100);
/// Number of announcements of the end of the session, and their interval.
const FAREWELLS: u32 = 3;
const FAREWELL_EVERY: Span = Span::from_millis(100);
/// Maximum number of consecutive repairs while new content waits. Without this maximum, forged requests could stop the session.
const REPAIRS_IN_A_ROW: u32 = 7;
/// Maximum number of repairs per packet of content, and in addition to that. Further requests are refused, so that forged
/// requests cannot continue the session forever.
const REPAIRS_PER_PACKET: u64 = 8;
const FREE_REPAIRS: u64 = 10_000;
/// Maximum number of files in transit. libnorm's receivers follow 256 objects and abandon older ones.
const OBJECTS_IN_TRANSIT: usize = 128;

/// Parameters of a source session.
pub(super) struct Setup {
    /// Group and port of the session.
    pub(super) group: SocketAddr,
    /// Node number of this host.
    pub(super) node: NodeId,
    /// Number of this run.
    pub(super) instance: u16,
    /// Bytes of IP and UDP headers of a packet. The scheme counts these bytes.
    pub(super) overhead: usize,
    pub(super) scheme: Scheme,
    pub(super) bounds: Bounds,
    pub(super) rng: Rng,
    pub(super) files: Files,
    pub(super) expect: Option<u32>,
    pub(super) join_timeout: Span,
    /// Start of session time, in seconds since 1970.
    pub(super) unix_secs: u64,
    pub(super) receiver_events: ReceiverEvents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Gather,
    Send,
    Close { left: u32 },
    Over,
}

/// One run of a source.
pub(crate) struct NormSource {
    setup: Setup,
    source: AnySource,
    effects: Effects,
    sequence: u16,
    next: Position,
    /// Files in transit: their indices, and the times of the latest packet or request.
    in_transit: VecDeque<(usize, Time)>,
    repairs: Repairs,
    repairs_in_a_row: u32,
    repairs_left: u64,
    nodes: Nodes,
    probes: Probes,
    /// Number of announcements of the end of the content since the latest answer or packet.
    flushes: u32,
    phase: Phase,
    clocks: Clocks,
    groups: [SocketAddr; 1],
    /// Datagrams that are sent immediately, without pacing.
    control: VecDeque<Vec<u8>>,
    report: NormSendReport,
    events: VecDeque<Event>,
    failure: Option<Error>,
    bytes_reported: u64,
    /// Rate of the latest second.
    rate: Rate,
    wire_bytes: u64,
}

/// The next new packet.
#[derive(Debug, Clone, Copy)]
struct Position {
    object: usize,
    has_name: bool,
    id: PayloadId,
}

struct Clocks {
    probe: Time,
    flush: Time,
    /// Time of the first answer to a probe.
    joined: Option<Time>,
    started: Option<Time>,
    data: Time,
    /// Time since which data is sent without a pause.
    busy: Time,
    farewell: Time,
    progress: Time,
}

/// A packet to be sent.
#[derive(Debug, Clone, Copy)]
struct Choice {
    packet: Repair,
    is_repair: bool,
}

impl NormSource {
    pub(super) fn new(setup: Setup, now: Time) -> NormSource {
        let mut source = setup.scheme.source();
        source.control(SourceControl::Limits(setup.bounds), now);
        NormSource {
            source,
            effects: Effects::new(),
            sequence: 0,
            next: Position { object: 0, has_name: false, id: PayloadId { block: 0, symbol: 0 } },
            in_transit: VecDeque::new(),
            repairs: Repairs::default(),
            repairs_in_a_row: 0,
            repairs_left: FREE_REPAIRS + REPAIRS_PER_PACKET * setup.files.symbols(),
            nodes: Nodes::default(),
            probes: Probes::new(setup.unix_secs),
            flushes: 0,
            phase: Phase::Gather,
            clocks: Clocks {
                probe: now,
                flush: now,
                joined: None,
                started: None,
                data: now,
                busy: now,
                farewell: now,
                progress: now + Span::from_secs(1),
            },
            groups: [setup.group],
            control: VecDeque::new(),
            report: NormSendReport { min_rate: Rate::UNLIMITED, ..NormSendReport::default() },
            setup,
            events: VecDeque::new(),
            failure: None,
            bytes_reported: 0,
            rate: Rate::ZERO,
            wire_bytes: 0,
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], from: IpAddr, now: Time) {
        let Ok(Packet { source, message, .. }) = codec::parse(bytes) else {
            self.report.refused += 1;
            return;
        };
        match message {
            Message::Sender(..) if source == self.setup.node => {} // its own packets
            Message::Feedback(feedback)
                if feedback.server == self.setup.node && feedback.instance == self.setup.instance =>
            {
                self.on_feedback(source, feedback, from, now);
            }
            _ => self.report.refused += 1,
        }
    }

    fn on_feedback(&mut self, node: NodeId, feedback: Feedback<'_>, from: IpAddr, now: Time) {
        let admitted = receiver_id(node).and_then(|id| Some((id, self.nodes.admit(node, from)?)));
        let Some((receiver, is_new)) = admitted else {
            self.report.refused += 1;
            return;
        };
        if is_new {
            self.report.receivers += 1;
            self.clocks.joined.get_or_insert(now);
            let address = SocketAddr::new(from, self.setup.group.port());
            self.events.push_back(Event::Joined {
                receiver: Some(receiver),
                host: from.to_string(),
                address,
            });
            self.source.control(SourceControl::Members(self.nodes.members()), now);
        }
        if let Some(cc) = feedback.cc {
            self.on_report(node, cc, feedback.response, now);
        }
        match feedback.kind {
            FeedbackKind::Nack(requests) => self.on_nack(requests, now),
            FeedbackKind::Ack { answer: Answer::Cc, .. } => self.report.answers += 1,
            FeedbackKind::Ack { answer: Answer::Flush(at), .. } => self.on_acknowledged(node, at),
        }
    }

    /// Passes a report of a receiver to the scheme.
    fn on_report(&mut self, node: NodeId, cc: CcReport, response: (u32, u32), now: Time) {
        let Some((probe, answered)) = self.probes.answered(cc.sequence, response, now) else { return };
        let rtt = now.since(answered);
        let Some(known) = self.nodes.get_mut(node) else { return };
        known.on_report(rtt, &cc);
        let packet_size = self.setup.scheme.sending().packet_size;
        let content = probe.report(&cc, answered, (rtt, packet_size));
        let (Some(content), Some(from)) = (content, receiver_id(node)) else { return };
        let report = Report { from, layer: BASE, content };
        let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
        self.source.on_report(&report, &mut cx);
        self.refuse_effects();
        if cc.flags & cc_flags::LEAVE != 0 {
            self.leave(node, "it has left the session", now);
        }
    }

    fn on_nack(&mut self, requests: Requests<'_>, now: Time) {
        self.report.naks += 1;
        if self.phase != Phase::Send || self.repairs_left == 0 {
            return;
        }
        self.flushes = 0;
        let (current, grtt) = (self.next.object.min(self.setup.files.objects.len() - 1), self.grtt());
        let object_of = |id: u16| {
            // Receivers request objects that they have seen, so the distance is not negative.
            current.checked_sub(usize::from((current as u16).wrapping_sub(id)))
        };
        for object in requests.iter().flat_map(|request| request.ranges()).map(|(first, _)| first.object) {
            let requested = object_of(object);
            if let Some((_, at)) = self.in_transit.iter_mut().find(|(object, _)| Some(*object) == requested) {
                *at = now;
            }
        }
        let sent = (self.next.object, self.next.id.block);
        self.repairs.add(requests, object_of, &self.setup.files.objects, sent, (now, grtt));
        self.repairs.schedule(now + grtt * u64::from(BACKOFF + 1));
    }

    fn on_acknowledged(&mut self, node: NodeId, at: Item) {
        let end = self.setup.files.end();
        let is_end = (at.object, at.id) == (end.object, end.id);
        let is_pending = |node: &&mut super::nodes::Node| node.state == State::Active;
        if !is_end || !self.has_sent_all() {
            self.report.refused += 1;
        } else if let Some(known) = self.nodes.get_mut(node).filter(is_pending) {
            known.state = State::Completed;
            self.report.completed += 1;
            self.flushes = 0;
        }
    }

    /// Continues without a receiver.
    fn leave(&mut self, node: NodeId, reason: &str, now: Time) {
        let (Some(receiver), Some(known)) = (receiver_id(node), self.nodes.get_mut(node)) else { return };
        let verified = known.state == State::Completed;
        if known.state == State::Gone {
            return;
        }
        known.state = State::Gone;
        let (host, reason) = (known.address.to_string(), reason.to_owned());
        self.source.control(SourceControl::Forget(receiver), now);
        self.source.control(SourceControl::Members(self.nodes.members()), now);
        if !verified {
            self.report.incomplete.push(IncompleteReceiver { host: host.clone(), reason: reason.clone() });
            self.events.push_back(Event::Left { receiver, host, verified, reason: Some(reason) });
        }
    }

    /// Fails if the scheme has requested an effect, because this source can only send data packets.
    fn refuse_effects(&mut self) {
        if let Some(effect) = self.effects.refuse() {
            self.fail(Error::effect("source", &effect));
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.phase = Phase::Over;
    }

    /// Returns the largest round-trip time that packets state.
    fn grtt(&self) -> Span {
        let seen = self.source.observe();
        match self.phase {
            Phase::Gather => GRTT_FIRST,
            _ => {
                let packet = seen.rate.span_of(self.setup.scheme.sending().packet_size.into());
                seen.rtt_max.max(packet).clamp(GRTT_MIN, GRTT_MAX)
            }
        }
    }

    /// Returns whether all content has been sent once.
    fn has_sent_all(&self) -> bool {
        self.next.object >= self.setup.files.objects.len()
    }

    /// Performs actions that are due.
    fn on_time(&mut self, now: Time) {
        if self.phase != Phase::Gather && self.source.deadline() <= now {
            let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
            self.source.on_deadline(&mut cx);
            self.refuse_effects();
        }
        match self.phase {
            Phase::Gather => self.gather(now),
            Phase::Send if self.has_sent_all() && self.repairs.is_empty() => self.flush(now),
            Phase::Send => {}
            Phase::Close { left } if self.clocks.farewell <= now => {
                self.clocks.farewell = now + FAREWELL_EVERY;
                self.phase = match left.checked_sub(1) {
                    Some(left) => {
                        self.push(SenderMessage::Command(Command::Eot));
                        Phase::Close { left }
                    }
                    None => Phase::Over,
                };
            }
            Phase::Close { .. } | Phase::Over => {}
        }
        if self.clocks.progress <= now {
            self.clocks.progress += Span::from_secs(1);
            self.emit_progress(now);
        }
    }

    /// Starts when enough receivers have answered.
    fn gather(&mut self, now: Time) {
        let waited = now.since(Time::ZERO) >= self.setup.join_timeout;
        let is_enough = match (self.setup.expect, self.clocks.joined) {
            (Some(expect), _) => self.nodes.len() as u64 >= u64::from(expect),
            (None, joined) => joined.is_some_and(|joined| now.since(joined) >= GATHER_MORE),
        };
        if !is_enough && !waited {
            return;
        }
        if self.nodes.len() == 0 {
            let waited = self.setup.join_timeout.into();
            return self.fail(NormError::NoReceiver { waited, group: self.setup.group }.into());
        }
        self.phase = Phase::Send;
        let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
        self.source.start(&mut cx);
        self.refuse_effects();
    }

    /// Announces the end of the content until all receivers have acknowledged it, or answer no more.
    fn flush(&mut self, now: Time) {
        if self.nodes.pending().next().is_none() || self.clocks.flush <= now && self.flushes >= FLUSHES {
            let silent: Vec<NodeId> = self.nodes.pending().map(|(id, _)| id).collect();
            silent.into_iter().for_each(|id| self.leave(id, "it has not acknowledged the content", now));
            return self.close(now);
        }
        if self.clocks.flush > now {
            return;
        }
        self.clocks.flush = now + (self.grtt() * 2).max(FLUSH_MIN);
        let header = self.setup.overhead + self.setup.files.fec.data_header_len();
        let room = self.setup.scheme.sending().packet_size as usize - header;
        let pending = self.nodes.pending().count();
        // Each announcement names other receivers, if one has no room for all of them.
        let skipped = (self.flushes as usize * (room / 4)) % pending;
        let mut nodes = Vec::new();
        for (id, _) in self.nodes.pending().skip(skipped).take(room / 4) {
            nodes.extend_from_slice(&id.to_be_bytes());
        }
        self.flushes += 1;
        let flush = Command::Flush { at: self.setup.files.end(), nodes: NodeList(&nodes) };
        self.push(SenderMessage::Command(flush));
    }

    fn close(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Close { .. } | Phase::Over) {
            self.phase = Phase::Close { left: FAREWELLS };
            self.clocks.farewell = now;
        }
    }

    fn push(&mut self, message: SenderMessage<'_>) {
        let mut bytes = Vec::new();
        self.encode(message, &mut bytes);
        self.control.push_back(bytes);
    }

    /// Appends a message, with the next sequence number.
    fn encode(&mut self, message: SenderMessage<'_>, out: &mut Vec<u8>) {
        let state = SenderState {
            instance: self.setup.instance,
            grtt: quantities::rtt_code(self.grtt()),
            backoff: BACKOFF,
            group_size: quantities::group_size_code(self.nodes.len()),
        };
        let (sequence, source) = (self.sequence, self.setup.node);
        codec::encode(out, &Packet { sequence, source, message: Message::Sender(state, message) });
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Clears `out` and writes the datagrams to it that must be sent now, if any.
    fn next(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        let to = self.setup.group;
        if let Some(bytes) = self.control.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(Transmit { segment: bytes.len(), to, hops: None });
        }
        if !matches!(self.phase, Phase::Gather | Phase::Send) {
            return None;
        }
        if self.clocks.probe <= now {
            self.write_probe(now, out);
            return Some(Transmit { segment: out.len(), to, hops: None });
        }
        if self.phase != Phase::Send {
            return None;
        }
        let mut segment = 0;
        for number in 0..MAX_SEGMENTS {
            let horizon = if number == 0 { now } else { now + BURST };
            let is_due = matches!(self.source.departure(BASE), Departure::At(at) if at <= horizon);
            if !is_due || out.len() + segment > MAX_BYTES {
                break;
            }
            let Some(choice) = self.choose(now) else { break };
            let len = self.len_of(choice.packet);
            if segment > 0 && len > segment {
                break;
            }
            if let Err(error) = self.write(choice, now, out) {
                self.failure.get_or_insert(error);
                self.close(now);
                return None;
            }
            segment = if segment == 0 { len } else { segment };
            if len < segment {
                break;
            }
        }
        (segment > 0).then_some(Transmit { segment, to, hops: None })
    }

    /// Writes a probe. It is a packet of the scheme, so an answer to it is a report about this packet.
    fn write_probe(&mut self, now: Time, out: &mut Vec<u8>) {
        let seen = self.source.observe();
        let mut nodes = Vec::new();
        self.nodes.write_list(seen.limiting.and_then(node_id), &mut nodes);
        let command = Command::Cc {
            sequence: self.probes.next_sequence(),
            sent: self.probes.wire_time(now),
            rate: Some(quantities::rate_code(seen.rate)),
            nodes: CcNodes(&nodes),
        };
        self.encode(SenderMessage::Command(command), out);
        let interval = self.probe_interval();
        // While no data is sent, probes only measure round-trip times: rates of receivers would be those of the probes.
        let is_active = self.phase == Phase::Gather || now.since(self.clocks.data) <= interval * 2;
        let stamp = is_active.then(|| self.depart(out.len(), now));
        let round = match stamp.map(|stamp| stamp.mark) {
            Some(Mark::Equation { round, .. }) => round,
            _ => 0,
        };
        let is_settled = now.since(self.clocks.busy) >= (seen.rtt * 4).max(MEASURED_OVER);
        self.probes.record((stamp.map(|stamp| stamp.seq), round), is_settled, now);
        self.report.probes += 1;
        self.clocks.probe = now + interval;
    }

    fn probe_interval(&self) -> Span {
        if self.phase == Phase::Gather {
            return GATHER_EVERY;
        }
        let seen = self.source.observe();
        let packet = seen.rate.span_of(self.setup.scheme.sending().packet_size.into());
        seen.rtt.max(packet).max(PROBE_MIN)
    }

    /// Counts a packet with this number of bytes of UDP payload.
    fn depart(&mut self, len: usize, now: Time) -> faircast_core::node::Stamp {
        let size = len + self.setup.overhead;
        let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
        let stamp = self.source.on_departure(BASE, size as u16, &mut cx);
        self.wire_bytes += size as u64;
        self.refuse_effects();
        stamp
    }

    /// Selects the next packet. Repairs precede new packets, up to a number of consecutive repairs while new content waits.
    fn choose(&mut self, now: Time) -> Option<Choice> {
        let new = self.new_packet(now).map(|packet| Choice { packet, is_repair: false });
        if self.repairs_in_a_row >= REPAIRS_IN_A_ROW && new.is_some() {
            return new;
        }
        let repair = self.repairs.peek(&self.setup.files.objects, now);
        repair.map(|packet| Choice { packet, is_repair: true }).or(new)
    }

    /// Returns the next new packet. While the oldest file in transit may still be requested, the number of files is limited.
    fn new_packet(&mut self, now: Time) -> Option<Repair> {
        if self.has_sent_all() {
            return None;
        }
        if self.next.has_name {
            return Some(Repair::Symbol(self.next.object, self.next.id));
        }
        let settled = self.settled_after();
        while self.in_transit.front().is_some_and(|(_, at)| now.since(*at) >= settled) {
            self.in_transit.pop_front();
        }
        (self.in_transit.len() < OBJECTS_IN_TRANSIT).then_some(Repair::Info(self.next.object))
    }

    /// Returns the time after its latest packet or request for which a file may still be requested: the delay of a NACK, the time
    /// until repairs begin, and the delay of the next NACK.
    fn settled_after(&self) -> Span {
        self.grtt() * u64::from(3 * BACKOFF)
    }

    fn len_of(&self, packet: Repair) -> usize {
        match packet {
            Repair::Info(object) => {
                self.setup.files.fec.info_header_len() + self.setup.files.objects[object].name.len()
            }
            Repair::Symbol(object, id) => {
                self.setup.files.fec.data_header_len() + self.setup.files.symbol_len(object, id)
            }
        }
    }

    fn write(&mut self, choice: Choice, now: Time, out: &mut Vec<u8>) -> Result<(), Error> {
        let (Repair::Info(at) | Repair::Symbol(at, _)) = choice.packet;
        let mut flags = object_flags::FILE | object_flags::INFO;
        let (mut symbol, mut is_parity) = (Vec::new(), false);
        if let Repair::Symbol(object, id) = choice.packet {
            self.setup.files.put(object, id, &mut symbol)?;
            is_parity = id.symbol >= self.setup.files.objects[object].block_len(id.block);
        }
        if choice.is_repair {
            flags |= object_flags::REPAIR | if is_parity { 0 } else { object_flags::EXPLICIT };
        }
        let (fec, fti) = (self.setup.files.fec, Some(self.setup.files.fti(at)));
        let object = ObjectHeader { flags, fec, id: at as u16, fti };
        let start = out.len();
        match choice.packet {
            Repair::Info(_) => {
                let name = std::mem::take(&mut self.setup.files.objects[at].name);
                self.encode(SenderMessage::Info { object, info: name.as_bytes() }, out);
                self.setup.files.objects[at].name = name;
            }
            Repair::Symbol(_, id) => {
                let block_len = self.setup.files.stated_len(at, id.block);
                self.encode(SenderMessage::Data { object, id, block_len, symbol: &symbol }, out);
            }
        }
        self.depart(out.len() - start, now);
        match choice.is_repair {
            true => {
                self.repairs.sent(choice.packet, now);
                self.repairs_in_a_row = self.repairs_in_a_row.saturating_add(1);
                self.repairs_left = self.repairs_left.saturating_sub(1);
                self.report.repairs += 1;
                self.report.parity += u64::from(is_parity);
                if self.repairs_left == 0 {
                    self.repairs = Repairs::default();
                }
            }
            false => {
                self.repairs_in_a_row = 0;
                self.report.packets += 1;
                self.report.bytes += symbol.len() as u64;
                self.advance(choice.packet);
            }
        }
        match self.in_transit.iter_mut().find(|(object, _)| *object == at) {
            Some((_, time)) => *time = now,
            None if !choice.is_repair => self.in_transit.push_back((at, now)),
            None => {}
        }
        self.clocks.started.get_or_insert(now);
        if now.since(self.clocks.data) > MEASURED_OVER.max(self.probe_interval() * 2) {
            self.clocks.busy = now;
        }
        (self.clocks.data, self.clocks.flush, self.flushes) = (now, now, 0);
        Ok(())
    }

    /// Moves to the packet after a new packet.
    fn advance(&mut self, sent: Repair) {
        let object = &self.setup.files.objects[self.next.object];
        let is_end = match sent {
            Repair::Info(_) => {
                self.next.has_name = true;
                object.block_count() == 0
            }
            Repair::Symbol(_, id) => {
                self.next.id.symbol += 1;
                if self.next.id.symbol == object.block_len(id.block) {
                    self.next.id = PayloadId { block: id.block + 1, symbol: 0 };
                }
                self.next.id.block == object.block_count()
            }
        };
        if is_end {
            let id = PayloadId { block: 0, symbol: 0 };
            self.next = Position { object: self.next.object + 1, has_name: false, id };
        }
    }

    /// Returns the time of the next call.
    fn next_timeout(&self, now: Time) -> Time {
        if !self.control.is_empty() {
            return now;
        }
        let mut wake = self.clocks.progress;
        match self.phase {
            Phase::Gather => {
                let start = match (self.setup.expect, self.clocks.joined) {
                    (None, Some(joined)) => joined + GATHER_MORE,
                    _ => Time::ZERO + self.setup.join_timeout,
                };
                let is_complete =
                    self.setup.expect.is_some_and(|expect| self.nodes.len() as u64 >= expect.into());
                wake = wake.min(self.clocks.probe).min(if is_complete { now } else { start });
            }
            Phase::Send => {
                wake = wake.min(self.clocks.probe).min(self.source.deadline()).min(self.data_at());
                if self.has_sent_all() && self.repairs.is_empty() {
                    wake =
                        wake.min(if self.nodes.pending().next().is_none() { now } else { self.clocks.flush });
                }
            }
            Phase::Close { .. } => wake = wake.min(self.clocks.farewell),
            Phase::Over => return Time::NEVER,
        }
        wake
    }

    /// Returns the time of the next data packet.
    fn data_at(&self) -> Time {
        let Departure::At(departure) = self.source.departure(BASE) else { return Time::NEVER };
        let is_free = self.next.has_name || self.in_transit.len() < OBJECTS_IN_TRANSIT;
        let new = match self.in_transit.front() {
            _ if self.has_sent_all() => Time::NEVER,
            Some((_, at)) if !is_free => *at + self.settled_after(),
            _ => Time::ZERO,
        };
        departure.max(new.min(self.repairs.begin_at().unwrap_or(Time::NEVER)))
    }

    fn emit_progress(&mut self, now: Time) {
        let seen = self.source.observe();
        if self.clocks.started.is_some() && !self.has_sent_all() {
            self.report.min_rate = self.report.min_rate.min(seen.rate);
            self.report.max_rate = self.report.max_rate.max(seen.rate);
        }
        let bytes = self.wire_bytes - self.bytes_reported;
        self.bytes_reported = self.wire_bytes;
        self.rate = Rate::from_bps(bytes as f64 * 8.0);
        let limiting = seen.limiting.and_then(node_id).and_then(|id| self.nodes.get(id));
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: self.report.bytes,
            moved_bytes: self.report.bytes,
            total_bytes: Some(self.setup.files.bytes()),
            rate: self.rate,
            allowed: Some(seen.rate),
            rtt: Some(seen.rtt.into()),
            loss: (self.report.repairs as f64 / self.report.packets.max(1) as f64).min(1.0),
            representative: limiting.map(|node| node.address.to_string()),
            receivers: self.report.receivers,
            verified: self.report.completed,
            ..Progress::default()
        }));
        if self.setup.receiver_events == ReceiverEvents::EverySecond {
            let about = (self.rate, self.setup.files.bytes());
            let states = self.nodes.states(self.setup.group.port(), about, (seen.limiting, seen.rtt));
            self.events.extend(ReceiverState::events(&states));
        }
    }
}

impl Endpoint for NormSource {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        self.on_datagram(datagram.bytes, datagram.from.ip(), now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        self.next(now, out)
    }

    fn poll_timeout(&self, now: Time) -> Time {
        self.next_timeout(now)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Receivers may send feedback to the group.
    fn groups(&self) -> &[SocketAddr] {
        &self.groups
    }

    fn stop(&mut self, now: Time) {
        let pending: Vec<NodeId> = self.nodes.pending().map(|(id, _)| id).collect();
        pending.into_iter().for_each(|id| self.leave(id, "the source was stopped", now));
        self.close(now);
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over && self.control.is_empty()
    }
}

impl Reporting for NormSource {
    type Report = NormSendReport;

    fn report(mut self) -> Result<NormSendReport, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let seen = self.source.observe();
        let started = self.clocks.started.unwrap_or(Time::ZERO);
        let sending = self.clocks.data.since(started);
        let absent = u64::from(self.setup.expect.unwrap_or(0)).saturating_sub(self.report.receivers);
        Ok(NormSendReport {
            ok: self.report.completed > 0
                && self.report.incomplete.is_empty()
                && absent == 0
                && self.has_sent_all(),
            absent,
            files: self.setup.files.objects.len() as u64,
            duration: sending.into(),
            until_data: started.since(Time::ZERO).into(),
            goodput: mean_rate(self.report.bytes, sending),
            cuts: seen.cuts,
            indications: seen.tally.indications,
            events: seen.tally.events,
            followed: seen.tally.followed,
            min_rate: self.report.min_rate.min(seen.rate),
            max_rate: self.report.max_rate.max(seen.rate),
            ..self.report
        })
    }
}
