//! Output directories that contain other data than the source's content.

use super::*;
use crate::object::{BlockRead, Store, seal_block, verify_block};
use faircast_core::schemes::CATALOGUE;

const BYTES: u64 = 2_500_000;

/// Creates the remains of an earlier transfer in the receiver's directory: the blocks that `stored` selects. The blocks in
/// `wrong` have other content, and the stored hashes match this other content.
pub(super) fn leave(net: &Net, source: usize, receiver: usize, stored: impl Fn(u32) -> bool, wrong: &[u32]) {
    let mut object = net.sources[source].object();
    let (geometry, transfer) = (object.geometry(), object.transfer());
    let mut store =
        Store::open(&net.receivers[receiver].dir, transfer, geometry, None).expect("a fresh directory");
    let mut bytes = Vec::new();
    for block in (0..geometry.blocks().expect("files have a length")).filter(|block| stored(*block)) {
        assert_eq!(object.read_block(block, &mut bytes).expect("readable"), BlockRead::Data);
        if wrong.contains(&block) {
            bytes[1_000] ^= 1;
        }
        seal_block(&mut bytes, geometry.symbol_size);
        let (data, hash) = verify_block(&bytes).expect("sealed just now");
        store.put(block, data, hash).expect("room for a block");
    }
}

fn path() -> (Link, Link) {
    (Link::millis(5).mbps(20.0).fifo(100_000), Link::millis(5))
}

/// Runs two receivers; the first one has wrong blocks. Both receivers get all content in this session.
fn assert_heals(scheme: &'static str, stored: impl Fn(u32) -> bool, wrong: &[u32]) -> u64 {
    let mut net = Net::new(5);
    let all = net.receivers(2, path().0, path().1);
    let source = net.source(Offer::bytes(BYTES).by(scheme).expect(2));
    leave(&net, source, all.start, stored, wrong);
    net.run_to_end(secs(600));
    net.assert_all_verified(source, all.clone());
    let node = &net.receivers[all.start];
    let says = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains("requested again"));
    assert_eq!(node.events.iter().filter(says).count(), 1, "{scheme}");
    let report = node.report();
    assert_eq!(report.resumed_bytes, 0, "{scheme}: {report:?}");
    report.refetched_bytes
}

#[test]
fn partial_transfer_with_a_wrong_block_is_fetched_again() {
    for entry in CATALOGUE {
        let again = assert_heals(entry.name, |block| block % 2 == 0, &[4]);
        println!("{}: {again} bytes again of half", entry.name);
        assert!((BYTES / 3..BYTES * 2 / 3).contains(&again), "{}: {again}", entry.name);
    }
}

#[test]
fn complete_transfer_with_a_wrong_block_is_fetched_again() {
    for entry in CATALOGUE {
        let again = assert_heals(entry.name, |_| true, &[2, 3]);
        println!("{}: {again} bytes again of all", entry.name);
        assert!(again > BYTES, "{}: {again}", entry.name);
    }
}

#[test]
fn source_serves_complete_receivers_that_have_wrong_blocks() {
    let mut net = Net::new(6);
    let all = net.receivers(3, path().0, path().1);
    let source = net.source(Offer::bytes(BYTES).expect(3));
    for receiver in all.clone() {
        leave(&net, source, receiver, |_| true, &[receiver as u32 + 1]);
    }
    net.run_to_end(secs(600));
    net.assert_all_verified(source, all);
}

#[test]
fn receiver_with_the_whole_content_needs_no_symbol() {
    for entry in CATALOGUE {
        let mut net = Net::new(7);
        let all = net.receivers(1, path().0, path().1);
        let source = net.source(Offer::bytes(BYTES).by(entry.name).expect(1));
        leave(&net, source, all.start, |_| true, &[]);
        net.run_to_end(secs(60));
        net.assert_all_verified(source, all.clone());
        let report = net.receivers[all.start].report();
        assert!(report.resumed_bytes > BYTES && report.refetched_bytes == 0, "{}: {report:?}", entry.name);
    }
}
