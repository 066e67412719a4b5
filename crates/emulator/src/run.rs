//! Devices and clock of an emulation.
//!
//! One thread reads the packets that hosts send, and writes packets to hosts at their times of arrival. The thread sleeps until
//! shortly before the next arrival and then polls the clock. If permitted, it runs with real-time priority, and keeps idle
//! processors awake while it carries packets. The [`Report`] of a run contains the lateness of packets. On a busy machine, check
//! the lateness before you trust a measurement.

use crate::batch::Batch;
use crate::cpu_latency::CpuLatency;
use crate::net::{Change, Entries, Net, Sink};
use crate::plan::{EmulationPlan, Host, PlanError};
use crate::samples::{LinkSample, Sample, Samples, Tally};
use crate::sandbox::Namespace;
use crate::split::{PREFIX, Segments};
use crate::sys::{self, Tun, Watch};
use faircast_aqm::LinkCounts;
use faircast_core::time::{Span, Time};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Name of the device of every host.
pub const INTERFACE: &str = "eth0";

/// Time between the end of sleep and the next arrival: about the delay with which the kernel wakes a thread. A thread that stays
/// awake longer takes a whole processor on links of 100 Mbit/s. The kernel then stops real-time threads for 50 ms of each second.
const AWAKE: Span = Span::from_micros(15);
/// Duration of a wait after which the thread has slept, so that no packet waited when the wait began.
const SLEPT: Span = Span::from_micros(20);
/// Maximum duration of sleep. After it, the thread checks for a request to stop.
const NAP: Span = Span::from_millis(20);
/// Number of packets after which the thread reads no more from a device before arrivals are processed again.
const BUDGET: u64 = 512;
/// Time without sleep after which the thread pauses, and duration of the pause. Packets of a pause are processed together, which
/// takes less time, so that the emulation does not need a whole processor at high rates.
const SHIFT: Span = Span::from_micros(50);
const PAUSE: Span = Span::from_micros(80);

/// An emulation of a plan between real hosts.
#[derive(Debug)]
pub struct Emulator {
    net: Net,
    tuns: Vec<Tun>,
    names: Vec<String>,
    buffer: Vec<u8>,
    batch: Batch,
    begin: Instant,
    /// Changes of links, in the order of their times.
    changes: VecDeque<(Time, u32, Change)>,
    samples: Samples,
    /// For each device, a time at which no packet waited in it.
    empty: Vec<Time>,
    cpu_latency: CpuLatency,
    report: Report,
}

/// Reason why a plan cannot be emulated.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// The plan is invalid.
    #[error(transparent)]
    EmulationPlan(#[from] PlanError),
    /// A device could not be created.
    #[error(
        "cannot create {INTERFACE} for host {host}: {source}; check that the namespace of the host and /dev/net/tun exist, and that you may read and write /dev/net/tun, or run as root"
    )]
    Device {
        /// Name of the host.
        host: String,
        /// The reason.
        source: io::Error,
    },
    /// A device could not be set up.
    #[error("cannot set up {INTERFACE} of host {host}: `{command}` failed: {why}")]
    SetUp {
        /// Name of the host.
        host: String,
        /// The command that failed.
        command: String,
        /// Error message of the command.
        why: String,
    },
    /// Reading packets or waiting for them failed.
    #[error("cannot continue the emulation: {0}")]
    Broken(io::Error),
}

/// Lateness of packets: the time between the computed arrival and the write to the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lateness {
    /// Number of packets by lateness, in steps of [`Lateness::STEP`]. The last step also counts all later packets.
    steps: Vec<u64>,
    /// Maximum lateness.
    pub most: Span,
    total: u64,
}

/// Report of an emulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Counters of packets at hosts.
    pub entries: Entries,
    /// Counters of links by name. Each direction is a link.
    pub links: Vec<(String, LinkCounts)>,
    /// Lateness of arrivals.
    pub lateness: Lateness,
    /// Time since the device of the sending host was last found empty, of each packet that was taken. A packet waited at most
    /// this time, unless this thread had no processor.
    pub taking: Lateness,
    /// Number of packets that the kernel of a host did not accept.
    pub refused: u64,
    /// Whether the emulation ran with real-time priority.
    pub hurried: bool,
}

impl Lateness {
    /// Width of a step.
    pub const STEP: Span = Span::from_micros(5);
    const STEPS: usize = 4_000;

    fn new() -> Lateness {
        Lateness { steps: vec![0; Lateness::STEPS], most: Span::ZERO, total: 0 }
    }

    fn add(&mut self, late: Span, packets: u64) {
        let step = (late.as_nanos() / Lateness::STEP.as_nanos()) as usize;
        self.steps[step.min(Lateness::STEPS - 1)] += packets;
        self.most = self.most.max(late);
        self.total += late.as_nanos() * packets;
    }

    /// Returns the mean lateness; zero without packets.
    pub fn mean(&self) -> Span {
        Span::from_nanos(self.total / self.steps.iter().sum::<u64>().max(1))
    }

    /// Returns the lateness that the fraction `part` of packets, 0 to 1, did not exceed. The result is rounded up to a step.
    pub fn quantile(&self, part: f64) -> Span {
        let rank = (self.steps.iter().sum::<u64>() as f64 * part).ceil() as u64;
        let mut seen = 0;
        let step = self.steps.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        (Lateness::STEP * (step.unwrap_or(Lateness::STEPS) as u64 + 1)).min(self.most)
    }
}

impl Emulator {
    /// Creates a device in the namespace that the plan names for each host, with its address and with routes for all destinations.
    ///
    /// # Errors
    /// Fails if the plan is invalid, or if a device cannot be created or set up.
    pub fn new(plan: &EmulationPlan) -> Result<Emulator, EmulatorError> {
        let open = |(host, of): (String, &Host)| {
            let opened = of.namespace.as_deref().map(Namespace::named).transpose();
            opened.map_err(|source| EmulatorError::Device { host, source })
        };
        let namespaces = plan.hosts().map(open).collect::<Result<Vec<_>, _>>()?;
        Emulator::build(plan, namespaces.iter().map(Option::as_ref))
    }

    /// Creates a device in each of these namespaces, which belong to the hosts in the order of the plan.
    ///
    /// # Errors
    /// Fails like [`Emulator::new`].
    pub fn within(plan: &EmulationPlan, namespaces: &[Namespace]) -> Result<Emulator, EmulatorError> {
        Emulator::build(plan, namespaces.iter().map(Some))
    }

    fn build<'a>(
        plan: &EmulationPlan,
        namespaces: impl Iterator<Item = Option<&'a Namespace>>,
    ) -> Result<Emulator, EmulatorError> {
        let net = Net::new(plan)?;
        let mut tuns = Vec::new();
        for ((name, host), namespace) in plan.hosts().zip(namespaces) {
            let make = || make_device(&name, host, plan);
            tuns.push(match namespace {
                None => make()?,
                Some(namespace) => namespace
                    .inside(make)
                    .map_err(|source| EmulatorError::Device { host: name.clone(), source })??,
            });
        }
        let names = plan.link_names();
        let buffer = vec![0; PREFIX + usize::from(u16::MAX)];
        let report = Report {
            entries: net.entries(),
            links: Vec::new(),
            lateness: Lateness::new(),
            taking: Lateness::new(),
            refused: 0,
            hurried: false,
        };
        let empty = vec![Time::ZERO; tuns.len()];
        Ok(Emulator {
            net,
            tuns,
            names,
            buffer,
            batch: Batch::default(),
            begin: Instant::now(),
            changes: VecDeque::new(),
            samples: Samples::none(),
            empty,
            cpu_latency: CpuLatency::new(),
            report,
        })
    }

    /// Counts the packets that reach a host for this destination and port, beginning now. Returns the index of the count in
    /// [`Emulator::watched`].
    pub fn watch(&mut self, host: usize, destination: IpAddr, port: u16) -> usize {
        self.net.watch(host, destination, port)
    }

    /// Gives the packets of these links to a sink from now on. The sink must not wait.
    ///
    /// # Panics
    /// Panics if a link does not exist.
    pub fn tap(&mut self, links: impl IntoIterator<Item = u32>, sink: Sink) {
        self.net.tap(links, sink);
    }

    /// Begins a run: changes links at these times from now on, in place of all changes before, and ends the latencies of all
    /// joins before. Links have the numbers of the plan.
    pub fn begin(&mut self, changes: impl IntoIterator<Item = (Span, u32, Change)>) {
        let now = self.now();
        self.net.settle(now);
        let mut changes: Vec<_> =
            changes.into_iter().map(|(at, link, change)| (now + at, link, change)).collect();
        changes.sort_by_key(|(at, ..)| *at);
        self.changes = changes.into();
    }

    /// Returns the counts of [`Emulator::watch`].
    pub fn watched(&self) -> &[Tally] {
        self.net.watched()
    }

    /// Samples the network at this interval from now on, in place of all samples before.
    pub fn sample_every(&mut self, interval: Span) {
        self.samples = Samples::from(self.now(), interval);
    }

    /// Returns the latest samples, from this number on. Their memory is bounded, so the oldest ones may be gone.
    pub fn samples(&self, from: u64) -> impl Iterator<Item = &Sample> {
        self.samples.since(from)
    }

    /// Returns whether a host has joined a group, apart from latencies.
    ///
    /// # Panics
    /// Panics if the host does not exist.
    pub fn has_joined(&self, host: usize, group: IpAddr) -> bool {
        self.net.has_joined(host, group)
    }

    /// Returns the present states of the links, in the order of the plan.
    pub fn links(&self) -> Vec<LinkSample> {
        self.net.sample(self.now())
    }

    /// Requests real-time priority for the calling thread. [`Emulator::run`] does so itself; a thread that measures its own times
    /// does it before.
    pub fn hurry(&mut self) {
        self.report.hurried = sys::hurry();
    }

    /// Carries packets until `stop` is set. The clock continues from one call to the next.
    ///
    /// # Errors
    /// Fails if a device cannot be read.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EmulatorError> {
        self.hurry();
        let mut watch = Watch::new(&self.tuns);
        let mut awake_since = self.now();
        self.empty.fill(awake_since);
        while !stop.load(Ordering::Relaxed) {
            let mut before = self.now();
            if before.since(awake_since) > SHIFT {
                Watch::pause(Duration::from_nanos(PAUSE.as_nanos())).map_err(EmulatorError::Broken)?;
                before = self.now();
                awake_since = before;
            }
            let change = self.changes.front().map_or(Time::NEVER, |(at, ..)| *at);
            let next = self.net.next().min(change).min(self.samples.due());
            let left = next.since(before + AWAKE).min(NAP);
            let ready = watch.wait(Duration::from_nanos(left.as_nanos())).map_err(EmulatorError::Broken)?;
            let now = self.now();
            let has_slept = now.since(before) > SLEPT;
            if has_slept {
                awake_since = now;
            }
            self.cpu_latency.update(ready > 0 || self.net.next() <= now, now);
            self.deliver();
            for host in 0..self.tuns.len() {
                let is_ready = ready > 0 && watch.is_ready(host);
                if has_slept || !is_ready {
                    self.empty[host] = now;
                }
                if is_ready {
                    self.collect(host).map_err(EmulatorError::Broken)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the report of the emulation so far.
    pub fn report(&self) -> Report {
        let links = self.names.iter().enumerate().map(|(number, name)| (name.clone(), self.net.link(number)));
        Report { entries: self.net.entries(), links: links.collect(), ..self.report.clone() }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.begin.elapsed().as_nanos() as u64)
    }

    /// Writes the packets that have arrived to the devices, and applies the changes that are due.
    fn deliver(&mut self) {
        let now = self.now();
        while !self.batch.is_full()
            && let Some(delivery) = self.net.due(now)
        {
            self.batch.add(&delivery);
        }
        let is_full = self.batch.is_full();
        for run in self.batch.take() {
            let now = Time::from_nanos(self.begin.elapsed().as_nanos() as u64);
            run.arrivals.iter().for_each(|at| self.report.lateness.add(now.since(*at), 1));
            if self.tuns[run.host].write(&run.prefix(), run.bytes()).is_err() {
                self.report.refused += run.arrivals.len() as u64;
            }
        }
        if is_full {
            return;
        }
        while let Some(&(_, link, change)) = self.changes.front().filter(|(at, ..)| *at <= now) {
            self.changes.pop_front();
            self.net.change(now, link, change);
        }
        while self.samples.due() <= now {
            self.samples.push(self.net.sample(now), self.net.watched().to_vec());
        }
    }

    /// Reads the packets that a host has sent.
    fn collect(&mut self, host: usize) -> io::Result<()> {
        let mut taken = 0;
        while taken < BUDGET {
            let Some(read) = self.tuns[host].read(&mut self.buffer)? else {
                self.empty[host] = self.now();
                break;
            };
            let now = Time::from_nanos(self.begin.elapsed().as_nanos() as u64);
            let (mut segments, before) = (Segments::new(read), taken);
            while let Some(packet) = segments.next() {
                taken += 1;
                // `Net` counts the packets that it ignores.
                let _ = self.net.enter(now, host, packet);
            }
            self.report.taking.add(now.since(self.empty[host]), taken - before);
        }
        Ok(())
    }
}

/// Makes the device of a host in the network namespace of the calling thread.
fn make_device(name: &str, host: &Host, plan: &EmulationPlan) -> Result<Tun, EmulatorError> {
    let tun =
        Tun::open(INTERFACE).map_err(|source| EmulatorError::Device { host: name.to_owned(), source })?;
    let (Host { address, address6, .. }, mtu) = (host, plan.mtu);
    let mut commands = vec![
        format!("link set {INTERFACE} mtu {mtu} txqueuelen 4000 addrgenmode none"),
        format!("address add {address}/16 dev {INTERFACE}"),
        format!("link set {INTERFACE} up"),
        format!("route replace default dev {INTERFACE}"),
        format!("route replace multicast 224.0.0.0/4 dev {INTERFACE}"),
    ];
    if plan.has_ipv6() && is_ipv6_on() {
        // Names lead to IPv4 addresses first, because the IPv6 address is deprecated (RFC 6724, 6).
        commands.push(format!("address add {address6}/64 dev {INTERFACE} nodad preferred_lft 0"));
        commands.push(format!("route replace ::/0 dev {INTERFACE}"));
    }
    for command in commands {
        let refused =
            |why: String| EmulatorError::SetUp { host: name.into(), command: format!("ip {command}"), why };
        let done =
            Command::new("ip").args(command.split(' ')).output().map_err(|e| refused(e.to_string()))?;
        if !done.status.success() {
            return Err(refused(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
        }
    }
    Ok(tun)
}

/// Returns whether the kernel has IPv6.
fn is_ipv6_on() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

/// Prints a table of the links and a line about lateness.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entries { taken, not_ip, too_long, local_only, no_way, no_room, delivered } = self.entries;
        writeln!(f, "packets  taken={taken} delivered={delivered} refused={}", self.refused)?;
        writeln!(
            f,
            "ignored  not_ip={not_ip} too_long={too_long} local_only={local_only} no_way={no_way} no_room={no_room}"
        )?;
        for (name, counts) in &self.links {
            let LinkCounts { offered, accepted, accepted_bytes, overflow, early, marked, lost } = counts;
            writeln!(
                f,
                "link     {name} offered={offered} accepted={accepted} bytes={accepted_bytes} overflow={overflow} \
                 early={early} marked={marked} lost={lost}"
            )?;
        }
        let micros = |span: Span| span.as_nanos() as f64 / 1e3;
        write!(
            f,
            "late     mean_us={:.1} p50_us={:.1} p99_us={:.1} p999_us={:.1} max_us={:.1} hurried={}",
            micros(self.lateness.mean()),
            micros(self.lateness.quantile(0.5)),
            micros(self.lateness.quantile(0.99)),
            micros(self.lateness.quantile(0.999)),
            micros(self.lateness.most),
            if self.hurried { "yes" } else { "no" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_has_mean_maximum_and_quantiles() {
        let mut late = Lateness::new();
        assert_eq!((late.mean(), late.quantile(0.5)), (Span::ZERO, Span::ZERO));
        for micros in 0..100 {
            late.add(Span::from_micros(micros), 1);
        }
        assert_eq!(late.quantile(0.5), Span::from_micros(50));
        assert_eq!(late.quantile(1.0), Span::from_micros(99));
        assert_eq!(late.mean(), Span::from_nanos(49_500));
        late.add(Span::from_secs(3), 1);
        assert_eq!((late.most, late.quantile(1.0)), (Span::from_secs(3), Lateness::STEP * 4_000));
    }
}
