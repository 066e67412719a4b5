//! Options for questions that the chapter (paper 002, 4) leaves open, and limits of sizes and times.

use faircast_core::time::Span;

/// Members whose watermarks advance when the group is notified of congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// Every member: in figure 4.2, the last line is outside the branches.
    AllMembers,
    /// Only members whose windows were cut: "the last time the congestion window was adjusted" (4.3).
    CutMembers,
}

/// Value of the member that detected congestion, with which the data in flight of every other member is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// The member's packets in flight when it detected the loss (figure 4.2).
    Before,
    /// Half of the member's packets in flight, which is its new window. If all members have equal windows, all windows are then
    /// halved. With `Before`, only the window of this member is halved.
    After,
}

/// Effect of a member's own loss if the lost packet is below the member's watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BelowWatermark {
    /// The lost packet is sent again, and no window changes (4.3).
    RepairOnly,
    /// The member halves its own window, as without a group, and the group is not notified. The chapter does not have this rule;
    /// it serves for comparisons.
    CutsAlone,
}

/// Members that retransmit their first unacknowledged packet after a timeout of another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// All members whose first unacknowledged packet was sent before the packet that timed out (4.3).
    All,
    /// As `All`, except members that are repairing a timeout of their own: the rule has "the hope of avoiding a timeout" (4.3).
    /// Retransmissions for other members would also defeat the backoff of such a member.
    NotTimedOut,
    /// No member.
    Nobody,
}

/// Whether a member's retransmission timeout is computed from the round-trip times of the whole group or only of the member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerOf {
    /// The group (4.2).
    Group,
    /// The member itself.
    Member,
}

/// Initial state of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Half of the smallest window among the active members (4.4).
    Reference,
    /// An equal share of the sum of the windows of all active members. Members with larger windows are reduced to this share
    /// (ensemble sharing; RFC 9040, 7 and C).
    EvenShare,
    /// The state of a connection without a group.
    Alone,
}

/// Members whose windows are cut when one member detects congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// The member that detected congestion and other members, as in figure 4.2.
    Others,
    /// No other member.
    Alone,
}

/// Parameters of a coordinator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Members whose watermarks advance when the group is notified of congestion.
    pub covers: Covers,
    /// Value with which the data in flight of every other member is compared after a loss at one member.
    pub compared: Compared,
    /// Effect of a loss below the watermark.
    pub below: BelowWatermark,
    /// Members that retransmit at another member's timeout.
    pub again: Again,
    /// Whether a member's retransmission timeout is computed from the round-trip times of the whole group or only of the member.
    pub timer: TimerOf,
    /// Members whose windows are cut when one member detects congestion.
    pub cuts: Cuts,
    /// Initial state of a new connection.
    pub start: Start,
    /// Granularity "G" of clocks (RFC 6298, 2).
    pub granularity: Span,
    /// Minimum retransmission timeout.
    pub min_rto: Span,
    /// Maximum retransmission timeout, also after backoff.
    pub max_rto: Span,
    /// Round-trip time of a group without a sample, for datagrams that are sent by rate (4.5, rule 5).
    pub default_rtt: Span,
    /// Window of the virtual connection in a group without TCP connections, in segments per socket (4.5, rule 1).
    pub default_window: f64,
    /// Maximum number of datagrams that wait in a socket.
    pub backlog: usize,
    /// Maximum number of members of a group.
    pub max_members: usize,
    /// Maximum number of groups.
    pub max_groups: usize,
}

impl Config {
    /// Returns the values of the chapter. For questions that the chapter leaves open, returns the values explained in
    /// `docs/cocoon.md`.
    pub const fn published() -> Config {
        Config {
            covers: Covers::AllMembers,
            compared: Compared::Before,
            below: BelowWatermark::RepairOnly,
            again: Again::All,
            timer: TimerOf::Group,
            cuts: Cuts::Others,
            start: Start::Reference,
            granularity: Span::from_millis(1),
            min_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            default_rtt: Span::from_millis(200),
            // Paper gap: 4.5, rule 1, has "a default value" for a group without TCP. Here it is two segments per socket.
            default_window: 2.0,
            backlog: 64,
            max_members: 1024,
            max_groups: 4096,
        }
    }

    /// Returns the method of the standards. Connections to one host share round-trip times. A connection that opens gets a share
    /// of the other connections' windows. Each connection reacts only to its own congestion (RFC 9040, ensemble sharing).
    pub const fn rfc9040() -> Config {
        Config { cuts: Cuts::Alone, start: Start::EvenShare, ..Config::published() }
    }
}
