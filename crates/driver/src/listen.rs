//! The port of a relay, and the group in which hosts search for relays.

use crate::stop::Stop;
use faircast_net::{
    Batch, GroupOptions, GroupSocket, Membership, UnicastSocket, Waiter, Want, Watch, choose, interfaces,
};
use faircast_transport::config::{FIND_GROUP, FIND_GROUP_V6};
use faircast_transport::error::Error;
use faircast_transport::relay::RelayHandle;
use faircast_wire::Name;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Interval at which invitations are sent, and at which a failed read is repeated.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Requested size of the receive buffer, bytes.
const RECEIVE_BUFFER: usize = 256 << 10;

/// Maximum number of datagrams per receive call.
const SLOTS: usize = 8;

/// Interval at which the group is joined on new interfaces.
const JOIN_EVERY: Duration = Duration::from_secs(10);

/// The port of a relay to which hosts attach.
pub(crate) struct Listener {
    socket: UnicastSocket,
    handle: RelayHandle,
    /// Name of the content, as stated in invitations.
    name: Name,
    /// Group in which hosts search for relays; `None` if hosts must not find this relay.
    group: Option<SocketAddr>,
}

impl Listener {
    /// Opens the port at this address.
    ///
    /// # Errors
    /// If the port is in use, or the system cannot open the socket.
    pub(crate) fn open(
        at: SocketAddr,
        handle: RelayHandle,
        name: &str,
        is_found: bool,
    ) -> Result<Listener, Error> {
        let socket = UnicastSocket::listen(at, RECEIVE_BUFFER)?;
        let group = if at.is_ipv4() { FIND_GROUP } else { FIND_GROUP_V6 };
        let group = is_found.then(|| group.parse().expect("it is an address and a port"));
        Ok(Listener { socket, handle, name: Name::clipped(name), group })
    }

    /// Answers datagrams until `stop` is set.
    pub(crate) fn run(&self, stop: &Stop) {
        let (mut waiter, mut batch) = (Waiter::new(), Batch::new(SLOTS));
        let mut searched = Searched::default();
        let stops: Vec<_> = stop.descriptors().collect();
        while !stop.is_set() {
            if let Some(group) = self.group {
                searched.join(group);
            }
            self.invite();
            let mut watch = vec![Watch::new(&self.socket, Want::Readable)];
            watch.extend(searched.groups.iter().map(|(_, socket)| Watch::new(socket, Want::Readable)));
            watch.extend(stops.iter().map(|one| Watch::new(one, Want::Readable)));
            // A failed wait or read is repeated in the next iteration.
            let _ = waiter.wait(&watch, Some(Instant::now() + LOOK_EVERY));
            for (_, socket) in &searched.groups {
                if socket.receive(&mut batch).is_ok() {
                    for (bytes, meta) in batch.segments() {
                        self.send(self.handle.answer_search(bytes, meta.from), meta.from);
                    }
                }
            }
            if self.socket.receive(&mut batch).is_err() {
                stop.wait(LOOK_EVERY);
                continue;
            }
            let port = self.socket.local_addr().port();
            for (bytes, meta) in batch.segments() {
                let (from, to) = (meta.from, meta.to.to_canonical());
                if to.is_multicast() {
                    continue; // a search, which the group's socket receives as well
                }
                self.send(self.handle.answer(bytes, (from, SocketAddr::new(to, port))), from);
            }
        }
    }

    /// Sends all invitations that are scheduled up to now.
    fn invite(&self) {
        for (out, to) in self.handle.invitations(self.socket.local_addr().is_ipv4(), self.name) {
            // An invitation that could not be sent is repeated.
            let _ = self.socket.send_to(&out, to);
        }
    }

    fn send(&self, answer: Option<Vec<u8>>, to: SocketAddr) {
        if let Some(bytes) = answer {
            // A host that gets no answer repeats its request.
            let _ = self.socket.send_to(&bytes, to);
        }
    }
}

/// Sockets of the group in which hosts search for relays, one for each interface.
#[derive(Default)]
struct Searched {
    groups: Vec<(u32, GroupSocket)>,
    looked_at: Option<Instant>,
}

impl Searched {
    /// Joins the group on new interfaces, and drops the sockets of vanished interfaces.
    fn join(&mut self, group: SocketAddr) {
        if self.looked_at.is_some_and(|at| at.elapsed() < JOIN_EVERY) {
            return;
        }
        self.looked_at = Some(Instant::now());
        let Ok(mut all) = interfaces() else { return };
        all.retain(|interface| interface.up && interface.multicast && !interface.loopback);
        self.groups.retain(|(index, _)| all.iter().any(|interface| interface.index == *index));
        for interface in all {
            if self.groups.iter().any(|(index, _)| *index == interface.index) {
                continue;
            }
            // If the group cannot be joined on an interface, the join is tried again later. For example, the interface may still
            // have no address of the group's family.
            let Ok(choice) = choose(group.ip(), Some(&interface.name)) else { continue };
            let options = GroupOptions { receive_buffer: RECEIVE_BUFFER };
            if let Ok(socket) = GroupSocket::open(group, Membership::AnySource, &choice, &options) {
                self.groups.push((interface.index, socket));
            }
        }
    }
}
