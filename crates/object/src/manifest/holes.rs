//! Table of holes in a manifest with this feature: ranges of files that are zeros and take no space at the source.
//!
//! ```text
//! holes:  count ‖ count holes, in the order of entries and offsets
//! hole:   entries since the preceding hole ‖ bytes since the preceding hole of the entry, or since its start ‖ length
//! ```

use super::{Entry, ManifestError, Reader, put_number};
use crate::manifest::Kind;
use std::ops::Range;

/// Maximum number of holes in a manifest.
pub const MAX_HOLES: usize = 1 << 16;

/// Checks the holes of an entry. Returns their number.
pub(super) fn check(number: usize, entry: &Entry) -> Result<usize, ManifestError> {
    let Some(holes) = entry.holes.as_deref() else { return Ok(0) };
    let is_file = matches!(entry.kind, Kind::File { .. });
    let mut end = None;
    let is_right = holes.iter().all(|hole| {
        let is_later = end.is_none_or(|end| hole.start > end);
        end = Some(hole.end);
        is_later && hole.start < hole.end && hole.end <= entry.size()
    });
    match is_file && is_right && !holes.is_empty() {
        true => Ok(holes.len()),
        false => Err(ManifestError::Hole { entry: number }),
    }
}

/// Appends the table of all holes, unless it is empty.
pub(super) fn put(out: &mut Vec<u8>, entries: &[Entry]) {
    let count: usize = entries.iter().map(|entry| entry.holes().len()).sum();
    if count == 0 {
        return;
    }
    put_number(out, count as u64);
    let mut before = 0;
    for (number, entry) in (0u64..).zip(entries) {
        let mut end = 0;
        for hole in entry.holes() {
            put_number(out, number - before);
            put_number(out, hole.start - end);
            put_number(out, hole.end - hole.start);
            (before, end) = (number, hole.end);
        }
    }
}

/// Reads the table of holes into the entries.
pub(super) fn read(from: &mut Reader<'_>, entries: &mut [Entry]) -> Result<(), ManifestError> {
    let count = from.number()?;
    if count == 0 || count > MAX_HOLES as u64 {
        return Err(ManifestError::TooManyHoles(count));
    }
    let (mut entry, mut end, mut holes) = (0usize, 0u64, Vec::<Range<u64>>::new());
    for _ in 0..count {
        let step = usize::try_from(from.number()?).unwrap_or(usize::MAX);
        if step > 0 {
            keep(entries, entry, &mut holes);
            (entry, end) = (entry.saturating_add(step), 0);
        }
        let failed = ManifestError::Hole { entry };
        let start = end.checked_add(from.number()?).ok_or(failed.clone())?;
        end = start.checked_add(from.number()?).ok_or(failed.clone())?;
        if entry >= entries.len() {
            return Err(failed);
        }
        holes.push(start..end);
    }
    keep(entries, entry, &mut holes);
    Ok(())
}

fn keep(entries: &mut [Entry], entry: usize, holes: &mut Vec<Range<u64>>) {
    if !holes.is_empty() {
        entries[entry].holes = Some(std::mem::take(holes).into());
    }
}
