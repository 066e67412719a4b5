//! The sockets of a receiver's groups: the base group, and one for each joined layer.
//!
//! All sockets are read together, and their datagrams are delivered in the order of arrival. After a pause of the host, old
//! datagrams of one layer thus never follow newer datagrams of another layer.

use super::outage::{InterfaceCheck, Outage, received};
use super::{Events, Sockets, Watcher};
use faircast_core::time::{Span, Time};
use faircast_net::{Batch, GroupSocket, Meta, NetError, Want};
use faircast_transport::endpoint::{Backlog, Endpoint, HostEvent, Transmit};
use faircast_transport::error::Error;
use faircast_transport::event::Event;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum number of datagrams (or coalesced runs) per receive call.
const SLOTS: usize = 8;

/// Minimum duration of silence after which a change of the network causes a rejoin, because memberships may have been lost.
const SOON_SILENT: Span = Span::from_millis(500);

/// Maximum time from a rejoin to the next packet. If the packet arrives within this time, the session has resumed because of the
/// rejoin.
const BACK_WITHIN: Duration = Duration::from_millis(500);

/// Interval of rejoins in a silent session.
const REJOIN_EVERY: Span = Span::from_secs(5);

/// The base group, the joined layers, and layers that were left but still have unread datagrams.
pub(crate) struct Groups {
    outage: Outage,
    base: JoinedGroup,
    layers: Vec<JoinedGroup>,
    left: Vec<JoinedGroup>,
    /// Number of datagrams dropped by sockets that are closed now.
    dropped: u64,
    rejoined_at: Instant,
    /// Time of the latest rejoin because of silence, and the duration of the silence.
    after_silence: Option<(Instant, Span)>,
    /// Whether the warning about IGMP snooping without a querier was reported.
    snooping_reported: bool,
}

struct JoinedGroup {
    group: SocketAddr,
    socket: GroupSocket,
    batch: Batch,
}

impl Groups {
    /// Creates the state from the socket of the base group, which is already joined.
    pub(crate) fn new(base: GroupSocket, outage: Outage) -> Groups {
        let base = JoinedGroup::new(base.group(), base);
        let (layers, left, rejoined_at) = (Vec::new(), Vec::new(), Instant::now());
        let (after_silence, snooping_reported) = (None, false);
        Groups { outage, base, layers, left, dropped: 0, rejoined_at, after_silence, snooping_reported }
    }

    /// Closes the sockets. Returns the outage of the network that lasts.
    pub(crate) fn close(mut self) -> Option<Error> {
        self.outage.take_error()
    }

    /// Returns the number of datagrams dropped by the sockets' buffers.
    pub(crate) fn dropped(&self) -> u64 {
        let members = std::iter::once(&self.base).chain(&self.layers).chain(&self.left);
        self.dropped + members.map(JoinedGroup::dropped).sum::<u64>()
    }

    /// Replaces the base socket. Datagrams of the old sockets are still read, and layers are joined again later.
    fn replace(&mut self, base: GroupSocket) {
        let base = JoinedGroup::new(self.base.group, base);
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

    /// Joins all groups again, so that switches and routers receive new reports. Groups that cannot be joined now are joined
    /// later.
    fn rejoin(&mut self) {
        self.rejoined_at = Instant::now();
        for member in std::iter::once(&self.base).chain(&self.layers) {
            let _ = member.socket.rejoin();
        }
    }

    /// Warns of a switch that forgets members, if a silent session has resumed immediately after a rejoin.
    fn report_snooping(&mut self, silent: Option<Span>, events: Events<'_>) {
        let Some((at, lasted)) = self.after_silence else { return };
        if silent.is_some_and(|silent| silent >= REJOIN_EVERY) {
            return;
        }
        self.after_silence = None;
        if self.snooping_reported || silent.is_none() || at.elapsed() > BACK_WITHIN {
            return;
        }
        self.snooping_reported = true;
        let group = self.base.group.ip();
        let protocol = if group.is_ipv4() { "IGMP" } else { "MLD" };
        events(Event::warning(format!(
            "no packets of {group} arrived for {lasted}, until this host joined the group again: a switch on the path snoops {protocol} without a querier, or the querier's queries do not reach this host; enable the querier on the switch or router, or switch snooping off"
        )));
    }

    /// Joins the groups in `wanted` in this order, and leaves all other layers, the highest first.
    ///
    /// # Errors
    /// The index of the group that could not be joined, and the reason. The groups before it are joined.
    fn join(&mut self, wanted: &[SocketAddr]) -> Result<(), (usize, NetError)> {
        let same =
            self.layers.iter().zip(wanted).take_while(|(joined, group)| joined.group == **group).count();
        while self.layers.len() > same {
            let Some(top) = self.layers.pop() else { break };
            // A socket that fails to leave its group leaves it when it is closed.
            if top.socket.leave().is_ok() {
                self.left.push(top);
            } else {
                self.dropped += top.dropped();
            }
        }
        for (place, &group) in wanted.iter().enumerate().skip(same) {
            let socket = self.base.socket.open_beside(group).map_err(|error| (place, error))?;
            self.layers.push(JoinedGroup::new(group, socket));
        }
        Ok(())
    }

    /// Whether the joined layers differ from `wanted`.
    fn differ_from(&self, wanted: &[SocketAddr]) -> bool {
        self.layers.len() != wanted.len()
            || self.layers.iter().zip(wanted).any(|(joined, group)| joined.group != *group)
    }

    /// Reads the sockets whose earlier datagrams were all delivered. Closes the sockets of left layers that have no further
    /// datagrams.
    fn fill(&mut self) -> Result<(), Error> {
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

    /// Passes received datagrams to `each` in the order of arrival; returns the number of these datagrams. Stops where a socket
    /// may hold an unread datagram that arrived before the next one.
    fn deliver(&mut self, each: &mut dyn FnMut(&mut [u8], &Meta)) -> usize {
        let alone = self.layers.is_empty() && self.left.is_empty();
        let mut delivered = 0;
        loop {
            // A single group needs no comparison of arrival times.
            let next = if alone { Some(&mut self.base) } else { self.earliest() };
            let Some(member) = next else { return delivered };
            let Some((bytes, meta)) = member.batch.take() else { return delivered };
            each(bytes, meta);
            delivered += 1;
            if member.batch.next_at().is_none() && member.batch.is_full() {
                return delivered;
            }
        }
    }

    /// Returns the group with the earliest datagram.
    fn earliest(&mut self) -> Option<&mut JoinedGroup> {
        let waiting = self.members().filter_map(|member| Some((member.batch.next_at()?, member)));
        waiting.min_by_key(|(at, _)| *at).map(|(_, member)| member)
    }

    fn members(&mut self) -> impl Iterator<Item = &mut JoinedGroup> {
        std::iter::once(&mut self.base).chain(&mut self.layers).chain(&mut self.left)
    }
}

impl Sockets for Groups {
    /// Rejoins the groups after a change of the interface, after a change of the network during silence, and at intervals during
    /// long silence. In these cases, switches and routers may have lost the memberships.
    fn look(&mut self, endpoint: &mut dyn Endpoint, now: Time, events: Events<'_>) -> Result<(), Error> {
        let silent = endpoint.silence(now);
        self.outage.ends_by_timeout(silent.is_some());
        self.report_snooping(silent, events);
        match self.outage.look(self.base.socket.choice(), true, events)? {
            InterfaceCheck::Other(choice) => {
                let before = self.base.socket.choice().clone();
                match self.base.socket.open_again(&choice) {
                    Ok(socket) => {
                        self.replace(socket);
                        self.outage.moved(&before, &choice, events);
                    }
                    Err(error) => self.outage.failed(error, events)?,
                }
                self.after_silence = None;
                endpoint.handle_host_event(HostEvent::NetworkChanged { local: None }, now);
            }
            InterfaceCheck::Changed => {
                self.after_silence = None;
                if silent.is_none_or(|silent| silent >= SOON_SILENT) {
                    self.rejoin();
                }
                endpoint.handle_host_event(HostEvent::NetworkChanged { local: None }, now);
            }
            InterfaceCheck::Same => {}
        }
        let long = Duration::from_nanos(REJOIN_EVERY.as_nanos());
        if silent.is_some_and(|silent| silent >= REJOIN_EVERY) && self.rejoined_at.elapsed() >= long {
            self.rejoin();
            self.after_silence = silent.map(|silent| (self.rejoined_at, silent));
        }
        Ok(())
    }

    fn receive(&mut self, each: &mut dyn FnMut(&mut [u8], &Meta)) -> Result<usize, Error> {
        self.fill()?;
        Ok(self.deliver(each))
    }

    fn reads_on(&self) -> bool {
        true
    }

    fn backlog(&self) -> Result<Option<Backlog>, Error> {
        let base = self.base.socket.backlog()?;
        let others = self.layers.iter().chain(&self.left).map(JoinedGroup::dropped).sum::<u64>();
        Ok(Some(Backlog {
            used: base.used_bytes as u64,
            capacity: base.capacity_bytes as u64,
            dropped: self.dropped + others + u64::from(base.drops),
        }))
    }

    fn follow(&mut self, endpoint: &mut dyn Endpoint, now: Time) {
        if self.differ_from(endpoint.groups())
            && let Err((place, why)) = self.join(endpoint.groups())
        {
            endpoint.handle_host_event(HostEvent::JoinFailed { place, why: &why }, now);
        }
    }

    fn send(&mut self, bytes: &mut Vec<u8>, transmit: Transmit, events: Events<'_>) -> Result<(), Error> {
        for datagram in bytes.chunks(transmit.segment.max(1)) {
            match self.base.socket.send_to(datagram, transmit.to) {
                Ok(_) => self.outage.works(events),
                Err(error) => self.outage.failed(error, events)?,
            }
        }
        Ok(())
    }

    /// Returns `false`: feedback is not held, because it is small and soon outdated.
    fn holds(&self) -> bool {
        false
    }

    fn until(&self, moment: Instant) -> Instant {
        self.outage.until(moment)
    }

    fn watch(&self, watcher: &mut dyn Watcher) {
        for member in std::iter::once(&self.base).chain(&self.layers) {
            watcher.watch(member.socket.as_fd(), Want::Readable);
        }
    }
}

/// Leaves the groups from the top down.
impl Drop for Groups {
    fn drop(&mut self) {
        while self.layers.pop().is_some() {}
    }
}

impl JoinedGroup {
    fn new(group: SocketAddr, socket: GroupSocket) -> JoinedGroup {
        JoinedGroup { group, socket, batch: Batch::new(SLOTS) }
    }

    fn dropped(&self) -> u64 {
        self.socket.backlog().map_or(0, |backlog| backlog.drops.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_net::{Choice, GroupOptions, Membership, SourceOptions, SourceSocket, Waiter, choose};

    /// Returns a base group and two layers on the loopback interface, all joined, and a source.
    fn three(port: u16) -> (Vec<SocketAddr>, Groups, SourceSocket) {
        let groups: Vec<SocketAddr> = (1..=3).map(|n| SocketAddr::from(([239, 255, 78, n], port))).collect();
        let choice: Choice = choose(groups[0].ip(), Some("lo")).expect("there is a loopback interface");
        let options = GroupOptions { receive_buffer: 1 << 20 };
        let base = GroupSocket::open(groups[0], Membership::AnySource, &choice, &options).expect("it joins");
        let mut joined =
            Groups::new(base, Outage::of_listener(groups[0].ip(), None, Duration::from_secs(60)));
        joined.join(&groups[1..]).expect("layers join");
        let options = SourceOptions { ttl: 0, ..SourceOptions::default() };
        let source = SourceSocket::open(groups[0], &choice, &options).expect("a source opens");
        await_stamps(&source, groups[0], &mut joined);
        (groups, joined, source)
    }

    /// Waits until the kernel records arrival times, which begins some time after the first socket has requested them. Before
    /// that, the arrival time of a datagram is the time of reading.
    fn await_stamps(source: &SourceSocket, to: SocketAddr, joined: &mut Groups) {
        let pause = Duration::from_millis(10);
        for _ in 0..500 {
            send(source, 0, to);
            std::thread::sleep(pause);
            let read_at = Instant::now();
            let mut waited = Duration::ZERO;
            let mut each =
                |_: &mut [u8], meta: &Meta| waited = read_at.saturating_duration_since(meta.received_at);
            joined.receive(&mut each).expect("it receives");
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

    /// Receives datagrams until `count` have arrived; returns the first byte of each.
    fn receive(joined: &mut Groups, count: usize) -> Vec<u8> {
        let (mut waiter, mut got) = (Waiter::new(), Vec::new());
        let end = Instant::now() + Duration::from_secs(10);
        while got.len() < count && Instant::now() < end {
            if joined.receive(&mut |bytes, _| got.push(bytes[0])).expect("it receives") == 0 {
                waiter.clear();
                joined.watch(&mut waiter);
                waiter.wait_watched(Some(Instant::now() + Duration::from_millis(50))).expect("it waits");
            }
        }
        got
    }

    #[test]
    fn datagrams_of_all_layers_are_read_in_arrival_order() {
        let (groups, mut joined, source) = three(47_281);
        let mut order = 0x9e37_79b9_u32;
        for number in 0..120 {
            order = order.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            send(&source, number, groups[(order >> 24) as usize % 3]);
        }
        assert_eq!(receive(&mut joined, 120), (0..120).collect::<Vec<u8>>());
    }

    #[test]
    fn datagrams_received_before_a_layer_is_left_are_read() {
        let (groups, mut joined, source) = three(47_282);
        (0..30).for_each(|number| send(&source, number, groups[2]));
        assert!(joined.differ_from(&groups[1..2]) && !joined.differ_from(&groups[1..]));
        joined.join(&groups[1..2]).expect("leaving works");
        assert!(!joined.differ_from(&groups[1..2]));
        send(&source, 77, groups[2]);
        send(&source, 30, groups[1]);
        send(&source, 31, groups[0]);
        assert_eq!(receive(&mut joined, 32), (0..32).collect::<Vec<u8>>());
        joined.receive(&mut |_, _| ()).expect("it receives");
        assert!(joined.left.is_empty(), "the socket is closed");
        joined.join(&groups[1..]).expect("it joins again");
        send(&source, 5, groups[2]);
        assert_eq!(receive(&mut joined, 1), [5]);
    }

    #[test]
    fn sockets_are_closed_before_the_report_of_a_session_is_made() {
        let (groups, joined, source) = three(47_285);
        drop(source);
        let is_free = || Ok(std::net::UdpSocket::bind(groups[0]).is_ok());
        assert!(!is_free().expect("it answers"), "the receiver has the port");
        assert!(crate::run::ReceiverSockets::Groups(joined).explain(is_free).expect("no outage"));
    }

    #[test]
    fn failed_join_returns_the_layer_and_keeps_lower_layers_joined() {
        let (groups, mut joined, source) = three(47_283);
        joined.join(&[]).expect("leaving works");
        let _taken = std::net::UdpSocket::bind((groups[2].ip(), 47_284)).expect("the port is free");
        let wanted = [groups[1], SocketAddr::new(groups[2].ip(), 47_284)];
        let (place, error) = joined.join(&wanted).expect_err("another program has it");
        assert_eq!(place, 1);
        assert!(matches!(error, NetError::PortTaken { .. }), "{error}");
        send(&source, 9, groups[1]);
        assert_eq!(receive(&mut joined, 1), [9]);
    }
}
