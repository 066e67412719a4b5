//! TCP: Tahoe, Reno, NewReno, SACK and Vegas, packet by packet.
//!
//! Three sets of values ([`Config::ns235`], [`Config::ns2001`], [`Config::rfc`]) differ in clocks, timers, windows and a few
//! rules; numbers are compared with ns-2.35's under the first two.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters and the three sets of values |
//! | `window` | the congestion window and the slow-start threshold |
//! | `aimd` | how they move: Tahoe, Reno, NewReno, SACK |
//! | `rto` | round-trip estimate, timeout and timer |
//! | `tcb` | a sender's control block: sequence numbers, window and timer; what loss recovery works on |
//! | `fast` | loss recovery of Tahoe, Reno and NewReno |
//! | `sack` | loss recovery by selective acknowledgements |
//! | `vegas` | Vegas: how its window moves, and its loss recovery |
//! | `sender` | the sending end, of these parts |
//! | `sink` | the receiving end |

mod aimd;
mod config;
mod fast;
mod rto;
mod sack;
mod sender;
mod sink;
mod tcb;
#[cfg(test)]
mod tests;
mod vegas;
mod window;

pub use config::{
    Backoff, Config, Counting, CwrOn, Halving, Handshake, Idle, Inflation, Recovery, Samples, Switch, Variant,
};
pub(super) use rto::Smoothed;
pub use sender::Sender;
pub use sink::Sink;
pub use window::CongestionWindow;
