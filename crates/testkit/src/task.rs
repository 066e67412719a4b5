//! Programs under a time limit that never outlive their owner.

use crate::error::KitError;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// A running program. Dropping it kills the program, by its own process id, and waits for it.
#[derive(Debug)]
pub struct Task {
    command: String,
    child: Child,
    started: Instant,
    stdout: File,
    stderr: File,
}

/// A program that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
    /// The time from start to end.
    pub took: Duration,
    command: String,
}

impl Finished {
    /// Returns this, if the exit code was 0.
    ///
    /// # Errors
    /// [`KitError::Failed`] otherwise.
    pub fn ok(self) -> Result<Finished, KitError> {
        if self.status.success() {
            return Ok(self);
        }
        let stderr = if self.stderr.trim().is_empty() { self.stdout } else { self.stderr };
        Err(KitError::Failed {
            command: self.command,
            status: self.status.to_string(),
            stderr: stderr.trim().into(),
        })
    }
}

impl Task {
    /// Start a program, in a namespace if one is given: then it is killed when the thread that called this ends.
    ///
    /// # Errors
    /// [`KitError::Start`] when it cannot be started, [`KitError::System`] without memory files.
    pub(crate) fn start(program: &str, args: &[&str], namespace: Option<&Path>) -> Result<Task, KitError> {
        let namespace = namespace.map(open_namespace).transpose()?;
        let (stdout, stderr) = (memory_file()?, memory_file()?);
        let clone = |file: &File| file.try_clone().map_err(KitError::system("duplicate an output file"));
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(clone(&stdout)?).stderr(clone(&stderr)?);
        // Code between fork and exec needs a copy of this process' page tables, which takes longer than most programs run. One without
        // a namespace does little and ends by itself, should its owner be killed.
        if let Some(namespace) = namespace {
            // SAFETY: only async-signal-safe calls are made (prctl and setns); the namespace's descriptor is open until
            // the child has been started.
            unsafe {
                command.pre_exec(move || {
                    if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                    enter(&namespace)
                });
            }
        }
        let child = command.spawn().map_err(|source| KitError::Start { program: program.into(), source })?;
        let command = format!("{program} {}", args.join(" "));
        Ok(Task { command, child, started: Instant::now(), stdout, stderr })
    }

    /// The program's own process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output so far.
    pub fn stdout(&self) -> String {
        contents(&self.stdout)
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        contents(&self.stderr)
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until its output, on either stream, contains this.
    ///
    /// # Errors
    /// [`KitError::TooLong`] when the time is over, [`KitError::Failed`] when it ends before.
    pub fn wait_for(&mut self, said: &str, within: Duration) -> Result<(), KitError> {
        let end = Instant::now() + within;
        loop {
            let running = self.is_running();
            if self.stdout().contains(said) || self.stderr().contains(said) {
                return Ok(());
            }
            if !running {
                let status = "ended early".into();
                return Err(KitError::Failed {
                    command: self.command.clone(),
                    status,
                    stderr: self.stderr(),
                });
            }
            if Instant::now() > end {
                return Err(KitError::TooLong {
                    command: self.command.clone(),
                    within,
                    stderr: self.stderr(),
                });
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ask it to end, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        self.signal(libc::SIGINT);
    }

    /// End it at once, as a crash does.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
    }

    /// Stop it where it is, as a debugger or a machine that is suspended does, until [`Task::resume`].
    pub fn pause(&mut self) {
        self.signal(libc::SIGSTOP);
    }

    /// Let it go on.
    pub fn resume(&mut self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&mut self, signal: libc::c_int) {
        if !self.is_running() {
            return;
        }
        let pid = libc::pid_t::try_from(self.child.id()).expect("Linux process ids fit 22 bits");
        // SAFETY: the child has just been seen not to have ended, and nobody else waits for it, so its id is its own.
        unsafe { libc::kill(pid, signal) };
    }

    /// Wait for its end; it is killed when the time is over.
    ///
    /// # Errors
    /// [`KitError::TooLong`]; an exit code other than 0 is not an error here, see [`Finished::ok`].
    pub fn finish(mut self, within: Duration) -> Result<Finished, KitError> {
        let end = Instant::now() + within;
        let status = loop {
            match self.child.try_wait().map_err(KitError::system("wait for a program"))? {
                Some(status) => break status,
                None if Instant::now() > end => {
                    return Err(KitError::TooLong {
                        command: self.command.clone(),
                        within,
                        stderr: self.stderr(),
                    });
                }
                None => std::thread::sleep(POLL),
            }
        };
        let (stdout, stderr, took) = (self.stdout(), self.stderr(), self.started.elapsed());
        Ok(Finished { status, stdout, stderr, took, command: self.command.clone() })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Run a program of this host to its end.
///
/// # Errors
/// When it cannot be started, fails, or does not end in time.
pub fn run(program: &str, args: &[&str], within: Duration) -> Result<Finished, KitError> {
    Task::start(program, args, None)?.finish(within)?.ok()
}

/// Move the calling thread into a namespace.
pub(crate) fn enter(namespace: &OwnedFd) -> std::io::Result<()> {
    // SAFETY: the descriptor is open; a thread may change its own network namespace at any time.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

pub(crate) fn open_namespace(path: &Path) -> Result<OwnedFd, KitError> {
    Ok(File::open(path).map_err(KitError::system(format!("open {}", path.display())))?.into())
}

/// A file in memory for a program's output, so that no pipe can fill and stop it.
fn memory_file() -> Result<File, KitError> {
    // SAFETY: the name is a terminated string; the call returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(KitError::system("make a file in memory")(std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and ours.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// All of a file, through a descriptor of its own so that the writer's position stays.
fn contents(file: &File) -> String {
    let read = || -> std::io::Result<String> {
        let mut own = fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let mut bytes = Vec::new();
        own.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_else(|e| format!("(output cannot be read: {e})"))
}
