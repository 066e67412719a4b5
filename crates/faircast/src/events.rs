//! Events on their way from a session to a reader that may be slow, or not there.

use crate::Event;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// So many events wait at most.
pub(crate) const MOST: usize = 256;

/// What a session tells, the oldest first: an iterator that waits for the next event and ends with the session.
///
/// A session never waits for whoever reads this. Of the progress that it tells once a second only the newest waits; when
/// 256 events wait, the oldest is dropped for each that comes, and [`Events::dropped`] counts it.
#[derive(Debug, Clone)]
pub struct Events(Arc<Shared>);

/// The session's end. Dropping it ends the events.
#[derive(Debug)]
pub(crate) struct EventSink(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Event>,
    dropped: u64,
    ended: bool,
}

/// A queue without events.
pub(crate) fn queue() -> (EventSink, Events) {
    let shared = Arc::new(Shared::default());
    (EventSink(Arc::clone(&shared)), Events(shared))
}

impl EventSink {
    pub(crate) fn tell(&mut self, event: Event) {
        let mut state = self.0.lock();
        let is_progress = |event: &Event| matches!(event, Event::Progress(_));
        if is_progress(&event) {
            state.waiting.retain(|waiting| !is_progress(waiting));
        }
        if state.waiting.len() == MOST {
            state.waiting.pop_front();
            state.dropped += 1;
        }
        state.waiting.push_back(event);
        self.0.wake(state);
    }
}

impl Drop for EventSink {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended = true;
        self.0.wake(state);
    }
}

impl Events {
    /// The next event if one waits.
    #[must_use]
    pub fn try_next(&self) -> Option<Event> {
        self.0.lock().waiting.pop_front()
    }

    /// The next event if one comes within this time.
    #[must_use]
    pub fn next_within(&self, most: Duration) -> Option<Event> {
        let until = Instant::now() + most;
        let mut state = self.0.lock();
        loop {
            if let Some(event) = state.waiting.pop_front() {
                return Some(event);
            }
            let left = until.checked_duration_since(Instant::now()).filter(|_| !state.ended)?;
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// How many events were dropped because nobody read them in time.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.lock().dropped
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut state = self.0.lock();
        loop {
            if let Some(event) = state.waiting.pop_front() {
                return Some(event);
            }
            if state.ended {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Shared {
    /// A thread that has panicked leaves whole events behind.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, state: MutexGuard<'_, State>) {
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Progress, Setting};

    fn warning(message: usize) -> Event {
        Event::Warning { message: message.to_string(), concerns: Some(Setting::Patience) }
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_events_and_learns_how_many() {
        let (mut sink, mut events) = queue();
        (0..MOST + 3).for_each(|number| sink.tell(warning(number)));
        assert_eq!((events.dropped(), events.next()), (3, Some(warning(3))));
        drop(sink);
        assert_eq!(events.count(), MOST - 1);
    }

    #[test]
    fn only_the_newest_progress_waits() {
        let (mut sink, mut events) = queue();
        let progress = |seconds| Event::Progress(Progress { seconds, ..Progress::default() });
        for event in [progress(1.0), warning(0), progress(2.0)] {
            sink.tell(event);
        }
        assert_eq!((events.next(), events.next()), (Some(warning(0)), Some(progress(2.0))));
        assert_eq!((events.try_next(), events.dropped()), (None, 0));
        drop(sink);
        assert_eq!(events.next(), None);
    }

    #[test]
    fn a_reader_waits_for_the_next_event_and_no_longer_than_it_wants() {
        let (mut sink, mut events) = queue();
        assert_eq!(events.next_within(Duration::from_millis(1)), None);
        let teller = std::thread::spawn(move || sink.tell(warning(1)));
        assert_eq!(events.next(), Some(warning(1)));
        teller.join().expect("it tells");
        assert_eq!(events.next_within(Duration::from_secs(60)), None, "it has ended");
    }
}
