//! Tests of the algorithm of D.1, packet by packet.

use super::*;

const SIZE: u16 = 1000;
const RATE: Rate = Rate::from_mbps(1.0);

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// A receiver 20 ms away from a source. The source sends a packet every 10 ms; every fifth packet is a control packet.
struct Path {
    accumulation: Accumulation,
    next: u64,
}

impl Path {
    fn new() -> Path {
        Path::with(Measuring::published())
    }

    fn with(measuring: Measuring) -> Path {
        Path { accumulation: Accumulation::new(measuring), next: 0 }
    }

    /// Delivers the next packet, `delay` milliseconds after it is sent. Returns the reading if the packet is a control packet.
    fn packet(&mut self, delay: u64) -> Option<Reading> {
        let sent = self.next * 10;
        self.next += 1;
        let now = at(sent + delay);
        self.accumulation.on_arrival(SIZE, now);
        (self.next % 5 == 1).then(|| self.accumulation.on_control(at(sent), RATE, now))
    }

    /// Delivers the next five packets, up to and including a control packet, with these delays.
    fn interval(&mut self, delays: [u64; 5]) -> Reading {
        delays
            .into_iter()
            .filter_map(|delay| self.packet(delay))
            .last()
            .expect("one of five is a control packet")
    }

    /// Delivers the next five packets. The last `count` of them arrive after the expected time of the control packet.
    fn held(&mut self, count: u64) -> Reading {
        let delay = |from_end: u64| {
            if from_end < count { 20 + 10 * from_end + 2 * (count - from_end) } else { 20 }
        };
        self.interval([4, 3, 2, 1, 0].map(delay))
    }

    /// Creates a path that has received the synchronisation point.
    fn synchronised() -> Path {
        let mut path = Path::new();
        assert_eq!(path.packet(20), Some(Reading::Synchronised));
        path
    }
}

#[test]
fn constant_delay_gives_no_accumulation_and_no_resync() {
    let mut path = Path::synchronised();
    for _ in 0..100 {
        assert_eq!(path.interval([20; 5]), Reading::Quiet(0));
    }
}

#[test]
fn accumulation_counts_packets_queued_up_to_the_control_packet() {
    for queued in 1..=4 {
        let mut path = Path::synchronised();
        assert_eq!(path.held(queued + 1), Reading::Congested(u64::from(SIZE) * (queued + 1)));
    }
}

#[test]
fn an_early_control_packet_becomes_the_synchronisation_point() {
    let mut path = Path::new();
    path.packet(50); // delayed by the queue of another flow
    assert_eq!(path.interval([45, 40, 35, 30, 25]), Reading::Synchronised);
    assert_eq!(path.interval([25; 5]), Reading::Quiet(0));
    assert_eq!(path.interval([25, 25, 25, 25, 26]), Reading::Quiet(1000), "the control packet alone");
}

#[test]
fn congestion_starts_at_the_high_and_ends_at_the_low_threshold() {
    let measuring = Measuring { high: 4.0, low: 2.0, ..Measuring::published() };
    for (carry, carried) in [(Carry::Rest, 1000), (Carry::All, 2000)] {
        let mut path = Path::with(Measuring { carry, ..measuring });
        path.packet(20);
        assert_eq!(path.held(3), Reading::Between(3000), "below the high threshold");
        assert_eq!(path.held(4), Reading::Congested(4000));
        assert_eq!(path.held(3), Reading::Between(3000));
        assert_eq!(path.held(2), Reading::Synchronised, "two packets, the control packet being one");
        assert_eq!(path.interval([24; 5]), Reading::Quiet(carried));
        assert_eq!(path.interval([23; 5]), Reading::Synchronised, "nothing once a packet comes early");
        assert_eq!(path.interval([23; 5]), Reading::Quiet(0));
    }
}

#[test]
fn accumulation_is_not_carried_over_without_congestion() {
    let mut path = Path::synchronised();
    assert_eq!(path.held(1), Reading::Quiet(1000));
    assert_eq!(path.interval([20; 5]), Reading::Quiet(0));
}

/// The detector reports the loss.
#[test]
fn measurement_with_a_loss_does_not_end_a_congestion_epoch() {
    for lost in [false, true] {
        let mut path = Path::synchronised();
        assert_eq!(path.held(3), Reading::Congested(3000));
        (0..4).for_each(|_| assert_eq!(path.packet(20), None));
        if lost {
            path.accumulation.on_loss(at(path.next * 10 + 22));
        }
        let expected = if lost { Reading::Quiet(1000) } else { Reading::Synchronised };
        assert_eq!(path.packet(22), Some(expected));
        let after = if lost { Reading::Synchronised } else { Reading::Quiet(0) };
        assert_eq!(path.interval([22; 5]), after, "the next measurement does not know of the loss");
    }
}

#[test]
fn lost_control_packet_does_not_disturb_the_measurement() {
    let mut path = Path::synchronised();
    (0..4).for_each(|_| assert_eq!(path.packet(20), None));
    path.next += 1; // the control packet is lost
    assert_eq!(path.interval([20; 5]), Reading::Quiet(0));
    (0..4).for_each(|_| assert_eq!(path.packet(20), None));
    path.next += 1;
    assert_eq!(path.held(3), Reading::Congested(3000));
}

#[test]
fn older_control_packet_is_ignored() {
    let mut path = Path::synchronised();
    path.interval([20; 5]);
    assert_eq!(path.accumulation.on_control(at(10), RATE, at(90)), Reading::Between(0));
    assert_eq!(path.interval([20; 5]), Reading::Quiet(0));
}

/// The receiver's clock runs 50 millionths fast, so the delay of packets appears to increase.
#[test]
fn drifting_clocks_are_resynchronised_at_the_set_interval() {
    let drifting = |resync| {
        let mut accumulation = Accumulation::new(Measuring { resync, ..Measuring::published() });
        let mut worst = 0;
        for packet in 0..12_000u64 {
            let sent = Time::ZERO + Span::from_millis(packet * 50);
            let now = sent + Span::from_millis(20) + Span::from_micros(packet * 50 * 50 / 1000);
            accumulation.on_arrival(SIZE, now);
            match accumulation.on_control(sent, RATE, now) {
                Reading::Quiet(bytes) | Reading::Between(bytes) | Reading::Congested(bytes) => {
                    worst = worst.max(bytes);
                }
                Reading::Synchronised => {}
            }
            let point = accumulation.point.expect("after the first packet");
            assert!(now.since(point.at) <= resync + Span::from_millis(51));
        }
        worst
    };
    assert_eq!(drifting(Span::from_secs(60)), 1000, "the control packet alone, in ten minutes");
}

#[test]
fn longer_route_counts_as_congestion_unless_reroute_is_set() {
    for (reroute, reports) in [(None, 99), (Some(64), 62)] {
        let mut path = Path::with(Measuring { reroute, ..Measuring::published() });
        path.packet(20);
        path.interval([20; 5]);
        path.interval([20, 60, 60, 60, 60]);
        let congested = (0..99).filter(|_| matches!(path.interval([60; 5]), Reading::Congested(_)));
        assert_eq!(congested.count(), reports);
    }
}

/// The source's cuts empty the queue again and again.
#[test]
fn recurring_queue_is_not_taken_for_a_longer_route() {
    let mut path = Path::with(Measuring { reroute: Some(64), ..Measuring::published() });
    path.packet(20);
    for turn in 0..1000 {
        let reading = path.held(if turn % 20 < 12 { 5 } else { 2 });
        assert_ne!(reading, Reading::Synchronised, "turn {turn}");
    }
}
