//! Two doctors test the network between their hosts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`faircast_wire::doctor`] | what they say to each other |
//! | [`answering`] | what the one that serves answers, and how little |
//! | [`sockets`] | by what they say it |
//! | [`serve`] [`with`] | the one that answers, and the one that asks |

mod answering;
pub mod serve;
mod sockets;
pub mod with;

#[cfg(test)]
mod tests;
