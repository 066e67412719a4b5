//! SMCC's tests: first the source's layers, then the receiver's choice of layers.

use super::{Config, Joins, Receiver, Source};
use crate::node::{Cx, Departure, Effect, Effects, Receiver as _, Source as _, SourceControl};
use crate::packet::{Arrival, Cause, Data, Echo, Knows, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::Bounds;
use crate::rng::Rng;
use crate::schemes::bench::{Bench, data};
use crate::time::{Rate, Span, Time};

fn at(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

fn me() -> ReceiverId {
    ReceiverId::new(7).expect("not zero")
}

fn mbps(rate: f64) -> Rate {
    Rate::from_mbps(rate)
}

#[test]
fn receivers_of_3_and_100_mbit_need_two_and_seven_layers() {
    let config = Config::published();
    assert_eq!([0, 1, 2, 6].map(|layer| config.cap_of(layer)), [1.0, 2.0, 4.0, 64.0].map(mbps));
    let needed = |rate: f64| (0..8).take_while(|&layer| config.cap_below(layer).bps() < rate * 1e6).count();
    assert_eq!((needed(3.0), needed(100.0)), (2, 7));
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 1000)
    }

    /// Returns the number of this layer's newest packet.
    fn number(&self, layer: u8) -> Seq {
        self.newest(layer).map_or(Seq(0), |sent| sent.stamp.seq)
    }

    /// Runs until `end`. A receiver 50 ms away reports this rate for each of these layers every 50 ms.
    fn run_with_reports(&mut self, end: f64, layers: &[u8], rate: Rate) {
        while self.now < at(end) {
            let newest: Vec<Seq> = (0..8).map(|layer| self.number(layer)).collect();
            self.run_for(Span::from_millis(50));
            for &layer in layers {
                let echo = Echo { seq: newest[usize::from(layer)], hold: Span::ZERO };
                let (rate, stamp, knows) = (rate.bps() as f32, 0, Knows::RTT.with(Knows::LOSS));
                let content = ReportContent::Calculated { echo, rate, stamp, round: 0, knows };
                self.report_about(Layer(layer), me(), content);
            }
        }
    }

    fn ask_for(&mut self, layer: u8) {
        self.ask_for_at(layer, 0.0);
    }

    /// Delivers a request for a layer, from a receiver that can take `rate` bit/s of it.
    fn ask_for_at(&mut self, layer: u8, rate: f32) {
        let echo = Echo { seq: Seq(0), hold: Span::MAX };
        let content = ReportContent::Averaged {
            echo,
            mean: 0.0,
            deviation: 0.0,
            samples: 0,
            rate,
            cause: Cause::Joining,
        };
        self.report_about(Layer(layer), me(), content);
    }

    fn on(&self) -> Vec<u8> {
        (0..8).filter(|&layer| self.source.layer_rate(Layer(layer)).bps() > 0.0).collect()
    }
}

#[test]
fn enhancement_layer_is_sent_only_while_its_reports_arrive() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(2.0));
    assert_eq!((sender.on(), sender.source.departure(Layer(1))), (vec![0], Departure::At(Time::NEVER)));
    sender.ask_for(1);
    assert_eq!(sender.on(), [0, 1]);
    sender.run_with_reports(20.0, &[0, 1], mbps(0.5));
    assert_eq!(sender.on(), [0, 1]);
    let numbers = sender.number(1);
    sender.run_with_reports(29.0, &[0], mbps(0.5));
    assert_eq!(sender.on(), [0, 1], "not yet");
    sender.run_with_reports(31.0, &[0], mbps(0.5));
    assert_eq!(sender.on(), [0]);
    sender.run_until(at(60.0));
    assert_eq!(sender.on(), [0], "the base layer stays");
    sender.ask_for(1);
    sender.run_until(at(62.0));
    assert!(sender.number(1) > numbers, "numbers go on where they stopped");
}

#[test]
fn no_layer_is_sent_above_its_highest_rate() {
    let mut sender = Sender::new(Config::published());
    sender.run_until(at(0.5));
    sender.ask_for(2);
    sender.run_with_reports(120.0, &[0, 1, 2], mbps(50.0));
    let rates = [0, 1, 2].map(|layer| sender.source.layer_rate(Layer(layer)));
    assert_eq!(rates, [1.0, 2.0, 4.0].map(mbps));
    assert_eq!(sender.source.observe().rate, mbps(7.0));
}

#[test]
fn join_slows_a_layer_to_no_less_than_a_fifth_of_its_maximum() {
    for (config, wanted, room) in [
        (Config::published(), 0.8, 2.0),
        (Config::transport(1000), 0.8, 0.8),
        (Config::transport(1000), 0.1, 0.4),
    ] {
        let mut sender = Sender::new(config);
        sender.run_until(at(0.5));
        sender.ask_for(1);
        sender.run_with_reports(60.0, &[0, 1], mbps(50.0));
        assert_eq!(sender.source.layer_rate(Layer(1)), mbps(2.0));
        sender.ask_for_at(1, wanted * 1e6);
        let rate = sender.source.layer_rate(Layer(1));
        assert!((rate.bps() / mbps(room).bps() - 1.0).abs() < 1e-6, "{rate}");
    }
}

#[test]
fn base_layer_rate_is_unchanged_by_a_request_for_it() {
    let mut sender = Sender::new(Config::transport(1000));
    sender.run_until(at(0.5));
    sender.run_with_reports(60.0, &[0], mbps(50.0));
    let before = sender.source.layer_rate(Layer(0));
    sender.ask_for_at(0, 100.0);
    assert_eq!(sender.source.layer_rate(Layer(0)), before);
}

#[test]
fn session_limits_reduce_top_layers_and_raise_the_base_layer() {
    for (min, max, rates) in
        [(0.01, 2.5, [1.0, 1.5, 0.0]), (0.01, 0.5, [0.5, 0.0, 0.0]), (2.0, 6.0, [2.0, 2.0, 2.0])]
    {
        let mut sender = Sender::new(Config::published());
        sender.source.control(SourceControl::Limits(Bounds { min: mbps(min), max: mbps(max) }), Time::ZERO);
        sender.run_until(at(0.5));
        sender.ask_for(2);
        sender.run_with_reports(120.0, &[0, 1, 2], mbps(50.0));
        assert_eq!(
            [0, 1, 2].map(|layer| sender.source.layer_rate(Layer(layer))),
            rates.map(mbps),
            "{min} to {max}"
        );
    }
}

/// A receiver whose layers each arrive at a steady rate, with feedback rounds of 20 ms.
struct Fed {
    receiver: Receiver,
    rng: Rng,
    effects: Effects,
    now: Time,
    next: [Seq; 8],
    due: [Time; 8],
    levels: Vec<(Time, u8)>,
    asks: Vec<Time>,
    reports: Vec<(Layer, f64)>,
}

impl Fed {
    fn new() -> Fed {
        Fed::with(&Config::published())
    }

    fn with(config: &Config) -> Fed {
        Fed {
            receiver: Receiver::new(me(), config),
            rng: Rng::new(4, 4),
            effects: Effects::new(),
            now: Time::ZERO,
            next: [Seq(0); 8],
            due: [Time::ZERO; 8],
            levels: Vec::new(),
            asks: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// Delivers packets of the layers at these rates in Mbit/s. Each packet is lost with probability `loss`.
    fn feed(&mut self, seconds: f64, rates: &[f64], loss: f64) {
        let end = self.now + Span::from_secs_f64(seconds);
        let mut lost = [0; 8];
        self.due.fill(self.now);
        loop {
            let layer = (0..rates.len()).min_by_key(|&layer| self.due[layer]).expect("some layer");
            let next = self.due[layer].min(self.receiver.deadline()).max(self.now);
            if next >= end {
                self.now = end;
                return;
            }
            self.now = next;
            if self.receiver.deadline() <= next {
                self.call(|receiver, cx| receiver.on_deadline(cx));
                continue;
            }
            self.due[layer] += mbps(rates[layer]).span_of(1000);
            let seq = self.next[layer];
            self.next[layer] = seq.next();
            if layer > usize::from(self.receiver.level()) {
                continue;
            }
            if self.rng.chance(loss) {
                lost[layer] += 1;
                continue;
            }
            let data = self.packet(seq, rates[layer]);
            let arrival =
                Arrival { size: 1000, lost: std::mem::take(&mut lost[layer]), ..Arrival::default() };
            self.call(|receiver, cx| receiver.on_data(&data, Layer(layer as u8), arrival, cx));
        }
    }

    fn packet(&self, seq: Seq, rate: f64) -> Data {
        let mark = Mark::Equation {
            suppress_above: f32::INFINITY,
            rtt_max: 0.05,
            round: (self.now.as_nanos() / 300_000_000) as u8,
            to: None,
            echo: 0,
            limiting: false,
        };
        let sent_at = self.now - Span::from_millis(25);
        Data { rate: rate as f32 * 1e6, ..data(seq.0, sent_at, mark) }
    }

    fn call(&mut self, act: impl FnOnce(&mut Receiver, &mut Cx<'_>)) {
        let cx = &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut self.effects };
        act(&mut self.receiver, cx);
        for effect in self.effects.drain() {
            match effect {
                Effect::Subscribe(Layer(level)) => self.levels.push((self.now, level)),
                Effect::Report(Report { content: ReportContent::Averaged { .. }, .. }) => {
                    self.asks.push(self.now)
                }
                Effect::Report(Report { layer, content: ReportContent::Calculated { rate, .. }, .. }) => {
                    self.reports.push((layer, f64::from(rate) / 1e6));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn levels(&self) -> Vec<u8> {
        self.levels.iter().map(|change| change.1).collect()
    }
}

#[test]
fn receiver_joins_a_layer_after_a_round_above_its_highest_rate() {
    // Without loss the estimate is twice the received rate.
    for (rate, joins) in [(0.45, 0), (0.6, 1)] {
        let mut fed = Fed::new();
        fed.feed(1.5, &[rate], 0.0);
        assert_eq!(fed.levels.len(), joins, "{rate}");
        assert!(
            fed.levels.iter().all(|change| (0.6..1.0).contains(&change.0.as_secs_f64())),
            "{:?}",
            fed.levels
        );
    }
}

#[test]
fn reports_state_the_estimate_minus_the_lower_layers() {
    let mut fed = Fed::new();
    fed.feed(1.0, &[1.0], 0.0);
    fed.feed(2.0, &[1.0, 1.0], 0.0);
    assert_eq!(fed.levels(), [1, 2], "four is more than 1 + 2");
    let estimate = fed.receiver.estimate(fed.now).bps() / 1e6;
    assert!((3.5..4.5).contains(&estimate), "{estimate}");
    let of =
        |layer: u8| fed.reports.iter().rev().find(|report| report.0 == Layer(layer)).expect("reported").1;
    assert!((of(0) - estimate).abs() < 0.4 && (of(1) - (estimate - 1.0)).abs() < 0.4, "{:?}", fed.reports);
}

#[test]
fn receiver_leaves_layers_if_lower_layers_use_its_estimate() {
    let mut fed = Fed::new();
    fed.feed(1.0, &[1.0], 0.0);
    fed.feed(1.0, &[1.0, 1.9], 0.0);
    assert_eq!(fed.receiver.level(), 2);
    fed.feed(10.0, &[1.0, 1.9, 0.5], 0.1);
    assert_eq!(fed.levels(), [1, 2, 1, 0]);
    assert!(fed.receiver.estimate(fed.now).bps() < 1e6);
}

#[test]
fn initial_losses_without_later_losses_are_forgotten() {
    let rounds = Config { joins: Joins::Rounds, ..Config::transport(1000) };
    for (config, joins) in [(rounds, 0), (Config::transport(1000), 1)] {
        let mut fed = Fed::with(&config);
        fed.feed(0.1, &[0.5], 0.0);
        fed.feed(0.6, &[0.5], 0.5);
        let estimate = fed.receiver.estimate(fed.now);
        assert!(estimate.bps() < 0.7e6, "{estimate}");
        fed.feed(0.8, &[0.7], 0.0);
        assert_eq!(fed.levels.len(), joins, "{estimate} then {}", fed.receiver.estimate(fed.now));
    }
}

#[test]
fn a_receiver_leaves_a_layer_below_its_minimum_rate() {
    let mut fed = Fed::with(&Config::transport(1000));
    fed.feed(0.5, &[1.0], 0.0);
    fed.feed(0.5, &[1.0, 1.0], 0.0);
    assert_eq!(fed.levels()[0], 1);
    fed.feed(10.0, &[1.0, 1.0, 1.0], 0.1);
    let estimate = fed.receiver.estimate(fed.now);
    assert!(fed.receiver.level() == 0 && estimate.bps() < 1.5e6, "{:?} {estimate}", fed.levels());
}

#[test]
fn layer_without_packets_is_requested_and_then_left() {
    let mut fed = Fed::new();
    fed.feed(20.0, &[1.0], 0.0);
    assert_eq!(fed.levels(), [1, 0]);
    assert_eq!(fed.asks.len(), 20);
    assert!(fed.asks.windows(2).all(|w| w[1].since(w[0]) >= Span::from_millis(100)));
    fed.feed(20.0, &[1.0], 0.0);
    assert_eq!(fed.levels(), [1, 0, 1, 0], "again after half a minute");
}

#[test]
fn silent_layer_is_requested_again() {
    let mut fed = Fed::new();
    fed.feed(0.95, &[1.0], 0.0);
    fed.feed(0.5, &[1.0, 0.3], 0.0);
    let before = fed.asks.len();
    fed.feed(3.9, &[1.0], 0.0);
    assert_eq!((fed.asks.len(), fed.receiver.level()), (before, 1));
    fed.feed(0.5, &[1.0], 0.0);
    assert!(fed.asks.len() > before);
    fed.feed(0.5, &[1.0, 0.3], 0.0);
    let asked = fed.asks.len();
    fed.feed(1.0, &[1.0, 0.3], 0.0);
    assert_eq!((fed.asks.len(), fed.receiver.level()), (asked, 1), "it is there again");
}
