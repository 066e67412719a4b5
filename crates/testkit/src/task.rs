//! Programs with a time limit. A program that still runs when its [`Task`] is dropped is killed.

use crate::error::KitError;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);

/// A running program. Dropping it kills the program by its process ID and waits for its end. If a test fails meanwhile, the last
/// lines of the output are printed.
#[derive(Debug)]
pub struct Task {
    command: String,
    child: Child,
    started: Instant,
    stdout: File,
    stderr: File,
}

/// Result of a program that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Exit status of the program.
    pub status: ExitStatus,
    /// Standard output of the program.
    pub stdout: String,
    /// Standard error of the program.
    pub stderr: String,
    /// Time from start to end.
    pub took: Duration,
    command: String,
}

impl Finished {
    /// Returns `self` if the exit code was 0.
    ///
    /// # Errors
    /// [`KitError::Failed`] for any other exit status.
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
    /// Starts a program. A program in a namespace is killed when the calling thread ends.
    ///
    /// # Errors
    /// [`KitError::Start`] if the program cannot be started; [`KitError::System`] if an output file cannot be created.
    pub(crate) fn start(program: &str, args: &[&str], namespace: Option<&Path>) -> Result<Task, KitError> {
        let namespace = namespace.map(open_namespace).transpose()?;
        let (stdout, stderr) = (memory_file()?, memory_file()?);
        let clone = |file: &File| file.try_clone().map_err(KitError::system("duplicate an output file"));
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(clone(&stdout)?).stderr(clone(&stderr)?);
        // If a closure runs between fork and exec, the page tables of this process are copied, which takes longer than most
        // programs run. Programs without a namespace need no closure, because they are short and end by themselves.
        if let Some(namespace) = namespace {
            // SAFETY: the closure makes only async-signal-safe calls (signal, prctl and setns). The descriptor of the namespace is
            // open until the child has started.
            unsafe {
                command.pre_exec(move || {
                    // A shell starts background jobs with SIGINT ignored, and programs inherit this setting.
                    libc::signal(libc::SIGINT, libc::SIG_DFL);
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

    /// Returns the process ID of the program.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the standard output so far.
    pub fn stdout(&self) -> String {
        contents(&self.stdout)
    }

    /// Returns the standard error so far.
    pub fn stderr(&self) -> String {
        contents(&self.stderr)
    }

    /// Returns whether the program is running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until one of the two output streams contains this text.
    ///
    /// # Errors
    /// [`KitError::TooLong`] after the time limit; [`KitError::Failed`] if the program ends first.
    pub fn wait_for(&mut self, text: &str, within: Duration) -> Result<(), KitError> {
        let end = Instant::now() + within;
        loop {
            let running = self.is_running();
            if self.stdout().contains(text) || self.stderr().contains(text) {
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

    /// Sends the program an interrupt, as Ctrl-C does.
    pub fn interrupt(&mut self) {
        self.signal(libc::SIGINT);
    }

    /// Kills the program at once, as in a crash.
    pub fn kill(&mut self) {
        self.signal(libc::SIGKILL);
    }

    /// Stops the program until [`Task::resume`], as a debugger or a suspended machine does.
    pub fn pause(&mut self) {
        self.signal(libc::SIGSTOP);
    }

    /// Resumes a paused program.
    pub fn resume(&mut self) {
        self.signal(libc::SIGCONT);
    }

    fn signal(&mut self, signal: libc::c_int) {
        if !self.is_running() {
            return;
        }
        let pid = libc::pid_t::try_from(self.child.id()).expect("Linux process ids fit 22 bits");
        // SAFETY: `is_running` has just returned true. Only this object waits for the child, so the process ID is still valid.
        unsafe { libc::kill(pid, signal) };
    }

    /// Waits for the end of the program. Kills the program after the time limit.
    ///
    /// # Errors
    /// [`KitError::TooLong`]. An exit code other than 0 is not an error here; see [`Finished::ok`].
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
        if std::thread::panicking() {
            println!("{} after {:?}:", self.command, self.started.elapsed());
            [self.stdout(), self.stderr()].iter().for_each(|output| println!("{}", last_lines(output)));
        }
    }
}

/// Returns the last lines of a program's output.
fn last_lines(output: &str) -> &str {
    const LINES: usize = 40;
    let from = output.rmatch_indices('\n').nth(LINES).map_or(0, |(at, _)| at + 1);
    &output[from..]
}

/// Runs a program on this machine, outside of any lab, until it ends.
///
/// # Errors
/// Fails if the program cannot be started, ends with an error, or does not end in time.
pub fn run(program: &str, args: &[&str], within: Duration) -> Result<Finished, KitError> {
    Task::start(program, args, None)?.finish(within)?.ok()
}

/// Moves the calling thread into a namespace.
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

/// Creates a file in memory for the output of a program. Unlike a pipe, the file cannot fill up and block the program.
fn memory_file() -> Result<File, KitError> {
    // SAFETY: the name is a terminated string; the call returns a new descriptor or -1.
    let fd = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(KitError::system("make a file in memory")(std::io::Error::last_os_error()));
    }
    // SAFETY: the descriptor is new and has no other owner.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Returns the whole content of a file. Opens the file a second time, so that the position of the writer does not change.
fn contents(file: &File) -> String {
    let read = || -> std::io::Result<String> {
        let mut own = fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let mut bytes = Vec::new();
        own.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_else(|e| format!("(output cannot be read: {e})"))
}
