//! The port of a relay, and the group in which hosts look for relays.

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

/// Invitations that are due are sent, and a socket that fails is tried again, within this.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes of receive buffer to ask for.
const RECEIVE_BUFFER: usize = 256 << 10;

/// Receive calls take this many datagrams at most.
const SLOTS: usize = 8;

/// Networks that have come are joined within this.
const JOIN_EVERY: Duration = Duration::from_secs(10);

/// The port of a relay that hosts ask at.
pub(crate) struct Listener {
    socket: UnicastSocket,
    handle: RelayHandle,
    /// The name of the content, as invitations state it.
    name: Name,
    /// The group in which hosts look for relays, unless this one is not to be found.
    group: Option<SocketAddr>,
}

impl Listener {
    /// Listen here.
    ///
    /// # Errors
    /// When the port is taken, or the system refuses.
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

    /// Answer until `stop` is set.
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
            // A failed wait or read is repeated in the next round.
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
                    continue; // a search, which the group's socket hears as well
                }
                self.send(self.handle.answer(bytes, (from, SocketAddr::new(to, port))), from);
            }
        }
    }

    /// Invite those whose time has come.
    fn invite(&self) {
        for (out, to) in self.handle.invitations(self.socket.local_addr().is_ipv4(), self.name) {
            // An invitation that does not leave is repeated.
            let _ = self.socket.send_to(&out, to);
        }
    }

    fn send(&self, answer: Option<Vec<u8>>, to: SocketAddr) {
        if let Some(bytes) = answer {
            // An answer that does not leave is asked for again.
            let _ = self.socket.send_to(&bytes, to);
        }
    }
}

/// Where hosts look for relays: the group, on every network.
#[derive(Default)]
struct Searched {
    groups: Vec<(u32, GroupSocket)>,
    looked_at: Option<Instant>,
}

impl Searched {
    /// Join on networks that have come, and leave those that are gone.
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
            // An interface that cannot be joined on (it has no address of this family, say) is looked at again.
            let Ok(choice) = choose(group.ip(), Some(&interface.name)) else { continue };
            let options = GroupOptions { receive_buffer: RECEIVE_BUFFER };
            if let Ok(socket) = GroupSocket::open(group, Membership::AnySource, &choice, &options) {
                self.groups.push((interface.index, socket));
            }
        }
    }
}
