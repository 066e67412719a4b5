//! A session with agents in virtual time: all hear the source's multicast, each by a link of its own, and agents and their children
//! reach each other by unicast.

use super::liars::Lies;
use super::net::OVERHEAD;
use super::node::{Offer, PATIENCE, ReceiverNode, SourceNode, UNIX_SECS, groups, is_later};
use crate::config::Destination;
use crate::endpoint::{Datagram, Endpoint};
use crate::event::Event;
use crate::receiver::{self, ReceiverSession};
use crate::relay::{Agent, AgentChild, AgentStatus, RelayHandle, Shared, Upstream};
use faircast_core::packet::ReceiverId;
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use faircast_simnet::{Link, Pipe};
use faircast_wire::{GroupKey, Kind, Message, Newest, ReceiverCodec, parse, peek};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use tempfile::TempDir;

/// The host of the source's session, or one that hears it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Source,
    Agent(usize),
    Receiver(usize),
}

/// A host's ways: from the source's multicast, and for all unicast.
struct Ways {
    down: Pipe,
    near: Pipe,
}

/// An agent at work.
pub(super) struct AgentNode {
    pub(super) shared: Shared,
    above: Option<Upstream>,
    children: Vec<(SocketAddr, AgentChild)>,
    pub(super) address: SocketAddr,
    pub(super) events: Vec<(Time, Event)>,
    parents: Vec<SocketAddr>,
    most: usize,
    key: Option<GroupKey>,
    rng: Rng,
    path_rng: Rng,
    scheduled: Time,
    name: String,
}

impl AgentNode {
    fn start(&mut self, now: Time) {
        let id = ReceiverId::new(u64::from(self.rng.bits() as u32 | 1)).expect("an odd number is not zero");
        let hop = self.key.as_ref().map(GroupKey::hop);
        let codec = ReceiverCodec::of_relay(hop.as_ref(), id, self.rng.bits());
        let handle = RelayHandle::default();
        handle.be_agent();
        self.shared = Shared::of_agent(handle, Agent::new(id, self.rng.bits(), hop, self.rng.bits()));
        self.shared.take_children(self.most, Default::default());
        let seed = self.rng.bits();
        let destination = Destination::Directory(std::env::temp_dir());
        let setup = receiver::Setup {
            host: self.name.clone(),
            patience: Span::from_nanos(PATIENCE.as_nanos() as u64),
            parents: self.parents.clone(),
            relay: Some(Box::new(self.shared.clone())),
            ..receiver::Setup::plain(codec, id, seed, destination, (groups(1)[0], UNIX_SECS))
        };
        self.above = Some(Upstream::new(ReceiverSession::new(setup, now), self.shared.clone()));
        self.children.clear();
    }

    fn hears_group(&self) -> bool {
        self.above.as_ref().is_some_and(|above| self.parents.is_empty() || above.hears_group())
    }

    /// A datagram that was sent to this host.
    fn on_datagram(
        &mut self,
        bytes: &mut [u8],
        from: SocketAddr,
        now: Time,
        out: &mut Vec<(Vec<u8>, SocketAddr)>,
    ) {
        let Some(above) = &mut self.above else { return };
        let child = self.children.iter_mut().find(|(address, child)| *address == from && !child.is_over());
        if let Some((_, child)) = child {
            child.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
        } else if peek(bytes).is_ok_and(|header| header.kind == Kind::Attach) {
            if let Ok((_, Message::Attach(attach))) = parse(bytes, &Newest::default()) {
                out.extend(self.shared.at_port(&attach, (from, self.address)).map(|token| (token, from)));
            }
        } else {
            above.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
        }
    }

    fn drive(&mut self, now: Time, sent: &mut Vec<(Vec<u8>, SocketAddr)>) {
        let mut out = Vec::new();
        for turn in 0.. {
            assert!(turn < 10_000, "{} does not let time pass at {now:?}", self.name);
            let Some(above) = &mut self.above else { return };
            above.handle_timeout(now);
            while let Some(transmit) = above.poll_transmit(now, &mut out) {
                sent.push((out.clone(), transmit.to));
            }
            self.events.extend(std::iter::from_fn(|| above.poll_event()).map(|event| (now, event)));
            let mut again = above.poll_timeout(now) <= now && !above.is_over();
            for (place, id, address) in self.shared.grown() {
                self.children.push((address, AgentChild::new(self.shared.clone(), place, id, address)));
            }
            for (_, child) in self.children.iter_mut().filter(|(_, child)| !child.is_over()) {
                child.handle_timeout(now);
                while let Some(transmit) = child.poll_transmit(now, &mut out) {
                    sent.push((out.clone(), transmit.to));
                }
                again |= child.poll_timeout(now) <= now && !child.is_over();
            }
            self.children.retain(|(_, child)| !child.is_over());
            if above.is_over() && self.children.is_empty() {
                self.above = None;
            }
            if !again {
                return;
            }
        }
    }

    fn wake_at(&self, now: Time) -> Time {
        let Some(above) = &self.above else { return Time::NEVER };
        let above = if above.is_over() { Time::NEVER } else { above.poll_timeout(now) };
        self.children.iter().map(|(_, child)| child.poll_timeout(now)).fold(above, Time::min)
    }

    pub(super) fn status(&self) -> AgentStatus {
        self.shared.with_agent(|agent| agent.status()).expect("it is an agent")
    }

    /// Receivers below, and those of them that are done.
    pub(super) fn below(&self) -> (u64, u64) {
        let standing = self.shared.with_inside(|agent| agent.standing()).expect("it is an agent");
        (standing.receivers, standing.done)
    }

    /// The same of each child, as `relay --status` shows it.
    pub(super) fn shown(&self) -> Vec<(u64, u64)> {
        let session = self.shared.status().expect("there is a session");
        session.branches.iter().map(|child| (child.receivers, child.done)).collect()
    }
}

enum What {
    /// A datagram reaches this host, from the source's multicast or from another host.
    Arrive {
        at: Who,
        from: SocketAddr,
        bytes: Vec<u8>,
        by_group: bool,
    },
    Wake(Who),
}

/// All of them.
pub(super) struct Grove {
    pub(super) now: Time,
    pub(super) source: SourceNode,
    pub(super) agents: Vec<AgentNode>,
    pub(super) receivers: Vec<ReceiverNode>,
    ways: BTreeMap<Who, Ways>,
    calendar: BinaryHeap<Reverse<(Time, u64, usize)>>,
    events: Vec<Option<What>>,
    order: u64,
    seed: u64,
    dir: TempDir,
    /// Those that are not started with the others.
    pub(super) late: Vec<Who>,
    /// Datagrams that reached the source, by their sender.
    pub(super) heard: BTreeMap<SocketAddr, u64>,
    /// Datagrams that children sent to agents: copies of their bytes, when wanted.
    pub(super) recorded: Option<Vec<(SocketAddr, SocketAddr, Vec<u8>)>>,
    /// Status messages that the source sent.
    pub(super) statuses: u64,
    /// Hosts that change what they say.
    pub(super) lies: Lies<SocketAddr>,
}

impl Grove {
    pub(super) fn new(seed: u64, offer: Offer) -> Grove {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let source = SourceNode::new(seed, 0, offer, dir.path().join("in").join("content"));
        let mut ways = BTreeMap::new();
        ways.insert(Who::Source, Ways { down: Pipe::new(Link::millis(0)), near: Pipe::new(Link::millis(1)) });
        Grove {
            now: Time::ZERO,
            source,
            agents: Vec::new(),
            receivers: Vec::new(),
            ways,
            calendar: BinaryHeap::new(),
            events: Vec::new(),
            order: 0,
            seed,
            dir,
            late: Vec::new(),
            heard: BTreeMap::new(),
            recorded: None,
            statuses: 0,
            lies: Lies::default(),
        }
    }

    /// An agent that hears the source by this link and takes so many children; perhaps under another agent.
    pub(super) fn agent(&mut self, parents: &[SocketAddr], most: usize, down: Link) -> usize {
        let at = self.agents.len();
        self.agents.push(AgentNode {
            shared: Shared::new(RelayHandle::default(), 0, 0, None),
            above: None,
            children: Vec::new(),
            address: SocketAddr::from(([10, 2, 0, 1 + at as u8], 5778)),
            events: Vec::new(),
            parents: parents.to_vec(),
            most,
            key: self.source.offer.key.clone(),
            rng: Rng::new(self.seed, 1 << 36 | at as u64),
            path_rng: Rng::new(self.seed, 1 << 35 | at as u64),
            scheduled: Time::NEVER,
            name: format!("agent{at}"),
        });
        let ways = Ways { down: Pipe::new(down), near: Pipe::new(Link::millis(1)) };
        self.ways.insert(Who::Agent(at), ways);
        at
    }

    /// So many receivers that hear the source by such links, with these parents.
    pub(super) fn receivers(
        &mut self,
        parents: &[SocketAddr],
        count: usize,
        down: Link,
    ) -> std::ops::Range<usize> {
        let first = self.receivers.len();
        for at in first..first + count {
            let dir = self.dir.path().join(format!("out{at}"));
            let mut node = ReceiverNode::new(self.seed, at, 0, dir, self.source.offer.key.clone());
            node.parents = parents.to_vec();
            self.receivers.push(node);
            let ways = Ways { down: Pipe::new(down), near: Pipe::new(Link::millis(1)) };
            self.ways.insert(Who::Receiver(at), ways);
        }
        first..first + count
    }

    /// What this host gets by unicast, and says, goes by such a link.
    pub(super) fn near(&mut self, who: Who, link: Link) {
        self.ways.get_mut(&who).expect("it is there").near.set_link(link);
    }

    pub(super) fn start(&mut self) {
        for at in 0..self.agents.len() {
            self.start_one(Who::Agent(at), Default::default());
        }
        for at in 0..self.receivers.len() {
            self.start_one(Who::Receiver(at), Default::default());
        }
        self.source.start(self.now);
        self.book(self.now, What::Wake(Who::Source));
    }

    /// Start this host, although it is to be late.
    pub(super) fn start_late(&mut self, who: Who) {
        self.start_one(who, true);
    }

    fn start_one(&mut self, who: Who, although_late: bool) {
        if self.late.contains(&who) && !although_late {
            return;
        }
        match who {
            Who::Agent(at) => self.agents[at].start(self.now),
            Who::Receiver(at) => self.receivers[at].start(self.now),
            Who::Source => {}
        }
        self.book(self.now, What::Wake(who));
    }

    /// The agent's process dies.
    pub(super) fn kill(&mut self, agent: usize) {
        let node = &mut self.agents[agent];
        node.above = None;
        node.children.clear();
    }

    pub(super) fn run_to_end(&mut self, limit: Span) {
        self.run_until(limit, |grove| {
            grove.source.session.is_none() && grove.receivers.iter().all(|node| node.session.is_none())
        });
    }

    pub(super) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while let Some(Reverse((at, _, event))) = self.calendar.pop() {
            if at > end {
                self.calendar.push(Reverse((at, 0, event)));
                break;
            }
            self.step(at, event);
        }
        self.now = end;
    }

    pub(super) fn run_until(&mut self, limit: Span, mut done: impl FnMut(&Grove) -> bool) {
        let end = self.now + limit;
        while !done(self) {
            let next = self.calendar.pop().map(|Reverse(next)| next).filter(|(at, ..)| *at <= end);
            let Some((at, _, event)) = next else { panic!("not so after {limit}: {}", self.describe()) };
            self.step(at, event);
        }
    }

    fn step(&mut self, at: Time, event: usize) {
        self.now = self.now.max(at);
        match self.events[event].take() {
            None => {}
            Some(What::Wake(who)) if is_later(self.scheduled(who), self.now) => {}
            Some(What::Wake(who)) => {
                self.set_scheduled(who, Time::NEVER);
                self.drive(who);
            }
            Some(What::Arrive { at, from, bytes, by_group }) => self.arrive(at, from, bytes, by_group),
        }
    }

    fn arrive(&mut self, who: Who, from: SocketAddr, bytes: Vec<u8>, by_group: bool) {
        let now = self.now;
        let Some(mut bytes) = self.lies.told(&from, bytes) else { return };
        let mut out = Vec::new();
        match who {
            Who::Source => {
                *self.heard.entry(from).or_default() += 1;
                self.source.on_datagram(&mut bytes, from, now);
            }
            Who::Receiver(at) => {
                if !by_group || self.receivers[at].hears_group() {
                    self.receivers[at].on_datagram(&mut bytes, from, now);
                }
            }
            Who::Agent(at) if by_group => {
                let hears = self.agents[at].hears_group();
                if let Some(above) = self.agents[at].above.as_mut().filter(|_| hears) {
                    let datagram = Datagram { bytes: &mut bytes, from, ecn: Ecn::NotEct, arrived: now };
                    above.handle_datagram(datagram, now);
                }
            }
            Who::Agent(at) => {
                if let Some(recorded) = &mut self.recorded {
                    recorded.push((from, self.agents[at].address, bytes.clone()));
                }
                self.agents[at].on_datagram(&mut bytes, from, now, &mut out);
            }
        }
        if let Who::Agent(at) = who {
            let address = self.agents[at].address;
            out.into_iter().for_each(|(bytes, to)| self.send(who, address, to, bytes));
        }
        self.drive(who);
    }

    /// Somebody sends this in a host's name.
    pub(super) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        if let Some(at) = self.at(to) {
            self.book(self.now, What::Arrive { at, from, bytes, by_group: false });
        }
    }

    fn at(&self, address: SocketAddr) -> Option<Who> {
        if address == self.source.address {
            return Some(Who::Source);
        }
        let agent = self.agents.iter().position(|node| node.address == address).map(Who::Agent);
        agent.or_else(|| self.receivers.iter().position(|node| node.address == address).map(Who::Receiver))
    }

    fn drive(&mut self, who: Who) {
        let (now, mut sent) = (self.now, Vec::new());
        match who {
            Who::Source => {
                let mut out = Vec::new();
                self.source.drive(now, |bytes, _| out.push(bytes.to_vec()));
                let from = self.source.address;
                out.iter().for_each(|bytes| self.multicast(from, bytes));
            }
            Who::Receiver(at) => {
                self.receivers[at].drive(now, |bytes, to| sent.push((bytes.to_vec(), to)));
                let from = self.receivers[at].address;
                sent.into_iter().for_each(|(bytes, to)| self.send(who, from, to, bytes));
            }
            Who::Agent(at) => {
                self.agents[at].drive(now, &mut sent);
                let from = self.agents[at].address;
                sent.into_iter().for_each(|(bytes, to)| self.send(who, from, to, bytes));
            }
        }
        self.reschedule(who);
    }

    fn multicast(&mut self, from: SocketAddr, bytes: &[u8]) {
        let now = self.now;
        self.statuses += u64::from(peek(bytes).is_ok_and(|header| header.kind == Kind::Status));
        let hearing: Vec<Who> = self.ways.keys().copied().filter(|who| self.hears(*who)).collect();
        for who in hearing {
            let ways = self.ways.get_mut(&who).expect("it was there");
            let link = *ways.down.link();
            let Some(at) = ways.down.pass((bytes.len() + OVERHEAD) as u64, now) else { continue };
            let mut copy = bytes.to_vec();
            if let [Some(later), ..] = link.damage(&mut copy, self.path_rng(who)) {
                self.book(at + later, What::Arrive { at: who, from, bytes: copy, by_group: true });
            }
        }
    }

    fn hears(&self, who: Who) -> bool {
        match who {
            Who::Source => false,
            Who::Agent(at) => self.agents[at].hears_group(),
            Who::Receiver(at) => self.receivers[at].hears_group(),
        }
    }

    fn path_rng(&mut self, who: Who) -> &mut Rng {
        match who {
            Who::Receiver(at) => &mut self.receivers[at].path_rng,
            Who::Agent(at) => &mut self.agents[at].path_rng,
            Who::Source => unreachable!("nothing is sent to the source by a link of its own"),
        }
    }

    /// A datagram from one host to another, by the near way of whichever is farther from the source.
    fn send(&mut self, who: Who, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        let Some(to) = self.at(to) else { return };
        let farther = who.max(to);
        let ways = self.ways.get_mut(&farther).expect("it is there");
        let link = *ways.near.link();
        let Some(at) = ways.near.pass((bytes.len() + OVERHEAD) as u64, self.now) else { return };
        let mut bytes = bytes;
        if let [Some(later), ..] = link.damage(&mut bytes, self.path_rng(farther)) {
            self.book(at + later, What::Arrive { at: to, from, bytes, by_group: false });
        }
    }

    fn reschedule(&mut self, who: Who) {
        let wake = match who {
            Who::Source => self.source.wake_at(self.now),
            Who::Agent(at) => self.agents[at].wake_at(self.now),
            Who::Receiver(at) => self.receivers[at].wake_at(self.now),
        };
        if wake < self.scheduled(who) {
            self.set_scheduled(who, wake);
            self.book(wake.max(self.now + Span::from_nanos(1)), What::Wake(who));
        }
    }

    fn scheduled(&self, who: Who) -> Time {
        match who {
            Who::Source => self.source.scheduled,
            Who::Agent(agent) => self.agents[agent].scheduled,
            Who::Receiver(receiver) => self.receivers[receiver].scheduled,
        }
    }

    fn set_scheduled(&mut self, who: Who, at: Time) {
        match who {
            Who::Source => self.source.scheduled = at,
            Who::Agent(agent) => self.agents[agent].scheduled = at,
            Who::Receiver(receiver) => self.receivers[receiver].scheduled = at,
        }
    }

    fn book(&mut self, at: Time, what: What) {
        if !at.is_never() {
            self.order += 1;
            self.events.push(Some(what));
            self.calendar.push(Reverse((at.max(self.now), self.order, self.events.len() - 1)));
        }
    }

    fn describe(&self) -> String {
        let waiting = self.receivers.iter().filter(|node| node.session.is_some());
        let waiting: Vec<String> = waiting
            .map(|node| format!("{} {:?}", node.host, node.events.iter().rev().take(2).collect::<Vec<_>>()))
            .collect();
        let agents: Vec<String> = self.agents.iter().map(|node| format!("{:?}", node.below())).collect();
        let source: Vec<_> = self.source.events.iter().rev().take(2).collect();
        format!("at {:?} these run: {waiting:?}; agents {agents:?}; source {source:?}", self.now)
    }

    /// These receivers have everything, and the source knows of so many.
    pub(super) fn assert_all_verified(&self, receivers: std::ops::Range<usize>) {
        for receiver in receivers {
            let node = &self.receivers[receiver];
            assert!(node.report().ok);
            assert!(node.has(&self.source), "{} has something else", node.host);
        }
    }

    /// Datagrams that the source heard of these receivers themselves.
    pub(super) fn heard_of(&self, receivers: std::ops::Range<usize>) -> u64 {
        receivers.map(|at| self.heard.get(&self.receivers[at].address).copied().unwrap_or(0)).sum()
    }
}
