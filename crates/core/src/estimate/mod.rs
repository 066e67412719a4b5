//! Estimators that schemes share: smoothed means, round-trip times and arrival rates.

pub mod accumulation;
pub mod ewma;
pub mod group_rtt;
pub mod loss_causes;
pub mod prediction;
pub mod round_trip;
pub mod rtt;
pub mod throughput;

pub use accumulation::{Accumulation, ControlClock, Measuring};
pub use ewma::Ewma;
pub use group_rtt::GroupRtt;
pub use loss_causes::LossCauses;
pub use round_trip::RoundTrip;
pub use rtt::SendHistory;
pub use throughput::Throughput;
