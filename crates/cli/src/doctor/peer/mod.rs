//! A test of the network between two hosts that run `doctor`.
//!
//! | module | contents |
//! |---|---|
//! | [`faircast_wire::doctor`] | messages of a test |
//! | [`answering`] | answers of the serving host, and their limits |
//! | [`sockets`] | sockets of a test |
//! | [`serve`] [`with`] | the serving host, and the asking host |

mod answering;
pub mod serve;
mod sockets;
pub mod with;

#[cfg(test)]
mod tests;
