//! RMANP: congestion control by active routers (paper 003).
//!
//! The source sets one rate for the group, and active routers on the path limit the rate at their exits. Receivers and active
//! routers watch packet numbers. A gap is congestion on the link just upstream. The first node that detects the gap sends a
//! *congestion indication* (CI). Its rate is `Da` times the rate at which the packet was sent.
//!
//! Each active router that receives the CI limits the exit from which the CI arrived to that rate. It queues packets that arrive
//! faster. It forwards the CI with `Dr` times the rate, but filters a CI whose rate is not below that of an earlier CI. Active
//! routers merge acknowledgements, which raise rates. Nodes store packets until all receivers have them, and repeat them on
//! request.
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
//! Without active routers, receivers report to the source. The source repairs losses (`repair=tree`) or leaves repairs to an
//! independent delivery (`repair=session`).
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
pub(crate) use fusion::{Fusion, acknowledged, newest_of};
pub use receiver::Receiver;
pub(crate) use requests::{Overdue, RETRY, Requests};
pub use source::Source;
