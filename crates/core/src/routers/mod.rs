//! Routers: nodes on the path of packets that do more than forward them. Those of one scheme alone are with their scheme.

pub mod aggregation;
pub mod start_up;
