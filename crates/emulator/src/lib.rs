//! Emulated links with any rate, delay, loss and queue between real hosts: the links of `faircast-aqm` in real time.
//!
//! Every host is a network namespace with a TUN device. The emulator reads each packet that the kernel of a host sends. The
//! packet passes the links of its path (`faircast_aqm::Link`, the code of the simulator). At its time of arrival the packet is
//! written to the device of the destination host. Multicast follows a tree of shortest paths to the hosts that have
//! joined the group, by the messages of IGMP and MLD of their kernels, or to the hosts that the [`EmulationPlan`] lists. The kernel's TCP and real multicast therefore experience the round-trip times, queues and
//! congestion marks of the plan.
//!
//! | module | content |
//! |---|---|
//! | [`plan`] | the emulated network and its text form |
//! | [`net`] | routes, links and packets in transit; without clock and devices |
//! | [`ip`] | fields of packets that the emulator reads and changes |
//! | [`run`] | devices and clock |
//! | `cpu_latency` | idle processors that stay awake |
//! | `split` `batch` | packets that hosts hand over as one, and get as one |
//! | `samples` | states of the network at regular times |
//! | [`sandbox`] | namespaces without names, which end with their processes |
//!
//! Emulated routers are invisible to IP, as switches are: they do not decrement the time to live.

mod batch;
mod cpu_latency;
pub mod ip;
mod memberships;
pub mod net;
pub mod plan;
mod routes;
pub mod run;
mod samples;
pub mod sandbox;
mod split;
mod sys;
mod trees;

pub use faircast_topology::memory;
pub use net::{Change, Delivery, Net, Sink, Tapped};
pub use plan::{EmulationPlan, Groups, Host, PlanError, Unknown};
pub use routes::Ignored;
pub use run::{Emulator, EmulatorError, Lateness, Report};
pub use samples::{LinkSample, Sample, Tally};
pub use sandbox::Namespace;
pub use trees::Latencies;
