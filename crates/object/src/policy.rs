//! Rules of an output directory: replacement, flushing, and the amount of unfinished content.

use std::time::Duration;

/// Whether file content is flushed to the disk before files get their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Leave it to the system.
    #[default]
    Fast,
    /// Flush each file first.
    Synced,
}

/// Why a receiver believes that a session goes on now, and is not somebody's recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReplayPolicy {
    /// Its source has answered a number that the receiver has drawn.
    #[default]
    Answer,
    /// The source receives no feedback: announcements are no more than ten minutes off this host's clock, and the output
    /// directory remembers newer ones.
    Clock,
}

/// Whether a session may replace content of a later session or of another source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverwritePolicy {
    /// Refuse it: an earlier session may be a recording, and another source may not know that it uses a name twice.
    #[default]
    Refuse,
    /// Accept it.
    Accept,
}

/// How much unfinished content stays. Content that a receiver is working on always stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct KeepPartial {
    /// Transfers that were not written to for longer are removed; `None`: none by its age.
    pub age: Option<Duration>,
    /// Bytes on the disk of all together; the oldest is let go first. Without a bound when `None`.
    pub bytes: Option<u64>,
}

impl KeepPartial {
    /// Keep files that were written to within this time, up to this many bytes together.
    #[must_use]
    pub const fn new(age: Option<Duration>, bytes: Option<u64>) -> KeepPartial {
        KeepPartial { age, bytes }
    }
}
