//! Arrival rate of packets: a sliding window in constant memory.
//!
//! Arrivals are counted in [`BUCKETS`] time buckets of `2^k` ns. From the window's oldest bucket, the part inside the window
//! counts. So the error of a measurement is at most the number of bytes in this bucket. At a steady rate the error is less than a
//! packet. Otherwise it is at most 1/32 of the bytes in the widest window, and typically a few tenths of a percent.
//!
//! ```text
//!            |<----------- window ----------->|
//!     ...|..###|#####|#####|#####|#####|###...|
//!          ^ taken in proportion            ^ now
//! ```
//!
//! A new window has fine buckets (0.13 ms), so that the rate over a few milliseconds can be measured during slow start.
//! [`Throughput::reach`] merges neighbouring buckets for a longer window.
//!
//! A bucket has 16 bits as long as all buckets contain less than 64 KiB, because simulations have millions of receivers.

use crate::time::{Rate, Span, Time};

/// Number of buckets of a window.
pub const BUCKETS: usize = 64;

/// Bytes per time bucket, and the latest few arrival times.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Throughput {
    /// Index of the newest bucket: nanoseconds shifted right by `shift`.
    newest: u64,
    shift: u8,
    /// Index at which the next arrival time is stored.
    turn: u8,
    /// Number of arrivals so far, up to [`RECENT`].
    seen: u8,
    recent: [Time; RECENT],
    buckets: Buckets,
}

/// Number of bytes of bucket `index`, at index `index % BUCKETS`.
#[derive(Debug, Clone)]
enum Buckets {
    Narrow([u16; BUCKETS]),
    Wide(Box<[u32; BUCKETS]>),
}

/// Number of stored arrival times. A measurement covers at least this number of packets minus one.
const RECENT: usize = 5;

const FINEST: u8 = 17;
const COARSEST: u8 = 40;

impl Default for Throughput {
    fn default() -> Throughput {
        Throughput::new()
    }
}

impl Throughput {
    /// Creates a window without arrivals.
    pub const fn new() -> Throughput {
        let (buckets, recent) = (Buckets::Narrow([0; BUCKETS]), [Time::ZERO; RECENT]);
        Throughput { buckets, newest: 0, shift: FINEST, turn: 0, seen: 0, recent }
    }

    /// Records the arrival of `size` bytes.
    #[inline]
    pub fn record(&mut self, now: Time, size: u16) {
        let index = now.as_nanos() >> self.shift;
        if index > self.newest {
            self.advance(index);
        }
        if self.newest - index < BUCKETS as u64 {
            self.buckets.add(place_of(index), size);
        }
        if let Some(recent) = self.recent.get_mut(usize::from(self.turn)) {
            *recent = now;
        }
        self.turn = if usize::from(self.turn) + 1 == RECENT { 0 } else { self.turn + 1 };
        if usize::from(self.seen) < RECENT {
            self.seen += 1;
        }
    }

    /// Merges buckets until they cover `span`. Buckets never become finer.
    pub fn reach(&mut self, span: Span) {
        while self.covered() < span && self.shift < COARSEST {
            self.coarsen();
        }
    }

    /// Returns the longest window that can be measured.
    pub const fn covered(&self) -> Span {
        Span::from_nanos((BUCKETS as u64 - 2) << self.shift)
    }

    /// Returns the time since the fifth-latest arrival, which contains exactly the latest four packets; `None` before the fifth
    /// arrival.
    pub fn latest_four(&self, now: Time) -> Option<Span> {
        let fifth_last = self.recent[usize::from(self.turn)];
        (usize::from(self.seen) == RECENT).then(|| now.since(fifth_last))
    }

    /// Returns the rate over `(now - span, now]`.
    pub fn rate(&self, now: Time, span: Span) -> Rate {
        let span = span.max(Span::from_nanos(1));
        Rate::from_bps(self.bytes_since(now - span, now) * 8.0 / span.as_secs_f64())
    }

    /// Returns the number of bytes that arrived in `(from, now]`.
    fn bytes_since(&self, from: Time, now: Time) -> f64 {
        let oldest = from.as_nanos() >> self.shift;
        let first_kept = self.newest.saturating_sub(BUCKETS as u64 - 1);
        let whole = (first_kept.max(oldest + 1)..=self.newest)
            .map(|i| u64::from(self.buckets.at(place_of(i))))
            .sum::<u64>();
        let whole = whole as f64;
        if oldest < first_kept || oldest > self.newest {
            return whole;
        }
        let begin = oldest << self.shift;
        let end = (begin + (1u64 << self.shift)).min(now.as_nanos().max(begin + 1));
        let inside = end.saturating_sub(from.as_nanos()) as f64 / (end - begin) as f64;
        whole + f64::from(self.buckets.at(place_of(oldest))) * inside
    }

    /// Moves the window to bucket `index`, which is newer than all others, and empties the new buckets.
    fn advance(&mut self, index: u64) {
        if index == self.newest + 1 {
            self.buckets.empty(place_of(index));
            self.newest = index;
            return;
        }
        let fresh = (index - self.newest).min(BUCKETS as u64);
        for new in index + 1 - fresh..=index {
            self.buckets.empty(place_of(new));
        }
        self.newest = index;
    }

    fn coarsen(&mut self) {
        let mut merged = [0u32; BUCKETS];
        for index in self.newest.saturating_sub(BUCKETS as u64 - 1)..=self.newest {
            let place = place_of(index / 2);
            merged[place] = merged[place].saturating_add(self.buckets.at(place_of(index)));
        }
        self.buckets.replace(&merged);
        self.newest /= 2;
        self.shift += 1;
    }
}

impl Buckets {
    #[inline]
    fn at(&self, place: usize) -> u32 {
        match self {
            Buckets::Narrow(bytes) => bytes[place].into(),
            Buckets::Wide(bytes) => bytes[place],
        }
    }

    #[inline]
    fn empty(&mut self, place: usize) {
        match self {
            Buckets::Narrow(bytes) => bytes[place] = 0,
            Buckets::Wide(bytes) => bytes[place] = 0,
        }
    }

    #[inline]
    fn add(&mut self, place: usize, size: u16) {
        match self {
            Buckets::Narrow(bytes) => match bytes[place].checked_add(size) {
                Some(sum) => bytes[place] = sum,
                None => self.add_wide(place, size),
            },
            Buckets::Wide(_) => self.add_wide(place, size),
        }
    }

    /// Adds to a bucket of 32 bits. The buckets become wide before.
    #[inline(never)]
    fn add_wide(&mut self, place: usize, size: u16) {
        if let Buckets::Narrow(bytes) = self {
            *self = Buckets::Wide(Box::new(bytes.map(u32::from)));
        }
        if let Buckets::Wide(bytes) = self {
            bytes[place] = bytes[place].saturating_add(size.into());
        }
    }

    /// Replaces the content of all buckets.
    fn replace(&mut self, content: &[u32; BUCKETS]) {
        match self {
            Buckets::Narrow(bytes) if content.iter().all(|bytes| *bytes <= u16::MAX.into()) => {
                bytes.iter_mut().zip(content).for_each(|(mine, new)| *mine = *new as u16);
            }
            Buckets::Narrow(_) => *self = Buckets::Wide(Box::new(*content)),
            Buckets::Wide(bytes) => **bytes = *content,
        }
    }
}

const fn place_of(index: u64) -> usize {
    index as usize % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const SECOND: Span = Span::from_secs(1);

    /// Returns the largest relative error of the measured rate over a run, compared with the exact count of bytes.
    fn worst_error(window: Span, mean_gap: f64, jitter: f64) -> f64 {
        let (mut rng, mut throughput) = (Rng::new(1, 1), Throughput::new());
        throughput.reach(window);
        let (mut times, mut now, mut worst) = (Vec::new(), Time::ZERO, 0f64);
        for _ in 0..20_000 {
            now += Span::from_secs_f64(mean_gap * (1.0 - jitter) + rng.exponential(mean_gap * jitter));
            throughput.record(now, 1000);
            times.push(now);
            if now > Time::ZERO + window {
                let exact = times.iter().rev().take_while(|&&t| t > now - window).count() as f64 * 8000.0;
                let measured = throughput.rate(now, window).bps() * window.as_secs_f64();
                worst = worst.max((measured - exact).abs() / exact);
            }
        }
        worst
    }

    #[test]
    fn steady_rate_is_measured_to_within_about_a_packet() {
        assert!(worst_error(SECOND, 0.008, 0.0) < 0.009, "125 packets a second");
        assert!(worst_error(SECOND, 0.0001, 0.0) < 0.0011, "10,000 packets a second");
    }

    #[test]
    fn random_arrivals_are_measured_within_a_few_percent() {
        let worst = worst_error(SECOND, 0.001, 1.0);
        assert!(worst < 0.012, "{worst}");
    }

    #[test]
    fn rate_over_a_short_window_is_measured_within_0_3_percent() {
        let worst = worst_error(Span::from_millis(5), 0.00001, 0.0);
        assert!(worst < 0.003, "{worst}");
    }

    #[test]
    fn buckets_above_64_kib_lose_no_byte() {
        let mut throughput = Throughput::new();
        throughput.reach(SECOND);
        for _ in 0..1000 {
            throughput.record(Time::from_secs_f64(0.5), 60_000);
        }
        throughput.record(Time::from_secs_f64(1.0), 1);
        assert_eq!(throughput.rate(Time::from_secs_f64(1.0), SECOND).bps(), 480_000_008.0);
    }

    #[test]
    fn merged_buckets_lose_no_byte() {
        let mut throughput = Throughput::new();
        for millis in 1..=6 {
            throughput.record(Time::ZERO + Span::from_millis(millis), 1000);
        }
        throughput.reach(SECOND);
        assert!(throughput.covered() >= SECOND);
        assert_eq!(throughput.rate(Time::ZERO + SECOND, SECOND).bps(), 48_000.0);
    }

    #[test]
    fn a_long_silence_empties_the_window() {
        let mut throughput = Throughput::new();
        throughput.record(Time::from_secs_f64(1.0), 1000);
        throughput.reach(SECOND);
        throughput.record(Time::from_secs_f64(90.0), 500);
        assert_eq!(throughput.rate(Time::from_secs_f64(90.0), SECOND).bps(), 4000.0);
    }

    #[test]
    fn latest_four_packets_span_four_intervals() {
        let mut throughput = Throughput::new();
        let mut now = Time::ZERO;
        for arrivals in 1..=7 {
            now += Span::from_millis(2);
            throughput.record(now, 1000);
            assert_eq!(throughput.latest_four(now), (arrivals >= 5).then_some(Span::from_millis(8)));
        }
    }
}
