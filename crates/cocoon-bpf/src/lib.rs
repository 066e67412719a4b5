//! COCOON (paper 002, chapter 4) in Linux: the connections of this machine to one destination prefix share round trip,
//! congestion cuts and starting windows, without change to any program or receiver.
//!
//! | module | what it holds |
//! |---|---|
//! | `bpf/` | the programs in C, and their law as pure functions |
//! | [`mod@preflight`] | whether this machine can run them |
//! | `kernel` | load, unload, find what is loaded |
//! | [`layout`] | what programs and user space share |
//! | [`status`] [`trace`] | groups as text and JSON; decisions as they are made |
//! | [`grouping`] [`group_map`] | which hosts share a fate, and that connections to them are grouped so |
//! | [`regulator`] [`gate`] | UDP under the virtual connection's window |
//!
//! [`status::DEPARTURES`] lists the rules of the paper that a program in the kernel cannot follow.

mod error;
pub mod grouping;
pub mod gate;
mod kernel;
pub mod layout;
pub mod group_map;
pub mod preflight;
pub mod regulator;
pub mod status;
pub mod trace;

pub use error::CocoonError;
pub use kernel::{Loaded, OBJECT, Place, load, own_netns, unload};
pub use layout::{Group, GroupKey, Settings, Which};
pub use preflight::preflight;
