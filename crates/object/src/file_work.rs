//! How far work on many files is, for others to look at while it goes on.

use super::error::ObjectError;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Work on files that one thread does, and others look at and may end. Clones are of the same work.
#[derive(Debug, Clone, Default)]
pub struct FileWork {
    shared: Arc<Shared>,
    both: Option<Both>,
}

/// Does two halves of work and returns after both.
pub type Both = fn(&mut (dyn FnMut() + Send), &mut (dyn FnMut() + Send));

/// A stage of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkStage {
    /// It verifies the data of an earlier run.
    Verifying,
    /// It gives files their times, owners and modes, and flushes them.
    Completing,
    /// It renames files.
    Renaming,
    /// It makes links and directories.
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
    /// Work that leaves two halves to `both`; by default they follow one another.
    pub fn halved_by(both: Option<Both>) -> FileWork {
        FileWork { both, ..FileWork::default() }
    }

    /// Do both halves.
    pub(crate) fn halves(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        match self.both {
            Some(both) => both(a, b),
            None => {
                a();
                b();
            }
        }
    }

    /// A stage of `total` steps begins.
    pub fn begin(&self, stage: WorkStage, total: u64) {
        self.shared.done.store(0, Ordering::Relaxed);
        self.shared.total.store(total, Ordering::Relaxed);
        self.shared.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Marks a step as done; `out` is the output directory.
    ///
    /// # Errors
    /// [`ObjectError::Cancelled`] when the rest is not needed any more.
    pub(crate) fn step(&self, out: &Path) -> Result<(), ObjectError> {
        self.shared.done.fetch_add(1, Ordering::Relaxed);
        if self.shared.is_cancelled.load(Ordering::Relaxed) {
            return Err(ObjectError::Cancelled { path: out.to_path_buf() });
        }
        Ok(())
    }

    /// End it before the next step.
    pub fn cancel(&self) {
        self.shared.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// The stage, and how much of it is done, in percent.
    pub fn progress(&self) -> (WorkStage, u8) {
        let stage = STAGES[usize::from(self.shared.stage.load(Ordering::Relaxed)) % STAGES.len()];
        let (done, total) =
            (self.shared.done.load(Ordering::Relaxed), self.shared.total.load(Ordering::Relaxed));
        (stage, (done.min(total) * 100 / total.max(1)) as u8)
    }
}
