//! Files that the source withdraws while they are received.

use super::{Stage, Store};
use crate::object::block::hash_of;
use crate::object::error::ObjectError;
use crate::object::geometry::Hash;
use crate::object::manifest::{Entry, Kind, Manifest};
use crate::object::sys::OpenFiles;
use crate::object::withdrawn::Affected;

impl Store {
    /// The source has withdrawn these files: they are not received, and count as zeros. The blocks that change by that. Before the
    /// manifest is known nothing is withdrawn: the source repeats its list.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn withdraw_files(&mut self, entries: &[u32]) -> Result<Vec<Affected>, ObjectError> {
        let mut all = Vec::new();
        for entry in entries {
            let Some(known) = &self.known else { break };
            let has_content = known.layout.range_of(*entry).is_some() && !known.manifest.is_stream();
            if !has_content || !self.hashes.withdraw(*entry) {
                continue;
            }
            let affected = self.hashes.affected(&known.layout, *entry);
            self.give_back(*entry);
            for one in &affected {
                match *one {
                    Affected::Void(block) => {
                        let hash = self.hashes.void_hash(block);
                        self.count(block, hash);
                    }
                    Affected::Mixed(block) => self.hash_again(block)?,
                }
            }
            all.extend(affected);
        }
        Ok(all)
    }

    /// Another session brings the same content, and has withdrawn nothing so far: these files are missing again.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub(crate) fn want_withdrawn(&mut self) -> Result<(), ObjectError> {
        let Some(known) = &self.known else { return Ok(()) };
        let entries = self.hashes.want_withdrawn();
        let ranges: Vec<_> = entries.iter().filter_map(|entry| known.layout.range_of(*entry)).collect();
        for bytes in ranges {
            for block in self.geometry.block_of(bytes.start)..=self.geometry.block_of(bytes.end - 1) {
                self.withdraw(block)?;
            }
        }
        Ok(())
    }

    /// How many files are withdrawn.
    pub(crate) fn withdrawn(&self) -> usize {
        self.hashes.withdrawn().len()
    }

    /// Whether a block holds bytes of withdrawn files alone.
    pub(crate) fn is_void(&self, block: u32) -> bool {
        let withdrawn = self.known.as_ref().filter(|_| self.withdrawn() > 0);
        withdrawn.is_some_and(|known| self.hashes.is_void(&known.layout, block))
    }

    /// The data of a block with zeros in the place of withdrawn files, and their hash; `None` when it has none of these.
    pub(crate) fn blanked(&self, block: u32, data: &[u8]) -> Option<(Vec<u8>, Hash)> {
        let known = self.known.as_ref().filter(|known| self.hashes.is_affected(&known.layout, block))?;
        let mut blanked = data.to_vec();
        self.hashes.blank(&known.layout, block, &mut blanked);
        let hash = hash_of(&blanked);
        Some((blanked, hash))
    }

    /// The disk's blocks of this file are free. Its part stays, empty: a part that is not there counts as renamed.
    fn give_back(&mut self, entry: u32) {
        self.open.clear();
        if let Ok(part) = self.place.part(entry) {
            self.place.disk.set_len(&part, 0).ok(); // all parts go at the end
        }
    }

    /// A stored block has zeros in the place of one more file.
    fn hash_again(&mut self, block: u32) -> Result<(), ObjectError> {
        if !self.has(block) || self.stage == Stage::Published {
            return Ok(()); // what is published had all its zeros before
        }
        let mut data = Vec::new();
        match self.read_back(block, &mut data, &mut OpenFiles::default()) {
            Ok(()) => {
                let hash = hash_of(&data);
                self.journal.block(block, hash)?;
                self.hashes.push(block, hash);
                Ok(())
            }
            Err(_) => self.withdraw(block), // it comes again
        }
    }

    /// Whether this entry is a withdrawn file, or another name of one.
    pub(crate) fn is_withdrawn(&self, n: u32, entry: &Entry) -> bool {
        match entry.kind {
            Kind::HardLink { to } => self.hashes.is_withdrawn(to),
            _ => self.hashes.is_withdrawn(n),
        }
    }

    /// The files of the manifest that are received, under all their names.
    pub(crate) fn received<'a>(&'a self, manifest: &'a Manifest) -> impl Iterator<Item = (u32, &'a Entry)> {
        let files = (0..).zip(manifest.entries()).filter(|(_, entry)| entry.is_file());
        files.filter(|(n, entry)| !self.is_withdrawn(*n, entry))
    }

    /// The names of withdrawn files.
    pub(crate) fn withdrawn_names(&self, manifest: &Manifest) -> Vec<String> {
        let entries = (0..).zip(manifest.entries()).filter(|(n, entry)| self.is_withdrawn(*n, entry));
        entries.map(|(_, entry)| entry.name().into_owned()).collect()
    }
}
