//! A session with agents in virtual time. Every host receives the source's multicast by its own link, and agents and children
//! exchange unicast packets.

use super::net::{Head, Net, Who};
use super::node::{IDLE_TIMEOUT, UNIX_SECS, groups};
use crate::config::Destination;
use crate::endpoint::{Datagram, Endpoint};
use crate::event::Event;
use crate::receiver::{self, ReceiverSession};
use crate::relay::{AgentStatus, RelayHandle, RelayMode as _, SessionHandle, Upstream};
use crate::tree::{Agent, AgentChild, Node};
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use faircast_simnet::{Link, Pipe};
use faircast_wire::{GroupKey, Kind, Message, Newest, ReceiverCodec, parse, peek};
use std::net::SocketAddr;
use std::ops::Range;

/// A running agent.
pub(super) struct AgentNode {
    pub(super) shared: SessionHandle,
    agent: Option<Node<Agent>>,
    above: Option<Upstream>,
    children: Vec<(SocketAddr, AgentChild)>,
    pub(super) address: SocketAddr,
    pub(super) events: Vec<(Time, Event)>,
    parents: Vec<SocketAddr>,
    most: usize,
    key: Option<GroupKey>,
    rng: Rng,
    pub(super) path_rng: Rng,
    name: String,
}

impl AgentNode {
    pub(super) fn start(&mut self, now: Time) {
        let id = ReceiverId::new(u64::from(self.rng.bits() as u32 | 1)).expect("an odd number is not zero");
        let hop = self.key.as_ref().map(GroupKey::hop);
        let codec = ReceiverCodec::of_relay(hop.as_ref(), id, self.rng.bits());
        let handle = RelayHandle::default();
        handle.be_agent();
        let agent = Node::new(Agent::new(id, self.rng.bits(), hop, self.rng.bits()));
        self.shared = SessionHandle::of_mode(handle, agent.mode(), 0);
        self.agent = Some(agent);
        self.shared.take_children(self.most, Default::default());
        let seed = self.rng.bits();
        let destination = Destination::Directory(std::env::temp_dir());
        let setup = receiver::Setup {
            host: self.name.clone(),
            idle_timeout: Span::from_nanos(IDLE_TIMEOUT.as_nanos() as u64),
            parents: self.parents.clone(),
            relay: Some(Box::new(self.shared.clone())),
            ..receiver::Setup::plain(codec, id, seed, destination, (groups(1)[0], UNIX_SECS))
        };
        self.above = Some(Upstream::new(ReceiverSession::new(setup, now), self.shared.clone()));
        self.children.clear();
    }

    pub(super) fn receives_group(&self) -> bool {
        self.above.as_ref().is_some_and(|above| self.parents.is_empty() || above.receives_group())
    }

    /// Processes a datagram to this host or its group; returns the replies.
    pub(super) fn on_datagram(
        &mut self,
        bytes: &mut [u8],
        (from, to): (SocketAddr, SocketAddr),
        now: Time,
    ) -> Vec<(Vec<u8>, SocketAddr)> {
        let Some(above) = &mut self.above else { return Vec::new() };
        let child =
            self.children.iter_mut().find(|(address, child)| *address == from && !child.is_finished());
        let is_attach = peek(bytes).is_ok_and(|header| header.kind == Kind::Attach);
        match child {
            Some((_, child)) if !to.ip().is_multicast() => {
                child.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
            }
            None if is_attach && !to.ip().is_multicast() => {
                let Ok((_, Message::Attach(attach))) = parse(bytes, &Newest::default()) else {
                    return Vec::new();
                };
                let tokens = self.shared.at_port(&attach, (from, self.address));
                return tokens.map(|token| (token, from)).into_iter().collect();
            }
            _ => above.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now),
        }
        Vec::new()
    }

    pub(super) fn drive(&mut self, now: Time, sent: &mut Vec<((SocketAddr, SocketAddr), Vec<u8>)>) {
        let mut out = Vec::new();
        for turn in 0.. {
            assert!(turn < 10_000, "{} does not let time pass at {now:?}", self.name);
            let (Some(above), Some(agent)) = (&mut self.above, &self.agent) else { return };
            above.handle_timeout(now);
            while let Some(transmit) = above.poll_transmit(now, &mut out) {
                sent.push(((self.address, transmit.to), out.clone()));
            }
            self.events.extend(std::iter::from_fn(|| above.poll_event()).map(|event| (now, event)));
            let mut again = above.poll_timeout(now) <= now && !above.is_finished();
            for (place, id, address) in self.shared.grown() {
                let child = AgentChild::new(self.shared.clone(), agent.clone(), place, id, address);
                self.children.push((address, child));
            }
            for (_, child) in self.children.iter_mut().filter(|(_, child)| !child.is_finished()) {
                child.handle_timeout(now);
                while let Some(transmit) = child.poll_transmit(now, &mut out) {
                    sent.push(((self.address, transmit.to), out.clone()));
                }
                again |= child.poll_timeout(now) <= now && !child.is_finished();
            }
            self.children.retain(|(_, child)| !child.is_finished());
            if above.is_finished() && self.children.is_empty() {
                self.above = None;
            }
            if !again {
                return;
            }
        }
    }

    pub(super) fn next_timeout(&self, now: Time) -> Time {
        let Some(above) = &self.above else { return Time::NEVER };
        let above = if above.is_finished() { Time::NEVER } else { above.poll_timeout(now) };
        self.children.iter().map(|(_, child)| child.poll_timeout(now)).fold(above, Time::min)
    }

    fn agent(&self) -> &Node<Agent> {
        self.agent.as_ref().expect("it has started")
    }

    pub(super) fn status(&self) -> AgentStatus {
        self.agent().with(|agent| agent.status())
    }

    /// Returns the number of downstream receivers, and the number of completed receivers among them.
    pub(super) fn below(&self) -> (u64, u64) {
        let below = self.agent().with(|agent| agent.tally());
        (below.receivers, below.done)
    }

    /// Returns the number of downstream receivers of each child, and the number of completed ones, as `relay --status` reports
    /// them.
    pub(super) fn shown(&self) -> Vec<(u64, u64)> {
        let session = self.shared.status().expect("there is a session");
        session.branches.iter().map(|child| (child.receivers, child.done)).collect()
    }
}

impl Net {
    /// Adds an agent that receives the source by this link and accepts `most` children. `parents` may list other agents.
    pub(super) fn agent(&mut self, parents: &[SocketAddr], most: usize, down: Link) -> usize {
        let at = self.agents.len();
        self.agents.push(AgentNode {
            shared: SessionHandle::new(RelayHandle::default(), 0, 0, None),
            agent: None,
            above: None,
            children: Vec::new(),
            address: SocketAddr::from(([10, 2, 0, 1 + at as u8], 5778)),
            events: Vec::new(),
            parents: parents.to_vec(),
            most,
            key: self.sources[0].offer.key.clone(),
            rng: Rng::new(self.seed, 1 << 36 | at as u64),
            path_rng: Rng::new(self.seed, 1 << 35 | at as u64),
            name: format!("agent{at}"),
        });
        self.attach_near(Who::Agent(at), down);
        at
    }

    /// Adds `count` receivers with these parents, each of which receives the source by its own link.
    pub(super) fn children(&mut self, parents: &[SocketAddr], count: usize, down: Link) -> Range<usize> {
        let first = self.receivers.len();
        for _ in 0..count {
            let at = self.place_receiver();
            self.receivers[at].parents = parents.to_vec();
            self.attach_near(Who::Receiver(at), down);
        }
        first..first + count
    }

    /// Adds a host that receives the source by this link, and exchanges unicast packets with other hosts.
    fn attach_near(&mut self, who: Who, down: Link) {
        self.attach(who, Head::Source(0), down);
        self.near(who, Link::millis(1));
    }

    /// Sends all unicast packets from and to this host through this link.
    pub(super) fn near(&mut self, who: Who, link: Link) {
        let site = self.network.sites.iter_mut().find(|site| site.members.contains(&who));
        site.expect("it is attached").near = Some(Pipe::new(link));
    }

    /// Kills the agent's process.
    pub(super) fn kill_agent(&mut self, agent: usize) {
        let node = &mut self.agents[agent];
        node.above = None;
        node.children.clear();
    }

    /// Checks that these receivers have all content.
    pub(super) fn assert_have_all(&self, receivers: Range<usize>) {
        for receiver in receivers {
            let node = &self.receivers[receiver];
            assert!(node.report().ok);
            assert!(node.has(&self.sources[0]), "{} has something else", node.host);
        }
    }

    /// Returns the number of datagrams that the source received directly from these receivers.
    pub(super) fn received_from(&self, receivers: Range<usize>) -> u64 {
        receivers.map(|at| self.received.get(&self.receivers[at].address).copied().unwrap_or(0)).sum()
    }
}
