//! Tests of each of MCA's filters, and of MCA's behaviour at bottlenecks.

use super::bin::{Bin, Verdict};
use super::*;
use crate::node::{Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Data, Echo, Mark, ReportContent, Seq, Signal};
use crate::rng::Rng;
use crate::schemes::Scheme;
use crate::schemes::bench::{self, Bench, Ear, Path, Sent, Star, receiver_id};
use crate::time::{Rate, Span, Time};

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

const RTT: Span = Span::from_millis(100);

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1000)
    }

    fn bin() -> Sender {
        Sender::new(Config { mode: Mode::Bin, ..Config::published() })
    }

    fn er() -> Sender {
        Sender::new(Config::published())
    }

    fn controls(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.sent.iter().filter(|sent| sent.stamp.signal == Signal::Control)
    }

    /// Delivers a report of the egress rate `egress`. It answers a packet that was sent about a round-trip time ago.
    fn congested(&mut self, from: u64, egress: Rate) {
        let rtt = Span::from_millis(99);
        let answered = self.controls().rev().find(|sent| self.now.since(sent.at) >= rtt);
        let echo = self.echo_of(answered.expect("a control packet every 50 ms"), RTT);
        let level = egress.bps() as f32;
        self.report(from, ReportContent::Congested { echo, level, mean: level, cause: Cause::Accumulation });
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1.0
}

#[test]
fn control_packet_is_sent_in_every_interval() {
    let mut sender = Sender::er();
    sender.run_until(at(10.0));
    let controls = sender.controls().count();
    assert!((195..=201).contains(&controls), "{controls} in ten seconds");
}

#[test]
fn rate_grows_by_a_packet_per_rtt_except_within_an_rtt_of_a_cut() {
    let mut sender = Sender::er();
    sender.run_until(at(2.04));
    assert!(near(sender.rate(), 80_000.0 * 21.0), "20 ticks of 8 s / RTT: {}", sender.rate());
    sender.congested(1, mbps(1.0));
    assert!(near(sender.rate(), 0.9e6));
    sender.run_for(Span::from_millis(95));
    assert!(near(sender.rate(), 0.9e6), "the tick within a round trip of the cut does nothing");
    sender.run_for(Span::from_millis(160));
    assert!(sender.rate() > 0.9e6 + 79_000.0, "{}", sender.rate());
}

/// The probability "P_d" is below one.
#[test]
fn binary_cut_subtracts_the_increment_and_then_a_tenth() {
    let mut sender = Sender::bin();
    sender.run_until(at(2.04));
    let before = sender.rate();
    sender.congested(1, mbps(5.0));
    assert!(near(sender.rate(), 0.9 * (before - 80_000.0)), "{} from {before}", sender.rate());
}

const WINDOW: Span = Span::from_millis(100);

fn on_report(bin: &mut Bin, from: u64, rate: f64, secs: f64, rng: &mut Rng) -> Verdict {
    bin.on_report(receiver_id(from), mbps(rate), WINDOW, at(secs), rng)
}

/// The accounting of events that should have passed.
#[test]
fn late_cut_starts_from_the_rate_at_its_due_time() {
    let (mut bin, mut rng) = (Bin::new(Rate::from_bps(80_000.0)), Rng::new(1, 1));
    let beta = 0.9;
    // P_d is 1 after the first event, so the cut is due at 1 Mbit/s. The actual cut is made at 1.2 Mbit/s.
    on_report(&mut bin, 1, 1.0, 1.0, &mut rng);
    let lowered = bin.lowered(mbps(1.2), beta, Excess::Twice);
    assert!(near(lowered.bps(), beta * (1.0e6 - 80_000.0) - 0.2e6), "{lowered}");
    // P_d restarts from zero. Two receivers with one event each have a share of one half.
    let mut bin = Bin::new(Rate::from_bps(80_000.0));
    on_report(&mut bin, 1, 1.0, 1.0, &mut rng);
    bin.lowered(mbps(1.0), beta, Excess::Twice);
    on_report(&mut bin, 2, 1.0, 2.0, &mut rng);
    let lowered = bin.lowered(mbps(1.2), beta, Excess::Twice);
    assert!(near(lowered.bps(), beta * (1.2e6 - 80_000.0)), "half an event is not due: {lowered}");
    // The sum of the shares, one half plus two thirds, exceeds one: the cut was due at the rate of the second report.
    let mut bin = Bin::new(Rate::from_bps(80_000.0));
    on_report(&mut bin, 1, 1.0, 1.0, &mut rng);
    bin.lowered(mbps(1.0), beta, Excess::Twice);
    on_report(&mut bin, 2, 0.8, 2.0, &mut rng);
    on_report(&mut bin, 2, 0.9, 3.0, &mut rng);
    let lowered = bin.lowered(mbps(1.0), beta, Excess::Twice);
    assert!(near(lowered.bps(), beta * (0.9e6 - 80_000.0) - 0.1e6), "{lowered}");
    // P_d exceeded one when the rate was higher than it is now.
    on_report(&mut bin, 2, 2.0, 4.0, &mut rng);
    on_report(&mut bin, 2, 2.0, 5.0, &mut rng);
    let lowered = bin.lowered(mbps(1.0), beta, Excess::Twice);
    assert!(near(lowered.bps(), beta * (1.0e6 - 80_000.0)), "{lowered}");
}

#[test]
fn late_cut_equals_a_timely_cut_if_the_excess_counts_once() {
    let mut rng = Rng::new(1, 1);
    let mut cut_at = |rate| {
        let mut bin = Bin::new(Rate::from_bps(80_000.0));
        on_report(&mut bin, 1, 1.0, 1.0, &mut rng);
        bin.lowered(mbps(rate), 0.9, Excess::Once).bps()
    };
    assert!(near(cut_at(1.0), 0.9 * (1.0e6 - 80_000.0)));
    assert!(near(cut_at(1.2), cut_at(1.0)));
    let mut bin = Bin::new(Rate::from_bps(80_000.0));
    let lowered = bin.lowered(mbps(1.2), 0.9, Excess::Once).bps();
    assert!(near(lowered, 0.9 * (1.2e6 - 80_000.0)), "nothing was due: {lowered}");
}

#[test]
fn reports_of_one_receiver_within_a_round_trip_are_one_event() {
    let (mut bin, mut rng) = (Bin::new(mbps(0.08)), Rng::new(1, 1));
    assert_eq!(on_report(&mut bin, 1, 1.0, 1.0, &mut rng), Verdict::Passed);
    assert_eq!(on_report(&mut bin, 1, 1.0, 1.1, &mut rng), Verdict::Known);
    assert_ne!(on_report(&mut bin, 2, 1.0, 1.1, &mut rng), Verdict::Known, "another receiver's");
    assert_ne!(on_report(&mut bin, 1, 1.0, 1.101, &mut rng), Verdict::Known);
}

#[test]
fn filter_passes_as_many_events_as_the_worst_receiver_has() {
    let (mut bin, mut rng) = (Bin::new(mbps(0.08)), Rng::new(1, 1));
    let (mut passed, mut worst) = (0, 0);
    for turn in 0..40_000u32 {
        let from = if turn % 4 == 0 { 1 } else { 2 + u64::from(turn) % 30 };
        worst += u32::from(from == 1);
        passed +=
            u32::from(on_report(&mut bin, from, 1.0, 1.0 + f64::from(turn), &mut rng) == Verdict::Passed);
    }
    assert!((passed as f64 / worst as f64 - 1.0).abs() < 0.03, "{passed} of {worst}");
    assert_eq!(bin.leader(), Some(receiver_id(1)));
}

#[test]
fn events_decay_and_departed_receivers_are_forgotten() {
    let (mut bin, mut rng) = (Bin::new(mbps(0.08)), Rng::new(1, 1));
    for event in 0..10 {
        on_report(&mut bin, 1, 1.0, f64::from(event), &mut rng);
    }
    on_report(&mut bin, 2, 1.0, 10.0, &mut rng);
    assert_eq!(bin.leader(), Some(receiver_id(1)));
    bin.forget(receiver_id(1));
    assert_eq!(bin.leader(), Some(receiver_id(2)));
    for round in 0..60 {
        bin.decay(WINDOW, at(20.0 + 10.1 * f64::from(round)));
    }
    assert_eq!(bin.leader(), None, "0.9^59 events are none");
}

#[test]
fn the_last_filter_passes_one_event_per_round_trip() {
    let mut sender = Sender::bin();
    sender.run_until(at(5.0));
    let mut cuts = vec![];
    for step in 0..1000 {
        sender.congested(1 + step % 30, mbps(9.0));
        let seen = sender.source.observe();
        if seen.cuts > cuts.len() as u64 {
            cuts.push(sender.now);
        }
        sender.run_for(Span::from_millis(10));
    }
    let nearest = cuts.windows(2).map(|pair| pair[1].since(pair[0])).min().expect("several");
    assert!(nearest >= Span::from_millis(100) && nearest < Span::from_millis(200), "{nearest}");
    let tally = sender.source.observe().tally;
    assert!(tally.followed > cuts.len() as u64, "{tally:?} for {} cuts", cuts.len());
}

/// Conditions 1 and 2.
#[test]
fn explicit_rate_filter_follows_the_first_reporting_receiver() {
    let mut sender = Sender::er();
    sender.run_until(at(3.0));
    sender.congested(1, mbps(1.0));
    assert!(near(sender.rate(), 0.9e6));
    assert_eq!(sender.limiting(), Some(1));
    sender.run_for(Span::from_millis(60));
    sender.congested(2, mbps(1.0));
    assert_eq!((sender.limiting(), sender.source.observe().tally.followed), (Some(1), 1), "an equal one");
    sender.run_for(Span::from_millis(60));
    let before = sender.rate();
    sender.congested(1, mbps(2.0));
    assert_eq!(sender.source.observe().tally.followed, 2);
    assert!(near(sender.rate(), before), "a higher rate than the present one changes nothing");
}

/// Condition 3.
#[test]
fn a_receiver_that_is_slower_by_three_deviations_is_followed() {
    for (egress, followed) in [(0.63, 1), (0.62, 2)] {
        let mut sender = Sender::er();
        sender.run_until(at(3.0));
        sender.congested(1, mbps(1.0));
        sender.run_for(Span::from_millis(60));
        sender.congested(1, mbps(2.0)); // mean 1.125 and deviation 0.125 Mbit/s
        sender.run_for(Span::from_millis(60));
        sender.congested(1, mbps(1.125)); // deviation 0.109 Mbit/s
        sender.run_for(Span::from_millis(60));
        let third = 1.125 - 3.0 * 0.125 * 0.875;
        sender.congested(2, mbps(third + if egress > 0.625 { 0.01 } else { -0.01 }));
        assert_eq!(sender.limiting(), Some(followed), "{egress}");
    }
}

/// Condition 4 has two parts; both are required.
#[test]
fn silent_receiver_is_replaced_only_after_the_rate_grew() {
    let mut sender = Sender::er();
    sender.run_until(at(3.0));
    sender.congested(1, mbps(1.0));
    sender.run_for(Span::from_millis(160));
    sender.congested(2, mbps(1.1));
    assert_eq!(sender.limiting(), Some(1), "silent, but the rate is below 1 Mbit/s and a packet");
    sender.run_for(Span::from_millis(300));
    assert!(sender.rate() > 1.08e6, "{}", sender.rate());
    sender.congested(2, mbps(1.1));
    assert_eq!(sender.limiting(), Some(2));
    assert!(near(sender.rate(), 0.99e6));
    let mut sender = Sender::er();
    sender.run_until(at(3.0));
    sender.congested(1, mbps(1.9));
    sender.run_for(Span::from_millis(95));
    sender
        .source
        .control(SourceControl::Limits(crate::rate::Bounds { min: mbps(2.5), max: mbps(9.0) }), sender.now);
    sender.congested(2, mbps(1.95));
    assert_eq!(sender.limiting(), Some(1), "the rate is high, but the first was heard lately");
}

#[test]
fn cut_gate_limits_explicit_rates_to_one_cut_per_round_trip() {
    for (gate, cuts) in [(Gate::Off, 2), (Gate::On, 1)] {
        let mut sender = Sender::new(Config { gate, ..Config::published() });
        sender.run_until(at(3.0));
        sender.congested(1, mbps(1.0));
        sender.run_for(Span::from_millis(60));
        sender.congested(1, mbps(0.9));
        assert_eq!(sender.source.observe().cuts, cuts);
    }
}

#[test]
fn departed_receiver_is_no_longer_followed() {
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    let leaving = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
    for mode in [Mode::Er, Mode::Bin] {
        for way in [0, 1, 2] {
            let mut sender = Sender::new(Config { mode, ..Config::published() });
            sender.run_until(at(3.0));
            sender.congested(1, mbps(1.0));
            assert_eq!(sender.limiting(), Some(1));
            match way {
                0 => sender.report(1, leaving),
                1 => sender.source.control(SourceControl::Forget(receiver_id(1)), sender.now),
                _ => sender.source.control(SourceControl::StartAgain, sender.now),
            }
            assert_eq!(sender.limiting(), None);
        }
    }
}

#[test]
fn absurd_and_repeated_reports_are_dropped() {
    let mut sender = Sender::er();
    sender.run_until(at(2.0));
    let before = sender.rate();
    for level in [f32::NAN, f32::INFINITY, 0.0, -1.0] {
        let echo = Echo { seq: Seq(5), hold: Span::ZERO };
        sender.report(1, ReportContent::Congested { echo, level, mean: level, cause: Cause::Accumulation });
    }
    assert_eq!((sender.rate(), sender.limiting()), (before, None));
    sender.congested(1, mbps(1.0));
    sender.congested(1, mbps(0.5));
    assert!(near(sender.rate(), 0.9e6), "the same control packet again");
}

/// Returns a received packet of 1000 bytes. Packets are 10 ms apart, and every fifth one is a control packet.
fn data(seq: u64) -> Data {
    let mark = Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.1 };
    let signal = if seq.is_multiple_of(5) { Signal::Control } else { Signal::None };
    let sent_at = Time::ZERO + Span::from_millis(seq * 10);
    Data { rate: 0.8e6, signal, ..bench::data(seq, sent_at, mark) }
}

type Hand = Ear<Receiver>;

impl Hand {
    fn new() -> Hand {
        Ear::by_hand(Receiver::new(receiver_id(7), &Config::published()), Time::ZERO)
    }

    /// Delivers packet `seq` with a delay of `millis` milliseconds, after `lost` lost packets; returns the report.
    fn packet(&mut self, seq: u64, millis: u64, lost: u32) -> Option<ReportContent> {
        self.arrive(&data(seq), millis, lost)
    }

    fn arrive(&mut self, data: &Data, millis: u64, lost: u32) -> Option<ReportContent> {
        self.now = data.sent_at + Span::from_millis(millis);
        let reports = self.receive(data, Arrival { size: 1000, lost, ..Arrival::default() });
        assert!(reports.len() <= 1, "at most one report each: {reports:?}");
        reports.first().copied()
    }
}

#[test]
fn a_loss_is_reported_once_with_the_first_lost_packet() {
    let mut hand = Hand::new();
    (0..100).for_each(|seq| assert_eq!(hand.packet(seq, 20, 0), None));
    let Some(ReportContent::Congested { echo, level, cause, .. }) = hand.packet(103, 20, 3) else {
        panic!("reported at once")
    };
    assert_eq!((echo, cause), (Echo { seq: Seq(100), hold: Span::ZERO }, Cause::Loss));
    assert!((0.55e6..0.75e6).contains(&level), "eight packets in eleven gaps: {level}");
    assert_eq!(hand.packet(104, 20, 0), None);
}

#[test]
fn each_congested_control_packet_reports_the_egress_rate() {
    let mut hand = Hand::new();
    (0..100).for_each(|seq| assert_eq!(hand.packet(seq, 20, 0), None));
    let mut reported = Vec::new();
    for seq in 100..131 {
        // From now on, the path carries only one packet per 12 ms.
        if let Some(ReportContent::Congested { echo, level, cause, .. }) =
            hand.packet(seq, 20 + 2 * (seq - 99), 0)
        {
            assert_eq!((echo.seq, cause), (Seq(seq), Cause::Accumulation));
            reported.push((seq, level));
        }
    }
    let control_packets: Vec<u64> = reported.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(control_packets, [110, 115, 120, 125, 130]);
    let egress = reported[2].1;
    assert!((egress - 8000.0 / 0.012).abs() < 1e3, "{egress}");
    assert_eq!(hand.receiver.sent(), 5);
}

#[test]
fn pause_restarts_the_measurement_of_the_egress_rate() {
    let mut hand = Hand::new();
    (0..100).for_each(|seq| assert_eq!(hand.packet(seq, 20, 0), None));
    // The next packet is sent three seconds later; the packet after it is lost.
    let pause = 3000;
    let late = |seq: u64| Data { sent_at: data(seq).sent_at + Span::from_millis(pause), ..data(seq) };
    assert_eq!(hand.arrive(&late(100), 20, 0), None);
    let Some(ReportContent::Congested { level, .. }) = hand.arrive(&late(102), 20, 1) else {
        panic!("reported at once")
    };
    assert_eq!(level, 0.8e6, "what the packet says it was sent at, not a packet in three seconds");
}

fn path(rate: f64, rtt_millis: u64, buffer: u64) -> Path {
    Path { rate: mbps(rate), rtt: Span::from_millis(rtt_millis), buffer }
}

/// The transport's preset fills paths of all kinds, and loses packets only in start-up.
#[test]
fn all_kinds_of_paths_are_used_without_loss_after_slow_start() {
    for name in ["mca,mode=er", "mca,mode=bin", "mca-plus"] {
        for path in [
            path(1.0, 20, 50_000),
            path(10.0, 20, 50_000),
            path(10.0, 100, 125_000),
            path(100.0, 1, 100_000),
            path(100.0, 20, 250_000),
            path(1000.0, 1, 1_000_000),
        ] {
            let scheme: Scheme = name.parse().expect("a scheme");
            let mut star = Star::new(&scheme, 1400, &[path], 1);
            star.run_until(at(10.0));
            assert!(star.peak(500).bps() < 1.75 * path.rate.bps(), "{name} {path:?}: {}", star.peak(500));
            let (sent, got) = (star.bytes_sent(), star.leaves[0].bytes);
            star.run_until(at(25.0));
            let used = (star.leaves[0].bytes - got) as f64 * 8.0 / 15.0 / path.rate.bps();
            let lost = (star.bytes_sent() - sent).saturating_sub(star.leaves[0].bytes - got);
            assert!(used > 0.85, "{name} {path:?}: {used}");
            assert!(lost <= path.buffer, "{name} {path:?}: {lost} bytes neither arrived nor queued");
        }
    }
}
