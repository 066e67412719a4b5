//! Tests with packets captured from other programs, with encoded and parsed packets of all types, and with truncated packets.

use super::*;
use faircast_core::packet::{Cause, Echo, Flags, Mark, ReceiverId, ReportContent, Seq, Signal};
use faircast_core::time::Span;
use proptest::prelude::*;

const GSI: Gsi = Gsi([0xb7, 0xc6, 0xd1, 0xbc, 0x03, 0x8a]);
const SOURCE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 99, 0, 1));
const GROUP: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(239, 192, 1, 1));

/// Packets of a captured session of libzmq 4.3.4 on OpenPGM 5.3.128: SPM, first data packet, a data packet that was later lost,
/// NAK with a list, NCF, repair, last data packet.
const STOCK: [(&str, &str); 7] = [
    ("spm", "1f2d15b3000033adb7c6d1bc038a00000000000000000000ffffffff000100000a630001"),
    (
        "odata",
        "1f2d15b304008ebab7c6d1bc038a0022000000000000000000001f006d657373616765203020\
         7878787878787878787878787878787878787878",
    ),
    (
        "nak of four",
        "15b31f2d0803b86cb7c6d1bc038a000000000013000100000a63000100010000efc00101000400148210000000000014\
         0000001500000016",
    ),
    ("nak of one", "15b31f2d08003ad7b7c6d1bc038a000000000013000100000a63000100010000efc00101"),
    (
        "ncf of four",
        "1f2d15b30a03566cb7c6d1bc038a000000000013000100000a63000100010000efc00101000400148210600000000014\
         0000001500000016",
    ),
    (
        "rdata",
        "1f2d15b305006a95b7c6d1bc038a00230000001400000000000020006d65737361676520323020787878787878787878\
         7878787878787878787878",
    ),
    ("last spm", "1f2d15b30001a554b7c6d1bc038a000000000009000000000000003e000100000a630001000400088e040000"),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.bytes().filter_map(|digit| (digit as char).to_digit(16)).map(|d| d as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Returns the captured packet of this name.
fn stock(name: &str) -> Vec<u8> {
    bytes(STOCK.iter().find(|(other, _)| *other == name).expect("a captured packet").1)
}

fn down(body: Body) -> Packet<'static> {
    Packet {
        gsi: GSI,
        source_port: 7981,
        destination_port: 5555,
        body,
        options: Options::default(),
        payload: &[],
    }
}

fn written(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, packet).expect("it can be written");
    out
}

#[test]
fn captured_spm_is_parsed_and_encoded() {
    let packet = down(Body::Spm(Spm { sqn: 0, trail: 0, lead: u32::MAX, path: SOURCE }));
    assert_eq!(parse(&stock("spm")), Ok(packet));
    assert_eq!(written(&packet), stock("spm"));
}

#[test]
fn captured_data_packet_is_parsed_and_encoded() {
    let odata = stock("odata");
    let payload = &odata[24..];
    assert_eq!(payload, b"\0\0\x1f\0message 0 xxxxxxxxxxxxxxxxxxxx");
    let packet = Packet { payload, ..down(Body::Odata(Data { sqn: 0, trail: 0 })) };
    assert_eq!(parse(&odata), Ok(packet));
    assert_eq!(written(&packet), odata);
    let rdata = stock("rdata");
    let packet = parse(&rdata).expect("captured");
    assert_eq!(packet.body, Body::Rdata(Data { sqn: 0x14, trail: 0 }));
    assert_eq!(written(&packet), rdata);
}

#[test]
fn captured_last_spm_has_the_fin_option() {
    let read = stock("last spm");
    let packet = parse(&read).expect("captured");
    assert_eq!(packet.body, Body::Spm(Spm { sqn: 9, trail: 0, lead: 0x3e, path: SOURCE }));
    assert!(packet.options.fin && !packet.options.syn);
    assert_eq!(written(&packet), read);
}

#[test]
fn captured_nak_contains_packet_numbers_and_tsi_of_the_source() {
    let read = stock("nak of one");
    let packet = parse(&read).expect("captured");
    assert_eq!(packet.body, Body::Nak(Nak { sqn: 0x13, source: SOURCE, group: GROUP }));
    assert_eq!((packet.source_port, packet.destination_port), (5555, 7981));
    assert_eq!(packet.tsi(), parse(&stock("spm")).expect("captured").tsi());
    assert_eq!(written(&packet), read);
    let read = stock("nak of four");
    let packet = parse(&read).expect("captured");
    assert_eq!(packet.options.nak_list.iter().collect::<Vec<_>>(), [0x14, 0x15, 0x16]);
    assert_eq!(written(&packet), read);
}

#[test]
fn captured_ncf_differs_from_its_nak_only_in_the_type() {
    let read = stock("ncf of four");
    let packet = parse(&read).expect("captured");
    assert_eq!(packet.body, Body::Ncf(Nak { sqn: 0x13, source: SOURCE, group: GROUP }));
    assert_eq!(packet.options.nak_list.iter().len(), 3);
    // OpenPGM sends uninitialized memory in a reserved octet, so this octet is set to zero.
    let mut clean = read.clone();
    let reserved = clean.iter().rposition(|byte| *byte == 0x60).expect("it is in there");
    clean[reserved] = 0;
    let sum = checksum(&clean).to_be_bytes();
    clean[6..8].copy_from_slice(&sum);
    assert_eq!(written(&packet), clean);
}

/// Compares encoded packets of types that were not captured with bytes derived by hand from RFC 3208, 8 and 9.
#[test]
fn packets_have_the_layout_of_rfc_3208() {
    let fragment = Options {
        fragment: Some(Fragment { first: 5, offset: 1000, len: 2500 }),
        syn: true,
        ..Options::default()
    };
    let packet =
        Packet { options: fragment, payload: b"abc", ..down(Body::Odata(Data { sqn: 6, trail: 2 })) };
    let tail = bytes("0003 00000006 00000002  00040018 01100000 00000005 000003e8 000009c4 8d040000 616263");
    assert_eq!(written(&packet)[14..], tail);
    assert_eq!(data_len(&Options { syn: false, ..fragment }, 3), 24 + 4 + 16 + 3);
    let feedback = PgmccFeedback { stamp: 0x0102_0304, loss: 500, from: SOURCE };
    let options = Options { pgmcc_feedback: Some(feedback), ..Options::default() };
    let packet = Packet { options, ..down(Body::Ack(Ack { newest: 7, bitmap: 0xff })) };
    let tail = bytes("00000007 000000ff  00040014 93100000 01020304 0001 01f4 0a630001");
    assert_eq!(written(&packet)[16..], tail);
    let data = PgmccData { stamp: 9, acker: SOURCE };
    let options = Options { pgmcc_data: Some(data), join: Some(1), ..Options::default() };
    let packet = Packet { options, ..down(Body::Odata(Data { sqn: 1, trail: 1 })) };
    let tail = bytes("00000001 00000001  0004001c 03080000 00000001 92100000 00000009 0001 0000 0a630001");
    assert_eq!(written(&packet)[16..], tail);
    let six = Body::Spm(Spm { sqn: 1, trail: 2, lead: 3, path: IpAddr::V6(std::net::Ipv6Addr::LOCALHOST) });
    let tail = bytes("00000001 00000002 00000003 0002 0000 00000000 00000000 00000000 00000001");
    assert_eq!(written(&down(six))[16..], tail);
}

#[test]
fn unknown_option_is_skipped_if_its_extensibility_bits_allow_it() {
    let with = |extensibility: u8| {
        let options = Options { fin: true, syn: true, ..Options::default() };
        let mut packet = written(&Packet { options, ..down(Body::Spmr) });
        (packet[20], packet[22]) = (0x55, extensibility);
        let sum = checksum(&packet).to_be_bytes();
        packet[6..8].copy_from_slice(&sum);
        packet
    };
    let skipped = with(0);
    let options = parse(&skipped).expect("to be ignored").options;
    assert!(options.fin && !options.syn);
    assert!(parse(&with(1)).is_ok());
    assert_eq!(parse(&with(2)), Err(ParseError::UnknownOption(0x55)));
}

#[test]
fn damaged_packets_are_refused() {
    for (name, _) in STOCK {
        let whole = stock(name);
        for at in (0..whole.len()).filter(|at| !(6..8).contains(at)) {
            let mut packet = whole.clone();
            packet[at] ^= 0x10;
            assert!(matches!(parse(&packet), Err(ParseError::Damaged { .. })), "{name}: {at}");
        }
    }
}

#[test]
fn only_data_packets_require_a_checksum() {
    let (mut odata, mut spm) = (stock("odata"), stock("spm"));
    odata[6..8].fill(0);
    spm[6..8].fill(0);
    assert_eq!(parse(&odata), Err(ParseError::NoChecksum));
    assert!(parse(&spm).is_ok());
}

#[test]
fn encoded_checksum_is_never_zero() {
    // The sum of the 16-bit words is all ones, so its complement is zero. A checksum of zero would mean that the packet has no
    // checksum.
    let mut packet = [0; 16];
    packet[0..2].fill(0xff);
    assert_eq!(checksum(&packet), 0xffff);
}

#[test]
fn invalid_length_version_or_type_is_refused() {
    let change = |at: usize, byte: u8| {
        let mut packet = stock("odata");
        packet[at] = byte;
        let sum = checksum(&packet).to_be_bytes();
        packet[6..8].copy_from_slice(&sum);
        parse(&packet).map(drop)
    };
    assert_eq!(change(15, 0x21), Err(ParseError::Length { stated: 0x21, have: 0x22 }));
    assert_eq!(change(4, 0x44), Err(ParseError::Version(1)));
    assert_eq!(change(4, 0x0f), Err(ParseError::UnknownType(0x0f)));
    assert_eq!(change(5, 0x80), Err(ParseError::Parity));
}

#[test]
fn every_truncation_is_an_error() {
    for packet in samples() {
        let whole = written(&packet);
        for len in 0..whole.len() {
            let mut cut = whole[..len].to_vec();
            if len >= HEADER_LEN {
                // The checksum is computed again; otherwise parsing would fail at the checksum.
                let sum = checksum(&cut).to_be_bytes();
                cut[6..8].copy_from_slice(&sum);
            }
            assert!(parse(&cut).is_err(), "{len} bytes of {packet:?}");
        }
    }
}

#[test]
fn nak_contains_at_most_63_packet_numbers() {
    let more = [[0; 4]; SEQUENCES_PER_NAK];
    let nak = |more| {
        let options = Options { nak_list: NakList(more), ..Options::default() };
        Packet { options, ..down(Body::Nak(Nak { sqn: 0, source: SOURCE, group: GROUP })) }
    };
    let mut out = vec![1];
    assert_eq!(encode(&mut out, &nak(&more)), Err(EncodeError::TooManySequences(64)));
    assert_eq!(out, [1]);
    let most = written(&nak(&more[1..]));
    assert_eq!(parse(&most).expect("it is full").options.nak_list.iter().len(), 62);
}

#[test]
fn oversized_and_unsupported_packets_are_not_encoded() {
    let long = vec![0; 65_536];
    let packet = Packet { payload: &long, ..down(Body::Odata(Data { sqn: 0, trail: 0 })) };
    assert_eq!(encode(&mut Vec::new(), &packet), Err(EncodeError::TooLong(65_536)));
    assert_eq!(encode(&mut Vec::new(), &down(Body::Poll)), Err(EncodeError::NotSent(1)));
}

/// Returns packets of every type, which together have every option.
fn samples() -> Vec<Packet<'static>> {
    let nak = Nak { sqn: 7, source: SOURCE, group: GROUP };
    let echo = Echo { seq: Seq(77), hold: Span::from_millis(3) };
    let mark = Mark::Representative { id: ReceiverId::new(5), mean: 1024.0, deviation: 2.0, rtt_max: 0.5 };
    let stamp = Stamp {
        scheme: 1,
        seq: 8,
        micros: 9,
        rate: 1024.0,
        flags: Flags::STARTING,
        signal: Signal::None,
        mark,
    };
    let content = ReportContent::Congested { echo, level: 1e6, mean: 2e6, cause: Cause::Loss };
    let extension = |extension| Options { extension: Some(extension), ..Options::default() };
    let all = Options {
        join: Some(3),
        back_off: Some(BackOff { micros: 50_000, sqn: 1 }),
        back_off_range: Some(BackOffRange { longest: 100_000, shortest: 10_000 }),
        syn: true,
        fin: true,
        rst: true,
        ..Options::default()
    };
    let list = Options { nak_list: NakList(&[[0, 0, 0, 9], [0, 0, 1, 0]]), ..Options::default() };
    let data = Data { sqn: 1 << 31, trail: 3 };
    vec![
        Packet { options: all, ..down(Body::Spm(Spm { sqn: 1, trail: 2, lead: 3, path: SOURCE })) },
        Packet { options: extension(OwnOption::Stamp(stamp)), payload: b"data", ..down(Body::Odata(data)) },
        Packet { payload: b"repair", ..down(Body::Rdata(data)) },
        Packet { options: list, ..down(Body::Nak(nak)) },
        down(Body::Nnak(nak)),
        down(Body::Ncf(nak)),
        down(Body::Spmr),
        Packet {
            options: extension(OwnOption::Content(content)),
            ..down(Body::Ack(Ack { newest: 1, bitmap: 2 }))
        },
    ]
}

#[test]
fn data_len_equals_the_length_of_the_encoded_data_packet() {
    for packet in samples().iter().filter(|packet| !packet.payload.is_empty()) {
        assert_eq!(written(packet).len(), data_len(&packet.options, packet.payload.len()));
    }
}

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![any::<[u8; 4]>().prop_map(IpAddr::from), any::<[u8; 16]>().prop_map(IpAddr::from)]
}

fn body() -> impl Strategy<Value = Body> {
    let nak =
        || (any::<u32>(), address(), address()).prop_map(|(sqn, source, group)| Nak { sqn, source, group });
    prop_oneof![
        (any::<[u32; 3]>(), address()).prop_map(|([sqn, trail, lead], path)| Body::Spm(Spm {
            sqn,
            trail,
            lead,
            path
        })),
        any::<[u32; 2]>().prop_map(|[sqn, trail]| Body::Odata(Data { sqn, trail })),
        any::<[u32; 2]>().prop_map(|[sqn, trail]| Body::Rdata(Data { sqn, trail })),
        nak().prop_map(Body::Nak),
        nak().prop_map(Body::Nnak),
        nak().prop_map(Body::Ncf),
        Just(Body::Spmr),
        any::<[u32; 2]>().prop_map(|[newest, bitmap]| Body::Ack(Ack { newest, bitmap })),
    ]
}

prop_compose! {
    fn options()(
        fragment in any::<Option<[u32; 3]>>(), join: Option<u32>, marks: [bool; 3],
        data in prop::option::of((any::<u32>(), address())),
        feedback in prop::option::of((any::<u32>(), any::<u16>(), address())),
        times in any::<Option<[u32; 4]>>(), extension in prop::option::of(0..samples().len()),
    ) -> Options<'static> {
        Options {
            fragment: fragment.map(|[first, offset, len]| Fragment { first, offset, len }),
            nak_list: NakList::default(),
            join,
            back_off: times.map(|[micros, sqn, ..]| BackOff { micros, sqn }),
            back_off_range: times.map(|[.., longest, shortest]| BackOffRange { longest, shortest }),
            syn: marks[0], fin: marks[1], rst: marks[2],
            pgmcc_data: data.map(|(stamp, acker)| PgmccData { stamp, acker }),
            pgmcc_feedback: feedback.map(|(stamp, loss, from)| PgmccFeedback { stamp, loss, from }),
            extension: extension.and_then(|at| samples()[at].options.extension),
        }
    }
}

proptest! {
    #[test]
    fn encoded_packets_round_trip(
        ports: [u16; 2], gsi: [u8; 6], body in body(), options in options(),
        list in prop::collection::vec(any::<[u8; 4]>(), 0..SEQUENCES_PER_NAK),
        payload in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let carries = matches!(body, Body::Odata(_) | Body::Rdata(_));
        let packet = Packet {
            gsi: Gsi(gsi), source_port: ports[0], destination_port: ports[1], body,
            options: Options { nak_list: NakList(&list), ..options },
            payload: if carries { &payload } else { &[] },
        };
        let bytes = written(&packet);
        prop_assert_eq!(parse(&bytes), Ok(packet));
    }

    #[test]
    fn parsing_of_arbitrary_bytes_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        if bytes.len() >= HEADER_LEN {
            let sum = checksum(&bytes).to_be_bytes();
            bytes[6..8].copy_from_slice(&sum);
            bytes[4] &= 0x0f;
            let _ = parse(&bytes);
        }
    }
}

/// Collects messages.
#[derive(Default)]
struct Messages {
    whole: Vec<Vec<u8>>,
    part: Vec<u8>,
    broken: usize,
}

impl MessageSink for Messages {
    fn bytes(&mut self, part: &[u8]) {
        self.part.extend_from_slice(part);
    }

    fn end(&mut self) {
        self.whole.push(std::mem::take(&mut self.part));
    }

    fn broken(&mut self) {
        self.broken += usize::from(!self.part.is_empty());
        self.part.clear();
    }
}

/// Returns a stream of ZeroMQ messages, divided into packets. Each packet contains an offset and `size` bytes of the stream.
fn packets(messages: &[Vec<u8>], size: usize) -> Vec<Vec<u8>> {
    let (mut stream, mut begins) = (Vec::new(), Vec::new());
    for message in messages {
        begins.push(stream.len());
        put_message(&mut stream, message);
    }
    let packet = |(number, bytes): (usize, &[u8])| {
        let from = number * size;
        let first = begins.iter().find(|at| (from..from + bytes.len()).contains(at)).map(|at| at - from);
        let mut out = Vec::new();
        put_offset(&mut out, first);
        out.extend_from_slice(bytes);
        out
    };
    stream.chunks(size).enumerate().map(packet).collect()
}

#[test]
fn captured_messages_of_zeromq_are_parsed() {
    let (mut unframer, mut messages) = (Unframer::new(1 << 20), Messages::default());
    unframer.packet(&stock("odata")[24..], &mut messages).expect("captured");
    unframer.packet(&stock("rdata")[24..], &mut messages).expect("captured");
    assert_eq!(
        messages.whole,
        [b"message 0 xxxxxxxxxxxxxxxxxxxx".to_vec(), b"message 20 xxxxxxxxxxxxxxxxxxxx".to_vec()]
    );
}

#[test]
fn message_of_254_bytes_has_a_long_length_field() {
    let frame = |len: usize| {
        let mut out = Vec::new();
        put_message(&mut out, &vec![0; len]);
        out
    };
    assert_eq!(frame(253)[..2], [254, 0]);
    assert_eq!(frame(254)[..10], [255, 0, 0, 0, 0, 0, 0, 0, 255, 0]);
}

#[test]
fn unframer_resumes_at_the_next_complete_message_after_a_loss() {
    let all: Vec<Vec<u8>> = (0..50u8).map(|n| vec![n; 30]).collect();
    let (mut unframer, mut messages) = (Unframer::new(1 << 20), Messages::default());
    for (number, packet) in packets(&all, 100).iter().enumerate() {
        match number {
            3 => unframer.on_loss(&mut messages),
            _ => unframer.packet(packet, &mut messages).expect("a stream"),
        }
    }
    let got: Vec<u8> = messages.whole.iter().map(|message| message[0]).collect();
    // Bytes 300 to 399 of the stream are lost. Each frame has 32 bytes, so messages 9 to 12 are incomplete.
    assert_eq!(got, (0..9).chain(13..50).collect::<Vec<u8>>());
    assert!(messages.whole.iter().all(|message| message.len() == 30));
    assert_eq!(messages.broken, 1);
}

#[test]
fn invalid_framing_is_refused() {
    let refused = |payload: &[u8]| Unframer::new(100).packet(payload, &mut Messages::default());
    assert_eq!(refused(&[0]), Err(FrameError::NoOffset(1)));
    assert_eq!(refused(&[0, 2, 1]), Err(FrameError::Offset { offset: 2, len: 1 }));
    assert_eq!(refused(&[0, 0, 0, 0]), Err(FrameError::Empty));
    assert_eq!(refused(&[0, 0, 200]), Err(FrameError::TooLong { len: 199, most: 100 }));
}

proptest! {
    #[test]
    fn zeromq_messages_arrive_through_packets_of_any_size(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 0..20), size in 1..700usize,
    ) {
        let (mut unframer, mut got) = (Unframer::new(1 << 20), Messages::default());
        for packet in packets(&messages, size) {
            prop_assert_eq!(unframer.packet(&packet, &mut got), Ok(()));
        }
        prop_assert_eq!(got.whole, messages);
    }
}
