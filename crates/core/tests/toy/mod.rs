//! A toy scheme with one rate. It halves the rate at a loss, at most once per round trip, and otherwise adds a packet per round
//! trip.
//!
//! `one_more_scheme.rs` adds it to the list of schemes and counts the added lines.

mod config;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
