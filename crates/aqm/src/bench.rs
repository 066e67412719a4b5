//! Helpers for the tests of several disciplines.

use crate::discipline::{Ecn, Offer};
use faircast_core::time::Time;

/// Offers a packet of 1000 bytes to a queue of `waiting` packets of the same size.
pub(crate) fn busy(waiting: u32) -> Offer {
    Offer {
        now: Time::ZERO,
        size: 1000,
        flow: 0,
        ecn: Ecn::NotEct,
        waiting,
        waiting_bytes: u64::from(waiting) * 1000,
        in_transmission: 1000,
        idle_since: None,
    }
}
