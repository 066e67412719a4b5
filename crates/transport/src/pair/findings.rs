//! What the simulated world has found (`docs/reliability.md`), each in a network made by hand.

use super::link::Link;
use super::node::Offer;
use super::tree::{Head, Tree};
use faircast_core::time::{Span, Time};

const MEMORY: usize = 8 << 20;

fn link() -> Link {
    Link::millis(4).mbps(20.0).fifo(80_000)
}

#[test]
fn a_relay_that_comes_when_everything_has_left_its_source_fetches_it_for_those_below() {
    let mut tree = Tree::new(41, Offer::bytes(60_000).expect(2).wait_secs(20));
    tree.receivers(Head::Source, 1, link());
    let relay = tree.relay(Head::Source, 1, MEMORY, link());
    tree.receivers(Head::Branch { relay, branch: 0 }, 1, link());
    // The first receiver alone is waited for in vain at first, and the others come when it is done.
    (tree.late, tree.late_relays) = (vec![1], vec![relay]);
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.receivers[0].session.is_none());
    assert!(tree.source.session.is_some(), "the source waits for the second one");
    tree.start_relay(relay);
    tree.start_receiver(1);
    tree.run_to_end(Span::from_secs(60));
    tree.assert_all_verified();
}

#[test]
fn a_relay_behind_a_relay_that_serves_nobody_holds_nobody_up() {
    let mut tree = Tree::new(42, Offer::bytes(60_000));
    tree.receivers(Head::Source, 1, link());
    let above = tree.relay(Head::Source, 1, MEMORY, link());
    tree.relay(Head::Branch { relay: above, branch: 0 }, 1, MEMORY, link());
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.source.session.is_none());
    assert!(tree.source.report().ok, "{:?}", tree.source.report());
    assert!(tree.now < Time::ZERO + Span::from_secs(15), "{:?}", tree.now);
}
