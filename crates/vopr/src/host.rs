//! Hosts of a world: a clock, an address, the buffer of a socket, and a process.

use crate::relay::{Jobs, Relay, ServedChild};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_net::Ecn;
use faircast_transport::endpoint::{Backlog, Datagram, Endpoint, HostEvent, Transmit};
use faircast_transport::relay::RelayHandle;
use faircast_transport::session::{Receiver, Source};
use faircast_transport::{Error, Event, ReceiveReport, SendReport};
use faircast_wire::Name;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Kernel memory charged for a datagram of up to 1500 bytes (Linux: half a page and its own record).
const COST: u64 = 2304;

/// A process with this number of turns at one moment does not let time pass.
const MAX_TURNS: u32 = 20_000;

/// Session time zero of a host whose clock is right, in nanoseconds since 1970.
const UNIX: u64 = 1_800_000_000_000_000_000;

const MILLION: u128 = 1_000_000;

/// The role of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A source.
    Source,
    /// A relay with this number of branches.
    Relay,
    /// A receiver.
    Receiver,
}

/// A process.
pub enum Process {
    /// A source's.
    Source(Box<Source>),
    /// A receiver's.
    Receiver(Box<Receiver>),
    /// A relay's: for each session that it has found, and the next.
    Relay(Passing),
}

/// State of a relay's process.
pub struct Passing {
    /// The shared state of its sessions.
    pub handle: RelayHandle,
    /// Sessions; the place of one that is over is free.
    pub sessions: Vec<Option<Relay>>,
    /// The number of endpoints of each: the upstream one, and the branches.
    pub each: usize,
    /// The session that looks for a source.
    pub looking: Option<usize>,
    /// The port at which hosts ask to be served.
    pub port: Option<Port>,
}

/// A relay's port.
pub struct Port {
    /// When to look for the next host to invite; never when it invites nobody.
    pub invites_at: Time,
    /// Datagrams to send, with their destinations.
    pub out: Vec<(Vec<u8>, SocketAddr)>,
}

/// The port at which relays are asked.
pub const LISTENS: u16 = 5780;

/// The number of that port among endpoints, and of the first that serves a child.
pub const PORT: usize = 1 << 30;
const CHILDREN: usize = 1 << 16;

/// Maximum number of children served in one session of a relay's process.
const MAX_CHILDREN: usize = 1 << 10;

/// The interval of checks for hosts to invite.
const INVITES_EVERY: Span = Span::from_millis(100);

/// The delay before a reader that takes nothing now is asked again.
const ROOM_CHECK: Span = Span::from_millis(10);

/// How a process ended.
#[derive(Debug)]
pub enum Ended {
    /// A source's.
    Source(Box<Result<SendReport, Error>>),
    /// A receiver's.
    Receiver(Box<Result<ReceiveReport, Error>>),
}

/// A clock that is never exact.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    /// When the process started.
    origin: Time,
    /// Its rate error, in millionths; positive is fast.
    pub fast: i64,
    /// The error of its time of day, in seconds; positive is ahead.
    pub ahead: i64,
}

impl HostClock {
    /// Returns the time it shows, since the process started.
    pub fn local(&self, now: Time) -> Time {
        let span = u128::from(now.since(self.origin).as_nanos());
        Time::from_nanos((span * self.parts() / MILLION) as u64)
    }

    /// Returns the first moment at which the local clock shows this time.
    fn global(&self, here: Time) -> Time {
        if here.is_never() {
            return here;
        }
        let span = (u128::from(here.as_nanos()) * MILLION).div_ceil(self.parts());
        self.origin + Span::from_nanos(u64::try_from(span).unwrap_or(u64::MAX / 2))
    }

    /// Returns its progress in a million units of true time.
    fn parts(&self) -> u128 {
        (MILLION as i64 + self.fast) as u128
    }

    /// Returns nanoseconds since 1970, as it shows them.
    pub fn unix_nanos(&self, now: Time) -> u64 {
        (UNIX + now.as_nanos()).saturating_add_signed(self.ahead * 1_000_000_000)
    }
}

/// A message of a process: its endpoint, and its destination.
pub struct Sent {
    /// The endpoint.
    pub endpoint: usize,
    /// The bytes, and the length of each datagram.
    pub bytes: Vec<u8>,
    /// See there.
    pub transmit: Transmit,
}

struct Waiting {
    endpoint: usize,
    bytes: Vec<u8>,
    from: SocketAddr,
    arrived: Time,
}

/// A host.
pub struct Host {
    /// Its role.
    pub role: Role,
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// Hosts that may serve it by unicast.
    pub parents: Vec<SocketAddr>,
    /// It waits to be invited.
    pub invited: bool,
    /// Hosts that it invites.
    pub invites: Vec<SocketAddr>,
    /// The process, if one runs.
    pub process: Option<Process>,
    /// Its clock.
    pub clock: HostClock,
    /// Jobs of its receiver on files, where they take time.
    pub jobs: Option<Jobs>,
    /// When the first of them is done.
    job_at: Time,
    /// It does nothing until then.
    pub stopped_until: Time,
    /// Random numbers for its sessions.
    pub rng: Rng,
    /// Random numbers for its path.
    pub path_rng: Rng,
    /// Bytes of its socket's buffer, as the kernel counts.
    pub buffer: u64,
    waiting: VecDeque<Waiting>,
    dropped: u64,
    backlog_at: Time,
    /// The output is not read: nothing is taken in until then.
    full_until: Time,
}

impl Host {
    /// Returns a host without a process.
    pub fn new(role: Role, index: usize, name: String, seed: u64) -> Host {
        let port = match role {
            Role::Source => 5777,
            Role::Receiver => 5778,
            Role::Relay => 5779,
        };
        Host {
            role,
            name,
            address: SocketAddr::from(([10, 1, 0, 1 + index as u8], port)),
            parents: Vec::new(),
            invited: false,
            invites: Vec::new(),
            process: None,
            clock: HostClock { origin: Time::ZERO, fast: 0, ahead: 0 },
            jobs: None,
            job_at: Time::NEVER,
            stopped_until: Time::ZERO,
            rng: Rng::new(seed, 1 << 33 | index as u64),
            path_rng: Rng::new(seed, 1 << 34 | index as u64),
            buffer: 1 << 20,
            waiting: VecDeque::new(),
            dropped: 0,
            backlog_at: Time::ZERO,
            full_until: Time::ZERO,
        }
    }

    /// Returns the source address of an endpoint: those of a relay have ports of their own.
    pub fn place(&self, endpoint: usize) -> SocketAddr {
        match endpoint {
            0 => self.address,
            CHILDREN.. => self.asked_at(),
            other => SocketAddr::new(self.address.ip(), 6_000 + other as u16),
        }
    }

    /// Returns the address at which a relay is asked.
    pub fn asked_at(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), LISTENS)
    }

    /// Returns the endpoint to which a datagram from there belongs.
    pub fn endpoint_at(&self, to: SocketAddr, from: SocketAddr) -> Option<usize> {
        if let Some(Process::Relay(relay)) = &self.process
            && relay.port.is_some()
            && to == self.asked_at()
        {
            let is_of = |child: &ServedChild| child.address == from && !child.endpoint.is_finished();
            return Some(relay.children().find(|(_, child)| is_of(child)).map_or(PORT, |(at, _)| at));
        }
        (0..self.endpoints()).find(|endpoint| self.place(*endpoint) == to)
    }

    /// Returns the number of endpoints of the process, without those that serve children.
    pub fn endpoints(&self) -> usize {
        match &self.process {
            Some(Process::Relay(relay)) => relay.each * relay.sessions.len(),
            Some(_) => 1,
            None => 0,
        }
    }

    /// Returns the index of this endpoint within its session: the upstream one is the first.
    pub fn part(&self, endpoint: usize) -> usize {
        match &self.process {
            Some(Process::Relay(_)) if endpoint >= CHILDREN => endpoint,
            Some(Process::Relay(relay)) => endpoint % relay.each,
            _ => endpoint,
        }
    }

    /// Returns the endpoints that receive packets to the group.
    pub fn ears(&self) -> impl Iterator<Item = usize> {
        let receives = move |endpoint: &usize| match &self.process {
            Some(Process::Relay(relay)) if !self.parents.is_empty() => {
                relay.sessions[endpoint / relay.each].as_ref().is_some_and(Relay::receives_group)
            }
            _ => true,
        };
        (0..self.endpoints()).filter(|endpoint| self.part(*endpoint) == 0).filter(receives)
    }

    /// Draws numbers for a session.
    pub fn draw(&mut self) -> [u64; 4] {
        std::array::from_fn(|_| self.rng.bits())
    }

    /// Begins a process.
    pub fn begin(&mut self, process: Process, now: Time) {
        self.process = Some(process);
        (self.jobs, self.job_at) = (None, Time::NEVER);
        self.clock.origin = now;
        (self.backlog_at, self.full_until) = (Time::ZERO, Time::ZERO);
        self.dropped = 0;
        self.waiting.clear();
    }

    /// Ends the process, and its sockets with it.
    pub fn kill(&mut self) {
        self.process = None;
        self.jobs = None;
        self.waiting.clear();
        self.stopped_until = Time::ZERO;
    }

    /// Delivers a datagram; returns whether there was room for it.
    pub fn put(&mut self, endpoint: usize, bytes: Vec<u8>, from: SocketAddr, now: Time) -> bool {
        if self.process.is_none() {
            return false;
        }
        let fits = self.used() <= self.buffer;
        if fits {
            self.waiting.push_back(Waiting { endpoint, bytes, from, arrived: now });
        }
        self.dropped += u64::from(!fits);
        fits
    }

    fn used(&self) -> u64 {
        self.waiting.len() as u64 * COST
    }

    /// Whether packets of this layer arrive here.
    pub fn takes(&self, layer: usize) -> bool {
        match &self.process {
            Some(Process::Receiver(receiver)) if self.invited || !self.parents.is_empty() => {
                layer == 0 && receiver.receives_group()
            }
            Some(Process::Receiver(receiver)) => layer <= receiver.layers(),
            Some(_) => layer == 0,
            None => false,
        }
    }

    /// Returns when it has to be called.
    pub fn next_timeout(&self, now: Time) -> Time {
        let here = self.clock.local(now);
        let at = match &self.process {
            None => return Time::NEVER,
            _ if !self.waiting.is_empty() && now >= self.full_until => return now.max(self.stopped_until),
            Some(Process::Source(source)) => source.next_timeout(here),
            Some(Process::Receiver(receiver)) => receiver.next_timeout(here),
            Some(Process::Relay(relay)) => {
                let all = relay.sessions.iter().flatten().flat_map(|session| &session.endpoints);
                let all = all.chain(relay.children().map(|(_, child)| &child.endpoint));
                let open = all.filter(|endpoint| !endpoint.is_finished());
                let invites = relay.port.as_ref().map_or(Time::NEVER, |port| port.invites_at);
                open.map(|endpoint| endpoint.poll_timeout(here)).min().unwrap_or(Time::NEVER).min(invites)
            }
        };
        let at = if at <= here { now } else { self.clock.global(at) };
        let at = if self.waiting.is_empty() { at } else { at.min(self.full_until) };
        let at = at.min(self.job_at.max(now));
        at.max(self.stopped_until)
    }

    /// Gives the host another address.
    pub fn move_to(&mut self, address: SocketAddr, now: Time) {
        self.address = address;
        let here = self.clock.local(now);
        let local = Some(address);
        for (_, endpoint) in endpoints(&mut self.process).iter_mut().take(1) {
            endpoint.handle_host_event(HostEvent::NetworkChanged { local }, here);
        }
    }

    /// Ends the process in good order.
    pub fn stop(&mut self, now: Time) {
        let here = self.clock.local(now);
        endpoints(&mut self.process).iter_mut().for_each(|(_, endpoint)| endpoint.stop(here));
    }

    /// Completes the first job when it has waited this long; returns whether it did.
    fn run_job(&mut self, now: Time, takes: Span) -> bool {
        let Some(jobs) = self.jobs.as_ref().filter(|jobs| !jobs.is_empty()) else { return false };
        if self.job_at.is_never() {
            self.job_at = now + takes;
        }
        let is_done = now >= self.job_at;
        if is_done {
            self.job_at = Time::NEVER;
            jobs.run_next();
        }
        is_done
    }

    /// Runs everything that is due, where a job on files takes this long. Returns `Err` with a fault of the process.
    pub fn drive(
        &mut self,
        now: Time,
        job_takes: Span,
        sent: &mut Vec<Sent>,
        events: &mut Vec<(usize, Event)>,
    ) -> Result<Option<Ended>, String> {
        let here = self.clock.local(now);
        let mut busy = 0;
        for _ in 0..MAX_TURNS {
            let drained = self.waiting.is_empty();
            let ran = self.run_job(now, job_takes);
            self.take_in((here, now), drained);
            if let Some(Process::Relay(relay)) = &mut self.process {
                relay.serve_port(&self.name, here, sent);
            }
            let (mut again, mut over) = (ran, true);
            for (at, endpoint) in endpoints(&mut self.process) {
                endpoint.handle_timeout(here);
                let mut bytes = Vec::new();
                if let Some(transmit) = endpoint.poll_transmit(here, &mut bytes) {
                    again = true;
                    if bytes.is_empty() || transmit.segment == 0 {
                        return Err(format!("{} wants to send nothing", self.name));
                    }
                    sent.push(Sent { endpoint: at, bytes, transmit });
                }
                events.extend(std::iter::from_fn(|| endpoint.poll_event()).map(|event| (at, event)));
                let is_finished = endpoint.is_finished();
                if !is_finished && endpoint.poll_timeout(here) <= here {
                    (again, busy) = (true, at);
                }
                over &= is_finished;
            }
            if let Some(Process::Relay(relay)) = &mut self.process {
                relay.let_go();
            } else if over {
                return Ok(self.end());
            }
            if !again && !self.run_job(now, job_takes) {
                return Ok(None);
            }
        }
        Err(format!("endpoint {busy} of {} does not let time pass", self.name))
    }

    /// Passes received datagrams to the process.
    fn take_in(&mut self, (here, now): (Time, Time), drained: bool) {
        if let Some(Process::Receiver(receiver)) = &mut self.process
            && !receiver.endpoint().accepts(here)
        {
            self.full_until = now + ROOM_CHECK;
            return;
        }
        let backlog = Backlog { used: self.used(), capacity: self.buffer, dropped: self.dropped };
        let mut waiting: Vec<Waiting> = self.waiting.drain(..).collect();
        if let Some(Process::Relay(Passing { handle, port: Some(port), .. })) = &mut self.process {
            let local = SocketAddr::new(self.address.ip(), LISTENS);
            for one in waiting.extract_if(.., |one| one.endpoint == PORT) {
                let answer = handle.answer(&one.bytes, (one.from, local));
                port.out.extend(answer.map(|bytes| (bytes, one.from)));
            }
        }
        let mut all = endpoints(&mut self.process);
        let Some((_, first)) = all.first_mut() else { return };
        if drained {
            first.handle_host_event(HostEvent::Drained, here);
        } else if here >= self.backlog_at {
            self.backlog_at = here + Span::from_millis(1);
            first.handle_host_event(HostEvent::Backlog(backlog), here);
        }
        for mut one in waiting {
            let arrived = self.clock.local(one.arrived);
            if let Some((_, endpoint)) = all.iter_mut().find(|(at, _)| *at == one.endpoint) {
                let (bytes, from) = (&mut one.bytes[..], one.from);
                endpoint.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived }, here);
            }
        }
    }

    fn end(&mut self) -> Option<Ended> {
        self.waiting.clear();
        if let Some(jobs) = self.jobs.take() {
            while !jobs.is_empty() {
                jobs.run_next(); // a process waits for its jobs
            }
        }
        Some(match self.process.take()? {
            Process::Source(source) => Ended::Source(Box::new(source.report())),
            Process::Receiver(receiver) => Ended::Receiver(Box::new(receiver.report())),
            Process::Relay(_) => return None,
        })
    }
}

impl Passing {
    /// Returns the endpoints that serve children, by number.
    fn children(&self) -> impl Iterator<Item = (usize, &ServedChild)> {
        self.sessions.iter().enumerate().flat_map(|(place, session)| {
            let children = session.iter().flat_map(|session| &session.children).enumerate();
            children.map(move |(at, child)| (CHILDREN + place * MAX_CHILDREN + at, child))
        })
    }

    /// Sends replies and invitations from the port, and serves hosts that have asked.
    fn serve_port(&mut self, name: &str, here: Time, sent: &mut Vec<Sent>) {
        let Some(port) = &mut self.port else { return };
        if here >= port.invites_at {
            port.invites_at = here + INVITES_EVERY;
            port.out.extend(self.handle.invitations(true, Name::clipped(name)));
        }
        for (bytes, to) in port.out.drain(..) {
            let transmit = Transmit { segment: bytes.len(), to, hops: None };
            sent.push(Sent { endpoint: PORT, bytes, transmit });
        }
        self.sessions.iter_mut().flatten().for_each(Relay::grow);
    }

    /// Removes ended sessions.
    fn let_go(&mut self) {
        for (place, session) in self.sessions.iter_mut().enumerate() {
            if session.as_ref().is_some_and(Relay::is_finished) {
                *session = None;
                self.looking = self.looking.filter(|looking| *looking != place);
            }
        }
    }
}

/// Returns its endpoints, by number.
fn endpoints(process: &mut Option<Process>) -> Vec<(usize, &mut dyn Endpoint)> {
    let mut all: Vec<(usize, &mut dyn Endpoint)> = Vec::new();
    match process {
        None => {}
        Some(Process::Source(source)) => all.push((0, source.endpoint())),
        Some(Process::Receiver(receiver)) => all.push((0, receiver.endpoint())),
        Some(Process::Relay(relay)) => {
            for (place, session) in relay.sessions.iter_mut().enumerate() {
                let Some(session) = session else { continue };
                for (at, one) in session.endpoints.iter_mut().enumerate() {
                    all.push((place * relay.each + at, &mut **one));
                }
                // As in the real loop, which removes endpoints that serve nobody any more.
                let children = session.children.iter_mut().enumerate();
                for (at, child) in children.filter(|(_, child)| !child.endpoint.is_finished()) {
                    all.push((CHILDREN + place * MAX_CHILDREN + at, &mut *child.endpoint));
                }
            }
        }
    }
    all
}
