//! The transmit window: the sent packets that are stored for repairs.

use super::WindowLimits;
use crate::codec::Fragment;
use faircast_core::packet::Seq;
use faircast_core::time::Time;

/// Minimum number of packets that a window can store, whatever the size of a packet.
const MIN_PACKETS: usize = 256;

/// Sent packets in a ring. Its address space is allocated once; the kernel provides memory pages when they are first written to.
pub(super) struct TransmitWindow {
    limits: WindowLimits,
    slot: usize,
    bytes: Vec<u8>,
    sent: Vec<Sent>,
    trail: u64,
    next: u64,
}

/// State of a sent packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    len: usize,
    /// Position in an application data unit; `None` if the packet is not a fragment.
    pub(super) fragment: Option<Fragment>,
    /// The numbers of the first and of the newest transmission by the scheme's numbering.
    pub(super) first: Seq,
    pub(super) newest: Seq,
    /// Times of the first and the newest transmission.
    pub(super) born: Time,
    pub(super) sent_at: Time,
    /// Number of transmissions.
    pub(super) times: u32,
    /// Time of the first NAK for the packet since its latest transmission; [`Time::NEVER`] before such a NAK.
    pub(super) named_at: Time,
    /// Whether the packet waits to be sent again.
    pub(super) repair: Repair,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repair {
    None,
    Pending,
}

impl TransmitWindow {
    /// Creates a window for payloads of at most `slot` bytes. Its first packet will have the number `first`.
    pub(super) fn new(limits: WindowLimits, slot: usize, first: u64) -> TransmitWindow {
        let slots = (limits.bytes / slot.max(1)).max(MIN_PACKETS);
        let empty = Sent {
            len: 0,
            fragment: None,
            first: Seq(0),
            newest: Seq(0),
            born: Time::ZERO,
            sent_at: Time::ZERO,
            times: 0,
            named_at: Time::NEVER,
            repair: Repair::None,
        };
        // For zeroed memory of this size, the kernel provides pages only when they are first written to.
        TransmitWindow {
            limits,
            slot,
            bytes: vec![0; slots * slot],
            sent: vec![empty; slots],
            trail: first,
            next: first,
        }
    }

    /// Returns the number of the oldest packet that the source can repair.
    pub(super) fn trail(&self) -> u64 {
        self.trail
    }

    /// Returns the number after the newest packet.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    fn at(&self, sqn: u64) -> usize {
        (sqn % self.sent.len() as u64) as usize
    }

    /// Stores the payload of a packet that is sent now under the scheme's number `seq`. Returns PGM's number of the packet.
    pub(super) fn push(&mut self, payload: &[u8], fragment: Option<Fragment>, seq: Seq, now: Time) -> u64 {
        let sqn = self.next;
        if sqn - self.trail == self.sent.len() as u64 {
            self.trail += 1;
        }
        let at = self.at(sqn);
        self.bytes[at * self.slot..][..payload.len()].copy_from_slice(payload);
        self.sent[at] = Sent {
            len: payload.len(),
            fragment,
            first: seq,
            newest: seq,
            born: now,
            sent_at: now,
            times: 1,
            named_at: Time::NEVER,
            repair: Repair::None,
        };
        self.next += 1;
        sqn
    }

    /// Drops packets that exceed the maximum age.
    pub(super) fn forget(&mut self, now: Time) {
        while self.trail < self.next && now.since(self.sent[self.at(self.trail)].born) > self.limits.age {
            self.trail += 1;
        }
    }

    /// Returns the state of packet `sqn`, if it is in the window.
    pub(super) fn get(&mut self, sqn: u64) -> Option<&mut Sent> {
        let at = self.at(sqn);
        if (self.trail..self.next).contains(&sqn) { Some(&mut self.sent[at]) } else { None }
    }

    /// Returns the state and the payload of packet `sqn`, if it is in the window.
    pub(super) fn packet(&self, sqn: u64) -> Option<(&Sent, &[u8])> {
        let at = self.at(sqn);
        let sent = &self.sent[at];
        let known = (self.trail..self.next).contains(&sqn);
        known.then(|| (sent, &self.bytes[at * self.slot..][..sent.len]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::time::Span;

    fn window(bytes: usize) -> TransmitWindow {
        TransmitWindow::new(WindowLimits { age: Span::from_secs(10), bytes }, 8, 5)
    }

    #[test]
    fn packet_stays_in_the_window_until_its_maximum_age() {
        let mut window = window(1 << 20);
        let sqn = window.push(b"first", None, Seq(0), Time::ZERO);
        window.forget(Time::ZERO + Span::from_secs(10));
        assert_eq!((sqn, window.packet(5).expect("it is young").1), (5, &b"first"[..]));
        window.forget(Time::ZERO + Span::from_millis(10_001));
        assert!(window.packet(5).is_none() && window.trail() == 6 && window.next() == 6);
    }

    #[test]
    fn full_window_drops_its_oldest_packets() {
        let mut window = window(0);
        for n in 0..1000u64 {
            window.push(&n.to_be_bytes(), None, Seq(n), Time::ZERO);
        }
        assert_eq!((window.trail(), window.next()), (1005 - MIN_PACKETS as u64, 1005));
        assert!(window.packet(1004 - MIN_PACKETS as u64).is_none() && window.packet(1005).is_none());
        let all = window.trail()..window.next();
        assert!(
            all.into_iter().all(|sqn| window.packet(sqn).is_some_and(|it| it.1 == (sqn - 5).to_be_bytes()))
        );
    }
}
