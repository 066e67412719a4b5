//! SMCC: layers with fixed highest rates, each controlled as in TFMCC; the baseline of GMCC (paper 000, 4.1).
//!
//! The highest rate of the base layer is 1 Mbit/s; that of layer i is 2^i Mbit/s. A receiver calculates TCP's rate over all its
//! subscribed layers. When this rate exceeds the sum of the highest rates of the subscribed layers, the receiver joins the next
//! layer. From then on, the new layer carries the remaining rate, and each layer below it is sent at its highest rate.
//!
//! ```text
//!   a receiver's estimate  X = 2.2 Mbit/s      layer 0   at most 1     sent at 1       X      > 1: is not limited by it
//!                                              layer 1   at most 2     sent at 1.2     X - 1 = 1.2: limits it
//!                                              layer 2   at most 4     not joined      X < 1 + 2
//! ```
//!
//! Each layer is a separate TFMCC session ([`super::tfmcc`]). The reports of a layer state the part of the estimate that the
//! lower layers leave. A layer without receivers is off; a receiver that joins such a layer requests the layer from the source.

mod config;
mod receiver;
mod rejoin_delay;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, Joins, Lower};
pub use receiver::Receiver;
pub use source::Source;
