//! The receiver of a session: requests to take part, answers questions about its blocks, and delivers slices in order.
//!
//! ```text
//!   Searching -- a reply with a number --> Receiving -- a question about a slice of 0 bytes --> Ending -- silence --> Over
//! ```

use super::UdpcastReceiveReport;
use super::rendezvous::groups_of;
use super::source::OVERHEAD;
use crate::codec::{
    self, ASYNCHRONOUS, Block, CAPABILITIES, ConnectReply, DATA_HEADER_LEN, Hello, MAP_BITS, Map, Message,
    REFUSED, ReqAck,
};
use crate::error::UdpcastError;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::endpoint::{Backlog, Datagram, Endpoint, HostEvent, Transmit};
use faircast_transport::error::{Error, JoinObstacle, StartError, StorageError};
use faircast_transport::event::{Event, Progress};
use faircast_transport::units::mean_rate;
use std::collections::VecDeque;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Interval of requests until a sender replies.
const REQUEST_EVERY: Span = Span::from_secs(1);
/// Duration of silence after the end of the content, after which the receiver leaves. The sender may repeat its last question.
const EXIT_WAIT: Span = Span::from_millis(500);
/// Maximum number of slices that are stored at the same time. Senders send a slice only after all receivers have confirmed the
/// slice two before it.
const MAX_SLICES: usize = 2;
/// Maximum size of a block, in bytes: a datagram of this size fits into a frame of 9000 bytes.
const MAX_BLOCK: usize = 9_000 - OVERHEAD - DATA_HEADER_LEN;
/// Maximum number of waiting answers.
const MAX_ANSWERS: usize = 1_024;

/// Parameters of a receiver session.
pub(super) struct Setup {
    /// Port of receivers. The sender has the next port.
    pub(super) port: u16,
    /// Destinations of requests.
    pub(super) rendezvous: Vec<Ipv4Addr>,
    /// The group of the configuration, for messages.
    pub(super) group: SocketAddr,
    /// The only sender from which messages are accepted.
    pub(super) only: Option<IpAddr>,
    pub(super) join_timeout: Option<Span>,
    pub(super) idle_timeout: Span,
    /// Size of the receive buffer, in bytes.
    pub(super) buffer: u32,
}

/// Function that opens the destination of the content, once the sender is known.
pub(super) type Open = Box<dyn FnMut(Ipv4Addr) -> Result<Box<dyn Write + Send>, Error> + Send>;

pub(crate) struct UdpcastReceiver {
    setup: Setup,
    open: Open,
    session: Option<Session>,
    groups: Vec<SocketAddr>,
    phase: Phase,
    request_at: Time,
    answers: VecDeque<(Vec<u8>, SocketAddr)>,
    report: UdpcastReceiveReport,
    events: VecDeque<Event>,
    failure: Option<Error>,
    progress_at: Time,
    wire_bytes: u64,
    reported: Reported,
}

/// State at the last progress event.
#[derive(Debug, Clone, Copy, Default)]
struct Reported {
    wire_bytes: u64,
    packets: u64,
    requests: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Searching,
    Receiving,
    /// All content has arrived; the receiver leaves at this time.
    Ending(Time),
    Over,
}

/// The session of one sender.
struct Session {
    sender: SocketAddr,
    number: usize,
    block_size: usize,
    writer: Box<dyn Write + Send>,
    /// Number of the first slice in `slices`, which is the next one to be written.
    next: u32,
    slices: VecDeque<Option<Slice>>,
    first_at: Option<Time>,
    data_at: Time,
    last_received_at: Time,
}

/// A slice that has not been written.
struct Slice {
    bytes: Vec<u8>,
    present: Map,
    missing: usize,
}

impl Slice {
    fn new(len: usize, block_size: usize) -> Slice {
        let blocks = len.div_ceil(block_size);
        Slice { bytes: vec![0; len], present: Map::EMPTY, missing: blocks }
    }
}

impl UdpcastReceiver {
    pub(super) fn new(setup: Setup, open: Open, now: Time) -> UdpcastReceiver {
        UdpcastReceiver {
            groups: groups_of(&setup.rendezvous, setup.port),
            setup,
            open,
            session: None,
            phase: Phase::Searching,
            request_at: now,
            answers: VecDeque::new(),
            report: UdpcastReceiveReport::default(),
            events: VecDeque::new(),
            failure: None,
            progress_at: now + Span::from_secs(1),
            wire_bytes: 0,
            reported: Reported::default(),
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Time) -> Result<(), Error> {
        let IpAddr::V4(address) = from.ip() else { return Ok(()) };
        if self.phase == Phase::Over || self.setup.only.is_some_and(|only| only != from.ip()) {
            return Ok(());
        }
        let Ok(message) = codec::parse(bytes) else {
            self.report.refused += 1;
            return Ok(());
        };
        let Some(session) = &mut self.session else {
            return match message {
                Message::Hello(hello) => self.on_hello(hello, from, address),
                Message::ConnectReply(reply) => self.on_reply(reply, from, address, now),
                _ => Ok(()), // of a session that this receiver is not part of
            };
        };
        if session.sender != from {
            return Ok(());
        }
        session.last_received_at = now;
        if let Phase::Ending(_) = self.phase {
            self.phase = Phase::Ending(now + EXIT_WAIT);
        }
        self.wire_bytes += (bytes.len() + OVERHEAD) as u64;
        match message {
            Message::Data(block) => self.on_block(block, now),
            Message::ReqAck(question) => self.on_question(question, now),
            // Parity is not needed: the sender repeats what is missing.
            _ => Ok(()),
        }
    }

    /// Requests to take part in an announced session.
    fn on_hello(&mut self, hello: Hello, from: SocketAddr, address: Ipv4Addr) -> Result<(), Error> {
        if hello.capabilities & ASYNCHRONOUS != 0 {
            return Err(UdpcastError::Asynchronous(address).into());
        }
        self.request(from);
        Ok(())
    }

    fn request(&mut self, to: SocketAddr) {
        let request = Message::ConnectReq { capabilities: CAPABILITIES, receive_buffer: self.setup.buffer };
        self.say(&request, to);
    }

    fn on_reply(
        &mut self,
        reply: ConnectReply,
        from: SocketAddr,
        address: Ipv4Addr,
        now: Time,
    ) -> Result<(), Error> {
        if reply.client == REFUSED {
            return Err(UdpcastError::Refused(address).into());
        }
        let number = usize::try_from(reply.client).ok().filter(|number| *number < MAP_BITS);
        let size = usize::try_from(reply.block_size).ok().filter(|size| (1..=MAX_BLOCK).contains(size));
        let (Some(number), Some(block_size)) = (number, size) else {
            self.report.refused += 1;
            return Ok(());
        };
        // A sender with a single receiver may choose to send to its address only.
        if reply.group.is_multicast() {
            let group = (reply.group, self.setup.port).into();
            if !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
        self.begin(number, block_size, from, address, now)
    }

    fn begin(
        &mut self,
        number: usize,
        block_size: usize,
        from: SocketAddr,
        address: Ipv4Addr,
        now: Time,
    ) -> Result<(), Error> {
        self.session = Some(Session {
            sender: from,
            number,
            block_size,
            writer: (self.open)(address)?,
            next: 0,
            slices: VecDeque::new(),
            first_at: None,
            data_at: now,
            last_received_at: now,
        });
        self.phase = Phase::Receiving;
        self.events.push_back(Event::Joined { receiver: None, host: address.to_string(), address: from });
        Ok(())
    }

    fn on_block(&mut self, block: Block<'_>, now: Time) -> Result<(), Error> {
        self.report.packets += 1;
        let Some(session) = &mut self.session else { return Ok(()) };
        session.first_at.get_or_insert(now);
        session.data_at = now;
        let block_size = session.block_size;
        let Some(slice) = session.slice(block.slice, block.slice_bytes, self.report.bytes)? else {
            self.report.duplicates += 1;
            return Ok(());
        };
        let number = usize::from(block.number);
        let from = number * block_size;
        let len = slice.bytes.len().saturating_sub(from).min(block_size);
        let Some(payload) = block.payload.get(..len).filter(|payload| !payload.is_empty()) else {
            self.report.refused += 1;
            return Ok(());
        };
        if slice.present.has(number) {
            self.report.duplicates += 1;
            return Ok(());
        }
        slice.present.set(number);
        slice.missing -= 1;
        slice.bytes[from..from + len].copy_from_slice(payload);
        let written = session.deliver().map_err(StorageError::Pipe)?;
        self.report.bytes += written;
        Ok(())
    }

    /// Answers a question at once.
    fn on_question(&mut self, question: ReqAck, now: Time) -> Result<(), Error> {
        let bytes = self.report.bytes;
        let Some(session) = &mut self.session else { return Ok(()) };
        if question.ready.has(session.number) {
            return Ok(());
        }
        let (slice, sender) = (question.slice, session.sender);
        let answer = if session.has_written(slice) {
            Some(Message::Ok { slice })
        } else if question.slice_bytes == 0 {
            // The sender announces the end only when all receivers have all slices.
            (slice == session.next && session.slices.iter().all(Option::is_none))
                .then_some(Message::Ok { slice })
        } else {
            session.slice(slice, question.slice_bytes, bytes)?.map(|known| match known.missing {
                0 => Message::Ok { slice },
                _ => Message::Retransmit { slice, poll: question.poll, present: known.present },
            })
        };
        if question.slice_bytes == 0
            && slice == session.next
            && answer.is_some()
            && self.phase == Phase::Receiving
        {
            session.writer.flush().map_err(StorageError::Pipe)?;
            self.phase = Phase::Ending(now + EXIT_WAIT);
            self.report.ok = true;
        }
        let Some(answer) = answer else { return Ok(()) };
        self.report.requests += u64::from(matches!(answer, Message::Retransmit { .. }));
        self.say(&answer, sender);
        Ok(())
    }

    fn say(&mut self, message: &Message<'_>, to: SocketAddr) {
        if self.answers.len() < MAX_ANSWERS {
            let mut bytes = Vec::new();
            codec::encode(&mut bytes, message);
            self.answers.push_back((bytes, to));
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.leave();
    }

    /// Notifies the sender of the end, and ends.
    fn leave(&mut self) {
        if let (Some(session), true) = (&self.session, self.phase != Phase::Over) {
            let sender = session.sender;
            self.say(&Message::Disconnect, sender);
        }
        self.phase = Phase::Over;
    }

    /// Performs actions that are due.
    fn on_time(&mut self, now: Time) {
        match self.phase {
            Phase::Searching => {
                if self.request_at <= now {
                    self.request_at = now + REQUEST_EVERY;
                    for to in self.setup.rendezvous.clone() {
                        self.request((to, self.setup.port.saturating_add(1)).into());
                    }
                }
                self.check_join_timeout(now);
            }
            Phase::Receiving => self.check_silence(now),
            Phase::Ending(at) if at <= now => self.leave(),
            Phase::Ending(_) | Phase::Over => {}
        }
        if self.progress_at <= now {
            self.progress_at += Span::from_secs(1);
            self.emit_progress(now);
        }
    }

    fn check_join_timeout(&mut self, now: Time) {
        let Some(wait) = self.setup.join_timeout.filter(|wait| now.since(Time::ZERO) >= *wait) else {
            return;
        };
        let packets = self.report.refused;
        self.fail(Error::Start(StartError::NoSession {
            group: self.setup.group,
            waited: wait.into(),
            seen: (packets > 0).then_some(JoinObstacle::OtherFormat { packets, format: "udpcast" }),
        }));
    }

    fn check_silence(&mut self, now: Time) {
        let silent = self.session.as_ref().map_or(Span::ZERO, |session| now.since(session.last_received_at));
        if silent >= self.setup.idle_timeout {
            self.fail(UdpcastError::Silent { silent: silent.into(), bytes: self.report.bytes }.into());
        }
    }

    fn next_timeout(&self) -> Time {
        if !self.answers.is_empty() {
            return Time::ZERO;
        }
        let wake = match (self.phase, &self.session) {
            (Phase::Searching, _) => {
                let timeout = self.setup.join_timeout.map_or(Time::NEVER, |wait| Time::ZERO + wait);
                timeout.min(self.request_at)
            }
            (Phase::Receiving, Some(session)) => session.last_received_at + self.setup.idle_timeout,
            (Phase::Ending(at), _) => at,
            (Phase::Over | Phase::Receiving, _) => Time::NEVER,
        };
        wake.min(self.progress_at)
    }

    fn emit_progress(&mut self, now: Time) {
        if self.session.is_none() {
            return;
        }
        let bytes = self.wire_bytes - self.reported.wire_bytes;
        let requests = self.report.requests - self.reported.requests;
        let packets = self.report.packets - self.reported.packets;
        self.reported = Reported {
            wire_bytes: self.wire_bytes,
            packets: self.report.packets,
            requests: self.report.requests,
        };
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: self.report.bytes,
            moved_bytes: self.report.bytes,
            rate: Rate::from_bps(bytes as f64 * 8.0),
            loss: requests as f64 / (packets + requests).max(1) as f64,
            ..Progress::default()
        }));
    }
}

impl Session {
    /// Returns whether all of a slice has been written.
    fn has_written(&self, slice: u32) -> bool {
        (slice.wrapping_sub(self.next) as i32) < 0
    }

    /// Returns a slice, which has this number of bytes; `None` if it has been written, or is too far ahead.
    fn slice(&mut self, number: u32, bytes: u32, written: u64) -> Result<Option<&mut Slice>, UdpcastError> {
        let at = number.wrapping_sub(self.next) as usize;
        if at >= MAX_SLICES || bytes == 0 {
            return Ok(None);
        }
        let contradiction = |what| {
            let from = match self.sender.ip() {
                IpAddr::V4(from) => from,
                IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
            };
            UdpcastError::Contradiction { from, what, bytes: written }
        };
        let len = bytes as usize;
        if len > MAP_BITS * self.block_size {
            return Err(contradiction("a slice has more blocks than a map"));
        }
        let block_size = self.block_size;
        if self.slices.get(at).and_then(Option::as_ref).is_some_and(|slice| slice.bytes.len() != len) {
            return Err(contradiction("the size of a slice changes"));
        }
        while self.slices.len() <= at {
            self.slices.push_back(None);
        }
        Ok(self.slices.get_mut(at).map(|slice| slice.get_or_insert_with(|| Slice::new(len, block_size))))
    }

    /// Writes the slices that are complete. Returns the number of bytes.
    fn deliver(&mut self) -> std::io::Result<u64> {
        let mut written = 0;
        while let Some(Some(slice)) = self.slices.front()
            && slice.missing == 0
        {
            self.writer.write_all(&slice.bytes)?;
            written += slice.bytes.len() as u64;
            self.slices.pop_front();
            self.next = self.next.wrapping_add(1);
        }
        Ok(written)
    }
}

impl Endpoint for UdpcastReceiver {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, now: Time) {
        if let Err(error) = self.on_datagram(datagram.bytes, datagram.from, now) {
            self.fail(error);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, _now: Time) {
        match notice {
            HostEvent::Backlog(Backlog { dropped, .. }) => self.report.dropped_local = dropped,
            HostEvent::JoinFailed { why, .. } => {
                self.events.push_back(Event::warning(format!("cannot join the group of the data: {why}")));
            }
            HostEvent::Drained | HostEvent::NetworkChanged { .. } => {}
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        let (bytes, to) = self.answers.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(Transmit { segment: bytes.len(), to, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        if self.answers.is_empty() { self.next_timeout() } else { now }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn groups(&self) -> &[SocketAddr] {
        &self.groups
    }

    fn stop(&mut self, _now: Time) {
        self.leave();
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over && self.answers.is_empty()
    }
}

impl Reporting for UdpcastReceiver {
    type Report = UdpcastReceiveReport;

    fn report(mut self) -> Result<UdpcastReceiveReport, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let duration = self
            .session
            .as_ref()
            .map_or(Span::ZERO, |session| session.data_at.since(session.first_at.unwrap_or(session.data_at)));
        Ok(UdpcastReceiveReport {
            duration: duration.into(),
            goodput: mean_rate(self.report.bytes, duration),
            ..self.report
        })
    }
}
