//! Receivers downstream of relays: they join late, or their relay dies.

use super::tree::branch;
use super::*;

const MEMORY: usize = 64 << 20;

#[test]
fn orphaned_receiver_continues_at_the_source() {
    let mut tree = Net::of(27, Offer::bytes(6_000_000).expect(2).at_most_mbps(8.0));
    let link = || Link::millis(4).mbps(30.0).fifo(80_000);
    let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.behind(branch(relay, 0), 2, link());
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.now > Time::ZERO + Span::from_secs(3));
    tree.kill_relay(relay);
    (0..2).for_each(|receiver| tree.attach(Who::Receiver(receiver), Head::Source(0), link()));
    tree.run_to_end(Span::from_secs(300));
    for node in &tree.receivers {
        assert!(node.report().ok && node.has(&tree.sources[0]), "{} has something else", node.host);
    }
    assert!(
        tree.sources[0].report().repair_ratio < 1.4,
        "what they have is not sent again: {}",
        tree.sources[0].report().repair_ratio
    );
}

#[test]
fn late_joiner_behind_a_relay_gets_the_whole_content() {
    let mut tree = Net::of(28, Offer::bytes(4_000_000).expect(2).at_most_mbps(8.0));
    let link = || Link::millis(4).mbps(30.0).fifo(80_000).losing(0.002);
    let relay = tree.relay(Head::Source(0), 1, 1 << 20, link());
    tree.behind(branch(relay, 0), 3, link());
    tree.late.push(Who::Receiver(2));
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.now > Time::ZERO + Span::from_secs(3));
    tree.start_receiver(2);
    tree.run_to_end(Span::from_secs(300));
    tree.assert_everybody_has_all();
}
