//! A packet-level network simulator that runs the very state machines of `faircast-core`.
//!
//! Build a [`Network`], run it, read its [`Outcome`]. The same network and seed give the same outcome to the last bit,
//! in every build and in both [`Mode`]s.
//!
//! | module | what it holds |
//! |---|---|
//! | [`network`] | what is simulated: nodes, links, sessions, unicast flows, changes over time |
//! | [`clock`] | senders' clocks that are not exact |
//! | [`traffic`] | what applications want to send: endless, on and off, short transfers |
//! | [`outcome`] | what came of it: counts, samples, digest |
//! | [`events`] [`snapshot`] | what happens on the way, and how the run looks at a moment |
//!
//! A run can go in steps: [`Network::engine`], then [`Engine::run_until`], [`Engine::snapshot`] and [`Engine::take_events`] as
//! often as one likes, and [`Engine::finish`].

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
pub use engine::{Engine, SimError};
pub use events::{Event, Happening};
pub use network::{
    Change, CoordinationSpec, Events, FlowId, Groups, LinkId, Mode, Network, NodeId, Options,
    PacketTransform, ReceiverSpec, SessionSpec, Topology, UnicastProtocol, UnicastSpec, Watch,
};
pub use outcome::{
    CoordinationOutcome, DelayOutcome, FlowCounts, FlowOutcome, LayerOutcome, LinkOutcome, LinkSample,
    LinkTally, MemberOutcome, Outcome, RouterOutcome, SourceSample, Tapped, TappedPacket, TreeOutcome,
};
pub use snapshot::{FlowSnapshot, LinkSnapshot, Snapshot, SnapshotError};
pub use traffic::{ApplicationData, Law, TraceId};
