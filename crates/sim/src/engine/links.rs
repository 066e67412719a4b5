//! Packets and links: offers, arrivals, and changes of links.

use super::Island;
use super::agents::{SenderAgent, SessionAgent};
use super::bundles::Logged;
use super::delays::Delays;
use super::layers::{ENTRANCE, GATE};
use super::nanos::{NEVER, covers, time};
use super::routers::{ROUTED, ROUTER};
use crate::calendar::Entry;
use crate::events::Happening;
use crate::frame::{Body, Frame};
use crate::network::{Change, FlowId, LinkId};
use crate::outcome::{LinkSample, LinkTally, Tapped, TappedPacket};
use crate::routes::{ArrivalProcessing, Branch, NONE};
use faircast_aqm::{Ecn, Link, LinkSpec, LossCause, OfferResult};
use faircast_core::packet::{self, Layer, Packet};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Time};
use std::collections::VecDeque;
use std::sync::Arc;

/// State of a link during the run; one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SimLink {
    pub link: Link,
    /// The bundled branch on this link; [`NONE`] for none.
    pub bundled: u32,
    /// Number of the ring, and flags for observers in the top bits.
    ring: u32,
}

const _: () = assert!(size_of::<SimLink>() == 64);

const PROBED: u32 = 1 << 31;
const TAPPED: u32 = 1 << 30;
/// The node at which the link starts has a router.
const FILTERED: u32 = 1 << 29;
/// Losses and marks are recorded as events.
const NOTED: u32 = 1 << 28;
/// The scenario changes the link, so a packet may arrive earlier than computed.
const CHANGES: u32 = 1 << 27;
/// Counts of the link are pending at later moments.
const COUNTED: u32 = 1 << 26;
const RING: u32 = COUNTED - 1;

/// Packets in transit on a link, with their arrival times. Each arrival is a separate event.
#[derive(Debug)]
pub struct Ring {
    /// Time of the link's first entry in the calendar.
    scheduled: u64,
    /// The next packet to arrive; later packets are in `rest`.
    first: Option<(u64, Frame)>,
    rest: VecDeque<(u64, Frame)>,
}

/// Samples of a link.
#[derive(Debug)]
pub struct Probe {
    pub next: u64,
    pub every: u64,
    pub samples: Vec<LinkSample>,
    /// The link's rate at each sample.
    pub rates: Vec<Rate>,
    /// Delays of packets.
    pub delays: Delays,
}

impl SimLink {
    pub const fn new(link: Link) -> SimLink {
        SimLink { link, bundled: NONE, ring: RING }
    }

    /// Returns the place of a link of another island.
    pub fn elsewhere(spec: &Arc<LinkSpec>) -> SimLink {
        SimLink::new(Link::sharing(spec, Rng::new(0, 0)))
    }

    /// Whether packets that enter the link need additional processing.
    pub const fn is_watched(&self) -> bool {
        self.ring & (PROBED | TAPPED | FILTERED | NOTED | COUNTED) != 0
    }

    /// Whether pending counts are the only additional processing.
    pub const fn is_only_counted(&self) -> bool {
        self.ring & (PROBED | TAPPED | FILTERED | NOTED | COUNTED) == COUNTED
    }

    /// Whether losses, marks, taps or delays of packets are recorded.
    pub const fn is_noted(&self) -> bool {
        self.ring & (TAPPED | NOTED | PROBED) != 0
    }

    pub const fn is_probed(&self) -> bool {
        self.ring & PROBED != 0
    }

    pub const fn is_filtered(&self) -> bool {
        self.ring & FILTERED != 0
    }

    pub const fn is_tapped(&self) -> bool {
        self.ring & TAPPED != 0
    }

    /// Whether losses, marks or taps of packets are recorded.
    pub const fn is_recorded(&self) -> bool {
        self.ring & (TAPPED | NOTED) != 0
    }

    /// Returns the number of the ring for packets whose arrivals are separate events; `None` if the link has not needed a ring
    /// yet.
    pub const fn ring_number(&self) -> Option<usize> {
        match self.ring & RING {
            RING => None,
            number => Some(number as usize),
        }
    }

    pub fn watch_by_probe(&mut self) {
        self.ring |= PROBED;
    }

    pub fn watch_by_tap(&mut self) {
        self.ring |= TAPPED;
    }

    pub fn watch_for_moments(&mut self) {
        self.ring |= COUNTED;
    }

    pub const fn is_counted(&self) -> bool {
        self.ring & COUNTED != 0
    }

    /// Whether samples or counts may be pending.
    pub const fn is_sampled(&self) -> bool {
        self.ring & (PROBED | COUNTED) != 0
    }

    /// Ends the counting after the last moment.
    pub fn end_count(&mut self) {
        self.ring &= !COUNTED;
    }

    /// Notes that arrivals may become earlier than computed.
    pub fn expect_changes(&mut self) {
        self.ring |= CHANGES;
    }

    pub const fn may_change(&self) -> bool {
        self.ring & CHANGES != 0
    }

    pub fn watch_for_events(&mut self) {
        self.ring |= NOTED;
    }

    pub fn filter(&mut self) {
        self.ring |= FILTERED;
    }
}

impl Ring {
    /// Returns the next packet to arrive.
    pub fn next(&self) -> Option<&Frame> {
        self.first.as_ref().map(|(_, frame)| frame)
    }

    /// Returns the packet after the next one.
    pub fn second(&self) -> Option<&(u64, Frame)> {
        self.rest.front()
    }

    fn push(&mut self, at: u64, frame: Frame) {
        if self.first.is_none() {
            self.first = Some((at, frame));
        } else {
            self.rest.push_back((at, frame));
        }
    }

    fn iter_mut(&mut self) -> impl Iterator<Item = &mut (u64, Frame)> {
        self.first.iter_mut().chain(&mut self.rest)
    }
}

impl Probe {
    /// Takes the samples up to `now`. Called before an event of the link at `now`.
    fn sample(&mut self, link: &Link, now: u64) {
        while self.next <= now {
            let at = time(self.next);
            let (waiting, waiting_bytes) = link.waiting(at);
            let departed_bytes = link.departed_bytes(at);
            let counts = link.counts();
            self.samples.push(LinkSample { at, waiting, waiting_bytes, departed_bytes, counts });
            self.rates.push(link.rate());
            self.next = self.next.saturating_add(self.every);
        }
    }
}

/// The counts of links at the counted moments.
#[derive(Debug, Default)]
pub struct LinkMoments {
    /// By link: number of moments at which the link was counted.
    pub(super) passed: Box<[u32]>,
    /// Counts at all moments of the first link, then of the second.
    pub tallies: Vec<LinkTally>,
}

impl LinkMoments {
    /// Reserves memory for the counts of this number of links and moments.
    pub fn new(links: usize, moments: usize) -> LinkMoments {
        let passed = vec![0; if moments == 0 { 0 } else { links }].into_boxed_slice();
        LinkMoments { passed, tallies: vec![LinkTally::default(); links * moments] }
    }

    /// Takes the counts of a link at this number of moments from another part of the network.
    pub fn take_link(&mut self, other: &mut LinkMoments, link: u32, moments: usize) {
        if let Some(passed) = self.passed.get_mut(link as usize) {
            *passed = other.passed[link as usize];
            let range = link as usize * moments..(link as usize + 1) * moments;
            self.tallies[range.clone()].copy_from_slice(&other.tallies[range]);
        }
    }
}

impl Island {
    /// Offers a packet to the link of its hop at `now`.
    pub(super) fn offer_hop(&mut self, now: u64, frame: Frame) {
        self.offer_hops(now, frame, false);
    }

    /// Offers a packet that was sent by the router at the start of the link, so the packet does not pass this router.
    #[cold]
    pub(super) fn offer_hop_past_router(&mut self, now: u64, frame: Frame) {
        self.offer_hops(now, frame, true);
    }

    #[inline]
    fn offer_hops(&mut self, mut now: u64, mut frame: Frame, mut is_past_router: bool) {
        loop {
            let hop = self.hops[frame.at as usize];
            self.catch_up(hop.link);
            let link = &mut self.links[hop.link as usize];
            let fate = if !link.is_watched() {
                link.link.offer(time(now), frame.size, frame.flow, frame.ecn_bits())
            } else {
                let passes = is_past_router || !link.is_filtered();
                if !passes && !self.lets_through(hop.link, now, &mut frame) {
                    return;
                }
                is_past_router = false;
                self.offer_watched(hop.link, now, &frame)
            };
            let (at, marked) = match fate {
                OfferResult::Arrives { at, marked } => (at.as_nanos(), marked),
                OfferResult::Queued(ticket) => return self.wait(hop.link, now, frame, ticket),
                OfferResult::Lost(_) => return self.lose(now, &frame),
            };
            frame.marked |= marked;
            if at > self.until {
                return self.keep_late(hop.link, at, frame);
            }
            self.traversals += 1;
            match hop.then {
                ArrivalProcessing::Event => return self.enqueue(hop.link, at, frame),
                ArrivalProcessing::Inbox(lane) => {
                    frame.at = hop.next;
                    return self.drop_in(lane, hop.link, at, frame);
                }
                ArrivalProcessing::Border(island) => return self.cross(island, hop.link, at, frame),
                ArrivalProcessing::AtOnce if hop.next == NONE => return self.deliver(at, &frame),
                ArrivalProcessing::AtOnce => (frame.at, now) = (hop.next, at),
            }
        }
    }

    /// Offers a packet to a watched link.
    #[inline(never)]
    fn offer_watched(&mut self, link: u32, now: u64, frame: &Frame) -> OfferResult {
        if self.links[link as usize].is_sampled() {
            self.sample_link(link, now);
        }
        let it = &mut self.links[link as usize];
        let fate = it.link.offer(time(now), frame.size, frame.flow, frame.ecn_bits());
        if it.is_noted() {
            self.record_frame(link, now, frame, fate);
        }
        fate
    }

    /// Offers a session's data to a link.
    #[inline]
    pub(super) fn offer_data(&mut self, link: u32, session: u32, packet: &Logged) -> OfferResult {
        let &Logged { at: now, size, capable, .. } = packet;
        if self.links[link as usize].is_watched() {
            self.sample_link(link, now);
        }
        let it = &mut self.links[link as usize];
        let fate = it.link.offer(time(now), size, session, capable);
        if it.is_noted() {
            self.record_data(link, session, packet, fate);
        }
        fate
    }

    /// Returns the arrival time of a packet and whether it was marked; `None` if it does not arrive within the run.
    #[inline]
    pub(super) fn carried(&mut self, fate: OfferResult) -> Option<(u64, bool)> {
        let OfferResult::Arrives { at, marked } = fate else { return None };
        let at = at.as_nanos();
        if at > self.until {
            return None;
        }
        self.traversals += 1;
        Some((at, marked))
    }

    /// Sends a session's data over these branches. `slot` is the index of the data in the store, once it is stored.
    pub(super) fn fan_out(
        &mut self,
        branches: (u32, u32),
        bundle: u32,
        packet: &Logged,
        slot: &mut Option<u32>,
    ) {
        if bundle != NONE {
            if bundle & ROUTED != 0 {
                return self.route(bundle & !ROUTED, branches, packet, slot);
            }
            return self.log(bundle, *packet);
        }
        for number in branches.0..branches.1 {
            self.offer_branch(number, packet, slot);
        }
    }

    /// Offers a session's data to the link of a branch.
    pub(super) fn offer_branch(&mut self, number: u32, packet: &Logged, slot: &mut Option<u32>) {
        let branch = &self.branches[number as usize];
        let (link, session, then, children) = (branch.link, branch.session, branch.then, branch.children);
        if branch.active.is_some() && !self.flows_over(number, packet.at) {
            return;
        }
        if branch.gates != NONE && !self.gates.is_open(branch.gates + u32::from(packet.layer.0)) {
            return;
        }
        self.catch_up(link);
        let fate = self.offer_data(link, session, packet);
        if let OfferResult::Queued(ticket) = fate {
            let frame = self.hold(session, number, packet, slot);
            return self.wait(link, packet.at, frame, ticket);
        }
        let Some((at, marked)) = self.carried(fate) else {
            if let OfferResult::Arrives { at, marked } = fate {
                self.keep_late_data(at, marked, number, packet, slot);
            }
            return;
        };
        let marked = packet.marked || marked;
        if then == ArrivalProcessing::AtOnce {
            return self.arrive_at_branch(number, &Logged { at, marked, ..*packet }, slot);
        }
        let mut then = then;
        if let ArrivalProcessing::Border(border) = then {
            let Some(here) = self.cross_branch(border, number, &Logged { at, marked, ..*packet }) else {
                return;
            };
            then = here;
        }
        let slot = *slot.get_or_insert_with(|| self.store.keep(&packet.data, packet.layer));
        let mut frame = Frame { marked, ..Frame::of_data(session, number, packet, slot) };
        if then == ArrivalProcessing::Event {
            self.store.hold(slot);
            return self.enqueue(link, at, frame);
        }
        for child in children.0..children.1 {
            self.store.hold(slot);
            frame.at = child;
            self.drop_in(self.branches[child as usize].lane, link, at, frame);
        }
    }

    /// Stores a session's data that will wait in the link of this branch, and returns its frame.
    #[cold]
    fn hold(&mut self, session: u32, number: u32, packet: &Logged, slot: &mut Option<u32>) -> Frame {
        let slot = *slot.get_or_insert_with(|| self.store.keep(&packet.data, packet.layer));
        self.store.hold(slot);
        Frame::of_data(session, number, packet, slot)
    }

    /// Processes a session's data that arrives at the end of a branch.
    fn arrive_at_branch(&mut self, number: u32, packet: &Logged, slot: &mut Option<u32>) {
        let branch = &self.branches[number as usize];
        let (session, member, children, bundle) =
            (branch.session, branch.member, branch.children, branch.bundle);
        if member != NONE && branch.gates != NONE {
            self.deliver_gated(session, member, packet);
        } else if member != NONE {
            self.deliver_data(session, member, packet.at, &packet.data, packet.size, packet.marked);
        }
        if children.0 < children.1 {
            self.fan_out(children, bundle, packet, slot);
        }
    }

    /// Whether the branch carries packets at `at`.
    pub(super) fn flows_over(&self, branch: u32, at: u64) -> bool {
        let active = &self.branches[branch as usize].active;
        active.as_ref().is_none_or(|spans| covers(spans, at))
    }

    /// Takes the samples and counts of a link up to `now`. Called before an event of the link at `now`.
    #[cold]
    pub(super) fn sample_link(&mut self, link: u32, now: u64) {
        if self.links[link as usize].is_counted() {
            self.count_link(link, now);
        }
        if let Some(probe) = self.probes.get_mut(&link) {
            probe.sample(&self.links[link as usize].link, now);
        }
    }

    /// Records a packet's delay on a probed link, if the link computes arrivals when packets are offered.
    #[cold]
    fn note_delay(&mut self, link: u32, now: u64, fate: OfferResult) {
        let OfferResult::Arrives { at, .. } = fate else { return };
        let may_change = self.links[link as usize].may_change();
        let Some(probe) = self.probes.get_mut(&link) else { return };
        match may_change {
            true => probe.delays.expect(now, at.as_nanos()),
            false => probe.delays.note(now, at.as_nanos()),
        }
    }

    /// Stores a packet that would arrive after the end of the run. A link that becomes faster may deliver the packet before the
    /// end; if the link cannot change, the packet is released.
    #[cold]
    pub(super) fn keep_late(&mut self, link: u32, at: u64, frame: Frame) {
        if self.links[link as usize].may_change() {
            self.enqueue(link, at, frame);
        } else if let Some(slot) = frame.body.slot() {
            self.store.release(slot);
        }
    }

    /// Stores a session's data that would arrive after the end of the run, if the link may change.
    #[cold]
    fn keep_late_data(
        &mut self,
        at: Time,
        marked: bool,
        number: u32,
        packet: &Logged,
        slot: &mut Option<u32>,
    ) {
        let &Branch { link, session, .. } = &self.branches[number as usize];
        if self.links[link as usize].may_change() {
            let mut frame = self.hold(session, number, packet, slot);
            frame.marked |= marked;
            self.keep_late(link, at.as_nanos(), frame);
        }
    }

    /// Handles the loss of a packet on a link between two hops.
    fn lose(&mut self, now: u64, frame: &Frame) {
        self.note_loss(now, frame);
        if let Body::Direct { slot, .. } = frame.body {
            self.store.release(slot);
        }
    }

    /// Schedules an event for the arrival of the packet that the link accepted last.
    pub(super) fn enqueue(&mut self, link: u32, at: u64, frame: Frame) {
        self.enqueue_ranked(link, at, frame, Link::rank);
    }

    /// Schedules an event for the arrival of a packet, whose rank `rank` returns.
    #[inline]
    pub(super) fn enqueue_ranked(
        &mut self,
        link: u32,
        at: u64,
        mut frame: Frame,
        rank: impl FnOnce(&Link) -> u8,
    ) {
        if self.links[link as usize].ring & RING == RING {
            self.put_up_ring(link);
        }
        let it = &self.links[link as usize];
        frame.rank = rank(&it.link);
        let ring = &mut self.rings[(it.ring & RING) as usize];
        ring.push(at, frame);
        if ring.scheduled == NEVER {
            ring.scheduled = at;
            self.calendar.push(Entry::arrival(at, link, frame.rank));
        }
    }

    #[cold]
    pub(super) fn put_up_ring(&mut self, link: u32) {
        let it = &mut self.links[link as usize];
        it.ring = (it.ring & !RING) | self.rings.len() as u32;
        self.rings.push(Ring { scheduled: NEVER, first: None, rest: VecDeque::with_capacity(4) });
    }

    fn ring(&mut self, link: u32) -> Option<&mut Ring> {
        self.rings.get_mut((self.links[link as usize].ring & RING) as usize)
    }

    /// Delivers the packet that arrives at the end of a link at `now`. Over a link of unlimited rate, several packets arrive in the
    /// same nanosecond; those of other links may come between them.
    pub(super) fn arrive(&mut self, link: u32, now: u64) {
        if self.ring(link).is_none_or(|ring| ring.scheduled != now) {
            return; // the link's packets were moved or lost
        }
        // Copies the packet from the ring once: an intermediate `Option` would cost another copy.
        if let Some(ring) = self.ring(link)
            && let Some((at, frame)) = ring.first
            && at <= now
        {
            ring.first = ring.rest.pop_front();
            self.come_out(now, frame);
        }
        self.schedule_link(link);
    }

    fn schedule_link(&mut self, link: u32) {
        let Some(ring) = self.ring(link) else { return };
        let (at, rank) = ring.first.map_or((NEVER, 0), |(at, frame)| (at, frame.rank));
        ring.scheduled = at;
        if at != NEVER {
            self.calendar.push(Entry::arrival(at, link, rank));
        }
    }

    /// Processes a packet at the end of its hop or branch. Inlined, because a call would cost another copy.
    #[inline(always)]
    pub(super) fn come_out(&mut self, now: u64, mut frame: Frame) {
        if let Body::Data(slot) = frame.body {
            let packet = frame.logged(now, self.store.get(slot));
            self.arrive_at_branch(frame.at, &packet, &mut Some(slot));
            self.store.release(slot);
            return;
        }
        match self.hops[frame.at as usize].next {
            NONE => self.deliver(now, &frame),
            next => {
                frame.at = next;
                self.offer_hop(now, frame);
            }
        }
    }

    /// Carries out a change of the scenario.
    pub(super) fn change(&mut self, number: u32, now: u64) {
        if number & (GATE | ENTRANCE) == 0 && number & ROUTER != 0 {
            return self.router_timer(number & !ROUTER, now);
        }
        if number & (GATE | ENTRANCE) != 0 {
            return self.turn(number, now);
        }
        let (_, LinkId(link), change) = self.changes[number as usize];
        self.sample_link(link, now);
        if let (Some(probe), Change::Down) = (self.probes.get_mut(&link), &change) {
            probe.delays.settle(now);
            probe.delays.forget();
        }
        self.change_link(link, now, change);
        if self.links[link as usize].link.queues() {
            self.take_dequeued(link, now);
        }
    }

    fn change_link(&mut self, link: u32, now: u64, change: Change) {
        let it = &mut self.links[link as usize].link;
        match change {
            Change::Delay(delay) => {
                it.set_delay(time(now), delay);
                if let Some(probe) = self.probes.get_mut(&link) {
                    probe.delays.propagation = delay.as_nanos();
                }
            }
            Change::Loss(loss) => it.set_loss(loss),
            Change::Up => it.set_up(),
            Change::Rate(rate) => {
                let shift = it.set_rate(time(now), rate);
                if let Some(probe) = self.probes.get_mut(&link) {
                    probe.delays.settle(now);
                    probe.delays.shift(shift.moves.iter().map(|(old, new)| (old.as_nanos(), new.as_nanos())));
                }
                let mut moves = shift.moves.iter().peekable();
                let until = self.until;
                let Some(ring) = self.ring(link) else { return };
                let (mut before, mut after) = (0, 0);
                for (at, _) in ring.iter_mut() {
                    while moves.next_if(|(old, _)| old.as_nanos() < *at).is_some() {}
                    if let Some((_, new)) = moves.next_if(|(old, _)| old.as_nanos() == *at) {
                        before += u64::from(*at <= until);
                        *at = new.as_nanos();
                        after += u64::from(*at <= until);
                    }
                }
                // Packets that now arrive after the end were already counted as carried.
                self.traversals += u64::saturating_sub(after, before);
                self.schedule_link(link);
            }
            Change::Down => {
                let kept = it.set_down(time(now)).kept_until.as_nanos();
                let Some(ring) = self.ring(link) else { return };
                let mut packets: VecDeque<_> = ring.first.take().into_iter().collect();
                packets.append(&mut ring.rest);
                packets.make_contiguous();
                let (stay, lost) =
                    packets.as_slices().0.split_at(packets.partition_point(|(at, _)| *at <= kept));
                stay.iter().for_each(|(at, frame)| ring.push(*at, *frame));
                for (_, frame) in lost {
                    self.note_loss(now, frame);
                    if let Some(slot) = frame.body.slot() {
                        self.store.release(slot);
                    }
                    let flow = flow_of(&self.sessions, &self.senders, frame.flow);
                    let cause = LossCause::Down;
                    self.records.note(now, Happening::Lost { link: LinkId(link), flow, cause });
                }
                self.schedule_link(link);
            }
        }
    }

    fn tapped(&self, frame: &Frame) -> TappedPacket {
        match frame.body {
            Body::Report(report) => {
                let session = &self.sessions[frame.flow as usize];
                let body = packet::Body::Report(report);
                TappedPacket::Session(Packet {
                    session: session.id,
                    layer: report.layer,
                    size: frame.size,
                    body,
                })
            }
            Body::Segment(segment) => TappedPacket::Segment(segment),
            Body::Feedback(feedback) => TappedPacket::Feedback(feedback),
            Body::Datagram(number) => TappedPacket::Datagram(number),
            Body::Order(order) => {
                let session = self.sessions[frame.flow as usize].id;
                let body = packet::Body::Order(order);
                TappedPacket::Session(Packet { session, layer: Layer(0), size: frame.size, body })
            }
            Body::Data(slot) | Body::Direct { slot, .. } => {
                let session = &self.sessions[frame.flow as usize];
                let (data, layer) = self.store.get(slot);
                let body = packet::Body::Data(data);
                TappedPacket::Session(Packet { session: session.id, layer, size: frame.size, body })
            }
        }
    }

    #[cold]
    fn record_frame(&mut self, link: u32, now: u64, frame: &Frame, fate: OfferResult) {
        self.note_delay(link, now, fate);
        if !self.links[link as usize].is_recorded() {
            return;
        }
        self.note_fate(link, now, frame.flow, fate);
        if self.links[link as usize].is_tapped() {
            let what = self.tapped(frame);
            self.tap(link, now, (frame.flow, frame.size, frame.ecn_bits()), what, fate);
        }
    }

    /// Records a loss or a mark as an event.
    pub(super) fn note_fate(&mut self, link: u32, now: u64, number: u32, fate: OfferResult) {
        let flow = flow_of(&self.sessions, &self.senders, number);
        let link = LinkId(link);
        match fate {
            OfferResult::Lost(cause) => self.records.note(now, Happening::Lost { link, flow, cause }),
            OfferResult::Arrives { marked: true, .. } => {
                self.records.note(now, Happening::Marked { link, flow })
            }
            OfferResult::Arrives { .. } | OfferResult::Queued(_) => {}
        }
    }

    #[cold]
    fn record_data(&mut self, link: u32, session: u32, packet: &Logged, fate: OfferResult) {
        self.note_delay(link, packet.at, fate);
        if !self.links[link as usize].is_recorded() {
            return;
        }
        self.note_fate(link, packet.at, session, fate);
        if !self.links[link as usize].is_tapped() {
            return;
        }
        let &Logged { at, data, size, layer, marked, capable } = packet;
        let ecn = if marked { Ecn::Ce } else { capable.into() };
        let id = self.sessions[session as usize].id;
        let body = packet::Body::Data(data);
        let what = TappedPacket::Session(Packet { session: id, layer, size, body });
        self.tap(link, at, (session, size, ecn), what, fate);
    }

    #[cold]
    fn tap(
        &mut self,
        link: u32,
        now: u64,
        (number, size, ecn): (u32, u16, Ecn),
        what: TappedPacket,
        fate: OfferResult,
    ) {
        let flow = flow_of(&self.sessions, &self.senders, number);
        let (ecn, lost) = match fate {
            OfferResult::Arrives { marked: true, .. } => (Ecn::Ce, None),
            OfferResult::Arrives { .. } | OfferResult::Queued(_) => (ecn, None),
            OfferResult::Lost(cause) => (ecn, Some(cause)),
        };
        self.taps.push(Tapped { at: time(now), link: LinkId(link), flow, size, what, ecn, lost });
    }
}

/// Returns the owner of a packet, by the number in its frame.
fn flow_of(sessions: &[SessionAgent], senders: &[SenderAgent], number: u32) -> FlowId {
    FlowId(match number & UNICAST {
        0 => sessions[number as usize].flow,
        _ => senders[(number & !UNICAST) as usize].flow,
    })
}

/// Bit in the flow numbers of unicast frames. With it, queues distinguish unicast flows from sessions.
pub const UNICAST: u32 = 1 << 31;
