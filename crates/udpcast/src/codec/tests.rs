//! Golden bytes, round trips and truncations of all messages.

use super::*;
use proptest::prelude::*;

const GROUP: Ipv4Addr = Ipv4Addr::new(234, 9, 0, 1);

fn encoded(message: &Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, message);
    bytes
}

/// Returns every message with its bytes.
fn golden() -> Vec<(Message<'static>, Vec<u8>)> {
    let map = |first: u8| [&[first][..], &[0; MAP_LEN - 1]].concat();
    let mut bits = Map::EMPTY;
    bits.set(0);
    bits.set(3);
    let block = Block { slice: 2, number: 5, slice_bytes: 4096, payload: b"content" };
    let block_fields = [&[0, 0, 0, 2, 0, 5, 0, 0, 0, 0, 16, 0][..], b"content"].concat();
    let hello = Hello { capabilities: 9, group: GROUP, block_size: 1456, is_streaming: false };
    let hello_fields = [&[0, 0, 0, 0, 0, 9, 234, 9, 0, 1][..], &[0; 12], &[0x05, 0xb0, 0, 0]].concat();
    let reply = ConnectReply { client: 1, block_size: 1456, capabilities: 9, group: GROUP };
    let reply_fields = [&[0, 0, 0x05, 0xb0, 0, 0, 0, 9, 234, 9, 0, 1][..], &[0; 12]].concat();
    let asked = ReqAck { slice: 1, slice_bytes: 0x0102_0304, poll: 7, ready: bits };
    vec![
        (Message::Ok { slice: 9 }, vec![0, 0, 0, 0, 0, 0, 0, 9]),
        (
            Message::Retransmit { slice: 9, poll: 0xa1b2_c3d4, present: bits },
            [&[0, 1, 0, 0, 0, 0, 0, 9, 0xa1, 0xb2, 0xc3, 0xd4][..], &map(0b1001)].concat(),
        ),
        (Message::Go, vec![0, 2, 0, 0]),
        (
            Message::ConnectReq { capabilities: 9, receive_buffer: 0x0003_4000 },
            vec![0, 3, 0, 0, 0, 0, 0, 9, 0, 3, 0x40, 0],
        ),
        (Message::Disconnect, vec![0, 4, 0, 0]),
        (
            Message::ReqAck(asked),
            [&[0, 6, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 0, 0, 0, 7][..], &map(0b1001)].concat(),
        ),
        (Message::ConnectReply(reply), [&[0, 7, 0, 0, 0, 0, 0, 1][..], &reply_fields].concat()),
        (
            Message::ConnectReply(ConnectReply { client: REFUSED, ..reply }),
            [&[0, 7, 0, 0, 255, 255, 255, 255][..], &reply_fields].concat(),
        ),
        (Message::Data(block), [&[0, 8, 0, 0][..], &block_fields].concat()),
        (Message::Fec { stripes: 8, block }, [&[0, 9, 0, 8][..], &block_fields].concat()),
        (Message::Hello(hello), [&[5, 0][..], &hello_fields].concat()),
        (Message::Hello(Hello { is_streaming: true, ..hello }), [&[0, 11][..], &hello_fields].concat()),
    ]
}

#[test]
fn every_message_has_its_golden_bytes() {
    for (message, bytes) in golden() {
        assert_eq!(encoded(&message), bytes, "{message:?}");
        assert_eq!(parse(&bytes), Ok(message));
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (message, bytes) in golden() {
        let payload = if let Message::Data(_) | Message::Fec { .. } = message { 7 } else { 0 };
        // Unused octets at the end and the reserved octets of the shortest messages are not required.
        let need = match message {
            Message::Hello(_) => 26,
            Message::ConnectReply(_) => 20,
            Message::Go | Message::Disconnect => 2,
            _ => bytes.len() - payload,
        };
        for have in 0..need {
            assert!(
                matches!(parse(&bytes[..have]), Err(ParseError::Truncated { have: h, .. }) if h == have),
                "{message:?} of {have} bytes"
            );
        }
        assert!(parse(&bytes[..need]).is_ok(), "{message:?}");
    }
}

#[test]
fn hello_of_old_senders_is_parsed() {
    let (message, mut bytes) = golden().swap_remove(10);
    bytes[..2].copy_from_slice(&[0, 10]);
    assert_eq!(parse(&bytes), Ok(message));
}

#[test]
fn unknown_opcodes_are_errors() {
    assert_eq!(parse(&[0, 5, 0, 0]), Err(ParseError::UnknownOpcode(5)));
    assert_eq!(parse(&[0xff; 200]), Err(ParseError::UnknownOpcode(0xffff)));
}

#[test]
fn map_returns_missing_numbers_below_its_end() {
    let mut map = Map::EMPTY;
    (0..MAP_BITS).filter(|bit| bit % 3 != 0).for_each(|bit| map.set(bit));
    map.set(MAP_BITS + 5);
    assert_eq!(map.missing(8).collect::<Vec<_>>(), [0, 3, 6]);
    assert_eq!((map.count(9), map.count(MAP_BITS)), (6, 682));
    assert!(map.has(1) && !map.has(3) && !map.has(MAP_BITS + 5));
}

proptest! {
    #[test]
    fn parsed_bytes_encode_to_the_same_message(bytes in prop::collection::vec(any::<u8>(), 0..200), op in 0u16..14) {
        let mut bytes = bytes;
        let opcode = if op == 12 { HELLO } else { op };
        if bytes.len() >= 2 {
            bytes[..2].copy_from_slice(&opcode.to_be_bytes());
        }
        if let Ok(message) = parse(&bytes) {
            let again = encoded(&message);
            prop_assert_eq!(parse(&again), Ok(message));
        }
    }
}
