//! The packets that a node stores for its children.

use crate::packet::Payload;
use crate::time::Time;
use std::collections::VecDeque;

/// The local record of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Time of sending at the source, by the source's clock; `None` for a packet received by another path, whose delay carries no
    /// information.
    pub(super) sent_at: Option<Time>,
    /// Time of arrival here.
    pub(super) here_at: Time,
    /// Time of the latest sending to the local group; [`Time::NEVER`] if the packet was not sent to this group.
    pub(super) local_at: Time,
    /// Bytes on the link.
    pub(super) size: u16,
    pub(super) payload: Payload,
}

/// The packets from a first number on. Packets that have not arrived yet have empty slots.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    first: u64,
    slots: VecDeque<Option<Slot>>,
}

impl Store {
    /// Returns the lowest packet that may be stored.
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

    /// Empties the store and sets its first packet.
    pub(super) fn begin(&mut self, seq: u64) {
        self.slots.clear();
        self.first = seq;
    }

    /// Makes room at the front of the store for older packets, from `seq` on.
    pub(super) fn reach_back(&mut self, seq: u64) {
        while self.first > seq {
            self.slots.push_front(None);
            self.first -= 1;
        }
    }

    /// Stores a packet, unless its number is below the first stored number.
    pub(super) fn put(&mut self, seq: u64, slot: Slot) {
        let Some(place) = seq.checked_sub(self.first).map(|place| place as usize) else { return };
        while self.slots.len() <= place {
            self.slots.push_back(None);
        }
        self.slots[place] = Some(slot);
    }

    /// Drops all packets below this one.
    pub(super) fn drop_below(&mut self, seq: u64) {
        while self.first < seq && self.slots.pop_front().is_some() {
            self.first += 1;
        }
        self.first = self.first.max(seq);
    }
}
