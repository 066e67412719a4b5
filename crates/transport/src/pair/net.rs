//! Sources and receivers on the virtual network.

use super::forged_reports::Lies;
use super::node::{Offer, ReceiverNode, SourceNode, group_of, layer_of};
use super::relay::{Out, RelayCounts, RelayHost};
use super::trace::Trace;
use super::tree::RelayNode;
use super::tree_net::AgentNode;
use super::withholding::Hostile;
use crate::event::Event;
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_simnet::{Copies, Happens, Hosts, Link, Network, Pipe, Site, Ties};
use faircast_wire::encode::{IPV4_HEADERS, IPV6_HEADERS};
use faircast_wire::{GroupKey, Kind, peek};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use tempfile::TempDir;

/// Size of IPv4 and UDP headers, bytes.
pub(super) const OVERHEAD: usize = IPV4_HEADERS;

/// A host. The order of the variants decides the order of simultaneous events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Receiver(usize),
    Source(usize),
    Relay(usize),
    Agent(usize),
    /// The relay in front of a group.
    Router(usize),
}

/// A sender of multicast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Source(usize),
    Branch { relay: usize, branch: usize },
    Router(usize),
}

impl Head {
    fn is_of(self, who: Who) -> bool {
        match self {
            Head::Source(source) => who == Who::Source(source),
            Head::Branch { relay, .. } => who == Who::Relay(relay),
            Head::Router(group) => who == Who::Router(group),
        }
    }
}

/// Sources, receivers and links between them, in virtual time.
///
/// ```text
///   source --.                    .-- down --> receivers of a group (each with losses of its own)
///   source --+--- trunk (shared) -+
///            ^                    '-- down --> receivers of another group
///            '------ up (of each group) -----'
/// ```
pub(super) struct Net {
    pub(super) now: Time,
    pub(super) sources: Vec<SourceNode>,
    pub(super) receivers: Vec<ReceiverNode>,
    pub(super) relays: Vec<RelayNode>,
    pub(super) agents: Vec<AgentNode>,
    pub(super) trace: Trace,
    pub(super) trunk: Pipe,
    pub(super) network: Network<Who, SocketAddr, Head, Spurious>,
    /// Groups. Values: the site, the only source that the group receives (`None` for all sources), and the relay in front of the
    /// group's link, if any.
    groups: Vec<(usize, Option<usize>, Option<RelayHost>)>,
    pub(super) seed: u64,
    trunk_rng: Rng,
    spurious: Option<Span>,
    /// Hosts that `start` does not start.
    pub(super) late: Vec<Who>,
    /// Malicious hosts.
    pub(super) lies: Lies,
    /// A relay or active router that changes the datagrams it sends downstream.
    pub(super) hostile: Option<(usize, Hostile)>,
    /// Number of datagrams that reached a source, by sender.
    pub(super) received: BTreeMap<SocketAddr, u64>,
    /// Datagrams from children to agents, if they are recorded: sender, agent, bytes.
    pub(super) recorded: Option<Vec<(SocketAddr, SocketAddr, Vec<u8>)>>,
    /// Number of status messages sent by sources.
    pub(super) statuses: u64,
    pub(super) dir: TempDir,
}

/// An event that wakes all hosts although they have no work.
pub(super) struct Spurious;

/// The hosts that may receive datagrams, in the form in which the network queries them.
struct Ears<'a> {
    receivers: &'a mut [ReceiverNode],
    relays: &'a mut [RelayNode],
    agents: &'a mut [AgentNode],
}

impl Hosts<Who, SocketAddr> for Ears<'_> {
    fn ears(&self, host: Who, group: SocketAddr, into: &mut Vec<(Who, SocketAddr)>) {
        let receives = match host {
            Who::Receiver(receiver) => {
                let node = &self.receivers[receiver];
                node.takes(layer_of(group)) && node.receives_group()
            }
            Who::Relay(relay) => self.relays[relay].takes(layer_of(group)),
            Who::Agent(agent) => self.agents[agent].receives_group(),
            Who::Router(_) => true,
            Who::Source(_) => false,
        };
        if receives {
            into.push((host, group));
        }
    }

    fn damage(&mut self, path: Who, link: &Link, bytes: &mut [u8]) -> Copies {
        let rng = match path {
            Who::Receiver(receiver) => &mut self.receivers[receiver].path_rng,
            Who::Relay(relay) => &mut self.relays[relay].path_rng,
            Who::Agent(agent) => &mut self.agents[agent].path_rng,
            Who::Source(_) | Who::Router(_) => return [Some(Span::ZERO), None, None],
        };
        link.damage(bytes, rng)
    }
}

impl Net {
    pub(super) fn new(seed: u64) -> Net {
        Net {
            now: Time::ZERO,
            sources: Vec::new(),
            receivers: Vec::new(),
            relays: Vec::new(),
            agents: Vec::new(),
            trace: Trace::default(),
            trunk: Pipe::new(Link::default()),
            network: Network::new(OVERHEAD as u64, Ties::Hosts),
            groups: Vec::new(),
            seed,
            trunk_rng: Rng::new(seed, 1 << 40),
            spurious: None,
            late: Vec::new(),
            lies: Lies::default(),
            hostile: None,
            received: BTreeMap::new(),
            recorded: None,
            statuses: 0,
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Returns a network with one source, which starts together with all other hosts in [`Net::start`].
    pub(super) fn of(seed: u64, offer: Offer) -> Net {
        let mut net = Net::new(seed);
        net.place_source(SourceNode::address_of(0), offer);
        net
    }

    /// Starts all relays, agents and receivers except the late ones, and then the sources.
    pub(super) fn start(&mut self) {
        let relays = (0..self.relays.len()).map(Who::Relay);
        let agents = (0..self.agents.len()).map(Who::Agent);
        let others = relays.chain(agents).chain((0..self.receivers.len()).map(Who::Receiver));
        let others: Vec<Who> = others.filter(|who| !self.late.contains(who)).collect();
        others
            .into_iter()
            .chain((0..self.sources.len()).map(Who::Source))
            .for_each(|who| self.start_host(who));
    }

    /// Starts a host, or restarts it.
    pub(super) fn start_host(&mut self, who: Who) {
        let now = self.now;
        match who {
            Who::Source(source) => self.sources[source].start(now),
            Who::Receiver(receiver) => self.receivers[receiver].start(now),
            Who::Relay(relay) => self.relays[relay].start(now),
            Who::Agent(agent) => self.agents[agent].start(now),
            Who::Router(_) => {}
        }
        self.reschedule(who);
    }

    /// Sets the trunk, which all sources share.
    pub(super) fn with_trunk(mut self, link: Link) -> Net {
        self.trunk = Pipe::new(link);
        self
    }

    /// Uses IPv6. Must be called before hosts are added.
    pub(super) fn over_ipv6(mut self) -> Net {
        self.network.headers = IPV6_HEADERS as u64;
        self
    }

    fn headers(&self) -> usize {
        self.network.headers as usize
    }

    /// Wakes all hosts at this interval, although they have no work.
    pub(super) fn with_spurious_wakes(mut self, every: Span) -> Net {
        self.spurious = Some(every);
        self.network.book(Time::ZERO + every, Spurious);
        self
    }

    /// Computes a digest of all datagrams.
    pub(super) fn traced(mut self) -> Net {
        self.trace.digest = Some(blake3::Hasher::new());
        self
    }

    /// Adds `count` receivers that start now. They share the link `down` from the sources; the link `up` leads back.
    pub(super) fn receivers(&mut self, count: usize, down: Link, up: Link) -> Range<usize> {
        self.receivers_with(count, down, up, None, None)
    }

    pub(super) fn receivers_with(
        &mut self,
        count: usize,
        down: Link,
        up: Link,
        receives: Option<usize>,
        key: Option<GroupKey>,
    ) -> Range<usize> {
        let members = self.receivers.len()..self.receivers.len() + count;
        let group = self.groups.len();
        let heads = receives.map_or(0..self.sources.len(), |only| only..only + 1);
        let mut site = Site::new(heads.map(Head::Source).collect(), down, up);
        site.members = members.clone().map(Who::Receiver).collect();
        self.groups.push((self.network.site(site), receives, None));
        for index in members.clone() {
            let dir = self.dir.path().join(format!("out{index}"));
            let mut node = ReceiverNode::new(self.seed, index, group, dir, key.clone());
            node.headers = self.headers();
            self.receivers.push(node);
            self.start_receiver(index);
        }
        members
    }

    /// Changes the address of a source's host.
    pub(super) fn move_source(&mut self, source: usize, address: SocketAddr) {
        self.sources[source].move_to(address, self.now);
        self.drive(Who::Source(source));
    }

    /// Adds a relay in front of this group. All sources that are added later send to the relay.
    pub(super) fn put_in_front(&mut self, group: usize, relay: RelayHost) {
        let (behind, _, place) = &mut self.groups[group];
        let heads = std::mem::replace(&mut self.network.sites[*behind].heads, vec![Head::Router(group)]);
        *place = Some(relay);
        let mut site = Site::new(heads, Link::default(), Link::default());
        site.members.push(Who::Router(group));
        self.network.site(site);
    }

    /// Returns the counts of this group's relay.
    pub(super) fn relay_counts(&self, group: usize) -> RelayCounts {
        self.groups[group].2.as_ref().expect("there is one").counts
    }

    /// Adds a source that starts now.
    pub(super) fn source(&mut self, offer: Offer) -> usize {
        self.source_at(SourceNode::address_of(self.sources.len()), offer)
    }

    /// Adds a source that starts now on the host with this address, at its own port.
    pub(super) fn source_at(&mut self, address: SocketAddr, offer: Offer) -> usize {
        let source = self.place_source(address, offer);
        self.start_source(source);
        source
    }

    fn place_source(&mut self, mut address: SocketAddr, offer: Offer) -> usize {
        let index = self.sources.len();
        while self.sources.iter().any(|other| other.address == address) {
            address.set_port(address.port() + 1);
        }
        let content = self.dir.path().join(format!("in{index}")).join("content");
        let mut node = SourceNode::new(self.seed, index, offer, content);
        (node.headers, node.address) = (self.headers(), address);
        self.sources.push(node);
        for (site, receives, relay) in &self.groups {
            if receives.is_none() && relay.is_none() {
                self.network.sites[*site].heads.push(Head::Source(index));
            }
        }
        index
    }

    /// Returns the links of a receiver.
    pub(super) fn group_of(&mut self, receiver: usize) -> &mut Site<Who, Head> {
        &mut self.network.sites[self.groups[self.receivers[receiver].group].0]
    }

    /// Kills the receiver's process.
    pub(super) fn kill_receiver(&mut self, receiver: usize) {
        self.receivers[receiver].session = None;
    }

    /// Stops the receiver's process for this duration. Meanwhile datagrams are stored in the buffer of the receiver's socket,
    /// until the buffer is full.
    pub(super) fn pause_receiver(&mut self, receiver: usize, span: Span) {
        self.receivers[receiver].socket.stop_until(self.now + span);
        self.reschedule(Who::Receiver(receiver));
    }

    /// Limits the rate at which the receiver's process takes datagrams from its socket.
    pub(super) fn limit_receiver(&mut self, receiver: usize, rate: Rate) {
        self.receivers[receiver].socket.takes(rate);
    }

    /// Starts or restarts the receiver in its directory, with a new ID.
    pub(super) fn start_receiver(&mut self, receiver: usize) {
        self.start_host(Who::Receiver(receiver));
    }

    /// Adds a block to the live stream of this source, filled with the byte `byte`.
    pub(super) fn feed(&mut self, source: usize, byte: u8) -> Vec<u8> {
        let block = self.sources[source].feed(byte);
        self.drive(Who::Source(source));
        block
    }

    /// Ends the live stream of this source.
    pub(super) fn end_feed(&mut self, source: usize) {
        self.sources[source].end_feed();
        self.drive(Who::Source(source));
    }

    pub(super) fn kill_source(&mut self, source: usize) {
        self.sources[source].session = None;
    }

    /// Starts or restarts the source with its content, as a new session.
    pub(super) fn start_source(&mut self, source: usize) {
        self.start_host(Who::Source(source));
    }

    /// Delivers a forged datagram to this source now.
    pub(super) fn inject_up(&mut self, source: usize, from: SocketAddr, bytes: Vec<u8>) {
        let target = (Who::Source(source), self.sources[source].address);
        self.network.put(self.now, target, from, bytes);
    }

    /// Delivers a forged datagram to this receiver now.
    pub(super) fn inject_down(&mut self, receiver: usize, from: SocketAddr, bytes: Vec<u8>) {
        let target = (Who::Receiver(receiver), self.receivers[receiver].address);
        self.network.put(self.now, target, from, bytes);
    }

    /// Delivers a datagram from `from` to `to` now.
    pub(super) fn inject(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        if let Some(host) = self.at(to) {
            self.network.put(self.now, (host, to), from, bytes);
        }
    }

    /// Runs until every session has ended; panics after `limit`.
    pub(super) fn run_to_end(&mut self, limit: Span) {
        self.run_until(limit, Net::is_finished);
    }

    pub(super) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        (self.now, self.network.now) = (end, end);
    }

    /// Runs until `condition` holds; panics after `limit`.
    pub(super) fn run_until(&mut self, limit: Span, mut condition: impl FnMut(&Net) -> bool) {
        let end = self.now + limit;
        while !condition(self) {
            assert!(self.step(end), "not so after {limit}: {}", self.describe());
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.sources.iter().all(|node| node.session.is_none())
            && self.receivers.iter().all(|node| node.session.is_none())
            && self.relays.iter().all(RelayNode::is_finished)
    }

    /// Runs the next event, unless it is after `end`; returns whether an event was run.
    fn step(&mut self, end: Time) -> bool {
        let Some(next) = self.network.next(end) else { return false };
        self.now = self.network.now;
        let now = self.now;
        match next {
            Happens::Arrives { host, socket, from, bytes } => self.arrive(host, (from, socket), bytes),
            Happens::Wakes(who) => {
                self.drive(who);
                assert!(self.next_timeout(who) > now, "{who:?} does not let time pass at {now:?}");
            }
            Happens::Other(Spurious) => {
                (0..self.sources.len()).for_each(|source| self.drive(Who::Source(source)));
                (0..self.receivers.len()).for_each(|receiver| self.drive(Who::Receiver(receiver)));
                if let Some(every) = self.spurious {
                    self.network.book(now + every, Spurious);
                }
            }
        }
        true
    }

    fn arrive(&mut self, who: Who, (from, to): (SocketAddr, SocketAddr), mut bytes: Vec<u8>) {
        let now = self.now;
        match who {
            Who::Source(source) => {
                *self.received.entry(from).or_default() += 1;
                self.trace.on_up(now, source, &bytes);
                self.sources[source].on_datagram(&mut bytes, from, now);
            }
            Who::Receiver(receiver) => {
                self.trace.on_down(now, receiver, &bytes);
                self.receivers[receiver].on_datagram(&mut bytes, from, now);
            }
            Who::Relay(relay) => self.relays[relay].on_datagram(&mut bytes, (from, to), now),
            Who::Agent(agent) => {
                if !to.ip().is_multicast()
                    && let Some(recorded) = &mut self.recorded
                {
                    recorded.push((from, to, bytes.clone()));
                }
                for (bytes, to) in self.agents[agent].on_datagram(&mut bytes, (from, to), now) {
                    self.send(who, (self.agents[agent].address, to), bytes);
                }
            }
            Who::Router(group) => {
                let relay = self.groups[group].2.as_mut().expect("there is one");
                let out = match to.ip().is_multicast() {
                    true => relay.on_datagram(&bytes, now),
                    false => relay.on_answer(&bytes, now),
                };
                self.leave_relay(group, from, out);
            }
        }
        self.drive(who);
    }

    /// Sends packets of a relay in front of a group. Downstream packets take the group's link; upstream packets reach the only
    /// source without delay. `from` is the address of the child whose message the relay forwards.
    fn leave_relay(&mut self, group: usize, from: SocketAddr, out: Vec<Out>) {
        let (own, to) = (SocketAddr::from(([10, 9, 0, group as u8], 5778)), self.sources[0].address);
        for out in out {
            match out {
                Out::Up(bytes) => self.arrive(Who::Source(0), (from, to), bytes),
                Out::Own(bytes) => self.arrive(Who::Source(0), (own, to), bytes),
                Out::Down(bytes) => self.send(Who::Router(group), (to, group_of(Layer(0))), bytes),
            }
        }
    }

    /// Runs all pending work of a host.
    fn drive(&mut self, who: Who) {
        let (now, mut sent) = (self.now, Vec::new());
        match who {
            Who::Source(source) => {
                let node = &mut self.sources[source];
                let from = node.address;
                node.drive(now, |bytes, layer| sent.push(((from, group_of(layer)), bytes.to_vec())));
            }
            Who::Receiver(receiver) => {
                let node = &mut self.receivers[receiver];
                let from = node.address;
                node.drive(now, |bytes, to| sent.push(((from, to), bytes.to_vec())));
            }
            Who::Relay(relay) => self.relays[relay].drive(now, &mut sent),
            Who::Agent(agent) => self.agents[agent].drive(now, &mut sent),
            Who::Router(group) => {
                let relay = self.groups[group].2.as_mut().expect("there is one");
                if relay.next_timeout() <= now {
                    let out = relay.on_time(now);
                    self.leave_relay(group, self.sources[0].address, out);
                }
            }
        }
        sent.into_iter().for_each(|(way, bytes)| self.send(who, way, bytes));
        self.reschedule(who);
    }

    /// Sends a datagram of a host.
    fn send(&mut self, who: Who, (from, to): (SocketAddr, SocketAddr), bytes: Vec<u8>) {
        let Some(mut bytes) = self.lies.reported(who, bytes) else { return };
        let mut at = self.now;
        if to.ip().is_multicast() {
            let head = match who {
                Who::Source(source) => {
                    let size = bytes.len() as u64 + self.network.headers;
                    self.statuses += u64::from(peek(&bytes).is_ok_and(|header| header.kind == Kind::Status));
                    self.trace.on_sent(at, source, &bytes, size);
                    let Some(passed) = self.trunk.pass(size, at) else { return };
                    at = passed;
                    if self.trunk.link().damage(&mut [], &mut self.trunk_rng) == [None; 3] {
                        return;
                    }
                    Head::Source(source)
                }
                Who::Relay(relay) => {
                    if let Some((_, hostile)) = self.hostile.as_mut().filter(|(hostile, _)| *hostile == relay)
                    {
                        let Some(sent) = hostile.sends(&bytes) else { return };
                        bytes = sent;
                    }
                    Head::Branch { relay, branch: RelayNode::branch_at(from) }
                }
                Who::Router(group) => Head::Router(group),
                Who::Receiver(_) | Who::Agent(_) => panic!("{who:?} sends to a group"),
            };
            let Net { receivers, relays, agents, network, .. } = self;
            let hosts = &mut Ears { receivers, relays, agents };
            network.multicast(hosts, (at, &head), (from, to, layer_of(to) == Layer(0)), &bytes);
        } else if let Some(mut host) = self.at(to) {
            if let Who::Receiver(receiver) = who {
                let group = self.receivers[receiver].group;
                let is_in_front = self.groups.get(group).is_some_and(|(_, _, relay)| relay.is_some());
                host = if is_in_front { Who::Router(group) } else { host };
            }
            let Net { receivers, relays, agents, network, .. } = self;
            let hosts = &mut Ears { receivers, relays, agents };
            network.unicast(hosts, (who, (host, to)), from, &bytes, |head, host| head.is_of(host));
        }
    }

    /// Returns the host with this address.
    fn at(&self, address: SocketAddr) -> Option<Who> {
        let source = self.sources.iter().position(|node| node.address == address).map(Who::Source);
        let relay = || self.relays.iter().position(|node| node.has_branch_at(address)).map(Who::Relay);
        let agent = || self.agents.iter().position(|node| node.address == address).map(Who::Agent);
        let receiver = || self.receivers.iter().position(|node| node.address == address).map(Who::Receiver);
        source.or_else(relay).or_else(agent).or_else(receiver)
    }

    fn next_timeout(&self, who: Who) -> Time {
        let now = self.now;
        match who {
            Who::Source(source) => self.sources[source].next_timeout(now),
            Who::Receiver(receiver) => self.receivers[receiver].next_timeout(now),
            Who::Relay(relay) => self.relays[relay].next_timeout(now),
            Who::Agent(agent) => self.agents[agent].next_timeout(now).max(now + Span::from_nanos(1)),
            Who::Router(group) => {
                let relay = self.groups[group].2.as_ref().map_or(Time::NEVER, RelayHost::next_timeout);
                relay.max(now + Span::from_nanos(1))
            }
        }
    }

    /// Schedules the next wakeup of a host.
    fn reschedule(&mut self, who: Who) {
        self.network.wake(who, self.next_timeout(who));
    }

    fn describe(&self) -> String {
        let reported =
            |events: &[(Time, Event)]| format!("{:?}", events.iter().rev().take(2).collect::<Vec<_>>());
        let waiting = self.receivers.iter().filter(|node| node.session.is_some());
        let waiting: Vec<String> =
            waiting.map(|node| format!("{} {}", node.host, reported(&node.events))).collect();
        let sources: Vec<String> = self.sources.iter().map(|node| reported(&node.events)).collect();
        let relays: Vec<_> =
            self.relays.iter().map(|node| (node.is_finished(), node.shared.tally())).collect();
        let agents: Vec<_> = self.agents.iter().map(AgentNode::below).collect();
        format!(
            "{} receivers run: {waiting:?}; relays {relays:?}; agents {agents:?}; sources {sources:?}",
            waiting.len()
        )
    }
}
