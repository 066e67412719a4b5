//! The flows of a scenario in an emulated network: sockets for unicast flows, programs for sessions, and counts of both.

use super::guests::{Guest, Guests, Heard, Stream};
use super::keeper::State;
use super::network::Network;
use super::traffic::{self, Clock, End, Prepared, Running};
use crate::failure::Failure;
use faircast_core::time::{Span, Time};
use faircast_emulator::Namespace;
use faircast_experiments::scenario::{RealFlow, RealFlows, Traffic};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Port of the first flow.
const FIRST_PORT: u16 = 20_000;
/// Bytes of the headers of IP and UDP.
const UDP_HEADERS: u16 = 28;
/// Time in which the receivers of a session listen.
const LISTENS: Duration = Duration::from_secs(30);

/// The address at which the packets of a flow arrive.
fn goal(number: usize, flow: &RealFlow, addresses: &BTreeMap<String, Ipv4Addr>) -> (Ipv4Addr, u16) {
    let port = FIRST_PORT + number as u16;
    let address = match &flow.traffic {
        // Not 239.255.0.0/24, which has well-known groups (RFC 2365).
        Traffic::Session(_) => {
            let [high, low] = (number as u16 + 256).to_be_bytes();
            Ipv4Addr::new(239, 255, high, low)
        }
        Traffic::Tcp { .. } | Traffic::Datagrams { .. } => addresses[&flow.to[0].host],
    };
    (address, port)
}

/// Returns what the keeper counts: for each receiver of each flow the number of its host, the destination and the port.
pub fn watched(real: &RealFlows, hosts: &[(String, Ipv4Addr)]) -> Vec<(usize, Ipv4Addr, u16)> {
    let addresses: BTreeMap<String, Ipv4Addr> = hosts.iter().cloned().collect();
    let place =
        |name: &str| hosts.iter().position(|(host, _)| host == name).expect("ends of flows are hosts");
    let flows = real.flows.iter().enumerate();
    let ends = flows.flat_map(|(number, flow)| {
        let (address, port) = goal(number, flow, &addresses);
        flow.to.iter().map(move |receiver| (receiver, address, port))
    });
    ends.map(|(receiver, address, port)| (place(&receiver.host), address, port)).collect()
}

/// A program of a session: its host, words and times.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionProgram {
    pub host: String,
    pub words: Vec<OsString>,
    pub start: Time,
    pub stop: Time,
    pub is_source: bool,
}

/// Returns the programs of a session.
fn session(faircast: &Path, flow: &RealFlow, goal: (Ipv4Addr, u16), end: Time) -> Vec<SessionProgram> {
    let Traffic::Session(scheme) = &flow.traffic else { return Vec::new() };
    let seconds = (end.as_secs_f64() + 60.0).to_string();
    let common = |verb: &str, host: &str, more: &[&str]| {
        let group = format!("{}:{}", goal.0, goal.1);
        let words =
            [verb, "--config", "/dev/null", "--json", "--iface", "eth0", "--group", &group, "--host", host];
        let timeouts = ["--join-timeout", &seconds, "--timeout", &seconds];
        let words = words.iter().chain(&timeouts).chain(more).map(OsString::from);
        std::iter::once(faircast.into()).chain(words).collect::<Vec<OsString>>()
    };
    let mut programs = Vec::new();
    let mut present = 0;
    for receiver in &flow.to {
        for &(join, leave) in &receiver.stays {
            present += usize::from(join <= flow.start);
            let words = common("recv", &receiver.host, &["--stdout"]);
            let stop = leave.min(flow.stop);
            programs.push(SessionProgram {
                host: receiver.host.clone(),
                words,
                start: join,
                stop,
                is_source: false,
            });
        }
    }
    let (scheme, expected) = (scheme.to_string(), present.max(1).to_string());
    let datagram = flow.packet.saturating_sub(UDP_HEADERS).to_string();
    let more = ["--no-key", "--ttl", "64", "--cc", &scheme, "--expect", &expected, "--datagram", &datagram];
    let words = common("stream", &flow.from, &more);
    let (start, stop) = (flow.start, flow.stop);
    programs.push(SessionProgram { host: flow.from.clone(), words, start, stop, is_source: true });
    programs
}

/// The flows of a run, before and during it.
#[derive(Debug)]
pub struct Flows {
    prepared: Vec<Prepared>,
    running: Vec<Running>,
    programs: Vec<(SessionProgram, Option<Guest>, Vec<String>)>,
    heard: (Sender<Heard>, Receiver<Heard>),
    stop: Arc<AtomicBool>,
    end: Time,
}

impl Flows {
    /// Opens the sockets of the flows, and starts the receivers that are present from the beginning.
    ///
    /// # Errors
    /// When a flow cannot be made.
    pub fn prepare(
        real: &RealFlows,
        network: &Network,
        (state, guests): (&State, &Guests),
        (end, seed): (Time, u64),
    ) -> Result<Flows, Failure> {
        let addresses: BTreeMap<String, Ipv4Addr> =
            state.hosts.iter().map(|host| (host.name.clone(), host.address)).collect();
        let namespaces = state.hosts.iter().map(|host| {
            let path = PathBuf::from(format!("/proc/{}/fd/{}", network.keeper, host.descriptor));
            let opened = Namespace::at(&path).map_err(Failure::system(format!("enter {}", host.name)))?;
            Ok((host.name.clone(), opened))
        });
        let namespaces = namespaces.collect::<Result<BTreeMap<String, Namespace>, Failure>>()?;
        let faircast = std::env::current_exe().map_err(Failure::system("find this program's own file"))?;
        let mut flows = Flows {
            prepared: Vec::new(),
            running: Vec::new(),
            programs: Vec::new(),
            heard: mpsc::channel(),
            stop: Arc::new(AtomicBool::new(false)),
            end,
        };
        for (number, flow) in real.flows.iter().enumerate() {
            let goal = goal(number, flow, &addresses);
            if matches!(flow.traffic, Traffic::Session(_)) {
                let programs = session(&faircast, flow, goal, end).into_iter();
                flows.programs.extend(programs.map(|program| (program, None, Vec::new())));
                continue;
            }
            let at = |host: &String| End { namespace: &namespaces[host], address: addresses[host] };
            let (from, to) = (at(&flow.from), at(&flow.to[0].host));
            flows.prepared.push(traffic::prepare(flow, &from, &to, goal.1, seed + number as u64)?);
        }
        flows.start_due(guests, Time::ZERO, Due::Receivers)?;
        flows.wait_for_receivers()?;
        Ok(flows)
    }

    /// Starts the flows. The run begins now.
    pub fn start(&mut self) -> Clock {
        let clock = Clock { begin: Instant::now(), end: self.end, stop: Arc::clone(&self.stop) };
        self.running = self.prepared.drain(..).map(|prepared| prepared.start(&clock)).collect();
        clock
    }

    /// Starts and stops programs of sessions by their times.
    ///
    /// # Errors
    /// When a program cannot be started, or has ended early.
    pub fn follow(&mut self, guests: &Guests, now: Time) -> Result<(), Failure> {
        self.listen();
        self.start_due(guests, now, Due::All)?;
        for (program, guest, lines) in &mut self.programs {
            let Some(running) = guest else { continue };
            let status = running.ended().map_err(Failure::system("wait for a program"))?;
            if let Some(status) = status.filter(|_| program.stop > now) {
                let why = lines.last().map_or(String::new(), |line| format!(": {line}"));
                let verb = if program.is_source { "stream" } else { "recv" };
                let host = &program.host;
                return Err(Failure::Check(format!(
                    "`faircast {verb}` on {host} ended early with {status}{why}"
                )));
            }
            if program.stop <= now {
                running.signal(Signal::INT);
            }
            if status.is_some() {
                *guest = None;
            }
        }
        Ok(())
    }

    fn start_due(&mut self, guests: &Guests, now: Time, due: Due) -> Result<(), Failure> {
        for (number, (program, guest, _)) in self.programs.iter_mut().enumerate() {
            let is_due = program.start <= now && program.stop > now;
            if !is_due || guest.is_some() || (program.is_source && due == Due::Receivers) {
                continue;
            }
            let noise = || File::open("/dev/urandom").map_err(Failure::system("open /dev/urandom"));
            // A receiver writes its content to standard output, and its events to standard error.
            let (input, silent) = match program.is_source {
                true => (Stdio::from(noise()?), None),
                false => (Stdio::null(), Some(Stream::Stdout)),
            };
            let heard = (number, &self.heard.0);
            *guest = Some(guests.start(&program.host, &program.words, input, heard, silent)?);
        }
        Ok(())
    }

    /// Waits until the started receivers listen.
    fn wait_for_receivers(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + LISTENS;
        loop {
            self.listen();
            let mut silent = self.programs.iter_mut().filter(|(_, guest, lines)| {
                guest.is_some() && !lines.iter().any(|line| line.contains("\"opened\""))
            });
            let Some((program, guest, lines)) = silent.next() else { return Ok(()) };
            let has_ended = guest.as_mut().is_some_and(|guest| !matches!(guest.ended(), Ok(None)));
            if has_ended || Instant::now() > end {
                let why = lines.last().map_or("", String::as_str);
                return Err(Failure::Check(format!(
                    "`faircast recv` on {} does not listen: {why}",
                    program.host
                )));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Keeps the first and the last lines of the programs.
    fn listen(&mut self) {
        for heard in self.heard.1.try_iter() {
            let lines = &mut self.programs[heard.program].2;
            if lines.len() >= 10 {
                lines.remove(5);
            }
            lines.push(heard.line);
        }
    }

    /// Ends all flows.
    ///
    /// # Errors
    /// When a flow has broken off.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let mut ended = Ok(());
        for running in self.running.drain(..) {
            ended = ended.and(running.join());
        }
        // Dropping the programs kills them.
        ended
    }
}

/// Programs to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Receivers,
    All,
}

/// Rate at a receiver of a flow.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FlowRate {
    pub flow: String,
    pub copy: usize,
    pub receiver: String,
    /// Received IP packets, in bit/s.
    pub rate: f64,
}

/// Returns the rates between two states.
pub fn rates(real: &RealFlows, before: &State, after: &State, window: Span) -> Vec<FlowRate> {
    let bytes = before.watched.iter().zip(&after.watched).map(|(before, after)| after - before);
    let ends = real.flows.iter().flat_map(|flow| flow.to.iter().map(move |receiver| (flow, receiver)));
    let rate =
        |((flow, receiver), bytes): ((&RealFlow, &faircast_experiments::scenario::RealReceiver), u64)| {
            FlowRate {
                flow: flow.group.clone(),
                copy: flow.copy,
                receiver: receiver.host.clone(),
                rate: bytes as f64 * 8.0 / window.as_secs_f64().max(1e-9),
            }
        };
    ends.zip(bytes).map(rate).collect()
}
