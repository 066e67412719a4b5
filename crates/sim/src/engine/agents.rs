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

/// A host: its agents are `slots[first .. first + count]`.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// The earliest deadline of its agents.
    pub next: u64,
    /// The earliest entry of this host in the calendar.
    pub scheduled: u64,
    pub first: u32,
    pub count: u32,
    /// Its tournament of deadlines, when it has many agents; [`NONE`] otherwise.
    pub tournament: u32,
    /// The bundled last hop that leads here; [`NONE`] for none.
    pub bundled_link: u32,
}

/// An agent on a host and its deadline. Where a host has one agent, the host's own `next` is that deadline, and this one
/// is not kept up to date.
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    pub deadline: u64,
    pub agent: Agent,
}

/// Which agent, by its number.
#[derive(Debug, Clone, Copy)]
pub enum Agent {
    Source(u32),
    Member { session: u32, member: u32 },
    Sender(u32),
    Sink(u32),
}

/// A session's source, and what all its members share.
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
    /// How many layers it may use.
    pub layers: u8,
    /// The branches that leave the source's host.
    pub root: (u32, u32),
    pub root_bundle: u32,
    pub phase: Phase,
    pub start: u64,
    pub stop: u64,
    pub sampler: Sampler,
    pub sent_meter: Meter,
    pub sent: u64,
    /// Packets that it sent again, not among those.
    pub again: u64,
    pub followed: Option<ReceiverId>,
    /// Whether it was in start-up when it was looked at last.
    pub starting: bool,
    pub cuts: u64,
    /// Packets that it may still send.
    pub left: u64,
    /// When its application has something to send; always when empty.
    pub talks: Box<[(u64, u64)]>,
    /// Whether data may be marked.
    pub capable: bool,
    /// For members that come back.
    pub scheme: Scheme,
    /// When at least one member is there. Members may be ahead of the source, so it must not ask them.
    pub present: Box<[(u64, u64)]>,
    /// How many are there when the source starts.
    pub at_start: usize,
    /// How often members say that they are there.
    pub alive: Option<u64>,
    /// Probes that leave before the start.
    pub probes_left: u8,
    /// Where its members form a tree.
    pub tree: Option<Box<SessionTree>>,
    pub members: Vec<ReceiverAgent>,
}

impl SessionAgent {
    /// Returns when its next packet may leave, and on which layer: the scheme's departure, once the application
    /// has data. Among layers that may send at the same moment the lowest comes first.
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

    /// When the next probe leaves, which lets members answer before the start; [`NEVER`] for none.
    pub fn probe_at(&self) -> u64 {
        let Some(alive) = self.alive.filter(|_| self.probes_left > 0) else { return NEVER };
        self.start.saturating_sub(alive * u64::from(self.probes_left))
    }

    /// Returns the counts of its source.
    pub fn sent_counts(&self) -> FlowCounts {
        FlowCounts { sent: self.sent + self.again, again: self.again, ..FlowCounts::default() }
    }

    /// Whether any member is there.
    pub fn has_members(&self, now: u64) -> bool {
        covers(&self.present, now)
    }
}

/// A receiver of a session. Fields that every packet touches come first.
#[derive(Debug)]
#[repr(C)]
pub struct ReceiverAgent {
    pub join: u64,
    pub leave: u64,
    /// The deadline that its slot knows.
    pub deadline: u64,
    pub meter: Meter,
    pub digest: u64,
    pub bytes: u64,
    pub gaps: InOrder,
    pub host: u32,
    pub packets: u32,
    /// A relay's gets nothing and wants nothing: the source of the session below acts for it.
    pub receiver: AnyReceiver,
    pub rng: Rng,
    /// State that few members have.
    pub extra: Option<Box<MemberExtra>>,
    pub slot: u32,
    /// First hop of its reports.
    pub hop: u32,
    pub reports: u32,
    /// Reports that acknowledge what has arrived.
    pub acknowledgements: u32,
}

impl ReceiverAgent {
    /// When it wants to act without a packet.
    #[inline]
    pub fn deadline(&self) -> u64 {
        if self.join == NEVER {
            return NEVER;
        }
        self.receiver.deadline().as_nanos().min(self.leave)
    }

    /// The session whose source it is as well.
    #[inline]
    pub fn relay(&self) -> Option<u32> {
        self.extra.as_ref().and_then(|extra| extra.relay)
    }

    /// It is gone: for good, or to come back as a new receiver.
    pub fn leave(&mut self, me: ReceiverId, scheme: &Scheme) {
        (self.join, self.leave) = (NEVER, NEVER);
        let Some(extra) = &mut self.extra else { return };
        extra.suppressed_before += self.receiver.suppressed();
        extra.lost_before += self.gaps.lost();
        if let Some(stay) = extra.returns.pop() {
            (self.join, self.leave) = stay;
        }
        self.receiver = scheme.receiver(me);
        self.gaps = InOrder::default();
    }

    /// Packets found lost, in all its stays.
    pub fn lost(&self) -> u64 {
        let Some(extra) = &self.extra else { return self.gaps.lost() };
        self.gaps.lost() + extra.lost_before + extra.subscription.as_ref().map_or(0, Subscription::lost)
    }

    /// Congestion events that were not reported, in all its stays.
    pub fn suppressed(&self) -> u32 {
        self.receiver.suppressed() + self.extra.as_ref().map_or(0, |extra| extra.suppressed_before)
    }

    /// Note an arrival.
    #[inline]
    pub fn count(&mut self, now: u64, what: u64, size: u16) {
        self.packets += 1;
        self.bytes += u64::from(size);
        self.digest = mix(self.digest, now, what);
    }
}

/// State that few members have.
#[derive(Debug, Default)]
pub struct MemberExtra {
    pub bins: Option<Vec<u64>>,
    /// Counts before each moment that has passed, of members with bins.
    pub counts: Vec<FlowCounts>,
    pub mute: Option<Mute>,
    pub alive: Option<Alive>,
    /// In sessions of several layers.
    pub subscription: Option<Subscription>,
    /// When it comes back and leaves again, the next one last.
    pub returns: Vec<(u64, u64)>,
    /// In earlier stays.
    pub lost_before: u64,
    pub suppressed_before: u32,
    /// It is a relay: the source of this session.
    pub relay: Option<u32>,
    /// When it was excluded.
    pub excluded: Option<u64>,
    /// How long packets took to it, where that is asked for.
    pub delays: Option<Box<Delays>>,
}

/// How long packets take from the source's first sending to a member that has not had them.
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
    /// A packet of the base layer has come.
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

/// A receiver reports its presence, as a transport's do: with the first packet after each such time.
#[derive(Debug, Clone, Copy)]
pub struct Alive {
    pub every: u64,
    pub next: u64,
}

/// A receiver that falls silent once it has been the representative for long enough.
#[derive(Debug, Clone, Copy)]
pub struct Mute {
    pub after: u64,
    pub represented: u64,
    /// Since when it is the representative now.
    pub since: Option<u64>,
}

impl Mute {
    /// A header names the representative.
    pub fn on_data(&mut self, member: u32, data: &Data, at: u64) {
        let me = ReceiverId::new(u64::from(member) + 1).expect("members are numbered from one");
        let named = match data.mark {
            Mark::Representative { id, .. } | Mark::Acker { id } => id == Some(me),
            Mark::Layered { id, .. } | Mark::Target { id, .. } => id.map(ReceiverId::from) == Some(me),
            Mark::Equation { to, limiting: true, .. } => to == Some(me),
            // Speaks to somebody who is not the limiting one, and does not say who that is.
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

/// The sending end of a unicast flow. Fields that every packet touches come first.
#[derive(Debug)]
#[repr(C)]
pub struct SenderAgent {
    pub host: u32,
    pub slot: u32,
    /// First hop of its packets.
    pub hop: u32,
    pub flow: u32,
    /// Its membership in a coordination; [`NONE`] for none.
    pub membership: u32,
    pub size: u16,
    /// Size of packets of the other direction; also of packets without data.
    pub small: u16,
    pub generation: u8,
    pub phase: Phase,
    pub ends: Ends,
    /// The deadline that its slot knows.
    pub deadline: u64,
    /// The earliest of what `rest` waits for.
    pub other: u64,
    /// Data packets sent, without those that open a connection.
    pub sent: u64,
    /// Those sent before.
    pub again: u32,
    /// Cuts of this connection at its last inspection.
    pub cuts: u32,
    pub feedback: u64,
    pub digest: u64,
    pub sent_meter: Meter,
    pub kind: SenderKind,
    pub rng: Rng,
    pub rest: Box<SenderRest>,
}

/// Whether transfers of a flow come to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Never,
    Sometimes,
}

/// Fields that hardly any packet touches.
#[derive(Debug)]
pub struct SenderRest {
    pub protocol: Option<Protocol>,
    pub application: Application,
    pub sampler: Sampler,
    pub start: u64,
    pub stop: u64,
    /// Counts of earlier connections.
    pub before: SenderView,
    /// Timeouts of this connection that are recorded, where a macroflow sends.
    pub timeouts: u32,
}

impl SenderAgent {
    /// After a change of `rest` or the phase.
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
    /// The macroflow of its coordination.
    Shared,
}

/// Next action of the application.
#[derive(Debug, Clone, Copy)]
pub struct Application {
    pub supply: ApplicationData,
    /// When it changes its mind.
    pub next: u64,
    pub talks: Talks,
    /// Packets of the present transfer and when it began.
    pub transfer: (u32, u64),
    /// The next entry of its trace.
    pub entry: u32,
}

/// Whether an application has something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talks {
    On,
    Off,
}

/// The receiving end of a unicast flow. Fields that every packet touches come first.
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
    /// `None` for datagrams, which nothing answers.
    pub sink: Option<AnySink>,
    pub rng: Rng,
    /// Packets delivered by earlier connections.
    pub delivered_before: u64,
    /// How long packets took to it, span by span between the counted moments, where that is asked for.
    pub delays: Option<Box<[DelayCounts]>>,
}

/// When a sender is sampled next.
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
        Host { next: NEVER, scheduled: NEVER, first: 0, count: 0, tournament: NONE, bundled_link: NONE }
    }
}
