//! Files, trees and live streams to many receivers over UDP multicast, as state machines.
//!
//! A session is an [`Endpoint`]: datagrams, notices of the host and the present come in, datagrams and [`event::Event`]s go out. No session
//! has sockets, files, threads or a clock; `faircast-driver` runs them on real sockets.
//!
//! | module | contents |
//! |---|---|
//! | [`endpoint`] | the interface of every session |
//! | [`session`] | a source and a receiver, made from their configurations |
//! | [`relay`] | relays: configuration, state, branches |
//! | [`tree`] | agents and hops with routers; a relay's part in a session, in any role |
//! | [`config`], [`event`], [`error`] | configurations, events, errors |
//! | [`json`] | the JSON form of times, rates and identities |
//! | [`worker`] | jobs that may take long, such as those on files |
//! | [`step_driver`] | driving an endpoint in tests |
//! | [`object`] | files and trees as blocks, and back |
//! | [`ends`], [`system`] | readers and writers of a program; clock and random numbers |

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and have threads"))]

// The code of the fuzz targets, which tests include, names this crate.
#[cfg(test)]
extern crate self as faircast_transport;

mod announced;
mod backoff;
pub mod config;
pub mod datagram;
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
