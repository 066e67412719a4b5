//! Bundles of last hops that process the packets of a session lazily and in batches.

use super::Island;
use super::nanos::time;
use crate::calendar::{Class, Entry};
use crate::frame::{Body, Frame};
use crate::routes::NONE;
use faircast_aqm::OfferResult;
use faircast_core::node::{Cx, Receiver as _};
use faircast_core::packet::{Arrival, Data, Layer};

/// The last hops of a session below one node, and the packets that not all of these hops have processed.
#[derive(Debug, Clone)]
pub struct Bundle {
    pub session: u32,
    /// Range of the bundle's branches.
    pub parts: (u32, u32),
    /// Minimum time, in nanoseconds, from a packet's departure at the node until a receiver of the packet can affect another
    /// host.
    pub lookahead: u64,
    pub log: Vec<Logged>,
    /// Number of packets written into the log so far, modulo 2^32.
    pub written: u32,
}

/// A packet at the node where the bundle starts.
#[derive(Debug, Clone, Copy)]
pub struct Logged {
    pub at: u64,
    pub data: Data,
    pub size: u16,
    pub layer: Layer,
    pub marked: bool,
    /// Whether the packet may be marked.
    pub capable: bool,
}

const _: () = assert!(size_of::<Logged>() <= 80);

impl Frame {
    /// Returns the frame that offers a session's data to the link of a branch.
    pub fn of_data(session: u32, branch: u32, packet: &Logged, slot: u32) -> Frame {
        Frame {
            flow: session,
            at: branch,
            size: packet.size,
            rank: 0,
            generation: 0,
            ecn: packet.capable.into(),
            marked: packet.marked,
            body: Body::Data(slot),
        }
    }

    /// Returns the packet for the log when this frame arrives at the end of a link with a session's data.
    pub fn logged(&self, at: u64, (data, layer): (Data, Layer)) -> Logged {
        Logged { at, data, layer, size: self.size, marked: self.marked, capable: self.ecn.may_be_marked() }
    }
}

impl Island {
    /// Logs a packet at the node where the bundle starts.
    pub(super) fn log(&mut self, bundle: u32, packet: Logged) {
        let it = &mut self.bundles[bundle as usize];
        if it.log.is_empty() {
            self.calendar.push(Entry::new(packet.at + it.lookahead, Class::Flush, bundle));
        }
        it.log.push(packet);
        it.written = it.written.wrapping_add(1);
    }

    /// Processes the pending packets of all last hops of a bundle.
    pub(super) fn flush(&mut self, bundle: u32) {
        let it = &mut self.bundles[bundle as usize];
        let (parts, session, written) = (it.parts, it.session, it.written);
        let log = std::mem::take(&mut it.log);
        if !log.is_empty() {
            for branch in parts.0..parts.1 {
                self.take(branch, session, written, &log);
            }
        }
        let it = &mut self.bundles[bundle as usize];
        debug_assert!(it.log.is_empty(), "last hops do not write into their own bundle");
        it.log = log;
        it.log.clear();
    }

    /// Processes the pending packets of the bundle's log for this link. Called before any other event of the link or the host
    /// behind it.
    #[inline]
    pub(super) fn catch_up(&mut self, link: u32) {
        let branch = self.links[link as usize].bundled;
        if branch != NONE {
            self.catch_up_branch(branch);
        }
    }

    // Not inlined: most links have no bundle, and callers should pay only for the check.
    #[inline(never)]
    fn catch_up_branch(&mut self, branch: u32) {
        let part = &self.branches[branch as usize];
        let bundle = part.part_of;
        let it = &mut self.bundles[bundle as usize];
        if it.written == part.taken {
            return;
        }
        let (session, written) = (it.session, it.written);
        let log = std::mem::take(&mut it.log);
        self.take(branch, session, written, &log);
        self.bundles[bundle as usize].log = log;
    }

    /// Processes the pending packets of one last hop.
    fn take(&mut self, branch: u32, session: u32, written: u32, log: &[Logged]) {
        let part = &mut self.branches[branch as usize];
        let behind = written.wrapping_sub(part.taken) as usize;
        part.taken = written;
        let (link, member, comes_and_goes) = (part.link, part.member, part.active.is_some());
        let mut packets = &log[log.len() - behind..];
        while let Some(packet) = packets.first() {
            if comes_and_goes || (self.links[link as usize].is_watched() && self.has_to_look(link, packets)) {
                packets = &packets[1..];
                if !comes_and_goes || self.flows_over(branch, packet.at) {
                    self.take_one(link, session, member, packet);
                }
                continue;
            }
            let Quiet { taken, then } = self.take_quietly(link, session, member, packets);
            let last = &packets[taken.max(1) - 1];
            packets = &packets[taken..];
            match then {
                ScheduledAction::Nothing => {}
                ScheduledAction::Deliver(at, marked) => {
                    self.deliver_data(session, member, at, &last.data, last.size, last.marked || marked);
                }
                ScheduledAction::Settle(at) => self.after_data(session, member, at),
            }
        }
    }

    /// Whether these packets must be processed one by one on a watched link. This is unnecessary if the link is only counted and
    /// all packets precede the next count.
    #[cold]
    #[inline(never)]
    fn has_to_look(&self, link: u32, packets: &[Logged]) -> bool {
        !self.links[link as usize].is_only_counted()
            || packets.last().is_some_and(|packet| packet.at >= self.next_count(link))
    }

    // Not inlined, because the registers that this function needs would slow down the fast path.
    #[inline(never)]
    fn take_one(&mut self, link: u32, session: u32, member: u32, packet: &Logged) {
        let fate = self.offer_data(link, session, packet);
        if let Some((at, marked)) = self.carried(fate) {
            self.deliver_data(session, member, at, &packet.data, packet.size, packet.marked || marked);
        }
    }

    /// Processes packets as long as they affect only this link and this member. The result is the same as that of
    /// [`Island::take_one`] for each packet, but the link and the member are looked up only once.
    #[inline]
    fn take_quietly(&mut self, link: u32, session: u32, member: u32, packets: &[Logged]) -> Quiet {
        let Island { links, sessions, hosts, effects, traversals, arrivals, until, .. } = self;
        let link = &mut links[link as usize].link;
        let it = &mut sessions[session as usize].members[member as usize];
        // Until this time, packets arrive and nothing else happens: no timer expires, no bin ends, and the member neither joins
        // nor leaves.
        let mut quiet = hosts[it.host as usize].next.min(it.meter.end).min(it.leave).min(*until);
        if it.extra.is_some() {
            quiet = 0;
        }
        for (index, packet) in packets.iter().enumerate() {
            let OfferResult::Arrives { at, marked } =
                link.offer(time(packet.at), packet.size, session, packet.capable)
            else {
                continue;
            };
            let at = at.as_nanos();
            if at > *until {
                continue;
            }
            *traversals += 1;
            if at >= quiet || at < it.join {
                return Quiet { taken: index + 1, then: ScheduledAction::Deliver(at, marked) };
            }
            *arrivals += 1;
            it.meter.bytes += u64::from(packet.size);
            it.count(at, packet.data.seq.0, packet.size);
            let marked = packet.marked || marked;
            let arrival = Arrival { size: packet.size, marked, ..it.gaps.on_arrival(packet.data.seq) };
            let cx = &mut Cx { now: time(at), rng: &mut it.rng, effects };
            it.receiver.on_data(&packet.data, Layer(0), arrival, cx);
            if it.deadline() != it.deadline || !effects.as_slice().is_empty() {
                return Quiet { taken: index + 1, then: ScheduledAction::Settle(at) };
            }
        }
        Quiet { taken: packets.len(), then: ScheduledAction::Nothing }
    }
}

/// Number of packets that the fast path has processed, and the action that the last of these packets still requires.
struct Quiet {
    taken: usize,
    then: ScheduledAction,
}

enum ScheduledAction {
    Nothing,
    /// The packet arrives at this time, marked or not, and affects more than the member.
    Deliver(u64, bool),
    /// The member has received the packet. The actions or the deadline of the member must still be handled.
    Settle(u64),
}
