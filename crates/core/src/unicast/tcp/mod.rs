//! TCP: Tahoe, Reno, NewReno, SACK and Vegas, packet by packet.
//!
//! Three sets of values ([`Config::ns235`], [`Config::ns2001`], [`Config::rfc`]) differ in clocks, timers, windows and a few
//! rules; numbers are compared with ns-2.35's under the first two.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters and the three sets of values |
//! | `rto` | round-trip estimate and timeout |
//! | `sender` | the sending end; Tahoe, Reno, NewReno |
//! | `sack` `vegas` | what these two do otherwise |
//! | `sink` | the receiving end |

mod config;
mod rto;
mod sack;
mod sender;
mod sink;
#[cfg(test)]
mod tests;
mod vegas;

pub use config::{
    Backoff, Config, Counting, CwrOn, Halving, Handshake, Idle, Inflation, Recovery, Samples, Switch, Variant,
};
pub(super) use rto::Smoothed;
pub use sender::Sender;
pub use sink::Sink;
