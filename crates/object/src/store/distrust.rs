//! Contradictions between stored blocks and the source: the store drops the blocks, and the blocks are received again.

use super::in_place::InPlace;
use super::{Stage, Store};
use crate::error::ObjectError;

impl Store {
    /// Calls [`Store::distrust`] because of the contradiction `error`. Counts the dropped bytes as spoiled and adds a warning.
    ///
    /// # Errors
    /// As [`Store::distrust`].
    pub fn give_up(&mut self, error: &ObjectError) -> Result<(), ObjectError> {
        let bytes = match error {
            ObjectError::ChangedInPlace { .. } if self.known.is_some() => self.drop_changed_files(error)?,
            // The manifest could not be read to its end, because this file changed or cannot be read.
            ObjectError::ChangedInPlace { path } => {
                self.files.not_in_place.insert(path.clone());
                self.start_over()?
            }
            _ => self.distrust()?,
        };
        self.ledger.spoiled += bytes;
        self.files.warnings.push(format!(
            "stored data differs from the source's ({error}): {bytes} bytes are requested again"
        ));
        Ok(())
    }

    /// Handles a contradiction between stored blocks and the source. If only some of the stored blocks are from an earlier
    /// receiver, drops only those blocks; otherwise drops all stored blocks. Returns the number of bytes that must be received
    /// again.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn distrust(&mut self) -> Result<u64, ObjectError> {
        let is_all = self.resumed_blocks() >= self.blocks_stored();
        let old = self.ledger.forget_origin();
        if old.is_empty() || is_all || self.stage == Stage::Published {
            return self.start_over();
        }
        let before = self.verified + self.claimed_bytes();
        // The transfer ID is computed from the manifest, so the manifest is correct.
        let manifest = u64::from(self.geometry.manifest_len);
        let only_manifest = |block: &u32| self.known.is_some() && self.geometry.range(*block).end <= manifest;
        let old: Vec<u32> = old.into_iter().filter(|block| !only_manifest(block)).collect();
        for block in old {
            self.withdraw(block)?;
        }
        Ok(before - self.verified - self.claimed_bytes())
    }

    /// Drops the blocks of files in place that have changed, among them the file of `error`. Returns the number of dropped bytes.
    fn drop_changed_files(&mut self, error: &ObjectError) -> Result<u64, ObjectError> {
        let Some(known) = self.known.clone() else { return Ok(0) };
        let before = self.verified;
        for entry in self.files.drop_changed(&known.manifest, error) {
            let Some(range) = known.layout.range_of(entry) else { continue };
            let first = self.geometry.block_of(range.start).max(self.geometry.manifest_blocks());
            for block in first..=self.geometry.block_of(range.end - 1) {
                self.withdraw(block)?;
            }
        }
        self.files.write_border(&self.ledger.about_manifest().border(&known))?;
        Ok(before - self.verified)
    }

    /// Marks block `index` as missing, because it differs from the source's block.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn withdraw(&mut self, index: u32) -> Result<(), ObjectError> {
        self.ledger.withdraw(index).map_or(Ok(()), |operation| self.perform(operation))
    }

    /// Drops all blocks, including the blocks of the manifest. Returns the number of dropped bytes.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn start_over(&mut self) -> Result<u64, ObjectError> {
        // The journal is cleared first: while it lists blocks, their part files count as valid.
        self.files.journal.start_over()?;
        self.files.open.clear();
        self.files.in_place = InPlace::default();
        self.files.place.wipe()?;
        Ok(self.ledger.start_over())
    }
}
