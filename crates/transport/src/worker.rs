//! Jobs that may take a long time, such as disk accesses. They run in parallel with the loop of a session.

use faircast_host::write_behind::Perform;
use std::fmt;
use std::sync::Arc;

/// A job of a session. The job itself sends its result.
pub use faircast_host::write_behind::Job;

/// The kind of a job, which indicates its duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// Decoding of a block.
    Decoding,
    /// Opening of the directory and journal of a transfer.
    Opening,
    /// Operations on some blocks.
    Blocks,
    /// Verification or renaming of all files of a transfer.
    Files,
    /// Closing of a temporary file at the end of the session, which does not wait for it.
    Closing,
}

/// Runs the jobs of a session: in threads, immediately, or at times that a simulated world selects. Jobs of one kind run in the
/// order of their submission.
#[derive(Clone)]
pub struct Worker {
    run: Arc<dyn Fn(Load, Job) + Send + Sync>,
}

impl Worker {
    /// Returns a worker that runs each job immediately in the calling thread.
    pub fn at_once() -> Worker {
        Worker::new(|_, job| job())
    }

    /// Returns a worker that passes jobs to `run`.
    pub fn new(run: impl Fn(Load, Job) + Send + Sync + 'static) -> Worker {
        Worker { run: Arc::new(run) }
    }

    /// Runs a job.
    pub fn run(&self, load: Load, job: Job) {
        (self.run)(load, job);
    }

    /// Returns a function that runs a job of the kind `Load::Blocks`.
    pub fn blocks(&self) -> Perform {
        let worker = self.clone();
        Arc::new(move |job| worker.run(Load::Blocks, job))
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Worker")
    }
}
