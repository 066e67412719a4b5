//! The children of a node, with the extremes of their values. The cost of an update is logarithmic in the number of children.

use super::child::{Child, Group, Role};
use super::config::{Config, Repair};
use crate::packet::ReceiverId;
use crate::time::{Span, Time};
use std::ops::{Deref, DerefMut};

/// The children in ascending order of their IDs. They are read as a slice, and changed by [`Children::edit`], which updates the
/// extremes.
#[derive(Debug, Clone)]
pub(super) struct Children {
    /// IDs of the children. A search needs less memory here than in `list`.
    ids: Vec<ReceiverId>,
    list: Vec<Child>,
    view: View,
    /// A tree of extremes. The root is at 1; the leaves, one for each child, begin at `leaves`.
    extremes: Vec<Extremes>,
    leaves: usize,
    /// For each child: the time at which its first packet is late, as set by [`Children::set_late`]. Stored as a tree like
    /// `extremes`.
    late: Vec<Time>,
    /// Children that have changed since their late times were computed; no child occurs twice.
    stale: Vec<usize>,
    is_stale: Vec<bool>,
    /// Children from which no acknowledgement is awaited; no child occurs twice.
    idle: Vec<usize>,
    is_idle: Vec<bool>,
}

/// The settings that determine a child's values.
#[derive(Debug, Clone, Copy)]
struct View {
    config: Config,
    role: Role,
}

/// Sums, minima and maxima of values of several children. Arrays have one value per group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extremes {
    pub(super) count: [usize; 2],
    /// The lowest packet that a child misses.
    pub(super) needed: u64,
    /// The lowest packet that some child of the group has not acknowledged; used for the window.
    pub(super) acknowledged: [u64; 2],
    /// Upper bound of the children's `lost_to`.
    pub(super) lost_to: [u64; 2],
    pub(super) round_trip: [Option<Span>; 2],
    pub(super) repair_timeout: [Span; 2],
    /// Time of the next order to a child about its group, and of the next query to a child.
    pub(super) tell_at: Time,
    pub(super) ask_at: Time,
    /// Minima over the children of the session's group: of [`Child::low`], of [`Child::under_way`], and of the windows in their
    /// summaries.
    pub(super) low: u64,
    pub(super) under_way: u64,
    pub(super) window: f64,
    /// Maximum number of packets in flight to a child of the session's group or to a descendant of such a child, minus the end of
    /// the sent packets. The difference is valid if the end of the sent packets is at least `regular_from`.
    transit: i64,
    regular_from: u64,
}

impl Extremes {
    const NONE: Extremes = Extremes {
        count: [0; 2],
        needed: u64::MAX,
        acknowledged: [u64::MAX; 2],
        lost_to: [0; 2],
        round_trip: [None; 2],
        repair_timeout: [Span::ZERO; 2],
        tell_at: Time::NEVER,
        ask_at: Time::NEVER,
        low: u64::MAX,
        under_way: u64::MAX,
        window: f64::INFINITY,
        transit: i64::MIN,
        regular_from: 0,
    };

    fn of(child: &Child, view: &View) -> Extremes {
        let group = child.group as usize;
        let mut it = Extremes {
            needed: child.board.base(),
            tell_at: child.tell_at,
            ask_at: child.asks_at(view.role),
            ..Extremes::NONE
        };
        it.count[group] = 1;
        it.acknowledged[group] = match view.config.repair {
            Repair::Tree => child.first_under_way(),
            Repair::Session => child.board.base(),
        };
        it.lost_to[group] = child.lost_to;
        it.round_trip[group] = child.round_trip.mean();
        it.repair_timeout[group] = child.round_trip.timeout(&view.config);
        if child.group == Group::Session {
            (it.low, it.under_way) = (child.low(), child.under_way());
            it.window = child.summary.map_or(f64::INFINITY, |summary| summary.window);
            (it.transit, it.regular_from) = child.transit_behind();
        }
        it
    }

    fn and(&self, other: &Extremes) -> Extremes {
        let both = |at: usize| (at, self, other);
        let least = |(at, a, b): (usize, &Extremes, &Extremes)| a.acknowledged[at].min(b.acknowledged[at]);
        let lost = |(at, a, b): (usize, &Extremes, &Extremes)| a.lost_to[at].max(b.lost_to[at]);
        Extremes {
            count: [self.count[0] + other.count[0], self.count[1] + other.count[1]],
            needed: self.needed.min(other.needed),
            acknowledged: [0, 1].map(both).map(least),
            lost_to: [0, 1].map(both).map(lost),
            round_trip: [0, 1].map(|at| self.round_trip[at].max(other.round_trip[at])),
            repair_timeout: [0, 1].map(|at| self.repair_timeout[at].max(other.repair_timeout[at])),
            tell_at: self.tell_at.min(other.tell_at),
            ask_at: self.ask_at.min(other.ask_at),
            low: self.low.min(other.low),
            under_way: self.under_way.min(other.under_way),
            window: self.window.min(other.window),
            transit: self.transit.max(other.transit),
            regular_from: self.regular_from.max(other.regular_from),
        }
    }
}

impl Deref for Children {
    type Target = [Child];

    fn deref(&self) -> &[Child] {
        &self.list
    }
}

impl Children {
    pub(super) fn new(config: Config, role: Role) -> Children {
        let mut children = Children {
            ids: Vec::new(),
            list: Vec::new(),
            view: View { config, role },
            extremes: Vec::new(),
            leaves: 0,
            late: Vec::new(),
            stale: Vec::new(),
            is_stale: Vec::new(),
            idle: Vec::new(),
            is_idle: Vec::new(),
        };
        children.rebuild();
        children
    }

    /// Returns the index of a child; if there is no such child, the index at which it would be inserted.
    pub(super) fn place(&self, id: ReceiverId) -> Result<usize, usize> {
        self.ids.binary_search(&id)
    }

    /// Returns the extremes over all children.
    pub(super) fn extremes(&self) -> &Extremes {
        &self.extremes[1]
    }

    /// Returns the maximum number of packets below `end` in flight to a child of the session's group, or to a descendant of such
    /// a child.
    pub(super) fn transit(&self, end: u64) -> u64 {
        let Extremes { count, transit, regular_from, .. } = *self.extremes();
        if count[Group::Session as usize] == 0 {
            0
        } else if end >= regular_from {
            (end as i64).saturating_add(transit).max(0) as u64
        } else {
            let of_session = self.list.iter().filter(|child| child.group == Group::Session);
            of_session.map(|child| child.transit(end)).max().unwrap_or(0)
        }
    }

    /// Returns the first child whose extremes satisfy `fits`. If the extremes of one child satisfy `fits`, the extremes of every
    /// set that contains this child must also satisfy `fits`.
    pub(super) fn first(&self, fits: impl Fn(&Extremes) -> bool) -> Option<usize> {
        let mut place = 1;
        if !fits(&self.extremes[place]) {
            return None;
        }
        while place < self.leaves {
            place = 2 * place + usize::from(!fits(&self.extremes[2 * place]));
        }
        Some(place - self.leaves)
    }

    /// Returns access to a child for changes.
    pub(super) fn edit(&mut self, place: usize) -> Edit<'_> {
        Edit { children: self, place, is_changed: false }
    }

    /// Changes all children.
    pub(super) fn edit_all(&mut self, change: impl FnMut(&mut Child)) {
        self.list.iter_mut().for_each(change);
        self.rebuild();
    }

    /// Returns the children for changes. Values on which the extremes or [`Children::set_late`] depend must not be changed.
    pub(super) fn each_aside(&mut self) -> impl Iterator<Item = &mut Child> {
        self.list.iter_mut()
    }

    pub(super) fn insert(&mut self, place: usize, child: Child) {
        self.ids.insert(place, child.id);
        self.list.insert(place, child);
        self.rebuild();
    }

    pub(super) fn remove(&mut self, place: usize) -> Child {
        self.ids.remove(place);
        let child = self.list.remove(place);
        self.rebuild();
        child
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.list.clear();
        self.rebuild();
    }

    fn rebuild(&mut self) {
        self.leaves = self.list.len().next_power_of_two();
        self.extremes.clear();
        self.extremes.resize(2 * self.leaves, Extremes::NONE);
        for (leaf, child) in self.extremes[self.leaves..].iter_mut().zip(&self.list) {
            *leaf = Extremes::of(child, &self.view);
        }
        for place in (1..self.leaves).rev() {
            self.extremes[place] = self.extremes[2 * place].and(&self.extremes[2 * place + 1]);
        }
        self.late.clear();
        self.late.resize(2 * self.leaves, Time::NEVER);
        self.all_stale();
    }

    fn update_extremes(&mut self, child: usize) {
        let mut place = self.leaves + child;
        let mut new = Extremes::of(&self.list[child], &self.view);
        while self.extremes[place] != new {
            self.extremes[place] = new;
            if place == 1 {
                break;
            }
            place /= 2;
            new = self.extremes[2 * place].and(&self.extremes[2 * place + 1]);
        }
    }

    /// Marks the late time of a child for recomputation.
    pub(super) fn note_stale(&mut self, child: usize) {
        if !std::mem::replace(&mut self.is_stale[child], true) {
            self.stale.push(child);
        }
    }

    /// Marks the late times of all children for recomputation.
    pub(super) fn all_stale(&mut self) {
        self.is_stale.clear();
        self.is_stale.resize(self.list.len(), true);
        self.stale.clear();
        self.stale.extend(0..self.list.len());
        self.idle.clear();
        self.is_idle.clear();
        self.is_idle.resize(self.list.len(), false);
    }

    /// Records a packet that was sent to all children. From now on an acknowledgement is awaited from idle children, too.
    pub(super) fn wake_idle(&mut self, now: Time) {
        let mut idle = std::mem::take(&mut self.idle);
        for child in idle.drain(..) {
            self.is_idle[child] = false;
            self.note_stale(child);
        }
        self.idle = idle;
        for &child in &self.stale {
            self.list[child].silent_since.get_or_insert(now);
        }
    }

    /// Returns a child whose late time must be recomputed.
    pub(super) fn next_stale(&mut self) -> Option<usize> {
        let child = self.stale.pop()?;
        self.is_stale[child] = false;
        Some(child)
    }

    /// Sets the time at which the first packet of a child is late; [`Time::NEVER`] if no acknowledgement is awaited.
    pub(super) fn set_late(&mut self, child: usize, at: Time) {
        if at.is_never() && !std::mem::replace(&mut self.is_idle[child], true) {
            self.idle.push(child);
        }
        let mut place = self.leaves + child;
        self.late[place] = at;
        while place > 1 {
            place /= 2;
            self.late[place] = self.late[2 * place].min(self.late[2 * place + 1]);
        }
    }

    /// Returns the earliest late time of all children.
    pub(super) fn late(&self) -> Time {
        self.late[1]
    }

    /// Returns the first child with a packet that is late now.
    pub(super) fn first_late(&self, now: Time) -> Option<usize> {
        let mut place = 1;
        if self.late[place] > now {
            return None;
        }
        while place < self.leaves {
            place = 2 * place + usize::from(self.late[2 * place] > now);
        }
        Some(place - self.leaves)
    }
}

#[cfg(test)]
impl Children {
    /// Checks that the stored extremes agree with the children, and that an acknowledgement is awaited for every sent packet.
    pub(super) fn check(&self, end: u64) {
        let folded = self.list.iter().map(|child| Extremes::of(child, &self.view));
        assert_eq!(*self.extremes(), folded.fold(Extremes::NONE, |all, one| all.and(&one)));
        let of_session = self.list.iter().filter(|child| child.group == Group::Session);
        assert_eq!(self.transit(end), of_session.map(|child| child.transit(end)).max().unwrap_or(0));
        let waits = |at: usize| self.is_idle[at] || self.is_stale[at] || self.list[at].silent_since.is_some();
        assert!((0..self.list.len()).all(waits), "{self:?}");
    }

    /// Returns the late time of a child, unless it must be recomputed.
    pub(super) fn known_late(&self, child: usize) -> Option<Time> {
        (!self.is_stale[child]).then(|| self.late[self.leaves + child])
    }
}

/// A child that is being changed.
pub(super) struct Edit<'a> {
    children: &'a mut Children,
    place: usize,
    /// Whether the extremes may have changed.
    is_changed: bool,
}

impl Deref for Edit<'_> {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.children.list[self.place]
    }
}

impl DerefMut for Edit<'_> {
    fn deref_mut(&mut self) -> &mut Child {
        self.is_changed = true;
        &mut self.children.list[self.place]
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        if self.is_changed {
            self.children.update_extremes(self.place);
        }
        self.children.note_stale(self.place);
    }
}
