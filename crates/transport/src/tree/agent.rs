//! Agents of MTCP inside one session (paper 001, 3.1). An agent is a receiver that also serves children. It processes the
//! children's feedback, repairs their losses from its cache, and sends aggregated reports to its own parent.
//!
//! ```text
//!   source ~~~~~~~~~~~~~ data, by multicast, to all ~~~~~~~~~~~~~~~~> children
//!     ^                                                                 |
//!     |  one member's reports, requests, window    +-------+  theirs    |
//!     +--------------------------------------------| agent |<-----------+
//!                                                  +-------+
//!                       orders, packets again, as they came  ----------> children, by unicast
//! ```
//!
//! The congestion control is the same code as in the simulator ([`Relay`]). Packets are sent again unchanged, byte for byte. So
//! an agent needs no key for the content, and cannot change the content. To a child, the packets look like packets of the source.

mod child;

pub(crate) use child::AgentChild;

use crate::announced::scheme_of;
use crate::error::JoinObstacle;
use crate::event::RelayBelow;
use crate::members::{Change, Members, Pace, Tally};
use crate::relay::{AgentStatus, Needs, RelayMode};
use crate::trace::{RELAY, Scope};
use faircast_core::node::{Cx, Effect, Effects, Relay, SourceControl, To};
use faircast_core::packet::{
    Arrival, Body, Data, Flags, Layer, Order, OrderContent, Packet, ReceiverId, Report, Seq, SessionId,
};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Announce, HopKey, Member, MemberState, Message, OrderAction, Receipt, SourceCodec, Window as Limit,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Number of packets whose bytes are cached. The congestion control caches at most half as many packets (`store`).
const KEPT: usize = 1024;

/// Maximum number of datagrams that wait for a child's socket. Further datagrams are lost, as in a network queue.
const MAX_WAITING: usize = 256;

/// Maximum size of an order, bytes.
const ORDER_LIMIT: usize = 200;

/// Interval at which children are checked.
const TICK: Span = Span::from_millis(500);

/// Duration of silence after which a child is not counted any longer, because it has moved or failed.
const IDLE_TIMEOUT: Span = Span::from_secs(10);

/// Minimum interval of reports of the children's windows.
const WINDOWS_EVERY: Span = Span::from_millis(10);

/// An agent in its session.
#[derive(Debug)]
pub(crate) struct Agent {
    /// ID of the agent. The agent's packets to children are encrypted under this ID.
    me: ReceiverId,
    boot: u64,
    key: Option<HopKey>,
    seed: u64,
    serving: Option<Serving>,
}

/// State while the agent takes part in a session.
#[derive(Debug)]
struct Serving {
    core: Box<dyn Relay + Send>,
    codec: SourceCodec,
    members: Members,
    children: BTreeMap<ReceiverId, Child>,
    cached: Vec<(u64, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    needs: Needs,
    /// Reports to the parent.
    reports: VecDeque<Report>,
    rng: Rng,
    effects: Effects,
    /// Whether the agent has a parent that counts it as a member. Only then does it accept children.
    is_rooted: bool,
    tick_at: Time,
    /// Time at which the smallest window of the children was last reported. The next field is the window that was reported.
    limit_at: Time,
    limit_reported: Seq,
    status: AgentStatus,
}

#[derive(Debug, Default)]
struct Child {
    /// Number of the congestion control's group to which the child belongs.
    group: u8,
    /// Highest packet number that the child's window allows.
    limit: Option<Seq>,
    out: VecDeque<Vec<u8>>,
}

impl Agent {
    pub(crate) fn new(me: ReceiverId, boot: u64, key: Option<HopKey>, seed: u64) -> Agent {
        Agent { me, boot, key, seed, serving: None }
    }

    /// Whether any child needs the agent to forward the source's multicast packets.
    fn passes_on(&self) -> bool {
        self.serving.as_ref().is_some_and(|serving| serving.children.values().any(|child| child.group != 0))
    }

    /// Adds a child that has a socket.
    fn add_child(&mut self, id: ReceiverId) {
        if let Some(serving) = &mut self.serving {
            serving.children.entry(id).or_default();
        }
    }

    /// Removes a child whose socket is closed.
    fn remove_child(&mut self, id: ReceiverId, now: Time) {
        let Some(serving) = &mut self.serving else { return };
        serving.children.remove(&id);
        self.call(now, |core, cx| core.control(SourceControl::Forget(id), cx.now));
    }

    /// Processes a datagram from the address of this child. If it is a receipt, returns it for the relay to store.
    fn on_child(
        &mut self,
        child: ReceiverId,
        bytes: &mut [u8],
        from: SocketAddr,
        waited: Span,
        now: Time,
    ) -> Option<Receipt> {
        let serving = self.serving.as_mut()?;
        let (number, message) = serving.codec.open(bytes, from).ok()?;
        if message.from() != Some(child) {
            return None; // a child may send only under its own ID
        }
        match message {
            Message::Member(member) => self.on_member(&member, number, from, now),
            _ if !serving.members.knows(child) => {} // a host that has not joined is ignored
            Message::Report(mut report) => {
                let echo = report.content.echo_mut();
                echo.hold = echo.hold + waited;
                serving.members.on_sign_of_life(child, now);
                serving.status.reports_received += 1;
                self.call(now, |core, cx| core.on_report(&report, cx));
            }
            Message::Request(request) => {
                serving.members.on_sign_of_life(child, now);
                serving.needs.on_request(&request, now);
            }
            Message::Window(window) => {
                serving.members.on_sign_of_life(child, now);
                if let Some(known) = serving.children.get_mut(&child) {
                    known.limit = Some(window.limit);
                }
            }
            Message::Tree(tree) => serving.members.on_tree(&tree),
            Message::Verified(reported) => {
                serving.members.on_verified(&reported);
                self.answer();
            }
            Message::Receipt(receipt) => return serving.members.may_sign(&receipt).then_some(receipt),
            _ => {}
        }
        None
    }

    /// Acknowledges a stored receipt of a child.
    fn acknowledge(&mut self, receipt: &Receipt) {
        if let Some(serving) = &mut self.serving {
            serving.members.acknowledge(receipt.from, receipt.nonce);
        }
        self.answer();
    }

    fn on_member(&mut self, member: &Member, number: u64, from: SocketAddr, now: Time) {
        let Some(serving) = &mut self.serving else { return };
        if !serving.is_rooted && !serving.members.knows(member.from) {
            return; // the host repeats its message
        }
        let change = serving.members.on_report(member, number, from, now);
        if matches!(change, Change::Done | Change::Failed | Change::Moved)
            || member.state == MemberState::Leaving
        {
            let id = member.from;
            if let Some(child) = serving.children.get_mut(&id) {
                (child.group, child.limit) = (0, None);
            }
            self.call(now, |core, cx| core.control(SourceControl::Forget(id), cx.now));
        }
        self.answer();
    }

    /// Answers the children that wait for a confirmation or for acceptance.
    fn answer(&mut self) {
        let Some(serving) = &mut self.serving else { return };
        let (confirmed, welcomed) = serving.members.take_confirmations(usize::MAX);
        for welcome in welcomed {
            serving.serves(welcome.id, welcome.nonce);
        }
        for id in confirmed {
            serving.received(id);
        }
    }

    /// Whether this child has joined, and is either alive or finished.
    fn takes_part(&self, child: ReceiverId) -> bool {
        let member = self.serving.as_ref().and_then(|serving| serving.members.get(child));
        member.is_some_and(|member| member.pace != Pace::Gone || member.is_finished())
    }

    fn next_for(&mut self, child: ReceiverId, at: SocketAddr, out: &mut Vec<u8>) -> bool {
        let Some(serving) = self.serving.as_mut().filter(|serving| serving.is_at(child, at)) else {
            return false;
        };
        let Some(bytes) = serving.children.get_mut(&child).and_then(|child| child.out.pop_front()) else {
            return false;
        };
        out.clear();
        out.extend_from_slice(&bytes);
        serving.spare.push(bytes);
        true
    }

    fn has_for(&self, child: ReceiverId, at: SocketAddr) -> bool {
        let serving = self.serving.as_ref().filter(|serving| serving.is_at(child, at));
        serving.and_then(|serving| serving.children.get(&child)).is_some_and(|child| !child.out.is_empty())
    }

    /// Returns the number of receivers of this child, and their progress; zero if the child does not take part.
    fn tally_of(&self, child: ReceiverId) -> Tally {
        let member = self.serving.as_ref().and_then(|serving| serving.members.get(child));
        member.map_or_else(Tally::default, |member| {
            let is_there = member.pace != Pace::Gone;
            let unfinished = u64::from(is_there && !member.has_all() && !member.is_finished());
            Tally {
                receivers: if is_there || member.is_finished() { member.counted().into() } else { 0 },
                done: member.verified().into(),
                unfinished,
                answering: unfinished,
                ..Tally::default()
            }
        })
    }

    /// Returns the counters of the agent.
    pub(crate) fn status(&self) -> AgentStatus {
        let Some(serving) = &self.serving else { return AgentStatus::default() };
        let windows = serving.core.windows().unwrap_or_default();
        let window = if windows.least.is_finite() { windows.least } else { 0.0 };
        AgentStatus { moved: windows.moved, window, stored: windows.stored, ..serving.status }
    }

    fn call(&mut self, now: Time, act: impl FnOnce(&mut dyn Relay, &mut Cx<'_>)) {
        let Some(serving) = &mut self.serving else { return };
        act(&mut *serving.core, &mut Cx { now, rng: &mut serving.rng, effects: &mut serving.effects });
        let mut effects = std::mem::take(&mut serving.effects);
        effects.drain().for_each(|effect| serving.carry_out(effect));
        serving.effects = effects;
    }
}

impl RelayMode for Agent {
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle> {
        let has_agents = scheme.is_some_and(|scheme| scheme.agents_beside_delivery().is_some());
        (!has_agents).then_some(JoinObstacle::NoAgents)
    }

    fn has_exits(&self) -> bool {
        false
    }

    fn begin(&mut self, session: SessionId, announce: &Announce, _now: Time) -> bool {
        let Some(spec) = scheme_of(announce).and_then(|scheme| scheme.agents_beside_delivery()) else {
            return false;
        };
        let codec = SourceCodec::of_relay(session, self.key.as_ref(), announce.salt, self.me, self.boot);
        let mut members = Members::of_relay();
        members.trace_in(Scope::new(announce.name.as_str(), RELAY));
        self.serving = Some(Serving {
            core: spec.relay(self.me),
            codec,
            members,
            children: BTreeMap::new(),
            cached: vec![(u64::MAX, Vec::new()); KEPT],
            spare: Vec::new(),
            needs: Needs::default(),
            reports: VecDeque::new(),
            rng: Rng::new(self.seed, 0),
            effects: Effects::new(),
            is_rooted: false,
            tick_at: Time::ZERO,
            limit_at: Time::ZERO,
            limit_reported: Limit::UNLIMITED,
            status: AgentStatus::default(),
        });
        true
    }

    fn note_rooted(&mut self, is_rooted: bool) {
        if let Some(serving) = &mut self.serving {
            serving.is_rooted = is_rooted;
        }
    }

    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, now: Time) {
        self.call(now, |core, cx| core.on_data(data, layer, arrival, cx));
    }

    fn on_order(&mut self, order: &Order, now: Time) {
        self.call(now, |core, cx| core.on_order(order, cx));
    }

    fn on_deadline(&mut self, now: Time) {
        self.call(now, |core, cx| core.on_deadline(cx));
    }

    fn deadline(&self) -> Time {
        match &self.serving {
            Some(serving) if !serving.reports.is_empty() => Time::ZERO,
            Some(serving) => serving.core.deadline(),
            None => Time::NEVER,
        }
    }

    fn tick(&mut self, now: Time) {
        let Some(serving) = self.serving.as_mut().filter(|serving| serving.tick_at <= now) else { return };
        serving.tick_at = now + TICK;
        let gone = serving.members.expire(now, IDLE_TIMEOUT, Span::ZERO);
        serving.members.count_missing();
        let present: Vec<ReceiverId> = serving.children.keys().copied().collect();
        for id in present {
            if serving.members.get(id).is_some_and(|member| !member.is_finished()) {
                serving.serves(id, 0);
            }
        }
        for id in gone {
            if let Some(child) = serving.children.get_mut(&id) {
                (child.group, child.limit) = (0, None);
            }
        }
        self.answer();
    }

    fn tick_at(&self) -> Time {
        self.serving.as_ref().map_or(Time::NEVER, |serving| serving.tick_at)
    }

    fn take_report(&mut self) -> Option<Report> {
        let serving = self.serving.as_mut()?;
        let report = serving.reports.pop_front()?;
        serving.status.reports_sent += 1;
        Some(report)
    }

    fn limit_due(&mut self, now: Time) -> Option<Seq> {
        let serving = self.serving.as_mut()?;
        let limit = serving.limit();
        if now < serving.limit_at || limit == serving.limit_reported {
            return None;
        }
        (serving.limit_at, serving.limit_reported) = (now + WINDOWS_EVERY, limit);
        Some(limit)
    }

    fn limit_at(&self) -> Time {
        let changed = |serving: &&Serving| serving.limit() != serving.limit_reported;
        self.serving.as_ref().filter(changed).map_or(Time::NEVER, |serving| serving.limit_at)
    }

    fn limit(&self) -> Seq {
        self.serving.as_ref().map_or(Limit::UNLIMITED, Serving::limit)
    }

    fn tally(&self) -> Tally {
        self.serving.as_ref().map_or_else(Tally::default, |serving| serving.members.tally())
    }

    fn most_missing(&self) -> Option<u32> {
        self.serving.as_ref()?.members.most_missing()
    }

    fn take_numbers(&mut self) -> Vec<ReceiverId> {
        self.serving.as_mut().map(|serving| serving.members.take_numbers()).unwrap_or_default()
    }

    fn answer_at_once(&mut self, at_once: bool) {
        if let Some(serving) = &mut self.serving {
            serving.members.answer_at_once(at_once);
        }
    }

    fn on_known(&mut self, ids: &[ReceiverId], _now: Time) {
        if let Some(serving) = &mut self.serving
            && serving.members.on_known(ids)
        {
            self.answer();
        }
    }

    fn relays(&self) -> Vec<RelayBelow> {
        self.serving.as_ref().map_or_else(Vec::new, |serving| serving.members.relays())
    }

    fn needs(&mut self) -> Option<&mut Needs> {
        self.serving.as_mut().map(|serving| &mut serving.needs)
    }

    fn wants_raw(&self) -> (bool, bool) {
        (true, self.passes_on())
    }

    fn keep(&mut self, seq: Seq, raw: &[u8]) {
        let Some(serving) = &mut self.serving else { return };
        let (number, bytes) = &mut serving.cached[seq.0 as usize % KEPT];
        if *number != seq.0 {
            *number = seq.0;
            bytes.clear();
            bytes.extend_from_slice(raw);
        }
    }

    fn pass_on(&mut self, raw: &[u8]) {
        let Some(serving) = &mut self.serving else { return };
        let Serving { children, spare, .. } = serving;
        children.values_mut().filter(|child| child.group != 0).for_each(|child| child.push(raw, spare));
    }
}

impl Serving {
    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Report(report) => self.reports.push_back(report),
            Effect::Send { to, packet } => match packet.body {
                Body::Data(data) => self.send_again(to, &packet, &data),
                Body::Order(order) => self.order(&order),
                Body::Report(report) => self.reports.push_back(report),
            },
            // Every receiver joins the groups of its own parent by itself, and MTCP has no layers.
            Effect::Attend(_) | Effect::Subscribe(_) | Effect::Leave => {}
        }
    }

    /// Sends a packet again, to one child or to all children of a group that lack it.
    fn send_again(&mut self, to: To, packet: &Packet, data: &Data) {
        let Serving { core, children, cached, spare, status, .. } = self;
        let (number, bytes) = &cached[data.seq.0 as usize % KEPT];
        if *number != data.seq.0 {
            return; // the packet is too old for the cache
        }
        let count = if data.flags.has(Flags::REPAIR) { &mut status.repairs } else { &mut status.passed_on };
        for (id, child) in children {
            let is_meant = match to {
                To::Child(only) => only == *id,
                To::Group => child.group == packet.layer.0 && core.is_missed_by(*id, data.seq),
                To::Parent | To::Exit(_) => false,
            };
            if is_meant {
                child.push(bytes, spare);
                *count += 1;
            }
        }
    }

    fn order(&mut self, order: &Order) {
        let (action, group, from) = match order.content {
            OrderContent::Join { group, from } => (OrderAction::Join, group, from),
            OrderContent::Poll => (OrderAction::Poll, 0, Seq(0)),
        };
        if action == OrderAction::Join
            && let Some(child) = self.children.get_mut(&order.to)
        {
            child.group = group;
        }
        let from = Seq(from.0.min(Limit::UNLIMITED.0));
        let number = order.number;
        self.write(faircast_wire::Order { to: order.to, action, number, group, from, nonce: 0 });
    }

    /// Accepts this child, and requests reports of completed receivers by ID.
    fn serves(&mut self, to: ReceiverId, nonce: u16) {
        self.say(to, OrderAction::Serves, faircast_wire::Order::BY_NUMBER, nonce);
    }

    /// Confirms a completed receiver. The confirmation goes to the child, or to the relay that reported the receiver.
    fn received(&mut self, id: ReceiverId) {
        match self.members.reported_by(id) {
            Some(agent) => self.say(agent, OrderAction::Heard, id.get() as u32, 0),
            None => self.say(id, OrderAction::Heard, 0, 0),
        }
    }

    fn say(&mut self, to: ReceiverId, action: OrderAction, number: u32, nonce: u16) {
        self.write(faircast_wire::Order { to, action, number, group: 0, from: Seq(0), nonce });
    }

    fn write(&mut self, order: faircast_wire::Order) {
        let Some(child) = self.children.get_mut(&order.to) else { return };
        let mut out = self.spare.pop().unwrap_or_default();
        out.clear();
        // A message that cannot be encoded is treated like a lost message: it is sent again later.
        if self.codec.encode(&mut out, &Message::Order(order), ORDER_LIMIT).is_ok() {
            child.push(&out, &mut self.spare);
        }
        self.spare.push(out);
    }

    /// Whether packets for this child are sent to the address `at`. The child may also have attached from another address
    /// earlier.
    fn is_at(&self, child: ReceiverId, at: SocketAddr) -> bool {
        self.members.get(child).is_none_or(|member| member.address == at)
    }

    /// Returns the smallest packet number limit of the children that receive the source. The limits of children in the agent's
    /// own group do not count, because these children do not receive the source.
    fn limit(&self) -> Seq {
        let received = self.children.values().filter(|child| child.group == 0);
        received.filter_map(|child| child.limit).min().unwrap_or(Limit::UNLIMITED)
    }
}

impl Child {
    fn push(&mut self, bytes: &[u8], spare: &mut Vec<Vec<u8>>) {
        if self.out.len() >= MAX_WAITING {
            return;
        }
        let mut copy = spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        self.out.push_back(copy);
    }
}
