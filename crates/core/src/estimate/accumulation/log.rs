//! A ring of the arrivals that are needed to evaluate the next control packet.

use crate::time::{Rate, Span, Time};

/// A ring of arrivals, each with the number of bytes received up to it. The ring grows by doubling, up to [`MAX`] entries. From
/// then on, a full ring drops every second arrival. It then has all of the latest 2048 packets, half of the 2048 packets before
/// them, a quarter of the next older 2048 packets, and so on.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrivalLog {
    places: Box<[Arrived]>,
    oldest: usize,
    len: usize,
    total: u64,
    /// The time before which arrivals are not needed.
    needed_from: Time,
    /// Number of arrivals in the ring since the rate was last reset.
    fresh: usize,
    pub(super) window: Span,
    /// Arrivals about an eighth of the window apart.
    marks: [Arrived; MARKS],
    /// Number of marks, up to [`MARKS`]. `turn` is the index of the next mark.
    marked: u8,
    turn: u8,
}

/// An arrival, and the number of bytes up to and including it.
#[derive(Debug, Clone, Copy, Default)]
struct Arrived {
    at: Time,
    total: u64,
}

const FEWEST: usize = 16;
const MAX: usize = 4096;
/// Number of marks. Consecutive marks are an eighth of a window apart, so ten marks cover the whole window.
const MARKS: usize = 10;
/// Minimum number of packets, after the first, over which a rate is measured.
pub(super) const RATE_PACKETS: usize = 8;

impl ArrivalLog {
    #[inline]
    pub(super) fn record(&mut self, size: u16, now: Time) {
        self.total += u64::from(size);
        if self.len > 0 {
            let last = self.at(self.len - 1);
            if last.at >= now {
                let place = self.place(self.len - 1);
                self.places[place].total = self.total;
                return;
            }
            self.mark(last);
        }
        if self.len == self.places.len() {
            self.make_room();
        }
        let place = self.place(self.len);
        self.places[place] = Arrived { at: now, total: self.total };
        self.len += 1;
        self.fresh += 1;
    }

    /// Stores an arrival as a mark, unless it is too close to the latest mark. Must be called later than the arrival: only then
    /// is its number of bytes final.
    #[inline]
    fn mark(&mut self, arrived: Arrived) {
        let last = self.marks[(usize::from(self.turn) + MARKS - 1) % MARKS];
        let near = self.marked > 0 && arrived.at.since(last.at) < self.window / 8;
        if near || self.fresh == 0 {
            return;
        }
        self.marks[usize::from(self.turn)] = arrived;
        self.turn = (self.turn + 1) % MARKS as u8;
        self.marked = (self.marked + 1).min(MARKS as u8);
    }

    /// Lets the ring drop arrivals before `time`.
    pub(super) fn keep_from(&mut self, time: Time) {
        self.needed_from = time;
    }

    /// Returns the number of bytes that arrived after `time`, as far as the ring still has these arrivals.
    pub(super) fn bytes_after(&self, time: Time) -> u64 {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            if self.at(middle).at <= time { low = middle + 1 } else { high = middle }
        }
        if self.len == 0 { 0 } else { self.total - self.at(low.saturating_sub(1)).total }
    }

    /// Returns the arrival rate up to the latest arrival.
    pub(super) fn rate(&self, now: Time) -> Option<Rate> {
        if self.fresh <= RATE_PACKETS || self.len <= RATE_PACKETS {
            return None;
        }
        let eighth = self.at(self.len - 1 - RATE_PACKETS);
        let count = usize::from(self.marked);
        let newest_first =
            (1..=count).map(|back| self.marks[(usize::from(self.turn) + MARKS - back) % MARKS]);
        let mut from = eighth;
        for mark in newest_first {
            if now.since(from.at) >= self.window {
                break;
            }
            if mark.at < from.at {
                from = mark;
            }
        }
        Some(Rate::of(self.total - from.total, now.since(from.at))).filter(|rate| rate.is_usable())
    }

    pub(super) fn forget_rate(&mut self) {
        (self.marked, self.fresh) = (0, 0);
    }

    fn at(&self, index: usize) -> Arrived {
        self.places[self.place(index)]
    }

    fn place(&self, index: usize) -> usize {
        (self.oldest + index) & (self.places.len() - 1)
    }

    /// Makes room in a full ring: drops unneeded arrivals, otherwise grows, otherwise drops every second arrival.
    fn make_room(&mut self) {
        let spare = self.len > RATE_PACKETS + 2 && self.at(1).at <= self.needed_from;
        if spare {
            self.oldest = self.place(1);
            self.len -= 1;
        } else if self.places.len() < MAX {
            let mut places = vec![Arrived::default(); (self.places.len() * 2).max(FEWEST)].into_boxed_slice();
            for (index, place) in places.iter_mut().enumerate().take(self.len) {
                *place = self.at(index);
            }
            (self.places, self.oldest) = (places, 0);
        } else {
            // The later arrival of each pair stays, so the newest arrival stays.
            for index in 0..self.len / 2 {
                let place = self.place(index);
                self.places[place] = self.at(2 * index + 1);
            }
            self.len /= 2;
            self.fresh = self.fresh.min(self.len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn byte_count_is_exact_while_the_ring_wraps() {
        let mut log = ArrivalLog::default();
        for packet in 1..=1000 {
            log.record(1000, at(packet * 10));
            if packet > 5 {
                log.keep_from(at(packet * 10 - 50));
                assert_eq!(log.bytes_after(at(packet * 10 - 30)), 3000);
            }
        }
        assert_eq!(log.places.len(), FEWEST);
    }

    #[test]
    fn the_ring_grows_on_demand_up_to_its_limit() {
        let mut log = ArrivalLog::default();
        (1..=100_000).for_each(|packet| log.record(1000, at(packet * 10)));
        assert_eq!(log.places.len(), MAX);
        let off = log.bytes_after(at(900_000)).abs_diff(10_000_000);
        assert!(off <= 64_000, "{off} bytes off, although most arrivals are forgotten");
    }

    #[test]
    fn a_steady_rate_is_measured_exactly() {
        let mut log = ArrivalLog { window: Span::from_millis(5), ..ArrivalLog::default() };
        for packet in 1..=2000 {
            log.record(1000, at(packet * 100));
            let rate = log.rate(at(packet * 100));
            assert_eq!(rate.is_some(), packet > 8, "packet {packet}");
            assert!(rate.is_none_or(|rate| (rate.bps() - 80e6).abs() < 1.0), "{rate:?}");
        }
    }

    #[test]
    fn measured_rate_excludes_packets_well_before_the_window() {
        let mut log = ArrivalLog { window: Span::from_millis(80), ..ArrivalLog::default() };
        (0..1000).for_each(|packet| log.record(1000, at(1 + packet * 1000)));
        (0..85).for_each(|packet| log.record(1000, at(1_000_001 + packet * 2000)));
        let rate = log.rate(at(1_168_001)).expect("many packets");
        assert!((rate.bps() - 4e6).abs() < 1.0, "the slower half only: {rate}");
    }

    #[test]
    fn packets_received_at_the_same_time_are_one_arrival() {
        let mut log = ArrivalLog::default();
        for burst in 1..=20u64 {
            (0..10).for_each(|_| log.record(100, at(burst * 1000)));
        }
        assert_eq!((log.len, log.bytes_after(at(19_000))), (20, 1000));
        assert!((log.rate(at(20_000)).expect("many").bps() - 8e6).abs() < 1.0);
    }
}
