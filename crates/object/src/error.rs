//! Errors of objects, with advice.

use super::device_fault::DeviceFault;
use super::geometry::{GeometryError, Hash, TransferId};
use super::manifest::{ManifestError, PathError};
use super::names::NameError;
use super::origin::Origin;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Reason why an object cannot be read, stored or published.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The disk is full. At the start of a transfer: the free space is too small for the whole transfer.
    #[error("{path}: {shortage}; free some space or choose another directory", path = path.display(), shortage = shortage(*needed, *available))]
    DiskFull {
        /// Path of the object.
        path: PathBuf,
        /// Bytes still to be written, as far as their number is known.
        needed: u64,
        /// Bytes available on the disk, if they do not suffice. A filesystem without free inodes, or a quota, may refuse a write
        /// although enough bytes are available.
        available: Option<u64>,
    },
    /// A backup is not on the filesystem of the output directory.
    #[error("{path}: is not on the filesystem of {of}, so files cannot be moved there; choose a directory on it", path = path.display(), of = of.display())]
    OtherFilesystem {
        /// Path of the backup.
        path: PathBuf,
        /// Path of the output directory.
        of: PathBuf,
    },
    /// The system denied permission.
    #[error("{path}: no permission to {doing}; change its mode or owner, or run as a user with permission", path = path.display())]
    Denied {
        /// Path of the object.
        path: PathBuf,
        /// Operation that failed.
        doing: &'static str,
    },
    /// The filesystem is read-only.
    #[error("{path}: the filesystem is read-only; mount it writable or choose another directory", path = path.display())]
    ReadOnly {
        /// Path of the object.
        path: PathBuf,
    },
    /// The name is longer than the filesystem allows.
    #[error("{path}: the name is too long for this filesystem; choose a shorter output directory or shorten the name at the source", path = path.display())]
    NameTooLong {
        /// The name.
        path: PathBuf,
    },
    /// The path does not exist.
    #[error("{path}: no such file or directory", path = path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// Too many files are open.
    #[error("{path}: too many open files; raise the limit (ulimit -n)", path = path.display())]
    TooManyOpenFiles {
        /// Path of the file that could not be opened.
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
    /// One of several files changed while they were sent: a block with bytes of these files had different content when it was
    /// read again.
    #[error("{first} to {last}: one of these {files} files changed while it was being sent (other content, same size and time); send them again when they no longer change", first = first.display(), last = last.display())]
    ChangedOneOf {
        /// First of these files in the order of sending.
        first: PathBuf,
        /// Last of these files.
        last: PathBuf,
        /// Number of these files.
        files: usize,
    },
    /// An entry could not be read, and the source may not leave out entries.
    #[error("{path}: {reason}", path = path.display())]
    Unreadable {
        /// Path or name of the entry.
        path: PathBuf,
        /// Reason, and advice.
        reason: String,
    },
    /// The name is not UTF-8, and only UTF-8 names can be sent.
    #[error("{path}: the name is not UTF-8, but this format carries only UTF-8 names; rename it, or send an archive of it", path = path.display())]
    NotUtf8 {
        /// The name, with unreadable bytes replaced.
        path: PathBuf,
    },
    /// A followed symbolic link leads to one of the directories that contain the link.
    #[error("{path}: this symbolic link leads to a directory that contains it, so following it would never end; remove the link, or do not follow links", path = path.display())]
    LinkToOwnDirectory {
        /// The link.
        path: PathBuf,
    },
    /// The path has no last component, such as `/`.
    #[error("{path}: this path has no name; give the path of a directory below it", path = path.display())]
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
    /// The source has withdrawn files, and the output is not a directory, so it cannot omit these files.
    #[error(
        "files changed at the source while they were sent, and this output takes all files or none; receive into a directory, or send again when they no longer change"
    )]
    Withdrawn,
    /// A block with bytes of several files has changed too often: it has no unused symbol IDs left.
    #[error(
        "too many files that share block {index} changed while they were being sent; send them again when they no longer change"
    )]
    WithdrawnTooOften {
        /// Number of the block.
        index: u32,
    },
    /// The name cannot be sent.
    #[error("{path}: {why}", path = path.display())]
    Name {
        /// The path at the source.
        path: PathBuf,
        /// Error in its name.
        why: PathError,
    },
    /// A block device cannot be sent, or cannot take the content.
    #[error("{path}: {why}", path = path.display())]
    Device {
        /// The device.
        path: PathBuf,
        /// The reason.
        why: DeviceFault,
    },
    /// The path is not a file, a directory or a symbolic link.
    #[error("{path}: is neither a file nor a directory; use `-` to send the output of a pipe", path = path.display())]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// No path was given.
    #[error("nothing to send; name a file or directory")]
    Nothing,
    /// The manifest is invalid.
    #[error("the manifest is refused: {0}")]
    Manifest(#[from] ManifestError),
    /// A name cannot be used at the receiver.
    #[error("a name is refused: {0}")]
    NameHere(#[from] NameError),
    /// The geometry is invalid.
    #[error("the geometry is refused: {0}")]
    Geometry(#[from] GeometryError),
    /// The transfer ID computed from the manifest differs from the announced ID.
    #[error(
        "the manifest belongs to transfer {found} and not to {expected}; the source is faulty or not genuine"
    )]
    OtherManifest {
        /// The transfer being received.
        expected: TransferId,
        /// The transfer ID of the received manifest.
        found: TransferId,
    },
    /// Another receiver is using this transfer and directory.
    #[error("{path}: another receiver is receiving this transfer into this directory; stop it or choose another directory", path = path.display())]
    Busy {
        /// The output directory.
        path: PathBuf,
    },
    /// The object stream has no such block.
    #[error("there is no block {index}: the object stream has {blocks} blocks")]
    NoSuchBlock {
        /// Requested index.
        index: u32,
        /// Number of blocks.
        blocks: u32,
    },
    /// A live stream has reached the maximum number of blocks.
    #[error(
        "the stream has reached the maximum of {blocks} blocks and ends here; start the source again for the rest, with larger datagrams for a longer stream"
    )]
    StreamTooLong {
        /// Number of blocks of the stream.
        blocks: u32,
    },
    /// The length of the data does not fit the position of the block in the object stream.
    #[error("block {index} has {found} bytes instead of {expected}; the source is faulty or not genuine")]
    BlockLength {
        /// Number of the block.
        index: u32,
        /// Bytes of a block at this position.
        expected: u32,
        /// Bytes of the data.
        found: usize,
    },
    /// Two valid blocks have the same number and different content, because the files changed at the source.
    #[error(
        "block {index} arrived with different content before; the files changed at the source, which has to start again"
    )]
    Conflict {
        /// Number of the block.
        index: u32,
    },
    /// The source announced two different lengths of the stream.
    #[error(
        "the stream was announced to end after {first} bytes, and later after {second} bytes; the source is faulty or not genuine"
    )]
    TwoEnds {
        /// Length that was announced first.
        first: u64,
        /// Length that was announced now.
        second: u64,
    },
    /// The content under a name is of a later session than the received session.
    #[error("{}: the present content is from a session that was started at {}, but this session was started at {}, which is earlier; to accept it, allow overwriting", .path.display(), date(*.received), date(*.offered))]
    Older {
        /// The name in the output directory.
        path: PathBuf,
        /// Start of the session that sent the stored files, in nanoseconds since 1970.
        received: u64,
        /// Start of this session, in nanoseconds since 1970.
        offered: u64,
    },
    /// The work on files was cancelled before it was complete.
    #[error("{path}: the work on files was cancelled before it was complete; run again to finish", path = path.display())]
    Cancelled {
        /// The output directory.
        path: PathBuf,
    },
    /// Directories, names and attributes take more space than allowed.
    #[error(
        "{entries} files, links and directories take {bytes} bytes in addition to their content, but only {most} bytes are allowed; raise the limit, or send an archive of them"
    )]
    TooManyEntries {
        /// Number of entries.
        entries: usize,
        /// Approximate number of bytes that the entries take.
        bytes: u64,
        /// Bytes that are allowed.
        most: u64,
    },
    /// A name has other content of another source.
    #[error("{}: it came from {received}, and {offered} sends other content under this name; rename one of them, or allow overwriting", .path.display())]
    OtherSource {
        /// The name in the output directory.
        path: PathBuf,
        /// The source of the present files.
        received: Box<Origin>,
        /// The source of this session.
        offered: Box<Origin>,
    },
    /// Blocks are missing.
    #[error("{missing} of {blocks} blocks are missing")]
    Incomplete {
        /// Number of missing blocks.
        missing: u32,
        /// Number of all blocks, as far as known.
        blocks: u32,
    },
    /// A file of the output directory changed while this session used its content.
    #[error("{path}: changed while its content was compared with the source's; receive again", path = path.display())]
    ChangedInPlace {
        /// The file.
        path: PathBuf,
    },
    /// All blocks are stored, but their root hash differs from the source's root hash.
    #[error("the blocks have the root {found} instead of {expected}; receive again")]
    Root {
        /// Root of the source.
        expected: Hash,
        /// Root of the stored blocks.
        found: Hash,
    },
    /// An object in the output directory blocks the path of a received entry.
    #[error("{path}: {obstacle}; move it away or choose another directory", path = path.display())]
    InTheWay {
        /// The path.
        path: PathBuf,
        /// Obstacle at the path.
        obstacle: Obstacle,
    },
}

/// A change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Change {
    /// Its size changed.
    #[error("size {before} before, {now} now")]
    Size {
        /// Size at the start of the transfer.
        before: u64,
        /// Present size.
        now: u64,
    },
    /// Its time of modification changed.
    #[error("modified")]
    Modified,
    /// The content of the file changed; its size and time of modification did not.
    #[error("other content, same size and time")]
    Content,
    /// It does not exist.
    #[error("removed")]
    Gone,
    /// It was replaced by another object.
    #[error("no longer a regular file")]
    Replaced,
}

/// An obstacle at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A directory where a file must go.
    #[error("a directory exists where a file must be written")]
    Directory,
    /// A file where a directory must go.
    #[error("a file exists where a directory must be created")]
    File,
    /// A symbolic link in place of a directory; the link could lead to any other directory.
    #[error("a symbolic link exists where a directory must be created, and links are not followed")]
    Symlink,
    /// An object in place of a state file of the receiver: either not a regular file, or a file with several names.
    #[error("another program has put an object here that is not a regular file or has several names")]
    NotOwn,
}

impl ObjectError {
    /// Returns whether the stored data and the source's data contradict each other. Receiving the data again may then resolve the
    /// contradiction.
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
                | ObjectError::ChangedInPlace { .. }
        )
    }

    /// Like [`ObjectError::io`], for a failed write with `left` bytes still to be written.
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

    /// Creates the error of a failed system call; `doing` completes the phrase "cannot ...". If `source` already contains an
    /// `ObjectError`, returns the contained error unchanged.
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
