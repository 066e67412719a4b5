//! Work that takes long, such as that of disks, beside the loop of a session.

use std::fmt;
use std::sync::Arc;

/// Work of a session. It says by itself how it ended.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Does the work of sessions: in threads, or as a simulated world wants it.
#[derive(Clone)]
pub(crate) struct Worker(Arc<dyn Fn(Job) + Send + Sync>);

impl Worker {
    /// Each job in a thread of its own.
    pub(crate) fn threads() -> Worker {
        Worker::new(|job| drop(std::thread::spawn(job)))
    }

    /// Each job at once, before anything else goes on.
    pub(crate) fn at_once() -> Worker {
        Worker::new(|job| job())
    }

    /// Jobs go to `run`.
    pub(crate) fn new(run: impl Fn(Job) + Send + Sync + 'static) -> Worker {
        Worker(Arc::new(run))
    }

    /// Do this.
    pub(crate) fn run(&self, job: Job) {
        (self.0)(job);
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}
