//! Inexact clocks of senders.
//!
//! The clock of a real host is wrong by tens of ppm, so the periods of two hosts are never equal. In a simulator all periods
//! would be equal, and flows with the same period would find the same queue length in every period.

use faircast_core::time::Time;

/// A clock that is too fast or too slow by a constant factor. It reads 0 when the simulation begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// Speed error, parts per billion; positive when the clock is too fast.
    ppb: i32,
}

/// Largest absolute speed error, ppm (10 %).
const LIMIT: f64 = 100_000.0;

const BILLION: u128 = 1_000_000_000;

impl Clock {
    /// Returns a clock that is too fast by `ppm` parts per million, rounded to the nearest billionth. A negative `ppm` makes it
    /// too slow.
    ///
    /// # Errors
    /// When the error exceeds 10 %, or is not a number.
    pub fn fast_by(ppm: f64) -> Result<Clock, ClockError> {
        if ppm.abs() <= LIMIT {
            Ok(Clock { ppb: (ppm * 1e3).round() as i32 })
        } else {
            Err(ClockError { ppm })
        }
    }

    /// Returns the reading of the clock at this nanosecond of the simulation.
    #[inline]
    pub(crate) fn reads(self, nanos: u64) -> Time {
        Time::from_nanos(if self.ppb == 0 { nanos } else { self.off_reads(nanos) })
    }

    #[cold]
    fn off_reads(self, nanos: u64) -> u64 {
        if nanos == u64::MAX { nanos } else { (u128::from(nanos) * self.pace() / BILLION) as u64 }
    }

    /// Returns the first nanosecond of the simulation at which the clock reads `reading` or more.
    #[inline]
    pub(crate) fn when(self, reading: Time) -> u64 {
        let nanos = reading.as_nanos();
        if self.ppb == 0 { nanos } else { self.off_when(nanos) }
    }

    #[cold]
    fn off_when(self, nanos: u64) -> u64 {
        if nanos == u64::MAX {
            return nanos;
        }
        (u128::from(nanos) * BILLION).div_ceil(self.pace()).min(u128::from(u64::MAX)) as u64
    }

    /// Converts a duration of this clock to nanoseconds of the simulation.
    pub(crate) fn lasts(self, nanos: f64) -> f64 {
        nanos / (1.0 + f64::from(self.ppb) * 1e-9)
    }

    /// Returns the nanoseconds that the clock counts in a billion nanoseconds of the simulation.
    const fn pace(self) -> u128 {
        (1_000_000_000 + self.ppb as i64) as u128
    }
}

/// The error of a clock exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("a clock error of {ppm} ppm is out of range; use -{LIMIT} to {LIMIT} ppm")]
pub struct ClockError {
    /// Requested error, ppm.
    pub ppm: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(ppm: f64) -> Clock {
        Clock::fast_by(ppm).expect("not too much")
    }

    #[test]
    fn exact_clock_shows_the_simulated_time() {
        for nanos in [0, 1, 999_999_999, u64::MAX] {
            assert_eq!(clock(0.0).reads(nanos), Time::from_nanos(nanos));
            assert_eq!(clock(0.0).when(Time::from_nanos(nanos)), nanos);
        }
        assert_eq!(clock(0.0).lasts(0.1), 0.1);
    }

    #[test]
    fn clock_error_of_10_ppm_is_10_microseconds_per_second() {
        assert_eq!(clock(10.0).reads(1_000_000_000), Time::from_nanos(1_000_010_000));
        assert_eq!(clock(-10.0).reads(1_000_000_000), Time::from_nanos(999_990_000));
        assert!((clock(10.0).lasts(1e9) - 999_990_000.1).abs() < 0.01);
    }

    #[test]
    fn clock_reading_is_converted_to_its_earliest_time() {
        for ppm in [-90_000.0, -50.0, -0.001, 0.001, 10.0, 100_000.0] {
            let clock = clock(ppm);
            for reading in [1, 7, 1_000_003, 86_400_000_000_000] {
                let at = clock.when(Time::from_nanos(reading));
                assert!(clock.reads(at).as_nanos() >= reading, "{ppm} ppm, {reading}");
                assert!(clock.reads(at - 1).as_nanos() < reading, "{ppm} ppm, {reading}");
            }
        }
        assert_eq!(clock(50.0).when(Time::NEVER), u64::MAX);
        assert_eq!(clock(50.0).reads(u64::MAX), Time::NEVER);
    }

    #[test]
    fn clock_errors_above_ten_percent_are_refused() {
        let error = Clock::fast_by(200_000.0).expect_err("too much");
        assert_eq!(
            error.to_string(),
            "a clock error of 200000 ppm is out of range; use -100000 to 100000 ppm"
        );
        assert!(Clock::fast_by(f64::NAN).is_err());
    }
}
