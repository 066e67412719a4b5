//! Networks of namespaces for tests: hosts on a bridge, bottlenecks, TCP flows, captures.
//!
//! ```no_run
//! use faircast_testkit::{Bottleneck, Congestion, Lab, Offloads, TcpFlow, require_root};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), faircast_testkit::KitError> {
//! let Some(root) = require_root() else { return Ok(()) };
//! let lab = Lab::plan().receivers(4).bottleneck(0, Bottleneck::mbps(10.0)).offloads(Offloads::Off).build(&root)?;
//! let recv = lab.receiver(0).start("faircast", &["recv", "--iface", "eth0"])?;
//! let tcp = TcpFlow::new(Congestion::Reno, Duration::from_secs(10)).run(lab.sender(), lab.receiver(0))?;
//! recv.finish(Duration::from_secs(30))?;
//! println!("{} bit/s", tcp.goodput_bps);
//! # Ok(()) }
//! ```
//!
//! Every operation has a time limit. All networks and programs are removed at the end of their scope, also if a test panics.

mod capture;
mod chain;
mod counters;
mod damage;
mod damaged_link;
mod emulated;
mod error;
mod iperf;
mod lab;
mod members;
mod node;
mod root;
mod task;
mod turn;

pub use capture::{Capture, fields, warnings};
pub use chain::Chain;
pub use counters::{Sample, Sampler, write_csv};
pub use damage::{Damage, Tally};
pub use emulated::EmulatedLab;
pub use error::KitError;
pub use iperf::{Congestion, RunningFlow, TcpFlow, TcpResult};
pub use lab::{Bottleneck, Forwarding, Lab, LabPlan, Link, Offloads};
pub use members::{Change, MemberWatch, Membership};
pub use node::Node;
pub use root::{Root, require_root};
pub use task::{Finished, Task, run};
pub use turn::{Company, Turn};
