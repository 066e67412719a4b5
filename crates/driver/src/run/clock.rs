//! Session time on the monotonic clock.

use faircast_core::time::Time;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Session time; its zero is the start of the clock.
pub(crate) struct Clock {
    origin: Instant,
    unix_nanos: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { origin: Instant::now(), unix_nanos: unix.as_nanos() as u64 }
    }

    /// Returns the start of the session, in nanoseconds since 1970.
    pub(crate) fn unix_nanos(&self) -> u64 {
        self.unix_nanos
    }

    /// Returns the start of the session, in seconds since 1970.
    pub(crate) fn unix_secs(&self) -> u64 {
        self.unix_nanos / 1_000_000_000
    }

    pub(crate) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    pub(crate) fn time(&self, instant: Instant) -> Time {
        Time::from_nanos(instant.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    /// Returns the instant of a session time, limited to an hour from now.
    pub(crate) fn instant(&self, time: Time) -> Instant {
        let far = Duration::from_secs(3600);
        self.origin + Duration::from_nanos(time.as_nanos()).min(self.origin.elapsed() + far)
    }
}
