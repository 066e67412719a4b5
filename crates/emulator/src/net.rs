//! Routes, links and packets in transit, without clock and devices.
//!
//! The driver supplies the time. [`Net::enter`] takes a packet that a host has sent. [`Net::due`] returns the packets that have
//! arrived at hosts, one by one. A packet enters its next link exactly when it leaves the previous link, even if the driver calls
//! late. The lateness of the driver therefore affects only the delivery to the host and does not add up.

use crate::ip;
use crate::memberships::Message;
use crate::plan::{EmulationPlan, PlanError};
use crate::routes::{Goal, Ignored, Routes};
use crate::samples::{LinkSample, Tally};
use faircast_aqm::{Dequeued, Ecn, Link, LinkCounts, LossCause, LossSpec, OfferResult, Ticket};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use faircast_topology::{Edge, NodeId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum time by which an arrival at a router may be processed late. It limits the work of one call.
const LOOK_AHEAD: Span = Span::from_millis(1);

/// Counters of packets at hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entries {
    /// Packets that entered the network.
    pub taken: u64,
    /// Packets that are not IP.
    pub not_ip: u64,
    /// Packets longer than the MTU.
    pub too_long: u64,
    /// Packets for the local network only.
    pub local_only: u64,
    /// Packets without a path to a destination.
    pub no_way: u64,
    /// Packets dropped because they would have exceeded the memory of the plan.
    pub no_room: u64,
    /// Packets that arrived; a multicast packet counts once for each member.
    pub delivered: u64,
}

/// A packet that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// Number of the host, in the order of the plan.
    pub host: usize,
    /// Time of arrival: at or before the requested time.
    pub at: Time,
    /// The packet, with a congestion mark if a queue has marked it.
    pub bytes: &'a [u8],
}

/// A packet of a tapped link, when the link has determined its fate.
#[derive(Debug)]
pub struct Tapped<'a> {
    /// Index of the link in [`EmulationPlan::link_names`].
    pub link: u32,
    /// Time of the decision: the arrival at the link, or the departure from a queue that holds packets.
    pub at: Time,
    /// The packet, with a congestion mark if a queue has marked it.
    pub bytes: &'a [u8],
    /// Reason for which the link lost the packet.
    pub lost: Option<LossCause>,
}

/// Takes the packets of tapped links.
pub type Sink = Box<dyn FnMut(Tapped<'_>) + Send>;

#[derive(Default)]
struct Taps(Option<Sink>);

impl fmt::Debug for Taps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taps").field(&self.0.is_some()).finish()
    }
}

/// A change of a link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// A new bit rate.
    Rate(Rate),
    /// A new propagation delay.
    Delay(Span),
    /// New losses on the wire.
    Loss(Option<LossSpec>),
    /// Failure of the link: all packets in its queue and all arriving packets are lost.
    Down,
    /// End of a failure.
    Up,
}

/// A text is not a change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a change of a link; write `rate=BITS`, `delay=SECONDS`, `loss=MODEL`, `loss=none`, `down` or `up`"
)]
pub struct NotAChange(String);

impl FromStr for Change {
    type Err = NotAChange;

    /// Parses `rate=1e6` (bit/s), `delay=0.02` (seconds), `loss=bernoulli,0.01`, `loss=none`, `down` or `up`.
    fn from_str(text: &str) -> Result<Change, NotAChange> {
        let number =
            |value: &str| value.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
        let change = match text.split_once('=').unwrap_or((text, "")) {
            ("rate", value) => {
                number(value).filter(|bps| *bps > 0.0).map(|bps| Change::Rate(Rate::from_bps(bps)))
            }
            ("delay", value) => number(value).map(|seconds| Change::Delay(Span::from_secs_f64(seconds))),
            ("loss", "none") => Some(Change::Loss(None)),
            ("loss", value) => value.parse().ok().map(|loss| Change::Loss(Some(loss))),
            ("down", "") => Some(Change::Down),
            ("up", "") => Some(Change::Up),
            _ => None,
        };
        change.ok_or_else(|| NotAChange(text.to_owned()))
    }
}

/// Routes, links and packets.
#[derive(Debug)]
pub struct Net {
    routes: Routes,
    lines: Vec<Line>,
    mtu: u16,
    overhead: u16,
    /// Next events. For each link, the heap contains the arrival of the first packet in transit, and the next departure from the
    /// queue of the link.
    due: BinaryHeap<Reverse<(Time, Step, u64, u32)>>,
    order: u64,
    packets: Packets,
    /// Maximum number of packets.
    max_packets: usize,
    /// The packet that the last [`Net::due`] returned.
    given: Option<u32>,
    /// A marked copy of the packet in `given`. Other branches need this packet unmarked.
    marked_copy: Vec<u8>,
    entries: Entries,
    /// Indices into `tallies` by host, destination and port.
    watched: BTreeMap<(usize, IpAddr, u16), usize>,
    tallies: Vec<Tally>,
    taps: Taps,
}

/// An event of a link. Departures precede arrivals at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The link takes the next packet from its queue.
    Departure,
    /// The first packet in transit reaches the end of the link.
    Arrival,
}

/// A link and its end. Packets in transit do not overtake one another, so the heap contains only the arrival of the first packet.
#[derive(Debug)]
struct Line {
    link: Link,
    from: NodeId,
    to: NodeId,
    delay: Span,
    /// Minimum time from an arrival at the end of the link to the arrival at a host; at most [`LOOK_AHEAD`].
    beyond: Span,
    is_tapped: bool,
    way: VecDeque<OnTheWay>,
    /// Time of the link's next arrival in the heap. Other arrivals of the link in the heap have no effect.
    arrival: Time,
    /// Packets in the queue of the link, by ticket; empty if the queue holds no packets.
    queue: Vec<Waiting>,
    /// Number of packets in the queue.
    waiting: usize,
    /// Time of the link's next departure in the heap. Earlier departures of the link in the heap have no effect.
    scheduled: Time,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    slot: u32,
    marked: bool,
}

#[derive(Debug, Clone, Copy)]
struct OnTheWay {
    at: Time,
    slot: u32,
    marked: bool,
}

/// Packets by slot number. The memory of a released packet is reused.
#[derive(Debug, Default)]
struct Packets {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    bytes: Vec<u8>,
    /// Number of copies in transit or in queues.
    copies: u32,
    flow: u32,
    ecn: Ecn,
    goal: Goal,
    /// Destination and port.
    end: (IpAddr, u16),
}

impl Packets {
    fn insert(&mut self, bytes: &[u8], header: &ip::Header, goal: Goal, mtu: u16) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            let bytes = Vec::with_capacity(usize::from(mtu));
            let end = (header.destination, header.port);
            self.slots.push(Slot { bytes, copies: 0, flow: 0, ecn: Ecn::NotEct, goal, end });
            self.slots.len() as u32 - 1
        });
        let packet = &mut self.slots[slot as usize];
        packet.bytes.clear();
        packet.bytes.extend_from_slice(bytes);
        (packet.copies, packet.flow, packet.ecn, packet.goal) = (1, header.flow, header.ecn, goal);
        packet.end = (header.destination, header.port);
        slot
    }

    /// Releases one copy of a packet.
    fn release(&mut self, slot: u32) {
        let packet = &mut self.slots[slot as usize];
        packet.copies -= 1;
        if packet.copies == 0 {
            self.free.push(slot);
        }
    }
}

impl Net {
    /// Returns a network without packets.
    ///
    /// # Errors
    /// Fails if the plan has no host, two hosts have the same address, or the network needs more memory than the plan allows.
    pub fn new(plan: &EmulationPlan) -> Result<Net, PlanError> {
        let estimate = plan.estimate();
        estimate.within(plan.memory).map_err(|refused| PlanError::TooLarge { refused })?;
        let routes = Routes::new(plan)?;
        // Memory of a packet, including one copy for each host.
        let packet = u64::from(plan.mtu) + 100 + 40 * routes.hosts() as u64;
        let max_packets = (plan.memory - estimate.total()) / packet;
        let line = |(number, edge): (u32, &Edge)| {
            let link = Link::new(&edge.spec, Rng::new(plan.seed, number.into()));
            Line {
                link,
                from: edge.from,
                to: edge.to,
                delay: edge.spec.delay,
                beyond: Span::ZERO,
                is_tapped: false,
                way: VecDeque::new(),
                arrival: Time::NEVER,
                queue: Vec::new(),
                waiting: 0,
                scheduled: Time::NEVER,
            }
        };
        let mut net = Net {
            routes,
            lines: (0..).zip(plan.topology.edges()).map(line).collect(),
            mtu: plan.mtu,
            overhead: plan.overhead,
            due: BinaryHeap::new(),
            order: 0,
            packets: Packets::default(),
            max_packets: max_packets as usize,
            given: None,
            marked_copy: Vec::with_capacity(usize::from(plan.mtu)),
            entries: Entries::default(),
            watched: BTreeMap::new(),
            tallies: Vec::new(),
            taps: Taps::default(),
        };
        net.look_ahead();
        Ok(net)
    }

    /// Counts the packets that reach a host for this destination and port, beginning now. Returns the index of the count in
    /// [`Net::watched`].
    pub fn watch(&mut self, host: usize, destination: IpAddr, port: u16) -> usize {
        let next = self.tallies.len();
        let index = *self.watched.entry((host, destination, port)).or_insert(next);
        self.tallies.resize(next.max(index + 1), Tally::default());
        index
    }

    /// Returns the counts of [`Net::watch`].
    pub fn watched(&self) -> &[Tally] {
        &self.tallies
    }

    /// Gives the packets of these links to a sink from now on.
    ///
    /// # Panics
    /// Panics if a link does not exist.
    pub fn tap(&mut self, links: impl IntoIterator<Item = u32>, sink: Sink) {
        links.into_iter().for_each(|link| self.lines[link as usize].is_tapped = true);
        self.taps = Taps(Some(sink));
    }

    fn record(&mut self, at: Time, link: u32, slot: u32, marked: bool, lost: Option<LossCause>) {
        if self.lines[link as usize].is_tapped
            && let Some(mut sink) = self.taps.0.take()
        {
            sink(Tapped { link, at, bytes: self.contents(slot, marked), lost });
            self.taps.0 = Some(sink);
        }
    }

    /// Takes a packet that a host has sent. Hosts are numbered in the order of the plan. Times must not decrease.
    ///
    /// # Errors
    /// Returns the reason if the packet is ignored. A drop by a queue is not an error.
    ///
    /// # Panics
    /// Panics if the host does not exist.
    pub fn enter(&mut self, now: Time, host: usize, bytes: &[u8]) -> Result<(), Ignored> {
        let entered = self.try_enter(now, host, bytes);
        *match entered {
            Ok(()) => &mut self.entries.taken,
            Err(Ignored::NotIp) => &mut self.entries.not_ip,
            Err(Ignored::TooLong) => &mut self.entries.too_long,
            Err(Ignored::LocalOnly) => &mut self.entries.local_only,
            Err(Ignored::NoWay) => &mut self.entries.no_way,
            Err(Ignored::NoRoom) => &mut self.entries.no_room,
        } += 1;
        entered
    }

    fn try_enter(&mut self, now: Time, host: usize, bytes: &[u8]) -> Result<(), Ignored> {
        if bytes.len() > usize::from(self.mtu) {
            return Err(Ignored::TooLong);
        }
        let header = ip::parse(bytes).ok_or(Ignored::NotIp)?;
        if let Some(message) = Message::of(bytes) {
            self.routes.report(now, host, &message);
            return Err(Ignored::LocalOnly);
        }
        let goal = self.routes.goal(now, host, header.destination)?;
        if self.packets.free.is_empty() && self.packets.slots.len() >= self.max_packets {
            return Err(Ignored::NoRoom);
        }
        let slot = self.packets.insert(bytes, &header, goal, self.mtu);
        self.forward(now, self.routes.node_of(host), slot, false);
        Ok(())
    }

    /// Returns a time before which no packet reaches a host; [`Time::NEVER`] if no packet is in transit.
    pub fn next(&self) -> Time {
        let next = |line: &Line| line.arrival.min(line.scheduled + line.delay) + line.beyond;
        self.lines.iter().map(next).min().unwrap_or(Time::NEVER)
    }

    /// Computes [`Line::beyond`] from the delays of all links.
    fn look_ahead(&mut self) {
        let of_node = |node: u32| self.routes.host_at(NodeId(node)).map_or(LOOK_AHEAD, |_| Span::ZERO);
        let mut from: Vec<Span> = (0..self.routes.nodes()).map(of_node).collect();
        let mut is_changed = true;
        while is_changed {
            is_changed = false;
            for line in &mut self.lines {
                line.beyond = from[line.to.0 as usize];
                let least = &mut from[line.from.0 as usize];
                let before = std::mem::replace(least, (line.delay + line.beyond).min(*least));
                is_changed |= *least != before;
            }
        }
    }

    /// Returns the next packet that has arrived at a host by `now`.
    pub fn due(&mut self, now: Time) -> Option<Delivery<'_>> {
        if let Some(slot) = self.given.take() {
            self.packets.release(slot);
        }
        loop {
            let Reverse((at, step, _, number)) = *self.due.peek().filter(|Reverse((at, ..))| *at <= now)?;
            self.due.pop();
            if step == Step::Departure {
                self.depart(at, number);
                continue;
            }
            let line = &mut self.lines[number as usize];
            if line.arrival != at {
                continue;
            }
            let packet = line.way.pop_front().expect("a link with an arrival has a packet on its way");
            let node = line.to;
            self.note_arrival(number);
            match self.routes.host_at(node) {
                None => self.forward(at, node, packet.slot, packet.marked),
                Some(host) => {
                    self.entries.delivered += 1;
                    self.count(host, packet.slot);
                    self.given = Some(packet.slot);
                    let bytes = self.contents(packet.slot, packet.marked);
                    return Some(Delivery { host, at, bytes });
                }
            }
        }
    }

    fn count(&mut self, host: usize, slot: u32) {
        let Slot { end: (destination, port), bytes, .. } = &self.packets.slots[slot as usize];
        if let Some(index) = self.watched.get(&(host, *destination, *port)) {
            self.tallies[*index].packets += 1;
            self.tallies[*index].bytes += bytes.len() as u64;
        }
    }

    fn note(&mut self, at: Time, step: Step, number: u32) {
        self.due.push(Reverse((at, step, self.order, number)));
        self.order += 1;
    }

    /// Schedules the arrival of the first packet in transit on a link.
    fn note_arrival(&mut self, number: u32) {
        let line = &mut self.lines[number as usize];
        line.arrival = line.way.front().map_or(Time::NEVER, |first| first.at);
        let at = line.arrival;
        if !at.is_never() {
            self.note(at, Step::Arrival, number);
        }
    }

    /// Returns whether a host has joined a group, apart from latencies.
    ///
    /// # Panics
    /// Panics if the host does not exist.
    pub fn has_joined(&self, host: usize, group: IpAddr) -> bool {
        self.routes.has_joined(host, group)
    }

    /// Ends the latencies of all joins and leaves.
    pub fn settle(&mut self, now: Time) {
        self.routes.settle(now);
    }

    /// Changes the link with this index in [`EmulationPlan::link_names`]. The driver has taken the packets that are due by `now`.
    ///
    /// # Panics
    /// Panics if the link does not exist.
    pub fn change(&mut self, now: Time, number: u32, change: Change) {
        let line = &mut self.lines[number as usize];
        match change {
            Change::Delay(delay) => {
                line.link.set_delay(now, delay);
                line.delay = delay;
                self.look_ahead();
            }
            Change::Loss(loss) => line.link.set_loss(loss),
            Change::Up => line.link.set_up(),
            Change::Rate(rate) => {
                let shift = line.link.set_rate(now, rate);
                let mut moves = shift.moves.iter().peekable();
                for packet in &mut line.way {
                    while moves.next_if(|(old, _)| *old < packet.at).is_some() {}
                    if let Some((_, new)) = moves.next_if(|(old, _)| *old == packet.at) {
                        packet.at = *new;
                    }
                }
            }
            Change::Down => {
                let kept_until = line.link.set_down(now).kept_until;
                let kept = line.way.partition_point(|packet| packet.at <= kept_until);
                for packet in line.way.split_off(kept) {
                    self.packets.release(packet.slot);
                }
            }
        }
        self.note_arrival(number);
        self.depart(now, number);
    }

    fn contents(&mut self, slot: u32, marked: bool) -> &[u8] {
        let packet = &self.packets.slots[slot as usize];
        if !marked {
            return &packet.bytes;
        }
        self.marked_copy.clear();
        self.marked_copy.extend_from_slice(&packet.bytes);
        ip::mark(&mut self.marked_copy);
        &self.marked_copy
    }

    /// Forwards a copy of a packet from a node.
    fn forward(&mut self, now: Time, node: NodeId, slot: u32, marked: bool) {
        match self.packets.slots[slot as usize].goal {
            Goal::Host(host) => self.offer(now, self.routes.towards(host, node), slot, marked),
            Goal::Tree(tree) => {
                let mut place = 0;
                while let Some(link) = self.routes.branch(now, tree, node, &mut place) {
                    self.packets.slots[slot as usize].copies += 1;
                    self.offer(now, link, slot, marked);
                }
                self.packets.release(slot);
            }
        }
    }

    /// Puts a copy into a link, which may drop it.
    fn offer(&mut self, now: Time, number: u32, slot: u32, was_marked: bool) {
        let packet = &self.packets.slots[slot as usize];
        let size = (packet.bytes.len() as u16).saturating_add(self.overhead);
        let (flow, ecn) = (packet.flow, packet.ecn);
        if self.lines[number as usize].link.next_dequeue() <= now {
            // A host may send a packet before the driver has processed the due events.
            self.depart(now, number);
        }
        let line = &mut self.lines[number as usize];
        match line.link.offer(now, size, flow, ecn) {
            OfferResult::Lost(cause) => {
                self.record(now, number, slot, was_marked, Some(cause));
                self.packets.release(slot);
            }
            OfferResult::Arrives { at, marked } => {
                self.record(now, number, slot, was_marked || marked, None);
                self.set_out(number, at, slot, was_marked || marked);
            }
            OfferResult::Queued(Ticket(ticket)) => {
                let waiting = Waiting { slot, marked: was_marked };
                if line.queue.len() <= ticket as usize {
                    line.queue.resize(ticket as usize + 1, waiting); // tickets are consecutive numbers
                }
                line.queue[ticket as usize] = waiting;
                line.waiting += 1;
                self.depart(now, number);
            }
        }
    }

    /// Puts a copy in transit on a link.
    fn set_out(&mut self, number: u32, at: Time, slot: u32, marked: bool) {
        let line = &mut self.lines[number as usize];
        line.way.push_back(OnTheWay { at, slot, marked });
        if line.way.len() == 1 {
            self.note_arrival(number);
        }
    }

    /// Takes the packets that the queue of a link has released by `now`, and schedules the next departure.
    fn depart(&mut self, now: Time, number: u32) {
        while let Some(news) = self.lines[number as usize].link.dequeue(now) {
            let (Dequeued::Arrives { ticket, .. } | Dequeued::Lost { ticket, .. }) = news;
            let line = &mut self.lines[number as usize];
            let Waiting { slot, marked: was_marked } = line.queue[ticket.0 as usize];
            line.waiting -= 1;
            match news {
                Dequeued::Arrives { at, marked, .. } => {
                    self.record(now, number, slot, was_marked || marked, None);
                    self.set_out(number, at, slot, was_marked || marked);
                }
                Dequeued::Lost { cause, .. } => {
                    self.record(now, number, slot, was_marked, Some(cause));
                    self.packets.release(slot);
                }
            }
        }
        let line = &mut self.lines[number as usize];
        let next = line.link.next_dequeue();
        if next != line.scheduled {
            line.scheduled = next;
            if !next.is_never() {
                self.note(next, Step::Departure, number);
            }
        }
    }

    /// Returns the counts of packets that hosts have sent and received.
    pub const fn entries(&self) -> Entries {
        self.entries
    }

    /// Returns the counters of the link whose index in [`EmulationPlan::link_names`] is `number`.
    ///
    /// # Panics
    /// Panics if the link does not exist.
    pub fn link(&self, number: usize) -> LinkCounts {
        self.lines[number].link.counts()
    }

    /// Returns the states of all links at `now`, in the order of [`EmulationPlan::link_names`]. The driver has taken the packets
    /// that are due by `now`.
    pub fn sample(&self, now: Time) -> Vec<LinkSample> {
        let sample = |Line { link, .. }: &Line| {
            let (waiting, waiting_bytes) = link.waiting(now);
            let departed_bytes = link.departed_bytes(now);
            LinkSample { waiting, waiting_bytes, departed_bytes, counts: link.counts() }
        };
        self.lines.iter().map(sample).collect()
    }

    /// Returns the number of packets in transit or in queues.
    pub fn on_the_way(&self) -> usize {
        self.lines.iter().map(|line| line.way.len() + line.waiting).sum()
    }
}

#[cfg(test)]
mod tests;
