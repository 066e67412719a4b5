//! Connections to one host that share one window: TCP-Int (Balakrishnan and others 1998) and the Congestion Manager (RFC 3124).
//! Paper 002, 4.6, explains their differences from COCOON, and 4.7 compares them with COCOON.
//!
//! A [`Macroflow`] is the sender of all its connections. As in TCP, each connection has its own packet numbers, acknowledgements
//! and repairs. The window, the threshold and the round-trip time are common to the macroflow. The receivers are ordinary TCP
//! receivers. Connections that have data to send take turns, one packet at a time.
//!
//! | | TCP-Int | Congestion Manager |
//! |---|---|---|
//! | signs of a loss | duplicates, and acknowledgements of packets that another connection sent later | duplicates |
//! | after a timeout | all connections go back to their first unacknowledged packet | only the connection that timed out goes back |
//! | time of sending | as soon as the window allows | packets are spaced by the round-trip time divided by the window |
//! | after a pause | fast start: the previous window, reduced by half or by one packet | the previous window, halved once for each timeout that fits into the pause |

mod connection;
mod sender;
#[cfg(test)]
mod tests;

pub use sender::Macroflow;

/// The rules to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Law {
    /// TCP-Int, as implemented in ns-2 (`tcp-session.cc`, `chost.cc`).
    Integrated,
    /// Congestion Manager.
    Manager,
}

/// TCP Fast Start: the window with which a macroflow continues after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastStart {
    /// One packet.
    Off,
    /// The previous window: halved if the macroflow was in slow start, otherwise reduced by one packet. The original proposal
    /// lets queues drop these packets first (Padmanabhan and Katz 1998), which is not modelled.
    On,
}

/// Parameters of a macroflow. Timers and initial windows are set by the TCP parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The rules to follow.
    pub law: Law,
    /// Window after a pause.
    pub fast_start: FastStart,
}

impl Config {
    /// Returns the parameters of TCP-Int with TCP Fast Start, as in paper 002, 4.7.1.
    pub const fn integrated() -> Config {
        Config { law: Law::Integrated, fast_start: FastStart::On }
    }

    /// Returns the Congestion Manager.
    pub const fn manager() -> Config {
        Config { law: Law::Manager, fast_start: FastStart::Off }
    }
}
