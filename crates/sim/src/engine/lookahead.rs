//! Prefetch of the memory for the next entries of the calendar, while the current entry is processed.
//!
//! There are several steps. The first prefetches the link or host, the next ones the packet or the host's agents, the state of the
//! agents, and the links after them. Each step needs the memory that the preceding step has fetched, so each step handles a nearer
//! entry than the preceding one. Before the first entry of a day or of a batch, the steps handle the entries that follow it.

use super::Island;
use super::agents::Agent;
use super::links::UNICAST;
use super::relays::SessionSource;
use super::routers::{ROUTED, RouterNode};
use super::tree_nodes::{SessionTree, TreeNode};
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::prefetch::{lines, soon};
use crate::routes::{Branch, NONE};
use faircast_core::packet::ReceiverId;

/// Number of entries between the present entry and the entry of the first step.
pub(super) const FAR: usize = 16;
const FURTHER: usize = 13;
const NEAR: usize = 10;
const NEXT: usize = 7;
const THEN: usize = 4;
const LAST: usize = 2;

/// Part of an agent of a tree, or of a router, that is prefetched, bytes.
const ROLE: usize = 512;

impl Island {
    /// Prefetches memory for the entries after the next one. With `back`, the next entry is imagined this number of places before
    /// the next entry of the calendar.
    #[inline]
    pub(super) fn look_ahead(&self, back: usize) {
        let entry = |ahead: usize| ahead.checked_sub(back).and_then(|ahead| self.calendar.peek(ahead));
        let ring = |link: u32| self.links[link as usize].ring_number().and_then(|ring| self.rings.get(ring));
        let slot = |host: u32| self.slots.get(self.hosts[host as usize].first as usize);
        if let Some(entry) = entry(FAR) {
            match entry.class() {
                Class::Arrival | Class::Dequeue => soon(&self.links[entry.number() as usize]),
                Class::Timer => soon(&self.hosts[entry.number() as usize]),
                Class::Flush | Class::Change => {}
            }
        }
        if let Some(entry) = entry(FURTHER) {
            match entry.class() {
                Class::Arrival => ring(entry.number()).into_iter().for_each(soon),
                Class::Timer => slot(entry.number()).into_iter().for_each(soon),
                Class::Flush | Class::Change | Class::Dequeue => {}
            }
        }
        if let Some(entry) = entry(NEAR) {
            match entry.class() {
                Class::Arrival => {
                    if let Some(ring) = ring(entry.number()) {
                        ring.second().into_iter().for_each(soon);
                        ring.next().into_iter().for_each(|frame| self.fetch_for(frame));
                    }
                }
                Class::Timer => {
                    slot(entry.number()).into_iter().for_each(|slot| self.fetch_agent(slot.agent))
                }
                Class::Flush | Class::Change | Class::Dequeue => {}
            }
        }
        if let Some(entry) = entry(NEXT) {
            match entry.class() {
                Class::Arrival => {
                    let frame = ring(entry.number()).and_then(|ring| ring.next());
                    frame.into_iter().for_each(|frame| self.fetch_after(frame));
                }
                Class::Timer => {
                    slot(entry.number()).into_iter().for_each(|slot| self.fetch_source(slot.agent))
                }
                Class::Flush | Class::Change | Class::Dequeue => {}
            }
        }
        let frame = |ahead: usize| {
            let entry = entry(ahead).filter(|entry| entry.class() == Class::Arrival)?;
            ring(entry.number())?.next()
        };
        frame(THEN).into_iter().for_each(|frame| self.fetch_then(frame));
        frame(LAST).into_iter().for_each(|frame| self.fetch_last(frame));
    }

    /// Prefetches memory after [`Self::fetch_after`]: hosts and rare state of members, the next router, and the parent of a member
    /// that reports in a tree. If the next link is a last hop with a log, also prefetches the log's reader.
    #[inline]
    fn fetch_then(&self, frame: &Frame) {
        match frame.body {
            Body::Data(_) => {
                let branch = &self.branches[frame.at as usize];
                self.fetch_of_member(branch);
                self.router_behind(branch).into_iter().for_each(|it| lines(&*it.router, ROLE));
                if branch.children.1 - branch.children.0 == 1 {
                    self.fetch_of_member(&self.branches[branch.children.0 as usize]);
                }
            }
            Body::Report(report) => {
                let router =
                    self.router_before_next_link(frame).and_then(|it| self.routers.get(*it as usize));
                router.into_iter().for_each(soon);
                if let Some((tree, node)) = self.node(frame.flow, report.from)
                    && let Some(parent) = tree.places.get(node.parent() as usize)
                {
                    soon(parent);
                    self.fetch_member(frame.flow, node.parent());
                }
                self.fetch_reader(frame);
            }
            Body::Segment(_)
            | Body::Feedback(_)
            | Body::Datagram(_)
            | Body::Order(_)
            | Body::Direct { .. } => {
                self.fetch_reader(frame);
            }
        }
    }

    /// Prefetches the router that a report passes next, and the agent of the parent to which a member reports in a tree.
    #[inline]
    fn fetch_last(&self, frame: &Frame) {
        let Body::Report(report) = frame.body else { return };
        if let Some(router) =
            self.router_before_next_link(frame).and_then(|it| self.routers.get(*it as usize))
        {
            lines(&*router.router, ROLE);
            lines(router.entries.ranges(), ROLE);
        }
        if let Some((tree, node)) = self.node(frame.flow, report.from)
            && let Some(parent) = tree.places.get(node.parent() as usize)
        {
            parent.agent.iter().for_each(|agent| lines(&**agent, ROLE));
            soon(
                &self.hosts[self.sessions[frame.flow as usize].members[node.parent() as usize].host as usize],
            );
        }
    }

    /// Returns the router that processes the data at the end of a branch.
    #[inline]
    fn router_behind(&self, branch: &Branch) -> Option<&RouterNode> {
        // Numbers of bundles without the bit are below it, and [`NONE`] is no number of a router.
        self.routers.get((branch.bundle ^ ROUTED) as usize)
    }

    /// Returns the place with the number of the router that a report passes before its next link.
    #[inline]
    fn router_before_next_link(&self, frame: &Frame) -> Option<&u32> {
        let next = self.hops.get(self.hops[frame.at as usize].next as usize)?;
        self.router_of_link.get(next.link as usize)
    }

    /// Prefetches the log's reader of the next link, if it is a last hop with a log.
    #[inline]
    fn fetch_reader(&self, frame: &Frame) {
        if let Some(next) = self.hops.get(self.hops[frame.at as usize].next as usize)
            && let Some(branch) = self.branches.get(self.links[next.link as usize].bundled as usize)
        {
            soon(branch);
        }
    }

    /// Returns the tree of a session, and its node of a member.
    #[inline]
    fn node(&self, session: u32, member: ReceiverId) -> Option<(&SessionTree, &TreeNode)> {
        let tree = self.sessions[session as usize].tree.as_deref()?;
        Some((tree, tree.places.get(member.get() as usize - 1)?))
    }

    /// Prefetches memory for the packets of an inbox's batch after the packet [`FAR`] places before `place`.
    #[inline]
    pub(super) fn look_ahead_in(&self, batch: &[(Entry, Frame)], place: usize) {
        let data = |ahead| match batch.get(place.wrapping_sub(FAR - ahead)) {
            Some((_, Frame { body: Body::Data(_), at, .. })) => self.branches.get(*at as usize),
            _ => None,
        };
        let child = |branch: &Branch| self.branches.get(branch.children.0 as usize);
        if let Some(branch) = data(FAR) {
            soon(branch);
        }
        if let Some(child) = data(FURTHER).and_then(child) {
            soon(child);
        }
        if let Some(child) = data(NEAR).and_then(child) {
            soon(&self.links[child.link as usize]);
            soon(&self.sessions[child.session as usize].members);
        }
        if let Some(child) = data(NEXT).and_then(child) {
            if let Some(member) = self.sessions[child.session as usize].members.get(child.member as usize) {
                lines(member, 448);
            }
            if let Some(part) = self.branches.get(self.links[child.link as usize].bundled as usize) {
                soon(part);
            }
        }
        if let Some(child) = data(LAST).and_then(child)
            && let Some(member) = self.sessions[child.session as usize].members.get(child.member as usize)
        {
            soon(&self.hosts[member.host as usize]);
        }
    }

    /// Prefetches memory for the hosts of an inbox's batch after the host [`FAR`] places before `place`.
    #[inline]
    pub(super) fn look_ahead_among(&self, hosts: &[(u64, u32)], place: usize) {
        let host = |ahead| Some(&self.hosts[hosts.get(place.wrapping_sub(FAR - ahead))?.1 as usize]);
        let agent = |ahead| Some(self.slots.get(host(ahead)?.first as usize)?.agent);
        let root = |ahead| match agent(ahead)? {
            Agent::Source(number) => self.branches.get(self.sessions[number as usize].root.0 as usize),
            _ => None,
        };
        host(FAR).into_iter().for_each(soon);
        if let Some(slot) = host(FURTHER).and_then(|host| self.slots.get(host.first as usize)) {
            soon(slot);
        }
        agent(NEAR).into_iter().for_each(|agent| self.fetch_agent(agent));
        if let Some(agent) = agent(NEXT) {
            self.fetch_source(agent);
            root(NEXT).into_iter().for_each(soon);
        }
        if let Some(root) = root(THEN) {
            soon(&self.links[root.link as usize]);
        }
    }

    /// Prefetches the state that a packet needs at the end of its link.
    #[inline]
    fn fetch_for(&self, frame: &Frame) {
        match frame.body {
            Body::Segment(_) | Body::Feedback(_) | Body::Datagram(_) => {
                let number = (frame.flow & !UNICAST) as usize;
                lines(&self.sinks[number], 192);
                lines(&self.senders[number], 320);
                soon(&self.hops[frame.at as usize]);
            }
            Body::Report(report) => {
                soon(&self.hops[frame.at as usize]);
                self.node(frame.flow, report.from).into_iter().for_each(|(_, node)| soon(node));
            }
            Body::Order(_) | Body::Direct { .. } => soon(&self.hops[frame.at as usize]),
            Body::Data(_) => soon(&self.branches[frame.at as usize]),
        }
    }

    /// Prefetches members, hosts and links after [`Self::fetch_for`].
    #[inline]
    fn fetch_after(&self, frame: &Frame) {
        match frame.body {
            Body::Segment(_) | Body::Feedback(_) | Body::Datagram(_) => {
                let number = (frame.flow & !UNICAST) as usize;
                let sink = &self.sinks[number];
                soon(&self.hosts[sink.host as usize]);
                soon(&self.hosts[self.senders[number].host as usize]);
                self.fetch_hops(frame.at);
                self.fetch_hops(sink.hop);
            }
            Body::Report(report) => {
                self.fetch_hops(frame.at);
                self.router_before_next_link(frame).into_iter().for_each(soon);
                self.node(frame.flow, report.from)
                    .into_iter()
                    .for_each(|(_, node)| node.ways.iter().for_each(soon));
            }
            Body::Order(_) | Body::Direct { .. } => self.fetch_hops(frame.at),
            Body::Data(_) => {
                let branch = &self.branches[frame.at as usize];
                let children = branch.children;
                self.fetch_member(branch.session, branch.member);
                self.router_behind(branch).into_iter().for_each(soon);
                if children.1 - children.0 == 1 {
                    let child = &self.branches[children.0 as usize];
                    soon(&self.links[child.link as usize]);
                    self.fetch_member(child.session, child.member);
                }
            }
        }
    }

    /// Prefetches the links after this hop.
    #[inline]
    fn fetch_hops(&self, mut hop: u32) {
        for _ in 0..3 {
            let Some(it) = self.hops.get(hop as usize) else { return };
            soon(&self.links[it.link as usize]);
            hop = it.next;
        }
    }

    #[inline]
    fn fetch_member(&self, session: u32, member: u32) {
        if member != NONE {
            let it = &self.sessions[session as usize].members[member as usize];
            lines(it, 448);
            if let Some(tree) = &self.sessions[session as usize].tree {
                soon(&tree.places[member as usize]);
            }
        }
    }

    /// Prefetches the host and the rare state of the member at the end of a branch, after [`Self::fetch_member`].
    #[inline]
    fn fetch_of_member(&self, branch: &Branch) {
        if let Some(it) = self.sessions[branch.session as usize].members.get(branch.member as usize) {
            soon(&self.hosts[it.host as usize]);
            it.extra.iter().for_each(|extra| soon(&**extra));
            if let Some(tree) = &self.sessions[branch.session as usize].tree {
                let agent = &tree.places[branch.member as usize].agent;
                agent.iter().for_each(|agent| lines(&**agent, ROLE));
            }
        }
    }

    /// Prefetches the source's state machine.
    #[inline]
    fn fetch_source(&self, agent: Agent) {
        if let Agent::Source(number) = agent
            && let SessionSource::Scheme(source) = &self.sessions[number as usize].source
        {
            lines(&**source, 1024);
        }
    }

    #[inline]
    fn fetch_agent(&self, agent: Agent) {
        match agent {
            Agent::Source(number) => lines(&self.sessions[number as usize], 384),
            Agent::Member { session, member } => self.fetch_member(session, member),
            Agent::Sender(number) => lines(&self.senders[number as usize], 448),
            Agent::Sink(number) => lines(&self.sinks[number as usize], 192),
        }
    }
}
