//! Files that a source withdraws during a session, because they change or cannot be read.
//!
//! The bytes of a withdrawn file count as zeros at the source and at the receivers. Receivers apply withdrawals in the same order
//! as the source. A block that contains only bytes of withdrawn files is *void*: it is not sent, and counts as received. A block
//! that also contains other bytes is *mixed*: its symbols contain bytes of the file if they are sent before the withdrawal, and
//! zeros if they are sent later. A receiver accepts symbols of both kinds and writes zeros in place of the file. The root hash
//! covers the list of withdrawn files.

use super::block::{RootHasher, hash_of};
use super::error::ObjectError;
use super::geometry::Hash;
use super::layout::Layout;
use std::path::PathBuf;

/// A file that the source has withdrawn.
#[derive(Debug)]
pub struct Withdrawal {
    /// Its entry in the manifest.
    pub entry: u32,
    /// Its path at the source.
    pub path: PathBuf,
    /// The reason.
    pub error: ObjectError,
}

/// A block with bytes of withdrawn files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Affected {
    /// It contains no other bytes.
    Void(u32),
    /// The block also contains bytes of other files or of the manifest.
    Mixed(u32),
}

impl Affected {
    /// Returns the number of the block.
    pub const fn block(self) -> u32 {
        let (Affected::Void(block) | Affected::Mixed(block)) = self;
        block
    }
}

impl RootHasher {
    /// Returns the blocks that contain bytes of this withdrawn file.
    pub fn affected(&self, layout: &Layout, entry: u32) -> Vec<Affected> {
        let geometry = self.geometry();
        let Some(bytes) = layout.range_of(entry) else { return Vec::new() };
        let blocks = geometry.block_of(bytes.start)..=geometry.block_of(bytes.end - 1);
        let affected = blocks.map(|block| match self.is_void(layout, block) {
            true => Affected::Void(block),
            false => Affected::Mixed(block),
        });
        affected.collect()
    }

    /// Returns whether a block contains only bytes of withdrawn files, or lies in holes of files.
    pub(crate) fn is_void(&self, layout: &Layout, block: u32) -> bool {
        if layout.is_void(block) {
            return true;
        }
        let range = self.geometry().range(block);
        let has_manifest = range.start < u64::from(self.geometry().manifest_len);
        !has_manifest && layout.pieces(range).all(|piece| self.is_withdrawn(piece.entry))
    }

    /// Returns whether a block contains bytes of a withdrawn file.
    pub fn is_affected(&self, layout: &Layout, block: u32) -> bool {
        !self.withdrawn().is_empty()
            && layout.pieces(self.geometry().range(block)).any(|piece| self.is_withdrawn(piece.entry))
    }

    /// In the data of a block, replaces the bytes of withdrawn files by zeros.
    pub(crate) fn blank(&self, layout: &Layout, block: u32, data: &mut [u8]) {
        let range = self.geometry().range(block);
        let manifest = u64::from(self.geometry().manifest_len).clamp(range.start, range.end) - range.start;
        let mut rest = &mut data[manifest as usize..];
        for piece in layout.pieces(range) {
            let (bytes, after) = rest.split_at_mut(piece.len);
            if self.is_withdrawn(piece.entry) {
                bytes.fill(0);
            }
            rest = after;
        }
    }

    /// Returns the hash of a void block.
    pub fn void_hash(&mut self, block: u32) -> Hash {
        let len = self.geometry().block_len(block);
        match self.void {
            Some((of, hash)) if of == len => hash,
            _ => {
                let hash = hash_of(&vec![0; len as usize]);
                self.void = Some((len, hash));
                hash
            }
        }
    }
}
