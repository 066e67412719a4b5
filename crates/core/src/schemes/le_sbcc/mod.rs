//! LE-SBCC: loss-event oriented source-based multicast congestion control (paper 000, chapter 2, appendix A).
//!
//! One rate for one group, and all the control is at the source. Receivers send negative acknowledgements, like the receivers of any
//! reliable protocol. The source reduces these *loss indications* (LI) to as many *loss events* (LE) as the most congested receiver has,
//! and those to at most one *rate reduction* (RR) per round trip.
//!
//! ```text
//!    LIs of all       ┌───────┐ LEs of  ┌──────────┐ as many as the  ┌─────┐ at most one in
//!    receivers ──┬───>│ LI2LE │──all───>│ Max-LPRF │──worst one's───>│ ATF │──1.5 round trips──> halve, be silent
//!                │    └───────┘         └──────────┘                 └─────┘
//!                └───> SRTT, sigma: how long all these steps wait
//! ```
//!
//! The source keeps 24 bytes for each receiver that reports losses and nothing for the others.

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
