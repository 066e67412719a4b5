//! Deficit round robin (Shreedhar and Varghese 1995): every flow has its own queue, and all queues with packets send equally many
//! bytes.
//!
//! Flows are hashed into a fixed number of queues, as in stochastic fairness queueing (McKenney 1990). Flows with the same hash
//! share a queue. Queues with packets are served in turns. A turn adds a quantum to a queue's deficit counter. The queue sends
//! packets until the next packet is larger than the counter. When the buffer is full, the longest queue drops its oldest packet
//! (McKenney's buffer stealing, but from the front, as in ns-2).

use crate::discipline::{Decision, DropCause, Offer};
use crate::limit::{self, Limit};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Config {
        /// Bytes added to a queue's deficit counter in each turn. If the quantum is smaller than the largest packet, a queue may
        /// send nothing in a turn.
        quantum: u32 = 1514
            => whole["quantum", 64, 1_000_000, "bytes that a queue may send in addition in each turn"];
        /// Buffer of all queues together, not counting the packet in transmission.
        limit: Limit = Limit::Packets(127)
            => option[limit::option!("buffer of all queues, without the packet in transmission")];
        /// Number of queues.
        queues: u32 = 1024 => whole["queues", 1, 65_536, "number of queues, into which flows are hashed"];
    }

    /// The quantum is the size of an Ethernet packet. The buffer has 127 packets, and there are 1024 queues, as in Linux' `sfq`.
    impl Default;

    impl Tabled for Config as "drr" {
        type Built = Box<dyn Qdisc>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(Drr::new(*self))
        }
    }
}

/// The discipline's state.
#[derive(Debug)]
pub struct Drr {
    config: Config,
    queues: Vec<FlowQueue>,
    /// Queues with packets, in the order of their turns (ActiveList).
    active: VecDeque<u32>,
    turn: Turn,
    packets: u32,
    bytes: u64,
}

/// A queue.
#[derive(Debug, Default)]
struct FlowQueue {
    packets: PacketQueue,
    /// Bytes that the queue may send before its next turn (DC).
    deficit: u32,
}

/// Whether the first active queue has received the quantum of its present turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Begins,
    GoesOn,
}

/// Returns the number of a flow's queue, below `queues`. Consecutive flow numbers get different queues where possible (Fibonacci
/// hashing).
pub(crate) fn hashed(flow: u32, queues: usize) -> u32 {
    let mixed = u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((mixed * queues as u64) >> 32) as u32
}

impl Drr {
    /// Creates empty queues.
    pub fn new(config: Config) -> Drr {
        let queues = std::iter::repeat_with(FlowQueue::default).take(config.queues.max(1) as usize).collect();
        let active = VecDeque::new();
        Drr { config, queues, active, turn: Turn::Begins, packets: 0, bytes: 0 }
    }

    fn queue_of(&self, flow: u32) -> u32 {
        hashed(flow, self.queues.len())
    }

    /// Removes a queue's oldest packet. If the queue is then empty, ends the queue's turn.
    fn pop(&mut self, queue: u32) -> Option<Queued> {
        let it = &mut self.queues[queue as usize];
        let packet = it.packets.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.size);
        if it.packets.front().is_none() {
            it.deficit = 0;
            if self.active.front() == Some(&queue) {
                self.active.pop_front();
                self.turn = Turn::Begins;
            } else {
                self.active.retain(|other| *other != queue);
            }
        }
        Some(packet)
    }

    /// Returns the queue with the most bytes. Among queues with equally many bytes, returns the queue with the next turn.
    fn longest(&self) -> Option<u32> {
        let bytes = |queue: &u32| self.queues[*queue as usize].packets.backlog().1;
        self.active.iter().copied().rev().max_by_key(bytes)
    }
}

impl Qdisc for Drr {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision {
        let queue = self.queue_of(offer.flow);
        let it = &mut self.queues[queue as usize];
        if it.packets.front().is_none() {
            self.active.push_back(queue);
        }
        it.packets.push(Queued::new(offer, ticket));
        self.packets += 1;
        self.bytes += u64::from(offer.size);
        let mut decision = Decision::Accept;
        while self.config.limit.is_exceeded(self.packets, self.bytes) {
            let Some(stolen) = self.longest().and_then(|queue| self.pop(queue)) else { break };
            if stolen.ticket == ticket {
                decision = Decision::Drop(DropCause::Overflow);
            } else {
                dropped.push(Dropped { ticket: stolen.ticket, cause: DropCause::Overflow });
            }
        }
        decision
    }

    fn dequeue(&mut self, _now: Time, _rng: &mut Rng, _dropped: &mut Vec<Dropped>) -> Option<Sent> {
        loop {
            let queue = *self.active.front()?;
            let it = &mut self.queues[queue as usize];
            if self.turn == Turn::Begins {
                it.deficit = it.deficit.saturating_add(self.config.quantum);
                self.turn = Turn::GoesOn;
            }
            let size = it.packets.front().map_or(0, |packet| u32::from(packet.size));
            if size <= it.deficit {
                it.deficit -= size;
                return self.pop(queue).map(|packet| Sent { ticket: packet.ticket, marked: false });
            }
            self.active.rotate_left(1);
            self.turn = Turn::Begins;
        }
    }

    fn backlog(&self) -> (u32, u64) {
        (self.packets, self.bytes)
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        for queue in self.active.drain(..) {
            let it = &mut self.queues[queue as usize];
            it.packets.flush(lost);
            it.deficit = 0;
        }
        (self.packets, self.bytes, self.turn) = (0, 0, Turn::Begins);
    }
}

#[cfg(test)]
mod tests;
