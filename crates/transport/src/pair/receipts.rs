//! Receipts: every receiver's signature reaches the source, despite losses and relays.

use super::node::ReceiverNode;
use super::streams::LiveInput;
use super::tree::branch;
use super::*;
use crate::config::ReceiptKeys;
use crate::event::{ReceiverOutcome, SendReport};
use crate::receipts::ReceiptsReport;
use crate::relay::RouterKind;
use faircast_core::schemes::{CATALOGUE, Scheme};
use faircast_wire::{GroupKey, Name, Receipt, SigningKey};

/// Returns the key of this receiver's receipts.
fn key(receiver: usize) -> SigningKey {
    SigningKey::from_seed([100 + receiver as u8; 32])
}

fn keys(receivers: usize) -> ReceiptKeys {
    (0..receivers).map(|receiver| key(receiver).verify_key()).collect()
}

fn signing(receivers: &mut [ReceiverNode]) {
    receivers.iter_mut().enumerate().for_each(|(at, node)| node.sign_receipts = Some(key(at)));
}

fn receipts(report: &SendReport) -> &ReceiptsReport {
    report.receipts.as_ref().expect("somebody has signed, or should have")
}

/// Checks that this number of receivers have signed receipts, each with a different key, and that the report suffices to verify
/// the signatures.
fn assert_signed(report: &SendReport, receivers: usize) {
    let receipts = receipts(report);
    assert!(report.ok && receipts.without_receipt.is_empty(), "{report:?}");
    assert_eq!((receipts.good, receipts.signed.len()), (receivers as u64, receivers), "{receipts:?}");
    let (about, root) =
        (receipts.about().expect("it has a form"), receipts.root_hash().expect("it is known"));
    for receiver in 0..receivers {
        let public = key(receiver).verify_key().to_bytes();
        let mut all = receipts.signed.iter().map(|one| (one, one.receipt(root).expect("it has a form")));
        let of_it = all.find(|(_, receipt)| receipt.key == public);
        let (one, receipt) = of_it.unwrap_or_else(|| panic!("{receiver} has not signed: {receipts:?}"));
        assert!(one.valid && one.known != Some(false), "{one:?}");
        assert_eq!(one.host, format!("host{receiver}"));
        assert!(receipts.is_signed(one) && receipt.is_signed(&about));
        let since = one.signed_at.abs_diff(1_800_000_000);
        assert!(since < 1_000, "it says when: {since} s after the start");
    }
}

fn net(seed: u64) -> Net {
    Net::new(seed).with_trunk(Link::millis(2).mbps(40.0).fifo(100_000))
}

#[test]
fn source_gets_receipts_of_all_receivers_with_every_scheme() {
    for (at, entry) in CATALOGUE.iter().enumerate() {
        let layers = entry.name.parse::<Scheme>().expect("a scheme").layers();
        let mut net = net(500 + at as u64);
        let sealed = at % 2 == 0;
        let group = sealed.then(|| GroupKey::from_bytes([7; 32]));
        let path = || Link::millis(2).mbps(20.0).fifo(100_000);
        let all = net.receivers_with(3, path(), Link::millis(2), None, group.clone());
        signing(&mut net.receivers);
        all.for_each(|receiver| net.start_receiver(receiver));
        let offer = Offer::bytes(400_000).by(entry.name).expect(3).at_most_mbps(10.0).receipts(keys(3));
        let source = net.source(group.into_iter().fold(offer, Offer::sealed));
        net.run_to_end(secs(900));
        net.assert_all_verified(source, 0..3);
        println!("{} ({layers} layers): {:.1} s", entry.name, net.now.as_secs_f64());
        assert_signed(net.sources[source].report(), 3);
        for one in &net.sources[source].report().each {
            assert!(one.receipt.as_ref().is_some_and(|receipt| receipt.host == one.host), "{one:?}");
        }
        let reported = |event: &Event| matches!(event, Event::Receipt(receipt) if receipt.valid);
        assert!(net.reported(source, reported).is_some());
    }
}

#[test]
fn lost_receipts_and_answers_are_repeated() {
    for seed in 0..8 {
        let mut net = net(600 + seed);
        let path = Link::millis(3).mbps(20.0).fifo(100_000).losing(0.3);
        net.receivers_with(6, path, Link::millis(3).losing(0.3), None, None);
        signing(&mut net.receivers);
        (0..6).for_each(|receiver| net.start_receiver(receiver));
        let source = net.source(Offer::bytes(100_000).at_mbps(2.0).expect(6).receipts(keys(6)));
        net.run_to_end(secs(900));
        net.assert_all_verified(source, 0..6);
        assert_signed(net.sources[source].report(), 6);
    }
}

#[test]
fn missing_receipts_and_unknown_keys_are_reported_if_required() {
    for asked in [false, true] {
        let mut net = net(700);
        net.receivers_with(3, Link::millis(2), Link::millis(2), None, None);
        signing(&mut net.receivers);
        net.receivers[1].sign_receipts = None;
        net.receivers[2].sign_receipts = Some(key(9));
        (0..3).for_each(|receiver| net.start_receiver(receiver));
        let offer = Offer::bytes(200_000).expect(3);
        let source = net.source(if asked { offer.receipts(keys(4)) } else { offer });
        net.run_to_end(secs(60));
        let report = net.sources[source].report();
        let receipts = receipts(report);
        assert_eq!((report.ok, report.verified), (!asked, 3), "{report:?}");
        assert_eq!(receipts.signed.len(), 2, "{receipts:?}");
        assert_eq!(receipts.good, if asked { 1 } else { 2 }, "{receipts:?}");
        let reasons: Vec<_> =
            receipts.without_receipt.iter().map(|one| (one.host.as_str(), one.reason.as_str())).collect();
        if asked {
            assert_eq!(receipts.unused_keys.len(), 3, "those of 1, 2 and 3");
            assert_eq!(reasons.len(), 2, "{reasons:?}");
            let reason = |host| reasons.iter().find(|(of, _)| *of == host).map_or("", |(_, reason)| *reason);
            assert!(reason("host1").contains("has signed no receipt"), "{reasons:?}");
            assert!(reason("host2").contains("signed by an unknown key"), "{reasons:?}");
        } else {
            assert!(reasons.is_empty(), "{reasons:?}");
        }
        for one in &report.each {
            let is_good = !asked || one.host == "host0";
            let outcome = if is_good { ReceiverOutcome::Verified } else { ReceiverOutcome::Incomplete };
            assert_eq!((one.outcome, one.reason.is_some()), (outcome, !is_good), "{one:?}");
        }
    }
}

#[test]
fn report_has_no_receipts_field_if_no_receipt_is_sent() {
    let mut net = net(710);
    net.receivers(2, Link::millis(2), Link::millis(2));
    let source = net.source(Offer::bytes(200_000).expect(2));
    net.run_to_end(secs(60));
    net.assert_all_verified(source, 0..2);
    assert_eq!(net.sources[source].report().receipts, None);
}

#[test]
fn forged_and_replayed_receipts_are_refused() {
    let mut net = net(720);
    net.receivers_with(2, Link::millis(2), Link::millis(2), None, None);
    net.receivers[0].sign_receipts = Some(key(0));
    (0..2).for_each(|receiver| net.start_receiver(receiver));
    let source = net.source(Offer::bytes(1_500_000).expect(2).at_mbps(8.0));
    net.run_until(secs(60), |net| {
        net.reported(source, |event| matches!(event, Event::Progress(p) if p.bytes > 0)).is_some()
    });
    // Host 1 sends two forged receipts: one for another session, and one in the name of host 0 with the key of host 1.
    let ids = [0, 1].map(|at| net.receivers[at].session.as_ref().expect("it runs").id());
    let about = net.sources[source].session.as_ref().expect("it runs").about();
    let other = faircast_wire::Signed { salt: [1; 16], ..about };
    let mut codec = faircast_wire::ReceiverCodec::new(&[], ids[1], 1);
    for (receiver, about) in [(ids[1], other), (ids[0], about)] {
        let forged = Receipt::sign(&about, [9; 32], (receiver, Name::clipped("host0")), 5, &key(1));
        let forged = Receipt { from: ids[1], nonce: 77, ..forged };
        let session = net.sources[source].id;
        let from = net.receivers[1].address;
        let mut bytes = Vec::new();
        let message = faircast_wire::Message::Receipt(forged);
        // Packet numbers must exceed the numbers that host 1 has used, but not so far that later packets of host 1 are refused.
        for _ in 0..30 {
            bytes.clear();
            codec.encode(&mut bytes, session, &message).expect("it has a form");
        }
        net.inject_up(source, from, bytes);
    }
    net.run_to_end(secs(60));
    net.assert_all_verified(source, 0..2);
    let receipts = receipts(net.sources[source].report());
    assert_eq!(receipts.good, 1, "{receipts:?}");
    let of = |host: &str, valid| {
        receipts.signed.iter().filter(|one| one.host == host && one.valid == valid).count()
    };
    assert_eq!((of("host0", true), of("host0", false)), (1, 1), "{receipts:?}");
    let invalid = receipts.signed.iter().find(|one| !one.valid).expect("the repeated one");
    assert_eq!(invalid.receiver, ids[1].to_string(), "what was said for host 0 is not even kept");
}

#[test]
fn relays_forward_receipts_and_the_source_waits_for_them() {
    for (at, entry) in CATALOGUE.iter().enumerate() {
        let offer = Offer::bytes(400_000).by(entry.name).expect(4).at_most_mbps(10.0).receipts(keys(4));
        let mut tree = Net::of(800 + at as u64, offer);
        let link = || Link::millis(2).mbps(20.0).fifo(100_000).losing(0.02);
        let top = tree.relay(Head::Source(0), 1, 64 << 20, link());
        let below = tree.relay(branch(top, 0), 1, 64 << 20, link());
        tree.behind(branch(top, 0), 2, link());
        tree.behind(branch(below, 0), 2, link());
        signing(&mut tree.receivers);
        tree.start();
        tree.run_to_end(secs(900));
        tree.assert_everybody_has_all();
        println!("{}: {:.1} s", entry.name, tree.now.as_secs_f64());
        assert_signed(tree.sources[0].report(), 4);
    }
}

#[test]
fn missing_receipt_of_a_receiver_behind_a_relay_is_reported() {
    let mut tree = Net::of(830, Offer::bytes(400_000).expect(3).receipts(keys(3)));
    let top = tree.relay(Head::Source(0), 1, 64 << 20, Link::millis(2));
    tree.behind(branch(top, 0), 3, Link::millis(2));
    signing(&mut tree.receivers);
    tree.receivers[1].sign_receipts = None;
    tree.start();
    tree.run_to_end(secs(60));
    let report = tree.sources[0].report();
    assert!(!report.ok && report.verified == 3, "{report:?}");
    let lacking = &receipts(report).without_receipt;
    assert!(
        lacking.len() == 1 && lacking[0].reason.starts_with("1 of 3 receivers downstream"),
        "{lacking:?}"
    );
}

#[test]
fn active_routers_forward_receipts() {
    for kind in RouterKind::ALL {
        let offer = Offer::bytes(1_000_000).by(kind.scheme()).expect(4).at_most_mbps(20.0).receipts(keys(4));
        let mut tree = Net::of(840, offer);
        let link = || Link::millis(2).mbps(50.0).fifo(100_000).losing(0.01);
        let first = tree.hop(Head::Source(0), kind, 2, link());
        let second = tree.hop(branch(first, 1), kind, 1, link());
        tree.behind(branch(first, 0), 2, link());
        tree.behind(branch(second, 0), 2, link());
        signing(&mut tree.receivers);
        tree.start();
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
        assert_signed(tree.sources[0].report(), 4);
    }
}

#[test]
fn agents_forward_receipts() {
    let mut grove = Net::of(850, Offer::bytes(1_000_000).by("mtcp").expect(4).receipts(keys(4)));
    let lan = || Link::millis(2).mbps(8.0).fifo(60_000).losing(0.005);
    for _ in 0..2 {
        let agent = grove.agent(&[], 16, lan());
        let address = grove.agents[agent].address;
        grove.children(&[address], 2, lan());
    }
    signing(&mut grove.receivers);
    grove.start();
    grove.run_to_end(secs(300));
    grove.assert_have_all(0..4);
    assert_signed(grove.sources[0].report(), 4);
}

#[test]
fn receiver_warns_if_its_source_accepts_no_receipts() {
    let mut net = net(860);
    net.receivers_with(1, Link::millis(5).mbps(5.0).fifo(20_000), Link::millis(5), None, None);
    signing(&mut net.receivers);
    net.start_receiver(0);
    let streams = [LiveInput::live(0.4, 100_000), LiveInput::live(0.4, 100_000)];
    let source = net.source(Offer::streams(&streams, secs(5)).by("rlc,base=500000,layers=2").expect(1));
    net.run_to_end(secs(60));
    let report = net.sources[source].report();
    assert!(report.ok && report.verified == 1 && report.receipts.is_none(), "{report:?}");
    assert!(net.receivers[0].report().ok);
    let says = |event: &Event| matches!(event, Event::Warning { message, .. } if message.contains("accepts no receipts"));
    assert!(net.receivers[0].events.iter().any(|(_, event)| says(event)));
}

#[test]
fn receipts_add_at_most_three_packets_per_receiver() {
    let answers = |signs: bool| {
        let mut net = net(870);
        net.receivers_with(100, Link::millis(2), Link::millis(2), None, None);
        if signs {
            signing(&mut net.receivers);
        }
        (0..100).for_each(|receiver| net.start_receiver(receiver));
        let source = net.source(Offer::bytes(300_000).expect(100).at_most_mbps(10.0));
        net.run_to_end(secs(60));
        net.assert_all_verified(source, 0..100);
        assert_eq!(
            net.sources[source].report().receipts.as_ref().map_or(0, |all| all.good),
            if signs { 100 } else { 0 }
        );
        (net.sources[source].received, net.now)
    };
    let (before, with) = (answers(false), answers(true));
    println!(
        "100 receivers: {} messages until {:?} without, {} until {:?} with receipts",
        before.0, before.1, with.0, with.1
    );
    assert!(
        with.0 <= before.0 + 300,
        "a receipt, and one message more while it waits: {} and {}",
        before.0,
        with.0
    );
}
