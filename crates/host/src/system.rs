//! The monotonic clock and random numbers. Both are those of the operating system, or those of a simulated world.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// A monotonic clock: the system's by default.
#[derive(Clone, Default)]
pub struct Monotonic(Option<Arc<dyn Fn() -> Instant + Send + Sync>>);

impl Monotonic {
    /// Creates a clock that calls `read`.
    pub fn of(read: impl Fn() -> Instant + Send + Sync + 'static) -> Monotonic {
        Monotonic(Some(Arc::new(read)))
    }

    /// Returns the current instant.
    pub fn now(&self) -> Instant {
        self.0.as_ref().map_or_else(Instant::now, |read| read())
    }
}

/// A source of random numbers; by default the operating system.
#[derive(Clone, Default)]
pub struct Random(Option<Arc<dyn Fn() -> [u64; 4] + Send + Sync>>);

impl Random {
    /// Creates a source of the numbers that `draw` returns.
    pub fn of(draw: impl Fn() -> [u64; 4] + Send + Sync + 'static) -> Random {
        Random(Some(Arc::new(draw)))
    }

    /// Returns four random numbers.
    pub fn draw(&self) -> [u64; 4] {
        self.0.as_ref().map_or_else(random, |draw| draw())
    }
}

/// Returns four random numbers of the operating system.
///
/// # Panics
/// When the operating system has no random numbers.
pub fn random() -> [u64; 4] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    std::array::from_fn(|at| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes")))
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Monotonic")
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}
