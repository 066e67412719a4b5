//! Routers: nodes on the path of packets that do more than forward them. Routers of a single scheme are in the module of the
//! scheme.

pub mod aggregation;
pub mod start_up;
