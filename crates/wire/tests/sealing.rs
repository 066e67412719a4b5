//! The codecs of a source and a receiver: packets that they admit, and packets that they refuse.

mod common;

use common::ends::{ME, answered, damaged, encoded, joined, listener, numbered, relay, source, symbol_of};
use common::{
    LIMIT, SESSION, UNIX_SECS, announce, at, from_receiver, from_source, key, member, receiver, status,
};
use faircast_core::packet::{Data, Layer, Mark, Payload, Seq, SessionId};
use faircast_wire::encode::{
    MAX_ANNOUNCE, MAX_AROUND_STATUS, MAX_NEEDS, max_hashes, max_needs, max_needs_with_maps, max_relays,
    max_verified,
};
use faircast_wire::{
    Announce, DataPacket, EncodeError, Form, GroupKey, Hashes, Kind, Member, Message, Name, Need, OpenError,
    ParseError, ReceiverCodec, Request, SourceCodec, Status, SymbolMap, Tree, TreeNode, Verified,
    data_header_len, peek,
};
use std::slice;

/// Bytes of the fixed header.
const HEADER_LEN: usize = 12;

#[test]
fn longest_messages_have_the_declared_length() {
    let key = key();
    let mut source = source(Some(&key));
    let long = Name::new(&"n".repeat(Name::MAX)).expect("it fits");
    let announce = Announce { name: long, options: long, signature: Some([1; 64]), ..announce() };
    let mut announced = Vec::new();
    source.encode(&mut announced, &Message::Announce(announce), MAX_ANNOUNCE).expect("it fits");
    let mut out = Vec::new();
    let (_, mut relay) = relay(&mut source, &key);
    relay.encode(&mut out, &Message::Announce(announce), MAX_ANNOUNCE).expect("it fits");
    assert_eq!(out.len(), MAX_ANNOUNCE, "a relay also says who it is");
    let status = Status {
        root: Some([1; 32]),
        proof: Some([1; 16]),
        root_signature: Some([1; 64]),
        withdrawn: Some(faircast_wire::WithdrawnPart { total: 1, first: 0, signature: [1; 64] }),
        ..Status::default()
    };
    out.clear();
    relay.encode(&mut out, &Message::Status(status), MAX_AROUND_STATUS).expect("it fits");
    assert_eq!(out.len(), MAX_AROUND_STATUS);
    let me = receiver(7);
    let mut codec = ReceiverCodec::new(slice::from_ref(&key), me, 1);
    codec.follow(SESSION);
    codec.open(&mut announced, at()).expect("announced");
    let needs = vec![Need { first: 1, run: 1, symbols: 1, wrong: false }; MAX_NEEDS + 1];
    let request = Message::Request(Request { from: me, needs, held: Vec::new(), echo: common::echo(1) });
    let fit = codec.encode(&mut Vec::new(), SESSION, &request).expect("it is cut");
    assert_eq!(fit.needs, MAX_NEEDS);
}

#[test]
fn longest_lists_fit_a_datagram_and_longer_lists_do_not() {
    let (key, me) = (key(), receiver(7));
    for limit in 400..500 {
        let mut codec = joined(&mut source(Some(&key)), Some(&key));
        let mut len = |message: Message<'_>| answered(&mut codec, &message).len();
        let asks = |entries, maps| Request {
            from: receiver(ME),
            needs: vec![Need { first: 1, run: 1, symbols: 1, wrong: false }; entries],
            held: vec![SymbolMap { block: 1, symbols: [1; SymbolMap::BYTES] }; maps],
            echo: common::echo(1),
        };
        let (alone, mapped) = (max_needs(limit), max_needs_with_maps(limit));
        assert!(len(Message::Request(asks(alone, 0))) <= limit, "{limit}");
        assert!(len(Message::Request(asks(alone + 1, 0))) > limit, "{limit}");
        assert!(len(Message::Request(asks(mapped, mapped))) <= limit, "{limit}");
        assert!(len(Message::Request(asks(mapped + 1, mapped + 1))) > limit, "{limit}");
        let node = TreeNode {
            level: 0,
            receivers: 1,
            done: 0,
            rate: 1e6,
            address: at(),
            host: TreeNode::cut("relay"),
        };
        let tree = |relays| Tree { from: receiver(ME), first: 0, count: 99, relays: vec![node; relays] };
        assert!(len(Message::Tree(tree(max_relays(limit)))) <= limit, "{limit}");
        assert!(len(Message::Tree(tree(max_relays(limit) + 1))) > limit, "{limit}");
        let done = |many| Verified { from: receiver(ME), receivers: vec![receiver(7); many] };
        assert!(len(Message::Verified(done(max_verified(limit)))) <= limit, "{limit}");
        assert!(len(Message::Verified(done(max_verified(limit) + 1))) > limit, "{limit}");
        // A page that the source has limited to its datagrams also fits the datagrams of a relay that forwards it.
        let mut relay = SourceCodec::of_relay(SESSION, Some(&key.hop()), announce().salt, me, 5);
        encoded(&mut relay, &Message::Announce(announce()));
        let page = |hashes| Hashes { first_block: 0, signature: [1; 64], hashes: vec![[2; 32]; hashes] };
        let mut passed = |hashes| {
            let mut out = Vec::new();
            let fit = relay.encode(&mut out, &Message::Hashes(page(hashes)), limit).expect("it is cut");
            (fit.hashes, out.len() <= limit)
        };
        let most = max_hashes(limit);
        assert_eq!((passed(most), passed(most + 1)), ((most, true), (most, true)), "{limit}");
    }
}

#[test]
fn every_message_of_a_source_opens_at_the_receiver() {
    for key in [None, Some(key())] {
        let mut source = source(key.as_ref());
        let mut receiver = joined(&mut source, key.as_ref());
        for (name, message) in from_source() {
            let mut bytes = encoded(&mut source, &message);
            assert_eq!(peek(&bytes).expect(name).sealed, key.is_some());
            assert_eq!(receiver.open(&mut bytes, at()).expect(name), (SESSION, message), "{name}");
        }
    }
}

#[test]
fn every_message_of_a_receiver_opens_at_the_source() {
    for key in [None, Some(key())] {
        let mut source = source(key.as_ref());
        let mut receiver = joined(&mut source, key.as_ref());
        for (name, message) in from_receiver() {
            let mut bytes = answered(&mut receiver, &message);
            let never_sealed = matches!(message, Message::Attach(_) | Message::Token(_));
            assert_eq!(peek(&bytes).expect(name).sealed, key.is_some() && !never_sealed);
            assert_eq!(source.open(&mut bytes, at()).expect(name).1, message, "{name}");
        }
    }
}

#[test]
fn sealed_packet_reveals_nothing_of_its_body() {
    let key = key();
    let bytes = encoded(&mut source(Some(&key)), &Message::Data(numbered(1)));
    assert!(!bytes.windows(6).any(|window| window == b"twenty"));
    assert_eq!(bytes.len(), data_header_len(&Mark::None, Form::Sealed) - 2 + common::SYMBOL.len());
}

/// These bytes allow checks of other implementations, and reveal unintended changes of this one.
#[test]
fn sealed_packets_have_their_golden_bytes() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let mut lines = String::new();
    for (name, message) in from_source() {
        lines += &format!("{name}: {}\n", hex(&encoded(&mut source, &message)));
    }
    for (name, message) in from_receiver() {
        lines += &format!("{name}: {}\n", hex(&answered(&mut receiver, &message)));
    }
    common::agree("tests/sealed.txt", lines);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_bit_flip_and_truncation_of_a_sealed_packet_is_refused() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    for (name, message) in from_source() {
        let bytes = encoded(&mut source, &message);
        damaged(&bytes, |bytes| assert!(receiver.open(bytes, at()).is_err(), "{name}"));
        receiver.open(&mut bytes.clone(), at()).expect("the damaged ones have left no trace");
    }
    for (name, message) in from_receiver() {
        let bytes = answered(&mut receiver, &message);
        damaged(&bytes, |bytes| assert!(source.open(bytes, at()).is_err(), "{name}"));
        source.open(&mut bytes.clone(), at()).expect("the damaged ones have left no trace");
    }
}

#[test]
fn key_of_another_group_opens_nothing_and_is_reported() {
    let (ours, theirs) = (key(), GroupKey::from_bytes([1; 32]));
    let mut sealing = source(Some(&ours));
    let mut stranger = listener(Some(&theirs));
    let mut bytes = encoded(&mut sealing, &Message::Announce(announce()));
    let other = Err(OpenError::OtherKey { session: SESSION, key: ours.id() });
    assert_eq!(stranger.open(&mut bytes, at()), other);
    // A sender that states the id of our key, but does not have the key, is detected.
    let mut bytes = encoded(&mut sealing, &Message::Announce(announce()));
    bytes[12..16].copy_from_slice(&theirs.id().0.to_be_bytes());
    assert_eq!(stranger.open(&mut bytes, at()), Err(OpenError::Forged));
    let mut theirs = joined(&mut source(Some(&theirs)), Some(&theirs));
    let mut bytes = answered(&mut theirs, &Message::Member(member()));
    assert_eq!(sealing.open(&mut bytes, at()), Err(OpenError::Forged));
}

#[test]
fn receivers_open_packets_of_both_keys_during_a_key_change() {
    let (new, old) = (GroupKey::from_bytes([1; 32]), key());
    for key in [&new, &old] {
        let mut source = source(Some(key));
        let mut receiver = ReceiverCodec::new(&[new.clone(), old.clone()], receiver(ME), 1);
        receiver.follow(SESSION);
        receiver.open(&mut encoded(&mut source, &Message::Announce(announce())), at()).expect("announced");
        for (name, message) in from_source() {
            assert_eq!(
                receiver.open(&mut encoded(&mut source, &message), at()),
                Ok((SESSION, message)),
                "{name}"
            );
        }
        assert_eq!(receiver.key_of(SESSION), Some(key.id()));
        assert!(source.open(&mut answered(&mut receiver, &Message::Member(member())), at()).is_ok());
    }
}

#[test]
fn announcement_from_another_address_leaves_no_state() {
    for key in [None, Some(key())] {
        let mut source = source(key.as_ref());
        let mut receiver = listener(key.as_ref());
        let bytes = encoded(&mut source, &Message::Announce(announce()));
        for elsewhere in ["192.0.2.1:4001", "192.0.2.2:4000", "[2001:db8::1]:4000"] {
            let from = elsewhere.parse().expect("an address");
            let found = receiver.open(&mut bytes.clone(), from).map(drop);
            assert_eq!(found, Err(OpenError::Elsewhere { stated: at(), from }));
        }
        assert!(
            receiver.open(&mut bytes.clone(), at()).is_ok(),
            "the replay window is marked after all checks"
        );
        if key.is_some() {
            assert!(matches!(receiver.open(&mut bytes.clone(), at()), Err(OpenError::Replayed(_))));
        }
        let mapped = "[::ffff:192.0.2.1]:4000".parse().expect("an address");
        assert!(receiver.open(&mut encoded(&mut source, &Message::Announce(announce())), mapped).is_ok());
    }
}

#[test]
fn sealing_a_data_packet_requires_an_announcement() {
    let key = key();
    let mut codec = SourceCodec::new(SESSION, Some(&key), common::SALT);
    let error = codec.encode_data(&mut Vec::new(), &numbered(1)).expect_err("how are blocks numbered?");
    assert_eq!(error, EncodeError::NotAnnounced(SESSION));
}

#[test]
fn repeated_symbol_has_equal_bytes_in_a_new_packet() {
    let key = key();
    let mut source = source(Some(&key));
    let (mut relay, _) = relay(&mut source, &key);
    let first = encoded(&mut source, &Message::Data(numbered(1)));
    let again = encoded(&mut source, &Message::Data(DataPacket { layer: Layer(2), ..numbered(7) }));
    let apart = (HEADER_LEN..first.len()).step_by(8);
    assert!(apart.clone().all(|at| first[at..].iter().zip(&again[at..]).take(8).any(|(a, b)| a != b)));
    assert_eq!(symbol_of(&mut relay, first), symbol_of(&mut relay, again));
}

#[test]
fn layers_of_a_live_stream_are_sealed_with_distinct_nonces() {
    let key = key();
    let mut codec = SourceCodec::new(SESSION, Some(&key), common::SALT);
    let streams = Announce { flags: Announce::LIVE, manifest_len: 0, ..announce() };
    let mut announced = encoded(&mut codec, &Message::Announce(streams));
    let packets = [0, 1].map(|layer| DataPacket { layer: Layer(layer), ..numbered(1) });
    let mut sealed = packets.map(|packet| encoded(&mut codec, &Message::Data(packet)));
    let mut relay = ReceiverCodec::of_relay(Some(&key.hop()), common::receiver(9), 4);
    relay.follow(SESSION);
    relay.open(&mut announced.clone(), at()).expect("announced");
    let [first, second] = sealed.clone().map(|packet| symbol_of(&mut relay, packet));
    assert_ne!(first, second);
    let mut receiver = listener(Some(&key));
    receiver.open(&mut announced, at()).expect("announced");
    for (bytes, packet) in sealed.iter_mut().zip(packets) {
        assert_eq!(receiver.open(bytes, at()), Ok((SESSION, Message::Data(packet))));
    }
}

#[test]
fn sealed_symbol_does_not_open_in_another_packet() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let one = encoded(&mut source, &Message::Data(numbered(1)));
    let other = DataPacket {
        data: Data { payload: Payload { block: 9, symbol: 9 }, ..numbered(2).data },
        ..numbered(2)
    };
    let other = encoded(&mut source, &Message::Data(other));
    let at_symbol = one.len() - common::SYMBOL.len() - 16;
    let mixed = [&one[..at_symbol], &other[at_symbol..]].concat();
    assert_eq!(receiver.open(&mut mixed.clone(), at()), Err(OpenError::Forged));
    assert!(receiver.open(&mut one.clone(), at()).is_ok());
}

#[test]
fn key_at_only_one_endpoint_is_an_error_at_both() {
    let key = key();
    let (mut open, mut sealing) = (source(None), source(Some(&key)));
    let (mut without, mut with) = (joined(&mut open, None), joined(&mut sealing, Some(&key)));
    for (name, message) in from_source() {
        let sealed = without.open(&mut encoded(&mut sealing, &message), at()).map(drop);
        assert_eq!(sealed, Err(OpenError::NeedsKey(SESSION)), "{name}");
        let unsealed = with.open(&mut encoded(&mut open, &message), at()).map(drop);
        assert_eq!(unsealed, Err(OpenError::Unsealed(SESSION)), "{name}");
    }
    let report = Message::Member(member());
    assert_eq!(open.open(&mut answered(&mut with, &report), at()), Err(OpenError::NeedsKey(SESSION)));
    assert_eq!(sealing.open(&mut answered(&mut without, &report), at()), Err(OpenError::Unsealed(SESSION)));
}

#[test]
fn replayed_messages_are_refused() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    for (name, message) in from_source() {
        let bytes = encoded(&mut source, &message);
        assert!(receiver.open(&mut bytes.clone(), at()).is_ok(), "{name}");
        assert!(matches!(receiver.open(&mut bytes.clone(), at()), Err(OpenError::Replayed(_))), "{name}");
    }
    for (name, message) in from_receiver() {
        if matches!(message, Message::Attach(_) | Message::Token(_)) {
            continue; // told to people, who hear it once
        }
        let bytes = answered(&mut receiver, &message);
        assert!(source.open(&mut bytes.clone(), at()).is_ok(), "{name}");
        assert!(matches!(source.open(&mut bytes.clone(), at()), Err(OpenError::Replayed(_))), "{name}");
    }
}

#[test]
fn data_packet_late_by_fewer_than_8192_numbers_is_accepted() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let packets: Vec<_> =
        (0..=8_192).map(|seq| encoded(&mut source, &Message::Data(numbered(seq)))).collect();
    assert!(receiver.open(&mut packets[8_192].clone(), at()).is_ok());
    assert_eq!(receiver.open(&mut packets[0].clone(), at()), Err(OpenError::Replayed(0)));
    for packet in &packets[1..8_192] {
        assert!(receiver.open(&mut packet.clone(), at()).is_ok());
    }
    for packet in &packets {
        assert!(matches!(receiver.open(&mut packet.clone(), at()), Err(OpenError::Replayed(_))));
    }
}

#[test]
fn layers_have_separate_packet_numbers() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    for layer in [0, 1, 7, 15] {
        let packet = DataPacket { layer: Layer(layer), ..numbered(3) };
        let mut bytes = encoded(&mut source, &Message::Data(packet));
        assert_eq!(receiver.open(&mut bytes, at()), Ok((SESSION, Message::Data(packet))));
    }
}

#[test]
fn late_joiner_learns_the_upper_bits_of_packet_numbers() {
    let (key, next) = (key(), 0x5_8000_0000);
    for key in [None, Some(&key)] {
        let mut source = source(key);
        let mut receiver = listener(key);
        let late = Announce { next_seq: next, ..announce() };
        receiver.open(&mut encoded(&mut source, &Message::Announce(late)), at()).expect("announced");
        let packet = numbered(next + 10);
        let mut bytes = encoded(&mut source, &Message::Data(packet));
        assert_eq!(receiver.open(&mut bytes, at()), Ok((SESSION, Message::Data(packet))));
    }
}

#[test]
fn receiver_learns_upper_number_bits_of_a_layer_from_a_status() {
    let (key, next) = (key(), 0x5_8000_0000);
    for key in [None, Some(&key)] {
        let mut source = source(key);
        let mut receiver = joined(&mut source, key);
        let status = Status { upper_seqs: vec![7, next], ..status() };
        receiver.open(&mut encoded(&mut source, &Message::Status(status)), at()).expect("of this session");
        for (layer, seq) in [(1, 9), (2, next + 10), (3, 1)] {
            let packet = DataPacket { layer: Layer(layer), ..numbered(seq) };
            let mut bytes = encoded(&mut source, &Message::Data(packet));
            assert_eq!(
                receiver.open(&mut bytes, at()),
                Ok((SESSION, Message::Data(packet))),
                "layer {layer}"
            );
        }
    }
}

#[test]
fn rejoined_layer_refuses_replayed_packets() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let mut of_layer = |seq| {
        let packet = DataPacket { layer: Layer(1), ..numbered(seq) };
        encoded(&mut source, &Message::Data(packet))
    };
    let (before, after) = (of_layer(5), of_layer(1_000_000));
    for bytes in [&before, &after] {
        receiver.open(&mut bytes.clone(), at()).expect("new");
    }
    for (bytes, seq) in [(&before, 5), (&after, 1_000_000)] {
        assert_eq!(receiver.open(&mut bytes.clone(), at()), Err(OpenError::Replayed(seq)));
    }
}

#[test]
fn source_does_not_seal_two_packets_under_one_number() {
    let key = key();
    let mut sealing = source(Some(&key));
    let mut out = Vec::new();
    sealing.encode_data(&mut out, &numbered(5)).expect("the first");
    let len = out.len();
    for seq in [5, 4] {
        let error = sealing.encode_data(&mut out, &numbered(seq)).expect_err("not again");
        assert_eq!(error, EncodeError::NumberReused { layer: Layer(0), seq, newest: 5 });
        assert_eq!(out.len(), len);
    }
}

#[test]
fn restarted_receiver_is_accepted() {
    let key = key();
    let mut source = source(Some(&key));
    let message = Message::Member(member());
    let mut first = joined(&mut source, Some(&key));
    let before = answered(&mut first, &message);
    assert!(source.open(&mut before.clone(), at()).is_ok());
    let mut second = ReceiverCodec::new(slice::from_ref(&key), receiver(ME), 0xb008);
    second.follow(SESSION);
    second.open(&mut encoded(&mut source, &Message::Announce(announce())), at()).expect("announced");
    let after = answered(&mut second, &message);
    assert_ne!(before[24..], after[24..], "two starts never seal alike");
    assert!(source.open(&mut after.clone(), at()).is_ok());
    assert_eq!(
        source.open(&mut before.clone(), at()),
        Err(OpenError::Replayed(0)),
        "the first start is still known"
    );
}

#[test]
fn receiver_that_follows_a_session_again_reuses_no_numbers() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let first = answered(&mut receiver, &Message::Member(member()));
    receiver.follow(SessionId(1));
    receiver.follow(SESSION);
    let second = answered(&mut receiver, &Message::Member(member()));
    assert_ne!(peek(&first).expect("whole").seq, peek(&second).expect("whole").seq);
}

#[test]
fn opening_a_sealed_packet_requires_an_announcement() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = listener(Some(&key));
    let mut bytes = encoded(&mut source, &Message::Status(status()));
    assert_eq!(receiver.open(&mut bytes, at()), Err(OpenError::NotAnnounced(SESSION)));
    let mut out = Vec::new();
    let error = receiver.encode(&mut out, SESSION, &Message::Member(member())).expect_err("no key yet");
    assert_eq!((error, out.len()), (EncodeError::NotAnnounced(SESSION), 0));
}

#[test]
fn announcement_before_the_join_is_sufficient_to_open_packets() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = ReceiverCodec::new(slice::from_ref(&key), receiver(ME), 1);
    let mut bytes = encoded(&mut source, &Message::Data(numbered(1)));
    assert_eq!(receiver.open(&mut bytes, at()), Err(OpenError::OtherSession(SESSION)));
    receiver.open(&mut encoded(&mut source, &Message::Announce(announce())), at()).expect("announced");
    let status = encoded(&mut source, &Message::Status(status()));
    assert!(receiver.open(&mut status.clone(), at()).is_ok(), "it tells who was heard");
    assert!(!answered(&mut receiver, &Message::Member(member())).is_empty(), "and who has joined");
    receiver.follow(SESSION);
    assert!(receiver.open(&mut encoded(&mut source, &Message::Data(numbered(2))), at()).is_ok());
    assert!(receiver.open(&mut status.clone(), at()).is_err(), "once");
}

#[test]
fn other_sessions_are_refused_except_for_announcements() {
    for key in [None, Some(key())] {
        let mut ours = source(key.as_ref());
        let mut receiver = joined(&mut ours, key.as_ref());
        let other = SessionId(99);
        let mut theirs = SourceCodec::new(other, key.as_ref(), common::SALT);
        let mut bytes = encoded(&mut theirs, &Message::Announce(announce()));
        assert_eq!(receiver.open(&mut bytes, at()), Ok((other, Message::Announce(announce()))));
        let mut bytes = encoded(&mut theirs, &Message::Data(numbered(1)));
        assert_eq!(receiver.open(&mut bytes, at()), Err(OpenError::OtherSession(other)));
        let mut bytes = answered(&mut receiver, &Message::Member(member()));
        assert_eq!(theirs.open(&mut bytes, at()), Err(OpenError::OtherSession(SESSION)));
    }
}

#[test]
fn announcement_outside_the_clock_tolerance_is_stale() {
    let key = key();
    let mut source = source(Some(&key));
    let bytes = encoded(&mut source, &Message::Announce(announce()));
    for (now, fresh) in
        [(UNIX_SECS - 601, false), (UNIX_SECS - 600, true), (UNIX_SECS + 600, true), (UNIX_SECS + 601, false)]
    {
        let mut receiver = listener(Some(&key));
        receiver.check_time(now, ReceiverCodec::SKEW);
        let stale = Err(OpenError::Stale { sent: UNIX_SECS, now, skew: 600 });
        let expected = if fresh { Ok(()) } else { stale };
        assert_eq!(receiver.open(&mut bytes.clone(), at()).map(drop), expected);
        let mut receiver = listener(Some(&key));
        assert!(
            receiver.open(&mut bytes.clone(), at()).is_ok(),
            "where sources answer, clocks do not matter"
        );
    }
}

#[test]
fn second_source_in_the_same_session_is_reported() {
    for key in [None, Some(key())] {
        let mut ours = source(key.as_ref());
        let mut receiver = joined(&mut ours, key.as_ref());
        let mut theirs = SourceCodec::new(SESSION, key.as_ref(), [9; 16]);
        let mut bytes = encoded(&mut theirs, &Message::Announce(Announce { salt: [9; 16], ..announce() }));
        assert_eq!(receiver.open(&mut bytes, at()), Err(OpenError::TwoSources(SESSION)));
    }
}

#[test]
fn endpoint_encodes_only_its_own_message_kinds_and_identity() {
    let mut out = Vec::new();
    let mut source = source(None);
    let mut codec = joined(&mut source, None);
    assert_eq!(
        source.encode(&mut out, &Message::Member(member()), LIMIT),
        Err(EncodeError::NotMine(Kind::Member))
    );
    let other_salt = Message::Announce(Announce { salt: [0; 16], ..announce() });
    assert_eq!(source.encode(&mut out, &other_salt, LIMIT), Err(EncodeError::WrongSalt));
    assert_eq!(
        codec.encode(&mut out, SESSION, &Message::Status(status())),
        Err(EncodeError::NotMine(Kind::Status))
    );
    let theirs = Message::Member(Member { from: receiver(1), ..member() });
    let not_me = EncodeError::NotMe { from: receiver(1), me: receiver(ME) };
    assert_eq!(codec.encode(&mut out, SESSION, &theirs), Err(not_me));
    assert!(out.is_empty());
    let mut own = encoded(&mut source, &Message::Status(Status::default()));
    assert_eq!(source.open(&mut own, at()), Err(OpenError::NotForMe(Kind::Status)));
    let mut own = answered(&mut codec, &Message::Member(member()));
    assert_eq!(codec.open(&mut own, at()), Err(OpenError::NotForMe(Kind::Member)));
}

#[test]
fn packets_encoded_as_a_batch_open_one_by_one() {
    for key in [None, Some(key())] {
        let mut source = source(key.as_ref());
        let mut receiver = joined(&mut source, key.as_ref());
        let mut batch = Vec::new();
        for seq in 0..64 {
            source.encode_data(&mut batch, &numbered(seq)).expect("it fits");
        }
        let len = batch.len() / 64;
        for (seq, segment) in (0..).zip(batch.chunks_exact_mut(len)) {
            assert_eq!(receiver.open(segment, at()), Ok((SESSION, Message::Data(numbered(seq)))));
        }
    }
}

#[test]
fn sealed_status_fits_the_length_limit() {
    let key = key();
    let mut source = source(Some(&key));
    let long = Status { confirmed: (1..1_000).map(receiver).collect(), ..status() };
    let mut out = Vec::new();
    let fit = source.encode(&mut out, &Message::Status(long), 500).expect("the fixed part fits");
    assert!(out.len() <= 500 && out.len() > 490 && fit.confirmed > 50, "{} {fit:?}", out.len());
}

#[test]
fn message_from_receiver_zero_is_refused() {
    let key = key();
    let mut sealing = source(Some(&key));
    let mut receiver = joined(&mut sealing, Some(&key));
    let mut bytes = answered(&mut receiver, &Message::Member(Member { host: Name::EMPTY, ..member() }));
    bytes[12..16].fill(0);
    let nobody = ParseError::BadValue { field: "from", value: 0 };
    assert_eq!(sealing.open(&mut bytes, at()), Err(OpenError::Parse(nobody)));
}

#[test]
fn receiver_unwraps_packet_numbers_beyond_32_bits() {
    let mut source = source(None);
    let mut receiver = joined(&mut source, None);
    for seq in [0x7fff_ffff, 0xffff_ffff, 0x1_0000_0000, 0x1_7fff_fff0] {
        let mut bytes = encoded(&mut source, &Message::Data(numbered(seq)));
        let Ok((_, Message::Data(packet))) = receiver.open(&mut bytes, at()) else { panic!("{seq}") };
        assert_eq!(packet.data.seq, Seq(seq));
    }
}
