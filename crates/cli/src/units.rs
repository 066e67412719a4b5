//! Text form of numbers for people.

use chrono::{DateTime, Local};
use faircast::event::HostComparison;
pub use faircast::units::{bytes, count, percent, rate, seconds};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats an age in its largest unit.
pub fn age(span: std::time::Duration) -> String {
    match span.as_secs() {
        secs @ 0..120 => count(secs, "second"),
        secs @ 120..7_200 => count(secs / 60, "minute"),
        secs @ 7_200..172_800 => count(secs / 3_600, "hour"),
        secs => count(secs / 86_400, "day"),
    }
}

/// Formats a time in seconds since 1970, as in `2025-06-15 15:06:40 UTC`.
pub fn utc(unix_secs: u64) -> String {
    /// The end of the year 9999.
    const LAST: u64 = 253_402_300_799;
    if unix_secs > LAST {
        return format!("{unix_secs} s after 1970");
    }
    let at = UNIX_EPOCH + Duration::from_secs(unix_secs);
    let text = humantime::format_rfc3339_seconds(at).to_string();
    format!("{} UTC", text.trim_end_matches('Z').replace('T', " "))
}

/// Formats a time of the current day in this host's time zone, as in `14:32`; a time of another day with its date.
pub fn time_of_day(moment: SystemTime) -> String {
    let unix_secs = moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let moment = i64::try_from(unix_secs).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    let Some(moment) = moment else { return utc(unix_secs) };
    let (moment, today) = (moment.with_timezone(&Local), Local::now().date_naive());
    let form = if moment.date_naive() == today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    moment.format(form).to_string()
}

/// Describes a session by its source and its content. An unknown source or content is omitted.
pub fn session_of(source: Option<&str>, content: Option<&str>) -> String {
    match (source, content) {
        (None, _) => "another session".to_owned(),
        (Some(source), None) => format!("another session, of {source}"),
        (Some(source), Some(content)) => format!("{source}'s {content}"),
    }
}

/// Describes the comparison of a host in a dry run.
pub fn comparison(host: &HostComparison) -> String {
    format!(
        "has {}, lacks {}; {} new, {} changed, {} to delete",
        bytes(host.held_bytes),
        bytes(host.needed_bytes),
        count(host.new_files, "file"),
        host.changed_files,
        host.deleted
    )
}

/// Describes numbers of files, links and directories, as in "3 files, 1 link, 2 directories".
pub fn entries(files: u64, links: u64, directories: u64) -> String {
    let mut words = count(files, "file");
    if links > 0 {
        words = format!("{words}, {}", count(links, "link"));
    }
    match directories {
        0 => words,
        1 => format!("{words}, 1 directory"),
        several => format!("{words}, {several} directories"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_utc_dates_and_local_times_of_day() {
        assert_eq!(utc(1_750_000_000), "2025-06-15 15:06:40 UTC");
        assert_eq!(utc(u64::MAX), format!("{} s after 1970", u64::MAX));
        let now = Local::now();
        assert_eq!(time_of_day(now.into()), now.format("%H:%M").to_string());
        assert!(time_of_day(UNIX_EPOCH + Duration::from_secs(1_750_000_000)).starts_with("2025-06-1"));
    }
}
