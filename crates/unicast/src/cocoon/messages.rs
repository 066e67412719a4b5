//! Messages between a coordinator and its callers.

use super::rules::Windows;
use faircast_core::time::Time;

/// A group of a [`Coordinator`](super::Coordinator).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A member of a group. The identifier stays valid when groups are merged and when the member moves to another group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    pub(super) index: u32,
    pub(super) generation: u32,
}

/// A limit is reached, or the group is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CapacityError {
    /// The maximum number of groups is reached. The value is this maximum ([`Config::max_groups`](super::Config::max_groups)).
    #[error("the limit of {0} groups is reached; leave a group, or raise the limit")]
    Groups(usize),
    /// The maximum number of members or sockets of the group is reached ([`Config::max_members`](super::Config::max_members)).
    /// The value is the present number.
    #[error("the group has {0} members, which is the limit; this connection continues without a group")]
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
    /// Initial window and threshold; `None` if the connection starts with slow start, as without a group.
    pub start: Option<Windows>,
}

/// Effect of a member's own congestion on itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OwnReaction {
    /// The sender reduces its windows by its own procedure. The fields are the values to which the procedure leads.
    Cut {
        /// The congestion window.
        cwnd: f64,
        /// The slow-start threshold.
        ssthresh: f64,
    },
    /// The lost packet was sent before the latest reduction. The sender sends it again without another reduction. After a timeout
    /// the sender still starts with a window of one segment (RFC 5681, 3.1).
    Covered,
}

/// Action that a member must take because of congestion at other members.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Verdict {
    /// The new congestion window, never larger than the present window; `None` for no change.
    pub cwnd: Option<f64>,
    /// The slow-start threshold.
    pub ssthresh: Option<f64>,
    /// Losses of packets below this number reduce no window. The coordinator itself applies this rule.
    pub covered: u64,
    /// Send the first unacknowledged packet again.
    pub send_again: bool,
    /// Time of the verdict. A driver that takes verdicts late may ignore old verdicts.
    pub at: Time,
}

/// Counters of a coordinator, for information only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Number of losses and marks that caused a reduction in a group.
    pub reactions: u64,
    /// Number of timeouts that reduced a group's windows.
    pub timeouts: u64,
    /// Number of losses, marks and timeouts below a watermark.
    pub covered: u64,
    /// Number of window reductions at other members than the one that detected congestion.
    pub cuts: u64,
    /// Number of verdicts to send the first unacknowledged packet again because of another member's timeout.
    pub sent_again: u64,
    /// Number of connections whose initial window was computed from other members' windows.
    pub starts: u64,
}

impl MemberId {
    /// Returns a small number that no other present member has. After a member has left, its number is used for a later member.
    pub const fn slot(self) -> usize {
        self.index as usize
    }
}
