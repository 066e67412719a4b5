//! LE-SBCC: loss-event oriented source-based multicast congestion control (paper 000, chapter 2, appendix A).
//!
//! LE-SBCC sends one rate to one group, and the source performs all congestion control. Receivers send negative acknowledgements,
//! as in any reliable protocol. These are *loss indications* (LI). The source selects about as many *loss events* (LE) from them
//! as the most congested receiver has. It answers the loss events with at most one *rate reduction* (RR) per round trip.
//!
//! ```text
//!    LIs of all       ┌───────┐ LEs of  ┌──────────┐ as many as the  ┌─────┐ at most one in
//!    receivers ──┬───>│ LI2LE │──all───>│ Max-LPRF │──worst one's───>│ ATF │──1.5 round trips──> halve, be silent
//!                │    └───────┘         └──────────┘                 └─────┘
//!                └───> SRTT, sigma: how long all these steps wait
//! ```
//!
//! The source stores 24 bytes for each receiver that reports losses, and no state for other receivers.

mod cascade;
mod config;
mod receiver;
mod reporters;
mod round_trip;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, Echoes, Part, Selection, Silence};
pub use receiver::Receiver;
pub use source::{Policy, Source};
