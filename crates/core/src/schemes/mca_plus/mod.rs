//! MCA+: multicast congestion avoidance with a representative and suppression of feedback (paper 000, chapter 5).
//!
//! One rate for one group, lowered when queues begin to fill and not only when they overflow. Receivers measure how many of the session's
//! bytes wait in the network ([`crate::estimate::accumulation`]). The source follows one of them as ORMCC does, the *congestion
//! representative* with the lowest *good throughput rate at congestion*: the arrival rate at congestion times one less the rate of
//! congestion. It announces its mean and deviation to all receivers; those that do better keep silent.
//!
//! ```text
//!   receiver                                           source
//!
//!   control packet with accumulation >= H              report of the representative, or of one that is
//!   or loss: an instance of congestion                 slower than its mean less a deviation (elect it)
//!        |  u, d: mean and deviation of                      |
//!        v  throughput (1 - p)                               v
//!   representative? slower than U - D?                 rate * 0.9 (accumulation) or 0.75 (loss),
//!   nobody valid? ──> report (u, d)                    once per period = SRTT + 4 sigma
//!                                                      else every period: a packet per period more
//!                                                            |  rate >= U + 4 D
//!                                                            v
//!                                                      no report for 4 periods: nobody is valid, all may report
//! ```
//!
//! Like TCP Vegas, MCA+ gets little against flows that fill queues until they overflow (paper 000, 5): it is for networks, or queues, of its
//! own.

mod config;
mod congestion_rate;
mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use config::{AcrossSwitch, Config, Samples, Suppress, WhileInvalid};
pub use receiver::{Counts, Receiver};
pub use source::{Policy, Source};
