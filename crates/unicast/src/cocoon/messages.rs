//! Messages between a coordinator and its callers.

use super::rules::Windows;
use faircast_core::time::Time;

/// A group of a [`Coordinator`](super::Coordinator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A member of a group. It goes on naming the member when the group is merged or the member moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// There is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// As many groups as [`Config::max_groups`](super::Config::max_groups) allows.
    #[error("{0} groups are there, which is all that may be; leave some, or allow more")]
    Groups(usize),
    /// As many members as [`Config::max_members`](super::Config::max_members) allows.
    #[error("the group has {0} members, which is all that may be; this connection goes on by itself")]
    Members(usize),
    /// The group is closed.
    #[error("the group is closed; open another")]
    Closed,
}

/// Initial state for a new member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joined {
    /// Its name from now on.
    pub member: MemberId,
    /// Initial window and threshold; `None` for slow start, as for a connection alone.
    pub start: Option<Windows>,
}

/// Effect of a member's own congestion on itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OwnReaction {
    /// Reduce, in the sender's own way; these are the windows after a recovery.
    Cut {
        /// The congestion window.
        cwnd: f64,
        /// The slow-start threshold.
        ssthresh: f64,
    },
    /// The packet left before the windows were last reduced: send it again, and reduce nothing. After a timeout the sender
    /// still begins with one segment, as it must (RFC 5681, 3.1).
    Covered,
}

/// Action of a member because of others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The congestion window; never more than it is.
    pub cwnd: Option<f64>,
    /// The slow-start threshold.
    pub ssthresh: Option<f64>,
    /// Losses of packets before this number reduce nothing; the coordinator knows that by itself.
    pub covered: u64,
    /// Send the first unacknowledged packet again.
    pub send_again: bool,
    /// When it was given. A driver that comes late may let old ones be.
    pub at: Time,
}

/// Counters of a coordinator, for information only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Losses and marks that reduced a group's windows.
    pub reactions: u64,
    /// Timeouts that did.
    pub timeouts: u64,
    /// Losses, marks and timeouts below a watermark.
    pub covered: u64,
    /// Windows of others that a verdict cut.
    pub cuts: u64,
    /// First unacknowledged packets that others' timeouts sent again.
    pub sent_again: u64,
    /// Connections that began with a reference's window.
    pub starts: u64,
}

impl MemberId {
    /// Returns a small number that no other member has at the same time; the number of a member that has left is
    /// reused.
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}
