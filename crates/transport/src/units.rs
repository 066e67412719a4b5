//! Human-readable numbers.

use faircast_core::time::{Rate, Span};

/// Formats a rate, as in `93.1 Mbit/s`.
pub fn rate(bps: f64) -> String {
    if bps.is_finite() { Rate::from_bps(bps).to_string() } else { "-".into() }
}

/// Returns the mean rate of `bytes` in `span`; zero if the span is zero.
pub fn mean_rate(bytes: u64, span: Span) -> Rate {
    if span == Span::ZERO { Rate::ZERO } else { Rate::of(bytes, span) }
}

/// Formats a number of bytes in powers of ten, as in `64.0 MB`.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count as f64 / 1e6),
        1_000_000_000..1_000_000_000_000 => format!("{:.2} GB", count as f64 / 1e9),
        _ => format!("{:.2} TB", count as f64 / 1e12),
    }
}

/// Formats a fraction in percent, as in `1.3 %`.
pub fn percent(fraction: f64) -> String {
    match fraction * 100.0 {
        0.0 => "0 %".into(),
        p if p < 0.01 => "<0.01 %".into(),
        p if p < 1.0 => format!("{p:.2} %"),
        p => format!("{p:.1} %"),
    }
}

/// Formats seconds, as in `1.24 s` or `3:05`.
pub fn seconds(secs: f64) -> String {
    match secs {
        s if !s.is_finite() => "-".into(),
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3_600.0 => format!("{}:{:02}", s as u64 / 60, s as u64 % 60),
        s => format!("{}:{:02}:{:02}", s as u64 / 3_600, s as u64 / 60 % 60, s as u64 % 60),
    }
}

/// Formats a count with its noun, as in `1 file` and `3 files`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_briefly_with_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(64_000_000), "64.0 MB");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.000_01), "<0.01 %");
        assert_eq!(percent(0.0213), "2.1 %");
        assert_eq!(seconds(1.239), "1.24 s");
        assert_eq!(seconds(185.0), "3:05");
        assert_eq!(seconds(3_725.0), "1:02:05");
        assert_eq!(count(1, "file"), "1 file");
        assert_eq!(count(2, "receiver"), "2 receivers");
        assert_eq!(rate(f64::INFINITY), "-");
    }
}
