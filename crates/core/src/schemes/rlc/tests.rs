//! RLC's tests, in the order of the timetable, the source and the receiver.

use super::{Config, Phase, Points, Receiver, Source, Timetable};
use crate::node::{Cx, Effect, Effects, Receiver as _, Source as _, SourceControl, Stamp};
use crate::packet::{Arrival, Data, Layer, Mark, ReceiverId, Seq, Signal};
use crate::rate::Bounds;
use crate::rng::Rng;
use crate::schemes::bench::{self, Bench};
use crate::time::{Rate, Span, Time};

const SLOT: Span = Span::from_millis(125);

fn at(seconds: f64) -> Time {
    Time::from_secs_f64(seconds)
}

/// A sent packet.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Time,
    layer: Layer,
    data: Data,
}

impl Sent {
    fn is_burst(&self) -> bool {
        self.data.signal.is_burst()
    }

    fn is_point(&self) -> bool {
        self.data.signal == Signal::SyncPoint
    }

    fn slot(&self) -> u32 {
        let Mark::Timetable { slot } = self.data.mark else { panic!("RLC's mark is the slot") };
        slot
    }
}

impl From<&bench::Sent> for Sent {
    fn from(sent: &bench::Sent) -> Sent {
        let Stamp { seq, rate, flags, signal, mark } = sent.stamp;
        let data = Data { rate: rate.bps() as f32, flags, signal, ..bench::data(seq.0, sent.at, mark) };
        Sent { at: sent.at, layer: sent.layer, data }
    }
}

type Sender = Bench<Source>;

impl Sender {
    fn new(config: Config) -> Sender {
        Bench::by_hand(Source::new(config), 500)
    }

    /// Returns the packets that are sent before `end`.
    fn sent_until(&mut self, end: Time) -> Vec<Sent> {
        let before = self.sent.len();
        self.run_until(end - Span::from_nanos(1));
        self.sent[before..].iter().map(Sent::from).collect()
    }
}

fn sent_in(seconds: f64, config: Config) -> Vec<Sent> {
    Sender::new(config).sent_until(at(seconds))
}

#[test]
fn each_level_sends_evenly_at_twice_the_rate_of_the_lower_one() {
    let sent = sent_in(0.75, Config::published());
    for level in 0..8 {
        let times: Vec<Time> = sent.iter().filter(|p| p.layer.0 <= level).map(|p| p.at).collect();
        let gap = SLOT / (1 << level);
        assert_eq!(times.len(), 6 << level);
        assert!(
            times.windows(2).all(|w| w[1].since(w[0]).as_nanos().abs_diff(gap.as_nanos()) <= 1),
            "{level}"
        );
    }
}

#[test]
fn bursts_do_not_change_the_mean_rate() {
    let sent = sent_in(16.0, Config::published());
    for (layer, rate) in [(0, 32e3), (1, 32e3), (2, 64e3), (7, 2048e3)] {
        let bytes = 500 * sent.iter().filter(|p| p.layer.0 == layer).count() as u64;
        assert_eq!(Rate::of(bytes, Span::from_secs(16)).bps(), rate, "layer {layer}");
        assert_eq!(Source::new(Config::published()).layer_rate(Layer(layer)).bps(), rate);
    }
    assert_eq!(Source::new(Config::published()).observe().rate.bps(), 4096e3);
}

#[test]
fn burst_doubles_the_rate_and_an_equal_silence_follows() {
    for (b, w) in [(1, 8), (3, 8), (2, 16)] {
        let config = Config { burst: b, distance: w, ..Config::published() };
        let (b, w) = (f64::from(b) * 0.125, f64::from(w) * 0.125);
        let sent = sent_in(3.0 * w, config);
        for cycle in 0..3 {
            let begin = f64::from(cycle) * w + w - 2.0 * b;
            let within = |from: f64, to: f64| sent.iter().filter(move |p| p.at >= at(from) && p.at < at(to));
            let even = within(begin - 0.125, begin).count();
            let burst = within(begin, begin + b).count();
            assert_eq!((even as f64, burst as f64), (128.0, 2.0 * 128.0 * b / 0.125));
            assert!(within(begin, begin + b).all(Sent::is_burst));
            assert!(!within(begin - 0.125, begin).any(Sent::is_burst));
            assert_eq!(within(begin + b, begin + 2.0 * b).count(), 0, "silence");
        }
    }
}

#[test]
fn packets_state_their_slots_as_if_they_were_sent_evenly() {
    let sent = sent_in(2.0, Config::published());
    for layer in 0..8 {
        let mine: Vec<&Sent> = sent.iter().filter(|p| p.layer.0 == layer).collect();
        for (turn, packet) in mine.iter().enumerate() {
            assert_eq!(packet.data.seq, Seq(turn as u64));
            assert_eq!(u64::from(packet.slot()), turn as u64 / Timetable::packets(Layer(layer)));
            assert_eq!(packet.is_burst(), packet.slot() % 8 >= 6);
        }
    }
}

/// Returns the bursts that end in a synchronisation point of this level, as numbers counted from 1.
fn points(sent: &[Sent], level: u8) -> Vec<u32> {
    sent.iter().filter(|p| p.layer.0 == level && p.is_point()).map(|p| p.slot() / 8 + 1).collect()
}

#[test]
fn synchronisation_points_are_half_as_frequent_one_level_higher() {
    let config = Config { layers: 5, bursts: 3, ..Config::published() };
    let sent = sent_in(100.0, config);
    for level in 0..4 {
        let apart = 3 << level;
        let expected: Vec<u32> = (1..=100 / apart).map(|m| m * apart).collect();
        assert_eq!(points(&sent, level), expected, "level {level}");
    }
    assert_eq!(points(&sent, 4), [], "above the top there is nothing to join");
}

#[test]
fn synchronisation_flag_is_on_the_last_packet_of_a_burst() {
    let sent = sent_in(8.0, Config { layers: 4, ..Config::published() });
    for point in sent.iter().filter(|p| p.is_point()) {
        let later = |p: &&Sent| p.layer <= point.layer && p.at > point.at && p.is_burst();
        assert!(!sent.iter().filter(later).any(|p| p.slot() / 8 == point.slot() / 8));
    }
}

#[test]
fn mcl_synchronisation_points_are_3_and_7_cycles_apart() {
    let sent = sent_in(20.0, Config { layers: 4, points: Points::Mcl, ..Config::published() });
    assert_eq!((points(&sent, 1), points(&sent, 2)), (vec![3, 6, 9, 12, 15, 18], vec![7, 14]));
}

#[test]
fn latest_turn_is_the_last_one_that_is_due() {
    for (slot, distance, burst) in [(125_000_000, 8, 1), (22_400_001, 48, 6), (1_000, 3, 1), (777, 9, 4)] {
        let timetable = Timetable::new(Span::from_nanos(slot), distance, burst);
        for layer in (0..8).map(Layer) {
            let turns = u64::from(distance) * 2 * Timetable::packets(layer);
            let mut latest = None;
            let mut turn = 0;
            for step in 0..4000 {
                let time = timetable.slot() * u64::from(distance) * step / 2000;
                while turn < turns && timetable.time_of(layer, turn) <= time {
                    (latest, turn) = (Some(turn), turn + 1);
                }
                assert_eq!(timetable.latest_turn(layer, time), latest, "{layer:?} at {time}");
            }
        }
    }
}

#[test]
fn burst_lasts_less_than_half_of_the_distance_between_bursts() {
    let timetable = Timetable::new(SLOT, 8, 60);
    let even = (0..8).filter(|&slot| timetable.phase(slot) == Phase::Even).count();
    assert_eq!((even, timetable.packets_of_burst(0)), (2, 6));
}

#[test]
fn delayed_source_skips_missed_turns_and_sends_no_burst() {
    let mut sender = Sender::new(Config::published());
    sender.sent_until(at(0.2));
    sender.now = at(0.4);
    let sent = sender.sent_until(at(0.401));
    // The bound is a sum: the packets of 10 ms at 1024 packets per second, the packets of the next millisecond, and one packet for
    // each of the seven other layers.
    assert!((10..=10 + 7 + 2).contains(&sent.len()), "{} packets at once", sent.len());
    assert_eq!(sender.sent_until(at(0.5)).len(), 101, "then by the timetable");
}

#[test]
fn turns_are_skipped_while_no_content_is_available() {
    let mut sender = Sender::new(Config { layers: 1, ..Config::published() });
    sender.sent_until(at(1.0));
    sender.now = at(10.01);
    let sent = sender.sent_until(at(10.3));
    let seen: Vec<(u32, u64)> = sent.iter().map(|p| (p.slot(), p.data.seq.0)).collect();
    assert_eq!(seen, [(79, 8), (80, 9), (81, 10), (82, 11)], "numbers have no holes, slots have");
}

fn limited(min: f64, max: f64) -> Bounds {
    Bounds { min: Rate::from_bps(min), max: Rate::from_bps(max) }
}

#[test]
fn maximum_rate_removes_the_top_layers() {
    let mut sender = Sender::new(Config::published());
    sender.source.control(SourceControl::Limits(limited(8e3, 300e3)), at(0.0));
    assert_eq!(sender.source.observe().rate.bps(), 256e3);
    let sent = sender.sent_until(at(8.0));
    assert_eq!(sent.iter().map(|p| p.layer.0).max(), Some(3));
    assert_eq!(points(&sent, 3), [], "nothing to join above");
    assert_eq!(points(&sent, 2), [4, 8]);
    assert_eq!(sender.source.layer_rate(Layer(4)), Rate::ZERO);
    sender.source.control(SourceControl::Limits(limited(8e3, 600e3)), at(8.0));
    assert_eq!(sender.source.observe().rate.bps(), 512e3);
    let sent = sender.sent_until(at(16.0));
    assert_eq!((points(&sent, 3), sent.len()), (vec![16], 1024));
}

#[test]
fn rate_of_the_base_layer_changes_at_the_next_cycle() {
    let mut sender = Sender::new(Config { layers: 2, ..Config::published() });
    sender.sent_until(at(0.3));
    for (min, max, rate) in [(1e3, 16e3, 16e3), (64e3, 1e9, 128e3)] {
        sender.source.control(SourceControl::Limits(limited(min, max)), sender.now);
        let sent = sender.sent_until(sender.now + Span::from_secs(8));
        assert_eq!(sent[0].slot() % 8, 0, "a new cycle");
        let bytes = sent.len() as f64 * 500.0;
        assert!((bytes / rate - 1.0).abs() < 0.05, "{bytes} bytes at {rate}");
        assert_eq!(sender.source.observe().rate.bps(), rate);
    }
}

#[test]
fn transport_levels_range_from_half_to_64_mbit_per_second() {
    let source = Source::new(Config::transport(1400));
    assert_eq!((source.layer_rate(Layer(0)).bps(), source.observe().rate.bps()), (0.5e6, 64e6));
    let timetable = Config::transport(1400).timetable();
    let apart = timetable.slot() * timetable.distance();
    assert!((1.0..1.1).contains(&apart.as_secs_f64()), "{apart}");
}

/// A source, and one receiver; a test chooses the packets that the receiver loses.
struct Pair {
    sender: Sender,
    receiver: Receiver,
    rng: Rng,
    effects: Effects,
    /// Next packet number of each subscribed layer.
    next: [Option<u64>; 8],
    /// Time and new level of each change.
    changes: Vec<(Time, u8)>,
}

impl Pair {
    fn new(config: Config) -> Pair {
        Pair {
            sender: Sender::new(config),
            receiver: Receiver::new(ReceiverId::new(1).expect("not zero"), &config),
            rng: Rng::new(2, 2),
            effects: Effects::new(),
            next: [None; 8],
            changes: Vec::new(),
        }
    }

    fn run(&mut self, until: f64, mut loses: impl FnMut(&Sent) -> bool) {
        for packet in self.sender.sent_until(at(until)) {
            if packet.layer.0 <= self.receiver.level() && !loses(&packet) {
                self.deliver(&packet, None);
            }
        }
    }

    /// Delivers a packet with `arrival`. If `arrival` is `None`, the missing packets before this packet count as lost at once.
    fn deliver(&mut self, packet: &Sent, arrival: Option<Arrival>) {
        let next = &mut self.next[usize::from(packet.layer.0)];
        let lost = next.map_or(0, |next| packet.data.seq.0.saturating_sub(next)) as u32;
        *next = Some(next.unwrap_or(0).max(packet.data.seq.0 + 1));
        let arrival = arrival.unwrap_or(Arrival { size: 500, lost, ..Arrival::default() });
        let cx = &mut Cx { now: packet.at, rng: &mut self.rng, effects: &mut self.effects };
        self.receiver.on_data(&packet.data, packet.layer, arrival, cx);
        for effect in self.effects.drain() {
            let Effect::Subscribe(Layer(level)) = effect else { panic!("{effect:?} from a receiver") };
            self.changes.push((packet.at, level));
            for layer in usize::from(level) + 1..8 {
                self.next[layer] = None;
            }
        }
    }

    fn levels(&self) -> Vec<u8> {
        self.changes.iter().map(|change| change.1).collect()
    }
}

fn nothing(_: &Sent) -> bool {
    false
}

#[test]
fn receiver_without_losses_steps_up_at_each_point_of_its_level() {
    let mut pair = Pair::new(Config { layers: 5, ..Config::published() });
    pair.run(40.0, nothing);
    assert_eq!(pair.levels(), [1, 2, 3, 4]);
    for (change, seconds) in pair.changes.iter().zip([1.0, 2.0, 4.0, 8.0]) {
        let end_of_burst = at(seconds) - SLOT;
        assert!(change.0 < end_of_burst && change.0 + SLOT / 2 >= end_of_burst, "{change:?}");
    }
}

#[test]
fn each_step_up_follows_the_burst_of_a_synchronisation_point() {
    let mut pair = Pair::new(Config { deaf: Some(Span::from_millis(300)), ..Config::published() });
    let mut rng = Rng::new(5, 5);
    let (mut points, mut ups) = (Vec::new(), 0);
    for packet in pair.sender.sent_until(at(600.0)) {
        let before = pair.changes.len();
        if packet.is_point() {
            points.push((packet.at, packet.layer.0));
        }
        if packet.layer.0 <= pair.receiver.level() && !rng.chance(0.002) {
            let level = pair.receiver.level();
            pair.deliver(&packet, None);
            if pair.changes.len() > before && pair.receiver.level() > level {
                ups += 1;
                assert_eq!(points.last(), Some(&(packet.at, level)));
            }
        }
    }
    assert!(ups > 50, "{ups}");
}

#[test]
fn loss_in_a_burst_prevents_a_join_and_causes_no_leave() {
    let in_first_burst = [(6, 0), (7, 0)];
    for (slot, layer) in in_first_burst {
        let mut pair = Pair::new(Config::published());
        pair.run(1.99, |p| (p.slot(), p.layer.0) == (slot, layer));
        assert_eq!(pair.levels(), [1], "at the second point only");
        assert!(pair.changes[0].0 > at(1.5));
    }
    // One case for each of the four packets of the burst before the first point of level 1.
    for (slot, layer) in [(14, 0), (14, 1), (15, 0), (15, 1)] {
        let mut pair = Pair::new(Config::published());
        pair.run(3.9, |p| (p.slot(), p.layer.0) == (slot, layer));
        assert_eq!(pair.levels(), [1, 2], "lost in slot {slot} of layer {layer}");
        assert!(pair.changes[1].0 > at(3.5), "lost in slot {slot} of layer {layer}: {:?}", pair.changes);
    }
}

#[test]
fn loss_outside_bursts_causes_one_leave_per_deaf_period() {
    let mut pair = Pair::new(Config::published());
    pair.run(8.01, nothing);
    assert_eq!(pair.levels(), [1, 2, 3, 4]);
    // From now on, three of four packets outside of bursts are lost.
    pair.run(8.0 + 2.7 * 4.0 - 0.2, |p| !p.is_burst() && p.data.seq.0 % 4 != 0);
    assert_eq!(pair.levels(), [1, 2, 3, 4, 3, 2, 1, 0]);
    for step in pair.changes[4..].windows(2) {
        assert!(step[1].0.since(step[0].0) >= Span::from_millis(2700), "{step:?}");
    }
}

#[test]
fn the_lowest_level_is_never_left() {
    let mut pair = Pair::new(Config::published());
    pair.run(60.0, |p| p.data.seq.0 % 2 == 1);
    assert_eq!(pair.levels(), []);
    // A packet is lost every quarter of a second; losses within 2.7 s are one event.
    assert!((18..=23).contains(&pair.receiver.suppressed()), "{}", pair.receiver.suppressed());
}

#[test]
fn no_step_up_happens_in_the_deaf_period() {
    let mut pair = Pair::new(Config::published());
    pair.run(4.01, nothing);
    let dropped = pair.changes.len();
    let mut once = true;
    pair.run(4.5, |p| p.layer.0 == 1 && std::mem::take(&mut once));
    let (down_at, level) = pair.changes[dropped];
    pair.run(12.0, nothing);
    assert_eq!((level, pair.changes[dropped + 1].1), (2, 3));
    assert!(pair.changes[dropped + 1].0.since(down_at) > Span::from_millis(2700), "{:?}", pair.changes);
}

/// The next layer does not fit the path: while the receiver subscribes to it, a third of its packets outside of bursts are lost.
#[test]
fn a_failed_step_up_is_undone_and_retried_at_the_next_point() {
    let mut pair = Pair::new(Config::published());
    for tenth in 1..400 {
        let full = pair.receiver.level() == 4;
        pair.run(f64::from(tenth) * 0.1, |p| {
            full && p.layer.0 == 4 && !p.is_burst() && p.data.seq.0 % 3 == 0
        });
    }
    let failed: Vec<Time> = pair.changes.windows(2).filter(|w| w[0].1 == 4).map(|w| w[0].0).collect();
    for step in pair.changes.windows(2).filter(|w| w[0].1 == 4) {
        assert_eq!(step[1].1, 3);
        assert!(step[1].0.since(step[0].0) < Span::from_secs(2), "undone within the leave delay");
    }
    assert!(failed.len() >= 4);
    for retry in failed.windows(2) {
        assert_eq!(retry[1].since(retry[0]), Span::from_secs(8), "points of level 3 are 8 s apart");
    }
}

/// The driver of a real network declares a packet lost after three later packets have arrived.
#[test]
fn loss_detected_late_counts_in_the_slot_of_the_lost_packet() {
    for (lost, reported, levels) in
        [(12, 15, vec![1, 0]), (13, 16, vec![1, 2, 1]), (14, 17, vec![1]), (15, 18, vec![1])]
    {
        let mut pair = Pair::new(Config::published());
        for packet in pair.sender.sent_until(at(2.3)) {
            if packet.layer.0 > pair.receiver.level() || (packet.layer, packet.slot()) == (Layer(0), lost) {
                continue;
            }
            let is_reported = (packet.layer, packet.slot()) == (Layer(0), reported);
            pair.deliver(
                &packet,
                Some(Arrival { size: 500, lost: u32::from(is_reported), ..Arrival::default() }),
            );
        }
        assert_eq!(pair.levels(), levels, "slot {lost}, told in slot {reported}");
    }
}

#[test]
fn reordered_burst_allows_a_join_and_duplicates_are_ignored() {
    let burst = |pair: &mut Pair| -> Vec<Sent> {
        let sent = pair.sender.sent_until(at(0.9));
        sent.into_iter().filter(|p| p.layer.0 == 0).collect()
    };
    let mut swapped = Pair::new(Config::published());
    let mut packets = burst(&mut swapped);
    packets.swap(6, 7);
    for (index, packet) in packets.iter().enumerate() {
        swapped.deliver(packet, Some(Arrival { size: 500, late: index == 7, ..Arrival::default() }));
    }
    assert_eq!(swapped.levels(), [1], "the flag came before the other packet of the burst");
    let mut copied = Pair::new(Config::published());
    let packets = burst(&mut copied);
    for packet in packets.iter().filter(|p| p.slot() != 6) {
        copied.deliver(packet, Some(Arrival { size: 500, ..Arrival::default() }));
        copied.deliver(packet, Some(Arrival { size: 500, late: true, ..Arrival::default() }));
    }
    assert_eq!(copied.levels(), []);
}

#[test]
fn congestion_mark_counts_as_a_loss_of_the_marked_packet() {
    for (slot, levels) in [(9, vec![1, 0]), (14, vec![1]), (15, vec![1])] {
        let mut pair = Pair::new(Config::published());
        for packet in pair.sender.sent_until(at(2.0)) {
            if packet.layer.0 <= pair.receiver.level() {
                let marked = (packet.layer, packet.slot()) == (Layer(0), slot);
                pair.deliver(&packet, Some(Arrival { size: 500, marked, ..Arrival::default() }));
            }
        }
        assert_eq!(pair.levels(), levels, "marked in slot {slot}");
    }
}

#[test]
fn receiver_that_starts_in_a_burst_waits_for_a_complete_burst() {
    let mut pair = Pair::new(Config::published());
    pair.run(2.5, |p| p.at < at(0.8));
    assert_eq!(pair.changes.len(), 1);
    assert!(pair.changes[0].0 > at(1.5));
}

#[test]
fn stretched_burst_prevents_a_join_if_configured() {
    for (stretch, levels) in [(None, 1), (Some(1.5), 0), (Some(4.0), 1)] {
        let mut pair = Pair::new(Config { stretch, ..Config::published() });
        for mut packet in pair.sender.sent_until(at(0.9)) {
            if packet.layer.0 == 0 {
                // The second packet of the burst arrives 125 ms after the first instead of 62.5 ms.
                packet.at += if packet.slot() == 7 { SLOT / 2 } else { Span::ZERO };
                pair.deliver(&packet, None);
            }
        }
        assert_eq!(pair.receiver.level(), levels, "{stretch:?}");
    }
}

#[test]
fn a_partial_burst_causes_no_join() {
    let mut pair = Pair::new(Config::published());
    let mut sent = pair.sender.sent_until(at(0.74));
    pair.sender.now = at(0.9);
    sent.extend(pair.sender.sent_until(at(1.9)));
    for (number, packet) in sent.iter().filter(|p| p.layer.0 == 0).enumerate() {
        assert_eq!(packet.data.seq, Seq(number as u64));
        pair.deliver(packet, None);
    }
    assert_eq!(pair.levels(), [1]);
    assert!(pair.changes[0].0 > at(1.7), "{:?}", pair.changes);
}

#[test]
fn loss_in_a_burst_after_skipped_turns_causes_no_leave() {
    // The source pauses for ten slots. The packet lost after the pause was in a burst, but the packet numbers alone would give a
    // slot outside of bursts.
    let mut pair = Pair::new(Config::published());
    pair.run(1.0, nothing);
    pair.run(1.3, nothing);
    pair.sender.now = at(2.6);
    pair.run(3.2, |p| p.is_burst() && p.layer.0 == 0 && p.slot() == 22);
    assert_eq!(pair.levels(), [1]);
}
