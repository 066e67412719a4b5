//! SMCC: layers with fixed highest rates, each controlled as in TFMCC; the baseline of GMCC (paper 000, 4.1).
//!
//! The highest rate of layer i is 2^i times that of the base layer, 1 Mbit/s. A receiver calculates TCP's rate over all its
//! subscribed layers. It joins the next layer when this rate exceeds the sum of their highest rates. Then all its layers except
//! the highest are sent at their highest rates, and the highest layer carries the remaining rate.
//!
//! ```text
//!   a receiver's estimate  X = 2.2 Mbit/s      layer 0   at most 1     sent at 1       X      > 1: is not limited by it
//!                                              layer 1   at most 2     sent at 1.2     X - 1 = 1.2: limits it
//!                                              layer 2   at most 4     not joined      X < 1 + 2
//! ```
//!
//! Each layer is a separate TFMCC session ([`super::tfmcc`]). Its reports state the part of the estimate that the lower layers
//! leave over. A layer without receivers is off; a receiver that joins it requests it from the source.

mod config;
mod receiver;
mod rejoin_delay;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, Joins, Lower};
pub use receiver::Receiver;
pub use source::Source;
