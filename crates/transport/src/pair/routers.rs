//! Active routers in virtual time: packets are forwarded under their original numbers, and routers merge the answers of
//! receivers.

use super::net::{Head, Net, Who};
use super::node::Offer;
use super::tree::branch;
use crate::event::Event;
use crate::relay::{HopStatus, RouterKind};
use faircast_core::schemes::rmanp::router as rmanp;
use faircast_core::time::{Span, Time};
use faircast_simnet::Link;
use faircast_wire::GroupKey;

fn lan() -> Link {
    Link::millis(2).mbps(50.0).fifo(100_000)
}

fn secs(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

fn offer(kind: RouterKind, receivers: u32) -> Offer {
    Offer::bytes(4_000_000).by(kind.scheme()).expect(receivers).at_most_mbps(20.0)
}

/// Builds two active routers, the second one behind the first one. Each of the first router's two exits and the exit of the
/// second router has `each` receivers.
fn two_hops(kind: RouterKind, each: usize, offer: Offer, loss: f64) -> Net {
    let mut tree = Net::of(41, offer);
    let first = tree.hop(Head::Source(0), kind, 2, lan());
    let second = tree.hop(branch(first, 1), kind, 1, lan());
    tree.behind(branch(first, 0), each, lan().losing(loss));
    tree.behind(branch(first, 1), each, lan().losing(loss));
    tree.behind(branch(second, 0), each, lan().losing(loss));
    tree
}

fn status(tree: &Net, hop: usize) -> HopStatus {
    tree.relays[hop].hop.as_ref().expect("it is a hop").with(|hop| hop.status())
}

#[test]
fn two_routers_of_every_kind_forward_sessions() {
    for kind in RouterKind::ALL {
        let mut tree = two_hops(kind, 2, offer(kind, 6), 0.002);
        tree.start();
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
        let (first, second) = (status(&tree, 0), status(&tree, 1));
        println!(
            "{kind}: {:.1} s, {} answers; {first:?} {second:?}",
            tree.now.as_secs_f64(),
            tree.sources[0].received
        );
        assert_eq!(tree.sources[0].report().verified, 6);
        assert!(first.packets > 2_000 && second.packets > 2_000, "{kind}: {first:?} {second:?}");
        let most = first.packets + 200;
        assert!(first.reports_sent <= most, "{kind}: no more than one for each packet: {first:?}");
        assert!(second.reports_sent <= most, "{kind}: {second:?}");
        assert!(first.reports_received > first.reports_sent, "{kind}: {first:?}");
    }
}

#[test]
fn routers_with_the_hop_key_forward_sealed_sessions() {
    for kind in RouterKind::ALL {
        let mut offer = offer(kind, 3);
        offer.key = Some(GroupKey::from_bytes([9; 32]));
        let mut tree = two_hops(kind, 1, offer, 0.01);
        tree.start();
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
        assert!(status(&tree, 1).passed > 2_000);
    }
}

#[test]
fn feedback_at_the_source_does_not_grow_with_the_group_size() {
    for kind in RouterKind::ALL {
        let answers = |each: usize| {
            let mut tree = two_hops(kind, each, offer(kind, 3 * each as u32), 0.0);
            tree.start();
            tree.run_to_end(secs(300));
            tree.assert_everybody_has_all();
            tree.sources[0].received as f64 / tree.sources[0].report().packets as f64
        };
        let (few, many) = (answers(1), answers(12));
        println!("{kind}: {few:.2} and {many:.2} datagrams for each packet");
        assert!(many < few * 1.3 + 0.1, "{kind}: {few} and {many}");
    }
}

#[test]
fn slow_receiver_behind_a_router_sets_the_rate() {
    for kind in RouterKind::ALL {
        let mut tree = Net::of(43, Offer::bytes(2_000_000).by(kind.scheme()).expect(4));
        let hop = tree.hop(Head::Source(0), kind, 2, lan());
        tree.behind(branch(hop, 0), 3, lan());
        tree.behind(branch(hop, 1), 1, Link::millis(5).mbps(5.0).fifo(40_000));
        tree.start();
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
        let took = tree.sources[0].report().duration.as_secs_f64();
        let best = 2_000_000.0 * 8.0 / 5e6;
        println!("{kind}: {took:.1} s where the link alone takes {best:.1}");
        assert!(took < 2.5 * best, "{kind}: {took} s");
    }
}

#[test]
fn dead_router_is_replaced_by_plain_forwarding() {
    for kind in RouterKind::ALL {
        let mut tree = two_hops(kind, 2, offer(kind, 6), 0.001);
        tree.start();
        tree.run_until(secs(60), |tree| tree.now > Time::ZERO + Span::from_millis(800));
        tree.kill_relay(0);
        // The receivers and the second router now receive from the source directly.
        (0..4).for_each(|receiver| tree.attach(Who::Receiver(receiver), Head::Source(0), lan()));
        tree.attach(Who::Relay(1), Head::Source(0), lan());
        tree.run_to_end(secs(300));
        for node in &tree.receivers {
            assert!(
                node.report().ok && node.has(&tree.sources[0]),
                "{kind}: {} has something else",
                node.host
            );
        }
        println!("{kind}: over after {:.1} s", tree.now.as_secs_f64());
    }
}

#[test]
fn completed_receiver_of_a_restarting_router_counts_once() {
    for kind in RouterKind::ALL {
        for (seed, hop) in (0..10).flat_map(|seed| [(seed, 0), (seed, 1)]) {
            let mut tree = two_hops(kind, 2, Offer::bytes(400_000).by(kind.scheme()).expect(6), 0.0);
            tree.start();
            let done = |tree: &Net| tree.relays[hop].shared.with_mode(|hop| hop.tally().done);
            tree.run_until(secs(60), |tree| done(tree) > Some(0));
            let at = tree.now + Span::from_millis(2 * seed);
            tree.run_until(secs(60), |tree| tree.now >= at);
            tree.kill_relay(hop);
            tree.start_host(Who::Relay(hop));
            tree.run_to_end(secs(300));
            tree.assert_everybody_has_all();
            assert_eq!(tree.sources[0].report().verified, 6, "{kind}, {seed}, {hop}");
        }
    }
}

#[test]
fn completed_receiver_of_a_dead_router_reports_to_the_source() {
    for kind in RouterKind::ALL {
        for delay in 0..10 {
            let mut tree = two_hops(kind, 2, Offer::bytes(400_000).by(kind.scheme()).expect(6), 0.0);
            tree.start();
            let done = |tree: &Net| tree.relays[0].shared.with_mode(|hop| hop.tally().done);
            tree.run_until(secs(60), |tree| done(tree) > Some(0));
            let at = tree.now + Span::from_millis(2 * delay);
            tree.run_until(secs(60), |tree| tree.now >= at);
            tree.kill_relay(0);
            (0..4).for_each(|receiver| tree.attach(Who::Receiver(receiver), Head::Source(0), lan()));
            tree.attach(Who::Relay(1), Head::Source(0), lan());
            tree.run_to_end(secs(300));
            let report = tree.sources[0].report();
            assert_eq!((report.verified, report.ok), (6, true), "{kind}, {delay}: {report:?}");
        }
    }
}

#[test]
fn late_receiver_behind_a_router_gets_the_whole_content() {
    for kind in RouterKind::ALL {
        let mut tree = Net::of(45, offer(kind, 2));
        let hop = tree.hop(Head::Source(0), kind, 1, lan());
        tree.behind(branch(hop, 0), 2, lan());
        tree.late.push(Who::Receiver(1));
        tree.start();
        tree.run_until(secs(60), |tree| tree.now > Time::ZERO + Span::from_millis(600));
        tree.start_receiver(1);
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
    }
}

/// A packet that a router has dropped for lack of room is never sent. The router must not promise this packet to a receiver,
/// which would wait for it indefinitely.
#[test]
fn routers_with_a_small_cache_end_when_their_source_ends() {
    // Size of the cache and of the queue in packets, delay to the source in milliseconds, rate of the slow link in Mbit/s. The
    // last value states whether all receivers behind the second router share the slow link.
    for (cache, queue, far, slow, all) in
        [(100, 100, 40, 10.0, true), (100, 100, 40, 10.0, false), (30, 100, 10, 4.0, false)]
    {
        let options = rmanp::Config { cache, queue, increase: 0.5, exclude: 0, ..rmanp::Config::default() };
        let fast = || Link::millis(1).mbps(100.0).fifo(100_000);
        let narrow = Link::millis(far).mbps(slow).fifo(40_000);
        let mut tree = Net::of(1, Offer::bytes(2_000_000).by("rmanp").expect(6).at_most_mbps(50.0));
        let above = Link::millis(far).mbps(100.0).fifo(100_000);
        let first = tree.hop(Head::Source(0), RouterKind::Rmanp, 2, above);
        let to_second = if all { narrow } else { fast() };
        let second = tree.hop(branch(first, 1), RouterKind::Rmanp, 1, to_second);
        tree.relays.iter_mut().for_each(|hop| hop.options = Some(options));
        tree.behind(branch(first, 0), 3, fast());
        tree.behind(branch(second, 0), 2, fast());
        tree.behind(branch(second, 0), 1, Link::millis(1).mbps(slow).fifo(40_000));
        tree.start();
        tree.run_to_end(secs(60));
        tree.assert_everybody_has_all();
        println!("{cache} kept, {queue} wait: {:.1} s", tree.now.as_secs_f64());
    }
}

#[test]
fn routers_leave_sessions_of_other_schemes_to_the_kernel() {
    for kind in RouterKind::ALL {
        let mut tree = Net::of(44, Offer::bytes(1_000_000).by("pgmcc").expect(1).at_most_mbps(2.0));
        let hop = tree.hop(Head::Source(0), kind, 1, lan());
        tree.behind(branch(hop, 0), 1, lan());
        // The kernel forwards the session.
        tree.attach(Who::Receiver(0), Head::Source(0), lan());
        tree.start();
        tree.run_until(secs(100), |tree| tree.receivers[0].session.is_none());
        assert!(tree.receivers[0].has(&tree.sources[0]));
        assert_eq!(status(&tree, hop).packets, 0);
        let reported = |text: &str| {
            let mut events = tree.relays[hop].events.iter();
            events.any(|(_, event)| matches!(event, Event::Warning { message, .. } if message.contains(text)))
        };
        assert!(reported("left to the kernel"), "{:?}", tree.relays[hop].events);
    }
}
