//! Standard output and standard error behind bounded queues, so that a session never waits for the reader of its output.
//!
//! ```text
//!   session -- write, flush --> queue, the oldest dropped when full --> thread --> pipe, terminal, file
//! ```
//!
//! For each output, a thread writes the queued lines. If the output is a pipe, the thread leaves half of the pipe free until the
//! end of the command. This space is for the last lines: they reach a program that reads its pipe only after the command has
//! ended.

use crate::units;
use indicatif::TermLike;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::{pipe, stdio, termios};
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bound of a queue, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// Time without progress after which, at the end of the command, all lines except the last lines are dropped.
const STALL: Duration = Duration::from_secs(2);

/// Maximum time to write the last lines if the reader makes no progress. `MAX_WAIT` is the maximum time to write all lines if the
/// reader makes progress.
const LAST_WORDS: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Number of lines that are written even if the reader makes no progress: `error` and `done`, or the summary.
const LAST: usize = 2;

/// Interval of checks of a full pipe.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Returns the line of text that replaces `count` dropped lines.
pub fn dropped(count: u64) -> Vec<u8> {
    format!("warning: {}\n", not_read(count)).into_bytes()
}

/// Returns a phrase about `count` dropped lines or events.
pub fn not_read(count: u64) -> String {
    format!("{} dropped: the output was not read in time", units::count(count, "line"))
}

/// A function that returns the text that replaces a number of dropped lines.
pub type DropNotice = fn(u64) -> Vec<u8>;

/// Effect of a failed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    /// The output has ended, for example because its reader has closed the pipe.
    End,
    /// The line counts as dropped. The next line is written, for example when the disk has room again.
    #[cfg_attr(
        not(any(feature = "tracing", test)),
        expect(dead_code, reason = "only logs and traces continue")
    )]
    Drop,
}

/// An output of the process. A clone writes to the same queue.
#[derive(Debug, Clone)]
pub struct Outlet {
    shared: Arc<Shared>,
    /// The beginning of an unfinished line.
    begun: Vec<u8>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    notice: DropNotice,
    on_failure: OnFailure,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Number of lines that were dropped and not reported yet.
    dropped: u64,
    /// Number of written lines, which shows the progress of the reader.
    written: u64,
    is_writing: bool,
    end: End,
    failed: Option<io::ErrorKind>,
}

/// Bytes to write: a line, or a notice about this number of dropped lines.
enum Taken {
    Line(Vec<u8>),
    Notice(Vec<u8>, u64),
}

/// State of the end of the output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The session continues.
    #[default]
    No,
    /// Only the last lines are written. They may fill the pipe.
    Last,
}

impl Outlet {
    /// Returns standard output.
    pub fn stdout(notice: DropNotice) -> Outlet {
        Outlet::new(stdio::stdout(), notice, OnFailure::End)
    }

    /// Returns standard error.
    pub fn stderr(notice: DropNotice) -> Outlet {
        Outlet::new(stdio::stderr(), notice, OnFailure::End)
    }

    /// Returns an output that continues after failed writes. The text of `notice` also replaces lines that could not be written.
    #[cfg(any(feature = "tracing", test))]
    pub fn tolerant(fd: impl AsFd + Send + 'static, notice: DropNotice) -> Outlet {
        Outlet::new(fd, notice, OnFailure::Drop)
    }

    fn new(fd: impl AsFd + Send + 'static, notice: DropNotice, on_failure: OnFailure) -> Outlet {
        let shared =
            Arc::new(Shared { state: Mutex::default(), changed: Condvar::new(), notice, on_failure });
        let theirs = Arc::clone(&shared);
        // No thread joins this thread: a reader that does not read may block it until the process ends.
        let started =
            thread::Builder::new().name("output".to_owned()).spawn(move || theirs.write_to(fd.as_fd()));
        if let Err(error) = started {
            shared.lock().failed = Some(error.kind());
        }
        Outlet { shared, begun: Vec::new() }
    }

    /// Queues a line.
    #[cfg(any(feature = "tracing", test))]
    pub fn push(&self, line: Vec<u8>) {
        self.shared.lock().push(line);
        self.shared.changed.notify_all();
    }

    /// Returns a terminal for repainted output.
    pub fn terminal(&self) -> Terminal {
        Terminal { outlet: Mutex::new(self.clone()) }
    }

    /// Waits until all lines are written, as long as the reader makes progress. If the reader makes no progress, only the last
    /// lines are written, provided that the pipe has room for them.
    ///
    /// # Errors
    /// The error of the output; [`io::ErrorKind::TimedOut`] when the reader does not read.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        let began = Instant::now();
        let mut state = self.shared.lock();
        let (mut seen, mut since) = (state.written, Instant::now());
        while state.is_writing || !state.lines.is_empty() || (state.dropped > 0 && state.failed.is_none()) {
            if let Some(kind) = state.failed.filter(|_| self.shared.on_failure == OnFailure::End) {
                return Err(kind.into());
            }
            if state.written != seen {
                (seen, since) = (state.written, Instant::now());
            }
            match state.end {
                End::No if since.elapsed() >= STALL || began.elapsed() >= MAX_WAIT => {
                    state.keep(LAST);
                    state.end = End::Last;
                    since = Instant::now();
                    self.shared.changed.notify_all();
                }
                End::Last if since.elapsed() >= LAST_WORDS => return Err(io::ErrorKind::TimedOut.into()),
                _ => {}
            }
            state = self.shared.wait(state, LOOK_EVERY);
        }
        state.failed.map_or(Ok(()), |kind| Err(kind.into()))
    }
}

impl Write for Outlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begun.extend_from_slice(bytes);
        if bytes.ends_with(b"\n") {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    /// Queues the bytes that `write` has received. Returns the error of an earlier line.
    fn flush(&mut self) -> io::Result<()> {
        let mut state = self.shared.lock();
        if let Some(kind) = state.failed.filter(|_| self.shared.on_failure == OnFailure::End) {
            self.begun.clear();
            return Err(kind.into());
        }
        if !self.begun.is_empty() {
            state.push(std::mem::take(&mut self.begun));
            self.shared.changed.notify_all();
        }
        Ok(())
    }
}

impl State {
    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > MAX_BYTES && self.lines.len() > 1 {
            self.drop_first();
        }
    }

    /// Drops all lines except the newest `newest`.
    fn keep(&mut self, newest: usize) {
        while self.lines.len() > newest {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some(line) = self.lines.pop_front() else { return };
        self.bytes -= line.len();
        self.dropped += 1;
    }
}

impl Shared {
    /// Writes the queued lines.
    fn write_to(&self, fd: BorrowedFd<'_>) {
        loop {
            let taken = self.next(fd);
            let (Taken::Line(bytes) | Taken::Notice(bytes, _)) = &taken;
            let outcome = write_all(fd, bytes);
            let mut state = self.lock();
            state.is_writing = false;
            state.written += 1;
            match (outcome, self.on_failure) {
                (Ok(()), OnFailure::End) => {}
                // Lines that were lost before are reported, so the output is complete again.
                (Ok(()), OnFailure::Drop) => state.failed = None,
                (Err(error), OnFailure::Drop) => {
                    state.failed = Some(error.kind());
                    match taken {
                        Taken::Line(_) => state.dropped += 1,
                        Taken::Notice(_, count) => {
                            state.dropped += count;
                            // The notice is tried again when a further line is there.
                            state.drop_first();
                        }
                    }
                }
                (Err(error), OnFailure::End) => {
                    state.failed = Some(error.kind());
                    state.lines.clear();
                    state.dropped = 0;
                    self.changed.notify_all();
                    return;
                }
            }
            self.changed.notify_all();
        }
    }

    /// Waits for the next line, and for room in the pipe. Returns the line.
    fn next(&self, fd: BorrowedFd<'_>) -> Taken {
        let mut state = self.lock();
        loop {
            let next = match state.dropped {
                0 => state.lines.front().map(Vec::len),
                // After a failed write, only a new line causes another attempt.
                _ if state.failed.is_some() && state.lines.is_empty() => None,
                count => Some((self.notice)(count).len()),
            };
            let Some(len) = next else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if state.end == End::No && !has_room(fd, len) {
                state = self.wait(state, LOOK_EVERY);
                continue;
            }
            state.is_writing = true;
            let count = std::mem::take(&mut state.dropped);
            if count > 0 {
                return Taken::Notice((self.notice)(count), count);
            }
            let line = state.lines.pop_front().expect("there is one");
            state.bytes -= line.len();
            return Taken::Line(line);
        }
    }

    /// Locks the state. A poisoned lock is safe: a thread that panics leaves only whole lines.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, most: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, most).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Whether a line fits into the first half of a pipe. Other outputs always have room.
fn has_room(fd: BorrowedFd<'_>, len: usize) -> bool {
    let (Ok(size), Ok(used)) = (pipe::fcntl_getpipe_size(fd), rustix::io::ioctl_fionread(fd)) else {
        return true;
    };
    used == 0 || used as usize + len <= size / 2
}

fn write_all(fd: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, poll};
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => {
                poll(&mut [PollFd::new(&fd, PollFlags::OUT)], None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A terminal behind an outlet.
#[derive(Debug)]
pub struct Terminal {
    outlet: Mutex<Outlet>,
}

impl Terminal {
    /// Appends text to the next flush.
    fn add(&self, text: &str) -> io::Result<()> {
        self.lock().begun.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn escape(&self, n: usize, code: char) -> io::Result<()> {
        if n > 0 { self.add(&format!("\x1b[{n}{code}")) } else { Ok(()) }
    }

    fn lock(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the terminal's size; `None` if the system reports zero.
fn size() -> Option<termios::Winsize> {
    termios::tcgetwinsize(stdio::stderr()).ok().filter(|size| size.ws_col > 0 && size.ws_row > 0)
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        size().map_or(80, |size| size.ws_col)
    }

    fn height(&self) -> u16 {
        size().map_or(24, |size| size.ws_row)
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.escape(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.escape(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.escape(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.escape(n, 'D')
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        self.add(&format!("{s}\n"))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        self.add(s)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.add("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        self.lock().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read;

    fn notice(count: u64) -> Vec<u8> {
        format!("{count} dropped\n").into_bytes()
    }

    /// Returns an outlet into a pipe, and the reading end of the pipe.
    fn piped() -> (Outlet, File) {
        let (reader, writer) = pipe::pipe().expect("a pipe");
        (Outlet::new(writer, notice, OnFailure::End), reader.into())
    }

    fn fill(outlet: &mut Outlet, lines: usize) {
        for number in 0..lines {
            writeln!(outlet, "{number} {}", "x".repeat(200)).expect("it is queued");
        }
    }

    /// Returns the bytes that are in the pipe now.
    fn read(reader: &mut File) -> String {
        let mut bytes = vec![0; 1 << 20];
        let len = reader.read(&mut bytes).expect("it is a pipe");
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    #[test]
    fn full_queue_drops_the_oldest_lines_and_counts_them() {
        let mut state = State::default();
        (0..3).for_each(|_| state.push(vec![0; MAX_BYTES / 2]));
        assert_eq!((state.lines.len(), state.dropped, state.bytes), (2, 1, MAX_BYTES));
        state.keep(1);
        assert_eq!((state.lines.len(), state.dropped, state.bytes), (1, 2, MAX_BYTES / 2));
    }

    #[test]
    fn last_lines_reach_a_reader_that_reads_after_the_end() {
        let (mut outlet, mut reader) = piped();
        fill(&mut outlet, 10_000);
        writeln!(outlet, "error").expect("it is queued");
        writeln!(outlet, "done").expect("it is queued");
        outlet.finish().expect("the pipe has room for the last lines");
        let printed = read(&mut reader);
        assert!(printed.starts_with("0 x") && printed.ends_with("dropped\nerror\ndone\n"), "{printed}");
    }

    #[test]
    fn outlet_drops_lines_while_unread_and_finishes_when_read() {
        let (mut outlet, mut reader) = piped();
        fill(&mut outlet, 2 * MAX_BYTES / 200);
        let lines = thread::spawn(move || {
            let mut printed = String::new();
            reader.read_to_string(&mut printed).map(|_| printed)
        });
        outlet.finish().expect("it is read");
        let shared = Arc::clone(&outlet.shared);
        assert_eq!(shared.lock().failed, None);
        // The thread of the outlet keeps the writing end of the pipe, so the reader never reaches the end of the pipe. The test
        // counts written lines instead.
        assert!(shared.lock().written < 2 * MAX_BYTES as u64 / 200, "some lines were dropped");
        drop(lines);
    }

    #[test]
    fn closed_pipe_is_reported_at_finish_and_at_the_next_line() {
        let (mut outlet, reader) = piped();
        drop(reader);
        writeln!(outlet, "one").expect("it is queued");
        assert_eq!(outlet.finish().expect_err("nobody reads").kind(), io::ErrorKind::BrokenPipe);
        assert_eq!(writeln!(outlet, "two").expect_err("still").kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn tolerant_outlet_counts_failed_lines_and_continues() {
        let (reader, writer) = std::os::unix::net::UnixDatagram::pair().expect("sockets");
        let mut outlet = Outlet::tolerant(writer, notice);
        outlet.push(vec![b'x'; MAX_BYTES / 2]); // too long for a datagram
        outlet.push(b"two\n".to_vec());
        outlet.finish().expect("the last line is written");
        let mut bytes = [0; 100];
        for line in ["1 dropped\n", "two\n"] {
            let len = reader.recv(&mut bytes).expect("it was sent");
            assert_eq!(&bytes[..len], line.as_bytes());
        }
        let mut full =
            Outlet::tolerant(File::options().write(true).open("/dev/full").expect("there is one"), notice);
        (0..100).for_each(|_| full.push(b"line\n".to_vec()));
        assert_eq!(full.finish().expect_err("no line is written").kind(), io::ErrorKind::StorageFull);
        assert!(full.shared.lock().dropped == 100 && full.shared.lock().written <= 100);
    }
}
