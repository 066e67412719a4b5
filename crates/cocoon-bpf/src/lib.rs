//! COCOON (paper 002, chapter 4) in Linux. The connections of this machine to one destination prefix share round-trip times,
//! congestion cuts and starting windows. Programs and receivers need no change.
//!
//! | module | content |
//! |---|---|
//! | `bpf/` | the programs in C, with their rules as pure functions |
//! | [`mod@preflight`] | checks whether this machine can run the programs |
//! | `kernel` | loads and unloads the programs, and finds loaded programs |
//! | [`layout`] | data shared by the programs and user space |
//! | [`status`] [`trace`] | groups as text and JSON; a trace of decisions |
//! | [`grouping`] [`group_map`] | groups of destination hosts that share a bottleneck |
//! | [`regulator`] [`gate`] | UDP within the window of the virtual connection |
//!
//! [`status::DEPARTURES`] lists the rules of the paper that programs in the kernel cannot follow.

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
