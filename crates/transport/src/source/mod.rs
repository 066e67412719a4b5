//! The source's session: schedules packets, and processes the receivers' feedback.
//!
//! [`SourceSession`] has neither sockets nor a clock: the caller passes datagrams and the current time, and takes datagrams and
//! events. [`crate::driver`] connects it to the network.
//!
//! ```text
//!   Gathering -- enough receivers joined --> Sending -- all are done, or the idle timeout expires --> Closing --> Over
//! ```

pub(crate) mod block_source;
mod blocks;
mod budget;
mod bursts;
mod completions;
mod endpoint;
mod feedback;
mod flood;
mod one_way;
mod pace;
mod pages;
mod passes;
mod progress;
mod rate_bounds;
mod reachability;
mod receipts;
mod refusals;
mod required_hosts;
mod resuming;
mod sampling;
pub(crate) mod scheduler;
mod start;
mod status;
mod stuck;
mod window;

use crate::backoff::RequestRate;
use crate::config::span;
use crate::config::{OneWay, ReceiptKeys, ReceiverEvents, RequiredHost, SlowReceiverPolicy, StartNow};
use crate::day_limits::DayLimits;
use crate::dry_run::Comparisons;
use crate::endpoint::Transmit;
use crate::error::{Error, SystemError, seconds};
use crate::event::{Event, RateCut, RefusedPackets, RelayBelow};
use crate::members::{MemberRecord, Members, Pace, Tally};
use crate::object::ObjectError;
use crate::trace::{Call, RELAY, SOURCE, Scope};
use crate::withdrawals::Slices;
use block_source::Leisure;
use budget::Budget;
use bursts::Bursts;
use faircast_core::node::{Cx, Departure, Effects, Source as _, Stamp};
use faircast_core::packet::{Data, Flags, Layer, ReceiverId, Seq, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::{Scheme, StatedRate};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::{
    DataPacket, MemberState, Name, Series, Signed, SigningKey, SourceCodec, Spacing, TransferId,
};
use pace::Pace as Pacing;
use pages::Pages;
use reachability::SendTimes;
use refusals::Refusals;
use required_hosts::RequiredHosts;
use scheduler::{Chosen, Looked, Scheduler};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;
use window::Windows;

const BASE: Layer = Layer(0);

/// Maximum number of bytes per system call. The number of datagrams per system call has a separate maximum.
const MAX_BYTES: usize = 65_000;

/// Packets scheduled within this time are sent in one call. Below about 10 Mbit/s, this is a single packet.
const BURST: Span = Span::from_micros(1_000);

/// Interval at which inputs are polled when there is no other work.
const LOOK_EVERY: Span = Span::from_millis(2);

/// Duration without new content after which a relay ends its session downstream, if the upstream session is over.
const NOTHING_LEFT: Span = Span::from_secs(3);

/// Bytes of the rate field of a data packet, if the scheme states its rate.
const RATE_LEN: usize = 2;

/// Parts of a new source session.
pub(crate) struct Setup {
    pub(crate) codec: SourceCodec,
    pub(crate) salt: [u8; 16],
    pub(crate) scheme: Scheme,
    /// The groups of all layers, the base layer's first.
    pub(crate) groups: Vec<SocketAddr>,
    /// Numbering of the groups of the layers.
    pub(crate) spacing: Spacing,
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// Key that signs the content.
    pub(crate) sign: Option<SigningKey>,
    /// Keys for required receipts. Each receiver must send a receipt that is signed with one of these keys.
    pub(crate) receipts: Option<ReceiptKeys>,
    /// Random stream that only the scheme uses.
    pub(crate) rng: Rng,
    pub(crate) name: String,
    /// Maximum size of a datagram, bytes.
    pub(crate) datagram: usize,
    /// Size of the IP and UDP headers of each datagram: 28 or 48 bytes.
    pub(crate) overhead: usize,
    pub(crate) slow: SlowReceiverPolicy,
    pub(crate) one_way: Option<OneWay>,
    pub(crate) min: Option<Rate>,
    pub(crate) max: Option<Rate>,
    /// Limits of the rate by the time of day.
    pub(crate) day_limits: Option<DayLimits>,
    pub(crate) expect: Option<u32>,
    /// Patterns of the host names of the receivers that take part, separated by commas; empty: all receivers.
    pub(crate) to_hosts: Name,
    pub(crate) series: Option<Series>,
    /// For a dry run: the length of the whole object stream, of which the content of this session is the manifest.
    pub(crate) dry_run: Option<u64>,
    /// Hosts that must receive all content.
    pub(crate) required: Vec<RequiredHost>,
    pub(crate) join_timeout: Duration,
    /// Session time before which no content is sent. Until then, receivers may join.
    pub(crate) not_before: Time,
    pub(crate) start: StartNow,
    /// Time to live of packets, for log lines: the maximum number of routers on the path, plus one.
    pub(crate) ttl: u8,
    /// Duration of silence or unreachability after which a receiver is given up.
    pub(crate) idle_timeout: Duration,
    /// Minimum feedback spread: the random delay of feedback.
    pub(crate) spread: Span,
    /// Local address: the source of packets and the destination of feedback.
    pub(crate) local: SocketAddr,
    /// Whether the session reports the state of each receiver.
    pub(crate) receiver_events: ReceiverEvents,
    /// Start of session time, in nanoseconds since 1970.
    pub(crate) started: u64,
}

/// A session of a source.
pub(crate) struct SourceSession {
    setup: Fixed,
    codec: SourceCodec,
    source: Pacing,
    scheduler: Box<dyn Scheduler>,
    /// Pages of signed content.
    pages: Option<Box<Pages>>,
    withdrawals: Slices,
    members: Members,
    windows: Windows,
    request_rate: RequestRate,
    rng: Rng,
    effects: Effects,
    events: VecDeque<Event>,
    phase: Phase,
    serving: Serving,
    clocks: Clocks,
    /// Number of each layer's next packet.
    next_seqs: Vec<Seq>,
    /// Size of the headers around the symbol of the latest data packet, bytes.
    header: usize,
    slow_named: Vec<ReceiverId>,
    followed_named: Vec<ReceiverId>,
    followed: Option<(ReceiverId, Time)>,
    counts: Counts,
    /// Rate cuts since the last progress event, at most [`RateCut::LISTED`].
    cuts: Vec<RateCut>,
    sampled: sampling::Sampled,
    /// The last receiver of the last [`Event::Receivers`]; `None` if this event had all receivers.
    listed: Option<ReceiverId>,
    left: SendTimes,
    /// Limit of the rate at this time of day.
    day_limit: Rate,
    rest: stuck::Rest,
    bursts: Bursts,
    /// Number of members whose answers the scheme expects.
    answering: usize,
    budget: Budget,
    refusals: Refusals,
    roll: RequiredHosts,
    receipts: receipts::Receipts,
    comparisons: Comparisons,
    /// Whether all receivers had most of the content when the session began.
    resumes: bool,
    /// Whether the session has reported that no receiver joins.
    nobody_reported: bool,
    flood: flood::Flood,
    failure: Option<Error>,
    scope: Scope,
}

/// Constants of a session.
struct Fixed {
    salt: [u8; 16],
    scheme: Scheme,
    groups: Vec<SocketAddr>,
    spacing: Spacing,
    name: String,
    datagram: usize,
    overhead: usize,
    slow: SlowReceiverPolicy,
    one_way: Option<OneWay>,
    min: Option<Rate>,
    max: Option<Rate>,
    day_limits: Option<DayLimits>,
    expect: Option<u32>,
    to_hosts: Name,
    series: Option<Series>,
    dry_run: Option<u64>,
    join_timeout: Span,
    not_before: Time,
    start: StartNow,
    ttl: u8,
    idle_timeout: Span,
    spread: Span,
    local: SocketAddr,
    receiver_events: ReceiverEvents,
    started: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Waiting for receivers; `last_received` is the time of the newest join.
    Gathering {
        last_received: Time,
    },
    Sending,
    /// Notifying the receivers of the end of the session.
    Closing {
        left: u8,
    },
    /// Finished.
    Over,
}

/// The receivers that the session serves now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Serving {
    /// All receivers that are fast enough.
    Together,
    /// The deferred receivers, after all other receivers are done.
    Deferred,
}

#[derive(Debug)]
struct Clocks {
    announce_at: Time,
    status_at: Time,
    heartbeat_at: Time,
    second_at: Time,
    status_sent: Time,
    /// Remaining time for which the session may wait for receivers.
    wait_left: Span,
    started: Option<Time>,
    finished: Time,
    idle_since: Option<Time>,
    /// Time at which the root hash became known.
    hashed_at: Option<Time>,
    /// Time at which the expected number of receivers were complete.
    expected_at: Option<Time>,
}

#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    wire_bytes: u64,
    wire_bytes_last: u64,
    /// Duration for which windows had held the source at the last progress event.
    held_last: Span,
    repairs: u64,
    refused: RefusedPackets,
}

impl SourceSession {
    pub(crate) fn new(setup: Setup, now: Time) -> SourceSession {
        let layers = setup.scheme.layers().max(1);
        let source = Pacing::new(&setup.scheme, setup.one_way.map(|one_way| one_way.rate));
        let is_stated = source.observe().starting || setup.scheme.entry().stated_rate == StatedRate::Always;
        let stated_rate = if is_stated { RATE_LEN } else { 0 };
        let header = setup.codec.data_header_len(&setup.scheme.mark()) - RATE_LEN + stated_rate;
        let pages = setup.sign.map(|key| {
            let (salt, transfer) = (setup.salt, TransferId(setup.scheduler.transfer().0));
            let about = Signed { session: setup.codec.session(), salt, transfer, started: setup.started };
            Box::new(Pages::new(key, about, setup.datagram))
        });
        let role = if setup.scheduler.source_is_finished().is_some() { RELAY } else { SOURCE };
        let (scope, mut members) = (Scope::new(&setup.name, role), Members::default());
        let scope = if role == RELAY { scope.on(setup.groups[0]) } else { scope };
        members.trace_in(scope.clone());
        let mut session = SourceSession {
            setup: Fixed {
                salt: setup.salt,
                scheme: setup.scheme,
                groups: setup.groups,
                spacing: setup.spacing,
                name: setup.name,
                datagram: setup.datagram,
                overhead: setup.overhead,
                slow: setup.slow,
                one_way: setup.one_way,
                min: setup.min,
                max: setup.max,
                day_limits: setup.day_limits,
                expect: setup.expect,
                to_hosts: setup.to_hosts,
                series: setup.series,
                dry_run: setup.dry_run,
                join_timeout: span(setup.join_timeout),
                not_before: setup.not_before,
                start: setup.start,
                ttl: setup.ttl,
                idle_timeout: span(setup.idle_timeout),
                spread: setup.spread.max(Members::turns(setup.expect.unwrap_or(0) as usize)),
                local: setup.local,
                receiver_events: setup.receiver_events,
                started: setup.started,
            },
            codec: setup.codec,
            source,
            scheduler: setup.scheduler,
            pages,
            withdrawals: Slices::default(),
            members,
            windows: Windows::default(),
            request_rate: RequestRate::default(),
            rng: setup.rng,
            effects: Effects::new(),
            events: VecDeque::new(),
            phase: Phase::Gathering { last_received: now },
            serving: Serving::Together,
            clocks: Clocks {
                announce_at: now,
                status_at: Time::NEVER,
                heartbeat_at: now,
                second_at: now + Span::from_secs(1),
                status_sent: Time::ZERO,
                wait_left: span(setup.join_timeout),
                started: None,
                finished: now,
                idle_since: None,
                hashed_at: None,
                expected_at: None,
            },
            next_seqs: vec![Seq(0); layers.into()],
            header,
            slow_named: Vec::new(),
            followed_named: Vec::new(),
            followed: None,
            counts: Counts::default(),
            cuts: Vec::new(),
            sampled: sampling::Sampled::default(),
            listed: None,
            left: SendTimes::default(),
            day_limit: Rate::UNLIMITED,
            rest: stuck::Rest::default(),
            bursts: if setup.one_way.is_some() { Bursts::one_by_one() } else { Bursts::new() },
            answering: 0,
            budget: Budget::default(),
            refusals: Refusals::default(),
            roll: RequiredHosts::new(setup.required),
            receipts: receipts::Receipts::new(setup.receipts),
            comparisons: Comparisons::default(),
            resumes: false,
            nobody_reported: false,
            flood: flood::Flood::default(),
            failure: None,
            scope,
        };
        session.follow_the_day(now);
        session.bound_rate(now);
        session
    }

    /// Returns the numbers of receivers and members.
    pub(crate) const fn tally(&self) -> Tally {
        self.members.tally()
    }

    /// Returns the relays of the session.
    pub(crate) fn relays(&self) -> Vec<RelayBelow> {
        self.members.relays()
    }

    /// Returns the session ID.
    pub(crate) fn id(&self) -> SessionId {
        self.codec.session()
    }

    /// Whether the session waits for receivers.
    pub(crate) const fn is_gathering(&self) -> bool {
        matches!(self.phase, Phase::Gathering { .. })
    }

    /// Returns the rate that the scheme allows now.
    pub(crate) fn rate(&self) -> Rate {
        self.source.observe().rate
    }

    /// Returns the time of the next action, if no datagram arrives before.
    fn next_timeout(&self, now: Time) -> Time {
        let at = self.clocks_at();
        match self.phase {
            Phase::Gathering { last_received } => {
                at.min(self.clocks.heartbeat_at).min(self.start_at(last_received))
            }
            Phase::Sending if !self.scheduler.is_idle() => {
                at.min(self.next_departure().0).min(self.look_at(now)).min(self.hold_at())
            }
            Phase::Sending if self.scheduler.has_work() => now,
            Phase::Sending => {
                let end = self.clocks.idle_since.map_or(Time::NEVER, |since| since + self.linger());
                at.min(now + LOOK_EVERY).min(if end > now { end } else { Time::NEVER })
            }
            _ => at.min(now + LOOK_EVERY),
        }
    }

    /// Returns the time of the next action, if neither datagrams nor input arrive before.
    fn clocks_at(&self) -> Time {
        let at = self.clocks.announce_at.min(self.clocks.status_at).min(self.clocks.second_at);
        let pages = self.pages.as_ref().filter(|_| self.phase == Phase::Sending);
        at.min(pages.map_or(Time::NEVER, |pages| pages.deadline())).min(self.source.deadline())
    }

    /// Returns the next wakeup, not counting the polling of inputs.
    #[cfg(test)]
    pub(crate) fn wake_without_looking(&self, now: Time) -> Time {
        let idle =
            matches!(self.phase, Phase::Sending) && self.scheduler.is_idle() && !self.scheduler.has_work();
        let end = self.clocks.idle_since.map_or(Time::NEVER, |since| since + self.linger());
        if idle { self.clocks_at().min(end.max(now + LOOK_EVERY)) } else { self.next_timeout(now) }
    }

    /// Returns the time of the next poll of the inputs while packets are sent.
    fn look_at(&self, now: Time) -> Time {
        self.scheduler.look_every().map_or(Time::NEVER, |every| now + every)
    }

    /// Processes expired timers.
    fn on_time(&mut self, now: Time) {
        if self.source.deadline() <= now {
            self.call_scheme(Call::Deadline, now, |source, cx| source.on_deadline(cx));
        }
        if self.clocks.second_at <= now {
            self.clocks.second_at += Span::from_secs(1);
            if matches!(self.phase, Phase::Gathering { .. } | Phase::Sending) {
                self.emit_progress(now);
                self.report_no_receiver(now);
            }
            self.pass_rate_to_scheduler();
            self.pass_loss_to_scheduler();
            self.look_for_reach(now);
            self.limit_less(now);
            self.follow_the_day(now);
            self.repeat_pages();
        }
        self.sample(now);
        if let Err(error) = self.look_at_inputs(now) {
            self.fail(error.into(), now);
        }
        self.end_with_source(now);
        match self.phase {
            Phase::Gathering { last_received } => self.consider_start(last_received, now),
            Phase::Sending => {
                self.watch_windows(now);
                self.consider_end(now);
            }
            Phase::Closing { .. } | Phase::Over => {}
        }
    }

    /// Writes the packets to send now to `out`; returns `None` if no packet is to be sent.
    fn next(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if self.phase == Phase::Over {
            return None;
        }
        if self.clocks.announce_at <= now && self.may_announce(now) {
            self.write_announce(now, out);
        } else if self.clocks.status_at <= now {
            self.write_status(now, out);
        } else if matches!(self.phase, Phase::Gathering { .. }) && self.clocks.heartbeat_at <= now {
            self.write_heartbeat(now, out);
        } else if matches!(self.phase, Phase::Sending) && !self.write_page(now, out) {
            return self.write_data(now, out);
        }
        let segment = out.len();
        self.counts.wire_bytes += (segment + self.setup.overhead) as u64;
        self.transmit(segment, BASE)
    }

    /// Schedules an announcement now, because the network has returned or changed. From now on, packets are sent from `local`.
    fn announce_soon(&mut self, local: Option<SocketAddr>, now: Time) {
        self.setup.local = local.unwrap_or(self.setup.local);
        if matches!(self.phase, Phase::Gathering { .. } | Phase::Sending) {
            self.clocks.announce_at = now;
        }
        if self.phase == Phase::Sending {
            self.status_soon(now);
        }
    }

    /// Describes datagrams of `segment` bytes for the group of this layer; returns `None` for zero bytes.
    fn transmit(&self, segment: usize, layer: Layer) -> Option<Transmit> {
        (segment > 0).then(|| Transmit { segment, to: self.setup.groups[usize::from(layer.0)], hops: None })
    }

    /// Returns the scheme of the session.
    #[cfg(test)]
    pub(crate) const fn scheme(&self) -> Scheme {
        self.setup.scheme
    }

    /// Returns the number of the base layer's next packet.
    #[cfg(test)]
    pub(crate) fn next_seq(&self) -> Seq {
        self.next_seqs[0]
    }

    /// Returns the state of the scheme.
    #[cfg(test)]
    pub(crate) fn observe(&self) -> faircast_core::node::Observation {
        self.source.observe()
    }

    fn write_data(&mut self, now: Time, out: &mut Vec<u8>) -> Option<Transmit> {
        let (at, layer) = self.next_departure();
        if at > now {
            return None;
        }
        let mut segment = 0;
        let (most, before) = (self.bursts.most(), self.counts.packets);
        for sent in 0..most {
            let chosen = match self.scheduler.next(layer) {
                Ok(Some(chosen)) => chosen,
                Ok(None) => break,
                Err(error) => {
                    self.fail(error.into(), now);
                    break;
                }
            };
            let Chosen { place, symbols, payload, flags } = chosen;
            let size = (payload.len() + self.header + self.setup.overhead) as u16;
            let stamp = self.source.on_departure(
                layer,
                size,
                &mut Cx { now, rng: &mut self.rng, effects: &mut self.effects },
            );
            let packet = DataPacket {
                data: Data {
                    seq: stamp.seq,
                    sent_at: now,
                    rate: header_rate(self.setup.scheme.entry().stated_rate, &stamp),
                    payload: place,
                    flags: stamp.flags.with(flags),
                    signal: stamp.signal,
                    mark: stamp.mark,
                },
                layer,
                symbols,
                payload,
            };
            let from = out.len();
            if let Err(error) = self.codec.encode_data(out, &packet) {
                self.fail(Error::System(SystemError::Wire(error)), now);
                break;
            }
            self.scope.sends(&packet, now);
            self.counts.repairs += u64::from(packet.data.flags.has(Flags::REPAIR));
            let len = out.len() - from;
            self.header = len - payload.len();
            self.scheduler.sent(stamp.seq);
            if segment == 0 {
                segment = len;
                if self.clocks.started.is_none() {
                    self.clocks.started = Some(now);
                }
            }
            self.next_seqs[usize::from(layer.0)] = stamp.seq.next();
            self.windows.on_departure(now);
            self.counts.packets += 1;
            self.counts.wire_bytes += (len + self.setup.overhead) as u64;
            debug_assert_eq!(len, segment, "the packets of one burst have one length");
            let due = self.departure(layer) <= now + BURST;
            if !due || out.len() + segment > MAX_BYTES || sent + 1 == most {
                break;
            }
        }
        if layer == BASE {
            let count = self.counts.packets - before;
            self.bursts.on_sent(Seq(self.next_seqs[0].0 - count), count as u32);
        }
        if segment > 0 && self.scheduler.is_drained() {
            self.clocks.status_at = now; // notify receivers at once of the end
        }
        self.refuse_effects(now);
        self.scheduler.prepare(layer);
        self.transmit(segment, layer)
    }

    fn layers(&self) -> u8 {
        self.next_seqs.len() as u8
    }

    /// Returns the time and the layer of the next departure. The time is [`Time::NEVER`] if all layers wait for a report.
    fn next_departure(&self) -> (Time, Layer) {
        let sent = (0..self.layers()).map(Layer).filter(|layer| self.scheduler.has(*layer));
        sent.map(|layer| (self.departure(layer), layer)).min().unwrap_or((Time::NEVER, BASE))
    }

    /// Returns the time of the layer's next departure, which depends on the scheme and on the receivers' windows.
    fn departure(&self, layer: Layer) -> Time {
        let Departure::At(at) = self.source.departure(layer) else { return Time::NEVER };
        if self.layers() > 1 {
            return at; // a receiver that cannot take a layer leaves it
        }
        let size = (self.setup.datagram + self.setup.overhead) as u64;
        self.windows.departure(at, self.next_seqs[0], self.setup.min, size)
    }

    /// Returns the time of the next check of the windows, or [`Time::NEVER`] if the windows do not delay the next packet.
    fn hold_at(&self) -> Time {
        match self.source.departure(BASE) {
            _ if self.layers() > 1 || self.windows.allows(self.next_seqs[0]) => Time::NEVER,
            Departure::At(at) if !self.windows.is_held() => at,
            Departure::At(at) => at.max(self.windows.deadline()),
            // The scheme does not allow the next packet, so it is not the windows that delay the packet.
            _ => Time::NEVER,
        }
    }

    fn pass_rate_to_scheduler(&mut self) {
        let packet = (self.setup.datagram + self.setup.overhead) as f64;
        self.scheduler.set_rate(self.source.observe().rate.bps() / 8.0 / packet);
    }

    /// Adapts repairs to the receivers' losses, and collects warnings about dropped data.
    fn pass_loss_to_scheduler(&mut self) {
        let loss = self.members.iter().filter(|(_, member)| member.pace == Pace::Together);
        let loss = loss.map(|(_, member)| member.loss).fold(0.0, f32::max);
        self.scheduler.on_reported_loss(f64::from(loss), self.rtt_max());
        self.events.extend(self.scheduler.take_warnings().into_iter().map(Event::warning));
    }

    /// Reads from inputs.
    fn look_at_inputs(&mut self, now: Time) -> Result<(), ObjectError> {
        let is_busy = !self.scheduler.is_idle() || !matches!(self.phase, Phase::Sending);
        let leisure = if is_busy { Leisure::No } else { Leisure::Yes };
        if self.scheduler.look(now, leisure, &|layer| self.source.layer_rate(layer))? == Looked::AtTheEnd {
            self.clocks.status_at = now;
        }
        Ok(())
    }

    /// Ends a relay's session when the upstream session is over and no downstream receiver needs this session.
    fn end_with_source(&mut self, now: Time) {
        let is_open = matches!(self.phase, Phase::Gathering { .. } | Phase::Sending);
        if !is_open || self.scheduler.source_is_finished() != Some(true) {
            return;
        }
        let idle_since = match self.scheduler.is_idle() {
            true => *self.clocks.idle_since.get_or_insert(now),
            false => now,
        };
        self.clocks.idle_since = self.clocks.idle_since.filter(|_| self.scheduler.is_idle());
        // Without content from upstream, a new receiver would wait for this session instead of the next one.
        let has_nothing = matches!(self.phase, Phase::Gathering { .. }) && !self.scheduler.may_start();
        if has_nothing || self.members.unfinished() == 0 || now.since(idle_since) >= NOTHING_LEFT {
            self.close(now);
        }
    }

    fn consider_end(&mut self, now: Time) {
        if let Some(one_way) = self.setup.one_way {
            return self.consider_one_way_end(one_way, now);
        }
        if self.scheduler.source_is_finished().is_some() {
            return; // at a relay, `end_with_source` decides
        }
        let status = self.scheduler.status();
        let unfinished = self.outstanding(now);
        if unfinished > 0 || status.blocks.is_none() {
            self.clocks.idle_since = None;
            return;
        }
        if self.members.set_aside().any(|(_, pace)| pace == Pace::Deferred) {
            self.serve_deferred(now);
            return;
        }
        let is_one_done = self.members.done() > 0;
        if is_one_done && status.root.is_none() && self.scheduler.is_idle() {
            return; // blocks that were not sent are still being hashed
        }
        let linger = self.linger();
        if self.clocks.idle_since.is_none() && linger > Span::ZERO {
            self.events.push_back(Event::warning(format!(
                "all joined receivers are complete; waiting up to {} for receivers that are missing",
                seconds(linger.as_secs_f64())
            )));
        }
        let idle_since = *self.clocks.idle_since.get_or_insert(now);
        if now.since(idle_since) >= linger {
            self.close(now);
        }
    }

    /// Returns the time for which the session waits when no member needs anything, because receivers may still join or return.
    fn linger(&self) -> Span {
        let missing =
            self.setup.expect.is_some_and(|expected| self.members.receivers() < u64::from(expected))
                || !self.roll.absent().is_empty();
        // The session does not wait again for receivers that have timed out, or that have failed.
        let given_up = |member: &MemberRecord| {
            member.pace == Pace::Gone
                || member.state == MemberState::Failed
                || reachability::is_unreached(member)
        };
        let left = self.members.done() == 0 && !self.members.iter().any(|(_, member)| given_up(member));
        if missing || left { self.clocks.wait_left } else { Span::ZERO }
    }

    fn close(&mut self, now: Time) {
        self.trace_end(now);
        self.clocks.finished = now;
        self.setup.start.end();
        self.phase = Phase::Closing { left: 3 };
        self.clocks.status_at = now;
        self.clocks.announce_at = Time::NEVER;
    }

    /// Fails if a call of the scheme had effects: the scheme of a source may act only through the source's packets.
    fn refuse_effects(&mut self, now: Time) {
        if let Some(effect) = self.effects.refuse() {
            self.fail(Error::effect("source", &effect), now);
        }
    }

    fn fail(&mut self, error: Error, now: Time) {
        if self.failure.is_none() {
            self.failure = Some(error);
        }
        if !matches!(self.phase, Phase::Closing { .. } | Phase::Over) {
            self.close(now);
        }
    }
}

/// Returns the rate field of a data packet. A stated rate is never zero, because zero means that there is no field.
fn header_rate(stated_rate: StatedRate, stamp: &Stamp) -> f32 {
    stated_rate.stated(stamp.flags, (stamp.rate.bps() as f32).max(1.0))
}

#[cfg(test)]
mod tests;
