//! The engine: processes the entries of the calendar and calls links and hosts.
//!
//! Four optimisations speed up the engine without changing any outcome:
//!
//! - **At once.** A first-in-first-out link can compute the arrival of a packet when the packet is offered. If all
//!   consequences depend on this link alone (a host with one incoming path, a link fed only by this link), they are computed
//!   at once, without an entry in the calendar ([`links`]). A host is a process with its own clock: its timers up to the
//!   arrival run first ([`hosts`]).
//! - **One entry per link.** Packets in transit are stored in the ring of their link; the calendar contains only the first.
//! - **Inboxes.** A link that many senders feed processes all packets of a propagation delay together, and runs the timers of
//!   hosts that send only to this link ([`inboxes`]).
//! - **Bundles.** A packet for thousands of last hops is written into a log. Each hop reads the log before another event
//!   affects the hop, or before its receiver could affect other hosts ([`bundles`]). A receiver thus processes a dozen
//!   packets in a row while its state is in the cache.
//!
//! A link whose discipline holds packets cannot compute arrivals in advance. It has a calendar entry for the next departure
//! ([`queues`]), and packets enter it in the order of the calendar. A packet that leaves such a link may be processed at once.
//! Sessions of several layers use the first optimisation only at last hops, and neither inboxes nor bundles, because the layers of
//! each link are decided during the run ([`layers`]).
//!
//! Each of very many sources of one host gets its own copy of the host, if its links only delay packets ([`copies`]).
//!
//! A run may be divided into islands, each with a calendar of its own ([`islands`]).

mod agents;
mod applications;
mod build;
mod bundles;
mod check;
mod clocked;
mod coordination;
mod copies;
mod counters;
mod delays;
mod hosts;
mod inboxes;
mod islands;
mod layers;
mod links;
mod lookahead;
mod membership_schedule;
mod meter;
mod nanos;
mod precompute;
mod queues;
mod record;
mod relays;
mod routers;
mod run;
mod steps;
mod tournament;
mod tree_nodes;
mod trees;

use crate::calendar::{Calendar, Class, Entry};
use crate::frame::Store;
use crate::network::{Change, LinkId, Mode, Network, Options, PacketTransform};
use crate::outcome::{Outcome, Tapped};
use crate::routes::{Branch, Hop};
use agents::{Host, SenderAgent, SessionAgent, SinkAgent, Slot};
use bundles::Bundle;
use coordination::{Coordination, Membership};
use faircast_core::node::Effects;
use faircast_core::time::{Span, Time};
use inboxes::{INBOX, Inboxes};
use islands::border::Border;
use layers::MulticastForwarding;
use links::{LinkMoments, Probe, Ring, SimLink};
use lookahead::FAR;
use meter::Moments;
use queues::LinkQueue;
use record::Records;
use routers::RouterNode;
use std::collections::BTreeMap;
use std::sync::Arc;
use tournament::Tournament;

pub use check::SimError;
pub use run::{Engine, Helper};

/// A network during a run, or the part of it that one island owns. The numbers of nodes, links and flows are those of the network.
struct Island {
    calendar: Calendar,
    until: u64,
    bin: u64,
    /// Moments at which flows are counted.
    moments: Moments,
    sample: u64,
    links: Vec<SimLink>,
    /// Whether the state does not fit the caches, so it is prefetched.
    is_large: bool,
    link_moments: LinkMoments,
    /// Rings of the links on which arrivals are separate events; the rings of links that queue come first.
    rings: Vec<Ring>,
    /// Queues of the links that queue, in the order of their rings.
    queues: Vec<LinkQueue>,
    probes: BTreeMap<u32, Probe>,
    routers: Vec<RouterNode>,
    /// By link: the router of the node at which the link starts.
    router_of_link: Vec<u32>,
    /// Error of a role's action.
    trouble: Option<SimError>,
    hops: Vec<Hop>,
    branches: Vec<Branch>,
    gates: MulticastForwarding,
    bundles: Vec<Bundle>,
    inboxes: Inboxes,
    hosts: Vec<Host>,
    slots: Vec<Slot>,
    /// Deadline tournaments of hosts with many agents.
    tournaments: Vec<Tournament>,
    sessions: Vec<SessionAgent>,
    senders: Vec<SenderAgent>,
    sinks: Vec<SinkAgent>,
    coordinations: Vec<Coordination>,
    /// Memberships of flows in coordinations.
    memberships: Vec<Membership>,
    store: Store,
    effects: Effects,
    passage: Option<Box<dyn PacketTransform>>,
    changes: Vec<(Time, LinkId, Change)>,
    /// Application data by trace: time after the start, and total number of packets.
    traces: Vec<Arc<[(Span, u32)]>>,
    taps: Vec<Tapped>,
    records: Records,
    border: Border,
    traversals: u64,
    arrivals: u64,
    events: u64,
}

impl Network {
    /// Runs the simulation.
    ///
    /// # Errors
    /// When a flow has no path to a receiver, a node or link does not exist, or a size or rate is invalid. A role's request for
    /// an impossible action is also an error.
    pub fn run(&self, options: &Options) -> Result<Outcome, SimError> {
        let mut engine = Engine::build(self, options, None)?;
        engine.run();
        engine.finish(self)
    }

    /// Runs the simulation, and passes every packet of every session through `passage` when it leaves its host.
    ///
    /// # Errors
    /// The errors of [`Network::run`].
    pub fn run_through(
        &self,
        options: &Options,
        passage: Box<dyn PacketTransform>,
    ) -> Result<Outcome, SimError> {
        let mut engine = Engine::build(self, options, Some(passage))?;
        engine.run();
        engine.finish(self)
    }

    /// Returns an engine that is ready to run: for running in steps, and for measuring memory and set-up time.
    ///
    /// # Errors
    /// The errors of [`Network::run`].
    pub fn engine(&self, options: &Options) -> Result<Engine, SimError> {
        Engine::build(self, options, None)
    }
}

impl Island {
    /// Processes the entries of the calendar up to `until`.
    fn run_to(&mut self, until: u64) {
        while let Some(entry) = self.calendar.pop(until) {
            self.events += 1;
            if self.is_large {
                if self.calendar.begins_day() {
                    (1..=FAR).rev().for_each(|back| self.look_ahead(back));
                }
                self.look_ahead(0);
            }
            self.execute(entry);
        }
    }

    fn execute(&mut self, entry: Entry) {
        match entry.class() {
            Class::Dequeue => self.dequeue(entry.number(), entry.time()),
            Class::Arrival => self.arrive(entry.number(), entry.time()),
            Class::Timer => self.wake(entry.number(), entry.time()),
            Class::Flush if entry.number() & INBOX != 0 => {
                self.empty_inbox(entry.number() & !INBOX, entry.time())
            }
            Class::Flush => self.flush(entry.number()),
            Class::Change => self.change(entry.number(), entry.time()),
        }
    }
}

fn time_of(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Whether arrivals may be computed at once.
fn is_eager(mode: Mode) -> bool {
    mode == Mode::Eager
}
