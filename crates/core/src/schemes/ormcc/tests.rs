//! Tests of ORMCC's rules one by one, and of ORMCC's behaviour at drop-tail bottlenecks.

use super::*;
use crate::node::{Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, ReportContent, Seq};
use crate::rate::Start;
use crate::rng::Rng;
use crate::schemes::bench::{self, Bench, Ear, Path, Star, receiver_id};
use crate::schemes::{AnyReceiver, ReceiverPart, Scheme};
use crate::time::{Rate, Span, Time};

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

/// A receiver that the test calls directly.
type Hand = Ear<Receiver>;

impl Hand {
    fn new() -> Hand {
        let mut hand = Ear::by_hand(Receiver::new(receiver_id(7), &Config::published()), at(5.0));
        hand.mark = nobody();
        hand.packets(300);
        hand
    }

    /// Delivers one packet, 8 ms after the previous one. It reveals that `lost` packets were lost.
    fn packet(&mut self, lost: u32) -> Vec<ReportContent> {
        self.now += Span::from_millis(8);
        self.seq += 1 + u64::from(lost);
        self.receive(&data(self.seq, self.mark), Arrival { lost, ..PLAIN })
    }

    fn packets(&mut self, count: usize) {
        (0..count).for_each(|_| assert_eq!(self.packet(0), []));
    }
}

const PLAIN: Arrival = Arrival { size: 1000, lost: 0, excused: 0, marked: false, late: false };

fn data(seq: u64, mark: Mark) -> Data {
    Data { rate: 1e6, ..bench::data(seq, Time::ZERO, mark) }
}

fn nobody() -> Mark {
    Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.1 }
}

fn followed(id: u64, mean: f32, deviation: f32) -> Mark {
    Mark::Representative { id: ReceiverId::new(id), mean, deviation, rtt_max: 0.1 }
}

#[test]
fn burst_of_losses_causes_one_report() {
    let mut hand = Hand::new();
    hand.mark = followed(7, 2e6, 0.0);
    for lost in [1, 2, 50] {
        let reports = hand.packet(lost);
        let [ReportContent::Congested { echo, level, cause: Cause::Loss, .. }] = reports[..] else {
            panic!("one report, not {reports:?}")
        };
        assert_eq!(echo, Echo { seq: Seq(hand.seq), hold: Span::ZERO });
        assert!((0.98e6..1.01e6).contains(&level), "{level}");
    }
}

#[test]
fn the_representative_reports_and_faster_receivers_do_not() {
    let mut hand = Hand::new();
    hand.mark = followed(7, 0.1e6, 0.0);
    assert_eq!(hand.packet(1).len(), 1, "even if its mean is the higher one");
    hand.mark = followed(8, 1.2e6, 0.3e6);
    assert_eq!(hand.packet(1), []);
    assert_eq!(hand.receiver.deadline(), Time::NEVER);
    assert_eq!(hand.receiver.counts(), Counts { sent: 1, suppressed: 1 });
    hand.mark = followed(8, 1.2e6, 0.1e6);
    hand.packet(1);
    let waits = hand.receiver.deadline().since(hand.now);
    assert!(
        waits > Span::ZERO && waits <= Span::from_millis(200),
        "slower than mean less deviation: {waits}"
    );
}

#[test]
fn header_with_slower_representative_cancels_pending_reports() {
    let mut hand = Hand::new();
    assert_eq!(hand.packet(1), []);
    assert!(!hand.receiver.deadline().is_never());
    hand.mark = followed(8, 0.5e6, 0.0);
    hand.packet(0);
    assert!(hand.receiver.deadline().is_never());
    assert_eq!(hand.receiver.counts(), Counts { sent: 0, suppressed: 1 });
}

#[test]
fn header_of_an_older_packet_is_ignored() {
    let mut hand = Hand::new();
    hand.mark = followed(7, 1e6, 0.0);
    hand.packet(0);
    let old = data(hand.seq - 5, followed(8, 1e6, 0.0));
    hand.receive(&old, Arrival { late: true, ..PLAIN });
    assert!(hand.receiver.is_representative());
}

#[test]
fn delayed_report_states_its_delay() {
    let mut hand = Hand::new();
    hand.packet(1);
    let event = hand.now;
    let reports = hand.wait();
    let [ReportContent::Congested { echo, .. }] = reports[..] else { panic!("{reports:?}") };
    assert_eq!(echo.hold, hand.now.since(event));
}

#[test]
fn representative_reports_that_it_leaves() {
    let mut hand = Hand::new();
    hand.mark = followed(7, 1e6, 0.0);
    hand.packet(0);
    let leaving = hand.leave();
    assert!(matches!(leaving[..], [ReportContent::Congested { cause: Cause::Leaving, .. }]));
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1000)
    }

    /// Delivers a report of throughput `level` from a receiver with the round-trip time `rtt`.
    fn congested(&mut self, from: u64, level: f64, rtt: Span) {
        let content = |seq| {
            let echo = Echo { seq, hold: Span::ZERO };
            ReportContent::Congested { echo, level: level as f32, mean: level as f32, cause: Cause::Loss }
        };
        let fresh = self.sent.partition_point(|sent| self.now.since(sent.at) >= rtt).saturating_sub(1);
        self.report(from, content(Seq(fresh as u64)));
    }

    fn named(&mut self) -> Option<u64> {
        self.run_for(Span::from_millis(100));
        let mark = self.newest(0).expect("it sends").stamp.mark;
        let Mark::Representative { id, .. } = mark else { panic!("every packet says who is followed") };
        id.map(ReceiverId::get)
    }
}

const RTT: Span = Span::from_millis(100);

#[test]
fn rate_grows_by_a_packet_per_rtt_except_within_an_rtt_of_a_cut() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    assert_eq!(sender.rate(), 80_000.0 * 21.0, "one packet per RTT at first, then 20 ticks of 8 s / RTT");
    sender.run_until(at(2.04));
    sender.congested(1, 1e6, RTT);
    assert_eq!(sender.rate(), 0.75e6);
    sender.run_until(sender.now + RTT);
    assert_eq!(sender.rate(), 0.75e6, "the tick within a round trip of the cut does nothing");
}

#[test]
fn rate_is_cut_below_the_level_at_most_once_per_round_trip() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.04));
    sender.congested(1, 1e6, RTT);
    sender.run_until(sender.now + Span::from_millis(90));
    sender.congested(1, 0.2e6, RTT);
    assert_eq!(sender.rate(), 0.75e6);
    sender.run_until(sender.now + Span::from_millis(30));
    let before = sender.rate();
    sender.congested(1, 50e6, RTT);
    assert_eq!(sender.rate(), before, "a level above the rate does not raise it");
    assert_eq!(sender.source.observe().cuts, 2);
}

#[test]
fn silent_representative_is_replaced_by_a_distant_receiver() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.04));
    sender.congested(1, 1e6, RTT);
    assert_eq!(sender.named(), Some(1));
    // After about 1.6 s the rate reaches 1 Mbit/s + 4 * 0.25 Mbit/s, and the bottleneck counts as full. Then the timeout of 2 s
    // begins.
    sender.run_until(at(5.2));
    assert_eq!(sender.named(), Some(1));
    sender.run_until(at(6.2));
    assert_eq!(sender.named(), None);
    sender.congested(2, 2.9e6, Span::from_millis(120));
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(2)));
    sender.congested(3, 2.9e6, Span::from_millis(60));
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(2)), "nearer");
    sender.congested(4, 2.9e6, Span::from_millis(190));
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(4)), "farther, within the grace period");
}

#[test]
fn report_timeout_adapts_to_a_constant_response_time() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.04));
    sender.congested(1, 1e6, RTT);
    for _ in 0..60 {
        while sender.source.check_since().is_none() {
            sender.run_until(sender.now + Span::from_millis(1));
        }
        sender.run_until(sender.now + Span::from_millis(700));
        sender.congested(1, 1e6, RTT);
    }
    let patience = sender.source.patience_now().as_secs_f64();
    assert!((0.7..0.72).contains(&patience), "{patience}");
}

#[test]
fn only_a_slower_receiver_replaces_the_representative() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.04));
    sender.congested(1, 1e6, RTT);
    sender.run_until(at(3.0));
    sender.congested(2, 0.76e6, RTT);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(1)));
    sender.congested(2, 0.74e6, RTT);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(2)));
    assert_eq!(
        sender.source.observe().level,
        Some(mbps(0.74)).map(|r| Rate::from_bps(f64::from(r.bps() as f32)))
    );
}

#[test]
fn departed_representative_is_no_longer_followed() {
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    let leaving = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
    for way in [0, 1] {
        let mut sender = Sender::new(Config::published());
        sender.run_until(at(2.04));
        sender.congested(1, 1e6, RTT);
        match way {
            0 => sender.report(1, leaving),
            _ => sender.source.control(SourceControl::Forget(receiver_id(1)), sender.now),
        }
        assert_eq!(sender.named(), None);
    }
}

#[test]
fn absurd_and_repeated_reports_are_dropped() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    let before = sender.rate();
    for level in [f32::NAN, f32::INFINITY, 0.0, -1.0] {
        let echo = Echo { seq: Seq(5), hold: Span::ZERO };
        sender.report(1, ReportContent::Congested { echo, level, mean: level, cause: Cause::Loss });
    }
    let future = Echo { seq: Seq(1_000_000), hold: Span::ZERO };
    sender.report(1, ReportContent::Congested { echo: future, level: 1e5, mean: 1e5, cause: Cause::Loss });
    assert_eq!((sender.rate(), sender.source.observe().limiting), (before, None));
}

#[test]
fn rate_for_a_silent_group_falls_until_a_report_arrives() {
    let mut config = Config::transport(1000);
    config.sending.start = Start::Linear;
    let mut sender = Sender::new(config);
    sender.run_until(at(0.9));
    let peak = sender.rate();
    sender.run_until(at(2.5));
    assert!(sender.rate() < peak / 4.0, "{}", sender.rate());
    sender.run_until(at(30.0));
    assert_eq!(sender.rate(), 32_000.0, "a packet in 250 ms");
    sender.source.control(SourceControl::SignOfLife, at(30.0));
    sender.run_until(at(30.5));
    assert!(sender.rate() > 80_000.0, "{}", sender.rate());
}

#[test]
fn alive_reports_of_old_packets_do_not_stop_the_rate_decrease() {
    let mut config = Config::transport(1000);
    config.sending.start = Start::Linear;
    let mut sender = Sender::new(config);
    sender.run_until(at(0.9));
    let newest = *sender.newest(0).expect("it sends");
    let (peak, newest, left) = (sender.rate(), newest.stamp.seq, newest.at + Span::from_millis(50));
    for tenth in 10..40 {
        sender.run_until(at(f64::from(tenth) / 10.0));
        sender.report(1, ReportContent::Alive { echo: Echo { seq: newest, hold: sender.now.since(left) } });
    }
    assert!(sender.rate() < peak / 16.0, "{}", sender.rate());
}

#[test]
fn slow_start_is_repeated_after_slow_members_leave() {
    let mut sender = Sender::new(Config::transport(1000));
    sender.run_until(at(0.8));
    sender.congested(1, 1e6, Span::from_millis(300));
    assert_eq!(sender.source.observe().limiting, ReceiverId::new(1));
    assert!(!sender.source.observe().starting);
    sender.source.control(SourceControl::StartAgain, sender.now);
    let seen = sender.source.observe();
    assert_eq!((seen.limiting, seen.level, seen.starting), (None, None, true));
    assert!(seen.rtt < Span::from_millis(10), "the slow receiver's round trip is forgotten: {}", seen.rtt);
}

#[test]
fn unused_rate_does_not_grow() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    let before = sender.source.observe().rate;
    for tick in 1..2000u64 {
        sender.now = at(2.0) + Span::from_millis(tick * 10);
        sender.call(|source, cx| source.on_deadline(cx));
        if tick % 4 == 0 {
            sender.depart(Layer(0));
        }
    }
    let after = sender.source.observe().rate.bps();
    assert!(after <= before.bps() + 2.0 * 80_000.0, "{after}");
}

#[test]
fn idle_source_slows_down_and_then_sets_no_deadline() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(3.0));
    assert!(sender.rate() > 2e6);
    let mut calls = 0;
    while !sender.source.deadline().is_never() {
        sender.now = sender.source.deadline();
        sender.call(|source, cx| source.on_deadline(cx));
        calls += 1;
        assert!(calls < 100, "still awake at {}", sender.now);
    }
    assert_eq!(sender.rate(), 80_000.0);
}

fn path(rate: f64, rtt_millis: u64, buffer: u64) -> Path {
    Path { rate: mbps(rate), rtt: Span::from_millis(rtt_millis), buffer }
}

fn ormcc_receiver(receiver: &AnyReceiver) -> &Receiver {
    let ReceiverPart::Ormcc(receiver) = &receiver.part else { panic!("another scheme") };
    receiver
}

fn goodput(report_loss: f64, seed: u64) -> f64 {
    let scheme = Scheme::Ormcc(Config::published());
    let mut star = Star::new(&scheme, 1000, &[path(1.0, 50, 50_000); 4], seed);
    star.report_loss = report_loss;
    star.run_until(at(200.0));
    star.leaves.iter().map(|leaf| leaf.bytes).sum::<u64>() as f64
}

#[test]
fn ten_percent_report_loss_hardly_changes_goodput() {
    let mean = |loss: f64| (1..=4).map(|seed| goodput(loss, seed)).sum::<f64>();
    let ratio = mean(0.1) / mean(0.0);
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}

/// No competing flows. In the paper's star, which has competing flows, 64 receivers send twice as many reports as one receiver; a
/// test of that star needs the simulator.
#[test]
fn sixty_four_receivers_send_few_more_reports_than_one() {
    let scheme = Scheme::Ormcc(Config::published());
    let mut star = Star::new(&scheme, 1000, &[path(1.0, 50, 50_000); 64], 5);
    star.run_until(at(200.0));
    let counts = star.leaves.iter().map(|leaf| ormcc_receiver(&leaf.receiver).counts());
    let (sent, held) = counts.fold((0, 0), |sum, c| (sum.0 + c.sent, sum.1 + c.suppressed));
    let of_one = (sent + held) / 64;
    assert!(sent < 3 * of_one, "{sent} reports of 64 receivers, {of_one} of each without suppression");
    assert!(held * 20 > 19 * (sent + held), "{held} of {} suppressed", sent + held);
}

#[test]
fn source_stores_no_state_per_receiver() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    let before = size_of_val(&sender.source);
    (1..10_000).for_each(|id| sender.congested(id, 1e6 + id as f64, RTT));
    assert_eq!(size_of_val(&sender.source), before, "and the type owns no collection but the send history");
    assert!(size_of::<Source>() <= 1280);
}

fn transport() -> Scheme {
    Scheme::Ormcc(Config::transport(1400))
}

/// Delivers a packet every `gap_us` microseconds; the packets state the rate `rate`. The last packet ends the round.
fn start_up_round(hand: &mut Hand, packets: u64, gap_us: u64, rate: f32) {
    for packet in 1..=packets {
        hand.now += Span::from_micros(gap_us);
        hand.seq += 1;
        let end = if packet == packets { Flags::ROUND_END } else { Flags::default() };
        let data = Data { rate, flags: Flags::STARTING.with(end), ..data(hand.seq, nobody()) };
        hand.receive(&data, PLAIN);
    }
}

#[test]
fn receiver_reports_the_rate_at_which_a_round_arrived() {
    for packets in [4, 5, 40] {
        let mut hand = Hand::new();
        start_up_round(&mut hand, packets, 2000, 4e6);
        let reports = hand.wait();
        let [ReportContent::Received { echo, rate, loss }] = reports[..] else {
            panic!("one answer, not {reports:?}")
        };
        assert_eq!((echo.seq, loss), (Seq(hand.seq), 0.0));
        assert!((rate - 4e6).abs() < 1e3, "{rate}");
    }
}

#[test]
fn receiver_sends_no_report_for_a_round_of_three_packets() {
    let mut hand = Hand::new();
    start_up_round(&mut hand, 3, 2000, 4e6);
    assert!(hand.receiver.deadline().is_never());
}

#[test]
fn doubled_rate_cancels_pending_reports_of_fast_receivers() {
    // The packets of the round are sent at 4 Mbit/s; afterwards the source sends at 8 Mbit/s.
    for (gap_us, answers) in [(2000, false), (10_000, true)] {
        let mut hand = Hand::new();
        start_up_round(&mut hand, 10, gap_us, 4e6);
        assert!(!hand.receiver.deadline().is_never());
        hand.seq += 1;
        let next = Data { rate: 8e6, flags: Flags::STARTING, ..data(hand.seq, nobody()) };
        hand.receive(&next, PLAIN);
        assert_eq!(!hand.receiver.deadline().is_never(), answers, "a packet each {gap_us} us");
    }
}

#[test]
fn slow_start_rate_is_at_most_twice_that_of_the_slowest_path() {
    let mut paths = [path(100.0, 20, 250_000); 20];
    paths[13] = path(5.0, 40, 50_000);
    let mut star = Star::new(&transport(), 1400, &paths, 2);
    star.run_until(at(10.0));
    let overload = star.peak(500).bps() / 5e6;
    assert!(overload <= 2.0, "{overload} times the slowest path");
    assert_eq!(star.source.observe().limiting, Some(receiver_id(14)));
}

#[test]
fn source_rate_does_not_grow_without_receivers() {
    let mut star = Star::new(&transport(), 1400, &[], 1);
    let first = star.source.observe().rate;
    star.run_until(at(20.0));
    assert!(star.peak(500).bps() <= first.bps() * 1.1);
    assert!(star.source.observe().rate.bps() < first.bps() / 8.0);
}

/// Returns the number of receivers that report when all of them have lost the same packet. The stream sends a packet every 55 ms;
/// each path takes a millisecond. After the first report has arrived, the packets state its sender as the representative.
fn who_report_the_same_loss(config: &Config, receivers: u64) -> usize {
    const EVERY: Span = Span::from_millis(55);
    let mark = |id, mean| Mark::Representative { id, mean, deviation: 0.0, rtt_max: 0.001 };
    let ear = |id| Ear::by_hand(Receiver::new(receiver_id(id), config), at(5.0));
    let mut all: Vec<_> = (1..=receivers).map(ear).collect();
    let (mut rng, mut received) = (Rng::new(3, 3), Vec::new());
    for number in 0..60u64 {
        let now = at(5.0) + EVERY * number;
        let mark = match received.first() {
            Some((_, from, ReportContent::Congested { mean, .. })) => mark(Some(receiver_id(*from)), *mean),
            _ => mark(None, f32::INFINITY),
        };
        // Packet 40 is lost.
        if number == 40 {
            continue;
        }
        let arrival = Arrival { lost: u32::from(number == 41), ..PLAIN };
        for (from, ear) in (1..).zip(&mut all) {
            (ear.now, ear.rng) = (now, Rng::new(3, rng.bits()));
            let mut reports = ear.receive(&data(number, mark), arrival);
            loop {
                received.extend(reports.into_iter().map(|report| (ear.now, from, report)));
                if ear.receiver.deadline() >= now + EVERY {
                    break;
                }
                reports = ear.wait();
            }
        }
        received.sort_by_key(|(moment, ..)| *moment);
    }
    received.len()
}

#[test]
fn few_receivers_of_a_large_group_report_a_shared_loss() {
    let shipped = Config::transport(1000);
    for receivers in [1, 100, 3_000] {
        let few = who_report_the_same_loss(&shipped, receivers);
        assert!((1..=40).contains(&few), "{few} of {receivers}");
    }
    let as_the_seed = Config { spread_packets: None, ..shipped };
    assert_eq!(
        who_report_the_same_loss(&as_the_seed, 3_000),
        3_000,
        "nothing comes in time to suppress them"
    );
}
