//! COCOON: coordinated congestion control of the connections that a busy host has over one path (paper 002, 4).
//!
//! Connections keep their windows and their packets. They share knowledge: round trips, and the fact that one
//! of them met congestion. A [`Coordinator`] holds that knowledge and no packet, socket, clock or timer. The
//! sender (the simulator's TCP, a QUIC stack's congestion controller, a test that replays a kernel's trace)
//! reports events to it and carries out its verdicts.
//!
//! | module | what it holds |
//! |---|---|
//! | [`rules`] | figure 4.2 and what a timeout does, as functions of two flights |
//! | `config` | what the chapter leaves open |
//! | `coordinator` | groups, members, and what is to be told to whom |
//! | `messages` | what is said to it and by it |
//! | `estimate` | the round trip of a group |
//! | `send_times` | when packets left that are out |
//! | [`grouping`] | which destinations share a fate: atoms, their merging and splitting |
//! | `datagrams` | the virtual connection of a group's UDP sockets |
//!
//! # How it is driven
//!
//! A caller numbers nothing: [`Coordinator::open_group`] gives a [`GroupId`], [`Coordinator::join`] a [`MemberId`]. A member's
//! numbers come with each call as a [`View`]. Windows are in whatever unit the caller counts in: bytes with `mss` as the size of a
//! segment, or packets with `mss` 1. All members of a coordinator use the same one. Sequence numbers are 64 bits that never wrap, in
//! packets or bytes, of each member by itself.
//!
//! | when | call | what comes back |
//! |---|---|---|
//! | the connection opens | [`join`](Coordinator::join) | the window and threshold to begin with, or `None`: slow start |
//! | an acknowledgement, after the sender's own work | [`on_ack`](Coordinator::on_ack) | |
//! | a packet has left | [`on_transmit`](Coordinator::on_transmit) | |
//! | a valid sample of the round trip | [`on_rtt_sample`](Coordinator::on_rtt_sample) | |
//! | three duplicates, or what says the same | [`on_loss`](Coordinator::on_loss) | [`OwnReaction`]: cut, or only send it again |
//! | a mark is echoed | [`on_ecn`](Coordinator::on_ecn) | [`OwnReaction`] |
//! | the timer runs out | [`on_timeout`](Coordinator::on_timeout) | [`OwnReaction`] |
//! | the connection closes | [`leave`](Coordinator::leave) | |
//!
//! Then the verdicts on the others are there. One driver of all connections drains them with
//! [`next_verdict`](Coordinator::next_verdict) and carries them out at once. Where every connection has a
//! driver of its own (QUIC, the kernel), each takes its own with [`take_verdict`](Coordinator::take_verdict) at
//! its next call; several verdicts have been merged into one by then. A verdict is computed when the congestion
//! is met, from the view that the member gave last. So a sender that acts late reports each packet with
//! [`on_transmit`](Coordinator::on_transmit). [`rules`] are public for callers that compute verdicts from
//! numbers of their own.
//!
//! ```
//! use faircast_core::time::{Span, Time};
//! use faircast_unicast::cocoon::{Config, Coordinator, OwnReaction, View};
//!
//! let mut coordinator = Coordinator::new(Config::published());
//! let group = coordinator.open_group().expect("there is room");
//! // Both open, the second one with half of the first one's window.
//! let new = View::in_packets(0, 0, 10.0, f64::INFINITY);
//! let first = coordinator.join(group, new).expect("there is room").member;
//! let joined = coordinator.join(group, new).expect("there is room");
//! assert_eq!(joined.start.expect("the first one sends").cwnd, Some(5.0));
//! let second = joined.member;
//! coordinator.on_rtt_sample(first, Span::from_millis(50));
//!
//! // Later each has ten packets out: 100 to 109.
//! let view = View::in_packets(100, 110, 10.0, f64::INFINITY);
//! coordinator.on_transmit(first, view);
//! coordinator.on_transmit(second, view);
//!
//! // The first one loses packet 100: it halves its window, and the second, which has as much out, stops growing fast.
//! let now = Time::from_secs_f64(1.0);
//! let own = coordinator.on_loss(first, view, 100, now);
//! assert_eq!(own, OwnReaction::Cut { cwnd: 5.0, ssthresh: 5.0 });
//! let (member, verdict) = coordinator.next_verdict().expect("the second one has to know");
//! assert_eq!((member, verdict.cwnd, verdict.ssthresh), (second, Some(10.0), Some(10.0)));
//! // Packets that were out then are covered: their loss is news to nobody.
//! assert_eq!(coordinator.on_loss(second, view, 105, now), OwnReaction::Covered);
//! ```
//!
//! # Bounds
//!
//! A group has at most [`Config::max_members`], a coordinator at most [`Config::max_groups`]. A call costs a few additions, but
//! congestion, which walks over the members of one group; at most once per window of data and member. Memory is taken when
//! members and groups are new and used again after they have left, never per packet.

mod config;
mod coordinator;
mod datagrams;
mod estimate;
pub mod grouping;
#[cfg(test)]
mod grouping_tests;
mod messages;
pub mod rules;
mod send_times;
#[cfg(test)]
mod tests;

pub use config::{Again, BelowWatermark, Compared, Config, Covers, Cuts, Start, TimerOf};
pub use coordinator::Coordinator;
pub use datagrams::{Offered, SocketId};
pub use messages::{CapacityError, Counters, GroupId, Joined, MemberId, OwnReaction, Verdict};
pub use rules::{Recovery, View};
pub use send_times::SendTimes;
