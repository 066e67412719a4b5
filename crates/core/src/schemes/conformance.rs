//! Properties that every scheme must have under random operations.
//!
//! - The rate is a finite number within its limits, and no congestion report raises it.
//! - The rate is the sum of the layers' rates, and a layer that is off never sends.
//! - A departure is in the past by at most the time for which a late host may catch up.
//! - After a deadline is processed, the next deadline is in the future, so a driver cannot loop.
//! - Early calls of `on_deadline` change nothing.
//! - Before the start, a source only measures round-trip times, and has no deadline.
//! - The number of effects of a call is bounded.
//! - The same operations give the same trace, bit for bit.
//!
//! A crate with its own scheme calls [`check`] in a test.

use super::{AnyReceiver, AnySource, Scheme};
use crate::node::{Cx, Departure, Effects, Observation, Receiver as _, Source as _, SourceControl, Tally};
use crate::packet::{
    Arrival, Cause, Data, Echo, Flags, Hole, Holes, Knows, Layer, LayerStates, Mark, Payload, ReceiverId,
    Report, ReportContent, Seq, ShortId, Signal,
};
use crate::rate::Bounds;
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const SIZE: u16 = 1000;
/// Maximum number of effects of one call.
const FEW: usize = 4;
/// Maximum number of deadlines that are processed on time during one advance of the time.
const ON_TIME: usize = 200;

/// Number of receivers that send reports to a source.
const RECEIVERS: u8 = 5;

/// Number of random sequences of operations.
const CASES: u32 = 96;

/// Checks the properties of a scheme with random operations.
///
/// # Panics
/// If the scheme lacks a property; the message has a short sequence of operations that shows it.
pub fn check(scheme: &Scheme) {
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = TestRunner::new(config);
    let sources = runner.run(&source_ops(), |(ops, probes)| check_source(scheme, &ops, probes));
    sources.unwrap_or_else(|wrong| panic!("source of {scheme}: {wrong}"));
    let receivers = runner.run(&packets(), |packets| check_receiver(scheme, &packets));
    receivers.unwrap_or_else(|wrong| panic!("receiver of {scheme}: {wrong}"));
}

/// Inputs of a source.
#[derive(Debug, Clone)]
enum SourceOp {
    /// Sends packets when they are allowed.
    Send(u8),
    /// The host wakes late for the next packet, by this number of microseconds.
    SendLate(u32),
    /// The application has nothing to send for this number of microseconds.
    Pause(u32),
    /// A report. The number of the packet that it answers is relative to the newest one (negative: a packet that was not sent
    /// yet).
    Report {
        from: u8,
        layer: u8,
        kind: u8,
        back: i8,
        hold_us: u32,
        number: f32,
        other: f32,
    },
    Forget(u8),
    Limit {
        min: f32,
        max: f32,
    },
    SignOfLife,
    Members(u8),
    StartAgain,
}

/// Generates numbers of correct peers, and numbers of broken or hostile peers.
fn number() -> impl Strategy<Value = f32> {
    prop_oneof![
        6 => 1e3f32..1e8,
        1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, -1e6, f32::MAX, 1e-40]),
    ]
}

fn source_op() -> impl Strategy<Value = SourceOp> {
    let hold = prop_oneof![0u32..50_000, Just(u32::MAX)];
    let layer = prop_oneof![4 => Just(0u8), 1 => 1u8..10];
    let report = ((1..=RECEIVERS, layer), 0u8..20, -3i8..100, hold, number(), number());
    prop_oneof![
        4 => (1u8..60).prop_map(SourceOp::Send),
        1 => (0u32..3_000_000).prop_map(SourceOp::SendLate),
        1 => (0u32..20_000_000).prop_map(SourceOp::Pause),
        6 => report.prop_map(|((from, layer), kind, back, hold_us, number, other)| {
            SourceOp::Report { from, layer, kind, back, hold_us, number, other }
        }),
        1 => (1..=RECEIVERS).prop_map(SourceOp::Forget),
        1 => (1e3f32..1e6, 1e4f32..1e9).prop_map(|(min, max)| SourceOp::Limit { min, max }),
        1 => Just(SourceOp::SignOfLife),
        1 => (0u8..40).prop_map(SourceOp::Members),
        1 => Just(SourceOp::StartAgain),
    ]
}

/// Whether `on_deadline` is also called before the deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Spurious {
    No,
    Yes,
}

/// A hash over all observable behaviour.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Trace(u64);

impl Trace {
    fn add(&mut self, bits: u64) {
        self.0 = (self.0 ^ bits).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    fn add_all(&mut self, all: impl IntoIterator<Item = u64>) {
        all.into_iter().for_each(|bits| self.add(bits));
    }

    fn add_observation(&mut self, seen: Observation) {
        let Observation { rate, rtt, limiting, level, rtt_max, cuts, tally, starting } = seen;
        let Tally { indications, events, followed } = tally;
        self.add_all([rate.bps(), level.map_or(f64::NAN, Rate::bps)].map(f64::to_bits));
        self.add_all([rtt.as_nanos(), rtt_max.as_nanos(), limiting.map_or(0, ReceiverId::get), cuts]);
        self.add_all([indications, events, followed, starting.into()]);
    }

    fn add_debug(&mut self, value: &impl std::fmt::Debug) {
        use std::fmt::Write as _;
        write!(self, "{value:?}").expect("a number takes everything");
    }
}

impl std::fmt::Write for Trace {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.add_all(text.bytes().map(u64::from));
        Ok(())
    }
}

struct SourceRun {
    source: AnySource,
    bounds: Bounds,
    now: Time,
    newest: i64,
    rng: Rng,
    effects: Effects,
    spurious: Spurious,
    trace: Trace,
}

impl SourceRun {
    /// Creates a source that has started after this number of probes.
    fn new(scheme: &Scheme, probes: u8, spurious: Spurious) -> SourceRun {
        let mut run = SourceRun {
            source: scheme.source(),
            bounds: scheme.bounds(),
            now: Time::from_nanos(12_345),
            newest: -1,
            rng: Rng::new(9, 9),
            effects: Effects::new(),
            spurious,
            trace: Trace::default(),
        };
        (0..probes).for_each(|turn| run.probe(turn));
        assert!(run.source.deadline().is_never(), "nothing is due before the start");
        run.call(|source, cx| source.start(cx));
        run
    }

    /// Sends a probe, which a receiver answers.
    fn probe(&mut self, turn: u8) {
        let mut stamp = None;
        self.call(|source, cx| stamp = Some(source.on_departure(Layer(0), SIZE, cx)));
        self.newest += 1;
        assert_eq!(stamp.map(|stamp| stamp.seq), Some(Seq(self.newest as u64)), "numbers have no holes");
        self.now += Span::from_millis(u64::from(turn % 7) * 50);
        let echo = Echo { seq: Seq(self.newest as u64), hold: Span::from_millis(u64::from(turn % 3)) };
        for content in [ReportContent::Alive { echo }, content(turn, echo, 1e4, 1.0)] {
            let report = Report { from: id(turn % 3 + 1), layer: Layer(0), content };
            self.call(|source, cx| source.on_report(&report, cx));
        }
        self.tell(SourceControl::Members(usize::from(turn)));
    }

    fn call(&mut self, act: impl FnOnce(&mut AnySource, &mut Cx<'_>)) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        act(&mut self.source, cx);
        if self.spurious == Spurious::Yes && self.source.deadline() > self.now {
            self.source.on_deadline(cx);
            self.source.on_deadline(cx);
        }
        assert!(self.effects.as_slice().len() <= FEW);
        self.effects.drain().for_each(|effect| self.trace.add_debug(&effect));
        let seen = self.source.observe();
        let departure = match self.source.departure(Layer(0)) {
            Departure::At(time) => time.as_nanos(),
            Departure::AfterReport => Time::NEVER.as_nanos() - 1,
        };
        self.trace.add_all([self.now.as_nanos(), self.source.deadline().as_nanos(), departure]);
        self.trace.add_observation(seen);
        let limiting = seen.limiting.map_or(0, ReceiverId::get);
        assert!(
            limiting <= RECEIVERS.into(),
            "the limiting receiver is {limiting}, which has sent no report"
        );
        let rate = seen.rate.bps();
        let (min, max) = (self.bounds.min.bps(), self.bounds.max.bps());
        // Each active enhancement layer may send a packet per 8 s, even if the configured maximum leaves no rate for this layer.
        let least = Rate::of(u64::from(SIZE), Span::from_secs(8)).bps() * f64::from(self.source.layers() - 1);
        assert!(
            rate.is_finite() && rate >= min.min(max) && rate <= max + least,
            "{rate} not in {min}..={max}"
        );
        self.check_layers(rate);
    }

    fn check_layers(&self, rate: f64) {
        let mut sum = 0.0;
        for layer in (0..self.source.layers()).map(Layer) {
            let part = self.source.layer_rate(layer).bps();
            if part == 0.0 && layer.0 > 0 {
                assert_eq!(self.source.departure(layer), Departure::At(Time::NEVER), "{layer:?} is off");
            }
            sum += part;
        }
        assert!((sum / rate - 1.0).abs() < 1e-9, "layers have {sum} of {rate}");
    }

    fn tell(&mut self, control: SourceControl) {
        let now = self.now;
        self.call(|source, _| source.control(control, now));
    }

    /// Advances the time. The first `ON_TIME` deadlines are processed on time. Later deadlines are processed at the end, all at
    /// once, as by a late host.
    fn pass(&mut self, until: Time) {
        for _ in 0..ON_TIME {
            if self.source.deadline() > until {
                break;
            }
            self.now = self.source.deadline().max(self.now);
            self.call(|source, cx| source.on_deadline(cx));
            assert!(self.source.deadline() > self.now, "stuck at {}", self.now);
        }
        if self.source.deadline() <= until {
            self.oversleep(until);
        }
        self.now = until.max(self.now);
    }

    fn oversleep(&mut self, until: Time) {
        self.now = until.max(self.now);
        for turn in 0.. {
            if self.source.deadline() > self.now {
                break;
            }
            assert!(turn < 2, "a late host catches up with deadlines in one or two calls");
            self.call(|source, cx| source.on_deadline(cx));
        }
    }

    fn departure(&self) -> Time {
        match self.source.departure(Layer(0)) {
            Departure::At(time) => time,
            Departure::AfterReport => Time::NEVER,
        }
    }

    fn send(&mut self) {
        let mut stamp = None;
        self.call(|source, cx| stamp = Some(source.on_departure(Layer(0), SIZE, cx)));
        let stamp = stamp.expect("just sent");
        self.newest += 1;
        assert_eq!(stamp.seq, Seq(self.newest as u64), "numbers have no holes");
        self.trace.add_debug(&stamp);
        let gap = self.source.layer_rate(Layer(0)).span_of(u64::from(SIZE));
        let credit = (gap * 2).max(Span::from_millis(10));
        assert!(self.departure() + credit >= self.now, "{} at {}", self.departure(), self.now);
    }

    fn apply(&mut self, op: &SourceOp) {
        match *op {
            SourceOp::Send(count) => {
                for _ in 0..count {
                    let due = self.departure();
                    if due.since(self.now) > Span::from_secs(20) {
                        break;
                    }
                    self.pass(due);
                    self.send();
                }
            }
            SourceOp::SendLate(late) => {
                self.oversleep(self.now + Span::from_micros(u64::from(late)));
                if self.departure() <= self.now {
                    self.send();
                }
            }
            SourceOp::Pause(length) => self.pass(self.now + Span::from_micros(u64::from(length))),
            SourceOp::Report { from, layer, kind, back, hold_us, number, other } => {
                let before = self.source.observe().rate;
                let seq = Seq((self.newest - i64::from(back)).max(0) as u64);
                let echo = Echo { seq, hold: Span::from_micros(u64::from(hold_us)) };
                let content = content(kind, echo, number, other);
                let report = Report { from: id(from), layer: Layer(layer), content };
                self.call(|source, cx| source.on_report(&report, cx));
                if let ReportContent::Congested {
                    cause: Cause::Loss | Cause::Mark | Cause::Accumulation,
                    ..
                } = content
                {
                    let after = self.source.observe().rate;
                    assert!(after.bps() <= before.bps(), "{before} to {after} by {content:?}");
                }
            }
            SourceOp::Forget(from) => self.tell(SourceControl::Forget(id(from))),
            SourceOp::Limit { min, max } => {
                self.bounds = Bounds { min: Rate::from_bps(min.into()), max: Rate::from_bps(max.into()) };
                self.tell(SourceControl::Limits(self.bounds));
            }
            SourceOp::SignOfLife => self.tell(SourceControl::SignOfLife),
            SourceOp::Members(members) => self.tell(SourceControl::Members(members.into())),
            SourceOp::StartAgain => self.tell(SourceControl::StartAgain),
        }
    }
}

fn id(number: u8) -> ReceiverId {
    ReceiverId::new(u64::from(number)).expect("numbered from one")
}

fn content(kind: u8, echo: Echo, number: f32, other: f32) -> ReportContent {
    let congested = |cause| ReportContent::Congested { echo, level: number, mean: other, cause };
    match kind {
        0 => ReportContent::Alive { echo },
        1 => congested(Cause::Mark),
        2 => congested(Cause::Leaving),
        3 => congested(Cause::Heartbeat),
        4 | 5 => ReportContent::Received { echo, rate: number, loss: if other > 1e6 { 0.0 } else { other } },
        6 => ReportContent::Received { echo, rate: number, loss: 0.0 },
        7 => ReportContent::Lost { echo, first: echo.seq, count: u16::MAX, loss: number },
        8 => ReportContent::Lost { echo, first: Seq(echo.seq.0.saturating_sub(1)), count: 1, loss: 0.01 },
        9 => {
            let bitmap = number.to_bits();
            ReportContent::Selective { echo, behind: other.to_bits() % 64, bitmap, loss: other / 1e8 }
        }
        10 => {
            let knows = Knows(other.to_bits() as u8);
            ReportContent::Calculated { echo, rate: number, stamp: other.to_bits(), round: kind, knows }
        }
        11 => congested(Cause::Accumulation),
        12 | 13 => {
            let (samples, cause) = (kind.into(), if other > 1e5 { Cause::Joining } else { Cause::Loss });
            ReportContent::Averaged { echo, mean: number, deviation: other, samples, rate: other, cause }
        }
        14 => {
            let hole = |back| Hole { back, count: 1 };
            let (behind, newer) = (number.to_bits() as u16 % 40, number.to_bits() as u8 % 2);
            let holes = Holes([hole(2), hole(5), hole(other.to_bits() as u16 % 50)]);
            ReportContent::Acknowledged { echo, behind, holes, newer }
        }
        15 => {
            let (transit, lag) = (other.to_bits() as u16, number.to_bits() as u16);
            ReportContent::Summary { echo, behind: 0, window: number / 1e6, transit, lag }
        }
        16 => ReportContent::Acknowledged { echo, behind: 0, holes: Holes::default(), newer: 0 },
        17..=19 => {
            let echo = if kind == 19 { Echo { hold: Span::MAX, ..echo } } else { echo };
            let back = number.to_bits() % 50;
            let past_lost = if other > 1e6 {
                Seq(other.to_bits().into())
            } else {
                Seq(echo.seq.0.saturating_sub(back.into()))
            };
            let of = ReceiverId::new(u64::from(number.to_bits() % 4)).and_then(ShortId::of);
            ReportContent::Newest { echo, past_lost, of }
        }
        _ => congested(Cause::Loss),
    }
}

fn source_trace(scheme: &Scheme, ops: &[SourceOp], probes: u8, spurious: Spurious) -> Trace {
    let mut run = SourceRun::new(scheme, probes, spurious);
    for op in ops {
        run.apply(op);
    }
    run.trace
}

/// Inputs of a receiver.
#[derive(Debug, Clone)]
struct Packet {
    /// Microseconds since the previous packet.
    gap_us: u32,
    /// Packet number minus the newest packet number; zero or negative for duplicates and late packets.
    step: i16,
    marked: u8,
    flags: u8,
    rate: f32,
    named: u8,
    mean: f32,
    deviation: f32,
    rtt_max: f32,
}

impl Packet {
    /// Returns one of the signals. A third of all packets are control packets.
    fn signal(&self) -> Signal {
        match self.marked % 9 {
            1 | 4 | 7 => Signal::Control,
            2 => Signal::Burst,
            3 => Signal::SyncPoint,
            5 => Signal::Gains,
            6 => Signal::Gives,
            _ => Signal::None,
        }
    }

    /// Returns a mark of the scheme's kind.
    fn mark(&self, scheme: &Scheme) -> Mark {
        let id = ReceiverId::new(u64::from(self.named));
        let &Packet { mean, deviation, rtt_max, .. } = self;
        match scheme.mark() {
            Mark::None => Mark::None,
            Mark::Representative { .. } => Mark::Representative { id, mean, deviation, rtt_max },
            Mark::Acker { .. } => Mark::Acker { id },
            Mark::Equation { .. } => {
                let (echo, round, limiting) =
                    (deviation.to_bits(), self.flags, self.marked.is_multiple_of(2));
                Mark::Equation { suppress_above: mean, rtt_max, round, to: id, echo, limiting }
            }
            Mark::Timetable { .. } => Mark::Timetable { slot: mean.to_bits() },
            Mark::Layered { .. } => {
                let (updates, states) = (self.marked, LayerStates(deviation.to_bits()));
                let (id, above) = (id.and_then(ShortId::of), (mean * 2.0).into());
                Mark::Layered { id, mean, error: deviation, rtt: rtt_max, above, updates, states }
            }
            Mark::Window { .. } => Mark::Window { window: mean, rtt: rtt_max },
            Mark::Target { .. } => {
                let (id, since_cut) = (id.and_then(ShortId::of), deviation.to_bits() as u16);
                Mark::Target { id, since_cut, rtt_max, every: mean }
            }
            Mark::Floor { .. } => {
                let excluded = id.filter(|_| self.flags == 1).and_then(ShortId::of);
                Mark::Floor { least: mean, rtt_max, every: deviation, excluded }
            }
        }
    }
}

fn packet() -> impl Strategy<Value = Packet> {
    let gap_us = prop_oneof![8 => 10u32..20_000, 1 => 0u32..30_000_000];
    let step = prop_oneof![8 => Just(1i16), 2 => 2i16..40, 1 => -40i16..1];
    let rtt_max = prop_oneof![6 => 0.001f32..0.5, 1 => number()];
    let header = (0u8..4, number(), number(), rtt_max);
    (gap_us, step, 0u8..20, 0u8..4, number(), header).prop_map(
        |(gap_us, step, marked, flags, rate, header)| {
            let (named, mean, deviation, rtt_max) = header;
            Packet { gap_us, step, marked, flags, rate, named, mean, deviation, rtt_max }
        },
    )
}

fn receiver_trace(scheme: &Scheme, packets: &[Packet], spurious: Spurious) -> Trace {
    let (mut receiver, mut rng, mut effects) = (scheme.receiver(id(2)), Rng::new(3, 3), Effects::new());
    let (mut now, mut newest, mut trace) = (Time::from_nanos(77), 1000i64, Trace::default());
    let mut call = |receiver: &mut AnyReceiver, now, act: &dyn Fn(&mut AnyReceiver, &mut Cx<'_>)| {
        let cx = &mut Cx { now, rng: &mut rng, effects: &mut effects };
        act(receiver, cx);
        if spurious == Spurious::Yes && receiver.deadline() > now {
            receiver.on_deadline(cx);
        }
        assert!(effects.as_slice().len() <= FEW);
        effects.drain().for_each(|effect| trace.add_debug(&effect));
        trace.add(receiver.deadline().as_nanos());
    };
    for packet in packets {
        let until = now + Span::from_micros(u64::from(packet.gap_us));
        while receiver.deadline() <= until {
            now = receiver.deadline().max(now);
            call(&mut receiver, now, &|receiver, cx| receiver.on_deadline(cx));
            assert!(receiver.deadline() > now, "stuck at {now}");
        }
        now = until;
        let seq = newest + i64::from(packet.step);
        let lost = (seq - newest - 1).max(0) as u32;
        let late = seq <= newest;
        let (lost, excused) = if packet.flags == 2 { (0, lost) } else { (lost, 0) };
        newest = newest.max(seq);
        let data = Data {
            seq: Seq(seq.max(0) as u64),
            sent_at: now - Span::from_micros(u64::from(packet.gap_us) % 90_000),
            rate: packet.rate,
            payload: Payload::NONE,
            flags: Flags(packet.flags),
            signal: packet.signal(),
            mark: packet.mark(scheme),
        };
        let arrival = Arrival { size: SIZE, lost, excused, marked: packet.marked == 0, late };
        call(&mut receiver, now, &|receiver, cx| receiver.on_data(&data, Layer(0), arrival, cx));
    }
    call(&mut receiver, now, &|receiver, cx| receiver.on_leave(cx));
    trace
}

/// Generates operations of a source, and a number of probes before its start.
fn source_ops() -> impl Strategy<Value = (Vec<SourceOp>, u8)> {
    (prop::collection::vec(source_op(), 1..120), prop_oneof![2 => Just(0u8), 1 => 1u8..40])
}

/// Generates packets that arrive at a receiver.
fn packets() -> impl Strategy<Value = Vec<Packet>> {
    prop::collection::vec(packet(), 1..400)
}

fn check_source(scheme: &Scheme, ops: &[SourceOp], probes: u8) -> Result<(), TestCaseError> {
    let trace = source_trace(scheme, ops, probes, Spurious::No);
    prop_assert_eq!(trace, source_trace(scheme, ops, probes, Spurious::No), "the same again");
    prop_assert_eq!(trace, source_trace(scheme, ops, probes, Spurious::Yes), "with early calls");
    Ok(())
}

fn check_receiver(scheme: &Scheme, packets: &[Packet]) -> Result<(), TestCaseError> {
    let trace = receiver_trace(scheme, packets, Spurious::No);
    prop_assert_eq!(trace, receiver_trace(scheme, packets, Spurious::No), "the same again");
    prop_assert_eq!(trace, receiver_trace(scheme, packets, Spurious::Yes), "with early calls");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::CATALOGUE;
    use super::super::ormcc::{AcrossSwitch, Config, SwitchOn};
    use super::*;

    /// Returns the schemes under test, each with several settings: as in the paper, for real networks, with limits, and in variants.
    fn schemes() -> Vec<Scheme> {
        let literal = Config {
            across_switch: AcrossSwitch::Continue,
            switch_on: SwitchOn::Average,
            ..Config::published()
        };
        let limited = Bounds { min: Rate::from_bps(50_000.0), max: Rate::from_mbps(3.0) };
        let mut all = vec![Scheme::Ormcc(literal)];
        for entry in CATALOGUE {
            let parsed =
                |options: &str| -> Scheme { format!("{},{options}", entry.name).parse().expect("valid") };
            let seed = parsed("preset=published");
            all.push(seed);
            if seed.own_options().iter().any(|option| option.name == "loss") {
                all.push(parsed("loss=tolerant").with_packet_size(SIZE).with_short_history());
            }
            all.push(parsed("preset=transport").with_packet_size(SIZE).with_short_history());
            all.push(parsed("preset=published,start=doubling").with_bounds(limited));
        }
        for policy in ["sqrt", "iiad", "equation"] {
            all.push(format!("ormcc,policy={policy},preset=published").parse().expect("valid"));
        }
        for options in
            ["policy=equation", "li2le=off,filter=none,atf=off", "filter=lprf,prune=off,backoff=0.05"]
        {
            all.push(format!("le-sbcc,preset=published,{options}").parse().expect("valid"));
        }
        for text in ["mca,mode=bin,preset=published", "mca,mode=bin", "mca-plus,suppress=nobody,policy=sqrt"]
        {
            all.push(text.parse::<Scheme>().expect("valid").with_packet_size(SIZE).with_short_history());
        }
        for options in [
            "preset=published,law=steady",
            "preset=published,law=seconds",
            "aim=friendly,answers=all",
            "probe=off,law=printed",
        ] {
            let scheme: Scheme = format!("raccoom,{options}").parse().expect("valid");
            all.push(scheme.with_packet_size(SIZE).with_short_history());
        }
        for options in ["begin=start,da=0.6", "repair=tree,outstanding=any", "answers=all,exclude=2"] {
            let scheme: Scheme = format!("rmanp,{options}").parse().expect("valid");
            all.push(scheme.with_packet_size(SIZE).with_short_history());
        }
        for options in [
            "n=2,j=1",
            "preset=published,control=ormcc,n=2,j=1,taf=product",
            "control=tfmcc,start=linear",
            "control=pgmcc",
        ] {
            let scheme: Scheme = format!("gmcc,{options}").parse().expect("valid");
            all.push(scheme.with_packet_size(SIZE).with_short_history());
        }
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_source_fulfils_its_contract((ops, probes) in source_ops()) {
            for scheme in schemes() {
                check_source(&scheme, &ops, probes)?;
            }
        }

        #[test]
        fn every_receiver_fulfils_its_contract(packets in packets()) {
            for scheme in schemes() {
                check_receiver(&scheme, &packets)?;
            }
        }
    }
}
