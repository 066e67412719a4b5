//! Work that may take long, such as that of disks, beside the loop of a session.

use crate::object::{Both, FileWork};
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A session that ends waits this long for its jobs, so that the next one finds files that nobody uses.
const PATIENCE: Duration = Duration::from_secs(5);

/// Work of a session. It sends its result by itself.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// The size of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// A block is decoded.
    Decoding,
    /// Operations on some blocks.
    Blocks,
    /// All files of a transfer are verified, or get their names.
    Files,
}

/// Does the jobs of a session, those of a kind in their order: in threads, at once, or as a simulated world wants it.
#[derive(Clone)]
pub(crate) struct Worker {
    run: Arc<dyn Fn(Load, Job) + Send + Sync>,
    both: Option<Both>,
}

impl Worker {
    /// Jobs on files run in one thread, and decoding in another, so that it does not wait for a disk. A thread begins with its first job.
    pub(crate) fn own_threads() -> Worker {
        let (files, decoding) = (Thread::default(), Thread::default());
        let run = Worker::new(move |load, job| match load {
            Load::Decoding => decoding.run(job),
            Load::Blocks | Load::Files => files.run(job),
        });
        Worker { both: Some(in_two_threads), ..run }
    }

    /// Each job runs at once, before anything else goes on.
    pub(crate) fn at_once() -> Worker {
        Worker::new(|_, job| job())
    }

    /// Jobs go to `run`.
    pub(crate) fn new(run: impl Fn(Load, Job) + Send + Sync + 'static) -> Worker {
        Worker { run: Arc::new(run), both: None }
    }

    /// Do this.
    pub(crate) fn run(&self, load: Load, job: Job) {
        (self.run)(load, job);
    }

    /// Work on files, for a job.
    pub(crate) fn file_work(&self) -> FileWork {
        FileWork::halved_by(self.both)
    }
}

fn in_two_threads(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    std::thread::scope(|scope| {
        scope.spawn(b);
        a();
    });
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}

/// A thread that does one job after the other.
#[derive(Default)]
struct Thread(Mutex<Option<Running>>);

struct Running {
    jobs: Sender<Job>,
    /// Closes with the thread.
    ended: Receiver<()>,
}

impl Thread {
    fn run(&self, job: Job) {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running = running.get_or_insert_with(|| {
            let ((jobs, next), (alive, ended)) = (channel::<Job>(), channel());
            std::thread::spawn(move || {
                let _alive: Sender<()> = alive;
                next.iter().for_each(|job| job());
            });
            Running { jobs, ended }
        });
        running.jobs.send(job).ok(); // it ends before only when a job panics, which the session sees by itself
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let running = self.0.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Running { jobs, ended }) = running else { return };
        drop(jobs);
        ended.recv_timeout(PATIENCE).ok(); // nothing is sent: it closes, or takes too long
    }
}
