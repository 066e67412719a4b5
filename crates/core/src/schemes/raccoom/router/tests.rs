//! Tests of a router's forwarded reports, if received reports are lost, repeated or reordered on the way to the router.

use super::*;
use crate::node::Effects;
use crate::packet::{Echo, Mark, ReportContent, Seq, ShortId};
use crate::rng::Rng;
use crate::schemes::bench;
use crate::time::Span;
use proptest::prelude::*;

/// A router with receivers 1 to 3. Initially, the number of a receiver is also the number of its port.
struct Bench {
    router: Box<dyn Router + Send>,
    now: Time,
    sent: u64,
    ports: [u16; 3],
    /// For each receiver, the newest packet that it has reported, numbered from 1.
    reported: [u64; 3],
    /// The reports forwarded to the source: newest packet, lost packet, receiver.
    passed: Vec<(u64, u64, Option<ShortId>)>,
}

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("not zero")
}

impl Bench {
    fn new() -> Bench {
        let router = Config.router();
        Bench {
            router,
            now: Time::from_secs_f64(1.0),
            sent: 0,
            ports: [1, 2, 3],
            reported: [0; 3],
            passed: Vec::new(),
        }
    }

    fn note(&mut self, content: ReportContent) {
        if let ReportContent::Newest { echo, past_lost, of } = content {
            self.passed.push((echo.seq.0 + 1, past_lost.0, of));
        }
    }

    /// Sends the next packet through the ports of all receivers.
    fn data(&mut self) {
        self.now += Span::from_millis(10);
        let data = bench::data(self.sent, self.now, Mark::TARGET);
        self.sent += 1;
        for port in self.ports {
            let mut packet =
                Packet { session: SessionId(1), layer: Layer(0), size: 500, body: Body::Data(data) };
            let (mut rng, mut effects) = (Rng::new(1, 1), Effects::new());
            let cx = &mut Cx { now: self.now, rng: &mut rng, effects: &mut effects };
            assert_eq!(self.router.on_data(Port(port), &mut packet, cx), Verdict::Pass);
            for effect in effects.drain() {
                if let Effect::Send { to: To::Parent, packet: Packet { body: Body::Report(report), .. } } =
                    effect
                {
                    self.note(report.content);
                }
            }
        }
    }

    /// Receiver `receiver` reports its progress; packets are numbered from 1.
    fn tell(&mut self, receiver: usize, newest: u64, lost: u64) {
        let echo = Echo { seq: Seq(newest - 1), hold: Span::ZERO };
        let of = ShortId::of(id(receiver as u64 + 1));
        let content = ReportContent::Newest { echo, past_lost: Seq(lost), of };
        let report = Report { from: id(receiver as u64 + 1), layer: Layer(0), content };
        let mut packet =
            Packet { session: SessionId(1), layer: Layer(0), size: 40, body: Body::Report(report) };
        let (mut rng, mut effects) = (Rng::new(1, 1), Effects::new());
        let cx = &mut Cx { now: self.now, rng: &mut rng, effects: &mut effects };
        if self.router.on_report(Port(self.ports[receiver]), &mut packet, cx) == Verdict::Pass
            && let Body::Report(report) = packet.body
        {
            assert!(report.from <= id(receiver as u64 + 1), "the least number heard speaks for all");
            self.note(report.content);
        }
    }
}

#[derive(Debug, Clone)]
enum Op {
    Data,
    /// A receiver reports a packet, once or twice. The packet is older than the newest one by this number of packets.
    Tell {
        receiver: usize,
        behind: u64,
        lost: bool,
        twice: bool,
    },
    /// An old report of a receiver arrives late.
    Stale {
        receiver: usize,
        behind: u64,
    },
    Restart,
    /// Two receivers move to other ports.
    Reroute(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => Just(Op::Data),
        8 => (0usize..3, 0u64..4, any::<bool>(), any::<bool>())
            .prop_map(|(receiver, behind, lost, twice)| Op::Tell { receiver, behind, lost, twice }),
        2 => (0usize..3, 1u64..40).prop_map(|(receiver, behind)| Op::Stale { receiver, behind }),
        1 => Just(Op::Restart),
        1 => (0usize..3).prop_map(Op::Reroute),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each received report causes at most one forwarded report. A forwarded report never states a packet that no receiver has
    /// reported, or a loss that no receiver has reported. After all receivers have reported again, the aggregate is the progress
    /// of the receiver that is farthest behind.
    #[test]
    fn forwarded_aggregates_are_correct_for_any_input(ops in prop::collection::vec(op(), 1..200)) {
        let mut bench = Bench::new();
        let (mut highest, mut worst) = (0, 0);
        bench.data();
        for op in &ops {
            match *op {
                Op::Data => bench.data(),
                Op::Tell { receiver, behind, lost, twice } => {
                    let newest = bench.sent.saturating_sub(behind).max(bench.reported[receiver]).max(1);
                    bench.reported[receiver] = newest;
                    let lost = if lost { newest - 1 } else { 0 };
                    (highest, worst) = (highest.max(newest), worst.max(lost));
                    (0..=u8::from(twice)).for_each(|_| bench.tell(receiver, newest, lost));
                }
                Op::Stale { receiver, behind } => {
                    let newest = bench.reported[receiver].saturating_sub(behind);
                    if newest > 0 {
                        bench.tell(receiver, newest, 0);
                    }
                }
                Op::Restart => bench.router = Config.router(),
                Op::Reroute(first) => bench.ports.swap(first, (first + 1) % 3),
            }
            let true_so_far = bench.passed.iter().all(|(newest, lost, _)| *newest <= highest.max(1) && *lost <= worst);
            prop_assert!(true_so_far, "{:?}", bench.passed);
        }
        // Two packets later, the router does not wait for any former exit.
        (0..3).for_each(|_| bench.data());
        let newest = bench.sent;
        (0..3).for_each(|receiver| bench.tell(receiver, newest - receiver as u64, 0));
        bench.data();
        (0..3).for_each(|receiver| bench.tell(receiver, newest + 1 - receiver as u64, 0));
        let last = bench.passed.last().copied();
        prop_assert_eq!(last.map(|(newest, _, of)| (newest, of)), Some((newest - 1, ShortId::of(id(3)))));
    }
}

#[test]
fn port_without_data_no_longer_delays_acks() {
    let mut bench = Bench::new();
    (0..10).for_each(|_| bench.data());
    for (receiver, newest) in [(0, 9), (1, 9), (2, 4)] {
        bench.tell(receiver, newest, 0);
    }
    assert_eq!(bench.passed.last(), Some(&(4, 0, ShortId::of(id(3)))));
    bench.ports = [1, 2, 2];
    (0..2).for_each(|_| bench.data());
    assert_eq!(bench.passed.last().map(|passed| passed.0), Some(9), "without a further report");
    // A report that was sent through the former port arrives later. It does not restore the port.
    bench.ports = [1, 2, 3];
    bench.tell(2, 5, 0);
    bench.ports = [1, 2, 2];
    (0..2).for_each(|receiver| bench.tell(receiver, 10, 0));
    assert_eq!(bench.passed.last().map(|passed| passed.0), Some(10));
}

#[test]
fn router_forwards_no_more_reports_than_packets() {
    let mut bench = Bench::new();
    for _ in 0..500 {
        bench.data();
        let newest = bench.sent;
        (0..3).for_each(|receiver| bench.tell(receiver, newest, 0));
    }
    assert!(bench.passed.len() as u64 <= bench.sent, "{}", bench.passed.len());
}

#[test]
fn receivers_of_a_shared_port_are_distinguished() {
    let run = |shared: bool| {
        let mut bench = Bench::new();
        bench.ports = [1, 1, 2];
        if shared {
            bench.router.control(RouterControl::Shared(Port(1)), bench.now);
        }
        for _ in 0..200 {
            bench.data();
            let newest = bench.sent;
            // The second receiver is always three packets behind.
            bench.tell(0, newest, 0);
            bench.tell(1, newest.saturating_sub(3).max(1), 0);
            bench.tell(2, newest, 0);
        }
        bench
    };
    let together = run(false);
    assert!(together.passed.len() as u64 > together.sent, "they take turns: {}", together.passed.len());
    let mut apart = run(true);
    assert!(apart.passed.len() as u64 <= apart.sent, "{}", apart.passed.len());
    let behind = apart.sent - 3;
    assert_eq!(apart.passed.last().map(|(newest, _, of)| (*newest, *of)), Some((behind, ShortId::of(id(2)))));
    // The receiver leaves: the router waits only for the other receivers.
    let (session, port) = (SessionId(1), Port(1));
    apart.router.control(RouterControl::Left { session, port, neighbour: id(2) }, apart.now);
    apart.data();
    let newest = apart.sent;
    [0, 2].into_iter().for_each(|receiver| apart.tell(receiver, newest, 0));
    assert_eq!(apart.passed.last().map(|passed| passed.0), Some(newest));
}
