//! Transport of files, directory trees and live streams to many receivers over UDP multicast, as state machines.
//!
//! A session is an [`Endpoint`]. Its input consists of datagrams, events of the host and the time; its output consists of
//! datagrams and [`event::Event`]s. A session has no sockets, files, threads or clock; `faircast-driver` runs sessions on real
//! sockets.
//!
//! | module | contents |
//! |---|---|
//! | [`endpoint`] | the interface of every session |
//! | [`session`] | sources and receivers, created from their configurations |
//! | [`relay`] | relays: configuration, state, branches |
//! | [`tree`] | agents and active routers; the part of a relay in a session, in any role |
//! | [`config`], [`event`], [`error`] | configurations, events, errors |
//! | [`dry_run`] | results of sessions that send only the list of files |
//! | [`json`] | the JSON form of times, rates and identifiers |
//! | [`worker`] | jobs that may take long, such as work on files |
//! | [`step_driver`] | a driver of endpoints for tests |
//! | [`object`] | conversion of files and trees to blocks, and back |
//! | [`ends`] | readers and writers of a program |
//! | [`system`] | clock and random numbers |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and have threads"))]

// The code of the fuzz targets is included in tests, and refers to this crate by its name.
#[cfg(test)]
extern crate self as faircast_transport;

mod announced;
mod backoff;
pub mod config;
pub mod datagram;
mod day_limits;
pub mod dry_run;
pub mod endpoint;
pub mod error;
pub mod event;
#[allow(clippy::disallowed_methods, reason = "received content is compared with files")]
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod json;
mod members;
mod membership;
#[cfg(test)]
mod pair;
mod places;
pub mod receipts;
mod receiver;
pub mod relay;
pub mod session;
mod session_filter;
mod source;
pub mod step_driver;
mod trace;
pub mod tree;
pub mod units;
mod withdrawals;
pub mod worker;

pub use config::{
    Content, Destination, Durability, LayerInput, OverwritePolicy, Pacing, ReceiveConfig, ReplayPolicy,
    SendConfig, SlowReceiverPolicy,
};
pub use endpoint::Endpoint;
pub use ends::{Input, Output};
pub use error::{Class, Error};
pub use event::{Event, ReceiveReport, SendReport};
pub use faircast_host::{ends, system};
pub use faircast_object as object;
pub use object::{Memory, MemoryFile};
pub use session_filter::SessionFilter;
