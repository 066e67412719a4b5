//! Sessions for a simulated world: the same as on real sockets, but whoever makes them says what was drawn, what time it is and
//! where packets leave, and drives them through [`Endpoint`]. No part of the interface.

pub use crate::object::host::disk::{Disk, Failure, Faults, Op, Verdict};
pub use crate::system::{Monotonic, Random};

use crate::config::{InvitedHost, ReceiveConfig, SendConfig};
use crate::datagram::overhead;
use crate::drive::{AtHost, check, receiver_at, source_at};
use crate::endpoint::Endpoint;
use crate::ends::{Input, Output};
use crate::error::Error;
use crate::event::{Event, ReceiveReport, SendReport};
use crate::receiver::ReceiverSession;
use crate::relay::{
    Agent, AgentChild, BranchPlace, Child, ExitSetup, Hop, HopExit, RelayConfig, RelayHandle, RelayRole,
    Shared, Upstream, above_at, branch_at,
};
use crate::source::SourceSession;
use crate::worker::{Job, Worker};
use faircast_core::packet::{ReceiverId, SessionId};
use faircast_core::time::Time;
use faircast_wire::{Message, Name, Newest, parse};
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The host that a session starts at.
#[derive(Debug, Clone)]
pub struct Host {
    /// Numbers that it has drawn for this session.
    pub random: [u64; 4],
    /// Where packets leave.
    pub local: SocketAddr,
    /// The largest datagram, in bytes, and source symbols of a block.
    pub cut: (usize, u16),
    /// Nanoseconds since 1970.
    pub unix_nanos: u64,
    /// The session's time.
    pub now: Time,
    /// Where its files lie.
    pub disk: Disk,
    /// Jobs of a receiver go there; without it each runs at once.
    pub jobs: Option<Jobs>,
}

/// Jobs of a receiver, which the world runs when their time has come.
#[derive(Clone, Default)]
pub struct Jobs(Arc<Mutex<VecDeque<Job>>>);

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Jobs")
    }
}

impl Jobs {
    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Run the one that has waited longest.
    pub fn run_next(&self) {
        let job = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        if let Some(job) = job {
            job();
        }
    }

    fn worker(&self) -> Worker {
        let jobs = Arc::clone(&self.0);
        Worker::new(move |_, job| jobs.lock().unwrap_or_else(PoisonError::into_inner).push_back(job))
    }
}

/// A source.
pub struct Source(SourceSession);

impl Source {
    /// What [`send`](crate::send) would drive on this host.
    ///
    /// # Errors
    /// As [`send`](crate::send).
    pub fn new(mut config: SendConfig, host: &Host, events: &mut dyn FnMut(Event)) -> Result<Source, Error> {
        let groups = check(&mut config)?;
        let (datagram, symbols) = host.cut;
        let Host { random, local, unix_nanos, now, .. } = *host;
        let at = AtHost { random, local, datagram, symbols, unix_nanos, now, disk: host.disk.clone() };
        source_at(config, groups, &at, events).map(Source)
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        self.0.id()
    }

    /// To drive it.
    pub fn endpoint(&mut self) -> &mut dyn Endpoint {
        &mut self.0
    }

    /// When it wants to be called.
    pub fn wake_at(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// How it ended.
    ///
    /// # Errors
    /// Why it did not end well.
    pub fn report(self) -> Result<SendReport, Error> {
        self.0.report()
    }
}

/// A receiver.
pub struct Receiver(ReceiverSession);

impl Receiver {
    /// What [`receive`](crate::receive) would drive on this host.
    pub fn new(config: ReceiveConfig, host: &Host) -> Receiver {
        Receiver(receiver_at(
            config,
            (host.jobs.as_ref().map_or_else(Worker::at_once, Jobs::worker), host.disk.clone()),
            host.random,
            host.unix_nanos / 1_000_000_000,
            host.now,
        ))
    }

    /// To drive it.
    pub fn endpoint(&mut self) -> &mut dyn Endpoint {
        &mut self.0
    }

    /// When it wants to be called.
    pub fn wake_at(&self, now: Time) -> Time {
        self.0.poll_timeout(now)
    }

    /// Whether it hears its session's group, although it has a parent.
    pub fn hears_group(&self) -> bool {
        self.0.hears_group()
    }

    /// How many layers above the base layer it has joined.
    pub fn layers(&self) -> usize {
        self.0.groups().len()
    }

    /// How it ended.
    ///
    /// # Errors
    /// Why it did not end well.
    pub fn report(self) -> Result<ReceiveReport, Error> {
        self.0.report()
    }
}

/// What a relay's process does for one session, or the next that it finds: what hears above first, and then the branches.
pub struct Relay {
    /// To drive them, one after the other.
    pub endpoints: Vec<Box<dyn Endpoint>>,
    /// Those of them that serve hosts which have asked, in the order in which they did.
    pub children: Vec<ServedChild>,
    handle: RelayHandle,
    shared: Shared,
    id: ReceiverId,
    config: RelayConfig,
}

/// A host that is served by unicast.
pub struct ServedChild {
    /// Where it is.
    pub address: SocketAddr,
    /// Where it has asked, and is answered from.
    pub local: SocketAddr,
    /// To drive what serves it.
    pub endpoint: Box<dyn Endpoint>,
}

impl Relay {
    /// What [`relay`](crate::relay()) would drive for the first of its sources, with branches that send from these places to its
    /// group. All that one process does has the same handle.
    pub fn new(
        config: &RelayConfig,
        handle: &RelayHandle,
        branches: &[SocketAddr],
        host: &Host,
        seeds: &[[u64; 2]],
    ) -> Relay {
        let id = ReceiverId::new(u64::from(host.random[0] as u32 | 1)).expect("an odd number is not zero");
        let (own, handle, key) = (handle.clone(), handle.clone(), config.key.clone());
        let shared = match config.role {
            RelayRole::Repeater => Shared::new(handle, branches.len(), config.memory, None),
            RelayRole::Router(kind) => {
                Shared::of_hop(handle, Hop::new(id, kind, key, host.random[3]), branches.len())
            }
            RelayRole::Agent => {
                handle.be_agent();
                let [boot, seed, ..] = handle.draw();
                Shared::of_agent(handle, Agent::new(id, boot, key, seed))
            }
        };
        if config.paced {
            shared.hold_above(config.memory as u64 / 2);
        }
        let source = &config.sources[0];
        let when = (host.unix_nanos / 1_000_000_000, host.now);
        let above = above_at((config, source), &shared, id, host.random, when);
        let mut endpoints: Vec<Box<dyn Endpoint>> = vec![Box::new(Upstream::new(above, shared.clone()))];
        for (place, (&local, &[boot, seed])) in branches.iter().zip(seeds).enumerate() {
            if shared.is_hop() {
                shared.announces_from(local);
                let setup = ExitSetup { boot, local, overhead: overhead(source.group) };
                let exit = shared.with_hop(|hop| hop.add_exit(setup)).unwrap_or_default();
                endpoints.push(Box::new(HopExit::new(shared.clone(), place, exit, source.group)));
                continue;
            }
            let at = BranchPlace { place, to: source.group, local, ttl: 1, max: None, boot, seed };
            endpoints.push(Box::new(branch_at(config, &shared, id, at)));
        }
        Relay { endpoints, children: Vec::new(), handle: own, shared, id, config: config.clone() }
    }

    /// Serve those who have asked since.
    pub fn grow(&mut self) {
        for child in self.shared.new_children() {
            let Child { address, local, .. } = child;
            let place = self.shared.add_branch(&child);
            let endpoint: Box<dyn Endpoint> = if self.shared.is_agent() {
                Box::new(AgentChild::new(self.shared.clone(), place, child.id, address))
            } else {
                let [boot, seed, ..] = self.handle.draw();
                let at = BranchPlace { place, to: address, local, ttl: 1, max: None, boot, seed };
                Box::new(branch_at(&self.config, &self.shared, self.id, at))
            };
            self.children.push(ServedChild { address, local, endpoint });
        }
    }

    /// Whether what hears above hears the group, although it has a parent.
    pub fn hears_group(&self) -> bool {
        self.endpoints[0].hears_group()
    }

    /// Whether all of it is over; the session may be found again then.
    pub fn is_over(&self) -> bool {
        let children = self.children.iter().map(|child| &child.endpoint);
        let over = self.endpoints.iter().chain(children).all(|endpoint| endpoint.is_over());
        if over {
            self.shared.release();
        }
        over
    }
}

/// Serve so many hosts that ask, and invite these: of a relay's process, before anything else.
pub fn open_port(handle: &RelayHandle, children: usize, invite: &[InvitedHost]) {
    handle.serve(children);
    handle.invite(invite);
}

/// Pass this session on and no other, as a source's own relay does.
pub fn pass_on_only(handle: &RelayHandle, session: SessionId) {
    handle.take_only(session);
}

/// What is answered to a datagram that comes to a relay's port from one address at another.
pub fn answer_at_port(
    handle: &RelayHandle,
    bytes: &[u8],
    (from, local): (SocketAddr, SocketAddr),
) -> Option<Vec<u8>> {
    match parse(bytes, &Newest::default()) {
        Ok((_, Message::Attach(attach))) => handle.answer(&attach, (from, local)),
        _ => None,
    }
}

/// Invitations that are to leave a relay's port now, and where to.
pub fn invitations(handle: &RelayHandle, name: &str) -> Vec<(Vec<u8>, SocketAddr)> {
    handle.invitations(true, Name::clipped(name))
}

/// A relay's process with this clock and these random numbers.
pub fn relay_handle(time: Monotonic, random: Random) -> RelayHandle {
    RelayHandle::at(time, random)
}

/// An input that the session polls in its own thread: `WouldBlock` means that it has nothing now.
pub fn polled_input(reader: impl Read + Send + 'static, time: Monotonic) -> Input {
    Input::polling(reader, time)
}

/// An output that the session polls in its own thread: `WouldBlock` means that it takes nothing now. After a flush it takes everything.
pub fn polled_output(writer: impl Write + Send + 'static) -> Output {
    Output::polling(writer)
}
