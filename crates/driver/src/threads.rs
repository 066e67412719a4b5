//! Threads that do the jobs of sessions.

use faircast_transport::worker::{Job, Load, Worker};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A session that ends waits this long for its jobs, so that the next one finds files that nobody uses.
const PATIENCE: Duration = Duration::from_secs(5);

/// Jobs on files run in one thread, and decoding in another, so that it does not wait for a disk. A thread begins with its first job.
pub(crate) fn own_threads() -> Worker {
    let (files, decoding) = (Thread::default(), Thread::default());
    let run = Worker::new(move |load, job| match load {
        Load::Decoding => decoding.run(job),
        Load::Opening | Load::Blocks | Load::Files => files.run(job),
    });
    run.halving(in_two_threads)
}

fn in_two_threads(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    std::thread::scope(|scope| {
        scope.spawn(b);
        a();
    });
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
