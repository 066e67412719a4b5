//! Prefetch of the memory for the next entries of the calendar, while the current entry is processed.
//!
//! There are three steps. The first prefetches the link or host, the second the packet or the host's agents, and the third the
//! state of the agents and of the next link. Each step needs the memory that the preceding step has fetched, so each step handles
//! a nearer entry than the preceding one.

use super::Island;
use super::agents::Agent;
use super::links::UNICAST;
use super::relays::SessionSource;
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::prefetch::{lines, soon};
use crate::routes::{Branch, NONE};

/// Number of entries between the present entry and the entry of the first step.
const FAR: usize = 16;
const FURTHER: usize = 13;
const NEAR: usize = 10;
const NEXT: usize = 5;
const THEN: usize = 4;
const LAST: usize = 2;

impl Island {
    #[inline]
    pub(super) fn look_ahead(&self) {
        if let Some(entry) = self.calendar.peek(FAR) {
            match entry.class() {
                Class::Arrival | Class::Dequeue => soon(&self.links[entry.number() as usize]),
                Class::Timer => soon(&self.hosts[entry.number() as usize]),
                Class::Flush | Class::Change => {}
            }
        }
        if let Some(entry) = self.calendar.peek(NEAR) {
            match entry.class() {
                Class::Arrival => {
                    self.links[entry.number() as usize].ring_number().into_iter().for_each(|ring| {
                        if let Some(ring) = self.rings.get(ring) {
                            soon(ring);
                        }
                    })
                }
                Class::Timer => {
                    let host = &self.hosts[entry.number() as usize];
                    if let Some(slot) = self.slots.get(host.first as usize) {
                        soon(slot);
                    }
                }
                Class::Flush | Class::Change | Class::Dequeue => {}
            }
        }
        if let Some(entry) = self.calendar.peek(NEXT) {
            match entry.class() {
                Class::Arrival => {
                    let ring = self.links[entry.number() as usize].ring_number();
                    if let Some(frame) =
                        ring.and_then(|ring| self.rings.get(ring)).and_then(|ring| ring.next())
                    {
                        self.fetch_for(frame);
                    }
                }
                Class::Timer => {
                    let host = &self.hosts[entry.number() as usize];
                    if let Some(slot) = self.slots.get(host.first as usize) {
                        self.fetch_agent(slot.agent);
                    }
                }
                Class::Flush | Class::Change | Class::Dequeue => {}
            }
        }
        if let Some(entry) = self.calendar.peek(LAST).filter(|entry| entry.class() == Class::Timer)
            && let Some(slot) = self.slots.get(self.hosts[entry.number() as usize].first as usize)
        {
            self.fetch_source(slot.agent);
        }
    }

    /// Prefetches memory for the packets of an inbox's batch that follow the packet at `place`.
    #[inline]
    pub(super) fn look_ahead_in(&self, batch: &[(Entry, Frame)], place: usize) {
        let data = |ahead| match batch.get(place + ahead) {
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

    /// Prefetches memory for the hosts of an inbox's batch that follow the host at `place`.
    #[inline]
    pub(super) fn look_ahead_among(&self, hosts: &[(u64, u32)], place: usize) {
        if let Some((_, host)) = hosts.get(place + FAR) {
            soon(&self.hosts[*host as usize]);
        }
        let slot = |ahead| {
            let (_, host) = hosts.get(place + ahead)?;
            self.slots.get(self.hosts[*host as usize].first as usize)
        };
        if let Some(slot) = slot(NEAR) {
            soon(slot);
        }
        if let Some(slot) = slot(NEXT) {
            self.fetch_agent(slot.agent);
        }
        if let Some(slot) = slot(THEN) {
            self.fetch_source(slot.agent);
        }
        let root = |ahead| match slot(ahead)?.agent {
            Agent::Source(number) => self.branches.get(self.sessions[number as usize].root.0 as usize),
            _ => None,
        };
        if let Some(root) = root(THEN) {
            soon(root);
        }
        if let Some(root) = root(LAST) {
            soon(&self.links[root.link as usize]);
        }
    }

    /// Prefetches the state that a packet needs at the end of its link.
    #[inline]
    fn fetch_for(&self, frame: &Frame) {
        match frame.body {
            Body::Segment(_) | Body::Feedback(_) | Body::Datagram(_) => {
                let number = (frame.flow & !UNICAST) as usize;
                let sink = &self.sinks[number];
                lines(sink, 192);
                soon(&self.hosts[sink.host as usize]);
                let sender = &self.senders[number];
                lines(sender, 320);
                soon(&self.hosts[sender.host as usize]);
                self.fetch_hops(frame.at);
                self.fetch_hops(sink.hop);
            }
            Body::Report(_) | Body::Order(_) | Body::Direct { .. } => self.fetch_hops(frame.at),
            Body::Data(_) => {
                let branch = &self.branches[frame.at as usize];
                let children = branch.children;
                self.fetch_member(branch.session, branch.member);
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
            soon(&self.hosts[it.host as usize]);
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
