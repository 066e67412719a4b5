//! The receiver: selection of session, files and layers.

use super::AlcReceiveReport;
use super::objects::{Assembly, SymbolResult, Unfit};
use super::parts::OutputDirectory;
use crate::codec::{
    self, Blocks, Closing, FDT_TOI, Fdt, Fec, Layering, MAX_FDT, NTP_UNIX_SECS, Oti, Packet, Rlc,
};
use crate::error::AlcError;
use faircast_core::delivery::gaps::Gaps;
use faircast_core::node::{Cx, Effect, Effects, Receiver};
use faircast_core::packet::{Arrival, Data, Flags, Layer, Mark, Payload, ReceiverId, Seq};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, Scheme, Wire};
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::endpoint::{Datagram, Endpoint, HostEvent, Transmit};
use faircast_transport::error::{Error, TransferError};
use faircast_transport::event::{Event, Progress, TransferName};
use faircast_transport::object::{Names, ObjectError};
use faircast_transport::units::mean_rate;
use faircast_wire::group_of;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Maximum number of packets that are stored before the table arrives.
const EARLY: usize = 4_096;
/// Number of later packets that must have arrived before a packet counts as lost.
const REORDERING: u8 = 3;
/// Maximum number of tables that are assembled at the same time.
const TABLES: usize = 4;
/// Maximum number of files of all tables of a session; further files are ignored.
const MAX_OBJECTS: usize = 200_000;
/// Maximum number of reasons in the report; further reasons are only counted.
const MAX_REASONS: usize = 1_000;
/// Maximum number of bytes of memory for the incomplete blocks of all files together: more than the longest block takes.
const MAX_HELD: usize = 256 << 20;

/// Interval between two records of the received symbols, and the maximum number of files recorded at once.
const RECORD_EVERY: Span = Span::from_secs(5);
const MAX_AT_ONCE: usize = 64;

/// Parameters of a receiver.
pub(super) struct Setup {
    pub group: SocketAddr,
    pub only: Option<IpAddr>,
    pub out: PathBuf,
    pub names: Names,
    /// Maximum number of bytes of all files together.
    pub most: Option<u64>,
    pub join_timeout: Option<Span>,
    pub idle_timeout: Span,
    pub overhead: usize,
    pub unix_secs: u64,
    pub random: u64,
}

pub(crate) struct AlcReceiver {
    setup: Setup,
    place: Option<OutputDirectory>,
    rng: Rng,
    effects: Effects,
    /// The source and number of the session that is received.
    followed: Option<(IpAddr, u64)>,
    tables: VecDeque<(u32, Table)>,
    /// Number of the newest table instance that was read.
    instance: Option<u32>,
    complete: bool,
    objects: BTreeMap<u128, Object>,
    /// Number of `objects` that are neither complete nor given up.
    open: usize,
    /// Warnings reported so far.
    reported: BTreeSet<String>,
    /// Total length of the open and complete files, in bytes; the next field is the memory of incomplete blocks, in bytes.
    promised: u64,
    held: usize,
    early: VecDeque<(u128, Vec<u8>)>,
    control: Option<Control>,
    started: Time,
    begun: Option<Time>,
    last_received_at: Time,
    report_at: Time,
    bytes: u64,
    reported_bytes: u64,
    record_at: Time,
    ended: Option<Ended>,
    /// Error that ended the session.
    failure: Option<Error>,
    report: AlcReceiveReport,
    events: VecDeque<Event>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    Complete,
    Closed,
    Silent,
    NoSession,
    Stopped,
}

/// A table that is being assembled.
struct Table {
    oti: Oti,
    blocks: Blocks,
    bytes: Vec<u8>,
    have: Vec<bool>,
    missing: usize,
}

/// A file of the table.
enum Object {
    Open(Box<Assembly>),
    Done,
    Skipped,
}

impl Object {
    /// Returns the number of bytes in the file's complete blocks; 0 for a file that is complete or skipped.
    fn received(&self) -> u64 {
        match self {
            Object::Open(assembly) => assembly.received(),
            Object::Done | Object::Skipped => 0,
        }
    }
}

/// The receiver part of the congestion control.
struct Control {
    scheme: AnyReceiver,
    level: u8,
    /// Highest layer that can be joined.
    top: u8,
    /// The groups of the enhancement layers.
    groups: Vec<SocketAddr>,
    streams: Vec<Stream>,
    /// The newest slot in which a packet was sent.
    slot: Option<u32>,
}

/// Packet numbers of one layer.
struct Stream {
    gaps: Gaps,
    newest: Option<u64>,
}

impl Stream {
    fn new() -> Stream {
        Stream { gaps: Gaps::new(REORDERING), newest: None }
    }

    /// Returns the full packet number that has these lower 16 bits and is nearest to the newest packet number.
    fn number(&mut self, low: u16) -> Seq {
        let newest = self.newest.unwrap_or(1 << 16);
        let ahead = low.wrapping_sub(newest as u16) as i16;
        let number = newest.saturating_add_signed(ahead.into());
        let number = if self.newest.is_none() { (1 << 16) + u64::from(low) } else { number };
        self.newest = Some(self.newest.map_or(number, |newest| newest.max(number)));
        Seq(number)
    }
}

impl AlcReceiver {
    pub(super) fn new(setup: Setup, now: Time) -> Result<AlcReceiver, Error> {
        let place = OutputDirectory::open(&setup.out, setup.random)?;
        let rng = Rng::new(setup.random, 0);
        Ok(AlcReceiver {
            setup,
            place: Some(place),
            rng,
            effects: Effects::new(),
            followed: None,
            tables: VecDeque::new(),
            instance: None,
            complete: false,
            objects: BTreeMap::new(),
            open: 0,
            reported: BTreeSet::new(),
            promised: 0,
            held: 0,
            early: VecDeque::new(),
            control: None,
            started: now,
            begun: None,
            last_received_at: now,
            report_at: now + Span::from_secs(1),
            bytes: 0,
            reported_bytes: 0,
            record_at: now + RECORD_EVERY,
            ended: None,
            failure: None,
            report: AlcReceiveReport { layers: 1, ..AlcReceiveReport::default() },
            events: VecDeque::new(),
        })
    }

    /// Returns the number of known files.
    #[cfg(test)]
    pub(super) fn stored(&self) -> usize {
        self.objects.len()
    }

    /// Returns the time of the next action.
    fn next_timeout(&self) -> Time {
        let timeout = match self.followed {
            Some(_) => self.last_received_at + self.setup.idle_timeout,
            None => self.setup.join_timeout.map_or(Time::NEVER, |timeout| self.started + timeout),
        };
        let deadline = self.control.as_ref().map_or(Time::NEVER, |control| control.scheme.deadline());
        timeout.min(deadline).min(self.report_at)
    }

    fn on_time(&mut self, now: Time) {
        if let Some(control) = &mut self.control
            && control.scheme.deadline() <= now
        {
            control.scheme.on_deadline(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
            self.obey();
        }
        if now >= self.report_at {
            self.emit_progress(now);
        }
        if now >= self.record_at {
            self.record_at = now + RECORD_EVERY;
            if let Err(error) = self.record() {
                self.fail(error.into());
            }
        }
        if self.ended.is_none() {
            let silent = now >= self.last_received_at + self.setup.idle_timeout;
            self.ended = match self.followed {
                Some(_) if silent => Some(Ended::Silent),
                None if self.setup.join_timeout.is_some_and(|timeout| now >= self.started + timeout) => {
                    Some(Ended::NoSession)
                }
                _ => None,
            };
        }
    }

    /// Records the received symbols of the files. A killed process loses only symbols that arrived later.
    fn record(&mut self) -> Result<(), ObjectError> {
        let Some(place) = &self.place else { return Ok(()) };
        let open = self.objects.values_mut().filter_map(|object| match object {
            Object::Open(assembly) if assembly.is_newer() => Some(assembly),
            _ => None,
        });
        open.take(MAX_AT_ONCE).try_for_each(|assembly| assembly.record(place))
    }

    /// Processes a datagram received from `from` at `at`.
    ///
    /// # Errors
    /// When the content of the datagram cannot be written.
    fn on_datagram(&mut self, bytes: &[u8], from: IpAddr, at: Time) -> Result<(), Error> {
        if self.ended.is_some() || self.setup.only.is_some_and(|only| only != from) {
            return Ok(());
        }
        let (packet, tsi) = match codec::parse(bytes) {
            Ok(packet @ Packet { tsi: Some(tsi), .. }) => (packet, tsi),
            _ => {
                self.report.refused += 1;
                return Ok(());
            }
        };
        if *self.followed.get_or_insert((from, tsi)) != (from, tsi) {
            self.report.refused += 1;
            return Ok(());
        }
        self.begun.get_or_insert(at);
        self.last_received_at = at;
        self.bytes += (bytes.len() + self.setup.overhead) as u64;
        if !self.steer(&packet, bytes.len(), at) {
            return Ok(());
        }
        self.report.packets += 1;
        match packet.toi {
            Some(FDT_TOI) if packet.extensions.fdt.is_some() => self.take_table(&packet, at)?,
            Some(toi) if toi != FDT_TOI => self.take_symbols(toi, &packet, bytes)?,
            _ => {}
        }
        if matches!(packet.closing, Closing::Session | Closing::Both) {
            self.ended.get_or_insert(Ended::Closed);
        }
        Ok(())
    }

    fn fail(&mut self, error: Error) {
        self.failure.get_or_insert(error);
        self.ended.get_or_insert(Ended::Stopped);
    }

    /// Passes the packet to the congestion control and returns whether it belongs to a joined layer.
    fn steer(&mut self, packet: &Packet<'_>, len: usize, now: Time) -> bool {
        let (Some(control), Some(rlc)) = (&mut self.control, Rlc::from_bytes(packet.cci)) else {
            return true;
        };
        if rlc.layer.0 > control.level {
            return false;
        }
        let stream = &mut control.streams[usize::from(rlc.layer.0)];
        let seq = stream.number(rlc.seq);
        let arrival = stream.gaps.on_arrival(seq);
        let size = (len + self.setup.overhead) as u16;
        // Like a packet number, the slot is the number nearest to the newest slot.
        let newest = control.slot.unwrap_or(rlc.slot);
        let ahead = (rlc.slot.wrapping_sub(newest) << 8) as i32 >> 8;
        let slot = newest.saturating_add_signed(ahead);
        control.slot = Some(newest.max(slot));
        let data = Data {
            seq,
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload::NONE,
            flags: Flags::default(),
            signal: rlc.signal,
            mark: Mark::Timetable { slot },
        };
        self.report.lost += u64::from(arrival.lost);
        let arrival = Arrival { size, ..arrival };
        control.scheme.on_data(
            &data,
            rlc.layer,
            arrival,
            &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects },
        );
        self.obey();
        true
    }

    /// Handles a failed join of a layer: continues with the layers below it.
    fn on_join_failed(&mut self, place: usize, why: &dyn std::fmt::Display) {
        let Some(control) = &mut self.control else { return };
        let joined = place as u8;
        control.top = control.top.min(joined);
        control.level = control.level.min(joined);
        self.events.push_back(Event::warning(format!(
            "cannot join layer {}, so only {} are received: {why}",
            place + 1,
            place + 1
        )));
    }

    /// Carries out the decisions of the congestion control.
    fn obey(&mut self) {
        let Some(control) = &mut self.control else { return };
        for effect in self.effects.drain() {
            let Effect::Subscribe(Layer(level)) = effect else {
                self.failure.get_or_insert(Error::effect("receiver", &effect));
                self.ended.get_or_insert(Ended::Stopped);
                continue;
            };
            let level = level.min(control.top);
            for layer in control.level + 1..=level {
                control.streams[usize::from(layer)] = Stream::new();
                self.report.joins += 1;
            }
            self.report.leaves += u64::from(control.level.saturating_sub(level));
            control.level = level;
            self.report.highest_layer = self.report.highest_layer.max(level.into());
        }
    }

    fn take_table(&mut self, packet: &Packet<'_>, now: Time) -> Result<(), Error> {
        let (Some(header), Some(id)) = (packet.extensions.fdt, packet.payload_id) else { return Ok(()) };
        if self.instance == Some(header.instance) {
            return Ok(());
        }
        if packet.extensions.encoding.is_some_and(|encoding| encoding != 0) {
            self.warn_once("the table of files is compressed, which is not supported");
            return Ok(());
        }
        let at = match self.tables.iter().position(|(instance, _)| *instance == header.instance) {
            Some(at) => at,
            None => {
                let Some(table) = packet.extensions.oti.and_then(Table::new) else { return Ok(()) };
                self.tables.truncate(TABLES - 1);
                self.tables.push_front((header.instance, table));
                0
            }
        };
        if !self.tables[at].1.take(id.block, id.symbol, packet.symbols) {
            return Ok(());
        }
        let Some((instance, table)) = self.tables.remove(at) else { return Ok(()) };
        match Fdt::parse(&table.bytes) {
            Ok(fdt) => {
                self.instance = Some(instance);
                self.read_table(fdt, now)?;
            }
            Err(error) => self.warn_once(&format!("the table of files cannot be read: {error}")),
        }
        Ok(())
    }

    fn warn_once(&mut self, text: &str) {
        if self.reported.contains(text) {
            return;
        }
        self.report.skipped_count += 1;
        if self.reported.len() < MAX_REASONS {
            self.reported.insert(text.to_owned());
            self.report.skipped.push(text.to_owned());
            self.events.push_back(Event::warning(text.to_owned()));
        }
    }

    /// Begins a file of a table, if it can be received.
    fn begin(&mut self, file: &codec::File) -> Object {
        let begun = Assembly::begin(file, self.setup.names).and_then(|assembly| {
            let most = self.setup.most.unwrap_or(u64::MAX);
            match self.promised.checked_add(assembly.len()).filter(|all| *all <= most) {
                Some(all) => Ok((assembly, all)),
                None => Err(Unfit::TooMuch(assembly.len(), most)),
            }
        });
        match begun {
            Ok((assembly, promised)) => {
                self.promised = promised;
                Object::Open(Box::new(assembly))
            }
            Err(why) => {
                self.warn_once(&format!("{} is not accepted: {why}", file.location.escape_debug()));
                Object::Skipped
            }
        }
    }

    /// Returns the memory of incomplete blocks, in bytes.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// Limits the memory of incomplete blocks. Removes the last incomplete blocks of the last files first; the source sends their
    /// symbols again later.
    fn make_room(&mut self) {
        let mut objects = self.objects.values_mut().rev();
        while self.held > MAX_HELD {
            let Some(object) = objects.next() else { return };
            let Object::Open(assembly) = object else { continue };
            while self.held > MAX_HELD && assembly.held() > 0 {
                self.held -= assembly.let_last_go();
            }
        }
    }

    fn read_table(&mut self, fdt: Fdt, now: Time) -> Result<(), Error> {
        let unix = self.setup.unix_secs + now.as_nanos() / 1_000_000_000;
        if fdt.expires < unix + NTP_UNIX_SECS {
            self.warn_once(
                "a table of files has expired and is ignored; check the clocks of source and receiver",
            );
            return Ok(());
        }
        self.complete |= fdt.complete;
        if let Some(layering) = &fdt.layering
            && self.control.is_none()
        {
            self.begin_control(layering);
        }
        let news = fdt.files.iter().filter(|file| !self.objects.contains_key(&file.toi)).count();
        for file in fdt.files {
            if file.toi == FDT_TOI || self.objects.contains_key(&file.toi) {
                continue;
            }
            if self.objects.len() >= MAX_OBJECTS {
                self.report.known += 1;
                self.warn_once(&format!(
                    "the tables have more than {MAX_OBJECTS} files; further files are ignored"
                ));
                break;
            }
            let object = self.begin(&file);
            self.report.known += 1;
            self.open += usize::from(matches!(object, Object::Open(_)));
            self.objects.insert(file.toi, object);
            self.act(file.toi, |assembly, place| assembly.resume(place))?;
        }
        if news > 0 {
            let resumed_bytes = self.objects.values().map(Object::received).sum();
            let lens = self.objects.values().map(|object| match object {
                Object::Open(assembly) => assembly.len(),
                Object::Done | Object::Skipped => 0,
            });
            self.events.push_back(Event::Content {
                transfer: TransferName::Foreign(
                    self.followed.map_or(String::new(), |(from, tsi)| format!("{from}/{tsi}")),
                ),
                files: self.report.known,
                links: 0,
                directories: 0,
                bytes: Some(lens.sum()),
                resumed_bytes,
            });
        }
        for (toi, bytes) in std::mem::take(&mut self.early) {
            if let Ok(packet) = codec::parse(&bytes) {
                self.take_symbols(toi, &packet, &bytes)?;
            }
        }
        self.check_completion();
        Ok(())
    }

    fn begin_control(&mut self, layering: &Layering) {
        let scheme = layering.scheme.parse::<Scheme>().ok().filter(|scheme| scheme.works_over(Wire::Alc));
        let Some(scheme) = scheme else {
            let text = layering.scheme.escape_debug();
            return self.warn_once(&format!(
                "the session's congestion control ({text}) is not known; only its lowest layer is received"
            ));
        };
        let me = ReceiverId::new(self.setup.random | 1).expect("an odd number is not zero");
        let streams = (0..scheme.layers()).map(|_| Stream::new()).collect();
        let groups: Vec<_> = (1..scheme.layers())
            .map_while(|layer| group_of(self.setup.group, Layer(layer), layering.spacing))
            .collect();
        let top = groups.len() as u8;
        if top + 1 < scheme.layers() {
            self.warn_once(&format!(
                "the session has {} layers, but the group addresses from {} upwards suffice for only {}",
                scheme.layers(),
                self.setup.group,
                top + 1
            ));
        }
        self.report.layers = scheme.layers().into();
        let scheme = scheme.with_packet_size(layering.packet_size).receiver(me);
        self.control = Some(Control { scheme, level: 0, top, groups, streams, slot: None });
    }

    fn take_symbols(&mut self, toi: u128, packet: &Packet<'_>, bytes: &[u8]) -> Result<(), Error> {
        let Some(id) = packet.payload_id else { return Ok(()) };
        let fec: Fec = packet.fec;
        match self.objects.get(&toi) {
            // A later table may contain this file, so its packets are stored.
            None => {
                if self.early.len() < EARLY && !self.complete {
                    self.early.push_back((toi, bytes.to_vec()));
                }
                return Ok(());
            }
            Some(Object::Open(assembly)) if assembly.oti().fec() == fec => {}
            Some(_) => return Ok(()),
        }
        self.act(toi, |assembly, place| assembly.take(id, packet.symbols, place))?;
        self.check_completion();
        Ok(())
    }

    /// Performs an action on a file and processes the result.
    fn act(
        &mut self,
        toi: u128,
        act: impl FnOnce(&mut Assembly, &OutputDirectory) -> Result<SymbolResult, ObjectError>,
    ) -> Result<(), Error> {
        let (Some(place), Some(object)) = (&self.place, self.objects.get_mut(&toi)) else { return Ok(()) };
        let Object::Open(assembly) = object else { return Ok(()) };
        self.held -= assembly.held();
        let taken = act(assembly, place);
        self.held += assembly.held();
        let taken = match taken {
            Err(error @ ObjectError::InTheWay { .. }) => {
                self.held -= assembly.held();
                assembly.abandon(place);
                self.promised -= assembly.len();
                self.objects.insert(toi, Object::Skipped);
                self.open -= 1;
                self.warn_once(&format!("a file is not accepted: {error}"));
                return Ok(());
            }
            other => other?,
        };
        match taken {
            SymbolResult::Useless | SymbolResult::More => {}
            SymbolResult::Done => {
                self.report.files += 1;
                self.report.verified += u64::from(assembly.is_checked());
                self.report.bytes += assembly.len();
                self.held -= assembly.held();
                self.count(toi);
                self.objects.insert(toi, Object::Done);
                self.open -= 1;
            }
            SymbolResult::Wrong => {
                let path = assembly.path().to_owned();
                self.warn_once(&format!("{path} does not match the MD5 of the table; it is received again"));
            }
        }
        self.make_room();
        Ok(())
    }

    /// Adds a file's symbols to the report.
    fn count(&mut self, toi: u128) {
        let Some(Object::Open(assembly)) = self.objects.get(&toi) else { return };
        let (came, needed) = assembly.symbols();
        let before = self.report.bytes - assembly.len();
        let ratio = came as f64 / needed.max(1) as f64;
        // The ratio is a mean over all files, weighted by their lengths.
        let (old, new) = (before as f64, assembly.len() as f64);
        if old + new > 0.0 {
            self.report.symbol_ratio = (self.report.symbol_ratio * old + ratio * new) / (old + new);
        }
        self.report.repaired_blocks += assembly.repaired();
    }

    fn check_completion(&mut self) {
        if self.complete && self.open == 0 && !self.objects.is_empty() {
            self.ended.get_or_insert(Ended::Complete);
        }
    }

    fn emit_progress(&mut self, now: Time) {
        let len = |object: &Object| if let Object::Open(assembly) = object { assembly.len() } else { 0 };
        let some: u64 = self.objects.values().map(Object::received).sum();
        let all: u64 = self.objects.values().map(len).sum();
        let past = now.since(self.report_at).as_secs_f64() + 1.0;
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(self.started).into(),
            bytes: self.report.bytes + some,
            moved_bytes: self.report.bytes + some,
            total_bytes: (!self.objects.is_empty()).then_some(self.report.bytes + all),
            rate: Rate::from_bps((self.bytes - self.reported_bytes) as f64 * 8.0 / past),
            ..Progress::default()
        }));
        self.reported_bytes = self.bytes;
        self.report_at = now + Span::from_secs(1);
    }
}

impl Endpoint for AlcReceiver {
    fn handle_datagram(&mut self, datagram: Datagram<'_>, _now: Time) {
        if let Err(error) = self.on_datagram(datagram.bytes, datagram.from.ip(), datagram.arrived) {
            self.fail(error);
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn handle_host_event(&mut self, notice: HostEvent<'_>, _now: Time) {
        match notice {
            HostEvent::Backlog(backlog) => self.report.dropped_local = backlog.dropped,
            HostEvent::JoinFailed { place, why } => self.on_join_failed(place, why),
            HostEvent::Drained | HostEvent::NetworkChanged { .. } => {}
        }
    }

    /// An ALC receiver sends no packets.
    fn poll_transmit(&mut self, _now: Time, _out: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self, _now: Time) -> Time {
        self.next_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn groups(&self) -> &[SocketAddr] {
        self.control.as_ref().map_or(&[], |control| &control.groups[..usize::from(control.level)])
    }

    fn silence(&self, now: Time) -> Option<Span> {
        self.followed.filter(|_| self.ended.is_none()).map(|_| now.since(self.last_received_at))
    }

    fn stop(&mut self, _now: Time) {
        self.ended.get_or_insert(Ended::Stopped);
    }

    fn is_finished(&self) -> bool {
        self.ended.is_some()
    }
}

impl Reporting for AlcReceiver {
    type Report = AlcReceiveReport;

    fn report(mut self) -> Result<AlcReceiveReport, Error> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut stored = 0;
        if let Some(place) = &self.place {
            for object in self.objects.values_mut() {
                if let Object::Open(assembly) = object {
                    stored += u64::from(assembly.keep(place));
                }
            }
        }
        self.place = None;
        let mut report = self.report;
        let receiving = self.begun.map_or(Span::ZERO, |begun| self.last_received_at.since(begun));
        report.duration = receiving.into();
        report.goodput = mean_rate(report.bytes, receiving);
        report.ok = report.known > 0 && report.files == report.known;
        let why = match self.ended {
            Some(Ended::NoSession) => {
                let waited = self.setup.join_timeout.unwrap_or_default();
                let waited = std::time::Duration::from_nanos(waited.as_nanos());
                return Err(AlcError::NoSession { group: self.setup.group, waited }.into());
            }
            Some(Ended::Stopped) if !report.ok => return Err(Error::Transfer(TransferError::Stopped)),
            _ if report.ok || !report.skipped.is_empty() => return Ok(report),
            Some(Ended::Closed) => "the source ended the session",
            _ => "the source stopped sending",
        };
        Err(AlcError::Ended { why, files: report.files, known: report.known, stored }.into())
    }
}

impl Table {
    fn new(oti: Oti) -> Option<Table> {
        let blocks = oti.blocks()?;
        let sound = matches!(oti.fec(), Fec::NoCode | Fec::ReedSolomon)
            && oti.transfer_length <= MAX_FDT as u64
            && !blocks.is_empty();
        if !sound {
            return None;
        }
        let symbols = blocks.symbols() as usize;
        let bytes = vec![0; oti.transfer_length as usize];
        Some(Table { oti, blocks, bytes, have: vec![false; symbols], missing: symbols })
    }

    /// Processes symbols. Returns whether the table is complete.
    fn take(&mut self, block: u32, symbol: u32, bytes: &[u8]) -> bool {
        let size = usize::from(self.oti.symbol_size);
        for (symbol, bytes) in (symbol..).zip(bytes.chunks(size)) {
            if symbol >= self.blocks.len(block) {
                break;
            }
            let number = (self.blocks.first(block) + u64::from(symbol)) as usize;
            let into = &mut self.bytes[number * size..];
            let wanted = into.len().min(size);
            if bytes.len() >= wanted && !self.have[number] {
                into[..wanted].copy_from_slice(&bytes[..wanted]);
                self.have[number] = true;
                self.missing -= 1;
            }
        }
        self.missing == 0
    }
}

#[cfg(test)]
mod unwrapping {
    use super::*;

    #[test]
    fn packet_numbers_extend_beyond_16_bits() {
        let mut stream = Stream::new();
        let start = stream.number(65_534).0;
        let rest = [65_535u16, 1, 0, 2].map(|low| stream.number(low).0 - start);
        assert_eq!(rest, [1, 3, 2, 4]);
    }

    #[test]
    fn table_is_complete_after_all_symbols_in_any_order() {
        let params = crate::codec::Params::NoCode { max_block: 2 };
        let mut table =
            Table::new(Oti { transfer_length: 10, symbol_size: 4, params }).expect("it can be cut");
        assert!(!table.take(1, 0, b"ij"));
        assert!(!table.take(0, 1, b"efgh"));
        assert!(!table.take(0, 7, b"xxxx"));
        assert!(table.take(0, 0, b"abcd"));
        assert_eq!(table.bytes, b"abcdefghij");
    }
}
