//! Active routers. They forward the packets of a session one by one under the original packet numbers, and help the session's
//! congestion control. RACCOOM: paper 002, chapter 3; RMANP: paper 003.
//!
//! ```text
//!   source ~~ packet n ~~> UpstreamMode --> Router --> Exit --> the group, on another network
//!     ^                                      |  ^
//!     |   one member's reports and requests  |  |  reports of who is there
//!     +--------------------------------------+  +---------------------------
//! ```
//!
//! The router function is the same code as in the simulator. In contrast to the streams of a repeater, a single stream of packets
//! reaches all receivers, at the source's rate. An active router seals packets again under the hop key, because it changes the
//! fields around the content. So receivers treat the router as their parent, and answer it.

mod endpoint;
mod exit;

pub(crate) use endpoint::HopExit;
pub(crate) use exit::ExitSetup;

use crate::announced::scheme_of;
use crate::error::JoinObstacle;
use crate::event::RelayBelow;
use crate::members::{Change, Tally};
use crate::relay::{HopStatus, Needs, RelayMode, RouterKind};
use exit::Exit;
use faircast_core::node::{Cx, Effect, Effects, Port, Router, RouterControl, To, Verdict};
use faircast_core::packet::{Arrival, Body, Data, Layer, Order, Packet, ReceiverId, Report, Seq, SessionId};
use faircast_core::rng::Rng;
use faircast_core::schemes::Scheme;
use faircast_core::time::{Span, Time};
use faircast_wire::{
    Announce, DataPacket, Form, Hashes, HopKey, Member, MemberState, Message, Receipt, Status,
    Window as Limit,
};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Number of packets whose content is cached, for routers that delay or repeat packets.
const KEPT: usize = 1024;

/// Maximum number of reports that wait to be sent to the parent. If there are more, the oldest reports are dropped, because newer
/// reports are more accurate.
const MAX_REPORTS: usize = 4096;

/// Interval at which receivers are checked.
const TICK: Span = Span::from_millis(100);

/// Duration of silence after which a receiver does not count.
const IDLE_TIMEOUT: Span = Span::from_secs(10);

/// Minimum interval of reports of the receivers' windows.
const WINDOWS_EVERY: Span = Span::from_millis(10);

/// An active router in its session.
#[derive(Debug)]
pub(crate) struct Hop {
    me: ReceiverId,
    kind: RouterKind,
    key: Option<HopKey>,
    seed: u64,
    exits: Vec<Exit>,
    serving: Option<Serving>,
    /// A router for tests, used in place of the scheme's router.
    #[cfg(test)]
    pub(crate) routers: Option<Box<dyn faircast_core::node::RouterSpec>>,
}

/// State while the active router takes part in a session.
#[derive(Debug)]
struct Serving {
    session: SessionId,
    announce: Announce,
    router: Box<dyn Router + Send>,
    rng: Rng,
    effects: Effects,
    cached: Vec<CachedPacket>,
    needs: Needs,
    /// Reports to the parent.
    reports: VecDeque<Report>,
    /// Highest packet numbers that the windows of downstream receivers allow.
    limits: BTreeMap<ReceiverId, Seq>,
    limit_at: Time,
    limit_reported: Seq,
    /// Whether the active router has a parent that counts it as a member.
    is_rooted: bool,
    newest: Option<Seq>,
    tick_at: Time,
    status: HopStatus,
}

/// A received packet.
#[derive(Debug, Clone, Default)]
struct CachedPacket {
    packet: Option<(Data, Layer, u16)>,
    payload: Vec<u8>,
}

impl Hop {
    pub(crate) fn new(me: ReceiverId, kind: RouterKind, key: Option<HopKey>, seed: u64) -> Hop {
        Hop {
            me,
            kind,
            key,
            seed,
            exits: Vec::new(),
            serving: None,
            #[cfg(test)]
            routers: None,
        }
    }

    /// Adds an exit; returns its number.
    pub(crate) fn add_exit(&mut self, setup: ExitSetup) -> usize {
        self.exits.push(Exit::new(setup));
        self.exits.len() - 1
    }

    /// Sets the local address of this exit.
    fn move_exit(&mut self, place: usize, local: SocketAddr) {
        if let (Some(exit), Some(serving)) = (self.exits.get_mut(place), &self.serving) {
            exit.move_to(local, &serving.announce);
        }
    }

    /// Writes the next datagram of this exit to `out`; returns whether there is one.
    fn next_of(&mut self, place: usize, out: &mut Vec<u8>) -> bool {
        self.exits.get_mut(place).is_some_and(|exit| exit.next(out))
    }

    fn has_for(&self, place: usize) -> bool {
        self.exits.get(place).is_some_and(Exit::has_any)
    }

    /// Returns the tally of the receivers behind this exit.
    fn tally_of(&self, place: usize) -> Tally {
        self.exits.get(place).map_or_else(Tally::default, |exit| exit.members.tally())
    }

    fn relays_of(&self, place: usize) -> Vec<RelayBelow> {
        self.exits.get(place).map_or_else(Vec::new, Exit::relays)
    }

    /// Returns the counters of the active router.
    pub(crate) fn status(&self) -> HopStatus {
        let Some(serving) = &self.serving else { return HopStatus::default() };
        let seen = serving.router.observe();
        let dropped: u64 = self.exits.iter().map(|exit| exit.dropped).sum();
        HopStatus {
            repairs: seen.repairs,
            dropped: dropped + seen.overflows,
            indications: seen.indications,
            filtered: seen.filtered,
            held: self.exits.iter().map(Exit::held).sum::<usize>() as u64,
            stored: seen.stored as u64,
            entries: seen.entries as u64,
            ..serving.status
        }
    }

    /// Sends the closing message once more to the receivers behind this exit.
    fn send_closing(&mut self, place: usize, now: Time) {
        if let Some(exit) = self.exits.get_mut(place) {
            exit.close(now);
        }
    }

    /// Processes a datagram from behind this exit. If it is a receipt, returns it for the relay to store.
    fn on_child(
        &mut self,
        place: usize,
        bytes: &mut [u8],
        from: SocketAddr,
        waited: Span,
        now: Time,
    ) -> Option<Receipt> {
        let (exit, serving) = (self.exits.get_mut(place)?, self.serving.as_mut()?);
        let (number, message) = exit.open(bytes, from, now)?;
        let child = message.from()?;
        match message {
            Message::Member(member) => {
                self.on_member(place, &member, number, from, now);
                return None;
            }
            _ if !exit.members.knows(child) => return None, // not joined: ignored
            _ => exit.members.on_sign_of_life(child, now),
        }
        match message {
            Message::Report(mut report) => {
                let echo = report.content.echo_mut();
                echo.hold = echo.hold + waited;
                serving.status.reports_received += 1;
                self.on_report(place, report, now);
            }
            Message::Request(request) => {
                serving.status.requests += 1;
                serving.needs.on_request(&request, now);
            }
            Message::Window(window) => _ = serving.limits.insert(child, window.limit),
            Message::Tree(tree) => exit.members.on_tree(&tree),
            Message::Verified(reported) => {
                exit.members.on_verified(&reported);
                exit.answer_news(now);
            }
            Message::Receipt(receipt) => return exit.members.may_sign(&receipt).then_some(receipt),
            _ => {}
        }
        None
    }

    /// Acknowledges a stored receipt from behind this exit.
    fn acknowledge(&mut self, place: usize, receipt: &Receipt, now: Time) {
        if let Some(exit) = self.exits.get_mut(place) {
            exit.members.acknowledge(receipt.from, receipt.nonce);
            exit.answer(now);
        }
    }

    fn on_member(&mut self, place: usize, member: &Member, number: u64, from: SocketAddr, now: Time) {
        let (exit, Some(serving)) = (&mut self.exits[place], &mut self.serving) else { return };
        if !serving.is_rooted && !exit.members.knows(member.from) {
            return; // the host repeats its message
        }
        let change = exit.members.on_report(member, number, from, now);
        exit.on_member(member, now);
        if matches!(change, Change::Done | Change::Failed | Change::Moved)
            || member.state == MemberState::Leaving
        {
            self.forget(place, member.from, now);
        }
        self.exits[place].answer_news(now);
    }

    /// Removes a receiver that has finished, failed or left.
    fn forget(&mut self, place: usize, neighbour: ReceiverId, now: Time) {
        let Some(serving) = &mut self.serving else { return };
        serving.limits.remove(&neighbour);
        let (session, port) = (serving.session, port(place));
        serving.router.control(RouterControl::Left { session, port, neighbour }, now);
    }

    fn on_report(&mut self, place: usize, report: Report, now: Time) {
        let Some(serving) = &mut self.serving else { return };
        let (layer, body) = (report.layer, Body::Report(report));
        let mut packet = Packet { session: serving.session, layer, size: REPORT_SIZE, body };
        let verdict = self.call(now, |router, cx| router.on_report(port(place), &mut packet, cx));
        if let (Some(Verdict::Pass), Body::Report(report)) = (verdict, packet.body) {
            self.report(report);
        }
    }

    /// Queues a report to the parent. The report is sent under the ID of this active router.
    fn report(&mut self, report: Report) {
        let Some(serving) = &mut self.serving else { return };
        if serving.reports.len() >= MAX_REPORTS {
            serving.reports.pop_front();
        }
        serving.reports.push_back(Report { from: self.me, ..report });
    }

    /// Calls the router function, and performs its effects.
    fn call<T>(&mut self, now: Time, act: impl FnOnce(&mut dyn Router, &mut Cx<'_>) -> T) -> Option<T> {
        let serving = self.serving.as_mut()?;
        let said =
            act(&mut *serving.router, &mut Cx { now, rng: &mut serving.rng, effects: &mut serving.effects });
        if !serving.effects.as_slice().is_empty() {
            let mut effects = std::mem::take(&mut serving.effects);
            effects.drain().for_each(|effect| self.carry_out(effect));
            if let Some(serving) = &mut self.serving {
                serving.effects = effects;
            }
        }
        Some(said)
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Report(report) => self.report(report),
            Effect::Send { to: To::Parent, packet: Packet { body: Body::Report(report), .. } } => {
                self.report(report);
            }
            Effect::Send { to: To::Exit(Port(place)), packet: Packet { body: Body::Data(data), .. } } => {
                self.send_later(place.into(), &data);
            }
            // Conformance tests check that every router uses only the effects above.
            other => debug_assert!(false, "a router cannot {other:?}"),
        }
    }

    /// Sends a packet at an exit: a packet that was delayed, or a packet that was sent before.
    fn send_later(&mut self, place: usize, data: &Data) {
        let (Some(exit), Some(serving)) = (self.exits.get_mut(place), &mut self.serving) else { return };
        if exit.send_again(data.seq.0) {
            return; // unchanged: a packet number is sealed only once
        }
        let cached = &serving.cached[data.seq.0 as usize % KEPT];
        let Some((came, layer, symbols)) = cached.packet.filter(|(came, ..)| came.seq == data.seq) else {
            return; // the packet is too old for the cache
        };
        let data = Data { payload: came.payload, sent_at: came.sent_at, ..*data };
        exit.send(&DataPacket { data, layer, symbols, payload: &cached.payload });
        serving.status.passed += 1;
    }

    /// Discards delayed packets that the router will not send.
    fn let_go(&mut self) {
        let Some(serving) = &self.serving else { return };
        for (place, exit) in self.exits.iter_mut().enumerate() {
            exit.let_go(|seq| serving.router.holds(serving.session, port(place), Seq(seq)));
        }
    }

    /// At intervals, checks for silent receivers and sends pending answers.
    fn tick(&mut self, now: Time) {
        let Some(serving) = self.serving.as_mut().filter(|serving| serving.tick_at <= now) else { return };
        serving.tick_at = now + TICK;
        self.let_go();
        for place in 0..self.exits.len() {
            let gone = self.exits[place].members.expire(now, IDLE_TIMEOUT, Span::ZERO);
            gone.into_iter().for_each(|id| self.forget(place, id, now));
            self.exits[place].members.count_speaking(now);
            self.exits[place].members.count_missing();
            self.exits[place].answer_again(now);
        }
    }

    fn tick_at(&self) -> Time {
        self.serving.as_ref().map_or(Time::NEVER, |serving| serving.tick_at)
    }
}

impl RelayMode for Hop {
    fn why_not(&self, scheme: Option<&Scheme>) -> Option<JoinObstacle> {
        let helps = scheme.is_some_and(|scheme| self.kind.helps(scheme));
        (!helps).then_some(JoinObstacle::NoRouter(self.kind.scheme()))
    }

    fn has_exits(&self) -> bool {
        true
    }

    fn begin(&mut self, session: SessionId, announce: &Announce, now: Time) -> bool {
        let scheme = scheme_of(announce).filter(|scheme| self.kind.helps(scheme));
        let Some(spec) = scheme.and_then(|scheme| scheme.routers()) else { return false };
        #[cfg(test)]
        let spec = self.routers.take().unwrap_or(spec);
        let mut router = spec.router();
        debug_assert!(usize::from(router.keeps()) <= KEPT, "what it wants sent again is not kept");
        for (place, exit) in self.exits.iter_mut().enumerate() {
            router.control(RouterControl::Shared(port(place)), now);
            exit.begin(session, self.me, self.key.as_ref(), announce);
        }
        self.serving = Some(Serving {
            session,
            announce: *announce,
            router,
            rng: Rng::new(self.seed, 0),
            effects: Effects::new(),
            cached: vec![CachedPacket::default(); KEPT],
            needs: Needs::default(),
            reports: VecDeque::new(),
            limits: BTreeMap::new(),
            limit_at: Time::ZERO,
            limit_reported: Limit::UNLIMITED,
            is_rooted: false,
            newest: None,
            tick_at: now,
            status: HopStatus::default(),
        });
        true
    }

    fn note_rooted(&mut self, is_rooted: bool) {
        if let Some(serving) = &mut self.serving {
            serving.is_rooted = is_rooted;
        }
    }

    /// Does nothing: the router processes packets when it forwards them, not as a receiver.
    fn on_data(&mut self, _: &Data, _: Layer, _: Arrival, _: Time) {}

    fn on_order(&mut self, _: &Order, _: Time) {}

    fn on_deadline(&mut self, now: Time) {
        self.call(now, |router, cx| {
            if router.deadline() <= now {
                router.on_deadline(cx);
            }
        });
    }

    fn deadline(&self) -> Time {
        match &self.serving {
            Some(serving) if !serving.reports.is_empty() => Time::ZERO,
            Some(serving) => serving.router.deadline(),
            None => Time::NEVER,
        }
    }

    fn take_report(&mut self) -> Option<Report> {
        let serving = self.serving.as_mut()?;
        let report = serving.reports.pop_front()?;
        serving.status.reports_sent += 1;
        Some(report)
    }

    fn limit_due(&mut self, now: Time) -> Option<Seq> {
        let serving = self.serving.as_mut()?;
        let limit = serving.limit();
        if now < serving.limit_at || limit == serving.limit_reported {
            return None;
        }
        (serving.limit_at, serving.limit_reported) = (now + WINDOWS_EVERY, limit);
        Some(limit)
    }

    fn limit_at(&self) -> Time {
        let changed = |serving: &&Serving| serving.limit() != serving.limit_reported;
        self.serving.as_ref().filter(changed).map_or(Time::NEVER, |serving| serving.limit_at)
    }

    fn limit(&self) -> Seq {
        self.serving.as_ref().map_or(Limit::UNLIMITED, Serving::limit)
    }

    fn tally(&self) -> Tally {
        self.exits.iter().map(|exit| exit.members.tally()).sum()
    }

    fn most_missing(&self) -> Option<u32> {
        self.exits.iter().filter_map(|exit| exit.members.most_missing()).max()
    }

    fn take_numbers(&mut self) -> Vec<ReceiverId> {
        self.exits.iter_mut().flat_map(|exit| exit.members.take_numbers()).collect()
    }

    fn answer_at_once(&mut self, at_once: bool) {
        self.exits.iter_mut().for_each(|exit| exit.members.answer_at_once(at_once));
    }

    fn on_known(&mut self, ids: &[ReceiverId], now: Time) {
        for exit in &mut self.exits {
            exit.members.on_known(ids);
            exit.answer_news(now);
        }
    }

    fn relays(&self) -> Vec<RelayBelow> {
        self.exits.iter().flat_map(Exit::relays).collect()
    }

    fn needs(&mut self) -> Option<&mut Needs> {
        self.serving.as_mut().map(|serving| &mut serving.needs)
    }

    fn on_packet(&mut self, packet: &DataPacket<'_>, size: u16, now: Time) {
        let Some(serving) = &mut self.serving else { return };
        let (session, seq) = (serving.session, packet.data.seq);
        serving.status.packets += 1;
        serving.newest = serving.newest.max(Some(seq));
        serving.keep(packet);
        for place in 0..self.exits.len() {
            if !self.exits[place].is_wanted() {
                continue;
            }
            let mut passed = Packet { session, layer: packet.layer, size, body: Body::Data(packet.data) };
            let verdict = self.call(now, |router, cx| router.on_data(port(place), &mut passed, cx));
            match (verdict, passed.body) {
                (Some(Verdict::Pass), Body::Data(data)) => {
                    self.exits[place].send(&DataPacket { data, ..*packet });
                    if let Some(serving) = &mut self.serving {
                        serving.status.passed += 1;
                    }
                }
                (Some(Verdict::Hold), _) => self.exits[place].hold(seq.0, packet.data.payload.block),
                _ => {}
            }
        }
    }

    fn on_status(&mut self, status: &Status, now: Time) {
        self.let_go();
        self.exits.iter_mut().for_each(|exit| exit.pass_status(status, now));
    }

    fn on_announce(&mut self, announce: &Announce, _now: Time) -> bool {
        let Some(serving) = &mut self.serving else { return true };
        serving.announce = *announce;
        // Another parent may use other packet numbers. If its numbers are much lower, the session cannot continue: receivers
        // would take new packets for duplicates.
        let goes_on = serving.newest.is_none_or(|newest| announce.next_seq + KEPT as u64 > newest.0);
        self.exits.iter_mut().for_each(|exit| exit.announce(announce));
        goes_on
    }

    fn on_page(&mut self, page: &Hashes, _now: Time) {
        self.exits.iter_mut().for_each(|exit| exit.pass_page(page));
    }
}

impl Serving {
    fn keep(&mut self, packet: &DataPacket<'_>) {
        let cached = &mut self.cached[packet.data.seq.0 as usize % KEPT];
        if cached.packet.is_some_and(|(data, ..)| data.seq >= packet.data.seq) {
            return; // newer packets are more likely to be needed
        }
        cached.packet = Some((packet.data, packet.layer, packet.symbols));
        cached.payload.clear();
        cached.payload.extend_from_slice(packet.payload);
    }

    fn limit(&self) -> Seq {
        self.limits.values().copied().min().unwrap_or(Limit::UNLIMITED)
    }
}

/// Approximate size of a report packet, bytes.
const REPORT_SIZE: u16 = 80;

/// Returns the port number of an exit at the router.
const fn port(place: usize) -> Port {
    Port(place as u16)
}

/// Whether each receiver's ID is bound to an address. This is the case in sessions without a key.
const fn binds(form: Form) -> bool {
    matches!(form, Form::Open)
}
