//! A source that serves hosts by unicast, with a relay of its session in the same process.
//!
//! ```text
//!   source -- group, on the interface of the session or within this host --> relay --> host
//!                                                                                 \--> host
//! ```
//!
//! Each host is thus a branch with its own rate. Repairs for a host are sent to this host only, and no network needs multicast.

use crate::relay::relay;
use crate::run::random;
use crate::stop::Stop;
use faircast_core::packet::SessionId;
use faircast_net::{choose_towards, interfaces};
use faircast_transport::config::{Multicast, SendConfig, Unicast};
use faircast_transport::error::{Error, StartError, SystemError};
use faircast_transport::event::{
    Event, HostOutcome, HostReport, IncompleteReceiver, ReceiverOutcome, ReceiverReport, RelayBelow,
    SendReport,
};
use faircast_transport::relay::{RelayConfig, RelayEvent, RelayHandle, RelaySource};
use faircast_wire::HopKey;
use faircast_wire::encode::IPV6_HEADERS;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{Receiver, RecvError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Multicast group of sessions that stay within this host. Each session uses a random port.
const WITHIN: [u8; 4] = [239, 255, 70, 3];
const FIRST_PORT: u16 = 49_152;

/// Size of the receive buffer between source and relay, bytes. With a larger buffer, repairs would arrive later.
const BUFFER: usize = 4 << 20;

/// Interval of checks whether all hosts have been notified of the end.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Maximum number of these checks. If a host was not notified within 10 s, the program does not wait any longer.
const LOOKS: u32 = 1000;

/// Minimum MTU assumed for the networks of hosts, bytes.
const MIN_MTU: u32 = 576;

/// Name by which the source reports its own relay.
const NAME: &str = "(by unicast)";

/// The relay of a source that serves hosts.
pub(crate) struct Serving {
    handle: RelayHandle,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), Error>>>,
    events: Mutex<Receiver<RelayEvent>>,
    invited: usize,
    multicast: Multicast,
}

/// Adapts the configuration of a source that serves hosts by unicast: its group, datagram size and expected receivers.
pub(crate) fn prepare(config: &mut SendConfig) {
    let Some(unicast) = &config.unicast else { return };
    if unicast.multicast == Multicast::Not {
        let port = FIRST_PORT + (random()[0] % u64::from(u16::MAX - FIRST_PORT)) as u16;
        config.group = SocketAddr::from((WITHIN, port));
        config.interface = Some(Ipv4Addr::LOCALHOST.to_string());
    }
    // A datagram must fit the path to every host, also over IPv6.
    let largest = smallest_mtu(unicast).map(|mtu| (mtu as usize - IPV6_HEADERS) as u16);
    config.datagram = config.datagram.or(largest);
    let listed = u32::try_from(unicast.invite.len()).unwrap_or(u32::MAX);
    if listed > 0 {
        config.expect = config.expect.or(Some(listed));
    }
}

/// Returns the smallest MTU of the interfaces towards served hosts, but at most the MTU of Ethernet.
fn smallest_mtu(unicast: &Unicast) -> Option<u32> {
    const ETHERNET: u32 = 1500;
    let ways = unicast.invite.iter().filter_map(|host| choose_towards(host.address.ip(), None).ok());
    let mut smallest = ways.map(|choice| choice.chosen.mtu).min();
    if !unicast.listen.is_empty() {
        let all = interfaces().ok()?;
        let carries =
            |at: &SocketAddr, addrs: &[IpAddr]| at.ip().is_unspecified() || addrs.contains(&at.ip());
        let any = all.iter().filter(|interface| {
            interface.up
                && !interface.loopback
                && unicast.listen.iter().any(|at| carries(at, &interface.addrs))
        });
        smallest = any.map(|interface| interface.mtu).chain(smallest).min();
    }
    Some(smallest.unwrap_or(ETHERNET).clamp(MIN_MTU, ETHERNET))
}

impl Serving {
    /// Starts the relay of this session; returns when the relay can receive.
    ///
    /// # Errors
    /// If a port is in use, or the system cannot open a socket.
    pub(crate) fn start(
        unicast: Unicast,
        session: SessionId,
        place: (SocketAddr, Option<String>),
        key: Option<HopKey>,
        idle_timeout: Duration,
    ) -> Result<Serving, Error> {
        let handle = RelayHandle::default();
        handle.take_only(session);
        handle.invite(&unicast.invite);
        let (group, interface) = place;
        let mut source = RelaySource::new(group);
        source.interface = interface;
        let mut config = RelayConfig::new(vec![source]);
        config.key = key;
        config.memory = unicast.memory;
        config.idle_timeout = idle_timeout;
        config.host = NAME.to_owned();
        config.buffer = BUFFER;
        config.listen = listens_at(&unicast);
        config.children = unicast.children;
        config.paced = unicast.multicast == Multicast::Not;
        let stop = Stop::new()?;
        let (say, events) = channel();
        let (ours, their_stop) = (handle.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("faircast unicast".to_owned())
            .spawn(move || {
                let mut emit = |event| {
                    // Sending fails only after the source has ended; then no program needs the event.
                    let _ = say.send(event);
                };
                relay(&config, &ours, &mut emit, &their_stop)
            })
            .map_err(SystemError::Thread)?;
        let (invited, multicast) = (unicast.invite.len(), unicast.multicast);
        let mut serving =
            Serving { handle, stop, thread: Some(thread), events: Mutex::new(events), invited, multicast };
        serving.await_ears()?;
        Ok(serving)
    }

    /// Waits until the relay has opened its sockets.
    fn await_ears(&mut self) -> Result<(), Error> {
        loop {
            match self.events.get_mut().unwrap_or_else(PoisonError::into_inner).recv() {
                Ok(RelayEvent { branch: None, event: Event::Opened { .. }, .. }) => return Ok(()),
                Ok(_) => {}
                Err(RecvError) => return self.join().and(Err(Error::System(SystemError::Panicked))),
            }
        }
    }

    /// Returns the relay's events about hosts, to be reported as the source's own.
    pub(crate) fn events(&self) -> Vec<Event> {
        let concerns_hosts = |reported: RelayEvent| match reported.event {
            Event::Progress(_) | Event::Opened { .. } | Event::Content { .. } => None,
            Event::Joined { .. } if reported.branch.is_none() => None,
            event => Some(event),
        };
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.try_iter().filter_map(concerns_hosts).collect()
    }

    /// Ends the relay after the source has ended and the hosts have been notified. Returns the source's report with the hosts
    /// added.
    ///
    /// # Errors
    /// Errors of the report.
    pub(crate) fn finish(mut self, report: Result<SendReport, Error>) -> Result<SendReport, Error> {
        let is_whole = report.as_ref().is_ok_and(|report| !report.stopped);
        for _ in 0..LOOKS {
            if !is_whole || self.handle.is_idle() {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let mut report = match report {
            Err(Error::Start(StartError::NoReceiver { waited, .. })) if self.multicast == Multicast::Not => {
                return Err(Error::Start(StartError::NoHost { invited: self.invited, waited }));
            }
            report => report?,
        };
        report.hosts = self.handle.hosts();
        leave_out_own(&mut report.relays);
        report.incomplete.retain(|one| one.host != NAME || self.invited == 0);
        let incomplete = report.hosts.iter().filter(|host| host.outcome == HostOutcome::Incomplete);
        let named = incomplete.map(|host| IncompleteReceiver {
            host: host.host.clone(),
            reason: "incomplete when the session ended".to_owned(),
        });
        report.incomplete.extend(named);
        report.each.retain(|one| one.host != NAME || self.invited == 0);
        report.each.extend(report.hosts.iter().map(of_invited));
        // The result of the relay does not affect the result of the source's session.
        let _ = self.join();
        Ok(report)
    }

    fn join(&mut self) -> Result<(), Error> {
        self.stop.stop();
        self.thread
            .take()
            .map_or(Ok(()), |thread| thread.join().unwrap_or(Err(Error::System(SystemError::Panicked))))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // The result of the relay is ignored when the session is dropped.
        let _ = self.join();
    }
}

/// Removes the relay of this process from an event of the source.
pub(crate) fn without_own_relay(mut event: Event) -> Event {
    if let Event::Progress(progress) = &mut event {
        leave_out_own(&mut progress.relays);
    }
    event
}

/// Removes the relay of this process from a list. Relays downstream of it move one level up.
fn leave_out_own(relays: &mut Vec<RelayBelow>) {
    let mut behind = false;
    relays.retain_mut(|relay| {
        if relay.depth == 1 {
            behind = relay.host == NAME;
            return !behind;
        }
        relay.depth -= u8::from(behind);
        true
    });
}

/// Returns the report of an invited host, for the list of all receivers.
fn of_invited(host: &HostReport) -> ReceiverReport {
    let (outcome, reason) = match host.outcome {
        HostOutcome::Done => (ReceiverOutcome::Verified, None),
        HostOutcome::Incomplete => (ReceiverOutcome::Incomplete, Some("incomplete when the session ended")),
        HostOutcome::Unanswered => (ReceiverOutcome::Absent, Some("it did not answer the invitation")),
    };
    ReceiverReport {
        address: Some(host.address),
        outcome,
        reason: reason.map(str::to_owned),
        ..ReceiverReport::absent(host.host.clone())
    }
}

/// Returns the addresses at which hosts attach. If only invited hosts attach, the system chooses the port.
fn listens_at(unicast: &Unicast) -> Vec<SocketAddr> {
    let mut listen = unicast.listen.clone();
    let families = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    for any in families {
        let is_needed = unicast.invite.iter().any(|host| host.address.is_ipv4() == any.is_ipv4());
        if is_needed && !listen.iter().any(|at| at.is_ipv4() == any.is_ipv4()) {
            listen.push(SocketAddr::new(any, 0));
        }
    }
    listen
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_transport::config::{Content, InvitedHost};

    fn host(address: &str) -> InvitedHost {
        InvitedHost::new(address.to_owned(), address.parse().expect("an address"))
    }

    #[test]
    fn own_relay_of_a_source_is_removed_from_its_list_of_relays() {
        let relay = |depth, host: &str| RelayBelow {
            depth,
            host: host.to_owned(),
            address: ([192, 0, 2, 7], 5778).into(),
            receivers: 1,
            done: 0,
            rate: faircast_core::time::Rate::from_bps(1e6),
        };
        let mut relays =
            vec![relay(1, NAME), relay(2, "site"), relay(3, "room"), relay(1, "lan"), relay(2, "wing")];
        leave_out_own(&mut relays);
        let left: Vec<_> = relays.iter().map(|relay| (relay.depth, relay.host.as_str())).collect();
        assert_eq!(left, [(1, "site"), (2, "room"), (1, "lan"), (2, "wing")]);
    }

    #[test]
    fn unicast_session_uses_a_local_group_and_small_datagrams() {
        let unicast = Unicast::invite(vec![host("127.0.0.1:5778"), host("127.0.0.2:5778")]);
        let mut config = SendConfig::new(Content::Paths(Vec::new()));
        config.unicast = Some(unicast);
        prepare(&mut config);
        assert_eq!(config.interface.as_deref(), Some("127.0.0.1"));
        assert!(config.group.ip().is_multicast() && config.group.port() >= FIRST_PORT);
        assert_eq!((config.expect, config.datagram), (Some(2), Some(1452)));
        let (mut beside, group) = (config.clone(), "239.1.2.3:5777".parse().expect("a group"));
        let mut unicast = Unicast::listen(Vec::new(), 4);
        unicast.multicast = Multicast::Also;
        (beside.unicast, beside.group, beside.interface) = (Some(unicast), group, None);
        (beside.expect, beside.datagram) = (None, Some(700));
        prepare(&mut beside);
        assert_eq!((beside.group, beside.interface, beside.expect), (group, None, None));
        assert_eq!(beside.datagram, Some(700), "what was asked for");
    }

    #[test]
    fn ipv4_and_ipv6_hosts_are_invited_from_separate_sockets() {
        let both = Unicast::invite(vec![host("192.0.2.7:5778"), host("[2001:db8::7]:5778")]);
        let ports: Vec<_> = listens_at(&both).iter().map(ToString::to_string).collect();
        assert_eq!(ports, ["0.0.0.0:0", "[::]:0"]);
        let at = "0.0.0.0:5778".parse().expect("an address");
        assert_eq!(listens_at(&Unicast::listen(vec![at], 4)), [at]);
        let mut with_port = both;
        with_port.listen = vec![at];
        assert_eq!(listens_at(&with_port).len(), 2);
    }
}
