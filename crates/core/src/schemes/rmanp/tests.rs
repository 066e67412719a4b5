//! Tests of RMANP's source and receivers without a network, then at bottlenecks without active routers.

use super::*;
use crate::node::{Effect, Receiver as _, Source as _, SourceControl};
use crate::packet::{
    Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, ShortId,
};
use crate::rng::Rng;
use crate::schemes::Scheme;
use crate::schemes::bench::{Bench, Ear, Path, Star, data, receiver_id};
use crate::time::{Rate, Span, Time};

const RTT: Span = Span::from_millis(100);

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1057)
    }

    fn indicate(&mut self, from: u64, bps: f64, cause: Cause) {
        let echo = Echo { seq: Seq(self.sent.len() as u64 - 1), hold: Span::ZERO };
        self.report(from, ReportContent::Congested { echo, level: bps as f32, mean: 0.0, cause });
    }

    /// Runs until `end`; `from` acknowledges every packet `RTT` after its transmission.
    fn echo_until(&mut self, from: u64, end: Time) {
        let mut next = self.sent.iter().filter(|sent| sent.at + RTT <= self.now).count();
        while self.now < end {
            match self.sent.get(next).map(|sent| sent.at + RTT) {
                Some(due) if due <= self.now => {
                    next += 1;
                    self.report(from, acknowledged(next as u64, Span::ZERO));
                }
                due => self.run_until(due.unwrap_or(end).min(end).min(self.now + Span::from_millis(1))),
            }
        }
    }
}

#[test]
fn rate_grows_by_a_factor_of_e_in_105_7_seconds() {
    // dR/dt = Is Rm R/S, so the time constant is 1057 / (0.005 * 2000) = 105.7 s.
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(60.0));
    let before = sender.rate();
    sender.echo_until(1, at(60.0 + 105.7));
    let factor = sender.rate() / before;
    assert!((factor / std::f64::consts::E - 1.0).abs() < 0.03, "{factor}");
    assert!(sender.rate() > 16_000.0 * 4.0);
}

#[test]
fn equal_indications_reduce_the_rate_once() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(150.0));
    let rate = sender.rate();
    sender.indicate(1, rate * 0.8, Cause::Loss);
    sender.indicate(2, rate * 0.8, Cause::Loss);
    sender.indicate(3, rate * 0.82, Cause::Accumulation);
    assert!((sender.rate() / (0.8 * rate) - 1.0).abs() < 1e-6);
    assert_eq!(sender.source.observe().cuts, 1);
    sender.indicate(1, 0.0, Cause::Accumulation);
    assert_eq!(sender.rate(), 16_000.0, "not below the least rate");
    sender.indicate(1, f64::NAN, Cause::Loss);
    assert_eq!(sender.rate(), 16_000.0);
}

#[test]
fn source_slows_and_resends_a_packet_without_acknowledgements() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(100.0));
    let (rate, acked) = (sender.rate(), sender.source.inside().0);
    sender.run_until(at(100.75));
    assert_eq!((sender.rate(), sender.again.len()), (rate, 0), "a time-out is a second at least");
    sender.run_until(at(102.0));
    assert!((sender.rate() / (0.8 * rate) - 1.0).abs() < 1e-6, "{}", sender.rate());
    assert_eq!(sender.again[0].0, acked);
    sender.run_until(at(400.0));
    assert_eq!(sender.rate(), 16_000.0);
    assert!(sender.again.len() < 15, "it waits longer each time: {:?}", sender.again);
}

#[test]
fn packets_in_flight_do_not_exceed_the_router_caches() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(60.0));
    let acked = sender.source.inside().0;
    for second in 60..160 {
        sender.report(1, acknowledged(acked, Span::ZERO));
        sender.run_until(at(f64::from(second)));
    }
    assert_eq!(sender.sent.len() as u64, acked + 100);
}

#[test]
fn retransmissions_precede_new_packets_within_the_rate() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(20.0));
    let next = sender.sent.len() as u64;
    let (gap, before) = (1057.0 * 8.0 / sender.rate(), sender.sent.len());
    for from in 1..4 {
        let echo = Echo { seq: Seq(next - 1), hold: Span::ZERO };
        sender.report(from, ReportContent::Lost { echo, first: Seq(next - 4), count: 3, loss: 0.0 });
    }
    let begin = sender.now;
    sender.run_until(begin + Span::from_secs_f64(3.5 * gap));
    let again: Vec<u64> = sender.again.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(again, [next - 4, next - 3, next - 2]);
    let apart = sender.again[2].1.since(sender.again[1].1).as_secs_f64();
    assert!((apart / gap - 1.0).abs() < 0.01, "{apart} and {gap}");
    assert!(sender.sent.len() - before <= 1, "new ones wait");
}

#[test]
fn a_receiver_below_the_minimum_rate_is_removed() {
    let mut sender = Sender::new(Config::published());
    sender.echo_until(1, at(10.0));
    for turn in 0..5 {
        sender.echo_until(1, at(10.0 + 8.0 * f64::from(turn)));
        sender.indicate(2, 12_800.0, Cause::Accumulation);
        assert!(!names(&mut sender, 2), "what waits behind a router is that one's matter");
        sender.indicate(3, 12_800.0, Cause::Loss);
        assert_eq!(names(&mut sender, 3), turn == 4);
    }
    let acked = sender.source.inside().0;
    sender.report(3, acknowledged(1, Span::ZERO));
    sender.echo_until(1, at(47.0));
    assert!(sender.source.inside().0 > acked, "its acknowledgements are ignored");
    sender.echo_until(1, at(72.0));
    assert!(!names(&mut sender, 3), "and it is not named for ever");
}

/// Returns whether the next packet names this receiver as excluded.
fn names(sender: &mut Sender, id: u64) -> bool {
    let stamp = sender.depart(Layer(0));
    let Mark::Floor { excluded, .. } = stamp.mark else { panic!("{stamp:?}") };
    excluded.map(ReceiverId::from) == Some(receiver_id(id))
}

#[test]
fn progress_waits_for_the_slowest_child_until_it_is_removed() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(5.0));
    let next = sender.sent.len() as u64;
    sender.report(1, acknowledged(next, Span::ZERO));
    assert_eq!(sender.source.inside().0, next, "one is all there are");
    sender.run_until(at(8.0));
    let next = sender.sent.len() as u64;
    sender.report(2, acknowledged(next - 3, Span::ZERO));
    sender.report(1, acknowledged(next, Span::ZERO));
    assert_eq!(sender.source.inside().0, next - 3);
    sender.call(|source, cx| source.control(SourceControl::Forget(receiver_id(2)), cx.now));
    assert_eq!(sender.source.inside().0, next);
    sender.run_until(at(9.0));
    let next = sender.sent.len() as u64;
    sender.report(3, acknowledged(next - 1, Span::ZERO));
    for tenth in 0..50 {
        sender.report(1, acknowledged(next, Span::ZERO));
        sender.run_until(at(9.0 + f64::from(tenth) * 0.1));
    }
    assert!(sender.source.inside().0 >= next, "three seconds without a word");
}

/// A receiver that the test calls directly.
type Hearer = Ear<Receiver>;

/// The report of a receiver.
#[derive(Debug, PartialEq)]
enum Reported {
    /// An acknowledgement of all packets below this number.
    Ack(u64),
    Lost(u64, u16),
    /// A congestion indication: its rate in bytes per second.
    Ci(u32),
    Farewell,
    /// The receiver leaves, but its program has not requested this.
    Gone,
}

fn stated(effects: Vec<Effect>) -> Vec<Reported> {
    let stated = effects.into_iter().map(|effect| match effect {
        Effect::Leave => Reported::Gone,
        Effect::Report(Report { content, .. }) => match content {
            ReportContent::Selective { .. } => Reported::Ack(newest_of(&content).expect("is one")),
            ReportContent::Lost { first, count, .. } => Reported::Lost(first.0, count),
            ReportContent::Congested { cause: Cause::Leaving, .. } => Reported::Farewell,
            ReportContent::Congested { level, .. } => Reported::Ci((level / 8.0).round() as u32),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    });
    stated.collect()
}

impl Hearer {
    fn new(config: &Config) -> Hearer {
        let mut it = Ear::by_hand(Receiver::new(receiver_id(7), config), at(1.0));
        it.mark = Mark::Floor { least: 16_000.0, rtt_max: 0.1, every: 0.0, excluded: None };
        it
    }

    /// Delivers a packet that was sent at 8000 bytes per second.
    fn data(&mut self, seq: u64, flags: Flags) -> Vec<Reported> {
        self.data_at(seq, flags, 8_000.0)
    }

    fn data_at(&mut self, seq: u64, flags: Flags, rate: f32) -> Vec<Reported> {
        self.now += Span::from_millis(10);
        let is_first = self.seq == 0;
        let lost = if is_first { 0 } else { seq.saturating_sub(self.seq) as u32 };
        let arrival = Arrival { size: 1057, lost, late: seq < self.seq, ..Arrival::default() };
        self.seq = self.seq.max(seq + 1);
        let data = Data { rate: rate * 8.0, flags, ..data(seq, Time::ZERO, self.mark) };
        stated(self.call(|receiver, cx| receiver.on_data(&data, Layer(0), arrival, cx)))
    }

    fn reports_until(&mut self, until: Time) -> Vec<Reported> {
        let mut all = Vec::new();
        while self.receiver.deadline() <= until {
            self.now = self.receiver.deadline();
            all.extend(stated(self.call(|receiver, cx| receiver.on_deadline(cx))));
        }
        self.now = until;
        all
    }
}

const NEW: Flags = Flags(0);

#[test]
fn receiver_indicates_only_losses_not_reported_by_routers() {
    let mut it = Hearer::new(&Config::published());
    assert_eq!(it.data(4, NEW), [Reported::Ack(5)], "it begins with the first packet that it hears");
    assert_eq!(it.data(7, NEW), [Reported::Ack(5), Reported::Lost(5, 2), Reported::Ci(6_400)]);
    assert_eq!(
        it.data(9, Flags::GAP_SEEN),
        [Reported::Ack(5), Reported::Lost(8, 1)],
        "a router has told of that"
    );
    assert_eq!(it.data(5, Flags::REPAIR.with(Flags::GAP_SEEN)), [Reported::Ack(6)]);
    assert_eq!(it.data(6, Flags::REPAIR), [Reported::Ack(8)]);
    assert_eq!(it.data(6, Flags::REPAIR), [Reported::Ack(8)], "who sends twice does not know");
    assert_eq!(it.data(8, Flags::REPAIR), [Reported::Ack(10)]);
    assert_eq!(it.reports_until(at(60.0)), []);
}

#[test]
fn acknowledgement_of_several_packets_waits_for_no_gap() {
    let mut it = Hearer::new(&Config { together: 3, ..Config::published() });
    assert_eq!((it.data(0, NEW), it.data(1, NEW)), (vec![], vec![]));
    assert_eq!(it.data(2, NEW), [Reported::Ack(3)]);
    assert_eq!(it.data(3, NEW), []);
    assert_eq!(it.data(5, Flags::GAP_SEEN), [Reported::Ack(4), Reported::Lost(4, 1)]);
    assert_eq!(it.data(4, Flags::REPAIR), [Reported::Ack(6)], "a repair is acknowledged at once");
    assert_eq!((it.data(6, NEW), it.data(7, NEW)), (vec![], vec![]));
    assert_eq!(it.data(8, NEW), [Reported::Ack(9)]);
}

#[test]
fn three_unanswered_requests_indicate_congestion() {
    let mut it = Hearer::new(&Config::published());
    it.data(0, NEW);
    assert_eq!(it.data(2, Flags::GAP_SEEN), [Reported::Ack(1), Reported::Lost(1, 1)]);
    let began = it.now;
    assert_eq!(
        it.reports_until(began + Span::from_millis(1_400)),
        [Reported::Lost(1, 1), Reported::Lost(1, 1)]
    );
    assert_eq!(
        it.reports_until(began + Span::from_millis(1_600)),
        [Reported::Lost(1, 1), Reported::Ci(6_400)]
    );
    assert_eq!(it.reports_until(began + Span::from_millis(2_900)).len(), 2, "and it is counted anew");
}

#[test]
fn receiver_with_begin_at_start_requests_all_earlier_packets() {
    let mut it = Hearer::new(&Config { begin: Begin::AtStart, ..Config::published() });
    assert_eq!(
        it.data(3, NEW),
        [Reported::Ack(0), Reported::Lost(0, 3)],
        "that it came late is no congestion"
    );
}

#[test]
fn excluded_receiver_leaves_and_ignores_later_packets() {
    let mut it = Hearer::new(&Config::published());
    it.data(0, NEW);
    it.mark = Mark::Floor { least: 0.0, rtt_max: 0.0, every: 0.0, excluded: ShortId::of(receiver_id(8)) };
    assert_eq!(it.data(1, NEW), [Reported::Ack(2)]);
    it.mark = Mark::Floor { least: 0.0, rtt_max: 0.0, every: 0.0, excluded: ShortId::of(receiver_id(7)) };
    assert_eq!(it.data(2, NEW), [Reported::Gone]);
    assert_eq!(it.data(5, NEW), []);
    assert_eq!(stated(it.call(|receiver, cx| receiver.on_leave(cx))), [Reported::Farewell]);
}

#[test]
fn suppression_limits_indications_of_a_loss_to_few_receivers() {
    let config = Config::transport(1057);
    let mark = Mark::Floor { least: 16_000.0, rtt_max: 0.1, every: 2.0, excluded: None };
    let mut reported = 0;
    for number in 0..200u64 {
        let mut it = Hearer::new(&config);
        (it.mark, it.rng) = (mark, Rng::new(7, number));
        assert_eq!(it.data(0, NEW), []);
        assert_eq!(it.data(2, NEW), []);
        // One receiver reports the loss, and the source slows down some time later.
        let mut all = it.reports_until(it.now + Span::from_millis(150));
        all.extend(it.data_at(3, NEW, 6_400.0));
        all.extend(it.reports_until(it.now + Span::from_secs(1)));
        assert!(!all.iter().any(|stated| matches!(stated, Reported::Lost(..))), "{all:?}");
        assert!(all.iter().all(|stated| !matches!(stated, Reported::Ack(acked) if *acked < 3)), "{all:?}");
        reported += all.iter().filter(|stated| matches!(stated, Reported::Ci(6_400))).count();
    }
    assert!((1..60).contains(&reported), "{reported} of 200");
}

#[test]
fn receiver_behind_router_acknowledges_or_requests_each_packet() {
    let mut it = Hearer::new(&Config::transport(1057));
    assert_eq!(it.data(0, NEW), [Reported::Ack(1)]);
    assert_eq!(it.data(2, NEW), [Reported::Ack(1), Reported::Lost(1, 1), Reported::Ci(6_400)]);
    let stated = it.reports_until(it.now + Span::from_secs(5));
    assert_eq!(
        stated,
        [Reported::Lost(1, 1), Reported::Lost(1, 1)],
        "and given up: delivery repairs it otherwise"
    );
    assert_eq!(it.data(3, NEW), [Reported::Ack(4)]);
}

#[test]
fn session_without_routers_uses_70_percent_of_its_bottleneck() {
    let path = Path { rate: Rate::from_mbps(1.0), rtt: RTT, buffer: 20_000 };
    let mut star = Star::new(&Scheme::Rmanp(Config::transport(1057)), 1057, &[path, path, path], 1);
    star.run_until(at(30.0));
    let bytes = star.leaves[0].bytes;
    star.run_until(at(90.0));
    let used = (star.leaves[0].bytes - bytes) as f64 * 8.0 / 60.0 / 1e6;
    assert!((0.7..1.01).contains(&used), "{used}");
}
