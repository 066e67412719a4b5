//! MTCP: TCP-like congestion control over a tree (paper 001).
//!
//! The source is the root of a tree, whose inner nodes are sender's agents: receivers that receive their children's acknowledgements, store
//! packets for them and send missing ones again. Every parent has a window over its children, moved by TCP Vegas' rules with delays between
//! two clocks; agents report the smallest window of their part of the tree, and the source sends as much as the smallest of all allows.
//! Children with persistent congestion are moved into a group of their parent, at a pace of its own.
//!
//! ```text
//!   source ---- multicast data ----> all             window   moves with acknowledgements of the children
//!     ^  \                                           repairs  what they miss, by a window of its own
//!     |   acknowledgements, summaries                local    children in the parent's own group
//!   agent <---- children                             store    packets kept for them
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `inbound` `scoreboard` | what has arrived, and when it is acknowledged |
//! | `parent` `child` `children` `store` | what a node knows of its children and keeps for them |
//! | `window` `delay` | Vegas over relative delays |
//! | `timeouts` | packets that are late, and children that are silent |
//! | `outbound` `repairs` | what it sends them, and the retransmission window |
//! | `local` | congestion localization |
//! | `external_repair` | agents where the session's delivery repairs as well |
//! | `source` `agent` `receiver` | the three roles |

mod agent;
mod child;
mod children;
mod config;
mod delay;
mod external_repair;
mod inbound;
mod local;
mod outbound;
mod parent;
mod receiver;
mod repairs;
mod scoreboard;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod timeouts;
mod window;

pub use agent::Agent;
pub use config::{Config, Local, Localize, LossFilter, Mode, Repair, Rounds, SlowStart};
pub use receiver::Receiver;
pub use source::Source;
