//! Tests that a queue allocates no memory for packets after it has reached its maximum length.

use faircast_aqm::{Link, LinkSpec, QueueSpec};
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system allocator; the counter is a plain thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller observes the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` was allocated by `alloc` above, and therefore by the system allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Sends packets of twenty flows to an overloaded link. Returns the number of allocations for the second half of the packets.
fn allocations(text: &str) -> u64 {
    let queue = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    let spec = LinkSpec::new(Rate::from_mbps(8.0), Span::from_millis(3), queue);
    let (mut link, mut rng) = (Link::new(&spec, Rng::new(1, 1)), Rng::new(1, 2));
    let (mut now, mut before) = (Time::ZERO, 0);
    for packet in 0..200_000 {
        if packet == 100_000 {
            before = ALLOCATIONS.get();
        }
        now += Span::from_nanos(rng.below(1_900_000));
        while link.dequeue(now).is_some() {}
        link.offer(now, 1000, rng.below(20) as u32, packet % 2 == 0);
        while link.dequeue(now).is_some() {}
    }
    ALLOCATIONS.get() - before
}

#[test]
fn packets_allocate_nothing_in_any_queue() {
    for (form, _) in QueueSpec::known() {
        let name = form.split(['[', ',']).next().expect("a name");
        let limited = if name == "droptail" { "droptail,40".to_owned() } else { format!("{name},limit=40") };
        for text in [limited.clone(), format!("{limited},ecn")] {
            if text.parse::<QueueSpec>().is_ok() {
                // The queue of each flow may exceed its earlier maximum length once more.
                assert!(allocations(&text) <= 20, "{text}: {}", allocations(&text));
            }
        }
    }
}
