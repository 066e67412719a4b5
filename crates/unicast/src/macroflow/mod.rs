//! Connections to one host under one window: TCP-Int (Balakrishnan and others 1998) and the Congestion Manager
//! (RFC 3124). They are distinguished from COCOON in paper 002, 4.6, and compared with it in 4.7.
//!
//! A [`Macroflow`] sends for all its connections. Each has its own packet numbers, acknowledgements and repairs, as TCP has; the
//! window, its threshold, the round trip and the timer are the macroflow's. Receivers are TCP's. One packet at a time, in turn, of whoever has something to send.
//!
//! | | TCP-Int | Congestion Manager |
//! |---|---|---|
//! | a loss is known by | duplicates, and acknowledgements of what another connection sent later | duplicates |
//! | after a timeout | all connections go back to what is not acknowledged | the one that timed out does |
//! | packets leave | as the window opens | apart, by the window over the round trip |
//! | after a pause | fast start: the window that was, less a half or a packet | half for every timeout of the pause |

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

/// TCP Fast Start: what a macroflow begins with after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FastStart {
    /// One packet.
    Off,
    /// The window that was, less a half in slow start and less a packet otherwise. Queues that would drop such packets first
    /// (Padmanabhan and Katz 1998) are not modelled.
    On,
}

/// Parameters of a macroflow; timers are those of its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The rules to follow.
    pub law: Law,
    /// After a pause.
    pub fast_start: FastStart,
}

impl Config {
    /// TCP-Int with TCP Fast Start, as in paper 002, 4.7.1.
    pub const fn integrated() -> Config {
        Config { law: Law::Integrated, fast_start: FastStart::On }
    }

    /// The Congestion Manager.
    pub const fn manager() -> Config {
        Config { law: Law::Manager, fast_start: FastStart::Off }
    }
}
