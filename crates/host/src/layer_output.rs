//! Outputs for the bytes of a layer: a file, a program's writer, or a named pipe that perhaps no program reads yet.

use crate::ends::Output;
use crate::write_behind::{Perform, Waiting, WriteBehind, file_behind, write_behind};
use faircast_object::{ObjectError, replace_in};
use rustix::fs::{Mode, OFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes that wait for the program that reads a pipe. Further bytes are lost, but only for this program.
const MAX_WAITING: usize = 8 << 20;

/// Interval between attempts to open a pipe that no program reads yet.
const TRY_AGAIN: Duration = Duration::from_millis(20);

/// After the last byte, time for programs to read the waiting bytes from the pipe.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The output of one layer.
pub enum LayerOutput {
    /// No output: the bytes are discarded.
    Nobody,
    /// A file, which is created with the first byte, or a program's writer.
    Behind {
        /// Name for users.
        name: PathBuf,
        /// The writing end.
        out: WriteBehind,
        /// The number of bytes that are not written yet.
        waiting: Waiting,
    },
    /// A writer to memory, which does not block.
    Memory(Box<dyn Write + Send>),
    /// A named pipe.
    Pipe {
        /// Path of the pipe.
        path: PathBuf,
        /// The thread that writes to the pipe.
        writer: PipeWriter,
    },
}

/// Result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The bytes are written, or are stored to be written soon.
    Yes,
    /// The bytes are not accepted: too many bytes wait for the reader of the pipe.
    Full,
}

impl LayerOutput {
    /// Creates the output for a path: an existing named pipe, or a file. Jobs of `perform` write to the file.
    pub fn to(path: &Path, perform: Perform) -> LayerOutput {
        let path = path.to_path_buf();
        match path.metadata() {
            Ok(meta) if meta.file_type().is_fifo() => {
                LayerOutput::Pipe { writer: PipeWriter::start(path.clone()), path }
            }
            _ => {
                let at = path.clone();
                let make = move || File::create(&at).map_err(|e| ObjectError::io(at, "create", e));
                LayerOutput::behind(path.clone(), file_behind(path, make, perform))
            }
        }
    }

    /// Creates the output for a file in `directory`; its name comes from a peer. Writing creates the directory, replaces an
    /// existing file and follows no link.
    pub fn replacing(directory: &Path, name: String, perform: Perform) -> LayerOutput {
        let (path, directory) = (directory.join(&name), directory.to_path_buf());
        let make = move || replace_in(&directory, &name);
        LayerOutput::behind(path.clone(), file_behind(path, make, perform))
    }

    /// Creates the output for a program's writer.
    pub fn writer(output: &Output) -> LayerOutput {
        LayerOutput::behind("-".into(), write_behind(output))
    }

    fn behind(name: PathBuf, (out, waiting): (WriteBehind, Waiting)) -> LayerOutput {
        LayerOutput::Behind { name, out, waiting }
    }

    /// Writes all of `data`, or none of it.
    ///
    /// # Errors
    /// When `data` or earlier bytes cannot be written.
    pub fn write(&mut self, data: &[u8]) -> Result<Written, ObjectError> {
        let (name, written) = match self {
            LayerOutput::Nobody => return Ok(Written::Yes),
            LayerOutput::Behind { name, out, .. } => (name.as_path(), out.write_all(data)),
            LayerOutput::Memory(out) => (Path::new("-"), out.write_all(data)),
            LayerOutput::Pipe { path, writer } => {
                return writer.take(data).map_err(|e| ObjectError::io(&*path, "write the stream", e));
            }
        };
        written.map_err(|e| ObjectError::io(name, "write the stream", e)).map(|()| Written::Yes)
    }

    /// Returns the number of bytes that are not yet written to the file or the program's writer.
    pub fn waiting(&self) -> usize {
        match self {
            LayerOutput::Behind { waiting, .. } => waiting.bytes(),
            _ => 0,
        }
    }

    /// Waits until all bytes are written to the file or the program's writer.
    ///
    /// # Errors
    /// When bytes could not be written.
    pub fn finish(&mut self) -> Result<(), ObjectError> {
        let LayerOutput::Behind { name, out, .. } = self else { return Ok(()) };
        out.flush().map_err(|e| ObjectError::io(name, "write the stream", e))
    }

    /// Returns the name for users; `None` without an output.
    pub fn name(&self) -> Option<String> {
        match self {
            LayerOutput::Nobody => None,
            LayerOutput::Memory(_) => Some("-".to_owned()),
            LayerOutput::Behind { name: path, .. } | LayerOutput::Pipe { path, .. } => {
                Some(path.display().to_string())
            }
        }
    }
}

/// Writes bytes to a named pipe in a separate thread, so that the session does not wait for the program that reads the pipe.
pub struct PipeWriter(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    last: Last,
    failed: Option<io::Error>,
}

/// Whether more bytes follow.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// More bytes may follow.
    #[default]
    MoreComes,
    /// No bytes follow the waiting bytes.
    Waits,
    /// All bytes are written, or never will be.
    Gone,
}

impl PipeWriter {
    fn start(path: PathBuf) -> PipeWriter {
        let shared = Arc::new(Shared::default());
        let ours = Arc::clone(&shared);
        std::thread::spawn(move || {
            let carried = ours.carry(&path);
            let mut state = ours.lock();
            state.failed = carried.err();
            state.last = Last::Gone;
            ours.changed.notify_all();
        });
        PipeWriter(shared)
    }

    fn take(&self, data: &[u8]) -> io::Result<Written> {
        let mut state = self.0.lock();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        if state.bytes + data.len() > MAX_WAITING {
            return Ok(Written::Full);
        }
        state.bytes += data.len();
        state.waiting.push_back(data.to_vec());
        self.0.changed.notify_all();
        Ok(Written::Yes)
    }
}

/// Waits until all bytes are written to the pipe, but at most for `FLUSH_TIMEOUT`.
impl Drop for PipeWriter {
    fn drop(&mut self) {
        let end = Instant::now() + FLUSH_TIMEOUT;
        let mut state = self.0.lock();
        if state.last == Last::MoreComes {
            state.last = Last::Waits;
            self.0.changed.notify_all();
        }
        while state.last != Last::Gone && Instant::now() < end {
            let waited = self.0.changed.wait_timeout(state, TRY_AGAIN);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.last = Last::Gone; // a later reader gets no bytes
    }
}

impl Shared {
    /// Opens the pipe as soon as a program reads it, and writes all bytes to it.
    fn carry(&self, path: &Path) -> io::Result<()> {
        let Some(mut pipe) = self.open(path)? else { return Ok(()) };
        loop {
            let mut state = self.lock();
            while state.waiting.is_empty() {
                if state.last != Last::MoreComes {
                    return Ok(());
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(next) = state.waiting.pop_front() else { continue };
            state.bytes -= next.len();
            drop(state);
            pipe.write_all(&next)?;
        }
    }

    /// Opens the pipe as soon as a program reads it. Returns `None` if the output ends before that.
    fn open(&self, path: &Path) -> io::Result<Option<File>> {
        loop {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match rustix::fs::open(path, flags, Mode::empty()) {
                Ok(pipe) => {
                    rustix::fs::fcntl_setfl(&pipe, OFlags::empty())?;
                    return Ok(Some(File::from(pipe)));
                }
                Err(rustix::io::Errno::NXIO) => {}
                Err(error) => return Err(error.into()),
            }
            let state = self.lock();
            if state.last == Last::Gone || state.last == Last::Waits && state.waiting.is_empty() {
                return Ok(None);
            }
            drop(self.changed.wait_timeout(state, TRY_AGAIN));
        }
    }

    /// Locks the state. A poisoned lock is safe, because the state contains only whole blocks even if a thread has panicked.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn at_once() -> Perform {
        Arc::new(|job| job())
    }

    fn pipe(dir: &Path) -> PathBuf {
        let path = dir.join("pipe");
        let made = rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RWXU, 0);
        made.expect("a temporary directory takes pipes");
        path
    }

    #[test]
    fn late_reader_of_a_pipe_gets_all_earlier_bytes() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = pipe(dir.path());
        let mut output = LayerOutput::to(&path, at_once());
        assert_eq!(output.write(b"waits ").expect("nobody reads yet"), Written::Yes);
        let reader = std::thread::spawn(move || {
            let mut got = Vec::new();
            File::open(&path).and_then(|mut pipe| pipe.read_to_end(&mut got)).map(|_| got)
        });
        assert_eq!(output.write(b"and comes").expect("room"), Written::Yes);
        drop(output);
        assert_eq!(reader.join().expect("no panic").expect("readable"), b"waits and comes");
    }

    #[test]
    fn number_of_bytes_that_wait_for_a_pipe_reader_is_bounded() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut output = LayerOutput::to(&pipe(dir.path()), at_once());
        let block = vec![0; MAX_WAITING / 2];
        let written: Vec<_> = (0..3).map(|_| output.write(&block).expect("it waits")).collect();
        assert_eq!(written, [Written::Yes, Written::Yes, Written::Full]);
    }

    #[test]
    fn output_file_is_created_at_the_first_write() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("layer1");
        let mut output = LayerOutput::to(&path, at_once());
        assert!(!path.exists());
        output.write(b"data").expect("room");
        assert_eq!(std::fs::read(path).expect("it is there now"), b"data");
    }
}
