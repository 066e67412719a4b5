//! Start and end of processes.

use crate::host::{Ended, Passing, Port, Process, Role};
use crate::kind::Kind;
use crate::layout::UNICAST;
use crate::plan::Trouble;
use crate::relay::{Jobs, Relay};
use crate::world::{Finding, World};
use faircast_core::packet::SessionId;
use faircast_core::time::Time;
use faircast_transport::config::{InvitedHost, default_group};
use faircast_transport::object::LeftOut;
use faircast_transport::relay::{RelayConfig, RelayHandle, RelayRole, RelaySource};
use faircast_transport::session::{self, Receiver, Source};
use faircast_transport::worker::Worker;
use faircast_transport::{
    Content, Destination, Durability, Error, LayerInput, OverwritePolicy, Pacing, ReceiveConfig,
    ReceiveReport, SendConfig,
};
use faircast_wire::{GroupKey, KeyRing, VerifyKeys};
use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of starts of a process after the end of all faults. A source that finds no receivers may start more often,
/// because receivers wait for the content of the previous source until their idle timeout. A relay announces its session until
/// this session has ended, so the idle timeout of the relay's receivers begins only then.
const MAX_STARTS: u32 = 6;

/// Host number of the source's relay. `CHILDREN` is the maximum number of its children, and `OWN_MEMORY` the size of its cache in
/// bytes.
pub(crate) const OWN_RELAY: usize = 1;
const CHILDREN: usize = 16;
const OWN_MEMORY: usize = 64 << 10;

/// Join timeout of a source, in seconds.
const WAIT: u32 = 5;

impl World {
    pub(crate) fn start(&mut self, host: usize) -> Result<(), Finding> {
        self.starts[host] += 1;
        let in_vain = self.plan.idle_timeout * (1 + self.plan.depth());
        if self.is_calm && self.starts[host] > MAX_STARTS + in_vain as u32 / WAIT {
            let seen = format!(
                "{} was started {} times; {}",
                self.hosts[host].name,
                self.starts[host],
                self.describe()
            );
            return Err(
                self.finding("once trouble is over, no session has to be tried again and again", seen)
            );
        }
        if self.hosts[host].role == Role::Source {
            self.sessions += 1;
            self.sends = self.contents.versions();
            // These receivers wait for the new source: files were changed or withdrawn during the last session.
            let waits = |host: &usize| self.plan.has(Trouble::SourceFile) || self.without.contains_key(host);
            let waiting: Vec<usize> = self.receivers().filter(waits).collect();
            waiting.into_iter().for_each(|host| self.start_after(host, 0));
        }
        self.be_at(self.now);
        let random = self.hosts[host].draw();
        let (local, unix_nanos) = (self.hosts[host].address, self.hosts[host].clock.unix_nanos(self.now));
        let disk = self.disks.disk();
        let is_receiver = self.hosts[host].role == Role::Receiver;
        let jobs = (is_receiver && self.plan.has(Trouble::SlowDisk)).then(Jobs::default);
        let ((datagram, symbols), now) = (self.plan.cut, Time::ZERO);
        let worker = jobs.as_ref().map_or_else(Worker::at_once, Jobs::worker);
        let at = session::Host { random, local, datagram, symbols, unix_nanos, now, disk, worker };
        self.disks.restart(host, self.plan.synced);
        let process = match self.hosts[host].role {
            Role::Source => {
                let config = self.send_config();
                match Source::new(config, &at, &mut |_| {}) {
                    Ok(source) => {
                        if self.serves_itself() {
                            self.start_own_relay(source.session())?;
                        }
                        Process::Source(Box::new(source))
                    }
                    Err(error) => return Err(self.finding("a source starts", error.to_string())),
                }
            }
            Role::Receiver => {
                let config = self.receive_config(host);
                Process::Receiver(Box::new(self.disks.run_as(host, || Receiver::new(config, &at))))
            }
            Role::Relay => Process::Relay(self.passing(host)),
        };
        self.log.say(self.now, &format!("{} starts", self.hosts[host].name));
        let now = self.now;
        self.hosts[host].begin(process, now);
        self.hosts[host].jobs = jobs;
        self.look_for_next(host);
        self.drive(host)
    }

    /// Whether the first relay is a part of the source's process, and starts and ends with it.
    pub(crate) fn serves_itself(&self) -> bool {
        self.plan.kind == Kind::Unicast
    }

    /// Starts the relay of a source that serves hosts by unicast. This relay is a part of the source's process.
    fn start_own_relay(&mut self, session: SessionId) -> Result<(), Finding> {
        let (now, relay) = (self.now, self.passing(OWN_RELAY));
        relay.handle.take_only(session);
        self.hosts[OWN_RELAY].kill();
        self.hosts[OWN_RELAY].begin(Process::Relay(relay), now);
        self.look_for_next(OWN_RELAY);
        self.drive(OWN_RELAY)
    }

    /// Returns the process of a relay that has found no session yet.
    fn passing(&self, host: usize) -> Passing {
        let branches = self
            .network
            .sites
            .iter()
            .filter(|site| site.heads[0].0 == host && site.heads[0].1 != UNICAST)
            .count();
        let handle = RelayHandle::at(self.clock.monotonic(), self.random.clone());
        let port = matches!(self.plan.kind, Kind::Agents | Kind::Unicast).then(|| {
            let invited = |address: &SocketAddr| InvitedHost::new(address.to_string(), *address);
            let invites: Vec<InvitedHost> = self.hosts[host].invites.iter().map(invited).collect();
            handle.serve(CHILDREN);
            handle.invite(&invites);
            let invites_at = if invites.is_empty() { Time::NEVER } else { Time::ZERO };
            Port { invites_at, out: Vec::new() }
        });
        Passing { handle, sessions: Vec::new(), each: 1 + branches, looking: None, port }
    }

    /// Returns the content to send: files, or streams that begin now.
    fn content(&mut self) -> Content {
        let (lanes, now, calm) = (self.plan.lanes, self.now, self.plan.calm);
        let history = Duration::from_nanos(self.plan.history.as_nanos());
        let latency = Duration::from_nanos(self.plan.latency.as_nanos());
        match self.plan.kind {
            Kind::Live => {
                let input = self.streams.begin(1, now, calm, &mut self.rng).remove(0);
                Content::Live { input, history, latency }
            }
            Kind::Layers => {
                let inputs = self.streams.begin(lanes, now, calm, &mut self.rng);
                let reader = |input| LayerInput::Reader { input, pacing: Pacing::Live };
                let inputs = inputs.into_iter().map(reader).collect();
                Content::Layers { inputs, history, repair: 0.1, latency }
            }
            _ => Content::Paths(self.contents.paths()),
        }
    }

    fn send_config(&mut self) -> SendConfig {
        let content = self.content();
        let receivers = self.plan.receivers() as u32;
        let mut config = SendConfig::new(content);
        config.scheme = self.plan.scheme.parse().expect("it is made of the catalogue's names");
        config.max = self.plan.max;
        config.key = self.key.clone();
        config.sign = self.sign.clone();
        config.expect = self.plan.expects.then_some(receivers);
        config.join_timeout = Duration::from_secs(u64::from(WAIT));
        config.idle_timeout = Duration::from_secs(self.plan.idle_timeout);
        config.host = "source".to_owned();
        config.temporary = self.dir.path().to_path_buf();
        config
    }

    /// Returns the destination of received content: a stream to a file, or to a reader.
    fn destination(&mut self, host: usize) -> Destination {
        if self.plan.kind.is_live() && self.rng.chance(0.7) {
            return Destination::Writer(self.streams.output(host, self.plan.slow_readers, &mut self.rng));
        }
        let out = self.out(host);
        if self.plan.kind.is_live() {
            return Destination::Directory(self.streams.directory(host, &out));
        }
        Destination::Directory(out)
    }

    fn receive_config(&mut self, host: usize) -> ReceiveConfig {
        let destination = self.destination(host);
        // If clocks jump, a new source may start with an earlier time of day than the previous source.
        let leaps = self.plan.has(Trouble::Clocks)
            && (self.plan.has(Trouble::NewContent) || self.plan.has(Trouble::SourceFile));
        let mut config = ReceiveConfig::new(destination);
        config.key = self.key.clone().map(KeyRing::of);
        config.verify = self.sign.as_ref().map(|key| VerifyKeys::from(key.verify_key()));
        config.overwrite = if leaps { OverwritePolicy::Accept } else { OverwritePolicy::Refuse };
        config.idle_timeout = Duration::from_secs(self.plan.idle_timeout);
        config.durability = if self.plan.synced { Durability::Synced } else { Durability::Fast };
        config.host = self.hosts[host].name.clone();
        config.temporary = self.dir.path().to_path_buf();
        config.parents = self.hosts[host].parents.clone();
        config.listen = self.hosts[host].invited.then_some(self.hosts[host].address);
        config
    }

    /// Makes a relay look for a further session, unless it is already looking.
    pub(crate) fn look_for_next(&mut self, host: usize) {
        let Some(Process::Relay(relay)) = &self.hosts[host].process else { return };
        if relay.looking.is_some() {
            return;
        }
        let (handle, each) = (relay.handle.clone(), relay.each);
        let free = relay.sessions.iter().position(Option::is_none).unwrap_or(relay.sessions.len());
        let random = self.hosts[host].draw();
        let unix_nanos = self.hosts[host].clock.unix_nanos(self.now);
        let (local, now) = (self.hosts[host].place(free * each), self.hosts[host].clock.local(self.now));
        let ((datagram, symbols), disk, worker) = (self.plan.cut, self.disks.disk(), Worker::at_once());
        let at = session::Host { random, local, datagram, symbols, unix_nanos, now, disk, worker };
        let session = self.relay(host, &handle, (free * each, each), &at);
        if let Some(Process::Relay(relay)) = &mut self.hosts[host].process {
            if free == relay.sessions.len() {
                relay.sessions.push(None);
            }
            relay.sessions[free] = Some(session);
            relay.looking = Some(free);
        }
    }

    fn relay(
        &mut self,
        host: usize,
        handle: &RelayHandle,
        (first, each): (usize, usize),
        at: &session::Host,
    ) -> Relay {
        let branches = first + 1..first + each;
        let places: Vec<SocketAddr> = branches.map(|branch| self.hosts[host].place(branch)).collect();
        let seeds: Vec<[u64; 2]> = places.iter().map(|_| [self.rng.bits(), self.rng.bits()]).collect();
        let parents = self.hosts[host].parents.clone();
        let mut source = RelaySource::new(default_group());
        source.parents = parents;
        let is_own = self.serves_itself() && host == OWN_RELAY;
        let mut config = RelayConfig::new(vec![source]);
        config.key = self.key.as_ref().map(GroupKey::hop);
        config.memory = if is_own { OWN_MEMORY } else { 1 << 20 };
        config.idle_timeout = Duration::from_secs(self.plan.idle_timeout);
        config.host = self.hosts[host].name.clone();
        config.children = CHILDREN;
        config.paced = is_own;
        config.role = match (self.plan.kind, self.plan.routers.get(host - 1)) {
            (Kind::Agents, _) => RelayRole::Agent,
            (_, Some(Some(router))) => RelayRole::Router(*router),
            _ => RelayRole::Repeater,
        };
        Relay::new(&config, handle, &places, at, &seeds)
    }

    /// Handles a process that has ended without being killed.
    pub(crate) fn end(&mut self, host: usize, ended: &Ended) -> Result<(), Finding> {
        let name = self.hosts[host].name.clone();
        let now = self.now;
        match ended {
            Ended::Source(report) => {
                self.log.say(now, &format!("{name} ends: {}", in_short_sent(report)));
                if let Ok(report) = &**report {
                    let have = self.have(&report.unsent)?;
                    let may_change = [Trouble::SourceFile, Trouble::SourceDisk, Trouble::NewContent];
                    if !report.unsent.is_empty() && !may_change.iter().any(|trouble| self.plan.has(*trouble))
                    {
                        let seen = format!("{name} leaves out {:?}", report.unsent);
                        return Err(self.finding("a source leaves out no file that is at rest", seen));
                    }
                    if report.verified > have as u64 {
                        let seen =
                            format!("{name} says that {} have everything, and {have} do", report.verified);
                        return Err(self.finding("a source counts those that have everything", seen));
                    }
                }
                self.start_after(host, 500);
            }
            Ended::Receiver(report) => {
                let outcome = report.as_ref().as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
                self.log.say(now, &format!("{name} ends: {outcome}"));
                if self.plan.kind.is_live() {
                    return self.end_of_stream(host, &name, report);
                }
                self.check_names(host)?;
                if report.as_ref().as_ref().is_ok_and(|report| report.withdrawn_count > 0) {
                    self.without.insert(host, self.sessions);
                }
                if report.as_ref().as_ref().is_ok_and(|report| report.ok)
                    && !self.contents.any_is_in(&self.out(host))
                {
                    return Err(self.finding("a receiver that is done has everything", name));
                }
                self.start_after(host, 200);
            }
        }
        Ok(())
    }

    /// Returns the maximum number of complete receivers that a source may report. Files that were left out do not count as
    /// missing. For a live stream, each process that received the end counts.
    fn have(&mut self, unsent: &[LeftOut]) -> Result<usize, Finding> {
        if !self.plan.kind.is_live() {
            let has = |host: &usize| self.contents.any_is_in_without(&self.out(*host), unsent);
            return Ok(self.receivers().filter(has).count());
        }
        if self.plan.kind == Kind::Layers {
            return Ok(usize::MAX); // receivers count as complete at the end, despite gaps
        }
        let receivers: Vec<usize> = self.receivers().collect();
        receivers.iter().try_for_each(|host| self.check_stream(*host).map(drop))?;
        Ok(receivers.into_iter().map(|host| self.streams.ended(host)).sum())
    }

    /// Handles a process that received a stream and has ended without being killed. The report of the process must include the
    /// gaps in its output.
    fn end_of_stream(
        &mut self,
        host: usize,
        name: &str,
        report: &Result<ReceiveReport, Error>,
    ) -> Result<(), Finding> {
        let part = self.check_stream(host)?;
        if let Some(report) = report.as_ref().ok().filter(|report| !report.stopped) {
            let gaps = part.as_ref().map_or(0, |part| part.gaps) as u64;
            let reported = match report.streams.first() {
                Some(base) => base.blocks_lost,
                None if report.warnings.is_empty() => 0,
                None => u64::MAX,
            };
            if gaps > reported {
                let seen = format!("{name} has {gaps} gaps in a stream, and says {report:?}");
                return Err(self.finding("what is missing of a stream is told", seen));
            }
            if self.plan.kind == Kind::Live && !part.as_ref().is_some_and(|part| part.ends) {
                let seen = format!("{name} has {part:?} and says {report:?}");
                return Err(self.finding("a receiver that is done has everything", seen));
            }
            self.streams.serve(host);
        }
        self.start_after(host, 200);
        Ok(())
    }

    /// Kills the process, as SIGKILL does.
    pub(crate) fn kill(&mut self, host: usize) -> Result<(), Finding> {
        if self.serves_itself() && host == 0 {
            self.hosts[OWN_RELAY].kill();
        }
        let disks = self.disks.clone();
        disks.run_as(host, || self.hosts[host].kill());
        if self.hosts[host].role == Role::Receiver { self.check_names(host) } else { Ok(()) }
    }
}

fn in_short_sent(report: &Result<faircast_transport::SendReport, faircast_transport::Error>) -> String {
    match report {
        Ok(report) => format!(
            "ok: {}, {} of {} receivers verified, incomplete: {:?}",
            report.ok, report.verified, report.receivers, report.incomplete
        ),
        Err(error) => error.to_string(),
    }
}
