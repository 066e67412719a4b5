//! TCP: Tahoe, Reno, NewReno, SACK, Vegas, CUBIC, DCTCP, Prague and BBR, packet by packet.
//!
//! Presets ([`Config::ns235`], [`Config::ns2001`], [`Config::ns21b7a`], [`Config::ns226`], [`Config::rfc`], [`Config::linux`], [`Config::linux24`])
//! differ in clocks, timers, windows and a few rules. The tests compare results of the first two presets with ns-2.35.
//!
//! | module | content |
//! |---|---|
//! | `config` | parameters and the sets of values |
//! | `window` | the congestion window and the slow-start threshold |
//! | `aimd` | window rules of Tahoe, Reno, NewReno, SACK |
//! | `rto` | round-trip estimate, timeout and timer |
//! | `tcb` | a sender's control block: sequence numbers, window and timer, the state of loss recovery |
//! | `fast` | loss recovery of Tahoe, Reno and NewReno |
//! | `sack` | loss recovery by selective acknowledgements |
//! | `vegas` | window rules and loss recovery of Vegas |
//! | `law` | window rules of CUBIC, DCTCP, Prague and BBR |
//! | `sender` | the sender, composed of these parts, and changes of its window by a coordinator |
//! | `sink` | the receiver |
//!
//! # Coordinated senders
//!
//! Connections over one path may share information (RFC 9040; paper 002, 4). A coordinator runs after every call of a [`Sender`],
//! and reads [`Sender::view`] and [`Sender::round_trip`]. It detects congestion by the counts in
//! [`SenderView`](super::SenderView): `cuts` has grown, or `timeouts` has grown. The coordinator changes windows with
//! [`Sender::obey`], [`Sender::set_window`] and [`Sender::reduce`], and estimates with [`Sender::set_round_trip`]. With
//! [`Sender::cover`] it excludes losses for which a reduction was already made. After each of these calls, the driver reads
//! `departure` and `deadline` again: of the changed sender, and of the sender whose call made the coordinator run.

mod aimd;
mod config;
mod fast;
mod law;
mod out_of_order;
mod rto;
mod sack;
mod sender;
mod sink;
mod tcb;
#[cfg(test)]
mod tests;
mod vegas;
mod window;

pub use crate::rtt::RttEstimate;
pub use config::{
    AfterMark, Backoff, Config, Counting, CwrOn, Duplicates, Halving, Handshake, Idle, Inflation, Recovery,
    Samples, Shrinking, Switch, Variant,
};
pub(super) use rto::Smoothed;
pub use sender::{Reduced, Reduction, Sender};
pub use sink::Sink;
pub use window::CongestionWindow;
