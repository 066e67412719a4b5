//! GMCC, generalized multicast congestion control: a session is sent in several layers, and each layer adapts its rate (paper
//! 000, chapter 4).
//!
//! The stream is split into layers, each sent to its own group. A receiver subscribes to the base layer and to all layers up to
//! its highest layer. In each layer the source follows the most congested receiver, the layer's *representative*, and all other
//! receivers send nothing. Layers have no fixed rates: the representative limits the rate of its layer. The source announces the
//! representative's congestion, and each receiver compares its own congestion with the announced congestion:
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
