//! Sealed blocks and the root hash over all blocks.

use super::geometry::{Geometry, Hash, TRAILER, symbols_for};
use std::collections::BTreeSet;

/// Reason why the bytes of a block are not the sealed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// The bytes are too short for a trailer.
    #[error("a block of {0} bytes is too short for its trailer of {TRAILER} bytes")]
    TooShort(usize),
    /// The trailer claims more data than precedes it.
    #[error("the trailer states {claimed} bytes of data, but only {room} bytes precede it")]
    Length {
        /// Claimed length.
        claimed: u32,
        /// Bytes before the trailer.
        room: usize,
    },
    /// The hash of the data differs from the hash in the trailer, so the data differ from the data that were sent.
    #[error("the data has the hash {found}, but the trailer states {expected}")]
    Hash {
        /// Hash in the trailer.
        expected: Hash,
        /// Hash of the data.
        found: Hash,
    },
}

/// Returns the hash of a block's data.
pub fn hash_of(data: &[u8]) -> Hash {
    Hash(*blake3::hash(data).as_bytes())
}

/// Converts the data of a block in `buf` to `K` symbols: pads the data with zeros and appends the trailer. Returns `K` and the
/// hash of the data. `buf` keeps its capacity, so one buffer can be used for all blocks.
pub fn seal_block(buf: &mut Vec<u8>, symbol_size: u16) -> (u16, Hash) {
    let (len, hash) = (buf.len(), hash_of(buf));
    let symbols = symbols_for(len, symbol_size);
    let sealed = usize::from(symbols) * usize::from(symbol_size);
    buf.reserve_exact(sealed - len);
    buf.resize(sealed - TRAILER, 0);
    buf.extend_from_slice(&(len as u32).to_le_bytes());
    buf.extend_from_slice(&hash.0);
    (symbols, hash)
}

/// Returns the data of a sealed block and the hash of the data.
///
/// # Errors
/// A [`BlockError`] when the bytes are not a sealed block.
pub fn verify_block(bytes: &[u8]) -> Result<(&[u8], Hash), BlockError> {
    let Some((rest, expected)) = bytes.split_last_chunk::<32>() else {
        return Err(BlockError::TooShort(bytes.len()));
    };
    let Some((room, claimed)) = rest.split_last_chunk::<4>() else {
        return Err(BlockError::TooShort(bytes.len()));
    };
    let claimed = u32::from_le_bytes(*claimed);
    let Some(data) = room.get(..claimed as usize) else {
        return Err(BlockError::Length { claimed, room: room.len() });
    };
    let (expected, found) = (Hash(*expected), hash_of(data));
    if expected == found { Ok((data, found)) } else { Err(BlockError::Hash { expected, found }) }
}

/// Returns the data of a sealed block that [`verify_block`] has accepted.
pub fn data_of(bytes: &[u8]) -> Option<&[u8]> {
    let (rest, _) = bytes.split_last_chunk::<32>()?;
    let (room, len) = rest.split_last_chunk::<4>()?;
    room.get(..u32::from_le_bytes(*len) as usize)
}

/// Collects the hashes of blocks, in any order, and computes the root hash over the geometry, all block hashes and the list of
/// withdrawn files. An equal root hash at source and receiver confirms that the content is complete and correct.
#[derive(Debug, Clone)]
pub struct RootHasher {
    geometry: Geometry,
    hashes: Vec<Option<Hash>>,
    known: u32,
    /// Entries of withdrawn files.
    withdrawn: BTreeSet<u32>,
    /// Length in bytes of the void block that was hashed last, and its hash, for reuse.
    pub(super) void: Option<(u32, Hash)>,
}

impl RootHasher {
    /// Creates a hasher without block hashes.
    pub fn new(geometry: Geometry) -> RootHasher {
        let hashes = Vec::with_capacity(geometry.blocks().unwrap_or(0).min(1 << 20) as usize);
        RootHasher { geometry, hashes, known: 0, withdrawn: BTreeSet::new(), void: None }
    }

    pub(crate) const fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Records that a file is withdrawn. Returns `false` if the withdrawal was already recorded.
    pub fn withdraw(&mut self, entry: u32) -> bool {
        self.withdrawn.insert(entry)
    }

    /// Removes all entries from the list of withdrawn files and returns them.
    pub(crate) fn want_withdrawn(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.withdrawn)
    }

    /// Returns whether a file is withdrawn.
    pub(crate) fn is_withdrawn(&self, entry: u32) -> bool {
        self.withdrawn.contains(&entry)
    }

    /// Returns the entries of withdrawn files.
    pub(crate) const fn withdrawn(&self) -> &BTreeSet<u32> {
        &self.withdrawn
    }

    /// Sets the final length of the object stream of a live stream.
    pub fn set_stream_len(&mut self, stream_len: u64) {
        self.geometry.stream_len = Some(stream_len);
    }

    /// Records the hash of block `index`. Returns the previous hash of the block, if one was recorded.
    pub fn push(&mut self, index: u32, hash: Hash) -> Option<Hash> {
        let index = index as usize;
        if index >= self.hashes.len() {
            self.hashes.resize(index + 1, None);
        }
        let before = self.hashes[index].replace(hash);
        self.known += u32::from(before.is_none());
        before
    }

    /// Removes and returns the hash of block `index`, if it is recorded.
    pub fn forget(&mut self, index: u32) -> Option<Hash> {
        let forgotten = self.hashes.get_mut(index as usize).and_then(Option::take);
        self.known -= u32::from(forgotten.is_some());
        forgotten
    }

    /// Returns the hash of block `index`, if known.
    pub fn get(&self, index: u32) -> Option<Hash> {
        self.hashes.get(index as usize).copied().flatten()
    }

    /// Returns the number of known hashes.
    pub fn known(&self) -> u32 {
        self.known
    }

    /// Returns one more than the highest number of a block whose hash was recorded.
    pub fn end(&self) -> u32 {
        self.hashes.len() as u32 // block numbers have 32 bits
    }

    /// Returns the root hash; `None` while the hash of a block, or the length of the object stream, is unknown.
    pub fn root(&self) -> Option<Hash> {
        let blocks = self.geometry.blocks()?;
        if self.known != blocks || self.end() != blocks {
            return None;
        }
        let mut hasher = blake3::Hasher::new_derive_key("faircast 2026 root over the blocks of a transfer");
        hasher.update(&self.geometry.to_bytes());
        for hash in &self.hashes {
            hasher.update(&hash.as_ref()?.0);
        }
        // The geometry determines the number of block hashes, so the entry numbers after them cannot be mistaken for hashes.
        for entry in &self.withdrawn {
            hasher.update(&entry.to_le_bytes());
        }
        Some(Hash(*hasher.finalize().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_block_round_trips() {
        for len in [0, 1, 27, 28, 29, 100] {
            let data: Vec<u8> = (0..len).collect();
            let mut sealed = data.clone();
            let (symbols, hash) = seal_block(&mut sealed, 16);
            assert_eq!(sealed.len(), usize::from(symbols) * 16);
            assert_eq!(verify_block(&sealed), Ok((&data[..], hash)));
        }
    }

    #[test]
    fn flipped_bit_in_data_or_trailer_of_a_block_is_detected() {
        let mut sealed = b"what was sent".to_vec();
        seal_block(&mut sealed, 56);
        for byte in (0..13).chain(sealed.len() - TRAILER..sealed.len()) {
            for bit in 0..8 {
                sealed[byte] ^= 1 << bit;
                assert!(verify_block(&sealed).is_err(), "byte {byte}, bit {bit}");
                sealed[byte] ^= 1 << bit;
            }
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let mut sealed = vec![7; 100];
        seal_block(&mut sealed, 8);
        for have in 0..sealed.len() {
            assert!(verify_block(&sealed[..have]).is_err(), "{have} bytes");
        }
    }

    #[test]
    fn root_hash_does_not_depend_on_the_block_order() {
        let geometry =
            Geometry { stream_len: Some(28 * 3), manifest_len: 1, symbol_size: 16, symbols_per_block: 4 };
        let hashes: Vec<Hash> = (0..3).map(|n| hash_of(&[n])).collect();
        let root = |order: [u32; 3]| {
            let mut hasher = RootHasher::new(geometry);
            for index in order {
                assert_eq!(hasher.root(), None);
                hasher.push(index, hashes[index as usize]);
            }
            hasher.root()
        };
        assert!(root([0, 1, 2]).is_some());
        assert_eq!(root([0, 1, 2]), root([2, 0, 1]));
    }

    #[test]
    fn root_hash_changes_with_a_block_hash_or_the_stream_length() {
        let geometry =
            Geometry { stream_len: Some(28), manifest_len: 1, symbol_size: 16, symbols_per_block: 4 };
        let root = |geometry, byte| {
            let mut hasher = RootHasher::new(geometry);
            hasher.push(0, hash_of(&[byte]));
            hasher.root()
        };
        assert_ne!(root(geometry, 1), root(geometry, 2));
        assert_ne!(root(geometry, 1), root(Geometry { stream_len: Some(27), ..geometry }, 1));
    }
}
