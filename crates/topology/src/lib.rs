//! Networks of hosts, routers and links: one description and one routing for the simulator, the emulator and tests.
//!
//! | module | what it holds |
//! |---|---|
//! | [`topology`] | nodes and links |
//! | [`memory`] | how much memory a description would take |
//! | [`routes`] | shortest paths, and the trees that multicast follows |
//! | [`text`] | a network as text |

pub mod memory;
pub mod routes;
pub mod text;
pub mod topology;

pub use memory::{Estimate, TooLarge};
pub use routes::{Routes, Trees};
pub use text::{Dialect, LineError, TextError, Words};
pub use topology::{Edge, FREE, LinkId, NodeId, Topology};
