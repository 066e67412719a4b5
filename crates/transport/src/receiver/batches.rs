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
    job: Option<Receiver<Batch<F, P>>>,
    worker: Worker,
    perform: Perform<F, O, P>,
}

/// The result of a job.
struct Batch<F, P> {
    files: F,
    ended: Ended<P>,
}

/// The operations that a job has performed.
pub(super) struct Ended<P> {
    pub(super) performed: Vec<P>,
    /// Why it ended early.
    pub(super) error: Option<ObjectError>,
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

    /// The operations of a job that has ended. Otherwise a job with the operations that wait begins, if there are any.
    pub(super) fn next(&mut self) -> Option<Ended<P>> {
        loop {
            if let Some(job) = &self.job {
                let batch = match job.try_recv() {
                    Err(TryRecvError::Empty) => return None,
                    Err(TryRecvError::Disconnected) => panic!("a job on files states its result"),
                    Ok(batch) => batch,
                };
                (self.job, self.files) = (None, Some(batch.files));
                return Some(batch.ended);
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
        let (tell, job) = channel();
        self.job = Some(job);
        let job = Box::new(move || {
            let (mut performed, mut error) = (Vec::with_capacity(operations.len()), None);
            for operation in operations {
                match perform(&mut files, operation) {
                    Ok(one) => performed.push(one),
                    Err(failed) => {
                        error = Some(failed);
                        break;
                    }
                }
            }
            tell.send(Batch { files, ended: Ended { performed, error } }).ok(); // a session that has ended does not listen
        });
        self.worker.run(Load::Blocks, job);
    }
}
