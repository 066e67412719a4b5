//! Parsers for options with times of the clock.

use chrono::{DateTime, Days, Local, NaiveDateTime, NaiveTime, TimeDelta, TimeZone};
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
