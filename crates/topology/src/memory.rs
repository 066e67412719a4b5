//! Estimate of the memory for a described network, before anything is built from the description.
//!
//! The estimates are rough and tend to be too high. They serve to refuse a description that would exhaust the memory of a host,
//! because of a typing error or because it is hostile.

use faircast_aqm::QueueSpec;
use std::fmt;

/// Default limit of memory, in bytes: 8 GB, on every machine.
pub const DEFAULT: u64 = 8_000_000_000;

/// Number of bytes for a link, without the tables of its queue and without packets.
pub const LINK: u64 = 200;
/// Number of bytes for a packet on a link or in a queue, including the packet's entry in the log of its flow.
pub const PACKET: u64 = 80;

/// A part of an estimate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Name of the part, with the number of items: `1000000 receivers`.
    pub what: String,
    /// Estimated memory, bytes.
    pub bytes: u64,
}

/// Estimated memory of a description.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Estimate {
    parts: Vec<Part>,
}

/// The estimated memory exceeds the limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} of memory are needed, but only {} are allowed; the largest parts: {largest}", Bytes(*.total), Bytes(*.limit))]
pub struct TooLarge {
    /// Estimated memory, bytes.
    pub total: u64,
    /// Limit, bytes.
    pub limit: u64,
    /// The largest parts, as text.
    pub largest: String,
}

impl TooLarge {
    /// Returns a limit that is large enough, as a value of `--max-memory` in whole GB.
    pub fn enough(&self) -> String {
        format!("{}G", self.total.div_ceil(1_000_000_000))
    }
}

impl Estimate {
    /// Returns an empty estimate.
    pub const fn new() -> Estimate {
        Estimate { parts: Vec::new() }
    }

    /// Adds `count` items of `each` bytes. Sums saturate.
    pub fn add(&mut self, count: u64, what: &str, each: u64) {
        if count > 0 {
            self.parts.push(Part { what: format!("{count} {what}"), bytes: count.saturating_mul(each) });
        }
    }

    /// Adds a part unchanged.
    pub fn add_part(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Returns the parts in the order in which they were added.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the bytes of all parts.
    pub fn total(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }

    /// Returns the largest parts as text: at most three parts, each of which is at least a tenth of the total.
    pub fn largest(&self) -> String {
        let mut parts: Vec<&Part> =
            self.parts.iter().filter(|part| part.bytes >= self.total().div_ceil(10)).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.bytes));
        let shown = parts.iter().take(3).map(|part| format!("{} ({})", part.what, Bytes(part.bytes)));
        shown.collect::<Vec<_>>().join(", ")
    }

    /// Compares the estimate with a limit in bytes.
    ///
    /// # Errors
    /// When the estimate exceeds `limit` bytes.
    pub fn within(&self, limit: u64) -> Result<(), TooLarge> {
        let total = self.total();
        if total <= limit { Ok(()) } else { Err(TooLarge { total, limit, largest: self.largest() }) }
    }
}

/// A number of bytes, displayed as `8.0 GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bytes(bytes) = *self;
        let units = [(1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
        match units.iter().find(|(unit, _)| bytes as f64 >= *unit) {
            Some((unit, name)) => write!(f, "{:.1} {name}", bytes as f64 / unit),
            None => write!(f, "{bytes} bytes"),
        }
    }
}

/// Returns the number of bytes of the tables that a queue allocates at the start, without packets.
pub const fn of_queue(queue: &QueueSpec) -> u64 {
    match queue {
        QueueSpec::Sred(config) => config.list as u64 * 24,
        QueueSpec::Sfb(config) => config.levels as u64 * config.bins as u64 * 24,
        QueueSpec::Paqm(config) => config.history as u64 * 32,
        QueueSpec::Drr(_) | QueueSpec::FqCodel(_) => 16_384,
        QueueSpec::DropTail(_) => 0,
        _ => 512,
    }
}

/// Parses a number of bytes with an optional suffix k, M, G or T: `500M`, `1.5G`.
///
/// # Errors
/// The expected form of the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || format!("`{text}` is no size; write it as 500M or 32G");
    let text = text.trim();
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M')) => (&text[..at], 1e6),
        Some((at, 'G')) => (&text[..at], 1e9),
        Some((at, 'T')) => (&text[..at], 1e12),
        _ => (text, 1.0),
    };
    let bytes = number.parse::<f64>().map_err(|_| wanted())? * factor;
    if (1.0..1e19).contains(&bytes) { Ok(bytes as u64) } else { Err(wanted()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_error_states_the_largest_part_and_a_sufficient_limit() {
        let mut estimate = Estimate::new();
        estimate.add(3, "nodes", 100);
        estimate.add(2_000_000, "receivers", 2_000);
        estimate.add(0, "traces", 1_000);
        assert_eq!((estimate.total(), estimate.parts().len()), (4_000_000_300, 2));
        assert_eq!(estimate.within(5_000_000_000), Ok(()));
        let refused = estimate.within(1_000_000_000).expect_err("it is more");
        assert_eq!(
            refused.to_string(),
            "4.0 GB of memory are needed, but only 1.0 GB are allowed; the largest parts: 2000000 receivers (4.0 GB)"
        );
        assert_eq!(refused.enough(), "5G");
    }

    #[test]
    fn memory_estimate_saturates_instead_of_overflowing() {
        let mut estimate = Estimate::new();
        estimate.add(u64::MAX, "packets", 160);
        estimate.add(u64::MAX, "nodes", 1);
        assert_eq!(estimate.total(), u64::MAX);
        assert!(estimate.within(u64::MAX - 1).is_err());
    }

    #[test]
    fn memory_sizes_are_parsed_with_units() {
        assert_eq!((bytes("500M"), bytes("1.5G"), bytes("7")), (Ok(500_000_000), Ok(1_500_000_000), Ok(7)));
        assert!(["", "G", "-1M", "0", "1X", "NaN", "inf", "9e30"].iter().all(|wrong| bytes(wrong).is_err()));
        assert_eq!(
            (Bytes(999).to_string(), Bytes(38_200_000_000).to_string()),
            ("999 bytes".into(), "38.2 GB".into())
        );
    }
}
