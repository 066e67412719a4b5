//! Parents that answer but do not serve: relays, agents and active routers that send no symbols, or wrong symbols.

use super::forged_reports::Lie;
use super::node::IDLE_TIMEOUT;
use super::tree::{branch, schemes};
use super::*;
use crate::error::{Error, TransferError};
use crate::relay::RouterKind;
use faircast_wire::{DataPacket, GroupKey, Message, Newest, SourceCodec, Status, encode, parse};

const BYTES: u64 = 3_000_000;
const MEMORY: usize = 64 << 20;

/// Attacks of a malicious relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstruction {
    /// Sends no symbols, and admits it.
    Withholds,
    /// Sends no symbols, but claims to send them.
    Pretends,
    /// Sends wrong symbols only.
    Spoils,
}

const WAYS: [Obstruction; 3] = [Obstruction::Withholds, Obstruction::Pretends, Obstruction::Spoils];

/// A malicious relay.
#[derive(Debug)]
pub(super) struct Hostile {
    way: Obstruction,
    /// Number of the relay's next packet.
    next: Option<u64>,
}

impl Hostile {
    /// Returns the datagram that the relay sends instead of `bytes`, if any, in an open session.
    pub(super) fn sends(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let Ok((header, message)) = parse(bytes, &Newest::default()) else { return Some(bytes.to_vec()) };
        let mut spoilt;
        let sent = match (self.way, message) {
            (Obstruction::Spoils, Message::Data(packet)) if !packet.payload.is_empty() => {
                spoilt = packet.payload.to_vec();
                spoilt[0] ^= 1;
                Message::Data(DataPacket { payload: &spoilt, ..packet })
            }
            (Obstruction::Withholds | Obstruction::Pretends, Message::Data(_)) => return None,
            (Obstruction::Withholds, Message::Status(mut status)) => {
                status.next_seq = *self.next.get_or_insert(status.next_seq);
                Message::Status(status)
            }
            (Obstruction::Withholds, Message::Announce(mut announce)) => {
                announce.next_seq = *self.next.get_or_insert(announce.next_seq);
                Message::Announce(announce)
            }
            _ => return Some(bytes.to_vec()),
        };
        let mut out = Vec::new();
        encode(&mut out, header.session, header.seq, &sent, 2_000).expect("it is as long as before");
        Some(out)
    }
}

fn link() -> Link {
    Link::millis(4).mbps(30.0).fifo(80_000).losing(0.002)
}

fn offer(scheme: &'static str) -> Offer {
    Offer::bytes(BYTES).by(scheme).expect(2).at_most_mbps(8.0)
}

/// Adds two receivers downstream of a relay. Runs until each receiver has an eighth of the content.
fn begin(tree: &mut Net, relay: usize) {
    tree.behind(branch(relay, 0), 2, link());
    tree.start();
    tree.run_until(secs(60), |tree| tree.receivers.iter().all(|node| node.verified_bytes() > BYTES / 8));
}

/// Runs until all receivers have all content; returns the duration in seconds.
fn end(tree: &mut Net, name: &str) -> f64 {
    let from = tree.now;
    tree.run_until(secs(300), |tree| tree.receivers.iter().all(|node| node.ended.is_some()));
    for node in &tree.receivers {
        let is_well = node.ended.as_ref().is_some_and(Result::is_ok);
        assert!(is_well && node.has(&tree.sources[0]), "{name}: {}: {:?}", node.host, node.ended);
    }
    tree.now.since(from).as_secs_f64()
}

/// Checks for each attack that receivers leave a malicious relay after the idle timeout at the latest, and get the content from
/// another parent.
fn assert_left(name: &str, make: impl Fn() -> (Net, usize, Head)) {
    let (mut tree, relay, _) = make();
    begin(&mut tree, relay);
    let calm = end(&mut tree, name);
    for way in WAYS {
        let (mut tree, relay, other) = make();
        begin(&mut tree, relay);
        tree.hostile = Some((relay, Hostile { way, next: None }));
        (0..2).for_each(|at| tree.attach(Who::Receiver(at), other, link()));
        let took = end(&mut tree, name);
        println!("{name}, {way:?}: {took:.1} s, and {calm:.1} s of an honest one");
        assert!(took < 2.0 * (calm + IDLE_TIMEOUT.as_secs_f64()), "{name}, {way:?}: {took} s, {calm} s");
    }
}

#[test]
fn receiver_leaves_an_unhelpful_relay_for_another_relay() {
    for scheme in schemes() {
        assert_left(scheme, || {
            let mut tree = Net::of(91, offer(scheme));
            let bad = tree.relay(Head::Source(0), 1, MEMORY, link());
            let good = tree.relay(Head::Source(0), 1, MEMORY, link());
            (tree, bad, branch(good, 0))
        });
    }
}

#[test]
fn receiver_leaves_an_unhelpful_relay_for_the_source() {
    for scheme in schemes() {
        assert_left(scheme, || {
            let mut tree = Net::of(92, offer(scheme));
            let bad = tree.relay(Head::Source(0), 1, MEMORY, link());
            (tree, bad, Head::Source(0))
        });
    }
}

#[test]
fn receiver_leaves_an_unhelpful_router_for_another_router() {
    for kind in RouterKind::ALL {
        assert_left(&kind.to_string(), || {
            let mut tree = Net::of(93, offer(kind.scheme()));
            let bad = tree.hop(Head::Source(0), kind, 1, link());
            let good = tree.hop(Head::Source(0), kind, 1, link());
            (tree, bad, branch(good, 0))
        });
    }
}

/// The agent slows the session down to its rate floor until the receiver leaves it.
#[test]
fn receiver_leaves_an_unhelpful_agent_for_the_source() {
    const FLOOR: f64 = 0.5;
    let mut grove = Net::of(94, offer("mtcp").expect(3).at_least_mbps(FLOOR));
    let lan = Link::millis(2).mbps(8.0).fifo(60_000).losing(0.005);
    let agent = grove.agent(&[], 16, lan);
    let address = grove.agents[agent].address;
    grove.children(&[address], 3, lan);
    grove.lies.0.insert(Who::Agent(agent), Lie::Withholding);
    grove.start();
    grove.run_until(secs(300), |grove| grove.receivers.iter().all(|node| node.ended.is_some()));
    grove.assert_have_all(0..3);
    let (took, at_the_floor) = (grove.now.as_secs_f64(), BYTES as f64 * 8.0 / (FLOOR * 1e6));
    println!("{took:.1} s, and {at_the_floor:.1} s at the floor");
    assert!(took < at_the_floor + IDLE_TIMEOUT.as_secs_f64(), "{took} s, {at_the_floor} s");
}

/// The source is alive and states that it has sent all content, but sends no data. No relay, and no other address of the source,
/// continues the session.
#[test]
fn receiver_without_another_parent_fails_if_nothing_is_served() {
    for scheme in schemes() {
        let mut net = Net::new(95);
        let all = net.receivers(1, Link::millis(5).mbps(20.0).fifo(60_000), Link::millis(5));
        let source = net.source(Offer::bytes(BYTES).by(scheme).at_most_mbps(16.0).expect(1));
        net.run_for(Span::from_millis(700));
        net.kill_source(source);
        let node = &net.sources[source];
        let (from, blocks) = (node.address, node.object().geometry().blocks());
        let mut codec = SourceCodec::new(node.id, None, node.announced().salt);
        let began = net.now;
        while net.receivers[all.start].ended.is_none() {
            let status = Status {
                next_seq: 100_000,
                complete_to: blocks.expect("files have a length"),
                blocks,
                rtt_max_us: 10_000,
                spread_ms: 10,
                ..Status::default()
            };
            let mut bytes = Vec::new();
            codec.encode(&mut bytes, &Message::Status(status), 1_400).expect("a small message");
            net.inject_down(all.start, from, bytes);
            net.run_for(Span::from_millis(100));
            assert!(net.now.since(began) < secs(40), "{scheme}: it waits for ever");
        }
        let ended = &net.receivers[all.start].ended;
        assert!(
            matches!(ended, Some(Err(Error::Transfer(TransferError::NothingServed { .. })))),
            "{scheme}: {ended:?}"
        );
    }
}

/// The relay itself waits for its parent, up to its own idle timeout.
#[test]
fn receiver_waits_for_an_honest_relay_without_data() {
    for scheme in schemes() {
        let mut tree = Net::of(96, offer(scheme));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
        begin(&mut tree, relay);
        tree.hostile = Some((relay, Hostile { way: Obstruction::Withholds, next: None }));
        let from = tree.now;
        let pause = Span::from_secs_f64(0.7 * IDLE_TIMEOUT.as_secs_f64());
        tree.run_until(secs(60), |tree| tree.now > from + pause);
        tree.hostile = None;
        tree.run_to_end(secs(300));
        tree.assert_everybody_has_all();
    }
}

/// A relay cannot verify symbols of a sealed session. A receiver detects wrong symbols, because they cannot be decrypted.
#[test]
fn wrong_cached_symbols_of_a_sealed_session_are_replaced() {
    for scheme in schemes() {
        let mut tree = Net::of(98, offer(scheme).sealed(GroupKey::from_bytes([8; 32])));
        let relay = tree.relay(Head::Source(0), 1, MEMORY, link());
        // At higher losses, RMANP falls to its rate floor.
        let loss = if scheme == "rmanp" { 0.002 } else { 0.05 };
        tree.behind(branch(relay, 0), 2, link().losing(loss));
        tree.start();
        tree.run_until(secs(60), |tree| tree.receivers.iter().all(|node| node.verified_bytes() > BYTES / 2));
        tree.relays[relay].shared.spoil();
        let took = end(&mut tree, scheme);
        println!("{scheme}: {took:.1} s");
    }
}

/// A relay caches wrong symbols, because its parent is malicious for a while. The relay's children report that the symbols are
/// wrong.
#[test]
fn wrong_symbols_in_the_cache_of_a_relay_are_replaced() {
    for scheme in schemes() {
        let mut tree = Net::of(97, offer(scheme));
        let upper = tree.relay(Head::Source(0), 1, MEMORY, link());
        let lower = tree.relay(branch(upper, 0), 1, MEMORY, link());
        begin(&mut tree, lower);
        tree.hostile = Some((upper, Hostile { way: Obstruction::Spoils, next: None }));
        let until = tree.now + Span::from_millis(500);
        tree.run_until(secs(60), |tree| tree.now > until);
        tree.hostile = None;
        let took = end(&mut tree, scheme);
        println!("{scheme}: {took:.1} s");
    }
}
