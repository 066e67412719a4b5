//! Sessions on real sockets and in real time.
//!
//! An [`Endpoint`](faircast_transport::Endpoint) of a session has no sockets, clock or threads. This crate opens the sockets,
//! passes received datagrams and the current time to the endpoints, and sends the endpoints' datagrams until all endpoints have
//! finished.
//!
//! | | |
//! |---|---|
//! | `run` | the loop; sockets of sources and receivers, with outages of the network |
//! | [`send`], [`receive`] | a session in faircast's own format |
//! | [`relay`](fn@relay) | a relay, with a thread for each session |
//! | `serve` | a source that serves hosts by unicast |
//! | [`format`](mod@format) | the sockets, the clock and the declaration of foreign formats |
//! | [`Configuration`] | the configuration of any of these |
//! | [`Stop`] | the request to end sessions early |

mod configuration;
pub mod format;
mod listen;
mod relay;
mod run;
mod serve;
mod session;
mod stop;
mod threads;

pub use configuration::Configuration;
pub use relay::relay;
pub use session::{receive, send};
#[cfg(feature = "tokio")]
pub use session::{receive_async, send_async};
pub use stop::Stop;
