//! Routers that several schemes use: nodes on the path of packets that do more than forward packets. A router that only one
//! scheme uses is in the module of that scheme.

pub mod aggregation;
pub mod start_up;
