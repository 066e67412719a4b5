//! TFMCC: TCP-friendly multicast congestion control (RFC 4654; paper 000, 1.6.2.3).
//!
//! Receivers measure their loss event rate and their round-trip time, and calculate the rate of a TCP flow on the same path. The
//! source sends at the rate that the *current limiting receiver* reports. Other receivers report rarely: each of these receivers
//! first waits for a random time, which is shorter for a low calculated rate. The headers of packets state the values that a
//! receiver needs to compute this time.
//!
//! ```text
//!   source                          limiting receiver         others
//!     | X_supp, R_max, round, echo  ----->|------------------->|
//!     |<---- X_r, stamp: each round trip -|                    | new round: wait 0 to 6 R_max
//!     | rate = X_r, rising at most a packet per R_max          |
//!     |<---- X_r, stamp ------------------------------------- | unless X_supp < X_r came before
//!     | X_supp = 0.9 X_r for all; is X_r below the rate? then it limits from now on
//! ```
//!
//! | module | content |
//! |---|---|
//! | `equation` | TCP's rate at a loss event rate, and the first loss interval |
//! | `history` | loss events of a receiver and the loss event rate |
//! | `timer` | the distribution of report delays |
//! | `clock` | round-trip times at a receiver, between clocks that differ |
//! | `echoes` | the choice of the stamp that the next packet returns |

mod clock;
mod config;
mod echoes;
mod equation;
mod history;
mod receiver;
mod source;
#[cfg(test)]
mod tests;
mod timer;

pub use config::{Config, Discounting, FirstInterval, OneWay, Recovery, Rise, TimerLaw};
pub use receiver::Receiver;
pub use source::Source;
