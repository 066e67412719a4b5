//! Behaviour of PGMCC's source and receivers, together and separately.

use super::{Config, Receiver, Source};
use crate::node::{Departure, Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Echo, Layer, Mark, ReceiverId, ReportContent, Seq};
use crate::rate::Bounds;
use crate::rng::Rng;
use crate::schemes::Scheme;
use crate::schemes::bench::{self, Bench, Path, Star, data, receiver_id};
use crate::time::{Rate, Span, Time};

const SIZE: u16 = 1000;

fn millis(millis: u64) -> Span {
    Span::from_millis(millis)
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand_at(Source::new(config), SIZE, Time::from_secs_f64(1.0))
    }

    fn may_send(&self) -> bool {
        matches!(self.source.departure(Layer(0)), Departure::At(at) if at <= self.now)
    }

    /// Sends packets while there are tokens. Returns the number of packets, and the acker that the last packet names.
    fn burst(&mut self) -> (u32, Option<ReceiverId>) {
        let (mut sent, mut named) = (0, None);
        while self.may_send() {
            let stamp = self.depart(Layer(0));
            let Mark::Acker { id: acker } = stamp.mark else { panic!("{stamp:?}") };
            (sent, named) = (sent + 1, acker);
            self.now += Span::from_nanos(10);
        }
        (sent, named)
    }

    fn nak(&mut self, from: u64, seq: u64, count: u16, loss: f32) {
        let echo = Echo { seq: Seq(seq), hold: Span::ZERO };
        self.report(from, ReportContent::Lost { echo, first: Seq(seq), count, loss });
    }

    fn ack(&mut self, from: u64, seq: u64, loss: f32) {
        let echo = Echo { seq: Seq(seq), hold: Span::ZERO };
        self.report(from, ReportContent::Selective { echo, behind: 0, bitmap: u32::MAX, loss });
    }

    fn wait_for_deadline(&mut self) {
        self.now = self.source.deadline();
        self.call(|source, cx| source.on_deadline(cx));
    }
}

#[test]
fn the_first_candidate_becomes_the_acker() {
    let mut sender = Sender::new(Config::published());
    assert_eq!(sender.burst(), (1, None));
    sender.now += millis(100);
    sender.nak(3, 0, 0, 0.0);
    assert_eq!(sender.source.acker(), Some(receiver_id(3)));
    assert_eq!(sender.burst(), (1, Some(receiver_id(3))));
}

#[test]
fn source_without_tokens_waits_for_an_acknowledgement() {
    let mut sender = Sender::new(Config::published());
    sender.burst();
    assert_eq!(sender.source.departure(Layer(0)), Departure::AfterReport);
    sender.now += millis(100);
    sender.nak(3, 0, 0, 0.0);
    sender.burst();
    sender.now += millis(100);
    sender.ack(3, 1, 0.0);
    assert_eq!(sender.burst().0, 2, "the window has grown to two");
}

#[test]
fn acker_changes_only_to_a_receiver_with_clearly_more_loss() {
    let mut sender = Sender::new(Config::published());
    sender.burst();
    sender.now += millis(100);
    sender.nak(1, 0, 0, 0.01);
    assert_eq!(sender.source.acker(), Some(receiver_id(1)));
    sender.nak(2, 0, 1, 0.0115);
    assert_eq!(sender.source.acker(), Some(receiver_id(1)));
    sender.nak(2, 0, 1, 0.03);
    assert_eq!(sender.source.acker(), Some(receiver_id(2)));
}

#[test]
fn acker_is_dropped_after_two_timeouts() {
    let mut sender = Sender::new(Config::published());
    sender.burst();
    sender.now += millis(100);
    sender.nak(1, 0, 0, 0.01);
    sender.burst();
    sender.wait_for_deadline();
    assert_eq!(sender.source.acker(), Some(receiver_id(1)));
    assert_eq!(sender.burst(), (1, Some(receiver_id(1))));
    let sent_at = sender.now;
    sender.wait_for_deadline();
    assert!(sender.now >= sent_at + millis(500), "the timeout has doubled: {}", sender.now.since(sent_at));
    assert_eq!(sender.source.acker(), None);
    assert_eq!(sender.burst(), (1, None));
}

#[test]
fn reports_of_other_receivers_do_not_retain_a_silent_acker() {
    let mut sender = Sender::new(Config::published());
    sender.burst();
    sender.now += millis(100);
    sender.nak(1, 0, 0, 0.01);
    for _ in 0..2 {
        sender.burst();
        sender.nak(2, 0, 1, 1e-6);
        assert_eq!(sender.source.acker(), Some(receiver_id(1)));
        sender.wait_for_deadline();
    }
    assert_eq!(sender.source.acker(), None);
}

#[test]
fn acker_is_removed_when_it_leaves_or_is_forgotten() {
    for farewell in [true, false] {
        let mut sender = Sender::new(Config::published());
        sender.burst();
        sender.now += millis(100);
        sender.nak(1, 0, 0, 0.01);
        if farewell {
            let echo = Echo { seq: Seq(0), hold: Span::ZERO };
            let cause = Cause::Leaving;
            sender.report(1, ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause });
        } else {
            let now = sender.now;
            sender.source.control(SourceControl::Forget(receiver_id(1)), now);
        }
        assert_eq!(sender.source.acker(), None);
    }
}

#[test]
fn invalid_reports_do_not_elect_an_acker() {
    let mut sender = Sender::new(Config::published());
    sender.burst();
    sender.now += millis(100);
    sender.nak(1, 0, 0, f32::NAN);
    sender.nak(1, 7, 0, 0.5);
    assert_eq!(sender.source.acker(), None);
}

#[test]
fn minimum_rate_allows_packets_without_acknowledgements() {
    let mut sender = Sender::new(Config::published());
    let now = sender.now;
    let bounds = Bounds { min: Rate::from_bps(80_000.0), max: Rate::UNLIMITED };
    sender.source.control(SourceControl::Limits(bounds), now);
    let mut sent = sender.burst().0;
    while sender.now < now + Span::from_secs(10) {
        sender.wait_for_deadline();
        sent += sender.burst().0;
    }
    assert!((100..=102).contains(&sent), "{sent} packets of 100 ms in 10 s");
}

#[test]
fn a_maximum_rate_paces_packets_and_limits_the_window() {
    let mut config = Config::transport(SIZE);
    config.sending.bounds.max = Rate::from_mbps(1.0);
    let path = Path { rate: Rate::from_mbps(100.0), rtt: millis(20), buffer: 100_000 };
    let mut star = Star::new(&Scheme::Pgmcc(config), SIZE, &[path], 1);
    star.run_until(Time::from_secs_f64(10.0));
    let sent = Rate::of(star.sent_between(5000, 10_000), Span::from_secs(5));
    assert!((0.95e6..1.02e6).contains(&sent.bps()), "{sent}");
    assert!(star.peak(100).bps() < 1.2e6, "{}", star.peak(100));
}

#[test]
fn burst_after_a_pause_is_limited_to_a_small_window() {
    let path = Path { rate: Rate::from_mbps(10.0), rtt: millis(50), buffer: 60_000 };
    let mut star = Star::new(&Scheme::Pgmcc(Config::published()), SIZE, &[path], 1);
    star.run_until(Time::from_secs_f64(20.0));
    assert!(star.source.observe().rate.bps() > 4e6);
    let source = match star.source {
        crate::schemes::AnySource::Pgmcc(source) => source,
        _ => panic!("another scheme"),
    };
    let mut sender = Bench::of(source, SIZE, star.now, Rng::new(1, 1));
    let newest = sender.source.next_seq().0 - 1;
    sender.ack(1, newest, 0.0);
    sender.now += Span::from_secs(5);
    let sent = sender.burst().0;
    assert!(sent <= 4, "{sent}");
}

type Ear = bench::Ear<Receiver>;

impl Ear {
    fn new() -> Ear {
        Ear::of(&Config::published())
    }

    fn of(config: &Config) -> Ear {
        Ear::by_hand(Receiver::new(receiver_id(2), config), Time::ZERO)
    }

    fn deliver(&mut self, at: u64, seq: u64, acker: Option<u64>, arrival: Arrival) -> Vec<ReportContent> {
        self.now = Time::ZERO + millis(at);
        self.receive(&data(seq, Time::ZERO, Mark::Acker { id: acker.map(receiver_id) }), arrival)
    }

    fn wait_for(&mut self, until: u64) -> Vec<ReportContent> {
        self.now = Time::ZERO + millis(until);
        bench::reports(self.call(|receiver, cx| receiver.on_deadline(cx)))
    }
}

const PLAIN: Arrival = Arrival { size: SIZE, lost: 0, excused: 0, marked: false, late: false };

#[test]
fn an_offer_to_acknowledge_is_withdrawn_when_an_acker_is_named() {
    let mut ear = Ear::new();
    ear.deliver(0, 0, None, PLAIN);
    let due = ear.receiver.deadline();
    assert!(due <= Time::ZERO + millis(50), "{due}");
    ear.deliver(1, 1, Some(9), PLAIN);
    assert_eq!(ear.receiver.deadline(), Time::NEVER);
    assert_eq!(ear.wait_for(100), []);
}

#[test]
fn every_receiver_offers_itself_within_50_ms_without_an_acker() {
    let mut ear = Ear::new();
    ear.deliver(0, 0, None, PLAIN);
    match ear.wait_for(50)[..] {
        [ReportContent::Lost { echo, count: 0, .. }] => {
            assert_eq!(echo, Echo { seq: Seq(0), hold: millis(50) });
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn the_acker_acknowledges_each_packet_once_with_a_bitmap() {
    let mut ear = Ear::new();
    ear.deliver(0, 10, Some(2), PLAIN);
    ear.deliver(1, 11, Some(2), PLAIN);
    let lossy = Arrival { lost: 2, ..PLAIN };
    match ear.deliver(2, 14, Some(2), lossy)[..] {
        [ReportContent::Selective { echo, behind: 0, bitmap: 0b11001, loss }] => {
            assert_eq!(echo, Echo { seq: Seq(14), hold: Span::ZERO });
            assert!((0.01..0.02).contains(&loss));
        }
        ref other => panic!("{other:?}"),
    }
    assert_eq!(ear.deliver(3, 14, Some(2), Arrival { late: true, ..PLAIN }), [], "a duplicate");
    match ear.deliver(4, 13, Some(2), Arrival { late: true, ..PLAIN })[..] {
        [ReportContent::Selective { echo, bitmap: 0b11011, .. }] => {
            assert_eq!(echo, Echo { seq: Seq(14), hold: millis(2) });
        }
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn acknowledgements_cover_four_packets_or_a_millisecond() {
    let mut ear = Ear::of(&Config::transport(SIZE));
    assert_eq!(ear.deliver(5, 0, Some(2), PLAIN).len(), 1);
    for seq in 1..4 {
        assert_eq!(ear.deliver(5, seq, Some(2), PLAIN), []);
    }
    assert_eq!(ear.deliver(5, 4, Some(2), PLAIN).len(), 1);
    assert_eq!(ear.deliver(5, 5, Some(2), PLAIN), []);
    assert_eq!(ear.receiver.deadline(), Time::ZERO + millis(6));
    assert_eq!(ear.wait_for(6).len(), 1);
    assert_eq!(ear.deliver(7, 6, Some(2), PLAIN).len(), 1, "a slow stream");
    assert_eq!(ear.deliver(7, 8, Some(2), PLAIN).len(), 1, "one is missing");
    assert_eq!(ear.deliver(7, 7, Some(2), Arrival { late: true, ..PLAIN }).len(), 1);
    assert_eq!(ear.deliver(7, 9, Some(2), PLAIN), []);
    assert_eq!(ear.deliver(7, 10, Some(3), PLAIN).len(), 1, "another is the acker");
}

#[test]
fn acknowledgement_states_the_position_of_a_missing_packet() {
    let mut ear = Ear::new();
    ear.deliver(0, 0, Some(2), PLAIN);
    ear.deliver(1, 2, Some(2), PLAIN);
    match ear.deliver(2, 3, Some(2), PLAIN)[..] {
        [ReportContent::Selective { behind: 3, bitmap: 0b1011, .. }] => {}
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn losses_within_one_backoff_cause_one_report() {
    let mut ear = Ear::new();
    ear.deliver(0, 0, Some(9), PLAIN);
    let lossy = Arrival { lost: 1, ..PLAIN };
    assert_eq!(ear.deliver(1, 2, Some(9), lossy), []);
    assert_eq!(ear.deliver(1, 4, Some(9), lossy), []);
    match ear.wait_for(60)[..] {
        [ReportContent::Lost { first: Seq(1), count: 2, loss, .. }] => assert!((0.01..0.02).contains(&loss)),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(ear.wait_for(200), []);
}

#[test]
fn only_the_acker_reports_that_it_leaves() {
    for (acker, reports) in [(2, 1), (9, 0)] {
        let mut ear = Ear::new();
        ear.deliver(0, 0, Some(acker), PLAIN);
        let contents = ear.leave();
        assert_eq!(contents.len(), reports);
        assert!(contents.iter().all(|c| matches!(c, ReportContent::Congested { cause: Cause::Leaving, .. })));
    }
}

fn bottleneck(mbps: f64, rtt: u64, packets: u64) -> Path {
    Path { rate: Rate::from_mbps(mbps), rtt: millis(rtt), buffer: packets * u64::from(SIZE) }
}

/// Returns the mean rate of a session over these paths, in the second half of a run of one minute.
fn mean_rate(config: Config, paths: &[Path], seed: u64) -> f64 {
    let mut star = Star::new(&Scheme::Pgmcc(config), SIZE, paths, seed);
    star.run_until(Time::from_secs_f64(60.0));
    star.sent_between(30_000, 60_000) as f64 * 8.0 / 30.0
}

#[test]
fn session_over_two_equal_paths_has_93_percent_of_one_path_rate() {
    let one = mean_rate(Config::published(), &[bottleneck(2.0, 50, 15)], 1);
    for hysteresis in [0.75, 1.0] {
        let config = Config { hysteresis, ..Config::published() };
        let two = mean_rate(config, &[bottleneck(2.0, 50, 15), bottleneck(2.0, 50, 15)], 2);
        println!("one path {one:.0}, two {two:.0} with c = {hysteresis}");
        assert!(two > 0.93 * one, "{one} and {two} with c = {hysteresis}");
    }
}

#[test]
fn slow_start_fills_a_long_fat_path_in_a_few_seconds() {
    let path = bottleneck(100.0, 50, 625);
    let mut star = Star::new(&Scheme::Pgmcc(Config::transport(SIZE)), SIZE, &[path], 1);
    star.run_until(Time::from_secs_f64(10.0));
    let rate = star.sent_between(5_000, 10_000) as f64 * 8.0 / 5.0;
    assert!(rate > 70e6, "{rate}");
}
