//! Emulated networks, as the other commands see them: starting a keeper, finding keepers, asking them.

use super::keeper::{BEGIN, END, NAME, Order, READY, SAMPLES, SOCKET, Sampled, State};
use super::nursery::Nursery;
use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use faircast_emulator::sandbox;
use rustix::process::{Pid, Signal, getegid, geteuid, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time in which a keeper answers a request.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time in which a network is gone after its end was requested.
const GONE: Duration = Duration::from_secs(10);
/// Largest answer of a keeper, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// An emulated network that exists.
#[derive(Debug)]
pub struct Network {
    pub id: String,
    /// Process ID of the keeper.
    pub keeper: u32,
}

/// An emulated network that ends when this value is dropped, or when this process ends.
#[derive(Debug)]
pub struct Bound {
    pub network: Network,
    keeper: Child,
    _nursery: Nursery,
}

impl Drop for Bound {
    fn drop(&mut self) {
        // An error means that the keeper has ended already. Its end kills all processes in the network.
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Makes an ordinary user root of a user namespace, which permits to build networks. To be called before other threads exist.
///
/// # Errors
/// When the kernel does not permit this.
pub fn become_root() -> Result<(), SimUsage> {
    let (user, group) = (geteuid(), getegid());
    let become_root = || {
        sandbox::new_user()?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
        fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
    };
    if user.is_root() { Ok(()) } else { become_root().map_err(SimUsage::EmulationNeedsRoot) }
}

/// Builds a network that ends with this process.
///
/// # Errors
/// When the network cannot be built.
pub fn bound(order: &Order) -> Result<Bound, Failure> {
    let (network, keeper, nursery) = start(order)?;
    Ok(Bound { network, keeper, _nursery: nursery })
}

/// Builds a network that stays.
///
/// # Errors
/// When the network cannot be built.
pub fn staying(order: &Order) -> Result<Network, Failure> {
    start(order).map(|(network, ..)| network)
}

fn start(order: &Order) -> Result<(Network, Child, Nursery), Failure> {
    const WHAT: &str = "start the emulation";
    let program = std::env::current_exe().map_err(Failure::system("find this program's own file"))?;
    let mut command = Command::new(program);
    command.arg0(NAME).arg(&order.id).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    if order.bound {
        command.process_group(0); // Ctrl-C is for the starter, which ends the network in order
    }
    let nursery = Nursery::new(sandbox::new_processes).map_err(Failure::system(WHAT))?;
    let mut keeper = nursery.spawn(command).map_err(Failure::system(WHAT))?;
    let mut input = keeper.stdin.take().expect("it is a pipe");
    // If the keeper has ended already, the next step finds no line.
    let _ = serde_json::to_writer(&mut input, order).map(|()| input.flush());
    drop(input);
    let mut line = String::new();
    let said = keeper.stdout.take().expect("it is a pipe");
    BufReader::new(said.take(10_000)).read_line(&mut line).map_err(Failure::system(WHAT))?;
    match line.trim_end() {
        READY => Ok((Network { id: order.id.clone(), keeper: keeper.id() }, keeper, nursery)),
        reason => {
            let _ = keeper.kill();
            let _ = keeper.wait();
            let reason = if reason.is_empty() { "the emulation ended at once" } else { reason };
            Err(Failure::System {
                what: "build the network".into(),
                source: io::Error::other(reason.to_owned()),
            })
        }
    }
}

/// Returns all networks of this user.
///
/// # Errors
/// When the system's list of sockets cannot be read.
pub fn all() -> Result<Vec<Network>, Failure> {
    let list = fs::read_to_string("/proc/net/unix").map_err(Failure::system("list the emulations"))?;
    // A keeper that ends meanwhile does not answer.
    Ok(ids(&list).into_iter().filter_map(|id| find(&id).ok()).collect())
}

/// Returns the IDs of the networks in a text of the form of `/proc/net/unix`.
fn ids(list: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        Some(line.split_whitespace().nth(7)?.strip_prefix('@')?.strip_prefix(SOCKET)?.to_owned())
    };
    list.lines().filter_map(name).collect()
}

/// Returns the network with this ID.
///
/// # Errors
/// When no network has this ID.
pub fn find(id: &str) -> io::Result<Network> {
    let stream = connect(id)?;
    match sandbox::peer(&stream)? {
        (keeper, user) if user == geteuid().as_raw() => Ok(Network { id: id.to_owned(), keeper }),
        _ => Err(io::Error::other("another user has the socket of this ID")),
    }
}

fn connect(id: &str) -> io::Result<UnixStream> {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(format!("{SOCKET}{id}"))?)
}

impl Network {
    /// Gives an ordinary user the rights in the network. To be called before other threads exist.
    ///
    /// # Errors
    /// When the network has ended.
    pub fn become_root(&self) -> Result<(), Failure> {
        let joined = if geteuid().is_root() { Ok(()) } else { sandbox::join_user(self.keeper) };
        joined.map_err(Failure::system(format!("enter the emulation {}", self.id)))
    }

    /// Returns the state of the network.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn state(&self) -> Result<State, Failure> {
        self.ask("state").map_err(Failure::system(format!("ask the emulation {}", self.id)))
    }

    /// Begins a run: from now on, links change at their times.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn begin(&self) -> Result<State, Failure> {
        self.ask(BEGIN).map_err(Failure::system(format!("begin a run in the emulation {}", self.id)))
    }

    /// Returns the samples of the run from this number on.
    ///
    /// # Errors
    /// When the keeper does not answer.
    pub fn samples(&self, from: u64) -> Result<Vec<Sampled>, Failure> {
        let state = self.ask(&format!("{SAMPLES} {from}"));
        state.map(|state| state.samples).map_err(Failure::system(format!("sample the emulation {}", self.id)))
    }

    fn ask(&self, request: &str) -> io::Result<State> {
        let mut stream = connect(&self.id)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        writeln!(stream, "{request}")?;
        let mut answer = String::new();
        BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut answer)?;
        serde_json::from_str(&answer).map_err(io::Error::other)
    }

    /// Removes the network with all processes in it.
    ///
    /// # Errors
    /// Names the process that remains.
    pub fn remove(&self) -> Result<(), String> {
        // A keeper that does not answer is killed.
        let _ = self.ask(END);
        let pid =
            i32::try_from(self.keeper).ok().and_then(Pid::from_raw).expect("a process ID from the kernel");
        for attempt in [None, Some(Signal::KILL)] {
            if let Some(signal) = attempt {
                let _ = kill_process(pid, signal);
            }
            let end = Instant::now() + GONE;
            while Instant::now() < end {
                if !is_there(self.keeper) {
                    return Ok(());
                }
                thread::sleep(Duration::from_millis(5));
            }
        }
        Err(format!("{}: process {} does not end", self.id, self.keeper))
    }
}

/// Returns whether a process exists and has not ended. A process that has ended may wait for its parent as a zombie.
fn is_there(process: u32) -> bool {
    state_of(process).is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Returns the letter of a process's state, as `ps` shows it.
pub fn state_of(process: u32) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_found_by_their_sockets() {
        let list = "Num       RefCount Protocol Flags    Type St Inode Path\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 31 @faircast-emu/emu-1f\n\
            0000000000000000: 00000003 00000000 00000000 0001 03 32 @faircast-emu/emu-1f\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 33 /run/faircast-emu/emu-2\n\
            0000000000000000: 00000002 00000000 00010000 0001 01 34\n";
        assert_eq!(ids(list).into_iter().collect::<Vec<_>>(), ["emu-1f"]);
        assert!(state_of(std::process::id()).is_some_and(|state| state.is_ascii_uppercase()));
        assert!(is_there(std::process::id()) && state_of(0).is_none());
    }
}
