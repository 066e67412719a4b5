//! A toy: one rate, which halves at a loss, once per round trip at most, and grows by a packet per round trip.
//!
//! `one_more_scheme.rs` adds it to the list of schemes and counts what that takes.

mod config;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
