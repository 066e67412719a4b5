//! A tiny network for tests: a source and a star of drop-tail bottlenecks, one receiver behind each.

use super::{AnyReceiver, AnySource, SaysRate, Scheme};
use crate::node::{Cx, Departure, Effect, Effects, Receiver as _, Source as _};
use crate::packet::{Arrival, Data, Echo, Layer, Payload, ReceiverId, Report, ReportContent, Seq};
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// The path to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    /// Both ways together.
    pub rtt: Span,
    /// Of the queue, in bytes.
    pub buffer: u64,
}

pub struct Leaf {
    pub path: Path,
    pub receiver: AnyReceiver,
    /// Reports sent to the source.
    pub reports: u32,
    /// Bytes received.
    pub bytes: u64,
    id: ReceiverId,
    rng: Rng,
    busy_until: Time,
    next: Seq,
    heard: u64,
    /// When the next sign of life is due.
    alive_at: Time,
}

pub struct Star {
    pub source: AnySource,
    pub leaves: Vec<Leaf>,
    pub now: Time,
    /// Bytes sent, by milliseconds.
    pub sent: Vec<u64>,
    /// Which part of the reports is lost.
    pub report_loss: f64,
    size: u16,
    says_rate: SaysRate,
    rng: Rng,
    effects: Effects,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
}

/// As a transport's receivers do.
const ALIVE_EVERY: Span = Span::from_millis(250);

enum Event {
    Arrive(usize, Data),
    Report(Report),
}

pub fn receiver_id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("receivers are numbered from one")
}

impl Star {
    pub fn new(scheme: &Scheme, size: u16, paths: &[Path], seed: u64) -> Star {
        let leaves = paths.iter().zip(1..).map(|(&path, number)| Leaf {
            path,
            receiver: scheme.receiver(receiver_id(number)),
            reports: 0,
            bytes: 0,
            id: receiver_id(number),
            rng: Rng::new(seed, number),
            busy_until: Time::ZERO,
            next: Seq(0),
            heard: 0,
            alive_at: Time::ZERO,
        });
        let mut star = Star {
            source: scheme.source(),
            leaves: leaves.collect(),
            now: Time::ZERO,
            sent: Vec::new(),
            report_loss: 0.0,
            size,
            says_rate: scheme.entry().says_rate,
            rng: Rng::new(seed, 0),
            effects: Effects::new(),
            events: BTreeMap::new(),
            order: 0,
        };
        star.source.start(&mut Cx { now: Time::ZERO, rng: &mut star.rng, effects: &mut star.effects });
        star
    }

    pub fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    /// Bytes sent between two moments.
    pub fn sent_between(&self, from: usize, to: usize) -> u64 {
        self.sent[from.min(self.sent.len())..to.min(self.sent.len())].iter().sum()
    }

    /// The most that was sent within any `millis` milliseconds, as a rate.
    pub fn peak(&self, millis: usize) -> Rate {
        let most = (0..self.sent.len()).map(|from| self.sent_between(from, from + millis)).max();
        Rate::of(most.unwrap_or(0), Span::from_millis(millis as u64))
    }

    fn departure(&self) -> Time {
        match self.source.departure(Layer(0)) {
            Departure::At(time) => time.max(self.now),
            Departure::AfterReport => Time::NEVER,
        }
    }

    /// The earliest thing before `end`; false when there is none.
    fn step(&mut self, end: Time) -> bool {
        let timers = self.leaves.iter().map(|leaf| leaf.receiver.deadline()).min().unwrap_or(Time::NEVER);
        let timers = timers.min(self.source.deadline());
        let event = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let next = timers.min(event).min(self.departure());
        if next >= end {
            return false;
        }
        self.now = next.max(self.now);
        if timers <= self.now {
            self.run_timers();
        } else if event <= self.now {
            match self.events.pop_first() {
                Some((_, Event::Arrive(leaf, data))) => self.arrive(leaf, data),
                Some((_, Event::Report(report))) => self.report(report),
                None => {}
            }
        } else {
            self.depart();
        }
        true
    }

    fn run_timers(&mut self) {
        for index in 0..self.leaves.len() {
            let leaf = &mut self.leaves[index];
            if leaf.receiver.deadline() <= self.now {
                let cx = &mut Cx { now: self.now, rng: &mut leaf.rng, effects: &mut self.effects };
                leaf.receiver.on_deadline(cx);
                self.carry_reports(index);
            }
        }
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        self.source.on_deadline(cx);
        assert!(self.source.deadline() > self.now, "a deadline is dealt with when it is called");
    }

    fn depart(&mut self) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let stamp = self.source.on_departure(Layer(0), self.size, cx);
        let millis = (self.now.as_nanos() / 1_000_000) as usize;
        self.sent.resize(self.sent.len().max(millis + 1), 0);
        self.sent[millis] += u64::from(self.size);
        let data = Data {
            seq: stamp.seq,
            sent_at: self.now,
            rate: self.says_rate.said(stamp.flags, stamp.rate.bps() as f32),
            payload: Payload::NONE,
            flags: stamp.flags,
            signal: stamp.signal,
            mark: stamp.mark,
        };
        for index in 0..self.leaves.len() {
            let leaf = &mut self.leaves[index];
            let backlog = leaf.path.rate.bytes_in(leaf.busy_until.since(self.now));
            if backlog + u64::from(self.size) > leaf.path.buffer {
                continue;
            }
            leaf.busy_until = leaf.busy_until.max(self.now) + leaf.path.rate.span_of(u64::from(self.size));
            let at = leaf.busy_until + leaf.path.rtt / 2;
            self.schedule(at, Event::Arrive(index, data));
        }
    }

    fn arrive(&mut self, index: usize, data: Data) {
        let leaf = &mut self.leaves[index];
        let lost = if leaf.heard == 0 { 0 } else { data.seq.0 - leaf.next.0 };
        let arrival = Arrival { size: self.size, lost: lost as u32, ..Arrival::default() };
        leaf.next = data.seq.next();
        leaf.bytes += u64::from(self.size);
        leaf.heard += 1;
        let cx = &mut Cx { now: self.now, rng: &mut leaf.rng, effects: &mut self.effects };
        leaf.receiver.on_data(&data, Layer(0), arrival, cx);
        if self.now >= leaf.alive_at {
            leaf.alive_at = self.now + ALIVE_EVERY;
            let content = ReportContent::Alive { echo: Echo { seq: data.seq, hold: Span::ZERO } };
            self.effects.push(Effect::Report(Report { from: leaf.id, layer: Layer(0), content }));
        }
        self.carry_reports(index);
    }

    fn carry_reports(&mut self, index: usize) {
        let at = self.now + self.leaves[index].path.rtt / 2;
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain() {
            let Effect::Report(report) = effect else { panic!("a receiver only reports") };
            self.leaves[index].reports += 1;
            if !self.rng.chance(self.report_loss) {
                self.schedule(at, Event::Report(report));
            }
        }
        self.effects = effects;
    }

    fn report(&mut self, report: Report) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        self.source.on_report(&report, cx);
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }
}
