//! RMANP: congestion control by active routers (paper 003).
//!
//! One rate for one group, moved by its source, and rate limits at the exits of active routers on the path. Receivers and active routers
//! watch sequence numbers. A gap is congestion right upstream, and the first node to see it sends a *congestion indication* (CI) with the
//! rate that would have been right, `Da` times the rate at which the packet was sent. Every active router that the CI passes limits the
//! exit that it came in by to that rate. It queues packets that come faster, and sends `Dr` times the rate on; a CI that reports no less
//! than one before is filtered. Acknowledgements are merged on their way and raise rates. Packets are stored until all receivers have them,
//! and are repeated from where they are stored.
//!
//! ```text
//!   source              active router            active router             receivers
//!     | data n, rate 8 ----->|---- data n ----x       | (n is lost)
//!     | data n+1 ----------->|---- data n+1 --------->|---- n+1, gap seen ---->|
//!     |                      |<--- CI 6.4, lost n ----|<--- lost n ------------|
//!     |<--- CI 6.336 --------| exit limited to 6.4    |                        |
//!     |                      |---- data n, again ---->|---- data n, again ---->|
//! ```
//!
//! Without any active router receivers report to the source itself, which repairs (`repair=tree`) or leaves that to an independent delivery
//! (`repair=session`).
//!
//! | module | what it holds |
//! |---|---|
//! | `fusion` | the least that several have acknowledged |
//! | `requests` | what is missing, and when it is asked for again |
//! | `exclusion` | who cannot have the least rate |
//! | `source` `receiver` | the two ends; the active router is [`router`] |

mod config;
mod exclusion;
mod fusion;
mod receiver;
mod requests;
pub mod router;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Answers, Begin, Config, Repair};
pub(crate) use exclusion::{Exclusion, LowRates};
pub(crate) use fusion::{Fusion, acknowledged, newest_of};
pub use receiver::Receiver;
pub(crate) use requests::{Overdue, RETRY, Requests};
pub use source::Source;
