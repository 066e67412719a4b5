//! Networks of hosts, routers and links: one description and one routing for the simulator, the emulator and tests.
//!
//! | module | what it holds |
//! |---|---|
//! | [`topology`] | nodes and links |
//! | [`routes`] | shortest paths, and the trees that multicast follows |
//! | [`text`] | a network as text |

pub mod routes;
pub mod text;
pub mod topology;

pub use routes::{Routes, Trees};
pub use text::{Dialect, LineError, TextError, Words};
pub use topology::{Edge, FREE, LinkId, NodeId, Topology};
