//! Work that may take long, such as disk accesses, in parallel with the loop of a session.

use crate::object::{Both, FileWork};
use faircast_host::write_behind::Perform;
use std::fmt;
use std::sync::Arc;

/// Work of a session. It sends its result by itself.
pub use faircast_host::write_behind::Job;

/// The size of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A block is decoded.
    Decoding,
    /// The directory and the journal of a transfer are opened.
    Opening,
    /// Operations on some blocks.
    Blocks,
    /// All files of a transfer are verified, or get their names.
    Files,
}

/// Runs the jobs of a session, those of a kind in their order: in threads, at once, or as a simulated world decides.
#[derive(Clone)]
pub struct Worker {
    run: Arc<dyn Fn(Load, Job) + Send + Sync>,
    both: Option<Both>,
}

impl Worker {
    /// Each job runs at once, before anything else goes on.
    pub fn at_once() -> Worker {
        Worker::new(|_, job| job())
    }

    /// Jobs go to `run`.
    pub fn new(run: impl Fn(Load, Job) + Send + Sync + 'static) -> Worker {
        Worker { run: Arc::new(run), both: None }
    }

    /// Jobs that work on many files may have `both` do two parts at the same time.
    #[must_use]
    pub fn halving(self, both: Both) -> Worker {
        Worker { both: Some(both), ..self }
    }

    /// Do this.
    pub fn run(&self, load: Load, job: Job) {
        (self.run)(load, job);
    }

    /// Performs operations on blocks.
    pub fn blocks(&self) -> Perform {
        let worker = self.clone();
        Arc::new(move |job| worker.run(Load::Blocks, job))
    }

    /// Work on files, for a job.
    pub fn file_work(&self) -> FileWork {
        FileWork::halved_by(self.both)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}
