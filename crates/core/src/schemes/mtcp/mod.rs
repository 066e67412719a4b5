//! MTCP: TCP-like congestion control over a tree (paper 001).
//!
//! The source is the root of a tree, whose inner nodes are sender's agents. An agent is a receiver that also receives the
//! acknowledgements of its children, stores packets for them and repairs their losses. Every parent has a window over its
//! children. The window follows TCP Vegas' rules, with relative delays between two clocks. Agents report the smallest window of
//! their part of the tree, and the source sends as much as the smallest window allows. A child with persistent congestion is
//! moved into a separate group, to which its parent sends at a separate rate.
//!
//! ```text
//!   source ---- multicast data ----> all             window   moves with acknowledgements of the children
//!     ^  \                                           repairs  what they miss, by a window of its own
//!     |   acknowledgements, summaries                local    children in the parent's own group
//!   agent <---- children                             store    packets kept for them
//! ```
//!
//! | module | content |
//! |---|---|
//! | `inbound` `scoreboard` | received packets, and their acknowledgements |
//! | `parent` `child` `children` `store` | a node's state of its children, and the packets stored for them |
//! | `window` `delay` | Vegas over relative delays |
//! | `timeouts` | late packets, and silent children |
//! | `outbound` `repairs` | packets to children, and the retransmission window |
//! | `local` | congestion localization |
//! | `external_repair` | agents in sessions whose delivery repairs losses |
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
