//! `start`: starts a waiting session with the receivers that have joined.

use crate::failure::{Failure, Usage, unwritten};
use faircast::config::StartNow;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::SIGUSR1;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::thread;

/// Interval of checks of the keyboard.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// A `send` or `stream` on this host that `start` may signal.
#[derive(Debug)]
struct Waiting {
    pid: i32,
    /// Command line of the process.
    line: String,
}

/// Registers SIGUSR1, and Enter at a terminal, as requests to start the session. Returns whether standard input is a terminal.
///
/// # Errors
/// When the signal handler cannot be registered.
pub fn on_request(start: &StartNow) -> Result<bool, Failure> {
    signal_hook::flag::register(SIGUSR1, start.flag()).map_err(Failure::system("watch for signals"))?;
    let is_terminal = io::stdin().is_terminal();
    if is_terminal {
        let start = start.clone();
        // Without the thread, the signal still works.
        let _ = thread::Builder::new().name("keyboard".to_owned()).spawn(move || watch_keyboard(&start));
    }
    Ok(is_terminal)
}

/// Starts the session when Enter is pressed. A background process does not read the keyboard, because reading would stop it.
fn watch_keyboard(start: &StartNow) {
    let mut stdin = io::stdin();
    let mut byte = [0];
    while !start.is_finished() {
        let ready = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK_EVERY)).unwrap_or(0);
        let in_foreground = rustix::termios::tcgetpgrp(&stdin).is_ok_and(|group| group == getpgrp());
        if ready == 0 || !in_foreground || start.is_finished() {
            if ready > 0 {
                thread::sleep(std::time::Duration::from_millis(200));
            }
            continue;
        }
        match stdin.read(&mut byte) {
            Ok(1) if byte[0] == b'\n' => return start.start(),
            Ok(1) => {}
            _ => return,
        }
    }
}

/// Sends the signal to this process, or to the only waiting session on this host.
///
/// # Errors
/// When no session waits, when several sessions wait, or when the process belongs to another user.
pub fn run(pid: Option<u32>, out: &mut impl Write) -> Result<(), Failure> {
    let mut all = waiting();
    let one = match pid {
        Some(pid) => {
            let found = all.into_iter().find(|one| u32::try_from(one.pid) == Ok(pid));
            found.ok_or(Usage::NotASession(pid))?
        }
        None if all.len() > 1 => {
            let lines = all.iter().map(|one| format!("{} ({})", one.pid, one.line));
            return Err(Usage::SeveralSessions(lines.collect::<Vec<_>>().join(", ")).into());
        }
        None => all.pop().ok_or(Usage::NoSession)?,
    };
    let pid = Pid::from_raw(one.pid).ok_or(Usage::NoSession)?;
    let what = format!("ask process {} to start", one.pid);
    kill_process(pid, Signal::USR1).map_err(|error| Failure::system(what)(error.into()))?;
    writeln!(out, "asked process {} to start: {}", one.pid, one.line).map_err(unwritten)
}

/// Returns the processes that `start` may signal: each is a `send` or `stream` and catches SIGUSR1. The signal would terminate
/// any other process.
fn waiting() -> Vec<Waiting> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut all: Vec<Waiting> = pids.filter_map(session).collect();
    all.sort_by_key(|one| one.pid);
    all
}

fn session(pid: i32) -> Option<Waiting> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let (line, status) = (read("cmdline")?, read("status")?);
    let words: Vec<&str> = line.trim_end_matches('\0').split('\0').collect();
    let program = words.first()?.rsplit('/').next()?;
    let is_session =
        program == "faircast" && words[1..].iter().any(|verb| matches!(*verb, "send" | "stream"));
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
    let catches = u64::from_str_radix(caught.trim(), 16).ok()? & (1 << (SIGUSR1 - 1)) != 0;
    (is_session && catches).then(|| Waiting { pid, line: format!("faircast {}", words[1..].join(" ")) })
}
