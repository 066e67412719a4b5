//! Queue of events from a session to a reader that may be slow or absent.

use crate::{Event, RelayEvent};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Bound of the queue, in events. It has room for the joins of 10,000 receivers, which a crowd may send within a second.
pub(crate) const MAX: usize = 16_384;

/// Events of a session, the oldest first. The iterator ([`IntoIterator`]) blocks until the next event and ends with the session.
/// This value is also a [`Stream`](futures_core::Stream) for any runtime.
///
/// A session never waits for the reader of its events. Only the newest [`Event::Progress`] is queued. When the queue is full,
/// the oldest event is dropped for each new one, and the reader gets [`Event::Dropped`] in place of the dropped events.
#[derive(Debug)]
pub struct Events<T = Event>(Arc<Shared<T>>);

/// The session's end of the queue. The events end when this value is dropped.
#[derive(Debug)]
pub(crate) struct EventSink<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    /// Total number of dropped events. `unreported` is the number of dropped events that are not reported to the reader yet.
    dropped: u64,
    unreported: u64,
    ended: bool,
    /// Tasks that wait for the next event.
    wakers: Vec<Waker>,
}

pub(crate) mod sealed {
    /// An event that can be queued.
    pub trait Queued {
        /// Whether this event replaces `earlier` in the queue.
        fn supersedes(&self, earlier: &Self) -> bool;

        /// Returns the event that takes the place of `count` dropped events.
        fn dropped(count: u64) -> Self;
    }
}

use sealed::Queued;

impl Queued for Event {
    fn supersedes(&self, earlier: &Event) -> bool {
        matches!((self, earlier), (Event::Progress(_), Event::Progress(_)))
    }

    fn dropped(count: u64) -> Event {
        Event::Dropped { count }
    }
}

impl Queued for RelayEvent {
    fn supersedes(&self, earlier: &RelayEvent) -> bool {
        let is_same = (self.session, self.branch) == (earlier.session, earlier.branch);
        is_same && self.event.supersedes(&earlier.event)
    }

    fn dropped(count: u64) -> RelayEvent {
        RelayEvent { session: 0, branch: None, event: Event::Dropped { count } }
    }
}

/// Returns an empty queue.
pub(crate) fn queue<T: Queued>() -> (EventSink<T>, Events<T>) {
    let state =
        State { waiting: VecDeque::new(), dropped: 0, unreported: 0, ended: false, wakers: Vec::new() };
    let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
    (EventSink(Arc::clone(&shared)), Events(shared))
}

impl<T: Queued> EventSink<T> {
    pub(crate) fn push(&mut self, event: T) {
        let mut state = self.0.lock();
        state.waiting.retain(|waiting| !event.supersedes(waiting));
        if state.waiting.len() == MAX {
            state.waiting.pop_front();
            state.dropped += 1;
            state.unreported += 1;
        }
        state.waiting.push_back(event);
        self.0.wake(state);
    }
}

impl<T> Drop for EventSink<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        self.0.wake(state);
    }
}

impl<T> Clone for Events<T> {
    fn clone(&self) -> Events<T> {
        Events(Arc::clone(&self.0))
    }
}

impl<T: Queued> State<T> {
    /// Returns the report of dropped events if events were dropped, and the oldest event otherwise.
    fn next(&mut self) -> Option<T> {
        match std::mem::take(&mut self.unreported) {
            0 => self.waiting.pop_front(),
            count => Some(T::dropped(count)),
        }
    }
}

impl<T: Queued> Events<T> {
    /// Returns the next event if one is queued.
    #[must_use]
    pub fn try_next(&self) -> Option<T> {
        self.0.lock().next()
    }

    /// Waits for the next event, for at most `most`, and returns it.
    #[must_use]
    pub fn next_within(&self, most: Duration) -> Option<T> {
        let until = Instant::now() + most;
        let mut state = self.0.lock();
        loop {
            if let Some(event) = state.next() {
                return Some(event);
            }
            let left = until.checked_duration_since(Instant::now()).filter(|_| !state.ended)?;
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the number of events that were dropped because they were not read in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

impl<T: Queued> IntoIterator for Events<T> {
    type Item = T;
    type IntoIter = Waiting<T>;

    fn into_iter(self) -> Waiting<T> {
        Waiting(self)
    }
}

/// Iterator over the events of a session. It blocks its thread until the next event.
#[derive(Debug)]
pub struct Waiting<T = Event>(Events<T>);

impl<T: Queued> Iterator for Waiting<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let shared = &self.0.0;
        let mut state = shared.lock();
        loop {
            if let Some(event) = state.next() {
                return Some(event);
            }
            if state.ended {
                return None;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<T: Queued> futures_core::Stream for Events<T> {
    type Item = T;

    fn poll_next(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.0.lock();
        let next = state.next();
        if next.is_some() || state.ended {
            return Poll::Ready(next);
        }
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl<T> Shared<T> {
    /// Locks the state. A poisoned lock is safe: a thread that panics never leaves a part of an event in the queue.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, mut state: MutexGuard<'_, State<T>>) {
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Progress, Setting};

    fn warning(message: usize) -> Event {
        Event::Warning { message: message.to_string(), concerns: Some(Setting::Timeout) }
    }

    #[test]
    fn slow_reader_loses_the_oldest_events_and_gets_their_number() {
        let (mut sink, events) = queue::<Event>();
        (0..MAX + 3).for_each(|number| sink.push(warning(number)));
        assert_eq!((events.dropped(), events.try_next()), (3, Some(Event::Dropped { count: 3 })));
        assert_eq!(events.try_next(), Some(warning(3)));
        drop(sink);
        assert_eq!(events.into_iter().count(), MAX - 1);
    }

    #[test]
    fn only_the_newest_progress_event_is_queued() {
        let (mut sink, events) = queue::<Event>();
        let progress =
            |secs| Event::Progress(Progress { elapsed: Duration::from_secs(secs), ..Progress::default() });
        for event in [progress(1), warning(0), progress(2)] {
            sink.push(event);
        }
        assert_eq!((events.try_next(), events.try_next()), (Some(warning(0)), Some(progress(2))));
        assert_eq!((events.try_next(), events.dropped()), (None, 0));
        drop(sink);
        assert_eq!(events.into_iter().next(), None);
    }

    #[test]
    fn reader_waits_for_an_event_up_to_its_timeout() {
        let (mut sink, events) = queue::<Event>();
        assert_eq!(events.next_within(Duration::from_millis(1)), None);
        let teller = std::thread::spawn(move || sink.push(warning(1)));
        assert_eq!(events.clone().into_iter().next(), Some(warning(1)));
        teller.join().expect("it tells");
        assert_eq!(events.next_within(Duration::from_secs(60)), None, "it has ended");
    }
}
