//! Processes: how they start, and how they end.

use crate::host::{Ended, Passing, Process, Role};
use crate::plan::Trouble;
use crate::world::{Finding, World};
use faircast_core::time::Time;
use faircast_transport::simulation::{self, Receiver, Relay, Source};
use faircast_transport::{
    Content, Destination, Durability, Older, ReceiveConfig, RelayConfig, RelayHandle, RelayRole, RelaySource,
    SendConfig,
};
use faircast_wire::{GroupKey, KeyRing, VerifyKeys};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// And no process is started more often than this, and once more whenever a source has waited in vain for receivers that wait for
/// another source's content as long as their patience lasts. That of those below a relay begins when the relay's is over: until then
/// the relay says that it is there, and when it is silent they may find the session elsewhere.
const MOST_STARTS: u32 = 6;

/// A source waits so many seconds for receivers.
const WAIT: u32 = 5;

impl World {
    pub(crate) fn start(&mut self, host: usize) -> Result<(), Finding> {
        self.starts[host] += 1;
        let in_vain = self.plan.patience * (1 + self.plan.depth());
        if self.is_calm && self.starts[host] > MOST_STARTS + in_vain as u32 / WAIT {
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
            self.sends = self.contents.versions();
            if self.plan.has(Trouble::SourceFile) {
                // Those that have waited for it.
                self.receivers().collect::<Vec<_>>().into_iter().for_each(|host| self.start_after(host, 0));
            }
        }
        let random = self.hosts[host].draw();
        let (local, unix_nanos) = (self.hosts[host].address, self.hosts[host].clock.unix_nanos(self.now));
        let at = simulation::Host { random, local, cut: self.plan.cut, unix_nanos, now: Time::ZERO };
        self.disks.restart(host, self.plan.synced);
        let process = match self.hosts[host].role {
            Role::Source => match Source::new(self.send_config(), &at, &mut |_| {}) {
                Ok(source) => Process::Source(Box::new(source)),
                Err(error) => return Err(self.finding("a source starts", error.to_string())),
            },
            Role::Receiver => {
                let config = self.receive_config(host);
                Process::Receiver(Box::new(self.disks.run_as(host, || Receiver::new(config, &at))))
            }
            Role::Relay => {
                let each = 1 + self.sites.iter().filter(|site| site.head.0 == host).count();
                Process::Relay(Passing {
                    handle: RelayHandle::default(),
                    sessions: Vec::new(),
                    each,
                    looking: None,
                })
            }
        };
        self.log.say(self.now, &format!("{} starts", self.hosts[host].name));
        let now = self.now;
        self.hosts[host].begin(process, now);
        self.look_for_next(host);
        self.drive(host)
    }

    fn send_config(&self) -> SendConfig {
        let receivers = self.plan.receivers() as u32;
        SendConfig {
            scheme: self.plan.scheme.parse().expect("it is made of the catalogue's names"),
            max: self.plan.max,
            key: self.key.clone(),
            sign: self.sign.clone(),
            expect: self.plan.expects.then_some(receivers),
            wait: Duration::from_secs(u64::from(WAIT)),
            patience: Duration::from_secs(self.plan.patience),
            host: "source".to_owned(),
            temporary: self.dir.path().to_path_buf(),
            ..SendConfig::new(Content::Paths(self.contents.paths()))
        }
    }

    fn receive_config(&self, host: usize) -> ReceiveConfig {
        // Whose clock leaps may start a source before the one that it started last.
        let leaps = self.plan.has(Trouble::Clocks)
            && (self.plan.has(Trouble::NewContent) || self.plan.has(Trouble::SourceFile));
        ReceiveConfig {
            key: self.key.clone().map(KeyRing::of),
            verify: self.sign.as_ref().map(|key| VerifyKeys::from(key.verify_key())),
            allow_older: if leaps { Older::Accept } else { Older::Refuse },
            patience: Duration::from_secs(self.plan.patience),
            durability: if self.plan.synced { Durability::Synced } else { Durability::Fast },
            host: self.hosts[host].name.clone(),
            temporary: self.dir.path().to_path_buf(),
            ..ReceiveConfig::new(Destination::Directory(self.out(host)))
        }
    }

    /// A relay that looks for no session does so from now on: when it has found one, or that one is over.
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
        let at = simulation::Host { random, local, cut: self.plan.cut, unix_nanos, now };
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
        at: &simulation::Host,
    ) -> Relay {
        let branches = first + 1..first + each;
        let places: Vec<SocketAddr> = branches.map(|branch| self.hosts[host].place(branch)).collect();
        let seeds: Vec<[u64; 2]> = places.iter().map(|_| [self.rng.bits(), self.rng.bits()]).collect();
        let config = ReceiveConfig::new(Destination::Directory(PathBuf::new()));
        let source = RelaySource { group: config.group, interface: None, only: None, parents: Vec::new() };
        let config = RelayConfig {
            sources: vec![source],
            branches: Vec::new(),
            key: self.key.as_ref().map(GroupKey::hop),
            memory: 1 << 20,
            cache: None,
            patience: Duration::from_secs(self.plan.patience),
            host: self.hosts[host].name.clone(),
            buffer: config.buffer,
            listen: Vec::new(),
            children: 0,
            paced: false,
            found: false,
            role: RelayRole::Repeater,
        };
        Relay::new(&config, handle, &places, at, &seeds)
    }

    /// A process has ended by itself.
    pub(crate) fn end(&mut self, host: usize, ended: &Ended) -> Result<(), Finding> {
        let name = self.hosts[host].name.clone();
        let now = self.now;
        match ended {
            Ended::Source(report) => {
                self.log.say(now, &format!("{name} ends: {}", in_short_sent(report)));
                if let Ok(report) = &**report {
                    let have =
                        self.receivers().filter(|host| self.contents.any_is_in(&self.out(*host))).count();
                    if report.verified > have as u64 {
                        let seen =
                            format!("{name} says that {} have everything, and {have} do", report.verified);
                        return Err(self.finding("a source counts those that have everything", seen));
                    }
                }
                self.start_after(host, 500);
            }
            Ended::Receiver(report) => {
                let said = report.as_ref().as_ref().map_or_else(ToString::to_string, |_| "ok".to_owned());
                self.log.say(now, &format!("{name} ends: {said}"));
                self.check_names(host)?;
                if report.is_ok() && !self.contents.any_is_in(&self.out(host)) {
                    return Err(self.finding("a receiver that is done has everything", name));
                }
                self.start_after(host, 200);
            }
        }
        Ok(())
    }

    /// The process is gone, as by SIGKILL.
    pub(crate) fn kill(&mut self, host: usize) -> Result<(), Finding> {
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
