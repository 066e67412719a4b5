//! Signed content: group members that forge content, and pages that are lost, late or wrong.

use super::wrong_blocks::leave;
use super::*;
use crate::error::JoinObstacle;
use crate::object::seal_block;
use faircast_core::packet::{Data, Flags, Layer, Payload, Seq};
use faircast_core::schemes::{CATALOGUE, LayerRates};
use faircast_wire::{DataPacket, GroupKey, Hashes, Message, SigningKey, SourceCodec, VerifyKeys};

const BYTES: u64 = 2_500_000;

fn key() -> SigningKey {
    SigningKey::from_seed([5; 32])
}

fn trusted() -> VerifyKeys {
    VerifyKeys::from(key().verify_key())
}

fn group() -> GroupKey {
    GroupKey::from_bytes([7; 32])
}

/// Adds receivers of a sealed session that accept only content signed with one of `keys`.
fn receivers(net: &mut Net, count: usize, down: Link, keys: Option<VerifyKeys>) -> Range<usize> {
    let all = net.receivers_with(count, down, Link::millis(5), None, Some(group()));
    for receiver in all.clone() {
        net.receivers[receiver].verify.clone_from(&keys);
        net.start_receiver(receiver);
    }
    all
}

fn path() -> Link {
    Link::millis(5).mbps(20.0).fifo(100_000)
}

fn offer(scheme: &'static str, receivers: u32) -> Offer {
    Offer::bytes(BYTES).by(scheme).expect(receivers).sealed(group()).signed(key())
}

/// Codec of a malicious member. The member has the group key, and has learned the session's salt from the announcement.
struct Forger(SourceCodec);

impl Forger {
    fn of(net: &Net, source: usize) -> Forger {
        let node = &net.sources[source];
        let mut codec = SourceCodec::new(node.id, Some(&group()), node.salt);
        // The announcement is not sent: it only shows the codec whether each layer has a separate stream.
        codec.encode(&mut Vec::new(), &Message::Announce(node.announced()), 1_472).expect("it fits");
        Forger(codec)
    }

    /// Sends a validly sealed block with other content to these receivers, under packet numbers that start at `first`. The
    /// receivers have lost the packets with these numbers: each packet number is accepted only once.
    fn block(&mut self, net: &mut Net, source: usize, receivers: Range<usize>, block: u32, first: u64) {
        let geometry = net.sources[source].object().geometry();
        let mark = net.sources[source].session.as_ref().expect("it runs").scheme().mark();
        let mut bytes = vec![0x66; geometry.block_len(block) as usize];
        let (symbols, _) = seal_block(&mut bytes, geometry.symbol_size);
        for (symbol, payload) in (0..).zip(bytes.chunks(geometry.symbol_size.into())) {
            let data = Data {
                seq: Seq(first + u64::from(symbol)),
                sent_at: net.now,
                rate: 1.0,
                payload: Payload { block, symbol },
                flags: Flags::default(),
                signal: Default::default(),
                mark,
            };
            let mut out = Vec::new();
            let packet = DataPacket { data, layer: Layer(0), symbols, payload };
            self.0.encode_data(&mut out, &packet).expect("a packet like the source's");
            self.to_all(net, source, receivers.clone(), &out);
        }
    }

    /// Sends another message in the source's name.
    fn say(&mut self, net: &mut Net, source: usize, receivers: Range<usize>, message: &Message<'_>) {
        let mut out = Vec::new();
        self.0.encode(&mut out, message, 1_472).expect("it fits");
        self.to_all(net, source, receivers, &out);
    }

    fn to_all(&self, net: &mut Net, source: usize, receivers: Range<usize>, bytes: &[u8]) {
        let from = net.sources[source].address;
        receivers.for_each(|receiver| net.inject_down(receiver, from, bytes.to_vec()));
    }
}

fn warnings(net: &Net, receiver: usize, words: &str) -> usize {
    let says = |(_, event): &&(Time, Event)| matches!(event, Event::Warning { message, .. } if message.contains(words));
    net.receivers[receiver].events.iter().filter(says).count()
}

/// Runs until the source has sent this number of packets of its base layer.
fn run_to_packet(net: &mut Net, source: usize, packet: u64) {
    let next =
        |net: &Net| net.sources[source].session.as_ref().map_or(Seq(u64::MAX), |session| session.next_seq());
    net.run_until(secs(60), |net| next(net).0 >= packet);
}

/// Lets these receivers, which share a link, lose as many packets as a block has symbols. Then a member sends a forged block
/// under the lost packet numbers.
fn forge_after_a_gap(net: &mut Net, source: usize, receivers: Range<usize>) {
    run_to_packet(net, source, 30);
    net.group_of(receivers.start).down.set_link(path().losing(1.0));
    let first = net.sources[source].session.as_ref().expect("it runs").next_seq().0;
    run_to_packet(net, source, first + 8);
    net.run_for(Span::from_millis(6)); // until the last packet has been lost
    net.group_of(receivers.start).down.set_link(path());
    Forger::of(net, source).block(net, source, receivers, 60, first);
}

#[test]
fn signatures_barely_prolong_a_transfer() {
    for entry in CATALOGUE {
        let run = |signed: bool, seed: u64| {
            let mut net = Net::new(seed);
            let all = receivers(&mut net, 2, path().losing(0.01), signed.then(trusted));
            let careless = receivers(&mut net, 1, path(), None);
            let offer = Offer::bytes(BYTES).by(entry.name).expect(3).sealed(group());
            let source = net.source(if signed { offer.signed(key()) } else { offer });
            net.run_to_end(secs(600));
            net.assert_all_verified(source, all.start..careless.end);
            assert!(all.into_iter().all(|receiver| net.receivers[receiver].report().forged_blocks == 0));
            net.sources[source].report().duration.as_secs_f64()
        };
        let runs = |signed| (1..=5).map(|seed| run(signed, seed)).sum::<f64>() / 5.0;
        let (unsigned, signed) = (runs(false), runs(true));
        println!("{}: {unsigned:.2} s, signed {signed:.2} s", entry.name);
        assert!(signed < 1.15 * unsigned + 0.2, "{}: {signed} s, {unsigned} s without", entry.name);
    }
}

/// Runs a session of signed content with two receivers, in which a member forges a block. Both receivers get the genuine block.
pub(super) fn run_with_a_forged_block(net: &mut Net, scheme: &'static str) -> Range<usize> {
    let all = receivers(net, 2, path(), Some(trusted()));
    let source = net.source(offer(scheme, 2).in_blocks_of(8));
    forge_after_a_gap(net, source, all.clone());
    net.run_to_end(secs(600));
    net.assert_all_verified(source, all.clone());
    all
}

#[test]
fn forged_block_is_dropped_and_the_true_block_arrives() {
    for entry in CATALOGUE {
        let mut net = Net::new(4);
        let all = run_with_a_forged_block(&mut net, entry.name);
        // In layers, genuine symbols of the block may have arrived before. A mixture of genuine and forged symbols does not
        // decode to a valid block.
        for receiver in all.filter(|_| entry.layers == LayerRates::One) {
            assert!(net.receivers[receiver].report().forged_blocks >= 1, "{}", entry.name);
            assert_eq!(warnings(&net, receiver, "forges content"), 1, "{}", entry.name);
        }
    }
}

#[test]
fn receiver_without_public_key_detects_forged_block_at_the_end() {
    let mut net = Net::new(4);
    let all = receivers(&mut net, 1, path(), None);
    let source = net.source(offer("ormcc", 1).in_blocks_of(8));
    forge_after_a_gap(&mut net, source, all.clone());
    net.run_to_end(secs(600));
    net.assert_all_verified(source, all.clone());
    assert_eq!(warnings(&net, all.start, "requested again"), 1, "everything comes twice");
}

#[test]
fn only_wrong_blocks_of_an_earlier_run_are_fetched_again() {
    for entry in CATALOGUE {
        let mut net = Net::new(5);
        let all = receivers(&mut net, 1, path(), Some(trusted()));
        let source = net.source(offer(entry.name, 1));
        leave(&net, source, all.start, |_| true, &[2, 5]);
        net.run_to_end(secs(600));
        net.assert_all_verified(source, all.clone());
        let (report, geometry) = (net.receivers[all.start].report(), net.sources[source].object().geometry());
        let wrong = u64::from(geometry.block_len(2)) + u64::from(geometry.block_len(5));
        assert_eq!(report.refetched_bytes, wrong, "{}: {report:?}", entry.name);
        assert_eq!(report.resumed_bytes, geometry.stream_len.expect("a file") - wrong, "{}", entry.name);
    }
}

#[test]
fn signed_session_completes_despite_lost_pages_of_hashes() {
    for scheme in ["ormcc", "rlc"] {
        let mut net = Net::new(6);
        let all = receivers(&mut net, 3, path().losing(0.2), Some(trusted()));
        let late = receivers(&mut net, 1, path().losing(0.2), Some(trusted()));
        net.kill_receiver(late.start);
        let source = net.source(offer(scheme, 3).at_most_mbps(5.0));
        net.run_for(secs(2));
        net.start_receiver(late.start);
        net.run_to_end(secs(600));
        net.assert_all_verified(source, all.start..late.end);
    }
}

#[test]
fn valid_blocks_remain_valid_after_a_signing_source_restarts() {
    let mut net = Net::new(7);
    let all = receivers(&mut net, 2, path(), Some(trusted()));
    let source = net.source(offer("ormcc", 2).at_most_mbps(5.0));
    net.run_for(secs(2));
    net.kill_source(source);
    net.start_source(source);
    net.run_to_end(secs(600));
    net.assert_all_verified(source, all.clone());
    assert!(all.into_iter().all(|receiver| net.receivers[receiver].report().forged_blocks == 0));
}

#[test]
fn unsigned_or_wrongly_signed_session_is_refused_with_a_reason() {
    let other = SigningKey::from_seed([6; 32]);
    for (offer, there) in [
        (Offer::bytes(BYTES).sealed(group()).wait_secs(3), JoinObstacle::Unsigned),
        (Offer::bytes(BYTES).sealed(group()).signed(other).wait_secs(3), JoinObstacle::OtherSigner),
    ] {
        let mut net = Net::new(8);
        let all = receivers(&mut net, 1, path(), Some(trusted()));
        let source = net.source(offer);
        net.run_until(secs(20), |net| net.sources[source].ended.is_some());
        assert!(matches!(
            net.sources[source].ended,
            Some(Err(crate::error::Error::Start(crate::error::StartError::NoReceiver { .. })))
        ));
        let seen = net.receivers[all.start].session.as_ref().and_then(|session| session.seen());
        assert_eq!(seen, Some(there));
    }
}

#[test]
fn either_of_two_trusted_keys_is_accepted() {
    let both = format!(
        "{}\n{}",
        SigningKey::from_seed([6; 32]).verify_key().to_line(),
        key().verify_key().to_line()
    );
    let mut net = Net::new(9);
    let all = receivers(&mut net, 1, path(), Some(both.parse().expect("two keys")));
    let source = net.source(offer("ormcc", 1));
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all);
}

#[test]
fn forged_pages_root_hashes_and_block_counts_are_ignored() {
    let mut net = Net::new(10);
    let all = receivers(&mut net, 2, path(), Some(trusted()));
    let source = net.source(offer("ormcc", 2));
    run_to_packet(&mut net, source, 30);
    let mut forger = Forger::of(&net, source);
    let page = Hashes { first_block: 0, signature: [7; 64], hashes: vec![[1; 32]; 20] };
    forger.say(&mut net, source, all.clone(), &Message::Hashes(page));
    let far = Hashes { first_block: u32::MAX - 3, signature: [7; 64], hashes: vec![[1; 32]; 20] };
    forger.say(&mut net, source, all.clone(), &Message::Hashes(far));
    for root_signature in [None, Some([7; 64])] {
        let (blocks, root) = (Some(2), Some([9; 32]));
        let status =
            faircast_wire::Status { blocks, root, root_signature, complete_to: 2, ..Default::default() };
        forger.say(&mut net, source, all.clone(), &Message::Status(status));
    }
    net.run_to_end(secs(60));
    net.assert_all_verified(source, all.clone());
    assert!(all.into_iter().all(|receiver| net.receivers[receiver].report().refetched_bytes == 0));
}
