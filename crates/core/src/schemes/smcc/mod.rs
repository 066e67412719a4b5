//! SMCC: layers with fixed highest rates, each controlled as by TFMCC; the baseline of GMCC (paper 000, 4.1).
//!
//! Layer i may have up to 2^i times the base layer's highest rate, 1 Mbit/s. A receiver calculates TCP's rate over all the
//! layers it is subscribed to, and joins a layer when that is more than they may have together. All its layers but the
//! highest are then sent as fast as they may; the highest one makes up for the rest.
//!
//! ```text
//!   a receiver's estimate  X = 2.2 Mbit/s      layer 0   at most 1     sent at 1       X      > 1: is not limited by it
//!                                              layer 1   at most 2     sent at 1.2     X - 1 = 1.2: limits it
//!                                              layer 2   at most 4     not joined      X < 1 + 2
//! ```
//!
//! Each layer is a TFMCC session of its own ([`super::tfmcc`]): its reports state how much of the estimate the layers below leave over. A
//! layer without receivers is off; a receiver that joins it requests it.

mod config;
mod receiver;
mod rejoin_delay;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, Joins, Lower};
pub use receiver::Receiver;
pub use source::Source;
