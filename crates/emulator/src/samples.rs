//! States of the network at regular times.

use faircast_aqm::LinkCounts;
use faircast_core::time::{Span, Time};
use std::collections::VecDeque;

/// Maximum number of values of the kept samples.
const MAX_VALUES: usize = 4_000_000;
/// Number of values of a link.
const OF_LINK: usize = 10;

/// Packets that have reached a host for a destination and port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of packets.
    pub packets: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
}

/// State of a link at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkSample {
    /// Waiting packets, without the packet in transmission.
    pub waiting: u32,
    /// Total size of these packets, bytes.
    pub waiting_bytes: u64,
    /// Bytes that have left the link so far.
    pub departed_bytes: u64,
    /// Counts so far.
    pub counts: LinkCounts,
}

/// State of the network at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// Number of the sample, from 0.
    pub number: u64,
    /// Time since sampling began.
    pub at: Span,
    /// States of the links, in the order of the plan.
    pub links: Vec<LinkSample>,
    /// Counts of the watched packets.
    pub watched: Vec<Tally>,
}

/// The latest samples.
#[derive(Debug)]
pub(crate) struct Samples {
    begin: Time,
    every: Span,
    next: u64,
    kept: VecDeque<Sample>,
}

impl Samples {
    /// Takes no samples.
    pub(crate) const fn none() -> Samples {
        Samples::from(Time::NEVER, Span::ZERO)
    }

    /// Takes samples from `begin` on, the first one at `begin`.
    pub(crate) const fn from(begin: Time, every: Span) -> Samples {
        Samples { begin, every, next: 0, kept: VecDeque::new() }
    }

    /// Returns the time of the next sample.
    pub(crate) fn due(&self) -> Time {
        self.begin + self.every * self.next
    }

    /// Adds the next sample. If the samples have too many values, the oldest one is removed.
    pub(crate) fn push(&mut self, links: Vec<LinkSample>, watched: Vec<Tally>) {
        let values = links.len() * OF_LINK + watched.len() + 1;
        if (self.kept.len() + 1) * values > MAX_VALUES {
            self.kept.pop_front();
        }
        self.kept.push_back(Sample { number: self.next, at: self.every * self.next, links, watched });
        self.next += 1;
    }

    /// Returns the kept samples from this number on.
    pub(crate) fn since(&self, number: u64) -> impl Iterator<Item = &Sample> {
        let first = self.kept.partition_point(|sample| sample.number < number);
        self.kept.range(first..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_regular_times_and_a_bound() {
        let mut samples = Samples::from(Time::from_secs_f64(5.0), Span::from_millis(100));
        let watched = vec![Tally::default(); MAX_VALUES / 10];
        for _ in 0..12 {
            samples.push(Vec::new(), watched.clone());
        }
        assert_eq!(samples.due(), Time::from_secs_f64(6.2));
        let kept: Vec<u64> = samples.since(0).map(|sample| sample.number).collect();
        assert_eq!(kept, [3, 4, 5, 6, 7, 8, 9, 10, 11], "nine samples have less than the most values");
        let last = samples.since(11).map(|sample| sample.at).collect::<Vec<_>>();
        assert_eq!(last, [Span::from_millis(1_100)]);
        assert!(Samples::none().due().is_never());
    }
}
