//! A stage for acceptance tests: a lab, a group, a directory, and processes of the program on its hosts.

use faircast_testkit::{Company, Finished, Lab, LabPlan, Node, Root, Task};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The program under test.
pub const FAIRCAST: &str = env!("CARGO_BIN_EXE_faircast");

/// A lab with a group and a directory. All of them are removed when this value is dropped.
pub struct Stage {
    pub lab: Lab,
    pub group: String,
    directory: TempDir,
}

/// A running process of the program.
pub struct Running {
    pub task: Task,
    what: String,
}

/// A process of the program that has ended.
pub struct Ended {
    pub code: i32,
    pub events: Vec<Value>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
    what: String,
}

/// Returns the value, or panics with the text of the error.
pub fn must<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Factor by which every timeout is multiplied, because other tests may run on the machine at the same time.
const PATIENT: u64 = 4;

/// Returns pseudorandom bytes, which cannot be compressed. Equal seeds give equal bytes.
pub fn noise(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Prints a line that the test harness does not capture.
pub fn print_line(line: &str) {
    use std::io::Write;
    // A failure to print is not a failure of the test.
    let _ = writeln!(std::io::stderr(), "{line}");
}

impl Stage {
    /// Builds the lab, and chooses a group.
    pub fn new(root: &Root, plan: LabPlan) -> Stage {
        static PORT: AtomicU16 = AtomicU16::new(20_000);
        let port = PORT.fetch_add(1, Ordering::Relaxed);
        let lab = must(plan.build(root));
        let directory = tempfile::Builder::new().prefix("faircast-net-").tempdir();
        Stage { lab, group: format!("239.255.70.9:{port}"), directory: must(directory) }
    }

    /// Builds a stage that may exist at the same time as other labs, for tests without measurements.
    pub fn shared(root: &Root, plan: LabPlan) -> Stage {
        Stage::new(root, plan.company(Company::Shared))
    }

    /// Sets another group.
    pub fn with_group(mut self, group: &str) -> Stage {
        self.group = group.to_owned();
        self
    }

    /// Returns a path in the stage's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns a path in the stage's directory as text.
    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("temporary directories have names in UTF-8").to_owned()
    }

    /// Writes a file of `len` bytes of noise. Returns its path.
    pub fn file(&self, name: &str, len: usize) -> String {
        must(std::fs::write(self.path(name), noise(name, len)));
        self.text(name)
    }

    /// Starts a receiver with the host name `host`. It writes into a directory of the same name. Waits until it listens.
    pub fn recv(&self, at: usize, host: &str, more: &[&str]) -> Running {
        self.recv_on(self.lab.receiver(at), host, more)
    }

    /// Starts a receiver on any host of the lab.
    pub fn recv_on(&self, node: &Node, host: &str, more: &[&str]) -> Running {
        let out = self.text(host);
        let mut args = vec!["recv", "--json", "--group", &self.group, "--host", host];
        if !["--stdout", "--out", "--out-device"].iter().any(|option| more.contains(option)) {
            args.extend(["--out", out.as_str()]);
        }
        args.extend(more);
        let mut running = Running::start(node, &args);
        // If a receiver ends before it listens, the error matters only to tests that use this receiver.
        let _ = running.task.wait_for("\"opened\"", Duration::from_secs(20));
        running
    }

    /// Starts a receiver on each receiver host of the lab. The receivers are called `r0`, `r1` and so on.
    pub fn recv_everywhere(&self, more: &[&str]) -> Vec<Running> {
        (0..self.lab.receivers().len()).map(|at| self.recv(at, &format!("r{at}"), more)).collect()
    }

    /// Starts the source.
    pub fn send(&self, paths: &[&str], more: &[&str]) -> Running {
        let mut args = vec!["send", "--json", "--no-key", "--host", "source", "--group", &self.group];
        if more.contains(&"--key") {
            args.retain(|arg| *arg != "--no-key");
        }
        args.extend(paths);
        args.extend(more);
        Running::start(self.lab.sender(), &args)
    }

    /// Whether the receiver `host` has an exact copy of this file.
    pub fn has(&self, host: &str, file: &str) -> bool {
        let name = Path::new(file).file_name().expect("tests send named files");
        std::fs::read(self.path(host).join(name)).is_ok_and(|got| got == must(std::fs::read(file)))
    }
}

impl Running {
    /// Starts the program on a host.
    pub fn start(node: &Node, args: &[&str]) -> Running {
        Running { task: must(node.start(FAIRCAST, args)), what: args.join(" ") }
    }

    /// Starts a command line on a host, through a shell.
    pub fn shell(node: &Node, line: &str) -> Running {
        Running { task: must(node.start("sh", &["-c", line])), what: line.to_owned() }
    }

    /// Returns the status of the relay with this control socket, after the command that prints it has ended.
    pub fn relay_status(node: &Node, control: &str, more: &[&str]) -> String {
        let args = [&["relay", "--status", "--control", control], more].concat();
        let ended = Running::start(node, &args).ends(5);
        assert_eq!(ended.code, 0, "{ended:?}");
        ended.stdout
    }

    /// Waits until the process has printed this text.
    pub fn prints(&mut self, text: &str, within: u64) {
        if let Err(error) = self.task.wait_for(text, Duration::from_secs(within * PATIENT)) {
            panic!("{}: never said {text:?}: {error}\n{}", self.what, self.task.stdout());
        }
    }

    /// Waits until the progress of the process is at least `part`, from 0 to 1.
    pub fn reaches(&mut self, part: f64, within: u64) {
        let end = Instant::now() + Duration::from_secs(within * PATIENT);
        loop {
            let output = self.task.stdout();
            let newest = output.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let at = newest.filter(|event| event["event"] == "progress").find_map(|progress| {
                Some(progress["bytes"].as_f64()? / progress["total_bytes"].as_f64()?.max(1.0))
            });
            if at.is_some_and(|at| at >= part) {
                return;
            }
            assert!(Instant::now() < end, "{}: did not reach {part} ({at:?}):\n{output}", self.what);
            assert!(self.task.is_running(), "{}: ended before {part} ({at:?}):\n{output}", self.what);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the process has ended, for at most `within` seconds times `PATIENT`.
    pub fn ends(mut self, within: u64) -> Ended {
        let end = Instant::now() + Duration::from_secs(within * PATIENT);
        while self.task.is_running() {
            let lines = self.task.stdout().lines().rev().take(12).collect::<Vec<_>>().join("\n");
            assert!(
                Instant::now() < end,
                "{}: did not end within {} s; at last:\n{lines}",
                self.what,
                within * PATIENT
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = self.task.finish(Duration::from_secs(1));
        let Finished { status, stdout, stderr, took, .. } =
            done.unwrap_or_else(|error| panic!("{}: {error}", self.what));
        let events = reported(&self.what, &stdout);
        Ended { code: status.code().unwrap_or(-1), events, stdout, stderr, took, what: self.what }
    }

    /// Waits until the process has ended, and checks that it has succeeded.
    pub fn succeeds(self, within: u64) -> Ended {
        let ended = self.ends(within);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(ended.done()["ok"], true, "{ended:?}");
        ended
    }

    /// Kills the process, and waits for its end.
    pub fn crashes(mut self) {
        self.task.kill();
        if let Ok(ended) = self.task.finish(Duration::from_secs(10)) {
            let _ = reported(&self.what, &ended.stdout);
        }
    }
}

/// Returns the lines of JSON that a command has written, after checking them against the schema.
fn reported(what: &str, stdout: &str) -> Vec<Value> {
    // The last line of a killed process may be incomplete.
    let events: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is = |commands: &[&str]| commands.iter().any(|command| what.starts_with(command));
    let (session, relay) =
        (is(&["send ", "stream ", "recv "]), is(&["relay "]) && !what.contains("--status"));
    if session || relay {
        let schema = crate::schema::Schema::read();
        for event in &events {
            let checked = if relay { schema.check_relay_line(event) } else { schema.check_line(event) };
            checked.unwrap_or_else(|error| panic!("{what}: {error}: {event}"));
        }
    }
    events
}

impl Ended {
    /// Returns all events of this kind.
    pub fn all<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["event"] == kind)
    }

    /// Returns the last line, which must be `done`.
    pub fn done(&self) -> &Value {
        match self.events.last() {
            Some(done) if done["event"] == "done" => done,
            _ => panic!("the last line is no `done`: {self:?}"),
        }
    }

    /// Returns a number of the last line.
    pub fn number(&self, field: &str) -> f64 {
        self.done()[field].as_f64().unwrap_or_else(|| panic!("no number {field:?} in {:?}", self.done()))
    }

    /// Returns the message of the error, with its hint.
    pub fn message(&self) -> String {
        let error = self.all("error").next().unwrap_or_else(|| panic!("no error was told: {self:?}"));
        format!("{} {}", error["message"].as_str().unwrap_or(""), error["hint"].as_str().unwrap_or(""))
    }

    /// Checks that the process has failed with this exit code and message.
    pub fn failed(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        let message = self.message();
        assert!(message.contains(words), "{message:?} does not say {words:?}: {self:?}");
    }
}

impl std::fmt::Debug for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "`{}` exited with {} after {:?}", self.what, self.code, self.took)?;
        for event in &self.events {
            writeln!(f, "  {event}")?;
        }
        write!(f, "{}", self.stderr)
    }
}
