//! Tests of LE-SBCC's rules one by one, and of LE-SBCC's behaviour at drop-tail bottlenecks.

use super::*;
use crate::node::{Departure, Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, ReportContent, Seq};
use crate::rate::{Averaging, Bounds, PolicyChoice, Start};
use crate::rng::Rng;
use crate::schemes::Scheme;
use crate::schemes::bench::{self, Bench, Ear, Path, Star, receiver_id};
use crate::time::{Rate, Span, Time};

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

fn data(seq: u64, flags: Flags) -> Data {
    Data { rate: 1e6, flags, ..bench::data(seq, Time::ZERO, Mark::None) }
}

type Sender = Bench<Source>;

const RTT: Span = Span::from_millis(100);

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1000)
    }

    /// Returns a source whose rate has grown for two seconds with a constant round-trip time.
    fn settled(config: Config) -> Sender {
        let mut sender = Sender::new(config);
        sender.run_until(at(2.0));
        (0..150).for_each(|_| sender.alive(1, RTT));
        sender
    }

    fn alive(&mut self, from: u64, rtt: Span) {
        let echo = self.echo(rtt);
        self.report(from, ReportContent::Alive { echo });
    }

    /// Delivers a negative acknowledgement for `count` packets.
    fn lost(&mut self, from: u64, count: u16, rtt: Span) {
        let echo = self.echo(rtt);
        let first = Seq(echo.seq.0.saturating_sub(u64::from(count)));
        self.report(from, ReportContent::Lost { echo, first, count, loss: 0.0 });
    }
}

#[test]
fn the_rate_grows_by_a_packet_per_interval_outside_epochs() {
    let mut sender = Sender::settled(Config::published());
    let round_trip = *sender.source.round_trip();
    let interval = round_trip.window();
    let step = Rate::of(1000, interval).bps();
    sender.run_for(interval);
    let before = sender.rate();
    sender.run_for(interval * 10);
    assert!((sender.rate() - before - 10.0 * step).abs() < 1e-3);
    sender.lost(1, 1, RTT);
    let halved = sender.rate();
    assert!((halved / (before + 10.0 * step) - 0.5).abs() < 1e-9);
    let reduced_at = sender.now;
    let epoch = sender.source.round_trip().timeout() + sender.source.round_trip().silence();
    sender.run_until(reduced_at + epoch - Span::from_nanos(1));
    assert_eq!(sender.rate(), halved, "in the epoch");
    sender.run_until(reduced_at + epoch + interval);
    assert!((sender.rate() - halved - step).abs() < 0.01 * step, "the timer keeps its pace");
}

#[test]
fn nothing_is_sent_for_half_a_round_trip_after_a_reduction() {
    let mut sender = Sender::settled(Config::published());
    sender.lost(1, 1, RTT);
    let (reduced_at, silence) = (sender.now, sender.source.round_trip().silence());
    assert!((Span::from_millis(50)..Span::from_millis(55)).contains(&silence), "{silence}");
    sender.sent.clear();
    sender.run_for(Span::from_secs(1));
    assert_eq!(sender.sent[0].at, reduced_at + silence, "then at once");
    let gap = sender.sent[1].at.since(sender.sent[0].at);
    assert!(gap > Span::from_millis(1), "and with no credit for the silence: {gap}");
}

#[test]
fn reductions_without_the_last_filter_cause_no_silence() {
    let mut sender = Sender::settled(Config { atf: Part::Off, ..Config::published() });
    let before = sender.rate();
    sender.lost(1, 1, RTT);
    let Departure::At(next) = sender.source.departure(Layer(0)) else { panic!("a rate has no window") };
    assert!(next.since(sender.now) < sender.source.round_trip().silence());
    sender.run_for(sender.source.round_trip().window() + Span::from_millis(1));
    sender.lost(1, 1, RTT);
    assert_eq!(sender.source.observe().cuts, 2);
    assert!(sender.rate() < before / 3.0);
}

#[test]
fn the_first_loss_of_a_slow_start_halves_the_rate() {
    let mut sender = Sender::new(Config::transport(1000));
    sender.run_until(at(0.5));
    sender.alive(1, Span::from_millis(20));
    let before = sender.source.observe();
    assert!(before.starting);
    sender.lost(1, 1, Span::from_millis(20));
    let after = sender.source.observe();
    assert!(!after.starting);
    assert!((after.rate.bps() / before.rate.bps() - 0.5).abs() < 1e-9);
}

#[test]
fn silence_is_configurable_and_off_by_default_with_the_equation() {
    let equation = PolicyChoice::Equation(Averaging::Thesis);
    for (policy, silence, expected) in [
        (PolicyChoice::Aimd, Silence::Suited, true),
        (equation, Silence::Suited, false),
        (equation, Silence::On, true),
        (PolicyChoice::Aimd, Silence::Off, false),
    ] {
        let mut config = Config { policy, silence, ..Config::published() };
        config.sending.bounds.max = mbps(2.0);
        let mut sender = Sender::settled(config);
        sender.lost(1, 1, RTT);
        let Departure::At(next) = sender.source.departure(Layer(0)) else { panic!("a rate has no window") };
        assert_eq!(next.since(sender.now) >= sender.source.round_trip().silence(), expected, "{policy}");
    }
}

#[test]
fn second_event_in_an_epoch_does_not_change_the_rate() {
    let mut sender = Sender::settled(Config::published());
    sender.lost(1, 1, RTT);
    let halved = sender.rate();
    sender.run_for(sender.source.round_trip().window() + Span::from_millis(1));
    sender.lost(1, 1, RTT);
    assert_eq!(sender.rate(), halved);
    let seen = sender.source.observe();
    assert_eq!((seen.cuts, seen.tally.events, seen.tally.followed), (1, 2, 2));
    assert_eq!(seen.limiting, Some(receiver_id(1)));
}

#[test]
fn report_of_n_lost_packets_counts_as_n_indications() {
    let mut sender = Sender::settled(Config::published());
    sender.lost(3, 40, RTT);
    let tally = sender.source.observe().tally;
    assert_eq!((tally.indications, tally.events, tally.followed), (40, 1, 1));
}

/// Paper 000, appendix A: an indication that a filter stops still gives a sample.
#[test]
fn indications_give_rtt_samples_unless_the_rtt_is_too_short() {
    let mut sender = Sender::settled(Config::published());
    sender.lost(1, 1, RTT);
    sender.lost(1, 1, Span::from_millis(10));
    assert_eq!(sender.source.round_trip().mean(), sender.source.observe().rtt);
    let before = sender.source.observe().rtt.as_secs_f64();
    sender.run_for(Span::from_millis(200));
    sender.lost(1, 1, Span::from_millis(150));
    let expected = before + (0.150 - before) / 8.0;
    assert!((sender.source.observe().rtt.as_secs_f64() - expected).abs() < 1e-6);
}

#[test]
fn repeated_request_is_an_indication_but_no_rtt_sample() {
    let mut sender = Sender::settled(Config::published());
    let echo = sender.echo(RTT);
    let request = ReportContent::Lost { echo, first: echo.seq, count: 1, loss: 0.0 };
    sender.report(2, request);
    let before = sender.source.observe();
    sender.run_for(Span::from_millis(300));
    sender.report(2, request);
    let after = sender.source.observe();
    assert_eq!((after.rtt, after.tally.indications), (before.rtt, before.tally.indications + 1));
}

#[test]
fn loss_reports_give_an_rtt_sample_per_packet_of_a_burst() {
    let mut sender = Sender::new(Config { prune: Part::Off, ..Config::published() });
    sender.run_until(at(2.0));
    let first = sender.sent.len() as u64 - 4;
    let echo = Echo { seq: Seq(first), hold: Span::ZERO };
    sender.report(1, ReportContent::Lost { echo, first: Seq(first), count: 3, loss: 0.0 });
    let ages = (first..first + 3).map(|seq| sender.now.since(sender.sent[seq as usize].at));
    let mean = ages.map(Span::as_secs_f64).reduce(|mean, age| mean + (age - mean) / 8.0).expect("three");
    assert!((sender.source.observe().rtt.as_secs_f64() - mean).abs() < 1e-8);
}

#[test]
fn loss_report_of_an_unsent_packet_is_ignored() {
    let mut sender = Sender::settled(Config::published());
    let before = sender.source.observe();
    let lost = |seq, hold| ReportContent::Lost {
        echo: Echo { seq: Seq(seq), hold },
        first: Seq(seq),
        count: 1,
        loss: 0.0,
    };
    sender.report(1, lost(1_000_000, Span::ZERO));
    assert_eq!(sender.source.observe(), before);
    sender.report(1, lost(0, Span::MAX));
    let after = sender.source.observe();
    assert_eq!((after.rtt, after.tally.indications, after.cuts), (before.rtt, 1, 1));
}

#[test]
fn congestion_reports_of_losses_and_marks_are_indications() {
    for cause in [Cause::Loss, Cause::Mark] {
        let mut sender = Sender::settled(Config::published());
        let echo = sender.echo(RTT);
        sender.report(9, ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause });
        let seen = sender.source.observe();
        assert_eq!((seen.tally.indications, seen.cuts, seen.limiting), (1, 1, Some(receiver_id(9))));
    }
}

#[test]
fn departed_receiver_is_no_longer_counted() {
    let mut sender = Sender::settled(Config::published());
    (0..3).for_each(|_| {
        sender.lost(1, 1, RTT);
        sender.run_for(Span::from_millis(400));
    });
    sender.lost(2, 1, RTT);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(1)));
    sender.source.control(SourceControl::Forget(receiver_id(1)), sender.now);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(2)));
    let leaving =
        ReportContent::Congested { echo: sender.echo(RTT), level: 0.0, mean: 0.0, cause: Cause::Leaving };
    sender.report(2, leaving);
    assert_eq!(sender.source.observe().limiting, None);
}

#[test]
fn counts_decay_every_hundred_round_trips() {
    let mut sender = Sender::settled(Config::published());
    sender.lost(1, 1, RTT);
    sender.run_for(Span::from_millis(500));
    sender.lost(1, 1, RTT);
    sender.lost(2, 1, RTT);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(1)));
    // 100 round trips last 10 s, so seven decays occur. They reduce the count of receiver 1 from two events to 0.96. Receiver 2
    // then has one new event and the remainder of an older event.
    sender.run_for(Span::from_secs(71));
    sender.lost(2, 1, RTT);
    assert_eq!(sender.source.observe().limiting, Some(receiver_id(2)));
}

#[test]
fn initial_rate_is_configurable() {
    let config = Config { initial_rate: Some(Rate::from_bps(200_000.0)), ..Config::published() };
    assert_eq!(Sender::new(config).rate(), 200_000.0);
    assert_eq!(Sender::new(Config::published()).rate(), 80_000.0, "a packet per assumed round trip");
}

#[test]
fn rtt_of_any_receiver_counts_before_the_first_loss() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    sender.alive(4, Span::from_millis(40));
    assert_eq!(sender.source.observe().rtt, Span::from_millis(40));
    sender.lost(1, 1, Span::from_millis(40));
    let before = sender.source.observe().rtt;
    sender.alive(4, Span::from_millis(400));
    assert_eq!(sender.source.observe().rtt, before);
    sender.alive(1, Span::from_millis(50));
    assert!(sender.source.observe().rtt > before);
}

#[test]
fn start_again_restores_the_initial_state() {
    let mut sender = Sender::new(Config::transport(1000));
    sender.run_until(at(1.0));
    sender.lost(1, 3, Span::from_millis(300));
    let seen = sender.source.observe();
    assert_eq!((seen.limiting, seen.starting), (ReceiverId::new(1), false));
    sender.source.control(SourceControl::StartAgain, sender.now);
    let seen = sender.source.observe();
    assert_eq!((seen.limiting, seen.starting), (None, true));
    assert!(seen.rtt < Span::from_millis(10), "{}", seen.rtt);
}

#[test]
fn idle_source_slows_down_and_then_sets_no_deadline() {
    let mut sender = Sender::settled(Config::published());
    let mut calls = 0;
    while !sender.source.deadline().is_never() {
        sender.now = sender.source.deadline();
        sender.call(|source, cx| source.on_deadline(cx));
        calls += 1;
        assert!(calls < 100, "still awake at {}", sender.now);
    }
    assert_eq!(sender.rate(), 80_000.0);
}

/// A receiver driven by hand.
type Hand = Ear<Receiver>;

impl Hand {
    fn new(config: &Config) -> Hand {
        Ear::by_hand(Receiver::new(receiver_id(7), config), at(5.0))
    }

    /// Delivers the next packet, 1 ms later.
    fn packet(&mut self, arrival: Arrival) -> Vec<ReportContent> {
        self.now += Span::from_millis(1);
        self.seq += 1 + u64::from(arrival.lost);
        self.receive(&data(self.seq, Flags::default()), arrival)
    }

    /// Delivers a packet that reveals `lost` losses.
    fn after(&mut self, lost: u32) -> Vec<ReportContent> {
        self.packet(Arrival { size: 1000, lost, ..Arrival::default() })
    }
}

#[test]
fn one_report_covers_all_losses_that_an_arrival_reveals() {
    let mut hand = Hand::new(&Config::published());
    assert_eq!(hand.after(0), []);
    for lost in [1, 30] {
        let contents = hand.after(lost);
        let first = Seq(hand.seq - u64::from(lost));
        let echo = Echo { seq: first, hold: Span::ZERO };
        assert_eq!(contents, [ReportContent::Lost { echo, first, count: lost as u16, loss: 0.0 }]);
    }
}

#[test]
fn transport_preset_reports_the_packet_that_revealed_the_loss() {
    let mut hand = Hand::new(&Config::transport(1400));
    let contents = hand.after(2);
    let echo = Echo { seq: Seq(hand.seq), hold: Span::ZERO };
    assert_eq!(contents, [ReportContent::Lost { echo, first: Seq(hand.seq - 2), count: 2, loss: 0.0 }]);
}

#[test]
fn congestion_mark_is_reported_with_its_packet_number() {
    let mut hand = Hand::new(&Config::published());
    let contents = hand.packet(Arrival { size: 1000, marked: true, ..Arrival::default() });
    let echo = Echo { seq: Seq(hand.seq), hold: Span::ZERO };
    assert_eq!(contents, [ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Mark }]);
}

/// The transport preset's limit on reports.
#[test]
fn a_receiver_sends_at_most_200_reports_per_second() {
    let mut hand = Hand::new(&Config::transport(1400));
    let mut reports = 0;
    let mut longest = Span::ZERO;
    for _ in 0..1000 {
        let due = hand.receiver.deadline().since(hand.now);
        longest = longest.max(if hand.receiver.deadline().is_never() { Span::ZERO } else { due });
        reports += hand.after(1).len();
    }
    assert!((195..=201).contains(&reports), "{reports}");
    assert!(longest <= Span::from_millis(5));
    assert_eq!(
        hand.receiver.suppressed() + reports as u32 + u32::from(!hand.receiver.deadline().is_never()),
        1000
    );
}

#[test]
fn rate_limited_report_states_its_delay() {
    let mut hand = Hand::new(&Config::transport(1400));
    assert_eq!(hand.after(1).len(), 1);
    let reported_at = hand.now;
    assert_eq!(hand.after(1), []);
    let (revealed, revealing) = (hand.now, hand.seq);
    let [ReportContent::Lost { echo, .. }] = hand.wait()[..] else { panic!("one report") };
    assert_eq!(hand.now, reported_at + Span::from_millis(5));
    assert_eq!(echo, Echo { seq: Seq(revealing), hold: hand.now.since(revealed) });
}

#[test]
fn loss_report_is_delayed_at_random_if_a_backoff_is_set() {
    let backoff = Span::from_millis(100);
    let mut waits = Vec::new();
    for _ in 0..2000 {
        let mut hand = Hand::new(&Config { backoff, ..Config::published() });
        hand.rng = Rng::new(waits.len() as u64, 3);
        assert_eq!(hand.after(1), []);
        let revealed = hand.now;
        assert_eq!(hand.wait().len(), 1);
        waits.push(hand.now.since(revealed).as_secs_f64());
    }
    let mean = waits.iter().sum::<f64>() / waits.len() as f64;
    assert!((mean - 0.05).abs() < 0.002, "{mean}");
    assert!(waits.iter().all(|wait| (0.0..=0.1).contains(wait)));
}

#[test]
fn earliest_report_is_sent_when_too_many_reports_wait() {
    let mut hand = Hand::new(&Config { backoff: Span::from_secs(10), ..Config::published() });
    let sent: usize = (0..10).map(|_| hand.after(1).len()).sum();
    assert_eq!(sent, 6, "four still wait");
    let mut due = Vec::new();
    while !hand.receiver.deadline().is_never() {
        due.push(hand.receiver.deadline());
        assert_eq!(hand.wait().len(), 1);
    }
    assert!(due.len() == 4 && due.is_sorted());
}

fn path(rate: f64, rtt_millis: u64, buffer: u64) -> Path {
    Path { rate: mbps(rate), rtt: Span::from_millis(rtt_millis), buffer }
}

fn star(scheme: &str, paths: &[Path], seed: u64) -> Star {
    let scheme: Scheme = scheme.parse().expect("a scheme");
    Star::new(&scheme, 1000, paths, seed)
}

/// Counts the bytes sent in each second from second `from` to second `to`. Returns the mean of these counts, and their relative
/// deviation.
fn smoothness(star: &Star, from: usize, to: usize) -> (f64, f64) {
    let seconds: Vec<f64> =
        (from..to).map(|second| star.sent_between(second * 1000, second * 1000 + 1000) as f64).collect();
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let variance = seconds.iter().map(|bytes| (bytes - mean).powi(2)).sum::<f64>() / seconds.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn equation_rate_is_smoother_than_aimd_at_about_the_same_mean() {
    for scheme in ["le-sbcc", "ormcc"] {
        let run = |policy: &str| {
            let paths = [path(1.0, 50, 50_000); 4];
            let mut star = star(&format!("{scheme},preset=published,policy={policy}"), &paths, 1);
            star.run_until(at(600.0));
            smoothness(&star, 300, 600)
        };
        let ((aimd, uneven), (equation, even)) = (run("aimd"), run("equation"));
        assert!(even < uneven / 2.0, "{scheme}: deviation {even} instead of {uneven}");
        assert!((0.75..1.33).contains(&(equation / aimd)), "{scheme}: {equation} instead of {aimd}");
    }
}

#[test]
fn rate_follows_the_slowest_path() {
    let mut paths = [path(4.0, 50, 50_000); 16];
    paths[5] = path(1.0, 60, 50_000);
    let mut star = star("le-sbcc,preset=published", &paths, 3);
    star.run_until(at(200.0));
    let (mean, _) = smoothness(&star, 50, 200);
    assert!((0.7..1.02).contains(&(mean * 8.0 / 1e6)), "{mean} bytes a second");
    assert_eq!(star.source.observe().limiting, Some(receiver_id(6)));
}

#[test]
fn cascade_gives_32_receivers_the_throughput_of_one() {
    let run = |receivers: usize| {
        let mut star = star("le-sbcc,preset=published", &vec![path(1.0, 50, 50_000); receivers], 3);
        star.run_until(at(200.0));
        (star.source.observe(), smoothness(&star, 50, 200).0)
    };
    let ((one, alone), (many, together)) = (run(1), run(32));
    assert!(many.tally.indications > 20 * one.tally.indications);
    assert!(together > 0.9 * alone, "{together} of {alone}");
}

#[test]
fn rate_limits_apply_from_the_first_packet_and_after_losses() {
    let mut config = Config::published();
    config.sending.bounds = Bounds { min: mbps(0.3), max: mbps(0.5) };
    assert_eq!(config.sending.start, Start::Linear);
    let mut sender = Sender::new(config);
    assert_eq!(sender.rate(), 0.3e6);
    sender.run_until(at(20.0));
    assert_eq!(sender.rate(), 0.5e6);
    sender.lost(1, 1, RTT);
    assert_eq!(sender.rate(), 0.3e6);
}
