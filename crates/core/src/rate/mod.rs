//! Control of a rate: policies, pacing, gates and guards.
//!
//! A scheme decides *which receiver to follow*; the modules here determine *the rate*. The thesis (abstract) calls rate
//! adaptation an exchangeable part, so a policy is a separate trait.

pub mod aimd;
pub mod binomial;
pub mod cut_gate;
pub mod equation;
pub mod formula;
pub mod pacer;
pub mod policy;
pub mod send_controller;
pub mod start;
pub mod start_up_receiver;

pub use crate::bounds::{Bounds, SendMeter};
pub use aimd::Aimd;
pub use binomial::Binomial;
pub use cut_gate::CutGate;
pub use equation::{Averaging, Equation};
pub use pacer::{CatchUp, Pacer};
pub use policy::{AnyPolicy, Congestion, Operating, POLICIES, PolicyChoice, PolicyFactory, RatePolicy};
pub use send_controller::{Growth, Losses, SendController, Sending, Start};
pub use start::{Doubling, StartUp};
pub use start_up_receiver::StartUpReceiver;
