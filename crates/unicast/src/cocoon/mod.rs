//! COCOON: coordinated congestion control of the connections of a busy host over one path (paper 002, 4).
//!
//! Each connection keeps its own window and its own packets. The connections of a group share round-trip times, and the
//! information that one of them has detected congestion. A [`Coordinator`] stores only this shared information; it has no
//! packets, sockets, clock or timers. A sender reports events to the coordinator and carries out its verdicts. The sender can be
//! the simulator's TCP, the congestion controller of a QUIC implementation, or a test that replays the trace of a kernel.
//!
//! | module | content |
//! |---|---|
//! | [`rules`] | figure 4.2 and the effect of a timeout, as functions of the data in flight of two connections |
//! | `config` | options for open questions of the chapter |
//! | `coordinator` | groups, members, and verdicts |
//! | `messages` | messages between coordinator and callers |
//! | `estimate` | the round-trip time of a group |
//! | `send_times` | times of sending of outstanding packets |
//! | [`grouping`] | destinations behind one bottleneck: atoms, their merging and splitting |
//! | `datagrams` | the virtual connection of a group's UDP sockets |
//!
//! # How it is driven
//!
//! The coordinator assigns identifiers: [`Coordinator::open_group`] returns a [`GroupId`], [`Coordinator::join`] a [`MemberId`].
//! Each call passes the state of the member as a [`View`]. The caller chooses the unit of windows: bytes, with `mss` as the size
//! of a segment, or packets, with `mss` 1. All members of a coordinator use the same unit. Each member has its own sequence
//! numbers, which count packets or bytes. Sequence numbers have 64 bits and never wrap.
//!
//! | event | call | result |
//! |---|---|---|
//! | the connection opens | [`join`](Coordinator::join) | initial window and threshold, or `None`: slow start |
//! | an acknowledgement, after the sender has processed it | [`on_ack`](Coordinator::on_ack) | |
//! | a packet was sent | [`on_transmit`](Coordinator::on_transmit) | |
//! | a valid sample of the round-trip time | [`on_rtt_sample`](Coordinator::on_rtt_sample) | |
//! | three duplicates, or an equivalent sign of loss | [`on_loss`](Coordinator::on_loss) | [`OwnReaction`]: cut, or only send again |
//! | a mark is echoed | [`on_ecn`](Coordinator::on_ecn) | [`OwnReaction`] |
//! | the timer expires | [`on_timeout`](Coordinator::on_timeout) | [`OwnReaction`] |
//! | the connection closes | [`leave`](Coordinator::leave) | |
//!
//! These calls create the verdicts on the other members. If one driver runs all connections, it takes all verdicts with
//! [`next_verdict`](Coordinator::next_verdict) and carries them out immediately. If every connection has its own driver (QUIC,
//! the kernel), each driver takes the verdict on its connection with [`take_verdict`](Coordinator::take_verdict) when it runs
//! next. By then several verdicts may have been merged. A verdict is computed when congestion is reported, from the latest view
//! of the member. A sender that takes its verdicts late must therefore report each sent packet with
//! [`on_transmit`](Coordinator::on_transmit). [`rules`] are public for callers that compute verdicts themselves.
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
//! A group has at most [`Config::max_members`] members, and a coordinator has at most [`Config::max_groups`] groups. Most calls
//! cost a few additions. Only congestion visits all members of a group, at most once per window of data of each member. Memory is
//! allocated for new members and groups, never for packets. The memory of members that have left and of closed groups is reused.

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
