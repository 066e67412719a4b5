//! The programs of the demonstration: five processes of this binary that tell JSON.

use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;

/// What a process told.
#[derive(Debug)]
pub struct Word {
    /// Its place among the processes.
    pub from: usize,
    /// An object it wrote, or that it has closed its output.
    pub said: Said,
}

/// See [`Word`].
#[derive(Debug)]
pub enum Said {
    /// An object.
    Line(Value),
    /// The end, with what it wrote to standard error.
    End(String),
}

/// A process, ended when it is dropped.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Start `program` with `arguments`; what it tells goes to `words`, marked as `from`.
    ///
    /// # Errors
    /// When it cannot be started.
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
            // What was read before an error is all there is.
            let _ = err.read_to_string(&mut text);
            text
        });
        thread::spawn(move || {
            let lines = BufReader::new(out).lines().map_while(Result::ok);
            for value in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
                if words.send(Word { from, said: Said::Line(value) }).is_err() {
                    return; // nobody listens any more
                }
            }
            let text = errors.join().unwrap_or_default();
            let _ = words.send(Word { from, said: Said::End(text) });
        });
        Ok(Process(child))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It has ended already, or is ended here; in both cases there is nothing to report.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
