//! A packet-level network simulator that runs the very state machines of `faircast-core`.
//!
//! Build a [`Network`], run it, read its [`Outcome`]. The same network and seed give the same outcome to the last bit,
//! in every build and in both [`Mode`]s.
//!
//! | module | what it holds |
//! |---|---|
//! | [`network`] | what is simulated: nodes, links, sessions, unicast flows, changes over time |
//! | [`traffic`] | what applications want to send: endless, on and off, short transfers |
//! | [`outcome`] | what came of it: counts, samples, digest |

mod calendar;
mod engine;
mod frame;
pub mod network;
pub mod outcome;
mod prefetch;
mod routes;
pub mod traffic;

pub use engine::{Engine, SimError};
pub use network::{
    Change, FlowId, LinkId, Mode, Network, NodeId, Options, PacketTransform, ReceiverSpec, SessionSpec,
    Topology, UnicastProtocol, UnicastSpec, Watch,
};
pub use outcome::{
    FlowOutcome, LayerOutcome, LinkOutcome, LinkSample, MemberOutcome, Outcome, SourceSample, Tapped,
    TappedPacket,
};
pub use traffic::{ApplicationData, Law};
