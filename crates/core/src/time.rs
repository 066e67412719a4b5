//! Times, durations and rates: the units in all interfaces.
//!
//! Time is an integer number of nanoseconds since the session started, not wall-clock time. Rates are in bits per second. A
//! packet's size is in bytes and includes all bytes that consume the link.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::time::Duration;

/// A moment, in nanoseconds since the session started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A duration, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

/// A rate, in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Rate(f64);

impl Time {
    /// The start of the session.
    pub const ZERO: Time = Time(0);
    /// A time that is never reached.
    pub const NEVER: Time = Time(u64::MAX);

    /// Creates a time from nanoseconds since the session started.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Creates a time from seconds since the session started.
    pub fn from_secs_f64(secs: f64) -> Time {
        Time::ZERO + Span::from_secs_f64(secs)
    }

    /// Returns the nanoseconds since the session started.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the session started.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the duration from `earlier` to this time; zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns whether this is [`Time::NEVER`].
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl Span {
    /// A duration of zero.
    pub const ZERO: Span = Span(0);
    /// The longest duration, longer than any session.
    pub const MAX: Span = Span(u64::MAX);

    /// Creates a duration from nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }

    /// Creates a duration from microseconds.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros * 1_000)
    }

    /// Creates a duration from milliseconds.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis * 1_000_000)
    }

    /// Creates a duration from whole seconds.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs * 1_000_000_000)
    }

    /// Creates a duration from seconds. Negative numbers and not-a-number become zero; numbers that are too large become
    /// [`Span::MAX`].
    pub fn from_secs_f64(secs: f64) -> Span {
        // A cast from float saturates, truncates and maps NaN to 0. `round` would be a function call.
        Span((secs * 1e9 + 0.5) as u64)
    }

    /// Returns the duration in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns this duration times `factor`; negative factors count as zero.
    pub fn scaled(self, factor: f64) -> Span {
        Span((self.0 as f64 * factor + 0.5) as u64)
    }

    /// Returns this duration minus `other`, at least zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Rate {
    /// A rate of zero.
    pub const ZERO: Rate = Rate(0.0);
    /// An unlimited rate.
    pub const UNLIMITED: Rate = Rate(f64::INFINITY);

    /// Creates a rate from bits per second.
    pub const fn from_bps(bits_per_second: f64) -> Rate {
        Rate(bits_per_second)
    }

    /// Creates a rate from megabits (10^6 bits) per second.
    pub const fn from_mbps(megabits_per_second: f64) -> Rate {
        Rate(megabits_per_second * 1e6)
    }

    /// Returns the rate that transmits `bytes` in `span`; [`Rate::UNLIMITED`] if the span is zero.
    pub fn of(bytes: u64, span: Span) -> Rate {
        if span == Span::ZERO { Rate::UNLIMITED } else { Rate(bytes as f64 * 8.0 / span.as_secs_f64()) }
    }

    /// Returns the rate in bits per second.
    pub const fn bps(self) -> f64 {
        self.0
    }

    /// Returns the time that `bytes` take at this rate; [`Span::MAX`] at rate zero.
    pub fn span_of(self, bytes: u64) -> Span {
        if self.0 <= 0.0 { Span::MAX } else { Span::from_secs_f64(bytes as f64 * 8.0 / self.0) }
    }

    /// Returns the number of whole bytes that this rate transmits in `span`.
    pub fn bytes_in(self, span: Span) -> u64 {
        (self.0 * span.as_secs_f64() / 8.0) as u64
    }

    /// Returns the smaller rate.
    pub fn min(self, other: Rate) -> Rate {
        Rate(self.0.min(other.0))
    }

    /// Returns the larger rate.
    pub fn max(self, other: Rate) -> Rate {
        Rate(self.0.max(other.0))
    }

    /// Returns whether the rate is a finite number above zero.
    pub fn is_usable(self) -> bool {
        self.0.is_finite() && self.0 > 0.0
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_nanos(span.0)
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

/// Returns an earlier time, not before [`Time::ZERO`].
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, times: u64) -> Span {
        Span(self.0.saturating_mul(times))
    }
}

impl Div<u64> for Span {
    type Output = Span;
    fn div(self, parts: u64) -> Span {
        Span(self.0 / parts)
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0 + other.0)
    }
}

impl Mul<f64> for Rate {
    type Output = Rate;
    fn mul(self, factor: f64) -> Rate {
        Rate(self.0 * factor)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() { f.write_str("never") } else { write!(f, "{:.6} s", self.as_secs_f64()) }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..1_000 => write!(f, "{} ns", self.0),
            1_000..1_000_000 => write!(f, "{:.1} us", self.0 as f64 / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.1} ms", self.0 as f64 / 1e6),
            _ => write!(f, "{:.2} s", self.as_secs_f64()),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            r if r < 1e3 => write!(f, "{r:.0} bit/s"),
            r if r < 1e6 => write!(f, "{:.1} kbit/s", r / 1e3),
            r if r < 1e9 => write!(f, "{:.1} Mbit/s", r / 1e6),
            r if r.is_finite() => write!(f, "{:.2} Gbit/s", r / 1e9),
            _ => f.write_str("unlimited"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_never_and_a_span_is_never() {
        assert_eq!(Time::NEVER + Span::from_secs(1), Time::NEVER);
    }

    #[test]
    fn span_since_a_later_time_is_zero() {
        assert_eq!(Time::from_nanos(5).since(Time::from_nanos(9)), Span::ZERO);
    }

    #[test]
    fn conversions_of_rate_span_and_bytes_are_consistent() {
        let rate = Rate::from_mbps(8.0);
        assert_eq!(rate.span_of(1_000_000), Span::from_secs(1));
        assert_eq!(rate.bytes_in(Span::from_secs(1)), 1_000_000);
        assert_eq!(Rate::of(1_000_000, Span::from_secs(1)), rate);
    }

    #[test]
    fn invalid_numbers_saturate_instead_of_wrapping() {
        assert_eq!(Span::from_secs_f64(-1.0), Span::ZERO);
        assert_eq!(Span::from_secs_f64(f64::NAN), Span::ZERO);
        assert_eq!(Rate::ZERO.span_of(1), Span::MAX);
    }
}
