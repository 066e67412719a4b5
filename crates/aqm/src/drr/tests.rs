use super::*;

struct Bench {
    drr: Drr,
    rng: Rng,
    tickets: u32,
    dropped: Vec<Dropped>,
}

impl Bench {
    fn new(quantum: u32, limit: Limit) -> Bench {
        let config = Config { quantum, limit, ..Config::default() };
        Bench { drr: Drr::new(config), rng: Rng::new(1, 1), tickets: 0, dropped: Vec::new() }
    }

    /// Adds a packet of this flow and size. Tickets count from zero.
    fn enqueue(&mut self, flow: u32, size: u16) -> Decision {
        let offer = Offer {
            now: Time::ZERO,
            size,
            flow,
            ecn: false.into(),
            waiting: 0,
            waiting_bytes: 0,
            in_transmission: 0,
            idle_since: None,
        };
        self.tickets += 1;
        self.drr.enqueue(&offer, Ticket(self.tickets - 1), &mut self.rng, &mut self.dropped)
    }

    fn fill(&mut self, packets: u32, flow: u32, size: u16) {
        for _ in 0..packets {
            assert_eq!(self.enqueue(flow, size), Decision::Accept);
        }
    }

    fn dequeue(&mut self) -> Option<u32> {
        self.drr.dequeue(Time::ZERO, &mut self.rng, &mut self.dropped).map(|sent| sent.ticket.0)
    }

    fn rest(&mut self) -> Vec<u32> {
        std::iter::from_fn(|| self.dequeue()).collect()
    }

    fn deficit(&self, flow: u32) -> u32 {
        self.drr.queues[self.drr.queue_of(flow) as usize].deficit
    }

    fn dropped(&mut self) -> Vec<u32> {
        self.dropped.drain(..).map(|dropped| dropped.ticket.0).collect()
    }
}

const MANY: Limit = Limit::Packets(1000);

/// Figures 2 and 3 of the paper, with a quantum of 500 bytes. Queue 1 holds packets of 200, 750 and 20 bytes; queue 2 holds two
/// packets of 500 bytes.
#[test]
fn turns_follow_the_example_of_the_paper() {
    let mut bench = Bench::new(500, MANY);
    for size in [200, 750, 20] {
        bench.enqueue(1, size);
    }
    for size in [500, 500] {
        bench.enqueue(2, size);
    }
    assert_eq!(bench.dequeue(), Some(0));
    assert_eq!(bench.deficit(1), 300, "the next packet is longer, so the rest is kept");
    assert_eq!(bench.dequeue(), Some(3));
    assert_eq!(bench.deficit(2), 0);
    assert_eq!(bench.dequeue(), Some(1));
    assert_eq!(bench.deficit(1), 50, "300 and 500, less 750");
    assert_eq!(bench.dequeue(), Some(2));
    assert_eq!(bench.deficit(1), 0, "a queue that becomes empty keeps nothing");
    assert_eq!(bench.rest(), [4]);
}

#[test]
fn flows_of_small_and_large_packets_send_equal_bytes() {
    let mut bench = Bench::new(1500, MANY);
    let sizes = [1500, 300, 700];
    let mut flows = Vec::new();
    for (flow, size) in (0u32..).zip(sizes) {
        for _ in 0..300 {
            bench.enqueue(flow, size);
            flows.push(flow);
        }
    }
    let mut sent = [0u32; 3];
    for _ in 0..200 {
        let flow = flows[bench.dequeue().expect("there are more") as usize] as usize;
        sent[flow] += u32::from(sizes[flow]);
    }
    let (least, most) = (sent.iter().min().expect("three"), sent.iter().max().expect("three"));
    assert!(*least > 30_000 && most - least <= 1500 + 2 * 1500, "{sent:?}");
}

#[test]
fn quantum_below_the_packet_size_takes_several_turns() {
    let mut bench = Bench::new(100, MANY);
    bench.enqueue(1, 1000);
    bench.enqueue(2, 150);
    bench.enqueue(2, 150);
    assert_eq!(bench.rest(), [1, 2, 0]);
}

#[test]
fn longest_queue_loses_its_oldest_packet() {
    let mut bench = Bench::new(1500, Limit::Packets(4));
    bench.fill(4, 1, 500);
    assert_eq!(bench.enqueue(2, 1000), Decision::Accept);
    assert_eq!(bench.dropped(), [0], "flow 1 has 2000 bytes");
    assert_eq!(bench.enqueue(2, 1000), Decision::Accept);
    assert_eq!(bench.dropped(), [4], "flow 2 has 2000 by now, flow 1 has 1500");
    assert_eq!(bench.drr.backlog(), (4, 2500));
    assert_eq!(bench.rest(), [1, 2, 3, 5]);
}

#[test]
fn buffer_limit_in_bytes_is_enforced() {
    let mut bench = Bench::new(1500, Limit::Bytes(3_000));
    bench.fill(5, 1, 500);
    bench.enqueue(2, 1500);
    assert_eq!(bench.dropped(), [0, 1]);
    assert_eq!(bench.enqueue(3, 4000), Decision::Drop(DropCause::Overflow), "it would be the longest alone");
    assert_eq!((bench.dropped(), bench.drr.backlog()), (vec![], (5 - 2 + 1, 3_000)));
}

#[test]
fn emptied_queue_is_served_again_after_an_arrival() {
    let mut bench = Bench::new(500, Limit::Packets(1));
    bench.enqueue(1, 400);
    bench.enqueue(2, 400);
    assert_eq!(bench.dropped(), [0]);
    assert_eq!(bench.drr.active, [bench.drr.queue_of(2)]);
    assert_eq!(bench.rest(), [1]);
    bench.enqueue(1, 400);
    assert_eq!(bench.rest(), [2]);
}

#[test]
fn consecutive_flow_numbers_use_different_queues() {
    let drr = Drr::new(Config::default());
    for first in [0, 1 << 31, 4711] {
        let mut queues: Vec<u32> = (first..first + 512).map(|flow| drr.queue_of(flow)).collect();
        queues.sort_unstable();
        queues.dedup();
        assert!(queues.len() > 500 && queues.iter().all(|queue| *queue < 1024), "{}", queues.len());
    }
}
