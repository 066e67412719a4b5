//! Phantom members: crowds of made-up receivers that join a running session. Afterwards they are silent, or continue to send.

use super::*;
use faircast_core::packet::{Echo, ReceiverId, Seq};
use faircast_core::schemes::CATALOGUE;
use faircast_wire::{GroupKey, Member, MemberState, Message, Name, ReceiverCodec, Words};
use std::net::SocketAddr;

/// Addresses of the members of a crowd.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    /// Each member has a different address, at which no host receives datagrams.
    Everywhere,
    OneHost,
}

/// Returns the address of member `index` of a crowd.
fn address(from: From, index: usize) -> SocketAddr {
    let [_, _, high, low] = (index as u32).to_be_bytes();
    match from {
        From::Everywhere => SocketAddr::from(([10, 66, high, low], 6_000)),
        From::OneHost => SocketAddr::from(([10, 66, 0, 9], 6_000)),
    }
}

struct Crowd {
    from: From,
    codecs: Vec<ReceiverCodec>,
}

impl Crowd {
    /// Creates a crowd of `count` members that have received the announcement of the session.
    fn new(count: usize, from: From, net: &mut Net, key: Option<&GroupKey>) -> Crowd {
        let keys: Vec<GroupKey> = key.cloned().into_iter().collect();
        net.trace.record = true;
        net.run_for(secs(1));
        net.trace.record = false;
        let received = std::mem::take(&mut net.trace.down);
        let source = net.sources[0].address;
        let codec = |index: usize| {
            let id = ReceiverId::new(1_000 + index as u64).expect("not zero");
            let mut codec = ReceiverCodec::new(&keys, id, 1);
            let receives = |(_, _, bytes): &(Time, usize, Vec<u8>)| {
                matches!(codec.open(&mut bytes.clone(), source), Ok((_, Message::Announce(_))))
            };
            assert!(received.iter().any(receives), "the session is announced every half second");
            codec.follow(net.sources[0].id);
            codec
        };
        let codecs = (0..count).map(codec).collect();
        Crowd { from, codecs }
    }

    /// Each member of the crowd sends one membership message, with this state and an echo of the packet before `next`.
    fn speak(&mut self, net: &mut Net, state: MemberState, next: Seq) {
        let session = net.sources[0].id;
        for (index, codec) in self.codecs.iter_mut().enumerate() {
            let member = Member {
                from: ReceiverId::new(1_000 + index as u64).expect("not zero"),
                nonce: 1,
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
                echo: Echo { seq: Seq(next.0 - 1), hold: Span::ZERO },
                host: Name::clipped(&format!("h{index}")),
                why: Words::default(),
            };
            let mut bytes = Vec::new();
            codec.encode(&mut bytes, session, &Message::Member(member)).expect("a small message");
            net.inject_up(0, address(self.from, index), bytes);
            if index % 100 == 99 {
                net.run_for(Span::from_millis(1));
            }
        }
    }
}

/// Returns the sending rate in each of `count` intervals of 2 s, as a fraction of the rate `before`.
fn parts(net: &mut Net, before: f64, count: usize) -> Vec<f64> {
    let part = |_| {
        net.run_for(secs(2));
        sent(net, 2) / before
    };
    (0..count).map(part).collect()
}

fn sent(net: &Net, seconds: u64) -> f64 {
    net.trace.sent[0].between(net.now - secs(seconds), net.now) as f64 / seconds as f64
}

fn running(scheme: &'static str, key: Option<GroupKey>) -> Net {
    let mut net = Net::new(17);
    net.receivers_with(1, Link::millis(5), Link::millis(5), None, key.clone());
    let offer = Offer::zeros(64_000_000).by(scheme).at_most_mbps(MBPS).expect(1);
    net.source(key.into_iter().fold(offer, Offer::sealed));
    net.run_for(secs(12));
    net
}

const MBPS: f64 = 10.0;

/// Lets each member of a crowd send one membership message. Returns the lowest rate of the session in the following half minute,
/// as a fraction of the earlier rate.
fn least(scheme: &'static str, (from, count): (From, usize), key: Option<&GroupKey>) -> f64 {
    let mut net = running(scheme, key.cloned());
    let mut crowd = Crowd::new(count, from, &mut net, key);
    let before = sent(&net, 4);
    let next = net.sources[0].session.as_ref().expect("it runs").next_seq();
    crowd.speak(&mut net, MemberState::Receiving, next);
    let parts = parts(&mut net, before, 15);
    let reported: Vec<_> = parts.iter().map(|part| format!("{part:.2}")).collect();
    let form = if key.is_some() { "sealed" } else { "open" };
    println!("{scheme}, {count} from {from:?}, {form}: {}", reported.join(" "));
    parts.into_iter().fold(f64::MAX, f64::min)
}

fn schemes() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().map(|entry| entry.name)
}

#[test]
fn phantom_members_do_not_slow_an_open_session() {
    let crowds = [(From::Everywhere, 400), (From::Everywhere, 2_000), (From::OneHost, 2_000)];
    for scheme in schemes() {
        for crowd in crowds {
            let least = least(scheme, crowd, None);
            assert!(least >= 0.9, "{scheme}, {crowd:?}: {least:.3} of the rate");
        }
    }
}

#[test]
fn phantom_members_of_a_key_holder_do_not_slow_a_session() {
    let key = GroupKey::from_bytes([7; 32]);
    for scheme in schemes() {
        let least = least(scheme, (From::OneHost, 2_000), Some(&key));
        assert!(least >= 0.9, "{scheme}: {least:.3} of the rate");
    }
}

/// The phantom members ask to join, join, and send an echo, so that they count as receiving. Afterwards they are silent.
#[test]
fn silent_phantom_members_slow_the_session_for_seconds_only() {
    for scheme in schemes() {
        let mut net = running(scheme, None);
        let mut crowd = Crowd::new(2_000, From::Everywhere, &mut net, None);
        let before = sent(&net, 4);
        for state in [MemberState::Asking, MemberState::Joined, MemberState::Receiving] {
            let next = net.sources[0].session.as_ref().expect("it runs").next_seq();
            crowd.speak(&mut net, state, next);
        }
        let parts = parts(&mut net, before, 15);
        let reported: Vec<_> = parts.iter().map(|part| format!("{part:.2}")).collect();
        println!("{scheme}: {}", reported.join(" "));
        let mean = parts.iter().sum::<f64>() / parts.len() as f64;
        assert!(
            mean >= 0.7 && parts[10..].iter().all(|part| *part >= 0.9),
            "{scheme}: {mean:.2}, {reported:?}"
        );
    }
}
