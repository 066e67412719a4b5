//! MCA: multicast congestion avoidance (paper 000, appendix D; chapter 5 for the theory).
//!
//! MCA sends one rate to one group. It lowers the rate when queues begin to fill, before they overflow. Receivers measure how
//! many bytes of the session wait in the network ([`crate::estimate::accumulation`]). A receiver reports congestion once per
//! control packet, without feedback suppression. The source filters the reports by one of two kinds of filters:
//!
//! ```text
//!   Bin-CI: a report says "congestion"                        ER-CI: it says how fast packets arrived, V_f
//!
//!   report ──> CI2CE ──────> MaxLPRF ─────────> ATF ──> cut   report ──> (1) the first one, or
//!              one event     with probability   one                      (2) from the receiver followed, or
//!              per receiver  max X / sum X      cut                      (3) V_f < mean - 3 deviations, or
//!              and round     (X: its events)    per                      (4) long silence and a high rate
//!              trip                             round trip               ──> rate = min(rate, beta V_f)
//!   state: a count per receiver                               state: one receiver, mean and deviation of V_f
//! ```
//!
//! Between reports the rate grows by a packet per `RTT + 2 sigma`. Like TCP Vegas, MCA gets little of the capacity next to flows
//! that fill queues until they overflow (paper 000, 5). It is for dedicated networks or queues.

mod bin;
mod config;
mod er;
pub(super) mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, Excess, Gate, Mode};
pub use receiver::Receiver;
pub use source::{Policy, Source};
