//! Bugs that simulated worlds have found (`docs/fuzzing.md`), each reproduced in a fixed network. Related cases are tested, too.

use super::net::{Head, Net, Who};
use super::node::Offer;
use super::tree::schemes;
use crate::event::Event;
use faircast_core::time::{Span, Time};
use faircast_simnet::Link;
use faircast_wire::{GroupKey, SigningKey};

const MEMORY: usize = 8 << 20;

fn link() -> Link {
    Link::millis(4).mbps(20.0).fifo(80_000)
}

#[test]
fn late_relay_fetches_a_fully_sent_session_for_its_children() {
    let mut tree = Net::of(41, Offer::bytes(60_000).expect(2).wait_secs(20));
    tree.behind(Head::Source(0), 1, link());
    let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.behind(Head::Branch { relay, branch: 0 }, 1, link());
    tree.behind(Head::Source(0), 1, link());
    // The last receiver dies immediately, and the source waits for it. The late hosts start when the first receiver has
    // completed.
    tree.late = vec![Who::Receiver(1), Who::Relay(relay)];
    tree.start();
    let joined = |tree: &Net| {
        tree.sources[0].events.iter().filter(|(_, event)| matches!(event, Event::Joined { .. })).count()
    };
    tree.run_until(Span::from_secs(5), |tree| joined(tree) == 2);
    tree.receivers[2].session = None;
    tree.run_until(Span::from_secs(60), |tree| tree.receivers[0].session.is_none());
    assert!(tree.sources[0].session.is_some(), "the source waits for the last one");
    tree.start_host(Who::Relay(relay));
    tree.start_receiver(1);
    tree.run_to_end(Span::from_secs(150));
    for node in &tree.receivers[..2] {
        assert!(node.report().ok && node.has(&tree.sources[0]), "{} has something else", node.host);
    }
}

#[test]
fn late_relay_fetches_the_blocks_that_its_children_request() {
    let mut tree = Net::of(30, Offer::bytes(4_000_000).expect(4).at_most_mbps(16.0));
    let fast = || Link::millis(4).mbps(30.0).fifo(80_000);
    let first = tree.relay(Head::Source(0), 1, MEMORY, fast());
    let second = tree.relay(Head::Source(0), 1, MEMORY, fast());
    tree.late.push(Who::Relay(second));
    tree.behind(Head::Source(0), 2, fast());
    let slow = || Link::millis(4).mbps(4.0).fifo(40_000);
    tree.behind(Head::Branch { relay: first, branch: 0 }, 2, slow());
    (2..4).for_each(|receiver| {
        tree.attach(Who::Receiver(receiver), Head::Branch { relay: second, branch: 0 }, slow())
    });
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| {
        tree.receivers[0].session.is_none() && tree.receivers[1].session.is_none()
    });
    tree.kill_relay(first);
    tree.start_host(Who::Relay(second));
    tree.run_to_end(Span::from_secs(300));
    for node in &tree.receivers {
        assert!(node.report().ok && node.has(&tree.sources[0]), "{} has something else", node.host);
    }
}

#[test]
fn idle_relay_behind_a_relay_does_not_delay_a_session() {
    let mut tree = Net::of(42, Offer::bytes(60_000));
    tree.behind(Head::Source(0), 1, link());
    let above = tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.relay(Head::Branch { relay: above, branch: 0 }, 1, MEMORY, link());
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.sources[0].session.is_none());
    assert!(tree.sources[0].report().ok, "{:?}", tree.sources[0].report());
    assert!(tree.now < Time::ZERO + Span::from_secs(15), "{:?}", tree.now);
}

#[test]
fn relay_forwards_pages_of_hashes_in_small_datagrams() {
    for datagram in [424, 432, 440] {
        let (key, signer) = (GroupKey::from_bytes([1; 32]), SigningKey::from_seed([2; 32]));
        let offer = Offer::bytes(60_000).expect(1).in_blocks_of(4).datagrams_of(datagram);
        let mut tree = Net::of(43, offer.sealed(key).signed(signer.clone()));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
        tree.behind(Head::Branch { relay, branch: 0 }, 1, link());
        tree.receivers[0].verify = Some(signer.verify_key().into());
        tree.start();
        tree.run_to_end(Span::from_secs(60));
        tree.assert_everybody_has_all();
    }
}

#[test]
fn relays_end_when_their_source_ends_without_receivers() {
    let mut tree = Net::of(44, Offer::bytes(60_000).wait_secs(5));
    tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.start();
    tree.run_to_end(Span::from_secs(60));
    assert!(
        tree.now < Time::ZERO + Span::from_secs(10),
        "{:?}: that is less than a relay's idle timeout",
        tree.now
    );
}

#[test]
fn relay_with_a_silent_source_accepts_no_new_receiver() {
    // The source waits for a second receiver, both at the start and at the end, but that receiver never joins.
    let mut tree = Net::of(45, Offer::bytes(60_000).expect(2).wait_secs(5));
    let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.behind(Head::Branch { relay, branch: 0 }, 2, link());
    tree.late = vec![Who::Receiver(1)];
    tree.start();
    tree.run_until(Span::from_secs(60), |tree| tree.receivers[0].session.is_none());
    tree.sources[0].session = None; // kill the source
    let killed = tree.now;
    tree.run_until(Span::from_secs(4), |tree| tree.now > killed + Span::from_secs(3));
    tree.start_receiver(1);
    tree.run_until(Span::from_secs(9), |tree| tree.now > killed + Span::from_secs(10));
    assert!(tree.relays[relay].above.is_some(), "the relay still waits for its source");
    let joined = tree.receivers[1].events.iter().any(|(_, event)| matches!(event, Event::Joined { .. }));
    assert!(!joined, "what is announced may be over, and another session may begin");
}

#[test]
fn relay_sends_no_leave_message_to_a_restarted_source() {
    let mut tree = Net::of(46, Offer::bytes(6_000_000).at_most_mbps(4.0));
    let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
    tree.behind(Head::Branch { relay, branch: 0 }, 1, link());
    tree.start();
    tree.run_until(Span::from_secs(3), |tree| tree.now > Time::ZERO + Span::from_secs(2));
    tree.sources[0].session = None; // kill the source
    let killed = tree.now;
    tree.run_until(Span::from_secs(4), |tree| tree.now > killed + Span::from_secs(3));
    assert!(tree.relays[relay].above.is_some());
    let reported = tree.sources[0].events.len();
    tree.start_source(0);
    tree.run_until(Span::from_secs(9), |tree| tree.relays[relay].above.is_none());
    let again = tree.now;
    tree.run_until(Span::from_secs(2), |tree| tree.now > again + Span::from_secs(1));
    let left =
        tree.sources[0].events[reported..].iter().find(|(_, event)| matches!(event, Event::Left { .. }));
    assert!(left.is_none(), "{left:?}");
}

#[test]
fn completed_receiver_counts_once_after_its_relay_restarts() {
    // The relay dies before or after its source knows that the receiver has completed.
    for source_knows in [false, true] {
        let mut tree = Net::of(47, Offer::bytes(60_000).expect(2).wait_secs(5));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
        tree.behind(Head::Branch { relay, branch: 0 }, 1, link());
        tree.start();
        tree.run_until(Span::from_secs(20), |tree| {
            let known = tree.sources[0].session.as_ref().map_or(0, |session| session.tally().done);
            known == u64::from(source_knows) && tree.receivers[0].has(&tree.sources[0])
        });
        assert!(tree.receivers[0].session.is_some(), "it has not heard that it is known to be done");
        tree.kill_relay(relay);
        tree.start_host(Who::Relay(relay));
        tree.run_until(Span::from_secs(20), |tree| tree.sources[0].session.is_none());
        let report = tree.sources[0].report();
        assert_eq!((report.receivers, report.verified), (1, 1), "{source_knows}: {report:?}");
    }
}

#[test]
fn completed_receiver_of_a_dead_relay_reports_to_another_relay() {
    for name in schemes() {
        let mut tree = Net::of(48, Offer::bytes(300_000).by(name).expect(3).wait_secs(5));
        let first = tree.relay(Head::Source(0), 1, MEMORY, link());
        let second = tree.relay(Head::Source(0), 1, MEMORY, link());
        tree.behind(Head::Branch { relay: first, branch: 0 }, 2, link());
        // This slow receiver keeps the session running long after the other receivers have completed.
        let slow = Link::millis(2).mbps(0.2).fifo(60_000);
        tree.behind(Head::Branch { relay: second, branch: 0 }, 1, slow);
        (0..2)
            .for_each(|at| tree.attach(Who::Receiver(at), Head::Branch { relay: second, branch: 0 }, link()));
        tree.start();
        let has_all = |tree: &Net| (0..2).all(|at| tree.receivers[at].has(&tree.sources[0]));
        tree.run_until(Span::from_secs(60), has_all);
        let waits = tree.receivers[..2].iter().filter(|node| node.session.is_some()).count();
        assert!(waits > 0, "{name}: they have not heard that they are known to be done");
        tree.kill_relay(first);
        tree.run_to_end(Span::from_secs(120));
        let report = tree.sources[0].report();
        assert_eq!(report.verified, 3, "{name}: {report:?}");
    }
}
