//! Packets inside links: small copies that name a session's packet.

use faircast_aqm::Ecn;
use faircast_core::packet::{Data, Layer, Order, Report};
use faircast_unicast::{Feedback, Segment};

/// A packet under way.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// The flow's number.
    pub flow: u32,
    /// Which hop or branch it is on.
    pub at: u32,
    /// Bytes on the link.
    pub size: u16,
    /// Where it stands among packets that arrive at the same moment; see [`Link::rank`](faircast_aqm::Link::rank).
    pub rank: u8,
    /// Which of a flow's connections it belongs to.
    pub generation: u8,
    /// Whether it may be marked, and by which queue of two; not whether it is.
    pub ecn: Ecn,
    /// Carries a congestion mark.
    pub marked: bool,
    pub body: Body,
}

impl Frame {
    /// Returns the meaning of its two bits for a queue: a mark hides the former value.
    #[inline]
    pub const fn ecn_bits(&self) -> Ecn {
        if self.marked { Ecn::Ce } else { self.ecn }
    }
}

/// Its content.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// A session's data, as a place in the store.
    Data(u32),
    Report(Report),
    Segment(Segment),
    Feedback(Feedback),
    Datagram(u32),
    /// A session's data for one member, as a place in the store.
    Direct {
        slot: u32,
        member: u32,
    },
    /// A parent's word to a member.
    Order(Order),
}

const _: () = assert!(size_of::<Frame>() <= 72);

impl Body {
    /// Its place in the store.
    pub const fn slot(&self) -> Option<u32> {
        match *self {
            Body::Data(slot) | Body::Direct { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

/// Data packets under way, each once however many links it is on.
#[derive(Debug, Default)]
pub struct Store {
    slots: Vec<StoredPacket>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct StoredPacket {
    data: Data,
    users: u32,
    layer: Layer,
}

impl Store {
    /// Stores a packet until its last holder releases it.
    pub fn keep(&mut self, data: &Data, layer: Layer) -> u32 {
        let kept = StoredPacket { data: *data, users: 0, layer };
        match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = kept;
                slot
            }
            None => {
                self.slots.push(kept);
                self.slots.len() as u32 - 1
            }
        }
    }

    pub fn get(&self, slot: u32) -> (Data, Layer) {
        let kept = &self.slots[slot as usize];
        (kept.data, kept.layer)
    }

    /// One more link holds it.
    pub fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].users += 1;
    }

    /// One link less holds it.
    pub fn release(&mut self, slot: u32) {
        let users = &mut self.slots[slot as usize].users;
        *users -= 1;
        if *users == 0 {
            self.free.push(slot);
        }
    }
}
