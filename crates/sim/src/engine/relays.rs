//! Relays. A relay is a member of one session and the source of another session. The members of this other session are its
//! children.

use super::Island;
use super::bundles::Logged;
use super::clocked::Clocked;
use super::nanos::{Phase, time};
use crate::routes::NONE;
use faircast_core::node::{Cx, Departure, Effect, Observation, Relay, SourceControl, Stamp, To, Windows};
use faircast_core::packet::{self, Arrival, Data, Echo, Layer, Packet, Report};
use faircast_core::schemes::AnySource;
use faircast_core::time::{Rate, Span, Time};

/// Sender of a session's data.
#[derive(Debug)]
pub enum SessionSource {
    /// A scheme's source.
    Scheme(Box<Clocked<AnySource>>),
    /// A relay, which is a member of another session.
    Relay(RelayAgent),
    /// A source in another island. It is not called.
    Elsewhere,
}

/// A relay and its place in the upstream session.
#[derive(Debug)]
pub struct RelayAgent {
    pub relay: Box<dyn Relay + Send>,
    /// The upstream session, and the relay's member number there.
    pub above: (u32, u32),
}

impl SessionSource {
    pub fn start(&mut self, cx: &mut Cx<'_>) {
        if let SessionSource::Scheme(source) = self {
            source.start(cx);
        }
    }

    #[inline]
    pub fn departure(&self, layer: Layer) -> Departure {
        match self {
            SessionSource::Scheme(source) => source.departure(layer),
            SessionSource::Relay(it) => it.relay.departure(layer),
            SessionSource::Elsewhere => Departure::At(Time::NEVER),
        }
    }

    #[inline]
    pub fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        match self {
            SessionSource::Scheme(source) => source.on_departure(layer, size, cx),
            SessionSource::Relay(it) => it.relay.on_departure(layer, size, cx),
            SessionSource::Elsewhere => unreachable!("the source's island sends"),
        }
    }

    pub fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match self {
            SessionSource::Scheme(source) => source.on_report(report, cx),
            SessionSource::Relay(it) => it.relay.on_report(report, cx),
            SessionSource::Elsewhere => {}
        }
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        match self {
            SessionSource::Scheme(source) => source.deadline(),
            SessionSource::Relay(it) => it.relay.deadline(),
            SessionSource::Elsewhere => Time::NEVER,
        }
    }

    pub fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        match self {
            SessionSource::Scheme(source) => source.on_deadline(cx),
            SessionSource::Relay(it) => it.relay.on_deadline(cx),
            SessionSource::Elsewhere => {}
        }
    }

    pub fn control(&mut self, control: SourceControl, now: Time) {
        match self {
            SessionSource::Scheme(source) => source.control(control, now),
            SessionSource::Relay(it) => it.relay.control(control, now),
            SessionSource::Elsewhere => {}
        }
    }

    pub fn observe(&self) -> Observation {
        match self {
            SessionSource::Scheme(source) => source.observe(),
            SessionSource::Relay(it) => it.relay.observe(),
            SessionSource::Elsewhere => unreachable!("the source's island observes it"),
        }
    }

    /// Returns the round-trip time of an echo; relays have none.
    pub fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        match self {
            SessionSource::Scheme(source) => source.round_trip(echo, now),
            SessionSource::Relay(_) | SessionSource::Elsewhere => None,
        }
    }

    pub fn layer_rate(&self, layer: Layer) -> Rate {
        match self {
            SessionSource::Scheme(source) => source.layer_rate(layer),
            SessionSource::Relay(it) if layer == Layer(0) => it.relay.observe().rate,
            SessionSource::Relay(_) | SessionSource::Elsewhere => Rate::ZERO,
        }
    }

    pub fn windows(&self) -> Option<Windows> {
        match self {
            SessionSource::Scheme(source) => source.windows(),
            SessionSource::Relay(it) => it.relay.windows(),
            SessionSource::Elsewhere => None,
        }
    }

    /// Returns the reading of the source's clock; the clocks of relays are exact.
    #[inline]
    pub fn reads(&self, now: Time) -> Time {
        match self {
            SessionSource::Scheme(source) => source.reads(now),
            SessionSource::Relay(_) | SessionSource::Elsewhere => now,
        }
    }

    pub const fn is_relay(&self) -> bool {
        matches!(self, SessionSource::Relay(_))
    }

    pub(super) fn relay(&mut self) -> Option<&mut RelayAgent> {
        match self {
            SessionSource::Relay(it) => Some(it),
            SessionSource::Scheme(_) | SessionSource::Elsewhere => None,
        }
    }
}

impl Island {
    /// Delivers data of the upstream session to the relay that is the source of `below`.
    #[cold]
    pub(super) fn deliver_to_relay(
        &mut self,
        below: u32,
        (layer, data): (Layer, &Data),
        arrival: Arrival,
        now: u64,
    ) {
        let it = &mut self.sessions[below as usize];
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        if let Some(agent) = it.source.relay() {
            agent.relay.on_data(data, layer, arrival, cx);
        }
        self.after_relay(below, now);
    }

    /// Notifies the source of `below`, which is a relay, before the relay leaves the upstream session.
    #[cold]
    pub(super) fn relay_leaves(&mut self, below: u32, now: u64) {
        let it = &mut self.sessions[below as usize];
        let cx = &mut Cx { now: time(now), rng: &mut it.rng, effects: &mut self.effects };
        if let Some(agent) = it.source.relay() {
            agent.relay.on_leave(cx);
        }
        self.after_relay(below, now);
    }

    /// Carries out the actions of a relay after a call by the upstream session, sends its packets, and updates its deadline.
    fn after_relay(&mut self, below: u32, now: u64) {
        self.carry_out_for_source(below, now);
        if self.sessions[below as usize].phase == Phase::Running {
            self.depart(below, now);
        }
        let it = &self.sessions[below as usize];
        let (host, slot, deadline) = (it.host, it.slot, self.source_deadline(below, now));
        self.set_deadline(host, slot, deadline);
    }

    /// Carries out the actions of a session's source after a call. A source that is not a relay acts only through its packets. A
    /// relay sends reports to its parent as a member of the upstream session, and packets to its children.
    #[inline]
    pub(super) fn carry_out_for_source(&mut self, session: u32, now: u64) {
        if !self.effects.as_slice().is_empty() {
            self.carry_out_for_relay(session, now);
        }
    }

    #[cold]
    fn carry_out_for_relay(&mut self, session: u32, now: u64) {
        if self.sessions[session as usize].tree.is_some() {
            return self.carry_out_in_tree(session, NONE, now);
        }
        let above = self.sessions[session as usize].source.relay().map(|it| it.above);
        let mut effects = std::mem::take(&mut self.effects);
        let Some((above, member)) = above else {
            for effect in effects.drain() {
                match effect {
                    Effect::Send { to: To::Group, packet } => self.send_again(session, &packet, now),
                    _ => self.refuse("a source", "requests an action that sources do not have"),
                }
            }
            self.effects = effects;
            return;
        };
        for effect in effects.drain() {
            match effect {
                Effect::Report(report) => self.send_report(above, member, now, report),
                Effect::Subscribe(layer) => self.subscribe(above, member, now, layer),
                Effect::Send { to: To::Parent, packet } => match packet.body {
                    packet::Body::Report(report) => self.send_report(above, member, now, report),
                    _ => self.refuse("a relay", "sends its parent something that is no report"),
                },
                Effect::Send { to: To::Group, packet } => match packet.body {
                    packet::Body::Data(data) => {
                        let it = &self.sessions[session as usize];
                        let (root, bundle, capable) = (it.root, it.root_bundle, it.capable);
                        let (size, layer) = (packet.size, packet.layer);
                        let packet = Logged { at: now, data, size, layer, marked: false, capable };
                        self.fan_out(root, bundle, &packet, &mut None);
                    }
                    _ => self.refuse("a relay", "sends its children a packet that is not data"),
                },
                Effect::Send { .. } | Effect::Attend(_) | Effect::Leave => self.refuse(
                    "a relay",
                    "sends to one child or exit or changes groups, which is simulated in trees",
                ),
            }
        }
        self.effects = effects;
    }
}

impl Island {
    /// Sends a packet again to all members.
    fn send_again(&mut self, session: u32, packet: &Packet, now: u64) {
        let packet::Body::Data(mut data) = packet.body else {
            return self.refuse("a source", "sends the group something that is no data");
        };
        let it = &mut self.sessions[session as usize];
        let (root, bundle, capable, stated_rate) = (it.root, it.root_bundle, it.capable, it.stated_rate);
        if it.sent_meter.is_over(now) {
            self.turn_source(session, now);
        }
        let it = &mut self.sessions[session as usize];
        it.again += 1;
        it.sent_meter.bytes += u64::from(packet.size);
        data.rate = stated_rate.stated(data.flags, data.rate);
        let &Packet { size, layer, .. } = packet;
        self.fan_out(root, bundle, &Logged { at: now, data, size, layer, marked: false, capable }, &mut None);
    }
}
