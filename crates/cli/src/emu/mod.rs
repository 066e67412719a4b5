//! `faircast emu`: networks of scenarios with real kernels and programs.
//!
//! ```text
//! emu run --+-- keeper (holds the namespaces, carries the packets; process 1 of a process namespace)
//!           +-- programs on hosts (in the keeper's process namespace)
//! ```
//!
//! The keeper ends with the process that started it, and everything in the network ends with the keeper.
//!
//! | module | contents |
//! |---|---|
//! | [`args`] | command line arguments |
//! | [`keeper`] | the keeper, and the state that it reports |
//! | [`network`] | starting, finding and removing networks |
//! | [`guests`] `nursery` | programs on hosts; the thread that starts processes |
//! | `flows` `traffic` | flows of the scenario: sessions as programs, TCP and UDP |
//! | `outcome` | results, as tables and JSON |
//! | [`worlds`] | `compare --worlds` |

pub mod args;
mod flows;
pub mod guests;
pub mod keeper;
mod network;
mod nursery;
mod outcome;
mod traffic;
pub mod worlds;

use crate::failure::{Failure, unwritten};
use crate::sim::running;
use crate::sim_usage::SimUsage;
use crate::{json, system};
use args::{Building, EmuCommand, EmuDown, EmuRun, EmuStatus, EmuUp};
use faircast_core::time::Time;
use faircast_emulator::EmulationPlan;
use faircast_experiments::scenario::{RealFlows, Scenario};
use faircast_topology::Topology;
use flows::Flows;
use guests::{Guest, Guests, Heard, Program, Stream};
use keeper::{Order, State};
use network::Network;
use outcome::{Ended, Measured, Printer};
use std::ffi::OsString;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a run looks at its programs.
const TURN: Duration = Duration::from_millis(5);
/// Maximum number of hosts, each of which is a namespace.
const MAX_HOSTS: usize = 1_000;

/// Runs as a part of an emulation, if this program was started under the name of a part.
pub fn called(words: Vec<OsString>) -> Option<Result<(), Failure>> {
    match words.first()?.to_str()? {
        keeper::NAME => Some(keeper::run()),
        guests::NAME => Some(guests::enter(words)),
        _ => None,
    }
}

/// Runs a command of `emu`.
///
/// # Errors
/// The error of the command; [`Failure::Check`] when a program has failed or the run is invalid.
pub fn run(command: EmuCommand, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    match command {
        EmuCommand::Run(typed) => run_programs(&typed, out, stop),
        EmuCommand::Up(typed) => up(&typed, out),
        EmuCommand::Down(typed) => down(&typed, out),
        EmuCommand::Status(typed) => status(&typed, out),
    }
}

/// A scenario, ready to be emulated.
struct Lab {
    scenario: Scenario,
    topology: Topology,
    hosts: Vec<(String, Ipv4Addr)>,
    real: RealFlows,
    seed: u64,
    mtu: u16,
}

impl Lab {
    fn read(file: &Path, typed: &Building) -> Result<Lab, Failure> {
        let scenario = running::read(file, &typed.set, typed.max_memory)?;
        running::warn(&scenario);
        if scenario.points().len() > 1 {
            return Err(SimUsage::EmulatedSweep(scenario.points().len()).into());
        }
        let seed = typed.seed.or(scenario.seeds().first().copied()).unwrap_or(1);
        let topology = scenario.layout(0, seed).topology().map_err(SimUsage::HostThatForwards)?;
        let plan = EmulationPlan::from(topology.clone());
        let hosts: Vec<_> = plan.hosts().map(|(name, host)| (name, host.address)).collect();
        if hosts.len() > MAX_HOSTS {
            return Err(SimUsage::TooManyEmulatedHosts { hosts: hosts.len(), most: MAX_HOSTS }.into());
        }
        let real = scenario.real_flows(0, seed);
        if real.flows.len() > flows::MAX_FLOWS {
            return Err(
                SimUsage::TooManyEmulatedFlows { flows: real.flows.len(), most: flows::MAX_FLOWS }.into()
            );
        }
        let largest = real.flows.iter().map(|flow| flow.packet).max().unwrap_or(0);
        Ok(Lab { scenario, topology, hosts, real, seed, mtu: typed.mtu.max(largest) })
    }

    fn order(&self, typed: &Building, bound: bool) -> Order {
        Order {
            id: format!("emu-{:04x}", system::random() as u16),
            title: self.scenario.title().to_owned(),
            network: self.topology.to_string(),
            mtu: self.mtu,
            seed: self.seed,
            memory: typed.max_memory,
            bound,
            changes: self
                .real
                .changes
                .iter()
                .map(|(at, link, text)| (at.as_secs_f64(), *link, text.clone()))
                .collect(),
            watched: flows::watched(&self.real, &self.hosts),
        }
    }
}

fn up(typed: &EmuUp, out: &mut impl Write) -> Result<(), Failure> {
    let lab = Lab::read(&typed.file, &typed.building)?;
    network::require_root()?;
    let network = network::staying(&lab.order(&typed.building, false))?;
    let state = network.state()?;
    if typed.json {
        return json::write(out, &outcome::Listed::new(&network, &state)).map_err(unwritten);
    }
    let id = &network.id;
    writeln!(out, "{id}: {}", state.title).map_err(unwritten)?;
    write!(out, "{}", outcome::hosts(&state).text()).map_err(unwritten)?;
    let first = state.hosts.first().map_or("HOST", |host| &host.name);
    writeln!(out, "\nnext:\n  faircast emu run {id} -- {first}: PROGRAM\n  faircast emu down {id}")
        .map_err(unwritten)
}

fn down(typed: &EmuDown, out: &mut impl Write) -> Result<(), Failure> {
    network::require_root()?;
    let networks = match typed.ids.is_empty() {
        true => network::all()?,
        false => typed.ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?,
    };
    let mut remain = Vec::new();
    for network in &networks {
        match network.remove() {
            Ok(()) => writeln!(out, "removed {}", network.id).map_err(unwritten)?,
            Err(what) => remain.push(what),
        }
    }
    if networks.is_empty() {
        writeln!(out, "there is no emulated network").map_err(unwritten)?;
    }
    match remain.is_empty() {
        true => Ok(()),
        false => Err(Failure::Check(format!("could not be removed: {}", remain.join(", ")))),
    }
}

fn find(id: &str) -> Result<Network, SimUsage> {
    network::find(id).map_err(|_| SimUsage::NoEmulation(id.to_owned()))
}

fn status(typed: &EmuStatus, out: &mut impl Write) -> Result<(), Failure> {
    network::require_root()?;
    let networks = network::all()?;
    // A network that ends meanwhile is left out.
    let states: Vec<_> =
        networks.iter().filter_map(|network| Some((network, network.state().ok()?))).collect();
    if typed.json {
        let listed = states.iter().map(|(network, state)| outcome::Listed::new(network, state));
        return listed.into_iter().try_for_each(|it| json::write(out, &it)).map_err(unwritten);
    }
    if states.is_empty() {
        return writeln!(out, "there is no emulated network").map_err(unwritten);
    }
    write!(out, "{}", outcome::networks(&states).text()).map_err(unwritten)
}

fn run_programs(typed: &EmuRun, out: &mut impl Write, stop: &AtomicBool) -> Result<(), Failure> {
    let named = typed.network.to_str().filter(|_| !typed.network.exists()).unwrap_or_default();
    if let Ok(network) = network::find(named) {
        network::require_root()?;
        if typed.words.is_empty() || typed.flows {
            return Err(SimUsage::NoProgramInEmulation(network.id).into());
        }
        let state = network.state()?;
        let programs = guests::programs(&typed.words, &state.hosts)?;
        let guests = Guests::new(&network, &state.hosts)?;
        let mut printer = Printer::new(out, typed.json);
        let ended = follow(&mut Session::new(&guests, typed.timeout), &programs, None, &mut printer, stop);
        return ended.and_then(|()| printer.conclude(&network.state()?.load));
    }
    let lab = Lab::read(&typed.network, &typed.building)?;
    let planned: Vec<_> = lab
        .hosts
        .iter()
        .map(|(name, address)| keeper::HostState { name: name.clone(), address: *address, descriptor: -1 })
        .collect();
    let programs = guests::programs(&typed.words, &planned)?;
    let has_flows = typed.words.is_empty() || typed.flows;
    if has_flows && !lab.real.omitted.is_empty() && !typed.omit {
        return Err(SimUsage::NotEmulated(lab.real.omitted.join("\n  ")).into());
    }
    if has_flows && lab.real.flows.is_empty() {
        return Err(SimUsage::NothingToEmulate.into());
    }
    network::require_root()?;
    let mut printer = Printer::new(out, typed.json);
    if has_flows {
        printer.omitted(&lab.real.omitted)?;
    }
    let bound = network::bound(&lab.order(&typed.building, true))?;
    let state = bound.network.state()?;
    let guests = Guests::new(&bound.network, &state.hosts)?;
    let mut session = Session::new(&guests, typed.timeout);
    match has_flows {
        false => follow(&mut session, &programs, None, &mut printer, stop)?,
        true => {
            let run = FlowRun::prepare(&lab, &bound.network, &state, &guests)?;
            let measured = run.follow(&lab, &mut session, &programs, &mut printer, stop)?;
            printer.measured(&measured)?;
        }
    }
    printer.conclude(&bound.network.state()?.load)
}

/// Emulates the flows of a scenario without other programs. Returns the results, and how well this machine kept up.
fn measure(lab: &Lab, typed: &Building, stop: &AtomicBool) -> Result<(Measured, keeper::Load), Failure> {
    let bound = network::bound(&lab.order(typed, true))?;
    let state = bound.network.state()?;
    let guests = Guests::new(&bound.network, &state.hosts)?;
    let run = FlowRun::prepare(lab, &bound.network, &state, &guests)?;
    let (mut session, mut nothing) = (Session::new(&guests, None), std::io::sink());
    let measured = run.follow(lab, &mut session, &[], &mut Printer::new(&mut nothing, false), stop)?;
    Ok((measured, bound.network.state()?.load))
}

/// Programs of a run, and how they end.
struct Session<'a> {
    guests: &'a Guests,
    timeout: Option<Duration>,
    running: Vec<Option<Guest>>,
}

impl<'a> Session<'a> {
    fn new(guests: &'a Guests, timeout: Option<Duration>) -> Session<'a> {
        Session { guests, timeout, running: Vec::new() }
    }
}

/// The flows of a run, with the states of the network at the warm-up and at the end.
struct FlowRun<'a> {
    flows: Flows,
    network: &'a Network,
    warmup: Time,
    end: Time,
    states: Vec<(Time, State)>,
}

impl<'a> FlowRun<'a> {
    fn prepare(
        lab: &Lab,
        network: &'a Network,
        state: &State,
        guests: &Guests,
    ) -> Result<FlowRun<'a>, Failure> {
        let end = Time::from_secs_f64(lab.scenario.duration(0));
        let flows = Flows::prepare(&lab.real, network, (state, guests), (end, lab.seed))?;
        Ok(FlowRun { flows, network, warmup: lab.scenario.warmup(0), end, states: Vec::new() })
    }

    /// Runs the flows beside programs. Returns the results of the flows.
    fn follow<W: Write>(
        mut self,
        lab: &Lab,
        session: &mut Session<'_>,
        programs: &[Program],
        printer: &mut Printer<'_, W>,
        stop: &AtomicBool,
    ) -> Result<Measured, Failure> {
        let ended = follow(session, programs, Some(&mut self), printer, stop);
        let finished = self.flows.finish();
        ended.and(finished)?;
        let [before, after] = &self.states[..] else { unreachable!("a run has both states at its end") };
        Ok(Measured::new(&lab.real, &lab.topology, before, after))
    }
}

/// Runs flows and programs until all of them have ended.
fn follow<W: Write>(
    session: &mut Session<'_>,
    programs: &[Program],
    mut run: Option<&mut FlowRun<'_>>,
    printer: &mut Printer<'_, W>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (sender, heard) = mpsc::channel();
    if let Some(run) = &run {
        run.network.begin()?;
    }
    let clock = run.as_mut().map(|run| run.flows.start());
    let began = Instant::now();
    for (number, program) in programs.iter().enumerate() {
        let input = Stdio::null();
        let mut guest =
            session.guests.start(&program.host, &program.words, input, (number, &sender), None)?;
        if number + 1 < programs.len() {
            guest.settle();
        }
        session.running.push(Some(guest));
    }
    loop {
        print(&heard, programs, printer)?;
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::Check("stopped by a signal; the network is removed".into()));
        }
        let mut is_running = false;
        if let (Some(run), Some(clock)) = (&mut run, &clock) {
            let now = clock.now();
            is_running |= run.states.len() < 2;
            let due = if run.states.is_empty() { run.warmup } else { run.end };
            if is_running && now >= due {
                run.states.push((now, run.network.state()?));
            }
            if is_running {
                run.flows.follow(session.guests, now)?;
            }
        }
        let is_late = session.timeout.is_some_and(|timeout| began.elapsed() > timeout);
        for (guest, program) in session.running.iter_mut().zip(programs) {
            let Some(running) = guest else { continue };
            if is_late {
                running.end();
            }
            match running.ended().map_err(Failure::system("wait for a program"))? {
                None => is_running |= !is_late,
                Some(status) => {
                    print(&heard, programs, printer)?;
                    printer.ended(&Ended { program, status, by_us: is_late })?;
                    *guest = None;
                }
            }
        }
        if !is_running {
            return Ok(());
        }
        thread::sleep(TURN);
    }
}

/// Prints what the programs have written.
fn print<W: Write>(
    heard: &Receiver<Heard>,
    programs: &[Program],
    printer: &mut Printer<'_, W>,
) -> Result<(), Failure> {
    heard.try_iter().try_for_each(|heard| {
        printer.line(&programs[heard.program], heard.stream == Stream::Stderr, &heard.line)
    })
}
