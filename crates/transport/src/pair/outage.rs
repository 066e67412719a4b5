//! Paths that fail for a while or permanently, in one direction or both, with every scheme.

use super::node::IDLE_TIMEOUT;
use super::*;
use crate::error::{Error, TransferError};
use crate::event::Advice;
use faircast_core::schemes::CATALOGUE;

fn path() -> Link {
    Link::millis(5).mbps(8.0).fifo(40_000)
}

fn back() -> Link {
    Link::millis(5)
}

/// Starts a transfer of this number of bytes to two receivers with this scheme, and runs the network for two seconds.
fn started(scheme: &'static str, bytes: u64) -> (Net, Range<usize>, usize) {
    let mut net = Net::new(7);
    let all = net.receivers(2, path(), back());
    let source = net.source(Offer::bytes(bytes).by(scheme).at_most_mbps(20.0).expect(2));
    net.run_for(secs(2));
    assert!(net.sources[source].session.is_some() && bytes_sent(&net, source) > 0, "{scheme}");
    (net, all, source)
}

fn bytes_sent(net: &Net, source: usize) -> u64 {
    net.trace.sent.get(source).map_or(0, |sent| sent.total())
}

fn cut(net: &mut Net, down: bool, up: bool) {
    let dead = |link: Link, is_dead: bool| if is_dead { link.losing(1.0) } else { link };
    let group = net.group_of(0);
    group.down.set_link(dead(path(), down));
    group.up.set_link(dead(back(), up));
}

fn warnings(events: &[(Time, Event)], words: &str) -> usize {
    let is_named = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains(words));
    events.iter().filter(is_named).count()
}

fn idle_timeout() -> f64 {
    IDLE_TIMEOUT.as_secs_f64()
}

#[test]
fn ten_second_outage_does_not_end_a_session() {
    for entry in CATALOGUE {
        let (mut net, all, source) = started(entry.name, 2_500_000);
        cut(&mut net, true, true);
        net.run_for(secs(10));
        assert!(!net.is_finished(), "{}", entry.name);
        cut(&mut net, false, false);
        let from = net.now;
        net.run_to_end(secs(600));
        println!("{}: done {:.1} s after the path was back", entry.name, net.now.since(from).as_secs_f64());
        net.assert_all_verified(source, all.clone());
        // One warning for both receivers, or one for each.
        let named = warnings(&net.sources[source].events, "been silent for");
        assert!((1..=2).contains(&named), "{}: {named}", entry.name);
        assert_eq!(net.sources[source].report().advice, None);
        for receiver in all {
            assert_eq!(warnings(&net.receivers[receiver].events, "no data"), 0, "{}", entry.name);
        }
    }
}

#[test]
fn source_without_feedback_ends_and_blames_the_reverse_path() {
    for entry in CATALOGUE {
        let (mut net, _, source) = started(entry.name, 60_000_000);
        cut(&mut net, false, true);
        let from = net.now;
        net.run_until(secs(60), |net| net.sources[source].session.is_none());
        let lasted = net.now.since(from).as_secs_f64();
        let report = net.sources[source].report();
        println!("{}: ended {lasted:.1} s after the last answer", entry.name);
        assert!((idle_timeout() - 2.0..idle_timeout() + 4.0).contains(&lasted), "{}: {lasted}", entry.name);
        assert!(!report.ok && report.verified == 0, "{}: {report:?}", entry.name);
        assert!(report.incomplete.iter().all(|one| one.reason == "silent"), "{report:?}");
        assert_eq!(report.advice, Some(Advice::WayBack), "{}", entry.name);
        // One warning for both receivers, or one for each.
        let named = warnings(&net.sources[source].events, "been silent for");
        assert!((1..=2).contains(&named), "{}: {named}", entry.name);
    }
}

#[test]
fn receivers_without_data_end_after_the_idle_timeout() {
    for entry in CATALOGUE {
        let (mut net, all, _) = started(entry.name, 60_000_000);
        cut(&mut net, true, false);
        let from = net.now;
        net.run_until(secs(60), |net| net.receivers.iter().all(|node| node.session.is_none()));
        let lasted = net.now.since(from).as_secs_f64();
        assert!((idle_timeout() - 1.0..idle_timeout() + 2.0).contains(&lasted), "{}: {lasted}", entry.name);
        for receiver in all {
            let ended = &net.receivers[receiver].ended;
            assert!(
                matches!(ended, Some(Err(Error::Transfer(TransferError::SourceSilent { .. })))),
                "{}: {ended:?}",
                entry.name
            );
        }
    }
}

#[test]
fn silent_receiver_is_named_and_does_not_delay_others() {
    let mut net = Net::new(3);
    let well = net.receivers(1, path(), back());
    let away = net.receivers(1, path(), back());
    let source = net.source(Offer::bytes(6_000_000).expect(2));
    net.run_for(secs(2));
    for (down, up) in [(path().losing(1.0), back().losing(1.0)), (path(), back())] {
        let group = net.group_of(away.start);
        group.down.set_link(down);
        group.up.set_link(up);
        net.run_for(secs(15));
    }
    net.run_to_end(secs(120));
    net.assert_all_verified(source, well.start..away.end);
    let named = |words: &str| warnings(&net.sources[source].events, words);
    assert_eq!((named("host1 has been silent"), named("host0")), (1, 0));
    assert!(net.receivers[well.start].ended_at < Time::ZERO + secs(14), "the other one did not wait");
}

#[test]
fn completion_is_repeated_until_the_source_receives_it() {
    let mut net = Net::new(4);
    let all = net.receivers(2, path(), back());
    let source = net.source(Offer::bytes(1_000_000).expect(2));
    net.run_until(secs(60), |net| bytes_sent(net, 0) > 1_000_000);
    cut(&mut net, false, true);
    net.run_for(secs(10));
    cut(&mut net, false, false);
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
}

/// The host of the source changes its address during the session.
#[test]
fn receivers_follow_a_source_to_a_new_address() {
    for key in [None, Some(faircast_wire::GroupKey::from_bytes([5; 32]))] {
        let mut net = Net::new(5);
        let all = net.receivers_with(2, path(), back(), None, key.clone());
        let offer = Offer::bytes(4_000_000).expect(2);
        let source = net.source(key.into_iter().fold(offer, Offer::sealed));
        net.run_for(secs(2));
        let address = std::net::SocketAddr::from(([10, 0, 0, 99], 40_000));
        net.move_source(source, address);
        net.run_to_end(secs(120));
        net.assert_all_verified(source, all.clone());
        for receiver in all {
            assert_eq!(
                warnings(&net.receivers[receiver].events, "to 10.0.0.99:40000; the session continues"),
                1
            );
        }
    }
}

#[test]
fn announcements_replayed_from_another_address_move_no_session() {
    let mut net = Net::new(6);
    let all = net.receivers(2, path(), back());
    let source = net.source(Offer::bytes(6_000_000).expect(2));
    net.trace.record = true;
    net.run_for(secs(3));
    net.trace.record = false;
    let is_announcement = |bytes: &[u8]| {
        faircast_wire::peek(bytes).is_ok_and(|header| header.kind == faircast_wire::Kind::Announce)
    };
    let overheard: Vec<_> =
        net.trace.down.iter().filter(|(_, _, bytes)| is_announcement(bytes)).cloned().collect();
    assert!(overheard.len() > 4, "{}", overheard.len());
    let elsewhere = std::net::SocketAddr::from(([10, 9, 9, 9], 5777));
    let repeat = |net: &mut Net| {
        for (_, receiver, bytes) in &overheard {
            net.inject_down(*receiver, elsewhere, bytes.clone());
        }
        net.run_for(Span::from_nanos(1));
    };
    repeat(&mut net);
    // Repeat the announcements also during an outage of the source. By then the source's clock has advanced beyond the time that
    // the announcements state.
    cut(&mut net, true, true);
    net.run_for(secs(8));
    repeat(&mut net);
    cut(&mut net, false, false);
    net.run_to_end(secs(120));
    net.assert_all_verified(source, all.clone());
    for receiver in all {
        assert_eq!(warnings(&net.receivers[receiver].events, "the source has moved from"), 0);
    }
}

/// An attacker repeats a recorded announcement from another address. No receiver is misled, even if it has the key that opens the
/// announcement.
#[test]
fn replayed_announcement_does_not_mislead_receivers() {
    for key in [None, Some(faircast_wire::GroupKey::from_bytes([6; 32]))] {
        let mut net = Net::new(8);
        let early = net.receivers_with(1, path(), back(), None, key.clone());
        let offer = Offer::bytes(8_000_000);
        let source = net.source(key.iter().cloned().fold(offer, Offer::sealed));
        net.trace.record = true;
        net.run_for(secs(2));
        net.trace.record = false;
        let is_announcement = |bytes: &[u8]| {
            faircast_wire::peek(bytes).is_ok_and(|header| header.kind == faircast_wire::Kind::Announce)
        };
        let newest = net.trace.down.iter().rev().find(|(_, _, bytes)| is_announcement(bytes)).cloned();
        let (_, _, bytes) = newest.expect("sources announce");
        let late = net.receivers_with(1, path(), back(), None, key);
        let elsewhere = std::net::SocketAddr::from(([10, 9, 9, 9], 5777));
        net.inject_down(late.start, elsewhere, bytes);
        net.run_to_end(secs(120));
        net.assert_all_verified(source, early.start..late.end);
        let late = &net.receivers[late.start];
        assert_eq!(warnings(&late.events, "the source has moved from"), 0);
        let joined = |event: &Event| matches!(event, Event::Joined { address, .. } if *address == net.sources[source].address);
        assert_eq!(late.events.iter().filter(|(_, event)| joined(event)).count(), 1);
    }
}

/// An attacker repeats a complete recorded session from its former address, where no host answers.
#[test]
fn receivers_do_not_join_a_replayed_session() {
    for key in [None, Some(faircast_wire::GroupKey::from_bytes([6; 32]))] {
        let mut net = Net::new(9);
        let first = net.receivers_with(1, path(), back(), None, key.clone());
        let offer = Offer::bytes(100_000).expect(1);
        let source = net.source(key.iter().cloned().fold(offer, Offer::sealed));
        let address = net.sources[source].address;
        net.trace.record = true;
        net.run_to_end(secs(60));
        net.trace.record = false;
        net.assert_all_verified(source, first.clone());
        let recorded: Vec<_> = net.trace.down.iter().map(|(_, _, bytes)| bytes.clone()).collect();
        assert!(recorded.len() > 70, "{}", recorded.len());
        let late = net.receivers_with(1, path(), back(), None, key);
        for _ in 0..3 {
            for bytes in &recorded {
                net.inject_down(late.start, address, bytes.clone());
                net.run_for(Span::from_millis(2));
            }
        }
        let late = &net.receivers[late.start];
        assert!(late.session.is_some(), "it still waits for a session");
        let reported = |event: &Event| matches!(event, Event::Joined { .. } | Event::Content { .. });
        assert!(!late.events.iter().any(|(_, event)| reported(event)), "{:?}", late.events);
    }
}
