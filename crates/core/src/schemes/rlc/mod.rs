//! RLC: receiver-driven layered congestion control (seed 004).

mod config;
mod options;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
