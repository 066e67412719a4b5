//! Events in order of time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A queue of events, each with a time `T` and a rank `K`. Events are returned in the order of their times. Among simultaneous
/// events, the event with the lowest rank is returned first; among equal ranks, the event that was booked first.
#[derive(Debug)]
pub struct Calendar<T, K, E> {
    heap: BinaryHeap<Entry<T, K, E>>,
    booked: u64,
}

#[derive(Debug)]
struct Entry<T, K, E> {
    key: (T, K, u64),
    event: E,
}

impl<T: Copy + Ord, K: Ord, E> Default for Calendar<T, K, E> {
    fn default() -> Calendar<T, K, E> {
        Calendar { heap: BinaryHeap::new(), booked: 0 }
    }
}

impl<T: Copy + Ord, K: Ord, E> Calendar<T, K, E> {
    /// Adds an event.
    pub fn book(&mut self, at: T, rank: K, event: E) {
        self.booked += 1;
        self.heap.push(Entry { key: (at, rank, self.booked), event });
    }

    /// Returns the time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<T> {
        self.heap.peek().map(|entry| entry.key.0)
    }

    /// Removes and returns the next event, unless it is after `end`.
    pub fn pop_until(&mut self, end: T) -> Option<(T, E)> {
        if self.next_at()? > end {
            return None;
        }
        self.heap.pop().map(|entry| (entry.key.0, entry.event))
    }
}

impl<T: Ord, K: Ord, E> Ord for Entry<T, K, E> {
    /// The order is reversed, because the heap returns its greatest entry first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

impl<T: Ord, K: Ord, E> PartialOrd for Entry<T, K, E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord, K: Ord, E> PartialEq for Entry<T, K, E> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T: Ord, K: Ord, E> Eq for Entry<T, K, E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_rank_and_insertion() {
        let mut calendar = Calendar::default();
        for (at, rank, event) in [(2, 0, "d"), (1, 2, "c"), (1, 1, "a"), (1, 1, "b")] {
            calendar.book(at, rank, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| calendar.pop_until(1)).map(|(_, event)| event).collect();
        assert_eq!(order, ["a", "b", "c"]);
        assert_eq!(calendar.next_at(), Some(2));
    }
}
