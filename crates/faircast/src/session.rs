//! Sessions that run in a separate thread.

use crate::error::{SystemError, TransferError};
use crate::events::sealed::Queued;
use crate::events::{self, EventSink, Events};
use crate::{Error, Event, RelayConfig, RelayEvent, RelayHandle};
use faircast_driver::{Configuration, Stop};
use faircast_transport::config::StartNow;
use std::future::Future;
use std::pin::Pin;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

/// A session that runs in a separate thread. Dropping this value stops the session, but does not wait for its end.
///
/// [`Session::join`] waits for the end of the session. This value is also a future with the same result, for any runtime.
#[derive(Debug)]
#[must_use = "dropping a session stops it"]
pub struct Session<Report> {
    events: Events,
    stop: Stop,
    start: StartNow,
    ended: Arc<Ended>,
    thread: Option<JoinHandle<Result<Report, Error>>>,
}

impl<Report> Session<Report> {
    /// Returns the events of the session from its beginning. All clones share one queue: each event is returned by only one
    /// clone.
    pub fn events(&self) -> Events {
        self.events.clone()
    }

    /// If this source waits for receivers, starts it with the receivers that have joined.
    pub fn start_now(&self) {
        self.start.start();
    }

    /// Ends the session early, and notifies its peers. The report of [`Session::join`] contains the state at that moment and is
    /// marked `stopped`.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Returns a handle with which other threads or tasks can stop the session.
    #[must_use]
    pub fn stopper(&self) -> Stop {
        self.stop.clone()
    }

    /// Whether the session has ended. If it has, [`Session::join`] returns at once.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end of the session and returns its report.
    ///
    /// # Errors
    /// The error that ended the session.
    pub fn join(mut self) -> Result<Report, Error> {
        self.finish()
    }

    fn finish(&mut self) -> Result<Report, Error> {
        match self.thread.take() {
            Some(thread) => thread.join().unwrap_or(Err(Error::System(SystemError::Panicked))),
            None => Err(Error::Transfer(TransferError::Stopped)),
        }
    }
}

impl<Report> Future for Session<Report> {
    type Output = Result<Report, Error>;

    /// Returns the result of [`Session::join`] after the session's thread has finished.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Report, Error>> {
        let session = self.get_mut();
        let mut ended = session.ended.lock();
        if !ended.is_finished {
            ended.waker = Some(cx.waker().clone());
            return Poll::Pending;
        }
        drop(ended);
        Poll::Ready(session.finish())
    }
}

/// Whether the session's thread has finished, and the task that waits for the end of this thread.
#[derive(Debug, Default)]
struct Ended(Mutex<End>);

#[derive(Debug, Default)]
struct End {
    is_finished: bool,
    waker: Option<Waker>,
}

impl Ended {
    fn lock(&self) -> MutexGuard<'_, End> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the waiting task when this value is dropped, even by a panic.
struct Wakes(Arc<Ended>);

impl Drop for Wakes {
    fn drop(&mut self) {
        let waker = {
            let mut ended = self.0.lock();
            ended.is_finished = true;
            ended.waker.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }
}

impl<Report> Drop for Session<Report> {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop.stop();
        }
    }
}

/// Starts a session of any format in a separate thread. [`Sender::start`](crate::Sender::start) and
/// [`Receiver::start`](crate::Receiver::start) do this for faircast's format.
///
/// # Errors
/// When the session cannot begin.
pub fn start<C: Configuration>(config: C) -> Result<Session<C::Report>, Error> {
    let (sink, events) = events::queue();
    let stop = Stop::new()?;
    let start = config.start_now();
    let (ours, ended) = (stop.clone(), Arc::new(Ended::default()));
    let wakes = Wakes(Arc::clone(&ended));
    let (begun, begins) = sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("faircast".to_owned())
        .spawn(move || {
            let _wakes = wakes;
            run_beside(config, sink, &ours, begun)
        })
        .map_err(SystemError::Thread)?;
    let session = Session { events, stop, start, ended, thread: Some(thread) };
    // If a session ends before it has begun, its configuration is invalid or its sockets could not be opened.
    match begins.recv() {
        Ok(()) => Ok(session),
        Err(_) => Err(session.join().err().unwrap_or(Error::Transfer(TransferError::Stopped))),
    }
}

fn run_beside<C: Configuration>(
    config: C,
    mut sink: EventSink<Event>,
    stop: &Stop,
    begun: SyncSender<()>,
) -> Result<C::Report, Error> {
    let mut begun = Some(begun);
    let mut on_event = |event| {
        if C::is_begun(&event) {
            let _ = begun.take().map(|begun| begun.send(()));
        }
        sink.push(event);
    };
    config.run(&mut on_event, stop)
}

/// Runs a session of any format until it has ended, or until `stop` is set. `on_event` is called in this thread. The session runs
/// in another thread and does not wait for `on_event`.
///
/// # Errors
/// When the session cannot begin, or fails.
pub fn run<C: Configuration>(
    config: C,
    stop: &Stop,
    on_event: impl FnMut(Event),
) -> Result<C::Report, Error> {
    beside(stop, on_event, |sink| config.run(&mut |event| sink.push(event), stop))
}

/// Relays sessions until `stop` is set. `on_event` is called in this thread. The sessions do not wait for `on_event`.
///
/// # Errors
/// When sockets cannot be opened before the first relayed session. If sockets cannot be opened later, the relay retries.
pub fn relay(
    config: &RelayConfig,
    handle: &RelayHandle,
    on_event: impl FnMut(RelayEvent),
    stop: &Stop,
) -> Result<(), Error> {
    beside(stop, on_event, |sink| faircast_driver::relay(config, handle, &mut |event| sink.push(event), stop))
}

/// Runs `work` in a separate thread, and passes its events to `on_event` in this thread.
fn beside<T: Queued + Send, Report: Send>(
    stop: &Stop,
    on_event: impl FnMut(T),
    work: impl FnOnce(&mut EventSink<T>) -> Result<Report, Error> + Send,
) -> Result<Report, Error> {
    let (mut sink, events) = events::queue();
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new()
            .name("faircast".to_owned())
            .spawn_scoped(scope, move || work(&mut sink))
            .map_err(SystemError::Thread)?;
        let _guard = StopOnPanic(stop);
        events.into_iter().for_each(on_event);
        worker.join().unwrap_or(Err(Error::System(SystemError::Panicked)))
    })
}

/// Stops the session when the reader of its events panics.
struct StopOnPanic<'a>(&'a Stop);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}
