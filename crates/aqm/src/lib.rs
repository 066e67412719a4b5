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
//! | [`drop_tail`] [`red`] | disciplines that decide at arrival, each with its options |
//! | [`fifo`] [`codel`] [`drr`] | disciplines that hold packets, each with its options |
//! | [`loss`] | losses on the wire: Bernoulli, Gilbert-Elliott |
//! | [`link`] | rate, delay, queue and loss together |
//!
//! A discipline is one file, its `mod` line and its line in the list of [`spec`]. One from outside goes into
//! [`Link::with_discipline`].

mod any;
pub mod codel;
pub mod discipline;
pub mod drop_tail;
pub mod drr;
pub mod fifo;
mod limit;
pub mod link;
pub mod loss;
pub mod qdisc;
pub mod red;
pub mod spec;
mod written;

pub use any::AnyDiscipline;
pub use discipline::{Decision, Departure, Discipline, DropCause, Offer, Watches};
pub use limit::Limit;
pub use link::{Dequeued, Fate, Link, LinkCounts, LinkSpec, LossCause};
pub use loss::{Loss, LossSpec};
pub use qdisc::{Dropped, Qdisc, Queued, Sent, Ticket};
pub use spec::QueueSpec;
