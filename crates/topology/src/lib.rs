//! Networks of hosts, routers and links: one description and one routing for the simulator, the emulator and tests.
//!
//! | module | what it holds |
//! |---|---|
//! | [`topology`] | nodes and links |
//! | [`routes`] | shortest paths, and the trees that multicast follows |

pub mod routes;
pub mod topology;

pub use routes::{Routes, Trees};
pub use topology::{Edge, LinkId, NodeId, Topology};
