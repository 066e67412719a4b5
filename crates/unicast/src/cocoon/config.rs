//! Options for the questions that the chapter leaves open, and bounds.

use faircast_core::time::Span;

/// Which members' watermarks a notice moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// Every member's: the last line of figure 4.2, which stands outside its branches.
    AllMembers,
    /// Those whose windows were cut: "the last time the congestion window was adjusted" (4.3).
    CutMembers,
}

/// Value of the member that met congestion, with which the others compare their flights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// Packets out when it found the loss (figure 4.2).
    Before,
    /// Half of that: its new window. Connections with equal windows are then all halved, where figure 4.2 halves
    /// one.
    After,
}

/// Effect of a member's own loss below its watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BelowWatermark {
    /// The packet is sent again, no window changes (4.3).
    RepairOnly,
    /// It halves its own window as any TCP would, and does not notify the group. A departure for measurements.
    CutsAlone,
}

/// Members that retransmit their first unacknowledged packet at another member's timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Those whose packet left before the one that timed out (4.3).
    All,
    /// Those of them that do not wait for a packet that has timed out already: "with the hope of avoiding a
    /// timeout" (4.3). A member that has timed out backs off, and the others would keep it from doing so.
    NotTimedOut,
    /// No member.
    Nobody,
}

/// Owner of the round trips that set the retransmission timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerOf {
    /// The group's (4.2).
    Group,
    /// The member's own.
    Member,
}

/// Initial state of a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// Half of the window of the active member that has the smallest one (4.4).
    Reference,
    /// An even share of all members' windows, which the others give up (ensemble sharing; RFC 9040, 7 and C).
    EvenShare,
    /// The state that it would have alone.
    Alone,
}

/// Whom congestion at one member cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cuts {
    /// The others as well, as in figure 4.2.
    Others,
    /// No other member.
    Alone,
}

/// Parameters of a coordinator.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// Which members' watermarks a notice moves.
    pub covers: Covers,
    /// Value with which the others' flights are compared after a loss.
    pub compared: Compared,
    /// A loss below the watermark.
    pub below: BelowWatermark,
    /// Members that retransmit at another's timeout.
    pub again: Again,
    /// Owner of the round trips that set the timer.
    pub timer: TimerOf,
    /// Whom congestion at one member cuts.
    pub cuts: Cuts,
    /// Initial state of a new connection.
    pub start: Start,
    /// Granularity "G" of clocks (RFC 6298, 2).
    pub granularity: Span,
    /// The shortest retransmission timeout.
    pub min_rto: Span,
    /// The longest, and the end of backing off.
    pub max_rto: Span,
    /// The group's round trip before the first sample, for sockets that send by rate (4.5, rule 5).
    pub default_rtt: Span,
    /// The virtual connection's window per socket before there is a TCP in the group, in segments (4.5, rule 1).
    pub default_window: f64,
    /// Datagrams that a socket holds while it may not send.
    pub backlog: usize,
    /// Members of a group at most.
    pub max_members: usize,
    /// Groups at most.
    pub max_groups: usize,
}

impl Config {
    /// Returns the chapter's values; for open questions those of `docs/cocoon.md`.
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
            // Paper gap: 4.5, rule 1, has "a default value" for a group without TCP. Here two segments a socket.
            default_window: 2.0,
            backlog: 64,
            max_members: 1024,
            max_groups: 4096,
        }
    }

    /// Returns the standards' alternative: connections to one host share round trips and windows when they
    /// open, and each answers its own congestion (RFC 9040, ensemble sharing).
    pub const fn rfc9040() -> Config {
        Config { cuts: Cuts::Alone, start: Start::EvenShare, ..Config::published() }
    }
}
