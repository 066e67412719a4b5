//! PGMCC: a TCP-like window between the source and one receiver (Rizzo, "pgmcc", SIGCOMM 2000; the building-block draft
//! draft-ietf-rmt-bb-pgmcc-03; paper 000, 1.6.2.2).
//!
//! The receiver with the lowest throughput by TCP's formula is the *acker*. The acker acknowledges each packet, and the source
//! runs a window over these acknowledgements. The window has *tokens* instead of a count of packets in flight. All other
//! receivers report their losses in negative acknowledgements, which state their loss rate. The source compares the throughputs
//! of receivers and may change the acker.
//!
//! ```text
//!   source                                   acker        others
//!     | data, "acker A": T -= 1  ------------->|------------->|
//!     |<---- highest, bitmap, p --------------- |              | loss: wait 0 to 50 ms
//!     | N newly acknowledged:                                  |
//!     |   T += N + N/W, W += N/W                               |
//!     |<---- highest, first lost, p --------------------------- |
//!     | c M(B) > M(A)?  then "acker B" from the next packet on
//! ```
//!
//! | module | content |
//! |---|---|
//! | `window` | window, tokens and the packets in flight |
//! | `election` | loads of receivers by TCP's formula; the rule for changing the acker |
//! | `timeout` | the retransmission timeout (RFC 6298) |
//! | `filter` | the receivers' loss filter |

mod config;
mod election;
mod filter;
mod receiver;
mod source;
#[cfg(test)]
mod tests;
pub(super) mod timeout;
pub(super) mod window;

pub use config::{Config, Formula, Measure, Tokens};
pub use receiver::Receiver;
pub use source::Source;
