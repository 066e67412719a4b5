//! Congestion marks and timeouts, event by event: cases in which ns-2 and the standards differ, with windows of one or two
//! packets.

use crate::tcp::{Config, Sender, Variant};
use crate::{Ack, Feedback, SegmentFlags, Sender as _};
use faircast_core::node::{Cx, Departure, Effects};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};

/// A sender without a network.
struct Bench {
    sender: Sender,
    rng: Rng,
    now: Time,
}

impl Bench {
    /// Creates a Reno connection with ECN that has sent its first window.
    fn new(config: Config, window: u32) -> Bench {
        use crate::tcp::{Handshake, Switch};
        let config = Config { initial_window: window, handshake: Handshake::None, ecn: Switch::On, ..config };
        let mut bench =
            Bench { sender: Sender::new(config), rng: Rng::new(1, 1), now: Time::from_secs_f64(1.0) };
        bench.with(|sender, cx| {
            sender.supply(1_000, cx.now);
            sender.start(cx);
        });
        assert_eq!(bench.leaves().len(), window as usize);
        bench
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Sender, &mut Cx<'_>) -> T) -> T {
        let mut effects = Effects::default();
        act(&mut self.sender, &mut Cx { now: self.now, rng: &mut self.rng, effects: &mut effects })
    }

    /// Sends all packets that may be sent now. Returns the number of each packet, and whether it carries CWR.
    fn leaves(&mut self) -> Vec<(u32, bool)> {
        let mut left = Vec::new();
        while matches!(self.sender.departure(), Departure::At(at) if at <= self.now) {
            let segment = self.with(|sender, cx| sender.on_departure(cx));
            left.push((segment.seq, segment.flags.has(SegmentFlags::CWR)));
        }
        left
    }

    /// A tenth of a second later, acknowledges all packets below `next`. Returns the packets that are then sent.
    fn acknowledge(&mut self, next: u32, ece: bool) -> Vec<(u32, bool)> {
        let echo = self.now;
        self.now += Span::from_millis(100);
        let ack = Ack { next, echo, blocks: [(0, 0); 3], ece, syn: false };
        self.with(|sender, cx| sender.on_feedback(&Feedback::Ack(ack), cx));
        self.leaves()
    }

    fn time_out(&mut self) -> Vec<(u32, bool)> {
        self.now = self.sender.deadline();
        self.with(|sender, cx| sender.on_deadline(cx));
        self.leaves()
    }
}

const NS_2: [Config; 2] = [Config::ns235(Variant::Reno), Config::ns2001(Variant::Reno)];
const RFC: Config = Config::rfc(Variant::Reno);

#[test]
fn window_below_one_packet_sends_only_after_a_timeout() {
    for config in [NS_2[0], RFC] {
        let mut bench = Bench::new(config, 1);
        assert_eq!(bench.acknowledge(1, true), []);
        assert_eq!(bench.sender.window().packets(), 0.5);
        assert_eq!(bench.time_out(), [(1, true)]);
    }
}

#[test]
fn only_ns_2_sends_on_a_duplicate_ack_below_a_window_of_one() {
    for (config, expected) in [(NS_2[0], vec![(1, true)]), (RFC, vec![])] {
        let mut bench = Bench::new(config, 1);
        assert_eq!(bench.acknowledge(1, true), []);
        assert_eq!(bench.acknowledge(1, true), expected, "nothing was out");
    }
}

#[test]
fn only_ns_2_sets_cwr_on_a_resent_packet() {
    for (config, marked) in [(NS_2[0], true), (NS_2[1], true), (RFC, false)] {
        let mut bench = Bench::new(config, 1);
        assert_eq!(bench.time_out(), [(0, marked)]);
    }
    // If two packets are outstanding, ns-2 of 2001 does not treat a retransmission of the first packet as new data.
    for (config, marked) in [(NS_2[0], true), (NS_2[1], false), (RFC, false)] {
        assert_eq!(Bench::new(config, 2).time_out(), [(0, marked)]);
    }
}

#[test]
fn only_ns_2_preserves_the_threshold_of_a_mark_at_a_timeout() {
    for (config, expected) in [(NS_2[0], 4.0), (RFC, 2.0), (Config::linux(Variant::Reno), 2.0)] {
        let mut bench = Bench::new(config, 8);
        bench.acknowledge(8, true);
        assert_eq!(bench.sender.window().threshold(), 4.0);
        let flight = bench.sender.flight_size();
        assert_eq!(flight, 4, "half of it");
        bench.acknowledge(9, false); // beyond what was out at the mark
        bench.time_out();
        assert_eq!(bench.sender.window().threshold(), expected);
    }
}

#[test]
fn only_ns_2_reduces_the_window_for_a_mark_after_a_timeout() {
    let linux = Config::linux(Variant::Reno);
    for (config, expected) in [(NS_2[0], 0.5), (RFC, 1.0), (linux, 1.0)] {
        let mut bench = Bench::new(config, 8);
        bench.time_out();
        bench.acknowledge(1, true);
        assert_eq!(bench.sender.window().packets(), expected);
    }
}

#[test]
fn only_linux_keeps_two_packets_after_a_mark() {
    let linux = Config::linux(Variant::Reno);
    for (config, expected) in [(NS_2[0], vec![]), (RFC, vec![]), (linux, vec![1, 2])] {
        let mut bench = Bench::new(config, 1);
        let sent: Vec<u32> = bench.acknowledge(1, true).into_iter().map(|(seq, _)| seq).collect();
        assert_eq!(sent, expected);
    }
}
