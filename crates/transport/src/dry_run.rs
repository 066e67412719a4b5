//! Dry runs: a session that carries only the list of files. Each receiver compares its disk with the list, and states the symbols
//! that it would request ([`faircast_wire::Comparison`]), in a receipt without a signature. So relays forward it, and the source
//! answers it. The source estimates the bytes that a session would multicast.

use crate::json;
use crate::object::{Compared, Geometry, hash_of};
use faircast_core::packet::ReceiverId;
use faircast_wire::{Comparison, NeededPart, Receipt};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// Maximum number of receivers whose comparisons are stored: about 600 bytes each.
const MAX_RECEIVERS: usize = 65_536;

/// In a dry run: the comparison of a receiver's disk with the list of files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostComparison {
    /// Identifier of the receiver, hexadecimal.
    pub receiver: String,
    /// Host name, as the receiver states it.
    pub host: String,
    /// Bytes of content that the receiver has.
    pub held_bytes: u64,
    /// Bytes that the receiver would request, including the list of files.
    pub needed_bytes: u64,
    /// Number of files and links that the receiver does not have.
    pub new_files: u64,
    /// Number of files and links that the receiver has in another form.
    pub changed_files: u64,
    /// Number of files and links that the receiver would delete.
    pub deleted: u64,
}

/// Result of a dry run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DryRunReport {
    /// Bytes of content.
    pub bytes: u64,
    /// Number of receivers that have stated their comparisons.
    pub compared: u64,
    /// Bytes that a session would send to all of these receivers together, including the list of files, without repairs. If
    /// receivers lack different parts of more than 256 blocks, the number is an estimate.
    pub needed_bytes: u64,
    /// Time that this takes at the maximum rate, if a maximum is set.
    #[serde(rename = "seconds", serialize_with = "json::optional_seconds")]
    pub duration: Option<Duration>,
}

impl HostComparison {
    pub(crate) fn new(receiver: ReceiverId, host: &str, comparison: &Comparison) -> HostComparison {
        HostComparison {
            receiver: receiver.to_string(),
            host: host.to_owned(),
            held_bytes: comparison.held_bytes,
            needed_bytes: comparison.needed_bytes,
            new_files: comparison.new_files.into(),
            changed_files: comparison.changed_files.into(),
            deleted: comparison.deleted.into(),
        }
    }
}

/// Returns the parts of the object stream for which receivers state their missing symbols.
fn parts(whole: &Geometry) -> impl Iterator<Item = Range<u32>> {
    let blocks = whole.blocks().unwrap_or(0);
    let per_part = blocks.div_ceil(Comparison::PARTS as u32).max(1);
    (0..blocks).step_by(per_part as usize).map(move |first| first..first.saturating_add(per_part).min(blocks))
}

/// Returns a comparison in the form for the source.
pub(crate) fn comparison_of(compared: &Compared, whole: &Geometry) -> Comparison {
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut stated = [NeededPart::default(); Comparison::PARTS];
    for (part, blocks) in stated.iter_mut().zip(parts(whole)) {
        let missing = &compared.missing[blocks.start as usize..blocks.end as usize];
        let count: u64 = missing.iter().map(|symbols| u64::from(*symbols)).sum();
        let all: u64 = blocks.map(|block| u64::from(whole.symbols(block))).sum();
        let bytes: Vec<u8> = missing.iter().flat_map(|symbols| symbols.to_be_bytes()).collect();
        *part = NeededPart { missing: (count * 255).div_ceil(all) as u8, hash: hash_of(&bytes).0[0] };
    }
    Comparison {
        new_files: number(compared.new_files),
        changed_files: number(compared.changed_files),
        deleted: number(compared.deleted),
        held_bytes: compared.held_bytes,
        needed_bytes: compared.needed_bytes,
        parts: stated,
    }
}

/// The comparisons of all receivers, at the source.
#[derive(Debug, Default)]
pub(crate) struct Comparisons(BTreeMap<ReceiverId, Comparison>);

impl Comparisons {
    /// Stores the comparison in a receipt. Returns it in the form for events if it is new.
    pub(crate) fn take(&mut self, receipt: &Receipt) -> Option<HostComparison> {
        let comparison = receipt.comparison.as_deref()?;
        if self.0.contains_key(&receipt.receiver) || self.0.len() >= MAX_RECEIVERS {
            return None;
        }
        self.0.insert(receipt.receiver, comparison.clone());
        Some(HostComparison::new(receipt.receiver, receipt.host.as_str(), comparison))
    }

    /// Returns the number of receivers.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the number of bytes of the symbols that at least one receiver lacks. For a block, any symbols serve all receivers,
    /// so the largest number counts. In a part with several blocks, receivers with the same hash lack
    /// the same symbols, and the blocks of other receivers count as independent.
    pub(crate) fn union(&self, whole: &Geometry) -> u64 {
        let len_of = |blocks: Range<u32>| {
            blocks.map(|block| u64::from(whole.symbols(block)) * u64::from(whole.symbol_size)).sum::<u64>()
        };
        let lens: Vec<(u64, bool)> =
            parts(whole).map(|blocks| (len_of(blocks.clone()), blocks.len() == 1)).collect();
        let total: u64 = lens.iter().map(|(len, _)| len).sum();
        let needed = |comparison: &Comparison| comparison.needed_bytes.min(total);
        let mut union = 0.0;
        // The stated parts are rounded up, so they are reduced to the stated sum.
        let scaled = |comparison: &Comparison| {
            let parts = comparison.parts.iter().zip(&lens);
            let stated: f64 = parts.map(|(part, (len, _))| share(*part) * *len as f64).sum();
            (needed(comparison) as f64 / stated.max(1.0)).min(1.0)
        };
        let scales: Vec<f64> = self.0.values().map(scaled).collect();
        for (at, (len, is_block)) in lens.iter().enumerate() {
            let mut different: BTreeMap<(u8, u8), f64> = BTreeMap::new();
            for (comparison, scale) in self.0.values().zip(&scales) {
                let part = comparison.parts[at];
                let known = different.entry((part.missing, part.hash)).or_default();
                *known = known.max(share(part) * scale);
            }
            let shares = different.into_values();
            union += *len as f64
                * match is_block {
                    true => shares.fold(0.0, f64::max),
                    false => 1.0 - shares.map(|share| 1.0 - share).product::<f64>(),
                };
        }
        let largest = self.0.values().map(needed).max().unwrap_or(0);
        let sum = self.0.values().map(needed).fold(0, u64::saturating_add);
        (union.round() as u64).clamp(largest, sum.min(total).max(largest))
    }
}

/// Returns the missing part of a part.
fn share(part: NeededPart) -> f64 {
    f64::from(part.missing) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_wire::Name;

    fn whole(blocks: u64) -> Geometry {
        let geometry =
            Geometry { stream_len: None, manifest_len: 10, symbol_size: 64, symbols_per_block: 64 };
        Geometry { stream_len: Some(blocks * geometry.capacity()), ..geometry }
    }

    /// Returns the comparisons of receivers that lack these numbers of symbols of each block.
    fn comparisons(whole: &Geometry, receivers: &[Vec<u16>]) -> Comparisons {
        let mut all = Comparisons::default();
        for (number, missing) in (1..).zip(receivers) {
            let symbols: u64 = missing.iter().map(|symbols| u64::from(*symbols)).sum();
            let compared =
                Compared { missing: missing.clone(), needed_bytes: symbols * 64, ..Compared::default() };
            let comparison = Some(Box::new(comparison_of(&compared, whole)));
            let id = ReceiverId::new(number).expect("it is not zero");
            let receipt = Receipt::unsigned([0; 32], (id, Name::clipped("host")), 0, comparison);
            assert!(all.take(&receipt).is_some() && all.take(&receipt).is_none());
        }
        all
    }

    /// Returns the missing symbols of a receiver that lacks `symbols` symbols of each block for which `is_missing` is true.
    fn lacking(blocks: u64, symbols: u16, is_missing: impl Fn(u64) -> bool) -> Vec<u16> {
        (0..blocks).map(|block| if is_missing(block) { symbols } else { 0 }).collect()
    }

    #[test]
    fn union_of_few_blocks_is_exact() {
        let whole = whole(200);
        let (a, b) = (lacking(200, 3, |n| n < 20), lacking(200, 5, |n| (10..30).contains(&n)));
        let none = lacking(200, 0, |_| true);
        assert_eq!(comparisons(&whole, &[a.clone(), a.clone()]).union(&whole), 20 * 3 * 64);
        let union = comparisons(&whole, &[a.clone(), b, none.clone()]).union(&whole);
        assert!(union.abs_diff((10 * 3 + 20 * 5) * 64) <= 64, "{union}");
        assert_eq!(comparisons(&whole, &[none]).union(&whole), 0);
        let all = lacking(200, 64, |_| true);
        assert_eq!(comparisons(&whole, &[a, all]).union(&whole), 200 * 64 * 64);
    }

    #[test]
    fn union_of_many_blocks_is_within_a_tenth() {
        let (blocks, symbols) = (100_000, 64);
        let whole = whole(blocks);
        let at = |of: u64| move |n: u64| (n * 2_654_435_761 % 1_000_003 + of * 7) % 100 == of;
        let (a, b) = (lacking(blocks, symbols, at(1)), lacking(blocks, symbols, at(2)));
        let count = |lists: &[&Vec<u16>]| {
            (0..blocks as usize).filter(|n| lists.iter().any(|list| list[*n] > 0)).count() as u64
        };
        for lists in [vec![&a, &a, &a], vec![&a, &b], vec![&a]] {
            let copies: Vec<_> = lists.iter().map(|list| (*list).clone()).collect();
            let union = comparisons(&whole, &copies).union(&whole);
            let expected = count(&lists) * u64::from(symbols) * 64;
            assert!(union.abs_diff(expected) * 10 <= expected, "{union} for {expected}");
        }
    }

    #[test]
    fn forged_comparisons_do_not_exceed_the_content() {
        let whole = whole(1_000);
        let mut all = comparisons(&whole, &[lacking(1_000, 64, |_| true)]);
        for comparison in all.0.values_mut() {
            comparison.needed_bytes = u64::MAX;
        }
        assert_eq!(all.union(&whole), 1_000 * 64 * 64);
    }
}
