//! Fair multicast congestion control as pure state machines.
//!
//! The core has no clock, socket, thread or global randomness, and allocates no heap memory per packet. The caller passes in the
//! time and a random stream ([`node::Cx`]). The core writes effects to a buffer that the driver owns. The same code runs over UDP
//! multicast and in a simulator.
//!
//! | module | content |
//! |---|---|
//! | [`time`] [`packet`] [`node`] [`rng`] | units, packets, the four roles, random streams |
//! | [`bounds`] | limits of a rate, and the meter of its use |
//! | [`estimate`] [`suppress`] [`rate`] | shared parts of schemes: means, round-trip times, throughput; delays; pacing, gates, guards |
//! | [`schemes`] [`routers`] | the schemes, by name; nodes that do more than forward |
//! | [`spec`] | names with options as text |
//! | [`own`] | registries of congestion control and queues of other crates |
//! | [`half`] | the 16-bit numbers of marks |
//! | [`delivery`] | gaps, requests, and the schedule of repairs |

// Alias for code that is also compiled into the tests of other crates.
#[cfg(test)]
extern crate self as faircast_core;

pub mod bounds;
pub mod delivery;
pub mod estimate;
pub mod half;
pub mod node;
pub mod own;
pub mod packet;
pub mod rate;
#[cfg(test)]
mod relays;
pub mod rng;
pub mod routers;
pub mod schemes;
pub mod spec;
pub mod suppress;
pub mod time;
