//! How far work on many files is, for others to look at while it goes on.

use super::error::ObjectError;
use faircast_wire::Activity;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Work on files that one thread does, and others look at and may end. Clones are of the same work.
#[derive(Debug, Clone, Default)]
pub struct FileWork(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    activity: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

/// The stages of the work, by number.
const STAGES: [Activity; 4] =
    [Activity::Verifying, Activity::Completing, Activity::Renaming, Activity::Linking];

impl FileWork {
    /// A stage of `total` steps begins.
    pub(crate) fn begin(&self, stage: Activity, total: u64) {
        let number = STAGES.iter().position(|one| *one == stage).unwrap_or(0);
        self.0.done.store(0, Ordering::Relaxed);
        self.0.total.store(total, Ordering::Relaxed);
        self.0.activity.store(number as u8, Ordering::Relaxed);
    }

    /// A step is done; `out` is where the files go.
    ///
    /// # Errors
    /// [`ObjectError::Cancelled`] when nobody wants the rest.
    pub(crate) fn step(&self, out: &Path) -> Result<(), ObjectError> {
        self.0.done.fetch_add(1, Ordering::Relaxed);
        if self.0.is_cancelled.load(Ordering::Relaxed) {
            return Err(ObjectError::Cancelled { path: out.to_path_buf() });
        }
        Ok(())
    }

    /// End it before the next step.
    pub(crate) fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// The stage, and how much of it is done, in percent.
    pub fn progress(&self) -> (Activity, u8) {
        let stage = STAGES[usize::from(self.0.activity.load(Ordering::Relaxed)) % STAGES.len()];
        let (done, total) = (self.0.done.load(Ordering::Relaxed), self.0.total.load(Ordering::Relaxed));
        (stage, (done.min(total) * 100 / total.max(1)) as u8)
    }
}
