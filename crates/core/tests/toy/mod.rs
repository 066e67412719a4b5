//! A toy scheme with one rate. At a loss it halves the rate, at most once per round trip. Otherwise it adds one packet per
//! round-trip time to the rate, once per round trip.
//!
//! `one_more_scheme.rs` adds the toy to the list of schemes and counts the added lines.

mod config;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
