//! LE-SBCC: loss-event oriented source-based multicast congestion control (paper 000, chapter 2, appendix A).
//!
//! One rate for one group; the source performs all congestion control. Receivers send negative acknowledgements, as in any
//! reliable protocol. The source reduces these *loss indications* (LI) to as many *loss events* (LE) as the most congested
//! receiver has. It reduces the loss events to at most one *rate reduction* (RR) per round trip.
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
