//! The sockets of a doctor: those of a session. One is a source's, with the group's port, and one is a receiver's.

use faircast_net::{
    Batch, Choice, Ecn, GroupOptions, GroupSocket, Membership, NetError, Port, SourceOptions, SourceSocket,
    Waiter, Want, Watch,
};
use faircast_wire::doctor::{Key, Message};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Datagrams that are taken from a socket at a time.
const AT_A_TIME: usize = 16;
/// Receive buffer of the socket for trains, as far as the system grants it.
const BUFFER: usize = 8 << 20;

/// A source's socket: it talks to the other doctor, sends to the group, and receives the answers of receivers.
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

    /// Where it is.
    pub fn local(&self) -> SocketAddr {
        self.socket.local_addr()
    }

    /// Send a datagram, to a host or to the group. One that is too long for the interface does not leave, as on the way.
    ///
    /// # Errors
    /// The error of the system.
    pub fn send(&self, bytes: &[u8], to: SocketAddr) -> Result<(), NetError> {
        match self.socket.send_batch_to(bytes, bytes.len(), to) {
            Err(NetError::TooLarge { .. } | NetError::Denied { .. }) => Ok(()),
            sent => sent.map(drop),
        }
    }

    /// The next datagram that comes before then, its length and where it came from.
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

/// A receiver's sockets: the group, and where its answers leave from.
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

    /// Bytes of its receive buffer.
    pub fn buffer(&self) -> usize {
        self.socket.receive_buffer().granted
    }

    /// Handles all that has arrived, without waiting. The message that `each` returns is sent back, as a receiver answers a source.
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
                    // One that does not leave is missed at the other end.
                    let _ = self.socket.send_to(&out, meta.from);
                }
            }
        }
        Ok(())
    }
}

/// Sends a number of datagrams, some nanoseconds apart; `send` gets the number of each. Late ones leave at once.
///
/// # Errors
/// Those of `send`.
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

/// A shorter sleep lasts longer than it should.
const MIN_SLEEP: Duration = Duration::from_micros(200);

/// An error of the network as one of the system.
pub fn other(error: NetError) -> io::Error {
    io::Error::other(error.to_string())
}
