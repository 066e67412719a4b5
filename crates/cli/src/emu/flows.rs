//! The flows of a scenario in an emulated network: sockets for unicast flows, programs for sessions, and counts of both.

use super::guests::{Guest, Guests, Heard, Stream, Turn};
use super::keeper::State;
use super::network::Network;
use super::traffic::{self, Clock, End, Prepared, Running, Transferred};
use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use faircast_core::time::{Rate, Time};
use faircast_emulator::Namespace;
use faircast_experiments::scenario::{Ecn, RealFlow, RealFlows, RealReceiver, Traffic};
use faircast_topology::{LinkId, Routes, Topology};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Port of the first flow.
const FIRST_PORT: u16 = 20_000;
/// Maximum number of flows, which have ports and groups of their own.
pub const MAX_FLOWS: usize = 2_000;
/// Group of the first session, and distance of the groups of two sessions: the most layers of a scheme. The groups of 239.255.0.0/24
/// are well known (RFC 2365). The IPv6 groups have the scope of an organization, and numbers for dynamic use (RFC 3307, 4.3).
const FIRST_GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 1, 0);
const FIRST_GROUP6: Ipv6Addr = Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0x8000, 0);
const GROUPS: u32 = 16;
/// Endless content. Zeros would not be sent, because they are holes.
const NOISE: &str = "/dev/urandom";
/// Input of a stream over the fastest path to a receiver. A stream reads all of its input, so unlimited input would occupy a
/// processor, and the source would send late and in bursts.
const INPUT_OVER_PATH: f64 = 2.0;
/// Interval at which content is written.
const WRITTEN_EVERY: Duration = Duration::from_millis(20);
/// Time in which the receivers of a session listen.
const LISTENS: Duration = Duration::from_secs(30);

/// Returns the address at which the packets of a flow arrive. A session has consecutive addresses for its layers.
fn goal(number: usize, flow: &RealFlow, addresses: &BTreeMap<String, IpAddr>) -> SocketAddr {
    let address = match &flow.traffic {
        Traffic::Session { .. } => group(number, 0, addresses[&flow.from].is_ipv6()),
        Traffic::Tcp { .. } | Traffic::Datagrams { .. } => addresses[&flow.to[0].host],
    };
    SocketAddr::new(address, FIRST_PORT + number as u16)
}

/// Returns the number of addresses of a flow.
fn layers(flow: &RealFlow) -> u32 {
    match &flow.traffic {
        Traffic::Session { scheme, .. } => u32::from(scheme.layers()),
        Traffic::Tcp { .. } | Traffic::Datagrams { .. } => 1,
    }
}

/// Returns the packets that the keeper counts: for each receiver of each flow, and each of its addresses, the number of its host,
/// the address and the port.
pub fn watched(real: &RealFlows, hosts: &[(String, IpAddr)]) -> Vec<(usize, IpAddr, u16)> {
    let addresses: BTreeMap<String, IpAddr> = hosts.iter().cloned().collect();
    let place =
        |name: &str| hosts.iter().position(|(host, _)| host == name).expect("ends of flows are hosts");
    let mut watched = Vec::new();
    for (number, flow) in real.flows.iter().enumerate() {
        let first = goal(number, flow, &addresses);
        let is_session = matches!(flow.traffic, Traffic::Session { .. });
        let address = |layer| if is_session { group(number, layer, first.is_ipv6()) } else { first.ip() };
        for receiver in &flow.to {
            let host = place(&receiver.host);
            watched.extend((0..layers(flow)).map(|layer| (host, address(layer), first.port())));
        }
    }
    watched
}

/// Returns the first and the last group of each session whose joins or leaves take time, with these times in seconds.
pub fn latencies(real: &RealFlows, hosts: &[(String, IpAddr)]) -> Vec<(IpAddr, IpAddr, f64, f64)> {
    let is_ipv6 = hosts.iter().any(|(_, address)| address.is_ipv6());
    let of = |(number, flow): (usize, &RealFlow)| {
        let (join, leave) = (flow.latencies.0.as_secs_f64(), flow.latencies.1.as_secs_f64());
        let [first, last] = [0, GROUPS - 1].map(|layer| group(number, layer, is_ipv6));
        (join + leave > 0.0).then_some((first, last, join, leave))
    };
    real.flows.iter().enumerate().filter_map(of).collect()
}

/// Returns the group of a layer of a session.
fn group(number: usize, layer: u32, is_ipv6: bool) -> IpAddr {
    let after = number as u32 * GROUPS + layer;
    match is_ipv6 {
        true => Ipv6Addr::from_bits(FIRST_GROUP6.to_bits() + u128::from(after)).into(),
        false => Ipv4Addr::from_bits(FIRST_GROUP.to_bits() + after).into(),
    }
}

/// A program of a session: its host, words and times.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionProgram {
    pub host: String,
    pub words: Vec<OsString>,
    pub start: Time,
    pub stop: Time,
    pub is_source: bool,
    /// Bytes that the source sends; `None` if it always has data.
    pub content: Option<u64>,
    /// Rate of the input of a source that always has data.
    pub input: Rate,
}

impl SessionProgram {
    /// Returns the input of the program. A thread writes content that has an end or a rate.
    fn input(&self) -> io::Result<Stdio> {
        if !self.is_source {
            return Ok(Stdio::null());
        }
        let mut noise = File::open(NOISE)?;
        if self.content.is_none() && !self.input.is_usable() {
            return Ok(Stdio::from(noise));
        }
        let (reader, mut writer) = io::pipe()?;
        let (content, rate) = (self.content, self.input);
        // A program that ends early closes the pipe.
        std::thread::spawn(move || match content {
            Some(bytes) => io::copy(&mut noise.take(bytes), &mut writer).map(drop),
            None => write_at(rate, &mut noise, &mut writer),
        });
        Ok(Stdio::from(reader))
    }
}

/// Copies endless content to a pipe at this rate, until the other end is closed.
fn write_at(rate: Rate, content: &mut impl Read, pipe: &mut impl io::Write) -> io::Result<()> {
    let (began, mut written) = (Instant::now(), 0);
    loop {
        let due = (rate.bps() / 8.0 * (began.elapsed() + WRITTEN_EVERY).as_secs_f64()) as u64;
        written += io::copy(&mut content.take(due - written), pipe)?;
        std::thread::sleep(WRITTEN_EVERY);
    }
}

/// Returns the rate of the fastest path from the source of a flow to a receiver, by the rates that its links have at any time;
/// [`Rate::UNLIMITED`] if no link limits it.
fn fastest_path(topology: &Topology, real: &RealFlows, flow: &RealFlow) -> Rate {
    let (mut routes, mut path) = (Routes::new(topology), Vec::new());
    let rate = |link: &LinkId| {
        let changed = real.changes.iter().filter(|(_, changed, _)| *changed == link.0);
        let changed = changed.filter_map(|(.., text)| text.strip_prefix("rate=")?.parse().ok());
        changed.fold(topology.edges()[link.0 as usize].spec.rate.bps(), f64::max)
    };
    let mut to = |receiver: &RealReceiver| {
        let (from, to) = (topology.find(&flow.from)?, topology.find(&receiver.host)?);
        routes.path(from, to, &mut path)?;
        Some(path.iter().map(&rate).fold(f64::INFINITY, f64::min))
    };
    Rate::from_bps(flow.to.iter().filter_map(&mut to).fold(0.0, f64::max))
}

/// Returns the programs of a session.
fn session(
    faircast: &Path,
    flow: &RealFlow,
    goal: SocketAddr,
    (end, input): (Time, Rate),
) -> Vec<SessionProgram> {
    let Traffic::Session { scheme, packets } = &flow.traffic else { return Vec::new() };
    let datagram = flow.packet.saturating_sub(traffic::udp_headers(goal.ip()));
    let content = packets.map(|packets| packets * u64::from(datagram));
    let seconds = (end.as_secs_f64() + 60.0).to_string();
    let common = |verb: &str, host: &str, more: &[&str]| {
        let group = goal.to_string();
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
            // The content of all layers but the lowest one goes to files.
            let others: Vec<String> = (1..layers(flow)).map(|layer| format!("{layer}=/dev/null")).collect();
            let others = others.iter().flat_map(|to| ["--layer-to", to]);
            let words =
                common("recv", &receiver.host, &["--stdout"].into_iter().chain(others).collect::<Vec<_>>());
            let stop = leave.min(flow.stop);
            programs.push(SessionProgram {
                host: receiver.host.clone(),
                words,
                start: join,
                stop,
                is_source: false,
                content,
                input,
            });
        }
    }
    let (scheme, expected) = (scheme.to_string(), present.max(1).to_string());
    let datagram = datagram.to_string();
    let more = ["--no-key", "--ttl", "64", "--cc", &scheme, "--expect", &expected, "--datagram", &datagram];
    // A stream in layers has an input for each layer.
    let inputs = (0..layers(flow)).filter(|_| layers(flow) > 1).flat_map(|_| ["--layer", NOISE]);
    let (verb, path) = if content.is_some() { ("send", Some("-")) } else { ("stream", None) };
    let words = common(verb, &flow.from, &more.into_iter().chain(inputs).chain(path).collect::<Vec<_>>());
    let (start, stop) = (flow.start, flow.stop);
    let host = flow.from.clone();
    programs.push(SessionProgram { host, words, start, stop, is_source: true, content, input });
    programs
}

/// Returns whether the TCP flows of each host allow marks.
///
/// # Errors
/// When flows of a host differ.
fn ecn(real: &RealFlows) -> Result<BTreeMap<&str, Ecn>, SimUsage> {
    let mut hosts = BTreeMap::new();
    for flow in &real.flows {
        if let Traffic::Tcp { ecn, .. } = flow.traffic
            && *hosts.entry(flow.from.as_str()).or_insert(ecn) != ecn
        {
            return Err(SimUsage::EmulatedEcn(flow.from.clone()));
        }
    }
    Ok(hosts)
}

/// Waits until the receivers that are present from the beginning have joined. Their kernels report this a little later.
fn wait_for_joins(real: &RealFlows, network: &Network) -> Result<(), Failure> {
    let (mut index, mut present) = (0, Vec::new());
    for flow in &real.flows {
        for receiver in &flow.to {
            let is_present = receiver.stays.iter().any(|&(join, leave)| join == Time::ZERO && leave > join);
            present.extend(
                Some(index).filter(|_| is_present && matches!(flow.traffic, Traffic::Session { .. })),
            );
            index += layers(flow) as usize;
        }
    }
    let end = Instant::now() + LISTENS;
    loop {
        let joined = network.state()?.joined;
        if present.iter().all(|index| joined.get(*index) == Some(&true)) {
            return Ok(());
        }
        if Instant::now() > end {
            return Err(Failure::Check("the receivers of a session have not joined its group".into()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The flows to prepare.
#[derive(Debug, Clone, Copy)]
pub struct Planned<'a> {
    pub real: &'a RealFlows,
    pub topology: &'a Topology,
    /// Names of the hosts, with the addresses that the flows use.
    pub hosts: &'a [(String, IpAddr)],
    pub seed: u64,
    /// End of the run.
    pub end: Time,
}

/// The flows of a run, before and during it.
#[derive(Debug)]
pub struct Flows {
    /// The numbers of the flows among all flows of the scenario.
    prepared: Vec<(usize, Prepared)>,
    running: Vec<(usize, Running)>,
    count: usize,
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
        planned: Planned<'_>,
        network: &Network,
        (state, guests): (&State, &Guests),
    ) -> Result<Flows, Failure> {
        let Planned { real, topology, hosts, seed, end } = planned;
        let addresses: BTreeMap<String, IpAddr> = hosts.iter().cloned().collect();
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
            count: real.flows.len(),
            programs: Vec::new(),
            heard: mpsc::channel(),
            stop: Arc::new(AtomicBool::new(false)),
            end,
        };
        let ecn = ecn(real)?;
        for (host, ecn) in ecn {
            let value = if ecn == Ecn::On { "1" } else { "2" };
            let set = || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", value);
            let what = format!("set ECN of {host}");
            namespaces[host].inside(set).and_then(|done| done).map_err(Failure::system(what))?;
        }
        for (number, flow) in real.flows.iter().enumerate() {
            let goal = goal(number, flow, &addresses);
            if matches!(flow.traffic, Traffic::Session { .. }) {
                let input = fastest_path(topology, real, flow) * INPUT_OVER_PATH;
                let programs = session(&faircast, flow, goal, (end, input)).into_iter();
                flows.programs.extend(programs.map(|program| (program, None, Vec::new())));
                continue;
            }
            let at = |host: &String| End { namespace: &namespaces[host], address: addresses[host] };
            let (from, to) = (at(&flow.from), at(&flow.to[0].host));
            flows
                .prepared
                .push((number, traffic::prepare(flow, &from, &to, goal.port(), seed + number as u64)?));
        }
        flows.start_due(guests, Time::ZERO, Due::Receivers)?;
        flows.wait_for_receivers()?;
        wait_for_joins(real, network)?;
        Ok(flows)
    }

    /// Starts the flows. The run begins now.
    pub fn start(&mut self) {
        let clock = Clock { begin: Instant::now(), end: self.end, stop: Arc::clone(&self.stop) };
        self.running =
            self.prepared.drain(..).map(|(number, prepared)| (number, prepared.start(&clock))).collect();
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
            if program.content.is_some() && status.is_some_and(|status| status.success()) {
                program.stop = now; // the transfer is complete
            }
            if let Some(status) = status.filter(|_| program.stop > now) {
                let why = reason(lines);
                let verb = program.words[1].to_string_lossy();
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
            let input = program.input().map_err(Failure::system(format!("read {NOISE}")))?;
            // A receiver writes its content to standard output, and its events to standard error.
            let silent = (!program.is_source).then_some(Stream::Stdout);
            let heard = (number, &self.heard.0);
            // A program with unlimited input could take a processor for itself.
            let turn = if program.input.is_usable() { Turn::Prompt } else { Turn::Usual };
            *guest = Some(guests.start(&program.host, &program.words, input, heard, (silent, turn))?);
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

    /// Ends all flows. Returns the complete transfers of each.
    ///
    /// # Errors
    /// When a flow has broken off.
    pub fn finish(mut self) -> Result<Vec<Transferred>, Failure> {
        self.stop.store(true, Ordering::Relaxed);
        let mut transferred = vec![Transferred::new(); self.count];
        let mut ended = Ok(());
        for (number, running) in self.running.drain(..) {
            let joined = running.join().map(|transfers| transferred[number] = transfers);
            ended = ended.and(joined);
        }
        // Dropping the programs kills them.
        ended.map(|()| transferred)
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

/// Returns the bytes that reached each receiver of each flow, from the counts of the watched packets.
pub fn received(real: &RealFlows, watched: &[u64]) -> Vec<u64> {
    let mut watched = watched.iter();
    let flows = real.flows.iter().flat_map(|flow| flow.to.iter().map(|_| layers(flow) as usize));
    flows.map(|layers| watched.by_ref().take(layers).sum()).collect()
}

/// Returns the rates of `bytes` that reached each receiver of each flow within some seconds.
pub fn rates(real: &RealFlows, bytes: impl Iterator<Item = u64>, seconds: f64) -> Vec<FlowRate> {
    let receivers = real.flows.iter().flat_map(|flow| flow.to.iter().map(move |receiver| (flow, receiver)));
    let rate = |((flow, receiver), bytes): ((&RealFlow, &RealReceiver), u64)| FlowRate {
        flow: flow.group.clone(),
        copy: flow.copy,
        receiver: receiver.host.clone(),
        rate: bytes as f64 * 8.0 / seconds,
    };
    receivers.zip(bytes).map(rate).collect()
}

/// Returns the reason that the last lines of a program give for its end.
fn reason(lines: &[String]) -> String {
    let error = |line: &String| {
        let event: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(format!(": {}", event.get("message").filter(|_| event["event"] == "error")?.as_str()?))
    };
    lines.iter().rev().find_map(error).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_experiments::scenario::Scenario;

    const TEXT: &str = "title = \"t\"\nduration = \"10 s\"\nstart_jitter = \"0 s\"\n\
        [topology]\nkind = \"star\"\nleaves = 2\n\
        [[flow]]\nname = \"udp\"\nkind = \"udp\"\nrate = \"1 Mbit/s\"\nfrom = \"src1\"\nto = \"leaf2\"\n\
        [[flow]]\nname = \"layers\"\nkind = \"session\"\nscheme = \"rlc,layers=2\"\nfrom = \"src1\"\nto = \"leaf*\"\njoin = [\"0 s\", \"3 s\"]\n\
        leave_latency = \"500 ms\"\n";

    #[test]
    fn sessions_in_layers_have_a_group_and_a_stream_for_each_layer() {
        let scenario = Scenario::parse(TEXT, "test.toml").unwrap_or_else(|_| panic!("a sound scenario"));
        let real = scenario.real_flows(0, 1);
        let hosts = ["src1", "leaf1", "leaf2"]
            .map(str::to_owned)
            .into_iter()
            .zip((1..).map(|n| [10, 9, 0, n].into()));
        let hosts: Vec<(String, IpAddr)> = hosts.collect();
        let group = |last| IpAddr::from([239, 255, 1, last]);
        let expected = [(2, [10, 9, 0, 3].into(), 20_000), (1, group(16), 20_001), (1, group(17), 20_001)];
        let watched = watched(&real, &hosts);
        assert_eq!((&watched[..3], watched.len()), (&expected[..], 5));
        assert_eq!(latencies(&real, &hosts), [(group(16), group(31), 0.0, 0.5)]);
        let end = Time::from_secs_f64(10.0);
        let topology = scenario.layout(0, 1).topology().expect("its hosts forward nothing");
        assert_eq!(fastest_path(&topology, &real, &real.flows[1]), Rate::from_bps(1e6));
        let programs = session(
            Path::new("faircast"),
            &real.flows[1],
            (group(16), 20_001).into(),
            (end, Rate::from_bps(6e6)),
        );
        let words = |number: usize| {
            let words: Vec<_> = programs[number].words.iter().map(|word| word.to_string_lossy()).collect();
            words.join(" ")
        };
        assert!(words(0).ends_with("--stdout --layer-to 1=/dev/null"), "{}", words(0));
        assert!(
            words(2).contains("--group 239.255.1.16:20001") && words(2).contains("--expect 1 "),
            "{}",
            words(2)
        );
        assert!(words(2).ends_with("--layer /dev/urandom --layer /dev/urandom"), "{}", words(2));
        let wide: Vec<(String, IpAddr)> =
            hosts.iter().map(|(name, _)| (name.clone(), Ipv6Addr::LOCALHOST.into())).collect();
        let goal = goal(1, &real.flows[1], &wide.into_iter().collect());
        assert_eq!(goal.to_string(), "[ff18::8000:10]:20001");
        let over_ipv6 = session(Path::new("faircast"), &real.flows[1], goal, (end, Rate::from_bps(6e6)));
        let datagram = |of: &SessionProgram| {
            let at = of.words.iter().position(|word| word == "--datagram").expect("a source has it");
            of.words[at + 1].to_string_lossy().parse::<u16>().expect("a number")
        };
        assert_eq!(datagram(&programs[2]) - datagram(&over_ipv6[2]), 20, "the header of IPv6 is longer");
        let times = programs.iter().map(|it| (it.start.as_secs_f64(), it.is_source)).collect::<Vec<_>>();
        assert_eq!(times, [(0.0, false), (3.0, false), (0.0, true)]);
    }

    #[test]
    fn tcp_flows_of_a_host_agree_about_ecn() {
        let tcp = |name: &str, kind: &str, from: &str| {
            format!("[[flow]]\nname = \"{name}\"\nkind = \"{kind}\"\nfrom = \"{from}\"\nto = \"leaf1\"\n")
        };
        let of = |flows: &str| {
            let text = TEXT.replace("\"star\"", "\"dumbbell\"\nsources = 2") + flows;
            let scenario = Scenario::parse(&text, "test.toml").unwrap_or_else(|_| panic!("a sound scenario"));
            let real = scenario.real_flows(0, 1);
            let hosts = ecn(&real).map_err(|error| error.to_string())?;
            Ok(hosts.into_iter().map(|(host, ecn)| (host.to_owned(), ecn)).collect::<Vec<_>>())
        };
        let both = tcp("a", "tcp-newreno,ecn", "src1") + &tcp("b", "tcp-cubic", "src2");
        let expected = [("src1", Ecn::On), ("src2", Ecn::Off)].map(|(host, ecn)| (host.to_owned(), ecn));
        assert_eq!(of(&both), Ok::<_, String>(expected.to_vec()));
        let refused = of(&(both + &tcp("c", "tcp-cubic", "src1"))).expect_err("Linux sets it by host");
        assert!(refused.contains("src1"), "{refused}");
    }

    #[test]
    fn end_of_a_program_has_its_own_reason() {
        let lines = ["{\"event\":\"error\",\"message\":\"no room\"}", "{\"event\":\"done\"}", "text"];
        assert_eq!(reason(&lines.map(str::to_owned)), ": no room");
        assert_eq!(reason(&["{\"event\":\"done\"}".to_owned()]), "");
    }
}
