//! GMCC: generalized multicast congestion control, several rates in layers that adapt themselves (paper 000, chapter 4).
//!
//! The stream is cut into layers, each sent to a group of its own. A receiver is subscribed to the lowest layers, from the base layer up to
//! its highest one. Within a layer the source follows one receiver, the most congested one, its *representative*, and all the others keep
//! silent. Layers have no fixed rates: each goes as fast as its representative can take. Receivers compare their own congestion with the
//! representative's, which the source announces:
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
//! and the source switches layers on and off by who reports:
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
