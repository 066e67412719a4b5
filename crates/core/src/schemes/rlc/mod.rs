//! RLC: receiver-driven layered congestion control (paper 004, 3).
//!
//! The source sends by a fixed timetable and receives no feedback. Each layer has the rate of all layers below it together. A
//! receiver leaves its highest layer when it loses a packet. It joins the next layer at a synchronisation point if the burst
//! before that point had no loss: the burst doubled the rate for a moment, as the next layer would permanently.
//!
//! ```text
//!   slots of the timetable, W = 8, B = 1        level 0 -> T_SP -> level 1 -> 2 T_SP -> level 2 -> 4 T_SP -> ..
//!
//!   |    |    |    |    |    |    ||||      |    the time at a level that a loss ends, and the time until the next
//!    one packet of the base layer  |  silence    point, make the rate fall with the square root of the loss rate,
//!    and 2^(j-1) of each layer j  burst          as TCP's does
//!    in each slot                    ^ point
//! ```
//!
//! Synchronisation points of a level are also points of the levels below. So receivers behind one bottleneck, which lose the same
//! packets, change levels together. Otherwise a receiver that leaves a layer would not relieve the bottleneck.

mod config;
mod level;
mod rare_loss;
mod receiver;
mod retry_delay;
mod source;
#[cfg(test)]
mod tests;
mod timetable;

pub use config::{Config, Pace, Points};
pub use receiver::Receiver;
pub use source::Source;
pub use timetable::{Phase, Timetable};
