//! Links that many hosts feed take what comes in batches.
//!
//! Whatever a sending host does from now on reaches the link a propagation delay later at the soonest. So when the first
//! packet of an inbox is due, all that is due within that delay is already there: it is sorted and worked on together,
//! with one entry in the calendar.

use super::Engine;
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};

/// Packets that will be offered to a link.
#[derive(Debug)]
pub struct Inbox {
    /// The least delay of the links that feed it, in nanoseconds.
    pub lookahead: u64,
    /// With the entries that their arrivals would have in the calendar.
    packets: Vec<(Entry, Frame)>,
}

/// Set in the number of a calendar entry that concerns an inbox instead of a bundle.
pub const INBOX: u32 = 1 << 31;

impl Inbox {
    pub fn new(lookahead: u64) -> Inbox {
        Inbox { lookahead, packets: Vec::with_capacity(64) }
    }
}

impl Engine {
    /// A packet comes out of `link` then, and wants into the inbox's link.
    pub(super) fn drop_in(&mut self, inbox: u32, link: u32, at: u64, frame: Frame) {
        let it = &mut self.inboxes[inbox as usize];
        it.packets.push((Entry::arrival(at, link, frame.rank), frame));
        // An earlier entry of the calendar may be there for a later packet; then this one comes first, and that one finds
        // nothing to do or the next packets.
        if it.packets.len() == 1 || at < self.inbox_due[inbox as usize] {
            self.inbox_due[inbox as usize] = at;
            self.calendar.push(Entry::new(at, Class::Flush, INBOX | inbox));
        }
    }

    /// The first packet of an inbox is due.
    pub(super) fn empty_inbox(&mut self, inbox: u32, now: u64) {
        if self.inbox_due[inbox as usize] != now {
            return;
        }
        let it = &mut self.inboxes[inbox as usize];
        let complete = now.saturating_add(it.lookahead);
        let mut packets = std::mem::take(&mut it.packets);
        packets.sort_by_key(|(entry, _)| *entry); // stable: packets of one link stay in order
        let due = packets.partition_point(|(entry, _)| entry.time() < complete);
        for (entry, frame) in packets.drain(..due) {
            self.offer(entry.time(), frame);
        }
        // What was worked on may already have brought an answer, and that new packets: they are due later.
        let it = &mut self.inboxes[inbox as usize];
        packets.append(&mut it.packets);
        debug_assert!(
            packets.iter().all(|(entry, _)| entry.time() >= complete),
            "an inbox was emptied too early"
        );
        let next = packets.iter().map(|(entry, _)| entry.time()).min();
        it.packets = packets;
        self.inbox_due[inbox as usize] = next.unwrap_or(u64::MAX);
        if let Some(next) = next {
            self.calendar.push(Entry::new(next, Class::Flush, INBOX | inbox));
        }
    }

    /// A packet goes into its link.
    fn offer(&mut self, now: u64, frame: Frame) {
        let Body::Data(slot) = frame.body else { return self.offer_hop(now, frame) };
        let packet = frame.logged(now, self.store.get(slot));
        self.offer_branch(frame.at, &packet, &mut Some(slot));
        self.store.release(slot);
    }
}
