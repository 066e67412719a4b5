//! Estimate of the round-trip time, retransmission timeout and timer, in clock ticks (RFC 6298, in Jacobson's integer form).

use super::config::{Backoff, Config, Samples};
use crate::rtt::RttEstimate;
use faircast_core::time::{Span, Time};

/// Jacobson's integer means of round trips, in ticks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Smoothed {
    /// Eight times the smoothed round-trip time; 0 before the first sample.
    mean: i64,
    /// Four times the mean deviation.
    deviation: i64,
}

impl Smoothed {
    /// Adds a sample of the round-trip time; `ticks` is at least 1.
    #[inline]
    pub(crate) fn add(&mut self, ticks: i64) {
        if self.mean == 0 {
            self.mean = ticks << 3;
            self.deviation = ticks << 1;
        } else {
            let error = ticks - (self.mean >> 3);
            self.mean = (self.mean + error).max(1);
            self.deviation = (self.deviation + error.abs() - (self.deviation >> 2)).max(1);
        }
    }

    /// Returns the mean plus four deviations, in ticks.
    pub(crate) const fn timeout_ticks(&self) -> i64 {
        ((self.deviation << 3) + self.mean) >> 3
    }

    /// Sets mean and deviation as if they resulted from samples.
    const fn set(&mut self, mean: i64, deviation: i64) {
        self.mean = mean;
        self.deviation = deviation;
    }

    /// Discards the mean. The next sample then counts as the first sample.
    const fn forget(&mut self) {
        self.deviation += self.mean >> 3;
        self.mean = 0;
    }
}

/// Smoothed round-trip time and its deviation, and the resulting timeout.
#[derive(Debug, Clone)]
pub(super) struct RoundTrip {
    smoothed: Smoothed,
    /// Timeout before limits and doubling.
    base: Span,
    /// Timeout after limits and doubling.
    timeout: Span,
    /// Time since the latest tick of the clock at time 0.
    phase: Span,
    /// Factor by which the timeout is multiplied.
    factor: u32,
}

impl RoundTrip {
    pub(super) const fn new(config: &Config) -> RoundTrip {
        RoundTrip {
            smoothed: Smoothed { mean: 0, deviation: 0 },
            base: config.initial_rto,
            timeout: config.initial_rto,
            phase: Span::ZERO,
            factor: 1,
        }
    }

    /// Shifts the clock: each tick is `phase` earlier than a multiple of the tick length.
    pub(super) const fn set_phase(&mut self, phase: Span) {
        self.phase = phase;
    }

    /// Adds a sample: a packet sent at `sent` was acknowledged now.
    pub(super) fn sample(&mut self, sent: Time, now: Time, config: &Config) {
        let tick = config.tick.as_nanos().max(1);
        let span = now.since(sent).as_nanos();
        let ticks = match config.samples {
            Samples::Timestamps => (span + tick / 2) / tick,
            // The sample is the number of clock ticks between the two moments, not the duration rounded to ticks.
            Samples::OnePacket => (span + (sent.as_nanos() + self.phase.as_nanos()) % tick) / tick,
        };
        let ticks = ticks.clamp(1, 1 << 50) as i64;
        self.smoothed.add(ticks);
        self.find_timeout(config);
    }

    fn find_timeout(&mut self, config: &Config) {
        let base = self.smoothed.timeout_ticks() as u64;
        self.base = Span::from_nanos(base.saturating_mul(config.tick.as_nanos().max(1)));
        self.timeout = self.limited(config);
    }

    /// Returns the timeout.
    #[inline]
    pub(super) const fn timeout(&self) -> Span {
        self.timeout
    }

    /// Returns [`RoundTrip::base`] after doubling and limits.
    fn limited(&self, config: &Config) -> Span {
        let timeout = match config.backoff {
            Backoff::ToMaxRto => self.base.max(config.min_rto) * u64::from(self.factor),
            Backoff::SixtyFour => (self.base * u64::from(self.factor)).max(config.min_rto),
        };
        timeout.min(config.max_rto).max(config.tick * 2)
    }

    /// Doubles the timeout after the timer has expired (RFC 6298, 5.5). At the fourth consecutive expiry and later ones, discards
    /// the mean round-trip time.
    pub(super) fn back_off(&mut self, config: &Config) {
        let grows = config.backoff == Backoff::ToMaxRto && self.timeout < config.max_rto;
        if self.factor < 64 || grows {
            self.factor = self.factor.saturating_mul(2);
        }
        if self.factor > 8 {
            self.smoothed.forget();
        }
        self.timeout = self.limited(config);
    }

    /// Ends the doubling of the timeout, because acknowledgements arrive again.
    #[inline]
    pub(super) fn end_backoff(&mut self, config: &Config) {
        if self.factor > 1 {
            self.factor = 1;
            self.timeout = self.limited(config);
        }
    }

    /// Returns the estimate of the round-trip time.
    pub(super) fn estimate(&self, config: &Config) -> Option<RttEstimate> {
        let deviation = Span::from_nanos(self.smoothed.deviation as u64 * config.tick.as_nanos() / 4);
        (self.smoothed.mean > 0).then(|| RttEstimate { mean: self.smoothed(config), deviation })
    }

    /// Sets the estimate as if it resulted from samples.
    pub(super) fn set(&mut self, estimate: RttEstimate, config: &Config) {
        let ticks = |span: Span, times: u64| {
            let ticks = span.as_nanos().saturating_mul(times) / config.tick.as_nanos().max(1);
            ticks.clamp(1, 1 << 50) as i64
        };
        self.smoothed.set(ticks(estimate.mean, 8), ticks(estimate.deviation, 4));
        self.find_timeout(config);
    }

    /// Returns the smoothed round-trip time; zero before the first sample.
    pub(super) fn smoothed(&self, config: &Config) -> Span {
        Span::from_nanos(self.smoothed.mean as u64 * config.tick.as_nanos() / 8)
    }
}

/// The retransmission timer, and the packet whose round-trip time is being measured.
#[derive(Debug, Clone)]
pub(super) struct RetransmissionTimer {
    pub(super) rtt: RoundTrip,
    /// Time of expiry; [`Time::NEVER`] while the timer is off.
    expires: Time,
    timed_at: Time,
    timed: u32,
    timing: bool,
}

impl RetransmissionTimer {
    pub(super) const fn new(config: &Config) -> RetransmissionTimer {
        RetransmissionTimer {
            rtt: RoundTrip::new(config),
            expires: Time::NEVER,
            timed_at: Time::ZERO,
            timed: 0,
            timing: false,
        }
    }

    #[inline]
    pub(super) const fn expires(&self) -> Time {
        self.expires
    }

    #[inline]
    pub(super) fn restart(&mut self, now: Time) {
        self.expires = now + self.rtt.timeout();
    }

    pub(super) const fn stop(&mut self) {
        self.expires = Time::NEVER;
    }

    /// Cancels the measurement of the round-trip time and restarts the timer.
    pub(super) fn rewind(&mut self, now: Time) {
        self.timing = false;
        self.restart(now);
    }

    /// Starts a measurement of the round-trip time with packet `seq`, which is sent now for the first time, unless a measurement
    /// is in progress.
    #[inline]
    pub(super) const fn time(&mut self, seq: u32, now: Time) {
        if !self.timing {
            self.timing = true;
            self.timed = seq;
            self.timed_at = now;
        }
    }

    /// Starts a measurement of the round-trip time with a SYN that is sent now. A retransmitted SYN cancels the measurement.
    pub(super) const fn time_syn(&mut self, times: u64, now: Time) {
        self.timing = times == 0;
        self.timed_at = now;
    }

    /// If an acknowledgement up to `next` covers the measured packet, ends the measurement and returns the packet's time of
    /// sending.
    #[inline]
    pub(super) fn end_timing(&mut self, next: u32) -> Option<Time> {
        let covered = self.timing && next > self.timed;
        if covered {
            self.timing = false;
        }
        covered.then_some(self.timed_at)
    }

    /// Ends the measurement with the SYN. Returns the SYN's time of sending, unless the SYN was retransmitted.
    pub(super) fn end_timing_syn(&mut self) -> Option<Time> {
        std::mem::take(&mut self.timing).then_some(self.timed_at)
    }
}
