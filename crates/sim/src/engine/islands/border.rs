//! Packets that go from one island to another.
//!
//! The island of a link processes the offer of a packet to the link. If the next link or the host belongs to another island, the
//! packet crosses the border: the other island gets it in a message with its arrival time, and processes the arrival. All islands
//! have the same numbers of links, hops and branches.

use crate::engine::Island;
use crate::engine::bundles::Logged;
use crate::engine::nanos::NEVER;
use crate::frame::{Body, Frame};
use crate::routes::{ArrivalProcessing, NONE};
use faircast_core::packet::{Data, Layer};

/// A packet that arrives in another island.
#[derive(Debug, Clone, Copy)]
pub struct Crossing {
    link: u32,
    at: u64,
    frame: Frame,
    /// A session's data.
    data: Option<(Data, Layer)>,
}

/// The border of an island.
#[derive(Debug)]
pub struct Border {
    /// All packets that arrive from other islands before this time are known.
    pub horizon: u64,
    /// Packets for each island.
    pub out: Vec<Vec<Crossing>>,
    /// Earliest arrival of these packets; [`NEVER`] without packets.
    pub earliest: u64,
    /// Branches by the number of their [`ArrivalProcessing::Border`].
    pub branches: Vec<BorderBranch>,
}

/// A branch of which some children or the member are in other islands.
#[derive(Debug)]
pub struct BorderBranch {
    /// Method of processing the arrival in the branch's own island; `None` if all children are in other islands.
    pub here: Option<ArrivalProcessing>,
    pub islands: Vec<u32>,
}

impl Border {
    pub fn new(islands: usize) -> Border {
        Border {
            horizon: NEVER,
            out: (0..islands).map(|_| Vec::new()).collect(),
            earliest: NEVER,
            branches: Vec::new(),
        }
    }
}

impl Island {
    /// Sends a packet that the link accepted last to the island at the end of its hop.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn cross(&mut self, island: u32, link: u32, at: u64, mut frame: Frame) {
        frame.rank = self.links[link as usize].link.rank();
        let data = frame.body.slot().map(|slot| {
            let data = self.store.get(slot);
            self.store.release(slot);
            data
        });
        self.export(island, Crossing { link, at, frame, data });
    }

    /// Sends a session's data that the link of a branch accepted last to the other islands at the end of the branch. Returns the
    /// method of processing the arrival in this island; `None` if nothing arrives here.
    #[cold]
    #[inline(never)]
    pub(in crate::engine) fn cross_branch(
        &mut self,
        border: u32,
        number: u32,
        packet: &Logged,
    ) -> Option<ArrivalProcessing> {
        let branch = &self.branches[number as usize];
        let (link, session) = (branch.link, branch.session);
        let rank = self.links[link as usize].link.rank();
        let frame = Frame { rank, ..Frame::of_data(session, number, packet, NONE) };
        let data = Some((packet.data, packet.layer));
        for place in 0..self.border.branches[border as usize].islands.len() {
            let island = self.border.branches[border as usize].islands[place];
            self.export(island, Crossing { link, at: packet.at, frame, data });
        }
        self.border.branches[border as usize].here
    }

    /// Sends a packet that left the queue of a link to other islands. A session's data may also arrive in this island.
    #[cold]
    pub(in crate::engine) fn cross_from_queue(&mut self, border: u32, link: u32, at: u64, frame: Frame) {
        let Body::Data(slot) = frame.body else { return self.cross(border, link, at, frame) };
        let packet = frame.logged(at, self.store.get(slot));
        match self.cross_branch(border, frame.at, &packet) {
            Some(_) => self.enqueue(link, at, frame),
            None => self.store.release(slot),
        }
    }

    fn export(&mut self, island: u32, packet: Crossing) {
        self.border.earliest = self.border.earliest.min(packet.at);
        self.border.out[island as usize].push(packet);
    }

    /// Takes a packet from another island.
    pub fn import(&mut self, Crossing { link, at, mut frame, data }: Crossing) {
        let slot = data.map(|(data, layer)| self.store.keep(&data, layer));
        if let (Body::Data(number) | Body::Direct { slot: number, .. }, Some(slot)) = (&mut frame.body, slot)
        {
            *number = slot;
        }
        if let Body::Data(slot) = frame.body {
            let branch = &self.branches[frame.at as usize];
            let (then, children) = (branch.then, branch.children);
            if !matches!(then, ArrivalProcessing::Inbox(_)) {
                self.store.hold(slot);
                return self.enqueue_ranked(link, at, frame, |_| frame.rank);
            }
            for child in children.0..children.1 {
                self.store.hold(slot);
                frame.at = child;
                self.drop_in_ranked(self.branches[child as usize].lane, (at, link, frame.rank), frame);
            }
            return;
        }
        if let Some(slot) = slot {
            self.store.hold(slot);
        }
        let hop = self.hops[frame.at as usize];
        match hop.then {
            ArrivalProcessing::Inbox(lane) => {
                frame.at = hop.next;
                self.drop_in_ranked(lane, (at, link, frame.rank), frame);
            }
            _ => self.enqueue_ranked(link, at, frame, |_| frame.rank),
        }
    }
}
