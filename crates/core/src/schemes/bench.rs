//! Test benches of sources and receivers. A source sends whenever its scheme permits. Either the test itself creates the reports
//! to the source, or the source sends over a star of drop-tail bottlenecks with one receiver behind each. In the bench of a
//! receiver, the test delivers all packets.
//!
//! The tests of a scheme add methods for the scheme's reports in an `impl Bench<Source>`, and methods for the scheme's packets in
//! an `impl Ear<Receiver>`.

use super::{AnyReceiver, AnySource, Scheme, StatedRate};
use crate::node::{Cx, Departure, Effect, Effects, Receiver, Source, Stamp, To};
use crate::packet::{
    Arrival, Body, Data, Echo, Flags, Layer, Mark, Payload, ReceiverId, Report, ReportContent, Seq, Signal,
};
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// The path to one receiver.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: Rate,
    /// Round-trip time without queueing.
    pub rtt: Span,
    /// Capacity of the queue, in bytes.
    pub buffer: u64,
}

/// A receiver and its path.
pub struct Leaf {
    pub path: Path,
    pub receiver: AnyReceiver,
    /// Number of reports sent to the source.
    pub reports: u32,
    /// Bytes received.
    pub bytes: u64,
    id: ReceiverId,
    rng: Rng,
    busy_until: Time,
    next: Seq,
    received: u64,
    /// Time of the receiver's next keepalive report.
    alive_at: Time,
}

/// A sent packet.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub at: Time,
    pub layer: Layer,
    pub stamp: Stamp,
}

/// A source, its receivers, and the packets and reports between them.
pub struct Bench<S> {
    pub source: S,
    /// The receivers; empty if the test itself reports.
    pub leaves: Vec<Leaf>,
    pub now: Time,
    /// New packets, in order.
    pub sent: Vec<Sent>,
    /// Packets that the source has sent again: their numbers, and the times at which they were repeated.
    pub again: Vec<(u64, Time)>,
    /// Fraction of the reports that is lost.
    pub report_loss: f64,
    size: u16,
    stated_rate: StatedRate,
    rng: Rng,
    effects: Effects,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
}

/// A bench with receivers.
pub type Star = Bench<AnySource>;

/// Interval between a receiver's signs of life, as in a real transport.
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
            received: 0,
            alive_at: Time::ZERO,
        });
        let mut star = Bench::of(scheme.source(), size, Time::ZERO, Rng::new(seed, 0));
        (star.leaves, star.stated_rate) = (leaves.collect(), scheme.entry().stated_rate);
        star.call(|source, cx| source.start(cx));
        star
    }
}

impl<S: Source> Bench<S> {
    /// Creates a bench without receivers. The source starts at time zero and sends packets of this size.
    pub fn by_hand(source: S, size: u16) -> Bench<S> {
        Bench::by_hand_at(source, size, Time::ZERO)
    }

    /// Creates a bench without receivers whose source starts at `now`.
    pub fn by_hand_at(source: S, size: u16, now: Time) -> Bench<S> {
        let mut bench = Bench::of(source, size, now, Rng::new(1, 0));
        bench.call(|source, cx| source.start(cx));
        bench
    }

    /// Creates a bench without starting the source.
    pub fn of(source: S, size: u16, now: Time, rng: Rng) -> Bench<S> {
        Bench {
            source,
            leaves: Vec::new(),
            now,
            sent: Vec::new(),
            again: Vec::new(),
            report_loss: 0.0,
            size,
            stated_rate: StatedRate::Always,
            rng,
            effects: Effects::new(),
            events: BTreeMap::new(),
            order: 0,
        }
    }

    /// Calls the source. The source may have only two kinds of effect: repairs, and orders, which are not delivered.
    pub fn call<T>(&mut self, act: impl FnOnce(&mut S, &mut Cx<'_>) -> T) -> T {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let result = act(&mut self.source, cx);
        for effect in self.effects.drain() {
            let Effect::Send { to, packet } = effect else { panic!("{effect:?}") };
            let data = match packet.body {
                Body::Data(data) => data,
                Body::Order(_) => continue,
                _ => panic!("{packet:?}"),
            };
            // Only MTCP repairs for a single child.
            assert!(to == To::Group || matches!(data.mark, Mark::Window { .. }), "{to:?}: {data:?}");
            assert!(data.flags.has(Flags::REPAIR) && data.sent_at <= self.now, "{data:?}");
            self.again.push((data.seq.0, self.now));
        }
        result
    }

    /// Simulates the source, its receivers and the packets and reports between them, up to and including `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.step(end) {}
        self.now = end;
    }

    pub fn run_for(&mut self, span: Span) {
        self.run_until(self.now + span);
    }

    /// Delivers a report about the base layer.
    pub fn report(&mut self, from: u64, content: ReportContent) {
        self.report_about(Layer(0), receiver_id(from), content);
    }

    pub fn report_about(&mut self, layer: Layer, from: ReceiverId, content: ReportContent) {
        self.call(|source, cx| source.on_report(&Report { from, layer, content }, cx));
    }

    /// Sends a packet on this layer now, regardless of the schedule.
    pub fn depart(&mut self, layer: Layer) -> Stamp {
        let size = self.size;
        let stamp = self.call(|source, cx| source.on_departure(layer, size, cx));
        self.sent.push(Sent { at: self.now, layer, stamp });
        stamp
    }

    /// Returns the rate that the source allows, in bit/s.
    pub fn rate(&self) -> f64 {
        self.source.observe().rate.bps()
    }

    /// Returns the receiver that limits the rate.
    pub fn limiting(&self) -> Option<u64> {
        self.source.observe().limiting.map(ReceiverId::get)
    }

    pub fn cuts(&self) -> u64 {
        self.source.observe().cuts
    }

    /// Returns the newest packet of this layer.
    pub fn newest(&self, layer: u8) -> Option<&Sent> {
        self.sent.iter().rev().find(|sent| sent.layer == Layer(layer))
    }

    /// Returns an echo of the newest packet that was sent at least `rtt` ago. The hold time is the packet's age minus `rtt`.
    pub fn echo(&self, rtt: Span) -> Echo {
        let answered = self.sent.iter().rev().find(|sent| self.now.since(sent.at) >= rtt);
        self.echo_of(answered.expect("a packet left long ago"), rtt)
    }

    /// Returns an echo of this packet over a path with this round-trip time.
    pub fn echo_of(&self, sent: &Sent, rtt: Span) -> Echo {
        Echo { seq: sent.stamp.seq, hold: self.now.since(sent.at).saturating_sub(rtt) }
    }

    /// Returns the number of bytes sent.
    pub fn bytes_sent(&self) -> u64 {
        self.sent.len() as u64 * u64::from(self.size)
    }

    /// Returns the number of bytes sent between two times, in milliseconds.
    pub fn sent_between(&self, from: usize, to: usize) -> u64 {
        let place = |millis: usize| {
            self.sent.partition_point(|sent| sent.at < Time::ZERO + Span::from_millis(millis as u64))
        };
        (place(to) - place(from)) as u64 * u64::from(self.size)
    }

    /// Returns the maximum rate over any `millis` milliseconds.
    pub fn peak(&self, millis: usize) -> Rate {
        let end = self.sent.last().map_or(0, |sent| (sent.at.as_nanos() / 1_000_000) as usize + 1);
        let most = (0..end).map(|from| self.sent_between(from, from + millis)).max();
        Rate::of(most.unwrap_or(0), Span::from_millis(millis as u64))
    }

    /// Returns the layer that may send next, and the time at which it may.
    fn departure(&self) -> (Time, Layer) {
        let of = |layer| match self.source.departure(layer) {
            Departure::At(time) => (time.max(self.now), layer),
            Departure::AfterReport => (Time::NEVER, layer),
        };
        (0..self.source.layers()).map(|layer| of(Layer(layer))).min().expect("there is a base layer")
    }

    /// Performs the earliest action by `end`; false if no action is due.
    fn step(&mut self, end: Time) -> bool {
        let timers = self.leaves.iter().map(|leaf| leaf.receiver.deadline()).min().unwrap_or(Time::NEVER);
        let timers = timers.min(self.source.deadline());
        let event = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        let (departure, layer) = self.departure();
        let next = timers.min(event).min(departure);
        if next > end {
            return false;
        }
        self.now = next.max(self.now);
        if timers <= self.now {
            self.run_timers();
        } else if event <= self.now {
            match self.events.pop_first() {
                Some((_, Event::Arrive(leaf, data))) => self.arrive(leaf, data),
                Some((_, Event::Report(report))) => self.call(|source, cx| source.on_report(&report, cx)),
                None => {}
            }
        } else {
            let stamp = self.depart(layer);
            self.carry(stamp);
        }
        true
    }

    fn run_timers(&mut self) {
        for index in 0..self.leaves.len() {
            if self.leaves[index].receiver.deadline() <= self.now {
                self.call_receiver(index, |receiver, cx| receiver.on_deadline(cx));
            }
        }
        self.call(|source, cx| source.on_deadline(cx));
        assert!(self.source.deadline() > self.now, "a deadline is dealt with when it is called");
    }

    /// Delivers a packet to all receivers whose queue has room.
    fn carry(&mut self, stamp: Stamp) {
        let data = Data {
            seq: stamp.seq,
            sent_at: self.now,
            rate: self.stated_rate.stated(stamp.flags, stamp.rate.bps() as f32),
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
        let lost = if leaf.received == 0 { 0 } else { data.seq.0 - leaf.next.0 };
        let arrival = Arrival { size: self.size, lost: lost as u32, ..Arrival::default() };
        leaf.next = data.seq.next();
        leaf.bytes += u64::from(self.size);
        leaf.received += 1;
        let shows_life = self.now >= leaf.alive_at;
        if shows_life {
            leaf.alive_at = self.now + ALIVE_EVERY;
        }
        let from = leaf.id;
        self.call_receiver(index, |receiver, cx| {
            receiver.on_data(&data, Layer(0), arrival, cx);
            if shows_life {
                let content = ReportContent::Alive { echo: Echo { seq: data.seq, hold: Span::ZERO } };
                cx.effects.push(Effect::Report(Report { from, layer: Layer(0), content }));
            }
        });
    }

    /// Calls a receiver, and sends its reports to the source.
    fn call_receiver(&mut self, index: usize, act: impl FnOnce(&mut AnyReceiver, &mut Cx<'_>)) {
        let leaf = &mut self.leaves[index];
        act(&mut leaf.receiver, &mut Cx { now: self.now, rng: &mut leaf.rng, effects: &mut self.effects });
        let at = self.now + leaf.path.rtt / 2;
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

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }
}

/// A receiver driven by a test.
pub struct Ear<R> {
    pub receiver: R,
    pub now: Time,
    pub rng: Rng,
    /// Number of the newest packet, which the test increments.
    pub seq: u64,
    /// The mark of the test's packets.
    pub mark: Mark,
    effects: Effects,
}

impl<R: Receiver> Ear<R> {
    pub fn by_hand(receiver: R, now: Time) -> Ear<R> {
        let (rng, effects) = (Rng::new(1, 1), Effects::new());
        Ear { receiver, now, rng, seq: 0, mark: Mark::None, effects }
    }

    /// Returns the receiver's effects of this call.
    pub fn call(&mut self, act: impl FnOnce(&mut R, &mut Cx<'_>)) -> Vec<Effect> {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        act(&mut self.receiver, cx);
        self.effects.drain().collect()
    }

    /// Delivers a packet of the base layer; returns the reports.
    pub fn receive(&mut self, data: &Data, arrival: Arrival) -> Vec<ReportContent> {
        reports(self.call(|receiver, cx| receiver.on_data(data, Layer(0), arrival, cx)))
    }

    /// Handles the deadlines up to and including `end`; returns the reports.
    pub fn wait_until(&mut self, end: Time) -> Vec<ReportContent> {
        let mut all = Vec::new();
        while self.receiver.deadline() <= end {
            self.now = self.now.max(self.receiver.deadline());
            all.extend(reports(self.call(|receiver, cx| receiver.on_deadline(cx))));
        }
        self.now = end;
        all
    }

    /// Handles the next deadline; returns the reports.
    pub fn wait(&mut self) -> Vec<ReportContent> {
        self.wait_until(self.receiver.deadline())
    }

    pub fn leave(&mut self) -> Vec<ReportContent> {
        reports(self.call(|receiver, cx| receiver.on_leave(cx)))
    }
}

/// Returns the reports among the effects of a receiver. All its effects must be reports.
pub fn reports(effects: Vec<Effect>) -> Vec<ReportContent> {
    let content = |effect| match effect {
        Effect::Report(report) => report.content,
        other => panic!("a receiver only reports, not {other:?}"),
    };
    effects.into_iter().map(content).collect()
}

/// Returns a packet without payload that states no rate.
pub fn data(seq: u64, sent_at: Time, mark: Mark) -> Data {
    let (payload, flags, signal) = (Payload::NONE, Flags::default(), Signal::None);
    Data { seq: Seq(seq), sent_at, rate: 0.0, payload, flags, signal, mark }
}
