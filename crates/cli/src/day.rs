//! Parsers for options with times of the clock.

use crate::values::{self, BadValue};
use chrono::{
    DateTime, Days, Local, NaiveDateTime, NaiveTime, Offset as _, TimeDelta, TimeZone, Timelike as _,
};
use faircast::config::{DayLimits, DayPeriod, Overlap};
use faircast_core::time::Rate;
use std::time::SystemTime;

/// Forms of a date and time without an offset, in the time zone of this host.
const LOCAL_FORMS: [&str; 4] = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"];

/// Reason why a time is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTime {
    /// The text is not a time.
    #[error(
        "`{0}` is not a time; write HH:MM, or a date and time as in 2026-12-24T02:00 or 2026-12-24T02:00+01:00"
    )]
    NotATime(String),
    /// The time is in the past.
    #[error("`{text}` is in the past: the clock of this host shows {now}; write a later time")]
    Past {
        /// The given text.
        text: String,
        /// Time of the clock.
        now: String,
    },
    /// The time is more than a year in the future.
    #[error("`{0}` is more than a year from now; check the date")]
    TooLate(String),
}

/// Reason why limits by the time of day are invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BadLimit {
    /// The text is not a period of the day.
    #[error("`{0}` is not a period of the day; write it with its rate, as in `08:00-18:00 50M`")]
    NotAPeriod(String),
    /// The rate is invalid.
    #[error(transparent)]
    Rate(#[from] BadValue),
    /// Two rates have no period.
    #[error("two rates have no period; write one of them with its period, as in `08:00-18:00 50M`")]
    TwoOthers,
    /// Periods overlap.
    #[error(transparent)]
    Overlap(#[from] Overlap),
}

/// Parses limits of the rate by the local time of day: periods with their rates, and a rate for all other times.
///
/// # Errors
/// [`BadLimit`].
pub fn limits(text: &str) -> Result<DayLimits, BadLimit> {
    let (mut periods, mut otherwise) = (Vec::new(), None);
    for part in text.split(',').map(str::trim) {
        match part.split_once(char::is_whitespace) {
            // A rate may have a space before its unit.
            Some((period, limit)) if period.contains(':') => {
                let not_a_period = || BadLimit::NotAPeriod(period.to_owned());
                let (from, to) = period.split_once('-').ok_or_else(not_a_period)?;
                let (from, to) = second_of_day(from).zip(second_of_day(to)).ok_or_else(not_a_period)?;
                if from == to {
                    return Err(not_a_period());
                }
                periods.push(DayPeriod { from, to, limit: limit_of(limit)? });
            }
            _ if part.contains(':') => return Err(BadLimit::NotAPeriod(part.to_owned())),
            _ => {
                if otherwise.replace(limit_of(part)?).is_some() {
                    return Err(BadLimit::TwoOthers);
                }
            }
        }
    }
    Ok(DayLimits::new(periods, otherwise.flatten(), utc_offset)?)
}

fn limit_of(text: &str) -> Result<Option<Rate>, BadValue> {
    if text.trim() == "unlimited" { Ok(None) } else { values::rate(text).map(Some) }
}

/// Returns the seconds from midnight to a time of day as in `08:00`; `24:00` is the end of the day.
fn second_of_day(text: &str) -> Option<u32> {
    match text {
        "24:00" => Some(86_400),
        _ => NaiveTime::parse_from_str(text, "%H:%M").ok().map(|time| time.num_seconds_from_midnight()),
    }
}

/// Returns the offset of this host's time zone from UTC at a time in seconds since 1970, in seconds.
fn utc_offset(unix_secs: u64) -> i32 {
    let at = i64::try_from(unix_secs).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    at.map_or(0, |at| Local.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc())
}

/// Parses the time at which a session starts.
///
/// # Errors
/// [`BadTime`].
pub fn start_time(text: &str) -> Result<SystemTime, BadTime> {
    time_after(text, Local::now()).map(SystemTime::from)
}

/// Parses a time after `now`. A time of day is the next such time.
fn time_after<Tz: TimeZone>(text: &str, now: DateTime<Tz>) -> Result<DateTime<Tz>, BadTime>
where
    Tz::Offset: std::fmt::Display,
{
    let (text, zone) = (text.trim(), now.timezone());
    let not_a_time = || BadTime::NotATime(text.to_owned());
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M") {
        let today = now.date_naive();
        let days = [Some(today), today.checked_add_days(Days::new(1))];
        let at = days.into_iter().flatten().filter_map(|day| in_zone(&zone, day.and_time(time)));
        return at.into_iter().find(|at| *at > now).ok_or_else(not_a_time);
    }
    let at = match DateTime::parse_from_rfc3339(text) {
        Ok(at) => Some(at.with_timezone(&zone)),
        Err(_) => LOCAL_FORMS
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
            .and_then(|at| in_zone(&zone, at)),
    };
    match at.ok_or_else(not_a_time)? {
        at if at <= now => {
            Err(BadTime::Past { text: text.to_owned(), now: now.format("%Y-%m-%d %H:%M").to_string() })
        }
        at if at > now + TimeDelta::days(366) => Err(BadTime::TooLate(text.to_owned())),
        at => Ok(at),
    }
}

/// Returns the first moment at which clocks of this zone show this time. If they skip the time because daylight saving time begins,
/// returns the time one hour later.
fn in_zone<Tz: TimeZone>(zone: &Tz, at: NaiveDateTime) -> Option<DateTime<Tz>> {
    let shown = |at| zone.from_local_datetime(&at).earliest();
    shown(at).or_else(|| shown(at + TimeDelta::hours(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::FixedOffset;

    fn at(text: &str) -> DateTime<FixedOffset> {
        DateTime::parse_from_rfc3339(text).expect("a literal")
    }

    const NOW: &str = "2026-12-23T14:32:10+01:00";

    #[test]
    fn limits_have_periods_and_a_rate_for_other_times() {
        let lowest = |text| limits(text).unwrap_or_else(|error| panic!("{text}: {error}")).lowest();
        let mbps = |rate| Some(Rate::from_mbps(rate));
        assert_eq!(lowest("08:00-18:00 50M"), mbps(50.0));
        assert_eq!(lowest("08:00-18:00 50M, 18:00-08:00 unlimited"), mbps(50.0));
        assert_eq!(lowest("08:00-18:00 50 Mbit/s,22:00-24:00 1G, 20M"), mbps(20.0));
        assert_eq!(lowest("00:00-24:00 unlimited"), None);
    }

    #[test]
    fn impossible_limits_are_refused_with_a_reason() {
        let error = |text| limits(text).expect_err(text);
        for text in ["08:00-18:00", "08:00 5M", "8-18:00 5M", "08:00-25:00 5M", "08:00-08:00 5M"] {
            assert!(matches!(error(text), BadLimit::NotAPeriod(_)), "{text}");
        }
        for text in ["", "5", "08:00-18:00 fast", "08:00-18:00 5M,", "office 5M"] {
            assert!(matches!(error(text), BadLimit::Rate(_)), "{text}: {}", error(text));
        }
        assert_eq!(error("5M,6M"), BadLimit::TwoOthers);
        let overlap = error("08:00-18:00 5M,17:00-20:00 9M").to_string();
        assert!(overlap.contains("periods number 1 and 2 overlap"), "{overlap}");
    }

    #[test]
    fn time_of_day_is_the_next_such_time() {
        for (text, expected) in [
            ("14:33", "2026-12-23T14:33:00+01:00"),
            ("14:32", "2026-12-24T14:32:00+01:00"),
            ("02:00", "2026-12-24T02:00:00+01:00"),
        ] {
            assert_eq!(time_after(text, at(NOW)), Ok(at(expected)), "{text}");
        }
    }

    #[test]
    fn date_without_an_offset_is_in_the_zone_of_the_host() {
        let expected = at("2026-12-24T02:00:00+01:00");
        for text in
            ["2026-12-24T02:00", "2026-12-24 02:00:00", "2026-12-24T01:00:00Z", "2026-12-24T02:00:00+01:00"]
        {
            assert_eq!(time_after(text, at(NOW)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn impossible_times_are_refused_with_a_reason() {
        for text in ["", "2 am", "25:00", "2026-13-01T02:00", "tomorrow"] {
            assert_eq!(time_after(text, at(NOW)), Err(BadTime::NotATime(text.to_owned())));
        }
        let past = time_after("2026-12-23T14:00", at(NOW)).expect_err("it is past").to_string();
        assert!(past.contains("the clock of this host shows 2026-12-23 14:32"), "{past}");
        assert_eq!(
            time_after("2036-12-23T14:00", at(NOW)),
            Err(BadTime::TooLate("2036-12-23T14:00".to_owned()))
        );
    }
}
