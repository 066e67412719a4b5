//! Conformance tests of every relay: `keeps_its_promises` takes any [`RelaySpec`], and any packets of a parent and of children.
//! The inputs include duplicates, stale summaries, orders for another node, impossible numbers, and restarts.

#[path = "../../tests/toy/relay.rs"]
mod toy;

use crate::node::{Cx, Departure, Effect, Effects, Relay, RelaySpec, SourceControl, To};
use crate::packet::{
    Arrival, Body, Cause, Data, Echo, Hole, Holes, Layer, Order, OrderContent, ReceiverId, Report,
    ReportContent, Seq,
};
use crate::rng::Rng;
use crate::schemes::bench::data;
use crate::schemes::{CATALOGUE, Feedback, Scheme};
use crate::time::{Span, Time};
use proptest::prelude::*;

/// Maximum number of effects of a call.
const FEW: usize = 32;

#[derive(Debug, Clone)]
enum Op {
    /// A packet from the parent, whose number is `step` above the newest one.
    Data {
        step: i8,
        marked: bool,
    },
    /// A report from a child: the ID of the child, the age of the packet that the report answers, the kind of the report, and a
    /// number that may be false.
    Report {
        child: u8,
        behind: u8,
        kind: u8,
        number: u32,
    },
    /// The latest report arrives again; it may be stale by then.
    Again,
    /// An order of the parent, for this relay or for another one.
    Order {
        mine: bool,
        group: u8,
        from: u8,
    },
    /// A restart: the new relay has received no packets.
    Restart,
    /// Sends up to this number of packets to the children.
    Depart(u8),
    Wait(u32),
    Members(u8),
    Forget(u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (prop_oneof![8 => Just(1i8), 1 => -3i8..20], any::<bool>()).prop_map(|(step, marked)| Op::Data { step, marked }),
        6 => (0u8..4, 0u8..40, 0u8..8, prop_oneof![4 => 0u32..600, 1 => any::<u32>()])
            .prop_map(|(child, behind, kind, number)| Op::Report { child, behind, kind, number }),
        1 => Just(Op::Again),
        1 => (any::<bool>(), 0u8..3, any::<u8>()).prop_map(|(mine, group, from)| Op::Order { mine, group, from }),
        1 => prop_oneof![9 => Just(Op::Wait(5)), 1 => Just(Op::Restart)],
        5 => (1u8..20).prop_map(Op::Depart),
        4 => (0u32..400_000).prop_map(Op::Wait),
        1 => (0u8..9).prop_map(Op::Members),
        1 => (0u8..4).prop_map(Op::Forget),
    ]
}

fn child(number: u8) -> ReceiverId {
    ReceiverId::new(u64::from(number) + 1).expect("not zero")
}

/// A relay and its driver.
struct Bench<'a> {
    relay: Box<dyn Relay + Send>,
    scheme: &'a Scheme,
    now: Time,
    rng: Rng,
    effects: Effects,
    spurious: bool,
    /// Newest packet number from the parent, and number of the next packet to the children.
    numbers: (i64, u64),
    latest: Option<Report>,
    trace: Vec<String>,
}

impl Bench<'_> {
    fn call<T>(&mut self, act: impl FnOnce(&mut dyn Relay, &mut Cx<'_>) -> T) -> T {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let reported = act(&mut *self.relay, cx);
        if self.spurious && self.relay.deadline() > self.now {
            self.relay.on_deadline(cx);
            self.relay.on_deadline(cx);
        }
        assert!(self.effects.as_slice().len() <= FEW);
        for effect in self.effects.drain() {
            let may = match effect {
                Effect::Report(_) | Effect::Attend(_) => true,
                Effect::Subscribe(layer) => layer.0 < 16,
                Effect::Send { to: To::Parent, packet } => matches!(packet.body, Body::Report(_)),
                Effect::Send { to: To::Child(_) | To::Group, packet } => {
                    !matches!(packet.body, Body::Report(_))
                }
                Effect::Leave | Effect::Send { to: To::Exit(_), .. } => false,
            };
            assert!(may, "a relay cannot {effect:?}");
            self.trace.push(format!("{effect:?}"));
        }
        let seen = self.relay.observe();
        assert!(seen.rate.bps() >= 0.0 && seen.rate.bps() <= self.scheme.bounds().max.bps(), "{seen:?}");
        self.trace.push(format!("{:?} {seen:?} {:?}", self.now, self.relay.deadline()));
        reported
    }

    fn wait(&mut self, until: Time) {
        while self.relay.deadline() <= until {
            self.now = self.relay.deadline().max(self.now);
            self.call(|relay, cx| relay.on_deadline(cx));
            assert!(self.relay.deadline() > self.now, "it does not let go of its deadline");
        }
        self.now = until;
    }

    fn depart(&mut self) {
        match self.relay.departure(Layer(0)) {
            Departure::At(at) if at <= self.now + Span::from_secs(1) => {
                self.wait(at.max(self.now));
                if !matches!(self.relay.departure(Layer(0)), Departure::At(at) if at <= self.now) {
                    return;
                }
                let stamp = self.call(|relay, cx| relay.on_departure(Layer(0), 1000, cx));
                assert_eq!(stamp.seq, Seq(self.numbers.1), "numbers have no holes");
                self.numbers.1 += 1;
            }
            _ => {}
        }
    }

    fn data(&mut self, step: i8, marked: bool) {
        let number = (self.numbers.0 + i64::from(step)).max(0);
        let lost = (number - self.numbers.0 - 1).max(0) as u32;
        let late = number <= self.numbers.0;
        self.numbers.0 = self.numbers.0.max(number);
        let data = Data { rate: 1e6, ..data(number as u64, self.now, self.scheme.mark()) };
        let arrival = Arrival { size: 1000, lost, excused: 0, marked, late };
        self.call(|relay, cx| relay.on_data(&data, Layer(0), arrival, cx));
    }

    fn report(&mut self, from: u8, behind: u8, kind: u8, number: u32) {
        // If a relay numbers packets itself, its children acknowledge the relay's numbers; otherwise they acknowledge the
        // source's numbers.
        let newest = self.numbers.1.max(self.numbers.0.max(0) as u64);
        let seq = Seq(newest.saturating_sub(u64::from(behind)));
        let echo = Echo { seq, hold: Span::from_millis(u64::from(behind)) };
        let short = number as u16;
        let content = match kind {
            0 => ReportContent::Alive { echo },
            1 => ReportContent::Lost { echo, first: seq, count: u16::from(behind), loss: 0.1 },
            2 => ReportContent::Congested { echo, level: 1e5, mean: 1e5, cause: Cause::Loss },
            3 => ReportContent::Received { echo, rate: 1e5, loss: 0.0 },
            4 => ReportContent::Acknowledged { echo, behind: 0, holes: Holes::default(), newer: 0 },
            5 => {
                let hole = |back| Hole { back, count: 1 + short % 3 };
                let holes = Holes([hole(1), hole(4 + short % 8), hole(short)]);
                ReportContent::Acknowledged { echo, behind: short, holes, newer: (number >> 16) as u8 }
            }
            6 => {
                let (window, transit, lag) = (f32::from_bits(number), short, (number >> 16) as u16);
                ReportContent::Summary { echo, behind: short % 9, window, transit, lag }
            }
            _ => ReportContent::Answered { echo, number },
        };
        let report = Report { from: child(from), layer: Layer(0), content };
        self.latest = Some(report);
        self.call(|relay, cx| relay.on_report(&report, cx));
    }

    fn order(&mut self, mine: bool, group: u8, from: u8) {
        let content = match group {
            2 => OrderContent::Poll,
            _ => OrderContent::Join {
                group,
                from: Seq((self.numbers.0.max(0) as u64).saturating_sub(from.into())),
            },
        };
        let order = Order { to: child(if mine { 9 } else { 8 }), number: from.into(), content };
        self.call(|relay, cx| relay.on_order(&order, cx));
    }
}

fn run(spec: &dyn RelaySpec, scheme: &Scheme, ops: &[Op], spurious: bool) -> Vec<String> {
    let mut bench = Bench {
        relay: spec.relay(child(9)),
        scheme,
        now: Time::from_secs_f64(1.0),
        rng: Rng::new(1, 1),
        effects: Effects::new(),
        spurious,
        numbers: (-1, 0),
        latest: None,
        trace: Vec::new(),
    };
    for op in ops {
        match *op {
            Op::Data { step, marked } => bench.data(step, marked),
            Op::Report { child, behind, kind, number } => bench.report(child, behind, kind, number),
            Op::Again => {
                if let Some(report) = bench.latest {
                    bench.call(|relay, cx| relay.on_report(&report, cx));
                }
            }
            Op::Order { mine, group, from } => bench.order(mine, group, from),
            Op::Restart => {
                bench.relay = spec.relay(child(9));
                bench.numbers.1 = 0;
            }
            Op::Depart(packets) => (0..packets).for_each(|_| bench.depart()),
            Op::Wait(micros) => bench.wait(bench.now + Span::from_micros(u64::from(micros))),
            Op::Members(count) => bench.relay.control(SourceControl::Members(usize::from(count)), bench.now),
            Op::Forget(number) => bench.relay.control(SourceControl::Forget(child(number)), bench.now),
        }
    }
    bench.wait(bench.now + Span::from_secs(5));
    bench.call(|relay, cx| relay.on_leave(cx));
    bench.trace
}

/// Tests that every call ends, that a processed deadline does not recur, and that early calls change nothing. Packet numbers to
/// the children have no gaps. A relay has only the effects that are permitted to relays, and its rate is within the limits. The
/// same calls produce the same results.
fn keeps_its_promises(spec: &dyn RelaySpec, scheme: &Scheme, ops: &[Op]) {
    let trace = run(spec, scheme, ops, false);
    assert_eq!(run(spec, scheme, ops, false), trace, "the same again");
    assert_eq!(run(spec, scheme, ops, true), trace, "calls that come early");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_relay_fulfils_its_contract(ops in prop::collection::vec(op(), 1..120)) {
        for entry in CATALOGUE.iter().filter(|entry| entry.feedback == Feedback::Reports) {
            let scheme: Scheme = entry.name.parse().expect("listed");
            if scheme.layers() == 1 {
                keeps_its_promises(&toy::ToyRelay(scheme), &scheme, &ops);
            }
            let in_trees: Scheme = format!("{},preset=published", entry.name).parse().expect("listed");
            if let Some(agents) = in_trees.agents() {
                keeps_its_promises(agents, &in_trees, &ops);
            }
            if let Some(agents) = scheme.agents_beside_delivery() {
                keeps_its_promises(&*agents, &scheme, &ops);
            }
        }
    }
}
