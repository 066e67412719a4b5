//! Links that queue: links whose discipline stores packets. Waiting packets are stored here, and a calendar entry represents the
//! next departure.
//!
//! Packets enter such a link only in the order of the calendar. When a packet leaves the queue, its arrival is known, unless the
//! scenario changes the link. The packet is then processed at once, where the other links permit this
//! ([`precompute`](super::precompute)). Otherwise it is stored in the ring of the link.

use super::{Island, time_of};
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::outcome::Tapped;
use crate::routes::ArrivalProcessing;
use faircast_aqm::{Dequeued, Ecn, LossCause, OfferResult, Ticket};

/// Packets that wait at a link.
#[derive(Debug)]
pub struct LinkQueue {
    /// Waiting packets, by ticket.
    packets: Vec<Waiting>,
    /// Time of the link's entry in the calendar; [`u64::MAX`] for none.
    scheduled: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    frame: Frame,
    /// Index of the packet in the records of the taps.
    tapped: Option<u32>,
    /// Time at which the packet was offered.
    since: u64,
}

impl LinkQueue {
    pub const fn new() -> LinkQueue {
        LinkQueue { packets: Vec::new(), scheduled: u64::MAX }
    }

    fn put(&mut self, ticket: Ticket, waiting: Waiting) {
        let place = ticket.0 as usize;
        if place >= self.packets.len() {
            // Ticket numbers are consecutive.
            self.packets.resize(place + 1, waiting);
        }
        self.packets[place] = waiting;
    }
}

impl Island {
    /// Creates the rings and queues of links that queue. These links get the first rings, and the ring and the queue of a link
    /// have the same number.
    pub(super) fn put_up_queues(&mut self) {
        for link in 0..self.links.len() as u32 {
            if self.links[link as usize].link.queues() {
                self.put_up_ring(link);
                self.queues.push(LinkQueue::new());
            }
        }
    }

    /// Stores a packet that was queued.
    #[cold]
    pub(super) fn wait(&mut self, link: u32, now: u64, frame: Frame, ticket: Ticket) {
        let it = &self.links[link as usize];
        let tapped = if it.is_tapped() { (self.taps.len() as u32).checked_sub(1) } else { None };
        let Some(queue) = it.ring_number().and_then(|number| self.queues.get_mut(number)) else { return };
        queue.put(ticket, Waiting { frame, tapped, since: now });
        let next = it.link.next_dequeue().as_nanos();
        if next <= now {
            self.take_dequeued(link, now);
        } else if next != queue.scheduled {
            self.schedule_dequeue(link, next);
        }
    }

    /// Processes a departure from a link at an entry of the calendar.
    pub(super) fn dequeue(&mut self, link: u32, now: u64) {
        let queue = self.links[link as usize].ring_number().and_then(|number| self.queues.get(number));
        if queue.is_none_or(|queue| queue.scheduled != now) {
            return; // the link was changed since
        }
        // A sample at exactly this time is taken after the departure.
        if let Some(before) = now.checked_sub(1)
            && self.links[link as usize].is_watched()
        {
            self.sample_link(link, before);
        }
        self.take_dequeued(link, now);
    }

    /// Processes the packets that left the queue or were dropped from it up to `now`.
    pub(super) fn take_dequeued(&mut self, link: u32, now: u64) {
        let Some(number) = self.links[link as usize].ring_number() else { return };
        while let Some(news) = self.links[link as usize].link.dequeue(time_of(now)) {
            let (ticket, fate) = match news {
                Dequeued::Arrives { ticket, at, marked } => (ticket, OfferResult::Arrives { at, marked }),
                Dequeued::Lost { ticket, cause } => (ticket, OfferResult::Lost(cause)),
            };
            let queue = &self.queues[number];
            let Waiting { frame, tapped, since } = queue.packets[ticket.0 as usize];
            if let (OfferResult::Arrives { at, .. }, true) = (fate, self.links[link as usize].is_probed())
                && let Some(probe) = self.probes.get_mut(&link)
            {
                probe.delays.note(since, at.as_nanos());
            }
            if self.links[link as usize].is_recorded() {
                self.note_fate(link, now, frame.flow, fate);
            }
            match fate {
                OfferResult::Arrives { at, marked } => {
                    if let (true, Some(tapped)) = (marked, self.tapped_at(tapped)) {
                        tapped.ecn = Ecn::Ce;
                    }
                    self.leave_queue(link, frame, at.as_nanos(), marked);
                }
                OfferResult::Lost(cause) => self.lose_queued(now, frame, tapped, cause),
                OfferResult::Queued(_) => {}
            }
        }
        let next = self.links[link as usize].link.next_dequeue().as_nanos();
        if next != self.queues[number].scheduled {
            self.schedule_dequeue(link, next);
        }
    }

    fn schedule_dequeue(&mut self, link: u32, next: u64) {
        let queue = self.links[link as usize].ring_number().and_then(|number| self.queues.get_mut(number));
        let Some(queue) = queue else { return };
        queue.scheduled = next;
        if next <= self.until {
            self.calendar.push(Entry::new(next, Class::Dequeue, link));
        }
    }

    fn leave_queue(&mut self, link: u32, mut frame: Frame, at: u64, marked: bool) {
        frame.marked |= marked;
        if at > self.until {
            return self.keep_late(link, at, frame);
        }
        self.traversals += 1;
        let then = match frame.body {
            Body::Data(_) => self.branches[frame.at as usize].then,
            _ => self.hops[frame.at as usize].then,
        };
        match then {
            ArrivalProcessing::AtOnce => self.come_out(at, frame),
            ArrivalProcessing::Border(border) => self.cross_from_queue(border, link, at, frame),
            ArrivalProcessing::Event | ArrivalProcessing::Inbox(_) => self.enqueue(link, at, frame),
        }
    }

    fn tapped_at(&mut self, place: Option<u32>) -> Option<&mut Tapped> {
        place.and_then(|place| self.taps.get_mut(place as usize))
    }

    fn lose_queued(&mut self, now: u64, frame: Frame, tapped: Option<u32>, cause: LossCause) {
        if let Some(tapped) = self.tapped_at(tapped) {
            tapped.lost = Some(cause);
        }
        self.note_loss(now, &frame);
        if let Some(slot) = frame.body.slot() {
            self.store.release(slot);
        }
    }
}
