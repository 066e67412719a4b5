//! Parameters on which both ends must agree are announced, instead of being derived at both ends.

use super::*;
use crate::error::JoinObstacle;
use faircast_core::packet::{Echo, ReceiverId, Seq, SessionId};
use faircast_core::schemes::{CATALOGUE, Wire};
use faircast_core::time::Span;
use faircast_wire::encode::encode;
use faircast_wire::{GroupKey, Message};

fn key() -> GroupKey {
    GroupKey::from_bytes([5; 32])
}

/// Checks that all receivers run the source's scheme. Also checks that the packet size of this scheme matches the size of the
/// longest data packet on the link.
fn assert_agreed(scheme: &'static str, mut net: Net, key: Option<GroupKey>, headers: usize) {
    net.trace.record = true;
    let offer = Offer::bytes(400_000).by(scheme).datagrams_of(1_201).expect(2);
    net.receivers_with(2, Link::millis(5), Link::millis(5), None, key.clone());
    let source = net.source(key.into_iter().fold(offer, Offer::sealed));
    net.run_until(secs(20), |net| {
        let has_data = |(_, _, bytes): &(Time, usize, Vec<u8>)| bytes[2] == 1 && bytes.len() > 600;
        net.trace.down.iter().any(has_data)
    });
    let source = net.sources[source].session.as_ref().expect("it has begun").scheme();
    let longest =
        net.trace.down.iter().filter(|(_, _, bytes)| bytes[2] == 1).map(|(_, _, bytes)| bytes.len());
    let longest = longest.max().expect("data has come") + headers;
    let size = usize::from(source.sending().packet_size);
    assert!((longest..longest + 10).contains(&size), "{scheme}: {size} for packets of {longest} bytes");
    for node in &net.receivers {
        let session = node.session.as_ref().expect("it has begun");
        assert_eq!(session.scheme(), Some(source), "{scheme} with {headers} bytes of headers");
    }
}

#[test]
fn source_and_receiver_agree_on_scheme_and_packet_size() {
    for entry in CATALOGUE.iter().filter(|entry| entry.wires.contains(&Wire::Native)) {
        for key in [None, Some(key())] {
            assert_agreed(entry.name, Net::new(21), key.clone(), 28);
            assert_agreed(entry.name, Net::new(22).over_ipv6(), key, 48);
        }
    }
}

#[test]
fn options_that_differ_from_the_preset_reach_the_receiver() {
    assert_agreed("ormcc,beta=0.7,start=linear", Net::new(23), Some(key()), 28);
    assert_agreed("rlc,base=300k,layers=5", Net::new(24).over_ipv6(), Some(key()), 48);
}

#[test]
fn session_with_an_impossible_packet_size_is_not_joined() {
    for nonsense in [58, 9_000] {
        let mut net = Net::new(25);
        let all = net.receivers(1, Link::millis(5), Link::millis(5));
        net.source(Offer::bytes(10_000).announcing(nonsense).expect(1).wait_secs(3));
        net.run_for(secs(1));
        let session = net.receivers[all.start].session.as_ref().expect("it goes on looking");
        assert_eq!(session.scheme(), None);
        assert_eq!(session.seen(), Some(JoinObstacle::PacketSize));
    }
}

#[test]
fn receiver_reports_no_obstacle_for_overheard_feedback() {
    let mut net = Net::new(26);
    let all = net.receivers(1, Link::millis(5), Link::millis(5));
    let seen = |net: &Net| net.receivers[all.start].session.as_ref().and_then(|session| session.seen());
    let (mut report, from) = (Vec::new(), ([10, 0, 0, 9], 4_000).into());
    let window = faircast_wire::Window {
        from: ReceiverId::new(9).expect("nine is not zero"),
        echo: Echo { seq: Seq(0), hold: Span::ZERO },
        limit: Seq(1),
    };
    encode(&mut report, SessionId(9), 0, &Message::Window(window), 1_000).expect("it has a form");
    net.run_for(secs(1));
    net.inject_down(all.start, from, report);
    net.run_for(secs(1));
    assert_eq!(seen(&net), None);
    net.inject_down(all.start, from, vec![0xfc; 100]);
    net.run_for(secs(1));
    assert!(seen(&net).is_some(), "what is no packet is told of");
}
