//! First in, first out; an arriving packet is dropped if the buffer is full.

use crate::discipline::{Decision, Discipline, DropCause, Offer};
use crate::limit::Limit;
use crate::text::Written;
use faircast_core::rng::Rng;
use faircast_core::spec::{Described, SpecError};
use faircast_core::time::{Rate, Span};

/// The discipline of most routers.
#[derive(Debug, Clone, Copy)]
pub struct DropTail {
    limit: Limit,
}

impl DropTail {
    /// Creates a queue with a buffer of this size. The packet in transmission occupies a part of the buffer.
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
        let packets = offer.waiting + u32::from(offer.in_transmission > 0);
        let bytes = offer.waiting_bytes + u64::from(offer.in_transmission);
        let has_room = self.limit.has_room(packets, bytes, offer.size);
        if has_room { Decision::Accept } else { Decision::Drop(DropCause::Overflow) }
    }
}

impl Written for Limit {
    const NAME: &'static str = "droptail";
    const FORM: &'static str = "droptail,SIZE";
    type Built = DropTail;

    fn read(options: &str) -> Result<Limit, SpecError> {
        if options.is_empty() {
            return Err(SpecError::Missing {
                of: "droptail",
                missing: "the buffer's size: `droptail,50` or `droptail,50kB`",
            });
        }
        options.parse()
    }

    fn check(&self) -> Result<(), SpecError> {
        match self {
            Limit::Packets(0) | Limit::Bytes(0) => {
                let what = "the buffer's size must be above 0, or no packet passes".to_owned();
                Err(SpecError::Unfit { of: "droptail", what })
            }
            _ => Ok(()),
        }
    }

    fn options(&self) -> String {
        self.to_string()
    }

    fn described() -> Vec<Described> {
        Vec::new()
    }

    fn make(&self, _rate: Rate, _delay: Span) -> DropTail {
        DropTail::new(*self)
    }
}
