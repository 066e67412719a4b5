//! Packets that the roles exchange: a packet contains the *number* of its symbol instead of the content, and is `Copy`.
//!
//! Report contents and marks are named by their meaning, not by their scheme, so that relays and routers can aggregate packets of
//! any scheme. The unit of a `level` depends on the scheme.

use crate::half::Half;
use crate::time::{Rate, Span, Time};
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

/// Session of a packet; the source draws it at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Identity of a reporting receiver. Zero is not valid, so `Option<ReceiverId>` needs no extra memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(NonZeroU64);

/// Identity of a receiver with a number of at most 32 bits, as on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortId(NonZeroU32);

/// A layer (group) of a multi-rate session; 0 is the base layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Layer(pub u8);

/// Packet number in the layer's stream. It never wraps around; only its 32 bits on the wire do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

/// A packet in the form that the core processes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// The session.
    pub session: SessionId,
    /// Layer of the packet.
    pub layer: Layer,
    /// Number of bytes that consume the link: header and payload, without the link layer's overhead.
    pub size: u16,
    /// The payload.
    pub body: Body,
}

const _: () = assert!(size_of::<Packet>() <= 64);

/// The three kinds of packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Body {
    /// From the source to all receivers.
    Data(Data),
    /// From a receiver or relay to its parent.
    Report(Report),
    /// From a parent to a child: an instruction about the child's place in the tree.
    Order(Order),
}

/// A packet of the source's stream: new data or a repair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Data {
    /// Packet number in the layer's stream.
    pub seq: Seq,
    /// Sending time by the source's clock.
    pub sent_at: Time,
    /// Sending rate in bit/s; zero if the scheme does not state it.
    pub rate: f32,
    /// Block and symbol that the packet carries.
    pub payload: Payload,
    /// Flags of the packet.
    pub flags: Flags,
    /// Statement of the source's scheme about this packet.
    pub signal: Signal,
    /// Statement of the source's scheme to all receivers.
    pub mark: Mark,
}

/// Block and symbol that a data packet carries. Schemes do not read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Block number; `u32::MAX` in [`Payload::NONE`].
    pub block: u32,
    /// Encoding symbol ID within the block; source symbols have the lowest IDs.
    pub symbol: u32,
}

impl Payload {
    /// A packet that carries no symbol: padding, probe or heartbeat.
    pub const NONE: Payload = Payload { block: u32::MAX, symbol: u32::MAX };
}

/// Flags of a data packet. Each flag has the same meaning in every scheme. A scheme's own statement about the packet is its
/// [`Signal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The source is in start-up: receivers measure and report rates ([`ReportContent::Received`]).
    pub const STARTING: Flags = Flags(1);
    /// Last packet of a start-up round, after which receivers report.
    pub const ROUND_END: Flags = Flags(1 << 1);
    /// The packet is a repetition or a repair and gives no round-trip sample (Karn's algorithm).
    pub const REPAIR: Flags = Flags(1 << 2);
    /// A router has already reported the loss of the packets that are missing before this one (RMANP).
    pub const GAP_SEEN: Flags = Flags(1 << 5);
    /// The source waits for the answers of all receivers to this start-up round, so each receiver answers at once.
    pub const EVERYBODY: Flags = Flags(1 << 7);
    /// All flags.
    pub const ALL: Flags = Flags::STARTING
        .with(Flags::ROUND_END)
        .with(Flags::REPAIR)
        .with(Flags::GAP_SEEN)
        .with(Flags::EVERYBODY);

    /// Returns the union of both sets of flags.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Statement of the source's scheme about one data packet, in addition to the packet's [`Mark`]. It is not a field of the mark,
/// because one more byte in a mark would make [`Packet`] longer than 64 bytes. Outside of the mark this byte needs no extra
/// memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signal {
    /// No statement.
    #[default]
    None,
    /// Control packet of an accumulation measurement, whose arrival time is known from earlier control packets (MCA, MCA+).
    Control,
    /// Part of a burst (RLC).
    Burst,
    /// Last packet of a burst, and a synchronisation point of its layer: receivers of this layer may join the next layer now
    /// (RLC).
    SyncPoint,
    /// The layer temporarily sends faster than its control allows, at the cost of the layer above (GMCC).
    Gains,
    /// The layer temporarily sends slower than its control allows, in favour of the layer below (GMCC).
    Gives,
    /// The parent sent the packet to its local group, at the local group's rate and with the parent's own sending time (MTCP).
    Local,
}

impl Signal {
    /// Returns whether the packet is part of a burst.
    pub const fn is_burst(self) -> bool {
        matches!(self, Signal::Burst | Signal::SyncPoint)
    }
}

/// Statement of the source's scheme to all receivers, in every data packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Mark {
    /// No statement.
    #[default]
    None,
    /// The congestion representative and its statistics (ORMCC, GMCC, MCA+).
    Representative {
        /// Identity of the representative; `None` if no receiver is a valid representative, so every receiver may report.
        id: Option<ReceiverId>,
        /// Mean of the representative's level.
        mean: f32,
        /// Mean deviation of the representative's level.
        deviation: f32,
        /// Largest round-trip time of the group, in seconds; receivers spread their reports over twice this time.
        rtt_max: f32,
    },
    /// The receiver that acknowledges (PGMCC).
    Acker {
        /// Identity of the acker; `None` requests an election.
        id: Option<ReceiverId>,
    },
    /// Equation-based control (TFMCC; RFC 4654, 2.1).
    Equation {
        /// Rate in bit/s: a receiver does not report if its calculated rate is higher ("X_supp").
        suppress_above: f32,
        /// The largest round-trip time, in seconds ("R_max").
        rtt_max: f32,
        /// Feedback round, modulo 256 ("fb_nr").
        round: u8,
        /// The receiver whose stamp is in `echo` ("r"); `None` if no stamp is returned.
        to: Option<ReceiverId>,
        /// Stamp of receiver `to` in microseconds, plus the time for which the source held it ("tr_r'").
        echo: u32,
        /// Whether receiver `to` is the current limiting receiver ("is_CLR").
        limiting: bool,
    },
    /// Slot of a common timetable (RLC).
    Timetable {
        /// Slot number since the start of the session.
        slot: u32,
    },
    /// The representative of the packet's layer with its statistics, and the states of all layers (GMCC).
    Layered {
        /// Identity of the representative; `None` if no receiver is a valid representative, so every receiver may report.
        id: Option<ShortId>,
        /// Mean of the representative's level.
        mean: f32,
        /// Standard error of `mean`: standard deviation divided by the square root of the number of samples.
        error: f32,
        /// Smoothed round-trip time to the representative, in seconds.
        rtt: f32,
        /// Sending rate of the layer above, in bit/s; zero if that layer is off.
        above: Half,
        /// Number of changes of the representative's statistics, modulo 256.
        updates: u8,
        /// States of all layers.
        states: LayerStates,
    },
    /// Congestion window of the whole session, and the time for which the tree takes to acknowledge a packet (MTCP).
    Window {
        /// Maximum number of packets in flight to the slowest receiver.
        window: f32,
        /// Time from sending a packet until the whole tree has acknowledged it, in seconds; 0 if unknown.
        rtt: f32,
    },
    /// The receiver that acknowledges each packet, and the feedback that other receivers may omit (RACCOOM).
    Target {
        /// The receiver at the end of the path with the largest round-trip time; `None` if unknown.
        id: Option<ShortId>,
        /// Number of packets before this one whose losses matter: to losses of older packets the source has already responded.
        /// `u16::MAX`: every reported loss matters.
        since_cut: u16,
        /// Largest round-trip time of the group, in seconds; receivers spread their loss reports over twice this time.
        rtt_max: f32,
        /// Interval in seconds between two acknowledgements of any receiver other than `id`; 0: every receiver acknowledges each
        /// packet.
        every: f32,
    },
    /// Minimum rate, and the feedback of receivers (RMANP). Routers on the path may change the last three fields.
    Floor {
        /// Minimum rate that the application accepts, in bit/s ("Rm").
        least: f32,
        /// Largest round-trip time of the group, in seconds; receivers spread congestion indications over twice this time.
        rtt_max: f32,
        /// Interval in seconds between two acknowledgements of a receiver; 0: each receiver acknowledges each packet and reports
        /// congestion at once.
        every: f32,
        /// Receiver that is excluded and leaves, or [`ShortId::ALL`].
        excluded: Option<ShortId>,
    },
}

/// States of up to sixteen layers, two bits per layer; the base layer has the lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerStates(pub u32);

/// State of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    /// The layer is not sent.
    Off,
    /// The layer is sent, and it has no valid representative.
    Open,
    /// The layer follows a representative, but the representative has too few samples for statistics.
    Followed,
    /// The layer follows a representative with settled statistics.
    Settled,
}

/// A report of a receiver or relay to its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// The reporting receiver.
    pub from: ReceiverId,
    /// Layer of the report.
    pub layer: Layer,
    /// The payload.
    pub content: ReportContent,
}

/// The packet of the source that a report answers, for samples of the round-trip time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// Number of the packet.
    pub seq: Seq,
    /// Time from the arrival of the packet to the transmission of the report; [`Span::MAX`] if no round-trip sample may be taken
    /// (Karn's algorithm).
    pub hold: Span,
}

/// Content of a report, named by meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReportContent {
    /// A sign of life (round-trip samples, heartbeats).
    Alive {
        /// The newest packet received.
        echo: Echo,
    },
    /// A congestion event.
    Congested {
        /// The packet whose arrival revealed the congestion.
        echo: Echo,
        /// Level of this congestion event, in the scheme's unit (ORMCC: throughput at congestion in bit/s; RMANP: the rate that
        /// would have avoided the congestion).
        level: f32,
        /// The receiver's mean of the level.
        mean: f32,
        /// The kind of congestion report.
        cause: Cause,
    },
    /// A negative acknowledgement of lost packets (LE-SBCC, PGMCC, RMANP).
    Lost {
        /// The packet for a round-trip sample: the packet whose arrival revealed the loss. If the report does not name that
        /// packet, the first lost packet.
        echo: Echo,
        /// First lost packet.
        first: Seq,
        /// Number of lost packets from `first` on.
        count: u16,
        /// Smoothed loss fraction, 0 to 1; 0 if the receiver does not measure it.
        loss: f32,
    },
    /// The received rate of a start-up round.
    Received {
        /// The packet that ended the round.
        echo: Echo,
        /// Received rate over the round, in bit/s.
        rate: f32,
        /// Smoothed loss fraction, 0 to 1.
        loss: f32,
    },
    /// Acknowledgement with a bitmap of the 32 newest packets (PGMCC, RMANP).
    Selective {
        /// Highest packet received.
        echo: Echo,
        /// All packets up to `echo.seq - behind` have arrived.
        behind: u32,
        /// Bit k: packet `echo.seq - k` has arrived.
        bitmap: u32,
        /// Smoothed loss fraction, 0 to 1.
        loss: f32,
    },
    /// The rate that the TCP equation gives at this receiver (TFMCC; RFC 4654, 2.2).
    Calculated {
        /// The newest packet received ("ts_i'").
        echo: Echo,
        /// The rate, in bit/s ("X_r").
        rate: f32,
        /// Time by the receiver's clock at which it sent this report, in microseconds ("tr_r").
        stamp: u32,
        /// Feedback round that the report answers ("fb_nr").
        round: u8,
        /// Measurements that the receiver has.
        knows: Knows,
    },
    /// Statistics of the newest congestion events (GMCC).
    Averaged {
        /// The packet whose arrival triggered this report.
        echo: Echo,
        /// Mean of the level.
        mean: f32,
        /// Standard deviation of the level.
        deviation: f32,
        /// Number of events in the statistics.
        samples: u16,
        /// Arrival rate of the layer's packets, in bit/s; zero if unknown.
        rate: f32,
        /// Reason for the report.
        cause: Cause,
    },
    /// The packets that have arrived, described by the ranges of missing packets (MTCP). If one report cannot hold all ranges,
    /// several reports are sent.
    Acknowledged {
        /// The highest packet received; its hold is [`Span::MAX`] if it gives no round-trip sample.
        echo: Echo,
        /// All packets below `echo.seq + 1 - behind` have arrived.
        behind: u16,
        /// The ranges of missing packets; all packets between two consecutive ranges have arrived.
        holes: Holes,
        /// Number of missing ranges between the newest of `holes` and `echo.seq`; 0: all packets after that range have arrived.
        newer: u8,
    },
    /// The packets that have arrived, and the state of the reporting node's part of the tree (MTCP).
    Summary {
        /// The highest packet received.
        echo: Echo,
        /// All packets below `echo.seq + 1 - behind` have arrived at the reporting node.
        behind: u16,
        /// Smallest congestion window of this part of the tree, in packets; infinite if no window limits the rate.
        window: f32,
        /// Number of packets that have arrived at a node of this part of the tree, but that not all children of this node have
        /// acknowledged; the maximum over the nodes.
        transit: u16,
        /// No receiver of this part of the tree lacks a packet below `echo.seq + 1 - lag`; 0: no packet is missing.
        lag: u16,
    },
    /// The answer to an order, which the receiver has performed (MTCP).
    Answered {
        /// The newest packet received; its hold is the time from the order to this answer.
        echo: Echo,
        /// Number of the order.
        number: u32,
    },
    /// Progress of the receivers of a part of the tree, or of a single receiver (RACCOOM): the lowest of their newest packets,
    /// and the highest packet that any receiver of the part has lost.
    Newest {
        /// The newest packet received ("AckSeq"); for several receivers, the lowest of their newest packets. The echo's hold is
        /// [`Span::MAX`] if it gives no round-trip sample.
        echo: Echo,
        /// The packet after the highest lost packet ("LostSeq"); 0 without a loss.
        past_lost: Seq,
        /// The receiver whose newest packet is `echo.seq` ("Rcv_id"); `None` while no receiver has reported its progress.
        of: Option<ShortId>,
    },
}

/// Consecutive packets that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hole {
    /// Distance from the echoed packet back to the first missing packet, which is `echo.seq - back`.
    pub back: u16,
    /// Number of missing packets; 0 for no hole.
    pub count: u16,
}

/// Holes of a report, the newest first. Unused entries at the end have a count of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holes(pub [Hole; Holes::MAX]);

impl Holes {
    /// Maximum number of holes in a report.
    pub const MAX: usize = 3;

    /// Returns the used entries.
    pub fn iter(&self) -> impl Iterator<Item = Hole> {
        self.0.into_iter().take_while(|hole| hole.count > 0)
    }
}

impl Mark {
    /// [`Mark::Representative`] without a representative.
    pub const REPRESENTATIVE: Mark =
        Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.0 };
    /// [`Mark::Equation`] without any measurement.
    pub const EQUATION: Mark = Mark::Equation {
        suppress_above: f32::INFINITY,
        rtt_max: 0.0,
        round: 0,
        to: None,
        echo: 0,
        limiting: false,
    };
    /// [`Mark::Target`] that makes every receiver acknowledge each packet.
    pub const TARGET: Mark = Mark::Target { id: None, since_cut: u16::MAX, rtt_max: 0.0, every: 0.0 };
    /// [`Mark::Floor`] that makes every receiver acknowledge each packet.
    pub const FLOOR: Mark = Mark::Floor { least: 0.0, rtt_max: 0.0, every: 0.0, excluded: None };
}

/// Measurements that a receiver has in equation-based control (RFC 4654, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Knows(pub u8);

impl Knows {
    /// The receiver has measured its round-trip time ("have_RTT").
    pub const RTT: Knows = Knows(1);
    /// The receiver has detected a loss event ("have_loss").
    pub const LOSS: Knows = Knows(1 << 1);
    /// The receiver is leaving ("leave").
    pub const LEAVING: Knows = Knows(1 << 2);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Knows) -> Knows {
        Knows(self.0 | other.0)
    }

    /// Returns whether all bits of `other` are set.
    pub const fn has(self, other: Knows) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Reason for a [`ReportContent::Congested`] or [`ReportContent::Averaged`] report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A packet was lost.
    Loss,
    /// Packets of the session accumulate in a queue (MCA, MCA+).
    Accumulation,
    /// A packet was marked (ECN CE).
    Mark,
    /// Sign of life of the representative.
    Heartbeat,
    /// The receiver is leaving.
    Leaving,
    /// The receiver requests the layer.
    Joining,
}

/// An instruction of a parent to one of its children (MTCP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The receiver of the order.
    pub to: ReceiverId,
    /// Number of the order, which the answer repeats ([`ReportContent::Answered`]).
    pub number: u32,
    /// The instruction.
    pub content: OrderContent,
}

/// The instruction of a parent to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderContent {
    /// The child joins this group, leaves the parent's other groups, and does not wait for packets before `from`. If a child
    /// joined before packet `from` was sent, but received only later packets, it lacks the packets from `from` on.
    Join {
        /// Number of the parent's group; 0 is the session's group.
        group: u8,
        /// First packet of the group; `u64::MAX` for the next packet.
        from: Seq,
    },
    /// The child only answers.
    Poll,
}

/// Arrival of a data packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Size on the wire, in bytes.
    pub size: u16,
    /// Number of packets that this arrival reveals as lost. The driver detects gaps (`delivery::gaps`).
    pub lost: u32,
    /// Number of packets that this arrival reveals as lost, but whose loss is not a sign of congestion
    /// ([`crate::estimate::LossCauses`]). `lost` does not include them, and an arrival reveals only one of the two kinds.
    pub excused: u32,
    /// Whether the packet has an ECN congestion mark.
    pub marked: bool,
    /// Whether the packet number is not above the highest received one: the packet is a duplicate or reordered.
    pub late: bool,
}

impl ReceiverId {
    /// Creates a receiver ID from a number; `None` for zero.
    pub const fn new(id: u64) -> Option<ReceiverId> {
        match NonZeroU64::new(id) {
            Some(id) => Some(ReceiverId(id)),
            None => None,
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl ShortId {
    /// All receivers that get the packet. No receiver has this ID.
    pub const ALL: ShortId = ShortId(NonZeroU32::MAX);

    /// Returns the short ID of a receiver; `None` for a number of more than 32 bits.
    pub fn of(id: ReceiverId) -> Option<ShortId> {
        NonZeroU32::try_from(id.0).ok().map(ShortId)
    }
}

impl From<ShortId> for ReceiverId {
    fn from(id: ShortId) -> ReceiverId {
        ReceiverId(id.0.into())
    }
}

impl ReportContent {
    /// Returns the reason for a rate cut that this report causes, in one word.
    pub const fn reason(&self) -> &'static str {
        match self {
            ReportContent::Congested { cause, .. } | ReportContent::Averaged { cause, .. } => match cause {
                Cause::Loss => "loss",
                Cause::Accumulation => "accumulation",
                Cause::Mark => "mark",
                _ => "report",
            },
            ReportContent::Lost { .. } => "loss",
            ReportContent::Selective { .. }
            | ReportContent::Acknowledged { .. }
            | ReportContent::Summary { .. }
            | ReportContent::Newest { .. } => "acknowledgement",
            ReportContent::Calculated { .. } | ReportContent::Received { .. } => "rate",
            ReportContent::Alive { .. } | ReportContent::Answered { .. } => "report",
        }
    }

    /// Returns the packet of the source that this report answers.
    pub const fn echo(&self) -> Echo {
        let mut content = *self;
        *content.echo_mut()
    }

    /// Returns a mutable reference to the packet of the source that this report answers.
    pub const fn echo_mut(&mut self) -> &mut Echo {
        match self {
            ReportContent::Alive { echo }
            | ReportContent::Congested { echo, .. }
            | ReportContent::Lost { echo, .. }
            | ReportContent::Received { echo, .. }
            | ReportContent::Selective { echo, .. }
            | ReportContent::Calculated { echo, .. }
            | ReportContent::Averaged { echo, .. }
            | ReportContent::Acknowledged { echo, .. }
            | ReportContent::Summary { echo, .. }
            | ReportContent::Answered { echo, .. }
            | ReportContent::Newest { echo, .. } => echo,
        }
    }
}

impl LayerStates {
    /// Maximum number of layers with a state.
    pub const LAYERS: u8 = 16;

    /// Returns the state of `layer`; off for layers above the maximum.
    pub const fn of(self, layer: Layer) -> LayerState {
        if layer.0 >= LayerStates::LAYERS {
            return LayerState::Off;
        }
        match self.0 >> (2 * layer.0) & 3 {
            0 => LayerState::Off,
            1 => LayerState::Open,
            2 => LayerState::Followed,
            _ => LayerState::Settled,
        }
    }

    /// Returns these states with the state of `layer` replaced by `standing`. The layer must be below `LAYERS`.
    #[must_use]
    pub const fn with(self, layer: Layer, standing: LayerState) -> LayerStates {
        let at = 2 * layer.0;
        LayerStates(self.0 & !(3 << at) | (standing as u32) << at)
    }
}

impl Seq {
    /// Returns the next packet number.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// Returns the full packet number for 32 bits from the wire: the number within 2^31 of `newest` that has these low bits. If
    /// that number would be negative, returns the 32-bit number itself.
    #[must_use]
    pub const fn unwrap(newest: Seq, wire: u32) -> Seq {
        let step = wire.wrapping_sub(newest.0 as u32) as i32 as i64;
        let seq = newest.0 as i64 + step;
        if seq < 0 { Seq(wire as u64) } else { Seq(seq as u64) }
    }
}

impl Data {
    /// Returns the rate at which the packet was sent.
    pub fn sent_rate(&self) -> Rate {
        Rate::from_bps(f64::from(self.rate))
    }
}

impl fmt::Display for ReceiverId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_number_unwraps_forward_and_backward() {
        assert_eq!(Seq::unwrap(Seq(0xffff_fff0), 5), Seq(0x1_0000_0005));
        assert_eq!(Seq::unwrap(Seq(0x1_0000_0005), 0xffff_fff0), Seq(0xffff_fff0));
        assert_eq!(Seq::unwrap(Seq(0), 7), Seq(7));
    }

    #[test]
    fn each_layer_has_its_own_state() {
        let all = [LayerState::Off, LayerState::Open, LayerState::Followed, LayerState::Settled];
        let mut states = LayerStates(u32::MAX);
        for (layer, standing) in (0..LayerStates::LAYERS).zip(all.iter().cycle()) {
            states = states.with(Layer(layer), *standing);
        }
        for (layer, standing) in (0..LayerStates::LAYERS).zip(all.iter().cycle()) {
            assert_eq!(states.of(Layer(layer)), *standing);
        }
        assert_eq!(states.of(Layer(LayerStates::LAYERS)), LayerState::Off);
    }

    #[test]
    fn packet_number_never_unwraps_below_zero() {
        assert_eq!(Seq::unwrap(Seq(3), 0xffff_ffff), Seq(0xffff_ffff));
    }
}
