//! MCA+: multicast congestion avoidance with a representative and with feedback suppression (paper 000, chapter 5).
//!
//! MCA+ sends one rate to one group. It lowers the rate when queues begin to fill, before they overflow. Receivers measure how
//! many bytes of the session wait in the network ([`crate::estimate::accumulation`]). As in ORMCC, the source follows one
//! receiver, the *congestion representative*: the receiver with the lowest mean *good throughput rate at congestion*. A sample of
//! this throughput is the arrival rate at congestion times one minus the rate of congestion. The source announces the
//! representative's mean and deviation to all receivers. Receivers with higher throughput do not report.
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
//! Like TCP Vegas, MCA+ gets little of the capacity next to flows that fill queues until they overflow (paper 000, 5). It is for
//! dedicated networks or queues.

mod config;
mod congestion_rate;
mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use config::{AcrossSwitch, Config, Samples, Suppress, WhileInvalid};
pub use receiver::{Counts, Receiver};
pub use source::{Policy, Source};
