//! The request to end sessions early. It wakes the threads that wait for their sockets.

use faircast_net::{NetError, Waiter, Want, Watch};
use faircast_transport::error::Error;
use std::io::{self, PipeReader, PipeWriter, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Ends sessions early, from any thread and without delay. Clones share the same request.
#[derive(Debug, Clone)]
pub struct Stop {
    own: Arc<Request>,
    /// The parent request: when the parent is set, the sessions of this request end too.
    above: Option<Arc<Request>>,
}

#[derive(Debug)]
struct Request {
    is_set: Arc<AtomicBool>,
    /// Pipe that becomes readable when the request is set. It is never read.
    wakes: PipeReader,
    waker: PipeWriter,
}

impl Stop {
    /// Creates a request that is not set.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn new() -> Result<Stop, Error> {
        let (wakes, waker) = pipe()
            .map_err(|source| NetError::System { doing: "opening a pipe for stop requests", source })?;
        Ok(Stop { own: Arc::new(Request { is_set: Arc::default(), wakes, waker }), above: None })
    }

    /// Creates a request for some of the sessions. It is also set whenever this request is set.
    pub(crate) fn part(&self) -> Result<Stop, Error> {
        debug_assert!(self.above.is_none(), "there are two levels");
        Ok(Stop { above: Some(Arc::clone(&self.own)), ..Stop::new()? })
    }

    /// Ends the sessions early.
    pub fn stop(&self) {
        if !self.own.is_set.swap(true, Ordering::Relaxed) {
            // Writing cannot fail: the pipe is empty, and its reading end is open.
            let _ = (&self.own.waker).write(&[0]);
        }
    }

    /// Whether the sessions are to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.requests().any(|request| request.is_set.load(Ordering::Relaxed))
    }

    /// Returns the flag that [`Stop::stop`] sets, for polling loops and signal handlers. A signal handler that sets it also
    /// writes a byte to [`Stop::waker`].
    #[must_use]
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.own.is_set
    }

    /// Returns a descriptor for signal handlers: a byte written to it wakes the sessions.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn waker(&self) -> io::Result<PipeWriter> {
        self.own.waker.try_clone()
    }

    /// Returns the descriptors that become readable when the request is set.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.requests().map(|request| request.wakes.as_fd())
    }

    /// Waits until the request is set, at most for `most`. The wait may end early, for example after a signal.
    pub(crate) fn wait(&self, most: Duration) {
        let descriptors: Vec<_> = self.descriptors().collect();
        let watches: Vec<_> = descriptors.iter().map(|one| Watch::new(one, Want::Readable)).collect();
        // The wait fails only if the system has no memory left; the caller then tries again at once.
        let _ = Waiter::new().wait(&watches, Some(Instant::now() + most));
    }

    fn requests(&self) -> impl Iterator<Item = &Request> {
        std::iter::once(&*self.own).chain(self.above.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn waits(stop: &Stop, most: Duration) -> Duration {
        let began = Instant::now();
        stop.wait(most);
        began.elapsed()
    }

    #[test]
    fn stop_request_of_another_thread_ends_a_wait() {
        let stop = Stop::new().expect("descriptors are left");
        assert!(waits(&stop, Duration::from_millis(5)) >= Duration::from_millis(5) && !stop.is_set());
        let other = stop.clone();
        let thread = std::thread::spawn(move || other.stop());
        assert!(waits(&stop, LONG) < LONG && stop.is_set());
        thread.join().expect("it ends");
        stop.stop();
        assert!(waits(&stop, LONG) < LONG, "the second request changes nothing");
    }

    #[test]
    fn stop_request_sets_its_parts_but_no_part_sets_its_parent() {
        let stop = Stop::new().expect("descriptors are left");
        let (part, other) = (stop.part().expect("a pipe"), stop.part().expect("a pipe"));
        part.stop();
        assert!(part.is_set() && !other.is_set() && !stop.is_set());
        stop.stop();
        assert!(other.is_set() && waits(&other, LONG) < LONG);
    }

    #[test]
    fn flag_and_byte_from_a_signal_handler_end_a_wait() {
        let stop = Stop::new().expect("descriptors are left");
        stop.flag().store(true, Ordering::Relaxed);
        stop.waker().and_then(|mut waker| waker.write(&[0])).expect("there is room");
        assert!(stop.is_set() && waits(&stop, LONG) < LONG);
    }
}
