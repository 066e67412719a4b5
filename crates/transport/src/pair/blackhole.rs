//! Paths that carry small datagrams and drop large ones, with every scheme: announcements arrive, but data does not.

use super::node::IDLE_TIMEOUT;
use super::*;
use crate::error::{Class, Error, TransferError};
use crate::event::Advice;
use faircast_core::schemes::{CATALOGUE, LayerRates};

fn path() -> Link {
    Link::millis(5).mbps(8.0).fifo(40_000)
}

fn hole() -> Link {
    path().dropping_above(1_000)
}

fn first_warning(events: &[(Time, Event)], words: &str) -> Option<Time> {
    let is_named = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains(words));
    events.iter().find(is_named).map(|(at, _)| *at)
}

/// Checks that the receivers report total loss within seconds of `from`, and end after the idle timeout.
fn assert_total_loss(net: &Net, source: usize, receivers: Range<usize>, from: Time, name: &str) {
    let after = |at: Time| at.since(from).as_secs_f64();
    let idle_timeout = IDLE_TIMEOUT.as_secs_f64();
    for receiver in receivers {
        let node = &net.receivers[receiver];
        let reported = first_warning(&node.events, "announcements arrive but no data").map(after);
        assert!(reported.is_some_and(|reported| reported < 10.0), "{name}: {reported:?}");
        let ended = after(node.ended_at);
        println!("{name}: {} says so after {reported:?} s and ends after {ended:.1} s", node.host);
        match &node.ended {
            Some(Err(
                error @ (Error::Transfer(TransferError::NothingArrives { .. })
                | Error::Transfer(TransferError::Ended { .. })),
            )) => {
                assert_eq!(error.class(), Class::Transfer);
            }
            other => panic!("{name}: {other:?}"),
        }
        assert!(ended <= idle_timeout + 15.0, "{name}: {ended}");
    }
    let reported = first_warning(&net.sources[source].events, "no data arrives there").map(after);
    assert!(
        reported.is_some_and(|reported| reported < 20.0),
        "{name}: the source says so after {reported:?}"
    );
    println!("{name}: the source says so after {reported:?} s");
}

#[test]
fn mtu_black_hole_ends_the_session_with_advice_to_check_path() {
    for entry in CATALOGUE {
        let mut net = Net::new(1);
        let all = net.receivers(2, hole(), Link::millis(5));
        let source = net.source(Offer::bytes(2_000_000).by(entry.name).at_most_mbps(20.0).expect(2));
        net.run_to_end(secs(90));
        assert_total_loss(&net, source, all, Time::ZERO, entry.name);
        let report = net.sources[source].report();
        assert!(!report.ok && report.verified == 0, "{report:?}");
        assert_eq!(report.advice, Some(Advice::Path), "{}: {report:?}", entry.name);
    }
}

#[test]
fn mtu_black_hole_during_a_transfer_ends_the_session() {
    for entry in CATALOGUE {
        let mut net = Net::new(2);
        let all = net.receivers(2, path(), Link::millis(5));
        let source = net.source(Offer::bytes(40_000_000).by(entry.name).at_most_mbps(20.0).expect(2));
        net.run_for(secs(4));
        let from = net.now;
        net.group_of(all.start).down.set_link(hole());
        net.run_to_end(secs(120));
        assert_total_loss(&net, source, all, from, entry.name);
        let report = net.sources[source].report();
        assert!(report.advice == Some(Advice::Path), "{report:?}");
    }
}

#[test]
fn member_in_a_black_hole_is_reported_and_others_finish() {
    for entry in CATALOGUE {
        let mut net = Net::new(3);
        let well = net.receivers(2, path(), Link::millis(5));
        let lost = net.receivers(1, hole(), Link::millis(5));
        let source = net.source(Offer::bytes(1_000_000).by(entry.name).at_most_mbps(20.0).expect(3));
        net.run_to_end(secs(400));
        for receiver in well {
            let node = &net.receivers[receiver];
            assert!(node.report().ok && node.has(&net.sources[source]), "{}", entry.name);
            println!("{}: {} is done after {:.1} s", entry.name, node.host, node.ended_at.as_secs_f64());
        }
        assert_total_loss(&net, source, lost, Time::ZERO, entry.name);
        let report = net.sources[source].report();
        assert_eq!((report.verified, report.incomplete.len()), (2, 1), "{}: {report:?}", entry.name);
        assert_eq!(
            report.incomplete[0].reason, "it sends feedback, but no data reaches it",
            "{}",
            entry.name
        );
    }
}

/// The member in the black hole requests all data repeatedly.
#[test]
fn member_in_a_black_hole_barely_delays_others() {
    let time_of_others = |lost: usize| {
        let mut net = Net::new(6);
        let well = net.receivers(2, path(), Link::millis(5));
        net.receivers(lost, hole(), Link::millis(5));
        net.source(Offer::bytes(20_000_000).at_most_mbps(20.0).expect(2 + lost as u32));
        net.run_to_end(secs(400));
        net.receivers[well].iter().map(|node| node.ended_at.as_secs_f64()).fold(0.0, f64::max)
    };
    let (alone, beside) = (time_of_others(0), time_of_others(1));
    println!(
        "two receivers are done after {alone:.1} s alone, and {beside:.1} s beside one that is not reached"
    );
    assert!(beside < 1.3 * alone, "{beside} s, {alone} s alone");
}

#[test]
fn session_survives_a_temporary_mtu_black_hole() {
    let mut net = Net::new(4);
    let all = net.receivers(2, path(), Link::millis(5));
    let source = net.source(Offer::bytes(4_000_000).at_most_mbps(20.0).expect(2));
    net.run_for(secs(2));
    net.group_of(all.start).down.set_link(hole());
    net.run_for(secs(12));
    net.group_of(all.start).down.set_link(path());
    net.run_to_end(secs(120));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        let events = &net.receivers[receiver].events;
        assert!(first_warning(events, "data arrives again") > first_warning(events, "but no data"));
    }
}

#[test]
fn moderate_losses_cause_no_warning() {
    for entry in CATALOGUE {
        let mut net = Net::new(5);
        let all = net.receivers(3, path().losing(0.02), Link::millis(5).losing(0.1));
        let source = net.source(Offer::bytes(3_000_000).by(entry.name).at_most_mbps(20.0).expect(3));
        net.run_to_end(secs(600));
        net.assert_all_verified(source, all.clone());
        assert_eq!(first_warning(&net.sources[source].events, ""), None, "{}", entry.name);
        for receiver in all {
            assert_eq!(first_warning(&net.receivers[receiver].events, ""), None, "{}", entry.name);
        }
    }
}

/// A kernel that forwards multicast loses packets that are sent in bursts. This network imitates such a kernel.
#[test]
fn source_sends_single_packets_after_bursts_were_lost() {
    for entry in CATALOGUE {
        let mut net = Net::new(5);
        net.receivers(2, Link::millis(2).mbps(200.0).fifo(500_000), Link::millis(2));
        let source = net.source(Offer::bytes(30_000_000).by(entry.name).expect(2));
        net.sources[source].bursts_are_lost = true;
        net.run_to_end(secs(300));
        let report = net.sources[source].report();
        let reported = first_warning(&net.sources[source].events, "one at a time");
        println!("{}: {:.1} s, told {reported:?}", entry.name, report.duration.as_secs_f64());
        assert!(report.ok && report.verified == 2, "{}: {report:?}", entry.name);
        // The base layer's rate may be too low for bursts, and receivers leave enhancement layers that deliver no packets. So a
        // layered session may not detect the loss of bursts.
        let is_in_layers = entry.layers != LayerRates::One;
        assert!(
            (reported.is_some() || is_in_layers) && report.duration.as_secs_f64() < 60.0,
            "{}: {reported:?} {report:?}",
            entry.name
        );
    }
}
