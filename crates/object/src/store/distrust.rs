//! Contradictions between stored blocks and the source: the store gives up the blocks, and they are received again.

use super::{Stage, Store};
use crate::error::ObjectError;

impl Store {
    /// Like [`Store::distrust`], because of this contradiction. The bytes count as spoiled, and a warning is added.
    ///
    /// # Errors
    /// As [`Store::distrust`].
    pub fn give_up(&mut self, error: &ObjectError) -> Result<(), ObjectError> {
        let bytes = self.distrust()?;
        self.ledger.spoiled += bytes;
        self.files.warnings.push(format!(
            "stored data differs from the source's ({error}): {bytes} bytes are requested again"
        ));
        Ok(())
    }

    /// Handles a contradiction between stored blocks and the source. If there are blocks of an earlier receiver and also newer
    /// blocks, drops the former; otherwise drops all blocks. Returns the number of bytes that have to be received again.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn distrust(&mut self) -> Result<u64, ObjectError> {
        let old = self.ledger.forget_origin();
        let is_all = old.len() >= self.hashes.known() as usize;
        if old.is_empty() || is_all || self.stage == Stage::Published {
            return self.start_over();
        }
        let before = self.verified;
        // The transfer ID is computed from the manifest, so the manifest is correct.
        let manifest = u64::from(self.geometry.manifest_len);
        let only_manifest = |block: &u32| self.known.is_some() && self.geometry.range(*block).end <= manifest;
        let old: Vec<u32> = old.into_iter().filter(|block| !only_manifest(block)).collect();
        for block in old {
            self.withdraw(block)?;
        }
        Ok(before - self.verified)
    }

    /// Counts block `index`, which differs from the source's block, as missing from now on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn withdraw(&mut self, index: u32) -> Result<(), ObjectError> {
        self.ledger.withdraw(index).map_or(Ok(()), |operation| self.perform(operation))
    }

    /// Drops all blocks, including the manifest. Returns their number of bytes.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn start_over(&mut self) -> Result<u64, ObjectError> {
        // The journal comes first, because part files that it names are trusted.
        self.files.journal.start_over()?;
        self.files.open.clear();
        self.files.place.wipe()?;
        Ok(self.ledger.start_over())
    }
}
