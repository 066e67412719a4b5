//! The list of withdrawn files. Each status carries one slice of the list, and each slice has a fixed position in the list.
//!
//! The list only grows. A slice is signed as a unit, so a relay forwards it unchanged until it receives a longer version of the
//! slice.

use faircast_wire::{Signature, Status, Withdrawn, WithdrawnPart};

/// Maximum number of entries that are stored for forwarding.
const MAX_ENTRIES: usize = 1 << 20;

const SLICE: usize = Status::MAX_WITHDRAWALS;

/// A slice of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Slice {
    /// Position of its first entry in the list.
    pub(crate) first: u32,
    pub(crate) files: Vec<Withdrawn>,
    pub(crate) signature: Option<Signature>,
}

/// All slices of the list, and the next slice to send.
#[derive(Debug, Default)]
pub(crate) struct Slices {
    slices: Vec<Slice>,
    next: usize,
}

impl Slices {
    /// At a source, sets the list to these files; `sign` signs slices.
    pub(crate) fn follow(&mut self, files: &[Withdrawn], mut sign: impl FnMut(&Slice) -> Option<Signature>) {
        let in_last = self.slices.last().map_or(0, |last| last.files.len());
        let known = self.slices.len().saturating_sub(1) * SLICE + in_last;
        if files.len() <= known {
            return;
        }
        self.slices.truncate(known / SLICE);
        self.next = self.slices.len(); // new slices first
        for (at, files) in files.chunks(SLICE).enumerate().skip(known / SLICE) {
            let mut slice = Slice { first: (at * SLICE) as u32, files: files.to_vec(), signature: None };
            slice.signature = sign(&slice);
            self.slices.push(slice);
        }
    }

    /// At a relay, stores the slice that a status carries. Returns the files of the slice that are new.
    pub(crate) fn learn<'a>(&mut self, status: &'a Status) -> &'a [Withdrawn] {
        let Some(WithdrawnPart { first, signature, .. }) = status.withdrawn else { return &[] };
        let at = first as usize / SLICE;
        let is_slice =
            (first as usize).is_multiple_of(SLICE) && (1..=SLICE).contains(&status.withdrawals.len());
        if !is_slice || at * SLICE >= MAX_ENTRIES {
            return &[];
        }
        if at >= self.slices.len() {
            self.slices.resize_with(at + 1, Slice::default);
        }
        let known = self.slices[at].files.len();
        if known <= status.withdrawals.len() {
            self.slices[at] = Slice { first, files: status.withdrawals.clone(), signature: Some(signature) };
        }
        status.withdrawals.get(known..).unwrap_or_default()
    }

    /// Returns the slice for the next status; the slice is empty if the list is empty.
    pub(crate) fn next(&mut self) -> Slice {
        if self.slices.is_empty() {
            return Slice::default();
        }
        self.next %= self.slices.len();
        self.next += 1;
        self.slices[self.next - 1].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(count: u32) -> Vec<Withdrawn> {
        (100..100 + count).map(|entry| Withdrawn { entry, first_block: 1, last_block: 2 }).collect()
    }

    #[test]
    fn slices_cover_all_withdrawn_files_and_relays_forward_them() {
        let (mut source, mut relay) = (Slices::default(), Slices::default());
        assert_eq!(source.next(), Slice::default());
        for count in [3, 3, 40, 41] {
            source.follow(&files(count), |slice| Some([slice.files.len() as u8; 64]));
            for _ in 0..6 {
                let Slice { first, files, signature } = source.next();
                let part = WithdrawnPart { total: count, first, signature: signature.expect("it is signed") };
                let status = Status { withdrawn: Some(part), withdrawals: files, ..Status::default() };
                relay.learn(&status);
                assert!(relay.learn(&status).is_empty(), "it is known");
            }
            let all: Vec<Withdrawn> = relay.slices.iter().flat_map(|slice| slice.files.clone()).collect();
            assert_eq!(all, files(count));
            let signed = |slice: &Slice| slice.signature == Some([slice.files.len() as u8; 64]);
            assert!(relay.slices.iter().all(signed));
        }
    }

    #[test]
    fn invalid_slice_of_withdrawn_files_is_not_stored() {
        let mut relay = Slices::default();
        for (first, count) in [(1, 3), (0, SLICE as u32 + 1), (u32::MAX - 7, 3), (0, 0)] {
            let part = WithdrawnPart { total: count, first, signature: [0; 64] };
            relay.learn(&Status { withdrawn: Some(part), withdrawals: files(count), ..Status::default() });
        }
        assert_eq!(relay.next(), Slice::default());
    }
}
