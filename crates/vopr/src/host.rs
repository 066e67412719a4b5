//! Hosts of a world: each has a clock, an address, a socket buffer, and a process.

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

/// Kernel memory charged for a datagram of up to 1500 bytes (on Linux, half a page plus its record), in bytes.
const COST: u64 = 2304;

/// Maximum number of turns of a process at one instant. A process that reaches this number is assumed to loop forever.
const MAX_TURNS: u32 = 20_000;

/// Zero of the world's time, in nanoseconds since 1970.
const UNIX: u64 = 1_800_000_000_000_000_000;

const MILLION: u128 = 1_000_000;

/// The role of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A source.
    Source,
    /// A relay.
    Relay,
    /// A receiver.
    Receiver,
}

/// A running process.
pub enum Process {
    /// A source process.
    Source(Box<Source>),
    /// A receiver process.
    Receiver(Box<Receiver>),
    /// A relay process.
    Relay(Passing),
}

/// State of a relay's process.
pub struct Passing {
    /// State that the relay's sessions share.
    pub handle: RelayHandle,
    /// Sessions by index; `None` for a free index.
    pub sessions: Vec<Option<Relay>>,
    /// Number of endpoints per session: the upstream endpoint, and one for each branch.
    pub each: usize,
    /// Index of the session that waits for a source.
    pub looking: Option<usize>,
    /// Port at which hosts request to be served by unicast.
    pub port: Option<Port>,
}

/// State of a relay's unicast port.
pub struct Port {
    /// Time of the next check for hosts to invite; never if the relay invites none.
    pub invites_at: Time,
    /// Datagrams to send, with their destinations.
    pub out: Vec<(Vec<u8>, SocketAddr)>,
}

/// The UDP port at which hosts request to be served by a relay.
pub const LISTENS: u16 = 5780;

/// Endpoint number of the relay's unicast port. `CHILDREN` is the first number of the endpoints that serve children.
pub const PORT: usize = 1 << 30;
const CHILDREN: usize = 1 << 16;

/// Maximum number of children per session of a relay.
const MAX_CHILDREN: usize = 1 << 10;

/// Interval of checks for hosts to invite.
const INVITES_EVERY: Span = Span::from_millis(100);

/// Delay before a full output is polled again.
const ROOM_CHECK: Span = Span::from_millis(10);

/// Result of a process.
#[derive(Debug)]
pub enum Ended {
    /// Report of a source.
    Source(Box<Result<SendReport, Error>>),
    /// Report of a receiver.
    Receiver(Box<Result<ReceiveReport, Error>>),
}

/// A clock with a rate error and an offset.
#[derive(Debug, Clone, Copy)]
pub struct HostClock {
    /// Start time of the process.
    origin: Time,
    /// Rate error, in millionths; positive is fast.
    pub fast: i64,
    /// Error of the time of day, in seconds; positive is ahead.
    pub ahead: i64,
}

impl HostClock {
    /// Returns the time on this clock since the process started.
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

    /// Returns the number of units of time by which this clock advances in a million units of true time.
    fn parts(&self) -> u128 {
        (MILLION as i64 + self.fast) as u128
    }

    /// Returns the time of day on this clock, in nanoseconds since 1970.
    pub fn unix_nanos(&self, now: Time) -> u64 {
        (UNIX + now.as_nanos()).saturating_add_signed(self.ahead * 1_000_000_000)
    }
}

/// One or more datagrams that a process sends.
pub struct Sent {
    /// Number of the sending endpoint.
    pub endpoint: usize,
    /// The bytes of all datagrams, one after the other.
    pub bytes: Vec<u8>,
    /// Destination, and length of each datagram.
    pub transmit: Transmit,
}

struct Waiting {
    endpoint: usize,
    bytes: Vec<u8>,
    from: SocketAddr,
    arrived: Time,
}

/// A simulated host.
pub struct Host {
    /// Role of the host.
    pub role: Role,
    /// Name of the host.
    pub name: String,
    /// Address and port.
    pub address: SocketAddr,
    /// Addresses of hosts that may serve this host by unicast.
    pub parents: Vec<SocketAddr>,
    /// Whether the host waits for an invitation.
    pub invited: bool,
    /// Hosts that this host invites.
    pub invites: Vec<SocketAddr>,
    /// The process; `None`: no process runs.
    pub process: Option<Process>,
    /// Clock of the host.
    pub clock: HostClock,
    /// Pending file jobs of the receiver; `None`: jobs run at once.
    pub jobs: Option<Jobs>,
    /// Completion time of the first job.
    job_at: Time,
    /// The process is paused until this time.
    pub stopped_until: Time,
    /// Random stream of the host's sessions.
    pub rng: Rng,
    /// Random stream of the host's path.
    pub path_rng: Rng,
    /// Size of the socket's buffer, in bytes as the kernel counts them.
    pub buffer: u64,
    waiting: VecDeque<Waiting>,
    dropped: u64,
    backlog_at: Time,
    /// End of the pause after a full output. Until then, no datagrams are taken from the buffer.
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

    /// Returns the source address of an endpoint. A relay's branches have separate ports.
    pub fn place(&self, endpoint: usize) -> SocketAddr {
        match endpoint {
            0 => self.address,
            CHILDREN.. => self.asked_at(),
            other => SocketAddr::new(self.address.ip(), 6_000 + other as u16),
        }
    }

    /// Returns the address at which hosts request to be served by this relay.
    pub fn asked_at(&self) -> SocketAddr {
        SocketAddr::new(self.address.ip(), LISTENS)
    }

    /// Returns the number of the endpoint that receives a datagram from `from` to `to`.
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

    /// Returns the number of endpoints of the process, without the endpoints that serve children.
    pub fn endpoints(&self) -> usize {
        match &self.process {
            Some(Process::Relay(relay)) => relay.each * relay.sessions.len(),
            Some(_) => 1,
            None => 0,
        }
    }

    /// Returns the index of this endpoint within its session. The upstream endpoint has index 0.
    pub fn part(&self, endpoint: usize) -> usize {
        match &self.process {
            Some(Process::Relay(_)) if endpoint >= CHILDREN => endpoint,
            Some(Process::Relay(relay)) => endpoint % relay.each,
            _ => endpoint,
        }
    }

    /// Returns the endpoints that receive packets of the group.
    pub fn ears(&self) -> impl Iterator<Item = usize> {
        let receives = move |endpoint: &usize| match &self.process {
            Some(Process::Relay(relay)) if !self.parents.is_empty() => {
                relay.sessions[endpoint / relay.each].as_ref().is_some_and(Relay::receives_group)
            }
            _ => true,
        };
        (0..self.endpoints()).filter(|endpoint| self.part(*endpoint) == 0).filter(receives)
    }

    /// Returns four random numbers for a session.
    pub fn draw(&mut self) -> [u64; 4] {
        std::array::from_fn(|_| self.rng.bits())
    }

    /// Starts a process.
    pub fn begin(&mut self, process: Process, now: Time) {
        self.process = Some(process);
        (self.jobs, self.job_at) = (None, Time::NEVER);
        self.clock.origin = now;
        (self.backlog_at, self.full_until) = (Time::ZERO, Time::ZERO);
        self.dropped = 0;
        self.waiting.clear();
    }

    /// Kills the process and closes its sockets.
    pub fn kill(&mut self) {
        self.process = None;
        self.jobs = None;
        self.waiting.clear();
        self.stopped_until = Time::ZERO;
    }

    /// Delivers a datagram. Returns `false` if the socket's buffer is full or no process runs.
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

    /// Whether the host receives packets of this layer.
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

    /// Returns the time at which the process has to run next.
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

    /// Changes the address of the host.
    pub fn move_to(&mut self, address: SocketAddr, now: Time) {
        self.address = address;
        let here = self.clock.local(now);
        let local = Some(address);
        for (_, endpoint) in endpoints(&mut self.process).iter_mut().take(1) {
            endpoint.handle_host_event(HostEvent::NetworkChanged { local }, here);
        }
    }

    /// Stops the process gracefully.
    pub fn stop(&mut self, now: Time) {
        let here = self.clock.local(now);
        endpoints(&mut self.process).iter_mut().for_each(|(_, endpoint)| endpoint.stop(here));
    }

    /// Completes the first job if it has waited for `takes`. Returns whether the job was completed.
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

    /// Runs the process until its next deadline. A file job takes `job_takes`. Returns `Err` if the process misbehaves.
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
    /// Returns the endpoints that serve children, with their numbers.
    fn children(&self) -> impl Iterator<Item = (usize, &ServedChild)> {
        self.sessions.iter().enumerate().flat_map(|(place, session)| {
            let children = session.iter().flat_map(|session| &session.children).enumerate();
            children.map(move |(at, child)| (CHILDREN + place * MAX_CHILDREN + at, child))
        })
    }

    /// Sends replies and invitations from the port, and serves hosts that have requested it.
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

    /// Removes sessions that have ended.
    fn let_go(&mut self) {
        for (place, session) in self.sessions.iter_mut().enumerate() {
            if session.as_ref().is_some_and(Relay::is_finished) {
                *session = None;
                self.looking = self.looking.filter(|looking| *looking != place);
            }
        }
    }
}

/// Returns the endpoints of a process that have not ended, with their numbers.
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
                // Skips endpoints that have ended, as the driver does.
                let children = session.children.iter_mut().enumerate();
                for (at, child) in children.filter(|(_, child)| !child.endpoint.is_finished()) {
                    all.push((CHILDREN + place * MAX_CHILDREN + at, &mut *child.endpoint));
                }
            }
        }
    }
    all
}
