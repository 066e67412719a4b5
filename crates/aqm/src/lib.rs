//! Queue disciplines, and the links they guard, in simulated or in real time.
//!
//! A [`Discipline`] decides when a packet arrives whether it waits, is marked or is dropped. With that, a first-in-first-out
//! link knows the moment of every packet's arrival at its other end as soon as it is offered: the simulator and the
//! emulator ask [`Link::offer`] and need no further event. A [`Qdisc`] holds packets and decides at departure, too:
//! then the link says when it wants to be asked again ([`Link::next_dequeue`]) and what leaves ([`Link::dequeue`]).
//!
//! | module | what it holds |
//! |---|---|
//! | [`discipline`] | what a discipline that decides at arrival sees and decides |
//! | [`qdisc`] | the same for one that holds packets |
//! | [`spec`] | the list of disciplines; one as text |
//! | [`drop_tail`] [`red`] [`fred`] [`sred`] [`blue`] [`rem`] [`pi`] [`avq`] [`paqm`] [`sfc`] [`pie`] | disciplines that decide at arrival, each with its options |
//! | [`fifo`] [`codel`] [`cobalt`] [`drr`] [`fq_codel`] [`dualpi2`] | disciplines that hold packets, each with its options |
//! | [`loss`] | losses on the wire: Bernoulli, Gilbert-Elliott |
//! | [`link`] | rate, delay, queue and loss together |
//! | [`analysis`] | models behind the design of queues |
//!
//! A discipline is one file, its `mod` line and its line in the list of [`spec`]. One from outside goes into
//! [`Link::with_discipline`].

pub mod analysis;
mod any;
pub mod avq;
#[cfg(test)]
mod bench;
pub mod blue;
pub mod bred;
pub mod cobalt;
pub mod codel;
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

/// Packets of this size that a link of this rate sends in a second. A wire without a transmitter counts as a very fast one, so that
/// nothing computed of it is infinite.
pub(crate) fn packets_per_second(rate: Rate, packet_size: u16) -> f64 {
    (rate.bps() / (8.0 * f64::from(packet_size.max(1)))).clamp(1e-9, 1e12)
}
