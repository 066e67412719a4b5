//! The four roles: source, receiver, relay and router.
//!
//! The contract of every role: **one call, then drain the effects, then read `departure` and
//! `deadline` again.** Deadlines are read, never armed or cancelled. Spurious and early calls
//! are no-ops, so a driver may wake as often as it likes.

use crate::bounds::Bounds;
use crate::packet::{Arrival, Data, Layer, Mark, Order, Packet, ReceiverId, Report, Seq, SessionId};
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};

/// Arguments of each call of a role.
#[derive(Debug)]
pub struct Cx<'a> {
    /// The present moment.
    pub now: Time,
    /// The node's own random stream.
    pub rng: &'a mut Rng,
    /// Where effects go; the driver owns and drains it.
    pub effects: &'a mut Effects,
}

/// The effects of a call, in order. The driver keeps one and drains it after each call, so its
/// memory is allocated once.
#[derive(Debug, Clone, Default)]
pub struct Effects(Vec<Effect>);

/// An action that a role requests. A driver that cannot perform it reports that: no effect is ever dropped silently ([`Effects::refuse`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Send this report to the parent.
    Report(Report),
    /// Be subscribed to the layers up to and including this one, and to no other. The driver joins and leaves groups, restarts gap
    /// detection on layers that are joined, and delivers no packet of a layer that was left. A receiver begins with the base layer alone.
    Subscribe(Layer),
    /// Be in this group of the parent and in no other; 0 is the session's own. A receiver begins there.
    Attend(u8),
    /// The receiver is excluded (RMANP): leave the session, like a receiver that is finished.
    Leave,
    /// Send this packet (routers, relays, and sources of sessions with a tree).
    Send {
        /// Where to.
        to: To,
        /// The packet.
        packet: Packet,
    },
}

/// Where a router or relay sends a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// Towards the source: a relay's parent, or a router's way to the source.
    Parent,
    /// To one child of a relay.
    Child(ReceiverId),
    /// To all children that are in the group which the packet names as its layer; 0 is the session's.
    Group,
    /// Out of this port of a router, towards the receivers behind it.
    Exit(Port),
}

/// An interface of a router: the driver numbers its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// When a layer may send its next packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// At this moment; [`Time::NEVER`] for a layer that is off.
    At(Time),
    /// Not before another report has come (a closed window).
    AfterReport,
}

/// Fields that the source's scheme writes into a packet that is about to leave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamp {
    /// Its number in the layer's stream.
    pub seq: Seq,
    /// The rate at which it is sent.
    pub rate: Rate,
    /// Flags that the scheme sets.
    pub flags: crate::packet::Flags,
    /// The scheme's statement about this packet.
    pub signal: crate::packet::Signal,
    /// The scheme's statement to all receivers.
    pub mark: Mark,
}

/// How a source sees its session, for progress displays and probes. Nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// The rate the scheme allows now, all layers together.
    pub rate: Rate,
    /// Round-trip time to the followed receiver.
    pub rtt: Span,
    /// The receiver that limits the rate.
    pub limiting: Option<ReceiverId>,
    /// The throughput at congestion of that receiver, where the scheme knows it.
    pub level: Option<Rate>,
    /// The largest round-trip time of the group, as far as it is known.
    pub rtt_max: Span,
    /// Rate cuts so far.
    pub cuts: u64,
    /// How reports became cuts.
    pub tally: Tally,
    /// Whether the source is still in start-up.
    pub starting: bool,
}

/// The windows of a node of a tree, for probes. Nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// Its own, which its children's answers move, in packets.
    pub own: f64,
    /// The smallest one of its part of the tree, in packets.
    pub least: f64,
    /// The window of its local group, in packets; 0 without a local group.
    pub local: f64,
    /// Children in the local group.
    pub moved: u32,
    /// Packets in its store.
    pub stored: u32,
    /// Time-outs that closed its window.
    pub slow_starts: u64,
    /// Packets that it sent again.
    pub repairs: u64,
    /// Children that it moved into its local group so far.
    pub moves: u64,
}

/// The number of congestion reports that a source received, and the number that remained after each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Loss indications or congestion reports, by single packets where they name packets.
    pub indications: u64,
    /// Loss events among them: the indications of one receiver within about a round trip are one event.
    pub events: u64,
    /// Events that the choice of receiver let through: those that the rate follows, before the limit of one cut per
    /// round trip.
    pub followed: u64,
}

/// Inputs of a source from its driver, other than reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceControl {
    /// This receiver left or is excluded: it no longer limits the rate.
    Forget(ReceiverId),
    /// The group has changed: forget everything learned about the old group's paths, and start up again.
    StartAgain,
    /// The number of receivers that take part and answer.
    Members(usize),
    /// The rate stays between these limits from now on.
    Limits(Bounds),
    /// Packets arrive, as a message shows that is not a report to the scheme (a negative acknowledgement of a foreign protocol): the group
    /// is not silent. Only messages triggered by recently received data count.
    SignOfLife,
}

/// Inputs of a router from its driver, other than packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterControl {
    /// This session is over: forget all about it.
    Forget(SessionId),
    /// Several neighbours share this port (a local network): each is identified by the name in its reports. Any other port leads to one
    /// neighbour, regardless of the names in its reports.
    Shared(Port),
    /// This neighbour at a shared port has left the session, or is done with it.
    Left {
        /// The session.
        session: SessionId,
        /// The port.
        port: Port,
        /// Its name.
        neighbour: ReceiverId,
    },
}

/// How a router sees itself, for progress displays and probes. Nothing depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterObservation {
    /// Reports that it withheld because others had reported as much.
    pub merged: u64,
    /// Packets that it keeps and will send later.
    pub held: usize,
    /// Entries in its memory, whatever they are: bounded, and none after all sessions are forgotten.
    pub entries: usize,
    /// Packets that it has stored, whether it has sent them before or not.
    pub stored: usize,
    /// The most that it had stored at any time.
    pub stored_most: usize,
    /// Packets times the time for which they were stored, until the latest change: over a time, the mean.
    pub stored_for: Span,
    /// Requests for packets that it met from its store.
    pub repairs: u64,
    /// Congestion indications that it sent or sent on.
    pub indications: u64,
    /// The indications that it withheld because an earlier one had reported as much.
    pub filtered: u64,
    /// Packets that it dropped because an exit's queue was full.
    pub overflows: u64,
    /// Receivers that it excluded.
    pub exclusions: u64,
}

/// The fate of a packet at a router. Packets that the call itself sends go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Goes on, as it is now.
    Pass,
    /// Stays: the router keeps it and will send it later, or has merged it into its state.
    Hold,
    /// Is dropped.
    Drop,
}

/// The sender's end of a scheme. Its driver queries *when may layer L send next*, not a rate or a window; a blocked socket simply stops the
/// queries.
pub trait Source {
    /// The session starts now. Called once. Packets that leave before it are probes: they are numbered and marked, and from
    /// reports about them a source learns round-trip times and nothing else. Until then it has no deadline.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// When `layer` may send its next packet.
    fn departure(&self, layer: Layer) -> Departure;
    /// A packet of `size` bytes leaves on `layer` now: number it, mark it and book the next one.
    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp;
    /// A report arrived.
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>);
    /// When [`Source::on_deadline`] wants to be called next.
    fn deadline(&self) -> Time;
    /// The deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Handles an input from the driver.
    fn control(&mut self, control: SourceControl, now: Time);
    /// How the session looks.
    fn observe(&self) -> Observation;
    /// Its windows, where the scheme has some that the rate follows.
    fn windows(&self) -> Option<Windows> {
        None
    }
    /// The number of layers that it may use; results of [`Source::departure`] for other layers are always never.
    fn layers(&self) -> u8 {
        1
    }
    /// The rate at which packets of `layer` leave now; zero for a layer that is off.
    fn layer_rate(&self, layer: Layer) -> Rate {
        if layer == Layer(0) { self.observe().rate } else { Rate::ZERO }
    }
}

/// The receiver's end of a scheme.
pub trait Receiver {
    /// A data packet arrived.
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>);
    /// Handles an order from its parent.
    fn on_order(&mut self, _order: &Order, _cx: &mut Cx<'_>) {}
    /// When [`Receiver::on_deadline`] wants to be called next.
    fn deadline(&self) -> Time;
    /// The deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// The receiver is about to leave the session.
    fn on_leave(&mut self, _cx: &mut Cx<'_>) {}
    /// Congestion events so far that were not reported.
    fn suppressed(&self) -> u32 {
        0
    }
}

/// A host in a logical tree: a receiver that is also a source to its children (MTCP's sender's
/// agent, RACCOOM's designated receiver).
pub trait Relay: Receiver + std::fmt::Debug {
    /// A child's report arrived.
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>);
    /// When the relay may send its next packet to its children.
    fn departure(&self, layer: Layer) -> Departure;
    /// A packet leaves to the children now.
    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp;
    /// Handles an input from the driver about its children, as for a source.
    fn control(&mut self, control: SourceControl, now: Time);
    /// How its part of the tree looks, as a source sees a session.
    fn observe(&self) -> Observation;
    /// Its windows, where the scheme has some that the rate follows.
    fn windows(&self) -> Option<Windows> {
        None
    }
    /// Returns whether a child lacks this packet, as far as is known: a driver without multicast sends packets for a group to these
    /// children alone.
    fn is_missed_by(&self, _child: ReceiverId, _seq: Seq) -> bool {
        true
    }
}

/// A node on the path of packets (RMANP's active router, RACCOOM's aggregator). It serves all sessions that pass it.
///
/// Packets may be changed in their statements and their size, not in their session, layer or kind.
pub trait Router: std::fmt::Debug {
    /// Whether it wants to see data, and not reports alone.
    fn sees_data(&self) -> bool {
        true
    }
    /// A data packet is about to leave through `exit`: called for every exit that it leaves by, each with a copy of its own.
    fn on_data(&mut self, _exit: Port, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }
    /// A report came in through `entry`, the port towards the receiver that it names, on its way to the source.
    fn on_report(&mut self, _entry: Port, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }
    /// When [`Router::on_deadline`] wants to be called next.
    fn deadline(&self) -> Time;
    /// The deadline may have passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Handles an input from the driver.
    fn control(&mut self, control: RouterControl, now: Time);
    /// How it looks.
    fn observe(&self) -> RouterObservation;
    /// Returns the number of earlier or held packets that the router may want to send, counted per layer from the newest packet number. A
    /// driver of packets with content caches the content of this number of packets, and none from before a restart. The result is 0 for a
    /// router that never holds or repeats a packet, or that does not state a number.
    fn keeps(&self) -> u16 {
        0
    }
    /// Whether it will still send a packet that it held at this exit, unless something else happens. One that it has no room for any
    /// more, or that all have meanwhile, it will not.
    fn holds(&self, _session: SessionId, _exit: Port, _seq: Seq) -> bool {
        false
    }
}

/// Factory of relays of one kind.
pub trait RelaySpec: std::fmt::Debug + Send + Sync {
    /// A relay that has received nothing, which is called `me` in the session of its parent.
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send>;
    /// Whether parents, the source among them, send to their children: without that a session whose members are all the source's
    /// children needs no tree.
    fn speaks_down(&self) -> bool {
        true
    }
}

/// Factory of routers of one kind, each with a memory of its own.
pub trait RouterSpec: std::fmt::Debug + Send + Sync {
    /// A router that has seen nothing.
    fn router(&self) -> Box<dyn Router + Send>;
}

impl Effects {
    /// An empty buffer.
    pub const fn new() -> Effects {
        Effects(Vec::new())
    }

    /// Add an effect.
    pub fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Take all effects out, in order; the memory stays.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> + '_ {
        self.0.drain(..)
    }

    /// Take all effects out where none can be carried out; the first of them, which is an error of the role.
    #[must_use]
    pub fn refuse(&mut self) -> Option<Effect> {
        let first = self.0.first().copied();
        self.0.clear();
        first
    }

    /// The effects not yet drained.
    pub fn as_slice(&self) -> &[Effect] {
        &self.0
    }
}
