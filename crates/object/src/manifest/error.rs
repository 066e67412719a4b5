//! Errors of manifests and of their paths.

use super::{
    MAX_ATTRIBUTES, MAX_DEPTH, MAX_ENTRIES, MAX_HOLES, MAX_NAME_LEN, MAX_PATH_LEN, MAX_TEXT,
    MAX_UNNAMED_DIRS, MAX_VOID, MIN_ENTRY, STATE_DIR, VERSION,
};
use crate::metadata::MetadataError;

/// Error in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path or one of its components is empty.
    #[error("a name is empty")]
    Empty,
    /// The path starts with `/`.
    #[error("the path is absolute")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("the path contains \".\" or \"..\"")]
    Dots,
    /// The path contains a NUL byte.
    #[error("the path contains a NUL byte")]
    Nul,
    /// The path or one of its components is too long.
    #[error("the path has more than {MAX_PATH_LEN} bytes, or a name in it more than {MAX_NAME_LEN}")]
    TooLong,
    /// Too many directories are above the path.
    #[error("the path is below more than {MAX_DEPTH} directories")]
    TooDeep,
    /// The path is inside the receiver's state directory.
    #[error("\"{STATE_DIR}\" is the name under which receivers store their state; rename this entry")]
    Reserved,
}

/// Reason why bytes or entries are not a valid manifest. Entries are numbered from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The bytes end too early.
    #[error("it ends at byte {at} in the middle of an entry")]
    Truncated {
        /// Offset of the end.
        at: usize,
    },
    /// Bytes follow the last entry.
    #[error("{0} bytes follow the last entry")]
    Trailing(usize),
    /// The manifest has an unknown version.
    #[error(
        "it has version {0}, but this program reads only versions 1 to {VERSION}; update faircast on the older host"
    )]
    Version(u8),
    /// The manifest has a version or a feature that it does not use.
    #[error("it has version {0} without a feature of that version")]
    Unneeded(u8),
    /// The manifest has unknown features.
    #[error("it has unknown features ({0:#x}); update faircast on this host")]
    Features(u8),
    /// The chunk table has an unknown size class.
    #[error("its chunk table has the unknown size class {0}")]
    ChunkSizes(u8),
    /// The chunks of a file are too long, too many, or do not add up to its size.
    #[error("entry {entry}: its chunks are too long, too many, or do not add up to the size of the file")]
    Chunk {
        /// Number of the entry.
        entry: usize,
    },
    /// The number of holes is out of range.
    #[error("it has {0} holes; a table of holes has 1 to {MAX_HOLES}")]
    TooManyHoles(u64),
    /// The holes of an entry overlap, are out of order or empty, or do not lie inside a file.
    #[error("entry {entry}: its holes are not separate ranges of a file, in order")]
    Hole {
        /// Number of the entry.
        entry: usize,
    },
    /// A number has more than 64 bits, or is not in its shortest form.
    #[error("the number at byte {at} is not in its shortest form")]
    Number {
        /// Offset of the number.
        at: usize,
    },
    /// The manifest has more entries than are allowed, or more than can be encoded in its bytes.
    #[error("{0} entries; at most {MAX_ENTRIES} can be sent, and each takes {MIN_ENTRY} bytes or more")]
    TooMany(u64),
    /// All paths together are too long.
    #[error("the paths take more than {MAX_TEXT} bytes together")]
    TooMuchText,
    /// Too many directories are not entries.
    #[error(
        "entry {entry}: the paths up to this entry contain more than {MAX_UNNAMED_DIRS} directories that are not entries"
    )]
    TooManyDirs {
        /// Number of the entry.
        entry: usize,
    },
    /// A path or link target in a manifest of version 1 is not UTF-8.
    #[error("entry {entry}: the path or target is not UTF-8")]
    NotUtf8 {
        /// Number of the entry.
        entry: usize,
    },
    /// A path that is not allowed.
    #[error("entry {entry}: {why}")]
    Path {
        /// Number of the entry.
        entry: usize,
        /// Error in the path.
        why: PathError,
    },
    /// A link target is empty, is too long or contains a NUL byte.
    #[error("entry {entry}: the target of the link is empty, too long or has a NUL byte")]
    Target {
        /// Number of the entry.
        entry: usize,
    },
    /// An entry does not follow the preceding one in sort order: it is a duplicate or out of order.
    #[error("entry {entry}: does not follow the preceding entry in sort order")]
    Order {
        /// Number of the entry.
        entry: usize,
    },
    /// An entry is below an entry that is not a directory.
    #[error("entry {entry}: is below \"{above}\", which is not a directory")]
    BelowFile {
        /// Number of the entry.
        entry: usize,
        /// Path of the entry above it.
        above: String,
    },
    /// An unknown kind of entry.
    #[error("entry {entry}: unknown kind {kind}")]
    Kind {
        /// Number of the entry.
        entry: usize,
        /// The kind.
        kind: u8,
    },
    /// The mode has more bits than this version allows.
    #[error("entry {entry}: mode {mode:o} has bits that are not allowed")]
    Mode {
        /// Number of the entry.
        entry: usize,
        /// The mode.
        mode: u64,
    },
    /// A hard link is invalid: it does not refer to a preceding file, or it has a mode, time, owner or attributes.
    #[error(
        "entry {entry}: a hard link to an entry that is not an earlier file, or a hard link with metadata"
    )]
    HardLink {
        /// Number of the entry.
        entry: usize,
    },
    /// An owner or attributes that are not allowed.
    #[error("entry {entry}: {why}")]
    Metadata {
        /// Number of the entry.
        entry: usize,
        /// Error in the metadata.
        why: MetadataError,
    },
    /// The attributes of all entries together are too long.
    #[error("the attributes of all files take more than {MAX_ATTRIBUTES} bytes together")]
    TooManyAttributes,
    /// Too many blocks lie in holes.
    #[error("more than {MAX_VOID} blocks lie in holes of files; use larger datagrams")]
    TooMuchVoid,
    /// A stream is not the only entry.
    #[error("entry {entry}: a stream has to be the only entry")]
    StreamNotAlone {
        /// Number of the entry.
        entry: usize,
    },
    /// The sum of all file sizes is 2^63 bytes or more, or does not match the length of the object stream.
    #[error("the sizes of manifest and files do not add up to the length of the object")]
    Sizes,
}
