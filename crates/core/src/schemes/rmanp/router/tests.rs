//! Tests of active routers without a network: a single router, and three in series.

use super::*;
use crate::node::{Effect, Effects, To};
use crate::packet::{Data, Echo, Flags, ReceiverId, Report, Seq, ShortId};
use crate::rng::Rng;
use crate::schemes::bench;
use crate::schemes::rmanp::{acknowledged, newest_of};

const EXCLUDED_FOR_TEST: Span = Span::from_secs(11);
const SESSION: SessionId = SessionId(7);
const SIZE: u16 = 1000;

/// The output of a router.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Out {
    /// A packet sent through a port: its number, its rate in bytes per second, and its flags for gaps and repairs.
    Data {
        port: u16,
        seq: u64,
        rate: u32,
        gap: bool,
        again: bool,
    },
    /// An acknowledgement, sent upstream, of all packets below this number.
    Ack(u64),
    /// A request sent upstream: the first packet and the number of packets.
    Lost(u64, u16),
    /// A congestion indication sent upstream: its rate in bytes per second.
    Ci(f64),
    Leaves(u64),
}

/// A router with receivers 1, 2, 3 behind ports 1, 2, 3; upstream is port 0.
struct Bench {
    router: Box<dyn Router + Send>,
    now: Time,
    mark: Mark,
}

/// Returns parameters with which an indication limits only the exit towards the congestion.
fn one_exit() -> Config {
    Config { limit: Limit::One, ..Config::default() }
}

fn id(number: u64) -> ReceiverId {
    ReceiverId::new(number).expect("not zero")
}

fn data(seq: u64, rate: f64, flags: Flags, mark: Mark) -> Packet {
    let data = Data { rate: (rate * 8.0) as f32, flags, ..bench::data(seq, Time::ZERO, mark) };
    Packet { session: SESSION, layer: Layer(0), size: SIZE, body: Body::Data(data) }
}

fn report(from: u64, content: ReportContent) -> Packet {
    let body = Body::Report(Report { from: id(from), layer: Layer(0), content });
    Packet { session: SESSION, layer: Layer(0), size: 40, body }
}

fn ci(rate: f64, cause: Cause) -> ReportContent {
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    ReportContent::Congested { echo, level: (rate * 8.0) as f32, mean: 0.0, cause }
}

fn lost(first: u64, count: u16) -> ReportContent {
    ReportContent::Lost {
        echo: Echo { seq: Seq(first), hold: Span::MAX },
        first: Seq(first),
        count,
        loss: 0.0,
    }
}

fn out_of(port: u16, packet: &Packet) -> Out {
    match packet.body {
        Body::Data(data) => Out::Data {
            port,
            seq: data.seq.0,
            rate: (data.rate / 8.0).round() as u32,
            gap: data.flags.has(Flags::GAP_SEEN),
            again: data.flags.has(Flags::REPAIR),
        },
        Body::Report(Report { from, content, .. }) => match content {
            ReportContent::Selective { .. } => Out::Ack(newest_of(&content).expect("is one")),
            ReportContent::Lost { first, count, .. } => Out::Lost(first.0, count),
            ReportContent::Congested { cause: Cause::Leaving, .. } => Out::Leaves(from.get()),
            ReportContent::Congested { level, .. } => Out::Ci(f64::from(level) / 8.0),
            other => panic!("{other:?}"),
        },
        Body::Order(_) => panic!("{packet:?}"),
    }
}

impl Bench {
    fn new(config: Config) -> Bench {
        let mark = Mark::Floor { least: 16_000.0, rtt_max: 0.1, every: 0.0, excluded: None };
        Bench { router: config.router(), now: Time::from_secs_f64(10.0), mark }
    }

    /// Creates a router that has forwarded packet 0, which all receivers have acknowledged. The settling time of its exits has
    /// passed.
    fn known(config: Config) -> Bench {
        let mut it = Bench::new(config);
        it.data(0, 8_000.0);
        it.now += Span::from_millis(100);
        (1..4).for_each(|from| drop(it.report(from, acknowledged(1, Span::ZERO))));
        it.now += Span::from_secs(1);
        (1..4).for_each(|from| drop(it.report(from, acknowledged(1, Span::ZERO))));
        it
    }

    fn call(&mut self, port: u16, packet: Packet) -> Vec<Out> {
        let (mut rng, mut effects, mut passed) = (Rng::new(1, 1), Effects::new(), packet);
        let cx = &mut Cx { now: self.now, rng: &mut rng, effects: &mut effects };
        let verdict = match packet.body {
            Body::Data(_) => self.router.on_data(Port(port), &mut passed, cx),
            _ => self.router.on_report(Port(port), &mut passed, cx),
        };
        let mut out = drain(&mut effects);
        if verdict == Verdict::Pass {
            out.push(out_of(port, &passed));
        }
        out
    }

    /// Delivers a packet to all three exits.
    fn data(&mut self, seq: u64, rate: f64) -> Vec<Out> {
        self.flagged(seq, rate, Flags::default())
    }

    fn flagged(&mut self, seq: u64, rate: f64, flags: Flags) -> Vec<Out> {
        let packet = data(seq, rate, flags, self.mark);
        (1..4).flat_map(|port| self.call(port, packet)).collect()
    }

    fn report(&mut self, from: u64, content: ReportContent) -> Vec<Out> {
        self.call(from as u16, report(from, content))
    }

    fn wait(&mut self, span: Span) -> Vec<Out> {
        let until = self.now + span;
        let mut out = Vec::new();
        while self.router.deadline() <= until {
            self.now = self.router.deadline();
            let (mut rng, mut effects) = (Rng::new(1, 1), Effects::new());
            self.router.on_deadline(&mut Cx { now: self.now, rng: &mut rng, effects: &mut effects });
            out.extend(drain(&mut effects));
        }
        self.now = until;
        out
    }
}

fn drain(effects: &mut Effects) -> Vec<Out> {
    let out = effects.drain().map(|effect| match effect {
        Effect::Send { to: To::Exit(port), packet } => out_of(port.0, &packet),
        Effect::Send { to: To::Parent, packet } => out_of(0, &packet),
        other => panic!("{other:?}"),
    });
    out.collect()
}

fn at_port(out: &[Out], wanted: u16) -> Vec<Out> {
    let is_there = |out: &&Out| matches!(out, Out::Data { port, .. } if *port == wanted);
    out.iter().filter(is_there).copied().collect()
}

fn new(port: u16, seq: u64, rate: u32) -> Out {
    Out::Data { port, seq, rate, gap: false, again: false }
}

fn close(out: &[Out], rates: &[f64]) {
    let stated: Vec<f64> =
        out.iter().filter_map(|out| if let Out::Ci(rate) = out { Some(*rate) } else { None }).collect();
    assert_eq!(stated.len(), rates.len(), "{out:?}");
    assert!(
        stated.iter().zip(rates).all(|(stated, rate)| (stated / rate - 1.0).abs() < 1e-5),
        "{stated:?} and {rates:?}"
    );
}

#[test]
fn routers_of_figure_1_reduce_a_rate_of_8_to_6_4_then_6_336() {
    // AR4 detects the gap and indicates 0.8 of 8 kB/s.
    let mut ar4 = Bench::known(one_exit());
    let out = ar4.data(2, 8_000.0);
    close(&out, &[6_400.0]);
    assert!(out.contains(&Out::Data { port: 1, seq: 2, rate: 8_000, gap: true, again: false }));
    // AR2 limits its exits, and forwards the indication with 0.99 of the rate.
    let mut ar2 = Bench::known(Config::default());
    ar2.data(1, 8_000.0);
    close(&ar2.report(1, ci(6_400.0, Cause::Loss)), &[6_336.0]);
    assert_eq!(at_port(&ar2.data(2, 8_000.0), 1), [new(1, 2, 6_400)]);
    let out = ar2.data(3, 8_000.0);
    assert_eq!((at_port(&out, 1), at_port(&out, 2)), (vec![], vec![]), "the packet waits at all exits");
    assert_eq!(
        at_port(&ar2.wait(Span::from_millis(157)), 1),
        [new(1, 3, 6_400)],
        "1000 bytes at 6400 a second"
    );
}

#[test]
fn three_routers_in_series_report_a_gap_once() {
    let mut chain: Vec<Bench> = (0..3).map(|_| Bench::known(Config::default())).collect();
    let mut flags = Flags::default();
    let mut reported = Vec::new();
    for router in &mut chain {
        let packet = data(3, 8_000.0, flags, router.mark);
        let out = router.call(1, packet);
        reported.push(out.iter().filter(|out| matches!(out, Out::Ci(_))).count());
        assert!(out.contains(&Out::Lost(1, 2)), "each asks: {out:?}");
        let Some(Out::Data { gap: true, .. }) = out.last() else { panic!("{out:?}") };
        flags = Flags::GAP_SEEN;
    }
    assert_eq!(reported, [1, 0, 0]);
    // There is no gap at this router: the flag belongs to a gap that is already repaired.
    let packet = data(4, 8_000.0, Flags::GAP_SEEN, chain[0].mark);
    let out = chain[0].call(1, packet);
    assert_eq!(out, [new(1, 4, 8_000)]);
}

#[test]
fn second_indication_of_a_congestion_event_is_filtered() {
    let mut it = Bench::known(one_exit());
    it.data(1, 8_000.0);
    close(&it.report(1, ci(6_400.0, Cause::Loss)), &[6_336.0]);
    assert_eq!(it.report(2, ci(6_400.0, Cause::Loss)), []);
    assert_eq!(it.report(1, ci(6_400.0, Cause::Loss)), []);
    close(&it.report(3, ci(5_000.0, Cause::Loss)), &[4_950.0]);
    let seen = it.router.observe();
    assert_eq!((seen.indications, seen.filtered), (2, 2));
    // Each exit has a separate limit, even if its indication was filtered.
    let out = it.data(2, 8_000.0);
    assert_eq!(out, [new(1, 2, 6_400), new(2, 2, 6_400), new(3, 2, 5_000)]);
}

#[test]
fn indicated_rate_grows_with_each_acknowledged_packet() {
    let mut it = Bench::known(Config::default());
    it.data(1, 8_000.0);
    it.now += Span::from_millis(100);
    close(&it.report(1, ci(6_400.0, Cause::Loss)), &[6_336.0]);
    // The indicated rate grows by 0.05 * 2000 for each packet that all receivers have.
    (1..4).for_each(|from| drop(it.report(from, acknowledged(2, Span::ZERO))));
    assert_eq!(it.report(2, ci(6_510.0, Cause::Loss)), []);
    close(&it.report(2, ci(6_490.0, Cause::Loss)), &[6_490.0 * 0.99]);
}

#[test]
fn congestion_is_indicated_again_after_the_rate_has_recovered() {
    let mut it = Bench::known(Config { increase: 0.0, ..Config::default() });
    it.data(1, 8_000.0);
    close(&it.report(1, ci(6_400.0, Cause::Loss)), &[6_336.0]);
    // Packet 2 was in flight at the first indication, so its loss belongs to the same congestion event.
    it.data(2, 8_000.0);
    assert_eq!(it.report(2, ci(6_400.0, Cause::Loss)), []);
    for (seq, rate) in [(3, 6_336.0), (4, 7_000.0), (5, 7_900.0)] {
        it.data(seq, rate);
        assert_eq!(it.report(2, ci(6_400.0, Cause::Loss)), [], "at {rate}");
    }
    it.data(6, 8_100.0);
    close(&it.report(2, ci(6_480.0, Cause::Loss)), &[6_480.0 * 0.99]);
}

#[test]
fn full_queue_sets_a_rate_limit_until_it_is_empty() {
    let mut it = Bench::known(one_exit());
    it.data(1, 8_000.0);
    it.report(1, ci(4_000.0, Cause::Loss));
    let mut out = Vec::new();
    for seq in 2..14 {
        out.extend(it.data(seq, 8_000.0));
    }
    assert_eq!(at_port(&out, 1), [new(1, 2, 4_000)], "ten wait, and one is dropped");
    // 0.8 * 8000 is not below the 0.99 * 4000 that were indicated.
    assert_eq!((it.router.observe().overflows, it.router.observe().filtered), (1, 1));
    let out = it.data(14, 3_000.0);
    close(&out, &[2_400.0]);
    assert_eq!(it.router.observe().overflows, 2);
    let sent = at_port(&it.wait(Span::from_millis(2_600)), 1);
    let expected: Vec<Out> = (3..13).map(|seq| new(1, seq, 4_000)).collect();
    assert_eq!(sent, expected, "at 4 packets a second");
    let out = it.data(15, 8_000.0);
    assert_eq!(
        out[0],
        Out::Data { port: 1, seq: 15, rate: 8_000, gap: true, again: false },
        "no limit, and the gap is told"
    );
}

#[test]
fn retransmissions_precede_new_packets_on_requesting_branches() {
    let mut it = Bench::known(one_exit());
    it.data(1, 8_000.0);
    it.report(1, ci(4_000.0, Cause::Loss));
    (2..6).for_each(|seq| drop(it.data(seq, 8_000.0)));
    assert_eq!(it.report(1, lost(1, 1)), [], "it is paced, too");
    let again = |port, seq, rate| Out::Data { port, seq, rate, gap: false, again: true };
    let sent = at_port(&it.wait(Span::from_millis(800)), 1);
    assert_eq!(sent, [again(1, 1, 4_000), new(1, 3, 4_000), new(1, 4, 4_000)]);
    assert_eq!(it.report(2, lost(5, 1)), [again(2, 5, 8_000)], "at once where there is no limit");
    assert_eq!(it.report(2, lost(5, 1)), [], "not twice for two who lost the same");
    assert_eq!(it.router.observe().repairs, 2);
    // The router requests the packets that it lacks, and sends each of them to the exits behind which a receiver has requested
    // the packet.
    it.data(9, 8_000.0);
    assert_eq!(it.report(3, lost(6, 3)), [], "it has asked");
    assert_eq!(it.flagged(7, 2_000.0, Flags::REPAIR), [again(3, 7, 2_000)]);
    assert_eq!(it.flagged(7, 2_000.0, Flags::REPAIR), [], "a late duplicate");
}

#[test]
fn acknowledgements_merge_and_release_cached_packets() {
    let mut it = Bench::known(Config::default());
    (1..5).for_each(|seq| drop(it.data(seq, 8_000.0)));
    assert_eq!(it.router.observe().stored, 4);
    assert_eq!(it.report(1, acknowledged(5, Span::ZERO)), []);
    assert_eq!(it.report(2, acknowledged(4, Span::ZERO)), []);
    assert_eq!(it.report(3, acknowledged(3, Span::ZERO)), [Out::Ack(3)]);
    assert_eq!(it.router.observe().stored, 2);
    assert_eq!(it.report(3, ci(0.0, Cause::Leaving)), [Out::Ack(4), Out::Leaves(3)]);
    assert_eq!(it.report(2, acknowledged(5, Span::ZERO)), [Out::Ack(5)]);
    assert_eq!(it.router.observe().stored, 0);
    // Upstream repeats a packet because an acknowledgement was lost.
    it.now += Span::from_millis(1);
    assert_eq!(it.flagged(2, 2_000.0, Flags::REPAIR), [Out::Ack(5)]);
}

#[test]
fn branch_without_receivers_is_pruned_except_for_probes() {
    let mut it = Bench::known(Config::default());
    it.data(1, 8_000.0);
    it.report(2, ci(0.0, Cause::Leaving));
    let mut out = Vec::new();
    for seq in 2..32 {
        it.now += Span::from_millis(100);
        out.extend(it.data(seq, 8_000.0));
    }
    assert_eq!((at_port(&out, 1).len(), at_port(&out, 2).len()), (30, 3));
    it.report(2, acknowledged(32, Span::ZERO));
    assert_eq!(at_port(&it.data(32, 8_000.0), 2).len(), 1, "somebody is there again");
}

#[test]
fn router_excludes_receiver_that_requests_below_the_least_rate() {
    let mut it = Bench::known(Config::default());
    it.data(1, 2_000.0);
    for _ in 0..4 {
        it.report(3, ci(1_600.0, Cause::Loss));
        assert_eq!(it.router.observe().exclusions, 0);
        it.report(2, ci(1_600.0, Cause::Accumulation));
        it.now += Span::from_secs(8);
    }
    it.report(3, ci(1_600.0, Cause::Loss));
    assert_eq!(it.router.observe().exclusions, 1);
    let packet = data(2, 2_000.0, Flags::default(), it.mark);
    let mut named = Vec::new();
    for port in 1..4 {
        let (mut rng, mut effects, mut passed) = (Rng::new(1, 1), Effects::new(), packet);
        let cx = &mut Cx { now: it.now, rng: &mut rng, effects: &mut effects };
        it.router.on_data(Port(port), &mut passed, cx);
        let Body::Data(Data { mark: Mark::Floor { excluded, .. }, .. }) = passed.body else {
            panic!("{passed:?}")
        };
        named.push(excluded);
    }
    assert_eq!(named, [None, None, ShortId::of(id(3))]);
    it.report(1, acknowledged(3, Span::ZERO));
    assert_eq!(it.report(3, acknowledged(1, Span::ZERO)), [], "it counts no more");
    assert_eq!(it.report(2, acknowledged(3, Span::ZERO)), [Out::Ack(3)]);
}

/// Upstream knows a router by the receiver in whose name it reports. If this receiver is excluded, the link to the router cannot
/// carry the least rate, and all receivers behind the router are excluded (paper 003, 2).
#[test]
fn exclusion_of_a_router_excludes_all_receivers_behind_it() {
    let mut it = Bench::known(Config::default());
    it.data(1, 2_000.0);
    let named = |it: &mut Bench, seq, excluded| {
        let mark = Mark::Floor { least: 16_000.0, rtt_max: 0.1, every: 0.0, excluded };
        let packet = data(seq, 2_000.0, Flags::default(), mark);
        [1, 2, 3].map(|port| {
            let (mut rng, mut effects, mut passed) = (Rng::new(1, 1), Effects::new(), packet);
            it.router.on_data(
                Port(port),
                &mut passed,
                &mut Cx { now: it.now, rng: &mut rng, effects: &mut effects },
            );
            let Body::Data(Data { mark: Mark::Floor { excluded, .. }, .. }) = passed.body else {
                panic!("{passed:?}")
            };
            excluded
        })
    };
    // Receiver 1 reported first, so the router reports in its name.
    assert_eq!(
        named(&mut it, 2, ShortId::of(id(2))),
        [ShortId::of(id(2)); 3],
        "a receiver at the upstream router"
    );
    assert_eq!(named(&mut it, 3, ShortId::of(id(1))), [Some(ShortId::ALL); 3]);
    assert_eq!(it.report(2, acknowledged(4, Span::ZERO)), [], "their feedback is ignored");
    it.now += EXCLUDED_FOR_TEST;
    assert_eq!(named(&mut it, 4, None), [None; 3], "later receivers may join");
}

/// The filter passes each indication below the least rate, because upstream counts them.
#[test]
fn repeated_losses_at_the_least_rate_are_indicated_each_time() {
    let mut it = Bench::known(Config::default());
    let mut indications = 0;
    for seq in [2, 4, 6, 8] {
        it.now += Span::from_secs(2);
        let out = it.data(seq, 2_000.0);
        indications += out.iter().filter(|out| **out == Out::Ci(1_600.0)).count();
    }
    assert_eq!(indications, 4);
    let out = it.data(10, 8_000.0);
    assert!(!out.contains(&Out::Ci(6_400.0)), "above the least rate, only lower indications pass: {out:?}");
}

/// "Each AR controls the rate at its output interfaces" (paper 003, 2.3).
#[test]
fn indication_limits_all_exits_or_the_congested_one() {
    for (limit, held) in [(Limit::All, [true; 3]), (Limit::One, [false, false, true])] {
        let mut it = Bench::known(Config { limit, ..Config::default() });
        it.data(1, 8_000.0);
        it.report(3, ci(4_000.0, Cause::Loss));
        it.data(2, 8_000.0);
        let out = it.data(3, 8_000.0);
        assert_eq!([1, 2, 3].map(|port| at_port(&out, port).is_empty()), held, "{limit:?}");
    }
}

#[test]
fn new_router_sends_no_acknowledgement_while_its_exits_settle() {
    let mut it = Bench::new(Config::default());
    it.data(50, 8_000.0);
    assert_eq!(it.report(1, acknowledged(51, Span::ZERO)), []);
    it.data(51, 8_000.0);
    assert_eq!(it.report(2, acknowledged(40, Span::ZERO)), []);
    it.now += Span::from_millis(1_500);
    it.data(52, 8_000.0);
    assert_eq!(it.report(1, acknowledged(53, Span::ZERO)), []);
    assert_eq!(it.report(3, acknowledged(53, Span::ZERO)), []);
    assert_eq!(it.report(2, acknowledged(40, Span::ZERO)), [Out::Ack(40)]);
    // The router forwards requests for packets from before its start.
    assert_eq!(it.report(2, lost(40, 2)), [Out::Lost(40, 2)]);
}

#[test]
fn silent_branches_and_silent_sessions_expire() {
    let mut it = Bench::known(Config::default());
    it.data(1, 8_000.0);
    for _ in 0..8 {
        it.now += Span::from_millis(500);
        it.report(1, acknowledged(2, Span::ZERO));
        it.report(2, acknowledged(2, Span::ZERO));
        it.wait(Span::from_millis(1));
    }
    assert_eq!(it.router.observe().stored, 0, "the third held them back for three seconds");
    assert!(it.router.observe().entries > 3);
    it.wait(Span::from_secs(70));
    assert_eq!((it.router.observe().entries, it.router.deadline()), (0, Time::NEVER));
}

#[test]
fn storage_time_of_packets_at_a_router_is_summed() {
    let mut it = Bench::known(Config::default());
    it.data(1, 8_000.0);
    it.data(2, 8_000.0);
    let before = it.router.observe().stored_for;
    it.now += Span::from_secs(2);
    (1..4).for_each(|from| drop(it.report(from, acknowledged(3, Span::ZERO))));
    let seen = it.router.observe();
    assert_eq!(seen.stored_for, before + Span::from_secs(4), "two packets for two seconds");
    assert_eq!((seen.stored, seen.stored_most), (0, 2));
}
