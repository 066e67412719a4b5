//! Threads that perform the jobs of sessions.

use faircast_transport::object::host::disk::is_in_memory;
use faircast_transport::worker::{Job, Load, Worker};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Duration for which an ending session waits for its jobs, so that the next session finds no file in use.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a worker with two threads: one for jobs on files of this directory, and one for decoding. Decoding thus does not wait
/// for the disk. A thread starts with its first job. Files are closed in a thread that outlives the session. If the directory is in memory, no disk can stall, so the session's thread
/// writes blocks at once from the processor's cache.
pub(crate) fn own_threads(directory: Option<PathBuf>) -> Worker {
    let (files, decoding) = (Thread::default(), Thread::default());
    let in_memory = Arc::new(AtomicBool::new(false));
    Worker::new(move |load, job| match load {
        Load::Decoding => decoding.run(job),
        Load::Blocks if in_memory.load(Ordering::Relaxed) => job(),
        Load::Blocks | Load::Files => files.run(job),
        Load::Closing => Running::start().run(job),
        Load::Opening => {
            let (directory, in_memory) = (directory.clone(), Arc::clone(&in_memory));
            files.run(Box::new(move || {
                job();
                // This check follows the job, because the directory may be missing before the job opens it.
                in_memory.store(directory.is_some_and(|path| is_in_memory(&path)), Ordering::Relaxed);
            }));
        }
    })
}

/// A thread that performs one job after another.
#[derive(Default)]
struct Thread(Mutex<Option<Running>>);

struct Running {
    jobs: Sender<Job>,
    /// Channel that closes when the thread ends.
    ended: Receiver<()>,
}

impl Thread {
    fn run(&self, job: Job) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.get_or_insert_with(Running::start).run(job);
    }
}

impl Running {
    fn start() -> Running {
        let ((jobs, next), (alive, ended)) = (channel::<Job>(), channel());
        std::thread::spawn(move || {
            let _alive: Sender<()> = alive;
            next.iter().for_each(|job| job());
        });
        Running { jobs, ended }
    }

    fn run(&self, job: Job) {
        self.jobs.send(job).ok(); // this fails only after a panic of a job, which the session detects
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let running = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { jobs, ended }) = running else { return };
        drop(jobs);
        ended.recv_timeout(END_TIMEOUT).ok(); // the channel closes with the thread, or the wait times out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::thread;

    #[test]
    fn files_are_closed_in_a_thread_that_the_session_does_not_await() {
        let worker = own_threads(None);
        let (emit, reported) = channel();
        let places = [Load::Files, Load::Decoding, Load::Closing].map(|load| {
            let emit = emit.clone();
            worker.run(load, Box::new(move || emit.send(thread::current().id()).expect("it is waited for")));
            reported.recv().expect("the job runs")
        });
        let (release, released) = channel::<()>();
        worker.run(Load::Closing, Box::new(move || _ = released.recv().map(|()| emit.send(places[2]))));
        drop(worker);
        assert!(!places[..2].contains(&places[2]) && reported.try_recv().is_err(), "it has not ended");
        release.send(()).expect("it waits");
        assert!(reported.recv().is_ok());
    }

    /// Whether the session's thread itself writes blocks once this directory is open.
    fn writes_at_once(directory: &Path) -> bool {
        let worker = own_threads(Some(directory.to_owned()));
        let session = thread::current().id();
        let run = |load| {
            let (emit, reported) = channel();
            worker.run(load, Box::new(move || emit.send(thread::current().id()).expect("it is waited for")));
            reported.recv().expect("the job runs") == session
        };
        assert!(!run(Load::Opening) && !run(Load::Files) && !run(Load::Decoding));
        run(Load::Blocks)
    }

    #[test]
    fn blocks_are_written_immediately_on_in_memory_file_systems() {
        let memory = Path::new("/dev/shm");
        assert_eq!(writes_at_once(memory), is_in_memory(memory));
        assert!(!writes_at_once(Path::new("/proc")), "it is no file system in memory");
    }
}
