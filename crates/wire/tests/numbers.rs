//! No two packets are sealed under the same key and number. If the same message were sealed twice under the same key and number,
//! the two datagrams would have the same bytes. The test therefore checks that no two datagrams are equal, for any senders,
//! messages and order, across changes of keys and wraps of numbers.

mod common;

use common::{LIMIT, SALT, SESSION, announce, at, data, key, member, receiver, status};
use faircast_core::packet::Mark;
use faircast_wire::{Hashes, Message, ReceiverCodec, SourceCodec};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::slice;

/// Number of messages under one key; the numbers in packets have 32 bits.
const TURN: u64 = 1 << 18;
const WRAP: u64 = 1 << 32;

/// A sender that seals: a source, a relay, an active router or a receiver. Some of them are restarted processes with the same id.
enum Sender {
    Source(Box<SourceCodec>),
    Receiver(ReceiverCodec),
}

/// Returns all senders, each after this number of messages.
fn senders(before: u64) -> Vec<Sender> {
    let (key, hop) = (key(), key().hop());
    let relay = |id, boot| SourceCodec::of_relay(SESSION, Some(&hop), SALT, receiver(id), boot).after(before);
    let mut source = SourceCodec::new(SESSION, Some(&key), SALT).after(before);
    let mut announced = Vec::new();
    source.encode(&mut announced, &Message::Announce(announce()), LIMIT).expect("it fits");
    let mut all = vec![Sender::Source(Box::new(source))];
    for mut codec in [relay(7, 1), relay(7, 2), relay(9, 1), relay(11, 1).with_given_numbers()] {
        codec.encode(&mut Vec::new(), &Message::Announce(announce()), LIMIT).expect("it fits");
        all.push(Sender::Source(Box::new(codec)));
    }
    for boot in 1..3 {
        let mut codec = ReceiverCodec::new(slice::from_ref(&key), member().from, boot).after(before);
        codec.follow(SESSION);
        codec.open(&mut announced.clone(), at()).expect("announced");
        all.push(Sender::Receiver(codec));
    }
    all
}

/// A message to seal: a data packet with this number, or one of a few constant messages.
#[derive(Debug, Clone, Copy)]
enum Word {
    Data(u64),
    Announce,
    Status,
    Page,
    Member,
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        3 => (0..40_u64).prop_map(Word::Data),
        1 => Just(Word::Announce),
        2 => Just(Word::Status),
        1 => Just(Word::Page),
        2 => Just(Word::Member),
    ]
}

fn say(sender: &mut Sender, word: Word, first: u64, out: &mut Vec<u8>) -> bool {
    let page = || Message::Hashes(Hashes { first_block: 3, hashes: vec![[5; 32]; 2], signature: [6; 64] });
    match (sender, word) {
        (Sender::Source(codec), Word::Data(seq)) => {
            codec.encode_data(out, &data(first + seq, Mark::None)).is_ok()
        }
        (Sender::Source(codec), Word::Announce) => {
            codec.encode(out, &Message::Announce(announce()), LIMIT).is_ok()
        }
        (Sender::Source(codec), Word::Status) => codec.encode(out, &Message::Status(status()), LIMIT).is_ok(),
        (Sender::Source(codec), Word::Page) => codec.encode(out, &page(), LIMIT).is_ok(),
        (Sender::Receiver(codec), Word::Member) => {
            codec.encode(out, SESSION, &Message::Member(member())).is_ok()
        }
        _ => false,
    }
}

proptest! {
    #[test]
    fn no_sender_seals_two_packets_under_one_number(
        before in prop_oneof![Just(0), Just(TURN - 20), Just(WRAP - 20), Just(2 * WRAP - 20)],
        words in prop::collection::vec((0..7_usize, word()), 1..300),
    ) {
        let (mut senders, mut seen, mut out) = (senders(before), BTreeSet::new(), Vec::new());
        let mut count = 0;
        for (who, word) in words {
            out.clear();
            if say(&mut senders[who], word, before, &mut out) {
                count += 1;
                prop_assert!(seen.insert(out.clone()), "sender {} said {:?} twice alike", who, word);
            } else {
                prop_assert!(out.is_empty(), "what was not said left bytes");
            }
        }
        prop_assert_eq!(seen.len(), count);
    }
}
