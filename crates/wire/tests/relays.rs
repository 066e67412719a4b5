//! Relays, which have only the hop key: packets that they forward, packets that they refuse, and statements that they cannot
//! make.

mod common;

use common::ends::{below, damaged, encoded, joined, numbered, relay, source, symbol_of, via};
use common::{LIMIT, SALT, SESSION, announce, at, key, order, status};
use faircast_core::packet::{Data, Seq};
use faircast_wire::{Announce, DataPacket, Message, OpenError, ReceiverCodec, SourceCodec, Status, peek};

#[test]
fn relay_cannot_forge_the_end_of_the_content() {
    let key = key();
    let (_, mut relay) = relay(&mut source(Some(&key)), &key);
    let mut receiver = below(&mut relay, &key);
    let mut pass_on =
        |status: Status| receiver.open(&mut encoded(&mut relay, &Message::Status(status)), via()).map(drop);
    assert_eq!(pass_on(Status { root: Some([7; 32]), blocks: Some(3), ..status() }), Err(OpenError::Forged));
    assert_eq!(pass_on(Status { proof: Some([0; 16]), ..status() }), Err(OpenError::Forged));
    assert_eq!(pass_on(Status { root: None, ..status() }), Ok(()));
}

#[test]
fn relay_refuses_every_altered_symbol() {
    let key = key();
    let mut source = source(Some(&key));
    let (mut relay, _) = relay(&mut source, &key);
    let bytes = encoded(&mut source, &Message::Data(numbered(7)));
    damaged(&bytes, |bytes| assert!(relay.open(bytes, at()).is_err()));
    assert!(relay.open(&mut bytes.clone(), at()).is_ok());
}

#[test]
fn symbol_altered_by_a_relay_is_detected_by_its_child() {
    let key = key();
    let mut source = source(Some(&key));
    let (mut above, mut relay) = relay(&mut source, &key);
    let mut receiver = below(&mut relay, &key);
    let sealed = symbol_of(&mut above, encoded(&mut source, &Message::Data(numbered(7))));
    for at in 0..sealed.len() {
        let mut wrong = sealed.clone();
        wrong[at] ^= 1;
        let packet = DataPacket { payload: &wrong, ..numbered(at as u64) };
        let mut bytes = encoded(&mut relay, &Message::Data(packet));
        let opened = receiver.open(&mut bytes, via());
        let empty = DataPacket { payload: &[], ..packet };
        assert_eq!(opened, Ok((SESSION, Message::Data(empty))), "byte {at}");
    }
    let packet = DataPacket { payload: &sealed, ..numbered(sealed.len() as u64) };
    assert!(receiver.open(&mut encoded(&mut relay, &Message::Data(packet)), via()).is_ok());
}

#[test]
fn forwarded_packet_has_unchanged_length_and_names_the_relay() {
    let key = key();
    let mut source = source(Some(&key));
    let (mut above, mut relay) = relay(&mut source, &key);
    let mut receiver = below(&mut relay, &key);
    let sent = numbered(7);
    let mut bytes = encoded(&mut source, &Message::Data(sent));
    let len = bytes.len();
    let Ok((_, Message::Data(received))) = above.open(&mut bytes, at()) else {
        panic!("it opens at the relay")
    };
    assert_ne!(received.payload, sent.payload, "and cannot be read there");
    let header = relay.data_header_len(&received.data.mark);
    let passed = encoded(
        &mut relay,
        &Message::Data(DataPacket { data: Data { seq: Seq(0), ..received.data }, ..received }),
    );
    assert_eq!(passed.len(), len);
    assert!(passed.len().abs_diff(header + received.payload.len()) <= 2, "but for the rate");
    let from_elsewhere = receiver.open(&mut passed.clone(), at()).map(drop);
    assert_eq!(from_elsewhere, Err(OpenError::NotAnnounced(SESSION)));
    let mut bytes = passed.clone();
    let Ok((_, Message::Data(packet))) = receiver.open(&mut bytes, via()) else { panic!("it opens below") };
    assert_eq!(packet.payload, sent.payload);
    assert_eq!(receiver.open(&mut passed.clone(), via()).map(drop), Err(OpenError::Replayed(0)));
}

#[test]
fn old_announcements_do_not_block_packets_of_a_new_relay() {
    let key = key();
    let mut source = source(Some(&key));
    let process =
        |boot| SourceCodec::of_relay(SESSION, Some(&key.hop()), announce().salt, common::receiver(9), boot);
    let announced = |relay: &mut SourceCodec| {
        encoded(relay, &Message::Announce(Announce { parent: via(), ..announce() }))
    };
    let (mut above, mut present) = relay(&mut source, &key);
    let mut receiver = below(&mut present, &key);
    let mut pass_on = |relay: &mut SourceCodec, receiver: &mut ReceiverCodec, seq| {
        let mut bytes = encoded(&mut source, &Message::Data(numbered(seq)));
        let Ok((_, Message::Data(received))) = above.open(&mut bytes, at()) else {
            panic!("it opens at the relay")
        };
        let data = Data { seq: Seq(seq - 1), ..received.data };
        let mut passed = encoded(relay, &Message::Data(DataPacket { data, ..received }));
        receiver.open(&mut passed, via()).map(drop)
    };
    assert_eq!(pass_on(&mut present, &mut receiver, 1), Ok(()));
    // Replayed announcements of earlier processes at the same address, from which this receiver has received no packets.
    for boot in [100, 101, 102] {
        receiver.open(&mut announced(&mut process(boot)), via()).expect("it was sealed by a relay");
        assert_eq!(pass_on(&mut present, &mut receiver, boot), Ok(()), "after that of {boot}");
    }
    // The reverse case: packets of a new process are admitted at once, regardless of the number of earlier processes.
    let mut next = process(200);
    receiver.open(&mut announced(&mut next), via()).expect("announced");
    assert_eq!(pass_on(&mut next, &mut receiver, 300), Ok(()));
    assert_eq!(pass_on(&mut next, &mut receiver, 301), Ok(()));
}

#[test]
fn relay_seals_each_forwarded_number_once() {
    let key = key();
    let (_, relay) = relay(&mut source(Some(&key)), &key);
    let mut hop = relay.with_given_numbers();
    let mut receiver = below(&mut hop, &key);
    let mut pass_on = |seq| {
        let mut out = Vec::new();
        // To a relay, symbols are sealed bytes that it does not examine.
        let packet = DataPacket { payload: &[0; 40], ..numbered(seq) };
        hop.encode_data(&mut out, &packet).map(|()| out).map_err(|error| error.to_string())
    };
    for seq in [5000, 5002, 5001, 9000, 8999, 9000 - 2047] {
        let mut bytes = pass_on(seq).expect("late, and not sealed yet");
        let opened = receiver.open(&mut bytes, via());
        assert!(!matches!(opened, Err(OpenError::Replayed(_))), "{opened:?}");
    }
    for seq in [9000, 8999, 9000 - 2047, 9000 - 2048, 5001] {
        assert!(pass_on(seq).expect_err("a second time, or too late").contains("number"), "{seq}");
    }
}

#[test]
fn agent_message_is_sealed_and_opens_once() {
    let key = key();
    let mut source = source(Some(&key));
    let mut receiver = joined(&mut source, Some(&key));
    let agent = SourceCodec::of_relay(SESSION, Some(&key.hop()), SALT, order().to, 77);
    let [mut agent, mut stranger] = [agent, SourceCodec::of_relay(SESSION, None, SALT, order().to, 77)];
    let say = |agent: &mut SourceCodec| {
        let mut out = Vec::new();
        agent.encode(&mut out, &Message::Order(order()), LIMIT).expect("it fits");
        out
    };
    for _ in 0..3 {
        let bytes = say(&mut agent);
        assert!(peek(&bytes).expect("a header").sealed);
        let mut copy = bytes.clone();
        assert_eq!(receiver.open(&mut copy, at()).expect("it opens"), (SESSION, Message::Order(order())));
        assert!(matches!(receiver.open(&mut bytes.clone(), at()), Err(OpenError::Replayed(_))));
        let mut forged = bytes;
        forged[30] ^= 1;
        assert!(receiver.open(&mut forged, at()).is_err());
    }
    let mut open = say(&mut stranger);
    assert!(matches!(receiver.open(&mut open, at()), Err(OpenError::Unsealed(_))));
    // A source sends no orders.
    let mut own = Vec::new();
    source.encode(&mut own, &Message::Order(order()), LIMIT).expect("it fits");
    assert!(receiver.open(&mut own, at()).is_err());
}
