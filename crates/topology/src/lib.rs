//! Networks of hosts, routers and links: a common description and routing for the simulator, the emulator and tests.
//!
//! | module | contents |
//! |---|---|
//! | [`topology`] | nodes and links |
//! | [`memory`] | estimated memory of a description |
//! | [`routes`] | shortest paths, and multicast trees |
//! | [`text`] | the text form of a network |

pub mod memory;
pub mod routes;
pub mod text;
pub mod topology;

pub use memory::{Estimate, TooLarge};
pub use routes::{Routes, Trees};
pub use text::{Dialect, LineError, TextError, Words};
pub use topology::{Edge, FREE, LinkId, NodeId, Topology};
