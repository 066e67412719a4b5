//! Holes of files: their blocks are not sent, and arrive as holes.

use super::node::{IN_DISK, ReceiverNode};
use super::tree::{branch, schemes};
use super::*;
use crate::config::{Repeat, ReplayPolicy};
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{GroupKey, SigningKey, VerifyKeys};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Length of the content. More than nine tenths of it are holes, also at the end.
const BYTES: u64 = 4_000_000;

/// Maximum number of bytes on the disk, or of sent source symbols: the data, and the blocks at the edges of holes.
const MOST: u64 = 2 * IN_DISK + 6 * 48_000;

fn path() -> Link {
    Link::millis(5).mbps(20.0).fifo(100_000)
}

fn offer(scheme: &'static str) -> Offer {
    Offer::disk(BYTES).by(scheme).at_most_mbps(4.0).in_blocks_of(32)
}

/// Checks that the content arrived with its holes.
fn assert_sparse<'a>(receivers: impl IntoIterator<Item = &'a ReceiverNode>) {
    for node in receivers {
        let arrived = fs::metadata(node.dir.join("content")).expect("it arrived");
        let allocated = arrived.blocks() * 512;
        assert_eq!(arrived.len(), BYTES);
        assert!(allocated <= MOST, "{}: {allocated} bytes on the disk", node.host);
    }
}

#[test]
fn sparse_file_arrives_with_its_holes_under_every_scheme() {
    for entry in CATALOGUE {
        let mut net = Net::new(31);
        net.receivers(1, path(), Link::millis(5));
        let all = net.receivers(1, path().losing(0.03), Link::millis(5));
        let source = net.source(offer(entry.name).expect(2));
        net.run_to_end(secs(200));
        net.assert_all_verified(source, 0..all.end);
        assert_sparse(&net.receivers);
        let report = net.sources[source].report();
        let is_single = entry.name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
        let sent = report.packets * 1_400;
        assert!(!is_single || sent < MOST * 3 / 2, "{}: {sent} bytes were sent", entry.name);
    }
}

#[test]
fn late_joiner_asks_for_no_holes() {
    for entry in CATALOGUE {
        let mut net = Net::new(32);
        net.receivers(2, path().losing(0.01), Link::millis(5));
        net.kill_receiver(1);
        let source = net.source(offer(entry.name).at_most_mbps(1.5).expect(2).wait_secs(20));
        net.sources[source].offer.start.start();
        net.run_for(Span::from_millis(1_500));
        net.start_receiver(1);
        net.run_to_end(secs(300));
        net.assert_all_verified(source, 0..2);
        assert_sparse(&net.receivers);
        let report = net.sources[source].report();
        let is_single = entry.name.parse::<Scheme>().is_ok_and(|scheme| scheme.layers() <= 1);
        let sent = report.packets * 1_400;
        assert!(!is_single || sent < MOST * 5 / 2, "{}: {sent} bytes were sent", entry.name);
    }
}

#[test]
fn sealed_and_signed_sparse_file_arrives() {
    let (key, sign) = (GroupKey::from_bytes([7; 32]), SigningKey::from_seed([8; 32]));
    for scheme in ["ormcc", "rlc"] {
        let mut net = Net::new(33);
        let all = net.receivers_with(2, path().losing(0.02), Link::millis(5), None, Some(key.clone()));
        for receiver in all.clone() {
            net.receivers[receiver].verify = Some(VerifyKeys::from(sign.verify_key()));
            net.start_receiver(receiver);
        }
        let source = net.source(offer(scheme).sealed(key.clone()).signed(sign.clone()).expect(2));
        net.run_to_end(secs(200));
        net.assert_all_verified(source, all);
        assert_sparse(&net.receivers);
    }
}

#[test]
fn killed_receiver_of_a_sparse_file_resumes() {
    let mut net = Net::new(34);
    net.receivers(2, path().losing(0.01), Link::millis(5));
    let source = net.source(offer("ormcc").at_most_mbps(1.0).expect(2));
    net.run_for(Span::from_millis(3_500));
    net.kill_receiver(1);
    net.run_for(Span::from_millis(300));
    net.start_receiver(1);
    net.run_to_end(secs(100));
    net.assert_all_verified(source, 0..2);
    assert_sparse(&net.receivers);
    let report = net.receivers[1].report();
    assert!(report.resumed_bytes > 0 && report.resumed_bytes < MOST, "{report:?}");
    let sent = net.sources[source].report().packets * 1_400;
    assert!(sent < MOST * 2, "{sent} bytes were sent");
}

#[test]
fn sparse_file_arrives_one_way() {
    let mut net = Net::new(35);
    let all = net.receivers(2, path().losing(0.02), Link::millis(5));
    for receiver in all.clone() {
        net.receivers[receiver].replay_policy = ReplayPolicy::Clock;
        net.start_receiver(receiver);
    }
    let disk = Offer::disk(BYTES).in_blocks_of(32).one_way_at_mbps(4.0, Repeat::Rounds(3));
    let source = net.source(disk);
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
    assert_sparse(&net.receivers);
    let sent = net.sources[source].report().packets * 1_400;
    assert!(sent < 3 * MOST * 5 / 4, "{sent} bytes were sent in three rounds");
}

#[test]
fn sparse_file_reaches_receivers_behind_relays() {
    for name in schemes() {
        let mut tree = Net::of(36, offer(name).expect(4));
        let link = || Link::millis(3).mbps(20.0).fifo(100_000).losing(0.01);
        let upper = tree.relay(Head::Source(0), 1, 64 << 20, link());
        let lower = tree.relay(branch(upper, 0), 1, 300_000, link());
        tree.behind(Head::Source(0), 1, link());
        tree.behind(branch(upper, 0), 1, link());
        tree.behind(branch(lower, 0), 2, link());
        tree.start();
        tree.run_to_end(secs(300));
        tree.assert_all_verified(0, 0..4);
        assert_sparse(&tree.receivers);
    }
}
