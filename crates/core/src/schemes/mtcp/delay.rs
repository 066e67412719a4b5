//! Delays: relative delays between two clocks, and round-trip times.

use super::config::Config;
use crate::time::{Span, Time};

/// Relative time delays "RTD" to a child (paper 001, 3.1). The delay of a packet is the difference between two clocks: the
/// sender's clock when the packet is sent, and this node's clock when the packet's acknowledgement arrives. Only differences of
/// such delays are meaningful, so a constant offset between the clocks has no effect.
#[derive(Debug, Clone)]
pub(super) struct RelativeDelay {
    /// The first sample, in nanoseconds. Other samples are relative to it, so rounding does not depend on the clocks.
    origin: Option<i64>,
    /// Mean and mean deviation, in seconds.
    mean: Option<(f64, f64)>,
    least: SlidingLeast,
    /// Sum and number of the samples of this round.
    round: (f64, u32),
}

/// Difference from the mean, in seconds, above which a sample counts as a clock step.
const STEP: f64 = 10.0;
/// Initial deviation, in seconds. TCP's initial value is half of the delay, which is meaningless between two clocks.
const FIRST_DEVIATION: f64 = 0.25;

impl RelativeDelay {
    pub(super) fn new(memory: Span) -> RelativeDelay {
        RelativeDelay { origin: None, mean: None, least: SlidingLeast::new(memory), round: (0.0, 0) }
    }

    /// Adds a sample: the difference between this node's clock and the sender's clock, in nanoseconds.
    pub(super) fn sample(&mut self, nanos: i64, now: Time) {
        let seconds = self.relative(nanos);
        let known = self.mean.map(|(mean, _)| mean).or(self.least.get());
        if known.is_some_and(|known| (seconds - known).abs() > STEP) {
            self.least.forget();
            self.rest();
        }
        self.mean = Some(match self.mean {
            None => (seconds, FIRST_DEVIATION),
            Some((mean, deviation)) => {
                let error = seconds - mean;
                (mean + error / 8.0, deviation + (error.abs() - deviation) / 4.0)
            }
        });
        self.least.add(seconds, now);
        self.round = (self.round.0 + seconds, self.round.1 + 1);
    }

    /// Updates the minimum alone, by a delay that was measured otherwise.
    pub(super) fn note_least(&mut self, nanos: i64, now: Time) {
        let seconds = self.relative(nanos);
        self.least.add(seconds, now);
    }

    /// Forgets all samples but the minimum: the child no longer receives the packets that are measured.
    pub(super) const fn rest(&mut self) {
        (self.mean, self.round) = (None, (0.0, 0));
    }

    fn relative(&mut self, nanos: i64) -> f64 {
        let origin = *self.origin.get_or_insert(nanos);
        nanos.saturating_sub(origin) as f64 / 1e9
    }

    /// Returns the time at which a packet sent at `sent_at` is late here: after the mean delay plus the slack multiplied by
    /// `times`.
    pub(super) fn late(&self, sent_at: Time, config: &Config, times: u32) -> Option<Time> {
        let (mean, deviation) = self.mean?;
        let slack = Span::from_secs_f64(config.deviations * deviation).max(config.min_slack);
        let slack = config.doubled(slack, times).as_secs_f64();
        let after = self.origin?.saturating_add(((mean + slack) * 1e9) as i64);
        let late = (sent_at.as_nanos() as i64).saturating_add(after);
        Some(Time::from_nanos(late.max(0) as u64))
    }

    /// Returns the difference between the mean delay and the minimum delay.
    pub(super) fn queueing(&self) -> Option<f64> {
        let (mean, _) = self.mean?;
        Some((mean - self.least.get()?).max(0.0))
    }

    /// Returns the difference between the mean delay of this round and the minimum delay.
    pub(super) fn queueing_in_round(&self) -> Option<f64> {
        let (sum, count) = self.round;
        let least = self.least.get()?;
        (count > 0).then(|| (sum / f64::from(count) - least).max(0.0))
    }

    pub(super) const fn next_round(&mut self) {
        self.round = (0.0, 0);
    }
}

/// The minimum over a sliding period, stored as one minimum for each tenth of the period.
#[derive(Debug, Clone)]
struct SlidingLeast {
    parts: [f64; PARTS],
    part: Span,
    /// Index of the current part.
    now: u64,
}

const PARTS: usize = 10;

impl SlidingLeast {
    fn new(memory: Span) -> SlidingLeast {
        let part = (memory / PARTS as u64).max(Span::from_nanos(1));
        SlidingLeast { parts: [f64::INFINITY; PARTS], part, now: 0 }
    }

    fn add(&mut self, value: f64, now: Time) {
        let number = now.as_nanos() / self.part.as_nanos();
        let passed = number.saturating_sub(self.now).min(PARTS as u64);
        for part in 0..passed {
            self.parts[((number - part) % PARTS as u64) as usize] = f64::INFINITY;
        }
        self.now = number.max(self.now);
        let least = &mut self.parts[(self.now % PARTS as u64) as usize];
        *least = least.min(value);
    }

    fn get(&self) -> Option<f64> {
        let least = self.parts.iter().copied().fold(f64::INFINITY, f64::min);
        least.is_finite().then_some(least)
    }

    const fn forget(&mut self) {
        self.parts = [f64::INFINITY; PARTS];
    }
}

/// Round-trip times to a child, measured by queries and answers (paper 001, 3.1); smoothed as in RFC 6298.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundTrip {
    mean: Option<(f64, f64)>,
    samples: u32,
}

impl RoundTrip {
    pub(super) fn sample(&mut self, span: Span) {
        let sample = span.as_secs_f64();
        self.samples += 1;
        self.mean = Some(match self.mean {
            None => (sample, sample / 2.0),
            Some((mean, deviation)) => {
                let error = sample - mean;
                (mean + error / 8.0, deviation + (error.abs() - deviation) / 4.0)
            }
        });
    }

    pub(super) const fn samples(&self) -> u32 {
        self.samples
    }

    pub(super) fn mean(&self) -> Option<Span> {
        self.mean.map(|(mean, _)| Span::from_secs_f64(mean))
    }

    /// Returns the duration after which a repair is late.
    pub(super) fn timeout(&self, config: &Config) -> Span {
        let Some((mean, deviation)) = self.mean else { return UNKNOWN };
        let span = Span::from_secs_f64(mean + config.deviations * deviation);
        span.clamp(config.min_slack, MAX)
    }
}

/// Timeout of a repair before a round-trip time is measured.
const UNKNOWN: Span = Span::from_secs(1);
const MAX: Span = Span::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn constant_clock_offset_does_not_change_the_queueing_delay() {
        for offset in [-1_000_000_000_000, -500_000_000, 0, 1_000_000_000_000] {
            let mut delay = RelativeDelay::new(Span::from_secs(300));
            for (number, sample) in [100_000_000, 120_000_000, 200_000_000, 110_000_000].iter().enumerate() {
                delay.sample(sample + offset, at(number as f64));
            }
            assert_eq!(delay.queueing_in_round(), Some(0.0325), "{offset} ns");
        }
    }

    #[test]
    fn minimum_delay_is_forgotten_after_its_lifetime() {
        let mut delay = RelativeDelay::new(Span::from_secs(300));
        delay.sample(100_000_000, at(1.0));
        for second in 1..330 {
            delay.sample(200_000_000, at(f64::from(second)));
        }
        assert!(delay.queueing().expect("there are samples") < 1e-6);
    }

    #[test]
    fn a_clock_step_restarts_the_estimate() {
        let mut delay = RelativeDelay::new(Span::from_secs(300));
        delay.sample(100_000_000, at(1.0));
        delay.sample(3_600_100_000_000, at(2.0));
        assert_eq!(delay.queueing(), Some(0.0));
        let late = delay.late(at(1.0), &Config::published(), 1);
        assert_eq!(late, Some(at(3602.1)), "four times a first deviation of a quarter of a second");
    }
}
