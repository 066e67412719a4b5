//! Packets that an active router stores: a ring indexed by packet number.

use crate::node::Port;
use crate::packet::{Body, Data, Mark, Packet};
use crate::time::Time;

/// The newest packets of a session, up to a maximum number.
#[derive(Debug)]
pub(super) struct Store {
    ring: Vec<Option<Slot>>,
    most: usize,
    /// One more than the highest number of a packet stored so far.
    end: u64,
    /// Number below which no packet is stored.
    first: u64,
    count: usize,
}

/// A stored packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    seq: u64,
    pub packet: Packet,
    pub came_at: Time,
    /// Exit and time of the packet's latest repetition.
    pub repaired: Option<(Port, Time)>,
}

impl Store {
    pub(super) const fn new(most: usize) -> Store {
        Store { ring: Vec::new(), most, end: 0, first: 0, count: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    fn place(&self, seq: u64) -> usize {
        (seq % self.most as u64) as usize
    }

    pub(super) fn get(&self, seq: u64) -> Option<&Slot> {
        self.ring.get(self.place(seq))?.as_ref().filter(|slot| slot.seq == seq)
    }

    pub(super) fn get_mut(&mut self, seq: u64) -> Option<&mut Slot> {
        let place = self.place(seq);
        self.ring.get_mut(place)?.as_mut().filter(|slot| slot.seq == seq)
    }

    /// Stores a packet, unless all receivers have it or it is too old for the ring.
    pub(super) fn put(&mut self, seq: u64, mut packet: Packet, now: Time) {
        // A repeated packet must not name a receiver that was excluded long ago.
        if let Body::Data(Data { mark: Mark::Floor { excluded, .. }, .. }) = &mut packet.body {
            *excluded = None;
        }
        if seq < self.first || seq.saturating_add(self.most as u64) < self.end {
            return;
        }
        if self.ring.is_empty() {
            self.ring.resize(self.most, None);
        }
        // The slots of skipped packets contain packets that are now too old.
        for skipped in self.end.max(seq.saturating_sub(self.most as u64))..seq {
            let place = self.place(skipped);
            self.count -= usize::from(self.ring[place].take().is_some());
        }
        self.end = self.end.max(seq.saturating_add(1));
        let place = self.place(seq);
        let slot = &mut self.ring[place];
        self.count += usize::from(slot.is_none());
        *slot = Some(Slot { seq, packet, came_at: now, repaired: None });
    }

    /// Drops the packets below `seq`, which all receivers have.
    pub(super) fn forget_below(&mut self, seq: u64) {
        if seq <= self.first {
            return;
        }
        let oldest = self.end.saturating_sub(self.most as u64).max(self.first);
        for gone in oldest..seq.min(self.end) {
            let place = self.place(gone);
            if self.ring.get(place).is_some_and(|slot| slot.is_some_and(|slot| slot.seq == gone)) {
                self.ring[place] = None;
                self.count -= 1;
            }
        }
        self.first = seq;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Body, Data, Flags, Layer, Mark, Payload, Seq, SessionId, Signal};

    fn packet(seq: u64) -> Packet {
        let (rate, payload, flags) = (0.0, Payload::NONE, Flags::default());
        let data = Data {
            seq: Seq(seq),
            sent_at: Time::ZERO,
            rate,
            payload,
            flags,
            signal: Signal::None,
            mark: Mark::FLOOR,
        };
        Packet { session: SessionId(1), layer: Layer(0), size: 1057, body: Body::Data(data) }
    }

    #[test]
    fn the_store_drops_acknowledged_and_oldest_packets() {
        let mut store = Store::new(10);
        (0..25).for_each(|seq| store.put(seq, packet(seq), Time::ZERO));
        assert_eq!(store.len(), 10);
        assert!(store.get(14).is_none() && store.get(15).is_some() && store.get(24).is_some());
        store.put(3, packet(3), Time::ZERO);
        assert!(store.get(3).is_none(), "there is no room for what is that old");
        store.forget_below(20);
        assert_eq!(store.len(), 5);
        store.put(17, packet(17), Time::ZERO);
        assert!(store.get(17).is_none(), "all have it");
        store.forget_below(u64::MAX);
        assert_eq!(store.len(), 0);
    }

    #[test]
    fn packet_number_jump_clears_the_store() {
        let mut store = Store::new(4);
        (0..4).for_each(|seq| store.put(seq, packet(seq), Time::ZERO));
        store.put(1 << 40, packet(1 << 40), Time::ZERO);
        store.forget_below((1 << 40) + 1);
        assert_eq!(store.len(), 0);
        (0..4).for_each(|at| store.put((2 << 40) + at, packet((2 << 40) + at), Time::ZERO));
        store.forget_below(u64::MAX);
        assert_eq!(store.len(), 0);
    }
}
