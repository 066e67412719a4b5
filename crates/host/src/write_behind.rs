//! An output that may have to wait for its reader or its disk. Writing does not block the session's thread, so the session can
//! always answer its source.

use crate::ends::Output;
use faircast_object::ObjectError;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes written in one call: the default capacity of a pipe (`pipe(7)`).
const PART: usize = 64 << 10;

/// After the output is dropped, time for its reader to take the waiting bytes.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Work for a thread outside the session.
pub type Job = Box<dyn FnOnce() + Send>;

/// Performs jobs, one after the other.
pub type Perform = Arc<dyn Fn(Job) + Send + Sync>;

/// The writing end; it accepts all bytes at once. [`Waiting`] returns the number of bytes that are not written yet.
pub struct WriteBehind {
    shared: Arc<Shared>,
    /// Performs the jobs that write to a file.
    perform: Option<Perform>,
}

/// Returns the number of bytes that are not written yet.
pub struct Waiting(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    parts: VecDeque<Vec<u8>>,
    /// Number of bytes that are not written yet, including the bytes of the present write.
    bytes: usize,
    failed: Option<io::Error>,
    /// Whether writing has failed: later bytes are refused.
    broken: bool,
    /// Whether the writing end was dropped: no more bytes follow.
    closed: bool,
    /// The writer of a polled output; the session's thread writes to it while it accepts bytes.
    polled: Option<Box<dyn Write + Send>>,
    /// The file that jobs write to; `None` while a job uses it.
    file: Option<Target>,
}

/// A file that jobs write to.
enum Target {
    Unmade(PathBuf, MakeFile),
    Made(PathBuf, Box<dyn Write + Send>),
}

type MakeFile = Box<dyn FnOnce() -> Result<Box<dyn Write + Send>, ObjectError> + Send>;

/// Starts writing to `output`. The session's thread writes to a polled output; a separate thread writes to any other output,
/// until the writing end is dropped.
pub fn write_behind(output: &Output) -> (WriteBehind, Waiting) {
    if !output.is_polled() {
        return in_thread(output.take());
    }
    let state = State { polled: Some(output.take()), ..State::default() };
    ends(state, None)
}

/// Starts writing to the file at `path`; `make` creates the file. `perform` performs the jobs that write.
pub fn file_behind<W: Write + Send + 'static>(
    path: PathBuf,
    make: impl FnOnce() -> Result<W, ObjectError> + Send + 'static,
    perform: Perform,
) -> (WriteBehind, Waiting) {
    let make = || Ok(Box::new(make()?) as Box<dyn Write + Send>);
    let file = Some(Target::Unmade(path, Box::new(make)));
    ends(State { file, ..State::default() }, Some(perform))
}

fn ends(state: State, perform: Option<Perform>) -> (WriteBehind, Waiting) {
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (WriteBehind { shared: Arc::clone(&shared), perform }, Waiting(shared))
}

fn in_thread(mut to: impl Write + Send + 'static) -> (WriteBehind, Waiting) {
    let (out, waiting) = ends(State::default(), None);
    let ours = Arc::clone(&out.shared);
    std::thread::spawn(move || {
        if let Err(error) = ours.write_to(&mut to) {
            let mut state = ours.lock();
            (state.bytes, state.failed, state.broken) = (0, Some(error), true);
            state.parts.clear();
            ours.changed.notify_all();
        }
    });
    (out, waiting)
}

impl WriteBehind {
    /// Starts a job that writes the waiting bytes to the file. The job creates the file if it does not exist.
    ///
    /// # Errors
    /// When an earlier job has failed. Also when this job fails, provided that `perform` performs it during the call.
    pub fn begin(&self) -> io::Result<()> {
        let Some(perform) = &self.perform else { return Ok(()) };
        let target = self.shared.lock().file.take();
        if let Some(target) = target {
            let shared = Arc::clone(&self.shared);
            perform(Box::new(move || shared.write_file(target)));
        }
        self.shared.lock().check()
    }
}

impl Write for WriteBehind {
    /// Takes all of `data`, or returns the error of an earlier write.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let mut state = self.shared.lock();
        state.check()?;
        state.bytes += data.len();
        state.parts.push_back(data.to_vec());
        self.shared.changed.notify_all();
        drop(state);
        self.begin()?;
        Ok(data.len())
    }

    /// Waits until everything is written.
    fn flush(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        state.write_all();
        while state.bytes > 0 {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.check()
    }
}

/// Waits until the reader has taken all bytes, but at most for `FLUSH_TIMEOUT`. Does not wait for jobs that write to a file.
impl Drop for WriteBehind {
    fn drop(&mut self) {
        if self.perform.is_some() {
            return;
        }
        let end = Instant::now() + FLUSH_TIMEOUT;
        let mut state = self.shared.lock();
        state.closed = true;
        state.write_all();
        self.shared.changed.notify_all();
        while state.bytes > 0 {
            let Some(left) = end.checked_duration_since(Instant::now()) else { return };
            state = self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Waiting {
    /// Returns the number of bytes that are not written yet. After a failure it is 0, and the next write returns the error.
    pub fn bytes(&self) -> usize {
        self.0.lock().bytes
    }
}

impl State {
    /// After a failure, the first call returns the error of the failure, and later calls return `BrokenPipe`.
    fn check(&mut self) -> io::Result<()> {
        match self.broken {
            true => Err(self.failed.take().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
            false => Ok(()),
        }
    }
}

impl State {
    /// Writes to a polled output while the output accepts bytes.
    fn poll(&mut self) {
        let Some(mut to) = self.polled.take() else { return };
        while let Some(part) = self.parts.front_mut() {
            match to.write(part) {
                Ok(len) => {
                    self.bytes -= len;
                    part.drain(..len);
                    if part.is_empty() {
                        self.parts.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => {
                    (self.bytes, self.failed, self.broken) = (0, Some(error), true);
                    self.parts.clear();
                    return;
                }
            }
        }
        self.polled = Some(to);
    }

    /// Writes all waiting bytes to a polled output. After a flush, the output accepts all bytes.
    fn write_all(&mut self) {
        if let Some(to) = &mut self.polled {
            _ = to.flush(); // `poll` reports an error
            self.poll();
        }
    }
}

impl Target {
    fn is_unmade(&self) -> bool {
        matches!(self, Target::Unmade(..))
    }

    /// Writes all of `part` to the file, and creates the file if it does not exist.
    fn write(self, part: &[u8]) -> Result<Target, ObjectError> {
        let (path, mut file) = match self {
            Target::Unmade(path, make) => (path, make()?),
            Target::Made(path, file) => (path, file),
        };
        file.write_all(part).map_err(|e| ObjectError::writing(&path, "write", e, part.len() as u64))?;
        Ok(Target::Made(path, file))
    }
}

impl Shared {
    fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        loop {
            let mut state = self.lock();
            let next = loop {
                match state.parts.pop_front() {
                    Some(next) => break next,
                    None if state.closed => return Ok(()),
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            for part in next.chunks(PART) {
                to.write_all(part)?;
                to.flush()?;
                self.lock().bytes -= part.len();
                self.changed.notify_all();
            }
        }
    }

    /// Writes all waiting parts to the file.
    fn write_file(&self, mut target: Target) {
        let failed = loop {
            let mut state = self.lock();
            let Some(part) = state.parts.pop_front().or_else(|| target.is_unmade().then(Vec::new)) else {
                state.file = Some(target);
                return;
            };
            drop(state);
            target = match target.write(&part) {
                Ok(target) => target,
                Err(error) => break error,
            };
            self.lock().bytes -= part.len();
            self.changed.notify_all();
        };
        let mut state = self.lock();
        (state.bytes, state.failed, state.broken) = (0, Some(io::Error::other(failed)), true);
        state.parts.clear();
        self.changed.notify_all();
    }

    /// Locks the state. A poisoned lock is safe, because the state contains only whole parts even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.poll();
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn bytes_that_wait_for_a_slow_reader_are_counted() {
        let (mut reader, writer) = io::pipe().expect("there are pipes");
        let (mut out, waiting) = in_thread(writer);
        let data: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
        out.write_all(&data).expect("it waits");
        assert!(waiting.bytes() >= data.len() - 2 * PART, "a pipe holds little");
        let mut got = vec![0; data.len()];
        reader.read_exact(&mut got).expect("it comes");
        out.flush().expect("all is written");
        assert_eq!((got, waiting.bytes()), (data, 0));
    }

    #[test]
    fn writes_fail_and_bytes_are_dropped_after_the_reader_closes() {
        let (reader, writer) = io::pipe().expect("there are pipes");
        let (mut out, waiting) = in_thread(writer);
        drop(reader);
        out.write_all(b"nobody").expect("not yet known");
        let reported = out.flush().expect_err("nobody reads");
        assert_eq!((reported.kind(), waiting.bytes()), (io::ErrorKind::BrokenPipe, 0));
        out.write_all(b"nor later").expect_err("nothing waits for ever");
        out.flush().expect_err("and nobody waits for it");
        assert_eq!(waiting.bytes(), 0);
    }
}
