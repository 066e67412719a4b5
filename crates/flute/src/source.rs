//! The source: selection and timing of the next packet.

use super::files::{Carousel, Found, Object};
use super::{AlcSendReport, Repeat};
use crate::codec::{
    self, Closing, Extensions, FDT_TOI, FLUTE_VERSION, Fdt, FdtHeader, Fec, Layering, NTP_UNIX_SECS, Oti,
    Packet, Params, PayloadId, Rlc,
};
use crate::error::AlcError;
use faircast_core::node::{Cx, Departure, Effects, Source, Stamp};
use faircast_core::packet::{Layer, Mark};
use faircast_core::rng::Rng;
use faircast_core::schemes::AnySource;
use faircast_core::time::{Rate, Span, Time};
use faircast_driver::format::Reporting;
use faircast_transport::endpoint::{Datagram, Endpoint, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::{Event, Progress};
use faircast_transport::units::mean_rate;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Minimum interval between transmissions of the table.
const TABLE_EVERY: Span = Span::from_secs(1);
/// Maximum share of the table's packets: one in this number of packets.
const TABLE_SHARE: u64 = 20;
/// Period of validity of a table.
const TABLE_HOLDS: Span = Span::from_secs(7 * 86_400);
/// Number of packets that announce the end, because each of them can be lost.
const GOODBYES: u32 = 3;
/// After a longer pause, a source with a fixed rate makes up for only this much of the pause.
const BURST: Span = Span::from_millis(25);
/// Modulus of instance numbers, which have 20 bits.
const INSTANCES: u32 = 1 << 20;

/// Parameters of a source.
pub(super) struct Setup {
    pub tsi: u16,
    /// The groups of all layers, the base layer first.
    pub groups: Vec<SocketAddr>,
    pub found: Found,
    pub pace: Pace,
    pub layering: Option<Layering>,
    pub repeat: Repeat,
    /// Bytes of symbols in a packet of the table.
    pub room: u16,
    /// Bytes of IP and UDP headers.
    pub overhead: usize,
    pub unix_secs: u64,
    pub rng: Rng,
}

/// Determines the times of packets.
pub(super) enum Pace {
    Fixed { rate: Rate, next: Time },
    Timetable(Box<AnySource>),
}

pub(crate) struct AlcSource {
    tsi: u16,
    groups: Vec<SocketAddr>,
    objects: Vec<Object>,
    carousel: Carousel,
    pace: Pace,
    layering: Option<Layering>,
    repeat: Repeat,
    room: usize,
    overhead: usize,
    unix_secs: u64,
    rng: Rng,
    effects: Effects,
    table: Table,
    state: State,
    started: Time,
    sent_bytes: u64,
    /// Bytes sent before the latest progress event.
    reported_bytes: u64,
    report_at: Time,
    report: AlcSendReport,
    symbols: Vec<u8>,
    events: VecDeque<Event>,
    failure: Option<Error>,
}

/// The encoded table of files.
#[derive(Default)]
struct Table {
    instance: u32,
    bytes: Vec<u8>,
    /// Next symbol of the table; `None` while the table is not being sent.
    next: Option<u32>,
    due: Time,
    /// Number of packets of the base layer since the latest transmission of the table.
    since: u64,
    renew_at: Time,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Sending,
    /// Ending, with this number of remaining announcements.
    Ending(u32),
    Over,
}

impl AlcSource {
    pub(super) fn new(setup: Setup, now: Time) -> AlcSource {
        let Setup { tsi, groups, found, pace, layering, repeat, room, overhead, unix_secs, rng } = setup;
        let bytes = found.objects.iter().map(|object| object.oti.transfer_length).sum();
        let layers = match &pace {
            Pace::Fixed { .. } => 1,
            Pace::Timetable(source) => source.layers(),
        };
        let report = AlcSendReport {
            files: found.objects.len() as u64,
            bytes,
            layers: layers.into(),
            ..Default::default()
        };
        let mut session = AlcSource {
            tsi,
            groups,
            objects: found.objects,
            carousel: Carousel::new(found.content),
            pace,
            layering,
            repeat,
            room: room.into(),
            overhead,
            unix_secs,
            rng,
            effects: Effects::new(),
            table: Table::default(),
            state: State::Sending,
            started: now,
            sent_bytes: 0,
            reported_bytes: 0,
            report_at: now + Span::from_secs(1),
            report,
            symbols: Vec::new(),
            events: VecDeque::new(),
            failure: None,
        };
        session.write_table(now);
        match &mut session.pace {
            Pace::Fixed { next, .. } => *next = now,
            Pace::Timetable(source) => {
                source.start(&mut Cx { now, rng: &mut session.rng, effects: &mut session.effects });
            }
        }
        session
    }

    /// Ends the session: the carousel stops immediately.
    fn end(&mut self) {
        if self.state == State::Sending {
            self.state = State::Ending(GOODBYES);
        }
    }

    /// Returns the time of the next action.
    fn next_timeout(&self) -> Time {
        self.departure().map_or(Time::NEVER, |(_, at)| at).min(self.report_at).min(match &self.pace {
            Pace::Fixed { .. } => Time::NEVER,
            Pace::Timetable(source) => source.deadline(),
        })
    }

    /// Returns the layer that may send first, and the time at which it may send.
    fn departure(&self) -> Option<(Layer, Time)> {
        match &self.pace {
            Pace::Fixed { next, .. } => Some((Layer(0), *next)),
            Pace::Timetable(source) => (0..source.layers())
                .filter_map(|layer| match source.departure(Layer(layer)) {
                    Departure::At(at) if !at.is_never() => Some((Layer(layer), at)),
                    Departure::At(_) | Departure::AfterReport => None,
                })
                .min_by_key(|(layer, at)| (*at, *layer)),
        }
    }

    fn on_time(&mut self, now: Time) {
        if let Pace::Timetable(source) = &mut self.pace
            && source.deadline() <= now
        {
            source.on_deadline(&mut Cx { now, rng: &mut self.rng, effects: &mut self.effects });
        }
        if now >= self.report_at {
            self.emit_progress(now);
        }
        if self.state == State::Sending && self.is_enough(now) {
            self.state = State::Ending(GOODBYES);
        }
    }

    fn is_enough(&self, now: Time) -> bool {
        match self.repeat {
            Repeat::Rounds(rounds) => self.carousel.rounds() >= rounds,
            Repeat::For(duration) => now.since(self.started).as_secs_f64() >= duration.as_secs_f64(),
            Repeat::Forever => false,
        }
    }

    /// Returns the layer of the next packet that may be sent now, and writes the packet to `out`.
    fn next(&mut self, now: Time, out: &mut Vec<u8>) -> Result<Option<Layer>, Error> {
        out.clear();
        if let Some(effect) = self.effects.refuse() {
            return Err(Error::effect("source", &effect));
        }
        let Some((layer, _)) = self.departure().filter(|(_, at)| *at <= now && self.state != State::Over)
        else {
            return Ok(None);
        };
        // The scheme accounts for full packets, and the size of this packet does not change.
        let stamp = match &mut self.pace {
            Pace::Fixed { .. } => None,
            Pace::Timetable(source) => {
                let size = self.layering.as_ref().map_or(0, |layering| layering.packet_size);
                let mut cx = Cx { now, rng: &mut self.rng, effects: &mut self.effects };
                Some(source.on_departure(layer, size, &mut cx))
            }
        };
        self.write(layer, stamp, now, out)?;
        let size = (out.len() + self.overhead) as u64;
        if let Pace::Fixed { rate, next } = &mut self.pace {
            let earliest = Time::from_nanos(now.as_nanos().saturating_sub(BURST.as_nanos()));
            *next = (*next).max(earliest) + rate.span_of(size);
        }
        self.sent_bytes += size;
        self.report.packets += 1;
        let sending = now.since(self.started);
        self.report.duration = sending.into();
        self.report.rate = mean_rate(self.sent_bytes, sending);
        self.report.rounds = self.carousel.rounds();
        self.report.ok = self.report.rounds > 0;
        Ok(Some(layer))
    }

    fn write(
        &mut self,
        layer: Layer,
        stamp: Option<Stamp>,
        now: Time,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let cci = stamp.map(|stamp| rlc(layer, &stamp));
        let cci: &[u8] = cci.as_ref().map_or(&[0; 4], |cci| cci);
        let blank = Packet {
            cci,
            tsi: Some(self.tsi.into()),
            toi: Some(FDT_TOI),
            fec: Fec::NoCode,
            psi: 0,
            closing: Closing::Nothing,
            extensions: Extensions::default(),
            payload_id: None,
            symbols: &[],
        };
        if let State::Ending(left) = self.state {
            self.state = if left > 1 { State::Ending(left - 1) } else { State::Over };
            return Ok(codec::encode(out, &Packet { closing: Closing::Session, toi: None, ..blank })
                .map_err(AlcError::Encode)?);
        }
        if layer == Layer(0) && self.table_is_due(now) {
            let (oti, symbol) = self.next_of_table(now);
            let from = symbol as usize * self.room;
            let header = FdtHeader { version: FLUTE_VERSION, instance: self.table.instance };
            let packet = Packet {
                extensions: Extensions { fdt: Some(header), oti: Some(oti), ..Extensions::default() },
                payload_id: Some(PayloadId { block: 0, symbol }),
                symbols: &self.table.bytes[from..self.table.bytes.len().min(from + self.room)],
                ..blank
            };
            self.report.table_packets += 1;
            return Ok(codec::encode(out, &packet).map_err(AlcError::Encode)?);
        }
        self.table.since += u64::from(layer == Layer(0));
        self.symbols.clear();
        let Some(place) = self.carousel.next(&self.objects, &mut self.symbols)? else {
            // All files are empty, so the table contains all information.
            self.table.next = Some(0);
            return self.write(Layer(0), stamp, now, out);
        };
        let object = &self.objects[place.object];
        let packet = Packet {
            toi: Some(object.file.toi),
            fec: object.oti.fec(),
            payload_id: Some(place.id),
            symbols: &self.symbols,
            ..blank
        };
        Ok(codec::encode(out, &packet).map_err(AlcError::Encode)?)
    }

    fn table_is_due(&self, now: Time) -> bool {
        let table = &self.table;
        let share = TABLE_SHARE * table.bytes.len().div_ceil(self.room) as u64;
        table.next.is_some() || (now >= table.due && table.since >= share)
    }

    /// Returns the table's next symbol.
    fn next_of_table(&mut self, now: Time) -> (Oti, u32) {
        if self.table.next.is_none() && now >= self.table.renew_at {
            self.table.instance = (self.table.instance + 1) % INSTANCES;
            self.write_table(now);
        }
        let symbol = self.table.next.unwrap_or(0);
        let symbols = self.table.bytes.len().div_ceil(self.room) as u32;
        self.table.next = Some(symbol + 1).filter(|next| *next < symbols);
        if self.table.next.is_none() {
            (self.table.due, self.table.since) = (now + TABLE_EVERY, 0);
        }
        let params = Params::NoCode { max_block: 1 << 16 };
        (
            Oti { transfer_length: self.table.bytes.len() as u64, symbol_size: self.room as u16, params },
            symbol,
        )
    }

    fn write_table(&mut self, now: Time) {
        let until = now + TABLE_HOLDS;
        let fdt = Fdt {
            expires: self.unix_secs + until.as_nanos() / 1_000_000_000 + NTP_UNIX_SECS,
            complete: true,
            layering: self.layering.clone(),
            files: self.objects.iter().map(|object| object.file.clone()).collect(),
        };
        self.table.bytes = fdt.encode().into_bytes();
        self.table.next = Some(0);
        self.table.renew_at = now + TABLE_HOLDS.scaled(0.5);
    }

    fn emit_progress(&mut self, now: Time) {
        let allowed = match &self.pace {
            Pace::Fixed { rate, .. } => *rate,
            Pace::Timetable(source) => source.observe().rate,
        };
        let past = now.since(self.report_at).as_secs_f64() + 1.0;
        self.events.push_back(Event::Progress(Progress {
            elapsed: now.since(self.started).into(),
            bytes: if self.carousel.rounds() > 0 { self.report.bytes } else { 0 },
            moved_bytes: if self.carousel.rounds() > 0 { self.report.bytes } else { 0 },
            total_bytes: Some(self.report.bytes),
            rate: Rate::from_bps((self.sent_bytes - self.reported_bytes) as f64 * 8.0 / past),
            allowed: Some(allowed),
            ..Progress::default()
        }));
        self.reported_bytes = self.sent_bytes;
        self.report_at = now + Span::from_secs(1);
    }
}

impl Endpoint for AlcSource {
    /// This source receives no feedback.
    fn handle_datagram(&mut self, _datagram: Datagram<'_>, _now: Time) {}

    fn handle_timeout(&mut self, now: Time) {
        self.on_time(now);
    }

    fn poll_transmit(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        match self.next(now, out) {
            Ok(layer) => layer.map(|layer| Transmit {
                segment: out.len(),
                to: self.groups[usize::from(layer.0)],
                hops: None,
            }),
            Err(error) => {
                self.failure = Some(error);
                self.state = State::Over;
                None
            }
        }
    }

    fn poll_timeout(&self, _now: Time) -> Time {
        self.next_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn stop(&mut self, _now: Time) {
        self.end();
    }

    fn is_finished(&self) -> bool {
        self.state == State::Over
    }
}

impl Reporting for AlcSource {
    type Report = AlcSendReport;

    fn report(self) -> Result<AlcSendReport, Error> {
        self.failure.map_or(Ok(self.report), Err)
    }
}

fn rlc(layer: Layer, stamp: &Stamp) -> [u8; Rlc::LEN] {
    let slot = match stamp.mark {
        Mark::Timetable { slot } => slot % Rlc::SLOTS,
        _ => 0,
    };
    Rlc { layer, seq: stamp.seq.0 as u16, signal: stamp.signal, slot }.to_bytes()
}
