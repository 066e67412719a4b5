//! Policies of an output directory: replacement of content, flushing, and limits for incomplete content.

use std::path::PathBuf;
use std::time::Duration;

/// Whether a file's content is flushed to the disk before the file gets its final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Leave flushing to the system.
    #[default]
    Fast,
    /// Flush each file first.
    Synced,
}

/// Evidence that a session is running now and is not a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayPolicy {
    /// Its source has answered, and the answer contains a random number that this receiver chose.
    #[default]
    Answer,
    /// Its announcements differ from this host's clock by at most ten minutes, and the output directory records newer sessions.
    /// Its source receives no feedback and cannot answer.
    Clock,
}

/// Whether a session may replace content of a later session or of another source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwritePolicy {
    /// Refuse replacement, because an earlier session may be a recording, and another source may use the same name by mistake.
    #[default]
    Refuse,
    /// Accept replacement.
    Accept,
}

/// Treatment of files that exist in received directories and that the source does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extraneous {
    /// These files stay.
    #[default]
    Keep,
    /// These files are deleted, if both the source and the receiver select this.
    Delete,
}

impl Extraneous {
    /// Returns `Delete` if both select it.
    pub(crate) fn and(self, other: Extraneous) -> Extraneous {
        match (self, other) {
            (Extraneous::Delete, Extraneous::Delete) => Extraneous::Delete,
            _ => Extraneous::Keep,
        }
    }
}

/// Treatment of files that exist in an output directory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Existing {
    /// Treatment of files that the source does not have.
    pub extraneous: Extraneous,
    /// Directory to which replaced and deleted files are moved, under their paths in the output directory. It must be on the
    /// filesystem of the output directory. If `None`, these files are removed.
    pub backup: Option<PathBuf>,
}

impl Existing {
    /// Creates a treatment.
    #[must_use]
    pub const fn new(extraneous: Extraneous, backup: Option<PathBuf>) -> Existing {
        Existing { extraneous, backup }
    }
}

/// Limits for incomplete content. Content of a transfer that a receiver is working on is never removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeepPartial {
    /// Maximum time since the latest write to an incomplete transfer; older transfers are removed. `None` is unlimited.
    pub age: Option<Duration>,
    /// Maximum number of bytes that all incomplete transfers together take on the disk; the oldest transfers are removed first.
    /// `None` is unlimited.
    pub bytes: Option<u64>,
}

impl KeepPartial {
    /// Creates limits: content not written to for longer than `age` is removed, and the rest may take up to `bytes` bytes in
    /// total.
    #[must_use]
    pub const fn new(age: Option<Duration>, bytes: Option<u64>) -> KeepPartial {
        KeepPartial { age, bytes }
    }
}
