//! Sources that would fill the disk, and receivers that limit the bytes of a session.

use super::streams::LiveInput;
use super::*;
use crate::session_filter::SessionFilter;
use std::fs;

/// Adds a receiver that accepts sessions of up to this number of bytes.
fn careful(net: &mut Net, most: u64) -> usize {
    let receiver = net.receivers(1, Link::millis(5).mbps(20.0), Link::millis(5)).start;
    net.receivers[receiver].accept = SessionFilter::new(Vec::new(), Some(most));
    net.start_receiver(receiver);
    receiver
}

/// Returns the size of all files in the receiver's directory, bytes.
fn on_disk(net: &Net, receiver: usize) -> u64 {
    let files = fs::read_dir(&net.receivers[receiver].dir).into_iter().flatten();
    files.map(|file| file.and_then(|file| file.metadata()).map_or(0, |meta| meta.len())).sum()
}

#[test]
fn content_larger_than_the_quota_is_not_received() {
    let mut net = Net::new(3);
    let (small, large) = (careful(&mut net, 999_999), careful(&mut net, 1_000_000));
    let source = net.source(Offer::bytes(1_000_000).expect(1));
    net.run_until(secs(60), |net| net.receivers[large].ended.is_some());
    assert!(net.receivers[large].has(&net.sources[source]));
    assert_eq!(on_disk(&net, small), 0);
    assert!(net.receivers[small].ended.is_none(), "it waits for another session");
}

#[test]
fn live_stream_fails_after_the_quota_is_written() {
    let mut net = Net::new(5);
    let receiver = careful(&mut net, 10_000);
    let source = net.source(Offer::live(secs(10), 0).datagrams_of(424).in_blocks_of(2).wait_secs(30));
    let mut fed = Vec::new();
    for byte in 0..60 {
        fed.extend(net.feed(source, byte));
        net.run_for(Span::from_millis(200));
    }
    assert!(fed.len() > 20_000, "{}", fed.len());
    let error = net.receivers[receiver].ended.as_ref().expect("it has ended").as_ref().expect_err("not well");
    assert!(error.in_full().contains("its limit of 10000 bytes"), "{}", error.in_full());
    assert_eq!(on_disk(&net, receiver), 10_000);
    let file = fs::read_dir(&net.receivers[receiver].dir).expect("its directory").next().expect("a file");
    let got = fs::read(file.expect("it can be seen").path()).expect("it can be read");
    assert!(fed.windows(got.len()).any(|part| part == got), "what came is what was sent");
}

#[test]
fn layered_streams_share_one_quota() {
    let mut net = Net::new(7);
    let receiver = careful(&mut net, 100_000);
    let streams = [LiveInput::live(0.4, 2_000_000), LiveInput::live(0.4, 2_000_000)];
    net.source(Offer::streams(&streams, secs(1)).by("rlc,base=500000,layers=2").expect(1));
    net.run_until(secs(60), |net| net.receivers[receiver].ended.is_some());
    let error = net.receivers[receiver].ended.as_ref().expect("just now").as_ref().expect_err("too much");
    assert!(error.in_full().contains("its limit of 100000 bytes"), "{}", error.in_full());
    let bytes = on_disk(&net, receiver);
    assert!((50_000..=100_000).contains(&bytes), "{bytes}");
}
