//! First in, first out, with a buffer that drops from its tail or its front.
//!
//! A drop from the front removes the oldest packet to make room for the new packet. The sender then detects the congestion
//! earlier, by the duration of the queueing delay (Lakshman, Neidhardt and Ott 1996; Linux: `pfifo_head_drop`). A drop from the
//! tail removes the new packet. [`drop_tail`](crate::drop_tail) does the same and is faster, because it decides at arrival.
//!
//! The limit includes the packet in transmission.

use crate::discipline::{Decision, DropCause, Offer};
use crate::limit::{self, Limit};
use crate::qdisc::{Dropped, PacketQueue, Qdisc, Queued, Sent, Ticket};
use crate::text::table;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

table! {
    /// Parameters.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Config {
        /// Buffer, including the packet in transmission.
        limit: Limit = Limit::Packets(50)
            => option[limit::option!("buffer, including the packet in transmission")];
        /// Packet to drop at a full buffer.
        drops: Drops = Drops::Tail
            => choice["drops", { "tail" => Tail, "front" => Front },
                "packets dropped from a full buffer: the arriving one, or the oldest ones"];
    }

    impl Default;

    impl Tabled for Config as "fifo" {
        type Built = Box<dyn Qdisc>;

        fn build(&self, _rate: Rate, _delay: Span) -> Box<dyn Qdisc> {
            Box::new(Fifo::new(*self))
        }
    }
}

/// End of the queue from which a full buffer drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drops {
    /// The arriving packet is dropped.
    Tail,
    /// The oldest waiting packets are dropped.
    Front,
}

/// The discipline's state.
#[derive(Debug)]
pub struct Fifo {
    config: Config,
    packets: PacketQueue,
}

impl Fifo {
    /// Creates an empty queue.
    pub fn new(config: Config) -> Fifo {
        Fifo { config, packets: PacketQueue::default() }
    }

    fn has_room(&self, offer: &Offer) -> bool {
        let (packets, bytes) = self.packets.backlog();
        let packets = packets + u32::from(offer.in_transmission > 0);
        let bytes = bytes + u64::from(offer.in_transmission);
        self.config.limit.has_room(packets, bytes, offer.size)
    }
}

impl Qdisc for Fifo {
    fn enqueue(
        &mut self,
        offer: &Offer,
        ticket: Ticket,
        _rng: &mut Rng,
        dropped: &mut Vec<Dropped>,
    ) -> Decision {
        while !self.has_room(offer) {
            let oldest = if self.config.drops == Drops::Front { self.packets.pop() } else { None };
            // If the packet in transmission alone fills the buffer, no drop makes room.
            let Some(oldest) = oldest else { return Decision::Drop(DropCause::Overflow) };
            dropped.push(Dropped { ticket: oldest.ticket, cause: DropCause::Overflow });
        }
        self.packets.push(Queued::new(offer, ticket));
        Decision::Accept
    }

    fn dequeue(&mut self, _now: Time, _rng: &mut Rng, _dropped: &mut Vec<Dropped>) -> Option<Sent> {
        self.packets.pop().map(|packet| Sent { ticket: packet.ticket, marked: false })
    }

    fn backlog(&self) -> (u32, u64) {
        self.packets.backlog()
    }

    fn flush(&mut self, lost: &mut Vec<Ticket>) {
        self.packets.flush(lost);
    }
}
