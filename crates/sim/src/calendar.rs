//! The calendar of pending entries. Their order depends only on the entries themselves.
//!
//! Entries are ordered by time, then by class, then by a hash of the time and the number of the node or link. Arrivals of the
//! same time are ordered by rank, then by the hash. Like in a calendar queue (Brown 1988), entries are stored in days: a day is a
//! list of the entries of one span of `2^k` ns, and a year is a fixed number of days. A day is sorted when it begins. The length
//! of a day is adjusted to the number of entries; this length affects the speed, but never the order. Many receivers act in the
//! same nanosecond, so no length may separate their entries. An entry that is added far behind the next one goes to a heap.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Class of an entry. Entries of the same nanosecond are processed in the order of their classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Transmission of the next packet by a link that queues. The packet leaves the queue before any other event of the same
    /// nanosecond.
    Dequeue = 0,
    /// A change that the scenario requests; the entry's number is the number of the change.
    Change = 1,
    /// Processing of the packets that are pending in a bundle of last hops.
    Flush = 2,
    /// A host's timer.
    Timer = 3,
    /// Arrival of a packet at the end of a link.
    Arrival = 4,
}

/// An entry: time, class, and the number of the node or link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    time: u64,
    key: u64,
}

impl Entry {
    /// Returns an entry at `time`, in nanoseconds.
    ///
    /// Entries of the same time and class have an order that looks random, but depends only on the time and the number. If the
    /// order followed the numbers, the same flow would win every tie at a full queue.
    #[inline]
    pub const fn new(time: u64, class: Class, number: u32) -> Entry {
        let mixed = (time ^ ((number as u64) << 32) ^ number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let lot = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40;
        Entry { time, key: ((class as u64) << 56) | (lot << 32) | number as u64 }
    }

    /// Returns the entry of a packet's arrival at the end of a link at `time`.
    ///
    /// Packets that arrive at a node simultaneously are ordered by the rank of their links, lowest first, and then at random. A
    /// bottleneck sends the packets of its flows at equal intervals, so packets of different flows repeatedly arrive at the
    /// bottleneck in the same nanosecond. The order then decides which flow gets the last place in the queue.
    #[inline]
    pub const fn arrival(time: u64, link: u32, rank: u8) -> Entry {
        let Entry { key, .. } = Entry::new(time, Class::Arrival, link);
        Entry { time, key: (key & !(0xff << 48)) | (rank as u64) << 48 }
    }

    /// Returns the time, in nanoseconds.
    pub const fn time(self) -> u64 {
        self.time
    }

    /// Returns the class.
    pub const fn class(self) -> Class {
        match self.key >> 56 {
            0 => Class::Dequeue,
            1 => Class::Change,
            2 => Class::Flush,
            3 => Class::Timer,
            _ => Class::Arrival,
        }
    }

    /// Returns the number of the node, link or change that the entry concerns.
    pub const fn number(self) -> u32 {
        self.key as u32
    }
}

/// Number of days in a year; a power of two and a multiple of 64.
const DAYS: u64 = 1 << 14;
/// Marks the absence of an index into the pool.
const NONE: u32 = u32::MAX;
/// Maximum number of entries of the current day that an added entry moves.
const MOVED: usize = 64;
/// Number of days after which the width of a day is adjusted.
const REVIEW: u32 = 256;

#[derive(Debug, Clone, Copy)]
struct Slot {
    entry: Entry,
    next: u32,
}

/// A calendar queue (Brown 1988) in which only the current day is sorted.
#[derive(Debug)]
pub struct Calendar {
    /// Entries of the current day, the earliest last.
    present: Vec<Entry>,
    /// Further entries of the current day.
    added: BinaryHeap<Reverse<Entry>>,
    /// Number of the current day since time zero.
    today: u64,
    /// Base-2 logarithm of the length of a day in nanoseconds.
    width: u32,
    heads: Vec<u32>,
    /// One bit for each day with entries.
    busy: Vec<u64>,
    pool: Vec<Slot>,
    free: u32,
    /// Number of entries outside the current day.
    later: usize,
    days: u32,
    sorted: u32,
    /// Whether a day has begun, or its added entries were sorted, since the last call of [`Calendar::begins_day`].
    begins: bool,
}

impl Default for Calendar {
    fn default() -> Calendar {
        Calendar {
            present: Vec::with_capacity(4096),
            added: BinaryHeap::new(),
            today: 0,
            width: 16,
            heads: vec![NONE; DAYS as usize],
            busy: vec![0; DAYS as usize / 64],
            pool: Vec::with_capacity(4096),
            free: NONE,
            later: 0,
            days: 0,
            sorted: 0,
            begins: false,
        }
    }
}

impl Calendar {
    /// Adds an entry. An entry in the past becomes the next entry.
    #[inline]
    pub fn push(&mut self, entry: Entry) {
        let day = entry.time >> self.width;
        if day <= self.today {
            self.push_present(entry);
        } else {
            self.push_later(day, entry);
        }
    }

    fn push_present(&mut self, entry: Entry) {
        let next = self.present.len().saturating_sub(MOVED);
        if self.present.get(next).is_some_and(|known| next > 0 && *known < entry) {
            self.added.push(Reverse(entry));
            return;
        }
        let at = next + self.present[next..].partition_point(|known| *known > entry);
        self.present.insert(at, entry);
    }

    #[inline]
    fn push_later(&mut self, day: u64, entry: Entry) {
        let slot = (day % DAYS) as usize;
        let place = Slot { entry, next: self.heads[slot] };
        let index = if self.free == NONE {
            self.pool.push(place);
            self.pool.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = self.pool[index as usize].next;
            self.pool[index as usize] = place;
            index
        };
        self.heads[slot] = index;
        self.busy[slot / 64] |= 1 << (slot % 64);
        self.later += 1;
    }

    /// Removes and returns the next entry, unless it is later than `until`.
    #[inline]
    pub fn pop(&mut self, until: u64) -> Option<Entry> {
        while self.present.is_empty() {
            if !self.added.is_empty() {
                self.sort_added();
            } else if self.later == 0 || !self.turn_page(until) {
                return None;
            }
        }
        if let Some(&Reverse(added)) = self.added.peek()
            && self.present.last().is_some_and(|entry| added < *entry)
        {
            return if added.time > until { None } else { self.added.pop().map(|entry| entry.0) };
        }
        if self.present.last().is_some_and(|entry| entry.time > until) {
            return None;
        }
        self.present.pop()
    }

    /// Makes the added entries of the current day its entries, of which none is left.
    #[cold]
    fn sort_added(&mut self) {
        self.present.extend(self.added.drain().map(|entry| entry.0));
        self.present.sort_unstable_by(|a, b| b.cmp(a));
        self.begins = true;
    }

    /// Returns the entry `ahead` places after the next entry, if it is one of the sorted entries of the current day.
    #[inline]
    pub fn peek(&self, ahead: usize) -> Option<Entry> {
        let last = self.present.len().checked_sub(1 + ahead)?;
        self.present.get(last).copied()
    }

    /// Returns whether a day has begun, or its added entries were sorted, since the last call.
    #[inline]
    pub const fn begins_day(&mut self) -> bool {
        std::mem::replace(&mut self.begins, false)
    }

    /// Returns the time of the next entry.
    pub fn next_time(&self) -> Option<u64> {
        let added = self.added.peek().map(|entry| entry.0);
        if let Some(entry) = self.present.last().copied().into_iter().chain(added).min() {
            return Some(entry.time);
        }
        let mut day = self.today;
        while let Some(next) = self.next_busy(day)
            && next - self.today < DAYS
        {
            let earliest =
                self.in_list((next % DAYS) as usize).filter(|time| time >> self.width == next).min();
            if earliest.is_some() {
                return earliest;
            }
            day = next;
        }
        self.earliest()
    }

    /// Returns the times of the entries in the list of a day.
    fn in_list(&self, slot: usize) -> impl Iterator<Item = u64> {
        let mut index = self.heads[slot];
        std::iter::from_fn(move || {
            let Slot { entry, next } = *self.pool.get(index as usize)?;
            index = next;
            Some(entry.time)
        })
    }

    /// Moves to the next day with entries, but not beyond the day of `until`. Returns `false` if there is no such day.
    fn turn_page(&mut self, until: u64) -> bool {
        let last = until >> self.width;
        let mut day = self.today;
        loop {
            let Some(next) = self.next_busy(day) else {
                // The year has no entries left: jump to the earliest entry.
                let Some(earliest) = self.earliest() else { return false };
                day = earliest >> self.width;
                if day > last {
                    return false;
                }
                self.open(day);
                return true;
            };
            if next > last {
                return false;
            }
            if self.open(next) {
                return true;
            }
            day = next;
            if day - self.today >= DAYS - 1 {
                // All entries in the days of this year belong to later years.
                let Some(earliest) = self.earliest() else { return false };
                day = (earliest >> self.width) - 1;
            }
        }
    }

    /// Returns the first day after `day` that has entries, within a year.
    fn next_busy(&self, day: u64) -> Option<u64> {
        let start = day + 1;
        let mut at = start;
        while at < start + DAYS {
            let slot = at % DAYS;
            let word = self.busy[(slot / 64) as usize] >> (slot % 64);
            if word != 0 {
                let found = at + u64::from(word.trailing_zeros());
                return (found < start + DAYS).then_some(found);
            }
            at += 64 - slot % 64;
        }
        None
    }

    fn earliest(&self) -> Option<u64> {
        if self.later == 0 {
            return None;
        }
        (0..DAYS as usize).flat_map(|slot| self.in_list(slot)).min()
    }

    /// Makes `day` the current day. Returns `false` if all entries in its list belong to later years.
    fn open(&mut self, day: u64) -> bool {
        let slot = (day % DAYS) as usize;
        let mut index = self.heads[slot];
        let mut kept = NONE;
        while index != NONE {
            let Slot { entry, next } = self.pool[index as usize];
            if entry.time >> self.width == day {
                self.present.push(entry);
                self.pool[index as usize].next = self.free;
                self.free = index;
            } else {
                self.pool[index as usize].next = kept;
                kept = index;
            }
            index = next;
        }
        self.heads[slot] = kept;
        if kept == NONE {
            self.busy[slot / 64] &= !(1 << (slot % 64));
        }
        if self.present.is_empty() {
            return false;
        }
        self.later -= self.present.len();
        self.present.sort_unstable_by(|a, b| b.cmp(a));
        self.today = day;
        self.begins = true;
        self.days += 1;
        self.sorted += self.present.len() as u32;
        if self.days == REVIEW {
            self.review();
        }
        true
    }

    /// Halves the width of days with many entries, and doubles the width of days with few entries.
    fn review(&mut self) {
        let mean = self.sorted / self.days;
        (self.days, self.sorted) = (0, 0);
        if mean > 96 && self.width > 4 {
            self.set_width(self.width - 1);
        } else if mean <= 24 && self.width < 30 && (self.later as u64) < DAYS * 24 {
            self.set_width(self.width + 1);
        }
    }

    fn set_width(&mut self, width: u32) {
        debug_assert!(self.added.is_empty(), "the width changes when a day begins");
        let mut entries: Vec<Entry> = Vec::with_capacity(self.later + self.present.len());
        for head in &mut self.heads {
            let mut index = std::mem::replace(head, NONE);
            while index != NONE {
                let Slot { entry, next } = self.pool[index as usize];
                entries.push(entry);
                index = next;
            }
        }
        self.busy.fill(0);
        self.pool.clear(); // its memory stays
        self.free = NONE;
        self.later = 0;
        // The entries of the current day stay in place: they are earlier than all entries that are pushed again.
        let latest_present = self.present.first().map_or(0, |entry| entry.time);
        self.width = width;
        self.today = latest_present >> width;
        for entry in entries {
            self.push(entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    #[test]
    fn calendar_returns_entries_in_order_of_time_and_class() {
        let mut calendar = Calendar::default();
        let entries = [
            Entry::new(5, Class::Arrival, 1),
            Entry::new(5, Class::Timer, 9),
            Entry::new(5, Class::Flush, 3),
            Entry::new(5, Class::Dequeue, 2),
            Entry::new(4, Class::Arrival, 7),
            Entry::new(1 << 40, Class::Flush, 0),
        ];
        entries.iter().for_each(|entry| calendar.push(*entry));
        let order: Vec<_> = std::iter::from_fn(|| calendar.pop(u64::MAX)).collect();
        assert_eq!(order, [4, 3, 2, 1, 0, 5].map(|place: usize| entries[place]));
    }

    #[test]
    fn simultaneous_arrivals_are_ordered_by_rank() {
        for moment in 0..1000 {
            assert!(Entry::arrival(moment, 1, 0) < Entry::arrival(moment, 2, 1));
            assert!(Entry::arrival(moment, 7, 254) < Entry::arrival(moment, 3, 255));
            assert!(Entry::arrival(moment, 1, 255) > Entry::new(moment, Class::Timer, 1));
        }
        assert_eq!(Entry::arrival(5, 77, 255).number(), 77);
        assert_eq!(Entry::arrival(5, 77, 255).class(), Class::Arrival);
    }

    #[test]
    fn ties_between_arrivals_are_broken_evenly() {
        let first = |time| Entry::arrival(time, 1, 9) < Entry::arrival(time, 2, 9);
        let wins = (0..1000u64).filter(|k| first(k * 800_000)).count();
        assert!((400..600).contains(&wins), "{wins} of 1000");
    }

    #[test]
    fn entries_later_than_the_limit_stay_in_the_calendar() {
        let mut calendar = Calendar::default();
        calendar.push(Entry::new(1_000_000, Class::Timer, 0));
        assert_eq!(calendar.pop(999_999), None);
        assert!(calendar.pop(1_000_000).is_some());
    }

    /// Entries of many receivers in the same nanosecond, each of which adds another one soon.
    #[test]
    fn simultaneous_entries_and_additions_are_in_order() {
        let (mut calendar, mut heap) = (Calendar::default(), BinaryHeap::new());
        let push = |calendar: &mut Calendar, heap: &mut BinaryHeap<_>, entry| {
            calendar.push(entry);
            heap.push(Reverse(entry));
        };
        (0..5_000).for_each(|k| push(&mut calendar, &mut heap, Entry::new(1_000_000, Class::Arrival, k)));
        for step in 0..50_000u32 {
            let expected = heap.pop().map(|entry| entry.0);
            let now = expected.map_or(0, Entry::time);
            assert_eq!(calendar.next_time(), Some(now), "step {step}");
            assert_eq!((calendar.pop(now - 1), calendar.pop(now)), (None, expected), "step {step}");
            let gap = [1, 400, 400, 70_000][step as usize % 4];
            push(&mut calendar, &mut heap, Entry::new(now + gap, Class::Timer, step));
        }
    }

    /// After 500 pushes, one entry is removed for each entry that is pushed. The gaps between entries last from nanoseconds to
    /// seconds; 1 % of the entries are in the past.
    #[test]
    fn calendar_order_equals_heap_order_at_every_density() {
        for (seed, scale) in [(1, 1e2), (2, 1e4), (3, 1e6), (4, 1e9), (5, 1e11)] {
            let (mut rng, mut calendar, mut heap) =
                (Rng::new(seed, 0), Calendar::default(), BinaryHeap::new());
            let mut now = 0;
            for step in 0..60_000u32 {
                let gap = rng.exponential(scale) * if rng.chance(0.05) { 300.0 } else { 1.0 };
                let time = if rng.chance(0.01) { now / 2 } else { now + gap as u64 };
                let class = if rng.chance(0.5) { Class::Timer } else { Class::Arrival };
                let entry = Entry::new(time, class, step % 97);
                calendar.push(entry);
                heap.push(Reverse(entry));
                if step > 500 {
                    let expected = heap.pop().map(|entry| entry.0);
                    let until = expected.map_or(0, Entry::time);
                    assert_eq!(calendar.next_time(), expected.map(Entry::time), "scale {scale}, step {step}");
                    assert_eq!(calendar.pop(until), expected, "scale {scale}, step {step}");
                    now = now.max(until);
                }
            }
        }
    }
}
