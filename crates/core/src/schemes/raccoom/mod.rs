//! RACCOOM: rate-based congestion control on the path with the largest round-trip time (paper 002, chapter 3).
//!
//! RACCOOM sends one rate to one group. Every receiver acknowledges every packet. Routers or designated receivers aggregate the
//! acknowledgements into one: the minimum of the newest packets received, and the highest lost packet. Therefore the source
//! observes one path, the *target path*, whose receiver is the last to receive a packet. As in TCP Vegas, the source keeps `E` of
//! its packets in the queues of this path. At a loss on any path, the source halves its rate, once for all packets in flight
//! (paper 002, 3.1). A session may mistake the queue of other flows for propagation delay of its path. Then it sooner or later
//! loses packets; the halving drains the queue and reveals the propagation delay (paper 002, 3.4).
//!
//! ```text
//!   source                      router (or designated receiver)              receivers
//!     | data n ------------------------->|--------------------------------------->|
//!     |                                  |<-- newest n, lost n', of r -------------|
//!     |<-- min newest, max lost, of r ---|    kept for each child; goes on when r, newest or lost are news
//!     |
//!     | queued = outstanding * (1 - RTTmin/RTT);  e = E - queued
//!     | R_a += k2 e S/RTT per RTT;  R = R_a + k1 e S/RTT;  lost > LastCut: R_a /= 2, R /= 2
//! ```
//!
//! | module | content |
//! |---|---|
//! | `aggregate` | the rules of aggregation, for routers, designated receivers and the source |
//! | `law` | the control laws for the rate |
//! | `friendly` | the length of queue that gives a session the throughput of a TCP flow (3.7) |
//! | `target` | the target path and its shortest round-trip time |
//! | `probing` | probes for the shortest round-trip time if queues never drain |
//! | `designated` | designated receivers |

mod aggregate;
mod config;
mod designated;
mod friendly;
mod law;
mod probing;
mod receiver;
pub mod router;
mod source;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use aggregate::{Aggregate, Aggregator};
pub use config::{Aim, Answers, Config};
pub use law::Law;
pub use receiver::Receiver;
pub use source::{Policy, Source};
