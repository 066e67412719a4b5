//! Suspension of a receiver during the transfer, as if its host were in standby.

use super::children::{Process, Stopped};
use std::time::{Duration, Instant};

/// Duration of the suspension. A source waits for a silent receiver for a second, which is shorter.
pub const LASTS: Duration = Duration::from_secs(3);

/// State of the suspension.
#[derive(Debug)]
pub enum Standstill<'a> {
    /// The process will be suspended when this number of bytes has been received from the network.
    After(u64, &'a Process),
    /// The process is suspended.
    Now {
        /// Start of the suspension.
        since: Instant,
        /// The guard that resumes the process.
        _stopped: Stopped<'a>,
    },
    /// The process was suspended for this duration.
    Over(Duration),
}

impl Standstill<'_> {
    /// Suspends the process after the given number of bytes, and resumes it after `LASTS`. `bytes` is the number of bytes
    /// received so far.
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

    /// Returns the duration of the suspension; `None` before its end.
    pub fn lasted(&self) -> Option<Duration> {
        match self {
            Standstill::Over(lasted) => Some(*lasted),
            _ => None,
        }
    }
}
