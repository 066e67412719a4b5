//! The programs of the demonstration: five processes of this binary that write JSON.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

/// Output of a process.
#[derive(Debug)]
pub struct Word {
    /// Index of the process.
    pub from: usize,
    /// A JSON object that the process wrote, or the end of its output.
    pub item: OutputItem,
}

/// An item of a process's output.
#[derive(Debug)]
pub enum OutputItem {
    /// An object of JSON.
    Line(Value),
    /// The end of the output, with the text on standard error.
    End(String),
}

/// A process, which is killed when this value is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts `program` with `arguments`. Each item of the output is sent to `words` together with `from`.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn start(
        program: &Path,
        arguments: &[OsString],
        from: usize,
        words: Sender<Word>,
    ) -> io::Result<Process> {
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().expect("it is a pipe");
        let mut err = child.stderr.take().expect("it is a pipe");
        let errors = thread::spawn(move || {
            let mut text = String::new();
            // If the read fails, the text before the failure is used.
            let _ = err.read_to_string(&mut text);
            text
        });
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            for value in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if words.send(Word { from, item: OutputItem::Line(value) }).is_err() {
                    return; // the receiver was dropped
                }
            }
            let text = errors.join().unwrap_or_default();
            let _ = words.send(Word { from, item: OutputItem::End(text) });
        });
        Ok(Process(child))
    }

    /// Suspends the process until the guard is dropped.
    pub fn stop(&self) -> Stopped<'_> {
        self.signal(Signal::STOP);
        Stopped(self)
    }

    fn signal(&self, signal: Signal) {
        // The process ID belongs to the child until `wait` has returned. An error means that the child has ended.
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }
}

/// Keeps a process suspended. Dropping this value resumes the process.
#[derive(Debug)]
pub struct Stopped<'a>(&'a Process);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    /// Waits until `/proc` shows the process in `state`: `T` (stopped) or `S` (sleeping).
    fn becomes(process: &Process, state: &str) {
        let path = format!("/proc/{}/stat", process.0.id());
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let stat = std::fs::read_to_string(&path).expect("the process is there");
            let (_, now) = stat.rsplit_once(") ").expect("a name stands in parentheses");
            if now.starts_with(state) {
                return;
            }
            assert!(Instant::now() < end, "not {state}: {stat}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn stopped_process_continues_when_its_guard_is_dropped() {
        let (words, _) = mpsc::channel();
        let process = Process::start(Path::new("sleep"), &["60".into()], 0, words).expect("it starts");
        becomes(&process, "S");
        let stopped = process.stop();
        becomes(&process, "T");
        drop(stopped);
        becomes(&process, "S");
    }
}
