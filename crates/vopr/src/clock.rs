//! Clock and random numbers of a world, for the parts of a process that are not endpoints.

use faircast_core::rng::Rng;
use faircast_core::time::Time;
use faircast_transport::system::{Monotonic, Random};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The world's clock. Clones show the same time.
#[derive(Clone)]
pub(crate) struct Clock {
    began: Instant,
    nanos: Arc<AtomicU64>,
}

impl Clock {
    /// Returns a clock at zero.
    pub(crate) fn new() -> Clock {
        Clock { began: Instant::now(), nanos: Arc::default() }
    }

    /// Sets the world's time.
    pub(crate) fn set(&self, now: Time) {
        self.nanos.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// Returns the world's time.
    pub(crate) fn now(&self) -> Time {
        Time::from_nanos(self.nanos.load(Ordering::Relaxed))
    }

    /// Returns a monotonic clock that follows the world's clock.
    pub(crate) fn monotonic(&self) -> Monotonic {
        let clock = self.clone();
        Monotonic::of(move || clock.began + Duration::from_nanos(clock.now().as_nanos()))
    }
}

/// Returns a source of random numbers that derive from `seed`.
pub(crate) fn random(seed: u64) -> Random {
    let rng = Arc::new(Mutex::new(Rng::new(seed, 1 << 42)));
    Random::of(move || {
        let mut rng = rng.lock().unwrap_or_else(PoisonError::into_inner);
        std::array::from_fn(|_| rng.bits())
    })
}
