//! The buffer of a receiver's socket, for a process that is stopped or reads at a limited rate.

use crate::endpoint::Backlog;
use faircast_core::time::{Rate, Span, Time};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Kernel memory charged for a datagram of up to 1500 bytes, in bytes. On Linux this is half a memory page, and a record.
const COST: u64 = 2304;

/// Default size of a socket's buffer, in the kernel's units.
const CAPACITY: u64 = 16 << 20;

/// Datagrams that have arrived but were not read yet.
pub(super) struct Socket {
    /// Buffer size in the kernel's units, as [`Backlog::capacity`].
    pub(super) capacity: u64,
    waiting: VecDeque<(Vec<u8>, SocketAddr, Time)>,
    dropped: u64,
    stopped_until: Time,
    pub(super) rate: Rate,
    /// Time at which the process can read the next datagram.
    free_at: Time,
}

impl Default for Socket {
    fn default() -> Socket {
        Socket {
            capacity: CAPACITY,
            waiting: VecDeque::new(),
            dropped: 0,
            stopped_until: Time::ZERO,
            rate: Rate::UNLIMITED,
            free_at: Time::ZERO,
        }
    }
}

impl Socket {
    /// Empties the buffer for a new process.
    pub(super) fn restart(&mut self) {
        *self = Socket { capacity: self.capacity, rate: self.rate, ..Socket::default() };
    }

    /// Stores an arriving datagram; returns whether there was room for it.
    pub(super) fn put(&mut self, bytes: &[u8], from: SocketAddr, now: Time) -> bool {
        let fits = self.used() <= self.capacity;
        if fits {
            self.waiting.push_back((bytes.to_vec(), from, now));
        }
        self.dropped += u64::from(!fits);
        fits
    }

    /// Returns the next datagram with its sender and arrival time, if the process can read one by now.
    pub(super) fn take(&mut self, now: Time) -> Option<(Vec<u8>, SocketAddr, Time)> {
        if self.is_stopped(now) || self.free_at > now {
            return None;
        }
        let taken = self.waiting.pop_front()?;
        if self.rate.is_usable() && self.rate.bps() < Rate::UNLIMITED.bps() {
            self.free_at = self.free_at.max(taken.2) + self.rate.span_of(taken.0.len() as u64);
        }
        Some(taken)
    }

    pub(super) fn stop_until(&mut self, until: Time) {
        self.stopped_until = until;
    }

    pub(super) fn takes(&mut self, rate: Rate) {
        self.rate = rate;
    }

    pub(super) fn is_stopped(&self, now: Time) -> bool {
        now < self.stopped_until
    }

    /// Returns the time of the process's next action; `at` is the process's own deadline.
    pub(super) fn next_timeout(&self, at: Time) -> Time {
        let next = if self.waiting.is_empty() { Time::NEVER } else { self.free_at };
        at.min(next).max(self.stopped_until)
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { used: self.used(), capacity: self.capacity, dropped: self.dropped }
    }

    fn used(&self) -> u64 {
        self.waiting.len() as u64 * COST
    }
}

#[test]
fn full_buffer_drops_datagrams_and_a_slow_process_delays_them() {
    let (mut socket, from) = (Socket { capacity: 2 * COST, ..Socket::default() }, ([10, 0, 0, 1], 7).into());
    socket.stop_until(Time::ZERO + Span::from_millis(10));
    let fits: Vec<bool> = (0..5).map(|_| socket.put(&[0; 1250], from, Time::ZERO)).collect();
    assert_eq!(fits, [true, true, true, false, false]);
    assert_eq!(socket.backlog(), Backlog { used: 3 * COST, capacity: 2 * COST, dropped: 2 });
    assert!(socket.take(Time::ZERO).is_none());
    assert_eq!(socket.next_timeout(Time::ZERO), Time::ZERO + Span::from_millis(10));
    socket.takes(Rate::from_mbps(1.0));
    let at = Time::ZERO + Span::from_millis(15);
    let taken = std::iter::from_fn(|| socket.take(at)).count();
    assert_eq!(taken, 2, "one for each 10 ms");
}
