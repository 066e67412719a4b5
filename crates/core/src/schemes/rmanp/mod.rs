//! RMANP: congestion control by active routers (paper 003).
//!
//! The source sets one rate for the group, and active routers on the path limit the rate at their exits. Receivers and active
//! routers check the packet numbers. A gap in the numbers means congestion on the link from the next node upstream. The first
//! node that detects the gap sends a *congestion indication* (CI). The CI states `Da` times the rate at which the packet was
//! sent.
//!
//! When an active router receives a CI at an exit, it limits the exit to the rate of the CI, and queues packets that arrive
//! faster. It forwards the CI with `Dr` times the rate, unless an earlier CI had the same or a lower rate. Acknowledgements raise
//! rates; active routers merge them. Nodes store packets until all receivers have them, and repeat them on request.
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
//! Without active routers, receivers report to the source. The source itself repairs losses (`repair=tree`), or the session's
//! delivery does (`repair=session`).
//!
//! | module | content |
//! |---|---|
//! | `fusion` | the smallest acknowledgement of several children |
//! | `requests` | missing packets and the times of their requests |
//! | `exclusion` | exclusion of receivers below the least rate |
//! | `source` `receiver` | the endpoints; the active router is [`router`] |

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
pub(crate) use fusion::{Departures, Fusion, acknowledged, newest_of};
pub use receiver::Receiver;
pub(crate) use requests::{Overdue, RETRY, Requests};
pub use source::Source;
