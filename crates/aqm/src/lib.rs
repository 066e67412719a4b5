//! Queue disciplines, and the links behind them, in simulated or real time.
//!
//! A [`Discipline`] decides at a packet's arrival whether the packet is queued, marked or dropped. A first-in-first-out link then
//! knows immediately when the packet arrives at the other end. The simulator and the emulator call [`Link::offer`] and need no
//! further event. A [`Qdisc`] holds packets and also decides at their departure. With a `Qdisc`, the link provides the time of
//! its next event ([`Link::next_dequeue`]) and the packet that departs ([`Link::dequeue`]).
//!
//! | module | content |
//! |---|---|
//! | [`discipline`] | input and decisions of a discipline that decides at arrival |
//! | [`qdisc`] | input and decisions of a discipline that holds packets |
//! | [`spec`] | the list of disciplines, and their textual form |
//! | [`drop_tail`] [`red`] [`fred`] [`sred`] [`blue`] [`rem`] [`pi`] [`avq`] [`paqm`] [`sfc`] [`pie`] | disciplines that decide at arrival, each with its options |
//! | [`fifo`] [`codel`] [`cobalt`] [`drr`] [`fq_codel`] [`dualpi2`] | disciplines that hold packets, each with its options |
//! | [`loss`] | losses on the wire: Bernoulli, Gilbert-Elliott |
//! | [`link`] | a link: rate, delay, queue and losses |
//! | [`analysis`] | models for the design of queues |
//! | [`conformance`] | properties of every discipline, also for tests of other crates |
//!
//! Each discipline has a file, a `mod` line and a line in the list of [`spec`]. A discipline of another crate is passed to
//! [`Link::with_discipline`], or registered in [`spec::QUEUES`] and named `own:NAME` in specifications.

pub mod analysis;
mod any;
pub mod avq;
#[cfg(test)]
mod bench;
pub mod blue;
pub mod bred;
pub mod cobalt;
pub mod codel;
pub mod conformance;
pub mod discipline;
pub mod drop_tail;
pub mod drr;
pub mod dualpi2;
pub mod fifo;
mod flows;
pub mod fq_codel;
pub mod fred;
mod limit;
pub mod link;
pub mod loss;
pub mod paqm;
pub mod pi;
pub mod pie;
pub mod qdisc;
pub mod red;
pub mod rem;
pub mod sfb;
pub mod sfc;
pub mod spec;
pub mod sred;
mod text;
mod ticks;

pub use any::AnyDiscipline;
pub use discipline::{Decision, Departure, Discipline, DropCause, Ecn, Offer, Watches};
pub use limit::Limit;
pub use link::{Dequeued, Link, LinkCounts, LinkSpec, LossCause, OfferResult};
pub use loss::{Loss, LossSpec};
pub use qdisc::{Dropped, Qdisc, Queued, Sent, Ticket};
pub use spec::QueueSpec;

use faircast_core::time::Rate;

/// Returns the number of packets of this size that a link of this rate sends per second. An unlimited rate counts as a very high
/// rate, so that results stay finite.
pub(crate) fn packets_per_second(rate: Rate, packet_size: u16) -> f64 {
    (rate.bps() / (8.0 * f64::from(packet_size.max(1)))).clamp(1e-9, 1e12)
}
