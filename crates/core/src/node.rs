//! The four roles: source, receiver, relay and router.
//!
//! The contract of every role: **one call, then drain the effects, then read `departure` and `deadline` again.** Deadlines are
//! read, never armed or cancelled. Spurious and early calls have no effect, so a driver may call at any time.

use crate::bounds::Bounds;
use crate::packet::{Arrival, Data, Layer, Mark, Order, Packet, ReceiverId, Report, Seq, SessionId};
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

/// Effects of a call, in order. The driver reuses one buffer and drains it after each call, so its memory is allocated once.
#[derive(Debug, Clone, Default)]
pub struct Effects(Vec<Effect>);

/// An action that a role requests. A driver that cannot perform an action reports an error; effects are never dropped silently
/// ([`Effects::refuse`]).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Effect {
    /// Sends this report to the parent.
    Report(Report),
    /// Subscribes to exactly the layers up to and including this one. The driver joins and leaves groups, restarts gap detection
    /// on joined layers, and delivers no packets of left layers. A receiver begins with the base layer only.
    Subscribe(Layer),
    /// Joins this group of the parent and leaves its other groups. Group 0 is the session's, in which a receiver begins.
    Attend(u8),
    /// Leaves the session, because the receiver is excluded (RMANP). The driver proceeds as for a finished receiver.
    Leave,
    /// Sends this packet (routers, relays, and sources of sessions with a tree).
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
    /// All children in the group that the packet names as its layer; 0 is the session's group.
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
    /// Not before the next report, because the window is closed.
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
    /// Total rate of all layers that the scheme allows now.
    pub rate: Rate,
    /// Round-trip time to the followed receiver.
    pub rtt: Span,
    /// The receiver that limits the rate.
    pub limiting: Option<ReceiverId>,
    /// Throughput at congestion of that receiver; `None` if the scheme does not measure it.
    pub level: Option<Rate>,
    /// Largest known round-trip time of the group.
    pub rtt_max: Span,
    /// Number of rate cuts so far.
    pub cuts: u64,
    /// Numbers of reports, events and cuts.
    pub tally: Tally,
    /// Whether the source is still in start-up.
    pub starting: bool,
}

/// Windows of a node of a tree, for probes. No behaviour depends on them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Windows {
    /// The node's window, which its children's answers control, in packets.
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

/// Number of congestion reports that a source received, and their number after each step of selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of loss indications or congestion reports. Indications that name packets count per packet.
    pub indications: u64,
    /// Number of loss events among the indications. Indications of one receiver within about a round trip are one event.
    pub events: u64,
    /// Number of events that the choice of receiver accepts and the rate follows, before the limit of one cut per round trip.
    pub followed: u64,
}

/// Inputs of a source from its driver, other than reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SourceControl {
    /// This receiver has left or is excluded, and does not limit the rate.
    Forget(ReceiverId),
    /// The group has changed: the source resets all measurements of the old group's paths, and starts up again.
    StartAgain,
    /// Number of receivers that answer.
    Members(usize),
    /// New limits of the rate.
    Limits(Bounds),
    /// A message that is not a report of the scheme shows that packets arrive, for example a negative acknowledgement of a
    /// foreign protocol. So the group is not silent. Only messages triggered by recently received data count.
    SignOfLife,
}

/// Inputs of a router from its driver, other than packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterControl {
    /// This session has ended: the router removes its state.
    Forget(SessionId),
    /// Several neighbours share this port (a local network), and each is identified by the name in its reports. Any other port
    /// leads to one neighbour, regardless of the names in its reports.
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
    /// Number of reports that it withheld because other reports had the same information.
    pub merged: u64,
    /// Number of packets that it stores to send later.
    pub held: usize,
    /// Number of all entries in its memory. It is bounded, and 0 after all sessions are removed.
    pub entries: usize,
    /// Number of stored packets, whether it has sent them before or not.
    pub stored: usize,
    /// Maximum number of stored packets so far.
    pub stored_most: usize,
    /// Sum of the storage times of all packets until the latest change. Divided by a duration, it is the mean number of stored
    /// packets.
    pub stored_for: Span,
    /// Number of requested packets that it repeated from its store.
    pub repairs: u64,
    /// Number of congestion indications that it sent or forwarded.
    pub indications: u64,
    /// Number of indications that it withheld because an earlier indication had the same information.
    pub filtered: u64,
    /// Number of packets that it dropped because an exit's queue was full.
    pub overflows: u64,
    /// Number of receivers that it excluded.
    pub exclusions: u64,
}

/// Decision of a router about a packet. Packets that the call itself sends precede this packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The packet is forwarded in its present form.
    Pass,
    /// The router stores the packet to send it later, or has merged it into its state.
    Hold,
    /// The packet is dropped.
    Drop,
}

/// The source's part of a scheme. Its driver queries the time of each layer's next packet, not a rate or a window. A blocked
/// socket simply stops the queries.
pub trait Source {
    /// Starts the session. Called once. Packets sent before are probes: they are numbered and marked, and reports about them are
    /// used only as round-trip samples. Before the start a source has no deadline.
    fn start(&mut self, cx: &mut Cx<'_>);
    /// Returns the time of the next packet of `layer`.
    fn departure(&self, layer: Layer) -> Departure;
    /// Numbers and marks a packet of `size` bytes that is sent on `layer` now, and schedules the next one.
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
    /// Returns whether a child is known or assumed to lack this packet. A driver without multicast sends the packets of a group
    /// only to such children.
    fn is_missed_by(&self, _child: ReceiverId, _seq: Seq) -> bool {
        true
    }
}

/// A node on the path of packets (RMANP's active router, RACCOOM's aggregator). It serves all sessions on its path.
///
/// A router may change the statements and the size of packets, but not their session, layer or kind.
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
    /// Returns the number of earlier or held packets that the router may send, counted per layer from the newest packet number. A
    /// driver of packets with content caches the content of this number of packets, but of no packets from before a restart. The
    /// result is 0 for a router that never holds or repeats a packet, or that does not state a number.
    fn keeps(&self) -> u16 {
        0
    }
    /// Returns whether the router still plans to send a packet that it held at this exit. It does not send a packet that it had
    /// to drop for lack of room, or that all receivers have meanwhile.
    fn holds(&self, _session: SessionId, _exit: Port, _seq: Seq) -> bool {
        false
    }
}

/// Factory of relays of one kind.
pub trait RelaySpec: std::fmt::Debug + Send + Sync {
    /// Creates a relay without state, which is called `me` in the session of its parent.
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send>;
    /// Returns whether parents, including the source, send packets other than the source's data to their children. Otherwise a
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

    /// Removes all effects in a place where none can be performed. Returns the first effect, which is an error of the role.
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
