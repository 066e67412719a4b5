//! The world: its hosts, links and scheduled events.

use crate::clock::{Clock, random};
use crate::content::Contents;
use crate::disk::Disks;
use crate::host::{Host, Process, Role, Sent};
use crate::layout::layout;
use crate::live::{Part, Streams};
use crate::log::Log;
use crate::plan::{PacketDamage, Plan, Trouble};
use crate::process::OWN_RELAY;
use crate::{Mutation, Options};
use faircast_core::rng::Rng;
use faircast_core::time::{Span, Time};
use faircast_simnet::{Copies, Happens, Hosts, Link, Network, Ties};
use faircast_transport::Event;
use faircast_transport::system::Random;
use faircast_wire::{GroupKey, Kind as PacketKind, SigningKey, peek};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Duration of a receiver's file job, in operations on its disk.
const JOB_OPERATIONS: u64 = 10;

/// IPv4 and UDP headers, in bytes.
const HEADERS: u64 = 28;

/// Maximum number of datagrams of a world. No session needs this many datagrams.
const MAX_DATAGRAMS: u64 = 400_000;

/// Maximum number of steps per second of virtual time.
const MAX_STEPS: u32 = 300_000;

/// Time within which every process must finish after the end of all faults. A multiple of the sessions' idle timeout is added to
/// this time.
const CALM_LASTS: Span = Span::from_secs(240);
const IDLE_TIMEOUTS: u64 = 4;

/// A violated promise: a fault of faircast, or of this world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The violated promise.
    pub promise: &'static str,
    /// Description of the violation.
    pub seen: String,
}

pub(crate) enum WorldEvent {
    /// Starts the process of a host, unless the process runs already.
    Start(usize),
    /// Starts an episode.
    Episode(usize),
    /// Repairs the disk of a host.
    DiskHeals(usize),
    /// Restores the rate of a site's link.
    LinkHeals(usize),
    /// Ends all faults.
    Calm,
}

/// Network of hosts and their endpoints, by number. The head of a site is an endpoint of a host.
pub(crate) type Links = Network<usize, usize, (usize, usize), WorldEvent>;

/// The view of the hosts that the network has.
struct Ears<'a> {
    hosts: &'a mut [Host],
    packet_damage: PacketDamage,
}

impl Hosts<usize, usize> for Ears<'_> {
    fn ears(&self, host: usize, group: SocketAddr, into: &mut Vec<(usize, usize)>) {
        if self.hosts[host].takes(layer_of(group)) {
            into.extend(self.hosts[host].ears().map(|ear| (host, ear)));
        }
    }

    fn damage(&mut self, path: usize, _: &Link, bytes: &mut [u8]) -> Copies {
        self.packet_damage.befall(bytes, &mut self.hosts[path].path_rng)
    }
}

/// Returns the layer that a group carries.
fn layer_of(group: SocketAddr) -> usize {
    match group.ip() {
        IpAddr::V4(group) => usize::from(group.octets()[3]).saturating_sub(1),
        IpAddr::V6(_) => 0,
    }
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) plan: Plan,
    pub(crate) hosts: Vec<Host>,
    pub(crate) network: Links,
    pub(crate) disks: Disks,
    pub(crate) clock: Clock,
    pub(crate) random: Random,
    pub(crate) contents: Contents,
    pub(crate) streams: Streams,
    pub(crate) log: Log,
    pub(crate) rng: Rng,
    pub(crate) datagrams: u64,
    /// For each host and kind of packet: the number of datagrams since the end of all faults.
    kinds: BTreeMap<(usize, String), u64>,
    pub(crate) is_calm: bool,
    pub(crate) starts: Vec<u32>,
    /// Number of sessions that the source has started.
    pub(crate) sessions: u32,
    /// The number of versions of the content when the source was started.
    pub(crate) sends: usize,
    /// For each host: the number of the source's session from which the host received everything except withdrawn files.
    pub(crate) without: BTreeMap<usize, u32>,
    pub(crate) key: Option<GroupKey>,
    pub(crate) sign: Option<SigningKey>,
    secrets: Vec<u64>,
    mistake: Option<Mutation>,
    pub(crate) dir: OwnDirectory,
}

impl World {
    pub(crate) fn new(seed: u64, options: &Options) -> io::Result<World> {
        let plan = options.kind.map_or_else(|| Plan::new(seed), |kind| Plan::of(seed, kind));
        let dir = OwnDirectory::new(&options.directory, seed)?;
        let mut rng = Rng::new(seed, 2);
        let contents = Contents::new(dir.path().join("in"), &plan.files, &mut rng)?;
        let mut bytes = [0; 32];
        bytes.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.bits().to_le_bytes()));
        let key = plan.sealed.then(|| GroupKey::from_bytes(bytes));
        let mut secrets = vec![word(&bytes)];
        bytes.reverse();
        let sign = plan.signed.then(|| SigningKey::from_seed(bytes));
        secrets.push(word(&bytes));
        if plan.sealed {
            secrets.extend(contents.secrets().iter().map(|secret| word(secret)));
        }
        let mut network = Network::new(HEADERS, Ties::Booked);
        let hosts = layout(seed, &plan, &mut rng, &mut network.sites);
        let count = hosts.len();
        let spoilt = options.mistake == Some(Mutation::Spoilt);
        let disks = Disks::new(seed, count, plan.has(Trouble::PowerLoss), spoilt);
        let clock = Clock::new();
        let mut world = World {
            now: Time::ZERO,
            log: Log::new(options.verbose),
            hosts,
            network,
            disks,
            contents,
            streams: Streams::new(count, clock.clone(), spoilt),
            clock,
            random: random(seed),
            rng,
            datagrams: 0,
            kinds: BTreeMap::new(),
            is_calm: false,
            starts: vec![0; count],
            sessions: 0,
            sends: 0,
            without: BTreeMap::new(),
            key,
            sign,
            secrets,
            mistake: options.mistake,
            dir,
            plan,
        };
        world.book_all();
        Ok(world)
    }

    /// Schedules all events of the plan.
    fn book_all(&mut self) {
        let late = self.plan.has(Trouble::Latecomers);
        for host in 0..self.hosts.len() {
            let begin = Span::from_millis(self.rng.below(200));
            let wait = self.plan.calm.since(Time::ZERO).scaled(self.rng.unit());
            let comes_late = late && self.hosts[host].role == Role::Receiver && self.rng.chance(0.5);
            let at = Time::ZERO + if comes_late { wait } else { begin };
            self.book(at, WorldEvent::Start(host));
        }
        for episode in 0..self.plan.episodes.len() {
            self.book(self.plan.episodes[episode].at, WorldEvent::Episode(episode));
        }
        self.book(self.plan.calm, WorldEvent::Calm);
    }

    pub(crate) fn book(&mut self, at: Time, what: WorldEvent) {
        self.network.book(at, what);
    }

    /// Schedules the start of a process after `millis` and a random delay of up to a second.
    pub(crate) fn start_after(&mut self, host: usize, millis: u64) {
        let wait = Span::from_millis(millis + self.rng.below(1_000));
        self.book(self.now + wait, WorldEvent::Start(host));
    }

    /// Runs until every process has finished, or a fault is found.
    pub(crate) fn run(&mut self) -> Result<(), Finding> {
        let limit = CALM_LASTS.as_nanos() + IDLE_TIMEOUTS * self.plan.idle_timeout * 1_000_000_000;
        let end = self.plan.calm + Span::from_nanos(limit);
        let mut busy = (Time::ZERO, 0_u32);
        while !(self.is_calm && self.is_done()) {
            let Some(next) = self.network.next(end) else {
                return Err(
                    self.finding("everybody is done within a bound once trouble is over", self.describe())
                );
            };
            let at = self.network.now;
            self.now = at;
            busy = if at.since(busy.0) < Span::from_secs(1) { (busy.0, busy.1 + 1) } else { (at, 0) };
            if busy.1 > MAX_STEPS {
                let who = match &next {
                    Happens::Wakes(host) => &self.hosts[*host].name,
                    _ => "datagrams",
                };
                return Err(self.finding("time passes", format!("{} steps within a second: {who}", busy.1)));
            }
            match next {
                Happens::Arrives { host, socket, from, bytes } => {
                    if self.hosts[host].put(socket, bytes, from, at) {
                        self.drive(host)?;
                    }
                }
                Happens::Wakes(host) => self.drive(host)?,
                Happens::Other(what) => self.happen(what)?,
            }
        }
        self.check_end()
    }

    fn happen(&mut self, what: WorldEvent) -> Result<(), Finding> {
        match what {
            WorldEvent::Start(host) if self.hosts[host].process.is_none() && self.is_wanted(host) => {
                self.start(host)
            }
            WorldEvent::Start(_) => Ok(()),
            WorldEvent::Episode(episode) => self.trouble(episode),
            WorldEvent::DiskHeals(host) => {
                self.disks.change(host, |disk| {
                    (disk.full, disk.broken, disk.cost) = (false, 0.0, Span::ZERO);
                });
                Ok(())
            }
            WorldEvent::LinkHeals(site) => {
                let site = &mut self.network.sites[site];
                (site.down.slowed, site.up.slowed) = (1.0, 1.0);
                Ok(())
            }
            WorldEvent::Calm => {
                self.calm();
                Ok(())
            }
        }
    }

    /// Ends all faults.
    fn calm(&mut self) {
        self.log.say(self.now, "all is well from now on");
        self.is_calm = true;
        self.disks.heal();
        self.plan.packet_damage = PacketDamage::default();
        self.starts.fill(0);
        for site in &mut self.network.sites {
            site.down.heal();
            site.up.heal();
        }
        for host in 0..self.hosts.len() {
            self.hosts[host].stopped_until = self.hosts[host].stopped_until.min(self.now);
            // Every process that does not run is started.
            self.start_after(host, 0);
            self.wake(host);
        }
    }

    /// Whether the process of this host should run.
    fn is_wanted(&self, host: usize) -> bool {
        match self.hosts[host].role {
            Role::Receiver => !self.has_all(host) && !self.waits_for_the_next(host),
            Role::Source => !self.everybody_has_all() || self.has_waiting_host(),
            Role::Relay if self.serves_itself() && host == OWN_RELAY => false, // the source starts it
            Role::Relay => !(self.is_calm && self.everybody_has_all()),
        }
    }

    /// Whether this receiver has everything that the running source can send, although files at the source have changed since the
    /// source was started. The receiver then waits for the next session.
    fn waits_for_the_next(&self, host: usize) -> bool {
        if self.plan.kind.is_live() {
            return false;
        }
        let goes_on = self.hosts[0].process.is_some();
        let is_old = goes_on && self.sends < self.contents.versions();
        is_old && self.contents.any_is_in(&self.out(host))
            || goes_on && self.without.get(&host) == Some(&self.sessions)
    }

    /// Whether a receiver runs in a world whose source files change. Such a receiver may wait for content that it already has.
    fn has_waiting_host(&self) -> bool {
        let waits = |host: &Host| host.role == Role::Receiver && host.process.is_some();
        self.plan.has(Trouble::SourceFile) && self.hosts.iter().any(waits)
    }

    pub(crate) fn out(&self, host: usize) -> PathBuf {
        self.dir.path().join(format!("out{host}"))
    }

    pub(crate) fn has_all(&self, host: usize) -> bool {
        if self.plan.kind.is_live() {
            return self.streams.has_served(host);
        }
        self.contents.is_in(&self.out(host))
    }

    pub(crate) fn receivers(&self) -> impl Iterator<Item = usize> {
        (0..self.hosts.len()).filter(|host| self.hosts[*host].role == Role::Receiver)
    }

    pub(crate) fn everybody_has_all(&self) -> bool {
        self.receivers().all(|host| self.has_all(host))
    }

    fn is_done(&self) -> bool {
        let runs = |host: &Host| host.role != Role::Relay && host.process.is_some();
        !self.hosts.iter().any(runs) && self.everybody_has_all()
    }

    /// Runs a process at the current time.
    pub(crate) fn drive(&mut self, host: usize) -> Result<(), Finding> {
        let now = self.now;
        if self.hosts[host].process.is_none() {
            return Ok(());
        }
        if now < self.hosts[host].stopped_until {
            self.wake(host);
            return Ok(());
        }
        self.be_at(now);
        let (mut sent, mut events) = (Vec::new(), Vec::new());
        let disks = self.disks.clone();
        let takes = disks.cost(host) * JOB_OPERATIONS;
        let ended = disks.run_as(host, || self.hosts[host].drive(now, takes, &mut sent, &mut events));
        for (endpoint, event) in &events {
            self.note(host, *endpoint, event);
        }
        self.look_for_next(host);
        for one in sent {
            self.send(host, &one)?;
        }
        let done = self.disks.done(host);
        if done.renamed || done.died {
            self.check_names(host)?;
        }
        if done.died {
            self.log.say(now, &format!("{} dies while it uses its disk", self.hosts[host].name));
            self.kill(host)?;
            let again = now + Span::from_millis(self.rng.below(3_000));
            self.book(again, WorldEvent::Start(host));
            return Ok(());
        }
        if done.took > Span::ZERO && self.hosts[host].jobs.is_none() {
            self.hosts[host].stopped_until = now + done.took;
        }
        match ended.map_err(|seen| self.finding("time passes", seen))? {
            Some(ended) => self.end(host, &ended),
            None => {
                self.wake(host);
                Ok(())
            }
        }
    }

    /// Sets the clock of all parts that are not endpoints.
    pub(crate) fn be_at(&self, now: Time) {
        self.clock.set(now);
    }

    fn note(&mut self, host: usize, endpoint: usize, event: &Event) {
        if let (Event::Joined { .. }, Some(Process::Relay(relay))) = (event, &mut self.hosts[host].process)
            && relay.looking.is_some_and(|looking| looking * relay.each == endpoint)
        {
            relay.looking = None;
        }
        let text = match event {
            Event::Warning { message, .. } => message.clone(),
            Event::Joined { host, address, .. } => format!("joined: {host} {address}"),
            Event::Left { host, verified, reason, .. } => format!("left: {host} {verified} {reason:?}"),
            _ => return,
        };
        self.log.say(self.now, &format!("{}: {text}", self.hosts[host].name));
    }

    pub(crate) fn wake(&mut self, host: usize) {
        self.network.wake(host, self.hosts[host].next_timeout(self.now));
    }

    fn send(&mut self, host: usize, sent: &Sent) -> Result<(), Finding> {
        let from = self.hosts[host].place(sent.endpoint);
        for bytes in sent.bytes.chunks(sent.transmit.segment) {
            self.datagrams += 1;
            self.log.trace(self.now, host, bytes);
            self.check_datagram(host, bytes)?;
            if self.is_calm
                && let Ok(header) = peek(bytes)
            {
                *self.kinds.entry((host, format!("{:?}", header.kind))).or_default() += 1;
            }
            let is_request = || peek(bytes).is_ok_and(|header| header.kind == PacketKind::Request);
            if self.mistake == Some(Mutation::Deaf) && is_request() {
                continue;
            }
            let (to, head) = (sent.transmit.to, (host, self.hosts[host].part(sent.endpoint)));
            let endpoint_at = |other: usize| Some((other, self.hosts[other].endpoint_at(to, from)?));
            let target = (0..self.hosts.len()).find_map(endpoint_at);
            let World { network, hosts, plan, now, .. } = self;
            let ears = &mut Ears { hosts, packet_damage: plan.packet_damage };
            if to.ip().is_multicast() {
                network.multicast(ears, (*now, &head), (from, to, layer_of(to) == 0), bytes);
            } else if let Some(target) = target {
                network.unicast(ears, (host, target), from, bytes, |head, host| head.0 == host);
            }
        }
        Ok(())
    }

    fn check_datagram(&self, host: usize, bytes: &[u8]) -> Result<(), Finding> {
        let name = &self.hosts[host].name;
        if bytes.len() > self.plan.cut.0.max(400) {
            return Err(self
                .finding("datagrams have the size that was asked for", format!("{name}: {}", bytes.len())));
        }
        if self.datagrams > MAX_DATAGRAMS {
            return Err(self.finding("sessions send no more than they need", self.describe()));
        }
        let shows = |window: &[u8]| self.secrets.contains(&word(window));
        if bytes.windows(8).any(shows) {
            return Err(self.finding("no key and no sealed content is seen in packets", name.clone()));
        }
        Ok(())
    }

    pub(crate) fn check_names(&mut self, host: usize) -> Result<(), Finding> {
        if self.plan.kind.is_live() {
            return self.check_stream(host).map(drop);
        }
        match self.contents.wrong_in(&self.out(host)) {
            None => Ok(()),
            Some(wrong) => {
                let seen = format!("{}: {wrong}", self.hosts[host].name);
                Err(self.finding("what has its name is what was sent", seen))
            }
        }
    }

    /// Checks that the output of a stream equals its input, in order and except for gaps. Returns the part of the stream that
    /// this host has received.
    pub(crate) fn check_stream(&mut self, host: usize) -> Result<Option<Part>, Finding> {
        let out = self.out(host);
        self.streams.check(host, &out).map_err(|wrong| {
            let seen = format!("{}: {wrong}", self.hosts[host].name);
            self.finding("what comes out of a stream is what was written, in order", seen)
        })
    }

    /// Checks the output of all receivers at the end.
    fn check_end(&mut self) -> Result<(), Finding> {
        self.receivers().collect::<Vec<_>>().into_iter().try_for_each(|host| self.check_names(host))
    }

    pub(crate) fn finding(&self, promise: &'static str, seen: String) -> Finding {
        Finding { promise, seen }
    }

    pub(crate) fn describe(&self) -> String {
        let each = self.hosts.iter().enumerate().map(|(at, host)| {
            let runs = if host.process.is_some() { "runs" } else { "does not run" };
            let has = match host.role {
                Role::Receiver if self.has_all(at) => ", has everything",
                Role::Receiver => ", lacks something",
                _ => "",
            };
            format!("{} {runs}{has}", host.name)
        });
        let kinds = self
            .kinds
            .iter()
            .map(|((host, kind), count)| format!("{} {kind} {count}", self.hosts[*host].name));
        let (each, kinds) = (each.collect::<Vec<_>>().join("; "), kinds.collect::<Vec<_>>().join(", "));
        format!("after {} datagrams: {each}; since the trouble is over: {kinds}", self.datagrams)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.dir.path()
    }
}

/// The directory of a world, which is removed when this value is dropped. The path of the directory depends only on the seed,
/// because errors of receivers contain paths.
pub(crate) struct OwnDirectory {
    path: PathBuf,
    _lock: File,
}

impl OwnDirectory {
    fn new(directory: &Path, seed: u64) -> io::Result<OwnDirectory> {
        let path = directory.join(format!("faircast-vopr-{seed}"));
        // Waits until no other world holds this lock. Files of a killed world are removed.
        let lock = File::create(directory.join(format!("faircast-vopr-{}.lock", seed % 256)))?;
        lock.lock()?;
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir(&path)?;
        Ok(OwnDirectory { path, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // After an error, the next world of this seed removes the files.
        fs::remove_dir_all(&self.path).ok();
    }
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
