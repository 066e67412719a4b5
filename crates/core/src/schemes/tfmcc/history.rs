//! Loss events of a receiver, and the loss event rate (RFC 4654, 5; RFC 5348, 5).
//!
//! Losses within a round-trip time of the first loss are one event. The interval from one event to the next is counted in
//! packets. The loss event rate is the inverse of a weighted mean of the last eight intervals. A packet that counted as lost and
//! arrives later is removed from its event.

use super::config::Discounting;
use crate::packet::Seq;
use crate::time::{Span, Time};
use std::ops::Range;

/// Weights of intervals, newest first.
const WEIGHTS: [f64; CLOSED] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
const CLOSED: usize = 8;
/// One more than the number of closed intervals, because the newest event starts the open interval.
const EVENTS: usize = CLOSED + 1;
/// Minimum discount factor: 0.5 as in RFC 4654, 5.5 (RFC 5348 has 0.25).
const MIN_DISCOUNT: f64 = 0.5;
/// Maximum number of stored stretches of missing packets. The position of losses in further stretches is approximate.
const STRETCHES: usize = 8;

/// A receiver's loss history. It is allocated when packets are missing for the first time.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    /// Loss events, newest first.
    events: [Event; EVENTS],
    count: usize,
    /// The interval before the first event, while it has a weight.
    first: Option<First>,
    /// Stretches of packets that are missing but not declared lost, oldest first.
    missing: [Stretch; STRETCHES],
    stretches: usize,
}

/// Losses within a round-trip time.
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    /// First packet of the event; `at` is its estimated arrival time.
    first: u64,
    at: Time,
    /// Bit k is set if packet `first + k` is lost.
    lost: u64,
    /// Number of marked packets, plus the number of lost packets without a bit in `lost`.
    others: u32,
    /// Remaining weight of the interval that starts with this event.
    discount: f32,
}

/// The interval before the first event, which is calculated from the rate instead of counted.
#[derive(Debug, Clone, Copy)]
struct First {
    length: f64,
    discount: f64,
}

/// The missing packets `from..to`. `before` is the arrival time of the packet before them, `behind` that of the packet after
/// them.
#[derive(Debug, Clone, Copy, Default)]
struct Stretch {
    from: u64,
    to: u64,
    before: Time,
    behind: Time,
}

impl Stretch {
    /// Returns the estimated arrival time of packet `seq`.
    fn time_of(&self, seq: u64) -> Time {
        let part = (seq + 1 - self.from) as f64 / (self.to + 1 - self.from) as f64;
        self.before + self.behind.since(self.before).scaled(part)
    }
}

impl History {
    /// Returns whether there was a loss event ("have_loss").
    pub(super) const fn has_loss(&self) -> bool {
        self.count > 0
    }

    /// Sets the interval before the first event.
    pub(super) fn set_first(&mut self, packets: f64) {
        self.first = Some(First { length: packets, discount: 1.0 });
    }

    /// Corrects the interval before the first event. `factor` is the measured round-trip time divided by the assumed round-trip
    /// time.
    pub(super) fn rescale_first(&mut self, factor: f64) {
        if let Some(first) = &mut self.first {
            first.length = (first.length * factor * factor).max(1.0);
        }
    }

    /// Records that packets `from..to` are missing. The packet before them arrived at `before`, the packet after them at
    /// `behind`.
    pub(super) fn miss(&mut self, from: Seq, to: Seq, before: Time, behind: Time) {
        if self.stretches == STRETCHES {
            self.missing.copy_within(1.., 0);
            self.stretches -= 1;
        }
        self.missing[self.stretches] = Stretch { from: from.0, to: to.0, before, behind };
        self.stretches += 1;
    }

    /// Declares the `packets` oldest missing packets lost, because packet `by` has arrived. Returns whether a loss event has
    /// begun.
    pub(super) fn lose(
        &mut self,
        packets: u32,
        by: Seq,
        now: Time,
        rtt: Span,
        discounting: Discounting,
    ) -> bool {
        let mut left = u64::from(packets);
        let mut begun = false;
        while let Some((stretch, taken)) = self.take_oldest(left) {
            left -= taken.end - taken.start;
            for seq in taken {
                begun |= self.lose_one(seq, stretch.time_of(seq), rtt, discounting);
            }
        }
        if left > 0 {
            // The positions of these losses are unknown. They count as a loss of the packet before `by`.
            begun |= self.lose_one(by.0.saturating_sub(1), now, rtt, discounting);
        }
        begun
    }

    /// Removes the `packets` oldest missing packets, whose loss is no sign of congestion.
    pub(super) fn excuse(&mut self, packets: u32) {
        let mut left = u64::from(packets);
        while let Some((_, taken)) = self.take_oldest(left) {
            left -= taken.end - taken.start;
        }
    }

    /// Removes at most `packets` packets from the oldest stretch. Returns the stretch as it was, and the removed packets; `None` if
    /// no packet is missing.
    fn take_oldest(&mut self, packets: u64) -> Option<(Stretch, Range<u64>)> {
        if packets == 0 || self.stretches == 0 {
            return None;
        }
        let stretch = self.missing[0];
        let until = stretch.to.min(stretch.from.saturating_add(packets));
        self.missing[0].from = until;
        if until == stretch.to {
            self.missing.copy_within(1.., 0);
            self.stretches -= 1;
        }
        Some((stretch, stretch.from..until))
    }

    fn lose_one(&mut self, seq: u64, at: Time, rtt: Span, discounting: Discounting) -> bool {
        if let Some(newest) = self.events[..self.count].first_mut()
            && at <= newest.at + rtt
        {
            match seq.checked_sub(newest.first) {
                Some(place @ 0..64) => newest.lost |= 1 << place,
                _ => newest.others = newest.others.saturating_add(1),
            }
            return false;
        }
        self.begin(Event { first: seq, at, lost: 1, others: 0, discount: 1.0 }, discounting);
        true
    }

    /// Records a mark on packet `seq`. A mark indicates congestion and is never revoked. Returns whether a loss event has begun.
    pub(super) fn mark(&mut self, seq: Seq, now: Time, rtt: Span, discounting: Discounting) -> bool {
        if self.events[..self.count].first().is_some_and(|newest| now <= newest.at + rtt) {
            return false;
        }
        self.begin(Event { first: seq.0, at: now, lost: 0, others: 1, discount: 1.0 }, discounting);
        true
    }

    fn begin(&mut self, event: Event, discounting: Discounting) {
        let discount = self.open_discount(event.first, discounting);
        self.events[..self.count].iter_mut().skip(1).for_each(|old| old.discount *= discount as f32);
        if let Some(first) = &mut self.first {
            first.discount *= discount;
        }
        if self.count == EVENTS {
            self.first = None;
        } else {
            self.count += 1;
        }
        self.events.rotate_right(1);
        self.events[0] = event;
    }

    /// Removes a late packet from the missing or lost packets. Returns whether loss events have changed.
    pub(super) fn find(&mut self, seq: Seq, rtt: Span) -> bool {
        let seq = seq.0;
        if let Some(at) = self.missing[..self.stretches].iter().position(|s| (s.from..s.to).contains(&seq)) {
            self.fill(at, seq);
            return false;
        }
        let Some(index) = self.events[..self.count].iter().position(|event| event.first <= seq) else {
            return false;
        };
        let event = &mut self.events[index];
        let place = seq - event.first;
        if place >= 64 || event.lost >> place & 1 == 0 {
            return false;
        }
        event.lost &= !(1 << place);
        if event.lost == 0 && event.others == 0 {
            self.remove(index);
        } else if place == 0 && event.lost != 0 {
            self.begin_later(index, rtt);
        }
        true
    }

    fn fill(&mut self, at: usize, seq: u64) {
        let stretch = self.missing[at];
        let split = Stretch { from: seq + 1, ..stretch };
        self.missing[at].to = seq;
        if stretch.from == seq {
            self.missing[at] = split;
        } else if split.from < split.to && self.stretches < STRETCHES {
            self.missing.copy_within(at + 1..self.stretches, at + 2);
            self.missing[at + 1] = split;
            self.stretches += 1;
        }
        if self.missing[at].from >= self.missing[at].to {
            self.missing.copy_within(at + 1..self.stretches, at);
            self.stretches -= 1;
        }
    }

    /// Removes an event whose packets have all arrived. This merges the intervals around the event.
    fn remove(&mut self, index: usize) {
        self.events.copy_within(index + 1..self.count, index);
        self.count -= 1;
        if self.count == 0 {
            self.first = None;
        }
    }

    /// Moves the start of a loss event to its second lost packet, because the first lost packet has arrived late. The event may
    /// then absorb the following event.
    fn begin_later(&mut self, index: usize, rtt: Span) {
        let later = index.checked_sub(1).map(|newer| self.events[newer]);
        let event = &mut self.events[index];
        let shift = event.lost.trailing_zeros();
        event.first += u64::from(shift);
        event.lost >>= shift;
        let Some(later) = later else { return };
        let packets = (later.first + u64::from(shift)).saturating_sub(event.first).max(1);
        event.at += later.at.since(event.at).scaled(f64::from(shift) / packets as f64);
        if later.at <= event.at + rtt {
            event.others += later.lost.count_ones() + later.others;
            self.remove(index - 1);
        }
    }

    /// Returns the loss event rate with `highest` as the newest packet; zero without a loss event.
    pub(super) fn rate(&self, highest: Seq, discounting: Discounting) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        let discount = self.open_discount(highest.0 + 1, discounting);
        let open = highest.0.saturating_sub(self.events[0].first) + 1;
        let (closed, closed_weight) = self.closed(0, 1.0, CLOSED);
        let (older, older_weight) = self.closed(1, discount, CLOSED - 1);
        let with_open = (open as f64 + older) / (1.0 + older_weight);
        let mean = if closed_weight > 0.0 { with_open.max(closed / closed_weight) } else { with_open };
        1.0 / mean.max(1.0)
    }

    /// Returns the factor by which the open interval reduces the weights of the closed intervals. The open interval ends before
    /// packet `end`.
    fn open_discount(&self, end: u64, discounting: Discounting) -> f64 {
        let (closed, weight) = self.closed(0, 1.0, CLOSED);
        if discounting == Discounting::Off || weight <= 0.0 {
            return 1.0;
        }
        let open = end.saturating_sub(self.events[0].first) as f64;
        let mean = closed / weight;
        if open > 2.0 * mean { (2.0 * mean / open).max(MIN_DISCOUNT) } else { 1.0 }
    }

    /// Returns the weighted sum of the newest closed intervals, and the sum of the weights. `shift` is 1 if the open interval has
    /// the first weight. In this case the oldest interval has no weight.
    fn closed(&self, shift: usize, discount: f64, most: usize) -> (f64, f64) {
        let (mut sum, mut weights) = (0.0, 0.0);
        let all = self.count.saturating_sub(1) + usize::from(self.first.is_some());
        let used = all.saturating_sub(shift).min(most);
        for (place, weight) in WEIGHTS.iter().skip(shift).take(used).enumerate() {
            let (length, own) = match self.events.get(place + 1) {
                Some(event) if place + 1 < self.count => {
                    ((self.events[place].first - event.first) as f64, f64::from(event.discount))
                }
                _ => self.first.map_or((0.0, 0.0), |first| (first.length, first.discount)),
            };
            sum += weight * discount * own * length;
            weights += weight * discount * own;
        }
        (sum, weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Span = Span::from_millis(100);
    const ON: Discounting = Discounting::On;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Declares packet `seq` lost. It should have arrived at `seq` ms, and the next packet reveals the loss.
    fn lose(history: &mut History, seq: u64) -> bool {
        history.miss(Seq(seq), Seq(seq + 1), at(seq - 1), at(seq + 1));
        history.lose(1, Seq(seq + 1), at(seq + 1), RTT, ON)
    }

    /// Creates a history of `events` single losses, at intervals of `interval` packets.
    fn regular(interval: u64, events: u64) -> History {
        let mut history = History::default();
        for event in 1..=events {
            assert!(lose(&mut history, event * interval));
            if event == 1 {
                history.set_first(interval as f64);
            }
        }
        history
    }

    #[test]
    fn loss_event_rate_is_the_inverse_of_equal_loss_intervals() {
        for events in [1, 2, 5, 9, 30] {
            let history = regular(200, events);
            for open in [1, 50, 199] {
                let rate = history.rate(Seq(200 * events + open), ON);
                assert!((rate * 200.0 - 1.0).abs() < 1e-9, "{rate} after {events} events");
            }
        }
    }

    /// A long open interval counts only if it lowers the loss rate.
    #[test]
    fn only_a_long_open_interval_lowers_the_loss_rate() {
        let history = regular(200, 12);
        let newest = 2400;
        assert!((history.rate(Seq(newest), ON) * 200.0 - 1.0).abs() < 1e-9);
        // 400 packets: no discount. Weights: one open and five closed intervals.
        let mean = (400.0 + 5.0 * 200.0) / 6.0;
        assert!((history.rate(Seq(newest + 399), ON) * mean - 1.0).abs() < 1e-9);
        // 1600 packets: closed intervals have half their weight, because 2 * 200 / 1600 is less.
        let mean = (1600.0 + 0.5 * 1000.0) / (1.0 + 2.5);
        assert!((history.rate(Seq(newest + 1599), ON) * mean - 1.0).abs() < 1e-9);
        let mean = (1600.0 + 1000.0) / 6.0;
        assert!((history.rate(Seq(newest + 1599), Discounting::Off) * mean - 1.0).abs() < 1e-9);
    }

    #[test]
    fn old_intervals_stay_discounted_after_open_interval_closes() {
        let mut history = regular(200, 12);
        lose(&mut history, 2400 + 1600);
        let weights = 1.0 + 0.5 * (3.0 + 0.8 + 0.6 + 0.4 + 0.2);
        let mean = (1600.0 + 0.5 * 5.0 * 200.0) / weights;
        assert!((history.rate(Seq(4001), ON) * mean - 1.0).abs() < 1e-6);
    }

    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = History::default();
        assert!(lose(&mut history, 1000));
        assert!(!lose(&mut history, 1050));
        assert!(!lose(&mut history, 1100), "not later than a round trip after the first");
        assert!(lose(&mut history, 1102));
        assert_eq!(history.count, 2);
    }

    #[test]
    fn loss_events_in_a_long_gap_start_at_interpolated_times() {
        let mut history = History::default();
        // 400 packets are missing between 1.0 s and 1.4 s. In this gap a new event starts whenever slightly more than 100 ms have
        // passed since the start of the previous event.
        history.miss(Seq(1000), Seq(1400), at(999), at(1400));
        assert!(history.lose(400, Seq(1400), at(1400), RTT, ON));
        assert_eq!(history.count, 4);
        assert_eq!(history.events[2].first, 1101);
        assert!(history.events[2].at.since(at(1101)) < Span::from_millis(1));
    }

    #[test]
    fn marks_begin_events_like_losses() {
        let mut history = History::default();
        assert!(history.mark(Seq(1000), at(1000), RTT, ON));
        assert!(!history.mark(Seq(1080), at(1080), RTT, ON));
        assert!(!lose(&mut history, 1090));
        assert!(history.mark(Seq(1200), at(1200), RTT, ON));
        assert_eq!((history.count, history.events[1].first), (2, 1000));
    }

    #[test]
    fn late_packet_removes_its_loss_event() {
        let mut history = regular(200, 5);
        let before = history.rate(Seq(1010), ON);
        lose(&mut history, 1120);
        assert!(history.rate(Seq(1121), ON) > before);
        assert!(history.find(Seq(1120), RTT));
        assert_eq!(history.count, 5);
        assert!((history.rate(Seq(1121), ON) - before).abs() < 1e-9);
        assert!(!history.find(Seq(1120), RTT), "only once");
    }

    #[test]
    fn loss_event_starts_at_second_loss_if_first_packet_is_late() {
        let mut history = regular(200, 2);
        assert!(!lose(&mut history, 430));
        assert!(lose(&mut history, 540), "140 ms after the first");
        assert!(history.find(Seq(400), RTT));
        assert_eq!((history.count, history.events[1].first), (3, 430));
        assert_eq!(history.events[1].at, at(430));
        assert!(history.find(Seq(200), RTT), "the first event had no loss after all");
        assert_eq!(history.count, 2);
    }

    #[test]
    fn event_moved_to_a_later_loss_absorbs_the_following_event() {
        let mut history = regular(200, 2);
        lose(&mut history, 460);
        assert!(lose(&mut history, 510));
        history.find(Seq(400), RTT);
        assert_eq!((history.count, history.events[0].first), (2, 460));
    }

    #[test]
    fn loss_rate_is_zero_after_the_only_event_is_removed() {
        let mut history = regular(200, 1);
        assert!(history.has_loss());
        history.find(Seq(200), RTT);
        assert!(!history.has_loss() && history.first.is_none());
        assert_eq!(history.rate(Seq(500), ON), 0.0);
    }

    #[test]
    fn missing_packet_that_arrives_in_time_is_not_lost() {
        let mut history = History::default();
        history.miss(Seq(10), Seq(13), at(9), at(13));
        assert!(!history.find(Seq(11), RTT));
        assert!(history.lose(2, Seq(15), at(15), RTT, ON));
        assert_eq!((history.events[0].first, history.events[0].lost), (10, 0b101));
    }

    #[test]
    fn first_interval_is_rescaled_with_a_better_round_trip_time() {
        let mut history = History::default();
        lose(&mut history, 1000);
        history.set_first(400.0);
        history.rescale_first(0.2);
        assert!((history.rate(Seq(1001), ON) * 16.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn first_interval_is_forgotten_after_eight_later_intervals() {
        let mut history = regular(150, 1);
        history.set_first(1e6);
        for event in 2..=9 {
            lose(&mut history, 150 * event);
            assert!(history.first.is_some());
        }
        lose(&mut history, 1500);
        assert!(history.first.is_none());
        assert!((history.rate(Seq(1501), ON) * 150.0 - 1.0).abs() < 1e-9);
    }
}
