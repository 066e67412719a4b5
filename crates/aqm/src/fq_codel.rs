//! FQ-CoDel (RFC 8290): a queue with CoDel for every flow. Queues are served in turns, new flows first.
//!
//! Flows are hashed into a fixed number of queues. If all queues together exceed the limit, the queue with the most bytes drops
//! half of its packets from the front, at most 64 at once.

use crate::codel::{self, Codel};
use crate::discipline::{Decision, DropCause, Offer};
use crate::limit::Limit;
use crate::qdisc::{Dropped, Qdisc, Sent, Ticket};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::spec::NumberRange;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct Config {
        /// Bytes added to a queue's deficit counter in each turn.
        quantum: u32 = 1514
            => whole["quantum", 64, 1_000_000, "bytes that a queue may send in addition in each turn"];
        /// Buffer of all queues together, in packets, not counting the packet in transmission.
        limit: u32 = 10_240 => whole["limit", 1, u32::MAX as u64, "buffer of all queues, in waiting packets"];
        /// Number of queues.
        queues: u32 = 1024 => whole["queues", 1, 65_536, "number of queues, into which flows are hashed"];
        /// Acceptable time in a queue.
        target: Span = Span::from_millis(5)
            => seconds["target", NumberRange::up_to(1.0), "acceptable time in a queue"];
        /// Duration for which delays may exceed the target before the first drop.
        interval: Span = Span::from_millis(100)
            => seconds["interval", NumberRange::up_to(100.0), "time above the target before the first drop"];
        /// Length in bytes up to which a queue drops no packet. 0 means the size of the queue's largest packet so far.
        keep: u32 = 0
            => whole["keep", 0, 1_000_000,
                "size of a queue, in bytes, below which no packet is dropped; 0: its largest packet"];
        /// Whether CoDel marks ECN-capable packets instead of dropping them.
        ecn: bool = false => word["ecn", "ECN-capable packets are marked instead of dropped"];
    }

    /// Values of RFC 8290; drops by default.
    impl Default;

    impl Tabled for Config as "fq_codel" {
        type Built = Box<dyn Qdisc>;

        fn fits(&self) -> Result<(), String> {
            codel::below(self.target, self.interval)
        }

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(FqCodel::new(*self))
        }
    }
}

/// Maximum number of packets that the longest queue drops at an overflow (RFC 8290, 4.1.2; Linux).
const BATCH: u32 = 64;

/// The discipline's state.
#[derive(Debug)]
pub struct FqCodel {
    config: Config,
    queues: Vec<FlowQueue>,
    /// Numbers of the queues of new flows. `old` has the numbers of the other queues with packets.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
    /// Reused buffer for the packets that CoDel drops in one queue.
    early: Vec<Dropped>,
}

/// A queue.
#[derive(Debug)]
struct FlowQueue {
    codel: Codel,
    /// Number of bytes that the queue may send. The queue's turn ends when this number is not positive.
    deficit: i64,
    is_listed: bool,
}

impl FqCodel {
    /// Creates empty queues.
    pub fn new(config: Config) -> FqCodel {
        let Config { target, interval, keep, ecn, queues, .. } = config;
        let one = codel::Config { target, interval, limit: Limit::Packets(u32::MAX), keep, ecn };
        let queue = || FlowQueue { codel: Codel::new(one), deficit: 0, is_listed: false };
        FqCodel {
            config,
            queues: std::iter::repeat_with(queue).take(queues.max(1) as usize).collect(),
            new: VecDeque::with_capacity(64),
            old: VecDeque::with_capacity(64),
            packets: 0,
            bytes: 0,
            early: Vec::new(),
        }
    }

    /// Drops packets from the front of the queue with the most bytes. Returns the cause of the drop if the packet `ticket` is
    /// dropped.
    fn make_room(&mut self, ticket: Ticket, dropped: &mut Vec<Dropped>) -> Option<DropCause> {
        let listed = self.new.iter().chain(&self.old);
        let fattest = listed.copied().max_by_key(|queue| self.queues[*queue as usize].codel.backlog().1)?;
        let codel = &mut self.queues[fattest as usize].codel;
        let enough = codel.backlog().1 / 2;
        let (mut lost, mut own) = (0, None);
        for _ in 0..BATCH {
            let Some(packet) = codel.lose_oldest() else { break };
            lost += u64::from(packet.size);
            self.packets -= 1;
            self.bytes -= u64::from(packet.size);
            if packet.ticket == ticket {
                own = Some(DropCause::Overflow);
            } else {
                dropped.push(Dropped { ticket: packet.ticket, cause: DropCause::Overflow });
            }
            if lost >= enough {
                break;
            }
        }
        own
    }

    /// Returns the queue whose turn it is, and the list that contains this queue. Ends the turns of queues whose deficit is used
    /// up.
    fn turn(&mut self) -> Option<(u32, List)> {
        loop {
            let list = if self.new.is_empty() { List::Old } else { List::New };
            let queue = *self.list(list).front()?;
            let it = &mut self.queues[queue as usize];
            if it.deficit > 0 {
                return Some((queue, list));
            }
            it.deficit += i64::from(self.config.quantum);
            self.list(list).pop_front();
            self.old.push_back(queue);
        }
    }

    fn list(&mut self, list: List) -> &mut VecDeque<u32> {
        match list {
            List::New => &mut self.new,
            List::Old => &mut self.old,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    New,
    Old,
}

impl Qdisc for FqCodel {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision {
        let place = crate::drr::hashed(offer.flow, self.queues.len());
        let it = &mut self.queues[place as usize];
        if !it.is_listed {
            it.is_listed = true;
            it.deficit = i64::from(self.config.quantum);
            self.new.push_back(place);
        }
        it.codel.enqueue(offer, ticket, rng, dropped);
        self.packets += 1;
        self.bytes += u64::from(offer.size);
        if self.packets > self.config.limit
            && let Some(cause) = self.make_room(ticket, dropped)
        {
            return Decision::Drop(cause);
        }
        Decision::Accept
    }

    fn dequeue(&mut self, now: Time, rng: &mut Rng, dropped: &mut Vec<Dropped>) -> Option<Sent> {
        loop {
            let (queue, list) = self.turn()?;
            let it = &mut self.queues[queue as usize];
            let before = it.codel.backlog();
            let sent = it.codel.dequeue(now, rng, &mut self.early);
            let after = it.codel.backlog();
            self.packets -= before.0 - after.0;
            self.bytes -= before.1 - after.1;
            dropped.append(&mut self.early);
            if let Some(sent) = sent {
                it.deficit -= i64::from(it.codel.latest_size());
                return Some(sent);
            }
            // An empty queue of a new flow moves to the list of old flows. Otherwise the flow could immediately be new again.
            self.list(list).pop_front();
            if list == List::New && !self.old.is_empty() {
                self.old.push_back(queue);
            } else {
                self.queues[queue as usize].is_listed = false;
            }
        }
    }

    fn backlog(&self) -> (u32, u64) {
        (self.packets, self.bytes)
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        for queue in self.new.drain(..).chain(self.old.drain(..)) {
            let it = &mut self.queues[queue as usize];
            it.codel.flush(lost);
            it.is_listed = false;
        }
        (self.packets, self.bytes) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench;

    struct Bench {
        queue: FqCodel,
        tickets: u32,
        dropped: Vec<Dropped>,
    }

    impl Bench {
        fn new(config: Config) -> Bench {
            Bench { queue: FqCodel::new(config), tickets: 0, dropped: Vec::new() }
        }

        fn arrives(&mut self, flow: u32, size: u16) -> Decision {
            self.tickets += 1;
            let offer = Offer { flow, size, ..bench::busy(0) };
            self.queue.enqueue(&offer, Ticket(self.tickets - 1), &mut Rng::new(1, 1), &mut self.dropped)
        }

        fn leaves(&mut self) -> Option<u32> {
            let sent = self.queue.dequeue(Time::ZERO, &mut Rng::new(1, 1), &mut self.dropped);
            sent.map(|sent| sent.ticket.0)
        }
    }

    #[test]
    fn new_flow_is_served_before_older_flows() {
        let mut bench = Bench::new(Config { quantum: 1500, ..Config::default() });
        for _ in 0..6 {
            bench.arrives(1, 1500);
        }
        assert_eq!([bench.leaves(), bench.leaves()], [Some(0), Some(1)]);
        bench.arrives(2, 100); // packet 6
        assert_eq!([bench.leaves(), bench.leaves()], [Some(6), Some(2)]);
    }

    #[test]
    fn flows_with_small_and_large_packets_send_the_same_bytes() {
        let mut bench = Bench::new(Config { quantum: 1500, ..Config::default() });
        for _ in 0..400 {
            bench.arrives(1, 1500);
            bench.arrives(2, 300);
        }
        let mut bytes = [0, 0];
        for _ in 0..240 {
            let place = (bench.leaves().expect("packets wait") % 2) as usize;
            bytes[place] += [1500, 300][place];
        }
        assert!((bytes[0] as i64 - bytes[1] as i64).abs() <= 3000, "{bytes:?}");
    }

    #[test]
    fn largest_queue_loses_half_of_its_bytes_from_the_front() {
        let mut bench = Bench::new(Config { limit: 20, ..Config::default() });
        for _ in 0..10 {
            bench.arrives(2, 100);
        }
        for _ in 0..10 {
            assert_eq!(bench.arrives(1, 1000), Decision::Accept);
        }
        assert!(bench.dropped.is_empty());
        assert_eq!(bench.arrives(1, 1000), Decision::Accept);
        let tickets: Vec<u32> = bench.dropped.iter().map(|dropped| dropped.ticket.0).collect();
        assert_eq!(tickets, [10, 11, 12, 13, 14, 15], "six of eleven are half of 11,000 bytes");
        assert_eq!(bench.queue.backlog(), (15, 6000));
    }

    #[test]
    fn every_accepted_packet_departs() {
        let mut bench = Bench::new(Config { queues: 4, quantum: 300, ..Config::default() });
        let mut rng = Rng::new(2, 2);
        let (mut came, mut left) = (0, 0);
        for _ in 0..20_000 {
            if rng.chance(0.5) {
                bench.arrives(rng.below(9) as u32, 100 + rng.below(1400) as u16);
                came += 1;
            } else if bench.leaves().is_some() {
                left += 1;
            }
        }
        while bench.leaves().is_some() {
            left += 1;
        }
        assert_eq!((came, bench.queue.backlog()), (left, (0, 0)));
    }
}
