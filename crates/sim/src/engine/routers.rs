//! Nodes with a router, which processes the packets of sessions that leave the node.
//!
//! A router that processes data runs in the order of the calendar: no packet passes its node ahead of time. A router that
//! processes only reports gets the reports of each session in order of time anyway, because they leave the node over a single
//! link.

use super::Island;
use super::bundles::Logged;
use super::check::SimError;
use super::nanos::{NEVER, time};
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::routes::NONE;
use faircast_aqm::Ecn;
use faircast_core::node::{Cx, Effect, Port, Router, RouterObservation, RouterSpec, To, Verdict};
use faircast_core::packet::{self, Packet};
use faircast_core::rng::Rng;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bit in the bundle number of a branch: the children start at a node with a router, and the remaining bits are the number of the
/// router.
pub const ROUTED: u32 = 1 << 31;
/// Bit in the number of a calendar entry for changes that marks the deadline of a router.
pub const ROUTER: u32 = 1 << 29;

/// Bit that, in addition to [`ROUTER`], marks a calendar entry as the restart of a router.
pub const RESTART: u32 = 1 << 28;

/// A node with a router.
#[derive(Debug)]
pub struct RouterNode {
    pub node: u32,
    /// Specification that creates the router again after a restart.
    pub spec: Arc<dyn RouterSpec>,
    pub router: Box<dyn Router + Send>,
    pub rng: Rng,
    /// Observations of the router before its restarts.
    pub before: RouterObservation,
    /// Time of the router's entry in the calendar.
    pub scheduled: u64,
    /// Port of each neighbour.
    pub neighbours: BTreeMap<u32, Port>,
    /// By link from or to the node: the port of the neighbour.
    pub ports: BTreeMap<u32, Port>,
    /// By session and port: the outgoing branch of the session's data.
    pub exits: BTreeMap<(u32, Port), u32>,
    /// By session: the hop over which its reports leave the node.
    pub ways_up: BTreeMap<u32, u32>,
    /// Ports towards the members.
    pub entries: Entries,
}

/// Ports of a node towards the members of sessions: ranges of members behind the same port, in order.
#[derive(Debug, Default)]
pub struct Entries(Vec<MembersBehindPort>);

/// Members from `first` up to, but not including, `end`.
#[derive(Debug)]
pub struct MembersBehindPort {
    session: u32,
    first: u32,
    end: u32,
    port: Port,
}

impl Entries {
    /// Adds a member. Members must be added in the order of their sessions and numbers.
    pub fn add(&mut self, session: u32, member: u32, port: Port) {
        match self.0.last_mut() {
            Some(last) if (last.session, last.end, last.port) == (session, member, port) => last.end += 1,
            _ => self.0.push(MembersBehindPort { session, first: member, end: member + 1, port }),
        }
    }

    /// Returns the ranges of members.
    pub fn ranges(&self) -> &[MembersBehindPort] {
        &self.0
    }

    /// Returns the port towards a member.
    fn port(&self, session: u32, member: u32) -> Option<Port> {
        let after = self.0.partition_point(|it| (it.session, it.first) <= (session, member));
        let it = self.0.get(after.checked_sub(1)?)?;
        (it.session == session && member < it.end).then_some(it.port)
    }
}

impl RouterNode {
    /// Returns the observations since the start, restarts included.
    pub fn seen(&self) -> RouterObservation {
        let (now, before) = (self.router.observe(), &self.before);
        RouterObservation {
            merged: now.merged + before.merged,
            stored_most: now.stored_most.max(before.stored_most),
            stored_for: now.stored_for + before.stored_for,
            repairs: now.repairs + before.repairs,
            indications: now.indications + before.indications,
            filtered: now.filtered + before.filtered,
            overflows: now.overflows + before.overflows,
            exclusions: now.exclusions + before.exclusions,
            ..now
        }
    }
}

impl Island {
    /// Passes a session's data through the router of a node.
    #[cold]
    pub(super) fn route(
        &mut self,
        router: u32,
        branches: (u32, u32),
        packet: &Logged,
        slot: &mut Option<u32>,
    ) {
        for number in branches.0..branches.1 {
            if !self.is_wanted(number, packet) {
                continue;
            }
            let branch = &self.branches[number as usize];
            let (session, link) = (branch.session, branch.link);
            let id = self.sessions[session as usize].id;
            let body = packet::Body::Data(packet.data);
            let sent = Packet { session: id, layer: packet.layer, size: packet.size, body };
            let mut passed = sent;
            let it = &mut self.routers[router as usize];
            let exit = it.ports[&link];
            let cx = &mut Cx { now: time(packet.at), rng: &mut it.rng, effects: &mut self.effects };
            let verdict = it.router.on_data(exit, &mut passed, cx);
            self.settle(router, packet.at);
            if verdict != Verdict::Pass {
                continue;
            }
            if passed == sent {
                self.offer_branch(number, packet, slot);
                continue;
            }
            // The router changed a copy. The other branches carry the original packet.
            match passed.body {
                packet::Body::Data(data) if (passed.session, passed.layer) == (sent.session, sent.layer) => {
                    self.offer_branch(number, &Logged { data, size: passed.size, ..*packet }, &mut None);
                }
                _ => self.refuse("a router", "changes the session, layer or kind of a packet"),
            }
        }
    }

    /// Passes a report that leaves a node over this link through the node's router. Returns whether the report is forwarded; the
    /// router may have changed it.
    #[cold]
    pub(super) fn lets_through(&mut self, link: u32, now: u64, frame: &mut Frame) -> bool {
        let Some(&router) = self.router_of_link.get(link as usize).filter(|router| **router != NONE) else {
            return true;
        };
        let Body::Report(report) = frame.body else { return true };
        let session = frame.flow;
        let it = &mut self.routers[router as usize];
        let member = (report.from.get() - 1) as u32;
        let entry = it.entries.port(session, member).unwrap_or(Port(u16::MAX));
        let id = self.sessions[session as usize].id;
        let body = packet::Body::Report(report);
        let mut passed = Packet { session: id, layer: report.layer, size: frame.size, body };
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        let verdict = it.router.on_report(entry, &mut passed, cx);
        self.settle(router, now);
        match (verdict, passed.body) {
            (Verdict::Pass, packet::Body::Report(report)) => {
                (frame.body, frame.size) = (Body::Report(report), passed.size);
                true
            }
            (Verdict::Pass, _) => {
                self.refuse("a router", "replaces a report by another kind of packet");
                false
            }
            (Verdict::Hold | Verdict::Drop, _) => {
                self.records.aggregated(self.sessions[session as usize].flow);
                false
            }
        }
    }

    /// Processes a calendar entry of a router.
    pub(super) fn router_timer(&mut self, router: u32, now: u64) {
        let it = &mut self.routers[(router & !RESTART) as usize];
        if router & RESTART != 0 {
            // The router loses all its state and the packets that it held.
            it.before = it.seen();
            (it.router, it.scheduled) = (it.spec.router(), NEVER);
            return self.settle(router & !RESTART, now);
        }
        if it.scheduled != now {
            return; // an earlier entry took its place
        }
        it.scheduled = NEVER;
        if it.router.deadline().as_nanos() <= now {
            it.router.on_deadline(&mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects });
        }
        self.settle(router, now);
    }

    /// Carries out the actions of a router after a call, and updates its deadline.
    fn settle(&mut self, router: u32, now: u64) {
        if !self.effects.as_slice().is_empty() {
            let mut effects = std::mem::take(&mut self.effects);
            for effect in effects.drain() {
                match effect {
                    Effect::Send { to, packet } => self.send_from(router, to, &packet, now),
                    Effect::Report(_) | Effect::Subscribe(_) | Effect::Attend(_) | Effect::Leave => {
                        self.refuse(
                            "a router",
                            "sends a report or subscribes to layers, as only receivers do",
                        );
                    }
                }
            }
            self.effects = effects;
        }
        let it = &mut self.routers[router as usize];
        let deadline = it.router.deadline().as_nanos().max(now + 1);
        if deadline < it.scheduled && deadline <= self.until {
            it.scheduled = deadline;
            self.calendar.push(Entry::new(deadline, Class::Change, ROUTER | router));
        }
    }

    /// Sends a packet of a router.
    fn send_from(&mut self, router: u32, to: To, packet: &Packet, now: u64) {
        let session = packet.session.0.wrapping_sub(1); // as they are numbered
        let it = &self.routers[router as usize];
        match (to, packet.body) {
            (To::Exit(port), packet::Body::Data(data)) => {
                let Some(&branch) = it.exits.get(&(session, port)) else {
                    return self.refuse("a router", "sends data to a port that the session does not use");
                };
                let capable = self.sessions[session as usize].capable;
                let Packet { size, layer, .. } = *packet;
                let packet = Logged { at: now, data, size, layer, marked: false, capable };
                self.offer_branch(branch, &packet, &mut None);
            }
            (To::Parent, packet::Body::Report(report)) => {
                let Some(&hop) = it.ways_up.get(&session) else {
                    return self.refuse(
                        "a router",
                        "sends a report to a session whose reports do not pass this router",
                    );
                };
                let frame = Frame {
                    flow: session,
                    at: hop,
                    size: packet.size,
                    generation: 0,
                    ecn: Ecn::NotEct,
                    marked: false,
                    rank: 0,
                    body: Body::Report(report),
                };
                self.offer_hop_past_router(now, frame);
            }
            _ => self.refuse("a router", "sends a packet that it cannot send to this destination"),
        }
    }

    /// Whether a session's packet is carried by this branch.
    fn is_wanted(&self, number: u32, packet: &Logged) -> bool {
        let branch = &self.branches[number as usize];
        let is_open = branch.gates == NONE || self.gates.is_open(branch.gates + u32::from(packet.layer.0));
        is_open && (branch.active.is_none() || self.flows_over(number, packet.at))
    }

    /// Records an action that the simulator cannot carry out for a role. The run then ends with an error.
    #[cold]
    pub(super) fn refuse(&mut self, role: &'static str, what: &'static str) {
        self.trouble.get_or_insert(SimError::Effect { role, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_name_the_port_of_each_added_member() {
        let mut entries = Entries::default();
        let members = [(0, 3, 1), (0, 4, 1), (0, 5, 2), (0, 8, 2), (2, 0, 1), (2, 1, 1)];
        members.iter().for_each(|&(session, member, port)| entries.add(session, member, Port(port)));
        for (session, member) in (0..4).flat_map(|session| (0..10).map(move |member| (session, member))) {
            let known = members.iter().find(|it| (it.0, it.1) == (session, member));
            assert_eq!(entries.port(session, member), known.map(|it| Port(it.2)), "{session}, {member}");
        }
        assert_eq!(entries.ranges().len(), 4);
    }
}
