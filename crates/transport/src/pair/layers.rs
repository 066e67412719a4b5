//! Layered sessions: receivers of different speeds receive symbols of the same fountain code.

use super::*;
use faircast_wire::{Kind, peek};

/// RLC with eight layers. Rates double from layer to layer, starting at 0.25 Mbit/s.
const RLC: &str = "rlc,base=250000";

#[test]
fn receivers_with_different_links_finish_independently() {
    let mut net = Net::new(3);
    net.trace.record = true;
    let fast = net.receivers(2, Link::millis(5).mbps(40.0).fifo(60_000), Link::millis(5));
    let medium = net.receivers(1, Link::millis(5).mbps(1.2).fifo(20_000), Link::millis(5));
    let slow = net.receivers(1, Link::millis(5).mbps(0.4).fifo(15_000), Link::millis(5));
    let source = net.source(Offer::bytes(3_000_000).by(RLC).expect(4));
    net.run_to_end(secs(300));
    for all in [fast.clone(), medium.clone(), slow.clone()] {
        net.assert_all_verified(source, all);
    }
    let ended = |receivers: &Range<usize>| net.receivers[receivers.start].ended_at.as_secs_f64();
    assert!(ended(&fast) * 1.2 < ended(&medium), "{} and {}", ended(&fast), ended(&medium));
    assert!(ended(&medium) * 1.5 < ended(&slow), "{} and {}", ended(&medium), ended(&slow));
    assert_eq!(requests(&net), 0, "nobody asks for anything");
}

#[test]
fn progress_counts_symbols_of_incomplete_blocks() {
    let mut net = Net::new(13);
    let slow = net.receivers(1, Link::millis(5).mbps(0.4).fifo(15_000), Link::millis(5));
    net.source(Offer::bytes(1_000_000).by(RLC).expect(1));
    net.run_to_end(secs(300));
    let progress = net.receivers[slow.start].events.iter().filter_map(|(_, event)| match event {
        Event::Progress(progress) => Some(progress.bytes),
        _ => None,
    });
    let bytes: Vec<u64> = progress.collect();
    assert!(bytes.is_sorted() && bytes.iter().all(|&bytes| bytes <= 1_000_000), "{bytes:?}");
    let half_way = bytes[bytes.len() / 2];
    assert!((300_000..700_000).contains(&half_way), "{bytes:?}");
}

#[test]
fn slow_receiver_does_not_delay_others() {
    let time_of_fast = |slow: usize| {
        let mut net = Net::new(3);
        let fast = net.receivers(1, Link::millis(5).mbps(40.0).fifo(60_000), Link::millis(5));
        net.receivers(slow, Link::millis(5).mbps(0.3).fifo(15_000), Link::millis(5));
        net.source(Offer::bytes(1_000_000).by(RLC).expect(1 + slow as u32));
        net.run_to_end(secs(300));
        net.receivers[fast.start].ended_at.as_secs_f64()
    };
    let (alone, beside) = (time_of_fast(0), time_of_fast(3));
    assert!(beside <= alone * 1.05, "{beside} s beside slow ones, {alone} s alone");
}

#[test]
fn receivers_get_few_surplus_symbols_despite_losses() {
    let mut net = Net::new(5);
    let all = net.receivers(3, Link::millis(5).mbps(40.0).fifo(60_000).losing(0.02), Link::millis(5));
    let source = net.source(Offer::bytes(2_000_000).by(RLC).expect(3));
    net.run_to_end(secs(300));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        let report = net.receivers[receiver].report();
        assert!(report.symbol_ratio <= 1.08, "{report:?}");
    }
}

#[test]
fn late_joiner_gets_the_whole_content() {
    let mut net = Net::new(9);
    let first = net.receivers(1, Link::millis(5).mbps(2.0).fifo(20_000), Link::millis(5));
    let source = net.source(Offer::bytes(2_000_000).by(RLC).expect(2).wait_secs(2));
    net.run_for(secs(4));
    let late = net.receivers(1, Link::millis(5).mbps(20.0).fifo(40_000), Link::millis(5));
    net.run_to_end(secs(300));
    net.assert_all_verified(source, first);
    net.assert_all_verified(source, late.clone());
    let report = net.receivers[late.start].report();
    assert!(report.symbol_ratio <= 1.08, "{report:?}");
}

#[test]
fn adaptive_layers_deliver_the_same_content_to_all_receivers() {
    for scheme in ["gmcc", "smcc"] {
        let mut net = Net::new(11);
        net.trace.record = true;
        let fast = net.receivers(1, Link::millis(10).mbps(8.0).fifo(40_000), Link::millis(10));
        let slow = net.receivers(2, Link::millis(10).mbps(1.0).fifo(20_000), Link::millis(10));
        let source = net.source(Offer::bytes(2_000_000).by(scheme).at_most_mbps(20.0).expect(3));
        net.run_to_end(secs(300));
        net.assert_all_verified(source, fast.clone());
        net.assert_all_verified(source, slow.clone());
        let ended = |receivers: &Range<usize>| net.receivers[receivers.start].ended_at;
        println!("{scheme}: {} and {}", ended(&fast).as_secs_f64(), ended(&slow).as_secs_f64());
        assert!(ended(&fast) <= ended(&slow), "{scheme}");
        assert_eq!(requests(&net), 0, "{scheme}");
    }
}

/// Returns the number of datagrams that request symbols from the source.
fn requests(net: &Net) -> usize {
    let is_request = |bytes: &[u8]| peek(bytes).is_ok_and(|header| header.kind == Kind::Request);
    net.trace.up.iter().filter(|(_, _, bytes)| is_request(bytes)).count()
}
