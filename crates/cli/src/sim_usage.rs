//! Invalid requests to the simulator.

use std::io;
use std::path::PathBuf;

/// An invalid request, detected before the first run.
#[derive(Debug, thiserror::Error)]
pub enum SimUsage {
    /// A scenario cannot be read.
    #[error("cannot read the scenario {}: {source}; `faircast sim new dumbbell > FILE` makes one", .path.display())]
    ScenarioUnreadable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A trace cannot be written.
    #[error("cannot write the trace {}: {source}; name another file", .path.display())]
    TraceUnwritable {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A scenario has errors, which were already printed.
    #[error("{} cannot be run: {}", .path.display(), crate::units::count(*.mistakes as u64, "mistake"))]
    ScenarioWrong {
        /// Path of the file.
        path: PathBuf,
        /// Number of errors.
        mistakes: usize,
    },
    /// A change of a scenario is impossible.
    #[error("{0}")]
    Setting(#[from] faircast_experiments::edit::EditError),
    /// No template has this name.
    #[error("there is no template `{name}`; choose one of {known}")]
    NoSuchTemplate {
        /// The given name.
        name: String,
        /// Names of all templates.
        known: String,
    },
    /// The name of a directory cannot be the name of a crate.
    #[error(
        "`{0}` cannot be the name of a crate: use lower-case letters, digits and -, beginning with a letter"
    )]
    NotACrateName(String),
    /// The directory of a new crate already exists.
    #[error("{} exists; choose another name", .0.display())]
    DirectoryExists(PathBuf),
    /// A directory is not a checkout of the source code.
    #[error("{} is no checkout of faircast: it has no file crates/core/Cargo.toml", .0.display())]
    NoCheckout(PathBuf),
    /// A report or trace does not describe a session of which a twin can be made.
    #[error("cannot make a twin of the session in {}: {why}", .path.display())]
    NoTwin {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// A receiver to leave out is not in the session, or no receiver remains.
    #[error("cannot leave out `{host}`: the complete receivers are {known}, and one must remain")]
    NoSuchReceiver {
        /// The given name.
        host: String,
        /// Names of the receivers.
        known: String,
    },
    /// The scenario file already exists.
    #[error("{} exists; choose another name, or overwrite it with --force", .0.display())]
    ScenarioExists(PathBuf),
    /// The scenario does not have the requested curve.
    #[error("{0}; write FLOW or FLOW:RECEIVER")]
    NoCurve(faircast_experiments::figures::curves::UnknownCurve),
    /// A capture was requested, but the scenario taps no link.
    #[error(
        "the scenario taps no link; add `[probe]` with `taps = \"FROM->TO\"` to select the links to capture"
    )]
    NoTaps,
    /// A run has nothing to write for Flent.
    #[error("the first run has no rates of TCP flows for --flent; add a flow of kind `tcp-cubic`")]
    NothingForFlent,
    /// The scenario does not have the flow to replace.
    #[error("the scenario has no {what}; its flows are: {known}")]
    NoSuchFlow {
        /// The missing name.
        what: String,
        /// Names of all possible flows.
        known: String,
    },
    /// The Python package is not installed.
    #[error(
        "`faircast campaign` needs the Python package faircast, but `python3` cannot import it; install it in the checkout with: pip install ."
    )]
    NoPythonPackage,
    /// No reproduction has this ID.
    #[error(transparent)]
    NoSuchReproduction(#[from] faircast_experiments::repro::NoSuchEntry),
    /// An ordinary user requested an emulation, and the kernel refuses user namespaces.
    #[error(
        "an emulation needs root or user namespaces, because every host is a network namespace with a device, and the kernel refuses user namespaces: {0}; run the command with sudo, or permit them by sysctl (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    EmulationNeedsRoot(#[source] io::Error),
    /// No emulated network has this ID.
    #[error("there is no emulated network `{0}`; `faircast emu status` lists all")]
    NoEmulation(String),
    /// A network that stays was named without programs, with the flows of a scenario, or for a record.
    #[error(
        "{0} is a network without flows and record; name programs alone, as in `faircast emu run {0} -- HOST: PROGRAM`"
    )]
    NoProgramInEmulation(String),
    /// A program has no host.
    #[error("`{word}` does not name a host; write `-- HOST: PROGRAM`, where HOST is one of: {known}")]
    NoEmulatedHost {
        /// The word in the place of the host.
        word: String,
        /// Names of the hosts.
        known: String,
    },
    /// A host has no program.
    #[error("`{0}:` is followed by no program; write `-- {0}: PROGRAM ARGUMENTS`")]
    NoEmulatedProgram(String),
    /// A scenario has a sweep.
    #[error(
        "the scenario has a sweep of {0} points, and an emulation has one network; remove `[sweep]`, and choose values with --set"
    )]
    EmulatedSweep(usize),
    /// A node of the scenario cannot be a host.
    #[error(transparent)]
    HostThatForwards(faircast_experiments::scenario::HostThatForwards),
    /// A network has too many hosts.
    #[error("the network has {hosts} hosts, and an emulation has at most {most}; make it smaller")]
    TooManyEmulatedHosts {
        /// Number of hosts.
        hosts: usize,
        /// Maximum number of hosts.
        most: usize,
    },
    /// A scenario has too many flows.
    #[error("the scenario has {flows} flows, and an emulation has at most {most}; leave some out")]
    TooManyEmulatedFlows {
        /// Number of flows.
        flows: usize,
        /// Maximum number of flows.
        most: usize,
    },
    /// The MTU is too small for IPv6.
    #[error("--mtu: IPv6 needs packets of 1280 bytes, and the hosts have {0}")]
    EmulatedMtu(u16),
    /// The version of IP was chosen for flows that do not run.
    #[error(
        "--ipv6 is for the flows of the scenario, and programs run without them; add --flows, or let the programs choose, as in `iperf3 -6`"
    )]
    NoFlowsOverIpv6,
    /// Parts of a scenario cannot be emulated.
    #[error("no program can run these parts of the scenario:\n  {0}; leave them out with --omit")]
    NotEmulated(String),
    /// Parts of a scenario prevent a comparison of its simulation with its emulation.
    #[error("the simulation has parts that no program can run:\n  {0}; remove them from the scenario")]
    NotCompared(String),
    /// One world was named for a comparison.
    #[error("a comparison needs two worlds; write --worlds sim,emu")]
    OneWorld,
    /// TCP flows of an emulated host differ in ECN.
    #[error(
        "some TCP flows from {0} have `ecn` and others do not, but Linux sets it by host; let them start at two hosts"
    )]
    EmulatedEcn(String),
    /// A scenario has no flow that can be emulated.
    #[error("the scenario has no flow that a program can run; name programs, as in `-- HOST: PROGRAM`")]
    NothingToEmulate,
}
