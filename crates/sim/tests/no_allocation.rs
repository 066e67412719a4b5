//! In the steady state a packet costs no allocation.

mod nets;

use faircast_core::time::{Span, Time};
use faircast_sim::{Mode, Network, Options, Watch};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator; the counter changes nothing of its contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations while the network runs from `warm` seconds until `arrivals` more packets have arrived.
fn allocations(network: &Network, mode: Mode, warm: f64, arrivals: u64) -> u64 {
    let options = Options {
        until: Time::from_secs_f64(1000.0),
        mode,
        sample: Span::from_secs(1),
        watch: Watch::First(0),
        ..Options::default()
    };
    let mut engine = network.engine(&options).expect("a sound network");
    let mut moment = Time::from_secs_f64(warm);
    engine.run_until(moment);
    let (before, begin) = (ALLOCATIONS.load(Ordering::Relaxed), engine.arrivals());
    while engine.arrivals() < begin + arrivals {
        moment += Span::from_millis(100);
        engine.run_until(moment);
    }
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// One test, because the counter is everybody's.
#[test]
fn a_million_receptions_allocate_nothing() {
    assert_eq!(
        allocations(&nets::star(1000, nets::Background::None), Mode::Eager, 60.0, 1_000_000),
        0,
        "ORMCC"
    );
    assert_eq!(
        allocations(&nets::star(64, nets::Background::None), Mode::Evented, 60.0, 200_000),
        0,
        "evented"
    );
    assert_eq!(allocations(&nets::tcp_star(32), Mode::Eager, 300.0, 400_000), 0, "TCP beside a stream");
}
