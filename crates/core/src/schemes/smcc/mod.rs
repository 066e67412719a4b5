//! SMCC: layers with fixed highest rates, each controlled as by TFMCC; what GMCC is compared with (seed 000, chapter 4).

mod config;
mod options;
mod receiver;
mod source;

pub use config::Config;
pub use receiver::Receiver;
pub use source::Source;
