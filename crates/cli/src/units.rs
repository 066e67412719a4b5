//! Numbers as people read them.

use chrono::{DateTime, Local};
use faircast_core::time::Rate;

/// How long ago, in its largest unit.
pub fn age(span: std::time::Duration) -> String {
    match span.as_secs() {
        secs @ 0..120 => count(secs, "second"),
        secs @ 120..7_200 => count(secs / 60, "minute"),
        secs @ 7_200..172_800 => count(secs / 3_600, "hour"),
        secs => count(secs / 86_400, "day"),
    }
}

/// A moment in seconds since 1970, as in `2025-06-15 15:06:40 UTC`.
pub fn utc(unix_secs: u64) -> String {
    /// The end of the year 9999.
    const LAST: u64 = 253_402_300_799;
    if unix_secs > LAST {
        return format!("{unix_secs} s after 1970");
    }
    let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_secs);
    let text = humantime::format_rfc3339_seconds(at).to_string();
    format!("{} UTC", text.trim_end_matches('Z').replace('T', " "))
}

/// A moment of today in seconds since 1970 by this host's clock and time zone, as in `14:32`; of another day with its date.
pub fn time_of_day(unix_secs: u64) -> String {
    let moment = i64::try_from(unix_secs).ok().and_then(|secs| DateTime::from_timestamp(secs, 0));
    let Some(moment) = moment else { return utc(unix_secs) };
    let (moment, today) = (moment.with_timezone(&Local), Local::now().date_naive());
    let form = if moment.date_naive() == today { "%H:%M" } else { "%Y-%m-%d %H:%M" };
    moment.format(form).to_string()
}

/// A session, by its source and what it brings, as far as that is known.
pub fn session_of(source: Option<&str>, content: Option<&str>) -> String {
    match (source, content) {
        (None, _) => "another session".to_owned(),
        (Some(source), None) => format!("another session, of {source}"),
        (Some(source), Some(content)) => format!("{source}'s {content}"),
    }
}

/// A rate, as in `93.1 Mbit/s`.
pub fn rate(bps: f64) -> String {
    if bps.is_finite() { Rate::from_bps(bps).to_string() } else { "-".into() }
}

/// Bytes in powers of ten, as in `64.0 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.2} GB", count as f64 / 1e9),
        _ => format!("{:.2} TB", count as f64 / 1e12),
    }
}

/// A fraction in percent, as in `1.3 %`.
pub fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.01 => "<0.01 %".into(),
        p if p < 1.0 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Seconds, as in `1.24 s` or `3:05`.
pub fn seconds(secs: f64) -> String {
    match secs {
        s if !s.is_finite() => "-".into(),
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3_600.0 => format!("{}:{:02}", s as u64 / 60, s as u64 % 60),
        s => format!("{}:{:02}:{:02}", s as u64 / 3_600, s as u64 / 60 % 60, s as u64 % 60),
    }
}

/// A count with its noun, as in `1 file` and `3 files`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// Files, and the links and directories beside them, as in "3 files, 1 link, 2 directories".
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
    fn numbers_are_short_and_carry_their_unit() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(64_000_000), "64.0 MB");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.000_01), "<0.01 %");
        assert_eq!(percent(0.0213), "2.1 %");
        assert_eq!(seconds(1.239), "1.24 s");
        assert_eq!(seconds(185.0), "3:05");
        assert_eq!(seconds(3_725.0), "1:02:05");
        assert_eq!(utc(1_750_000_000), "2025-06-15 15:06:40 UTC");
        assert_eq!(utc(u64::MAX), format!("{} s after 1970", u64::MAX));
        let now = Local::now();
        assert_eq!(time_of_day(now.timestamp() as u64), now.format("%H:%M").to_string());
        assert!(time_of_day(1_750_000_000).starts_with("2025-06-1"));
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(2, "receiver"), "2 receivers");
        assert_eq!(rate(f64::INFINITY), "-");
    }
}
