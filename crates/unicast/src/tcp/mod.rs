//! TCP: Tahoe, Reno, NewReno, SACK, Vegas, CUBIC, DCTCP, Prague and BBR, packet by packet.
//!
//! Sets of values ([`Config::ns235`], [`Config::ns2001`], [`Config::ns21b7a`], [`Config::rfc`], [`Config::linux`],
//! [`Config::linux24`]) differ in clocks, timers, windows and a few rules; numbers are compared with ns-2.35's under the first two.
//!
//! | module | what it holds |
//! |---|---|
//! | `config` | parameters and the sets of values |
//! | `window` | the congestion window and the slow-start threshold |
//! | `aimd` | how they move: Tahoe, Reno, NewReno, SACK |
//! | `rto` | round-trip estimate, timeout and timer |
//! | `tcb` | a sender's control block: sequence numbers, window and timer; what loss recovery works on |
//! | `fast` | loss recovery of Tahoe, Reno and NewReno |
//! | `sack` | loss recovery by selective acknowledgements |
//! | `vegas` | Vegas: how its window moves, and its loss recovery |
//! | `law` | how the windows of CUBIC, DCTCP, Prague and BBR move |
//! | `sender` | the sending end, of these parts; how others move its window |
//! | `sink` | the receiving end |
//!
//! # Coordinated senders
//!
//! Connections over one path may share their knowledge (RFC 9040; paper 002, 4). Their coordinator sees every
//! call to a [`Sender`], reads its [`Sender::view`] and [`Sender::round_trip`], and learns of congestion from
//! the counts in [`SenderView`](super::SenderView): `cuts` grow, and `timeouts` with them when it was one. It
//! moves windows with [`Sender::obey`], [`Sender::set_window`] and [`Sender::reduce`], and estimates with
//! [`Sender::set_round_trip`]. [`Sender::cover`] states which losses were answered. These are calls like
//! others: after them the driver reads `departure` and `deadline` of that sender again, as of the one that was
//! called first.

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
