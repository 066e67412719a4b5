//! Files by descriptor: a few stay open for the next use.

use std::fs::File;

/// How many files an object stream or store keeps open.
const OPEN_FILES: usize = 64;

/// The files used last, by entry of the manifest.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    /// Most recently used first.
    files: Vec<(u32, File)>,
}

impl OpenFiles {
    /// The file of this entry, opened with `open` if it is not at hand.
    pub(crate) fn get<E>(&mut self, entry: u32, open: impl FnOnce() -> Result<File, E>) -> Result<&File, E> {
        match self.files.iter().position(|&(at_hand, _)| at_hand == entry) {
            Some(0) => {}
            Some(n) => self.files[..=n].rotate_right(1),
            None => {
                let file = open()?;
                self.files.truncate(OPEN_FILES - 1);
                self.files.insert(0, (entry, file));
            }
        }
        Ok(&self.files[0].1)
    }

    /// Close all.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
    }
}
