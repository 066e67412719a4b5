//! Estimators that schemes share: smoothed means, round-trip times and arrival rates.

pub mod accumulation;
pub mod ewma;
pub mod rtt;
pub mod throughput;

pub use accumulation::{Accumulation, ControlClock, Measuring};
pub use ewma::Ewma;
pub use rtt::{LargestRtt, SendHistory, Transmission};
pub use throughput::Throughput;
