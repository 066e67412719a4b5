//! How a rate moves: policies, pacing, gates and guards.
//!
//! A scheme decides *whom to follow*; the modules here decide *how fast to go*. The thesis (abstract)
//! calls rate adaptation a part that can be exchanged, so a policy is a trait of its own.

pub mod aimd;
pub mod bounds;
pub mod cut_gate;
pub mod pacer;
pub mod pressure;
pub mod start;

pub use aimd::{Aimd, Operating, RatePolicy};
pub use bounds::{Bounds, SendMeter};
pub use cut_gate::CutGate;
pub use pacer::Pacer;
pub use pressure::Pressure;
pub use start::{Doubling, StartUp};
