//! Agents on hosts: sources and receivers of sessions, senders and sinks of unicast flows.

use super::clocked::Clocked;
use super::layers::Subscription;
use super::meter::Meter;
use super::nanos::{NEVER, Phase, covers, mix, time};
use super::relays::SessionSource;
use super::tree_nodes::{ReceivedPackets, SessionTree};
use crate::delays::DelayCounts;
use crate::outcome::{DelayOutcome, FlowCounts};
use crate::routes::NONE;
use crate::traffic::ApplicationData;
use faircast_core::delivery::gaps::InOrder;
use faircast_core::node::{Departure, Effect, Effects, Receiver as _};
use faircast_core::packet::{Data, Echo, Layer, Mark, ReceiverId, Report, ReportContent, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::{AnyReceiver, Scheme, StatedRate};
use faircast_core::time::Span;
use faircast_unicast::{AnySender, AnySink, Protocol, SenderView};
use std::sync::Arc;

/// A host: its agents are `slots[first .. first + count]`.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Earliest deadline of the host's agents.
    pub next: u64,
    /// Time of the timer for which the calendar or the inbox has an entry.
    pub scheduled: u64,
    pub first: u32,
    pub count: u32,
    /// Number of the host's deadline tournament if the host has many agents; [`NONE`] otherwise.
    pub tournament: u32,
    /// [`FEEDER`] with the host's number as a feeder if an inbox runs its timers, the number of the bundled last hop to this host
    /// if there is one, and [`NONE`] otherwise.
    position: u32,
}

/// Bit in [`Host::position`] of feeders.
const FEEDER: u32 = 1 << 31;

const _: () = assert!(size_of::<Host>() == 32);

/// An agent on a host and its deadline. If the host has a single agent, the deadline is stored in `Host::next` instead, and
/// `deadline` is not updated.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub deadline: u64,
    pub agent: Agent,
}

/// Role of an agent, and its number among the agents of this role.
#[derive(Debug, Clone, Copy)]
pub enum Agent {
    Source(u32),
    Member { session: u32, member: u32 },
    Sender(u32),
    Sink(u32),
}

/// The source of a session, and the state that all its members share.
#[derive(Debug)]
pub struct SessionAgent {
    pub source: SessionSource,
    pub rng: Rng,
    pub id: SessionId,
    pub flow: u32,
    pub host: u32,
    pub slot: u32,
    pub packet_size: u16,
    pub report_size: u16,
    pub stated_rate: StatedRate,
    /// Number of layers that the source may use.
    pub layers: u8,
    /// The branches that start at the source's host.
    pub root: (u32, u32),
    pub root_bundle: u32,
    pub phase: Phase,
    pub start: u64,
    pub stop: u64,
    pub sampler: Sampler,
    pub sent_meter: Meter,
    pub sent: u64,
    /// Packets that were sent again; not included in `sent`.
    pub again: u64,
    pub followed: Option<ReceiverId>,
    /// Whether the source was in slow start at its last inspection.
    pub starting: bool,
    pub cuts: u64,
    /// Number of packets that the source may still send.
    pub left: u64,
    /// Periods in which the application has data; empty if it always has data.
    pub talks: Box<[(u64, u64)]>,
    /// Whether data may be marked.
    pub capable: bool,
    /// The scheme; it creates a new receiver when a member returns.
    pub scheme: Arc<Scheme>,
    /// Periods with at least one member. The source must not query the members' state, because members may be ahead of the source
    /// in simulated time.
    pub present: Box<[(u64, u64)]>,
    /// Number of members present when the source starts.
    pub at_start: usize,
    /// Interval at which members report their presence, nanoseconds.
    pub alive: Option<u64>,
    /// Number of probes still to be sent before the start.
    pub probes_left: u8,
    /// State of the session's tree, if its members form a tree.
    pub tree: Option<Box<SessionTree>>,
    /// The members of this island.
    pub members: Vec<ReceiverAgent>,
}

impl SessionAgent {
    /// Returns the time and the layer of the next packet. The time is the scheme's departure time, postponed until the
    /// application has data. If several layers may send at this time, the lowest of them is returned.
    pub fn departure(&self, now: u64) -> (u64, Layer) {
        if self.layers == 1 {
            return (self.departure_of(Layer(0), now), Layer(0));
        }
        let mut first = (NEVER, Layer(0));
        for layer in (0..self.layers).map(Layer) {
            let at = self.departure_of(layer, now);
            if at < first.0 {
                first = (at, layer);
            }
        }
        first
    }

    fn departure_of(&self, layer: Layer, now: u64) -> u64 {
        let Departure::At(at) = self.source.departure(layer) else { return NEVER };
        if self.left == 0 {
            return NEVER;
        }
        if self.talks.is_empty() {
            return at.as_nanos();
        }
        let at = at.as_nanos().max(now);
        let over = self.talks.partition_point(|&(_, to)| to <= at);
        self.talks.get(over).map_or(NEVER, |&(from, _)| at.max(from))
    }

    /// Returns the time of the next probe; [`NEVER`] for none. Probes allow members to answer before the start.
    pub fn probe_at(&self) -> u64 {
        let Some(alive) = self.alive.filter(|_| self.probes_left > 0) else { return NEVER };
        self.start.saturating_sub(alive * u64::from(self.probes_left))
    }

    /// Returns the counts of the source.
    pub fn sent_counts(&self) -> FlowCounts {
        FlowCounts { sent: self.sent + self.again, again: self.again, ..FlowCounts::default() }
    }

    /// Whether any member is present.
    pub fn has_members(&self, now: u64) -> bool {
        covers(&self.present, now)
    }
}

/// A receiver of a session. Fields that every packet accesses come first.
#[derive(Debug)]
#[repr(C)]
pub struct ReceiverAgent {
    pub join: u64,
    pub leave: u64,
    /// The deadline stored in the agent's slot.
    pub deadline: u64,
    pub meter: Meter,
    pub digest: u64,
    pub bytes: u64,
    pub gaps: InOrder,
    pub host: u32,
    pub packets: u32,
    /// State that few members need.
    pub extra: Option<Box<MemberExtra>>,
    pub rng: Rng,
    /// State machine of the receiver. It is unused for a relay: the source of the downstream session acts for the relay.
    pub receiver: AnyReceiver,
    /// Number of the member in its session. Its island has another number if members are in several islands.
    pub number: u32,
    pub slot: u32,
    /// First hop of the receiver's reports.
    pub hop: u32,
    pub reports: u32,
    /// Number of reports that acknowledge received packets.
    pub acknowledgements: u32,
}

const _: () = assert!(size_of::<ReceiverAgent>() <= 616, "a million of them are simulated");

impl ReceiverAgent {
    /// Returns the earliest time at which the receiver acts without receiving a packet.
    #[inline]
    pub fn deadline(&self) -> u64 {
        if self.join == NEVER {
            return NEVER;
        }
        self.receiver.deadline().as_nanos().min(self.leave)
    }

    fn id(&self) -> ReceiverId {
        ReceiverId::new(u64::from(self.number) + 1).expect("members are numbered from one")
    }

    /// Returns the session that this member sends as a relay; `None` if the member is not a relay.
    #[inline]
    pub fn relay(&self) -> Option<u32> {
        self.extra.as_ref().and_then(|extra| extra.relay)
    }

    /// Ends the stay of the member. If the member returns later, it returns as a new receiver.
    pub fn leave(&mut self, scheme: &Scheme) {
        (self.join, self.leave) = (NEVER, NEVER);
        let Some(extra) = &mut self.extra else { return };
        extra.suppressed_before += self.receiver.suppressed();
        extra.lost_before += self.gaps.lost();
        if let Some(stay) = extra.returns.pop() {
            (self.join, self.leave) = stay;
        }
        self.receiver = scheme.receiver(self.id());
        self.gaps = InOrder::default();
    }

    /// Returns the number of packets that the member found lost, over all its stays.
    pub fn lost(&self) -> u64 {
        let Some(extra) = &self.extra else { return self.gaps.lost() };
        self.gaps.lost() + extra.lost_before + extra.subscription.as_ref().map_or(0, Subscription::lost)
    }

    /// Returns the number of congestion events that the member did not report, over all its stays.
    pub fn suppressed(&self) -> u32 {
        self.receiver.suppressed() + self.extra.as_ref().map_or(0, |extra| extra.suppressed_before)
    }

    /// Counts an arrival.
    #[inline]
    pub fn count(&mut self, now: u64, what: u64, size: u16) {
        self.packets += 1;
        self.bytes += u64::from(size);
        self.digest = mix(self.digest, now, what);
    }
}

/// State that few members need.
#[derive(Debug, Default)]
pub struct MemberExtra {
    pub bins: Option<Vec<u64>>,
    /// Counts at each counted moment so far; only for members with bins.
    pub counts: Vec<FlowCounts>,
    pub mute: Option<Mute>,
    pub alive: Option<Alive>,
    /// Subscription, in sessions of several layers.
    pub subscription: Option<Subscription>,
    /// Times at which the member joins and leaves again in its later stays, in reverse order.
    pub returns: Vec<(u64, u64)>,
    /// Packets found lost in earlier stays.
    pub lost_before: u64,
    pub suppressed_before: u32,
    /// The session that the member sends as a relay.
    pub relay: Option<u32>,
    /// Time at which the member was excluded.
    pub excluded: Option<u64>,
    /// Delays of packets to the member, if they are measured.
    pub delays: Option<Box<Delays>>,
}

/// Delays of packets from their first transmission by the source to their first arrival at a member.
#[derive(Debug, Default)]
pub struct Delays {
    pub seen: ReceivedPackets,
    pub outcome: DelayOutcome,
    pub counts: DelayCounts,
}

impl Delays {
    fn on_data(&mut self, data: &Data, at: u64) {
        if self.seen.note(data.seq.0) {
            let delay = time(at).since(data.sent_at);
            self.outcome.add(delay);
            self.counts.add(delay.as_secs_f64());
        }
    }
}

impl MemberExtra {
    /// Processes a packet of the base layer.
    pub fn on_data(&mut self, member: u32, data: &Data, at: u64, effects: &mut Effects) {
        if let Some(mute) = &mut self.mute {
            mute.on_data(member, data, at);
        }
        if let Some(delays) = &mut self.delays {
            delays.on_data(data, at);
        }
        if let Some(alive) = &mut self.alive
            && at >= alive.next
        {
            alive.next = at + alive.every;
            let from = ReceiverId::new(u64::from(member) + 1).expect("members are numbered from one");
            let echo = Echo { seq: data.seq, hold: Span::ZERO };
            effects.push(Effect::Report(Report {
                from,
                layer: Layer(0),
                content: ReportContent::Alive { echo },
            }));
        }
    }
}

/// State of a receiver that reports its presence like a receiver of a transport: after each interval, the next packet that
/// arrives triggers a report.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    pub every: u64,
    pub next: u64,
}

/// State of a receiver that stops sending reports after it has been the representative for a given total time.
#[derive(Debug, Clone, Copy)]
pub struct Mute {
    pub after: u64,
    pub represented: u64,
    /// Time of the latest data header, if this header named the receiver as the representative.
    pub since: Option<u64>,
}

impl Mute {
    /// Adds the time since the preceding header to the receiver's time as the representative, and checks whether this header
    /// names the receiver.
    pub fn on_data(&mut self, member: u32, data: &Data, at: u64) {
        let me = ReceiverId::new(u64::from(member) + 1).expect("members are numbered from one");
        let named = match data.mark {
            Mark::Representative { id, .. } | Mark::Acker { id } => id == Some(me),
            Mark::Layered { id, .. } | Mark::Target { id, .. } => id.map(ReceiverId::from) == Some(me),
            Mark::Equation { to, limiting: true, .. } => to == Some(me),
            // This header addresses another receiver than the limiting one, so the limiting receiver is still that of the
            // preceding header.
            Mark::Equation { .. } => self.since.is_some(),
            Mark::None | Mark::Timetable { .. } | Mark::Window { .. } | Mark::Floor { .. } => false,
        };
        if let Some(since) = self.since {
            self.represented += at - since;
        }
        self.since = named.then_some(at);
    }

    pub const fn is_silent(&self) -> bool {
        self.represented >= self.after
    }
}

/// The sending end of a unicast flow. Fields that every packet accesses come first.
#[derive(Debug)]
#[repr(C)]
pub struct SenderAgent {
    pub host: u32,
    pub slot: u32,
    /// First hop of the sender's packets.
    pub hop: u32,
    pub flow: u32,
    /// The sender's membership in a coordination; [`NONE`] for none.
    pub membership: u32,
    pub size: u16,
    /// Size of packets without data and of packets in the reverse direction, bytes.
    pub small: u16,
    pub generation: u8,
    pub phase: Phase,
    pub ends: Ends,
    /// The deadline stored in the agent's slot.
    pub deadline: u64,
    /// Earliest deadline of the fields in `rest`.
    pub other: u64,
    /// Data packets sent. Packets that open a connection are not counted.
    pub sent: u64,
    /// Data packets that had been sent before.
    pub again: u32,
    /// Number of cuts of this connection at the last inspection.
    pub cuts: u32,
    pub feedback: u64,
    pub digest: u64,
    pub sent_meter: Meter,
    pub kind: SenderKind,
    pub rng: Rng,
    pub rest: Box<SenderRest>,
}

/// Whether transfers of a flow end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Never,
    Sometimes,
}

/// Fields that few packets access.
#[derive(Debug)]
pub struct SenderRest {
    pub protocol: Option<Protocol>,
    pub application: Application,
    pub sampler: Sampler,
    pub start: u64,
    pub stop: u64,
    /// Counts of earlier connections.
    pub before: SenderView,
    /// Number of timeouts of this connection that are recorded so far, for a sender in a macroflow.
    pub timeouts: u32,
}

impl SenderAgent {
    /// Updates `other` after a change of `rest` or the phase.
    pub fn find_other(&mut self) {
        let rest = &self.rest;
        let own = match self.phase {
            Phase::Waiting => rest.start,
            Phase::Running => rest.application.next.min(rest.stop),
            Phase::Stopped => NEVER,
        };
        self.other = own.min(rest.sampler.next);
    }
}

/// A sender of any kind.
#[expect(
    clippy::large_enum_variant,
    reason = "a box would cost every TCP packet a cache line; datagrams are few"
)]
#[derive(Debug)]
pub enum SenderKind {
    Controlled(Clocked<AnySender>),
    Datagrams {
        gap: f64,
        jitter: f64,
        next: u64,
        number: u32,
    },
    /// The sender belongs to the macroflow of its coordination.
    Shared,
}

/// State of the application.
#[derive(Debug, Clone, Copy)]
pub struct Application {
    pub supply: ApplicationData,
    /// Time of the application's next action.
    pub next: u64,
    pub talks: Talks,
    /// Number of packets of the current transfer, and its start time.
    pub transfer: (u32, u64),
    /// Index of the next entry of the application's trace.
    pub entry: u32,
}

/// Whether an application has data to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talks {
    On,
    Off,
}

/// The receiving end of a unicast flow. Fields that every packet accesses come first.
#[derive(Debug)]
#[repr(C)]
pub struct SinkAgent {
    pub host: u32,
    pub slot: u32,
    pub hop: u32,
    pub small: u16,
    pub generation: u8,
    pub deadline: u64,
    pub packets: u64,
    pub bytes: u64,
    pub reports: u64,
    pub digest: u64,
    pub meter: Meter,
    /// State machine of the receiver; `None` for datagrams, which are not acknowledged.
    pub sink: Option<AnySink>,
    pub rng: Rng,
    /// Packets delivered by earlier connections.
    pub delivered_before: u64,
    /// Delays of packets, if they are measured: one histogram for each interval between counted moments.
    pub delays: Option<Box<[DelayCounts]>>,
}

/// Next sampling time and sampling period of a sender.
#[derive(Debug, Clone, Copy)]
pub struct Sampler {
    pub next: u64,
    pub every: u64,
}

impl Sampler {
    pub const fn new(every: u64) -> Sampler {
        Sampler { next: if every == NEVER { NEVER } else { 0 }, every }
    }
}

impl ReceiverAgent {
    pub fn counts(&self) -> FlowCounts {
        let received = u64::from(self.packets);
        FlowCounts { received, delivered: received, lost: self.lost(), ..FlowCounts::default() }
    }
}

impl SenderAgent {
    pub fn counts(&self) -> FlowCounts {
        FlowCounts { sent: self.sent, again: u64::from(self.again), ..FlowCounts::default() }
    }
}

impl SinkAgent {
    pub fn counts(&self) -> FlowCounts {
        FlowCounts { received: self.packets, delivered: self.delivered(), ..FlowCounts::default() }
    }
}

impl Host {
    pub const fn new() -> Host {
        Host { next: NEVER, scheduled: NEVER, first: 0, count: 0, tournament: NONE, position: NONE }
    }

    /// Returns the bundled last hop to this host.
    #[inline]
    pub const fn bundled_link(&self) -> Option<u32> {
        if self.position < FEEDER { Some(self.position) } else { None }
    }

    /// Returns the number of the host as a feeder, if an inbox runs its timers.
    #[inline]
    pub const fn feeder(&self) -> Option<u32> {
        if self.position >= FEEDER && self.position != NONE { Some(self.position & !FEEDER) } else { None }
    }

    pub const fn set_bundled_link(&mut self, link: u32) {
        self.position = link;
    }

    pub const fn set_feeder(&mut self, feeder: u32) {
        self.position = FEEDER | feeder;
    }
}
