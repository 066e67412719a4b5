//! UDP multicast sockets for fair multicast.
//!
//! | item | what it is |
//! |---|---|
//! | [`interfaces`], [`choose`] | which network interface carries a group, and why |
//! | [`SourceSocket`] | sends to the group, up to 64 datagrams a call (GSO); receives the unicast feedback |
//! | [`GroupSocket`] | joins a group (any source, or one), receives it, sends feedback by unicast |
//! | [`UnicastSocket`] | the feedback socket alone, for receivers of several groups |
//! | [`Batch`] | the buffers of one receive call: coalesced datagrams, ECN, kernel receive times |
//! | [`Waiter`] | sleeps until a socket is ready or a moment has come, to some ten microseconds |
//! | [`Faults`], [`Injector`] | loss, duplicates, reordering and corruption on purpose, from a seed |
//!
//! All sockets are non-blocking. Linux has everything; it is the only system supported so far. The
//! unsafe code of the crate is in one module, `sys`.

#![deny(unsafe_code)]

mod batch;
mod buffers;
mod error;
mod faults;
mod group;
mod interface;
mod source;
#[expect(unsafe_code, reason = "the system calls that socket2 does not cover")]
mod sys;
mod udp;
mod unicast;
mod wait;

pub use batch::{Batch, Meta, SLOT};
pub use buffers::{Backlog, Granted, MIN_RECEIVE_BUFFER};
pub use error::{ExitClass, NetError};
pub use faults::{FaultSpecError, Faults, Injector, Tally};
pub use group::{GroupOptions, GroupSocket, Membership};
pub use interface::{Choice, Interface, Why, choose, interfaces};
pub use source::{SourceOptions, SourceSocket};
pub use udp::{Ecn, MAX_SEGMENTS, SendOutcome};
pub use unicast::{UnicastOptions, UnicastSocket};
pub use wait::{Waiter, Want, Watch};
