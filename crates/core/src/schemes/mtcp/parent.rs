//! The sending half of a node of the tree: its children, its windows over them, its store and its repairs (seed 001, 3.1).

use super::child::{Child, Group, MOST_BACKOFF, Summary};
use super::config::{Config, LossFilter, Repair, Rounds};
use super::repairs::Repairs;
use super::store::{Slot, Store};
use super::window::Window;
use crate::node::{Effect, Effects, To, Windows};
use crate::packet::{
    Body, Cause, Data, Echo, Flags, Holes, Layer, Mark, Order, OrderContent, Packet, ReceiverId, Report,
    ReportContent, Seq, SessionId, Signal,
};
use crate::time::{Span, Time};

/// A node as its children's parent.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    pub(super) config: Config,
    role: Role,
    /// By their numbers.
    pub(super) children: Vec<Child>,
    /// So many are said to be there; until all of them spoke, nothing is dropped.
    expected: usize,
    /// The windows and repairs of the two groups.
    pub(super) groups: [GroupState; 2],
    pub(super) store: Store,
    /// One more than the highest packet that came or left here.
    pub(super) end: u64,
    /// The session's window and round, as the source says them.
    pub(super) session_window: f64,
    pub(super) session_round: Span,
    /// The next packet for the local group.
    pub(super) next_local: u64,
    pub(super) local_at: Time,
    pub(super) check_at: Time,
    /// The earliest timer of a child.
    timer_at: Time,
    /// When it sent something last, or could have.
    pumped_at: Time,
    orders: u32,
    pub(super) started_at: Time,
    pub(super) moves: u64,
    /// Losses that children reported.
    pub(super) losses: u64,
}

/// Where it stands in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The root: packets leave here, so relative delays are round trips.
    Sender,
    /// A sender's agent.
    Agent,
}

/// The window over the children of a group, and the repairs for them.
#[derive(Debug, Clone)]
pub(super) struct GroupState {
    pub(super) window: Window,
    pub(super) repairs: Repairs,
    /// All children of the group have everything below this.
    pub(super) acknowledged: u64,
}

/// Whether acknowledgements open the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The session uses what it may.
    Full,
    /// It does not, so that nothing is known of more.
    Partial,
}

/// Bytes of an order on the link.
const ORDER_SIZE: u16 = 40;
/// A child whose delays are longer than this lies, or its clock does.
const LONGEST_HOLD: Span = Span::from_secs(10);
/// Questions at the beginning.
const FIRST_QUESTIONS: u32 = 4;
/// Between two turns of sending, at the least.
const SHORTEST_GAP: Span = Span::from_micros(50);
/// The window may be so many times the session's, and the headroom more.
const TIMES_SESSION: f64 = 2.0;

impl Parent {
    pub(super) fn new(config: Config, role: Role) -> Parent {
        let group = || GroupState {
            window: Window::new(1.0, f64::INFINITY, 0, Time::ZERO),
            repairs: Repairs::new(&config),
            acknowledged: 0,
        };
        Parent {
            role,
            children: Vec::new(),
            expected: 0,
            groups: [group(), group()],
            store: Store::default(),
            end: 0,
            session_window: 1.0,
            session_round: Span::ZERO,
            next_local: 0,
            local_at: Time::NEVER,
            check_at: Time::NEVER,
            timer_at: Time::NEVER,
            pumped_at: Time::ZERO,
            orders: 0,
            started_at: Time::ZERO,
            moves: 0,
            losses: 0,
            config,
        }
    }

    /// So many children are there.
    pub(super) const fn expect(&mut self, children: usize) {
        self.expected = children;
    }

    /// Whether children are missing that are said to be there.
    fn waits_for_children(&self) -> bool {
        self.config.repair == Repair::Tree && self.children.len() < self.expected
    }

    pub(super) fn window(&self) -> &Window {
        &self.groups[0].window
    }

    /// Those of a group.
    pub(super) fn of(&self, group: Group) -> impl Iterator<Item = &Child> {
        self.children.iter().filter(move |child| child.group == group)
    }

    /// The smallest window of this part of the tree; infinite when nobody limits it.
    pub(super) fn least_window(&self) -> f64 {
        let below = self.of(Group::Session).map(|child| child.summary.map_or(f64::INFINITY, |it| it.window));
        let own = if self.has(Group::Session) { self.window().size() } else { f64::INFINITY };
        below.fold(own, f64::min)
    }

    /// The child whose part of the tree has the smallest window, where that is not this node's own.
    pub(super) fn limiting(&self) -> Option<ReceiverId> {
        let least = self.least_window();
        let child = self.of(Group::Session).find(|child| child.summary.is_some_and(|it| it.window <= least));
        child.map(|child| child.id)
    }

    /// Most packets that are under way to any node of this part of the tree.
    pub(super) fn transit(&self) -> u64 {
        let most = self.of(Group::Session).map(|child| child.transit(self.end)).max().unwrap_or(0);
        if self.waits_for_children() { most.max(self.end.saturating_sub(self.store.first())) } else { most }
    }

    /// The lowest packet that somebody of this part misses.
    pub(super) fn low(&self) -> u64 {
        let low = self.of(Group::Session).map(Child::low).min().unwrap_or(self.end);
        if self.waits_for_children() { low.min(self.store.first()) } else { low }
    }

    /// The lowest packet that a child misses, whichever group it is in.
    pub(super) fn needed(&self) -> u64 {
        self.children.iter().map(|child| child.board.base()).min().unwrap_or(self.end)
    }

    pub(super) fn has(&self, group: Group) -> bool {
        self.children.iter().any(|child| child.group == group)
    }

    /// Whether there is room for this packet, which nobody below needs any more or the store can keep.
    pub(super) fn has_room(&self, seq: u64) -> bool {
        self.config.repair == Repair::Session
            || self.store.len() == 0
            || seq.saturating_sub(self.needed().max(self.store.first())) < u64::from(self.config.store)
    }

    pub(super) fn windows(&self) -> Windows {
        let [session, local] = &self.groups;
        let moved = self.of(Group::Local).count() as u32;
        Windows {
            own: session.window.size(),
            least: self.least_window(),
            local: if moved > 0 { local.window.size() } else { 0.0 },
            moved,
            stored: self.store.len() as u32,
            slow_starts: session.window.slow_starts,
            repairs: session.repairs.sent + local.repairs.sent,
            moves: self.moves,
        }
    }

    /// A packet has come here for the first time, or leaves from here.
    pub(super) fn put(&mut self, seq: u64, slot: Slot) {
        if self.end == 0 {
            for group in &mut self.groups {
                group.window = Window::new(group.window.size(), f64::INFINITY, seq, slot.here_at);
                group.acknowledged = seq;
            }
            self.store.begin(seq);
            (self.next_local, self.started_at) = (seq, slot.here_at);
            self.check_at = slot.here_at + self.config.local.check;
        }
        self.store.put(seq, slot);
        self.end = self.end.max(seq + 1);
        for group in Group::BOTH {
            if self.of(group).any(|child| child.wants(seq)) {
                self.groups[group as usize].repairs.ask(seq);
            }
        }
        self.timer_at = self.timer_at.min(self.next_timer());
    }

    /// A child says something. Whether it was any news about it.
    pub(super) fn on_report(&mut self, report: &Report, usage: Use, now: Time) -> bool {
        let echo = report.content.echo();
        if echo.seq.0 >= self.end + super::board::Board::SPAN {
            return false; // it cannot have that
        }
        match report.content {
            ReportContent::Acknowledged { echo, behind, holes, newer } => {
                let Some(place) = self.heard(report.from, echo, behind, now) else { return false };
                let new = self.take(place, (echo, behind), Some((&holes, newer)));
                self.after(place, echo, new, usage, now);
            }
            ReportContent::Summary { echo, behind, window, transit, lag } => {
                let Some(place) = self.heard(report.from, echo, behind, now) else { return false };
                let (end, most) = (echo.seq.0 + 1, u64::from(self.config.store));
                if !window.is_nan() {
                    let window = f64::from(window).max(1.0);
                    let (transit, low) = (u64::from(transit).min(most), end.saturating_sub(lag.into()));
                    self.children[place].summary = Some(Summary { window, transit, low });
                }
                let new = self.take(place, (echo, behind), None);
                self.after(place, echo, new, usage, now);
            }
            ReportContent::Answered { echo, number } => self.answered(report.from, echo, number, now),
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.forget(report.from, now),
            ReportContent::Congested { echo, cause: Cause::Mark, .. } => self.on_mark(report.from, echo, now),
            _ => return false, // nobody of this scheme says it
        }
        true
    }

    /// A child is gone.
    pub(super) fn forget(&mut self, id: ReceiverId, now: Time) {
        let Ok(place) = self.place(id) else { return };
        self.children.remove(place);
        self.expected = self.expected.saturating_sub(1);
        self.regroup(now);
    }

    /// Forget all about the children and their paths.
    pub(super) fn start_again(&mut self, now: Time) {
        self.children.clear();
        self.store.begin(self.end);
        for group in &mut self.groups {
            group.window = Window::new(1.0, f64::INFINITY, self.end, now);
            group.repairs.clear();
            group.acknowledged = self.end;
        }
        self.timer_at = Time::NEVER;
    }

    /// Nothing below `base` that is not here will ever come here: children go on from there.
    pub(super) fn skip_to(&mut self, base: u64, now: Time) {
        for place in 0..self.children.len() {
            let first = self.children[place].board.base();
            if first < base && self.store.get(first).is_none() {
                let child = &mut self.children[place];
                child.advance(base);
                (child.is_there, child.tell_at) = (false, now);
            }
        }
        self.regroup(now);
    }

    /// When [`Parent::on_deadline`] and [`Parent::pump`] want to be called.
    pub(super) fn deadline(&self) -> Time {
        let mut next = self.timer_at;
        if !self.children.is_empty() || (self.end > 0 && self.expected > 0) {
            next = next.min(self.check_at);
        }
        if self.config.repair == Repair::Session {
            return next;
        }
        let mut leaves = self.local_at;
        for group in Group::BOTH {
            let it = &self.groups[group as usize];
            if !it.repairs.is_empty() {
                leaves = leaves.min(it.repairs.next_at(it.window.size()));
                next = next.min(it.repairs.late_at(self.repair_timeout(group)));
            }
        }
        for child in &self.children {
            leaves = leaves.min(child.tell_at);
            if self.role == Role::Agent {
                leaves = leaves.min(child.ask_at);
            }
        }
        next.min(leaves.max(self.pumped_at + SHORTEST_GAP))
    }

    /// What is late is late.
    pub(super) fn on_deadline(&mut self, now: Time) {
        if self.check_at <= now {
            self.check_at = now + self.config.local.check;
            self.give_up_the_silent(now);
            self.localize(now);
        }
        if self.timer_at <= now {
            for place in 0..self.children.len() {
                self.time_out(place, now);
            }
            self.timer_at = self.next_timer();
        }
        for group in Group::BOTH {
            let timeout = self.repair_timeout(group);
            let repairs = &mut self.groups[group as usize].repairs;
            if repairs.late_at(timeout) <= now {
                repairs.on_late();
            }
        }
        self.trim();
    }

    /// What may leave now leaves, a few packets at a call.
    pub(super) fn pump(&mut self, now: Time, effects: &mut Effects) {
        if self.config.repair == Repair::Session {
            return;
        }
        self.pumped_at = now;
        self.tell(now, effects);
        self.ask(now, effects);
        for group in Group::BOTH {
            self.repair(group, now, effects);
        }
        self.forward(now, effects);
    }

    /// What a packet says to all.
    pub(super) fn mark(&self) -> Mark {
        Mark::Window { window: self.session_window as f32, rtt: self.session_round.as_secs_f64() as f32 }
    }

    /// The smoothed round-trip time to the children of a group.
    pub(super) fn round_trip(&self, group: Group) -> Option<Span> {
        self.of(group).filter_map(|child| child.round_trip.mean()).max()
    }

    fn repair_timeout(&self, group: Group) -> Span {
        let timeouts = self.of(group).map(|child| child.round_trip.timeout(&self.config));
        timeouts.max().unwrap_or(Span::from_secs(1))
    }

    pub(super) fn place(&self, id: ReceiverId) -> Result<usize, usize> {
        self.children.binary_search_by_key(&id, |child| child.id)
    }

    /// Who says that it has received so much: a child, perhaps a new one. `None` for what makes no sense.
    fn heard(&mut self, id: ReceiverId, echo: Echo, behind: u16, now: Time) -> Option<usize> {
        let base = (echo.seq.0 + 1).checked_sub(behind.into())?;
        let place = match self.place(id) {
            Ok(place) => place,
            Err(place) => {
                let child = Child::new(id, base.min(self.end), &self.config, now);
                self.children.insert(place, child);
                let first = self.store.first();
                let child = &mut self.children[place];
                if base < first && self.config.repair == Repair::Tree {
                    // Nobody here has what it misses: it is to go on from what there is.
                    child.is_there = false;
                    child.tell_at = now;
                    child.advance(first);
                }
                if self.end == 0 {
                    (self.check_at, self.started_at) = (now + self.config.local.check, now);
                }
                place
            }
        };
        self.children[place].heard_at = now;
        Some(place)
    }

    /// What a child has, as it says; how many packets are new.
    fn take(&mut self, place: usize, (echo, behind): (Echo, u16), holes: Option<(&Holes, u8)>) -> u64 {
        let child = &mut self.children[place];
        let end = echo.seq.0 + 1;
        let base = end - u64::from(behind);
        let mut new = child.advance(base);
        if let Some((holes, newer)) = holes
            && behind > 0
        {
            let mut known_to = if newer == 0 { Some(end) } else { None };
            let mut listed = 0;
            for hole in holes.iter() {
                let Some(first) = echo.seq.0.checked_sub(hole.back.into()) else { break };
                let after = first + u64::from(hole.count);
                if first < base || known_to.is_some_and(|known| after > known) {
                    break; // they are not in order
                }
                if let Some(known) = known_to {
                    new += (after..known).filter(|seq| child.set(*seq)).count() as u64;
                }
                known_to = Some(first);
                listed += 1;
            }
            if let Some(known) = known_to
                && listed > 0
                && listed < Holes::MOST
            {
                new += (base..known).filter(|seq| child.set(*seq)).count() as u64;
            }
        }
        child.end = child.end.max(end);
        child.acknowledged += new;
        new
    }

    /// A child has spoken: delays, losses, windows.
    fn after(&mut self, place: usize, echo: Echo, new: u64, usage: Use, now: Time) {
        self.sample(place, echo, now);
        let child = &mut self.children[place];
        if new > 0 {
            child.backoff = 1;
        }
        let group = child.group;
        if child.is_there {
            self.find_losses(place, now);
        }
        self.settle(group, usage, now);
        self.timer_at = self.next_timer();
    }

    fn settle(&mut self, group: Group, usage: Use, now: Time) {
        let children = &self.children;
        let wanted = |seq| children.iter().any(|child| child.group == group && child.wants(seq));
        self.groups[group as usize].repairs.settle(wanted, now);
        if group == Group::Local {
            self.wake_local(now);
        }
        self.on_progress(group, usage, now);
        self.trim();
    }

    /// The sender's time of a packet against this node's.
    fn sample(&mut self, place: usize, echo: Echo, now: Time) {
        let child = &mut self.children[place];
        if echo.hold > LONGEST_HOLD || !child.is_there {
            return;
        }
        let Some(slot) = self.store.get(echo.seq.0) else { return };
        let sent_at = match child.group {
            Group::Session => slot.sent_at,
            Group::Local if slot.local_at.is_never() => None,
            Group::Local => Some(slot.local_at),
        };
        let Some(sent_at) = sent_at else { return };
        let delay = now.as_nanos() as i64 - sent_at.as_nanos() as i64 - echo.hold.as_nanos() as i64;
        if self.role == Role::Sender || child.group == Group::Local {
            let Ok(round_trip) = u64::try_from(delay) else {
                return; // the hold is longer than the time that has passed
            };
            child.round_trip.sample(Span::from_nanos(round_trip));
        }
        child.delay.sample(delay, now);
    }

    /// Packets of which enough later ones have arrived are lost.
    fn find_losses(&mut self, place: usize, now: Time) {
        let child = &self.children[place];
        let end = match child.group {
            Group::Session => child.end,
            Group::Local => child.end.min(self.next_local),
        };
        let end = end.min(self.end);
        let first = child.lost_to.max(child.board.base());
        if first >= end || child.board.missing_below(end) == child.lost {
            return;
        }
        let mut later = match self.config.loss_filter {
            LossFilter::Off => self.config.duplicates,
            LossFilter::On => 1,
        };
        let mut to = end;
        while to > first && later > 0 {
            to -= 1;
            later -= u8::from(child.board.has(to));
        }
        if later == 0 && to > first {
            self.lose(place, first, to, now);
        }
    }

    /// What a child misses of these packets is lost on the way to it, and closes its group's window.
    fn lose(&mut self, place: usize, first: u64, to: u64, now: Time) {
        let (end, group) = (self.end, self.children[place].group);
        let next = if group == Group::Local { self.next_local } else { end };
        for seq in first..to {
            if self.children[place].board.has(seq) {
                continue;
            }
            self.losses += 1;
            self.groups[group as usize].window.on_loss(seq, next, &self.config);
            self.miss(place, seq);
        }
        self.groups[group as usize].repairs.begin_anew(self.round_trip(group), &self.config, now);
    }

    /// A packet is lost on the way to a child: it is sent again, or waited for no more.
    fn miss(&mut self, place: usize, seq: u64) {
        let child = &mut self.children[place];
        match self.config.repair {
            Repair::Session => _ = child.set(seq),
            Repair::Tree => {
                child.lose(seq);
                if self.store.get(seq).is_some() {
                    self.groups[child.group as usize].repairs.ask(seq);
                }
            }
        }
    }

    fn on_mark(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Ok(place) = self.place(from) else { return };
        self.children[place].heard_at = now;
        let (group, end) = (self.children[place].group, self.end);
        self.groups[group as usize].window.on_loss(echo.seq.0, end, &self.config);
    }

    /// Acknowledgements move the window of a group.
    fn on_progress(&mut self, group: Group, usage: Use, now: Time) {
        let bases = self.of(group).map(|child| match self.config.repair {
            Repair::Tree => child.board.base(),
            Repair::Session => child.board.base().min(self.end),
        });
        let Some(acknowledged) = bases.min() else { return };
        if group == Group::Session && self.waits_for_children() {
            return;
        }
        // The source's own window may be twice an agent's: it is what is left when agents' summaries go.
        let times = if self.role == Role::Sender { 2.0 } else { 1.0 };
        let most = times * (TIMES_SESSION * self.session_window + self.config.headroom);
        let round = match (self.config.rounds, group) {
            (Rounds::Tree, Group::Session) => self.session_round,
            _ => Span::ZERO,
        };
        let next = if group == Group::Local { self.next_local } else { self.end };
        let it = &mut self.groups[group as usize];
        let new = acknowledged.saturating_sub(it.acknowledged);
        it.acknowledged = it.acknowledged.max(acknowledged);
        if usage == Use::Full && new > 0 {
            it.window.on_acknowledged(new);
        }
        let passed = now.since(it.window.marked_at());
        if !it.window.is_round_over(acknowledged) || passed < round || passed == Span::ZERO {
            if group == Group::Session {
                it.window.cap(most);
            }
            return;
        }
        let seconds = passed.as_secs_f64();
        let mut queued: Option<f64> = None;
        for child in self.children.iter_mut().filter(|child| child.group == group) {
            if let Some(queueing) = child.delay.queueing_in_round() {
                let packets = child.acknowledged as f64 / seconds * queueing;
                queued = Some(queued.unwrap_or(0.0).max(packets));
            }
            child.delay.next_round();
            child.acknowledged = 0;
        }
        it.window.end_round(queued, next, &self.config, now);
        if group == Group::Session {
            it.window.cap(most);
        }
    }

    /// What nobody needs any more is not kept. What only descendants need is kept while there is room, so that children of an
    /// agent that dies find it here.
    fn trim(&mut self) {
        if self.waits_for_children() {
            return;
        }
        let needed = self.needed();
        let kept = needed.min(self.low());
        let room = u64::from(self.config.store);
        let least = match self.config.repair {
            Repair::Tree => kept.max(self.end.saturating_sub(room)).min(needed),
            Repair::Session => needed,
        };
        self.store.drop_below(least);
    }

    /// When the earliest timer of a child expires.
    fn next_timer(&self) -> Time {
        self.children
            .iter()
            .filter_map(|child| self.late(child))
            .map(|(_, at)| at)
            .min()
            .unwrap_or(Time::NEVER)
    }

    /// The first packet whose acknowledgement by this child is awaited, and when it is late.
    fn late(&self, child: &Child) -> Option<(u64, Time)> {
        let end = if child.group == Group::Local { self.next_local } else { self.end };
        let first = child.lost_to.max(child.board.base());
        let seq = (first..end).find(|seq| !child.board.has(*seq) && self.store.get(*seq).is_some())?;
        let slot = self.store.get(seq)?;
        let sent_at = match child.group {
            Group::Session => slot.sent_at,
            Group::Local => Some(slot.local_at).filter(|at| !at.is_never()),
        };
        let Config { deviations, shortest_slack, first_timeout, .. } = self.config;
        let late = sent_at.and_then(|at| child.delay.late(at, deviations, shortest_slack, child.backoff));
        Some((seq, late.unwrap_or(slot.here_at + first_timeout * u64::from(child.backoff))))
    }

    /// What a child did not acknowledge in time is lost.
    fn time_out(&mut self, place: usize, now: Time) {
        while let Some((seq, at)) = self.late(&self.children[place])
            && at <= now
        {
            let group = self.children[place].group;
            let next = if group == Group::Local { self.next_local } else { self.end };
            if self.groups[group as usize].window.on_timeout(seq, next) {
                let child = &mut self.children[place];
                child.slow_starts.add(now);
                child.backoff = (child.backoff * 2).min(MOST_BACKOFF);
            }
            self.losses += 1;
            match self.config.repair {
                // Nothing that is out counts any more, as in TCP.
                Repair::Session => _ = self.children[place].advance(next),
                Repair::Tree => self.miss(place, seq),
            }
        }
    }

    fn give_up_the_silent(&mut self, now: Time) {
        let (end, silence) = (self.end, self.config.silence);
        let next_local = self.next_local;
        let gone = |child: &Child| {
            let sent = if child.group == Group::Local { next_local } else { end };
            child.board.base() < sent && now.since(child.heard_at) > silence
        };
        while let Some(child) = self.children.iter().find(|child| gone(child)) {
            let id = child.id;
            self.forget(id, now);
        }
        if self.waits_for_children() && now.since(self.started_at) > silence {
            self.expected = self.children.len();
            self.regroup(now);
        }
    }

    /// The children have changed: windows and repairs follow those that are left.
    pub(super) fn regroup(&mut self, now: Time) {
        for group in Group::BOTH {
            self.settle(group, Use::Partial, now);
        }
        self.timer_at = self.next_timer();
    }

    // What leaves.

    fn send(&self, to: To, layer: u8, size: u16, body: Body, effects: &mut Effects) {
        // The driver knows which session this is.
        let packet = Packet { session: SessionId(0), layer: Layer(layer), size, body };
        effects.push(Effect::Send { to, packet });
    }

    pub(super) fn send_data(
        &self,
        to: To,
        group: Group,
        seq: u64,
        flags: Flags,
        now: Time,
        effects: &mut Effects,
    ) {
        let Some(slot) = self.store.get(seq) else { return };
        let signal = if group == Group::Local { Signal::Local } else { Signal::None };
        let (size, payload, mark) = (slot.size, slot.payload, self.mark());
        let data = Data { seq: Seq(seq), sent_at: now, rate: 0.0, payload, flags, signal, mark };
        self.send(to, group.number(), size, Body::Data(data), effects);
    }

    /// An order leaves; its number.
    fn order(&mut self, to: ReceiverId, content: OrderContent, effects: &mut Effects) -> u32 {
        self.orders = self.orders.wrapping_add(1);
        let order = Order { to, number: self.orders, content };
        self.send(To::Child(to), 0, ORDER_SIZE, Body::Order(order), effects);
        self.orders
    }

    /// Tell a child where it belongs, until it says that it is there.
    fn tell(&mut self, now: Time, effects: &mut Effects) {
        let Some(place) = self.children.iter().position(|child| child.tell_at <= now) else { return };
        let child = &self.children[place];
        let (id, group, from) = (child.id, child.group.number(), Seq(child.board.base()));
        let again = child.round_trip.timeout(&self.config);
        let number = self.order(id, OrderContent::Join { group, from }, effects);
        let child = &mut self.children[place];
        (child.tell_at, child.told) = (now + again, Some((number, now)));
    }

    /// Ask a child for its round-trip time. The sender knows it: relative delays are round trips there.
    fn ask(&mut self, now: Time, effects: &mut Effects) {
        if self.role == Role::Sender {
            return;
        }
        let Some(place) = self.children.iter().position(|child| child.ask_at <= now) else { return };
        let child = &self.children[place];
        let known = child.round_trip.samples() >= FIRST_QUESTIONS;
        let id = child.id;
        let next = now + if known { self.config.poll_every } else { self.config.poll_first };
        let number = self.order(id, OrderContent::Poll, effects);
        let child = &mut self.children[place];
        (child.ask_at, child.asked) = (next, Some((number, now)));
    }

    fn answered(&mut self, from: ReceiverId, echo: Echo, number: u32, now: Time) {
        let Ok(place) = self.place(from) else { return };
        let child = &mut self.children[place];
        child.heard_at = now;
        if child.told.is_some_and(|(told, _)| told == number) {
            (child.told, child.is_there, child.tell_at) = (None, true, Time::NEVER);
            self.wake_local(now);
        }
        let child = &mut self.children[place];
        if let Some((asked, at)) = child.asked
            && asked == number
            && echo.hold <= now.since(at)
        {
            child.asked = None;
            child.round_trip.sample(now.since(at).saturating_sub(echo.hold));
        }
    }

    /// A packet that children miss leaves again, when the retransmission window allows it.
    fn repair(&mut self, group: Group, now: Time, effects: &mut Effects) {
        let round = self.round_trip(group);
        let it = &self.groups[group as usize];
        let Some(seq) = it.repairs.next(it.window.size(), now) else { return };
        let first = self.of(group).find(|child| child.wants(seq)).map(|child| child.id);
        let wanting = self.of(group).filter(|child| child.wants(seq)).take(2).count();
        let (Some(id), true) = (first, self.store.get(seq).is_some()) else {
            return self.groups[group as usize].repairs.give_up(seq);
        };
        let to = if wanting == 1 { To::Child(id) } else { To::Group };
        self.send_data(to, group, seq, Flags::REPAIR, now, effects);
        self.groups[group as usize].repairs.on_sent(seq, round, now);
    }
}
