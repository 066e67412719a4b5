//! Messages between a coordinator and its callers.

use super::rules::Windows;
use faircast_core::time::Time;

/// A group of a [`Coordinator`](super::Coordinator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A member of a group. The number stays valid when the group is merged or the member moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A limit is reached, or the group is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The number of groups has reached this value of [`Config::max_groups`](super::Config::max_groups).
    #[error("the limit of {0} groups is reached; leave a group, or raise the limit")]
    Groups(usize),
    /// The number of members has reached this value of [`Config::max_members`](super::Config::max_members).
    #[error("the group has {0} members, which is the limit; this connection continues without it")]
    Members(usize),
    /// The group is closed.
    #[error("the group is closed; open another")]
    Closed,
}

/// Initial state for a new member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Joined {
    /// The new member.
    pub member: MemberId,
    /// Initial window and threshold; `None` for slow start, as without a group.
    pub start: Option<Windows>,
}

/// Effect of a member's own congestion on itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OwnReaction {
    /// Reduce the windows by the sender's own procedure. The fields are the windows after a recovery.
    Cut {
        /// The congestion window.
        cwnd: f64,
        /// The slow-start threshold.
        ssthresh: f64,
    },
    /// The packet was sent before the latest reduction: send it again without a reduction. After a timeout the sender still
    /// starts with one segment (RFC 5681, 3.1).
    Covered,
}

/// Action of a member that other members caused.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The congestion window; never larger than the present one.
    pub cwnd: Option<f64>,
    /// The slow-start threshold.
    pub ssthresh: Option<f64>,
    /// Losses of packets before this number reduce nothing. The coordinator applies this rule itself.
    pub covered: u64,
    /// Send the first unacknowledged packet again.
    pub send_again: bool,
    /// Time of the verdict. A slow driver may ignore old verdicts.
    pub at: Time,
}

/// Counters of a coordinator, for information only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Number of losses and marks that reduced a group's windows.
    pub reactions: u64,
    /// Number of timeouts that reduced a group's windows.
    pub timeouts: u64,
    /// Number of losses, marks and timeouts below a watermark.
    pub covered: u64,
    /// Number of other members' windows that a verdict cut.
    pub cuts: u64,
    /// Number of first unacknowledged packets sent again because of another member's timeout.
    pub sent_again: u64,
    /// Number of connections that started with a reference's window.
    pub starts: u64,
}

impl MemberId {
    /// Returns a small number that is unique among present members. The number of a member that has left is reused.
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}
