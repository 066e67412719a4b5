//! Operations on files, performed in order by jobs of the worker. A job takes the files and all pending operations. One job runs
//! at a time.

use crate::object::ObjectError;
use crate::worker::{Load, Worker};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Performs one operation on files.
pub(super) type Perform<F, O, P> = fn(&mut F, O) -> Result<P, ObjectError>;

/// Files `F`, except while a job uses them, and the operations `O` that wait for a job.
pub(super) struct Batches<F, O, P> {
    files: Option<F>,
    waiting: VecDeque<O>,
    job: Option<Receiver<Step<F, P>>>,
    worker: Worker,
    perform: Perform<F, O, P>,
}

/// A message of a job.
enum Step<F, P> {
    /// An operation was performed.
    Performed(P),
    /// The job has ended, perhaps early because an operation failed.
    Ended(F, Option<ObjectError>),
}

impl<F: Send + 'static, O: Send + 'static, P: Send + 'static> Batches<F, O, P> {
    pub(super) fn new(files: Option<F>, worker: Worker, perform: Perform<F, O, P>) -> Batches<F, O, P> {
        Batches { files, waiting: VecDeque::new(), job: None, worker, perform }
    }

    /// Returns the files, unless a job uses them.
    pub(super) fn files(&mut self) -> Option<&mut F> {
        self.files.as_mut()
    }

    /// Sets the files.
    pub(super) fn give(&mut self, files: F) {
        self.files = Some(files);
    }

    /// Returns the files, unless a job uses them. Pending operations are dropped.
    pub(super) fn into_files(self) -> Option<F> {
        self.files
    }

    /// Drops the pending operations, and closes the files in a job of its own: this deletes files without names, which may take
    /// seconds.
    pub(super) fn close(&mut self) {
        self.waiting.clear();
        let files = (self.files.take(), self.job.take());
        if files.0.is_some() || files.1.is_some() {
            self.worker.run(Load::Closing, Box::new(move || drop(files)));
        }
    }

    /// Appends operations to the pending operations.
    pub(super) fn extend(&mut self, operations: impl IntoIterator<Item = O>) {
        self.waiting.extend(operations);
    }

    /// Drops the pending operations. The operations of the running job continue.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Whether no operation is pending and no job is running.
    pub(super) fn is_idle(&self) -> bool {
        self.job.is_none() && self.waiting.is_empty()
    }

    /// Returns the result of a performed operation. If no result is available, starts a job for the pending operations.
    ///
    /// # Errors
    /// If an operation failed. The remaining operations of its job are not performed.
    pub(super) fn next(&mut self) -> Option<Result<P, ObjectError>> {
        loop {
            if let Some(job) = &self.job {
                match job.try_recv() {
                    Err(TryRecvError::Empty) => return None,
                    Err(TryRecvError::Disconnected) => panic!("a job on files states its result"),
                    Ok(Step::Performed(one)) => return Some(Ok(one)),
                    Ok(Step::Ended(files, error)) => {
                        (self.job, self.files) = (None, Some(files));
                        if let Some(error) = error {
                            return Some(Err(error));
                        }
                    }
                }
            }
            if self.waiting.is_empty() {
                return None;
            }
            let files = self.files.take()?;
            self.begin(files);
        }
    }

    fn begin(&mut self, mut files: F) {
        let (operations, perform) = (std::mem::take(&mut self.waiting), self.perform);
        let (sender, job) = channel();
        self.job = Some(job);
        let job = Box::new(move || {
            // Sending fails if the session has ended.
            let each =
                |operation| perform(&mut files, operation).map(|one| _ = sender.send(Step::Performed(one)));
            let error = operations.into_iter().try_for_each(each).err();
            sender.send(Step::Ended(files, error)).ok();
        });
        self.worker.run(Load::Blocks, job);
    }
}
