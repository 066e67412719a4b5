//! Golden bytes, round trips and truncations.

use super::*;

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits"))
        .collect()
}

const STATE: SenderState = SenderState { instance: 1, grtt: 76, backoff: 1, group_size: 0 };
const FTI: Fti = Fti { size: 1_100, segment: 16, max_block: 6, parity: 4 };
const OBJECT: ObjectHeader = ObjectHeader {
    flags: object_flags::FILE | object_flags::INFO,
    fec: Fec::ReedSolomon,
    id: 0,
    fti: Some(FTI),
};

/// Returns a position with FEC Encoding ID 5.
const fn at(object: u16, block: u32, symbol: u8) -> Item {
    Item::new(Fec::ReedSolomon, object, PayloadId { block, symbol })
}

fn sender(sequence: u16, message: SenderMessage<'_>) -> Packet<'_> {
    Packet { sequence, source: 1, message: Message::Sender(STATE, message) }
}

fn feedback(source: NodeId, response: (u32, u32), cc: CcReport, kind: FeedbackKind<'_>) -> Packet<'_> {
    let feedback = Feedback { server: 1, instance: 1, response, cc: Some(cc), kind };
    Packet { sequence: 0, source, message: Message::Feedback(feedback) }
}

/// Messages that libnorm 1.5.9 has sent, with FEC Encoding IDs 5 and 129, and their meaning.
#[test]
fn captured_messages_of_libnorm_are_parsed_and_encoded() {
    let symbol = bytes("05193b6ba9f554bc37bb52f2a5663512");
    let requests = bytes("010100080500000000000006");
    let small_requests = bytes("0101000c810000000000000000060006");
    let state = SenderState { instance: 1, grtt: 0x6b, backoff: 4, group_size: 2 };
    let small_object = ObjectHeader { fec: Fec::SmallBlock, ..OBJECT };
    let small = |sequence, message| Packet { sequence, source: 1, message: Message::Sender(state, message) };
    let report = |flags, rtt, loss, rate| CcReport { sequence: 0, flags, rtt, loss, rate };
    let cases = [
        (
            "130700000000000100014c10040000006b0c2f7000096b9f80002005",
            sender(
                0,
                SenderMessage::Command(Command::Cc {
                    sequence: 0,
                    sent: (0x6b0c_2f70, 617_375),
                    rate: Some(0x2005),
                    nodes: CcNodes(&[]),
                }),
            ),
        ),
        (
            "110700010000000100014c1014050000400300000000044c0010060466696c65",
            sender(1, SenderMessage::Info { object: OBJECT, info: b"file" }),
        ),
        (
            "120800020000000100014c101405000000000000400300000000044c0010060405193b6ba9f554bc37bb52f2a5663512",
            sender(
                2,
                SenderMessage::Data {
                    object: OBJECT,
                    id: PayloadId { block: 0, symbol: 0 },
                    block_len: 0,
                    symbol: &symbol,
                },
            ),
        ),
        (
            "130500470000000100014c100105000000000b040000000200000003",
            sender(
                0x47,
                SenderMessage::Command(Command::Flush {
                    at: at(0, 11, 4),
                    nodes: Nodes(&[0, 0, 0, 2, 0, 0, 0, 3]),
                }),
            ),
        ),
        (
            "150900000000000200000001000101006b0c2f70000ad99e03030000009400001cf50000",
            feedback(
                2,
                (0x6b0c_2f70, 711_070),
                report(0, 0x94, 0, 0x1cf5),
                FeedbackKind::Ack { answer: Answer::Cc, id: 0 },
            ),
        ),
        (
            "150900000000000300000001000102006b0c2f70000af7660303000008940000ccf400000500000000000b04",
            feedback(
                3,
                (0x6b0c_2f70, 718_694),
                report(cc_flags::START, 0x94, 0, 0xccf4),
                FeedbackKind::Ack { answer: Answer::Flush(at(0, 11, 4)), id: 0 },
            ),
        ),
        (
            "140900000000000200000001000100006b0c2f70000af90e03030000209400009a940000010100080500000000000006",
            feedback(
                2,
                (0x6b0c_2f70, 719_118),
                report(0x20, 0x94, 0, 0x9a94),
                FeedbackKind::Nack(Requests::parse(&requests).expect("it is a request")),
            ),
        ),
        (
            "110800010000000100016b4214810000400400000000044c000000100006000466696c65",
            small(1, SenderMessage::Info { object: small_object, info: b"file" }),
        ),
        (
            "120a00020000000100016b42148100000000000000060000400400000000044c0000001000060004\
             05193b6ba9f554bc37bb52f2a5663512",
            small(
                2,
                SenderMessage::Data {
                    object: small_object,
                    id: PayloadId { block: 0, symbol: 0 },
                    block_len: 6,
                    symbol: &symbol,
                },
            ),
        ),
        (
            "130600480000000100016b42018100000000000b0005000400000002",
            small(
                0x48,
                SenderMessage::Command(Command::Flush {
                    at: Item { fec: Fec::SmallBlock, block_len: 5, ..at(0, 11, 4) },
                    nodes: Nodes(&[0, 0, 0, 2]),
                }),
            ),
        ),
        (
            "140900000000000200000001000100006b0c8ee30001e2020303000000940000c67300000101000c810000000000000000060006",
            feedback(
                2,
                (0x6b0c_8ee3, 123_394),
                report(0, 0x94, 0, 0xc673),
                FeedbackKind::Nack(Requests::parse(&small_requests).expect("it is a request")),
            ),
        ),
    ];
    for (hex, packet) in cases {
        let captured = bytes(hex);
        // libnorm fills the reserved field of a NACK, and the last field of a report, with other values.
        let is_nack = captured[0] & 15 == NACK;
        assert_eq!(parse(&captured), Ok(packet), "{hex}");
        let mut again = Vec::new();
        encode(&mut again, &packet);
        let expected = if is_nack { [&captured[..14], &[0, 0], &captured[16..]].concat() } else { captured };
        assert_eq!(again, expected, "{hex}");
        assert_eq!(parse(&again), Ok(packet), "{hex}");
    }
    // An advertisement of requests, which faircast does not send.
    let advertisement = bytes("1307005a0000000100014c100500000003030c6b003a00001cf50a00");
    assert_eq!(parse(&advertisement), Err(ParseError::Unknown(CMD, 5)));
}

/// One message of each kind, with all lists filled.
fn samples() -> Vec<Vec<u8>> {
    let (mut nodes, mut requests) = (Vec::new(), Vec::new());
    let node = CcNode { id: 9, flags: cc_flags::CLR | cc_flags::RTT, rtt: 120, rate: 0x1234 };
    node.encode(&mut nodes);
    assert_eq!(CcNodes(&nodes).iter().collect::<Vec<_>>(), [node]);
    let item = |block, symbol| at(3, block, symbol);
    let small = Item { fec: Fec::SmallBlock, block_len: 0x0123, ..at(3, 0x4567_89ab, 0xcd) };
    let ranges = [item(1, 2), item(0xff_ffff, 255)];
    push_request(&mut requests, Form::Ranges, request_flags::SEGMENT, &ranges);
    push_request(&mut requests, Form::Erasures, request_flags::SEGMENT, &[item(7, 3)]);
    push_request(&mut requests, Form::Items, request_flags::INFO, &[item(0, 0)]);
    push_request(&mut requests, Form::Ranges, request_flags::BLOCK, &[small, small]);
    let parsed = Requests::parse(&requests).expect("they are requests");
    assert_eq!(
        parsed.iter().map(|request| request.form).collect::<Vec<_>>(),
        [Form::Ranges, Form::Erasures, Form::Items, Form::Ranges]
    );
    assert_eq!(
        parsed.iter().flat_map(|request| request.ranges()).collect::<Vec<_>>(),
        [(ranges[0], ranges[1]), (item(7, 3), item(7, 3)), (item(0, 0), item(0, 0)), (small, small)]
    );
    let report = CcReport { sequence: 5, flags: cc_flags::RTT, rtt: 100, loss: 600, rate: 0x2345 };
    let id = PayloadId { block: 0x12_3456, symbol: 78 };
    let bare = ObjectHeader { fti: None, ..OBJECT };
    let small_object = ObjectHeader { fec: Fec::SmallBlock, ..OBJECT };
    let (end, nodes_of) = (Item { id, ..at(3, 0, 0) }, Nodes(&[0, 0, 0, 9]));
    let messages = [
        sender(1, SenderMessage::Info { object: bare, info: b"a/b" }),
        sender(2, SenderMessage::Data { object: OBJECT, id, block_len: 0, symbol: &[1, 2, 3] }),
        sender(3, SenderMessage::Command(Command::Flush { at: end, nodes: nodes_of })),
        sender(4, SenderMessage::Command(Command::Eot)),
        sender(5, SenderMessage::Command(Command::Squelch { at: end, invalid: &[0, 1] })),
        sender(
            6,
            SenderMessage::Command(Command::Cc {
                sequence: 7,
                sent: (1, 2),
                rate: None,
                nodes: CcNodes(&nodes),
            }),
        ),
        feedback(9, (3, 4), report, FeedbackKind::Nack(parsed)),
        feedback(9, (3, 4), report, FeedbackKind::Ack { answer: Answer::Flush(end), id: 1 }),
        sender(7, SenderMessage::Info { object: small_object, info: b"a/b" }),
        sender(8, SenderMessage::Data { object: small_object, id, block_len: 90, symbol: &[1, 2, 3] }),
        sender(9, SenderMessage::Command(Command::Flush { at: small, nodes: nodes_of })),
        feedback(9, (3, 4), report, FeedbackKind::Ack { answer: Answer::Flush(small), id: 1 }),
    ];
    let encoded = |packet: &Packet<'_>| {
        let mut bytes = Vec::new();
        encode(&mut bytes, packet);
        assert_eq!(parse(&bytes), Ok(*packet));
        bytes
    };
    messages.iter().map(encoded).collect()
}

#[test]
fn every_truncation_is_an_error_or_has_a_shorter_payload() {
    for bytes in samples() {
        let header = usize::from(bytes[1]) * 4;
        for have in 0..bytes.len() {
            let parsed = parse(&bytes[..have]);
            assert!(have >= header || parsed.is_err(), "{have} of {bytes:?}: {parsed:?}");
        }
        // The header may state any length.
        for words in 0..=255 {
            let mut changed = bytes.clone();
            changed[1] = words;
            let _ = parse(&changed);
        }
    }
}

#[test]
fn other_versions_codes_and_extensions_are_errors() {
    let sample = &samples()[1];
    let changed = |at: usize, to: u8| {
        let mut bytes = sample.clone();
        bytes[at] = to;
        bytes
    };
    assert_eq!(parse(&changed(0, 0x22)), Err(ParseError::Version(2)));
    assert_eq!(parse(&changed(0, 0x16)), Err(ParseError::Unknown(6, 0)));
    assert_eq!(parse(&changed(1, 9)), Err(ParseError::Header(9)));
    assert_eq!(parse(&changed(13, 128)), Err(ParseError::Fec(128)));
    assert_eq!(parse(&changed(21, 0)), Err(ParseError::Extension(64)));
    // With FEC Encoding ID 129, the symbol, the instance and the numbers of symbols have 16 bits.
    let small = &samples()[9];
    for (at, what) in [(22, "symbol"), (32, "instance"), (36, "block"), (38, "parity")] {
        let mut bytes = small.clone();
        bytes[at] = 1;
        assert!(
            matches!(parse(&bytes), Err(ParseError::SmallBlock { what: of, .. }) if of == what),
            "{what}"
        );
    }
    let nack = &samples()[6];
    let mut form = nack.clone();
    form[36] = 9;
    assert_eq!(parse(&form), Err(ParseError::Form(9)));
}

#[test]
fn corpus_has_every_sample() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/norm");
    for (number, bytes) in samples().iter().enumerate() {
        let path = directory.join(format!("sample-{number}"));
        if std::env::var_os("FAIRCAST_BLESS").is_some() {
            std::fs::create_dir_all(&directory).expect("the source tree can be written");
            std::fs::write(&path, bytes).expect("the source tree can be written");
        }
        assert_eq!(
            std::fs::read(&path).ok().as_ref(),
            Some(bytes),
            "{}; FAIRCAST_BLESS=1 writes it",
            path.display()
        );
    }
}
