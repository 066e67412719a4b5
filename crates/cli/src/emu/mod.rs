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
//! | `capture` | captures of links |
//! | [`keeper`] | the keeper, and the state that it reports |
//! | [`network`] | starting, finding and removing networks |
//! | [`guests`] `nursery` | programs on hosts; the thread that starts processes |
//! | `flows` `traffic` | flows of the scenario: sessions as programs, TCP and UDP |
//! | `lab` | a scenario, ready to be emulated |
//! | `live` | live view and record of a run |
//! | `outcome` | results, as tables and JSON |
//! | [`worlds`] | `compare --worlds` |

pub mod args;
mod capture;
mod flows;
pub mod guests;
pub mod keeper;
mod lab;
mod live;
mod network;
mod nursery;
mod outcome;
mod traffic;
pub mod worlds;

use crate::failure::{Failure, unwritten};
use crate::json;
use crate::sim::files;
use crate::sim_usage::SimUsage;
use args::{Building, EmuCommand, EmuDown, EmuRun, EmuStatus, EmuUp};
use faircast_core::time::Time;
use faircast_experiments::results::Results;
use flows::Flows;
use guests::{Guest, Guests, Heard, Program, Stream};
use lab::Lab;
use live::{Live, Record};
use network::Network;
use outcome::{Ended, Printer};
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a run looks at its programs.
const TURN: Duration = Duration::from_millis(5);

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

fn up(typed: &EmuUp, out: &mut impl Write) -> Result<(), Failure> {
    let lab = Lab::read(&typed.file, &typed.building)?;
    network::become_root()?;
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
        if typed.words.is_empty() || typed.flows || typed.ipv6 || typed.records() || typed.pcap.is_some() {
            return Err(SimUsage::NoProgramInEmulation(network.id).into());
        }
        network.become_root()?;
        let state = network.state()?;
        let names: Vec<&str> = state.hosts.iter().map(|host| host.name.as_str()).collect();
        let programs = guests::programs(&typed.words, &names)?;
        let guests = Guests::new(&network, &state.hosts)?;
        let mut printer = Printer::new(out, typed.json);
        let ended = follow(&mut Session::new(&guests, typed.timeout), &programs, None, &mut printer, stop);
        return ended.and_then(|()| printer.conclude(&network.state()?.load));
    }
    let mut lab = Lab::read(&typed.network, &typed.building)?;
    let has_flows = typed.words.is_empty() || typed.flows;
    if typed.ipv6 && !has_flows {
        return Err(SimUsage::NoFlowsOverIpv6.into());
    }
    if typed.ipv6 {
        lab = lab.over_ipv6()?;
    }
    let names: Vec<&str> = lab.hosts.iter().map(|(name, _)| name.as_str()).collect();
    let programs = guests::programs(&typed.words, &names)?;
    if has_flows && !lab.real.omitted.is_empty() && !typed.omit {
        return Err(SimUsage::NotEmulated(lab.real.omitted.join("\n  ")).into());
    }
    if has_flows && lab.real.flows.is_empty() {
        return Err(SimUsage::NothingToEmulate.into());
    }
    network::become_root()?;
    let mut printer = Printer::new(out, typed.json);
    if has_flows {
        printer.omitted(&lab.real.omitted)?;
    }
    let mut order = lab.order(&typed.building, true);
    order.capture = typed.pcap.as_ref().map(|file| lab.capture(file, typed.snaplen)).transpose()?;
    let bound = network::bound(&order)?;
    let state = bound.network.state()?;
    let guests = Guests::new(&bound.network, &state.hosts)?;
    let flows = if has_flows { Some(lab.flows(&bound.network, &state, &guests)?) } else { None };
    let record = if typed.records() { Record::Whole } else { Record::Rates };
    let mut run = Run { live: Live::begin(&lab, &bound.network, record)?, flows };
    follow(&mut Session::new(&guests, typed.timeout), &programs, Some(&mut run), &mut printer, stop)?;
    if has_flows {
        printer.measured(&run.live.measured())?;
    }
    if let Some(directory) = &typed.out {
        let took = Duration::from_secs_f64(bound.network.state()?.seconds);
        files::run(Some(&run.live.results()), &[], directory, Some(NonZeroUsize::MIN), took)?;
    }
    if let Some(file) = &typed.flent {
        files::flent(file, &lab.scenario, &run.live.results(), "emulation")?;
    }
    let state = bound.network.state()?;
    if let Some(fault) = state.capture_fault {
        printer.failed(format!("the capture is incomplete: {fault}"));
    }
    printer.conclude(&state.load)
}

/// Emulates the flows of a scenario without other programs. Returns the results, and how well this machine kept up.
fn measure(lab: &Lab, typed: &Building, stop: &AtomicBool) -> Result<(Results, keeper::Load), Failure> {
    let bound = network::bound(&lab.order(typed, true))?;
    let state = bound.network.state()?;
    let guests = Guests::new(&bound.network, &state.hosts)?;
    let flows = Some(lab.flows(&bound.network, &state, &guests)?);
    let mut run = Run { live: Live::begin(lab, &bound.network, Record::Whole)?, flows };
    let (mut session, mut nothing) = (Session::new(&guests, None), std::io::sink());
    follow(&mut session, &[], Some(&mut run), &mut Printer::silent(&mut nothing), stop)?;
    Ok((run.live.results(), bound.network.state()?.load))
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

/// A run of a scenario.
struct Run<'a> {
    live: Live<'a>,
    flows: Option<Flows>,
}

/// Runs flows and programs until all of them have ended, and ends the flows.
fn follow<W: Write>(
    session: &mut Session<'_>,
    programs: &[Program],
    mut run: Option<&mut Run<'_>>,
    printer: &mut Printer<'_, W>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let ended = follow_all(session, programs, run.as_deref_mut(), printer, stop);
    let Some(run) = run else { return ended };
    let finished = run.flows.take().map_or(Ok(Vec::new()), Flows::finish);
    ended.and(finished).map(|transferred| run.live.transferred(transferred))
}

fn follow_all<W: Write>(
    session: &mut Session<'_>,
    programs: &[Program],
    mut run: Option<&mut Run<'_>>,
    printer: &mut Printer<'_, W>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let (sender, heard) = mpsc::channel();
    if let Some(flows) = run.as_mut().and_then(|run| run.flows.as_mut()) {
        flows.start();
    }
    let began = Instant::now();
    for (number, program) in programs.iter().enumerate() {
        let input = Stdio::null();
        let usual = (None, guests::Turn::Usual);
        let mut guest =
            session.guests.start(&program.host, &program.words, input, (number, &sender), usual)?;
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
        if let Some(run) = &mut run {
            let now = Time::from_nanos(began.elapsed().as_nanos() as u64);
            run.live.follow(now, printer)?;
            if let Some(flows) = run.flows.as_mut().filter(|_| !run.live.is_over()) {
                flows.follow(session.guests, now)?;
                is_running = true;
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
