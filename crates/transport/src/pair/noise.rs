//! Noise in a sealed session: datagrams that resemble the session's packets, but are not sealed with the session's key.

use super::*;
use crate::endpoint::{Datagram, Endpoint};
use faircast_core::packet::{Echo, Layer, ReceiverId, Report, ReportContent, Seq};
use faircast_net::Ecn;
use faircast_wire::{GroupKey, Message, ReceiverCodec, SourceCodec, Status};
use std::net::SocketAddr;

const PACKETS: u64 = 10_000;

/// Delivers many copies of a datagram. In each copy, a different bit after the header is changed. Returns the number of
/// allocations.
fn flood(endpoint: &mut dyn Endpoint, datagram: &[u8], from: SocketAddr, now: Time) -> u64 {
    let before = endpoint.poll_timeout(now);
    let (mut bytes, behind) = ([0; 1_500], 24);
    let counted = allocation_counter::measure(|| {
        for number in 0..PACKETS as usize {
            let bytes = &mut bytes[..datagram.len()];
            bytes.copy_from_slice(datagram);
            bytes[behind + number % (datagram.len() - behind)] ^= 1 << (number % 8);
            endpoint.handle_datagram(Datagram { bytes, from, ecn: Ecn::NotEct, arrived: now }, now);
        }
    });
    assert_eq!(endpoint.poll_timeout(now), before, "noise wakes nobody");
    assert!(endpoint.poll_transmit(now, &mut Vec::new()).is_none(), "and is not answered");
    assert!(counted.bytes_current <= 4_096, "{} bytes stay", counted.bytes_current);
    counted.count_total
}

#[test]
fn sealed_session_drops_damaged_packets_without_storing_state() {
    let key = GroupKey::from_bytes([6; 32]);
    let mut net = Net::new(43);
    net.receivers_with(1, Link::millis(5).mbps(20.0), Link::millis(5), None, Some(key.clone()));
    let source = net.source(Offer::bytes(50_000_000).sealed(key.clone()).at_most_mbps(4.0).expect(1));
    net.run_for(secs(3));
    let (node, now) = (&net.sources[source], net.now);
    let (id, announce, from) = (node.id, node.announced(), node.address);
    let mut forger = SourceCodec::new(id, Some(&key), node.salt).after(1 << 20);
    let (mut announced, mut status, mut report) = (Vec::new(), Vec::new(), Vec::new());
    forger.encode(&mut announced, &Message::Announce(announce), 1_472).expect("it fits");
    forger.encode(&mut status, &Message::Status(Status::default()), 1_472).expect("it fits");
    let me = ReceiverId::new(77).expect("it is not zero");
    let mut codec = ReceiverCodec::new(std::slice::from_ref(&key), me, 1);
    codec.open(&mut announced, from).expect("it is sealed");
    let content = ReportContent::Alive { echo: Echo { seq: Seq(1), hold: Span::ZERO } };
    let word = Message::Report(Report { from: me, layer: Layer(0), content });
    codec.encode(&mut report, id, &word).expect("it fits");
    let receiver = net.receivers[0].session.as_mut().expect("it receives");
    let at_receiver = flood(receiver, &status, from, now);
    let source = net.sources[source].session.as_mut().expect("it sends");
    let at_source = flood(source, &report, SocketAddr::from(([10, 9, 9, 9], 4_000)), now);
    println!("{at_receiver} and {at_source} allocations for {PACKETS} packets of noise each");
    // A source derives a key for the apparent sender, and discards the key if the authentication tag is wrong.
    assert!(at_receiver < 100 && at_source <= 2 * PACKETS + 100, "{at_receiver} and {at_source}");
}
