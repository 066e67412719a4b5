//! Output of the content of the only file of an object, without the file's name.

use crate::error::{ConfigError, Error};
use crate::object::{Kind, Manifest, ObjectError};
use std::io::{self, Write};

/// Accepts an object stream from its beginning. Writes the bytes after the manifest, if the manifest names exactly one file.
pub(super) struct OneFile<W> {
    to: W,
    manifest: Vec<u8>,
    /// Number of manifest bytes that have not arrived yet.
    missing: usize,
}

/// The error that an object does not have exactly one file.
#[derive(Debug, thiserror::Error)]
#[error("there are {0} files")]
struct NotOne(u64);

impl<W: Write> OneFile<W> {
    pub(super) fn new(to: W, manifest_len: u32) -> OneFile<W> {
        OneFile { to, manifest: Vec::new(), missing: manifest_len as usize }
    }
}

impl<W: Write> Write for OneFile<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.missing == 0 {
            return self.to.write(data);
        }
        let taken = self.missing.min(data.len());
        self.manifest.extend_from_slice(&data[..taken]);
        self.missing -= taken;
        if self.missing == 0 {
            let manifest = std::mem::take(&mut self.manifest);
            let manifest = Manifest::decode(&manifest).map_err(io::Error::other)?;
            let is_tree = manifest.entries().iter().any(|entry| entry.kind == Kind::Dir);
            match manifest.counts().files {
                1 if !is_tree => {}
                files => return Err(io::Error::other(NotOne(files))),
            }
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Converts a write error, and recognizes the error that an object does not have exactly one file.
pub(super) fn explained(error: ObjectError) -> Error {
    let ObjectError::Io { source, .. } = &error else { return error.into() };
    match source.get_ref().and_then(|cause| cause.downcast_ref::<NotOne>()) {
        Some(NotOne(files)) => Error::Config(ConfigError::NotAStream { files: *files }),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Entry;

    fn entry(path: &str, kind: Kind) -> Entry {
        Entry::new(path, kind, 0o644, 0)
    }

    /// Writes an object stream with these entries and this content, in parts of `piece` bytes. Returns the output.
    fn written(entries: Vec<Entry>, content: &[u8], piece: usize) -> Result<Vec<u8>, Error> {
        let mut stream = Manifest::new(entries).expect("it is in order").encode();
        let manifest_len = stream.len() as u32;
        stream.extend_from_slice(content);
        let mut out = OneFile::new(Vec::new(), manifest_len);
        for piece in stream.chunks(piece) {
            out.write_all(piece).map_err(|e| explained(ObjectError::io("-", "write the stream", e)))?;
        }
        Ok(out.to)
    }

    #[test]
    fn one_file_is_written_without_its_manifest_for_any_chunk_size() {
        for piece in [1, 3, 7, 1000] {
            let entries = vec![entry("b", Kind::File { size: 3 })];
            assert_eq!(written(entries, b"abc", piece).expect("one file"), b"abc");
        }
    }

    #[test]
    fn only_an_object_of_exactly_one_file_is_written_as_a_stream() {
        let two = vec![entry("a", Kind::File { size: 1 }), entry("b", Kind::File { size: 2 })];
        assert!(matches!(written(two, b"abc", 5), Err(Error::Config(ConfigError::NotAStream { files: 2 }))));
        assert!(matches!(
            written(vec![entry("a", Kind::Dir)], b"", 5),
            Err(Error::Config(ConfigError::NotAStream { files: 0 }))
        ));
        let tree = vec![entry("a", Kind::Dir), entry("a/b", Kind::File { size: 3 })];
        assert!(matches!(written(tree, b"abc", 5), Err(Error::Config(ConfigError::NotAStream { files: 1 }))));
    }
}
