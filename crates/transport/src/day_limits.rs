//! Limits of a source's rate by the local time of day.

use faircast_core::time::Rate;

/// Seconds of a day.
const DAY: u64 = 86_400;

/// Offset of a time zone: for a time in seconds since 1970, the seconds by which the local time is ahead of UTC. It may change
/// during a session, because daylight saving time begins or ends.
pub type UtcOffset = fn(unix_secs: u64) -> i32;

/// Limits of a session's rate by the local time of day.
#[derive(Debug, Clone)]
pub struct DayLimits {
    periods: Vec<DayPeriod>,
    otherwise: Option<Rate>,
    utc_offset: UtcOffset,
}

/// A period of every day, with the limit of the rate in this period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DayPeriod {
    /// Start of the period, seconds since midnight.
    pub from: u32,
    /// End of the period, seconds since midnight. A period that ends before its start continues after midnight.
    pub to: u32,
    /// Maximum rate, all layers together; `None`: without limit.
    pub limit: Option<Rate>,
}

/// Two periods that overlap, by their positions in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the periods number {} and {} overlap; let one of them start when the other one ends", .first + 1, .second + 1)]
pub struct Overlap {
    /// Position of the first period.
    pub first: usize,
    /// Position of the second period.
    pub second: usize,
}

impl DayPeriod {
    /// Whether the period contains this second of the day.
    fn contains(&self, second: u32) -> bool {
        let (started, ended) = (second >= self.from, second >= self.to);
        if self.from < self.to { started && !ended } else { started || !ended }
    }
}

impl DayLimits {
    /// Creates limits. Outside of all periods, the limit is `otherwise`.
    ///
    /// # Errors
    /// If two periods overlap.
    pub fn new(
        periods: Vec<DayPeriod>,
        otherwise: Option<Rate>,
        utc_offset: UtcOffset,
    ) -> Result<DayLimits, Overlap> {
        for (second, period) in periods.iter().enumerate() {
            let clashes =
                |earlier: &DayPeriod| period.contains(earlier.from) || earlier.contains(period.from);
            if let Some(first) = periods[..second].iter().position(clashes) {
                return Err(Overlap { first, second });
            }
        }
        Ok(DayLimits { periods, otherwise, utc_offset })
    }

    /// Returns the limit at a time in seconds since 1970.
    pub(crate) fn at(&self, unix_secs: u64) -> Rate {
        let local = unix_secs.saturating_add_signed((self.utc_offset)(unix_secs).into());
        let second = (local % DAY) as u32;
        let period = self.periods.iter().find(|period| period.contains(second));
        period.map_or(self.otherwise, |period| period.limit).unwrap_or(Rate::UNLIMITED)
    }

    /// Returns the lowest limit of the day; `None` if no limit is set.
    #[must_use]
    pub fn lowest(&self) -> Option<Rate> {
        self.periods.iter().map(|period| period.limit).chain([self.otherwise]).flatten().reduce(Rate::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Midnight UTC of a day in 2026, in seconds since 1970.
    const MIDNIGHT: u64 = 1_798_070_400;

    fn period(from: u32, to: u32, mbps: f64) -> DayPeriod {
        DayPeriod { from: from * 3_600, to: to * 3_600, limit: Some(Rate::from_mbps(mbps)) }
    }

    #[test]
    fn limit_follows_the_local_time_of_day_across_midnight() {
        let periods = vec![period(8, 18, 50.0), period(22, 6, 5.0)];
        let limits = DayLimits::new(periods, Some(Rate::from_mbps(9.0)), |_| 3_600).expect("no overlap");
        let at = |hour: f64| limits.at(MIDNIGHT + (hour * 3_600.0) as u64).bps() / 1e6;
        let shown: Vec<f64> = [4.9, 5.1, 6.9, 7.0, 16.9, 17.0, 20.9, 21.0, 23.5].map(at).to_vec();
        assert_eq!(shown, [5.0, 9.0, 9.0, 50.0, 50.0, 9.0, 9.0, 5.0, 5.0]);
        assert_eq!(limits.lowest(), Some(Rate::from_mbps(5.0)));
    }

    #[test]
    fn change_of_the_utc_offset_moves_the_periods() {
        let offset: UtcOffset = |unix_secs| if unix_secs < MIDNIGHT { 3_600 } else { 7_200 };
        let limits = DayLimits::new(vec![period(8, 18, 50.0)], None, offset).expect("one period");
        assert_eq!(limits.at(MIDNIGHT + 6 * 3_600), Rate::from_mbps(50.0));
        assert_eq!(limits.at(MIDNIGHT - 86_400 + 6 * 3_600), Rate::UNLIMITED);
    }

    #[test]
    fn overlapping_periods_are_refused() {
        let of = |periods| DayLimits::new(periods, None, |_| 0).map(|_| ());
        let overlap = Err(Overlap { first: 0, second: 1 });
        assert_eq!(of(vec![period(8, 18, 1.0), period(17, 20, 2.0)]), overlap);
        assert_eq!(of(vec![period(22, 6, 1.0), period(5, 8, 2.0)]), overlap);
        assert_eq!(of(vec![period(8, 18, 1.0), period(0, 24, 2.0)]), overlap);
        assert_eq!(of(vec![period(8, 18, 1.0), period(18, 8, 2.0),]), Ok(()));
    }
}
