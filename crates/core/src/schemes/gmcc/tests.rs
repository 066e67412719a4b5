//! Tests of a single receiver or source.

use super::layer::Mode;
use super::{Assumed, Config, LayerScheme, LeaveNotice, Receiver, Source};
use crate::half::Half;
use crate::node::{Cx, Departure, Effect, Effects, Receiver as _, Source as _};
use crate::packet::{
    Arrival, Cause, Data, Echo, Layer, LayerState, LayerStates, Mark, ReceiverId, Report, ReportContent, Seq,
    ShortId, Signal,
};
use crate::rate::Bounds;
use crate::rng::Rng;
use crate::schemes::bench::{Bench, data};
use crate::time::{Rate, Span, Time};

const ME: ReceiverId = ReceiverId::new(1).expect("not zero");
const OTHER: ReceiverId = ReceiverId::new(2).expect("not zero");
const THIRD: ReceiverId = ReceiverId::new(3).expect("not zero");
const RTT: Span = Span::from_millis(100);
const SIZE: u16 = 1000;

/// A configuration with few samples, for short tests.
fn short() -> Config {
    Config { samples: 4, comparisons: 3, ..Config::published() }
}

/// A receiver with headers that the test chooses.
struct Hand {
    receiver: Receiver,
    now: Time,
    seq: [u64; 8],
    /// For each layer: the representative, the mean attenuation factor of the representative, and the number of updates.
    followed: [(Option<ReceiverId>, f32, u8); 8],
    states: LayerStates,
    rng: Rng,
    effects: Effects,
}

impl Hand {
    /// Creates a receiver in a base layer. The layer's representative is another receiver, with a mean throughput attenuation
    /// factor of 10/s.
    fn new(config: Config) -> Hand {
        Hand {
            receiver: Receiver::new(ME, &config),
            now: Time::from_secs_f64(1.0),
            seq: [0; 8],
            followed: [(Some(OTHER), 10.0, 1); 8],
            states: LayerStates::default().with(Layer(0), LayerState::Settled),
            rng: Rng::new(1, 1),
            effects: Effects::new(),
        }
    }

    fn call(&mut self, act: impl FnOnce(&mut Receiver, &mut Cx<'_>)) -> Vec<Effect> {
        act(&mut self.receiver, &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects });
        self.effects.drain().collect()
    }

    /// Delivers a packet `gap` after the previous one. The `lost` packets between them are lost.
    fn packet_with(&mut self, layer: u8, gap: Span, lost: u32, signal: Signal) -> Vec<Effect> {
        self.now += gap;
        let index = usize::from(layer);
        self.seq[index] += 1 + u64::from(lost);
        let (id, mean, updates) = self.followed[index];
        let (id, above, states) = (id.and_then(ShortId::of), Half(0), self.states);
        let mark = Mark::Layered { id, mean, error: 0.001, rtt: 0.1, above, updates, states };
        let data = Data { rate: 1e6, signal, ..data(self.seq[index], self.now, mark) };
        let arrival = Arrival { size: SIZE, lost, ..Arrival::default() };
        self.call(|receiver, cx| receiver.on_data(&data, Layer(layer), arrival, cx))
    }

    fn packet(&mut self, layer: u8, gap: Span, lost: u32) -> Vec<Effect> {
        self.packet_with(layer, gap, lost, Signal::None)
    }

    /// Delivers two packets at four fifths of their sending rate. Then loses a packet, one second after the previous loss.
    fn loss_with(&mut self, layer: u8, signal: Signal) -> Vec<Effect> {
        self.packet(layer, Span::from_millis(980), 0);
        self.packet_with(layer, Span::from_millis(10), 0, signal);
        self.packet(layer, Span::from_millis(10), 1)
    }

    fn loss(&mut self, layer: u8) -> Vec<Effect> {
        self.loss_with(layer, Signal::None)
    }

    fn losses(&mut self, layer: u8, count: u32) -> Vec<Effect> {
        (0..count).flat_map(|_| self.loss(layer)).collect()
    }

    /// Delivers a packet after the representative of a layer has reported a loss. This receiver has lost nothing.
    fn others_loss(&mut self, layer: u8) -> Vec<Effect> {
        self.followed[usize::from(layer)].2 += 1;
        self.packet(layer, Span::from_secs(1), 0)
    }

    /// Returns the receiver's timer-driven effects until `span` has passed.
    fn wait(&mut self, span: Span) -> Vec<Effect> {
        let end = self.now + span;
        let mut effects = Vec::new();
        while self.receiver.deadline() <= end {
            self.now = self.receiver.deadline().max(self.now);
            effects.extend(self.call(|receiver, cx| receiver.on_deadline(cx)));
        }
        self.now = end;
        effects
    }

    /// Changes the mean that the representative of a layer reports.
    fn say(&mut self, layer: u8, mean: f32) {
        self.followed[usize::from(layer)].1 = mean;
        self.followed[usize::from(layer)].2 += 1;
    }

    fn follow(&mut self, layer: u8, id: Option<ReceiverId>) {
        self.followed[usize::from(layer)].0 = id;
        self.followed[usize::from(layer)].2 += 1;
    }

    fn stand(&mut self, layer: u8, standing: LayerState) {
        self.states = self.states.with(Layer(layer), standing);
    }

    /// Joins the next layer by comparisons at the representative's losses.
    fn climb(&mut self) {
        let top = self.receiver.subscription().0;
        self.packet(top, Span::from_millis(10), 0);
        while self.receiver.subscription().0 == top {
            self.others_loss(top);
        }
    }
}

fn joins(effects: &[Effect]) -> Vec<u8> {
    let layers = effects.iter().filter_map(|effect| match effect {
        Effect::Subscribe(layer) => Some(layer.0),
        _ => None,
    });
    layers.collect()
}

fn causes(effects: &[Effect]) -> Vec<(u8, Cause)> {
    let reports = effects.iter().filter_map(|effect| match effect {
        Effect::Report(Report { layer, content: ReportContent::Averaged { cause, .. }, .. }) => {
            Some((layer.0, *cause))
        }
        _ => None,
    });
    reports.collect()
}

/// Packets arrive at 0.8 of 1 Mbit/s with one loss per second, so the factor is 1 - 0.8.
#[test]
fn the_attenuation_factor_uses_the_two_packets_before_a_loss() {
    let mut hand = Hand::new(short());
    hand.losses(0, 3);
    let (mean, deviation, samples) = hand.receiver.attenuation(Layer(0)).expect("joined");
    assert!((mean - 0.2).abs() < 1e-6 && deviation < 1e-6, "{mean} {deviation}");
    assert_eq!(samples, 2, "the first loss has no interval before it");
}

#[test]
fn the_attenuation_factor_uses_a_window_if_times_are_uncertain() {
    let mut hand = Hand::new(Config { samples: 4, ..Config::transport(SIZE) });
    for turn in 0..600u32 {
        // Bursts of four packets, with one in 100 packets lost: the interval of one pair is meaningless.
        let gap = if turn.is_multiple_of(4) { Span::from_millis(40) } else { Span::from_micros(3) };
        hand.packet(0, gap, u32::from(turn % 100 == 99));
    }
    let (mean, _, samples) = hand.receiver.attenuation(Layer(0)).expect("joined");
    // 0.8 of 1 Mbit/s arrives, with one loss per second: the expected value is 0.2, apart from edge effects of the window.
    assert!(samples == 4 && (0.1..0.35).contains(&mean), "{mean} of {samples}");
}

#[test]
fn join_needs_n_samples_and_j_consecutive_comparisons() {
    let mut hand = Hand::new(short());
    let before = hand.losses(0, 6);
    assert_eq!(joins(&before), [], "a loss without an interval, then 4 samples, of them 2 comparisons");
    assert_eq!(joins(&hand.loss(0)), [1]);
    assert_eq!(hand.receiver.counts().joins_at_own, 1);
}

#[test]
fn comparison_against_a_join_restarts_the_count_of_comparisons() {
    let mut hand = Hand::new(short());
    hand.losses(0, 6);
    hand.say(0, 0.3);
    assert_eq!(joins(&hand.loss(0)), [], "less than twice 0.2");
    hand.say(0, 10.0);
    assert_eq!(joins(&hand.losses(0, 2)), []);
    assert_eq!(joins(&hand.loss(0)), [1]);
}

#[test]
fn no_join_if_the_representative_has_too_few_samples() {
    let mut hand = Hand::new(short());
    hand.stand(0, LayerState::Followed);
    assert_eq!(joins(&hand.losses(0, 20)), []);
    (0..10).for_each(|_| assert_eq!(joins(&hand.others_loss(0)), []));
}

#[test]
fn loss_free_receiver_joins_a_layer_when_representative_loses() {
    let mut hand = Hand::new(short());
    hand.packet(0, RTT, 0);
    assert_eq!(joins(&hand.others_loss(0)), []);
    assert_eq!(joins(&hand.others_loss(0)), []);
    assert_eq!(joins(&hand.others_loss(0)), [1]);
    assert_eq!(hand.receiver.counts().joins_at_others, 1);
}

/// A real loss at this receiver replaces the loss assumed for it, and does not restart the count of comparisons.
#[test]
fn own_loss_replaces_an_assumed_loss() {
    let mut hand = Hand::new(short());
    hand.packet(0, RTT, 0);
    hand.others_loss(0);
    hand.others_loss(0);
    hand.loss(0);
    assert_eq!(joins(&hand.others_loss(0)), [], "the loss before it was real");
    assert_eq!(joins(&hand.others_loss(0)), [1], "the third in favour");
}

#[test]
fn old_losses_prevent_a_join_if_assumed_samples_are_discarded() {
    for (assumed, joined) in [(Assumed::Once, 0), (Assumed::Each, 1)] {
        let mut hand = Hand::new(Config { assumed, ..short() });
        hand.followed[0].1 = 0.25;
        hand.losses(0, 10);
        (0..40).for_each(|_| drop(hand.others_loss(0)));
        assert_eq!(hand.receiver.subscription(), Layer(joined), "{assumed:?}");
    }
}

#[test]
fn no_layer_is_joined_while_a_layer_lacks_a_representative() {
    let mut hand = Hand::new(short());
    hand.stand(3, LayerState::Open);
    assert_eq!(joins(&hand.losses(0, 7)), []);
    assert_eq!(hand.receiver.counts().vetoes, 1);
    hand.stand(3, LayerState::Off);
    assert_eq!(joins(&hand.losses(0, 2)), [], "the count began anew");
    assert_eq!(joins(&hand.loss(0)), [1]);
}

#[test]
fn representative_of_any_layer_joins_no_layer() {
    let mut hand = Hand::new(short());
    hand.climb();
    hand.stand(1, LayerState::Settled);
    hand.follow(0, Some(ME));
    hand.packet(0, RTT, 0);
    hand.packet(1, RTT, 0);
    for _ in 0..9 {
        assert_eq!(joins(&hand.others_loss(1)), []);
    }
    assert_eq!(hand.receiver.counts().vetoes, 3);
}

#[test]
fn receiver_that_may_become_representative_joins_no_layer() {
    let mut hand = Hand::new(short());
    hand.climb();
    hand.stand(1, LayerState::Settled);
    hand.say(0, 0.01);
    hand.losses(0, 3);
    hand.packet(1, RTT, 0);
    (0..9).for_each(|_| assert_eq!(joins(&hand.others_loss(1)), []));
    assert_eq!(hand.receiver.counts().vetoes, 3);
}

#[test]
fn receiver_joins_the_next_layer_after_harmless_rate_shifts() {
    for (mean, expected) in [(10.0, vec![1]), (0.1, vec![])] {
        let mut hand = Hand::new(Config { comparisons: 200, ..short() });
        hand.stand(1, LayerState::Settled);
        hand.followed[0].1 = mean;
        let steady = hand.losses(0, 4);
        assert_eq!(joins(&steady), []);
        let shifted: Vec<Effect> = (0..4).flat_map(|_| hand.loss_with(0, Signal::Gains)).collect();
        assert_eq!(joins(&shifted), expected, "at 0.1 it may become the representative");
    }
}

#[test]
fn rate_shifts_cause_no_join_while_the_next_layer_is_off() {
    let mut hand = Hand::new(Config { comparisons: 200, ..short() });
    hand.losses(0, 4);
    let shifted: Vec<Effect> = (0..8).flat_map(|_| hand.loss_with(0, Signal::Gains)).collect();
    assert_eq!(joins(&shifted), []);
}

#[test]
fn joined_layer_is_requested_until_its_first_packet() {
    let mut hand = Hand::new(short());
    hand.packet(0, RTT, 0);
    hand.others_loss(0);
    hand.others_loss(0);
    let joined = hand.others_loss(0);
    assert_eq!((joins(&joined), causes(&joined)), (vec![1], vec![(1, Cause::Joining)]));
    assert_eq!(causes(&hand.wait(Span::from_millis(350))), [(1, Cause::Joining); 3]);
    hand.follow(1, Some(ME));
    hand.stand(1, LayerState::Followed);
    hand.packet(1, RTT, 0);
    assert_eq!(causes(&hand.wait(Span::from_micros(1))).first(), Some(&(1, Cause::Heartbeat)));
    assert_eq!(hand.receiver.counts().requests, 5, "one more while the packet was on its way");
}

#[test]
fn layer_without_packets_is_left_and_not_rejoined_soon() {
    let mut hand = Hand::new(short());
    hand.climb();
    let effects = hand.wait(Span::from_secs(3));
    assert_eq!(causes(&effects).len(), 19, "twenty in all");
    assert_eq!(joins(&effects), [0]);
    let left_at = hand.now;
    hand.packet(0, RTT, 0);
    while hand.receiver.subscription() == Layer(0) {
        hand.others_loss(0);
    }
    assert!(hand.now.since(left_at) > Span::from_secs(5));
}

#[test]
fn representative_sends_a_heartbeat_per_rtt_without_losses() {
    let mut hand = Hand::new(short());
    hand.follow(0, Some(ME));
    hand.packet(0, RTT, 0);
    assert_eq!(causes(&hand.wait(Span::from_millis(1050))), [(0, Cause::Heartbeat); 11], "the first at once");
    let lost = hand.packet(0, Span::from_millis(10), 1);
    assert_eq!(causes(&lost), [(0, Cause::Loss)]);
    assert_eq!(causes(&hand.wait(Span::from_millis(99))), [], "the loss stands for it");
    assert_eq!(causes(&hand.wait(Span::from_millis(2))), [(0, Cause::Heartbeat)]);
    hand.follow(0, Some(OTHER));
    hand.packet(0, Span::from_millis(10), 0);
    assert_eq!(hand.wait(Span::from_secs(5)), [], "another one is followed now");
}

#[test]
fn no_heartbeats_are_sent_after_ten_seconds_without_packets() {
    let mut hand = Hand::new(short());
    hand.follow(0, Some(ME));
    hand.packet(0, RTT, 0);
    let beats = causes(&hand.wait(Span::from_secs(60))).len();
    assert!((100..103).contains(&beats), "{beats}: for ten seconds");
    assert!(hand.receiver.deadline().is_never());
}

#[test]
fn receiver_reports_losses_only_if_worse_than_representative() {
    let mut hand = Hand::new(short());
    let quiet = hand.losses(0, 6);
    assert_eq!(causes(&quiet), [], "0.2 against 10");
    hand.say(0, 0.19);
    let mut effects = hand.loss(0);
    effects.extend(hand.wait(RTT * 2));
    assert_eq!(causes(&effects), [], "less than a quarter more");
    assert_eq!((hand.receiver.counts().losses, hand.receiver.suppressed()), (0, 7));
    hand.say(0, 0.15);
    let mut effects = hand.loss(0);
    effects.extend(hand.wait(RTT * 2));
    assert_eq!(causes(&effects), [(0, Cause::Loss)]);
}

#[test]
fn all_receivers_report_while_no_representative_is_named() {
    let mut hand = Hand::new(short());
    hand.packet(0, RTT, 0);
    hand.follow(0, None);
    hand.packet(0, RTT, 0);
    assert_eq!(causes(&hand.wait(RTT * 2)), [(0, Cause::Heartbeat)]);
    hand.packet(0, RTT, 0);
    assert!(!hand.receiver.deadline().is_never(), "still nobody");
    hand.follow(0, Some(THIRD));
    hand.packet(0, Span::from_micros(1), 0);
    assert!(hand.receiver.deadline().is_never());
    assert_eq!(hand.receiver.suppressed(), 1);
}

#[test]
fn no_heartbeat_is_sent_before_the_first_representative() {
    let mut hand = Hand::new(short());
    hand.followed[0] = (None, f32::INFINITY, 0);
    hand.packet(0, RTT, 0);
    hand.packet(0, RTT, 0);
    assert!(hand.receiver.deadline().is_never());
    hand.packet(0, RTT, 1);
    assert_eq!(causes(&hand.wait(RTT * 2)), [(0, Cause::Loss)]);
}

#[test]
fn a_receiver_that_limits_two_layers_leaves_the_upper_one() {
    let mut hand = Hand::new(Config { farewell: LeaveNotice::Reported, ..short() });
    hand.climb();
    hand.stand(1, LayerState::Settled);
    hand.follow(0, Some(ME));
    hand.follow(1, Some(ME));
    hand.losses(0, 10);
    assert_eq!(joins(&hand.losses(1, 4)), [], "three samples of the upper layer are not enough");
    let effects = hand.loss(1);
    assert_eq!(joins(&effects), [0]);
    assert!(causes(&effects).contains(&(1, Cause::Leaving)));
    assert_eq!(joins(&hand.losses(0, 20)), []);
}

/// A source without receivers; the test plays their role.
type Desk = Bench<Source>;

impl Desk {
    fn new(config: Config) -> Desk {
        Bench::by_hand(Source::new(config), SIZE)
    }

    /// Returns an echo of the newest packet of a layer. The echo yields no round-trip sample.
    fn answer(&self, layer: u8) -> Echo {
        Echo { seq: Seq(self.newest_seq(layer)), hold: Span::MAX }
    }

    fn newest_seq(&self, layer: u8) -> u64 {
        self.newest(layer).map_or(0, |sent| sent.stamp.seq.0)
    }

    fn receive(
        &mut self,
        layer: u8,
        from: ReceiverId,
        cause: Cause,
        (mean, deviation, samples): (f32, f32, u16),
    ) {
        let echo = self.answer(layer);
        let content = ReportContent::Averaged { echo, mean, deviation, samples, rate: 0.0, cause };
        self.report_about(Layer(layer), from, content);
    }

    fn beats(&mut self, layers: u8, from: ReceiverId, count: u32) {
        for _ in 0..count {
            (0..layers).for_each(|layer| self.receive(layer, from, Cause::Heartbeat, (1.0, 0.1, 30)));
            self.run_for(RTT);
        }
    }

    fn standing(&mut self, layer: u8) -> LayerState {
        self.run_for(RTT * 2);
        let sent = self.newest(0).expect("the base layer sends");
        let Mark::Layered { states, .. } = sent.stamp.mark else { panic!("{sent:?}") };
        states.of(Layer(layer))
    }

    fn signal(&self, layer: usize) -> Signal {
        self.newest(layer as u8).map_or(Signal::None, |sent| sent.stamp.signal)
    }

    fn layer_rate(&self, layer: u8) -> f64 {
        self.source.layer_rate(Layer(layer)).bps()
    }

    fn mode(&self, layer: usize) -> Mode {
        self.source.control_of(layer).mode()
    }
}

#[test]
fn layer_rate_grows_by_a_packet_and_halves_at_most_once_per_rtt() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(2));
    let before = desk.layer_rate(0);
    assert!((before / 8e4 - 21.0).abs() < 1.1, "{before}");
    desk.receive(0, OTHER, Cause::Loss, (1.0, 0.0, 1));
    assert!((desk.layer_rate(0) / before - 0.5).abs() < 1e-9);
    desk.run_for(Span::from_micros(10));
    desk.receive(0, OTHER, Cause::Loss, (1.1, 0.0, 2));
    assert!((desk.layer_rate(0) / before - 0.5).abs() < 1e-9);
}

/// Heartbeats find a shorter queue than losses. With it, a layer would grow faster than TCP.
#[test]
fn published_round_trip_time_is_measured_at_losses_only() {
    let rtt_after_heartbeats = |config| {
        let mut desk = Desk::new(config);
        desk.run_for(Span::from_secs(1));
        let lost = Echo { seq: Seq(desk.newest_seq(0)), hold: Span::ZERO };
        desk.run_for(Span::from_millis(500));
        let mut report = |cause, echo| {
            let (mean, deviation, samples, rate) = (1.0, 0.1, 30, 0.0);
            let content = ReportContent::Averaged { echo, mean, deviation, samples, rate, cause };
            desk.report_about(Layer(0), OTHER, content);
        };
        report(Cause::Loss, lost);
        report(Cause::Heartbeat, Echo { hold: Span::from_millis(490), ..lost });
        desk.source.control_of(0).control_rtt()
    };
    assert!(rtt_after_heartbeats(Config::published()) >= Span::from_millis(500));
    assert!(rtt_after_heartbeats(Config::transport(SIZE)) < Span::from_millis(500));
}

#[test]
fn only_a_significantly_worse_receiver_becomes_representative() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    desk.receive(0, OTHER, Cause::Loss, (1.0, 0.1, 30));
    desk.run_for(RTT);
    for (report, follows) in [((1.2, 0.1, 30), OTHER), ((5.0, 0.1, 29), OTHER), ((1.4, 0.1, 30), THIRD)] {
        desk.receive(0, THIRD, Cause::Loss, report);
        assert_eq!(desk.source.observe().limiting, Some(follows), "{report:?}");
    }
}

#[test]
fn receiver_with_a_sample_replaces_representative_without_any() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    desk.receive(0, OTHER, Cause::Loss, (0.0, 0.0, 0));
    desk.receive(0, THIRD, Cause::Loss, (0.5, 0.0, 1));
    assert_eq!(desk.source.observe().limiting, Some(THIRD));
}

#[test]
fn layer_is_on_from_a_request_until_its_receivers_are_silent() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    assert_eq!((desk.layer_rate(1), desk.source.departure(Layer(1))), (0.0, Departure::At(Time::NEVER)));
    desk.receive(1, OTHER, Cause::Joining, (0.0, 0.0, 0));
    assert_eq!(desk.layer_rate(1), 8e4, "a packet per round-trip time");
    assert_eq!(desk.standing(1), LayerState::Followed);
    desk.run_for(Span::from_secs(10));
    assert_eq!(desk.layer_rate(1), 0.0);
    assert_eq!(desk.standing(1), LayerState::Off);
    assert_eq!(desk.standing(0), LayerState::Open);
}

/// The steps take 8, 4 and 20 round-trip times.
#[test]
fn source_requests_reports_then_slows_then_stops_silent_layer() {
    let mut desk = Desk::new(Config { sending: crate::rate::Sending::published(), ..Config::published() });
    desk.run_for(Span::from_secs(1));
    desk.receive(1, OTHER, Cause::Joining, (0.0, 0.0, 0));
    let (millis, slack) = (Span::from_millis, Span::from_millis(5));
    desk.run_for(millis(800).saturating_sub(slack));
    assert_eq!(desk.mode(1), Mode::On);
    desk.run_for(slack * 2);
    assert!(matches!(desk.mode(1), Mode::Seek { .. }));
    assert!(desk.layer_rate(1) > 5.0 * 8e4, "the rate is not touched yet");
    desk.run_for(millis(400));
    assert!(matches!(desk.mode(1), Mode::Low { .. }));
    assert_eq!(desk.layer_rate(1), 8e4);
    desk.run_for(millis(1980));
    assert!(matches!(desk.mode(1), Mode::Low { .. }));
    assert_eq!(desk.layer_rate(1), 8e4, "no growth");
    desk.run_for(millis(30));
    assert_eq!(desk.mode(1), Mode::Off);
}

#[test]
fn base_layer_never_stops_and_recovers_after_a_report() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    desk.receive(0, OTHER, Cause::Loss, (1.0, 0.1, 30));
    desk.run_for(Span::from_secs(60));
    assert!(matches!(desk.mode(0), Mode::Low { .. }));
    assert!(desk.layer_rate(0) > 0.0);
    let low = desk.layer_rate(0);
    desk.receive(0, THIRD, Cause::Heartbeat, (0.0, 0.0, 0));
    assert_eq!((desk.mode(0), desk.layer_rate(0)), (Mode::On, low));
    assert_eq!(desk.source.observe().limiting, Some(THIRD));
}

#[test]
fn requests_switch_layers_on_in_ascending_order_up_to_the_limit() {
    let mut desk = Desk::new(Config { layers: 3, ..Config::published() });
    desk.run_for(Span::from_secs(1));
    for (asked, on) in [(2, 1), (1, 2), (2, 3), (3, 3), (9, 3)] {
        desk.receive(asked.min(7), OTHER, Cause::Joining, (0.0, 0.0, 0));
        let count = (0..8).filter(|layer| desk.layer_rate(*layer) > 0.0).count();
        assert_eq!(count, on, "after {asked} was asked for");
    }
}

#[test]
fn representative_that_leaves_is_replaced_immediately() {
    let mut desk = Desk::new(Config::transport(SIZE));
    desk.run_for(Span::from_secs(1));
    desk.receive(0, OTHER, Cause::Loss, (1.0, 0.1, 30));
    desk.receive(0, OTHER, Cause::Leaving, (1.0, 0.1, 30));
    assert!(matches!(desk.mode(0), Mode::Seek { .. }));
    desk.receive(0, THIRD, Cause::Heartbeat, (0.0, 0.0, 0));
    desk.call(|source, cx| source.control(crate::node::SourceControl::Forget(THIRD), cx.now));
    assert!(matches!(desk.mode(0), Mode::Seek { .. }));
}

#[test]
fn rate_shifts_move_a_tenth_of_the_rate_in_a_tenth_of_periods() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    (1..4).for_each(|layer| desk.receive(layer, OTHER, Cause::Joining, (0.0, 0.0, 0)));
    desk.run_for(RTT * 5);
    let (mut periods, mut shifted) = (0, 0);
    for turn in 0..6000u32 {
        desk.beats(4, OTHER, 2);
        let (layer, before) = ((turn % 4) as u8, desk.source.gaining());
        desk.receive(layer, OTHER, Cause::Loss, (1.0, 0.1, 30));
        let gaining = desk.source.gaining();
        if layer < 3 && before.is_none_or(|before| before == Layer(layer)) {
            periods += 1;
            shifted += u32::from(gaining.is_some());
        }
        let lambdas: f64 = (0..4).map(|l| desk.source.control_of(l).lambda().bps()).sum();
        let sent: f64 = (0..4).map(|l| desk.layer_rate(l)).sum();
        assert!((sent / lambdas - 1.0).abs() < 1e-9, "nothing is added in all");
        if let Some(Layer(gains)) = gaining {
            let own = desk.source.control_of(usize::from(gains)).lambda().bps();
            assert!((desk.layer_rate(gains) / own - 1.1).abs() < 1e-9);
            desk.run_for(RTT);
            let (gains, gives) = (usize::from(gains), usize::from(gains) + 1);
            assert_eq!((desk.signal(gains), desk.signal(gives)), (Signal::Gains, Signal::Gives));
            let others = (0..4).filter(|layer| *layer != gains && *layer != gives);
            assert!(others.into_iter().all(|layer| desk.signal(layer) == Signal::None));
        }
    }
    let part = f64::from(shifted) / f64::from(periods);
    assert!((0.08..0.12).contains(&part), "{part} of {periods}");
}

#[test]
fn maximum_rate_limits_the_sum_of_all_layers() {
    let mut desk = Desk::new(Config::published());
    let bounds = Bounds { min: Rate::from_bps(8000.0), max: Rate::from_mbps(1.0) };
    desk.call(|source, cx| source.control(crate::node::SourceControl::Limits(bounds), cx.now));
    desk.receive(0, OTHER, Cause::Loss, (1.0, 0.1, 30));
    desk.beats(1, OTHER, 3);
    desk.receive(1, OTHER, Cause::Joining, (0.0, 0.0, 0));
    desk.beats(2, OTHER, 200);
    let (sum, base) = (desk.source.observe().rate.bps(), desk.layer_rate(0));
    assert!(sum < 1.01e6 && base > 0.99e6, "{base} of {sum}");
}

#[test]
fn each_layer_scheme_cuts_the_rate_by_its_own_factor() {
    for (control, kept) in [(LayerScheme::Aimd, 0.5), (LayerScheme::Ormcc, 0.75 * 0.9)] {
        let mut desk = Desk::new(Config { control, ..Config::published() });
        desk.run_for(Span::from_secs(3));
        let before = desk.layer_rate(0);
        let echo = Echo { hold: Span::ZERO, ..desk.answer(0) };
        let rate = (before * 0.9) as f32;
        let content =
            ReportContent::Averaged { echo, mean: 1.0, deviation: 0.1, samples: 1, rate, cause: Cause::Loss };
        desk.report_about(Layer(0), OTHER, content);
        assert!((desk.layer_rate(0) / before - kept).abs() < 1e-6, "{control:?}");
    }
}

/// Acknowledges all packets sent on the base layer.
fn acknowledge(desk: &mut Desk) {
    let echo = Echo { hold: Span::ZERO, ..desk.answer(0) };
    let content = ReportContent::Selective { echo, behind: 0, bitmap: u32::MAX, loss: 0.0 };
    desk.report_about(Layer(0), OTHER, content);
}

#[test]
fn layer_with_a_window_sends_when_acknowledgements_arrive() {
    let mut desk = Desk::new(Config { control: LayerScheme::Pgmcc, ..Config::published() });
    desk.run_for(Span::from_millis(500));
    assert_eq!(desk.newest_seq(0), 0, "one packet");
    assert_eq!(desk.source.departure(Layer(0)), Departure::AfterReport);
    desk.receive(0, OTHER, Cause::Heartbeat, (0.0, 0.0, 0));
    assert_eq!(desk.source.observe().limiting, Some(OTHER));
    for _ in 0..10 {
        desk.run_for(RTT);
        acknowledge(&mut desk);
    }
    let opened = desk.newest_seq(0);
    assert!(opened > 15, "{opened}: the window opens");
    desk.run_for(Span::from_millis(150));
    let waiting = desk.newest_seq(0);
    desk.run_for(Span::from_millis(40));
    assert_eq!(desk.newest_seq(0), waiting, "nothing without acknowledgements");
    desk.run_for(Span::from_secs(10));
    assert!(desk.newest_seq(0) > waiting, "but after a timeout");
}

#[test]
fn representative_of_a_window_scheme_acknowledges_every_packet() {
    let mut hand = Hand::new(Config { control: LayerScheme::Pgmcc, ..short() });
    hand.follow(0, Some(ME));
    for _ in 0..5 {
        let effects = hand.packet(0, Span::from_millis(10), 0);
        let acknowledges = |effect: &Effect| {
            matches!(effect, Effect::Report(Report { content: ReportContent::Selective { .. }, .. }))
        };
        assert!(effects.iter().any(acknowledges), "{effects:?}");
    }
}

#[test]
fn absurd_reports_are_ignored() {
    let mut desk = Desk::new(Config::published());
    desk.run_for(Span::from_secs(1));
    let before = desk.layer_rate(0);
    for (mean, deviation) in [(f32::NAN, 0.0), (f32::INFINITY, 0.0), (-1.0, 0.0), (1.0, f32::NAN)] {
        desk.receive(0, OTHER, Cause::Loss, (mean, deviation, 30));
    }
    let echo = Echo { seq: Seq(desk.newest_seq(0) + 1000), hold: Span::MAX };
    let cause = Cause::Loss;
    let content = ReportContent::Averaged { echo, mean: 1.0, deviation: 0.1, samples: 30, rate: 0.0, cause };
    desk.report_about(Layer(0), OTHER, content);
    assert_eq!((desk.layer_rate(0), desk.source.observe().limiting), (before, None));
}
