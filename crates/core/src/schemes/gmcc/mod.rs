//! GMCC: generalized multicast congestion control, several rates in layers that adapt themselves (paper 000, chapter 4).
//!
//! The stream is split into layers, each sent to its own group. A receiver is subscribed to the lowest layers, from the base
//! layer up to its highest one. In each layer the source follows the most congested receiver, its *representative*, and all other
//! receivers send nothing. Layers have no fixed rates: the representative limits the rate of its layer. Receivers compare their
//! own congestion with that of the representative, which the source announces:
//!
//! ```text
//!               far less congested than the representative of my highest layer, J times in a row
//!               (at own losses, or at the representative's), or unhurt by shifted bandwidth
//!                ┌──────────────────────────────────────────────────────────────┐
//!                │                                                              v
//!   ┌────────────────────────┐                                  ┌────────────────────────┐
//!   │ layers 0 to k          │                                  │ layers 0 to k + 1      │
//!   └────────────────────────┘                                  └────────────────────────┘
//!                ^                                                              │
//!                └──────────────────────────────────────────────────────────────┘
//!               representative, or about to be, of more than one layer
//! ```
//!
//! The source switches layers on and off according to the reports:
//!
//! ```text
//!   ┌─────┐ asked for ┌────┐ representative silent ┌──────┐ nobody answers ┌─────┐ still nobody
//!   │ off │──────────>│ on │──── for 8 beats ─────>│ seek │── for 4 ──────>│ low │── for 20: off
//!   └─────┘           └────┘<───── any report ─────└──────┘<───────────────└─────┘   (base layer: never)
//! ```

mod acks;
mod conditions;
mod config;
mod early_join;
mod layer;
mod receiver;
mod settings;
mod shift;
mod source;
mod subscribed_layer;
mod taf;
#[cfg(test)]
mod tests;

pub use config::{Assumed, Config, CorMean, Joins, LayerScheme, LeaveNotice, Output, TafSample};
pub use receiver::{Counts, Receiver};
pub use source::Source;
