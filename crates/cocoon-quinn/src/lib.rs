//! COCOON (paper 002, chapter 4) for quinn. The QUIC connections of one process to one destination prefix share their knowledge
//! of congestion. COCOON works with any congestion controller and needs no change to the system or the receivers.
//!
//! A web server that answers fifty requests from one site over fifty connections competes with itself. Each connection probes the
//! same path, and learns of congestion only from its own losses. COCOON groups the connections to a prefix. When a member loses
//! packets, the members with at least as much data in flight also reduce their windows. Losses of packets that were sent before
//! the reduction cause no further reduction. A new connection starts with half of the smallest window in the group. The rules are
//! those of [`faircast_unicast::cocoon`].
//!
//! # Use
//!
//! quinn builds a controller without naming the peer, so each prefix needs a separate factory. Get the factory when a connection
//! arrives, and set it in the transport configuration of the connection.
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
//! `examples/server.rs` is a complete server.
//!
//! # What differs from the paper
//!
//! - A controller acts only when quinn calls it. Losses of other connections take effect at a connection's next packet or
//!   acknowledgement, and expire after two round-trip times.
//! - A controller cannot make quinn retransmit a packet or set timers. A timeout of one connection causes no transmission on others,
//!   and each connection has its own estimate of the round-trip time.
//! - QUIC has no timeout that halves windows. Persistent congestion (RFC 9002, 7.6) is used instead.
//! - A new connection never starts with a larger window than the window with which the wrapped controller would start.
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
