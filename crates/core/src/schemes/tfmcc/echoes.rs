//! Choice of the receiver whose stamp the next packet returns (RFC 4654, 3.3.2).

use crate::packet::ReceiverId;
use crate::time::Time;

/// The latest stamps that wait to be returned.
#[derive(Debug, Clone)]
pub(super) struct Echoes {
    waiting: Vec<Echo>,
}

/// A receiver's stamp, and the data by which stamps are ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Echo {
    pub(super) to: ReceiverId,
    /// Receiver's clock at the sending of the report, in microseconds.
    pub(super) stamp: u32,
    /// Arrival of the report.
    pub(super) came: Time,
    pub(super) urgency: Urgency,
    /// Feedback round that the report answers.
    pub(super) round: u8,
    /// Reported rate.
    pub(super) rate: f32,
}

/// Classes of echoes, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// A receiver that has just become the limiting one, or a limiting receiver without a measured round-trip time.
    NewlyLimiting,
    /// Another receiver without a measured round-trip time.
    Unmeasured,
    /// Another receiver.
    Measured,
    /// The limiting receiver.
    Limiting,
}

impl Echo {
    /// Returns the stamp plus the time for which the source has held it.
    pub(super) fn adjusted(&self, now: Time) -> u32 {
        self.stamp.wrapping_add((now.since(self.came).as_nanos() / 1_000) as u32)
    }
}

/// Maximum number of stored stamps. A normal round has about ten reports.
const MAX: usize = 64;

impl Echoes {
    pub(super) fn new() -> Echoes {
        Echoes { waiting: Vec::with_capacity(MAX) }
    }

    /// Adds a stamp, which replaces an older stamp of the same receiver.
    pub(super) fn add(&mut self, echo: Echo) {
        self.forget(echo.to);
        if self.waiting.len() == MAX {
            self.waiting.remove(MAX - 1);
        }
        // The list is sorted by urgency, with the least urgent stamp last. Stamps of equal urgency stay in the order of arrival.
        let place = self.waiting.partition_point(|other| !comes_before(&echo, other));
        self.waiting.insert(place, echo);
    }

    /// Removes and returns the most urgent stamp.
    pub(super) fn take(&mut self) -> Option<Echo> {
        if self.waiting.is_empty() { None } else { Some(self.waiting.remove(0)) }
    }

    /// Removes the stamp of this receiver.
    pub(super) fn forget(&mut self, receiver: ReceiverId) {
        self.waiting.retain(|echo| echo.to != receiver);
    }

    /// Removes all stamps.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

/// Compares by class, then by the older round, then by the lower rate.
fn comes_before(one: &Echo, other: &Echo) -> bool {
    let age = one.round.wrapping_sub(other.round) as i8;
    one.urgency.cmp(&other.urgency).then(age.cmp(&0)).then(one.rate.total_cmp(&other.rate)).is_lt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(to: u64, urgency: Urgency, round: u8, rate: f32) -> Echo {
        let to = ReceiverId::new(to).expect("not zero");
        Echo { to, stamp: 0, came: Time::ZERO, urgency, round, rate }
    }

    fn order(echoes: &mut Echoes) -> Vec<u64> {
        std::iter::from_fn(|| echoes.take()).map(|echo| echo.to.get()).collect()
    }

    #[test]
    fn stamps_are_echoed_by_class_then_round_age_then_rate() {
        let mut echoes = Echoes::new();
        for one in [
            echo(1, Urgency::Limiting, 0, 1.0),
            echo(2, Urgency::Measured, 3, 5.0),
            echo(3, Urgency::Unmeasured, 3, 9.0),
            echo(4, Urgency::Measured, 2, 7.0),
            echo(5, Urgency::Measured, 3, 4.0),
            echo(6, Urgency::NewlyLimiting, 3, 9.0),
            echo(7, Urgency::Unmeasured, 255, 99.0),
        ] {
            echoes.add(one);
        }
        assert_eq!(order(&mut echoes), [6, 7, 3, 4, 5, 2, 1]);
    }

    #[test]
    fn newer_stamp_of_a_receiver_replaces_its_older_stamp() {
        let mut echoes = Echoes::new();
        echoes.add(echo(1, Urgency::Measured, 0, 1.0));
        echoes.add(echo(1, Urgency::Unmeasured, 1, 2.0));
        assert_eq!(order(&mut echoes), [1]);
    }

    #[test]
    fn least_urgent_stamp_is_dropped_when_too_many_wait() {
        let mut echoes = Echoes::new();
        (1..=100).for_each(|id| echoes.add(echo(id, Urgency::Measured, 0, id as f32)));
        echoes.add(echo(200, Urgency::Unmeasured, 0, 1.0));
        let order = order(&mut echoes);
        assert_eq!((order.len(), order[0]), (64, 200));
    }

    #[test]
    fn delay_at_the_source_is_added_to_the_echoed_stamp() {
        let held = Echo { stamp: u32::MAX - 5, ..echo(1, Urgency::Measured, 0, 1.0) };
        assert_eq!(held.adjusted(Time::ZERO + crate::time::Span::from_micros(10)), 4);
    }
}
