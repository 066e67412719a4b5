//! Progress of work on many files, readable by other threads.

use super::error::ObjectError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Work on files that one thread performs. Other threads can read its progress and cancel it. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct FileWork {
    shared: Arc<Shared>,
}

/// A stage of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStage {
    /// Verifying the data of an earlier run.
    Verifying,
    /// Setting times, owners and modes of files, and flushing the files to the disk.
    Completing,
    /// Renaming files.
    Renaming,
    /// Making links and directories.
    Linking,
}

#[derive(Debug, Default)]
struct Shared {
    stage: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

/// The stages of the work, by number.
const STAGES: [WorkStage; 4] =
    [WorkStage::Verifying, WorkStage::Completing, WorkStage::Renaming, WorkStage::Linking];

impl FileWork {
    /// Begins a stage of `total` steps.
    pub fn begin(&self, stage: WorkStage, total: u64) {
        self.shared.done.store(0, Ordering::Relaxed);
        self.shared.total.store(total, Ordering::Relaxed);
        self.shared.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Counts one step as done; `out` is the output directory.
    ///
    /// # Errors
    /// [`ObjectError::Cancelled`] when the work was cancelled.
    pub(crate) fn step(&self, out: &Path) -> Result<(), ObjectError> {
        self.steps(1, out)
    }

    /// Counts several steps as done.
    ///
    /// # Errors
    /// As [`FileWork::step`].
    pub(crate) fn steps(&self, done: u64, out: &Path) -> Result<(), ObjectError> {
        self.shared.done.fetch_add(done, Ordering::Relaxed);
        if self.shared.is_cancelled.load(Ordering::Relaxed) {
            return Err(ObjectError::Cancelled { path: out.to_path_buf() });
        }
        Ok(())
    }

    /// Cancels the work before the next step.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns the stage and its progress in percent.
    pub fn progress(&self) -> (WorkStage, u8) {
        let stage = STAGES[usize::from(self.shared.stage.load(Ordering::Relaxed)) % STAGES.len()];
        let (done, total) =
            (self.shared.done.load(Ordering::Relaxed), self.shared.total.load(Ordering::Relaxed));
        (stage, (done.min(total) * 100 / total.max(1)) as u8)
    }
}
