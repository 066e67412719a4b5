//! Links with any rate, delay, loss and queue between real hosts: the links of `faircast-aqm` in real time.
//!
//! Every host is a network namespace with a TUN device. A packet that its kernel sends is read here and passes
//! the links on its way (`faircast_aqm::Link`, the very code of the simulator). It is written to the device of
//! the destination host at the moment at which it arrives by the links. Multicast goes down a tree of shortest
//! paths to the hosts that the [`EmulationPlan`] lists as members. So the kernel's TCP and real multicast meet
//! real round-trip times and real queues, with marks that real TCP understands.
//!
//! | module | what it holds |
//! |---|---|
//! | [`plan`] | what is emulated, and its text form |
//! | [`net`] | routes, links and packets on their way; no clock, no devices: it is told the time |
//! | [`ipv4`] | what it reads and changes in a packet |
//! | [`run`] | the devices and the clock |
//!
//! Hops are invisible to IP, as switches are: nothing counts down the time to live.

pub mod ipv4;
pub mod net;
pub mod plan;
mod routes;
pub mod run;
mod sys;

pub use faircast_topology::memory;
pub use net::{Delivery, Net};
pub use plan::{EmulationPlan, Groups, Host, PlanError};
pub use routes::Ignored;
pub use run::{Emulator, EmulatorError, Lateness, Report};
