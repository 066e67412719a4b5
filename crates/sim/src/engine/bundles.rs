//! Last hops that take a session's packets when they have to, many at a time.

use super::Engine;
use crate::calendar::{Class, Entry};
use crate::routes::NONE;
use faircast_core::packet::Data;

/// The last hops of a session below one node, and the packets that not all of them have taken.
#[derive(Debug)]
pub struct Bundle {
    pub session: u32,
    /// The branches.
    pub parts: (u32, u32),
    /// Nothing that a receiver does can be felt elsewhere sooner after a packet left the node, in nanoseconds.
    pub lookahead: u64,
    pub log: Vec<Logged>,
    /// How many packets were ever written into the log, modulo 2^32.
    pub written: u32,
}

/// A packet at the node where the bundle begins.
#[derive(Debug, Clone, Copy)]
pub struct Logged {
    pub at: u64,
    pub data: Data,
    pub size: u16,
    pub marked: bool,
}

impl Engine {
    /// A packet has come to the node where the bundle begins.
    pub(super) fn log(&mut self, bundle: u32, packet: Logged) {
        let it = &mut self.bundles[bundle as usize];
        if it.log.is_empty() {
            self.calendar.push(Entry::new(packet.at + it.lookahead, Class::Flush, bundle));
        }
        it.log.push(packet);
        it.written = it.written.wrapping_add(1);
    }

    /// All parts take what is in the log.
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

    /// Something touches this link or the host behind it: it takes what is in its bundle's log first.
    #[inline]
    pub(super) fn catch_up(&mut self, link: u32) {
        let branch = self.links[link as usize].bundled;
        if branch != NONE {
            self.catch_up_branch(branch);
        }
    }

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

    /// One last hop takes what it has not taken.
    #[inline]
    fn take(&mut self, branch: u32, session: u32, written: u32, log: &[Logged]) {
        let part = &mut self.branches[branch as usize];
        let behind = written.wrapping_sub(part.taken) as usize;
        part.taken = written;
        let (link, member) = (part.link, part.member);
        let idle = part.active.is_some();
        for packet in &log[log.len() - behind..] {
            if idle && !self.flows_over(branch, packet.at) {
                continue;
            }
            if let Some((at, marked)) = self.offer_data(link, session, packet.at, packet.size, &packet.data) {
                self.deliver_data(session, member, at, &packet.data, packet.size, packet.marked || marked);
            }
        }
    }
}
