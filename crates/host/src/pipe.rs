//! Inputs of bytes: readers, files and named pipes. A separate thread reads from each input, so that the session does not wait.

use crate::ends::Input;
use crate::system::Monotonic;
use faircast_object::ObjectError;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Number of waiting bytes at which the thread stops reading. Then a program that writes to the pipe must wait, too.
const MAX_WAITING: usize = 8 << 20;

const CHUNK: usize = 64 << 10;

/// Whether reading from an input waits until the layer has sent the bytes that were read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// A file: it is read at the rate of its layer.
    Waits,
    /// A pipe: it is read as bytes arrive, and bytes that cannot be sent in time are dropped.
    Live,
}

/// The bytes that were read from an input and not taken yet. A separate thread reads from the input, so that the session does not
/// wait.
pub struct Pipe(Arc<Shared>);

/// A reader of the bytes of a [`Pipe`]. A read does not wait if [`Pipe::has`] has returned `true`.
pub struct PipeReader(Arc<Shared>);

#[derive(Default)]
struct Shared {
    name: PathBuf,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    oldest: Option<Instant>,
    ended: bool,
    failed: Option<io::Error>,
    time: Monotonic,
    /// The reader of a polled input; the session's thread reads its available bytes.
    polled: Option<Box<dyn Read + Send>>,
}

impl Pipe {
    /// Starts reading `input`.
    pub fn read(input: &Input) -> Pipe {
        Pipe::of(input).0
    }

    /// Starts reading `input`. The second value reads the same bytes as a stream.
    pub fn of(input: &Input) -> (Pipe, PipeReader) {
        match input.polled() {
            Some(time) => Pipe::polling(input.name(), input.take(), time),
            None => Pipe::reading(input.name(), input.take()),
        }
    }

    /// Starts reading from a file at once, or from a named pipe as soon as a program opens the pipe for writing.
    ///
    /// # Errors
    /// When a file cannot be opened.
    pub fn open(path: &Path, pacing: Pacing) -> Result<Pipe, ObjectError> {
        let (pipe, _) = match pacing {
            Pacing::Waits => {
                Pipe::reading(path, File::open(path).map_err(|e| ObjectError::io(path, "read", e))?)
            }
            // Opening a named pipe blocks until a program opens it for writing. Therefore only the separate thread opens the
            // pipe.
            Pacing::Live => Pipe::reading(path, Later { path: path.to_path_buf(), file: None }),
        };
        Ok(pipe)
    }

    fn reading(name: impl AsRef<Path>, mut from: impl Read + Send + 'static) -> (Pipe, PipeReader) {
        let shared = Arc::new(Shared { name: name.as_ref().to_path_buf(), ..Shared::default() });
        let ours = Arc::clone(&shared);
        let time = Monotonic::default();
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                let read = from.read(&mut chunk);
                let mut state = ours.lock();
                match read {
                    Ok(0) => state.ended = true,
                    Ok(len) => {
                        state.bytes.extend(&chunk[..len]);
                        state.oldest.get_or_insert_with(|| time.now());
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => (state.failed, state.ended) = (Some(error), true),
                }
                ours.changed.notify_all();
                if state.ended {
                    return;
                }
                while state.bytes.len() >= MAX_WAITING {
                    state = ours.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
        });
        (Pipe(Arc::clone(&shared)), PipeReader(shared))
    }

    fn polling(name: PathBuf, from: Box<dyn Read + Send>, time: Monotonic) -> (Pipe, PipeReader) {
        let state = State { time, polled: Some(from), ..State::default() };
        let shared = Arc::new(Shared { name, state: Mutex::new(state), changed: Condvar::new() });
        (Pipe(Arc::clone(&shared)), PipeReader(shared))
    }

    /// Returns whether `len` bytes can be read without waiting, or the input has ended.
    pub fn has(&self, len: u64) -> bool {
        let state = self.0.lock();
        state.ended || state.bytes.len() as u64 >= len
    }

    /// Returns the waiting bytes, at most `most` bytes. Returns `None` if no bytes wait. Also returns `None` if fewer than `most`
    /// bytes wait, the oldest byte has waited for less than `timeout`, and the input has not ended.
    ///
    /// # Errors
    /// When the input could not be read.
    pub fn take(&self, most: usize, timeout: Duration) -> Result<Option<Vec<u8>>, ObjectError> {
        let mut state = self.0.lock();
        if let Some(error) = state.failed.take() {
            return Err(ObjectError::io(&self.0.name, "read the stream", error));
        }
        let now = state.time.now();
        let waited = state.oldest.is_some_and(|oldest| now.duration_since(oldest) >= timeout);
        if state.bytes.is_empty() || (state.bytes.len() < most && !waited && !state.ended) {
            return Ok(None);
        }
        let len = most.min(state.bytes.len());
        let taken = state.bytes.drain(..len).collect();
        state.oldest = (!state.bytes.is_empty()).then_some(now);
        self.0.changed.notify_all();
        Ok(Some(taken))
    }

    /// Returns whether the input has ended and all bytes were taken.
    pub fn is_drained(&self) -> bool {
        let state = self.0.lock();
        state.ended && state.bytes.is_empty()
    }
}

/// The writing end of a pipe in memory. It needs no thread: written bytes can be read at once.
pub struct Feeder(Arc<Shared>);

impl Feeder {
    /// Creates an empty pipe and returns both ends.
    pub fn pipe() -> (Feeder, Pipe) {
        let shared = Arc::new(Shared::default());
        (Feeder(Arc::clone(&shared)), Pipe(shared))
    }

    /// Appends `bytes`.
    pub fn put(&self, bytes: &[u8]) {
        self.0.lock().bytes.extend(bytes);
    }

    /// Ends the pipe: no more bytes follow.
    pub fn end(&self) {
        self.0.lock().ended = true;
    }
}

/// A named pipe that is opened by the first read.
struct Later {
    path: PathBuf,
    file: Option<File>,
}

impl Read for Later {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::open(&self.path)?),
        };
        file.read(into)
    }
}

impl Read for PipeReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.0.lock();
        while state.bytes.is_empty() && !state.ended {
            state = self.0.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        let len = state.bytes.read(into)?;
        self.0.changed.notify_all();
        Ok(len)
    }
}

impl State {
    /// Reads the available bytes of a polled input.
    fn poll(&mut self) {
        let Some(mut from) = self.polled.take() else { return };
        let mut chunk = vec![0; CHUNK];
        while self.bytes.len() < MAX_WAITING {
            match from.read(&mut chunk) {
                Ok(0) => self.ended = true,
                Ok(len) => {
                    self.bytes.extend(&chunk[..len]);
                    self.oldest.get_or_insert_with(|| self.time.now());
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => (self.failed, self.ended) = (Some(error), true),
            }
            return;
        }
        self.polled = Some(from);
    }
}

impl Shared {
    /// Locks the state. A poisoned lock is safe, because the state contains only whole bytes even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        state.poll();
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipe_returns_all_bytes_in_order() {
        let content: Vec<u8> = (0..1_000_000u32).map(|n| n as u8).collect();
        let (pipe, mut reader) = Pipe::reading("-", io::Cursor::new(content.clone()));
        let mut got = Vec::new();
        reader.read_to_end(&mut got).expect("memory can be read");
        assert_eq!(got, content);
        assert!(pipe.is_drained());
    }

    #[test]
    fn last_bytes_are_returned_when_the_pipe_ends() {
        let (pipe, _reader) = Pipe::reading("-", io::Cursor::new(vec![7; 10]));
        while !pipe.has(100) {
            std::thread::yield_now();
        }
        assert_eq!(pipe.take(100, Duration::from_secs(60)).expect("no error"), Some(vec![7; 10]));
    }
}
