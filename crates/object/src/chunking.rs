//! Division of bytes into chunks whose borders depend on their content (FastCDC, version of 2020). Inserted or removed bytes change
//! only the chunks around them.

use crate::error::ObjectError;
use crate::manifest::chunks::{Chunk, ChunkSizes, Chunks};
use crate::manifest::{Entry, Manifest};
use fastcdc::v2020::FastCDC;

/// Minimum number of bytes that are read at a time.
pub(crate) const READ: usize = 1 << 20;

/// Whether the manifest has a chunk table, so that receivers reuse the unchanged parts of changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delta {
    /// Without a chunk table.
    #[default]
    Off,
    /// With a chunk table. The source reads all content before the session.
    On,
}

/// Divides bytes into chunks and calls `each` for each chunk. `read` fills a buffer from an offset, and returns fewer bytes than
/// fit only at the end.
pub(crate) fn cut<E>(
    sizes: ChunkSizes,
    mut read: impl FnMut(&mut [u8], u64) -> Result<usize, E>,
    mut each: impl FnMut(Chunk, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let [smallest, average, largest] =
        [sizes.smallest(), sizes.average(), sizes.largest()].map(|size| size as usize);
    let mut buf = vec![0; largest + READ.max(largest)];
    let (mut start, mut end, mut at, mut is_ended) = (0, 0, 0, false);
    loop {
        if end - start < largest && !is_ended {
            buf.copy_within(start..end, 0);
            (start, end) = (0, end - start);
            let have = read(&mut buf[end..], at)?;
            is_ended = have < buf.len() - end;
            (end, at) = (end + have, at + have as u64);
        }
        if start == end {
            return Ok(());
        }
        let rest = &buf[start..end];
        let chunker = FastCDC::new(rest, smallest, average, largest);
        let (_, len) = chunker.cut(0, rest.len());
        let bytes = &rest[..len];
        each(Chunk::of(bytes), bytes)?;
        start += len;
    }
}

/// Returns the manifest with a chunk table. `read` fills a buffer from an offset of a file. A file that cannot be read gets chunks
/// that no receiver has; the session withdraws such a file.
pub(crate) fn with_chunks(
    manifest: Manifest,
    mut read: impl FnMut(&Entry, &mut [u8], u64) -> Result<usize, ObjectError>,
) -> Manifest {
    let Some(sizes) = ChunkSizes::for_content(manifest.content_len()) else { return manifest };
    let mut all = Vec::new();
    for entry in manifest.entries().iter().filter(|entry| sizes.include(entry)) {
        let mut left = entry.size();
        let read = |buf: &mut [u8], at: u64| {
            let len = (entry.size() - at).min(buf.len() as u64) as usize;
            read(entry, &mut buf[..len], at)
        };
        let each = |chunk: Chunk, _: &[u8]| {
            all.push(chunk);
            left -= u64::from(chunk.len);
            Ok(())
        };
        cut(sizes, read, each).ok(); // the remainder follows
        while left > 0 {
            let len = left.min(sizes.largest().into()) as u32;
            all.push(Chunk { hash: 0, len });
            left -= u64::from(len);
        }
    }
    manifest.with_chunks(Chunks { sizes, all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;

    fn bytes(len: usize, seed: u64) -> Vec<u8> {
        let mut rng = Rng::new(seed, 0);
        (0..len).map(|_| rng.bits() as u8).collect()
    }

    fn chunks(bytes: &[u8]) -> Vec<Chunk> {
        let sizes = ChunkSizes::for_content(bytes.len() as u64).expect("not too many");
        let mut all = Vec::new();
        let read = |buf: &mut [u8], at: u64| {
            let have = buf.len().min(bytes.len() - at as usize);
            buf[..have].copy_from_slice(&bytes[at as usize..][..have]);
            Ok::<_, ()>(have)
        };
        let each = |chunk: Chunk, content: &[u8]| {
            assert_eq!(chunk.len as usize, content.len());
            all.push(chunk);
            Ok(())
        };
        cut(sizes, read, each).expect("nothing fails");
        assert_eq!(all.iter().map(|chunk| chunk.len as usize).sum::<usize>(), bytes.len());
        all
    }

    /// Returns the number of bytes in chunks of `new` that `old` has not.
    fn changed(old: &[u8], new: &[u8]) -> usize {
        let mut known = chunks(old);
        known.sort_unstable();
        let is_new = |chunk: &Chunk| known.binary_search(chunk).is_err();
        chunks(new).into_iter().filter(is_new).map(|chunk| chunk.len as usize).sum()
    }

    #[test]
    fn change_affects_only_the_chunks_around_it() {
        let old = bytes(5_000_000, 1);
        let mut new = old.clone();
        new[2_000_000] ^= 1;
        assert!((1_024..3 * 16_384).contains(&changed(&old, &new)));
        let inserted = [&old[..1], b"three more bytes", &old[1..]].concat();
        assert!((1_024..3 * 16_384).contains(&changed(&old, &inserted)));
        let removed = [&old[..3_000_000], &old[3_000_007..]].concat();
        assert!((1_024..3 * 16_384).contains(&changed(&old, &removed)));
        let appended = [&old[..], &bytes(50_000, 2)].concat();
        assert!((50_000..50_000 + 3 * 16_384).contains(&changed(&old, &appended)));
        assert_eq!(changed(&old, &old), 0);
    }

    /// Other borders would make signed receipts of earlier sessions unverifiable, and lists of older sources useless.
    #[test]
    fn borders_and_hashes_of_chunks_are_fixed() {
        let found = chunks(&bytes(30_000, 1));
        let lens: Vec<u32> = found.iter().map(|chunk| chunk.len).collect();
        assert_eq!((lens, found[0].hash), (vec![9554, 6814, 5500, 6395, 1737], 12_580_984_934_395_687_617));
    }

    #[test]
    fn number_of_chunks_is_bounded_for_any_length() {
        assert_eq!(ChunkSizes::for_content(0), ChunkSizes::for_content(1 << 32));
        for shift in 12..42 {
            let sizes = ChunkSizes::for_content(1 << shift).expect("at most 4 TiB");
            assert!((1u64 << shift) / u64::from(sizes.average()) <= 1 << 20);
        }
        assert_eq!(ChunkSizes::for_content((1 << 42) + 1), None);
        let zeros = chunks(&vec![0; 1 << 20]);
        assert_eq!(zeros.len(), 64, "equal bytes have no borders, so their chunks have the largest size");
        assert!(chunks(&[]).is_empty());
    }
}
