//! Links: what a path does to datagrams.

use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};

/// How a link treats datagrams. The default passes everything at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    rate: Rate,
    delay: Span,
    /// Bytes that wait at most.
    queue: u64,
    loss: f64,
    duplication: f64,
    corruption: f64,
    /// Larger datagrams do not pass.
    largest: usize,
    /// This part of the datagrams takes up to so much longer.
    reordering: (f64, Span),
}

impl Default for Link {
    fn default() -> Link {
        let reordering = (0.0, Span::ZERO);
        let (rate, delay) = (Rate::UNLIMITED, Span::ZERO);
        Link {
            rate,
            delay,
            queue: u64::MAX,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            largest: usize::MAX,
            reordering,
        }
    }
}

impl Link {
    /// A link with this delay and no limits.
    pub(super) fn millis(delay: u64) -> Link {
        Link { delay: Span::from_millis(delay), ..Link::default() }
    }

    pub(super) fn mbps(self, rate: f64) -> Link {
        Link { rate: Rate::from_mbps(rate), ..self }
    }

    /// A FIFO queue of so many bytes before the link.
    pub(super) fn fifo(self, bytes: u64) -> Link {
        Link { queue: bytes, ..self }
    }

    pub(super) fn losing(self, loss: f64) -> Link {
        Link { loss, ..self }
    }

    pub(super) fn duplicating(self, duplication: f64) -> Link {
        Link { duplication, ..self }
    }

    pub(super) fn corrupting(self, corruption: f64) -> Link {
        Link { corruption, ..self }
    }

    /// Datagrams above so many bytes vanish.
    pub(super) fn dropping_above(self, largest: usize) -> Link {
        Link { largest, ..self }
    }

    pub(super) fn reordering(self, part: f64, by: Span) -> Link {
        Link { reordering: (part, by), ..self }
    }

    /// What becomes of one datagram that one receiver of this link should get: when each copy
    /// arrives, later than it would on the undamaged link.
    pub(super) fn damage(&self, bytes: &mut [u8], rng: &mut Rng) -> Copies {
        if bytes.len() > self.largest {
            return Copies::Lost;
        }
        if self.loss > 0.0 && rng.chance(self.loss) {
            return Copies::Lost;
        }
        if self.corruption > 0.0 && rng.chance(self.corruption) && !bytes.is_empty() {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        let (part, by) = self.reordering;
        let later = if part > 0.0 && rng.chance(part) { by.scaled(rng.unit()) } else { Span::ZERO };
        if self.duplication > 0.0 && rng.chance(self.duplication) {
            return Copies::Two(later, Span::from_micros(100));
        }
        Copies::One(later)
    }
}

/// The copies of a datagram that arrive, and how much later each.
#[derive(Debug, Clone, Copy)]
pub(super) enum Copies {
    Lost,
    One(Span),
    Two(Span, Span),
}

/// A link's transmitter and its queue.
#[derive(Debug)]
pub(super) struct Pipe {
    link: Link,
    free_at: Time,
    /// Datagrams that found the queue full.
    pub(super) dropped: u64,
}

impl Pipe {
    pub(super) fn new(link: Link) -> Pipe {
        Pipe { link, free_at: Time::ZERO, dropped: 0 }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Change what the link does from now on; what is queued stays queued.
    pub(super) fn set_link(&mut self, link: Link) {
        self.link = link;
    }

    /// When a datagram of `size` bytes that comes at `now` is at the other end; `None` when the queue
    /// is full.
    pub(super) fn pass(&mut self, size: u64, now: Time) -> Option<Time> {
        if self.link.rate.bps().is_infinite() {
            return Some(now + self.link.delay);
        }
        let begin = self.free_at.max(now);
        if self.link.rate.bytes_in(begin.since(now)).saturating_add(size) > self.link.queue {
            self.dropped += 1;
            return None;
        }
        self.free_at = begin + self.link.rate.span_of(size);
        Some(self.free_at + self.link.delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_and_an_empty_one_takes_again() {
        let mut pipe = Pipe::new(Link::millis(5).mbps(8.0).fifo(2_500)); // a kilobyte takes a millisecond
        let now = Time::ZERO;
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(6)));
        assert_eq!(pipe.pass(1_000, now), Some(now + Span::from_millis(7)));
        assert_eq!(pipe.pass(1_000, now), None);
        let later = now + Span::from_millis(1);
        assert_eq!(pipe.pass(1_000, later), Some(now + Span::from_millis(8)));
    }
}
