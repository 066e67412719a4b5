//! Sources and receivers on the virtual network.

use super::liars::Lie;
use super::node::{Offer, ReceiverNode, SourceNode, group_of, layer_of};
use super::relay::{Out, RelayCounts, RelayHost};
use super::trace::Trace;
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_simnet::{Copies, Happens, Hosts, Link, Network, Pipe, Site, Ties};
use faircast_wire::GroupKey;
use faircast_wire::encode::{IPV4_HEADERS, IPV6_HEADERS};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use tempfile::TempDir;

/// IPv4 and UDP headers.
pub(super) const OVERHEAD: usize = IPV4_HEADERS;

/// A host. Simultaneous events happen in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Receiver(usize),
    Source(usize),
    /// The relay in front of a group.
    Router(usize),
}

/// Sources, receivers, and the links between them, in virtual time.
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
    pub(super) trace: Trace,
    pub(super) trunk: Pipe,
    network: Network<Who, SocketAddr, Who, Spurious>,
    /// By group: its site, the only source whose datagrams come there, if not all do, and a host in front of the link.
    groups: Vec<(usize, Option<usize>, Option<RelayHost>)>,
    seed: u64,
    trunk_rng: Rng,
    spurious: Option<Span>,
    /// Receivers that lie.
    pub(super) lies: BTreeMap<usize, Lie>,
    dir: TempDir,
}

/// Everybody is called without a reason.
struct Spurious;

/// The hosts, as the network asks about them.
struct Ears<'a>(&'a mut [ReceiverNode]);

impl Hosts<Who, SocketAddr> for Ears<'_> {
    fn ears(&self, host: Who, group: SocketAddr) -> Vec<SocketAddr> {
        let hears = match host {
            Who::Receiver(receiver) => self.0[receiver].takes(layer_of(group)),
            Who::Router(_) => true,
            Who::Source(_) => false,
        };
        if hears { vec![group] } else { Vec::new() }
    }

    fn damage(&mut self, path: Who, link: &Link, bytes: &mut [u8]) -> Copies {
        match path {
            Who::Receiver(receiver) => link.damage(bytes, &mut self.0[receiver].path_rng),
            _ => [Some(Span::ZERO), None, None],
        }
    }
}

impl Net {
    pub(super) fn new(seed: u64) -> Net {
        Net {
            now: Time::ZERO,
            sources: Vec::new(),
            receivers: Vec::new(),
            trace: Trace::default(),
            trunk: Pipe::new(Link::default()),
            network: Network::new(OVERHEAD as u64, Ties::Hosts),
            groups: Vec::new(),
            seed,
            trunk_rng: Rng::new(seed, 1 << 40),
            spurious: None,
            lies: BTreeMap::new(),
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// What all sources share.
    pub(super) fn with_trunk(mut self, link: Link) -> Net {
        self.trunk = Pipe::new(link);
        self
    }

    /// Over IPv6. Set before there is anybody.
    pub(super) fn over_ipv6(mut self) -> Net {
        self.network.headers = IPV6_HEADERS as u64;
        self
    }

    fn headers(&self) -> usize {
        self.network.headers as usize
    }

    /// Wake everybody up every so often, for nothing.
    pub(super) fn with_spurious_wakes(mut self, every: Span) -> Net {
        self.spurious = Some(every);
        self.network.book(Time::ZERO + every, Spurious);
        self
    }

    /// Keep a digest of all datagrams.
    pub(super) fn traced(mut self) -> Net {
        self.trace.digest = Some(blake3::Hasher::new());
        self
    }

    /// `count` receivers that start now, behind this link and back over that one.
    pub(super) fn receivers(&mut self, count: usize, down: Link, up: Link) -> Range<usize> {
        self.receivers_with(count, down, up, None, None)
    }

    pub(super) fn receivers_with(
        &mut self,
        count: usize,
        down: Link,
        up: Link,
        hears: Option<usize>,
        key: Option<GroupKey>,
    ) -> Range<usize> {
        let members = self.receivers.len()..self.receivers.len() + count;
        let group = self.groups.len();
        let heads = hears.map_or(0..self.sources.len(), |only| only..only + 1);
        let mut site = Site::new(heads.map(Who::Source).collect(), down, up);
        site.members = members.clone().map(Who::Receiver).collect();
        self.groups.push((self.network.site(site), hears, None));
        for index in members.clone() {
            let dir = self.dir.path().join(format!("out{index}"));
            let mut node = ReceiverNode::new(self.seed, index, group, dir, key.clone());
            node.headers = self.headers();
            self.receivers.push(node);
            self.start_receiver(index);
        }
        members
    }

    /// The host of a source has another address from now on.
    pub(super) fn move_source(&mut self, source: usize, address: SocketAddr) {
        self.sources[source].move_to(address, self.now);
        self.drive_source(source);
    }

    /// A relay in front of this group, which hears the sources that there will be.
    pub(super) fn relay(&mut self, group: usize, relay: RelayHost) {
        let mut site =
            Site::new((0..self.sources.len()).map(Who::Source).collect(), Link::default(), Link::default());
        site.members.push(Who::Router(group));
        self.network.site(site);
        let (behind, _, place) = &mut self.groups[group];
        self.network.sites[*behind].heads = vec![Who::Router(group)];
        *place = Some(relay);
    }

    /// What the relay of this group has done.
    pub(super) fn relay_counts(&self, group: usize) -> RelayCounts {
        self.groups[group].2.as_ref().expect("there is one").counts
    }

    /// A source that starts now.
    pub(super) fn source(&mut self, offer: Offer) -> usize {
        self.source_at(SourceNode::address_of(self.sources.len()), offer)
    }

    /// A source that starts now on the host with this address, at a port of its own.
    pub(super) fn source_at(&mut self, mut address: SocketAddr, offer: Offer) -> usize {
        let index = self.sources.len();
        while self.sources.iter().any(|other| other.address == address) {
            address.set_port(address.port() + 1);
        }
        let content = self.dir.path().join(format!("in{index}")).join("content");
        let mut node = SourceNode::new(self.seed, index, offer, content);
        (node.headers, node.address) = (self.headers(), address);
        self.sources.push(node);
        for (site, hears, relay) in &self.groups {
            if hears.is_none() && relay.is_none() {
                self.network.sites[*site].heads.push(Who::Source(index));
            }
        }
        self.start_source(index);
        index
    }

    /// The links of a receiver.
    pub(super) fn group_of(&mut self, receiver: usize) -> &mut Site<Who, Who> {
        &mut self.network.sites[self.groups[self.receivers[receiver].group].0]
    }

    /// The receiver's process dies.
    pub(super) fn kill_receiver(&mut self, receiver: usize) {
        self.receivers[receiver].session = None;
    }

    /// The receiver's process is stopped for so long: datagrams wait in its socket's buffer, as far as they fit.
    pub(super) fn pause_receiver(&mut self, receiver: usize, span: Span) {
        self.receivers[receiver].socket.stop_until(self.now + span);
        self.reschedule(Who::Receiver(receiver));
    }

    /// The receiver's process takes in so much from now on, and no more.
    pub(super) fn limit_receiver(&mut self, receiver: usize, rate: Rate) {
        self.receivers[receiver].socket.takes(rate);
    }

    /// The receiver is started (again), in its directory, under a new id.
    pub(super) fn start_receiver(&mut self, receiver: usize) {
        self.receivers[receiver].start(self.now);
        self.reschedule(Who::Receiver(receiver));
    }

    /// The live stream of this source goes on with a block, all of this byte.
    pub(super) fn feed(&mut self, source: usize, byte: u8) -> Vec<u8> {
        let block = self.sources[source].feed(byte);
        self.drive_source(source);
        block
    }

    /// The live stream of this source is over.
    pub(super) fn end_feed(&mut self, source: usize) {
        self.sources[source].end_feed();
        self.drive_source(source);
    }

    pub(super) fn kill_source(&mut self, source: usize) {
        self.sources[source].session = None;
    }

    /// The source is started (again) with its content, as a new session.
    pub(super) fn start_source(&mut self, source: usize) {
        self.sources[source].start(self.now);
        self.reschedule(Who::Source(source));
    }

    /// A datagram from nowhere that reaches this source now.
    pub(super) fn inject_up(&mut self, source: usize, from: SocketAddr, bytes: Vec<u8>) {
        let target = (Who::Source(source), self.sources[source].address);
        self.network.put(self.now, target, from, bytes);
    }

    /// A datagram from nowhere that reaches this receiver now.
    pub(super) fn inject_down(&mut self, receiver: usize, from: SocketAddr, bytes: Vec<u8>) {
        let target = (Who::Receiver(receiver), self.receivers[receiver].address);
        self.network.put(self.now, target, from, bytes);
    }

    /// Until every session has ended; panics when that takes longer.
    pub(super) fn run_to_end(&mut self, limit: Span) {
        self.run_until(limit, Net::is_over);
    }

    pub(super) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        (self.now, self.network.now) = (end, end);
    }

    /// Until `condition` holds; panics when that takes longer.
    pub(super) fn run_until(&mut self, limit: Span, mut condition: impl FnMut(&Net) -> bool) {
        let end = self.now + limit;
        while !condition(self) {
            assert!(self.step(end), "not so after {limit}: {}", self.describe());
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.sources.iter().all(|node| node.session.is_none())
            && self.receivers.iter().all(|node| node.session.is_none())
    }

    /// Do what comes next, when that is not after `end`.
    fn step(&mut self, end: Time) -> bool {
        let Some(next) = self.network.next(end) else { return false };
        self.now = self.network.now;
        let now = self.now;
        match next {
            Happens::Arrives { host: Who::Receiver(receiver), from, mut bytes, .. } => {
                self.trace.on_down(now, receiver, &bytes);
                self.receivers[receiver].on_datagram(&mut bytes, from, now);
                self.drive_receiver(receiver);
            }
            Happens::Arrives { host: Who::Source(source), from, bytes, .. } => {
                self.arrive_at_source(source, from, bytes);
            }
            Happens::Arrives { host: Who::Router(group), socket, from, bytes } => {
                let relay = self.groups[group].2.as_mut().expect("there is one");
                let out = match socket.ip().is_multicast() {
                    true => relay.on_datagram(&bytes, now),
                    false => relay.on_answer(&bytes, now),
                };
                self.leave_relay(group, from, out);
            }
            Happens::Wakes(Who::Source(source)) => self.drive_source(source),
            Happens::Wakes(Who::Receiver(receiver)) => {
                self.drive_receiver(receiver);
                let wake = self.receivers[receiver].wake_at(now);
                assert!(wake > now, "receiver {receiver} does not let time pass at {now:?}");
            }
            Happens::Wakes(Who::Router(group)) => {
                let relay = self.groups[group].2.as_mut().expect("there is one");
                let out = if relay.wake_at() <= now { relay.on_time(now) } else { Vec::new() };
                self.leave_relay(group, self.sources[0].address, out);
            }
            Happens::Other(Spurious) => {
                (0..self.sources.len()).for_each(|source| self.drive_source(source));
                (0..self.receivers.len()).for_each(|receiver| self.drive_receiver(receiver));
                if let Some(every) = self.spurious {
                    self.network.book(now + every, Spurious);
                }
            }
        }
        true
    }

    fn arrive_at_source(&mut self, source: usize, from: SocketAddr, bytes: Vec<u8>) {
        let liar = self.lies.iter().find(|(receiver, _)| self.receivers[**receiver].address == from);
        let Some(mut bytes) = liar.map_or(Some(bytes.clone()), |(_, lie)| lie.told(bytes)) else { return };
        self.trace.on_up(self.now, source, &bytes);
        let now = self.now;
        self.sources[source].on_datagram(&mut bytes, from, now);
        self.drive_source(source);
    }

    /// A relay sends these: down its group's link, or up to the only source, where nothing takes time. `from` is whose answer it was.
    fn leave_relay(&mut self, group: usize, from: SocketAddr, out: Vec<Out>) {
        let (now, source) = (self.now, self.sources[0].address);
        for out in out {
            match out {
                Out::Up(bytes) => self.arrive_at_source(0, from, bytes),
                Out::Own(bytes) => {
                    let relay = SocketAddr::from(([10, 9, 0, group as u8], 5778));
                    self.arrive_at_source(0, relay, bytes);
                }
                Out::Down(bytes) => {
                    let (hosts, to) = (&mut Ears(&mut self.receivers), group_of(Layer(0)));
                    self.network.multicast(hosts, (now, &Who::Router(group)), (source, to, true), &bytes);
                }
            }
        }
        self.reschedule(Who::Router(group));
    }

    fn drive_source(&mut self, source: usize) {
        let now = self.now;
        let mut sent = Vec::new();
        self.sources[source].drive(now, |bytes, layer| sent.push((bytes.to_vec(), layer)));
        let from = self.sources[source].address;
        for (bytes, layer) in sent {
            let size = (bytes.len() + self.headers()) as u64;
            self.trace.on_sent(now, source, &bytes, size);
            let Some(at) = self.trunk.pass(size, now) else { continue };
            if self.trunk.link().damage(&mut [], &mut self.trunk_rng) == [None; 3] {
                continue;
            }
            let (hosts, to) = (&mut Ears(&mut self.receivers), group_of(layer));
            let head = (at, &Who::Source(source));
            self.network.multicast(hosts, head, (from, to, layer == Layer(0)), &bytes);
        }
        self.reschedule(Who::Source(source));
    }

    fn drive_receiver(&mut self, receiver: usize) {
        let now = self.now;
        let mut sent = Vec::new();
        self.receivers[receiver].drive(now, |bytes, to| sent.push((bytes.to_vec(), to)));
        let (from, group) = (self.receivers[receiver].address, self.receivers[receiver].group);
        for (bytes, to) in sent {
            let Some(source) = self.sources.iter().position(|source| source.address == to) else { continue };
            let relay = self.groups[group].2.as_ref().map(|_| Who::Router(group));
            let way = (Who::Receiver(receiver), (relay.unwrap_or(Who::Source(source)), to));
            let hosts = &mut Ears(&mut self.receivers);
            self.network.unicast(hosts, way, from, &bytes, |head, host| *head == host);
        }
        self.reschedule(Who::Receiver(receiver));
    }

    /// The host is called when it wants to be.
    fn reschedule(&mut self, who: Who) {
        let now = self.now;
        let wake = match who {
            Who::Source(source) => self.sources[source].wake_at(now),
            Who::Receiver(receiver) => self.receivers[receiver].wake_at(now),
            Who::Router(group) => {
                let relay = self.groups[group].2.as_ref().map_or(Time::NEVER, RelayHost::wake_at);
                if relay.is_never() { relay } else { relay.max(now + Span::from_nanos(1)) }
            }
        };
        self.network.wake(who, wake);
    }

    fn describe(&self) -> String {
        let sources = self
            .sources
            .iter()
            .map(|node| format!("{:?}", node.events.iter().rev().take(2).collect::<Vec<_>>()));
        let waiting = self.receivers.iter().filter(|node| node.session.is_some()).count();
        format!("{waiting} receivers run; sources: {}", sources.collect::<Vec<_>>().join("; "))
    }
}
