//! The four roles: source, receiver, relay and router.
//!
//! The contract of every role: **one call, then drain the effects, then read `departure` and `deadline` again.** Deadlines are
//! read, never armed or cancelled. Spurious and early calls have no effect, so a driver may call at any time.

use crate::bounds::Bounds;
use crate::packet::{Arrival, Data, Echo, Layer, Mark, Order, Packet, ReceiverId, Report, Seq, SessionId};
use crate::rng::Rng;
use crate::time::{Rate, Span, Time};

/// Arguments of each call of a role.
#[derive(Debug)]
pub struct Cx<'a> {
    /// Present time.
    pub now: Time,
    /// Random stream of the node.
    pub rng: &'a mut Rng,
    /// Buffer for effects; the driver owns and drains it.
    pub effects: &'a mut Effects,
}

/// Effects of a call, in order. The driver reuses one buffer and drains it after each call, so the buffer is allocated once.
#[derive(Debug, Clone, Default)]
pub struct Effects(Vec<Effect>);

/// An action that a role requests. A driver that cannot perform an action reports an error; effects are never dropped silently
/// ([`Effects::refuse`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Sends this report to the parent.
    Report(Report),
    /// Subscribes to this layer and all layers below it, and to no others. The driver joins and leaves groups, restarts gap
    /// detection on joined layers, and delivers no packets of layers that it has left. A receiver begins with the base layer
    /// only.
    Subscribe(Layer),
    /// Joins this group of the parent, and leaves all other groups of the parent. A receiver begins in group 0, the session's
    /// group.
    Attend(u8),
    /// Leaves the session, because the receiver is excluded (RMANP). The driver proceeds as for a finished receiver.
    Leave,
    /// Sends this packet. Only for routers, for relays, and for sources of sessions with a tree.
    Send {
        /// Destination.
        to: To,
        /// The packet.
        packet: Packet,
    },
}

/// Destination of a packet from a router or relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    /// The parent of a relay, or the next hop of a router towards the source.
    Parent,
    /// One child of a relay.
    Child(ReceiverId),
    /// All children that have joined the group whose number is in the packet's layer field; 0 is the session's group.
    Group,
    /// This port of a router, towards the receivers behind it.
    Exit(Port),
}

/// An interface of a router; the driver assigns the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Time of a layer's next packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// At this time; [`Time::NEVER`] for a layer that is off.
    At(Time),
    /// Not before the next report arrives, because the congestion window is full.
    AfterReport,
}

/// Fields that the source's scheme writes into a packet before it is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stamp {
    /// Packet number in the layer's stream.
    pub seq: Seq,
    /// Sending rate.
    pub rate: Rate,
    /// Flags that the scheme sets.
    pub flags: crate::packet::Flags,
    /// The scheme's statement about this packet.
    pub signal: crate::packet::Signal,
    /// The scheme's statement to all receivers.
    pub mark: Mark,
}

/// A source's view of its session, for progress displays and probes. No behaviour depends on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Total rate that the scheme allows now, over all layers.
    pub rate: Rate,
    /// Round-trip time to the followed receiver.
    pub rtt: Span,
    /// The receiver that limits the rate.
    pub limiting: Option<ReceiverId>,
    /// Throughput of the limiting receiver at its congestion events; `None` if the scheme does not measure it.
    pub level: Option<Rate>,
    /// Largest known round-trip time of the group.
    pub rtt_max: Span,
    /// Number of rate cuts so far.
    pub cuts: u64,
    /// Numbers of congestion indications and loss events.
    pub tally: Tally,
    /// Whether the source is still in start-up.
    pub starting: bool,
}

/// Windows of a node of a tree, for probes. No behaviour depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// The congestion window of the node, in packets; the answers of the node's children control it.
    pub own: f64,
    /// Smallest window of the node's part of the tree, in packets.
    pub least: f64,
    /// Window of the node's local group, in packets; 0 without a local group.
    pub local: f64,
    /// Number of children in the local group.
    pub moved: u32,
    /// Number of packets in the node's store.
    pub stored: u32,
    /// Number of timeouts that closed the node's window.
    pub slow_starts: u64,
    /// Number of packets that the node repeated.
    pub repairs: u64,
    /// Number of children that the node has moved into its local group so far.
    pub moves: u64,
}

/// Three numbers: congestion indications as received; loss events, into which indications are combined; and the loss events that
/// are selected for the rate control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of loss indications and congestion reports. A loss indication counts once for each lost packet that it contains.
    pub indications: u64,
    /// Number of loss events. The indications of one receiver within about a round-trip time are one event.
    pub events: u64,
    /// Number of loss events selected for the rate control. Several of them may belong to one cut, because at most one cut per
    /// round trip is made.
    pub followed: u64,
}

/// Inputs of a source from its driver, other than reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceControl {
    /// This receiver has left or is excluded, so it must not limit the rate.
    Forget(ReceiverId),
    /// The group has changed: the source discards its measurements of the old group's paths and starts up again.
    StartAgain,
    /// Number of receivers that answer.
    Members(usize),
    /// New limits of the rate.
    Limits(Bounds),
    /// The group is not silent: a message that is not a report of the scheme shows that packets arrive, for example a negative
    /// acknowledgement of a foreign protocol. Only messages triggered by recently received data count.
    SignOfLife,
}

/// Inputs of a router from its driver, other than packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterControl {
    /// This session has ended: the router removes its state.
    Forget(SessionId),
    /// Several neighbours share this port (a local network). Each is identified by the receiver ID in its reports. Any other port
    /// leads to one neighbour, regardless of the IDs in its reports.
    Shared(Port),
    /// This neighbour at a shared port has left or finished the session.
    Left {
        /// The session.
        session: SessionId,
        /// The port.
        port: Port,
        /// Name of the neighbour.
        neighbour: ReceiverId,
    },
}

/// State of a router, for progress displays and probes. No behaviour depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RouterObservation {
    /// Number of reports that the router withheld because other reports had the same information.
    pub merged: u64,
    /// Number of packets that the router stores to send later.
    pub held: usize,
    /// Number of all entries in the router's memory. It is bounded, and 0 after all sessions are removed.
    pub entries: usize,
    /// Number of stored packets, including packets that the router has already sent.
    pub stored: usize,
    /// Maximum number of stored packets so far.
    pub stored_most: usize,
    /// Sum of the storage times of all packets, up to the latest change of the store. The sum divided by a duration is the mean
    /// number of stored packets in that duration.
    pub stored_for: Span,
    /// Number of requested packets that the router repeated from its store.
    pub repairs: u64,
    /// Number of congestion indications that the router sent or forwarded.
    pub indications: u64,
    /// Number of indications that the router withheld because an earlier indication had the same information.
    pub filtered: u64,
    /// Number of packets that the router dropped because an exit's queue was full.
    pub overflows: u64,
    /// Number of receivers that the router excluded.
    pub exclusions: u64,
}

/// Decision of a router about a packet. Packets that the router sends during the same call precede the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is forwarded in its present form.
    Pass,
    /// The router has stored the packet to send it later, or has merged the packet's information into its state.
    Hold,
    /// The packet is dropped.
    Drop,
}

/// The source's part of a scheme. The driver asks for the time of each layer's next packet, not for a rate or a window. While a
/// socket is blocked, the driver does not ask.
pub trait Source {
    /// Starts the session. Called once. Packets sent before the start are probes: they are numbered and marked, but the source
    /// uses reports about them only as round-trip samples. Before the start a source has no deadline.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// Returns the time of the next packet of `layer`.
    fn departure(&self, layer: Layer) -> Departure;
    /// Numbers and marks a packet of `size` bytes that is sent on `layer` now, and schedules the layer's next packet.
    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp;
    /// Processes an arrived report.
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>);
    /// Returns the time of the next call of [`Source::on_deadline`].
    fn deadline(&self) -> Time;
    /// Processes the deadline if it has passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Handles an input from the driver.
    fn control(&mut self, control: SourceControl, now: Time);
    /// Returns the source's view of the session.
    fn observe(&self) -> Observation;
    /// Returns the round-trip time of an echo of the base layer that arrives now; `None` for an unknown packet, and if the scheme
    /// does not store sending times.
    fn round_trip(&self, _echo: Echo, _now: Time) -> Option<Span> {
        None
    }
    /// Returns the windows that control the rate; `None` if the scheme has none.
    fn windows(&self) -> Option<Windows> {
        None
    }
    /// Returns the maximum number of layers. For other layers, [`Source::departure`] always returns `Time::NEVER`.
    fn layers(&self) -> u8 {
        1
    }
    /// Returns the present sending rate of `layer`; zero for a layer that is off.
    fn layer_rate(&self, layer: Layer) -> Rate {
        if layer == Layer(0) { self.observe().rate } else { Rate::ZERO }
    }
}

/// The receiver's part of a scheme.
pub trait Receiver {
    /// Processes an arrived data packet.
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>);
    /// Processes an order of the parent.
    fn on_order(&mut self, _order: &Order, _cx: &mut Cx<'_>) {}
    /// Returns the time of the next call of [`Receiver::on_deadline`].
    fn deadline(&self) -> Time;
    /// Processes the deadline if it has passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Sends final reports before the receiver leaves the session.
    fn on_leave(&mut self, _cx: &mut Cx<'_>) {}
    /// Returns the number of congestion events so far that were not reported.
    fn suppressed(&self) -> u32 {
        0
    }
}

/// A host in a logical tree: a receiver that is also a source for its children (MTCP's sender's agent, RACCOOM's designated
/// receiver).
pub trait Relay: Receiver + std::fmt::Debug {
    /// Processes an arrived report of a child.
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>);
    /// Returns the time of the relay's next packet to its children.
    fn departure(&self, layer: Layer) -> Departure;
    /// Numbers and marks a packet that is sent to the children now.
    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp;
    /// Handles an input from the driver about its children, as for a source.
    fn control(&mut self, control: SourceControl, now: Time);
    /// Returns the relay's view of its part of the tree, like that of a source.
    fn observe(&self) -> Observation;
    /// Returns the windows that control the rate; `None` if the scheme has none.
    fn windows(&self) -> Option<Windows> {
        None
    }
    /// Returns whether this child is known or assumed to lack this packet. A driver without multicast sends the packets of a
    /// group only to children that lack them.
    fn is_missed_by(&self, _child: ReceiverId, _seq: Seq) -> bool {
        true
    }
}

/// A node on the path of packets (RMANP's active router, RACCOOM's aggregator). It serves all sessions on its path.
///
/// A router may change the fields and the size of packets, but not their session, layer or kind.
pub trait Router: std::fmt::Debug {
    /// Returns whether the router processes data packets as well as reports.
    fn sees_data(&self) -> bool {
        true
    }
    /// Processes a data packet before it is sent through `exit`. It is called for each exit, each time with a separate copy.
    fn on_data(&mut self, _exit: Port, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }
    /// Processes a report towards the source that arrived through `entry`, the port towards the reporting receiver.
    fn on_report(&mut self, _entry: Port, _packet: &mut Packet, _cx: &mut Cx<'_>) -> Verdict {
        Verdict::Pass
    }
    /// Returns the time of the next call of [`Router::on_deadline`].
    fn deadline(&self) -> Time;
    /// Processes the deadline if it has passed.
    fn on_deadline(&mut self, cx: &mut Cx<'_>);
    /// Handles an input from the driver.
    fn control(&mut self, control: RouterControl, now: Time);
    /// Returns the state of the router for displays.
    fn observe(&self) -> RouterObservation;
    /// The router may still send or repeat this number of packets of each layer, counted back from the newest packet number. A
    /// driver whose packets carry content caches the content of these packets, except of packets from before a restart. The
    /// result is 0 for a router that never holds or repeats a packet, or that does not know this number.
    fn keeps(&self) -> u16 {
        0
    }
    /// Returns whether the router still plans to send a packet that it held at this exit. The router may have dropped the packet
    /// for lack of room, or because all receivers have received it meanwhile.
    fn holds(&self, _session: SessionId, _exit: Port, _seq: Seq) -> bool {
        false
    }
}

/// Factory of relays of one kind.
pub trait RelaySpec: std::fmt::Debug + Send + Sync {
    /// Creates a relay without state, whose receiver ID in its parent's session is `me`.
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send>;
    /// Returns whether a parent (the source or a relay) sends its children any packets other than the source's data. If not, a
    /// session whose members are all children of the source needs no tree.
    fn speaks_down(&self) -> bool {
        true
    }
}

/// Factory of routers of one kind, each with separate state.
pub trait RouterSpec: std::fmt::Debug + Send + Sync {
    /// Creates a router without state.
    fn router(&self) -> Box<dyn Router + Send>;
}

impl Effects {
    /// Creates an empty buffer.
    pub const fn new() -> Effects {
        Effects(Vec::new())
    }

    /// Adds an effect.
    pub fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    /// Removes all effects and returns them in order; the allocated memory stays.
    pub fn drain(&mut self) -> impl Iterator<Item = Effect> + '_ {
        self.0.drain(..)
    }

    /// Removes all effects; for a driver that can perform none of them. Returns the first effect, if any: the role has made an
    /// error by requesting it.
    #[must_use]
    pub fn refuse(&mut self) -> Option<Effect> {
        let first = self.0.first().copied();
        self.0.clear();
        first
    }

    /// Returns the effects that are not drained yet.
    pub fn as_slice(&self) -> &[Effect] {
        &self.0
    }
}
