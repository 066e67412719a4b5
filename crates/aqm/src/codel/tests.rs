use super::*;

/// A queue with packets of 1000 bytes.
struct Bench {
    codel: Codel,
    rng: Rng,
    tickets: u32,
    dropped: Vec<Dropped>,
}

fn millis(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

impl Bench {
    fn new(config: Config) -> Bench {
        Bench { codel: Codel::new(config), rng: Rng::new(1, 1), tickets: 0, dropped: Vec::new() }
    }

    fn enqueue(&mut self, now: Time, ecn_capable: bool) -> Decision {
        let offer = Offer {
            now,
            size: 1000,
            flow: 0,
            ecn: ecn_capable.into(),
            waiting: 0,
            waiting_bytes: 0,
            in_transmission: 0,
            idle_since: None,
        };
        self.tickets += 1;
        self.codel.enqueue(&offer, Ticket(self.tickets - 1), &mut self.rng, &mut self.dropped)
    }

    fn fill(&mut self, packets: u32, now: Time, ecn_capable: bool) {
        for _ in 0..packets {
            assert_eq!(self.enqueue(now, ecn_capable), Decision::Accept);
        }
    }

    fn empty(&mut self, now: Time) {
        while self.dequeue(now).0.is_some() {}
    }

    /// Returns the packet that departs now, and the packets dropped before it.
    fn dequeue(&mut self, now: Time) -> (Option<Sent>, Vec<u32>) {
        let sent = self.codel.dequeue(now, &mut self.rng, &mut self.dropped);
        (sent, self.dropped.drain(..).map(|dropped| dropped.ticket.0).collect())
    }

    /// Returns the times of drops and marks. A packet departs every millisecond from `from` to `to`, and the queue never empties.
    fn events(&mut self, from: u64, to: u64) -> Vec<u64> {
        let mut events = Vec::new();
        for at in from..to {
            let (sent, dropped) = self.dequeue(millis(at));
            let sent = sent.expect("there are enough");
            events.extend(dropped.iter().map(|_| at));
            events.extend(sent.marked.then_some(at));
        }
        events
    }
}

#[test]
fn no_packet_is_dropped_in_the_first_interval_above_the_target() {
    let mut bench = Bench::new(Config::default());
    bench.fill(1000, Time::ZERO, false);
    // The packet that departs at 5 ms is the first whose delay reaches the target, so the first drop is at 105 ms.
    assert_eq!(bench.events(0, 105), []);
    assert_eq!(bench.events(105, 106), [105]);
}

#[test]
fn drop_intervals_shrink_with_the_square_root_of_the_count() {
    let mut bench = Bench::new(Config::default());
    bench.fill(1000, Time::ZERO, false);
    // The first drop is at 105 ms. The times between the next drops are 100 / sqrt(1) = 100, 100 / sqrt(2) = 70.7, 57.7, 50, 44.7
    // and 40.8 ms, rounded up to whole packets.
    let by_hand = [105.0, 205.0, 275.711, 333.446, 383.446, 428.167, 468.992];
    let by_hand: Vec<u64> = by_hand.iter().map(|at: &f64| at.ceil() as u64).collect();
    assert_eq!(bench.events(0, 470), by_hand);
}

#[test]
fn packet_below_the_target_delay_ends_the_drops() {
    let mut bench = Bench::new(Config::default());
    bench.fill(111, Time::ZERO, false);
    assert_eq!(bench.events(0, 108), [105]);
    assert_eq!(bench.codel.state, State::Dropping);
    bench.fill(50, millis(108), false);
    // Two old packets remain. The packet behind them has a delay of 2 ms.
    assert_eq!(bench.events(108, 110), []);
    assert_eq!(bench.codel.state, State::Dropping);
    assert_eq!(bench.events(110, 111), []);
    assert_eq!(bench.codel.state, State::Idle);
}

#[test]
fn single_queued_packet_never_causes_a_drop() {
    let mut bench = Bench::new(Config::default());
    // Each packet has a delay of a second, but only one packet remains in the queue after a departure. Drops require that the
    // waiting bytes exceed the largest packet.
    bench.fill(2, Time::ZERO, false);
    for second in 1..20 {
        assert_eq!(bench.dequeue(millis(1000 * second)).1, []);
        bench.enqueue(millis(1000 * second), false);
    }
}

#[test]
fn drops_resume_at_the_former_count_after_a_short_pause() {
    let mut bench = Bench::new(Config::default());
    bench.fill(480, Time::ZERO, false);
    assert_eq!(bench.events(0, 470).len(), 7);
    bench.empty(millis(470));
    assert_eq!((bench.codel.state, bench.codel.count, bench.codel.last_count), (State::Idle, 7, 1));
    bench.fill(400, millis(500), false);
    // Delays exceed the target from 505 ms on, so the first drop is at 605 ms. The count starts at 7 - 1 = 6. The next drops
    // follow after 100 / sqrt(6) = 40.8 ms and 100 / sqrt(7) = 37.8 ms.
    assert_eq!(bench.events(500, 690), [605, 646, 684]);
}

#[test]
fn drop_count_restarts_after_sixteen_intervals_without_drops() {
    let mut bench = Bench::new(Config::default());
    bench.fill(480, Time::ZERO, false);
    bench.events(0, 470);
    bench.empty(millis(470));
    bench.fill(400, millis(3_000), false);
    assert_eq!(bench.events(3_000, 3_210), [3_105, 3_205]);
}

#[test]
fn ecn_capable_packets_are_marked_at_the_times_of_drops() {
    let mut bench = Bench::new(Config { ecn: true, ..Config::default() });
    bench.fill(1000, Time::ZERO, true);
    assert_eq!(bench.events(0, 470), [105, 205, 276, 334, 384, 429, 469]);
    assert_eq!(bench.codel.backlog(), (530, 530_000), "none was dropped");
    let mut bench = Bench::new(Config { ecn: true, ..Config::default() });
    bench.fill(1000, Time::ZERO, false);
    bench.events(0, 470);
    assert_eq!(bench.codel.backlog(), (523, 523_000), "those that do not allow it are");
}

#[test]
fn late_departure_performs_all_overdue_drops() {
    let mut bench = Bench::new(Config::default());
    bench.fill(1000, Time::ZERO, false);
    bench.events(0, 106);
    // Drops at 205, 275.7, 333.4 and 383.4 ms.
    let (sent, dropped) = bench.dequeue(millis(400));
    assert_eq!(
        (dropped, sent),
        (vec![107, 108, 109, 110], Some(Sent { ticket: Ticket(111), marked: false }))
    );
}

#[test]
fn full_buffer_drops_arrivals() {
    let mut bench = Bench::new(Config { limit: Limit::Bytes(2_500), ..Config::default() });
    let decisions = [0, 0, 0].map(|now| bench.enqueue(millis(now), true));
    assert_eq!(decisions, [Decision::Accept, Decision::Accept, Decision::Drop(DropCause::Overflow)]);
}
