//! The keeper: the process that holds the namespaces of an emulated network and carries its packets.
//!
//! Others reach it at an abstract socket, which ends with the process, as the namespaces do. Nothing is stored in files.

use super::capture::{Capture, CaptureOrder};
use crate::failure::Failure;
use faircast_core::time::Span;
use faircast_emulator::{
    Change, EmulationPlan, Emulator, Host, Latencies, LinkSample, Namespace, Report, Sample, Tally, Unknown,
    sandbox,
};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Name under which this program runs as a keeper.
pub const NAME: &str = "faircast-emu-keeper";
/// Beginning of the names of the keepers' sockets; the ID follows.
pub const SOCKET: &str = "faircast-emu/";
/// Request to remove the network. Every request is answered with the state.
pub const END: &str = "end";
/// Request to begin a run, in which links change and which is sampled.
pub const BEGIN: &str = "begin";
/// Request for the samples from a number on, which follows after a space.
pub const SAMPLES: &str = "samples";
/// First line of a keeper whose network is built.
pub const READY: &str = "ready";
/// Longest permitted lateness of 99 % of the packets.
const MAX_LATE_US: f64 = 1_000.0;
/// Largest permitted share of time in which the keeper waits for a processor.
const MAX_WAIT: f64 = 0.01;
/// Shortest interval of samples.
const MIN_INTERVAL: Span = Span::from_millis(1);
/// Time in which a client must send its request.
const PATIENCE: Duration = Duration::from_secs(5);

/// A network to build, from the standard input of the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub title: String,
    /// Nodes and links, in the text form of topologies.
    pub network: String,
    pub mtu: u16,
    pub seed: u64,
    pub memory: u64,
    /// Changes of links from the beginning of a run on: seconds, number of the link, change.
    pub changes: Vec<(f64, u32, String)>,
    /// Whether the network ends with the process that started the keeper.
    pub bound: bool,
    /// Packets to count: number of the receiving host, destination, port.
    pub watched: Vec<(usize, IpAddr, u16)>,
    /// First and last group, with the seconds after which joins and leaves of these groups and those between take effect.
    pub latencies: Vec<(IpAddr, IpAddr, f64, f64)>,
    /// Whether packets to groups without members reach all hosts.
    pub floods: bool,
    /// Interval of samples in seconds.
    pub sample_every: f64,
    pub capture: Option<CaptureOrder>,
}

/// State of a network, as the keeper reports it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct State {
    pub id: String,
    pub title: String,
    /// Time since the network was built.
    pub seconds: f64,
    pub hosts: Vec<HostState>,
    /// Counts of the links, in the order of the topology.
    pub links: Vec<LinkState>,
    /// Bytes of the watched packets.
    pub watched: Vec<u64>,
    /// Whether the hosts of the watched packets have joined the destination as a group.
    pub joined: Vec<bool>,
    pub load: Load,
    /// The requested samples.
    pub samples: Vec<Sampled>,
    /// Reason for which the capture is incomplete.
    pub capture_fault: Option<String>,
}

/// State of a run at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    pub number: u64,
    /// Time since the beginning of the run.
    pub seconds: f64,
    /// States of the links, in the order of the topology.
    pub links: Vec<LinkState>,
    /// Bytes of the watched packets.
    pub watched: Vec<u64>,
}

/// A host of a network.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostState {
    pub name: String,
    pub address: Ipv4Addr,
    /// `None` if hosts have no IPv6.
    pub address6: Option<Ipv6Addr>,
    /// Descriptor of the keeper for the network namespace.
    pub descriptor: i32,
}

/// Counts of a link, and its queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    pub offered: u64,
    pub accepted: u64,
    pub bytes: u64,
    pub departed: u64,
    pub overflow: u64,
    pub early: u64,
    pub marked: u64,
    pub lost: u64,
    pub waiting: u32,
    pub waiting_bytes: u64,
}

impl LinkState {
    fn of(sample: &LinkSample) -> LinkState {
        let LinkSample { waiting, waiting_bytes, departed_bytes, counts } = *sample;
        LinkState {
            offered: counts.offered,
            accepted: counts.accepted,
            bytes: counts.accepted_bytes,
            departed: departed_bytes,
            overflow: counts.overflow,
            early: counts.early,
            marked: counts.marked,
            lost: counts.lost,
            waiting,
            waiting_bytes,
        }
    }

    /// Returns the number of packets that the queue has dropped.
    pub const fn dropped(&self) -> u64 {
        self.overflow + self.early
    }
}

/// How well this machine keeps up with the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Load {
    pub packets: u64,
    /// Lateness of packets at their destination, in microseconds.
    pub late_p50_us: f64,
    pub late_p99_us: f64,
    pub late_max_us: f64,
    /// Longest time that a half, and 99 %, of the sent packets can have waited before the emulation took them, in microseconds.
    pub taken_p50_us: f64,
    pub taken_p99_us: f64,
    /// Share of time in which the emulation waited for a processor; `None` if the system does not report it.
    pub waited: Option<f64>,
    /// Share of time in which the emulation used a processor.
    pub busy: Option<f64>,
    /// Packets that were lost outside of the emulated links.
    pub lost_outside: u64,
    pub real_time: bool,
}

impl Load {
    /// Returns the reasons why measurements in the network are invalid.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (us, what) in [(self.late_p99_us, "arrived late"), (self.taken_p99_us, "were taken late")] {
            if us > MAX_LATE_US {
                faults
                    .push(format!("1 % of the packets {what} by {us:.0} us or more, above {MAX_LATE_US} us"));
            }
        }
        if let Some(waited) = self.waited.filter(|waited| *waited > MAX_WAIT) {
            faults
                .push(format!("the emulation waited for a processor in {:.1} % of the time", waited * 100.0));
        }
        if self.lost_outside > 0 {
            faults.push(format!("{} packets were lost outside of the links", self.lost_outside));
        }
        faults
    }
}

/// A request of a client.
struct Request {
    what: String,
    answer: Sender<State>,
    /// Closed when the client has the answer.
    answered: Receiver<()>,
}

impl Request {
    /// Returns the number of the first requested sample.
    fn samples(&self) -> Option<u64> {
        self.what.strip_prefix(SAMPLES)?.trim().parse().ok()
    }
}

/// Runs as a keeper: builds the network of the order on standard input, and prints `ready`, or the reason why this is impossible.
///
/// # Errors
/// When the emulation breaks off.
pub fn run() -> Result<(), Failure> {
    let mut out = io::stdout();
    let mut say = |text: &str| writeln!(out, "{text}").and_then(|()| out.flush());
    match Keeper::build() {
        Ok(keeper) => {
            say(READY).map_err(crate::failure::unwritten)?;
            keeper.serve()
        }
        // The starter prints the reason.
        Err(reason) => say(&reason.replace('\n', " ")).map_err(crate::failure::unwritten),
    }
}

struct Keeper {
    order: Order,
    plan: EmulationPlan,
    emulator: Emulator,
    capture: Option<Capture>,
    changes: Vec<(Span, u32, Change)>,
    sample_every: Span,
    namespaces: Arc<Vec<Namespace>>,
    listener: UnixListener,
    began: Instant,
    scheduled: Option<Scheduled>,
}

impl Keeper {
    fn build() -> Result<Keeper, String> {
        let order: Order = serde_json::from_reader(io::stdin().lock()).map_err(|error| error.to_string())?;
        let failed = |what: &'static str| move |error: io::Error| format!("cannot {what}: {error}");
        if order.bound {
            sandbox::die_with_parent().map_err(failed("follow the starting process"))?;
        } else {
            rustix::process::setsid().map_err(|error| failed("leave the terminal")(error.into()))?;
        }
        let mut plan = EmulationPlan::parse(&order.network).map_err(|error| error.to_string())?;
        (plan.mtu, plan.seed, plan.memory) = (order.mtu, order.seed, order.memory);
        for (_, host) in plan.hosts_mut() {
            host.groups = faircast_emulator::Groups::Joined;
        }
        let latencies = order.latencies.iter().map(|(first, last, join, leave)| {
            let [join, leave] = [join, leave].map(|seconds| Span::from_secs_f64(*seconds));
            (*first, *last, Latencies { join, leave })
        });
        plan.latencies.extend(latencies);
        plan.unknown = if order.floods { Unknown::Flood } else { Unknown::Prune };
        let names = names(&plan);
        sandbox::own_mounts(|file| fs::write(file, names))
            .map_err(failed("mount a file of host names at /etc/hosts"))?;
        let address = SocketAddr::from_abstract_name(format!("{SOCKET}{}", order.id));
        let listener =
            address.and_then(|address| UnixListener::bind_addr(&address)).map_err(failed("open a socket"))?;
        let fresh = |_| Namespace::fresh().and_then(|made| made.inside(settle).map(|()| made));
        let namespaces = (0..plan.hosts().count()).map(fresh).collect::<io::Result<Vec<_>>>();
        let namespaces = namespaces.map_err(failed("make a network namespace"))?;
        let mut emulator = Emulator::within(&plan, &namespaces).map_err(|error| error.to_string())?;
        for (host, destination, port) in &order.watched {
            emulator.watch(*host, *destination, *port);
        }
        let links = plan.link_names().len();
        let change = |(seconds, link, text): &(f64, u32, String)| {
            let change = text.parse::<Change>().map_err(|error| error.to_string())?;
            let is_link = usize::try_from(*link).is_ok_and(|link| link < links);
            is_link
                .then(|| (Span::from_secs_f64(*seconds), *link, change))
                .ok_or(format!("there is no link {link}"))
        };
        let changes = order.changes.iter().map(change).collect::<Result<Vec<_>, String>>()?;
        let create = |order: &CaptureOrder| {
            let file = order.file.display();
            Capture::create(order).map_err(|error| format!("cannot create the capture {file}: {error}"))
        };
        let capture = order.capture.as_ref().map(create).transpose()?;
        if let (Some(capture), Some(order)) = (capture.clone(), &order.capture) {
            emulator
                .tap(order.links.iter().map(|(link, _)| *link), Box::new(move |tapped| capture.add(&tapped)));
        }
        let sample_every = Span::from_secs_f64(order.sample_every).max(MIN_INTERVAL);
        emulator.hurry();
        let (namespaces, began) = (Arc::new(namespaces), Instant::now());
        Ok(Keeper {
            order,
            plan,
            emulator,
            capture,
            changes,
            sample_every,
            namespaces,
            listener,
            began,
            scheduled: Scheduled::now(),
        })
    }

    /// Carries packets until a client or a signal ends the network.
    fn serve(mut self) -> Result<(), Failure> {
        let interrupt = Arc::new(AtomicBool::new(false));
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupt))
                .map_err(Failure::system("watch for signals"))?;
        }
        let (requests, wanted) = mpsc::channel();
        let clients = Clients {
            listener: self.listener.try_clone().map_err(Failure::system("share a socket"))?,
            requests,
            interrupt: Arc::clone(&interrupt),
            namespaces: Arc::clone(&self.namespaces),
        };
        thread::spawn(move || clients.serve());
        loop {
            self.emulator.run(&interrupt).map_err(|error| Failure::Check(error.to_string()))?;
            interrupt.store(false, Ordering::Relaxed);
            if self.answer(&wanted) {
                return Ok(());
            }
        }
    }

    /// Answers all requests. Returns whether the network ends: by a request, or by a signal, which comes without a request.
    fn answer(&mut self, wanted: &Receiver<Request>) -> bool {
        let mut requests = wanted.try_iter().peekable();
        let mut ends = requests.peek().is_none();
        for request in requests {
            if request.what == BEGIN {
                self.emulator.begin(self.changes.iter().copied());
                self.emulator.sample_every(self.sample_every);
            }
            // A client that is gone needs no answer.
            let _ = request.answer.send(self.state(request.samples()));
            if request.what == END {
                let _ = request.answered.recv_timeout(PATIENCE);
                ends = true;
            }
        }
        ends
    }

    fn state(&self, samples: Option<u64>) -> State {
        let report = self.emulator.report();
        let hosts = self.plan.hosts().zip(self.namespaces.iter()).map(|((name, host), namespace)| {
            let address6 = Some(host.address6).filter(|_| self.plan.has_ipv6());
            HostState { name, address: host.address, address6, descriptor: namespace.descriptor() }
        });
        let watched = |tallies: &[Tally]| tallies.iter().map(|tally| tally.bytes).collect();
        let sampled = |sample: &Sample| Sampled {
            number: sample.number,
            seconds: sample.at.as_secs_f64(),
            links: sample.links.iter().map(LinkState::of).collect(),
            watched: watched(&sample.watched),
        };
        // A request for samples must not wait for the disk.
        let capture = self.capture.as_ref().filter(|_| samples.is_none());
        let capture_fault = capture.and_then(Capture::flush);
        let samples = samples.map(|from| self.emulator.samples(from).map(sampled).collect());
        State {
            id: self.order.id.clone(),
            title: self.order.title.clone(),
            seconds: self.began.elapsed().as_secs_f64(),
            hosts: hosts.collect(),
            links: self.emulator.links().iter().map(LinkState::of).collect(),
            watched: watched(self.emulator.watched()),
            joined: self
                .order
                .watched
                .iter()
                .map(|(host, to, _)| self.emulator.has_joined(*host, *to))
                .collect(),
            load: self.load(&report),
            samples: samples.unwrap_or_default(),
            capture_fault,
        }
    }

    fn load(&self, report: &Report) -> Load {
        let micros = |span: faircast_core::time::Span| span.as_nanos() as f64 / 1e3;
        let elapsed = self.began.elapsed().as_secs_f64().max(1e-9);
        let since = self.scheduled.zip(Scheduled::now());
        Load {
            packets: report.entries.delivered,
            late_p50_us: micros(report.lateness.quantile(0.5)),
            late_p99_us: micros(report.lateness.quantile(0.99)),
            late_max_us: micros(report.lateness.most),
            taken_p50_us: micros(report.taking.quantile(0.5)),
            taken_p99_us: micros(report.taking.quantile(0.99)),
            waited: since.map(|(before, now)| (now.waited - before.waited) / elapsed),
            busy: since.map(|(before, now)| (now.ran - before.ran) / elapsed),
            lost_outside: report.refused + report.entries.no_room,
            real_time: report.hurried,
        }
    }
}

/// Times of a thread, in seconds.
#[derive(Debug, Clone, Copy)]
struct Scheduled {
    ran: f64,
    waited: f64,
}

impl Scheduled {
    /// Returns the times of the calling thread, if the system reports them.
    fn now() -> Option<Scheduled> {
        Scheduled::parse(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
    }

    fn parse(text: &str) -> Option<Scheduled> {
        let mut nanos = text.split_whitespace().map(|word| word.parse::<f64>().ok().map(|nanos| nanos / 1e9));
        Some(Scheduled { ran: nanos.next()??, waited: nanos.next()?? })
    }
}

/// Returns the file of names for the hosts of a plan.
fn names(plan: &EmulationPlan) -> String {
    let of_host = |(name, host): (String, &Host)| match plan.has_ipv6() {
        true => format!("{} {name}\n{} {name}\n", host.address, host.address6),
        false => format!("{} {name}\n", host.address),
    };
    let lines = plan.hosts().map(of_host);
    "127.0.0.1 localhost\n::1 localhost\n".to_owned() + &lines.collect::<String>()
}

/// Sets up the network namespace of the calling thread, except for the device of the emulator.
fn settle() {
    // Flows must not reuse what earlier flows measured. If a step fails, the emulator's own commands fail, too, with a reason.
    let _ = fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1");
    let _ = std::process::Command::new("ip").args(["link", "set", "lo", "up"]).status();
}

/// Returns the number of packets that the kernel dropped at the devices in the network namespace of the calling thread.
fn dropped_at_devices() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    parse_drops(&text)
}

/// Returns the sum of dropped packets of `eth0` in the form of `/proc/net/dev`.
fn parse_drops(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("eth0:"));
    let numbers: Vec<u64> =
        line.unwrap_or("").split_whitespace().filter_map(|word| word.parse().ok()).collect();
    [3, 11].into_iter().filter_map(|column| numbers.get(column)).sum()
}

/// Takes the requests of clients.
struct Clients {
    listener: UnixListener,
    requests: Sender<Request>,
    interrupt: Arc<AtomicBool>,
    namespaces: Arc<Vec<Namespace>>,
}

impl Clients {
    fn serve(&self) {
        for client in self.listener.incoming().flatten() {
            // A client that breaks off, or that is not root, gets no answer.
            let _ = self.answer(&client);
        }
    }

    fn answer(&self, client: &UnixStream) -> io::Result<()> {
        let (_, user) = sandbox::peer(client)?;
        if user != 0 {
            return Ok(());
        }
        client.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new(io::Read::take(client, 100)).read_line(&mut line)?;
        let ((answer, state), (_given, answered)) = (mpsc::channel(), mpsc::channel());
        if self.requests.send(Request { what: line.trim().to_owned(), answer, answered }).is_err() {
            return Ok(());
        }
        self.interrupt.store(true, Ordering::Relaxed);
        let Ok(mut state): Result<State, _> = state.recv() else { return Ok(()) };
        let counted = if state.samples.is_empty() { &self.namespaces[..] } else { &[] };
        for namespace in counted {
            state.load.lost_outside += namespace.inside(dropped_at_devices)?;
        }
        writeln!(&mut &*client, "{}", serde_json::to_string(&state).map_err(io::Error::other)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Load = Load {
        packets: 1_000,
        late_p50_us: 10.0,
        late_p99_us: 120.0,
        late_max_us: 3_000.0,
        taken_p50_us: 5.0,
        taken_p99_us: 80.0,
        waited: Some(0.001),
        busy: Some(0.9),
        lost_outside: 0,
        real_time: true,
    };

    #[test]
    fn network_that_falls_behind_is_invalid_for_each_reason() {
        assert_eq!(GOOD.faults(), [""; 0]);
        assert_eq!(Load { waited: None, ..GOOD }.faults(), [""; 0], "unknown is no fault");
        for (load, reason) in [
            (Load { late_p99_us: 1_500.0, ..GOOD }, "1 % of the packets arrived late by 1500 us or more"),
            (Load { taken_p99_us: 2_000.0, ..GOOD }, "1 % of the packets were taken late by 2000 us"),
            (
                Load { waited: Some(0.02), ..GOOD },
                "the emulation waited for a processor in 2.0 % of the time",
            ),
            (Load { lost_outside: 3, ..GOOD }, "3 packets were lost outside of the links"),
        ] {
            let faults = load.faults();
            assert!(faults.len() == 1 && faults[0].starts_with(reason), "{faults:?}");
        }
    }

    #[test]
    fn numbers_of_the_system_are_parsed() {
        let scheduled = Scheduled::parse("2500000000 1000000 77\n").expect("three numbers");
        assert_eq!((scheduled.ran, scheduled.waited), (2.5, 0.001));
        assert!(Scheduled::parse("7").is_none());
        let devices = "Inter-| Receive\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: 9 9 0 4 0 0 0 0 9 9 0 5 0 0 0 0\n";
        assert_eq!((parse_drops(devices), parse_drops("")), (9, 0));
    }

    #[test]
    fn hosts_of_a_plan_have_names_in_a_file() {
        let mut plan =
            EmulationPlan::parse("host a\nrouter r\nhost b.1\nlink a r\nlink r b.1").expect("a sound plan");
        let own = "127.0.0.1 localhost\n::1 localhost\n";
        assert_eq!(names(&plan), own.to_owned() + "10.9.0.1 a\nfd09::1 a\n10.9.0.2 b.1\nfd09::2 b.1\n");
        plan.mtu = 1279;
        assert_eq!(names(&plan), own.to_owned() + "10.9.0.1 a\n10.9.0.2 b.1\n");
    }
}
