//! Access to files by descriptor. The most recently used files stay open.

use std::fs::File;

/// Maximum number of files that an object stream or store keeps open.
const OPEN_FILES: usize = 64;

/// The most recently used files, by entry of the manifest.
#[derive(Debug, Default)]
pub(crate) struct OpenFiles {
    /// Most recently used first.
    files: Vec<(u32, File)>,
}

impl OpenFiles {
    /// Returns the file of this entry; opens it with `open` if it is not open yet.
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

    /// Closes all files.
    pub(crate) fn clear(&mut self) {
        self.files.clear();
    }
}
