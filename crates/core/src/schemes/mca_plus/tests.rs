//! Tests of each of MCA+'s rules.

use super::*;
use crate::node::{Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Data, Echo, Mark, ReceiverId, ReportContent, Seq, Signal};
use crate::schemes::bench::{Bench, Ear, Path, Star, data, receiver_id};
use crate::schemes::{ReceiverPart, Scheme};
use crate::time::{Rate, Span, Time};

fn at(secs: f64) -> Time {
    Time::from_secs_f64(secs)
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs()
}

/// A receiver driven by the test: packets of 1000 bytes, one per 10 ms (0.8 Mbit/s), every fifth a control packet.
type Hand = Ear<Receiver>;

fn followed(id: u64, mean: f32, deviation: f32) -> Mark {
    Mark::Representative { id: ReceiverId::new(id), mean, deviation, rtt_max: 0.1 }
}

fn nobody() -> Mark {
    Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.1 }
}

impl Hand {
    fn new(config: Config) -> Hand {
        let mut hand = Ear::by_hand(Receiver::new(receiver_id(7), &config), Time::ZERO);
        hand.mark = nobody();
        (0..100).for_each(|_| assert_eq!(hand.packet(0, 20), []));
        hand
    }

    /// Returns the time `millis` milliseconds after the next packet is sent.
    fn later(&self, millis: u64) -> Time {
        Time::ZERO + Span::from_millis(self.seq * 10 + millis)
    }

    /// Delivers the next packet, after `lost` lost packets. It arrives `delay` milliseconds after it was sent.
    fn packet(&mut self, lost: u32, delay: u64) -> Vec<ReportContent> {
        self.seq += u64::from(lost);
        let signal = if self.seq.is_multiple_of(5) { Signal::Control } else { Signal::None };
        let data = Data { rate: 0.8e6, signal, ..data(self.seq, self.later(0), self.mark) };
        self.now = self.later(delay);
        self.seq += 1;
        self.receive(&data, Arrival { size: 1000, lost, ..Arrival::default() })
    }

    fn loss(&mut self) -> Vec<ReportContent> {
        self.packet(1, 20)
    }
}

/// T-M+-1.
#[test]
fn only_slower_receivers_and_the_representative_report() {
    let mut hand = Hand::new(Config::published());
    hand.mark = followed(8, 0.7e6, 0.1e6); // ours is about 0.8 Mbit/s
    assert_eq!(hand.loss(), []);
    hand.mark = followed(8, 1.2e6, 0.1e6);
    assert_eq!(hand.loss().len(), 1, "slower than mean less deviation: at once");
    hand.mark = followed(7, 0.1e6, 0.0);
    assert_eq!(hand.loss().len(), 1, "the representative");
    assert_eq!(hand.receiver.counts(), Counts { sent: 2, suppressed: 1 });
}

#[test]
fn literal_thesis_rule_suppresses_slower_receivers() {
    for (suppress, slower, faster) in [(Suppress::Slower, 0, 1), (Suppress::Nobody, 1, 1)] {
        let mut hand = Hand::new(Config { suppress, ..Config::published() });
        hand.mark = followed(8, 1.2e6, 0.1e6);
        assert_eq!(hand.loss().len(), slower, "{suppress:?}");
        hand.mark = followed(8, 0.7e6, 0.1e6);
        assert_eq!(hand.loss().len(), faster, "{suppress:?}");
    }
}

#[test]
fn reports_without_a_representative_state_their_backoff() {
    let mut hand = Hand::new(Config::published());
    assert_eq!(hand.loss().len(), 1, "at once in the thesis");
    let mut hand = Hand::new(Config { while_invalid: WhileInvalid::Spread, ..Config::published() });
    let event = hand.later(30);
    assert_eq!(hand.loss(), []);
    let waits = hand.receiver.deadline().since(event);
    assert!(waits > Span::ZERO && waits <= Span::from_millis(200), "{waits}");
    let reports = hand.wait();
    let [ReportContent::Congested { echo, .. }] = reports[..] else { panic!("{reports:?}") };
    assert_eq!(echo.hold, waits);
    assert_eq!(hand.loss(), []);
    hand.mark = followed(8, 0.5e6, 0.0);
    hand.packet(0, 20);
    assert!(hand.receiver.deadline().is_never(), "a header that names a slower one takes the reason away");
}

/// Paper 000, 5.2.1.1: "the packet which triggered the CI".
#[test]
fn loss_report_echoes_the_packet_that_revealed_the_loss() {
    let mut hand = Hand::new(Config::published());
    let reports = hand.packet(3, 20);
    let [ReportContent::Congested { echo, cause, .. }] = reports[..] else { panic!("{reports:?}") };
    // Packets 0 to 99 arrived, 100 to 102 did not.
    assert_eq!((echo, cause), (Echo { seq: Seq(103), hold: Span::ZERO }, Cause::Loss));
}

/// T-M+-3.
#[test]
fn congestion_rate_includes_congestion_that_is_not_reported() {
    let level = |mark| {
        let mut hand = Hand::new(Config::published());
        hand.mark = mark;
        for _ in 0..200 {
            hand.loss();
            (0..8).for_each(|_| _ = hand.packet(0, 20));
        }
        (hand.receiver.level().mean().expect("congested"), hand.receiver.counts())
    };
    let (silent, counts) = level(followed(8, 0.1e6, 0.0));
    assert_eq!((counts.sent, counts.suppressed), (0, 200));
    let (loud, counts) = level(followed(7, 0.1e6, 0.0));
    assert_eq!((counts.sent, counts.suppressed), (200, 0));
    assert_eq!(silent, loud);
    // One packet in ten shows congestion. When a loss is detected, ten packets have arrived in the time of twelve.
    assert!((silent / (0.8e6 * 10.0 / 12.0 * 0.9) - 1.0).abs() < 0.01, "{silent}");
}

#[test]
fn accumulation_is_reported_unless_the_packet_reveals_a_loss() {
    let mut hand = Hand::new(Config::published());
    hand.mark = followed(7, 1e6, 0.0);
    let mut causes = Vec::new();
    for late in 0..40 {
        let reports = hand.packet(0, 20 + 2 * late);
        causes.extend(reports.into_iter().map(|report| match report {
            ReportContent::Congested { cause, .. } => cause,
            other => panic!("{other:?}"),
        }));
    }
    assert!(causes.len() >= 5 && causes.iter().all(|cause| *cause == Cause::Accumulation), "{causes:?}");
    (0..4).for_each(|_| _ = hand.packet(0, 100));
    hand.seq = hand.seq.next_multiple_of(5) - 1;
    let reports = hand.packet(1, 100);
    assert!(matches!(reports[..], [ReportContent::Congested { cause: Cause::Loss, .. }]), "{reports:?}");
}

#[test]
fn representative_reports_that_it_leaves() {
    let mut hand = Hand::new(Config::published());
    hand.mark = followed(7, 1e6, 0.0);
    hand.packet(0, 20);
    let leaving = hand.leave();
    assert!(matches!(leaving[..], [ReportContent::Congested { cause: Cause::Leaving, .. }]));
}

type Sender = Bench<Source>;

const RTT: Span = Span::from_millis(100);

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1000)
    }

    fn started() -> Sender {
        let mut sender = Sender::new(Config::published());
        sender.run_until(at(2.04));
        sender
    }

    /// Delivers a report with this mean and deviation, at a round-trip time of a tenth of a second.
    fn congested(&mut self, from: u64, mean: f64, deviation: f64, cause: Cause) {
        let echo = self.echo(RTT);
        let content =
            ReportContent::Congested { echo, level: (mean - deviation) as f32, mean: mean as f32, cause };
        self.report(from, content);
    }

    fn accumulation(&mut self, from: u64, mean: f64, deviation: f64) {
        self.congested(from, mean, deviation, Cause::Accumulation);
    }

    fn named(&mut self) -> (Option<u64>, f32, f32) {
        self.run_for(Span::from_millis(20));
        let mark = self.newest(0).expect("it sends").stamp.mark;
        let Mark::Representative { id, mean, deviation, .. } = mark else {
            panic!("every packet says who is followed")
        };
        (id.map(ReceiverId::get), mean, deviation)
    }
}

/// T-M+-2.
#[test]
fn rate_is_cut_by_a_tenth_or_a_quarter_once_per_period() {
    for (cause, keep) in [(Cause::Accumulation, 0.9), (Cause::Loss, 0.75), (Cause::Mark, 0.9)] {
        let mut sender = Sender::started();
        let before = sender.rate();
        sender.congested(1, 1e6, 0.25e6, cause);
        assert!(near(sender.rate(), keep * before), "{cause:?}");
        sender.run_for(Span::from_millis(90));
        let between = sender.rate();
        sender.congested(1, 1e6, 0.25e6, Cause::Loss);
        assert_eq!(sender.rate(), between, "within a period of the first");
        sender.run_for(Span::from_millis(20));
        let later = sender.rate();
        sender.congested(1, 1e6, 0.25e6, cause);
        assert!(near(sender.rate(), keep * later));
        assert_eq!(sender.source.observe().cuts, 2);
    }
}

#[test]
fn the_rate_grows_by_a_packet_per_period() {
    let mut sender = Sender::started();
    assert!(near(sender.rate(), 80_000.0 * 21.0), "{}", sender.rate());
    sender.accumulation(1, 1e6, 0.1e6);
    let cut = sender.rate();
    sender.run_for(Span::from_millis(95));
    assert_eq!(sender.rate(), cut);
    sender.run_for(Span::from_millis(100));
    assert!(near(sender.rate(), cut + 80_000.0), "{} after {cut}", sender.rate());
}

/// T-M+-4.
#[test]
fn silent_representative_is_dropped_after_four_periods() {
    let mut sender = Sender::started();
    sender.accumulation(1, 1.4e6, 0.1e6); // full at 1.8 Mbit/s
    assert_eq!(sender.named().0, Some(1));
    while sender.rate() < 1.8e6 {
        sender.run_for(Span::from_millis(1));
    }
    sender.run_for(Span::from_millis(370));
    assert_eq!(sender.named().0, Some(1));
    sender.run_for(Span::from_millis(20));
    assert_eq!(sender.named(), (None, f32::INFINITY, 0.0));
    sender.accumulation(2, 2e6, 0.1e6);
    assert_eq!(sender.named().0, Some(2), "anybody is elected");
}

#[test]
fn report_of_the_representative_cancels_its_timeout() {
    let mut sender = Sender::started();
    sender.accumulation(1, 1.4e6, 0.1e6);
    while sender.rate() < 1.8e6 {
        sender.run_for(Span::from_millis(1));
    }
    sender.run_for(Span::from_millis(300));
    sender.accumulation(1, 1.4e6, 0.1e6);
    sender.run_for(Span::from_millis(200));
    assert_eq!(sender.named().0, Some(1));
}

/// T-M+-5.
#[test]
fn a_slower_receiver_becomes_representative_with_its_own_mean() {
    let mut sender = Sender::started();
    sender.accumulation(1, 1e6, 0.25e6);
    assert_eq!(sender.named(), (Some(1), 1e6, 0.25e6));
    sender.run_for(Span::from_millis(200));
    let before = (sender.rate(), sender.source.observe().tally.followed);
    sender.accumulation(2, 0.76e6, 0.1e6);
    assert_eq!((sender.rate(), sender.source.observe().tally.followed), before, "not slow enough: dropped");
    assert_eq!(sender.named(), (Some(1), 1e6, 0.25e6));
    sender.accumulation(2, 0.74e6, 0.125e6);
    assert!(sender.rate() < before.0, "accepted, so it cuts");
    let (id, mean, deviation) = sender.named();
    assert_eq!((id, mean), (Some(2), 0.74e6));
    assert!((deviation - 0.125e6).abs() < 1.0, "{deviation}");
    sender.accumulation(2, 0.9e6, 0.125e6);
    assert_eq!(sender.named().1, 0.9e6, "the representative's own report replaces them too");
}

#[test]
fn departed_representative_is_no_longer_followed() {
    let echo = Echo { seq: Seq(0), hold: Span::ZERO };
    let leaving = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
    for way in [0, 1, 2] {
        let mut sender = Sender::started();
        sender.accumulation(1, 1e6, 0.25e6);
        match way {
            0 => sender.report(1, leaving),
            1 => sender.source.control(SourceControl::Forget(receiver_id(1)), sender.now),
            _ => sender.source.control(SourceControl::StartAgain, sender.now),
        }
        assert_eq!(sender.named().0, None);
    }
}

#[test]
fn absurd_and_repeated_reports_are_dropped() {
    let mut sender = Sender::started();
    let before = sender.rate();
    let echo = Echo { seq: Seq(5), hold: Span::ZERO };
    for (level, mean) in [(f32::NAN, 1e6), (1e6, f32::INFINITY), (0.0, 0.0), (-1.0, 1e6), (1e6, f32::NAN)] {
        sender.report(1, ReportContent::Congested { echo, level, mean, cause: Cause::Accumulation });
    }
    assert_eq!((sender.rate(), sender.source.observe().limiting), (before, None));
    sender.accumulation(1, 1e6, 0.25e6);
    let tally = sender.source.observe().tally;
    sender.accumulation(1, 1e6, 0.25e6);
    assert_eq!(sender.source.observe().tally, tally, "the same packet again");
}

#[test]
fn only_representatives_give_rtt_samples_by_default() {
    for samples in [Samples::Followed, Samples::All] {
        let mut sender = Sender::new(Config { samples, ..Config::published() });
        sender.run_until(at(2.04));
        sender.accumulation(1, 1e6, 0.25e6);
        sender.run_for(Span::from_millis(500));
        let echo = Echo { hold: Span::ZERO, ..sender.echo(RTT * 4) };
        sender.report(2, ReportContent::Congested { echo, level: 1e6, mean: 1e6, cause: Cause::Loss });
        let rtt = sender.source.observe().rtt;
        assert_eq!(rtt > Span::from_millis(130), samples == Samples::All, "{rtt}");
    }
}

#[test]
fn new_representative_restarts_or_continues_the_rtt_estimate() {
    for (across_switch, rtt) in [(AcrossSwitch::Restart, 300), (AcrossSwitch::Continue, 125)] {
        let mut sender = Sender::new(Config { across_switch, ..Config::published() });
        sender.run_until(at(2.04));
        sender.accumulation(1, 1e6, 0.25e6);
        let echo = sender.echo(RTT * 3);
        sender.report(2, ReportContent::Congested { echo, level: 0.5e6, mean: 0.6e6, cause: Cause::Loss });
        assert_eq!(sender.source.observe().rtt, Span::from_millis(rtt));
    }
}

fn path(rate: f64, rtt_millis: u64, buffer: u64) -> Path {
    Path { rate: Rate::from_mbps(rate), rtt: Span::from_millis(rtt_millis), buffer }
}

/// T-M+-8, without other flows.
#[test]
fn sixty_four_receivers_send_few_more_reports_than_one() {
    let scheme: Scheme = "mca-plus,preset=published".parse().expect("a scheme");
    let mut star = Star::new(&scheme, 1000, &[path(1.0, 50, 200_000); 64], 5);
    star.run_until(at(200.0));
    let counts = star.leaves.iter().map(|leaf| match &leaf.receiver.part {
        ReceiverPart::McaPlus(receiver) => receiver.counts(),
        other => panic!("{other:?}"),
    });
    let (sent, held) = counts.fold((0, 0), |sum, c| (sum.0 + c.sent, sum.1 + c.suppressed));
    let of_one = (sent + held) / 64;
    assert!(sent < 2 * of_one, "{sent} reports of 64 receivers, {of_one} of each without suppression");
}
