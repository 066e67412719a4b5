//! COCOON (paper 002, chapter 4) for quinn: the QUIC connections of one process to one destination prefix share what they
//! learn of congestion, over any congestion controller. Nothing is installed, and receivers notice nothing.
//!
//! A web server that answers fifty requests of one site over fifty connections competes with itself: each connection probes
//! the same path by itself, and each learns by its own losses what the others had learnt before. Here the connections to a prefix
//! are a group. When one loses, those that have as much in flight reduce their windows too. Packets that were sent before the reduction
//! and are lost as well reduce nothing again. A new connection begins with half the window of the group's smallest.
//! The rules are those of [`faircast_unicast::cocoon`].
//!
//! # Use
//!
//! quinn builds a controller without saying for which peer, so each prefix has a factory of its own: ask for it when a
//! connection comes in, and put it into that connection's transport configuration.
//!
//! ```
//! use faircast_cocoon_quinn::Cocoon;
//! use quinn_proto::TransportConfig;
//! use quinn_proto::congestion::CubicConfig;
//! use std::sync::Arc;
//!
//! let cocoon = Cocoon::new(Arc::new(CubicConfig::default()));
//! // For each `Incoming`: `incoming.accept_with(config)`, where `config` has this transport.
//! let peer = "192.0.2.17".parse().expect("an address");
//! let mut transport = TransportConfig::default();
//! transport.congestion_controller_factory(cocoon.factory(peer));
//! # let _ = transport;
//! ```
//!
//! `examples/server.rs` is a whole server.
//!
//! # What differs from the paper
//!
//! - A controller acts when quinn calls it, so others' losses take effect at a connection's next packet or acknowledgement, and are
//!   forgotten after two round trips.
//! - No controller can make quinn send a packet again, or set its timers: a timeout of one makes no other send, and each
//!   connection keeps its own estimate of the round trip.
//! - QUIC has no timeout that halves windows; persistent congestion (RFC 9002, 7.6) takes its place.
//! - A new connection never begins with more than the wrapped controller would.
//! - A connection that migrates stays in the group of its first address.

mod controller;
mod groups;
mod shared;
#[cfg(test)]
mod tests;

pub use controller::{CoordinatedController, CoordinatedFactory};
pub use faircast_unicast::cocoon::{Config, Counters};
pub use groups::{Cocoon, GroupReport};
pub use shared::Prefixes;
