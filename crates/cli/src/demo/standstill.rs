//! A receiver that stands still during the transfer, as a host that is suspended.

use super::children::{Process, Stopped};
use std::time::{Duration, Instant};

/// For this long: the source waits a second for a receiver with a full buffer, and then goes on without it.
pub const LASTS: Duration = Duration::from_secs(3);

/// The course of a standstill.
#[derive(Debug)]
pub enum Standstill<'a> {
    /// The process stops when this number of bytes has been on the network.
    After(u64, &'a Process),
    /// The process is stopped.
    Now {
        /// Since then.
        since: Instant,
        /// Until this is dropped.
        _stopped: Stopped<'a>,
    },
    /// It was stopped for this long.
    Over(Duration),
}

impl Standstill<'_> {
    /// Stops or resumes the process when its time has come.
    pub fn follow(&mut self, bytes: u64, now: Instant) {
        match self {
            Standstill::After(after, process) if bytes >= *after => {
                *self = Standstill::Now { since: now, _stopped: process.stop() };
            }
            Standstill::Now { since, .. } if now.duration_since(*since) >= LASTS => {
                *self = Standstill::Over(now.duration_since(*since));
            }
            _ => {}
        }
    }

    /// The time for which the process was stopped; `None` where it was not, or still is.
    pub fn lasted(&self) -> Option<Duration> {
        match self {
            Standstill::Over(lasted) => Some(*lasted),
            _ => None,
        }
    }
}
