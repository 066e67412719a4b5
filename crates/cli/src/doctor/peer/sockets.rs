//! The sockets of a doctor: one to talk by, one that hears the group, one that speaks to it.

use faircast_net::{
    Batch, Choice, Ecn, GroupOptions, GroupSocket, Membership, NetError, SourceOptions, SourceSocket,
};
use faircast_wire::doctor::{Key, Message};
use rustix::net::sockopt::{
    Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    set_socket_recv_buffer_size,
};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Datagrams that are taken from the group's socket at a time.
const AT_A_TIME: usize = 16;
/// Receive buffer of the socket for trains, as far as the system grants it.
const BUFFER: usize = 8 << 20;

/// A socket that sends nothing in fragments: what is too long for the way does not arrive.
///
/// # Errors
/// What the system says.
pub fn talk(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(at)?;
    if at.is_ipv4() {
        set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::PROBE)?;
    } else {
        set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::PROBE)?;
    }
    // With less, a fast train loses some here, and is told so.
    set_socket_recv_buffer_size(&socket, BUFFER).ok();
    Ok(socket)
}

/// The group, to hear and to speak to.
pub struct Group {
    ear: GroupSocket,
    mouth: SourceSocket,
    batch: Batch,
}

impl Group {
    /// # Errors
    /// As [`GroupSocket::open`].
    pub fn open(group: SocketAddr, choice: &Choice, ttl: u8) -> Result<Group, NetError> {
        let ear = GroupSocket::open(group, Membership::AnySource, choice, &GroupOptions::default())?;
        let options = SourceOptions { ttl, ect: Ecn::NotEct, ..SourceOptions::default() };
        let mouth = SourceSocket::open(group, choice, &options)?;
        Ok(Group { ear, mouth, batch: Batch::new(AT_A_TIME) })
    }

    /// Bytes of its receive buffer.
    pub fn buffer(&self) -> usize {
        self.ear.receive_buffer().granted
    }

    /// # Errors
    /// What the system says.
    pub fn send(&self, bytes: &[u8]) -> Result<(), NetError> {
        self.mouth.send_batch(bytes, bytes.len()).map(drop)
    }

    /// What has come, without waiting.
    ///
    /// # Errors
    /// What the system says.
    pub fn hear(&mut self, keys: &[Key], mut each: impl FnMut(Message, SocketAddr)) -> Result<(), NetError> {
        while self.ear.receive(&mut self.batch)? > 0 {
            for (bytes, meta) in self.batch.segments() {
                if let Some((_, message)) = super::answering::opened(bytes, keys) {
                    each(message, meta.from);
                }
            }
        }
        Ok(())
    }
}

/// Send so many datagrams with so many nanoseconds between them; `send` gets the number of each. What is late leaves at once.
///
/// # Errors
/// Those of `send`.
pub fn paced(count: u32, interval: u64, mut send: impl FnMut(u32) -> io::Result<()>) -> io::Result<()> {
    let begun = Instant::now();
    for number in 0..count {
        let due = Duration::from_nanos(interval.saturating_mul(number.into()));
        if let Some(early) = due.checked_sub(begun.elapsed()).filter(|early| *early > SHORTEST) {
            std::thread::sleep(early);
        }
        send(number)?;
    }
    Ok(())
}

/// A shorter sleep lasts longer than it should.
const SHORTEST: Duration = Duration::from_micros(200);

/// Whether sending failed by what concerns this datagram alone: it is too long, or the queue is full, or nobody listens there.
pub fn is_of_one_datagram(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let passing = [Errno::MSGSIZE, Errno::NOBUFS, Errno::AGAIN, Errno::CONNREFUSED, Errno::PERM];
    Errno::from_io_error(error).is_some_and(|errno| passing.contains(&errno))
}
