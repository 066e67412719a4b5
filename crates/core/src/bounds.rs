//! Limits of a sending rate, and a meter of the part of the permitted rate that is used.

use crate::time::{Rate, Span, Time};

/// Minimum and maximum permitted rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Minimum rate.
    pub min: Rate,
    /// Maximum rate; may be [`Rate::UNLIMITED`].
    pub max: Rate,
}

/// Upper bound on all rates, 1 Tbit/s, which applies even if no maximum is configured, because pacing uses whole nanoseconds.
const FASTEST: Rate = Rate::from_bps(1e12);
/// Lower bound on all rates, 1 bit/s.
const SLOWEST: Rate = Rate::from_bps(1.0);

impl Bounds {
    /// Returns `rate` clamped to the limits; the result is finite and above zero. If the minimum exceeds the maximum, the maximum
    /// applies.
    pub fn clamp(&self, rate: Rate) -> Rate {
        let wanted = if rate.bps().is_nan() { self.min } else { rate };
        wanted.max(self.min).min(self.max).min(FASTEST).max(SLOWEST)
    }

    /// Returns whether `rate` has reached the maximum.
    pub fn is_at_max(&self, rate: Rate) -> bool {
        rate.bps() >= self.max.min(FASTEST).bps()
    }
}

/// Whether a guard is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// The guard is not applied; the papers define none.
    Off,
    /// The guard is applied.
    On,
}

/// Meter that compares the sending rate with the permitted rate.
///
/// While a permitted rate is not fully used, it must not grow, because nobody knows how the network would respond to the full
/// rate.
#[derive(Debug, Clone, Copy)]
pub struct SendMeter {
    since: Time,
    bytes: u64,
    /// Permitted rate at the start of the measurement.
    allowed: Rate,
    usage: Usage,
    /// Sums of the complete measurements of the last one to two seconds.
    lately: Sent,
}

/// Extent to which the application uses the permitted rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// The sending rate is at least half of the permitted rate.
    Full,
    /// The sending rate is less than half of the permitted rate.
    Partial,
}

/// Sent and permitted bytes of some time.
#[derive(Debug, Clone, Copy)]
struct Sent {
    secs: f32,
    bytes: f32,
    permitted: f32,
}

/// Number of seconds that remain when sums are scaled down, as in RFC 7661, 4.2. They are scaled down after twice this time.
const PERIOD: f32 = 1.0;

impl Sent {
    const NOTHING: Sent = Sent { secs: 0.0, bytes: 0.0, permitted: 0.0 };

    fn add(&mut self, time: Span, bytes: u64, permitted: Rate) {
        self.secs += time.as_secs_f64() as f32;
        self.bytes += bytes as f32;
        self.permitted += permitted.bytes_in(time) as f32;
        if self.secs > 2.0 * PERIOD {
            let part = PERIOD / self.secs;
            (self.secs, self.bytes, self.permitted) = (PERIOD, self.bytes * part, self.permitted * part);
        }
    }

    /// Returns the sending rate if it is less than half of the permitted rate.
    fn limited(&self) -> Option<Rate> {
        let limited = self.secs > 0.0 && self.bytes < self.permitted / 2.0;
        limited.then(|| Rate::from_bps(f64::from(8.0 * self.bytes / self.secs)))
    }
}

impl SendMeter {
    /// Starts a measurement at `now`, assuming full use.
    pub const fn new(now: Time) -> SendMeter {
        let (allowed, usage, lately) = (Rate::UNLIMITED, Usage::Full, Sent::NOTHING);
        SendMeter { since: now, bytes: 0, allowed, usage, lately }
    }

    /// Records a sent packet.
    pub fn record(&mut self, size: u16) {
        self.bytes += u64::from(size);
    }

    /// Returns the usage in the latest complete measurement. A measurement lasts for a round-trip time or for the sending time of
    /// four packets, whichever is longer.
    pub fn usage(&mut self, now: Time, allowed: Rate, rtt: Span, packet_size: u16) -> Usage {
        let passed = now.since(self.since);
        if passed >= rtt.max(allowed.span_of(4 * u64::from(packet_size))) {
            let sent = Rate::of(self.bytes, passed);
            let least = allowed.min(self.allowed);
            let usage = if sent.bps() >= least.bps() / 2.0 { Usage::Full } else { Usage::Partial };
            self.complete(now, allowed);
            *self = SendMeter { allowed, usage, ..*self };
        }
        self.usage
    }

    /// Completes the present measurement and starts one at `from`, assuming full use. No packets are sent from `now` to `from`.
    pub fn restart(&mut self, now: Time, allowed: Rate, from: Time) {
        self.complete(now, allowed);
        *self = SendMeter { since: from, allowed: Rate::UNLIMITED, usage: Usage::Full, ..*self };
    }

    /// Returns the mean sending rate of the last one to two seconds, if the application used less than half of the permitted rate.
    /// Returns `None` if this is more than half of the rate that is permitted now.
    pub fn limited(&self, now: Time, allowed: Rate) -> Option<Rate> {
        let mut meter = *self;
        meter.complete(now, allowed);
        meter.lately.limited().filter(|sent| sent.bps() < allowed.bps() / 2.0)
    }

    /// Adds the present measurement to the sums, and starts another measurement.
    fn complete(&mut self, now: Time, allowed: Rate) {
        self.lately.add(now.since(self.since), self.bytes, allowed.min(self.allowed));
        (self.since, self.bytes) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rate_is_clamped_to_the_limits() {
        let bounds = Bounds { min: Rate::from_bps(1400.0), max: Rate::from_mbps(5.0) };
        for (wanted, got) in
            [(0.0, 1400.0), (f64::NAN, 1400.0), (2e6, 2e6), (f64::INFINITY, 5e6), (-1.0, 1400.0)]
        {
            assert_eq!(bounds.clamp(Rate::from_bps(wanted)).bps(), got);
        }
        assert!(bounds.is_at_max(Rate::from_mbps(5.0)));
    }

    #[test]
    fn clamped_rate_is_finite_even_without_limits() {
        let bounds = Bounds { min: Rate::ZERO, max: Rate::UNLIMITED };
        assert_eq!(bounds.clamp(Rate::UNLIMITED), FASTEST);
        assert_eq!(bounds.clamp(Rate::ZERO), SLOWEST);
    }

    #[test]
    fn source_that_sends_a_third_of_its_rate_has_partial_usage() {
        let (rtt, allowed) = (Span::from_millis(100), Rate::from_mbps(1.0));
        for (sent, usage) in [(4, Usage::Partial), (12, Usage::Full)] {
            let mut meter = SendMeter::new(Time::ZERO);
            (0..sent).for_each(|_| meter.record(1000));
            assert_eq!(
                meter.usage(Time::from_secs_f64(0.05), allowed, rtt, 1000),
                Usage::Full,
                "too early to say"
            );
            assert_eq!(meter.usage(Time::from_secs_f64(0.1), allowed, rtt, 1000), usage);
        }
    }

    /// Sends `packets` packets of 1000 bytes, evenly spread over `secs` seconds, and completes a measurement.
    fn send(meter: &mut SendMeter, from: f64, secs: f64, packets: u32, allowed: Rate) -> Time {
        (0..packets).for_each(|_| meter.record(1000));
        let now = Time::from_secs_f64(from + secs);
        meter.usage(now, allowed, Span::from_millis(10), 1000);
        now
    }

    #[test]
    fn rate_of_a_limited_application_is_a_mean() {
        let allowed = Rate::from_mbps(10.0);
        let mut meter = SendMeter::new(Time::ZERO);
        send(&mut meter, 0.0, 1.0, 50, allowed);
        let now = send(&mut meter, 1.0, 0.5, 10, allowed);
        assert_eq!(meter.limited(now, allowed), Some(Rate::from_bps(320_000.0)));
        assert_eq!(meter.limited(now, Rate::from_mbps(0.6)), None, "the application needs the reduced rate");
        let later = now + Span::from_secs(100);
        assert!(
            meter.limited(later, allowed).is_some_and(|rate| rate.bps() < 10_000.0),
            "a long pause counts"
        );
    }

    #[test]
    fn pause_is_forgotten_within_some_seconds() {
        let allowed = Rate::from_mbps(10.0);
        let mut meter = SendMeter::new(Time::ZERO);
        meter.restart(Time::from_secs_f64(100.0), allowed, Time::from_secs_f64(100.0));
        let mut now = Time::ZERO;
        for tenth in 0..40 {
            now = send(&mut meter, 100.0 + 0.1 * f64::from(tenth), 0.1, 5, allowed);
        }
        let rate = meter.limited(now, allowed).map_or(0.0, Rate::bps);
        assert!((360_000.0..400_001.0).contains(&rate), "{rate}");
    }

    #[test]
    fn application_that_uses_its_rate_is_not_limited() {
        let allowed = Rate::from_mbps(0.4);
        let mut meter = SendMeter::new(Time::ZERO);
        let now = send(&mut meter, 0.0, 0.9, 40, allowed);
        assert_eq!(meter.limited(now, allowed), None);
    }

    #[test]
    fn silence_that_a_scheme_demands_does_not_count() {
        let allowed = Rate::from_mbps(1.0);
        let mut meter = SendMeter::new(Time::ZERO);
        let now = send(&mut meter, 0.0, 0.5, 60, allowed);
        meter.restart(now, allowed, Time::from_secs_f64(30.0));
        let now = send(&mut meter, 30.0, 0.4, 50, allowed);
        assert_eq!(meter.limited(now, allowed), None);
    }
}
