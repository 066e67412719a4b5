//! Networks of hosts, routers and links. The simulator, the emulator and tests use the same description and the same routes.
//!
//! | module | contents |
//! |---|---|
//! | [`topology`] | nodes and links |
//! | [`memory`] | estimate of the memory for a described network |
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
