//! Errors of objects, with advice.

use super::geometry::{GeometryError, Hash, TransferId};
use super::manifest::{ManifestError, PathError};
use super::names::NameError;
use super::origin::Origin;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Why an object cannot be read, stored or published.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// No space left, or none at the start for all that will come.
    #[error("{path}: {shortage}; free some space or choose another directory", path = path.display(), shortage = shortage(*needed, *available))]
    DiskFull {
        /// Where.
        path: PathBuf,
        /// Bytes still to be written, as far as known.
        needed: u64,
        /// Bytes available there, when they are too few. A file system without inodes, or a quota, may refuse a write although there
        /// are enough.
        available: Option<u64>,
    },
    /// Not allowed.
    #[error("{path}: no permission to {doing}; change its mode or owner, or run as a user who may", path = path.display())]
    Denied {
        /// Path of the object.
        path: PathBuf,
        /// Operation that failed.
        doing: &'static str,
    },
    /// The filesystem takes no changes.
    #[error("{path}: the filesystem is read-only; mount it writable or choose another directory", path = path.display())]
    ReadOnly {
        /// Where.
        path: PathBuf,
    },
    /// The filesystem has no such long names.
    #[error("{path}: the name is too long for this filesystem; choose a shorter output directory or shorten the name at the source", path = path.display())]
    NameTooLong {
        /// The name.
        path: PathBuf,
    },
    /// There is nothing.
    #[error("{path}: no such file or directory", path = path.display())]
    NotFound {
        /// Where.
        path: PathBuf,
    },
    /// Too many files are open.
    #[error("{path}: too many open files; raise the limit (ulimit -n)", path = path.display())]
    TooManyOpenFiles {
        /// Which could not be opened.
        path: PathBuf,
    },
    /// Any other error of the system.
    #[error("{path}: cannot {doing}: {source}", path = path.display())]
    Io {
        /// Path of the object.
        path: PathBuf,
        /// Operation that failed.
        doing: &'static str,
        /// Error of the system.
        source: io::Error,
    },
    /// A file changed while it was being sent.
    #[error("{path}: changed while it was being sent ({change}); send it again when it no longer changes", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Change of the file.
        change: Change,
    },
    /// One of several files changed while they were sent: a block that they share reads differently the second time.
    #[error("{first} to {last}: one of these {files} files changed while it was being sent (other content, same size and time); send them again when they no longer change", first = first.display(), last = last.display())]
    ChangedOneOf {
        /// The first one in the order of sending.
        first: PathBuf,
        /// The last one.
        last: PathBuf,
        /// How many there are.
        files: usize,
    },
    /// Something could not be read, where nothing may be left out.
    #[error("{path}: {reason}", path = path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Reason, and advice.
        reason: String,
    },
    /// A name that is not UTF-8, where only such can be sent.
    #[error("{path}: the name is not UTF-8, and this format has no others; rename it, or send an archive of it", path = path.display())]
    NotUtf8 {
        /// The name, with unreadable bytes replaced.
        path: PathBuf,
    },
    /// A symbolic link that is followed leads to a directory that it lies in.
    #[error("{path}: this symbolic link leads to a directory above it, and following it would not end; remove it, or do not follow links", path = path.display())]
    LinkToOwnDirectory {
        /// The link.
        path: PathBuf,
    },
    /// A path that has no name of its own, such as `/`.
    #[error("{path}: has no name of its own; name a directory below it", path = path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// Two paths would arrive under the same name.
    #[error("{first} and {second} would both arrive as \"{name}\"; send them one by one", first = first.display(), second = second.display())]
    NameClash {
        /// The common name.
        name: String,
        /// First path.
        first: PathBuf,
        /// Second path.
        second: PathBuf,
    },
    /// Files were withdrawn by the source, and the output is no directory.
    #[error(
        "files changed at the source while they were sent, and this output takes all files or none; receive into a directory, or send again when they no longer change"
    )]
    Withdrawn,
    /// A block has changed with each file in it that was withdrawn, and cannot change again.
    #[error(
        "too many files that share block {index} changed while they were being sent; send them again when they no longer change"
    )]
    WithdrawnTooOften {
        /// Which block.
        index: u32,
    },
    /// A name that cannot be sent.
    #[error("{path}: {why}", path = path.display())]
    Name {
        /// The path at the source.
        path: PathBuf,
        /// Error in its name.
        why: PathError,
    },
    /// Neither a file, nor a directory, nor a symbolic link.
    #[error("{path}: is neither a file nor a directory; use `-` to send what a pipe delivers", path = path.display())]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// No path was given.
    #[error("nothing to send; name a file or directory")]
    Nothing,
    /// The manifest is not acceptable.
    #[error("the manifest is refused: {0}")]
    Manifest(#[from] ManifestError),
    /// A name is not acceptable here.
    #[error("a name is refused: {0}")]
    NameHere(#[from] NameError),
    /// The geometry is not acceptable.
    #[error("the geometry is refused: {0}")]
    Geometry(#[from] GeometryError),
    /// The manifest is not the one that the transfer is named after.
    #[error(
        "the manifest belongs to transfer {found} and not to {expected}; the source is faulty or not genuine"
    )]
    OtherManifest {
        /// The transfer being received.
        expected: TransferId,
        /// The transfer that the manifest names.
        found: TransferId,
    },
    /// Another receiver has this transfer and directory.
    #[error("{path}: another receiver is receiving this transfer into this directory; stop it or choose another directory", path = path.display())]
    Busy {
        /// The output directory.
        path: PathBuf,
    },
    /// No such block in the object stream.
    #[error("no block {index}: there are {blocks}")]
    NoSuchBlock {
        /// Requested index.
        index: u32,
        /// How many there are.
        blocks: u32,
    },
    /// A live stream has had as many blocks as can be numbered.
    #[error(
        "the stream has reached the maximum of {blocks} blocks and ends here; start the source again for the rest, with larger datagrams for a longer stream"
    )]
    StreamTooLong {
        /// How many blocks it has had.
        blocks: u32,
    },
    /// A block with more or less data than its place in the object stream has.
    #[error("block {index} has {found} bytes where {expected} belong; the source is faulty or not genuine")]
    BlockLength {
        /// Which block.
        index: u32,
        /// Bytes that belong there.
        expected: u32,
        /// Bytes it has.
        found: usize,
    },
    /// Two good blocks with the same number and different content: the source changed.
    #[error(
        "block {index} arrived with different content before; the files changed at the source, which has to start again"
    )]
    Conflict {
        /// Which block.
        index: u32,
    },
    /// The end of the stream was announced at two places.
    #[error("the stream ended after {first} bytes and after {second}; the source is faulty or not genuine")]
    TwoEnds {
        /// Known before.
        first: u64,
        /// New value.
        second: u64,
    },
    /// A name would get content of an earlier session than it has.
    #[error("{}: a session that was started at {} has sent it, and this one was started at {}; to accept this one, allow overwriting", .path.display(), date(*.received), date(*.offered))]
    Older {
        /// The name in the output directory.
        path: PathBuf,
        /// Start of the session that brought the present files, in nanoseconds since 1970.
        received: u64,
        /// Start of this session, in nanoseconds since 1970.
        offered: u64,
    },
    /// The rest of the work on files is not needed any more.
    #[error("{path}: stopped while files got their names; run again to finish", path = path.display())]
    Cancelled {
        /// The output directory.
        path: PathBuf,
    },
    /// Directories, names and attributes take more than is allowed.
    #[error(
        "{entries} files, links and directories take {bytes} bytes in addition to their content, more than the {most} that are allowed; allow more, or send an archive of them"
    )]
    TooManyEntries {
        /// How many there are.
        entries: usize,
        /// Bytes that they take, about.
        bytes: u64,
        /// Bytes that are allowed.
        most: u64,
    },
    /// A name would get other content of another source.
    #[error("{}: it came from {received}, and {offered} sends other content under this name; rename one of them, or allow overwriting", .path.display())]
    OtherSource {
        /// The name in the output directory.
        path: PathBuf,
        /// The source of the present files.
        received: Box<Origin>,
        /// The source of this session.
        offered: Box<Origin>,
    },
    /// Not everything is there yet.
    #[error("{missing} of {blocks} blocks are missing")]
    Incomplete {
        /// Missing blocks.
        missing: u32,
        /// All blocks, as far as known.
        blocks: u32,
    },
    /// All blocks are there and not those that the sender has.
    #[error("the blocks have the root {found} instead of {expected}; receive again")]
    Root {
        /// The sender's.
        expected: Hash,
        /// Ours.
        found: Hash,
    },
    /// Something in the output directory is where a received thing must go.
    #[error("{path}: {obstacle}; move it away or choose another directory", path = path.display())]
    InTheWay {
        /// Where.
        path: PathBuf,
        /// Obstacle at the path.
        obstacle: Obstacle,
    },
}

/// A change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// Its size.
    #[error("size {before} before, {now} now")]
    Size {
        /// When the transfer began.
        before: u64,
        /// Now.
        now: u64,
    },
    /// Its time of modification.
    #[error("modified")]
    Modified,
    /// Its content, under the same size and time.
    #[error("other content, same size and time")]
    Content,
    /// Nothing is there.
    #[error("removed")]
    Gone,
    /// It is something else.
    #[error("no longer a regular file")]
    Replaced,
}

/// An obstacle at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A directory where a file must go.
    #[error("a directory is where a file has to go")]
    Directory,
    /// A file where a directory must go.
    #[error("a file is where a directory has to go")]
    File,
    /// A symbolic link where a directory must go; following it could lead anywhere.
    #[error("a symbolic link is where a directory has to go, and links are not followed")]
    Symlink,
    /// Something that is no file, or a file with other names, where a receiver keeps its state.
    #[error("another program has put something here that is not a regular file, or has several names")]
    NotOwn,
}

impl ObjectError {
    /// Whether the stored data and the source contradict each other: receiving again may help.
    pub const fn is_contradiction(&self) -> bool {
        matches!(
            self,
            ObjectError::OtherManifest { .. }
                | ObjectError::NoSuchBlock { .. }
                | ObjectError::BlockLength { .. }
                | ObjectError::Conflict { .. }
                | ObjectError::TwoEnds { .. }
                | ObjectError::Incomplete { .. }
                | ObjectError::Root { .. }
        )
    }

    /// As [`ObjectError::io`], while `left` bytes were still to be written.
    pub fn writing(
        path: impl AsRef<Path>,
        doing: &'static str,
        source: impl Into<io::Error>,
        left: u64,
    ) -> ObjectError {
        match ObjectError::io(path, doing, source) {
            ObjectError::DiskFull { path, available, .. } => {
                ObjectError::DiskFull { path, needed: left, available }
            }
            other => other,
        }
    }

    /// Names what the system reported; `doing` completes "cannot ...". An error of a writer that names its own file stays as it is.
    pub fn io(path: impl AsRef<Path>, doing: &'static str, source: impl Into<io::Error>) -> ObjectError {
        let (path, source) = (path.as_ref().to_path_buf(), source.into());
        let source = match source.downcast::<ObjectError>() {
            Ok(named) => return named,
            Err(source) => source,
        };
        match source.kind() {
            io::ErrorKind::PermissionDenied => ObjectError::Denied { path, doing },
            io::ErrorKind::ReadOnlyFilesystem => ObjectError::ReadOnly { path },
            io::ErrorKind::InvalidFilename => ObjectError::NameTooLong { path },
            io::ErrorKind::NotFound => ObjectError::NotFound { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ObjectError::DiskFull { needed: 0, available: None, path }
            }
            _ if matches!(source.raw_os_error(), Some(EMFILE | ENFILE)) => {
                ObjectError::TooManyOpenFiles { path }
            }
            _ => ObjectError::Io { path, doing, source },
        }
    }
}

fn shortage(needed: u64, available: Option<u64>) -> String {
    match (needed, available) {
        (_, Some(available)) => {
            format!("not enough space: {needed} bytes are needed, {available} are available")
        }
        (0, None) => "no room is left: space, inodes or a quota are used up".to_owned(),
        (_, None) => format!("no room is left for {needed} bytes: space, inodes or a quota are used up"),
    }
}

/// Formats nanoseconds since 1970 as in RFC 3339.
fn date(nanos: u64) -> impl fmt::Display {
    humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_nanos(nanos))
}

const ENFILE: i32 = rustix::io::Errno::NFILE.raw_os_error();
const EMFILE: i32 = rustix::io::Errno::MFILE.raw_os_error();
