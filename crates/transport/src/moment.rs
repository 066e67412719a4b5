//! What time it is for what is no endpoint, and numbers that it draws: the system's, or in a simulated world the world's.

use std::time::Instant;

/// Now.
pub(crate) fn now() -> Instant {
    #[cfg(feature = "simulation")]
    if let Some(now) = world::now() {
        return now;
    }
    Instant::now()
}

/// Random numbers.
///
/// # Panics
/// When the operating system has none.
pub(crate) fn random() -> [u64; 4] {
    #[cfg(feature = "simulation")]
    if let Some(drawn) = world::random() {
        return drawn;
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    std::array::from_fn(|at| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight bytes")))
}

/// Whether this thread is in a simulated world: then it does what others would do in threads of their own.
#[cfg(feature = "simulation")]
pub(crate) fn is_simulated() -> bool {
    world::now().is_some()
}

/// The world that this thread is in.
#[cfg(feature = "simulation")]
pub(crate) mod world {
    use faircast_core::rng::Rng;
    use faircast_core::time::Time;
    use std::cell::RefCell;
    use std::time::{Duration, Instant};

    struct World {
        began: Instant,
        now: Time,
        rng: Rng,
    }

    thread_local! {
        static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    }

    /// This thread is in the world of this seed, or in none.
    pub fn enter(seed: Option<u64>) {
        let world = |seed| World { began: Instant::now(), now: Time::ZERO, rng: Rng::new(seed, 1 << 42) };
        WORLD.set(seed.map(world));
    }

    /// It is so late there.
    pub fn be_at(now: Time) {
        WORLD.with_borrow_mut(|world| world.iter_mut().for_each(|world| world.now = now));
    }

    pub(super) fn now() -> Option<Instant> {
        WORLD.with_borrow(|world| {
            world.as_ref().map(|world| world.began + Duration::from_nanos(world.now.as_nanos()))
        })
    }

    pub(super) fn random() -> Option<[u64; 4]> {
        WORLD.with_borrow_mut(|world| world.as_mut().map(|world| std::array::from_fn(|_| world.rng.bits())))
    }
}
