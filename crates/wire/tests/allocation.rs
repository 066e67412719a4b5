//! Data packets are written, read, sealed and opened without a single allocation.

mod common;

use faircast_core::packet::Mark;
use faircast_wire::{Message, ReceiverCodec, SourceCodec};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls are forwarded to the system allocator; the counter is a plain thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: `block` came from `alloc` above, that is, from the system allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn codec_allocates_nothing_for_data_packets() {
    for key in [None, Some(common::key())] {
        let mut source = SourceCodec::new(common::SESSION, key.as_ref(), common::SALT);
        let mut receiver = ReceiverCodec::new(key.as_slice(), common::receiver(1), 2);
        receiver.follow(common::SESSION);
        let mut out = Vec::with_capacity(4_096);
        source.encode(&mut out, &Message::Announce(common::announce()), common::LIMIT).expect("it fits");
        receiver.open(&mut out, common::at()).expect("announced");
        let mark = Mark::Representative { id: None, mean: 1.0, deviation: 1.0, rtt_max: 1.0 };
        let mut carry = |seq| {
            out.clear();
            source.encode_data(&mut out, &common::data(seq, mark)).expect("it fits");
            let (_, message) = receiver.open(&mut out, common::at()).expect("made by a source");
            assert_eq!(message, Message::Data(common::data(seq, mark)));
        };
        carry(0); // the layer's window is made once
        let before = ALLOCATIONS.get();
        (1..100_000).for_each(&mut carry);
        assert_eq!(ALLOCATIONS.get(), before);
    }
}
