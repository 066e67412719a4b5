//! Frames: small representations of packets inside links. A frame of a session's packet refers to the stored packet.

use faircast_aqm::Ecn;
use faircast_core::packet::{Data, Layer, Order, Report};
use faircast_unicast::{Feedback, Segment};

/// A packet in transit.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// The flow's number.
    pub flow: u32,
    /// Number of the current hop or branch.
    pub at: u32,
    /// Size on the link, bytes.
    pub size: u16,
    /// Rank among packets that arrive simultaneously; see [`Link::rank`](faircast_aqm::Link::rank).
    pub rank: u8,
    /// Generation of the connection within the flow.
    pub generation: u8,
    /// ECN codepoint at the sender. The codepoint determines whether the packet may be marked, and which queue of a dual queue
    /// the packet enters. A mark is not recorded here.
    pub ecn: Ecn,
    /// Whether the packet carries a congestion mark.
    pub marked: bool,
    pub body: Body,
}

impl Frame {
    /// Returns the ECN codepoint that a queue sees. A mark replaces the codepoint of the sender.
    #[inline]
    pub const fn ecn_bits(&self) -> Ecn {
        if self.marked { Ecn::Ce } else { self.ecn }
    }
}

/// Content of a frame.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// A session's data; the number is its index in the store.
    Data(u32),
    Report(Report),
    Segment(Segment),
    Feedback(Feedback),
    Datagram(u32),
    /// A session's data for one member, and the index of the data in the store.
    Direct {
        slot: u32,
        member: u32,
    },
    /// An order of a parent to a member.
    Order(Order),
}

const _: () = assert!(size_of::<Frame>() <= 72);

impl Body {
    /// Returns the index in the store.
    pub const fn slot(&self) -> Option<u32> {
        match *self {
            Body::Data(slot) | Body::Direct { slot, .. } => Some(slot),
            _ => None,
        }
    }
}

/// Data packets in transit. Each packet is stored once, regardless of the number of links that carry it.
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
    /// Stores a packet until the last frame that refers to it is released.
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

    /// Counts another reference to a packet.
    pub fn hold(&mut self, slot: u32) {
        self.slots[slot as usize].users += 1;
    }

    /// Drops a reference to a packet.
    pub fn release(&mut self, slot: u32) {
        let users = &mut self.slots[slot as usize].users;
        *users -= 1;
        if *users == 0 {
            self.free.push(slot);
        }
    }
}
