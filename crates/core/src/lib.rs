//! Fair multicast congestion control as pure state machines.
//!
//! No clock, no socket, no thread, no global randomness, and no heap allocation per packet. Time
//! and a random stream are passed in ([`node::Cx`]); effects come out in a buffer that the driver
//! owns. The same code runs over UDP multicast and in a simulator.
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`] [`packet`] [`node`] [`rng`] | units, what travels, the four roles, random streams |
//! | [`bounds`] | limits of a rate, and the meter of what is sent |
//! | [`estimate`] [`suppress`] [`rate`] | parts that schemes share: means, round trips, throughput; delays; pacing, gates, guards |
//! | [`schemes`] [`routers`] | the schemes, by name; nodes that do more than forward |
//! | [`spec`] | names with options as text |
//! | [`half`] | the 16-bit numbers of marks |
//! | [`delivery`] | gaps, requests, and the account of what must be sent again |

// An alias for code that the tests of other crates use as well.
#[cfg(test)]
extern crate self as faircast_core;

pub mod bounds;
pub mod delivery;
pub mod estimate;
pub mod half;
pub mod node;
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
