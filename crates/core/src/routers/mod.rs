//! Routers: nodes on the path of packets that do more than forward them.

pub mod acknowledgements;
pub mod aggregation;
#[cfg(test)]
mod conformance;
pub mod rmanp;
pub mod start_up;
