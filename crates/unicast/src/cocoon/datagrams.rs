//! The UDP sockets of a group, which together form one virtual connection (paper 002, 4.5).

use faircast_core::time::{Span, Time};
use std::collections::VecDeque;

/// A UDP socket of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub(super) u64);

/// Maximum size of a datagram in the unit of windows; larger sizes are reduced to this value.
const MAX_SIZE: f64 = 1e9;

/// Result of offering a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Offered {
    /// The datagram waits for its turn.
    Queued,
    /// The datagram was dropped, because the queue of the socket is full or the socket is closed.
    Dropped,
}

#[derive(Debug, Clone)]
struct Socket {
    name: SocketId,
    waiting: VecDeque<f64>,
}

/// The sockets of a group, and the window that they share.
#[derive(Debug, Clone, Default)]
pub(super) struct Sockets {
    sockets: Vec<Socket>,
    /// Index of the socket whose turn it is.
    turn: usize,
    /// The virtual connection's window (`cwnd_v`).
    window: f64,
    /// Whether the window has the default value of each socket.
    is_default: bool,
    /// Amount of data in flight (`FlightSize_v`): each sent datagram adds its size, and each TCP acknowledgement subtracts its
    /// amount.
    flight: f64,
    /// Earliest time of the next datagram while the group has no active TCP connection.
    next_at: Time,
}

impl Sockets {
    /// Adds a socket. Its name must be larger than the names of all sockets opened before.
    pub(super) fn open(&mut self, name: SocketId) {
        self.sockets.push(Socket { name, waiting: VecDeque::new() });
    }

    pub(super) fn close(&mut self, socket: SocketId) {
        if let Some(at) = self.place(socket) {
            self.sockets.remove(at);
            self.turn -= usize::from(at < self.turn);
        }
    }

    /// Moves the sockets of another group to this group. The sockets keep their names.
    pub(super) fn take(&mut self, other: Sockets) {
        self.flight += other.flight;
        self.sockets.extend(other.sockets);
        self.sockets.sort_by_key(|it| it.name);
        self.turn = 0;
    }

    pub(super) fn count(&self) -> usize {
        self.sockets.len()
    }

    fn place(&self, socket: SocketId) -> Option<usize> {
        self.sockets.binary_search_by_key(&socket, |it| it.name).ok()
    }

    pub(super) fn offer(&mut self, socket: SocketId, size: f64, most: usize) -> Offered {
        let Some(at) = self.place(socket) else { return Offered::Dropped };
        let waiting = &mut self.sockets[at].waiting;
        if waiting.len() >= most {
            return Offered::Dropped;
        }
        waiting.push_back(if size > 0.0 { size.min(MAX_SIZE) } else { 0.0 });
        Offered::Queued
    }

    /// Sets the window to `mean`, the mean window of the TCP connections, times the number of sockets.
    pub(super) fn follow(&mut self, mean: f64) {
        self.window = mean * self.sockets.len() as f64;
        self.is_default = false;
    }

    /// Sets the window of a group that has had no TCP: the default value for each socket.
    pub(super) fn default_window(&mut self, each: f64) {
        if self.window == 0.0 || self.is_default {
            self.window = each * self.sockets.len() as f64;
            self.is_default = true;
        }
    }

    pub(super) fn acknowledged(&mut self, newly: f64) {
        self.flight = (self.flight - newly).max(0.0);
    }

    pub(super) const fn window(&self) -> (f64, f64) {
        (self.window, self.flight)
    }

    pub(super) fn next_at(&self) -> Time {
        if self.sockets.iter().any(|it| !it.waiting.is_empty()) { self.next_at } else { Time::NEVER }
    }

    /// Returns the socket whose first datagram is sent now. `alone` means that the group has no active TCP connection. `frozen`
    /// means that a TCP connection has timed out.
    pub(super) fn next(&mut self, now: Time, alone: bool, frozen: bool, rtt: Span) -> Option<SocketId> {
        if frozen || (alone && now < self.next_at) || (!alone && self.flight > self.window) {
            return None;
        }
        let count = self.sockets.len();
        let at = (self.turn..self.turn + count)
            .map(|at| at % count)
            .find(|at| !self.sockets[*at].waiting.is_empty())?;
        let size = self.sockets[at].waiting.pop_front().expect("it was found with one");
        self.turn = (at + 1) % count;
        if alone {
            let wait = rtt.as_secs_f64() * size / self.window.max(f64::MIN_POSITIVE);
            self.next_at = now + Span::from_secs_f64(wait.min(60.0));
        } else {
            self.flight += size;
        }
        Some(self.sockets[at].name)
    }
}
