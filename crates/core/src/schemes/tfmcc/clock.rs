//! Round-trip times at a receiver (RFC 4654, 5.2 and 6.2), from returned stamps and from one-way delays.
//!
//! The clocks of source and receiver may differ by any amount. A measurement uses only the receiver's clock. Between measurements
//! the estimate follows the forward delay. The reverse delay of the latest measurement is stored; it includes the difference
//! between the clocks.
//!
//! ```text
//!   source    ------ ts_i ------------- ts_j ---     D  = ts_i - tr'          (reverse delay + clock difference)
//!                   ^     \                 \        R' = D + (tr - ts_j)     (the difference drops out)
//!   receiver  -- tr' ----- now ------------- tr --
//! ```

use crate::time::{Span, Time};

/// A receiver's estimate of its round-trip time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    /// Smoothed round-trip time, "R"; valid after a measurement.
    rtt: Span,
    /// Reverse delay plus the difference of the clocks (source's clock minus receiver's clock), in nanoseconds; `None` before a
    /// measurement.
    reverse: Option<i64>,
    shortest: Span,
}

/// Whether the measuring receiver is the limiting one. The limiting receiver smooths its estimate more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The limiting receiver.
    Limiting,
    /// Any other receiver.
    Other,
}

/// Weight of the old estimate when the limiting receiver measures. `KEPT_OTHER` is the weight at other receivers.
const KEPT_LIMITING: f64 = 0.9;
const KEPT_OTHER: f64 = 0.5;
/// Weight of a one-way delay in the estimate. It is small because every packet provides a one-way delay.
const ONE_WAY_GAIN: f64 = 0.005;
/// Maximum plausible round-trip time; longer samples are errors.
const MAX: Span = Span::from_secs(10);

impl Clock {
    /// Creates a clock without a measurement.
    pub(super) const fn new(shortest: Span) -> Clock {
        Clock { rtt: Span::ZERO, reverse: None, shortest }
    }

    /// Returns whether there was a measurement ("have_RTT").
    pub(super) const fn is_measured(&self) -> bool {
        self.reverse.is_some()
    }

    /// Returns the round-trip time; `rtt_max` before a measurement.
    pub(super) fn rtt(&self, rtt_max: Span) -> Span {
        if self.is_measured() { self.rtt } else { rtt_max }
    }

    /// Returns the time of this clock for a report, in microseconds.
    pub(super) const fn stamp(now: Time) -> u32 {
        (now.as_nanos() / 1_000) as u32
    }

    /// Measures the round-trip time with a packet that returned this receiver's stamp and was sent at `sent_at` on the source's
    /// clock. Returns whether the measurement is plausible.
    pub(super) fn measure(&mut self, echo: u32, sent_at: Time, role: Role, now: Time) -> bool {
        let passed = Span::from_micros(u64::from(Clock::stamp(now).wrapping_sub(echo)));
        if passed > MAX {
            return false;
        }
        let sample = passed.max(self.shortest);
        let kept = if role == Role::Limiting { KEPT_LIMITING } else { KEPT_OTHER };
        self.rtt = if self.is_measured() {
            (self.rtt.scaled(kept) + sample.scaled(1.0 - kept)).max(self.shortest)
        } else {
            sample
        };
        // RFC 4654 prints tr' - ts_i, which would count the difference of the clocks twice.
        self.reverse = Some(difference(sent_at, now).wrapping_add(passed.as_nanos() as i64));
        true
    }

    /// Returns the round-trip time that follows from the one-way delay of a packet that was sent at `sent_at`. Returns `None`
    /// before a measurement, or if the result is impossible.
    pub(super) fn by_one_way(&self, sent_at: Time, now: Time) -> Option<Span> {
        let nanos = self.reverse?.wrapping_sub(difference(sent_at, now));
        let span = Span::from_nanos(u64::try_from(nanos).unwrap_or(0)).max(self.shortest);
        (span <= MAX).then_some(span)
    }

    /// Moves the estimate towards the value from the one-way delay of a packet.
    #[inline]
    pub(super) fn follow(&mut self, sent_at: Time, now: Time) {
        if let Some(sample) = self.by_one_way(sent_at, now) {
            self.rtt = self.rtt.scaled(1.0 - ONE_WAY_GAIN) + sample.scaled(ONE_WAY_GAIN);
        }
    }
}

/// Returns the source's clock minus the receiver's in nanoseconds, with wrapping.
const fn difference(source: Time, receiver: Time) -> i64 {
    (source.as_nanos() as i64).wrapping_sub(receiver.as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTEST: Span = Span::from_millis(1);

    fn at(secs: f64) -> Time {
        Time::from_secs_f64(secs)
    }

    /// The source's clock is an hour ahead of, or behind, the receiver's.
    #[test]
    fn round_trip_time_is_correct_with_clocks_an_hour_apart() {
        for hour in [3600.0, -3600.0, 0.0] {
            let source = |secs: f64| at(10_000.0 + hour + secs);
            let receiver = |secs: f64| at(10_000.0 + secs);
            let mut clock = Clock::new(SHORTEST);
            // The report takes 30 ms and the packet that returns its stamp takes 20 ms; a later packet takes 45 ms.
            let stamp = Clock::stamp(receiver(0.0));
            assert!(clock.measure(stamp, source(0.030), Role::Other, receiver(0.050)));
            assert_eq!(clock.rtt(Span::MAX), Span::from_millis(50));
            let later = clock.by_one_way(source(1.0), receiver(1.045)).expect("measured");
            assert!((later.as_secs_f64() - 0.075).abs() < 2e-6, "{later} with {hour}");
        }
    }

    #[test]
    fn stamps_may_wrap_between_report_and_echo() {
        let mut clock = Clock::new(SHORTEST);
        let wrap = at((1u64 << 32) as f64 / 1e6);
        let stamp = Clock::stamp(wrap - Span::from_millis(20));
        assert!(clock.measure(stamp, wrap, Role::Other, wrap + Span::from_millis(20)));
        assert_eq!(clock.rtt(Span::MAX), Span::from_millis(40));
    }

    #[test]
    fn limiting_receiver_smooths_more_and_absurd_stamps_are_ignored() {
        for (role, millis) in [(Role::Limiting, 60), (Role::Other, 100)] {
            let mut clock = Clock::new(SHORTEST);
            clock.measure(Clock::stamp(at(1.0)), at(1.03), role, at(1.05));
            clock.measure(Clock::stamp(at(2.0)), at(2.03), role, at(2.15));
            assert_eq!(clock.rtt(Span::MAX), Span::from_millis(millis));
            assert!(!clock.measure(Clock::stamp(at(30.0)), at(3.0), role, at(3.1)));
            assert_eq!(clock.rtt(Span::MAX), Span::from_millis(millis));
        }
    }

    #[test]
    fn receiver_without_a_measurement_uses_the_maximum_rtt() {
        let clock = Clock::new(SHORTEST);
        assert_eq!(clock.rtt(Span::from_millis(500)), Span::from_millis(500));
        assert_eq!(clock.by_one_way(at(0.0), at(1.0)), None);
    }
}
