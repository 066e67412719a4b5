//! Sockets of a test: a source's socket with the group's port, and a receiver's socket. They are opened like the sockets of a
//! session.

use faircast_net::{
    Batch, Choice, Ecn, GroupOptions, GroupSocket, Membership, NetError, Port, SourceOptions, SourceSocket,
    Waiter, Want, Watch,
};
use faircast_wire::doctor::{Key, Message};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum number of datagrams read from a socket at a time.
const AT_A_TIME: usize = 16;
/// Requested receive buffer of the socket for trains, in bytes.
const BUFFER: usize = 8 << 20;

/// A source's socket. It exchanges messages with the other host, sends to the group, and receives answers of the other host's
/// receiver.
pub struct Mouth {
    socket: SourceSocket,
    batch: Batch,
    waiter: Waiter,
}

impl Mouth {
    /// # Errors
    /// As [`SourceSocket::open`].
    pub fn open(group: SocketAddr, choice: &Choice, ttl: u8, port: Port) -> Result<Mouth, NetError> {
        let ect = Ecn::NotEct;
        let options = SourceOptions { ttl, ect, port, receive_buffer: BUFFER, ..SourceOptions::default() };
        let socket = SourceSocket::open(group, choice, &options)?;
        Ok(Mouth { socket, batch: Batch::new(AT_A_TIME), waiter: Waiter::new() })
    }

    /// Returns the local address of the socket.
    pub fn local(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Sends a datagram to a host or to the group. A datagram that is too long for the interface is discarded without an error,
    /// as a router would do.
    ///
    /// # Errors
    /// The error of the system.
    pub fn send(&self, bytes: &[u8], to: SocketAddr) -> Result<(), NetError> {
        match self.socket.send_batch_to(bytes, bytes.len(), to) {
            Err(NetError::TooLarge { .. } | NetError::Denied { .. }) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// Returns the next datagram that arrives before `until`: its length, its source address, and its arrival time.
    ///
    /// # Errors
    /// The error of the system.
    pub fn next(
        &mut self,
        until: Instant,
        bytes: &mut [u8],
    ) -> Result<Option<(usize, SocketAddr, Instant)>, NetError> {
        loop {
            if let Some((came, meta)) = self.batch.take() {
                let len = came.len().min(bytes.len());
                bytes[..len].copy_from_slice(&came[..len]);
                return Ok(Some((len, meta.from, meta.received_at)));
            }
            if self.socket.receive(&mut self.batch)? > 0 {
                continue;
            }
            if Instant::now() >= until {
                return Ok(None);
            }
            self.waiter.wait(&[Watch::new(&self.socket, Want::Readable)], Some(until))?;
        }
    }
}

/// A receiver's sockets: one for the group, and one for answers.
pub struct Ear {
    socket: GroupSocket,
    batch: Batch,
}

impl Ear {
    /// # Errors
    /// As [`GroupSocket::open`].
    pub fn open(group: SocketAddr, choice: &Choice) -> Result<Ear, NetError> {
        let socket = GroupSocket::open(group, Membership::AnySource, choice, &GroupOptions::default())?;
        Ok(Ear { socket, batch: Batch::new(AT_A_TIME) })
    }

    /// Returns the size of the receive buffer, in bytes.
    pub fn buffer(&self) -> usize {
        self.socket.receive_buffer().granted
    }

    /// Processes all datagrams that have arrived, without waiting. If `each` returns a message, this message is sent back, like
    /// the answer of a receiver to a source.
    ///
    /// # Errors
    /// The error of the system.
    pub fn wait_for(
        &mut self,
        keys: &[Key],
        mut each: impl FnMut(Message, SocketAddr) -> Option<Message>,
    ) -> Result<(), NetError> {
        let mut out = Vec::new();
        while self.socket.receive(&mut self.batch)? > 0 {
            for (bytes, meta) in self.batch.segments() {
                let Some((key, message)) = super::answering::opened(bytes, keys) else { continue };
                if let Some(answer) = each(message, meta.from) {
                    answer.encode(&keys[key], 0, &mut out);
                    // The other host detects a lost answer.
                    let _ = self.socket.send_to(&out, meta.from);
                }
            }
        }
        Ok(())
    }
}

/// Sends `count` datagrams, `interval` nanoseconds apart. `send` gets the index of each datagram. A datagram that is late is sent
/// at once.
///
/// # Errors
/// The first error of `send`.
pub fn paced(
    count: u32,
    interval: u64,
    mut send: impl FnMut(u32) -> Result<(), NetError>,
) -> Result<(), NetError> {
    let begun = Instant::now();
    for number in 0..count {
        let due = Duration::from_nanos(interval.saturating_mul(number.into()));
        if let Some(early) = due.checked_sub(begun.elapsed()).filter(|early| *early > MIN_SLEEP) {
            std::thread::sleep(early);
        }
        send(number)?;
    }
    Ok(())
}

/// Minimum duration of a sleep. The system would extend a shorter sleep considerably.
const MIN_SLEEP: Duration = Duration::from_micros(200);

/// Converts a network error into an I/O error.
pub fn other(error: NetError) -> io::Error {
    io::Error::other(error.to_string())
}
