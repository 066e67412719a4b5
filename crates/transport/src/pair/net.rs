//! The network: nodes, paths and the calendar.

use super::liars::Lie;
use super::link::{Copies, Link, Pipe};
use super::node::{Offer, ReceiverNode, SourceNode, is_later};
use super::relay::{Out, RelayCounts, RelayHost};
use super::trace::Trace;
use faircast_core::packet::Layer;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::GroupKey;
use faircast_wire::encode::{IPV4_HEADERS, IPV6_HEADERS};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use tempfile::TempDir;

/// IPv4 and UDP headers.
pub(super) const OVERHEAD: usize = IPV4_HEADERS;

/// Sources, receivers, and all that lies between them, in virtual time.
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
    groups: Vec<Group>,
    calendar: BinaryHeap<Reverse<Entry>>,
    order: u64,
    seed: u64,
    trunk_rng: Rng,
    spurious: Option<Span>,
    /// Receivers that do not say what is so.
    pub(super) lies: BTreeMap<usize, Lie>,
    /// Bytes of the IP and UDP headers.
    headers: usize,
    dir: TempDir,
}

/// Receivers behind one link.
pub(super) struct Group {
    pub(super) down: Pipe,
    pub(super) up: Pipe,
    members: Range<usize>,
    /// The only source whose datagrams come here, when not all do.
    hears: Option<usize>,
    /// Whether the link carries all layers, whoever has joined them.
    pub(super) floods: bool,
    /// A host in front of the link, which everything goes through in both directions.
    relay: Option<RelayHost>,
}

struct Entry {
    at: Time,
    /// Kind and node: ties are broken by what happens, not by who booked first.
    rank: (u8, usize),
    order: u64,
    what: What,
}

enum What {
    /// To all receivers of a group.
    Down {
        source: usize,
        group: usize,
        layer: Layer,
        bytes: Rc<[u8]>,
    },
    /// To one receiver, damaged or late.
    One {
        from: SocketAddr,
        receiver: usize,
        bytes: Vec<u8>,
    },
    /// To the source.
    Up {
        source: usize,
        from: SocketAddr,
        bytes: Vec<u8>,
    },
    /// To the relay of a group.
    AtRelay {
        source: usize,
        group: usize,
        bytes: Rc<[u8]>,
    },
    Source(usize),
    Receiver(usize),
    Relay {
        source: usize,
        group: usize,
    },
    Spurious,
}

impl Net {
    pub(super) fn new(seed: u64) -> Net {
        Net {
            now: Time::ZERO,
            sources: Vec::new(),
            receivers: Vec::new(),
            trace: Trace::default(),
            trunk: Pipe::new(Link::default()),
            groups: Vec::new(),
            calendar: BinaryHeap::new(),
            order: 0,
            seed,
            trunk_rng: Rng::new(seed, 1 << 40),
            spurious: None,
            lies: BTreeMap::new(),
            headers: OVERHEAD,
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
        self.headers = IPV6_HEADERS;
        self
    }

    /// Wake everybody up every so often, for nothing.
    pub(super) fn with_spurious_wakes(mut self, every: Span) -> Net {
        self.spurious = Some(every);
        self.book(Time::ZERO + every, (9, 0), What::Spurious);
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
        self.groups.push(Group {
            down: Pipe::new(down),
            up: Pipe::new(up),
            members: members.clone(),
            hears,
            floods: false,
            relay: None,
        });
        for index in members.clone() {
            let dir = self.dir.path().join(format!("out{index}"));
            let mut node = ReceiverNode::new(self.seed, index, group, dir, key.clone());
            node.headers = self.headers;
            node.start(self.now);
            self.receivers.push(node);
            self.reschedule_receiver(index);
        }
        members
    }

    /// The host of a source has another address from now on.
    pub(super) fn move_source(&mut self, source: usize, address: SocketAddr) {
        self.sources[source].move_to(address, self.now);
        self.drive_source(source);
    }

    /// A relay in front of this group, which hears one source.
    pub(super) fn relay(&mut self, group: usize, relay: RelayHost) {
        self.groups[group].relay = Some(relay);
    }

    /// What the relay of this group has done.
    pub(super) fn relay_counts(&self, group: usize) -> RelayCounts {
        self.groups[group].relay.as_ref().expect("there is one").counts
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
        (node.headers, node.address) = (self.headers, address);
        node.start(self.now);
        self.sources.push(node);
        self.reschedule_source(index);
        index
    }

    pub(super) fn group_of(&mut self, receiver: usize) -> &mut Group {
        &mut self.groups[self.receivers[receiver].group]
    }

    /// The receiver's process dies.
    pub(super) fn kill_receiver(&mut self, receiver: usize) {
        self.receivers[receiver].session = None;
    }

    /// The receiver's process is stopped for so long: datagrams wait in its socket's buffer, as far as they fit.
    pub(super) fn pause_receiver(&mut self, receiver: usize, span: Span) {
        self.receivers[receiver].socket.stop_until(self.now + span);
        self.reschedule_receiver(receiver);
    }

    /// The receiver's process takes in so much from now on, and no more.
    pub(super) fn limit_receiver(&mut self, receiver: usize, rate: Rate) {
        self.receivers[receiver].socket.takes(rate);
    }

    /// The receiver is started (again), in its directory, under a new id.
    pub(super) fn start_receiver(&mut self, receiver: usize) {
        self.receivers[receiver].start(self.now);
        self.reschedule_receiver(receiver);
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
        self.reschedule_source(source);
    }

    /// A datagram from nowhere that reaches this source now.
    pub(super) fn inject_up(&mut self, source: usize, from: SocketAddr, bytes: Vec<u8>) {
        self.book(self.now, (2, source), What::Up { source, from, bytes });
    }

    /// A datagram from nowhere that reaches this receiver now.
    pub(super) fn inject_down(&mut self, receiver: usize, from: SocketAddr, bytes: Vec<u8>) {
        self.book(self.now, (1, receiver), What::One { from, receiver, bytes });
    }

    /// Until every session has ended; panics when that takes longer.
    pub(super) fn run_to_end(&mut self, limit: Span) {
        let end = self.now + limit;
        while !self.is_over() {
            assert!(self.step(end), "not over after {limit}: {}", self.describe());
        }
    }

    pub(super) fn run_for(&mut self, span: Span) {
        let end = self.now + span;
        while self.step(end) {}
        self.now = end;
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
        let Some(Reverse(next)) = self.calendar.peek() else { return false };
        if next.at > end {
            return false;
        }
        let Some(Reverse(entry)) = self.calendar.pop() else { return false };
        self.now = self.now.max(entry.at);
        match entry.what {
            What::Down { source, group, layer, bytes } => self.arrive_at_group(source, group, layer, &bytes),
            What::One { from, receiver, mut bytes } => self.arrive(receiver, from, &mut bytes),
            What::Up { source, from, bytes } => {
                let group = self.receivers.iter().find(|node| node.address == from).map(|node| node.group);
                let now = self.now;
                match group.and_then(|group| Some((group, self.groups[group].relay.as_mut()?))) {
                    None => self.arrive_at_source(source, from, bytes),
                    Some((group, relay)) => {
                        let out = relay.on_answer(&bytes, now);
                        self.leave_relay(source, group, from, out);
                    }
                }
            }
            What::AtRelay { source, group, bytes } => {
                let (now, from) = (self.now, self.sources[source].address);
                if let Some(relay) = &mut self.groups[group].relay {
                    let out = relay.on_datagram(&bytes, now);
                    self.leave_relay(source, group, from, out);
                }
            }
            What::Relay { source, group } => {
                let (now, from) = (self.now, self.sources[source].address);
                if let Some(relay) = self.groups[group].relay.as_mut().filter(|relay| relay.wake_at() <= now)
                {
                    let out = relay.on_time(now);
                    self.leave_relay(source, group, from, out);
                }
            }
            What::Source(source) if is_later(self.sources[source].scheduled, self.now) => {}
            What::Receiver(receiver) if is_later(self.receivers[receiver].scheduled, self.now) => {}
            What::Source(source) => {
                self.sources[source].scheduled = Time::NEVER;
                self.drive_source(source);
            }
            What::Receiver(receiver) => {
                self.receivers[receiver].scheduled = Time::NEVER;
                self.drive_receiver(receiver);
                let wake = self.receivers[receiver].wake_at(self.now);
                assert!(wake > self.now, "receiver {receiver} does not let time pass at {:?}", self.now);
            }
            What::Spurious => {
                (0..self.sources.len()).for_each(|source| self.drive_source(source));
                (0..self.receivers.len()).for_each(|receiver| self.drive_receiver(receiver));
                if let Some(every) = self.spurious {
                    self.book(self.now + every, (9, 0), What::Spurious);
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

    /// A relay sends these: down its group's link, or up, where nothing takes time. `from` is whose answer it was.
    fn leave_relay(&mut self, source: usize, group: usize, from: SocketAddr, out: Vec<Out>) {
        for out in out {
            match out {
                Out::Up(bytes) => self.arrive_at_source(source, from, bytes),
                Out::Own(bytes) => {
                    let relay = SocketAddr::from(([10, 9, 0, group as u8], 5778));
                    self.arrive_at_source(source, relay, bytes);
                }
                Out::Down(bytes) => {
                    let size = (bytes.len() + OVERHEAD) as u64;
                    if let Some(at) = self.groups[group].down.pass(size, self.now) {
                        let what = What::Down { source, group, layer: Layer(0), bytes: bytes.into() };
                        self.book(at, (0, group), what);
                    }
                }
            }
        }
        let wake = self.groups[group].relay.as_ref().map_or(Time::NEVER, RelayHost::wake_at);
        if !wake.is_never() {
            self.book(wake.max(self.now + Span::from_nanos(1)), (5, group), What::Relay { source, group });
        }
    }

    fn arrive_at_group(&mut self, source: usize, group: usize, layer: Layer, bytes: &[u8]) {
        let (members, link) = (self.groups[group].members.clone(), *self.groups[group].down.link());
        let from = self.sources[source].address;
        for receiver in members {
            if !self.receivers[receiver].takes(layer) {
                continue;
            }
            let mut copy = bytes.to_vec();
            match link.damage(&mut copy, &mut self.receivers[receiver].path_rng) {
                Copies::Lost => {}
                Copies::One(Span::ZERO) => self.arrive(receiver, from, &mut copy),
                Copies::One(later) => {
                    self.book(self.now + later, (1, receiver), What::One { from, receiver, bytes: copy });
                }
                Copies::Two(first, second) => {
                    for later in [first, second] {
                        let bytes = copy.clone();
                        self.book(self.now + later, (1, receiver), What::One { from, receiver, bytes });
                    }
                }
            }
        }
    }

    fn arrive(&mut self, receiver: usize, from: SocketAddr, bytes: &mut [u8]) {
        self.trace.on_down(self.now, receiver, bytes);
        self.receivers[receiver].on_datagram(bytes, from, self.now);
        self.drive_receiver(receiver);
    }

    fn drive_source(&mut self, source: usize) {
        let now = self.now;
        let mut sent = Vec::new();
        self.sources[source].drive(now, |bytes, layer| sent.push((Rc::<[u8]>::from(bytes), layer)));
        for (bytes, layer) in sent {
            let size = (bytes.len() + self.headers) as u64;
            self.trace.on_sent(now, source, &bytes, size);
            let Some(at) = self.trunk.pass(size, now) else { continue };
            if matches!(self.trunk.link().damage(&mut Vec::new(), &mut self.trunk_rng), Copies::Lost) {
                continue;
            }
            for group in 0..self.groups.len() {
                if self.groups[group].relay.is_some() {
                    let bytes = Rc::clone(&bytes);
                    self.book(at, (0, group), What::AtRelay { source, group, bytes });
                } else if self.groups[group].hears.is_none_or(|only| only == source)
                    && self.is_wanted(group, layer)
                    && let Some(at) = self.groups[group].down.pass(size, at)
                {
                    let bytes = Rc::clone(&bytes);
                    self.book(at, (0, group), What::Down { source, group, layer, bytes });
                }
            }
        }
        self.reschedule_source(source);
    }

    /// Routers forward the base layer anyway, and others to whoever has joined them.
    fn is_wanted(&self, group: usize, layer: Layer) -> bool {
        let mut members = self.receivers[self.groups[group].members.clone()].iter();
        layer == Layer(0) || self.groups[group].floods || members.any(|member| member.takes(layer))
    }

    fn drive_receiver(&mut self, receiver: usize) {
        let now = self.now;
        let mut sent = Vec::new();
        self.receivers[receiver].drive(now, |bytes, to| sent.push((bytes.to_vec(), to)));
        let from = self.receivers[receiver].address;
        for (mut bytes, to) in sent {
            let Some(source) = self.sources.iter().position(|source| source.address == to) else { continue };
            let size = (bytes.len() + self.headers) as u64;
            let group = self.receivers[receiver].group;
            let Some(at) = self.groups[group].up.pass(size, now) else { continue };
            let link = *self.groups[group].up.link();
            let later = match link.damage(&mut bytes, &mut self.receivers[receiver].path_rng) {
                Copies::Lost => continue,
                Copies::One(later) => later,
                Copies::Two(first, second) => {
                    let bytes = bytes.clone();
                    self.book(at + second, (2, source), What::Up { source, from, bytes });
                    first
                }
            };
            self.book(at + later, (2, source), What::Up { source, from, bytes });
        }
        self.reschedule_receiver(receiver);
    }

    fn reschedule_source(&mut self, source: usize) {
        let wake = self.sources[source].wake_at(self.now);
        if wake < self.sources[source].scheduled {
            self.sources[source].scheduled = wake;
            self.book(wake, (4, source), What::Source(source));
        }
    }

    fn reschedule_receiver(&mut self, receiver: usize) {
        let wake = self.receivers[receiver].wake_at(self.now).max(self.now);
        if wake < self.receivers[receiver].scheduled {
            self.receivers[receiver].scheduled = wake;
            self.book(wake, (3, receiver), What::Receiver(receiver));
        }
    }

    fn book(&mut self, at: Time, rank: (u8, usize), what: What) {
        self.order += 1;
        self.calendar.push(Reverse(Entry { at, rank, order: self.order, what }));
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

impl Entry {
    fn key(&self) -> (Time, (u8, usize), u64) {
        (self.at, self.rank, self.order)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}
