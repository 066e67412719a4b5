//! When what is here is not what the source has: give it up, so that it comes again.

use super::{Stage, Store};
use crate::object::block::RootHasher;
use crate::object::error::ObjectError;

impl Store {
    /// What is stored and what the source says contradict each other. Give up what an earlier receiver left when there is
    /// something else beside it, and otherwise everything. Returns how many bytes have to come again.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn distrust(&mut self) -> Result<u64, ObjectError> {
        let old = std::mem::take(&mut self.from_before);
        let is_all = old.len() >= self.hashes.known() as usize;
        if old.is_empty() || is_all || self.stage == Stage::Published {
            return self.start_over();
        }
        let before = self.verified;
        // The transfer is named after the manifest, so that is right.
        let manifest = u64::from(self.geometry.manifest_len);
        let only_manifest = |block: &u32| self.known.is_some() && self.geometry.range(*block).end <= manifest;
        let old: Vec<u32> = old.into_iter().filter(|block| !only_manifest(block)).collect();
        for block in old {
            self.withdraw(block)?;
        }
        Ok(before - self.verified)
    }

    /// Block `index` is not what the source has: it counts as missing from now on.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn withdraw(&mut self, index: u32) -> Result<(), ObjectError> {
        // What is void does not come again.
        if !self.is_void(index) && self.hashes.forget(index).is_some() {
            self.verified -= u64::from(self.geometry.block_len(index));
            self.journal.withdraw(index)?;
        }
        Ok(())
    }

    /// Give up everything, manifest and all. Returns how many bytes that were.
    ///
    /// # Errors
    /// When the journal or the part files cannot be changed.
    pub fn start_over(&mut self) -> Result<u64, ObjectError> {
        // First: part files that a journal names are taken for good.
        self.journal.start_over()?;
        self.open.clear();
        self.place.wipe()?;
        self.geometry = self.announced;
        self.hashes = RootHasher::new(self.geometry);
        self.known = None;
        self.stage = Stage::Receiving;
        self.from_before.clear();
        Ok(std::mem::take(&mut self.verified))
    }
}
