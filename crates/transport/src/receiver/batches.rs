//! Operations on files, performed in their order by jobs of the worker. A job takes all operations that wait, together with the files, and
//! one job runs at a time.

use crate::object::ObjectError;
use crate::worker::{Load, Worker};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

/// Performs an operation on files.
pub(super) type Perform<F, O, P> = fn(&mut F, O) -> Result<P, ObjectError>;

/// Files `F`, while no job has them, and the operations `O` that wait for a job.
pub(super) struct Batches<F, O, P> {
    files: Option<F>,
    waiting: VecDeque<O>,
    job: Option<Receiver<Step<F, P>>>,
    worker: Worker,
    perform: Perform<F, O, P>,
}

/// A message of a job.
enum Step<F, P> {
    /// An operation is performed.
    Performed(P),
    /// The job ends, early where an operation failed.
    Ended(F, Option<ObjectError>),
}

impl<F: Send + 'static, O: Send + 'static, P: Send + 'static> Batches<F, O, P> {
    pub(super) fn new(files: Option<F>, worker: Worker, perform: Perform<F, O, P>) -> Batches<F, O, P> {
        Batches { files, waiting: VecDeque::new(), job: None, worker, perform }
    }

    /// The files, while no job has them.
    pub(super) fn files(&mut self) -> Option<&mut F> {
        self.files.as_mut()
    }

    /// These are the files.
    pub(super) fn give(&mut self, files: F) {
        self.files = Some(files);
    }

    /// Take the files out, while no job has them. Operations that wait are dropped.
    pub(super) fn into_files(self) -> Option<F> {
        self.files
    }

    /// Perform these, after those that wait.
    pub(super) fn extend(&mut self, operations: impl IntoIterator<Item = O>) {
        self.waiting.extend(operations);
    }

    /// Drop the operations that no job has.
    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    /// Whether nothing waits and no job is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.job.is_none() && self.waiting.is_empty()
    }

    /// The result of an operation that is performed. Without one a job with the operations that wait begins, if there are any.
    ///
    /// # Errors
    /// Why an operation failed. Those that its job had behind it are not performed.
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
            // A session that has ended does not listen.
            let each =
                |operation| perform(&mut files, operation).map(|one| _ = sender.send(Step::Performed(one)));
            let error = operations.into_iter().try_for_each(each).err();
            sender.send(Step::Ended(files, error)).ok();
        });
        self.worker.run(Load::Blocks, job);
    }
}
