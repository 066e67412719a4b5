//! Threads that do the jobs of sessions.

use faircast_transport::object::host::disk::is_in_memory;
use faircast_transport::worker::{Job, Load, Worker};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A session that ends waits this long for its jobs, so that the next one finds files that nobody uses.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Jobs on the files of this directory run in one thread, and decoding in another, so that it does not wait for a disk. A thread begins
/// with its first job. In a directory in memory no disk can stall, and blocks are written at once, from the cache of this processor.
pub(crate) fn own_threads(directory: Option<PathBuf>) -> Worker {
    let (files, decoding) = (Thread::default(), Thread::default());
    let in_memory = Arc::new(AtomicBool::new(false));
    let run = Worker::new(move |load, job| match load {
        Load::Decoding => decoding.run(job),
        Load::Blocks if in_memory.load(Ordering::Relaxed) => job(),
        Load::Blocks | Load::Files => files.run(job),
        Load::Opening => {
            let (directory, in_memory) = (directory.clone(), Arc::clone(&in_memory));
            files.run(Box::new(move || {
                job();
                // It may not exist before.
                in_memory.store(directory.is_some_and(|path| is_in_memory(&path)), Ordering::Relaxed);
            }));
        }
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
        ended.recv_timeout(END_TIMEOUT).ok(); // nothing is sent: it closes, or takes too long
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::thread;

    /// Whether blocks are written in the thread of the session once this directory is open.
    fn writes_at_once(directory: &Path) -> bool {
        let worker = own_threads(Some(directory.to_owned()));
        let session = thread::current().id();
        let run = |load| {
            let (emit, reported) = channel();
            worker.run(load, Box::new(move || emit.send(thread::current().id()).expect("it is waited for")));
            reported.recv().expect("the job runs") == session
        };
        assert!(!run(Load::Opening) && !run(Load::Files) && !run(Load::Decoding));
        run(Load::Blocks)
    }

    #[test]
    fn blocks_of_a_directory_in_memory_are_written_at_once() {
        let memory = Path::new("/dev/shm");
        assert_eq!(writes_at_once(memory), is_in_memory(memory));
        assert!(!writes_at_once(Path::new("/proc")), "it is no file system in memory");
    }
}
