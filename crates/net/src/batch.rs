//! The buffers of one receive call, and the datagrams in them.

use crate::ecn::Ecn;
use crate::sys::{self, Head, MAX_CALL};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Length of a slot, bytes. A slot holds the largest datagram, or coalesced datagrams of this total length.
pub const SLOT: usize = 64 * 1024;

/// Received datagrams and their memory, which is reused for each receive call.
///
/// The memory has the size `slots` times [`SLOT`], but the system allocates only the pages that are written.
#[derive(Debug)]
pub struct Batch {
    bytes: Box<[u8]>,
    heads: Box<[Head]>,
    slots: Vec<Slot>,
    /// The next slot to take from, and the position in this slot.
    taken: (usize, usize),
    cut: bool,
    truncated: u64,
}

/// Metadata of one datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Address and port of the sender.
    pub from: SocketAddr,
    /// Destination address: the group, or an address of this host.
    pub to: IpAddr,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Time at which the kernel received the datagram, on the clock of [`Instant`]. Datagrams that were coalesced share the time
    /// of the first one.
    pub received_at: Instant,
    /// The time of `received_at` in nanoseconds since 1970, as the kernel reported it.
    pub received_at_unix_ns: u64,
    /// Index of the datagram among the datagrams that were coalesced with it.
    pub segment: u16,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    len: usize,
    segment: usize,
    meta: Meta,
}

impl Batch {
    /// Creates a batch for `slots` datagrams (or coalesced runs of them), at least 1 and at most 64.
    pub fn new(slots: usize) -> Batch {
        let slots = slots.clamp(1, MAX_CALL);
        Batch {
            bytes: vec![0; slots * SLOT].into_boxed_slice(),
            heads: vec![Head::EMPTY; slots].into_boxed_slice(),
            slots: Vec::with_capacity(slots),
            taken: (0, 0),
            cut: false,
            truncated: 0,
        }
    }

    /// Returns the datagrams of the last receive call in the order of arrival. The bytes are mutable, for decryption in place.
    pub fn segments(&mut self) -> impl Iterator<Item = (&mut [u8], Meta)> + '_ {
        self.bytes.chunks_exact_mut(SLOT).zip(&self.slots).flat_map(|(bytes, slot)| {
            let parts = bytes[..slot.len].chunks_mut(slot.segment).enumerate();
            parts.map(|(n, part)| (part, Meta { segment: n as u16, ..slot.meta }))
        })
    }

    /// Returns the time at which the kernel received the next datagram of [`Batch::take`]; `None` if no datagram is left. With
    /// these times, a caller can take the datagrams of several sockets in the order of arrival.
    #[inline]
    pub fn next_at(&mut self) -> Option<Instant> {
        while self.slots.get(self.taken.0).is_some_and(|slot| self.taken.1 >= slot.len) {
            self.taken = (self.taken.0 + 1, 0);
        }
        self.slots.get(self.taken.0).map(|slot| slot.meta.received_at)
    }

    /// Takes the next datagram of the last receive call; `None` if no datagram is left.
    #[inline]
    pub fn take(&mut self) -> Option<(&mut [u8], &Meta)> {
        self.next_at()?;
        let (at, from) = self.taken;
        let slot = &mut self.slots[at];
        let to = (from + slot.segment).min(slot.len);
        self.taken.1 = to;
        // The metadata stays in its slot: a copy for each datagram of a coalesced run would cost more than all else here.
        slot.meta.segment = if from == 0 { 0 } else { slot.meta.segment + 1 };
        Some((&mut self.bytes[at * SLOT..][from..to], &slot.meta))
    }

    /// Whether the last receive call filled all slots. If so, more datagrams may wait in the socket.
    pub fn is_full(&self) -> bool {
        self.slots.len() == self.heads.len()
    }

    /// Returns the number of datagrams of the last receive call. Each coalesced datagram counts.
    pub fn len(&self) -> usize {
        self.slots.iter().map(|slot| slot.len.div_ceil(slot.segment)).sum()
    }

    /// Whether the last receive call returned no datagram.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the number of datagrams that were discarded because they were longer than [`SLOT`].
    pub fn truncated(&self) -> u64 {
        self.truncated
    }

    /// Whether control data of the last receive call was truncated.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// Drops the last call's datagrams and receives new ones; returns the number of datagrams.
    pub(crate) fn fill(&mut self, fd: BorrowedFd<'_>, own: SocketAddr) -> io::Result<usize> {
        self.slots.clear();
        self.taken = (0, 0);
        self.cut = false;
        let filled = sys::receive_each(fd, &mut self.bytes, SLOT, &mut self.heads)?;
        let read_at = ReadAt::now();
        for head in &self.heads[..filled] {
            self.cut |= head.control_truncated();
            self.truncated += u64::from(head.truncated());
            self.slots.push(Slot::new(head, own, read_at));
        }
        Ok(self.len())
    }
}

impl Slot {
    fn new(head: &Head, own: SocketAddr, read_at: ReadAt) -> Slot {
        let control = head.control();
        let from = head.from();
        let received_at_unix_ns = control.received_unix_ns.unwrap_or(read_at.unix_ns);
        let meta = Meta {
            from: from.unwrap_or(own),
            to: control.to.unwrap_or(own.ip()),
            ecn: Ecn::from_bits(control.tos.unwrap_or(0)),
            received_at: read_at.instant_of(received_at_unix_ns),
            received_at_unix_ns,
            segment: 0,
        };
        // A datagram that has no sender address or was truncated leaves its slot empty.
        let len = if head.truncated() || from.is_none() { 0 } else { head.len.min(SLOT) };
        Slot { len, segment: control.segment.unwrap_or(SLOT), meta }
    }
}

/// The time of a receive call, on the monotonic clock and on the wall clock.
#[derive(Debug, Clone, Copy)]
struct ReadAt {
    instant: Instant,
    unix_ns: u64,
}

impl ReadAt {
    fn now() -> ReadAt {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        ReadAt { instant: Instant::now(), unix_ns: since_1970.as_nanos() as u64 }
    }

    /// Converts a wall-clock time in the past to the clock of [`Instant`]. If the time is in the future or long ago, the wall
    /// clock was set meanwhile, and the function returns the current time.
    fn instant_of(self, unix_ns: u64) -> Instant {
        const LONG_AGO: Duration = Duration::from_secs(10);
        let age = Duration::from_nanos(self.unix_ns.saturating_sub(unix_ns));
        let age = if age > LONG_AGO { Duration::ZERO } else { age };
        self.instant.checked_sub(age).unwrap_or(self.instant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_time_has_the_same_age_on_both_clocks() {
        let read_at = ReadAt::now();
        let age = Duration::from_micros(1500);
        let received_at = read_at.instant_of(read_at.unix_ns - age.as_nanos() as u64);
        assert_eq!(read_at.instant - received_at, age);
    }

    /// Returns a batch in the state after a receive call with slots of these lengths. Each slot holds coalesced datagrams of 3
    /// bytes.
    fn holding(lens: &[usize]) -> Batch {
        let mut batch = Batch::new(4);
        for (at, &len) in lens.iter().enumerate() {
            batch.bytes[at * SLOT..][..len].fill(at as u8);
            let meta = Meta {
                from: ([192, 0, 2, 1], 7).into(),
                to: [239, 1, 2, 3].into(),
                ecn: Ecn::NotEct,
                received_at: ReadAt::now().instant,
                received_at_unix_ns: at as u64,
                segment: 0,
            };
            batch.slots.push(Slot { len, segment: 3, meta });
        }
        batch
    }

    #[test]
    fn take_returns_the_same_segments_as_the_iterator() {
        let (mut one, mut other) = (holding(&[7, 0, 2]), holding(&[7, 0, 2]));
        let all: Vec<_> = one
            .segments()
            .map(|(bytes, meta)| (bytes.to_vec(), meta.received_at_unix_ns, meta.segment))
            .collect();
        let mut taken = Vec::new();
        while let Some((bytes, meta)) = other.take() {
            taken.push((bytes.to_vec(), meta.received_at_unix_ns, meta.segment));
        }
        assert_eq!(taken, all);
        assert_eq!(taken.len(), 4);
        assert!(other.next_at().is_none() && !other.is_full() && holding(&[1; 4]).is_full());
    }

    #[test]
    fn wall_clock_step_does_not_change_the_age_of_a_datagram() {
        let read_at = ReadAt::now();
        assert_eq!(read_at.instant_of(read_at.unix_ns + 5_000_000_000), read_at.instant);
        assert_eq!(read_at.instant_of(0), read_at.instant);
    }
}
