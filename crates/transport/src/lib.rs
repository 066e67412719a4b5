//! Files, trees and live streams to many receivers over UDP multicast.
//!
//! A session is an [`Endpoint`]: datagrams and the present come in, datagrams and [`event::Event`]s go out, and no socket and
//! no clock is in it. [`send`] and [`receive`] run one on the sockets of `faircast-net`, in the calling thread, until it has
//! ended; crates of their own do so for the foreign formats, by [`format`](mod@format).
//!
//! | | |
//! |---|---|
//! | `endpoint` | what all sessions are to whoever drives them |
//! | `driver` | the loop, the sockets, outages of the network |
//! | `source`, `receiver`, `relay` | sessions in faircast's own format |
//! | `format` | what sessions in the foreign formats need of a host |
//! | `by_hand` | endpoints without a driver, in tests |
//! | `object` | files and trees as blocks, and back |
//! | `ends` | readers and writers in place of files |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and have threads"))]

mod accept;
mod announced;
mod backoff;
pub mod by_hand;
pub mod config;
pub mod datagram;
pub mod endpoint;
pub mod error;
pub mod event;
#[allow(clippy::disallowed_methods, reason = "what is received is compared with files")]
#[doc(hidden)]
pub mod fuzzing;
mod members;
mod membership;
#[cfg(test)]
mod pair;
mod places;
pub mod receipts;
mod receiver;
pub mod relay;
pub mod session;
mod source;
pub mod units;
mod withdrawals;
pub mod worker;

pub use accept::Accept;
pub use config::{
    Content, Destination, Durability, Freshness, LayerInput, Pacing, ReceiveConfig, Replace, SendConfig, Slow,
};
pub use endpoint::Endpoint;
pub use ends::{Input, Output};
pub use error::{Class, Error};
pub use event::{Event, ReceiveReport, SendReport};
pub use faircast_host::{ends, system};
pub use faircast_object as object;
pub use object::{Memory, MemoryFile};
