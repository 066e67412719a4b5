//! The sockets of a session's groups at a receiver: its own group's, and one for each layer that is joined.
//!
//! All are read together, and what they hold comes out in the order of arrival, so that a host that was
//! busy for a while does not see one layer's past after another's present.

use crate::error::Error;
use crate::event::Event;
use crate::outage::{Look, Outage, received};
use crate::receiver::Backlog;
use faircast_core::packet::Layer;
use faircast_net::{Batch, Faults, GroupSocket, Injector, Meta, NetError, Waiter, Want, Watch};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Sockets that are waited for at most; those of further layers are read whenever something wakes.
const WATCHED: usize = 32;

/// Receive calls take so many datagrams (or coalesced runs) at most.
const SLOTS: usize = 8;

/// When the network changes, silence of this length says that memberships may have been lost with it.
const SOON_SILENT: Duration = Duration::from_millis(500);

/// In a silent session groups are joined again so often.
const REJOIN_EVERY: Duration = Duration::from_secs(5);

/// The base group, the layers that are joined, and those that were left but not read to their end.
pub(crate) struct Groups {
    base: JoinedGroup,
    layers: Vec<JoinedGroup>,
    left: Vec<JoinedGroup>,
    faults: Option<(Faults, u64)>,
    /// Datagrams that sockets dropped which are closed now.
    dropped: u64,
    rejoined_at: Instant,
}

struct JoinedGroup {
    group: SocketAddr,
    socket: GroupSocket,
    batch: Batch,
    injector: Option<Injector>,
}

impl Groups {
    /// The base group, joined. Each socket has faults of its own, from a stream of the seed.
    pub(crate) fn new(base: GroupSocket, faults: Option<(Faults, u64)>) -> Groups {
        let base = JoinedGroup::new(base.group(), base, faults, 0);
        Groups { base, layers: Vec::new(), left: Vec::new(), faults, dropped: 0, rejoined_at: Instant::now() }
    }

    /// The base group's socket, which feedback leaves by too.
    pub(crate) fn base(&self) -> &GroupSocket {
        &self.base.socket
    }

    /// Look whether the interface is still the one that it was, and join everything again where that may be of use: on
    /// another interface, and where nothing has come for `silent` while the network changed or as time goes by, for
    /// switches and routers forget.
    ///
    /// # Errors
    /// When the network has been gone for too long, or the system refuses.
    pub(crate) fn look(
        &mut self,
        outage: &mut Outage,
        silent: Option<Duration>,
        events: &mut dyn FnMut(Event),
    ) -> Result<(), Error> {
        outage.ends_by_patience(silent.is_some());
        match outage.look(self.base.socket.choice(), true, events)? {
            Look::Other(choice) => {
                let before = self.base.socket.choice().clone();
                match self.base.socket.open_again(&choice) {
                    Ok(socket) => {
                        self.replace(socket);
                        outage.moved(&before, &choice, events);
                    }
                    Err(error) => outage.failed(error, events)?,
                }
            }
            Look::Changed if silent.is_none_or(|silent| silent >= SOON_SILENT) => self.rejoin(),
            Look::Changed | Look::Same => {
                let now = Instant::now();
                if silent.is_some_and(|silent| silent >= REJOIN_EVERY)
                    && now.duration_since(self.rejoined_at) >= REJOIN_EVERY
                {
                    self.rejoin();
                }
            }
        }
        Ok(())
    }

    /// The same groups by another base socket; what the old sockets hold is still read. Layers follow.
    fn replace(&mut self, base: GroupSocket) {
        let base = JoinedGroup::new(self.base.group, base, self.faults, 0);
        let before = std::mem::replace(&mut self.base, base);
        for member in std::iter::once(before).chain(self.layers.drain(..)) {
            if member.socket.leave().is_ok() {
                self.left.push(member);
            } else {
                self.dropped += member.dropped();
            }
        }
        self.rejoined_at = Instant::now();
    }

    /// Tell switches and routers once more. What cannot be joined now is tried again later.
    fn rejoin(&mut self) {
        self.rejoined_at = Instant::now();
        for member in std::iter::once(&self.base).chain(&self.layers) {
            let _ = member.socket.rejoin();
        }
    }

    /// Join and leave layers until just these groups are joined, bottom up.
    ///
    /// # Errors
    /// The layer that could not be joined, and why; those below it are.
    pub(crate) fn follow(&mut self, wanted: &[SocketAddr]) -> Result<(), (Layer, NetError)> {
        let same =
            self.layers.iter().zip(wanted).take_while(|(joined, group)| joined.group == **group).count();
        while self.layers.len() > same {
            let Some(top) = self.layers.pop() else { break };
            // A socket that cannot leave its group does so when it is closed.
            if top.socket.leave().is_ok() {
                self.left.push(top);
            } else {
                self.dropped += top.dropped();
            }
        }
        for (number, &group) in (1..).zip(wanted).skip(same) {
            let socket = self.base.socket.open_beside(group).map_err(|error| (Layer(number), error))?;
            self.layers.push(JoinedGroup::new(group, socket, self.faults, number.into()));
        }
        Ok(())
    }

    /// Whether other groups are wanted than are joined.
    pub(crate) fn differ_from(&self, wanted: &[SocketAddr]) -> bool {
        self.layers.len() != wanted.len()
            || self.layers.iter().zip(wanted).any(|(joined, group)| joined.group != *group)
    }

    /// Read the sockets whose datagrams have all been delivered, and close those of layers that were left
    /// and are read to their end.
    pub(crate) fn receive(&mut self) -> Result<(), Error> {
        for member in self.members() {
            if member.batch.next_at().is_none() {
                received(member.socket.receive(&mut member.batch))?;
            }
        }
        let dropped = &mut self.dropped;
        self.left.retain_mut(|member| {
            let has_more = member.batch.next_at().is_some();
            *dropped += if has_more { 0 } else { member.dropped() };
            has_more
        });
        Ok(())
    }

    /// Give what was read to `each`, in the order of arrival; how many datagrams that were. Stops when what
    /// comes next may still be in a socket.
    pub(crate) fn deliver(&mut self, mut each: impl FnMut(&mut [u8], Meta)) -> usize {
        let now = Instant::now();
        for injector in self.members().filter_map(|member| member.injector.as_mut()) {
            injector.release(now, &mut each);
        }
        let alone = self.layers.is_empty() && self.left.is_empty();
        let mut delivered = 0;
        loop {
            // Most sessions have one group, and then there is nothing to compare.
            let next = if alone { Some(&mut self.base) } else { self.earliest() };
            let Some(member) = next else { return delivered };
            let Some((bytes, meta)) = member.batch.take() else { return delivered };
            match &mut member.injector {
                None => each(bytes, meta),
                Some(injector) => injector.pass(bytes, meta, &mut each),
            }
            delivered += 1;
            if member.batch.next_at().is_none() && member.batch.is_full() {
                return delivered;
            }
        }
    }

    /// Who holds the datagram that arrived first.
    fn earliest(&mut self) -> Option<&mut JoinedGroup> {
        let waiting = self.members().filter_map(|member| Some((member.batch.next_at()?, member)));
        waiting.min_by_key(|(at, _)| *at).map(|(_, member)| member)
    }

    /// How full the base group's buffer is, and what all of them have dropped.
    pub(crate) fn backlog(&self) -> Result<Backlog, Error> {
        let base = self.base.socket.backlog()?;
        let others = self.layers.iter().chain(&self.left).map(JoinedGroup::dropped).sum::<u64>();
        Ok(Backlog {
            used: base.used_bytes as u64,
            capacity: base.capacity_bytes as u64,
            dropped: self.dropped + others + u64::from(base.drops),
        })
    }

    /// Wait for a datagram or a moment.
    pub(crate) fn wait(&self, waiter: &mut Waiter, until: Instant) -> Result<(), Error> {
        let mut watched = [Watch::new(&self.base.socket, Want::Readable); WATCHED];
        let layers = self.layers.iter().take(WATCHED - 1);
        for (place, member) in watched[1..].iter_mut().zip(layers) {
            *place = Watch::new(&member.socket, Want::Readable);
        }
        let count = (1 + self.layers.len()).min(WATCHED);
        waiter.wait(&watched[..count], Some(until))?;
        Ok(())
    }

    fn members(&mut self) -> impl Iterator<Item = &mut JoinedGroup> {
        std::iter::once(&mut self.base).chain(&mut self.layers).chain(&mut self.left)
    }
}

/// However a session ends, it leaves its groups from the top down.
impl Drop for Groups {
    fn drop(&mut self) {
        while self.layers.pop().is_some() {}
    }
}

impl JoinedGroup {
    fn new(
        group: SocketAddr,
        socket: GroupSocket,
        faults: Option<(Faults, u64)>,
        number: u64,
    ) -> JoinedGroup {
        let injector = faults.map(|(faults, stream)| Injector::new(faults, stream.wrapping_add(number)));
        JoinedGroup { group, socket, batch: Batch::new(SLOTS), injector }
    }

    fn dropped(&self) -> u64 {
        self.socket.backlog().map_or(0, |backlog| backlog.drops.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_net::{Choice, GroupOptions, Membership, SourceOptions, SourceSocket, choose};

    /// A session's group and two layers on the loopback interface, joined, and a source to them.
    fn three(port: u16) -> (Vec<SocketAddr>, Groups, SourceSocket) {
        let groups: Vec<SocketAddr> = (1..=3).map(|n| SocketAddr::from(([239, 255, 78, n], port))).collect();
        let choice: Choice = choose(groups[0].ip(), Some("lo")).expect("there is a loopback interface");
        let options = GroupOptions { receive_buffer: 1 << 20 };
        let base = GroupSocket::open(groups[0], Membership::AnySource, &choice, &options).expect("it joins");
        let mut joined = Groups::new(base, None);
        joined.follow(&groups[1..]).expect("layers join");
        let options = SourceOptions { ttl: 0, ..SourceOptions::default() };
        let source = SourceSocket::open(groups[0], &choice, &options).expect("a source opens");
        await_stamps(&source, groups[0], &mut joined);
        (groups, joined, source)
    }

    /// The kernel begins to note arrivals some time after the first socket of a host has asked for it; before that a
    /// datagram has the moment at which it was read.
    fn await_stamps(source: &SourceSocket, to: SocketAddr, joined: &mut Groups) {
        let pause = Duration::from_millis(10);
        for _ in 0..500 {
            send(source, 0, to);
            std::thread::sleep(pause);
            let read_at = Instant::now();
            joined.receive().expect("it receives");
            let mut waited = Duration::ZERO;
            joined.deliver(|_, meta| waited = read_at.saturating_duration_since(meta.received_at));
            if waited > pause / 2 {
                return;
            }
        }
        panic!("the kernel does not say when datagrams arrive");
    }

    fn send(source: &SourceSocket, number: u8, to: SocketAddr) {
        let sent = source.send_batch_to(&[number; 64], 64, to).expect("it sends");
        assert_eq!(sent, faircast_net::SendOutcome::Sent);
    }

    /// What comes until `count` are there.
    fn receive(joined: &mut Groups, count: usize) -> Vec<u8> {
        let (mut waiter, mut got) = (Waiter::new(), Vec::new());
        let end = Instant::now() + Duration::from_secs(10);
        while got.len() < count && Instant::now() < end {
            joined.receive().expect("it receives");
            if joined.deliver(|bytes, _| got.push(bytes[0])) == 0 {
                joined.wait(&mut waiter, Instant::now() + Duration::from_millis(50)).expect("it waits");
            }
        }
        got
    }

    #[test]
    fn datagrams_of_all_layers_come_in_the_order_of_their_arrival() {
        let (groups, mut joined, source) = three(47_281);
        let mut order = 0x9e37_79b9_u32;
        for number in 0..120 {
            order = order.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            send(&source, number, groups[(order >> 24) as usize % 3]);
        }
        assert_eq!(receive(&mut joined, 120), (0..120).collect::<Vec<u8>>());
    }

    #[test]
    fn what_came_before_a_layer_was_left_is_read_and_nothing_after_it() {
        let (groups, mut joined, source) = three(47_282);
        (0..30).for_each(|number| send(&source, number, groups[2]));
        assert!(joined.differ_from(&groups[1..2]) && !joined.differ_from(&groups[1..]));
        joined.follow(&groups[1..2]).expect("leaving works");
        assert!(!joined.differ_from(&groups[1..2]));
        send(&source, 77, groups[2]);
        send(&source, 30, groups[1]);
        send(&source, 31, groups[0]);
        assert_eq!(receive(&mut joined, 32), (0..32).collect::<Vec<u8>>());
        joined.receive().expect("it receives");
        assert!(joined.left.is_empty(), "the socket is closed");
        joined.follow(&groups[1..]).expect("it joins again");
        send(&source, 5, groups[2]);
        assert_eq!(receive(&mut joined, 1), [5]);
    }

    #[test]
    fn a_layer_that_cannot_be_joined_is_named_and_those_below_it_are_joined() {
        let (groups, mut joined, source) = three(47_283);
        joined.follow(&[]).expect("leaving works");
        let _taken = std::net::UdpSocket::bind((groups[2].ip(), 47_284)).expect("the port is free");
        let wanted = [groups[1], SocketAddr::new(groups[2].ip(), 47_284)];
        let (layer, error) = joined.follow(&wanted).expect_err("another program has it");
        assert_eq!(layer, Layer(2));
        assert!(matches!(error, NetError::PortTaken { .. }), "{error}");
        send(&source, 9, groups[1]);
        assert_eq!(receive(&mut joined, 1), [9]);
    }
}
