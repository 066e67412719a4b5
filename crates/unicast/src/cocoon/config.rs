//! Options for open questions of the chapter, and bounds.

use faircast_core::time::Span;

/// Members whose watermarks are moved by a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// Every member: the last line of figure 4.2, which is outside its branches.
    AllMembers,
    /// The members whose windows were cut: "the last time the congestion window was adjusted" (4.3).
    CutMembers,
}

/// Value of the member that met congestion, to which the flights of the other members are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Its packets in flight when it found the loss (figure 4.2).
    Before,
    /// Half of its packets in flight: its new window. Connections with equal windows are then all halved, where figure 4.2 halves
    /// one.
    After,
}

/// Effect of a member's own loss below its watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BelowWatermark {
    /// The packet is sent again, and no window changes (4.3).
    RepairOnly,
    /// The member halves its own window like any TCP, and does not notify the group. This departs from the chapter, for
    /// measurements.
    CutsAlone,
}

/// Members that retransmit their first unacknowledged packet at another member's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The members whose packet was sent before the packet that timed out (4.3).
    All,
    /// The members of `All` that do not wait for a packet that has timed out already: "with the hope of avoiding a timeout"
    /// (4.3). A member that has timed out backs off, and retransmissions for other members would prevent this.
    NotTimedOut,
    /// No member.
    Nobody,
}

/// Owner of the round-trip times that determine the retransmission timer.
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
    /// Half of the window of the active member with the smallest window (4.4).
    Reference,
    /// An even share of all members' windows, which the other members give up (ensemble sharing; RFC 9040, 7 and C).
    EvenShare,
    /// The state of a connection without a group.
    Alone,
}

/// Members whose windows are cut by congestion at one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// The other members too, as in figure 4.2.
    Others,
    /// No other member.
    Alone,
}

/// Parameters of a coordinator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Members whose watermarks are moved by a notice.
    pub covers: Covers,
    /// Value to which the flights of the other members are compared after a loss.
    pub compared: Compared,
    /// Effect of a loss below the watermark.
    pub below: BelowWatermark,
    /// Members that retransmit at another member's timeout.
    pub again: Again,
    /// Owner of the round-trip times that determine the timer.
    pub timer: TimerOf,
    /// Members whose windows are cut by congestion at one member.
    pub cuts: Cuts,
    /// Initial state of a new connection.
    pub start: Start,
    /// Granularity "G" of clocks (RFC 6298, 2).
    pub granularity: Span,
    /// Minimum retransmission timeout.
    pub min_rto: Span,
    /// Maximum retransmission timeout, also after backoff.
    pub max_rto: Span,
    /// The group's round-trip time before the first sample, for sockets that send by rate (4.5, rule 5).
    pub default_rtt: Span,
    /// Window per socket of the virtual connection before the group has a TCP, in segments (4.5, rule 1).
    pub default_window: f64,
    /// Maximum number of datagrams that wait in a socket.
    pub backlog: usize,
    /// Maximum number of members of a group.
    pub max_members: usize,
    /// Maximum number of groups.
    pub max_groups: usize,
}

impl Config {
    /// Returns the chapter's values; for open questions, the values of `docs/cocoon.md`.
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

    /// Returns the alternative of the standards: connections to one host share round-trip times and windows when they open, and
    /// each reacts to its own congestion (RFC 9040, ensemble sharing).
    pub const fn rfc9040() -> Config {
        Config { cuts: Cuts::Alone, start: Start::EvenShare, ..Config::published() }
    }
}
