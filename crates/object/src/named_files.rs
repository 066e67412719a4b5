//! Files of a source for formats that send each file by itself, under a name of text.

use super::error::ObjectError;
use super::manifest::Kind;
use super::object_stream::ObjectStream;
use super::walk::{HardLinks, Reading};
use std::path::PathBuf;

/// Files to send, in a fixed order. Names and trees follow the rules of [`ObjectStream`].
#[derive(Debug)]
pub struct NamedFiles {
    stream: ObjectStream,
    files: Vec<NamedFile>,
}

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Relative path, with slashes.
    pub name: String,
    /// Length, in bytes.
    pub size: u64,
    /// Number in the manifest.
    entry: u32,
}

impl NamedFiles {
    /// Finds the files to send. Returns also a warning for each link and special file, which `format` does not support.
    ///
    /// # Errors
    /// If a file cannot be read or has no name of text, or if there is no file.
    pub fn open(paths: &[PathBuf], format: &str) -> Result<(NamedFiles, Vec<String>), ObjectError> {
        let reading = Reading { hard_links: HardLinks::AsFiles, ..Reading::default() };
        // The division into blocks is not used.
        let stream = ObjectStream::open_with(paths, &reading, 1_024, 256)?;
        // These formats cannot express that a file is left out.
        if let Some(first) = stream.left_out().first() {
            let (path, reason) = (PathBuf::from(&first.path), first.reason.clone());
            return Err(ObjectError::Unreadable { path, reason });
        }
        let special = stream.skipped().iter().map(|skipped| skipped.path.display());
        let mut warnings: Vec<String> =
            special.map(|path| format!("{path} is not a file, so it is not sent")).collect();
        let mut files = Vec::new();
        for (number, entry) in (0..).zip(stream.manifest().entries()) {
            match entry.kind {
                Kind::File { size } => {
                    let not_text = || ObjectError::NotUtf8 { path: entry.path.clone().into() };
                    let name = entry.path.to_str().ok_or_else(not_text)?.to_owned();
                    files.push(NamedFile { name, size, entry: number });
                }
                Kind::Symlink { .. } => {
                    let name = entry.name();
                    warnings.push(format!(
                        "{name} is a symbolic link, which {format} does not support; it is not sent"
                    ));
                }
                Kind::Dir | Kind::Stream | Kind::HardLink { .. } => {}
            }
        }
        if files.is_empty() {
            return Err(ObjectError::Nothing);
        }
        Ok((NamedFiles { stream, files }, warnings))
    }

    /// Returns the files.
    pub fn files(&self) -> &[NamedFile] {
        &self.files
    }

    /// Returns the path of a file on this host.
    pub fn path(&self, file: usize) -> PathBuf {
        self.stream.path_of(&self.stream.manifest().entries()[self.files[file].entry as usize])
    }

    /// Reads from a file.
    ///
    /// # Errors
    /// If the file has changed, is shorter than expected, or cannot be read.
    pub fn read(&mut self, file: usize, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        self.stream.read_file(self.files[file].entry, offset, into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn named_files_are_read_and_changes_are_errors() {
        let at = tempfile::tempdir().expect("a temporary directory");
        let tree = at.path().join("tree");
        fs::create_dir_all(tree.join("deep")).expect("ours");
        fs::write(tree.join("deep/file"), b"0123456789").expect("ours");
        fs::write(tree.join("empty"), b"").expect("ours");
        std::os::unix::fs::symlink("empty", tree.join("link")).expect("ours");
        let (mut files, warnings) = NamedFiles::open(std::slice::from_ref(&tree), "X").expect("readable");
        let names: Vec<(&str, u64)> =
            files.files().iter().map(|file| (file.name.as_str(), file.size)).collect();
        assert_eq!(names, [("tree/deep/file", 10), ("tree/empty", 0)]);
        assert!(matches!(warnings.as_slice(), [one] if one.contains("link") && one.contains('X')));
        assert_eq!(files.path(0), tree.join("deep/file"));
        let mut bytes = [0; 4];
        files.read(0, 3, &mut bytes).expect("it has these bytes");
        assert_eq!(&bytes, b"3456");
        fs::write(tree.join("deep/file"), b"0123").expect("ours");
        let changed = files.read(0, 0, &mut bytes).expect_err("it is shorter now");
        assert!(matches!(changed, ObjectError::Changed { .. }), "{changed}");
        fs::remove_file(tree.join("link")).expect("ours");
        fs::remove_file(tree.join("empty")).expect("ours");
        fs::remove_file(tree.join("deep/file")).expect("ours");
        assert!(matches!(NamedFiles::open(&[tree], "X"), Err(ObjectError::Nothing)));
    }
}
