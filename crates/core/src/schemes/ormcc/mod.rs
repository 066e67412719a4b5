//! ORMCC: optimised rate-based multicast congestion control (paper 000, chapter 3, appendix B).
//!
//! ORMCC sends one rate to one group. At each loss, receivers measure the rate at which packets arrive: their *throughput rate at
//! congestion*. The source follows the receiver with the lowest mean, the *congestion representative*, and announces this
//! receiver's mean and deviation to all receivers. Receivers with a higher mean send no reports. The source and each receiver
//! need constant memory, whatever the size of the group.
//!
//! ```text
//!                      ┌──────────┐
//!                      │ start-up │ only with Start::Doubling
//!                      └────┬─────┘
//!      two slow rounds      │    first congestion report
//!          ┌────────────────┴──────────────────┐
//!          v                                   v
//!   ┌───────────────┐   any congestion   ┌───────────────────────┐
//!   │ nobody valid: │──── report: ──────>│ representative valid: │──┐ its report: cut to beta mu,
//!   │ all may       │     elect          │ it and slower ones    │  │   learn mean, deviation, RTT
//!   │ report        │                    │ may report            │<─┘ slower one's report: elect, cut
//!   └───────────────┘                    └──────────┬────────────┘
//!          ^                                        │ rate >= mean + 4 deviations
//!          │                                        v
//!          │  silent for E(T) + 8 dev(T)      ┌───────────┐  a cut or a report of the
//!          └──────── or it left ──────────────│ suspected │────── representative: valid
//!                                             └───────────┘
//!
//!   in all three, every round-trip time without a cut: rate += one packet per round-trip time
//! ```

mod config;
mod receiver;
mod source;
#[cfg(test)]
mod tests;

pub use config::{AcrossSwitch, Config, SwitchOn};
pub use receiver::{Counts, Receiver};
pub use source::{Policy, Source};
