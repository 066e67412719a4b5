//! The JSON form of times, rates and identifiers in events and reports. Numbers have the unit in the name of their field;
//! identifiers are strings.

use faircast_core::packet::ReceiverId;
use faircast_core::time::Rate;
use serde::{Serialize, Serializer};
use std::fmt::Display;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns a duration in seconds. Unlike `Duration::as_secs_f64`, which rounds the whole seconds and the nanoseconds separately,
/// this function rounds once.
fn as_seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

/// The form of a rate: a number in bit/s.
pub mod bps {
    use super::Rate;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes a rate in bit/s.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(rate: &Rate, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(rate.bps())
    }

    /// Reads a rate in bit/s.
    ///
    /// # Errors
    /// If the value is not a number.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        f64::deserialize(deserializer).map(Rate::from_bps)
    }
}

/// The form of a duration: a number in seconds.
pub mod seconds {
    use super::{Duration, as_seconds};
    use serde::Serializer;

    /// Writes a duration in seconds.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(as_seconds(*duration))
    }
}

/// Writes a random number in hexadecimal.
///
/// # Errors
/// Errors of the serializer.
pub fn hex<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{number:016x}"))
}

/// Writes a rate in bit/s, if present.
///
/// # Errors
/// Errors of the serializer.
pub fn optional_bps<S: Serializer>(rate: &Option<Rate>, serializer: S) -> Result<S::Ok, S::Error> {
    rate.map(Rate::bps).serialize(serializer)
}

/// Writes a duration in milliseconds, if present.
///
/// # Errors
/// Errors of the serializer.
pub fn optional_millis<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| as_seconds(duration) * 1e3).serialize(serializer)
}

/// Writes a duration in seconds, if present.
///
/// # Errors
/// Errors of the serializer.
pub fn optional_seconds<S: Serializer>(
    duration: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    duration.map(as_seconds).serialize(serializer)
}

/// Writes a time in whole seconds since 1970, if present.
///
/// # Errors
/// Errors of the serializer.
pub fn unix_seconds<S: Serializer>(moment: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    let since = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    moment.map(since).serialize(serializer)
}

/// Writes a value as its display text.
///
/// # Errors
/// Errors of the serializer.
pub fn text<T: Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Writes a receiver ID in hexadecimal; if the ID is unknown, writes an empty string.
///
/// # Errors
/// Errors of the serializer.
pub fn receiver<S: Serializer>(id: &Option<ReceiverId>, serializer: S) -> Result<S::Ok, S::Error> {
    match id {
        Some(id) => serializer.collect_str(id),
        None => serializer.serialize_str(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_printed_with_nanosecond_precision() {
        let parts =
            |n: u64| (n.wrapping_mul(7_919) % 90_000 + 1, n.wrapping_mul(2_654_435_761) % 1_000_000_000);
        for (secs, nanos) in (1..5_000).map(parts) {
            let digits = format!("{secs}.{nanos:09}");
            let duration = Duration::new(secs, nanos as u32);
            let exact = digits.trim_end_matches('0').trim_end_matches('.');
            assert_eq!(as_seconds(duration).to_string(), exact);
        }
    }
}
