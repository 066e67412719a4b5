//! First in, first out; the arriving packet is dropped when the buffer is full.

use crate::discipline::{Decision, Discipline, DropCause, Limit, Offer};
use faircast_core::rng::Rng;

/// The discipline of most routers.
#[derive(Debug, Clone, Copy)]
pub struct DropTail {
    limit: Limit,
}

impl DropTail {
    /// With a buffer of this size. The packet in transmission counts.
    pub const fn new(limit: Limit) -> DropTail {
        DropTail { limit }
    }

    /// The buffer's size.
    pub const fn limit(&self) -> Limit {
        self.limit
    }
}

impl Discipline for DropTail {
    #[inline]
    fn on_arrival(&mut self, offer: &Offer, _rng: &mut Rng) -> Decision {
        let full = match self.limit {
            Limit::Packets(limit) => offer.waiting + u32::from(offer.in_transmission > 0) >= limit,
            Limit::Bytes(limit) => {
                u64::from(offer.waiting_bytes) + u64::from(offer.in_transmission) + u64::from(offer.size)
                    > u64::from(limit)
            }
        };
        if full { Decision::Drop(DropCause::Overflow) } else { Decision::Accept }
    }
}
