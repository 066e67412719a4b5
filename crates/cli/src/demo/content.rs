//! Content of the demonstration, and the check of its arrival.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The name of the large file.
const IMAGE: &str = "image.bin";
/// The name of the tree.
const TREE: &str = "tree";
/// Number of text files in the tree.
const NOTES: u32 = 24;

/// The hash of each file of a tree, by path.
pub type Hashes = BTreeMap<PathBuf, blake3::Hash>;

/// Creates a file of `bytes` random bytes and a small tree in `directory`. The tree's files contain `marker`. Returns the paths
/// to send.
///
/// # Errors
/// When a file cannot be written.
pub fn make(directory: &Path, bytes: u64, seed: u64, marker: &str) -> io::Result<Vec<PathBuf>> {
    let image = directory.join(IMAGE);
    write_random(&image, bytes, seed)?;
    let tree = directory.join(TREE);
    for number in 0..NOTES {
        let folder = tree.join(format!("part-{}", number % 3));
        fs::create_dir_all(&folder)?;
        let text = format!("Note {number}. {marker}\n").repeat(1 + number as usize * 40);
        fs::write(folder.join(format!("note-{number}.txt")), text)?;
    }
    fs::write(tree.join("empty"), "")?;
    Ok(vec![image, tree])
}

/// Writes pseudorandom bytes, which cannot be compressed.
fn write_random(path: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    let mut random = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    io::copy(&mut io::Read::take(&mut random, bytes), &mut file)?;
    file.flush()
}

/// Returns the hashes of all files below `directory`. Hidden entries directly in `directory` are omitted.
///
/// # Errors
/// When a file cannot be read.
pub fn hashes(directory: &Path) -> io::Result<Hashes> {
    let mut found = Hashes::new();
    let mut folders = vec![directory.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let relative = path.strip_prefix(directory).expect("it was found below").to_owned();
            if relative.to_string_lossy().starts_with('.') {
                continue; // a receiver's state directory
            }
            if path.is_dir() {
                folders.push(path);
            } else {
                let mut hasher = blake3::Hasher::new();
                hasher.update_reader(File::open(&path)?)?;
                found.insert(relative, hasher.finalize());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_content_and_different_seeds_do_not() {
        let made = |seed| {
            let directory = tempfile::tempdir().expect("a temporary directory");
            make(directory.path(), 100_000, seed, "marker").expect("it is ours");
            hashes(directory.path()).expect("it was just made")
        };
        let one = made(1);
        assert_eq!(one.len(), 1 + NOTES as usize + 1);
        assert_eq!(one, made(1));
        assert_ne!(one, made(2));
    }

    #[test]
    fn single_changed_byte_changes_the_hashes() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        make(directory.path(), 1_000, 1, "marker").expect("it is ours");
        let before = hashes(directory.path()).expect("it was just made");
        let path = directory.path().join(IMAGE);
        let mut bytes = fs::read(&path).expect("it is there");
        bytes[500] ^= 1;
        fs::write(&path, bytes).expect("it is ours");
        assert_ne!(hashes(directory.path()).expect("still there"), before);
    }
}
