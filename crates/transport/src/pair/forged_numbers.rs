//! Data packets forged in the source's name. In an open session, the attacker spoofs the source's address; in a sealed session,
//! the attacker is a member.

use super::*;
use faircast_core::packet::{Data, Layer, Payload, ReceiverId, Seq};
use faircast_core::schemes::CATALOGUE;
use faircast_wire::{DataPacket, GroupKey, Message, ReceiverCodec, SourceCodec};
use std::collections::BTreeMap;

const BYTES: u64 = 3_000_000;

/// Schemes with layers, with their options.
const LAYERED: [&str; 3] = ["rlc,layers=4", "smcc,layers=4", "gmcc,layers=4"];

fn key() -> GroupKey {
    GroupKey::from_bytes([7; 32])
}

/// Returns the newest packet of each layer that has reached a receiver.
fn overhear(net: &mut Net, source: usize, receiver: usize, key: Option<&GroupKey>) -> BTreeMap<Layer, Data> {
    let keys: Vec<GroupKey> = key.cloned().into_iter().collect();
    let mut spy = ReceiverCodec::new(&keys, ReceiverId::new(99).expect("not zero"), 1);
    let mut newest = BTreeMap::new();
    let from = net.sources[source].address;
    for (_, _, mut bytes) in
        std::mem::take(&mut net.trace.down).into_iter().filter(|(_, to, _)| *to == receiver)
    {
        match spy.open(&mut bytes, from) {
            Ok((session, Message::Announce(_))) => spy.follow(session),
            Ok((_, Message::Data(packet))) => drop(newest.insert(packet.layer, packet.data)),
            _ => {}
        }
    }
    newest
}

/// Returns data packets in the source's name with these packet numbers. The packets contain no symbol.
fn forge(
    net: &Net,
    source: usize,
    key: Option<&GroupKey>,
    (layer, like): (Layer, Data),
    numbers: impl Iterator<Item = u64>,
) -> Vec<Vec<u8>> {
    let node = &net.sources[source];
    let mut codec = SourceCodec::new(node.id, key, node.announced().salt);
    let mut out = Vec::new();
    codec.encode(&mut out, &Message::Announce(node.announced()), 1_400).expect("a small message");
    let one = |seq| {
        let mut out = Vec::new();
        let data = Data { seq: Seq(seq), payload: Payload::NONE, ..like };
        let packet = DataPacket { data, layer, symbols: 0, payload: &[] };
        codec.encode_data(&mut out, &packet).expect("a small packet");
        out
    };
    numbers.map(one).collect()
}

/// Distances of forged packet numbers from a layer's newest packet number.
type Ahead = std::ops::Range<u64>;

struct Run {
    seconds: f64,
    /// Report of the source.
    report: crate::event::SendReport,
    warnings: Vec<String>,
}

/// Runs a transfer. At time `at`, all receivers get forged packets of each layer. Their packet numbers exceed the newest packet
/// number of the layer by `ahead`.
fn run(scheme: &'static str, key: Option<GroupKey>, at: Span, ahead: Ahead) -> Run {
    let mut net = Net::new(21).with_trunk(Link::millis(5).mbps(20.0).fifo(60_000));
    let all = net.receivers_with(2, Link::millis(5).losing(0.001), Link::millis(5), None, key.clone());
    let offer = Offer::bytes(BYTES).by(scheme).at_most_mbps(16.0).expect(2);
    let source = net.source(key.clone().into_iter().fold(offer, Offer::sealed));
    net.trace.record = true;
    net.run_for(at);
    net.trace.record = false;
    for (layer, data) in overhear(&mut net, source, all.start, key.as_ref()) {
        let numbers = ahead.clone().map(|jump| data.seq.0 + jump);
        for bytes in forge(&net, source, key.as_ref(), (layer, data), numbers) {
            for receiver in all.clone() {
                let from = net.sources[source].address;
                net.inject_down(receiver, from, bytes.clone());
            }
        }
    }
    net.run_to_end(secs(300));
    net.assert_all_verified(source, all);
    let warnings = net.sources[source].events.iter().filter_map(|(_, event)| match event {
        Event::Warning { message, .. } => Some(message.clone()),
        _ => None,
    });
    let report = net.sources[source].report().clone();
    Run { seconds: report.duration.as_secs_f64(), warnings: warnings.collect(), report }
}

const FAR: [(&str, Ahead); 4] = [
    ("5,000", 5_000..5_001),
    ("2^20", (1 << 20)..(1 << 20) + 1),
    ("2^31", (1 << 31)..(1 << 31) + 1),
    ("many", 5_000..5_512),
];
/// Distances to packet numbers that the source soon reaches, so that a receiver cannot recognize the forged packets at once.
const NEAR: [(&str, Ahead); 3] = [("20", 20..21), ("60", 60..61), ("a chain", 40..552)];

fn assert_harmless(
    schemes: impl Iterator<Item = &'static str>,
    key: Option<&GroupKey>,
    attacks: &[(&str, Ahead)],
    most: f64,
) {
    for scheme in schemes {
        let calm = run(scheme, key.cloned(), Span::from_millis(700), 0..0).seconds;
        let at = Span::from_secs_f64(calm / 2.0);
        for (name, ahead) in attacks {
            let attacked = run(scheme, key.cloned(), at, ahead.clone());
            println!("{scheme}, {name}: {:.2} s (else {calm:.2})", attacked.seconds);
            assert!(
                attacked.seconds <= calm + most,
                "{scheme}, {name}: {} s instead of {calm}",
                attacked.seconds
            );
            assert_eq!(attacked.warnings, [""; 0], "{scheme}, {name}");
            assert!(attacked.report.ok);
        }
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name)
}

#[test]
fn packet_numbers_forged_far_ahead_do_not_delay_open_sessions() {
    assert_harmless(names(), None, &FAR, 0.1);
}

#[test]
fn packet_numbers_forged_far_ahead_by_a_member_delay_no_session() {
    assert_harmless(names(), Some(&key()), &FAR, 0.1);
}

#[test]
fn packet_numbers_forged_far_ahead_delay_no_layered_session() {
    assert_harmless(LAYERED.into_iter(), None, &FAR, 0.1);
    assert_harmless(LAYERED.into_iter(), Some(&key()), &FAR, 0.1);
}

#[test]
fn packet_numbers_forged_just_ahead_delay_sessions_by_seconds() {
    assert_harmless(names(), None, &NEAR, 3.0);
    assert_harmless(names(), Some(&key()), &NEAR, 3.0);
}

#[test]
fn packet_numbers_forged_just_ahead_delay_layers_by_seconds() {
    assert_harmless(LAYERED.into_iter(), None, &NEAR, 3.0);
}
