//! Creation of files in a directory of the user, under names that a peer has chosen.

use crate::ObjectError;
use std::fs::{File, OpenOptions, create_dir_all, remove_file, symlink_metadata};
use std::io;
use std::path::Path;

/// Creates a new, empty file for writing. Any object with this name (a file, pipe or link) is removed first. Data is therefore
/// never written through a link that an earlier transfer or another user has made.
pub fn replace(path: &Path) -> io::Result<File> {
    if symlink_metadata(path).is_ok_and(|meta| !meta.is_dir()) {
        remove_file(path)?;
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Like `replace`, for the file `name` in `directory`. The directory is created if it does not exist.
pub fn replace_in(directory: &Path, name: &str) -> Result<File, ObjectError> {
    let path = directory.join(name);
    let made = create_dir_all(directory).and_then(|()| replace(&path));
    made.map_err(|error| ObjectError::io(&path, "make the file", error))
}

#[cfg(test)]
mod tests {
    use crate::*;
    use std::io::Write;

    #[test]
    fn new_file_replaces_a_link_without_following_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("precious"), "kept").expect("room");
        std::os::unix::fs::symlink(at("precious"), at("stream")).expect("room for a link");
        std::fs::hard_link(at("precious"), at("twin")).expect("room for a link");
        std::os::unix::fs::symlink(at("nowhere"), at("dangling")).expect("room for a link");
        for name in ["stream", "twin", "dangling", "new"] {
            replace(&at(name)).and_then(|mut file| file.write_all(b"stream")).expect(name);
            assert_eq!(std::fs::read(at(name)).expect("it is there"), b"stream");
        }
        assert_eq!(std::fs::read(at("precious")).expect("it is there"), b"kept");
        assert!(!at("nowhere").exists());
        std::fs::create_dir(at("directory")).expect("room");
        assert!(replace(&at("directory")).is_err());
    }
}
