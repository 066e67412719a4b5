//! The engine: takes entries from the calendar and lets links and hosts act.
//!
//! Four ideas make it fast, and none changes an outcome:
//!
//! - **At once.** A first-in-first-out link knows when a packet will arrive as soon as it is offered. Where all that
//!   follows depends on this link alone (a host with one way in, a link that only this link feeds), it is computed at
//!   once, without an entry in the calendar ([`links`]). A host is a process with its own clock: its timers up to the
//!   arrival run first ([`hosts`]).
//! - **One entry per link.** Packets under way lie in their link's ring; the calendar knows the first.
//! - **Inboxes.** A link that many senders feed takes what comes within a propagation delay together ([`inboxes`]).
//! - **Bundles.** A packet for thousands of last hops is written into a log; each hop reads on when something else touches
//!   it, or when the time has come at which its receiver could affect anybody ([`bundles`]). So a receiver takes
//!   a dozen packets in a row while its state is in the cache.
//!
//! A link whose discipline holds packets does not know when one will arrive: it has an entry of its own for the next departure
//! ([`queues`]), and what meets it comes in the calendar's order; what leaves it may be worked on at once. Sessions of several layers do without the first, the third and the fourth: which links carry a layer is decided as the
//! run goes ([`layers`]).

mod agents;
mod applications;
mod build;
mod bundles;
mod check;
mod clocked;
mod coordination;
mod counters;
mod delays;
mod hosts;
mod inboxes;
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
use layers::MulticastForwarding;
use links::{LinkMoments, Probe, Ring, SimLink};
use meter::Moments;
use queues::LinkQueue;
use record::Records;
use routers::RouterNode;
use std::collections::BTreeMap;
use std::sync::Arc;
use tournament::Tournament;

pub use check::SimError;

/// A network while it runs.
pub struct Engine {
    calendar: Calendar,
    until: u64,
    /// Moment up to which [`Engine::run_until`] was asked to run.
    reached: u64,
    bin: u64,
    /// Up to which flows are counted.
    moments: Moments,
    sample: u64,
    links: Vec<SimLink>,
    link_moments: LinkMoments,
    /// Rings of the links whose packets arrive by events; first those of links that queue.
    rings: Vec<Ring>,
    /// Queues of the links that queue, in the order of their rings.
    queues: Vec<LinkQueue>,
    probes: BTreeMap<u32, Probe>,
    routers: Vec<RouterNode>,
    /// By link: the router of the node that it leaves.
    router_of_link: BTreeMap<u32, u32>,
    /// Failed action of a role.
    trouble: Option<SimError>,
    hops: Vec<Hop>,
    branches: Vec<Branch>,
    gates: MulticastForwarding,
    bundles: Vec<Bundle>,
    inboxes: Inboxes,
    hosts: Vec<Host>,
    slots: Vec<Slot>,
    /// Tournaments of hosts with many agents.
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
    /// Transmissions of applications, by number of the trace.
    traces: Vec<Arc<[(Span, u32)]>>,
    taps: Vec<Tapped>,
    records: Records,
    traversals: u64,
    arrivals: u64,
    events: u64,
}

impl Network {
    /// Simulate.
    ///
    /// # Errors
    /// When a flow has no way to a receiver, a node or link does not exist, or a size or rate makes no sense; or when a role wanted
    /// something that cannot be done for it.
    pub fn run(&self, options: &Options) -> Result<Outcome, SimError> {
        let mut engine = Engine::build(self, options, None)?;
        engine.run();
        engine.finish(self)
    }

    /// Simulate, and let every packet of every session go through `passage` when it leaves its host.
    ///
    /// # Errors
    /// As [`Network::run`].
    pub fn run_through(
        &self,
        options: &Options,
        passage: Box<dyn PacketTransform>,
    ) -> Result<Outcome, SimError> {
        let mut engine = Engine::build(self, options, Some(passage))?;
        engine.run();
        engine.finish(self)
    }

    /// Make ready to run: for measuring memory and set-up time, or to run in steps.
    ///
    /// # Errors
    /// As [`Network::run`].
    pub fn engine(&self, options: &Options) -> Result<Engine, SimError> {
        Engine::build(self, options, None)
    }
}

impl Engine {
    /// Go on to the end.
    pub fn run(&mut self) {
        self.run_until(time_of(self.until));
        self.flush_everything();
    }

    /// Go on to this moment, not beyond the end. The outcome does not depend on the steps.
    pub fn run_until(&mut self, moment: Time) {
        let until = moment.as_nanos().min(self.until);
        self.reached = self.reached.max(until);
        while let Some(entry) = self.calendar.pop(until) {
            self.events += 1;
            self.look_ahead();
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

    /// Packets that were carried over a link so far.
    pub const fn traversals(&self) -> u64 {
        self.traversals
    }

    /// Packets that arrived at a sender or receiver so far.
    pub const fn arrivals(&self) -> u64 {
        self.arrivals
    }

    fn flush_everything(&mut self) {
        loop {
            let before = self.arrivals;
            for bundle in 0..self.bundles.len() as u32 {
                self.flush(bundle);
            }
            self.run_until(time_of(self.until));
            if self.arrivals == before {
                return;
            }
        }
    }
}

fn time_of(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// Whether something is computed at once.
fn is_eager(mode: Mode) -> bool {
    mode == Mode::Eager
}
