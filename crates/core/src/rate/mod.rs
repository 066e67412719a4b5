//! How a rate moves: policies, pacing, gates and guards.
//!
//! A scheme decides *whom to follow*; the modules here decide *how fast to go*. The thesis (abstract)
//! calls rate adaptation a part that can be exchanged, so a policy is a trait of its own.

pub mod aimd;
pub mod binomial;
pub mod bounds;
pub mod cut_gate;
pub mod equation;
pub mod opening;
pub mod outlet;
pub mod pacer;
pub mod policy;
pub mod start;

pub use aimd::Aimd;
pub use binomial::Binomial;
pub use bounds::{Bounds, SendMeter};
pub use cut_gate::CutGate;
pub use equation::{Averaging, Equation};
pub use opening::Opening;
pub use outlet::{Growth, Outlet, Sending, Start};
pub use pacer::Pacer;
pub use policy::{AnyPolicy, Congestion, Operating, PolicyChoice, RatePolicy};
pub use start::{Doubling, StartUp};
