//! Files, trees and live streams to many receivers over UDP multicast.
//!
//! [`send`] and [`receive`] drive the state machines of `faircast-core` over the sockets of
//! `faircast-net`, one thread each, until the transfer has ended. What happens on the way is told
//! as [`event::Event`]s.

pub mod alc;
mod assembly;
pub mod config;
mod datagram;
mod drive;
mod driver;
pub mod endpoint;
pub mod error;
pub mod event;
#[doc(hidden)]
pub mod fuzzing;
mod members;
pub mod object;
#[cfg(test)]
mod pair;
pub mod pgm;
mod receiver;
mod source;
mod spill;

pub use config::{Content, Destination, Durability, LayerInput, ReceiveConfig, SendConfig, Slow};
pub use drive::{receive, send};
pub use endpoint::Endpoint;
pub use error::{Class, Error};
pub use event::{Event, ReceiveReport, SendReport};
