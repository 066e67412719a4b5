//! What every router must keep to, whatever it does: `keeps_its_promises` for any [`RouterSpec`].

#[path = "../../tests/toy/router.rs"]
mod toy;

use super::{acknowledgements, aggregation};
use crate::node::{Cx, Effect, Effects, Port, Router, RouterControl, RouterSpec, To, Verdict};
use crate::packet::{
    Body, Data, Echo, Flags, Layer, Mark, Packet, Payload, ReceiverId, Report, ReportContent, Seq, SessionId,
    ShortId, Signal,
};
use crate::rng::Rng;
use crate::time::{Span, Time};
use proptest::prelude::*;

/// Exits of the router under test.
const PORTS: u16 = 4;
/// A call has no more effects than this for each packet that is held.
const FEW: usize = 4;

/// What happens to a router.
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
    /// What a receiver has: how far it is behind, and whether that is a part of the tree that has said nothing.
    Newest {
        port: u16,
        session: u32,
        seq: u64,
        behind: u8,
        of: u8,
    },
    /// The latest report again: a duplicate, or a stale one after others.
    Again {
        session: u32,
        port: u16,
    },
    /// From now on what came by one port comes by the next: routes have changed.
    Reroute,
    /// The router has lost all that it knew.
    Restart,
    /// Several neighbours share this port.
    Shared(u16),
    /// One of them has left.
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
        2 => (session.clone(), 0..PORTS).prop_map(|(session, port)| Op::Again { session, port }),
        1 => Just(Op::Reroute),
        1 => Just(Op::Restart),
        1 => (0..PORTS).prop_map(Op::Shared),
        1 => (0..PORTS, session.clone(), 0u8..5).prop_map(|(port, session, of)| Op::Left { port, session, of }),
        3 => (0u32..3_000_000).prop_map(Op::Wait),
        1 => session.prop_map(Op::Forget),
    ]
}

/// A router and its driver.
struct Bench {
    router: Box<dyn Router + Send>,
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
        let said = act(&mut *self.router, cx);
        if self.spurious && self.router.deadline() > self.now {
            self.router.on_deadline(cx);
            self.router.on_deadline(cx);
        }
        let most = FEW * (self.held_before + 1);
        assert!(self.effects.as_slice().len() <= most, "{} effects", self.effects.as_slice().len());
        for effect in self.effects.drain() {
            match effect {
                Effect::Send { to: To::Exit(port), packet } => {
                    assert!(
                        port.0 < PORTS && matches!(packet.body, Body::Data(_)),
                        "{packet:?} out of {port:?}"
                    );
                }
                Effect::Send { to: To::Parent, packet } => assert!(matches!(packet.body, Body::Report(_))),
                other => panic!("a router cannot {other:?}"),
            }
            self.trace.push(format!("{effect:?}"));
        }
        let seen = self.router.observe();
        self.held_before = seen.held;
        self.trace.push(format!("{:?} {seen:?} {:?}", self.now, self.router.deadline()));
        said
    }

    fn wait(&mut self, until: Time) {
        while self.router.deadline() <= until {
            self.now = self.router.deadline().max(self.now);
            self.call(|router, cx| router.on_deadline(cx));
            assert!(self.router.deadline() > self.now, "it does not let go of its deadline");
        }
        self.now = until;
    }

    fn pass(&mut self, port: u16, packet: Packet) {
        let is_data = matches!(packet.body, Body::Data(_));
        let mut passed = packet;
        let verdict = self.call(|router, cx| match is_data {
            true => router.on_data(Port(port), &mut passed, cx),
            false => router.on_report(Port(port), &mut passed, cx),
        });
        if verdict == Verdict::Pass {
            assert_eq!((passed.session, passed.layer), (packet.session, packet.layer));
            assert_eq!(matches!(passed.body, Body::Data(_)), is_data);
        }
        self.trace.push(format!("{verdict:?} {passed:?}"));
    }
}

/// Runs these operations, and gives what was seen.
fn run(spec: &dyn RouterSpec, ops: &[Op], spurious: bool) -> Vec<String> {
    let mut bench = Bench {
        router: spec.router(),
        now: Time::from_secs_f64(1.0),
        rng: Rng::new(1, 1),
        effects: Effects::new(),
        trace: Vec::new(),
        spurious,
        held_before: 0,
    };
    let body = |seq| {
        Body::Data(Data {
            seq: Seq(seq),
            sent_at: Time::ZERO,
            rate: 0.0,
            payload: Payload::NONE,
            flags: Flags::default(),
            signal: Signal::None,
            mark: Mark::None,
        })
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
    let mut latest = report(0, 1);
    let mut turn = 0;
    for op in ops {
        let port_of = |port: u16| (port + turn) % PORTS;
        match *op {
            Op::Reroute => turn += 1,
            Op::Restart => {
                let held = bench.router.observe().held;
                bench.router = spec.router();
                bench.held_before = held;
            }
            Op::Newest { port, session, seq, behind, of } => {
                latest = newest(seq, behind, of);
                let (session, size) = (SessionId(session), 40);
                bench.pass(port_of(port), Packet { session, layer: Layer(0), size, body: latest });
            }
            Op::Again { session, port } => {
                let (session, size) = (SessionId(session), 40);
                bench.pass(port_of(port), Packet { session, layer: Layer(0), size, body: latest });
            }
            Op::Data { port, session, seq } if bench.router.sees_data() => {
                let session = SessionId(session);
                bench.pass(port_of(port), Packet { session, layer: Layer(0), size: 1000, body: body(seq) });
            }
            Op::Data { .. } => {}
            Op::Report { port, session, first, count } => {
                let (session, size) = (SessionId(session), 40);
                latest = report(first, count);
                bench.pass(port_of(port), Packet { session, layer: Layer(0), size, body: latest });
            }
            Op::Shared(port) => bench.router.control(RouterControl::Shared(Port(port_of(port))), bench.now),
            Op::Left { port, session, of } => {
                let neighbour = ReceiverId::new(u64::from(of) + 1).expect("not zero");
                let (session, port) = (SessionId(session), Port(port_of(port)));
                bench.router.control(RouterControl::Left { session, port, neighbour }, bench.now);
            }
            Op::Wait(micros) => bench.wait(bench.now + Span::from_micros(u64::from(micros))),
            Op::Forget(session) => bench.router.control(RouterControl::Forget(SessionId(session)), bench.now),
        }
    }
    bench.wait(bench.now + Span::from_secs(3600));
    (0..3).for_each(|session| bench.router.control(RouterControl::Forget(SessionId(session)), bench.now));
    let left = bench.router.observe();
    assert_eq!((left.held, left.entries), (0, 0), "what is forgotten takes no room");
    bench.trace
}

/// Every call ends, deadlines are let go of, calls that come early change nothing, what is sent is what a router may send, whatever
/// comes late, twice, by another way or after a restart,
/// the same calls give the same, and nothing is kept of a session that is over.
fn keeps_its_promises(spec: &dyn RouterSpec, ops: &[Op]) {
    let trace = run(spec, ops, false);
    assert_eq!(run(spec, ops, false), trace, "the same again");
    assert_eq!(run(spec, ops, true), trace, "calls that come early");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_router_keeps_its_promises(ops in prop::collection::vec(op(), 1..100)) {
        keeps_its_promises(&aggregation::Config { hold: Span::from_secs(1) }, &ops);
        keeps_its_promises(&acknowledgements::Config, &ops);
        let spec = toy::ToyRouter { delay: Span::from_millis(7), spacing: Span::from_millis(40) };
        keeps_its_promises(&spec, &ops);
    }
}
