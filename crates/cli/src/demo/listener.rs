//! A listener that receives the group without the key. It counts the packets that contain readable content.

use faircast_net::{Batch, Choice, GroupOptions, GroupSocket, Membership, NetError, Waiter, Want, Watch};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Counts of the received packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CaptureCounts {
    /// Packets marked as sealed.
    pub sealed: u64,
    /// Packets that are not sealed.
    pub open: u64,
    /// Packets that contain the known text of the content.
    pub readable: u64,
}

impl CaptureCounts {
    /// Whether sealed packets were received, and no readable ones.
    pub fn is_closed(&self) -> bool {
        self.sealed > 0 && self.open == 0 && self.readable == 0
    }
}

/// A listener in a separate thread.
#[derive(Debug)]
pub struct Listener {
    thread: JoinHandle<CaptureCounts>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    end: AtomicBool,
    /// Total bytes of all received datagrams.
    bytes: AtomicU64,
}

impl Listener {
    /// Starts to receive from `group` and to search for `marker`.
    ///
    /// # Errors
    /// When the group cannot be joined.
    pub fn start(group: SocketAddr, choice: &Choice, marker: String) -> Result<Listener, NetError> {
        let socket = GroupSocket::open(group, Membership::AnySource, choice, &GroupOptions::default())?;
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        let thread = thread::spawn(move || listen(&socket, marker.as_bytes(), &its));
        Ok(Listener { thread, shared })
    }

    /// Returns the total bytes of the datagrams received so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Stops the listener and returns its counts.
    pub fn finish(self) -> CaptureCounts {
        self.shared.end.store(true, Ordering::Relaxed);
        self.thread.join().expect("the listener does not panic")
    }
}

fn listen(socket: &GroupSocket, marker: &[u8], shared: &Shared) -> CaptureCounts {
    let (mut seen, mut batch, mut waiter) = (CaptureCounts::default(), Batch::new(16), Waiter::new());
    while !shared.end.load(Ordering::Relaxed) {
        let until = Instant::now() + Duration::from_millis(100);
        let waited = waiter.wait(&[Watch::new(socket, Want::Readable)], Some(until));
        if waited.and_then(|_| socket.receive(&mut batch)).is_err() {
            break; // earlier packets still count
        }
        for (bytes, _) in batch.segments() {
            look(bytes, marker, &mut seen);
            shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
    }
    seen
}

fn look(bytes: &[u8], marker: &[u8], seen: &mut CaptureCounts) {
    match faircast_wire::peek(bytes) {
        Ok(header) if header.sealed => seen.sealed += 1,
        Ok(_) => seen.open += 1,
        Err(_) => return, // not a packet of faircast
    }
    seen.readable += u64::from(bytes.windows(marker.len()).any(|window| window == marker));
}
