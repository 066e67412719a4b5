//! Inboxes: links fed by many hosts process arriving packets in batches.
//!
//! A later action of a sending host reaches the link after a propagation delay at the earliest. When the first packet of an inbox
//! arrives, all packets that arrive within this delay are already in the inbox. They are sorted and processed together, with one
//! entry in the calendar.
//!
//! An inbox has a lane for each link that feeds it. The packets of a lane are in order of arrival. A batch therefore accesses
//! only the packets that it processes, regardless of the number of waiting packets.
//!
//! A host whose packets all enter one inbox is a **feeder**: its timers affect nothing else. The calendar has no entries for the
//! timers of feeders. The inbox runs them when it processes a batch, up to the latest departure that can belong to the batch.

use super::Island;
use super::lookahead::FAR;
use super::nanos::NEVER;
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::routes::NONE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Packets that will be offered to a link.
#[derive(Debug, Clone)]
pub struct Inbox {
    /// Least delay of the links that feed the inbox, nanoseconds.
    lookahead: u64,
    /// Time of the calendar entry for the first packet; [`u64::MAX`] for none.
    due: u64,
    /// All packets that arrive before this time have been processed, or belong to the current batch.
    complete: u64,
    /// Lanes with packets, by the arrival of their first packet.
    lanes: BinaryHeap<Reverse<(u64, u32)>>,
    /// Feeders with timers, by the earliest arrival of a packet that the next timer sends. An entry may be outdated; see
    /// [`Host::scheduled`](super::agents::Host::scheduled).
    feeders: BinaryHeap<Reverse<(u64, u32)>>,
}

/// A host whose packets all enter one inbox.
#[derive(Debug, Clone, Copy)]
struct FeederHost {
    inbox: u32,
    /// Propagation delay of the host's link, nanoseconds.
    delay: u64,
}

/// The calendar entry that a timer of a feeder needs.
enum FeederEntry {
    Nothing,
    /// An entry of the inbox at this time.
    Inbox(u32, u64),
    /// The host's own entry, because the batch that the timer belongs to has been processed.
    Host,
}

/// Packets in transit from one link to one inbox, as a list in the pool.
#[derive(Debug, Clone)]
struct Lane {
    inbox: u32,
    /// First packet of the list; [`NONE`] if the lane is empty.
    first: u32,
    last: u32,
}

#[derive(Debug, Clone)]
struct Place {
    /// The calendar entry that the packet's arrival would have.
    entry: Entry,
    frame: Frame,
    next: u32,
}

/// All inboxes of a network.
#[derive(Debug, Clone, Default)]
pub struct Inboxes {
    inboxes: Vec<Inbox>,
    lanes: Vec<Lane>,
    pool: Vec<Place>,
    /// First free entry of the pool.
    free: u32,
    /// Packets of the current batch; the memory is reused.
    batch: Vec<(Entry, Frame)>,
    feeders: Vec<FeederHost>,
    /// Feeders with a timer in the current batch; the memory is reused.
    due: Vec<(u64, u32)>,
    /// The inbox that is collecting its batch; [`NONE`] for none.
    collecting: u32,
}

/// Bit in the number of a calendar entry that belongs to an inbox instead of a bundle.
pub const INBOX: u32 = 1 << 31;

impl Inboxes {
    pub fn new() -> Inboxes {
        Inboxes { free: NONE, collecting: NONE, ..Inboxes::default() }
    }

    /// Adds an inbox and returns its number.
    pub fn add(&mut self, lookahead: u64) -> u32 {
        let (lanes, feeders) = (BinaryHeap::new(), BinaryHeap::new());
        self.inboxes.push(Inbox { lookahead, due: u64::MAX, complete: 0, lanes, feeders });
        self.inboxes.len() as u32 - 1
    }

    /// Adds a lane to an inbox and returns its number.
    pub fn add_lane(&mut self, inbox: u32) -> u32 {
        self.lanes.push(Lane { inbox, first: NONE, last: NONE });
        self.lanes.len() as u32 - 1
    }

    /// Returns the inbox of a lane.
    pub fn of_lane(&self, lane: u32) -> u32 {
        self.lanes[lane as usize].inbox
    }

    /// Adds a feeder of an inbox, with the delay of its link in nanoseconds, and returns its number.
    pub fn add_feeder(&mut self, inbox: u32, delay: u64) -> u32 {
        self.feeders.push(FeederHost { inbox, delay });
        self.feeders.len() as u32 - 1
    }

    /// Schedules the next timer of a feeder.
    #[inline]
    fn schedule(&mut self, feeder: u32, host: u32, timer: u64) -> FeederEntry {
        let FeederHost { inbox, delay } = self.feeders[feeder as usize];
        let it = &mut self.inboxes[inbox as usize];
        let arrival = timer.saturating_add(delay);
        if arrival < it.complete {
            return FeederEntry::Host;
        }
        it.feeders.push(Reverse((arrival, host)));
        if arrival >= it.due {
            return FeederEntry::Nothing;
        }
        it.due = arrival;
        FeederEntry::Inbox(inbox, arrival)
    }

    /// Appends a packet to a lane. Returns the inbox if the packet is the first one of the inbox.
    #[inline]
    fn push(&mut self, lane: u32, entry: Entry, frame: Frame) -> Option<u32> {
        if let Some(it) = self.inboxes.get(self.collecting as usize)
            && entry.time() < it.complete
            && self.lanes[lane as usize].inbox == self.collecting
        {
            self.batch.push((entry, frame));
            return None;
        }
        let place = Place { entry, frame, next: NONE };
        let index = if self.free == NONE {
            self.pool.push(place);
            self.pool.len() as u32 - 1
        } else {
            let index = self.free;
            let free = &mut self.pool[index as usize];
            self.free = free.next;
            *free = place;
            index
        };
        let it = &mut self.lanes[lane as usize];
        let last = std::mem::replace(&mut it.last, index);
        if it.first != NONE {
            let last = &mut self.pool[last as usize];
            debug_assert!(last.entry.time() <= entry.time(), "packets of one link arrive in order");
            last.next = index;
            return None;
        }
        it.first = index;
        let inbox = &mut self.inboxes[it.inbox as usize];
        inbox.lanes.push(Reverse((entry.time(), lane)));
        if entry.time() >= inbox.due {
            return None;
        }
        inbox.due = entry.time();
        Some(it.inbox)
    }

    /// Moves all packets that arrive before `end` from an inbox to the batch.
    fn take(&mut self, inbox: u32, end: u64) {
        let lanes = &mut self.inboxes[inbox as usize].lanes;
        while let Some(&Reverse((at, number))) = lanes.peek()
            && at < end
        {
            let lane = &mut self.lanes[number as usize];
            while let Some(place) = self.pool.get_mut(lane.first as usize)
                && place.entry.time() < end
            {
                self.batch.push((place.entry, place.frame));
                let next = std::mem::replace(&mut place.next, self.free);
                self.free = std::mem::replace(&mut lane.first, next);
            }
            match self.pool.get(lane.first as usize) {
                None => _ = lanes.pop(),
                Some(first) => {
                    if let Some(mut lane) = lanes.peek_mut() {
                        lane.0.0 = first.entry.time();
                    }
                }
            }
        }
    }
}

impl Island {
    /// Adds the packet that `link` accepted last to the inbox of the lane. The packet arrives at `at`.
    pub(super) fn drop_in(&mut self, lane: u32, link: u32, at: u64, frame: Frame) {
        // The calendar may already have an entry for a later packet of the inbox. An earlier entry is then added for the packet
        // from `link`. When the later entry is due, its packet may have been processed already.
        let rank = self.links[link as usize].link.rank();
        self.drop_in_ranked(lane, (at, link, rank), frame);
    }

    /// Adds a packet to the inbox of the lane. It arrives at a time, from a link, with a rank.
    #[inline]
    pub(super) fn drop_in_ranked(&mut self, lane: u32, (at, link, rank): (u64, u32, u8), frame: Frame) {
        if let Some(inbox) = self.inboxes.push(lane, Entry::arrival(at, link, rank), frame) {
            self.calendar.push(Entry::new(at, Class::Flush, INBOX | inbox));
        }
    }

    /// Schedules the next timer of a host that feeds an inbox.
    #[inline]
    pub(super) fn schedule_feeder(&mut self, feeder: u32, host: u32, timer: u64) {
        match self.inboxes.schedule(feeder, host, timer) {
            FeederEntry::Nothing => {}
            FeederEntry::Inbox(inbox, at) => self.calendar.push(Entry::new(at, Class::Flush, INBOX | inbox)),
            FeederEntry::Host => self.calendar.push(Entry::new(timer, Class::Timer, host)),
        }
    }

    /// Processes the packets of an inbox, the first of which arrives now at the earliest.
    pub(super) fn empty_inbox(&mut self, inbox: u32, now: u64) {
        let it = &mut self.inboxes.inboxes[inbox as usize];
        if it.due != now {
            return;
        }
        // Packets from other islands are known up to the horizon.
        let complete = now.saturating_add(it.lookahead).min(self.border.horizon);
        it.complete = complete;
        self.inboxes.take(inbox, complete);
        self.run_feeders(inbox, complete);
        let mut batch = std::mem::take(&mut self.inboxes.batch);
        batch.sort_by_key(|(entry, _)| *entry); // stable: packets of one link stay in order
        let looks_ahead = self.looks_ahead(batch.len());
        for place in if looks_ahead { 0 } else { FAR }..batch.len() + FAR {
            if looks_ahead {
                self.look_ahead_in(&batch, place);
            }
            if let Some((entry, frame)) = batch.get(place.wrapping_sub(FAR)) {
                self.offer(entry.time(), *frame);
            }
        }
        batch.clear();
        self.inboxes.batch = batch;
        // Processed packets may already have caused answers, and these answers may have caused new packets for this inbox. The
        // new packets arrive after the batch.
        let it = &mut self.inboxes.inboxes[inbox as usize];
        let first = |heap: &BinaryHeap<Reverse<(u64, u32)>>| heap.peek().map_or(u64::MAX, |first| first.0.0);
        it.due = first(&it.lanes).min(first(&it.feeders));
        debug_assert!(it.due >= complete, "an inbox was emptied too early");
        if it.due != u64::MAX {
            self.calendar.push(Entry::new(it.due, Class::Flush, INBOX | inbox));
        }
    }

    /// Whether memory is prefetched for a batch of this length.
    #[inline]
    const fn looks_ahead(&self, batch: usize) -> bool {
        self.is_large && batch > 2
    }

    /// Runs the timers of an inbox's feeders whose packets can arrive before `end`.
    fn run_feeders(&mut self, inbox: u32, end: u64) {
        let Inboxes { inboxes, due, .. } = &mut self.inboxes;
        let feeders = &mut inboxes[inbox as usize].feeders;
        while let Some(&Reverse(first)) = feeders.peek()
            && first.0 < end
        {
            feeders.pop();
            due.push(first);
        }
        let due = std::mem::take(&mut self.inboxes.due);
        self.inboxes.collecting = inbox;
        let looks_ahead = self.looks_ahead(due.len());
        for place in if looks_ahead { 0 } else { FAR }..due.len() + FAR {
            if looks_ahead {
                self.look_ahead_among(&due, place);
            }
            let Some(&(arrival, host)) = due.get(place.wrapping_sub(FAR)) else { continue };
            let it = &self.hosts[host as usize];
            let Some(feeder) = it.feeder() else { continue };
            let delay = self.inboxes.feeders[feeder as usize].delay;
            if it.scheduled != arrival - delay {
                continue; // an earlier entry took its place
            }
            self.hosts[host as usize].scheduled = NEVER;
            self.run_timers(host, end - delay - 1);
            self.schedule_host(host);
        }
        self.inboxes.collecting = NONE;
        self.inboxes.due = due;
        self.inboxes.due.clear();
    }

    /// Runs the timers of all feeders up to `now`.
    pub(super) fn catch_up_feeders(&mut self, now: u64) {
        for host in 0..self.hosts.len() as u32 {
            if self.hosts[host as usize].feeder().is_some() {
                self.run_timers(host, now);
                self.schedule_host(host);
            }
        }
    }

    /// Offers a packet to its link.
    fn offer(&mut self, now: u64, frame: Frame) {
        let Body::Data(slot) = frame.body else { return self.offer_hop(now, frame) };
        let packet = frame.logged(now, self.store.get(slot));
        self.offer_branch(frame.at, &packet, &mut Some(slot));
        self.store.release(slot);
    }
}
