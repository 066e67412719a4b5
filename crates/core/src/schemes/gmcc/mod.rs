//! GMCC: generalized multicast congestion control, several rates in layers that adapt themselves (seed 000, chapter 4).

mod config;
mod options;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
