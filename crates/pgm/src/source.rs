//! The source of a session over PGM: selects packets, determines their times of sending, and processes NAKs.
//!
//! ```text
//!   LeadIn -- every receiver has had time to hear of the source --> Sending -- no more content, nothing
//!   is missing for `linger` --> Closing -- three times FIN --> Over
//! ```

use super::feed::{Feed, Take};
use super::reporters::Reporters;
use super::window::{Repair, Sent, TransmitWindow};
use super::{PgmSendReport, WindowLimits, address_of, receiver_id};
use crate::codec::{
    self, Ack, Body, Data, Nak, NakList, Options, OwnOption, Packet, PgmccData, PgmccFeedback, Spm, Tsi,
    data_len,
};
use crate::error::PgmError;
use faircast_core::node::{Cx, Departure, Effects, Source as _, SourceControl, Stamp};
use faircast_core::packet::{Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use faircast_core::rate::Bounds;
use faircast_core::rng::Rng;
use faircast_core::schemes::AnySource;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::config::ReceiverEvents;
use faircast_transport::endpoint::{Datagram, Endpoint, Transmit};
use faircast_transport::error::{Error, StorageError};
use faircast_transport::event::{Event, Progress, ReceiverState};
use faircast_transport::units::mean_rate;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const BASE: Layer = Layer(0);
/// Bytes of IP and UDP headers of a packet. Schemes count these bytes.
pub(super) const OVERHEAD: usize = 28;
/// Maximum number of datagrams in one system call, and maximum number of bytes.
const MAX_SEGMENTS: usize = 64;
const MAX_BYTES: usize = 65_000;
/// Packets whose times of sending are within this period are sent together.
const BURST: Span = Span::from_millis(1);
/// Duration of the announcements of the empty window before the first packet is sent, and their interval. Without these
/// announcements, a receiver could not detect the loss of packets before the first packet that it receives.
const LEAD_IN: Span = Span::from_millis(1_000);
const LEAD_IN_EVERY: Span = Span::from_millis(100);
/// Interval of SPMs while data packets are sent, and after a long pause of data packets (RFC 3208, 5.1.4: ambient SPMs).
const AMBIENT: Span = Span::from_secs(1);
/// Intervals between SPMs after the newest data packet, by which receivers detect the loss of this packet (5.1.4: heartbeat
/// SPMs).
const HEARTBEATS: [Span; 6] = [
    Span::from_millis(100),
    Span::from_millis(100),
    Span::from_millis(100),
    Span::from_millis(200),
    Span::from_millis(400),
    Span::from_millis(800),
];
/// Minimum interval between SPMs that answer requests.
const SPM_SPACING: Span = Span::from_millis(20);
/// Number of SPMs that announce the end of the session, and their interval.
const FINS: u8 = 3;
const FIN_EVERY: Span = Span::from_millis(100);
/// Limits of the minimum interval between two transmissions of a packet. The interval is the longest round-trip time in the
/// group: NAKs that arrive earlier request a repair that is still in transit.
const SUPPRESS_MIN: Span = Span::from_millis(20);
const SUPPRESS_MAX: Span = Span::from_millis(200);
/// Maximum number of consecutive repairs while new content waits. Without this maximum, a receiver that requests all packets
/// could stop the session.
const REPAIRS_IN_A_ROW: u32 = 3;
/// Maximum number of NCFs per second. Further NAKs are processed without a confirmation.
const MAX_CONFIRMATIONS: u32 = 1_000;
/// Interval at which a pipe is checked for content while there is no content to send.
const POLL: Span = Span::from_millis(5);

/// Parameters of a source session.
pub(super) struct Setup {
    pub(super) tsi: Tsi,
    /// PGM's own destination port.
    pub(super) data_port: u16,
    /// This host's address on the network.
    pub(super) local: Ipv4Addr,
    pub(super) group: Ipv4Addr,
    /// Destination of data: group and UDP port.
    pub(super) to: SocketAddr,
    pub(super) source: AnySource,
    pub(super) scheme_number: u8,
    pub(super) bounds: Bounds,
    pub(super) rng: Rng,
    pub(super) feed: Feed,
    /// Maximum length of a payload, in bytes.
    pub(super) room: usize,
    pub(super) window: WindowLimits,
    pub(super) linger: Span,
    /// Number of the first packet.
    pub(super) first: u32,
    /// Bytes of content, if known.
    pub(super) total: Option<u64>,
    pub(super) receiver_events: ReceiverEvents,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    LeadIn,
    Sending,
    Closing { left: u8 },
    Over,
}

/// One run of a source.
pub(crate) struct PgmSource {
    tsi: Tsi,
    data_port: u16,
    local: Ipv4Addr,
    group: Ipv4Addr,
    to: SocketAddr,
    source: AnySource,
    scheme_number: u8,
    rng: Rng,
    effects: Effects,
    feed: Feed,
    /// The next payload, if there is one.
    staged: Option<Option<codec::Fragment>>,
    payload: Vec<u8>,
    drained: bool,
    window: TransmitWindow,
    repairs: VecDeque<u64>,
    /// Number of repairs since the last new packet.
    repairs_in_a_row: u32,
    /// Start of the present second, and number of NCFs sent in it.
    confirmations: (Time, u32),
    /// Datagrams that are sent immediately, without pacing; `control_lens` has their lengths.
    control: Vec<u8>,
    control_lens: VecDeque<usize>,
    linger: Span,
    phase: Phase,
    clocks: Clocks,
    spm_sqn: u32,
    heartbeat: usize,
    /// Bytes of the newest data packet's header and options.
    header: usize,
    reporters: Reporters,
    receiver_events: ReceiverEvents,
    total: Option<u64>,
    report: PgmSendReport,
    events: VecDeque<Event>,
    failure: Option<Error>,
    bytes_reported: u64,
    wire_bytes: u64,
}

struct Clocks {
    spm_at: Time,
    spm_sent: Time,
    started: Option<Time>,
    data_at: Time,
    /// Time of the latest sent or requested packet.
    busy_at: Time,
    progress_at: Time,
    phase_at: Time,
}

impl PgmSource {
    pub(super) fn new(setup: Setup, now: Time) -> PgmSource {
        let mut session = PgmSource {
            tsi: setup.tsi,
            data_port: setup.data_port,
            local: setup.local,
            group: setup.group,
            to: setup.to,
            source: setup.source,
            scheme_number: setup.scheme_number,
            rng: setup.rng,
            effects: Effects::new(),
            feed: setup.feed,
            staged: None,
            payload: Vec::with_capacity(setup.room),
            drained: false,
            window: TransmitWindow::new(setup.window, setup.room, setup.first.into()),
            repairs: VecDeque::new(),
            repairs_in_a_row: 0,
            confirmations: (now, 0),
            control: Vec::new(),
            control_lens: VecDeque::new(),
            linger: setup.linger,
            phase: Phase::LeadIn,
            clocks: Clocks {
                spm_at: now,
                spm_sent: Time::ZERO,
                started: None,
                data_at: now,
                busy_at: now,
                progress_at: now + Span::from_secs(1),
                phase_at: now + LEAD_IN,
            },
            spm_sqn: 0,
            heartbeat: 0,
            header: codec::DATA_HEADER_LEN,
            reporters: Reporters::default(),
            receiver_events: setup.receiver_events,
            total: setup.total,
            report: PgmSendReport { min_rate: Rate::UNLIMITED, ..PgmSendReport::default() },
            events: VecDeque::new(),
            failure: None,
            bytes_reported: 0,
            wire_bytes: 0,
        };
        session.source.control(SourceControl::Limits(setup.bounds), now);
        session
    }

    /// Processes a datagram to this host.
    fn on_datagram(&mut self, bytes: &[u8], from: SocketAddr, now: Time) {
        let IpAddr::V4(from) = from.ip() else {
            self.report.refused += 1;
            return;
        };
        match codec::parse(bytes) {
            Ok(packet) if packet.tsi() == self.tsi && packet.source_port == self.data_port => {
                self.on_packet(&packet, from, now);
            }
            _ => self.report.refused += 1,
        }
    }

    fn on_packet(&mut self, packet: &Packet<'_>, from: Ipv4Addr, now: Time) {
        let Some(id) = receiver_id(from) else { return };
        let _ = self.reporters.of(id);
        self.report.receivers = self.reporters.count();
        match packet.body {
            Body::Nak(nak) if nak.source == IpAddr::V4(self.local) && nak.group == IpAddr::V4(self.group) => {
                self.on_nak(nak, &packet.options, id, now);
            }
            Body::Ack(ack) => self.on_ack(ack, &packet.options, id, now),
            Body::Nnak(_) | Body::Polr => self.sign_of_life(now),
            Body::Spmr => {
                self.sign_of_life(now);
                self.spm_soon(now);
            }
            _ => self.report.refused += 1,
        }
    }

    /// Confirms a NAK immediately and reports the missing packets to the scheme. Schedules repairs of the requested packets that
    /// are still stored.
    fn on_nak(&mut self, nak: Nak, options: &Options<'_>, from: ReceiverId, now: Time) {
        self.report.naks += 1;
        self.sign_of_life(now);
        let mut known: [[u8; 4]; codec::SEQUENCES_PER_NAK] = [[0; 4]; codec::SEQUENCES_PER_NAK];
        let mut count = 0;
        let mut reporter = self.reporters.of(from).copied().unwrap_or_default();
        for wire in std::iter::once(nak.sqn).chain(options.nak_list.iter()) {
            self.report.requested += 1;
            reporter.requested += 1;
            let sqn = Seq::unwrap(Seq(self.window.next()), wire).0;
            if sqn >= self.window.next() {
                self.report.refused += 1;
                continue;
            }
            if self.window.get(sqn).is_none() {
                self.report.too_late += 1;
                reporter.too_late += 1;
                self.spm_soon(now); // it says what there is no hope for
                continue;
            }
            (known[count], count) = (wire.to_be_bytes(), count + 1);
            let named = |sqn: u32| sqn == nak.sqn || options.nak_list.iter().any(|other| other == sqn);
            let revealing = (sqn + 1..self.window.next()).find(|later| !named(*later as u32));
            self.on_missing(sqn, revealing, from, reporter.speaks, options.pgmcc_feedback, now);
        }
        if let Some(known) = self.reporters.of(from) {
            *known = reporter;
        }
        let Some((first, more)) = known[..count].split_first() else { return };
        self.clocks.busy_at = now;
        if now.since(self.confirmations.0) >= Span::from_secs(1) {
            self.confirmations = (now, 0);
        }
        if self.confirmations.1 >= MAX_CONFIRMATIONS {
            return;
        }
        self.confirmations.1 += 1;
        let options = Options { nak_list: NakList(more), ..Options::default() };
        let ncf = Body::Ncf(Nak { sqn: u32::from_be_bytes(*first), ..nak });
        self.push_control(ncf, options);
    }

    /// Handles a request for a packet that is in the window.
    fn on_missing(
        &mut self,
        sqn: u64,
        revealing: Option<u64>,
        from: ReceiverId,
        speaks: bool,
        feedback: Option<PgmccFeedback>,
        now: Time,
    ) {
        let spacing = self.spacing();
        let revealed_at = revealing.and_then(|later| self.window.packet(later)).map(|it| it.0.born);
        let Some(sent) = self.window.get(sqn) else { return };
        // If a NAK arrives long after the first NAK for the same loss, it repeats a request whose repair has not been sent yet.
        let repeated = !sent.named_at.is_never() && now.since(sent.named_at) > spacing;
        if sent.named_at.is_never() {
            sent.named_at = now;
        }
        let known = *sent;
        if sent.repair == Repair::None && (sent.times == 1 || now.since(sent.sent_at) >= spacing) {
            sent.repair = Repair::Pending;
            self.repairs.push_back(sqn);
        }
        if repeated || speaks {
            return;
        }
        let hold = match feedback {
            Some(feedback) => held(&known, feedback.stamp, now),
            // Karn's rule: if a packet was sent several times, a NAK does not show which transmission was lost.
            None if known.times > 1 => Span::MAX,
            // A receiver detects a loss only when a later packet arrives. At low rates, and while the scheme is silent after a
            // cut, most of the time between transmission and NAK is the wait for this later packet. Such long samples would keep
            // the rate low, so the wait is subtracted.
            None => revealed_at.map_or(Span::MAX, |at| at.since(known.born)),
        };
        let content = ReportContent::Lost {
            echo: Echo { seq: known.newest, hold },
            first: known.newest,
            count: 1,
            loss: feedback.map_or(0.0, fraction),
        };
        self.pass_on(from, content, now);
    }

    /// Processes an acknowledgement with the fields of faircast or of PGMCC.
    fn on_ack(&mut self, ack: Ack, options: &Options<'_>, from: ReceiverId, now: Time) {
        self.sign_of_life(now);
        if let Some(OwnOption::Content(content)) = options.extension {
            if let Some(reporter) = self.reporters.of(from) {
                reporter.speaks = true;
            }
            return self.pass_on(from, content, now);
        }
        let Some(feedback) = options.pgmcc_feedback else { return };
        let newest = Seq::unwrap(Seq(self.window.next()), ack.newest).0;
        let Some((sent, _)) = self.window.packet(newest) else { return };
        let sent = *sent;
        // The scheme numbers transmissions, and PGM numbers packets. The two numbers differ once a packet is sent again.
        let mut bitmap: u32 = 0;
        for back in (0..32).filter(|back| ack.bitmap >> back & 1 != 0) {
            let Some((other, _)) = newest.checked_sub(back).and_then(|sqn| self.window.packet(sqn)) else {
                continue;
            };
            for seq in [other.first, other.newest] {
                if let Some(distance @ 0..32) = sent.newest.0.checked_sub(seq.0) {
                    bitmap |= 1 << distance;
                }
            }
        }
        let echo = Echo { seq: sent.newest, hold: held(&sent, feedback.stamp, now) };
        let behind = 32 - bitmap.leading_ones();
        let content = ReportContent::Selective { echo, behind, bitmap, loss: fraction(feedback) };
        self.pass_on(from, content, now);
    }

    fn pass_on(&mut self, from: ReceiverId, content: ReportContent, now: Time) {
        let report = Report { from, layer: BASE, content };
        self.source.on_report(&report, &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        self.refuse_effects();
    }

    /// Fails if the scheme has requested an effect, because a PGM source can only send data packets.
    fn refuse_effects(&mut self) {
        if let Some(effect) = self.effects.refuse() {
            self.failure.get_or_insert(Error::effect("source", &effect));
            self.phase = Phase::Over;
        }
    }

    fn sign_of_life(&mut self, now: Time) {
        self.source.control(SourceControl::SignOfLife, now);
    }

    /// Returns the minimum interval between two transmissions of the same packet.
    fn spacing(&self) -> Span {
        self.source.observe().rtt_max.max(SUPPRESS_MIN).min(SUPPRESS_MAX)
    }

    fn spm_soon(&mut self, now: Time) {
        self.clocks.spm_at = self.clocks.spm_at.min(now.max(self.clocks.spm_sent + SPM_SPACING));
    }

    /// Performs actions that are due.
    fn on_time(&mut self, now: Time) {
        if self.phase != Phase::LeadIn && self.source.deadline() <= now {
            self.source.on_deadline(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
            self.refuse_effects();
        }
        self.window.forget(now);
        self.move_on(now);
        if self.clocks.spm_at <= now {
            self.send_spm(now);
        }
        if self.clocks.progress_at <= now {
            self.clocks.progress_at += Span::from_secs(1);
            self.emit_progress(now);
        }
    }

    fn move_on(&mut self, now: Time) {
        match self.phase {
            Phase::LeadIn if self.clocks.phase_at <= now => {
                self.phase = Phase::Sending;
                self.source.start(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
                self.refuse_effects();
            }
            Phase::Sending => {
                self.stage(now);
                let idle = self.drained && self.staged.is_none() && self.repairs.is_empty();
                if idle && now.since(self.clocks.busy_at) >= self.linger {
                    self.close(now);
                }
            }
            Phase::LeadIn | Phase::Closing { .. } | Phase::Over => {}
        }
    }

    fn close(&mut self, now: Time) {
        if !matches!(self.phase, Phase::Closing { .. } | Phase::Over) {
            self.phase = Phase::Closing { left: FINS };
            self.clocks.spm_at = now;
        }
    }

    /// Stops reading content. The session then ends soon, when receivers request no more packets.
    fn drain(&mut self, now: Time) {
        if self.phase == Phase::LeadIn {
            return self.close(now);
        }
        self.feed.stop();
        self.linger = self.linger.min(AMBIENT);
    }

    /// Prepares the next payload, if there is one.
    fn stage(&mut self, now: Time) {
        if self.staged.is_some() || self.drained {
            return;
        }
        match self.feed.take(self.window.next() as u32, &mut self.payload) {
            Ok(Take::Packet(fragment)) => self.staged = Some(fragment),
            Ok(Take::NotYet) => {}
            Ok(Take::End) => self.drained = true,
            Err(error) => {
                self.failure = Some(Error::Storage(StorageError::Pipe(error)));
                self.close(now);
            }
        }
    }

    /// Clears `out` and writes the datagrams to it that must be sent now, if any.
    fn next(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if let Some(len) = self.control_lens.pop_front() {
            out.extend_from_slice(&self.control[..len]);
            self.control.drain(..len);
            return Some(Transmit { segment: len, to: self.to, hops: None });
        }
        if self.phase != Phase::Sending {
            return None;
        }
        let mut segment = 0;
        for _ in 0..MAX_SEGMENTS {
            let horizon = if segment == 0 { now } else { now + BURST };
            let due = matches!(self.source.departure(BASE), Departure::At(at) if at <= horizon);
            if !due || out.len() + segment > MAX_BYTES {
                break;
            }
            let Some(choice) = self.choose(now) else { break };
            if segment > 0 && self.header + choice.len > segment {
                break;
            }
            let from = out.len();
            if let Err(error) = self.write(choice, now, out) {
                self.failure = Some(PgmError::Encode(error).into());
                self.close(now);
                break;
            }
            let len = out.len() - from;
            if segment > 0 && len > segment {
                // This packet has longer fields of the scheme than the preceding packets, so it is sent separately, directly
                // after them.
                self.control.extend_from_slice(&out[from..]);
                self.control_lens.push_back(len);
                out.truncate(from);
                break;
            }
            segment = if segment == 0 { len } else { segment };
            if len < segment {
                break;
            }
        }
        (segment > 0).then_some(Transmit { segment, to: self.to, hops: None })
    }

    /// Selects the next packet. Repairs precede new packets, because receivers deliver packets in order. The number of
    /// consecutive repairs is limited while new content waits.
    fn choose(&mut self, now: Time) -> Option<Choice> {
        if self.repairs_in_a_row >= REPAIRS_IN_A_ROW {
            self.stage(now);
            if self.staged.is_some() {
                return Some(Choice { repair: None, len: self.payload.len() });
            }
        }
        while let Some(&sqn) = self.repairs.front() {
            if let Some((_, payload)) = self.window.packet(sqn) {
                return Some(Choice { repair: Some(sqn), len: payload.len() });
            }
            self.repairs.pop_front();
            self.report.too_late += 1;
        }
        self.stage(now);
        self.staged.is_some().then_some(Choice { repair: None, len: self.payload.len() })
    }

    fn write(&mut self, choice: Choice, now: Time, out: &mut Vec<u8>) -> Result<(), codec::EncodeError> {
        let size = (self.header + choice.len + OVERHEAD) as u16;
        let stamp = self.source.on_departure(
            BASE,
            size,
            &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects },
        );
        self.refuse_effects();
        let (sqn, fragment) = match choice.repair {
            Some(sqn) => {
                self.repairs.pop_front();
                self.repairs_in_a_row = self.repairs_in_a_row.saturating_add(1);
                (sqn, self.resend(sqn, &stamp, now))
            }
            None => {
                self.repairs_in_a_row = 0;
                let fragment = self.staged.take().flatten();
                self.report.packets += 1;
                (self.window.push(&self.payload, fragment, stamp.seq, now), fragment)
            }
        };
        let repair = if choice.repair.is_some() { Flags::REPAIR } else { Flags::default() };
        let options = self.options(sqn as u32, &stamp, fragment, repair, now);
        let data = Data { sqn: sqn as u32, trail: self.window.trail() as u32 };
        let body = if choice.repair.is_some() { Body::Rdata(data) } else { Body::Odata(data) };
        let payload = self.window.packet(sqn).map_or(&[][..], |it| it.1);
        self.header = data_len(&options, 0);
        self.wire_bytes += (self.header + payload.len() + OVERHEAD) as u64;
        self.clocks.started.get_or_insert(now);
        (self.clocks.data_at, self.clocks.busy_at) = (now, now);
        self.heartbeat = 0;
        if now.since(self.clocks.spm_sent) < AMBIENT {
            self.clocks.spm_at = now + HEARTBEATS[0];
        }
        codec::encode(out, &Packet { body, options, payload, ..self.packet() })
    }

    fn resend(&mut self, sqn: u64, stamp: &Stamp, now: Time) -> Option<codec::Fragment> {
        self.report.repairs += 1;
        let sent = self.window.get(sqn)?;
        (sent.newest, sent.sent_at, sent.named_at) = (stamp.seq, now, Time::NEVER);
        (sent.times, sent.repair) = (sent.times + 1, Repair::None);
        sent.fragment
    }

    /// Returns the options of a data packet: the position of a fragment in its unit, and the fields of the scheme.
    fn options(
        &self,
        sqn: u32,
        stamp: &Stamp,
        fragment: Option<codec::Fragment>,
        repair: Flags,
        now: Time,
    ) -> Options<'static> {
        let extension = (stamp.mark != Mark::None).then(|| {
            OwnOption::Stamp(codec::Stamp {
                scheme: self.scheme_number,
                seq: stamp.seq.0 as u32,
                micros: (now.as_nanos() / 1_000) as u32,
                rate: stamp.rate.bps() as f32,
                flags: stamp.flags.with(repair),
                signal: stamp.signal,
                mark: stamp.mark,
            })
        });
        let pgmcc_data = match stamp.mark {
            Mark::Acker { id: acker } => {
                let acker = acker.and_then(address_of).unwrap_or(Ipv4Addr::UNSPECIFIED);
                Some(PgmccData { stamp: millis(now), acker: acker.into() })
            }
            _ => None,
        };
        // OpenPGM 5.3 keeps the position of a fragment that it has discarded until it reads a packet with options, and would
        // refuse a packet without options. So each packet of a session with fragments has an option. Its own number as the first
        // packet for late joiners has no effect.
        let join = (self.feed.may_divide() && fragment.is_none()).then_some(sqn);
        Options { fragment, join, extension, pgmcc_data, ..Options::default() }
    }

    fn packet(&self) -> Packet<'static> {
        Packet {
            gsi: self.tsi.gsi,
            source_port: self.tsi.port,
            destination_port: self.data_port,
            body: Body::Spmr,
            options: Options::default(),
            payload: &[],
        }
    }

    fn push_control(&mut self, body: Body, options: Options<'_>) {
        let packet = Packet { body, options, ..self.packet() };
        let from = self.control.len();
        // All values of control packets fit their fields.
        if codec::encode(&mut self.control, &packet).is_ok() {
            self.control_lens.push_back(self.control.len() - from);
        }
    }

    fn send_spm(&mut self, now: Time) {
        let mut fin = false;
        let next = match &mut self.phase {
            Phase::LeadIn => LEAD_IN_EVERY,
            Phase::Sending => {
                let after = HEARTBEATS.get(self.heartbeat + 1).copied().unwrap_or(AMBIENT);
                self.heartbeat += 1;
                after
            }
            Phase::Closing { left: 0 } | Phase::Over => {
                self.phase = Phase::Over;
                self.clocks.spm_at = Time::NEVER;
                return;
            }
            Phase::Closing { left } => {
                (*left, fin) = (*left - 1, true);
                if *left == 0 { Span::ZERO } else { FIN_EVERY }
            }
        };
        let (trail, next_sqn) = (self.window.trail() as u32, self.window.next() as u32);
        let spm = Spm { sqn: self.spm_sqn, trail, lead: next_sqn.wrapping_sub(1), path: self.local.into() };
        self.spm_sqn = self.spm_sqn.wrapping_add(1);
        self.push_control(Body::Spm(spm), Options { fin, ..Options::default() });
        (self.clocks.spm_sent, self.clocks.spm_at) = (now, now + next);
    }

    /// Returns the time of the next call.
    fn next_timeout(&self, now: Time) -> Time {
        if !self.control_lens.is_empty() {
            return now;
        }
        let mut wake = self.clocks.spm_at.min(self.clocks.progress_at);
        if self.phase != Phase::LeadIn {
            wake = wake.min(self.source.deadline());
        }
        match self.phase {
            Phase::LeadIn => wake = wake.min(self.clocks.phase_at),
            Phase::Sending if self.staged.is_some() || !self.repairs.is_empty() => {
                if let Departure::At(at) = self.source.departure(BASE) {
                    wake = wake.min(at);
                }
            }
            Phase::Sending if self.drained => wake = wake.min(self.clocks.busy_at + self.linger),
            Phase::Sending => wake = wake.min(now + POLL),
            Phase::Closing { .. } | Phase::Over => {}
        }
        wake
    }

    fn emit_progress(&mut self, now: Time) {
        let seen = self.source.observe();
        if self.clocks.started.is_some() && !self.drained {
            self.report.min_rate = self.report.min_rate.min(seen.rate);
            self.report.max_rate = self.report.max_rate.max(seen.rate);
        }
        let bytes = self.wire_bytes - self.bytes_reported;
        self.bytes_reported = self.wire_bytes;
        let rate = Rate::from_bps(bytes as f64 * 8.0);
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: self.feed.counts().bytes,
            moved_bytes: self.feed.counts().bytes,
            total_bytes: self.total,
            rate,
            allowed: Some(seen.rate),
            rtt: Some(seen.rtt.into()),
            loss: (self.report.requested as f64 / self.report.packets.max(1) as f64).min(1.0),
            representative: seen.limiting.and_then(address_of).map(|address| address.to_string()),
            receivers: self.report.receivers,
            ..Progress::default()
        }));
        if self.receiver_events == ReceiverEvents::EverySecond {
            let states = self.reporters.states(
                self.to.port(),
                (rate, self.report.packets + self.report.repairs),
                (seen.limiting, seen.rtt),
            );
            self.events.extend(ReceiverState::events(&states));
        }
    }
}

impl Endpoint for PgmSource {
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

    fn stop(&mut self, now: Time) {
        self.drain(now);
    }

    fn is_finished(&self) -> bool {
        self.phase == Phase::Over && self.control_lens.is_empty()
    }
}

impl Reporting for PgmSource {
    type Report = PgmSendReport;

    fn report(mut self) -> Result<PgmSendReport, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let (seen, counts) = (self.source.observe(), self.feed.counts());
        let started = self.clocks.started.unwrap_or(Time::ZERO);
        let sending = self.clocks.data_at.since(started);
        Ok(PgmSendReport {
            ok: self.report.too_late == 0,
            bytes: counts.bytes,
            messages: counts.messages,
            duration: sending.into(),
            until_data: started.since(Time::ZERO).into(),
            goodput: mean_rate(counts.bytes, sending),
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

/// A packet to be sent.
#[derive(Debug, Clone, Copy)]
struct Choice {
    /// Its number, if it is a repair.
    repair: Option<u64>,
    len: usize,
}

fn millis(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

fn fraction(feedback: PgmccFeedback) -> f32 {
    f32::from(feedback.loss) / 65_536.0
}

/// Returns the time for which a receiver held a packet before it sent feedback. `stamp` is the packet's stamp plus this time, in
/// milliseconds.
fn held(sent: &Sent, stamp: u32, now: Time) -> Span {
    let round_trip = u64::from(millis(now).wrapping_sub(stamp));
    if round_trip > u64::from(u32::MAX / 2) {
        return Span::MAX; // from the future: no sample
    }
    now.since(sent.sent_at).saturating_sub(Span::from_millis(round_trip))
}
