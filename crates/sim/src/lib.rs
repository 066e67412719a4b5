//! A packet-level network simulator that runs the state machines of `faircast-core`.
//!
//! Build a [`Network`], run it, and read its [`Outcome`]. The same network and seed always produce exactly the same outcome, in
//! every build, in both [`Mode`]s, and with any number of threads.
//!
//! | module | contents |
//! |---|---|
//! | [`network`] | description of the simulation: nodes, links, sessions, unicast flows, changes over time |
//! | [`clock`] | inexact clocks of senders |
//! | [`traffic`] | application data: endless, on and off, short transfers |
//! | [`outcome`] | results: counts, samples, digest |
//! | [`events`] [`snapshot`] | events during a run, and the state of the run at a given time |
//!
//! A run can be divided into steps: call [`Network::engine`], then [`Engine::run_until`], [`Engine::snapshot`] and
//! [`Engine::take_events`] any number of times, and finally [`Engine::finish`].
//!
//! Several threads can share a run: set [`Options::islands`], and execute the work of [`Engine::helpers`] in threads.

mod calendar;
pub mod clock;
mod delays;
mod engine;
pub mod events;
mod frame;
pub mod network;
pub mod outcome;
mod prefetch;
mod routes;
pub mod snapshot;
pub mod traffic;

pub use clock::{Clock, ClockError};
pub use delays::DelayCounts;
pub use engine::{Engine, Helper, SimError};
pub use events::{CutCause, Event, Happening};
pub use network::{
    Change, CoordinationSpec, Events, FlowId, Groups, Islands, LinkId, Mode, Network, NodeId, Options,
    PacketTransform, ReceiverSpec, SessionSpec, Topology, UnicastProtocol, UnicastSpec, Watch,
};
pub use outcome::{
    CoordinationOutcome, DelayOutcome, FlowCounts, FlowOutcome, LayerOutcome, LinkOutcome, LinkSample,
    LinkTally, MemberOutcome, Outcome, RouterOutcome, SourceSample, Tapped, TappedPacket, TreeOutcome,
};
pub use snapshot::{FlowSnapshot, LinkSnapshot, MemberSnapshot, Snapshot, SnapshotError};
pub use traffic::{ApplicationData, Law, TraceId};
