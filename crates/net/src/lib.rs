//! UDP multicast sockets for fair multicast.
//!
//! | item | what it is |
//! |---|---|
//! | [`interfaces`], [`choose`] | choice of the network interface for a group |
//! | [`duplicate`] | detection of another host with the same address |
//! | [`Changes`], [`choose_again`] | changes of interfaces and addresses, and the choice of an interface after a change |
//! | [`SourceSocket`] | sends to the group, up to 64 datagrams a call (GSO); receives the unicast feedback |
//! | [`GroupSocket`] | joins and receives a group, from any source or from one source; sends feedback by unicast |
//! | [`UnicastSocket`] | the feedback socket alone, for receivers of several groups |
//! | [`Batch`] | the buffers of one receive call: coalesced datagrams, ECN, kernel receive times |
//! | [`Waiter`] | waits until a socket is ready or a time is reached, with a precision of tens of microseconds |
//!
//! All sockets are non-blocking. Linux has all features. On other Unix systems each call sends one datagram, without ECN marks
//! and kernel receive times; the code for these systems is not tested. All unsafe code of the crate is in the module `sys`.
//!
//! Measurements over loopback or a veth pair, on two virtual cores shared with other work (Linux 6.18, `examples/throughput.rs`):
//!
//! | datagrams of 1,472 bytes | GB/s | processor time per byte sent | per byte received |
//! |---|---|---|---|
//! | 44 per call, segmented and coalesced by the kernel | 3 to 9 | 0.07 ns | 0.08 ns |
//! | 44 per call, segmented and coalesced in software | 2.2 | 0.39 ns | 0.17 ns |
//! | one per call | 0.5 | 1.1 ns | 0.75 ns |

#![deny(unsafe_code)]

mod batch;
mod buffers;
mod changes;
mod duplicate;
mod ecn;
mod error;
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
pub use changes::{Changes, InterfaceChange};
pub use duplicate::{Duplicate, duplicate};
pub use ecn::Ecn;
pub use error::{ExitClass, NetError};
pub use group::{GroupOptions, GroupSocket, Membership};
pub use interface::{
    Choice, Interface, Why, broadcast_of, choose, choose_again, choose_towards, interfaces, is_ipv6_only,
};
pub use source::{Port, SourceOptions, SourceSocket};
pub use udp::{MAX_SEGMENTS, SendOutcome};
pub use unicast::{UnicastOptions, UnicastSocket};
pub use wait::{Waiter, Want, Watch};
