//! The receiver of a session over PGM: detects missing packets, sends NAKs and delivers packets in order. Runs the receiver part
//! of the source's scheme, if there is one.

use super::content_writer::ContentWriter;
use super::missing::{Due, Missing, Timeouts};
use super::{PgmReceiveReport, receiver_id};
use crate::codec::{
    self, Ack, Body, Fragment, Nak, NakList, Options, OwnOption, Packet, PgmccData, PgmccFeedback,
    SEQUENCES_PER_NAK, Spm, Stamp, Tsi,
};
use crate::error::PgmError;
use faircast_core::delivery::gaps::Gaps;
use faircast_core::node::{Cx, Effect, Effects, Receiver as _};
use faircast_core::packet::{
    Arrival, Data, Flags, Layer, Mark, Payload, ReceiverId, ReportContent, Seq, Signal,
};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, Scheme};
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_net::Ecn;
use faircast_transport::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use faircast_transport::error::{Error, JoinObstacle, StartError, StorageError, TransferError};
use faircast_transport::event::{Event, Progress};
use faircast_transport::units::mean_rate;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::time::Duration;

/// Maximum number of packets that wait until an earlier packet arrives. After a larger jump, skipped packets are lost.
pub(super) const MAX_HELD: u64 = 1 << 16;
/// Maximum number of buffers stored for reuse.
const MAX_SPARE: usize = 1024;
/// Maximum number of unconfirmed NAKs for a packet once the end is announced: the source then answers only for a limited time.
const UNCONFIRMED_AFTER_FIN: u16 = 5;
/// Time after which an announced end is accepted, unless a newer packet arrives and shows that the announcement is forged.
const FIN_HOLDS: Span = Span::from_secs(1);
/// Interval between requests for an SPM.
const SPMR_EVERY: Span = Span::from_millis(250);
/// Number of later packets that must arrive before a missing packet counts as lost for the scheme (RFC 5681, 3.2).
const REORDERING: u8 = 3;
/// Internal number that corresponds to packet number 0. It leaves room for numbers below the first packet's number.
const BASE: u64 = 1 << 32;

/// Parameters of a receiver session.
pub(super) struct Setup {
    pub(super) group: SocketAddrV4,
    pub(super) local: Ipv4Addr,
    /// PGM's own destination port.
    pub(super) data_port: u16,
    /// UDP port of the source for NAKs.
    pub(super) nak_port: u16,
    pub(super) only: Option<IpAddr>,
    pub(super) join_timeout: Option<Span>,
    pub(super) idle_timeout: Span,
    pub(super) timeouts: Timeouts,
    /// Maximum number of packets that wait until an earlier packet arrives: [`MAX_HELD`], or a lower value to make fuzzing fast.
    pub(super) most_held: u64,
    pub(super) rng: Rng,
}

/// Function that opens the destination of the content, once the session is known.
pub(super) type Open = Box<dyn FnMut(Tsi) -> Result<ContentWriter, Error> + Send>;

pub(crate) struct PgmReceiver {
    setup: Setup,
    open: Open,
    stream: Option<Stream>,
    feedback: Vec<u8>,
    /// Offset up to which feedback has been sent.
    feedback_from: usize,
    feedback_lens: VecDeque<(usize, SocketAddr)>,
    report: PgmReceiveReport,
    events: VecDeque<Event>,
    failure: Option<Error>,
    over: bool,
    progress_at: Time,
    wire_bytes: u64,
    reported: ReportedProgress,
}

/// State at the last progress event.
#[derive(Debug, Clone, Copy, Default)]
struct ReportedProgress {
    wire_bytes: u64,
    packets: u64,
    missed: u64,
}

/// The received session, which is the first session from which a packet arrived.
struct Stream {
    tsi: Tsi,
    address: Ipv4Addr,
    /// Address to which NAKs are sent; `None` until an SPM has stated it.
    path: Option<Ipv4Addr>,
    spm_sqn: Option<u32>,
    writer: ContentWriter,
    most_held: u64,
    /// Number of the next packet to be delivered.
    next: u64,
    /// One more than the number of the newest known packet; `None` before the first packet is known.
    end: Option<u64>,
    /// States of the packets from `next` to `end`.
    places: VecDeque<PacketState>,
    spare: Vec<Vec<u8>>,
    missing: Missing,
    /// Packets before `next` that are not delivered yet, because the packet number has jumped.
    leap: Option<Leap>,
    /// One more than the number of the last packet, as the source announced it, and the time of this announcement.
    fin: Option<(u64, Time)>,
    first_at: Time,
    last_received_at: Time,
    data_at: Time,
    spmr_at: Time,
    /// Bit k is set if the packet that is k numbers before the newest packet has arrived.
    recent: u32,
    pgmcc: Option<(PgmccData, Time)>,
    scheme: Option<SchemeEnd>,
}

/// A jump of the packet number: states of the packets before the jump, and number of skipped packets, which are lost.
struct Leap {
    before: VecDeque<PacketState>,
    skipped: u64,
}

/// State of a packet that has not been delivered yet.
enum PacketState {
    Missing,
    Here { bytes: Vec<u8>, fragment: Option<Fragment> },
    Lost,
}

/// The receiver part of the source's scheme.
struct SchemeEnd {
    number: u8,
    receiver: AnyReceiver,
    gaps: Gaps,
    newest: Seq,
    newest_micros: u64,
    effects: Effects,
}

impl PgmReceiver {
    pub(super) fn new(setup: Setup, open: Open, now: Time) -> PgmReceiver {
        PgmReceiver {
            setup,
            open,
            stream: None,
            feedback: Vec::new(),
            feedback_from: 0,
            feedback_lens: VecDeque::new(),
            report: PgmReceiveReport::default(),
            events: VecDeque::new(),
            failure: None,
            over: false,
            progress_at: now + Span::from_secs(1),
            wire_bytes: 0,
            reported: ReportedProgress::default(),
        }
    }

    fn on_datagram(&mut self, bytes: &[u8], from: SocketAddr, ecn: Ecn, now: Time) {
        let IpAddr::V4(from) = from.ip() else { return };
        if self.over || self.setup.only.is_some_and(|only| only != IpAddr::V4(from)) {
            return;
        }
        self.wire_bytes += bytes.len() as u64 + super::source::OVERHEAD as u64;
        let Ok(packet) = codec::parse(bytes) else {
            self.report.refused += 1;
            return;
        };
        if packet.body.is_upstream() || packet.destination_port != self.setup.data_port {
            return;
        }
        if let Err(error) = self.on_packet(&packet, from, bytes.len(), ecn, now) {
            self.fail(error);
        }
    }

    fn on_packet(
        &mut self,
        packet: &Packet<'_>,
        from: Ipv4Addr,
        size: usize,
        ecn: Ecn,
        now: Time,
    ) -> Result<(), Error> {
        if self.stream.is_none() {
            let begins = matches!(packet.body, Body::Spm(_) | Body::Odata(_)) && !packet.options.fin;
            if !begins {
                return Ok(());
            }
            let writer = (self.open)(packet.tsi())?;
            self.stream = Some(Stream::new(packet.tsi(), from, writer, self.setup.most_held, now));
            let address = SocketAddr::from((from, self.setup.nak_port));
            let host = packet.tsi().to_string();
            self.events.push_back(Event::Joined { receiver: None, host, address });
        }
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.tsi == packet.tsi()) else {
            return Ok(());
        };
        stream.last_received_at = now;
        if packet.options.rst {
            return Err(PgmError::Reset.into());
        }
        match packet.body {
            Body::Spm(spm) => {
                stream.on_spm(spm, &packet.options, &self.setup.timeouts, &mut self.setup.rng, now)
            }
            Body::Odata(data) | Body::Rdata(data) => {
                self.report.packets += 1;
                stream.data_at = now;
                let repair = matches!(packet.body, Body::Rdata(_));
                stream.on_data(data, packet, &mut self.setup, &mut self.report, now)?;
                stream.trail(data.trail);
                stream.pgmcc = packet.options.pgmcc_data.map(|data| (data, now)).or(stream.pgmcc);
                let arrived = Arrived { data, size, ecn, repair };
                if let Some(id) = receiver_id(self.setup.local) {
                    stream.report_scheme(&packet.options, arrived, id, &mut self.setup.rng, now);
                }
            }
            Body::Ncf(nak) => {
                stream.on_ncf(nak, &packet.options, &self.setup.timeouts, &mut self.setup.rng, now)
            }
            _ => {}
        }
        self.deliver(now)
    }

    /// Delivers all packets up to the next missing packet, and checks whether the session is complete.
    fn deliver(&mut self, now: Time) -> Result<(), Error> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        stream.deliver(&mut self.report).map_err(StorageError::Pipe)?;
        self.report.bytes = stream.writer.bytes();
        self.report.messages = stream.writer.messages();
        if stream.has_ended(now) {
            stream.writer.flush().map_err(StorageError::Pipe)?;
            self.over = true;
        }
        Ok(())
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.over = true;
    }

    /// Performs actions that are due.
    fn on_time(&mut self, now: Time) {
        if self.over {
            return;
        }
        self.ask(now);
        self.scheme_time(now);
        self.send_reports(now);
        if let Err(error) = self.deliver(now) {
            self.fail(error);
        }
        if self.progress_at <= now {
            self.progress_at += Span::from_secs(1);
            self.emit_progress(now);
        }
        self.check_timeouts(now);
    }

    /// Sends the NAKs whose time has come. If the address for NAKs is unknown, requests an SPM, which contains the address.
    fn ask(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        if stream.missing.deadline() > now {
            return;
        }
        let mut timeouts = self.setup.timeouts;
        if stream.fin.is_some() {
            timeouts.most_unconfirmed = timeouts.most_unconfirmed.min(UNCONFIRMED_AFTER_FIN);
        }
        let Some(path) = stream.path else {
            if stream.spmr_at <= now {
                stream.spmr_at = now + SPMR_EVERY;
                let to = (stream.address, self.setup.nak_port).into();
                self.say(Body::Spmr, Options::default(), to);
            }
            return;
        };
        let (mut asked, mut gone) = (Vec::new(), Vec::new());
        stream.missing.on_time(&timeouts, &mut self.setup.rng, now, |due| match due {
            Due::Ask(sqn) => asked.push((sqn as u32).to_be_bytes()),
            Due::GiveUp(sqn) => gone.push(sqn),
        });
        gone.into_iter().for_each(|sqn| stream.give_up(sqn));
        let to = (path, self.setup.nak_port).into();
        let (source, group) = (path.into(), (*self.setup.group.ip()).into());
        for part in asked.chunks(SEQUENCES_PER_NAK) {
            let nak = Nak { sqn: u32::from_be_bytes(part[0]), source, group };
            self.report.naks += 1;
            self.say(Body::Nak(nak), Options { nak_list: NakList(&part[1..]), ..Options::default() }, to);
        }
    }

    fn scheme_time(&mut self, now: Time) {
        if let Some(end) = self.stream.as_mut().and_then(|stream| stream.scheme.as_mut())
            && end.receiver.deadline() <= now
        {
            let mut cx = Cx { now, rng: &mut self.setup.rng, effects: &mut end.effects };
            end.receiver.on_deadline(&mut cx);
        }
    }

    /// Sends the report of the scheme's receiver.
    fn send_reports(&mut self, now: Time) {
        let Some(stream) = &mut self.stream else { return };
        let Some(end) = &mut stream.scheme else { return };
        let contents: Vec<ReportContent> = end
            .effects
            .drain()
            .filter_map(|effect| match effect {
                Effect::Report(report) => Some(report.content),
                Effect::Subscribe(_) | Effect::Attend(_) | Effect::Leave | Effect::Send { .. } => {
                    self.failure.get_or_insert(Error::effect("receiver", &effect));
                    self.over = true;
                    None
                }
            })
            .collect();
        let to = (stream.path.unwrap_or(stream.address), self.setup.nak_port).into();
        let ack =
            Body::Ack(Ack { newest: stream.end.unwrap_or(0).wrapping_sub(1) as u32, bitmap: stream.recent });
        let (known, pgmcc) = (end.number, stream.pgmcc);
        for content in contents {
            let pgmcc_feedback = pgmcc.map(|(data, at)| PgmccFeedback {
                stamp: data.stamp.wrapping_add((now.since(at).as_nanos() / 1_000_000) as u32),
                loss: (loss(&content) * 65_536.0) as u16,
                from: self.setup.local.into(),
            });
            // Sources of other programs understand only the fields of PGMCC.
            let extension = (known != FOREIGN).then_some(OwnOption::Content(content));
            self.say(ack, Options { extension, pgmcc_feedback, ..Options::default() }, to);
        }
    }

    fn say(&mut self, body: Body, options: Options<'_>, to: SocketAddr) {
        let Some(stream) = &self.stream else { return };
        let packet = Packet {
            gsi: stream.tsi.gsi,
            source_port: self.setup.data_port,
            destination_port: stream.tsi.port,
            body,
            options,
            payload: &[],
        };
        let from = self.feedback.len();
        // If a number of the scheme does not fit its field, this report is omitted and the session continues.
        if codec::encode(&mut self.feedback, &packet).is_ok() {
            self.feedback_lens.push_back((self.feedback.len() - from, to));
        }
    }

    fn check_timeouts(&mut self, now: Time) {
        let duration = |span: Span| Duration::from_nanos(span.as_nanos());
        let packets = self.report.refused;
        let failure = match (&self.stream, self.setup.join_timeout) {
            (None, Some(wait)) if now.since(Time::ZERO) >= wait => Error::Start(StartError::NoSession {
                group: self.setup.group.into(),
                waited: duration(wait),
                seen: (packets > 0).then_some(JoinObstacle::OtherFormat { packets, format: "PGM" }),
            }),
            (Some(stream), _) if now.since(stream.last_received_at) >= self.setup.idle_timeout => {
                let silent = duration(now.since(stream.last_received_at));
                PgmError::Silent { silent, bytes: self.report.bytes }.into()
            }
            _ => return,
        };
        self.fail(failure);
    }

    /// Writes buffered content while no datagram waits.
    fn write_out(&mut self) {
        if let Some(stream) = &mut self.stream
            && let Err(error) = stream.writer.flush()
        {
            self.fail(Error::Storage(StorageError::Pipe(error)));
        }
    }

    /// Returns the time of the next call.
    fn next_timeout(&self) -> Time {
        let mut wake = self.progress_at;
        if let Some(stream) = &self.stream {
            let asking = stream.missing.deadline();
            wake = wake.min(if stream.path.is_some() { asking } else { asking.max(stream.spmr_at) });
            wake = wake.min(stream.last_received_at + self.setup.idle_timeout);
            if let Some((_, since)) = stream.fin.filter(|(end, _)| stream.next >= *end) {
                wake = wake.min(since + FIN_HOLDS);
            }
            if let Some(end) = &stream.scheme {
                wake = wake.min(end.receiver.deadline());
            }
        }
        wake
    }

    fn emit_progress(&mut self, now: Time) {
        if self.stream.is_none() {
            return;
        }
        let (packets, missed) =
            (self.report.packets - self.reported.packets, self.report.missed - self.reported.missed);
        let bytes = self.wire_bytes - self.reported.wire_bytes;
        self.reported = ReportedProgress {
            wire_bytes: self.wire_bytes,
            packets: self.report.packets,
            missed: self.report.missed,
        };
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(Time::ZERO).into(),
            bytes: self.report.bytes,
            moved_bytes: self.report.bytes,
            rate: Rate::from_bps(bytes as f64 * 8.0),
            loss: missed as f64 / (packets + missed).max(1) as f64,
            ..Progress::default()
        }));
    }
}

impl Endpoint for PgmReceiver {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, _now: Time) {
        self.on_datagram(datagram.bytes, datagram.from, datagram.ecn, datagram.arrived);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, _now: Time) {
        match notice {
            HostEvent::Backlog(backlog) => self.report.dropped_local = backlog.dropped,
            HostEvent::Drained => self.write_out(),
            HostEvent::NetworkChanged { .. } | HostEvent::JoinFailed { .. } => {}
        }
    }

    fn poll_transmit(&mut self, _now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        let (len, to) = self.feedback_lens.pop_front()?;
        out.extend_from_slice(&self.feedback[self.feedback_from..][..len]);
        self.feedback_from += len;
        if self.feedback_lens.is_empty() {
            self.feedback.clear();
            self.feedback_from = 0;
        }
        Some(Transmit { segment: len, to, hops: None })
    }

    fn poll_timeout(&self, now: Time) -> Time {
        if self.feedback_lens.is_empty() { self.next_timeout() } else { now }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn silence(&self, now: Time) -> Option<Span> {
        self.stream.as_ref().filter(|_| !self.over).map(|stream| now.since(stream.last_received_at))
    }

    fn stop(&mut self, _now: Time) {
        self.fail(Error::Transfer(TransferError::Stopped));
    }

    fn is_finished(&self) -> bool {
        self.over
    }
}

impl Reporting for PgmReceiver {
    type Report = PgmReceiveReport;

    fn report(self) -> Result<PgmReceiveReport, Error> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let mut report = self.report;
        if let Some(stream) = &self.stream {
            let receiving = stream.data_at.since(stream.first_at);
            report.duration = receiving.into();
            report.goodput = mean_rate(report.bytes, receiving);
            report.broken = stream.writer.broken();
            report.refused += stream.writer.malformed;
        }
        report.ok = report.unrecoverable == 0 && report.broken == 0;
        Ok(report)
    }
}

/// A data packet as passed to the scheme.
#[derive(Clone, Copy)]
struct Arrived {
    data: codec::Data,
    size: usize,
    ecn: Ecn,
    repair: bool,
}

/// Scheme number for a source of another program, which runs PGMCC.
const FOREIGN: u8 = u8::MAX;

impl Stream {
    fn new(tsi: Tsi, address: Ipv4Addr, writer: ContentWriter, most_held: u64, now: Time) -> Stream {
        Stream {
            tsi,
            address,
            path: None,
            spm_sqn: None,
            writer,
            most_held,
            next: BASE,
            end: None,
            places: VecDeque::new(),
            spare: Vec::new(),
            missing: Missing::default(),
            leap: None,
            fin: None,
            first_at: now,
            last_received_at: now,
            data_at: now,
            spmr_at: now,
            recent: 0,
            pgmcc: None,
            scheme: None,
        }
    }

    /// Returns the internal number of a packet with the number `wire`: of all candidates, the nearest to the newest known number.
    fn unwrap(&self, wire: u32) -> u64 {
        self.end.map_or(BASE + u64::from(wire), |end| Seq::unwrap(Seq(end), wire).0)
    }

    fn begin(&mut self, first: u64) {
        (self.next, self.end) = (first, Some(first));
    }

    fn on_spm(&mut self, spm: Spm, options: &Options<'_>, timeouts: &Timeouts, rng: &mut Rng, now: Time) {
        let old = self.spm_sqn.is_some_and(|newest| (spm.sqn.wrapping_sub(newest) as i32) <= 0);
        if old {
            return;
        }
        self.spm_sqn = Some(spm.sqn);
        if let IpAddr::V4(path) = spm.path {
            self.path = Some(path);
        }
        let end = self.unwrap(spm.lead.wrapping_add(1));
        if self.end.is_none() {
            self.begin(end);
        }
        self.extend(end, timeouts, rng, now);
        self.trail(spm.trail);
        if options.fin && self.fin.is_none_or(|(reported, _)| reported != end) {
            self.fin = Some((end, now));
        }
    }

    /// Returns whether all packets up to the announced end are delivered and the announcement is at least `FIN_HOLDS` old.
    fn has_ended(&self, now: Time) -> bool {
        self.fin.is_some_and(|(end, since)| self.next >= end && now.since(since) >= FIN_HOLDS)
    }

    /// Records that all packets before `end` have been sent. Packets between the newest known packet and `end` are now missing.
    fn extend(&mut self, end: u64, timeouts: &Timeouts, rng: &mut Rng, now: Time) {
        let Some(mut known) = self.end.filter(|known| *known < end) else { return };
        if end - self.next > self.most_held {
            // The oldest missing packets are given up to make room. Skipped packets that cannot be stored are never requested.
            let first_stored = end - self.most_held;
            self.missing.expire(first_stored, |_| {});
            if first_stored > known {
                self.leap(first_stored - known);
                (self.next, known) = (first_stored, first_stored);
            }
            let places = self.places.iter_mut().take((first_stored - self.next) as usize);
            places
                .filter(|place| matches!(place, PacketState::Missing))
                .for_each(|place| *place = PacketState::Lost);
        }
        let missing = (end - known) as usize; // no more than are kept
        self.recent = self.recent.checked_shl(missing as u32).unwrap_or(0);
        self.places.extend(std::iter::repeat_with(|| PacketState::Missing).take(missing));
        self.missing.add(known..end, timeouts, rng, now);
        self.end = Some(end);
    }

    /// Skips `skipped` packets after the newest known packet. The skipped packets are lost and get no state.
    fn leap(&mut self, skipped: u64) {
        let before = std::mem::take(&mut self.places);
        match &mut self.leap {
            Some(leap) => leap.skipped += before.len() as u64 + skipped,
            None => self.leap = Some(Leap { before, skipped }),
        }
    }

    fn on_data(
        &mut self,
        data: codec::Data,
        packet: &Packet<'_>,
        setup: &mut Setup,
        report: &mut PgmReceiveReport,
        now: Time,
    ) -> Result<(), Error> {
        let sqn = self.unwrap(data.sqn);
        let Some(end) = self.end else {
            if let Body::Rdata(_) = packet.body {
                return Ok(()); // somebody else's loss from before this receiver came
            }
            let back = packet.options.join.map_or(0, |least| data.sqn.wrapping_sub(least));
            self.begin(sqn - if u64::from(back) < self.most_held { u64::from(back) } else { 0 });
            return self.on_data(data, packet, setup, report, now);
        };
        if sqn < self.next || sqn > end + (1 << 30) {
            return Ok(());
        }
        if self.fin.is_some_and(|(last, _)| sqn >= last) {
            self.fin = None; // it was not the end
        }
        if sqn >= end {
            report.missed += sqn - end;
            self.extend(sqn, &setup.timeouts, &mut setup.rng, now);
            (self.recent, self.end) = (self.recent << 1 | 1, Some(sqn + 1));
            if self.places.is_empty() {
                self.next += 1;
                let taken = self.writer.packet(packet.options.fragment, packet.payload);
                return Ok(taken.map_err(StorageError::Pipe)?);
            }
            let here = self.keep(packet);
            self.places.push_back(here);
            return Ok(());
        }
        if self.missing.remove(sqn) {
            if let Some(back @ 0..32) = end.checked_sub(sqn + 1) {
                self.recent |= 1 << back;
            }
            let here = self.keep(packet);
            self.places[(sqn - self.next) as usize] = here;
        }
        Ok(())
    }

    fn keep(&mut self, packet: &Packet<'_>) -> PacketState {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(packet.payload);
        PacketState::Here { bytes, fragment: packet.options.fragment }
    }

    fn on_ncf(&mut self, nak: Nak, options: &Options<'_>, timeouts: &Timeouts, rng: &mut Rng, now: Time) {
        for wire in std::iter::once(nak.sqn).chain(options.nak_list.iter()) {
            let sqn = self.unwrap(wire);
            let Some(end) = self.end else { return };
            if sqn >= end && sqn - end < self.most_held {
                self.extend(sqn + 1, timeouts, rng, now);
            }
            self.missing.confirm(sqn, timeouts, now);
        }
    }

    /// Gives up missing packets before `wire`. They have left the source's window, so the source cannot repair them.
    fn trail(&mut self, wire: u32) {
        let Some(end) = self.end else { return };
        let trail = self.unwrap(wire).min(end);
        let (next, places) = (self.next, &mut self.places);
        self.missing.expire(trail, |sqns| {
            let places = places.iter_mut().skip((sqns.start - next) as usize);
            places.take((sqns.end - sqns.start) as usize).for_each(|place| *place = PacketState::Lost);
        });
    }

    fn give_up(&mut self, sqn: u64) {
        if let Some(place) = sqn.checked_sub(self.next).and_then(|at| self.places.get_mut(at as usize)) {
            *place = PacketState::Lost;
        }
    }

    fn deliver(&mut self, report: &mut PgmReceiveReport) -> io::Result<()> {
        if let Some(Leap { before, skipped }) = self.leap.take() {
            for place in before {
                match place {
                    PacketState::Here { bytes, fragment } => self.writer.packet(fragment, &bytes)?,
                    PacketState::Missing | PacketState::Lost => {
                        report.unrecoverable += 1;
                        self.writer.loss();
                    }
                }
            }
            report.unrecoverable += skipped;
            self.writer.loss();
        }
        while let Some(place) = self.places.front_mut() {
            match place {
                PacketState::Missing => break,
                PacketState::Lost => {
                    report.unrecoverable += 1;
                    self.writer.loss();
                }
                PacketState::Here { bytes, fragment } => {
                    let (mut bytes, fragment) = (std::mem::take(bytes), *fragment);
                    self.writer.packet(fragment, &bytes)?;
                    if self.spare.len() < MAX_SPARE {
                        bytes.clear();
                        self.spare.push(bytes);
                    }
                }
            }
            self.places.pop_front();
            self.next += 1;
        }
        Ok(())
    }

    /// Passes a data packet to the receiver part of the source's scheme, if there is one.
    fn report_scheme(
        &mut self,
        options: &Options<'_>,
        arrived: Arrived,
        me: ReceiverId,
        rng: &mut Rng,
        now: Time,
    ) {
        let stamp = match (options.extension, options.pgmcc_data) {
            (Some(OwnOption::Stamp(stamp)), _) => stamp,
            (_, Some(pgmcc)) => foreign(pgmcc, arrived),
            _ => return,
        };
        if self.scheme.as_ref().is_none_or(|end| end.number != stamp.scheme) {
            let scheme = match stamp.scheme {
                FOREIGN => "pgmcc".parse().ok(),
                number => Scheme::from_number(number),
            };
            let Some(scheme) = scheme else { return };
            self.scheme = Some(SchemeEnd {
                number: stamp.scheme,
                receiver: scheme.receiver(me),
                gaps: Gaps::new(REORDERING),
                newest: Seq(BASE + u64::from(stamp.seq)),
                newest_micros: BASE + u64::from(stamp.micros),
                effects: Effects::new(),
            });
        }
        let Some(end) = &mut self.scheme else { return };
        let foreign = end.number == FOREIGN;
        end.on_data(&stamp, arrived, if foreign { BASE } else { 0 }, rng, now);
    }
}

/// Converts the fields of a PGMCC source of another program to a stamp, with PGM's packet numbers as the scheme's numbers.
fn foreign(pgmcc: PgmccData, arrived: Arrived) -> Stamp {
    let acker = match pgmcc.acker {
        IpAddr::V4(address) => receiver_id(address),
        IpAddr::V6(_) => None,
    };
    Stamp {
        scheme: FOREIGN,
        seq: arrived.data.sqn,
        micros: pgmcc.stamp.wrapping_mul(1_000),
        rate: 0.0,
        flags: if arrived.repair { Flags::REPAIR } else { Flags::default() },
        signal: Signal::None,
        mark: Mark::Acker { id: acker },
    }
}

impl SchemeEnd {
    /// Passes a data packet to the scheme, with `base` added to its packet number (0 for faircast's sources).
    fn on_data(&mut self, stamp: &Stamp, arrived: Arrived, base: u64, rng: &mut Rng, now: Time) {
        let seq = Seq::unwrap(self.newest, stamp.seq);
        let micros = Seq::unwrap(Seq(self.newest_micros), stamp.micros).0;
        (self.newest, self.newest_micros) = (self.newest.max(seq), self.newest_micros.max(micros));
        let arrival = self.gaps.on_arrival(seq);
        let seq = if base == 0 { Seq(seq.0 - BASE.min(seq.0)) } else { seq };
        let data = Data {
            seq,
            sent_at: Time::from_nanos((micros - BASE.min(micros)).saturating_mul(1_000)),
            rate: stamp.rate,
            payload: Payload::NONE,
            flags: stamp.flags,
            signal: stamp.signal,
            mark: stamp.mark,
        };
        let size = (arrived.size + super::source::OVERHEAD).min(usize::from(u16::MAX)) as u16;
        let arrival = Arrival { size, marked: arrived.ecn == Ecn::Ce, ..arrival };
        self.receiver.on_data(&data, Layer(0), arrival, &mut Cx { now, rng, effects: &mut self.effects });
    }
}

/// Returns the loss fraction in a report.
fn loss(content: &ReportContent) -> f32 {
    match *content {
        ReportContent::Lost { loss, .. }
        | ReportContent::Selective { loss, .. }
        | ReportContent::Received { loss, .. } => loss,
        _ => 0.0,
    }
}
