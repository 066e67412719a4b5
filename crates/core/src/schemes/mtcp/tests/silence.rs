//! Silence of a child: consecutive timeouts, its removal, and repairs after its return.

use super::super::window::Window;
use super::*;
use crate::node::{Departure, Source as _};
use crate::time::Time;

#[test]
fn first_of_successive_timeouts_sets_the_slow_start_threshold() {
    let mut window = Window::new(40.0, f64::INFINITY, 0, Time::ZERO);
    assert!(window.on_timeout(10, 50), "a slow start");
    assert!(!window.on_timeout(20, 50), "of the same window");
    for packet in 50..56 {
        assert!(window.on_timeout(packet, packet + 1));
        assert_eq!(window.size(), 1.0);
    }
    window.on_progress(58);
    assert!(!window.on_timeout(57, 59), "it left while nothing arrived");
    window.on_acknowledged(100);
    assert_eq!(window.size(), 20.0, "half of what the first one found");
    window.on_progress(210);
    assert!(window.on_timeout(200, 300), "it left after something had arrived");
    window.on_acknowledged(100);
    assert_eq!(window.size(), 10.0);
}

#[test]
fn consecutive_timeouts_double_the_slack_up_to_its_maximum() {
    let (published, transport) = (Config::published(), Config::transport(1000));
    let (slack, long) = (Span::from_millis(200), Span::from_secs(3));
    assert_eq!(published.doubled(slack, 64), Span::from_millis(12_800));
    assert_eq!(transport.doubled(slack, 4), Span::from_millis(800));
    assert_eq!(transport.doubled(slack, 64), Span::from_secs(1));
    assert_eq!(transport.doubled(long, 64), long, "a long way is waited for");
}

#[test]
fn slow_start_window_grows_in_every_or_every_second_round() {
    for (config, most) in [(Config::transport(1000), 16.0), (Config::published(), 4.0)] {
        let mut window = Window::new(1.0, f64::INFINITY, 0, Time::ZERO);
        for round in 1..=4 {
            window.on_acknowledged(window.size() as u64);
            window.end_round(None, round, &config, Time::from_secs_f64(round as f64));
        }
        assert_eq!(window.size(), most);
    }
}

/// Two children answer every packet with a delay.
impl Sender {
    /// Runs in steps of 10 ms, the delay of the path.
    fn run(&mut self, until: f64, speak: [bool; 2]) {
        while self.now < Time::from_secs_f64(until) {
            let before = self.sent.len();
            while self.sent.len() < before + 20
                && matches!(self.source.departure(Layer(0)), Departure::At(at) if at <= self.now)
            {
                self.departs(1);
            }
            self.now += Span::from_millis(10);
            self.call(|source, cx| source.on_deadline(cx));
            for (child, _) in (1..).zip(speak).filter(|(_, speaks)| *speaks) {
                self.receives(&all_up_to(child, self.sent.len().max(1) as u64 - 1));
            }
        }
    }
}

#[test]
fn a_silent_child_is_removed_after_a_second_and_rejoins() {
    let mut pair = Sender::new(Config::transport(1000), 2, 0.0);
    pair.run(3.0, [true, true]);
    let running = pair.sent.len() as f64 / 3.0;
    pair.run(3.9, [true, false]);
    assert_eq!(pair.source.parent().children.len(), 2, "it may speak again");
    pair.run(5.0, [true, false]);
    assert_eq!(pair.source.parent().children.len(), 1);
    let before = pair.sent.len();
    pair.run(6.0, [true, false]);
    assert!((pair.sent.len() - before) as f64 > running / 4.0, "the others get on");
    pair.run(6.1, [true, true]);
    assert_eq!(pair.source.parent().children.len(), 2);
    let before = pair.sent.len();
    pair.run(7.1, [true, true]);
    assert!((pair.sent.len() - before) as f64 > running / 4.0, "and it holds nobody");
}

#[test]
fn distant_child_is_not_removed_as_silent() {
    let mut pair = Sender::new(Config { silence: Span::from_millis(5), ..Config::transport(1000) }, 2, 0.0);
    pair.run(2.0, [true, true]);
    pair.run(2.5, [true, false]);
    assert_eq!(pair.source.parent().children.len(), 2, "three of its time-outs have not passed yet");
}

/// An agent reports new losses if it has restarted under its earlier identity, or has new children that miss more packets.
#[test]
fn new_losses_reported_by_a_child_are_repaired_without_a_cut() {
    let config = Config { localize: Localize::Off, ..Config::published() };
    let mut pair = Sender::new(config, 2, 0.0);
    pair.departs(40);
    pair.now = Time::from_secs_f64(0.1);
    // The second child misses packet 1, so the parent stores the packets from 1 on.
    for report in [all_up_to(1, 29), lacking(2, 29, 29, &[(1, 1)])] {
        pair.receives(&report);
    }
    let cuts = pair.source.parent().window().cuts;
    pair.receives(&lacking(1, 28, 20, &[(10, 2)]));
    assert_eq!(pair.source.parent().children[0].board.base(), 30, "an old report changes nothing");
    let report = lacking(1, 31, 27, &[(12, 2), (5, 3)]);
    pair.receives(&report);
    let child = &pair.source.parent().children[0];
    assert_eq!(child.board.base(), 5);
    let wanted: Vec<u64> = (0..40).filter(|seq| child.wants(*seq)).collect();
    assert_eq!(wanted, [5, 6, 7, 12, 13]);
    child.check();
    assert_eq!(pair.source.parent().window().cuts, cuts, "no sign of congestion");
    // The child must continue without packets that no node stores. At first, all packets were stored for children that might
    // begin earlier.
    pair.now = Time::from_secs_f64(5.0);
    for seq in [32, 33] {
        pair.receives(&all_up_to(1, seq));
        pair.receives(&all_up_to(2, seq));
    }
    let first = pair.source.parent().store.first();
    assert!(first > 20, "{first}");
    pair.receives(&lacking(1, 34, 30, &[(5, 3)]));
    assert!(pair.source.parent().children[0].board.base() >= first);
    assert!(!pair.source.parent().children[0].is_there, "it is told so");
}
