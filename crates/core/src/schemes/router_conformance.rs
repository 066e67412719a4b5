//! Properties of every router under random operations: `keeps_its_promises` takes any [`RouterSpec`].

#[path = "../../tests/toy/router.rs"]
mod toy;

use super::raccoom::router as acknowledgements;
use super::rmanp::router as rmanp;
use crate::node::{Cx, Effect, Effects, Port, Router, RouterControl, RouterSpec, To, Verdict};
use crate::packet::{
    Body, Cause, Data, Echo, Flags, Layer, Mark, Packet, ReceiverId, Report, ReportContent, Seq, SessionId,
    ShortId,
};
use crate::rng::Rng;
use crate::routers::aggregation;
use crate::schemes::bench::data;
use crate::time::{Span, Time};
use proptest::prelude::*;

/// Exits of the router under test.
const PORTS: u16 = 4;
/// Maximum number of effects that a call may have for each packet that the router holds.
const FEW: usize = 4;

/// Inputs of a router.
#[derive(Debug, Clone)]
enum Op {
    Data {
        port: u16,
        session: u32,
        seq: u64,
    },
    Report {
        port: u16,
        session: u32,
        first: u64,
        count: u16,
    },
    /// A report of a receiver's progress: the distance behind the newest packet, and the receiver ID, if the reporting part of
    /// the tree has one.
    Newest {
        port: u16,
        session: u32,
        seq: u64,
        behind: u8,
        of: u8,
    },
    /// A packet arrives and is sent through all present exits. Its number is relative to the newest packet of the session: the
    /// next packet, a packet after a gap, a late packet, or a repetition.
    Arrival {
        session: u32,
        step: i8,
        repair: bool,
    },
    /// Three kinds of reports in schemes that acknowledge packets: the progress of a receiver (`Acked`), the packets that it
    /// misses (`Missed`), and the rate that would have avoided the congestion (`Indicated`).
    Acked {
        port: u16,
        session: u32,
        from: u8,
        back: u8,
        behind: u8,
    },
    Missed {
        port: u16,
        session: u32,
        from: u8,
        back: u8,
        count: u16,
    },
    Indicated {
        port: u16,
        session: u32,
        from: u8,
        level: f32,
        leaves: bool,
    },
    /// A report of a scheme that no router supports.
    Foreign {
        port: u16,
        session: u32,
    },
    /// An earlier report arrives again: as a duplicate, as a stale report after newer ones, or by another path.
    Again {
        session: u32,
        port: u16,
        back: u8,
    },
    /// Removes this exit, or restores it.
    Toggle(u16),
    /// Changes routes: each receiver's packets now pass the next port instead of the present one.
    Reroute,
    /// Restarts the router without its state.
    Restart,
    /// Several neighbours share this port.
    Shared(u16),
    /// One of the neighbours has left.
    Left {
        port: u16,
        session: u32,
        of: u8,
    },
    Wait(u32),
    Forget(u32),
}

fn op() -> impl Strategy<Value = Op> {
    let session = 0u32..3;
    let seq = prop_oneof![9 => 0u64..200, 1 => any::<u64>()];
    prop_oneof![
        4 => (0..PORTS, session.clone(), seq.clone()).prop_map(|(port, session, seq)| Op::Data { port, session, seq }),
        4 => (0..PORTS, session.clone(), seq, any::<u16>())
            .prop_map(|(port, session, first, count)| Op::Report { port, session, first, count: count % 300 }),
        6 => (0..PORTS, session.clone(), 0u64..200, any::<u8>(), 0u8..5)
            .prop_map(|(port, session, seq, behind, of)| Op::Newest { port, session, seq, behind, of }),
        8 => (session.clone(), prop_oneof![6 => Just(1i8), 2 => 2i8..9, 2 => -20i8..1], any::<bool>())
            .prop_map(|(session, step, repair)| Op::Arrival { session, step, repair }),
        6 => (0..PORTS, session.clone(), 0u8..6, 0u8..4, 0u8..9)
            .prop_map(|(port, session, from, back, behind)| Op::Acked { port, session, from, back, behind }),
        2 => (0..PORTS, session.clone(), 0u8..6, 0u8..30, prop_oneof![3 => 1u16..4, 1 => any::<u16>()])
            .prop_map(|(port, session, from, back, count)| Op::Missed { port, session, from, back, count }),
        2 => (0..PORTS, session.clone(), 0u8..6, level(), prop::bool::weighted(0.2))
            .prop_map(|(port, session, from, level, leaves)| Op::Indicated { port, session, from, level, leaves }),
        1 => (0..PORTS, session.clone()).prop_map(|(port, session)| Op::Foreign { port, session }),
        2 => (session.clone(), 0..PORTS, 0u8..16)
            .prop_map(|(session, port, back)| Op::Again { session, port, back }),
        1 => (0..PORTS).prop_map(Op::Toggle),
        1 => Just(Op::Reroute),
        1 => Just(Op::Restart),
        1 => (0..PORTS).prop_map(Op::Shared),
        1 => (0..PORTS, session.clone(), 0u8..5).prop_map(|(port, session, of)| Op::Left { port, session, of }),
        3 => (0u32..3_000_000).prop_map(Op::Wait),
        1 => session.prop_map(Op::Forget),
    ]
}

/// Generates rates in bit/s as reported by slow, ordinary and broken receivers.
fn level() -> impl Strategy<Value = f32> {
    prop_oneof![4 => 1e3f32..1e5, 1 => prop::sample::select(vec![f32::NAN, f32::INFINITY, -1.0, 0.0, f32::MAX])]
}

/// States which packets the router under test may change. All other packets must pass unchanged.
#[derive(Clone, Copy)]
struct Knows {
    data: fn(&Mark) -> bool,
    report: fn(&ReportContent) -> bool,
}

/// A router and its driver.
struct Bench {
    router: Box<dyn Router + Send>,
    knows: Knows,
    /// For each session, the numbers of the newest packets that have passed. Their count is the number of packets that the router
    /// may still send again.
    passed: [Vec<u64>; 3],
    now: Time,
    rng: Rng,
    effects: Effects,
    trace: Vec<String>,
    spurious: bool,
    held_before: usize,
}

impl Bench {
    fn call<T>(&mut self, act: impl FnOnce(&mut dyn Router, &mut Cx<'_>) -> T) -> T {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        let reported = act(&mut *self.router, cx);
        if self.spurious && self.router.deadline() > self.now {
            self.router.on_deadline(cx);
            self.router.on_deadline(cx);
        }
        let most = FEW * (self.held_before + 1);
        assert!(self.effects.as_slice().len() <= most, "{} effects", self.effects.as_slice().len());
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to: To::Exit(port), packet } => {
                    let Body::Data(data) = packet.body else { panic!("{packet:?} out of {port:?}") };
                    assert!(port.0 < PORTS, "{packet:?} out of {port:?}");
                    let passed = &self.passed[packet.session.0 as usize];
                    assert!(passed.contains(&data.seq.0), "a driver does not have {packet:?}");
                }
                Effect::Send { to: To::Parent, packet } => assert!(matches!(packet.body, Body::Report(_))),
                other => panic!("a router cannot {other:?}"),
            }
            self.trace.push(format!("{effect:?}"));
        }
        let seen = self.router.observe();
        self.held_before = seen.held;
        self.trace.push(format!("{:?} {seen:?} {:?}", self.now, self.router.deadline()));
        reported
    }

    fn wait(&mut self, until: Time) {
        while self.router.deadline() <= until {
            self.now = self.router.deadline().max(self.now);
            self.call(|router, cx| router.on_deadline(cx));
            assert!(self.router.deadline() > self.now, "it does not let go of its deadline");
        }
        self.now = until;
    }

    /// Records a packet that passes. Like a driver, the bench stores as many packets as the router may still send again.
    fn keep(&mut self, packet: &Packet) {
        if let Body::Data(data) = packet.body {
            let kept = &mut self.passed[packet.session.0 as usize];
            if !kept.contains(&data.seq.0) {
                kept.push(data.seq.0);
                kept.sort_unstable();
            }
            let most = match self.router.keeps() {
                0 => usize::MAX, // says nothing of it
                most => most.into(),
            };
            let surplus = kept.len().saturating_sub(most);
            kept.drain(..surplus);
        }
    }

    fn report(&mut self, session: u32, port: u16, body: Body) {
        self.pass(port, Packet { session: SessionId(session), layer: Layer(0), size: 40, body });
    }

    fn pass(&mut self, port: u16, packet: Packet) {
        let is_data = matches!(packet.body, Body::Data(_));
        self.keep(&packet);
        let mut passed = packet;
        let verdict = self.call(|router, cx| match is_data {
            true => router.on_data(Port(port), &mut passed, cx),
            false => router.on_report(Port(port), &mut passed, cx),
        });
        if verdict == Verdict::Pass {
            assert_eq!((passed.session, passed.layer), (packet.session, packet.layer));
            assert_eq!(matches!(passed.body, Body::Data(_)), is_data);
        }
        let is_known = match &packet.body {
            Body::Data(data) => (self.knows.data)(&data.mark),
            Body::Report(report) => (self.knows.report)(&report.content),
            Body::Order(_) => false,
        };
        if !is_known {
            // The debug output is compared because values that are NaN are not equal to themselves.
            assert_eq!(
                (verdict, format!("{passed:?}")),
                (Verdict::Pass, format!("{packet:?}")),
                "not its own"
            );
        }
        self.trace.push(format!("{verdict:?} {passed:?}"));
    }
}

/// The marks in the data of the three sessions; each session has another scheme.
const MARKS: [Mark; 3] = [
    Mark::Floor { least: 16_000.0, rtt_max: 0.1, every: 0.0, excluded: None },
    Mark::TARGET,
    Mark::REPRESENTATIVE,
];

/// Runs these operations, and returns the trace.
fn run(spec: &dyn RouterSpec, knows: Knows, ops: &[Op], spurious: bool) -> Vec<String> {
    let mut bench = Bench {
        router: spec.router(),
        knows,
        passed: Default::default(),
        now: Time::from_secs_f64(1.0),
        rng: Rng::new(1, 1),
        effects: Effects::new(),
        trace: Vec::new(),
        spurious,
        held_before: 0,
    };
    let body = |session: u32, seq, flags| {
        Body::Data(Data { rate: 20_000.0, flags, ..data(seq, Time::ZERO, MARKS[session as usize]) })
    };
    let reported = |from: u8, content| {
        let from = ReceiverId::new(u64::from(from) + 1).expect("not zero");
        Body::Report(Report { from, layer: Layer(0), content })
    };
    let report = |first, count| {
        let echo = Echo { seq: Seq(first), hold: Span::ZERO };
        let content = ReportContent::Lost { echo, first: Seq(first), count, loss: 0.1 };
        Body::Report(Report { from: ReceiverId::new(7).expect("not zero"), layer: Layer(0), content })
    };
    let newest = |seq: u64, behind: u8, of: u8| {
        let echo = Echo { seq: Seq(seq), hold: if of == 4 { Span::MAX } else { Span::ZERO } };
        let past_lost = Seq((seq + 1).saturating_sub(behind.into()));
        let id = ReceiverId::new(of.into()).and_then(ShortId::of);
        let content = ReportContent::Newest { echo, past_lost, of: id };
        let from = ReceiverId::new(u64::from(of) + 1).expect("not zero");
        Body::Report(Report { from, layer: Layer(0), content })
    };
    let mut reports = vec![report(0, 1)];
    let (mut turn, mut next, mut is_there) = (0, [0u64; 3], [true; PORTS as usize]);
    for op in ops {
        let port_of = |port: u16| (port + turn) % PORTS;
        match *op {
            Op::Reroute => turn += 1,
            Op::Restart => {
                let held = bench.router.observe().held;
                bench.router = spec.router();
                bench.held_before = held;
                bench.passed = Default::default();
            }
            Op::Newest { port, session, seq, behind, of } => {
                reports.push(newest(seq, behind, of));
                bench.report(session, port_of(port), reports[reports.len() - 1]);
            }
            Op::Again { session, port, back } => {
                let at = reports.len().saturating_sub(1 + usize::from(back));
                bench.report(session, port_of(port), reports[at]);
            }
            Op::Data { port, session, seq } if bench.router.sees_data() => {
                let body = body(session, seq, Flags::default());
                let session = SessionId(session);
                bench.pass(port_of(port), Packet { session, layer: Layer(0), size: 1000, body });
            }
            Op::Arrival { session, step, repair } if bench.router.sees_data() => {
                let newest = &mut next[session as usize];
                let seq = newest.saturating_add_signed(step.into());
                *newest = seq.max(*newest);
                let flags = if repair { Flags::REPAIR } else { Flags::default() };
                let body = body(session, seq, flags);
                let session = SessionId(session);
                for port in (0..PORTS).filter(|port| is_there[usize::from(*port)]) {
                    bench.pass(port_of(port), Packet { session, layer: Layer(0), size: 1000, body });
                }
            }
            Op::Data { .. } | Op::Arrival { .. } => {}
            Op::Acked { port, session, from, back, behind } => {
                let seq = Seq(next[session as usize].saturating_sub(back.into()));
                let echo = Echo { seq, hold: Span::ZERO };
                let content = ReportContent::Selective { echo, behind: behind.into(), bitmap: 1, loss: 0.0 };
                reports.push(reported(from, content));
                bench.report(session, port_of(port), reports[reports.len() - 1]);
            }
            Op::Missed { port, session, from, back, count } => {
                let first = Seq(next[session as usize].saturating_sub(back.into()));
                let echo = Echo { seq: first, hold: Span::ZERO };
                reports.push(reported(from, ReportContent::Lost { echo, first, count, loss: 0.0 }));
                bench.report(session, port_of(port), reports[reports.len() - 1]);
            }
            Op::Indicated { port, session, from, level, leaves } => {
                let cause = if leaves { Cause::Leaving } else { Cause::Loss };
                let echo = Echo { seq: Seq(next[session as usize]), hold: Span::ZERO };
                reports.push(reported(from, ReportContent::Congested { echo, level, mean: level, cause }));
                bench.report(session, port_of(port), reports[reports.len() - 1]);
            }
            Op::Foreign { port, session } => {
                let echo = Echo { seq: Seq(next[session as usize]), hold: Span::ZERO };
                let (samples, rate, cause) = (3, 1e4, Cause::Loss);
                let content =
                    ReportContent::Averaged { echo, mean: 1.0, deviation: 0.5, samples, rate, cause };
                bench.report(session, port_of(port), reported(1, content));
            }
            Op::Toggle(port) => is_there[usize::from(port)] ^= true,
            Op::Report { port, session, first, count } => {
                reports.push(report(first, count));
                bench.report(session, port_of(port), reports[reports.len() - 1]);
            }
            Op::Shared(port) => bench.router.control(RouterControl::Shared(Port(port_of(port))), bench.now),
            Op::Left { port, session, of } => {
                let neighbour = ReceiverId::new(u64::from(of) + 1).expect("not zero");
                let (session, port) = (SessionId(session), Port(port_of(port)));
                bench.router.control(RouterControl::Left { session, port, neighbour }, bench.now);
            }
            Op::Wait(micros) => bench.wait(bench.now + Span::from_micros(u64::from(micros))),
            Op::Forget(session) => {
                bench.router.control(RouterControl::Forget(SessionId(session)), bench.now);
                bench.passed[session as usize].clear();
            }
        }
    }
    bench.wait(bench.now + Span::from_secs(3600));
    (0..3).for_each(|session| bench.router.control(RouterControl::Forget(SessionId(session)), bench.now));
    let left = bench.router.observe();
    assert_eq!((left.held, left.entries), (0, 0), "what is forgotten takes no room");
    bench.trace
}

/// Checks that every call ends, that a processed deadline does not recur, and that early calls change nothing. Late packets,
/// duplicates, changed paths and restarts do not make the router send a packet that is not permitted. Foreign packets pass
/// unchanged. The same calls give the same results, and no state remains of a session that has ended.
fn keeps_its_promises(spec: &dyn RouterSpec, knows: Knows, ops: &[Op]) {
    let trace = run(spec, knows, ops, false);
    assert_eq!(run(spec, knows, ops, false), trace, "the same again");
    assert_eq!(run(spec, knows, ops, true), trace, "calls that come early");
}

const LOSSES: Knows =
    Knows { data: |_| false, report: |content| matches!(content, ReportContent::Lost { .. }) };
const ACKNOWLEDGEMENTS: Knows =
    Knows { data: |_| false, report: |content| matches!(content, ReportContent::Newest { .. }) };
const ACTIVE: Knows = Knows {
    data: |mark| matches!(mark, Mark::Floor { .. }),
    report: |content| {
        matches!(
            content,
            ReportContent::Selective { .. } | ReportContent::Lost { .. } | ReportContent::Congested { .. }
        )
    },
};
const EVERYTHING: Knows = Knows { data: |_| true, report: |_| true };

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_router_fulfils_its_contract(ops in prop::collection::vec(op(), 1..100)) {
        keeps_its_promises(&aggregation::Config { hold: Span::from_secs(1) }, LOSSES, &ops);
        keeps_its_promises(&acknowledgements::Config, ACKNOWLEDGEMENTS, &ops);
        // No session expires in this test, because packet numbers could restart after an expiry.
        let active = rmanp::Config { forget: Span::from_secs(3000), ..rmanp::Config::default() };
        keeps_its_promises(&active, ACTIVE, &ops);
        let small = rmanp::Config { cache: 4, queue: 2, exclude: 2, ..active };
        keeps_its_promises(&small, ACTIVE, &ops);
        let spec = toy::ToyRouter { delay: Span::from_millis(7), spacing: Span::from_millis(40) };
        keeps_its_promises(&spec, EVERYTHING, &ops);
    }
}
