//! The source of a session: finds the receivers, sends slices at the rate of a scheme, and asks which blocks have arrived.
//!
//! ```text
//!   Announce -- enough receivers, and no request follows two announcements --> Probe -- all answer --> Send -- all have
//!   all slices --> End -- all confirm the end --> Over
//! ```

use super::UdpcastSendReport;
use super::copies::{Copies, Copy};
use super::feed::Feed;
use super::rendezvous::{Gathering, groups_of};
use super::roster::{Answer, Asked, Client, Roster, State};
use super::shadow::Reports;
use super::slices::{Block, Choice, Slices};
use crate::codec::{self, CAPABILITIES, ConnectReply, DATA_HEADER_LEN, Hello, Map, Message, REFUSED, ReqAck};
use crate::error::UdpcastError;
use faircast_core::node::{Cx, Departure, Effects, Source as _, SourceControl};
use faircast_core::packet::{Data, Layer, Payload, ReceiverId};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnySource, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::{Datagram, Endpoint, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, IncompleteReceiver, Progress, ReceiverState};
use faircast_transport::units::{count, mean_rate};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

const BASE: Layer = Layer(0);
/// Bytes of IP and UDP headers of a packet. Schemes count these bytes.
pub(super) const OVERHEAD: usize = 28;
/// Maximum number of datagrams in one system call, and maximum number of bytes.
const MAX_SEGMENTS: usize = 64;
const MAX_BYTES: usize = 65_000;
/// Duration of the packets that are sent together, and number of packets that may be sent together in any case.
const BURST: Span = Span::from_micros(500);
const MIN_BURST: usize = 24;
/// Duration of packets after which the next ones may be sent, as a share. A delayed source catches up by the remainder: the
/// default receive buffer of `udp-receiver` holds about 90 packets, so a longer burst would cause losses.
const SMOOTH: f64 = 0.7;
/// Interval of announcements. The session starts when no request has followed this number of announcements: otherwise a reply to
/// a request may have been lost.
const HELLO_EVERY: Span = Span::from_secs(1);
const QUIET_HELLOS: u32 = 2;
/// Maximum number of announcements after the conditions of the start are met. A host that gets no replies requests without an end.
const MAX_HELLOS: u32 = 10;
/// Interval of the first questions, and time after which a receiver that answers none of them is dropped.
const PROBE_EVERY: Span = Span::from_millis(100);
const PROBE_TIMEOUT: Span = Span::from_secs(5);
/// Limits of the interval of questions while blocks are sent. The interval is a round-trip time.
const POLL_MIN: Span = Span::from_millis(10);
const POLL_MAX: Span = Span::from_millis(50);
/// Number of blocks for which a question waits, up to this number of intervals.
const POLL_BLOCKS: u64 = 8;
const POLL_WAITS: u64 = 4;
/// Minimum interval of questions when nothing can be sent until an answer arrives.
const POLL_IDLE: Span = Span::from_millis(2);
/// Minimum time after which a question without an answer is repeated. Two round-trip times may be longer.
const POLL_AGAIN: Span = Span::from_millis(50);
/// Interval of questions at the end, and time after which receivers that do not confirm the end are dropped.
const END_EVERY: Span = Span::from_millis(50);
const END_TIMEOUT: Span = Span::from_secs(10);
/// Time for which a receiver must hold up the others before it is reported.
const NAME_AFTER: Span = Span::from_secs(1);
/// Maximum number of waiting replies and questions. Requests beyond it get no reply.
const MAX_CONTROL: usize = 4_096;
/// Interval at which a pipe is checked for content while there is no content to send.
const CHECK_PIPE: Span = Span::from_millis(5);

/// Parameters of a source session.
pub(super) struct Setup {
    /// Destination of the data, with the receivers' port.
    pub(super) group: SocketAddrV4,
    /// Destinations of announcements, without the port.
    pub(super) rendezvous: Vec<Ipv4Addr>,
    pub(super) scheme: Scheme,
    pub(super) bounds: Bounds,
    pub(super) rng: Rng,
    pub(super) feed: Feed,
    /// Size of a block, in bytes.
    pub(super) block_size: u16,
    pub(super) gathering: Gathering,
    /// Time after which a receiver that does not answer, or gets no blocks, is dropped.
    pub(super) idle_timeout: Span,
    /// Bytes of content, if known.
    pub(super) total: Option<u64>,
    pub(super) receiver_events: ReceiverEvents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Announce,
    Probe,
    Send,
    End,
    Over,
}

/// One run of a source.
pub(crate) struct UdpcastSource {
    setup: Setup,
    /// Groups at which receivers' requests arrive.
    groups: Vec<SocketAddr>,
    source: AnySource,
    effects: Effects,
    /// The next slice, if it has been read.
    staged: Option<Vec<u8>>,
    slices: Slices,
    copies: Copies,
    roster: Roster,
    reports: Reports,
    phase: Phase,
    clocks: Clocks,
    /// Number of announcements since the latest request.
    quiet: u32,
    /// Number of announcements since the conditions of the start are met.
    ready: u32,
    /// Index of the transmission after the newest question.
    polled_to: u64,
    /// Datagrams that are sent immediately, without pacing.
    control: VecDeque<(Vec<u8>, SocketAddr)>,
    report: UdpcastSendReport,
    events: VecDeque<Event>,
    failure: Option<Error>,
    bytes_reported: u64,
    wire_bytes: u64,
}

struct Clocks {
    /// Time of the next announcement, or of the next question in phases that ask at fixed intervals.
    timer: Time,
    /// Start of the phase.
    phase: Time,
    polled: Time,
    /// Time at which the first receiver has joined.
    joined: Option<Time>,
    started: Option<Time>,
    data: Time,
    /// Minimum time of the next data packet.
    next_data: Time,
    progress: Time,
    /// Time since which no block can be sent until a receiver answers.
    blocked: Option<Time>,
}

impl UdpcastSource {
    pub(super) fn new(setup: Setup, now: Time) -> UdpcastSource {
        let mut source = setup.scheme.source();
        source.control(SourceControl::Limits(setup.bounds), now);
        UdpcastSource {
            groups: groups_of(&setup.rendezvous, setup.group.port()),
            source,
            effects: Effects::new(),
            staged: None,
            slices: Slices::new(setup.block_size.into()),
            setup,
            copies: Copies::default(),
            roster: Roster::default(),
            reports: Reports::new(),
            phase: Phase::Announce,
            clocks: Clocks {
                timer: now,
                phase: now,
                polled: now,
                joined: None,
                started: None,
                data: now,
                next_data: now,
                progress: now + Span::from_secs(1),
                blocked: None,
            },
            quiet: 0,
            ready: 0,
            polled_to: 0,
            control: VecDeque::new(),
            report: UdpcastSendReport { min_rate: Rate::UNLIMITED, ..UdpcastSendReport::default() },
            events: VecDeque::new(),
            failure: None,
            bytes_reported: 0,
            wire_bytes: 0,
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Time) {
        let (IpAddr::V4(from), Ok(message)) = (from.ip(), codec::parse(bytes)) else {
            self.report.refused += 1;
            return;
        };
        let number = self.roster.number(from);
        match (message, number) {
            (Message::ConnectReq { .. }, _) => self.on_request(from, number, now),
            (Message::Go, Some(_)) if self.phase == Phase::Announce => self.probe(now),
            (Message::Disconnect, Some(number)) => self.on_disconnect(number, now),
            (Message::Ok { slice }, Some(number)) => self.on_answer(number, slice, None, now),
            (Message::Retransmit { slice, poll, present }, Some(number)) => {
                self.on_answer(number, slice, Some((poll, present)), now);
            }
            // Announcements of other sessions, and this source's own messages, arrive at the same port.
            (Message::Hello(_) | Message::Go, _) => {}
            _ => self.report.refused += 1,
        }
    }

    /// Accepts or refuses a receiver. A receiver that has answered questions and then requests again was started again. It lacks
    /// the slices before, so it is refused. At the end there is no reply: the request is for the next session at this port.
    fn on_request(&mut self, from: Ipv4Addr, known: Option<usize>, now: Time) {
        let may_join = match self.phase {
            Phase::Announce => true,
            Phase::Probe => known
                .and_then(|number| self.roster.get_mut(number))
                .is_some_and(|client| !client.has_answered()),
            Phase::Send => false,
            Phase::End | Phase::Over => return,
        };
        if self.phase == Phase::Announce
            && let Some(client) = known.and_then(|number| self.roster.get_mut(number))
        {
            client.state = State::Active; // it may have left before the start
            self.report.incomplete.retain(|left| left.host != from.to_string());
        }
        let number = match known {
            _ if !may_join => None,
            None => self.join(from),
            known => known,
        };
        if may_join {
            self.quiet = 0;
            self.clocks.joined.get_or_insert(now);
        }
        self.reply(from, number);
    }

    fn join(&mut self, from: Ipv4Addr) -> Option<usize> {
        let id = ReceiverId::new(u32::from(from).into())?;
        let number = self.roster.add(id, from, &self.setup.scheme)?;
        self.report.receivers += 1;
        let address = (from, self.setup.group.port()).into();
        self.events.push_back(Event::Joined { receiver: Some(id), host: from.to_string(), address });
        Some(number)
    }

    fn reply(&mut self, to: Ipv4Addr, number: Option<usize>) {
        let reply = ConnectReply {
            client: number.and_then(|number| i32::try_from(number).ok()).unwrap_or(REFUSED),
            block_size: self.setup.block_size.into(),
            capabilities: CAPABILITIES,
            group: *self.setup.group.ip(),
        };
        self.push(&Message::ConnectReply(reply), to);
    }

    fn on_disconnect(&mut self, number: usize, now: Time) {
        match self.phase {
            Phase::End => self.complete(number),
            Phase::Over => {}
            Phase::Announce | Phase::Probe | Phase::Send => {
                self.drop(number, "it has ended its session".to_owned(), now)
            }
        }
    }

    /// Handles an answer: which blocks of a slice a receiver has. `incomplete` has the number of the question and the map.
    fn on_answer(&mut self, number: usize, slice: u32, incomplete: Option<(u32, Map)>, now: Time) {
        self.report.answers += 1;
        if self.phase == Phase::End && slice == self.slices.base() && incomplete.is_none() {
            return self.complete(number);
        }
        let Some(at) = self.slices.position(slice) else { return };
        let answer = match incomplete {
            None => Answer::Complete,
            Some((poll, present)) => {
                let poll = self.copies.poll(poll).filter(|poll| poll.slice == slice);
                let Some(poll) = poll else { return };
                Answer::Incomplete(poll, present, self.slices.lacks(at, &present, poll.end))
            }
        };
        let (blocks, _) = self.slices.blocks(at);
        let Some(client) = self.roster.get_mut(number).filter(|client| client.state == State::Active) else {
            return;
        };
        let Some(path) = client.on_answer(at, blocks, answer, now) else { return };
        client.resolve(&self.copies, self.slices.base(), path, (now, &mut self.setup.rng), &mut self.reports);
        if let Answer::Incomplete(poll, present, _) = answer {
            self.slices.repair(at, &present, poll.end);
        }
        if self.phase == Phase::Send {
            self.source.control(SourceControl::SignOfLife, now);
        }
        self.pass_on(now);
        self.advance();
    }

    /// Passes the reports of the receiver parts to the scheme.
    fn pass_on(&mut self, now: Time) {
        for report in std::mem::take(&mut self.reports) {
            match report {
                Ok(report) => {
                    let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
                    self.source.on_report(&report, &mut cx);
                }
                Err(effect) => self.fail(Error::effect("receiver", &effect)),
            }
        }
        self.refuse_effects();
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

    /// Removes the slices that all receivers have.
    fn advance(&mut self) {
        while self.slices.is_sent(0) && self.roster.all_have(0) {
            self.slices.pop();
            self.roster.advance();
            self.clocks.blocked = None;
        }
        self.copies.forget_before(self.roster.first_needed(self.copies.end()));
    }

    fn complete(&mut self, number: usize) {
        if let Some(client) = self.roster.get_mut(number).filter(|client| client.state == State::Active) {
            client.state = State::Completed;
            self.report.completed += 1;
        }
    }

    /// Goes on without a receiver.
    fn drop(&mut self, number: usize, reason: String, now: Time) {
        let Some(client) = self.roster.get_mut(number).filter(|client| client.state == State::Active) else {
            return;
        };
        client.state = State::Gone;
        let (receiver, host) = (client.id, client.address.to_string());
        let members = self.roster.count(State::Active);
        self.source.control(SourceControl::Forget(receiver), now);
        self.source.control(SourceControl::Members(members), now);
        self.report.incomplete.push(IncompleteReceiver { host: host.clone(), reason: reason.clone() });
        let left = Event::Left { receiver, host, verified: false, reason: Some(reason) };
        self.events.push_back(left);
        self.advance();
        if members == 0 && self.phase != Phase::Announce && self.report.completed == 0 {
            self.phase = Phase::Over;
        }
    }

    /// Performs actions that are due.
    fn on_time(&mut self, now: Time) {
        match self.phase {
            Phase::Announce => self.announce(now),
            Phase::Probe => self.on_probe_time(now),
            Phase::Send => self.on_send_time(now),
            Phase::End => self.on_end_time(now),
            Phase::Over => return,
        }
        if self.clocks.progress <= now {
            self.clocks.progress += Span::from_secs(1);
            self.emit_progress(now);
        }
    }

    fn enter(&mut self, phase: Phase, now: Time) {
        (self.phase, self.clocks.phase, self.clocks.timer) = (phase, now, now);
    }

    /// Announces the session until the receivers have joined.
    fn announce(&mut self, now: Time) {
        if self.clocks.timer > now {
            return;
        }
        let joined = self.roster.count(State::Active) as u32;
        let waited = self.clocks.joined.map_or(Span::ZERO, |joined| now.since(joined));
        let is_ready = joined > 0 && self.setup.gathering.is_over(joined, waited);
        self.ready = if is_ready { self.ready + 1 } else { 0 };
        if is_ready && (self.quiet >= QUIET_HELLOS || self.ready > MAX_HELLOS) {
            return self.probe(now);
        }
        let waited = now.since(self.clocks.phase);
        if joined == 0 && self.setup.gathering.first.is_some_and(|first| waited >= first) {
            let (waited, port) = (waited.into(), self.setup.group.port());
            return self.fail(UdpcastError::NoReceiver { waited, port }.into());
        }
        self.clocks.timer = now + HELLO_EVERY;
        self.quiet += 1;
        let hello = Hello {
            capabilities: CAPABILITIES,
            group: *self.setup.group.ip(),
            block_size: self.setup.block_size,
            is_streaming: false,
        };
        for to in self.setup.rendezvous.clone() {
            self.push(&Message::Hello(hello), to);
        }
    }

    fn probe(&mut self, now: Time) {
        if self.roster.count(State::Active) > 0 {
            self.enter(Phase::Probe, now);
        }
    }

    /// Asks for the blocks of the first slice before any block is sent. This proves that packets to the group arrive, and gives
    /// the first round-trip times.
    fn on_probe_time(&mut self, now: Time) {
        if self.slices.len() == 0 {
            self.stage();
            match self.staged.take() {
                Some(slice) => self.slices.push(slice),
                None if self.setup.feed.is_drained() => return self.enter(Phase::End, now),
                None => {
                    (self.clocks.phase, self.clocks.timer) = (now, now + CHECK_PIPE);
                    return;
                }
            }
        }
        if self.roster.all_know(0) {
            return self.start(now);
        }
        if self.clocks.timer > now {
            return;
        }
        let silent: Vec<_> = self
            .roster
            .active()
            .filter(|(_, client)| !client.knows(0))
            .map(|(n, client)| (n, client.address))
            .collect();
        if now.since(self.clocks.phase) >= PROBE_TIMEOUT {
            for (number, _) in silent {
                self.drop(number, "it does not answer packets to the group".to_owned(), now);
            }
            return;
        }
        self.clocks.timer = now + PROBE_EVERY;
        if now > self.clocks.phase {
            silent.into_iter().for_each(|(number, address)| self.reply(address, Some(number)));
        }
        self.ask(0, Asked::Silent, now);
    }

    fn start(&mut self, now: Time) {
        self.enter(Phase::Send, now);
        let members = self.roster.count(State::Active);
        self.source.control(SourceControl::Members(members), now);
        self.source.start(&mut Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects });
        self.refuse_effects();
    }

    fn on_send_time(&mut self, now: Time) {
        if self.source.deadline() <= now {
            let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
            self.source.on_deadline(&mut cx);
            self.refuse_effects();
        }
        if self.slices.has_room() {
            self.stage();
            if let Some(slice) = self.staged.take() {
                self.slices.push(slice);
            } else if self.slices.len() == 0 && self.setup.feed.is_drained() {
                return self.enter(Phase::End, now);
            }
        }
        if self.poll_at() <= now {
            self.clocks.polled = now;
            self.polled_to = self.copies.end();
            let begun = (0..self.slices.len()).take_while(|at| self.slices.blocks(*at).1 > 0).count();
            (0..begun).for_each(|at| self.ask(at, Asked::InTurn, now));
        }
        self.check_receivers(now);
    }

    /// Reads the next slice, unless it has been read.
    fn stage(&mut self) {
        if self.staged.is_some() {
            return;
        }
        match self.setup.feed.take() {
            Ok(slice) => self.staged = slice,
            Err(error) => self.fail(error.into()),
        }
    }

    /// Returns the time of the next question while blocks are sent.
    fn poll_at(&self) -> Time {
        let lacks = |at: usize| self.slices.blocks(at).1 > 0 && !self.roster.all_have(at);
        if !(0..self.slices.len()).any(lacks) {
            return Time::NEVER;
        }
        let seen = self.source.observe();
        let interval = seen.rtt.clamp(POLL_MIN, POLL_MAX);
        let unasked = self.copies.end() - self.polled_to;
        let is_waiting = !self.slices.has_work(self.roster.all_know(0))
            || self.source.departure(BASE) == Departure::AfterReport;
        let wait = match unasked {
            0 => POLL_AGAIN.max(seen.rtt_max * 2),
            _ if is_waiting => POLL_IDLE,
            POLL_BLOCKS.. => interval,
            _ => interval * POLL_WAITS,
        };
        self.clocks.polled + wait
    }

    /// Asks receivers for the blocks of the slice at a position.
    fn ask(&mut self, at: usize, asked: Asked, now: Time) {
        let slice = self.slices.base().wrapping_add(at as u32);
        let number = self.copies.ask(slice, now);
        let Some(poll) = self.copies.poll(number) else { return };
        let limiting = self.source.observe().limiting;
        if let Some(ready) = self.roster.ask(at, poll, limiting, asked) {
            self.report.polls += 1;
            let slice_bytes = self.slices.bytes(at);
            let question = ReqAck { slice, slice_bytes, poll: number, ready };
            self.push(&Message::ReqAck(question), *self.setup.group.ip());
        }
    }

    /// Drops receivers that do not answer or get no blocks, and reports a receiver for which all others wait.
    fn check_receivers(&mut self, now: Time) {
        let is_blocked = self.slices.is_sent(0) && !self.slices.has_new(self.roster.all_know(0));
        self.clocks.blocked = is_blocked.then(|| self.clocks.blocked.unwrap_or(now));
        let timeout = self.setup.idle_timeout;
        let (blocks, _) = self.slices.blocks(0);
        let reason = |client: &Client| {
            if client.asked_since.is_some_and(|since| now.since(since) >= timeout) {
                return Some(format!("it has not answered for {} s", timeout.as_secs_f64()));
            }
            let is_stuck = client.stuck_since.is_some_and(|since| now.since(since) >= timeout);
            is_stuck.then(|| "it answers, but the blocks that it lacks do not arrive".to_owned())
        };
        let gone: Vec<_> =
            self.roster.active().filter_map(|(number, client)| Some((number, reason(client)?))).collect();
        gone.into_iter().for_each(|(number, reason)| self.drop(number, reason, now));
        if self.clocks.blocked.is_some_and(|since| now.since(since) >= NAME_AFTER) {
            self.name_slowest(blocks);
        }
    }

    /// Reports the receiver that lacks the most blocks of the first slice, once.
    fn name_slowest(&mut self, blocks: usize) {
        let slowest = self.roster.active_mut().max_by_key(|client| client.lacks(0, blocks));
        let Some(client) = slowest.filter(|client| !client.is_named && client.lacks(0, blocks) > 0) else {
            return;
        };
        client.is_named = true;
        let lacks = count(client.lacks(0, blocks) as u64, "block");
        let text = format!(
            "all receivers wait for {}, which lacks {lacks} of slice {}",
            client.address,
            self.slices.base()
        );
        self.events.push_back(Event::warning(text));
    }

    /// Announces the end. A receiver that has confirmed the end reads only packets to its own address, so later questions are also
    /// sent there.
    fn on_end_time(&mut self, now: Time) {
        let waiting: Vec<_> = self.roster.active().map(|(number, client)| (number, client.address)).collect();
        if waiting.is_empty() {
            self.phase = Phase::Over;
            return;
        }
        if self.clocks.timer > now {
            return;
        }
        if now.since(self.clocks.phase) >= END_TIMEOUT {
            let reason = "it has all blocks, but has not confirmed the end";
            waiting.into_iter().for_each(|(number, _)| self.drop(number, reason.to_owned(), now));
            self.phase = Phase::Over;
            return;
        }
        self.clocks.timer = now + END_EVERY;
        let mut ready = Map::FULL;
        waiting.iter().for_each(|(number, _)| ready.clear(*number));
        let slice = self.slices.base();
        let question = ReqAck { slice, slice_bytes: 0, poll: self.copies.ask(slice, now), ready };
        self.report.polls += 1;
        self.push(&Message::ReqAck(question), *self.setup.group.ip());
        if now > self.clocks.phase {
            waiting.into_iter().for_each(|(_, address)| self.push(&Message::ReqAck(question), address));
        }
    }

    fn push(&mut self, message: &Message<'_>, to: Ipv4Addr) {
        if self.control.len() < MAX_CONTROL {
            let mut bytes = Vec::new();
            codec::encode(&mut bytes, message);
            self.control.push_back((bytes, (to, self.setup.group.port()).into()));
        }
    }

    /// Clears `out` and writes the datagrams to it that must be sent now, if any.
    fn next(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if let Some((bytes, to)) = self.control.pop_front() {
            out.extend_from_slice(&bytes);
            return Some(Transmit { segment: bytes.len(), to, hops: None });
        }
        if self.phase != Phase::Send {
            return None;
        }
        if self.departure().is_none_or(|at| at > now) {
            return None;
        }
        let may_open = self.roster.all_know(0);
        let rate = self.source.observe().rate;
        let mut segment = 0;
        for number in 0..MAX_SEGMENTS {
            let sent = rate.span_of((out.len() + segment) as u64);
            let is_due = matches!(self.source.departure(BASE), Departure::At(at) if at <= now + BURST);
            let is_long = number >= MIN_BURST && sent > BURST;
            if number > 0 && (!is_due || is_long) || out.len() + segment > MAX_BYTES {
                break;
            }
            let Some(choice) = self.slices.next(may_open) else { break };
            let (Choice::New(block) | Choice::Repair(block)) = choice;
            let len = DATA_HEADER_LEN + self.slices.payload(block).len();
            if segment > 0 && len > segment {
                break;
            }
            self.write(choice, block, now, out);
            segment = if segment == 0 { len } else { segment };
            if len < segment {
                break;
            }
        }
        self.clocks.next_data = now + rate.span_of(out.len() as u64).scaled(SMOOTH);
        (segment > 0).then_some(Transmit { segment, to: self.setup.group.into(), hops: None })
    }

    /// Returns the time of the next data packet; `None` while the scheme waits for an answer.
    fn departure(&self) -> Option<Time> {
        match self.source.departure(BASE) {
            Departure::At(at) => Some(at.max(self.clocks.next_data)),
            _ => None,
        }
    }

    fn write(&mut self, choice: Choice, block: Block, now: Time, out: &mut Vec<u8>) {
        let payload = self.slices.payload(block);
        let size = DATA_HEADER_LEN + payload.len() + OVERHEAD;
        let slice_bytes = self.slices.position(block.slice).map_or(0, |at| self.slices.bytes(at));
        let data = codec::Block { slice: block.slice, number: block.number as u16, slice_bytes, payload };
        codec::encode(out, &Message::Data(data));
        match choice {
            Choice::New(_) => {
                self.report.packets += 1;
                self.report.bytes += payload.len() as u64;
            }
            Choice::Repair(_) => self.report.repairs += 1,
        }
        let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut self.effects };
        let stamp = self.source.on_departure(BASE, size as u16, &mut cx);
        let data = Data {
            seq: stamp.seq,
            sent_at: now,
            rate: stamp.rate.bps() as f32,
            payload: Payload::NONE,
            flags: stamp.flags,
            signal: stamp.signal,
            mark: stamp.mark,
        };
        let copy = Copy { data, size: size as u16, slice: block.slice, block: block.number as u16 };
        let index = self.copies.push(copy);
        self.slices.sent(choice, index);
        self.wire_bytes += size as u64;
        self.clocks.started.get_or_insert(now);
        self.clocks.data = now;
        self.refuse_effects();
    }

    /// Returns the time of the next call.
    fn next_timeout(&self, now: Time) -> Time {
        if !self.control.is_empty() {
            return now;
        }
        let wake = match self.phase {
            Phase::Announce | Phase::Probe | Phase::End => self.clocks.timer,
            Phase::Send => {
                let mut wake = self.source.deadline().min(self.poll_at());
                if self.slices.has_work(self.roster.all_know(0)) {
                    wake = wake.min(self.departure().unwrap_or(Time::NEVER));
                } else if self.slices.has_room() {
                    wake = wake.min(now + CHECK_PIPE);
                }
                wake
            }
            Phase::Over => return Time::NEVER,
        };
        wake.min(self.clocks.progress)
    }

    fn emit_progress(&mut self, now: Time) {
        let seen = self.source.observe();
        if self.phase == Phase::Send {
            self.report.min_rate = self.report.min_rate.min(seen.rate);
            self.report.max_rate = self.report.max_rate.max(seen.rate);
        }
        let bytes = self.wire_bytes - self.bytes_reported;
        self.bytes_reported = self.wire_bytes;
        let address = |id: ReceiverId| u32::try_from(id.get()).ok().map(Ipv4Addr::from);
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: self.report.bytes,
            moved_bytes: self.report.bytes,
            total_bytes: self.setup.total,
            rate: Rate::from_bps(bytes as f64 * 8.0),
            allowed: Some(seen.rate),
            rtt: Some(seen.rtt.into()),
            loss: (self.report.repairs as f64 / self.report.packets.max(1) as f64).min(1.0),
            representative: seen.limiting.and_then(address).map(|address| address.to_string()),
            receivers: self.roster.len() as u64,
            verified: self.report.completed,
            ..Progress::default()
        }));
        if self.setup.receiver_events == ReceiverEvents::EverySecond {
            let limiting = (seen.limiting, seen.rtt);
            let states = self.roster.states(&self.slices, self.setup.group.port(), limiting);
            self.events.extend(ReceiverState::events(&states));
        }
    }
}

impl Endpoint for UdpcastSource {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        self.on_datagram(datagram.bytes, datagram.from, now);
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

    fn groups(&self) -> &[SocketAddr] {
        &self.groups
    }

    /// Ends the session at once. The protocol has no message for an early end: an announced end would make incomplete content
    /// count as complete.
    fn stop(&mut self, now: Time) {
        let active: Vec<usize> = self.roster.active().map(|(number, _)| number).collect();
        active.into_iter().for_each(|number| self.drop(number, "the source was stopped".to_owned(), now));
        self.phase = Phase::Over;
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over && self.control.is_empty()
    }
}

impl Reporting for UdpcastSource {
    type Report = UdpcastSendReport;

    fn report(mut self) -> Result<UdpcastSendReport, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let seen = self.source.observe();
        let started = self.clocks.started.unwrap_or(Time::ZERO);
        let sending = self.clocks.data.since(started);
        let absent =
            u64::from(self.setup.gathering.expect.unwrap_or(0)).saturating_sub(self.report.receivers);
        Ok(UdpcastSendReport {
            ok: self.report.completed > 0 && self.report.incomplete.is_empty() && absent == 0,
            absent,
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
