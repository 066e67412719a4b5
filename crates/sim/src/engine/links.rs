//! Packets and links: offering, arriving, changing.

use super::Engine;
use super::agents::{NEVER, time};
use super::bundles::Logged;
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::network::{Change, FlowId, LinkId};
use crate::outcome::{LinkSample, Tapped, TappedPacket};
use crate::routes::NONE;
use faircast_aqm::{Fate, Link, LossCause};
use faircast_core::packet::{self, Data, Layer, Packet};
use std::collections::VecDeque;

/// A link while it runs.
#[derive(Debug)]
pub struct SimLink {
    pub link: Link,
    /// The bundled branch on this link; [`NONE`] for none.
    pub bundled: u32,
    pub watched: Watched,
    /// The link's first entry in the calendar.
    pub scheduled: u64,
    /// Packets whose arrival is an event, with their arrivals.
    pub ring: VecDeque<(u64, Frame)>,
    pub probe: Option<Box<Probe>>,
}

/// Whether anybody looks at the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    No,
    Probed,
    Tapped,
    Both,
}

/// Samples of a link.
#[derive(Debug)]
pub struct Probe {
    pub next: u64,
    pub every: u64,
    pub samples: Vec<LinkSample>,
}

impl SimLink {
    /// Take the samples that are due before something happens at `now`.
    pub fn sample(&mut self, now: u64) {
        let Some(probe) = &mut self.probe else { return };
        while probe.next <= now {
            let at = time(probe.next);
            let (waiting, waiting_bytes) = self.link.waiting(at);
            let departed_bytes = self.link.departed_bytes(at);
            let counts = self.link.counts();
            probe.samples.push(LinkSample { at, waiting, waiting_bytes, departed_bytes, counts });
            probe.next = probe.next.saturating_add(probe.every);
        }
    }
}

impl Engine {
    /// A packet goes into its hop's link now.
    pub(super) fn offer_hop(&mut self, now: u64, mut frame: Frame) {
        loop {
            let hop = self.hops[frame.at as usize];
            self.catch_up(hop.link);
            let link = &mut self.links[hop.link as usize];
            if link.watched != Watched::No {
                link.sample(now);
            }
            let fate = link.link.offer(time(now), frame.size, frame.flow, frame.ecn_capable);
            if matches!(link.watched, Watched::Tapped | Watched::Both) {
                let what = self.tapped(&frame);
                self.tap(hop.link, now, frame.flow, frame.size, what, fate);
            }
            let Fate::Arrives { at, marked } = fate else { return };
            let at = at.as_nanos();
            frame.marked |= marked;
            if at > self.until {
                return;
            }
            self.traversals += 1;
            if !hop.eager {
                self.enqueue(hop.link, at, frame);
                return;
            }
            if hop.next == NONE {
                self.deliver(at, &frame);
                return;
            }
            frame.at = hop.next;
            return self.offer_hop(at, frame);
        }
    }

    /// A session's data goes into a link; when it arrives and whether it was marked.
    #[inline]
    pub(super) fn offer_data(
        &mut self,
        link: u32,
        session: u32,
        now: u64,
        size: u16,
        data: &Data,
    ) -> Option<(u64, bool)> {
        let it = &mut self.links[link as usize];
        if it.watched != Watched::No {
            it.sample(now);
        }
        let fate = it.link.offer(time(now), size, session, false);
        if matches!(it.watched, Watched::Tapped | Watched::Both) {
            self.tap_data(link, session, now, size, data, fate);
        }
        let Fate::Arrives { at, marked } = fate else { return None };
        let at = at.as_nanos();
        if at > self.until {
            return None;
        }
        self.traversals += 1;
        Some((at, marked))
    }

    /// A session's data leaves a node over these branches. `slot` is its place in the store, once it has one.
    pub(super) fn fan_out(
        &mut self,
        branches: (u32, u32),
        bundle: u32,
        packet: &Logged,
        slot: &mut Option<u32>,
    ) {
        if bundle != NONE {
            return self.log(bundle, *packet);
        }
        for number in branches.0..branches.1 {
            let branch = &self.branches[number as usize];
            let (link, session, eager) = (branch.link, branch.session, branch.eager);
            if branch.active.is_some() && !self.flows_over(number, packet.at) {
                continue;
            }
            self.catch_up(link);
            let Some((at, marked)) = self.offer_data(link, session, packet.at, packet.size, &packet.data)
            else {
                continue;
            };
            let arrived = Logged { at, marked: packet.marked || marked, ..*packet };
            if eager {
                self.arrive_at_branch(number, &arrived, slot);
            } else {
                let slot = *slot.get_or_insert_with(|| self.store.keep(&packet.data));
                self.store.hold(slot);
                let frame = Frame {
                    flow: session,
                    at: number,
                    size: packet.size,
                    generation: 0,
                    ecn_capable: false,
                    marked: arrived.marked,
                    body: Body::Data(slot),
                };
                self.enqueue(link, at, frame);
            }
        }
    }

    /// A session's data comes out of a branch.
    fn arrive_at_branch(&mut self, number: u32, packet: &Logged, slot: &mut Option<u32>) {
        let branch = &self.branches[number as usize];
        let (session, member, children, bundle) =
            (branch.session, branch.member, branch.children, branch.bundle);
        if member != NONE {
            self.deliver_data(session, member, packet.at, &packet.data, packet.size, packet.marked);
        }
        if children.0 < children.1 {
            self.fan_out(children, bundle, packet, slot);
        }
    }

    /// Whether the branch carries packets at this moment.
    pub(super) fn flows_over(&self, branch: u32, at: u64) -> bool {
        let active = &self.branches[branch as usize].active;
        active.as_ref().is_none_or(|spans| spans.iter().any(|&(from, to)| (from..to).contains(&at)))
    }

    /// The packet's arrival will be an event.
    fn enqueue(&mut self, link: u32, at: u64, frame: Frame) {
        let it = &mut self.links[link as usize];
        it.ring.push_back((at, frame));
        if it.scheduled == NEVER {
            it.scheduled = at;
            self.calendar.push(Entry::new(at, Class::Arrival, link));
        }
    }

    /// What comes out of a link now.
    pub(super) fn arrive(&mut self, link: u32, now: u64) {
        if self.links[link as usize].scheduled != now {
            return; // the link's packets were moved or lost
        }
        while let Some((_, frame)) = self.links[link as usize].ring.pop_front_if_due(now) {
            self.come_out(now, frame);
        }
        self.schedule_link(link);
    }

    fn schedule_link(&mut self, link: u32) {
        let it = &mut self.links[link as usize];
        it.scheduled = it.ring.front().map_or(NEVER, |(at, _)| *at);
        if it.scheduled != NEVER {
            self.calendar.push(Entry::new(it.scheduled, Class::Arrival, link));
        }
    }

    fn come_out(&mut self, now: u64, mut frame: Frame) {
        if let Body::Data(slot) = frame.body {
            let data = self.store.get(slot);
            let packet = Logged { at: now, data, size: frame.size, marked: frame.marked };
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

    /// A change of the scenario takes place.
    pub(super) fn change(&mut self, number: u32, now: u64) {
        let (_, LinkId(link), change) = self.changes[number as usize];
        let it = &mut self.links[link as usize];
        it.sample(now);
        match change {
            Change::Delay(delay) => it.link.set_delay(time(now), delay),
            Change::Loss(loss) => it.link.set_loss(loss),
            Change::Up => it.link.set_up(),
            Change::Rate(rate) => {
                let shift = it.link.set_rate(time(now), rate);
                let mut moves = shift.moves.iter().peekable();
                for (at, _) in &mut it.ring {
                    while moves.next_if(|(old, _)| old.as_nanos() < *at).is_some() {}
                    if let Some((_, new)) = moves.next_if(|(old, _)| old.as_nanos() == *at) {
                        *at = new.as_nanos();
                    }
                }
                self.schedule_link(link);
            }
            Change::Down => {
                let kept = it.link.set_down(time(now)).kept_until.as_nanos();
                let lost = it.ring.iter().filter(|(at, _)| *at > kept);
                for slot in lost.filter_map(|(_, frame)| match frame.body {
                    Body::Data(slot) => Some(slot),
                    _ => None,
                }) {
                    self.store.release(slot);
                }
                it.ring.retain(|(at, _)| *at <= kept);
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
            Body::Data(slot) => {
                let session = &self.sessions[frame.flow as usize];
                let body = packet::Body::Data(self.store.get(slot));
                TappedPacket::Session(Packet { session: session.id, layer: Layer(0), size: frame.size, body })
            }
        }
    }

    #[cold]
    fn tap_data(&mut self, link: u32, session: u32, now: u64, size: u16, data: &Data, fate: Fate) {
        let id = self.sessions[session as usize].id;
        let body = packet::Body::Data(*data);
        let what = TappedPacket::Session(Packet { session: id, layer: Layer(0), size, body });
        self.tap(link, now, session, size, what, fate);
    }

    #[cold]
    fn tap(&mut self, link: u32, now: u64, number: u32, size: u16, what: TappedPacket, fate: Fate) {
        let flow = match what {
            TappedPacket::Session(_) => self.sessions[number as usize].flow,
            _ => self.senders[(number & !UNICAST) as usize].flow,
        };
        let lost = match fate {
            Fate::Arrives { .. } => None,
            Fate::Lost(cause) => Some(cause),
        };
        let lost: Option<LossCause> = lost;
        self.taps.push(Tapped { at: time(now), link: LinkId(link), flow: FlowId(flow), size, what, lost });
    }
}

/// Set in the flow numbers of unicast frames, so that queues tell them from sessions.
pub const UNICAST: u32 = 1 << 31;

/// Take the first packet of a ring if its time has come.
trait Ring {
    fn pop_front_if_due(&mut self, now: u64) -> Option<(u64, Frame)>;
}

impl Ring for VecDeque<(u64, Frame)> {
    fn pop_front_if_due(&mut self, now: u64) -> Option<(u64, Frame)> {
        if self.front().is_some_and(|(at, _)| *at <= now) { self.pop_front() } else { None }
    }
}
