//! Queue disciplines, and the links they guard, in simulated or in real time.
//!
//! A discipline decides when a packet arrives whether it waits, is marked or is dropped. With that, a first-in-first-out
//! link knows the moment of every packet's arrival at its other end as soon as it is offered: the simulator and the
//! emulator ask [`Link::offer`] and need no further event.
//!
//! | module | what it holds |
//! |---|---|
//! | [`discipline`] | what a discipline sees and decides; all of them behind one enum |
//! | [`drop_tail`] [`red`] | the disciplines, each with its options as text |
//! | [`loss`] | losses on the wire: Bernoulli, Gilbert-Elliott |
//! | [`link`] | rate, delay, queue and loss together |

pub mod discipline;
pub mod drop_tail;
pub mod link;
pub mod loss;
pub mod red;

pub use discipline::{AnyDiscipline, Decision, Discipline, DropCause, Limit, Offer, QueueSpec};
pub use link::{Fate, Link, LinkCounts, LinkSpec, LossCause};
pub use loss::{Loss, LossSpec};
