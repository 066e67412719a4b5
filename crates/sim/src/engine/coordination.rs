//! Hosts whose flows share congestion control. An acknowledgement of one flow affects the other flows at the same simulated time.
//!
//! All flows of a coordination start at one host. The agents of a host are called in the order of the host's time, whether or not
//! the host is ahead of other hosts. Effects of one flow on another flow therefore occur in the same order in both modes.

use super::Island;
use super::agents::{Ends, SenderAgent, SenderKind};
use super::check::SimError;
use super::hosts::sender_deadline;
use super::nanos::{NEVER, Phase, time};
use crate::frame::Body;
use crate::network::{CoordinationSpec, Flow, Groups, Network, UnicastProtocol};
use crate::outcome::CoordinationOutcome;
use crate::routes::NONE;
use faircast_core::node::Cx;
use faircast_core::time::{Span, Time};
use faircast_unicast::cocoon::grouping::Grouping;
use faircast_unicast::cocoon::{self, Coordinator, GroupId, MemberId, Offered, SendTimes, SocketId};
use faircast_unicast::coordination::Coordination as Way;
use faircast_unicast::macroflow::Macroflow;
use faircast_unicast::{Feedback, Protocol, SegmentFlags};
use std::net::{IpAddr, Ipv6Addr};

/// Coordination of the flows of a host.
#[derive(Debug)]
pub struct Coordination {
    way: Sharing,
    /// For each member's slot in the coordinator: the membership of the flow that uses the slot.
    by_slot: Vec<u32>,
    groups: Vec<Group>,
    /// Measurement of groups, if groups are measured. `groups` then contains atoms.
    grouping: Option<Box<Grouping>>,
    /// Size of a unit packet, bytes. The sizes of datagrams are counted in such units.
    unit: f64,
}

#[derive(Debug)]
enum Sharing {
    Windows(Box<Coordinator>),
    /// Macroflows, by group.
    Macroflows(Vec<Macroflow>),
}

#[derive(Debug)]
struct Group {
    /// ID of the group; `None` for macroflows and atoms.
    id: Option<GroupId>,
    /// Memberships of the group's flows.
    members: Vec<u32>,
    /// Whether the group has sockets.
    sockets: bool,
}

/// A flow in a coordination.
#[derive(Debug)]
pub struct Membership {
    coordination: u32,
    group: u32,
    /// Index of the flow in the group.
    place: u32,
    sender: u32,
    member: Option<MemberId>,
    socket: Option<SocketId>,
    times: SendTimes,
    /// Number of datagrams sent; the next field is the number of datagrams dropped because too many were waiting.
    left: u32,
    dropped: u64,
    /// Time of the group's timer. For a group with a common timer or with sockets, only the group's first flow stores it.
    wakes: u64,
}

impl Membership {
    /// Returns the number of the sender.
    pub const fn sender(&self) -> u32 {
        self.sender
    }
}

/// Whether an acknowledgement reported a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AckResult {
    Arrived,
    Lost,
}

/// Returns the address of an atom's host. Each host is in a separate subnet (/64), and all hosts are in one region (/48). Only
/// measurements can therefore distinguish the hosts.
fn address_of(atom: u32) -> IpAddr {
    let [high, low] = [(atom >> 16) as u16, atom as u16];
    IpAddr::V6(Ipv6Addr::new(0x2001, 0x0db8, high, low, 0, 0, 0, 1))
}

impl Coordination {
    /// Returns the group number of each atom. Groups are numbered from 0 in the order of atoms.
    fn grouped(&self, grouping: &Grouping) -> Vec<Option<u32>> {
        let mut known: Vec<GroupId> = Vec::new();
        let mut number = |group: GroupId| {
            let at = known.iter().position(|it| *it == group).unwrap_or_else(|| {
                known.push(group);
                known.len() - 1
            });
            at as u32
        };
        (0..self.groups.len())
            .map(|atom| grouping.group_of(address_of(atom as u32)).map(&mut number))
            .collect()
    }
}

impl Island {
    /// Creates the coordinations of a network.
    pub(super) fn coordinate(&mut self, network: &Network) -> Result<(), SimError> {
        let mut number_of = vec![NONE; network.flows.len()];
        for (number, sender) in self.senders.iter().enumerate() {
            number_of[sender.flow as usize] = number as u32;
        }
        for (index, spec) in network.coordinations.iter().enumerate() {
            self.coordinate_one(network, index as u32, spec, &number_of)?;
        }
        Ok(())
    }

    fn coordinate_one(
        &mut self,
        network: &Network,
        index: u32,
        spec: &CoordinationSpec,
        number_of: &[u32],
    ) -> Result<(), SimError> {
        let bad = |flow: u32, why: &'static str| SimError::BadCoordination { flow, why };
        let mut host = None;
        let mut groups: Vec<Group> = Vec::new();
        let mut protocols: Vec<faircast_unicast::tcp::Config> = Vec::new();
        let mut unit = 0.0;
        for &(flow, group) in &spec.flows {
            let Some(Flow::Unicast(unicast)) = network.flows.get(flow.0 as usize) else {
                return Err(bad(flow.0, "it is no unicast flow of this network"));
            };
            if *host.get_or_insert(unicast.from) != unicast.from {
                return Err(bad(
                    flow.0,
                    "it begins at another host than the first one; coordination is one host's",
                ));
            }
            let number = number_of[flow.0 as usize];
            if self.senders[number as usize].membership != NONE {
                return Err(bad(flow.0, "it is coordinated already"));
            }
            match unicast.protocol {
                UnicastProtocol::Controlled(Protocol::Tcp(config)) => {
                    protocols.push(config);
                    unit = f64::from(unicast.packet_size);
                }
                UnicastProtocol::Controlled(_) => return Err(bad(flow.0, "it is neither TCP nor datagrams")),
                UnicastProtocol::Datagrams { .. }
                    if matches!(spec.way, Way::Windows(_)) && spec.groups == Groups::Given => {}
                UnicastProtocol::Datagrams { .. } if spec.groups != Groups::Given => {
                    return Err(bad(flow.0, "measured groups have no place for datagrams"));
                }
                UnicastProtocol::Datagrams { .. } => {
                    return Err(bad(flow.0, "this way of coordination has no place for datagrams"));
                }
            }
            if groups.len() <= group as usize {
                groups.resize_with(group as usize + 1, || Group {
                    id: None,
                    members: Vec::new(),
                    sockets: false,
                });
            }
            let it = &mut groups[group as usize];
            let membership = self.memberships.len() as u32;
            self.senders[number as usize].membership = membership;
            self.memberships.push(Membership {
                coordination: index,
                group,
                place: it.members.len() as u32,
                sender: number,
                member: None,
                socket: None,
                times: SendTimes::default(),
                left: 0,
                dropped: 0,
                wakes: NEVER,
            });
            it.members.push(membership);
        }
        if unit == 0.0 {
            unit = 1000.0;
        }
        let way = match spec.way {
            Way::Windows(config) => {
                let mut coordinator = Coordinator::new(config);
                let reported = if spec.groups == Groups::Given { &mut groups[..] } else { &mut [] };
                for (at, group) in reported.iter_mut().enumerate() {
                    let id =
                        coordinator.open_group().map_err(|_| bad(at as u32, "there are too many groups"))?;
                    group.id = Some(id);
                }
                Sharing::Windows(Box::new(coordinator))
            }
            Way::Macroflow(_) if spec.groups != Groups::Given => {
                let first = spec.flows.first().map_or(0, |it| it.0.0);
                return Err(bad(
                    first,
                    "one window for all cannot be measured apart; only windows of their own can",
                ));
            }
            Way::Macroflow(config) => {
                let Some(tcp) = protocols.first() else {
                    return Err(bad(spec.flows.first().map_or(0, |it| it.0.0), "no flow is TCP"));
                };
                if let Some(at) = protocols.iter().position(|other| other != tcp) {
                    let flow = spec.flows[at].0.0;
                    return Err(bad(
                        flow,
                        "its TCP is another one than the first flow's; a macroflow has one",
                    ));
                }
                let flows = groups.iter().map(|group| Macroflow::new(config, *tcp, group.members.len()));
                let flows = flows.collect();
                for member in groups.iter().flat_map(|group| &group.members) {
                    let sender = self.memberships[*member as usize].sender;
                    let it = &mut self.senders[sender as usize];
                    it.kind = SenderKind::Shared;
                }
                Sharing::Macroflows(flows)
            }
        };
        let grouping = match spec.groups {
            Groups::Given => None,
            Groups::Measured(config) => Some(Box::new(Grouping::new(config))),
        };
        self.coordinations.push(Coordination { way, by_slot: Vec::new(), groups, grouping, unit });
        Ok(())
    }

    /// Returns the coordinator and the membership of a flow; `None` if the flow belongs to a macroflow.
    fn coordinator(&mut self, membership: u32) -> Option<(&mut Coordinator, &mut Membership)> {
        let it = &mut self.memberships[membership as usize];
        match &mut self.coordinations[it.coordination as usize].way {
            Sharing::Windows(coordinator) => Some((coordinator, it)),
            Sharing::Macroflows(_) => None,
        }
    }

    fn macroflow(&mut self, membership: u32) -> Option<(&mut Macroflow, usize)> {
        let it = &self.memberships[membership as usize];
        match &mut self.coordinations[it.coordination as usize].way {
            Sharing::Windows(_) => None,
            Sharing::Macroflows(flows) => Some((&mut flows[it.group as usize], it.place as usize)),
        }
    }

    /// Adds an opened connection of a coordinated flow to its group. The group sets the connection's initial state.
    pub(super) fn join(&mut self, number: u32, packets: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        self.leave(number);
        if let Some((flow, place)) = self.macroflow(membership) {
            flow.open(place, packets, time(now));
            return;
        }
        let (coordination, group) = {
            let it = &self.memberships[membership as usize];
            (it.coordination, it.group)
        };
        let Island { senders, coordinations, memberships, effects, .. } = self;
        let coordination = &mut coordinations[coordination as usize];
        let id = coordination.groups[group as usize].id;
        let Sharing::Windows(coordinator) = &mut coordination.way else { return };
        let (sender, it) = (&mut senders[number as usize], &mut memberships[membership as usize]);
        match &mut sender.kind {
            SenderKind::Controlled(controlled) => {
                let Some(view) = controlled.view() else { return };
                let view = cocoon::View { has_data: true, ..view };
                let joined = match (&mut coordination.grouping, id) {
                    (Some(grouping), _) => grouping.join(coordinator, address_of(group), view, time(now)),
                    (None, Some(id)) => coordinator.join(id, view),
                    (None, None) => return,
                };
                // The group is full: the connection continues without coordination.
                let Ok(joined) = joined else { return };
                it.member = Some(joined.member);
                it.times = SendTimes::default();
                let slot = joined.member.slot();
                if coordination.by_slot.len() <= slot {
                    coordination.by_slot.resize(slot + 1, NONE);
                }
                coordination.by_slot[slot] = membership;
                if let Some(cocoon::rules::Windows { cwnd: Some(window), ssthresh: Some(threshold) }) =
                    joined.start
                {
                    let cx = &mut Cx { now: time(now), rng: &mut sender.rng, effects };
                    controlled.set_window(window, threshold, cx);
                }
            }
            SenderKind::Datagrams { .. } => {
                it.socket = id.and_then(|id| coordinator.open_socket(id).ok());
                coordination.groups[group as usize].sockets = true;
            }
            SenderKind::Shared => {}
        }
    }

    /// Removes the closed connection of a coordinated flow.
    pub(super) fn leave(&mut self, number: u32) {
        let membership = self.senders[number as usize].membership;
        if let Some((flow, place)) = self.macroflow(membership) {
            flow.close(place);
            return;
        }
        let it = &mut self.memberships[membership as usize];
        let coordination = &mut self.coordinations[it.coordination as usize];
        let Sharing::Windows(coordinator) = &mut coordination.way else { return };
        match (it.member.take(), &mut coordination.grouping) {
            (Some(member), Some(grouping)) => grouping.leave(coordinator, member),
            (Some(member), None) => coordinator.leave(member),
            (None, _) => {}
        }
        if let (Some(socket), Some(id)) = (it.socket.take(), coordination.groups[it.group as usize].id) {
            coordinator.close_socket(id, socket);
        }
    }

    /// Processes feedback for the current connection of a running, coordinated flow.
    #[cold]
    pub(super) fn coordinated_feedback(&mut self, number: u32, now: u64, feedback: &Feedback) {
        let membership = self.senders[number as usize].membership;
        if let Some((flow, place)) = self.macroflow(membership) {
            if let Feedback::Ack(ack) = feedback {
                flow.on_feedback(place, ack, time(now));
            }
            self.note_shared(number, now);
        } else {
            self.take_round_trip(number);
            let Island { senders, effects, .. } = self;
            let it = &mut senders[number as usize];
            let SenderKind::Controlled(sender) = &mut it.kind else { return };
            let before = (sender.cuts(), sender.view(), sender.round_trip());
            sender.on_feedback(feedback, &mut Cx { now: time(now), rng: &mut it.rng, effects });
            let cut = sender.cuts() != before.0;
            let marked = matches!(feedback, Feedback::Ack(ack) if ack.ece);
            self.tell(number, now, before.1, if cut { Some(marked) } else { None });
            if let (Feedback::Ack(ack), Some(view)) = (feedback, before.1) {
                let rtt = (!ack.syn).then(|| time(now).since(ack.echo));
                self.measure(number, now, view, rtt, if cut { AckResult::Lost } else { AckResult::Arrived });
            }
            self.give_round_trip(number, before.2);
            if cut {
                self.note_cuts(number, now);
            }
        }
        self.pump(number, now);
        if self.senders[number as usize].ends == Ends::Sometimes {
            self.finish_transfer(number, now);
        }
        self.settle_group(membership, now);
        self.refresh_deadline(number);
    }

    /// Reports the effect of an acknowledgement on a sender to the sender's coordinator. `cut` is `Some(true)` if a mark cut the
    /// window, and `Some(false)` if a loss did.
    fn tell(&mut self, number: u32, now: u64, before: Option<cocoon::View>, cut: Option<bool>) {
        let Some((after, before)) = self.view(number).zip(before) else { return };
        let membership = self.senders[number as usize].membership;
        let Some((coordinator, it)) = self.coordinator(membership) else { return };
        let Some(member) = it.member else { return };
        it.times.on_acknowledged(after.una);
        let after = cocoon::View { una_sent_at: it.times.of_first(), ..after };
        if let Some(marked) = cut {
            // The window and the slow-start threshold are those before the cut; the other values are current.
            let view = cocoon::View { cwnd: before.cwnd, ssthresh: before.ssthresh, ..after };
            _ = if marked {
                coordinator.on_ecn(member, view, time(now))
            } else {
                coordinator.on_loss(member, view, after.una, time(now))
            };
            let covers = coordinator.config().below == cocoon::BelowWatermark::RepairOnly;
            if covers {
                self.cover(number, after.nxt);
            }
        }
        if let Some((coordinator, _)) = self.coordinator(membership) {
            coordinator.on_ack(member, after, (after.una - before.una) as f64);
        }
    }

    /// Passes an acknowledgement and its round-trip time to the measurement of groups, and applies the resulting changes of
    /// groups. Called after the flow has processed the acknowledgement.
    #[cold]
    fn measure(&mut self, number: u32, now: u64, before: cocoon::View, rtt: Option<Span>, seen: AckResult) {
        let Some(after) = self.view(number) else { return };
        let membership = self.senders[number as usize].membership;
        let it = &self.memberships[membership as usize];
        let coordination = &mut self.coordinations[it.coordination as usize];
        let (Some(grouping), Sharing::Windows(coordinator)) =
            (&mut coordination.grouping, &mut coordination.way)
        else {
            return;
        };
        let Some(member) = it.member else { return };
        if seen == AckResult::Lost {
            grouping.on_loss(member, time(now));
        }
        let newly = after.una.saturating_sub(before.una) as f64;
        grouping.on_ack(member, rtt.filter(|_| newly > 0.0), newly, time(now));
        grouping.work(coordinator, time(now));
    }

    fn cover(&mut self, number: u32, before: u64) {
        if let SenderKind::Controlled(sender) = &mut self.senders[number as usize].kind {
            sender.cover(before);
        }
    }

    fn view(&self, number: u32) -> Option<cocoon::View> {
        match &self.senders[number as usize].kind {
            SenderKind::Controlled(sender) => sender.view(),
            SenderKind::Datagrams { .. } | SenderKind::Shared => None,
        }
    }

    /// Applies a round-trip time that other flows of the group have measured.
    fn take_round_trip(&mut self, number: u32) {
        let membership = self.senders[number as usize].membership;
        let Some((coordinator, it)) = self.coordinator(membership) else { return };
        let news = it.member.and_then(|member| coordinator.news_of_round_trip(member));
        if let (Some(news), SenderKind::Controlled(sender)) = (news, &mut self.senders[number as usize].kind)
        {
            sender.set_round_trip(news);
        }
    }

    /// Reports the flow's measured round-trip time to the group.
    #[cold]
    fn give_round_trip(&mut self, number: u32, before: Option<faircast_unicast::tcp::RttEstimate>) {
        let it = &self.senders[number as usize];
        let SenderKind::Controlled(sender) = &it.kind else { return };
        let (after, membership) = (sender.round_trip(), it.membership);
        if let Some(estimate) = after.filter(|_| after != before)
            && let Some((coordinator, it)) = self.coordinator(membership)
            && let Some(member) = it.member
        {
            coordinator.set_round_trip(member, estimate);
        }
    }

    /// Runs the timer of a coordinated flow.
    #[cold]
    pub(super) fn coordinated_timer(&mut self, number: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        if let Some((flow, _)) = self.macroflow(membership) {
            if flow.deadline().as_nanos() <= now {
                flow.on_deadline(time(now));
                for place in 0..self.group_of(membership).members.len() {
                    let member = self.group_of(membership).members[place];
                    let number = self.memberships[member as usize].sender;
                    self.note_shared(number, now);
                }
            }
            return;
        }
        let due = matches!(&self.senders[number as usize].kind,
            SenderKind::Controlled(sender) if sender.deadline().as_nanos() <= now);
        if !due {
            return;
        }
        self.take_round_trip(number);
        let Island { senders, effects, records, .. } = self;
        let it = &mut senders[number as usize];
        let SenderKind::Controlled(sender) = &mut it.kind else { return };
        let (view, before) = (sender.view(), sender.observe().timeouts);
        sender.on_deadline(&mut Cx { now: time(now), rng: &mut it.rng, effects });
        let timeouts = sender.observe().timeouts - before;
        (0..timeouts).for_each(|_| records.timeout(it.flow, now));
        self.note_cuts(number, now);
        let after = self.view(number);
        if let Some((coordinator, it)) = self.coordinator(membership)
            && let (Some(member), Some(view), Some(after)) = (it.member, view, after)
        {
            let sent_at = it.times.of_first();
            // The loss of a SYN provides no information about data packets in flight.
            let lost = timeouts > 0 && view.flight > 0.0;
            if lost {
                let view = cocoon::View { una_sent_at: sent_at, ..view };
                let own = coordinator.on_timeout(member, view, view.una, sent_at, time(now));
                // The coordinator leaves the watermark unchanged after a timeout below it, so the sender does as well.
                let covers = coordinator.config().below == cocoon::BelowWatermark::RepairOnly
                    && own != cocoon::OwnReaction::Covered;
                if covers {
                    self.cover(number, view.nxt);
                }
            }
            if let Some((coordinator, it)) = self.coordinator(membership) {
                let after = cocoon::View { una_sent_at: it.times.of_first(), ..after };
                coordinator.on_transmit(member, after);
            }
            let coordination = self.memberships[membership as usize].coordination;
            if let Some(grouping) =
                self.coordinations[coordination as usize].grouping.as_mut().filter(|_| lost)
            {
                grouping.on_loss(member, time(now));
            }
        }
    }

    fn group_of(&self, membership: u32) -> &Group {
        let it = &self.memberships[membership as usize];
        &self.coordinations[it.coordination as usize].groups[it.group as usize]
    }

    /// Records the transmission of packet `seq` of a coordinated flow.
    pub(super) fn note_departure(&mut self, number: u32, seq: u32, now: u64) {
        let Some(view) = self.view(number) else { return };
        let membership = self.senders[number as usize].membership;
        let Some((coordinator, it)) = self.coordinator(membership) else { return };
        it.times.on_sent(u64::from(seq), time(now));
        if let Some(member) = it.member {
            coordinator.on_transmit(member, cocoon::View { una_sent_at: it.times.of_first(), ..view });
        }
    }

    /// Applies the consequences of one flow's call to other flows: windows, packets, deadlines. The caller handles the flow
    /// itself.
    pub(super) fn settle_group(&mut self, membership: u32, now: u64) {
        let coordination = self.memberships[membership as usize].coordination as usize;
        loop {
            let it = &mut self.coordinations[coordination];
            let Sharing::Windows(coordinator) = &mut it.way else { break };
            let Some((member, verdict)) = coordinator.next_verdict() else { break };
            let covers = coordinator.config().below == cocoon::BelowWatermark::RepairOnly;
            let other = it.by_slot[member.slot()];
            let number = self.memberships[other as usize].sender;
            let Island { senders, effects, .. } = self;
            let it = &mut senders[number as usize];
            let SenderKind::Controlled(sender) = &mut it.kind else { continue };
            sender.obey(&verdict, &mut Cx { now: time(now), rng: &mut it.rng, effects });
            if covers {
                sender.cover(verdict.covered);
            }
            self.note_cuts(number, now);
            self.pump(number, now);
            self.refresh_deadline(number);
        }
        self.release_datagrams(membership, now);
        self.set_group_timer(membership);
    }

    /// Queues a datagram, or drops it when too many are waiting.
    pub(super) fn offer_datagram(&mut self, number: u32) {
        let (membership, size) = {
            let it = &self.senders[number as usize];
            (it.membership, f64::from(it.size))
        };
        let it = &mut self.memberships[membership as usize];
        let coordination = &mut self.coordinations[it.coordination as usize];
        let Sharing::Windows(coordinator) = &mut coordination.way else { return };
        if let (Some(socket), Some(id)) = (it.socket, coordination.groups[it.group as usize].id)
            && coordinator.offer(id, socket, size / coordination.unit) == Offered::Dropped
        {
            it.dropped += 1;
        }
    }

    /// Sends as many waiting datagrams as the virtual connection of the group permits.
    fn release_datagrams(&mut self, membership: u32, now: u64) {
        let it = &self.memberships[membership as usize];
        let (coordination, group) = (it.coordination as usize, it.group as usize);
        if !self.coordinations[coordination].groups[group].sockets {
            return;
        }
        loop {
            let it = &mut self.coordinations[coordination];
            let Sharing::Windows(coordinator) = &mut it.way else { return };
            let Some(id) = it.groups[group].id else { return };
            let Some(socket) = coordinator.next_datagram(id, time(now)) else { return };
            let mut members = it.groups[group].members.iter();
            let Some(&member) =
                members.find(|member| self.memberships[**member as usize].socket == Some(socket))
            else {
                continue;
            };
            let it = &mut self.memberships[member as usize];
            it.left += 1;
            let (number, datagram) = (it.sender, it.left);
            self.emit(number, Body::Datagram(datagram), SegmentFlags::default(), now);
        }
    }

    /// Stores the time of a group's timer in the first flow of the group.
    fn set_group_timer(&mut self, membership: u32) {
        let it = &self.memberships[membership as usize];
        let coordination = &self.coordinations[it.coordination as usize];
        let group = &coordination.groups[it.group as usize];
        let wakes = match &coordination.way {
            Sharing::Windows(coordinator) if group.sockets => {
                group.id.map_or(NEVER, |id| coordinator.datagram_at(id).as_nanos())
            }
            Sharing::Windows(_) => return,
            Sharing::Macroflows(flows) => {
                let flow = &flows[it.group as usize];
                let departure = flow.departure();
                let departure = if departure == Time::ZERO { NEVER } else { departure.as_nanos() };
                departure.min(flow.deadline().as_nanos())
            }
        };
        let first = group.members[0];
        let it = &mut self.memberships[first as usize];
        if it.wakes != wakes {
            it.wakes = wakes;
            let number = it.sender;
            self.refresh_deadline(number);
        }
    }

    /// Returns the time of the group timer that is stored in a flow.
    pub(super) fn group_timer(&self, it: &SenderAgent) -> u64 {
        if it.membership == NONE { NEVER } else { self.memberships[it.membership as usize].wakes }
    }

    /// Updates the deadline of a flow after a call of this flow or of another flow of the group.
    pub(super) fn refresh_deadline(&mut self, number: u32) {
        let wakes = self.group_timer(&self.senders[number as usize]);
        let it = &mut self.senders[number as usize];
        let deadline = sender_deadline(it).min(wakes);
        if deadline != it.deadline {
            it.deadline = deadline;
            let (host, slot) = (it.host, it.slot);
            self.set_deadline(host, slot, deadline);
        }
    }

    /// Records the cuts and timeouts that a macroflow has counted for one of its flows since the last call.
    fn note_shared(&mut self, number: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        let Some((flow, place)) = self.macroflow(membership) else { return };
        let view = flow.observe(place);
        let it = &mut self.senders[number as usize];
        let flow = it.flow;
        let (cuts, timeouts) = (it.cuts, it.rest.timeouts);
        it.cuts = view.cuts as u32;
        it.rest.timeouts = view.timeouts as u32;
        (cuts..view.cuts as u32).for_each(|_| self.records.cut(flow, now, view.rate, None));
        (timeouts..view.timeouts as u32).for_each(|_| self.records.timeout(flow, now));
    }

    /// Sends the packets that a macroflow permits.
    pub(super) fn pump_shared(&mut self, number: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        loop {
            let Some((flow, _)) = self.macroflow(membership) else { return };
            let Some((place, segment)) = flow.next(time(now)) else { return };
            let member = self.group_of(membership).members[place];
            let number = self.memberships[member as usize].sender;
            self.emit(number, Body::Segment(segment), segment.flags, now);
        }
    }

    /// Sets the total number of packets that a flow of a macroflow has to send.
    pub(super) fn supply_shared(&mut self, number: u32, packets: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        if let Some((flow, place)) = self.macroflow(membership) {
            flow.supply(place, packets, time(now));
        }
    }

    /// Returns the observable state of a flow of a macroflow.
    pub(super) fn observe_shared(&mut self, number: u32) -> faircast_unicast::SenderView {
        let membership = self.senders[number as usize].membership;
        self.macroflow(membership).map_or_else(Default::default, |(flow, place)| flow.observe(place))
    }

    /// Returns the number of acknowledged packets of this flow's connection.
    pub(super) fn shared_acked(&mut self, number: u32) -> u64 {
        let membership = self.senders[number as usize].membership;
        self.macroflow(membership).map_or(0, |(flow, place)| u64::from(flow.acked(place)))
    }

    /// Returns the outcomes of the coordinations.
    pub(super) fn coordination_outcomes(&self) -> Vec<CoordinationOutcome> {
        let outcome = |(index, it): (usize, &Coordination)| {
            let counters = match &it.way {
                Sharing::Windows(coordinator) => coordinator.counters(),
                Sharing::Macroflows(_) => cocoon::Counters::default(),
            };
            let mine = self.memberships.iter().filter(|member| member.coordination as usize == index);
            CoordinationOutcome {
                counters,
                held_back: mine.map(|member| member.dropped).sum(),
                grouping: it.grouping.as_ref().map(|grouping| grouping.counters()),
                groups: it.grouping.as_ref().map_or_else(Vec::new, |grouping| it.grouped(grouping)),
            }
        };
        self.coordinations.iter().enumerate().map(outcome).collect()
    }

    /// Returns the host of a coordination; `None` for a coordination without flows.
    pub(super) fn host_of(&self, coordination: usize) -> Option<u32> {
        let it = self.memberships.iter().find(|it| it.coordination as usize == coordination)?;
        Some(self.senders[it.sender as usize].host)
    }

    /// Removes a stopped flow from its coordination.
    pub(super) fn stop_coordinated(&mut self, number: u32, now: u64) {
        let membership = self.senders[number as usize].membership;
        if membership != NONE && self.senders[number as usize].phase == Phase::Stopped {
            self.leave(number);
            self.settle_group(membership, now);
        }
    }
}
