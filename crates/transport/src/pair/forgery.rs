//! Hosts without the key that repeat, damage and forge datagrams.

use super::*;
use crate::event::RefusedPackets;
use faircast_core::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use faircast_wire::{DataPacket, GroupKey, Member, MemberState, Message, Name, Words, encode, encode_data};
use std::net::SocketAddr;

const OUTSIDER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 9, 9, 9)), 5778);

fn key() -> GroupKey {
    GroupKey::from_bytes([7; 32])
}

/// Attack by a host without the key. Every 20 ms, the host uses the datagrams that it has overheard since the last attack.
#[derive(Clone, Copy, PartialEq)]
enum Attack {
    None,
    /// Repeats all datagrams, to every host.
    Replay,
    /// Repeats all datagrams with one bit changed.
    Damage,
    /// Sends two kinds of packets without the key: reports of a congested receiver, and data packets.
    Invent,
}

/// Runs one transfer under attack. Returns its duration in seconds, the source's number of sent packets, and the datagrams that the
/// source and a receiver have refused.
fn run(key: Option<GroupKey>, attack: Attack) -> (f64, u64, [RefusedPackets; 2]) {
    let mut net = Net::new(11).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
    let all = net.receivers_with(2, Link::millis(5).losing(0.002), Link::millis(5), None, key.clone());
    let offer = Offer::bytes(10_000_000).expect(2);
    let source = net.source(key.into_iter().fold(offer, Offer::sealed));
    while !net.is_finished() {
        assert!(net.now < Time::ZERO + secs(60));
        net.trace.record = true;
        net.run_for(Span::from_millis(20));
        net.trace.record = false;
        let (down, up) = (std::mem::take(&mut net.trace.down), std::mem::take(&mut net.trace.up));
        mount(&mut net, source, attack, down, up);
        net.run_for(Span::from_nanos(1));
    }
    net.assert_all_verified(source, all);
    let report = net.sources[source].report();
    let received = net.receivers[0].report();
    assert_eq!(received.refused, received.refused_by.total());
    (report.duration.as_secs_f64(), report.packets, [report.refused_by, received.refused_by])
}

type Overheard = Vec<(Time, usize, Vec<u8>)>;

fn mount(net: &mut Net, source: usize, attack: Attack, down: Overheard, up: Overheard) {
    let damage = |bytes: &mut Vec<u8>| {
        let at = bytes.len() * 2 / 3;
        bytes[at] ^= 4;
    };
    match attack {
        Attack::None => {}
        Attack::Replay | Attack::Damage => {
            let from = net.sources[source].address;
            for (_, receiver, mut bytes) in down {
                if attack == Attack::Damage {
                    damage(&mut bytes);
                }
                net.inject_down(receiver, from, bytes);
            }
            for (_, source, mut bytes) in up {
                if attack == Attack::Damage {
                    damage(&mut bytes);
                }
                net.inject_up(source, OUTSIDER, bytes);
            }
        }
        Attack::Invent => invent(net, source),
    }
}

fn invent(net: &mut Net, source: usize) {
    let (session, from) = (net.sources[source].id, net.sources[source].address);
    let outsider = ReceiverId::new(77).expect("not zero");
    let echo = Echo { seq: Seq(100), hold: Span::ZERO };
    let content = ReportContent::Congested { echo, level: 1e4, mean: 1e4, cause: Cause::Loss };
    let report = Message::Report(Report { from: outsider, layer: Layer(0), content });
    let mut bytes = Vec::new();
    encode(&mut bytes, session, 1, &report, 1_000).expect("a small message");
    net.inject_up(source, OUTSIDER, bytes);
    let data = faircast_core::packet::Data {
        seq: Seq(1 << 20),
        sent_at: net.now,
        rate: 0.0,
        payload: faircast_core::packet::Payload { block: 1, symbol: 5 },
        flags: Default::default(),
        signal: Default::default(),
        mark: Mark::None,
    };
    let mut bytes = Vec::new();
    let packet = DataPacket { data, layer: Layer(0), symbols: 256, payload: &[0; 1400] };
    encode_data(&mut bytes, session, &packet).expect("a small packet");
    for receiver in 0..net.receivers.len() {
        net.inject_down(receiver, from, bytes.clone());
    }
}

fn assert_harmless(key: Option<GroupKey>, attacks: &[(&str, Attack, [&str; 2])]) {
    let (seconds, packets, _) = run(key.clone(), Attack::None);
    for (name, attack, reasons) in attacks {
        let (took, sent, refused) = run(key.clone(), *attack);
        println!(
            "{name}: {took:.2} s (else {seconds:.2}), {sent} packets (else {packets}), {refused:?} refused"
        );
        for (refused, reason) in refused.iter().zip(reasons) {
            let most = refused.by_reason().into_iter().max_by_key(|(_, count)| *count);
            assert!(most.is_some_and(|(most, count)| most == *reason && count > 0), "{name}: {refused:?}");
        }
        assert!((took / seconds - 1.0).abs() < 0.05, "{name}: {took} s instead of {seconds}");
        assert!(
            (sent as f64 / packets as f64 - 1.0).abs() < 0.05,
            "{name}: {sent} packets instead of {packets}"
        );
    }
}

#[test]
fn host_without_the_key_does_not_disturb_a_sealed_session() {
    let attacks = [
        ("replayed", Attack::Replay, ["replayed"; 2]),
        ("damaged", Attack::Damage, ["replayed"; 2]), // the number of a packet is compared before its seal
        ("invented", Attack::Invent, ["unauthentic", "implausible"]),
    ];
    assert_harmless(Some(key()), &attacks);
}

#[test]
fn damaged_datagrams_do_not_disturb_an_open_session() {
    assert_harmless(None, &[("damaged, open", Attack::Damage, ["malformed"; 2])]);
}

#[test]
fn open_session_completes_despite_replayed_datagrams() {
    let ((seconds, ..), (took, ..)) = (run(None, Attack::None), run(None, Attack::Replay));
    println!("replayed, open: {took:.2} s (else {seconds:.2})");
    assert!(took < 2.0 * seconds);
}

/// Injects a membership message of a phantom member. The message always echoes the first packet, so the member's round-trip time
/// seems to grow.
fn far_away(net: &mut Net, source: usize, number: u32) {
    let state = if number < 3 { MemberState::Joined } else { MemberState::Receiving };
    let member = Member {
        from: ReceiverId::new(77).expect("not zero"),
        nonce: 7,
        state,
        reason: 0,
        receivers: 1,
        done: 0,
        verified_bytes: 0,
        resumed_bytes: 0,
        blocks_missing: 1,
        rate: 0.0,
        loss: 0.0,
        dropped_local: 0,
        unwritten_bytes: 0,
        activity: faircast_wire::Activity::Network,
        percent: 0,
        echo: Echo { seq: Seq(0), hold: Span::ZERO },
        host: Name::clipped("far"),
        why: Words::default(),
    };
    let mut bytes = Vec::new();
    encode(&mut bytes, net.sources[source].id, number, &Message::Member(member), 1_000)
        .expect("a small message");
    net.inject_up(source, OUTSIDER, bytes);
}

#[test]
fn forged_round_trip_time_does_not_delay_repairs_for_others() {
    let run = |lies: bool| {
        let mut net = Net::new(11).with_trunk(Link::millis(5).mbps(50.0).fifo(100_000));
        let all = net.receivers(2, Link::millis(5).losing(0.05), Link::millis(5));
        let source =
            net.source(Offer::bytes(4_000_000).at_mbps(20.0).expect(2 + u32::from(lies)).wait_secs(12));
        for number in 0.. {
            if lies {
                far_away(&mut net, source, number);
            }
            net.run_for(Span::from_millis(20));
            if all.clone().all(|receiver| net.receivers[receiver].ended.is_some()) {
                break;
            }
            assert!(number < 5_000, "not within 100 s");
        }
        all.for_each(|receiver| assert!(net.receivers[receiver].has(&net.sources[source])));
        net.now.as_secs_f64()
    };
    let (else_took, took) = (run(false), run(true));
    println!("{took:.2} s, else {else_took:.2}");
    assert!(took < else_took + 5.0, "{took} s instead of {else_took}");
}
