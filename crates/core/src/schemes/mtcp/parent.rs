//! The sending half of a node of the tree: its children, the windows over them, the store and the repairs (paper 001, 3.1).

use super::child::{Child, Group, Role, Summary};
use super::children::Children;
use super::config::{Config, LossFilter, Repair, Rounds};
use super::delay::RelativeDelay;
use super::repairs::Repairs;
use super::scoreboard::Scoreboard;
use super::store::{Slot, Store};
use super::window::Window;
use crate::node::Windows;
use crate::packet::{Cause, Echo, Holes, ReceiverId, Report, ReportContent};
use crate::time::{Span, Time};
use std::ops::Range;

/// The state of a node as a parent.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    pub(super) config: Config,
    pub(super) role: Role,
    /// The children, in ascending order of their IDs.
    pub(super) children: Box<Children>,
    /// The announced number of children. No packet is dropped until all of them have reported.
    pub(super) expected: usize,
    /// Whether the first packet is repeated until all announced children have reported.
    pub(super) is_calling: bool,
    /// The windows and repairs of the two groups.
    pub(super) groups: [GroupState; 2],
    pub(super) store: Store,
    /// One more than the highest packet received or sent here.
    pub(super) end: u64,
    /// The session's window and round, as stated by the source.
    pub(super) session_window: f64,
    pub(super) session_round: Span,
    /// The next packet for the local group.
    pub(super) next_local: u64,
    pub(super) local_at: Time,
    /// Start of the wait for packet `next_local`, which is missing here.
    pub(super) hole_since: Option<Time>,
    pub(super) check_at: Time,
    /// The earliest timer of a child.
    timer_at: Time,
    /// Time of the latest opportunity to send.
    pub(super) pumped_at: Time,
    pub(super) orders: u32,
    pub(super) started_at: Time,
    pub(super) moves: u64,
    /// Losses that children reported.
    pub(super) losses: u64,
    /// The first packet that is retained, and the time until which it is retained. Packets are retained for children that replace
    /// a removed child, or that are ordered to begin earlier.
    kept: Option<(u64, Time)>,
    /// The lowest packet that a child misses and that is not stored here. The upstream parent may have this packet.
    wanted: Option<u64>,
    /// The origin of packets that are missing here.
    pub(super) from: From,
    /// Relative delays of the source's packets to this node.
    own_delay: RelativeDelay,
}

/// The origin of packets that a node lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The node's parent, which sends a missing packet again under its original number.
    Parent,
    /// The session's delivery, which repairs losses under new numbers. A missing packet never arrives under its original number.
    Delivery,
}

/// The window over the children of a group, and the repairs for them.
#[derive(Debug, Clone)]
pub(super) struct GroupState {
    pub(super) window: Window,
    pub(super) repairs: Repairs,
    /// Number below which all children of the group have all packets.
    pub(super) acknowledged: u64,
}

/// Whether acknowledgements open the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// The session uses its whole allowance.
    Full,
    /// The session uses less than its window permits, so acknowledgements are no evidence of further capacity.
    Partial,
}

/// Maximum credible delay of a child. Larger values indicate a false report or a wrong clock.
const MAX_HOLD: Span = Span::from_secs(10);
/// Minimum interval between two opportunities to send.
const MIN_GAP: Span = Span::from_micros(50);
/// Maximum age, in packets, of a packet that an agent requests from its parent for a child. The age is also limited to half of
/// the agent's store, because the agent must store all packets from the requested one on.
const REACH: u64 = Scoreboard::SPAN / 2;
/// Upper bound of a window, without the headroom: a multiple of the session's window.
const TIMES_SESSION: f64 = 2.0;

impl Parent {
    pub(super) fn new(config: Config, role: Role, from: From) -> Parent {
        let group = || GroupState {
            window: Window::new(1.0, f64::INFINITY, 0, Time::ZERO),
            repairs: Repairs::new(&config),
            acknowledged: 0,
        };
        Parent {
            role,
            children: Box::new(Children::new(config, role)),
            expected: 0,
            is_calling: false,
            groups: [group(), group()],
            store: Store::default(),
            end: 0,
            session_window: 1.0,
            session_round: Span::ZERO,
            next_local: 0,
            local_at: Time::NEVER,
            hole_since: None,
            check_at: Time::NEVER,
            timer_at: Time::NEVER,
            pumped_at: Time::ZERO,
            orders: 0,
            started_at: Time::ZERO,
            moves: 0,
            losses: 0,
            kept: None,
            wanted: None,
            from,
            own_delay: RelativeDelay::new(config.delay_memory),
            config,
        }
    }

    /// Sets the expected number of children.
    pub(super) const fn expect(&mut self, children: usize) {
        self.expected = children;
    }

    /// Returns whether announced children are missing.
    pub(super) fn waits_for_children(&self) -> bool {
        self.config.repair == Repair::Tree && self.children.len() < self.expected
    }

    pub(super) fn window(&self) -> &Window {
        &self.groups[0].window
    }

    /// Returns the children of a group.
    pub(super) fn of(&self, group: Group) -> impl Iterator<Item = &Child> {
        self.children.iter().filter(move |child| child.group == group)
    }

    /// Returns the smallest window of this part of the tree; infinite without a limit.
    pub(super) fn min_window(&self) -> f64 {
        let own = if self.has(Group::Session) { self.window().size() } else { f64::INFINITY };
        own.min(self.children.extremes().window)
    }

    /// Returns the child whose part of the tree has the smallest window; `None` if this node's own window is smaller.
    pub(super) fn limiting(&self) -> Option<ReceiverId> {
        let least = self.min_window();
        let place = self.children.first(|it| it.window <= least && it.window.is_finite());
        place.map(|place| self.children[place].id)
    }

    /// Returns the maximum number of packets in flight to any node of this part of the tree.
    pub(super) fn transit(&self) -> u64 {
        let most = self.children.transit(self.end);
        if self.waits_for_children() { most.max(self.end.saturating_sub(self.store.first())) } else { most }
    }

    /// Returns the lowest packet that a node of this part of the tree misses.
    pub(super) fn low(&self) -> u64 {
        let low = if self.has(Group::Session) { self.children.extremes().low } else { self.end };
        if self.waits_for_children() { low.min(self.store.first()) } else { low }
    }

    /// Returns the lowest packet that a child of either group misses.
    pub(super) fn needed(&self) -> u64 {
        if self.children.is_empty() { self.end } else { self.children.extremes().needed }
    }

    /// Returns the number of children in a group.
    pub(super) fn count(&self, group: Group) -> usize {
        self.children.extremes().count[group as usize]
    }

    pub(super) fn has(&self, group: Group) -> bool {
        self.count(group) > 0
    }

    /// Returns whether there is room for this packet: the packet fits into the store, or no descendant needs it.
    pub(super) fn has_room(&self, seq: u64) -> bool {
        self.config.repair == Repair::Session
            || self.store.len() == 0
            || seq.saturating_sub(self.needed().max(self.store.first())) < u64::from(self.config.store)
    }

    pub(super) fn windows(&self) -> Windows {
        let [session, local] = &self.groups;
        let moved = self.count(Group::Local) as u32;
        Windows {
            own: session.window.size(),
            least: self.min_window(),
            local: if moved > 0 { local.window.size() } else { 0.0 },
            moved,
            stored: self.store.len() as u32,
            slow_starts: session.window.slow_starts,
            repairs: session.repairs.sent + local.repairs.sent,
            moves: self.moves,
        }
    }

    /// Stores a packet that is received for the first time, or sent by this node.
    pub(super) fn put(&mut self, seq: u64, slot: Slot) {
        let is_first = self.end == 0;
        if is_first {
            for group in &mut self.groups {
                group.window = Window::new(group.window.size(), f64::INFINITY, seq, slot.here_at);
                group.acknowledged = seq;
            }
            self.store.begin(seq);
            (self.next_local, self.started_at) = (seq, slot.here_at);
            self.check_at = slot.here_at + self.config.local.check;
        }
        if let (Role::Agent, Some(sent_at)) = (self.role, slot.sent_at) {
            self.own_delay.sample(slot.here_at.as_nanos() as i64 - sent_at.as_nanos() as i64, slot.here_at);
        }
        self.store.put(seq, slot);
        if seq >= self.end {
            self.end = seq + 1;
            self.children.wake_idle(slot.here_at);
        } else {
            self.children.all_stale();
        }
        if is_first {
            for place in 0..self.children.len() {
                let base = self.children[place].board.base();
                self.reach_for(place, base, slot.here_at);
            }
            self.begin(seq, slot.here_at);
        }
        if self.store.len() as u64 > u64::from(self.config.store) {
            self.trim(slot.here_at);
        }
        for group in Group::BOTH {
            let lost_to = self.children.extremes().lost_to[group as usize];
            if seq < lost_to && self.of(group).any(|child| child.wants(seq)) {
                self.groups[group as usize].repairs.ask(seq);
            }
        }
        let next = self.next_timer();
        self.timer_at = self.timer_at.min(next);
    }

    /// Handles a report of a child. Returns whether the report contained new information.
    pub(super) fn on_report(&mut self, report: &Report, usage: Use, now: Time) -> bool {
        let echo = report.content.echo();
        if echo.seq.0 >= self.end + Scoreboard::SPAN {
            return false; // it cannot have that
        }
        match report.content {
            ReportContent::Acknowledged { echo, behind, holes, newer } => {
                let end = echo.seq.0 + 1;
                let Some(base) = end.checked_sub(behind.into()) else { return false };
                let owed = self.newly_owed(report.from, base, end, now);
                let Some(place) = self.received(report.from, echo, behind, now) else { return false };
                let new = self.take(place, (echo, behind), Some((&holes, newer)));
                self.owe(place, owed);
                self.after(place, echo, new, usage, now);
            }
            ReportContent::Summary { echo, behind, window, transit, lag } => {
                let Some(place) = self.received(report.from, echo, behind, now) else { return false };
                let (end, most) = (echo.seq.0 + 1, u64::from(self.config.store));
                if !window.is_nan() {
                    let window = f64::from(window).max(1.0);
                    let (transit, low) = (u64::from(transit).min(most), end.saturating_sub(lag.into()));
                    self.children.edit(place).summary = Some(Summary { window, transit, low });
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

    /// Removes a child.
    pub(super) fn forget(&mut self, id: ReceiverId, now: Time) {
        let Ok(place) = self.place(id) else { return };
        let low = self.children.remove(place).low();
        self.keep(low, now);
        self.expected = self.expected.saturating_sub(1);
        self.regroup(now);
    }

    /// Retains packets from `low` on for some time. Although no known child misses these packets, they may still be requested.
    fn keep(&mut self, low: u64, now: Time) {
        let low = self.kept.map_or(low, |(other, _)| other.min(low));
        self.kept = Some((low, now + self.config.first_timeout));
    }

    /// Orders the children that began after packet `from` to begin at this packet.
    pub(super) fn begin(&mut self, from: u64, now: Time) {
        if self.config.repair == Repair::Tree && self.children.iter().any(|child| from < child.board.base()) {
            self.keep(from, now);
            self.children.edit_all(|child| child.begin(from, now));
        }
    }

    /// Removes all state of the children and their paths.
    pub(super) fn start_again(&mut self, now: Time) {
        self.children.clear();
        self.store.begin(self.end);
        for group in &mut self.groups {
            group.window = Window::new(1.0, f64::INFINITY, self.end, now);
            group.repairs.clear();
            group.acknowledged = self.end;
        }
        (self.kept, self.wanted) = (None, None);
        self.timer_at = Time::NEVER;
    }

    /// Makes the children continue from `base`, because missing packets below it will never arrive here.
    pub(super) fn skip_to(&mut self, base: u64, now: Time) {
        for place in 0..self.children.len() {
            let first = self.children[place].board.base();
            if first < base && self.store.get(first).is_none() {
                let mut child = self.children.edit(place);
                child.advance(base);
                (child.is_there, child.tell_at) = (false, now);
            }
        }
        self.regroup(now);
    }

    /// Returns the time of the next call of [`Parent::on_deadline`] or [`Parent::pump`].
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
                leaves = leaves.min(it.repairs.next_at());
                next = next.min(it.repairs.late_at(self.repair_timeout(group)));
            }
        }
        let leaves = leaves.min(self.children.extremes().tell_at).min(self.children.extremes().ask_at);
        next.min(leaves.max(self.pumped_at + MIN_GAP))
    }

    /// Performs the actions whose deadline has passed.
    pub(super) fn on_deadline(&mut self, now: Time) {
        if self.check_at <= now {
            self.check_at = now + self.config.local.check;
            self.give_up_the_silent(now);
            self.localize(now);
        }
        if self.timer_at <= now {
            self.time_out_all(now);
            self.call_missing(now);
            self.timer_at = self.next_timer();
        }
        for group in Group::BOTH {
            let timeout = self.repair_timeout(group);
            let repairs = &mut self.groups[group as usize].repairs;
            if repairs.late_at(timeout) <= now {
                repairs.on_late();
            }
        }
        self.trim(now);
    }

    /// Returns the smoothed round-trip time to the children of a group.
    pub(super) fn round_trip(&self, group: Group) -> Option<Span> {
        self.children.extremes().round_trip[group as usize]
    }

    fn repair_timeout(&self, group: Group) -> Span {
        if self.has(group) {
            self.children.extremes().repair_timeout[group as usize]
        } else {
            Span::from_secs(1)
        }
    }

    pub(super) fn place(&self, id: ReceiverId) -> Result<usize, usize> {
        self.children.place(id)
    }

    /// Handles the progress that a child reports, and adds the child if it is new. Returns the child's index; `None` for an
    /// invalid report.
    fn received(&mut self, id: ReceiverId, echo: Echo, behind: u16, now: Time) -> Option<usize> {
        let base = (echo.seq.0 + 1).checked_sub(behind.into())?;
        let place = match self.place(id) {
            Ok(place) => place,
            Err(place) => {
                let is_awaited = self.waits_for_children();
                let child = Child::new(id, base.min(self.end), &self.config, now);
                self.children.insert(place, child);
                match self.config.repair {
                    Repair::Session => _ = self.children.edit(place).advance(self.store.first()),
                    Repair::Tree => _ = self.reach_for(place, base, now),
                }
                if is_awaited && self.end > 0 && base > self.store.first() {
                    let first = self.store.first();
                    self.keep(first, now);
                    let mut child = self.children.edit(place);
                    child.advance(base);
                    child.begin(first, now);
                }
                if self.end == 0 {
                    (self.check_at, self.started_at) = (now + self.config.local.check, now);
                }
                place
            }
        };
        Some(place)
    }

    /// Returns the packets newly known to be missing at a child. For a new child, these are all packets. For a known child, they
    /// are the packets that its new descendants lack. These packets are repaired, but do not indicate congestion.
    fn newly_owed(&mut self, id: ReceiverId, base: u64, end: u64, now: Time) -> Range<u64> {
        if self.config.repair == Repair::Session {
            return 0..0;
        }
        let Ok(place) = self.place(id) else { return base..end };
        let child = &self.children[place];
        let before = child.board.base();
        // If the session's delivery repairs losses, a child still reports packets as missing that this node has given up.
        let is_old = self.from == From::Delivery || end < child.end || base >= before;
        if !child.is_there || is_old {
            return 0..0;
        }
        let base = self.reach_for(place, base, now);
        if base < before {
            self.children.edit(place).fall_back(base);
        }
        base..before
    }

    /// Returns the first packet that this node can provide to a child that misses packets from `base` on. The upstream parent may
    /// still have packets that this store has dropped. The child skips packets that no node has.
    fn reach_for(&mut self, place: usize, base: u64, now: Time) -> u64 {
        let first = self.store.first();
        let reach = match self.role {
            Role::Sender => first,
            Role::Agent => first.min(self.end.saturating_sub(REACH.min(u64::from(self.config.store) / 2))),
        };
        if base < reach {
            let mut child = self.children.edit(place);
            (child.is_there, child.tell_at) = (false, now);
            child.advance(reach);
        }
        let base = base.max(reach);
        if base < first {
            self.wanted = Some(self.wanted.map_or(base, |wanted| wanted.min(base)));
        }
        base
    }

    /// Removes and returns `wanted`.
    pub(super) const fn take_wanted(&mut self) -> Option<u64> {
        self.wanted.take()
    }

    /// Schedules repairs of the packets in `owed` that a child misses.
    fn owe(&mut self, place: usize, owed: Range<u64>) {
        let end = owed.end.min(self.end);
        let mut child = self.children.edit(place);
        let first = owed.start.max(child.board.base());
        if first >= end {
            return;
        }
        child.lose(end - 1);
        let repairs = &mut self.groups[child.group as usize].repairs;
        for seq in (first..end).filter(|seq| child.wants(*seq) && self.store.get(*seq).is_some()) {
            repairs.ask(seq);
        }
    }

    /// Stores a child's reported progress; returns the number of new packets.
    fn take(&mut self, place: usize, (echo, behind): (Echo, u16), holes: Option<(&Holes, u8)>) -> u64 {
        let mut child = self.children.edit(place);
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
                && listed < Holes::MAX
            {
                new += (base..known).filter(|seq| child.set(*seq)).count() as u64;
            }
        }
        child.end = child.end.max(end);
        child.acknowledged += new;
        new
    }

    /// Updates delays, losses and windows after a child's report.
    fn after(&mut self, place: usize, echo: Echo, new: u64, usage: Use, now: Time) {
        self.sample(place, echo, now);
        let overdue_at = self.overdue_at(place, now);
        let mut child = self.children.edit(place);
        child.receive(self.end, now);
        child.overdue_at = overdue_at;
        if new > 0 {
            (child.backoff, child.probed_to) = (1, 0);
        }
        let (group, is_there) = (child.group, child.is_there);
        drop(child);
        if is_there {
            self.find_losses(place, now);
        }
        self.settle(group, usage, now);
        self.timer_at = self.next_timer();
    }

    fn settle(&mut self, group: Group, usage: Use, now: Time) {
        let (called, children) = (self.called(group), &self.children);
        let wanted = |seq, wanting: &mut usize| {
            let wants = |child: &Child| child.group == group && child.wants(seq);
            if called == Some(seq) || children.get(*wanting).is_some_and(wants) {
                return true;
            }
            let other = children.iter().position(wants);
            *wanting = other.unwrap_or(*wanting);
            other.is_some()
        };
        self.groups[group as usize].repairs.settle(wanted, now);
        if group == Group::Local {
            self.wake_local(now);
        }
        self.on_progress(group, usage, now);
        self.trim(now);
    }

    /// Takes a delay sample: the difference between this node's clock now and the sending time of a packet.
    fn sample(&mut self, place: usize, echo: Echo, now: Time) {
        let mut child = self.children.edit(place);
        if echo.hold > MAX_HOLD || !child.is_there {
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
        child.delay_mut().sample(delay, now);
    }

    /// Declares packets lost when enough later packets have arrived.
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

    /// Declares the missing packets of this range lost on the path to a child, and closes the window of its group.
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
        self.groups[group as usize].repairs.restart(self.round_trip(group), &self.config, now);
    }

    /// Returns the queueing delay on the path to this node, in seconds.
    pub(super) fn own_queueing(&self) -> f64 {
        self.own_delay.queueing().unwrap_or(0.0)
    }

    /// Handles the loss of a packet on the path to a child: the packet is repaired or given up.
    pub(super) fn miss(&mut self, place: usize, seq: u64) {
        let mut child = self.children.edit(place);
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
        self.children.edit(place).receive(self.end, now);
        let (group, end) = (self.children[place].group, self.end);
        self.groups[group as usize].window.on_loss(echo.seq.0, end, &self.config);
    }

    /// Updates the window of a group after acknowledgements.
    fn on_progress(&mut self, group: Group, usage: Use, now: Time) {
        if !self.has(group) {
            return;
        }
        let acknowledged = self.children.extremes().acknowledged[group as usize].min(self.end);
        if group == Group::Session && self.waits_for_children() {
            return;
        }
        let most = TIMES_SESSION * self.session_window + self.config.headroom;
        let round = match (self.config.rounds, group) {
            (Rounds::Tree, Group::Session) => self.session_round,
            _ => Span::ZERO,
        };
        let next = if group == Group::Local { self.next_local } else { self.end };
        let it = &mut self.groups[group as usize];
        let new = acknowledged.saturating_sub(it.acknowledged);
        it.acknowledged = it.acknowledged.max(acknowledged);
        if new > 0 {
            it.window.on_progress(next);
        }
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
        for child in self.children.each_aside().filter(|child| child.group == group) {
            if let Some(queueing) = child.delay().queueing_in_round() {
                let packets = child.acknowledged as f64 / seconds * queueing;
                queued = Some(queued.unwrap_or(0.0).max(packets));
            }
            child.delay_mut().next_round();
            child.acknowledged = 0;
        }
        it.window.end_round(queued, next, &self.config, now);
        if group == Group::Session {
            it.window.cap(most);
        }
    }

    /// Drops packets that are not needed. Packets that only descendants need are stored while there is room, so children of a
    /// failed agent find them here.
    fn trim(&mut self, now: Time) {
        if self.waits_for_children() {
            return;
        }
        let needed = self.needed();
        self.kept = self.kept.filter(|(_, until)| now < *until);
        let kept = needed.min(self.low()).min(self.kept.map_or(u64::MAX, |(low, _)| low));
        let room = u64::from(self.config.store);
        let least = match self.config.repair {
            Repair::Tree => kept.max(self.end.saturating_sub(room)).min(needed),
            Repair::Session => needed,
        };
        self.store.drop_below(least);
    }

    /// Updates windows and repairs after a change of the children.
    pub(super) fn regroup(&mut self, now: Time) {
        for group in Group::BOTH {
            self.settle(group, Use::Partial, now);
        }
        self.timer_at = self.next_timer();
    }
}
