//! Connections to one host under one window: TCP-Int (Balakrishnan and others 1998) and the Congestion Manager (RFC 3124).
//! They differ from COCOON (paper 002, 4.6), which is compared with them in 4.7.
//!
//! A [`Macroflow`] sends for all its connections. Like TCP, each connection has its own packet numbers, acknowledgements and
//! repairs. The window, its threshold, the round-trip time and the timer belong to the macroflow. Receivers are TCP receivers.
//! Connections with data to send take turns, one packet at a time.
//!
//! | | TCP-Int | Congestion Manager |
//! |---|---|---|
//! | signs of a loss | duplicates, and acknowledgements of packets that another connection sent later | duplicates |
//! | after a timeout | all connections go back to their first unacknowledged packet | only the connection that timed out does |
//! | time of sending | as the window opens | spaced by the round-trip time divided by the window |
//! | after a pause | fast start: the previous window, less a half or a packet | half for every timeout of the pause |

mod connection;
mod sender;
#[cfg(test)]
mod tests;

pub use sender::Macroflow;

/// The rules to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// TCP-Int, as ns-2 has it (`tcp-session.cc`, `chost.cc`).
    Integrated,
    /// Congestion Manager.
    Manager,
}

/// TCP Fast Start: the window of a macroflow after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastStart {
    /// One packet.
    Off,
    /// The previous window, less a half in slow start and less a packet otherwise. Queues that drop such packets first
    /// (Padmanabhan and Katz 1998) are not modelled.
    On,
}

/// Parameters of a macroflow; its connections have the parameters of timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The rules to follow.
    pub law: Law,
    /// Window after a pause.
    pub fast_start: FastStart,
}

impl Config {
    /// Returns TCP-Int with TCP Fast Start, as in paper 002, 4.7.1.
    pub const fn integrated() -> Config {
        Config { law: Law::Integrated, fast_start: FastStart::On }
    }

    /// Returns the Congestion Manager.
    pub const fn manager() -> Config {
        Config { law: Law::Manager, fast_start: FastStart::Off }
    }
}
