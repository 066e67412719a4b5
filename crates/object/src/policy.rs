//! Rules of an output directory: replacement, flushing, and the amount of incomplete content.

use std::time::Duration;

/// Whether file content is flushed to the disk before files get their names.
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
    /// Its source has answered with a random number of the receiver.
    #[default]
    Answer,
    /// The source receives no feedback. Its announcements differ from this host's clock by at most ten minutes, and the output
    /// directory records newer sessions.
    Clock,
}

/// Whether a session may replace content of a later session or of another source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwritePolicy {
    /// Refuse replacement: an earlier session may be a recording, and another source may use the same name by mistake.
    #[default]
    Refuse,
    /// Accept replacement.
    Accept,
}

/// Limits for incomplete content. Content that a receiver is working on always stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeepPartial {
    /// Maximum time since the latest write to a transfer; older transfers are removed. `None` is unlimited.
    pub age: Option<Duration>,
    /// Maximum number of bytes on the disk of all transfers together; the oldest are removed first. `None` is unlimited.
    pub bytes: Option<u64>,
}

impl KeepPartial {
    /// Creates limits: content stays if its latest write is within `age`, up to `bytes` bytes in total.
    #[must_use]
    pub const fn new(age: Option<Duration>, bytes: Option<u64>) -> KeepPartial {
        KeepPartial { age, bytes }
    }
}
