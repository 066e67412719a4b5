//! The packets that a node keeps for its children.

use crate::packet::Payload;
use crate::time::Time;
use std::collections::VecDeque;

/// The local record of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// When the source sent it, in the source's time; `None` for one that came in another way, whose delay carries no information.
    pub(super) sent_at: Option<Time>,
    /// When it came here.
    pub(super) here_at: Time,
    /// When it went to the local group last; [`Time::NEVER`] while it did not.
    pub(super) local_at: Time,
    /// Bytes on the link.
    pub(super) size: u16,
    pub(super) payload: Payload,
}

/// A stretch of packets without end; some may have not come yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    first: u64,
    slots: VecDeque<Option<Slot>>,
}

impl Store {
    /// The lowest packet that may be here.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, seq: u64) -> Option<&Slot> {
        self.slots.get(usize::try_from(seq.checked_sub(self.first)?).ok()?)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut Slot> {
        self.slots.get_mut(usize::try_from(seq.checked_sub(self.first)?).ok()?)?.as_mut()
    }

    /// The first packet is this one.
    pub(super) fn begin(&mut self, seq: u64) {
        self.slots.clear();
        self.first = seq;
    }

    /// Packets from `seq` on may come, although they are older than all that is here.
    pub(super) fn reach_back(&mut self, seq: u64) {
        while self.first > seq {
            self.slots.push_front(None);
            self.first -= 1;
        }
    }

    /// Keep a packet, unless it is below the first one.
    pub(super) fn put(&mut self, seq: u64, slot: Slot) {
        let Some(place) = seq.checked_sub(self.first).map(|place| place as usize) else { return };
        while self.slots.len() <= place {
            self.slots.push_back(None);
        }
        self.slots[place] = Some(slot);
    }

    /// Keep nothing below this packet.
    pub(super) fn drop_below(&mut self, seq: u64) {
        while self.first < seq && self.slots.pop_front().is_some() {
            self.first += 1;
        }
        self.first = self.first.max(seq);
    }
}
