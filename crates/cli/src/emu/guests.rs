//! Programs on the hosts of an emulated network.

use super::keeper::HostState;
use super::network::{Network, state_of};
use super::nursery::Nursery;
use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use faircast_emulator::sandbox;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Name under which this program enters a host and becomes another program.
pub const NAME: &str = "faircast-emu-host";
/// Longest line of a program that is passed on as one line, in bytes.
const MAX_LINE: u64 = 64 << 10;
/// Time in which a program settles before the next one starts.
const SETTLES: Duration = Duration::from_secs(3);
/// Time in which a program ends after SIGTERM.
const ENDS: Duration = Duration::from_secs(2);

/// A program of the user: its host and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub host: String,
    pub words: Vec<OsString>,
}

/// Splits the words after `--` into programs. A program begins with the name of a host and a colon.
///
/// # Errors
/// When a program has no host, or no word.
pub fn programs(words: &[OsString], hosts: &[&str]) -> Result<Vec<Program>, SimUsage> {
    let host = |word: &OsStr| {
        let name = word.to_str()?.strip_suffix(':')?;
        hosts.iter().find(|host| **host == name).map(|host| (*host).to_owned())
    };
    let mut programs: Vec<Program> = Vec::new();
    let mut rest = words;
    while let Some(first) = rest.first() {
        let host_of = host(first).ok_or_else(|| SimUsage::NoEmulatedHost {
            word: first.to_string_lossy().into_owned(),
            known: hosts.join(", "),
        })?;
        // A `--` that no host follows belongs to the program.
        let next = (1..rest.len())
            .find(|at| rest[*at] == "--" && rest.get(at + 1).is_none_or(|word| host(word).is_some()));
        let words = rest[1..next.unwrap_or(rest.len())].to_vec();
        if words.is_empty() {
            return Err(SimUsage::NoEmulatedProgram(host_of));
        }
        programs.push(Program { host: host_of, words });
        rest = &rest[next.map_or(rest.len(), |at| at + 1)..];
    }
    Ok(programs)
}

/// Output of a program.
#[derive(Debug)]
pub struct Heard {
    /// Number of the program.
    pub program: usize,
    pub stream: Stream,
    pub line: String,
}

/// An output of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// When a program gets a processor of a busy machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// As any program.
    Usual,
    /// Before the programs of the machine. For programs that mostly wait.
    Prompt,
}

/// Word for [`Turn::Prompt`].
const PROMPT: &str = "prompt";

/// Starts programs on the hosts of a network.
#[derive(Debug)]
pub struct Guests {
    nursery: Nursery,
    program: PathBuf,
    keeper: u32,
    hosts: Vec<HostState>,
}

/// A program on a host. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Guest {
    child: Child,
    readers: Vec<JoinHandle<()>>,
}

impl Guests {
    /// Prepares for programs on these hosts.
    ///
    /// # Errors
    /// Without root, or when the network has ended.
    pub fn new(network: &Network, hosts: &[HostState]) -> Result<Guests, Failure> {
        let program = std::env::current_exe().map_err(Failure::system("find this program's own file"))?;
        let keeper = network.keeper;
        let nursery = Nursery::new(move || sandbox::join_processes(keeper))
            .map_err(Failure::system(format!("enter the emulation {}", network.id)))?;
        Ok(Guests { nursery, program, keeper, hosts: hosts.to_vec() })
    }

    /// Starts a program. `heard` gets the lines of those outputs that `silent` does not name.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start(
        &self,
        host: &str,
        words: &[OsString],
        input: Stdio,
        (number, heard): (usize, &Sender<Heard>),
        (silent, turn): (Option<Stream>, Turn),
    ) -> Result<Guest, Failure> {
        let descriptor =
            self.hosts.iter().find(|known| known.name == host).map_or(-1, |host| host.descriptor);
        let mut command = Command::new(&self.program);
        command.arg0(NAME).arg(self.keeper.to_string()).arg(descriptor.to_string());
        command.arg(if turn == Turn::Prompt { PROMPT } else { "" }).args(words).stdin(input);
        let to = |stream| if silent == Some(stream) { Stdio::null() } else { Stdio::piped() };
        command.stdout(to(Stream::Stdout)).stderr(to(Stream::Stderr));
        let what = format!("start a program on {host}");
        let mut child = self.nursery.spawn(command).map_err(Failure::system(what))?;
        let mut readers = Vec::new();
        let mut read = |pipe: Option<Box<dyn Read + Send>>, stream| {
            let (heard, pipe) = (heard.clone(), pipe?);
            readers.push(thread::spawn(move || pass_on(pipe, number, stream, &heard)));
            Some(())
        };
        read(child.stdout.take().map(|pipe| Box::new(pipe) as _), Stream::Stdout);
        read(child.stderr.take().map(|pipe| Box::new(pipe) as _), Stream::Stderr);
        Ok(Guest { child, readers })
    }
}

/// Passes the lines of a program on until its output ends.
fn pass_on(pipe: impl Read, program: usize, stream: Stream, heard: &Sender<Heard>) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while (&mut pipe).take(MAX_LINE).read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if heard.send(Heard { program, stream, line: text }).is_err() {
            return; // nobody listens any more
        }
        line.clear();
    }
}

impl Guest {
    /// Returns the status of the program if it has ended.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        // Other processes may hold the outputs open, so this waits only for readers that are at the end.
        if status.is_some() {
            let end = Instant::now() + Duration::from_millis(200);
            while self.readers.iter().any(|reader| !reader.is_finished()) && Instant::now() < end {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(status)
    }

    /// Waits until the program waits itself, or has ended. A server then takes connections.
    pub fn settle(&mut self) {
        let (mut sleeping, end) = (0, Instant::now() + SETTLES);
        while sleeping < 3 && Instant::now() < end && !matches!(self.child.try_wait(), Ok(Some(_))) {
            thread::sleep(Duration::from_millis(15));
            sleeping = if state_of(self.child.id()) == Some('S') { sleeping + 1 } else { 0 };
        }
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: Signal) {
        // An error means that the program has ended.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    /// Ends the program.
    pub fn end(&mut self) {
        self.signal(Signal::TERM);
        let end = Instant::now() + ENDS;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // An error means that the program has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Enters a host and becomes another program: `KEEPER DESCRIPTOR TURN PROGRAM ARGUMENTS`.
///
/// # Errors
/// When the host cannot be entered or the program cannot be started.
pub fn enter(words: Vec<OsString>) -> Result<(), Failure> {
    let mut words = words.into_iter().skip(1);
    let mut number = || words.next().and_then(|word| word.to_str()?.parse::<i32>().ok());
    let (Some(keeper), Some(descriptor), Some(turn), Some(program)) =
        (number(), number(), words.next(), words.next())
    else {
        return Err(Failure::Check("only `faircast emu` starts programs in this way".into()));
    };
    let entered = || {
        sandbox::die_with_parent()?;
        if turn == PROMPT {
            sandbox::precede(); // without this right the program runs as any other
        }
        // The tree of mounts of the network has the same directories, but entering it leaves the present one.
        let here = std::env::current_dir()?;
        sandbox::join(keeper.unsigned_abs(), descriptor)?;
        std::env::set_current_dir(here)
    };
    entered().map_err(Failure::system("enter the emulated host"))?;
    let error = Command::new(&program).args(words).exec();
    Err(Failure::System { what: format!("run `{}`", program.to_string_lossy()), source: error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Result<Vec<(String, String)>, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        let found = programs(&words, &["a", "b.1"]).map_err(|error| error.to_string())?;
        let text = |program: Program| {
            let words: Vec<_> = program.words.iter().map(|word| word.to_string_lossy()).collect();
            (program.host, words.join(" "))
        };
        Ok(found.into_iter().map(text).collect())
    }

    #[test]
    fn programs_begin_with_a_host() {
        let one = |host: &str, words: &str| (host.to_owned(), words.to_owned());
        assert_eq!(
            split("a: iperf3 -s -1 -- b.1: iperf3 -c a"),
            Ok(vec![one("a", "iperf3 -s -1"), one("b.1", "iperf3 -c a")])
        );
        assert_eq!(split("a: sh -c x -- y c: z"), Ok(vec![one("a", "sh -c x -- y c: z")]));
        assert_eq!(split(""), Ok(vec![]));
        let none = split("iperf3 -s").expect_err("no host");
        assert!(none.contains("`iperf3`") && none.contains("a, b.1"), "{none}");
        assert!(split("a: -- b.1: x").expect_err("no program").contains("`a:`"));
    }
}
