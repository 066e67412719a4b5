//! Packets exchanged by the roles: a packet *names* its payload and is `Copy`.
//!
//! Contents and marks are named by meaning, not by scheme, so that relays and routers can
//! aggregate without knowing the scheme. A `level` is in the scheme's own unit.

use crate::half::Half;
use crate::time::{Rate, Span, Time};
use std::fmt;
use std::num::{NonZeroU32, NonZeroU64};

/// Which session a packet belongs to; drawn at random by the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u32);

/// Identity of a reporting receiver. Zero is not valid, so `Option<ReceiverId>` costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiverId(NonZeroU64);

/// A receiver whose number fits the wire's 32 bits, in half the space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShortId(NonZeroU32);

/// A layer (group) of a multi-rate session; 0 is the base layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Layer(pub u8);

/// A packet's place in its layer's stream, unwrapped (32 bits on the wire).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

/// A packet as the core sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packet {
    /// The session.
    pub session: SessionId,
    /// The layer it belongs to.
    pub layer: Layer,
    /// Bytes that consume the link: header and payload, without the link layer's own.
    pub size: u16,
    /// The payload.
    pub body: Body,
}

const _: () = assert!(size_of::<Packet>() <= 64);

/// The three kinds of packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Body {
    /// From the source to all.
    Data(Data),
    /// From a receiver or relay to its parent.
    Report(Report),
    /// From a parent to its children: change your place in the tree.
    Order(Order),
}

/// One packet of the source's stream: new data or repair alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Data {
    /// Place in the layer's stream.
    pub seq: Seq,
    /// When the source sent it, in the source's time.
    pub sent_at: Time,
    /// The rate at which it was sent, in bit/s; zero when the scheme does not state it.
    pub rate: f32,
    /// Which symbol of which block it carries.
    pub payload: Payload,
    /// Flags.
    pub flags: Flags,
    /// Statement of the source's scheme about this packet.
    pub signal: Signal,
    /// Statement of the source's scheme to all receivers.
    pub mark: Mark,
}

/// Which symbol of which block a data packet carries. The scheme never looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload {
    /// Block number, or [`Payload::NONE`]'s.
    pub block: u32,
    /// Encoding symbol id within the block; source symbols come first.
    pub symbol: u32,
}

impl Payload {
    /// A packet that carries no symbol: padding, probe or heartbeat.
    pub const NONE: Payload = Payload { block: u32::MAX, symbol: u32::MAX };
}

/// Flags of a data packet: each means the same in every scheme. A statement of a single scheme about a packet is its [`Signal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// The source is in start-up: receivers measure and report rates ([`ReportContent::Received`]).
    pub const STARTING: Flags = Flags(1);
    /// Last packet of a start-up round: a good moment to report.
    pub const ROUND_END: Flags = Flags(1 << 1);
    /// Sent again or sent as repair: no round-trip sample from it (Karn).
    pub const REPAIR: Flags = Flags(1 << 2);
    /// A router has already reported the gap before this packet (RMANP).
    pub const GAP_SEEN: Flags = Flags(1 << 5);
    /// The source waits for the answers of all receivers to this start-up round: each answers at once.
    pub const EVERYBODY: Flags = Flags(1 << 7);
    /// All of them.
    pub const ALL: Flags = Flags::STARTING
        .with(Flags::ROUND_END)
        .with(Flags::REPAIR)
        .with(Flags::GAP_SEEN)
        .with(Flags::EVERYBODY);

    /// Both sets of flags.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Statement of the source's scheme about one data packet, in addition to its [`Mark`]. It is not a field of the mark's variants because
/// those are full: one more byte in a mark would make [`Packet`] longer than 64 bytes, and this byte is there anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Signal {
    /// Nothing.
    #[default]
    None,
    /// Control packet of an accumulation measurement: due at a known time after the ones before (MCA, MCA+).
    Control,
    /// Part of a burst (RLC).
    Burst,
    /// Last packet of a burst, and a synchronisation point of its layer: receivers may go up (RLC).
    SyncPoint,
    /// The layer temporarily sends faster than its own control allows, at the cost of the layer above (GMCC).
    Gains,
    /// The layer temporarily sends slower than its own control allows, in favour of the layer below (GMCC).
    Gives,
    /// Sent by the parent to its local group, at the parent's own pace and with the parent's time (MTCP).
    Local,
}

impl Signal {
    /// Whether the packet is part of a burst.
    pub const fn is_burst(self) -> bool {
        matches!(self, Signal::Burst | Signal::SyncPoint)
    }
}

/// Statement of the source's scheme to all receivers, in every data packet.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Mark {
    /// Nothing.
    #[default]
    None,
    /// The congestion representative and its statistics (ORMCC, GMCC, MCA+).
    Representative {
        /// Its identity; `None` while there is no valid one and every receiver may report.
        id: Option<ReceiverId>,
        /// Mean of its level.
        mean: f32,
        /// Mean deviation of its level.
        deviation: f32,
        /// The largest round-trip time, in seconds: receivers spread their reports over twice this.
        rtt_max: f32,
    },
    /// The receiver that acknowledges (PGMCC).
    Acker {
        /// Its identity; `None` requests an election.
        id: Option<ReceiverId>,
    },
    /// Equation-based control (TFMCC; RFC 4654, 2.1).
    Equation {
        /// Reports above this rate are suppressed, in bit/s ("X_supp").
        suppress_above: f32,
        /// The largest round-trip time, in seconds ("R_max").
        rtt_max: f32,
        /// Feedback round, modulo 256 ("fb_nr").
        round: u8,
        /// The receiver whose stamp is in `echo` ("r"); `None` while no stamp is due.
        to: Option<ReceiverId>,
        /// That receiver's own stamp in microseconds, plus the time that the source held it ("tr_r'").
        echo: u32,
        /// Whether that receiver is the current limiting one ("is_CLR").
        limiting: bool,
    },
    /// The slot of a common timetable (RLC).
    Timetable {
        /// Slot number since the session started.
        slot: u32,
    },
    /// The representative of the packet's layer and its statistics, and where every layer stands (GMCC).
    Layered {
        /// Its identity; `None` while there is no valid one and every receiver may report.
        id: Option<ShortId>,
        /// Mean of its level.
        mean: f32,
        /// Standard error of that mean: standard deviation over the square root of the number of samples.
        error: f32,
        /// Smoothed round-trip time to it, in seconds.
        rtt: f32,
        /// The rate at which the layer above is sent, in bit/s; zero while that is off.
        above: Half,
        /// Grows by one, modulo 256, with each change of its statistics.
        updates: u8,
        /// Where every layer stands.
        states: LayerStates,
    },
    /// The window of the whole session and the time of a round (MTCP).
    Window {
        /// Packets that may be under way to the slowest receiver.
        window: f32,
        /// Time from sending a packet until all the tree has acknowledged it, in seconds; 0 while it is not known.
        rtt: f32,
    },
    /// The receiver that acknowledges each packet, and the feedback that the others may omit (RACCOOM).
    Target {
        /// The receiver at the end of the path with the largest round-trip time; `None` while it is unknown.
        id: Option<ShortId>,
        /// Losses of packets more than this number behind this one have been answered; `u16::MAX`: none of the losses that can be reported.
        since_cut: u16,
        /// The largest round-trip time, in seconds: receivers spread their reports of losses over twice this.
        rtt_max: f32,
        /// Interval between acknowledgements of receivers other than `id`, in seconds; 0: every receiver acknowledges each packet.
        every: f32,
    },
    /// The least rate, and how receivers answer (RMANP). Routers on the path may change the last three fields.
    Floor {
        /// The least rate that the application accepts, in bit/s ("Rm").
        least: f32,
        /// The largest round-trip time, in seconds: receivers spread congestion indications over twice this.
        rtt_max: f32,
        /// Interval between acknowledgements of each receiver, in seconds; 0: it acknowledges each packet and reports congestion at once.
        every: f32,
        /// This receiver is excluded and leaves.
        excluded: Option<ShortId>,
    },
}

/// Where each of up to sixteen layers stands, two bits a layer, the base layer's lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerStates(pub u32);

/// Where a layer stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerState {
    /// Nothing is sent on it.
    Off,
    /// It is sent, and no valid representative is followed.
    Open,
    /// It follows a representative that has fewer samples than its statistics want.
    Followed,
    /// It follows a representative whose statistics are settled.
    Settled,
}

/// A receiver's (or relay's) report to its parent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Report {
    /// The reporting receiver.
    pub from: ReceiverId,
    /// About which layer.
    pub layer: Layer,
    /// The payload.
    pub content: ReportContent,
}

/// A packet of the source that a report answers, for round-trip samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// The packet.
    pub seq: Seq,
    /// How long the receiver held it before the report left; [`Span::MAX`] when no sample may be taken (Karn).
    pub hold: Span,
}

/// The content of a report, by meaning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ReportContent {
    /// I am here (round-trip samples, heartbeats).
    Alive {
        /// The newest packet received.
        echo: Echo,
    },
    /// I saw congestion.
    Congested {
        /// The packet whose arrival revealed it.
        echo: Echo,
        /// This event's level, in the scheme's unit (ORMCC: TRAC in bit/s; RMANP: the rate that would have been right).
        level: f32,
        /// The receiver's own mean of the level.
        mean: f32,
        /// The kind of congestion report.
        cause: Cause,
    },
    /// These packets are lost: a negative acknowledgement (LE-SBCC, PGMCC, RMANP).
    Lost {
        /// A packet for a round-trip sample: the one whose arrival revealed the loss or, from receivers that do not report that one, the
        /// lost packet itself.
        echo: Echo,
        /// First lost packet.
        first: Seq,
        /// How many from there on.
        count: u16,
        /// Smoothed loss fraction, 0 to 1; 0 from receivers that do not measure it.
        loss: f32,
    },
    /// I received at this rate since the last start-up round.
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
        /// Everything up to `echo.seq - behind` has arrived.
        behind: u32,
        /// Bit k: packet `echo.seq - k` has arrived.
        bitmap: u32,
        /// Smoothed loss fraction, 0 to 1.
        loss: f32,
    },
    /// The rate that the equation gives at this receiver (TFMCC; RFC 4654, 2.2).
    Calculated {
        /// The newest packet received ("ts_i'").
        echo: Echo,
        /// The rate, in bit/s ("X_r").
        rate: f32,
        /// The receiver's own clock when this left, in microseconds ("tr_r").
        stamp: u32,
        /// The feedback round that is answered ("fb_nr").
        round: u8,
        /// The receiver's knowledge.
        knows: Knows,
    },
    /// How congested I am, over the newest congestion events (GMCC).
    Averaged {
        /// The packet whose arrival triggered this report.
        echo: Echo,
        /// Mean of the level.
        mean: f32,
        /// Its standard deviation.
        deviation: f32,
        /// Over how many events.
        samples: u16,
        /// The rate at which packets of the layer arrive, in bit/s; zero when unknown.
        rate: f32,
        /// Why it is sent.
        cause: Cause,
    },
    /// The packets that arrived, with missing ones as ranges (MTCP). More ranges than fit make several reports.
    Acknowledged {
        /// The highest packet received; its hold is [`Span::MAX`] when it gives no sample of a delay.
        echo: Echo,
        /// Everything below `echo.seq + 1 - behind` has arrived.
        behind: u16,
        /// The missing ranges; between two of them everything has arrived.
        holes: Holes,
        /// How many ranges there are between the newest of them and `echo.seq`; 0: everything behind it has arrived.
        newer: u8,
    },
    /// The packets that arrived, and the state of the part of the tree below (MTCP).
    Summary {
        /// The highest packet received.
        echo: Echo,
        /// Everything below `echo.seq + 1 - behind` has arrived here.
        behind: u16,
        /// The smallest window of this part of the tree, in packets; infinite when nothing limits it.
        window: f32,
        /// Most packets that have arrived at a node of this part and are not acknowledged by its children.
        transit: u16,
        /// No receiver of this part lacks a packet below `echo.seq + 1 - lag`; 0: no packet is missing.
        lag: u16,
    },
    /// The receiver has carried out an order (MTCP).
    Answered {
        /// The newest packet received; its hold is how long the order waited for this answer.
        echo: Echo,
        /// The order's number.
        number: u32,
    },
    /// Progress of the receivers of a part of the tree: the least of their newest packets, and the highest that any of them has lost
    /// (RACCOOM). A receiver alone is such a part.
    Newest {
        /// The newest packet received ("AckSeq"), of several receivers the least of theirs; its hold is [`Span::MAX`] when it
        /// gives no round-trip sample.
        echo: Echo,
        /// The packet behind the highest one that was lost ("LostSeq"); 0 while none was.
        past_lost: Seq,
        /// The receiver with that newest packet ("Rcv_id"); `None` while no receiver has reported its progress.
        of: Option<ShortId>,
    },
}

/// Packets in a row that have not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hole {
    /// The first is packet `echo.seq - back`.
    pub back: u16,
    /// How many; 0 for no hole.
    pub count: u16,
}

/// Holes of a report, the newest first; those behind the last one count no packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holes(pub [Hole; Holes::MAX]);

impl Holes {
    /// The number of holes that fit into a report.
    pub const MAX: usize = 3;

    /// Those that count packets.
    pub fn iter(&self) -> impl Iterator<Item = Hole> {
        self.0.into_iter().take_while(|hole| hole.count > 0)
    }
}

impl Mark {
    /// The kind of [`Mark::Representative`], before there is one.
    pub const REPRESENTATIVE: Mark =
        Mark::Representative { id: None, mean: f32::INFINITY, deviation: 0.0, rtt_max: 0.0 };
    /// The kind of [`Mark::Equation`], before anything is known.
    pub const EQUATION: Mark = Mark::Equation {
        suppress_above: f32::INFINITY,
        rtt_max: 0.0,
        round: 0,
        to: None,
        echo: 0,
        limiting: false,
    };
    /// The kind of [`Mark::Target`] that has everybody acknowledge each packet.
    pub const TARGET: Mark = Mark::Target { id: None, since_cut: u16::MAX, rtt_max: 0.0, every: 0.0 };
    /// The kind of [`Mark::Floor`] that has everybody acknowledge each packet.
    pub const FLOOR: Mark = Mark::Floor { least: 0.0, rtt_max: 0.0, every: 0.0, excluded: None };
}

/// A receiver's knowledge in equation-based control (RFC 4654, 2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Knows(pub u8);

impl Knows {
    /// It has measured its round-trip time ("have_RTT").
    pub const RTT: Knows = Knows(1);
    /// It has seen a loss event ("have_loss").
    pub const LOSS: Knows = Knows(1 << 1);
    /// It is leaving ("leave").
    pub const LEAVING: Knows = Knows(1 << 2);

    /// Both.
    #[must_use]
    pub const fn with(self, other: Knows) -> Knows {
        Knows(self.0 | other.0)
    }

    /// Whether all of `other` are set.
    pub const fn has(self, other: Knows) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Why a [`ReportContent::Congested`] or [`ReportContent::Averaged`] report was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A packet was lost.
    Loss,
    /// The session's own packets pile up in a queue (MCA, MCA+).
    Accumulation,
    /// A packet was marked (ECN CE).
    Mark,
    /// The representative is still there.
    Heartbeat,
    /// The receiver is leaving.
    Leaving,
    /// The receiver requests the layer.
    Joining,
}

/// A parent's word to one of its children (MTCP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// The receiver of the order.
    pub to: ReceiverId,
    /// The parent's number for it, which is in the answer ([`ReportContent::Answered`]).
    pub number: u32,
    /// The content.
    pub content: OrderContent,
}

/// The instruction of a parent to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderContent {
    /// Be in this group and in no other, and wait for nothing before this packet. A child that was present but has received nothing before
    /// a later packet lacks the ones in between.
    Join {
        /// Which of the parent's groups; 0 is the session's.
        group: u8,
        /// The first packet that comes there; `u64::MAX` for whatever is next.
        from: Seq,
    },
    /// Answer, and nothing else.
    Poll,
}

/// How a data packet arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Arrival {
    /// Size on the wire, in bytes.
    pub size: u16,
    /// Packets that this arrival reveals as lost (gap detection is the driver's: `delivery::gaps`).
    pub lost: u32,
    /// Carries an ECN congestion mark.
    pub marked: bool,
    /// Older than the newest packet seen: a duplicate, reordered or late one.
    pub late: bool,
}

impl ReceiverId {
    /// From a number; `None` for zero.
    pub const fn new(id: u64) -> Option<ReceiverId> {
        match NonZeroU64::new(id) {
            Some(id) => Some(ReceiverId(id)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl ShortId {
    /// `None` for a number of more than 32 bits.
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
    /// The packet of the source that this answers.
    pub const fn echo(&self) -> Echo {
        let mut content = *self;
        *content.echo_mut()
    }

    /// The same, to be changed.
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
    /// The number of layers that can be described.
    pub const LAYERS: u8 = 16;

    /// The state of `layer`; off for layers that cannot be described.
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

    /// The same with another state of `layer`, which must be one that can be described.
    #[must_use]
    pub const fn with(self, layer: Layer, standing: LayerState) -> LayerStates {
        let at = 2 * layer.0;
        LayerStates(self.0 & !(3 << at) | (standing as u32) << at)
    }
}

impl Seq {
    /// The packet after this one.
    #[must_use]
    pub const fn next(self) -> Seq {
        Seq(self.0 + 1)
    }

    /// Unwrap a 32-bit number from the wire relative to the newest known number (window 2^31).
    #[must_use]
    pub const fn unwrap(newest: Seq, wire: u32) -> Seq {
        let step = wire.wrapping_sub(newest.0 as u32) as i32 as i64;
        let seq = newest.0 as i64 + step;
        if seq < 0 { Seq(wire as u64) } else { Seq(seq as u64) }
    }
}

impl Data {
    /// The rate at which the packet was sent.
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
    fn a_number_wraps_forward_and_back() {
        assert_eq!(Seq::unwrap(Seq(0xffff_fff0), 5), Seq(0x1_0000_0005));
        assert_eq!(Seq::unwrap(Seq(0x1_0000_0005), 0xffff_fff0), Seq(0xffff_fff0));
        assert_eq!(Seq::unwrap(Seq(0), 7), Seq(7));
    }

    #[test]
    fn each_layer_has_a_standing_of_its_own() {
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
    fn a_number_before_the_first_one_is_taken_as_it_is() {
        assert_eq!(Seq::unwrap(Seq(3), 0xffff_ffff), Seq(0xffff_ffff));
    }
}
