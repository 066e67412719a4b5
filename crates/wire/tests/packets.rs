//! Packets that are not sealed: golden bytes, round trips, damage.

mod common;

use common::{
    LIMIT, SESSION, SYMBOL, all, announce, bytes_of, data, from_source, marks, receiver, request, status,
};
use faircast_core::half;
use faircast_core::packet::{Data, Flags, Layer, Mark, Payload, Seq, SessionId, Signal};
use faircast_core::time::{Span, Time};
use faircast_wire::fields::{BODIES, CONTENTS, Field, Layout, MARKS, Names, Shape, flat};
use faircast_wire::testing::{any_content, any_data, any_message};
use faircast_wire::{
    Announce, DataPacket, EncodeError, Form, Kind, MAX_DATA_HEADER, Message, Newest, ParseError, Quantised,
    Request, Scheduled, Status, data_header_len, encode, encode_data, parse, peek,
};
use proptest::prelude::*;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The file `golden.txt` defines the wire format: a change of the file is a change of the format.
#[test]
fn every_message_has_its_golden_bytes() {
    let lines =
        all().iter().map(|(name, message)| format!("{name}: {}\n", hex(&bytes_of(message)))).collect();
    common::agree("tests/golden.txt", lines);
}

#[test]
fn every_sample_message_round_trips() {
    for (name, message) in all() {
        let bytes = bytes_of(&message);
        let newest = Newest { seq: Seq(90), sent_at: Time::from_nanos(7_000_000_000) };
        let (header, read) = parse(&bytes, &newest).expect(name);
        assert_eq!(read, message, "{name}");
        assert_eq!(header, peek(&bytes).expect(name), "{name}");
        assert_eq!((header.session, header.kind, header.sealed), (SESSION, message.kind(), false), "{name}");
    }
}

#[test]
fn field_table_covers_every_byte() {
    for (name, message) in all() {
        let bytes = bytes_of(&message);
        let feedback = if peek(&bytes).expect(name).kind.is_feedback() { 4 } else { 0 };
        let mut at = 16 + feedback;
        let mut counts = Vec::new();
        let bits = if peek(&bytes).expect(name).kind == Kind::Data {
            layout(MARKS, bytes[3] >> 4).bits
        } else {
            &[]
        };
        walk(layout(BODIES, bytes[2]).fields, bits, &bytes, &mut at, &mut counts);
        if let Message::Data(packet) = message {
            at += if bytes[1] & 4 != 0 { 2 } else { 0 };
            walk(layout(MARKS, bytes[3] >> 4).fields, &[], &bytes, &mut at, &mut counts);
            at += packet.payload.len();
        }
        if let Message::Report(_) = message {
            let content = layout(CONTENTS, bytes[at]);
            at += 1;
            walk(content.fields, &[], &bytes, &mut at, &mut counts);
        }
        assert_eq!((at, counts), (bytes.len(), vec![]), "{name}");
    }
}

/// Without a sample, the bytes of a declared mark or report would not be compared with constant bytes.
#[test]
fn every_declared_mark_and_report_has_a_sample() {
    let bytes: Vec<_> = all().iter().map(|(_, message)| bytes_of(message)).collect();
    let has = |found: &dyn Fn(&[u8]) -> Option<u8>, number: u8| {
        bytes.iter().any(|bytes| found(bytes) == Some(number))
    };
    for Layout { name, number, .. } in BODIES {
        assert!(has(&|bytes| Some(bytes[2]), *number), "no sample of {name} in tests/common");
    }
    for Layout { name, number, .. } in MARKS {
        let mark = |bytes: &[u8]| (bytes[2] == 1).then_some(bytes[3] >> 4);
        assert!(has(&mark, *number), "no sample of the mark {name} in tests/common");
    }
    for Layout { name, number, .. } in CONTENTS {
        let content = |bytes: &[u8]| (bytes[2] == 2).then(|| bytes[20]);
        assert!(has(&content, *number), "no sample of the report {name} in tests/common");
    }
}

#[test]
fn header_of_a_data_packet_fits_the_stated_maximum() {
    let longest = marks().iter().map(|(_, mark)| data_header_len(mark, Form::Sealed)).max();
    assert_eq!(longest, Some(MAX_DATA_HEADER));
}

#[test]
fn signal_needs_a_mark_that_declares_it() {
    let mut packet = data(1, Mark::Acker { id: None });
    packet.data.signal = Signal::Burst;
    let error = encode_data(&mut Vec::new(), SESSION, &packet).expect_err("PGMCC has no bursts");
    assert_eq!(error, EncodeError::NoSuchSignal { mark: "acker", signal: Signal::Burst });
    packet.data.signal = Signal::None;
    packet.data.flags = Flags(8);
    let error = encode_data(&mut Vec::new(), SESSION, &packet).expect_err("there is no such flag");
    assert_eq!(error, EncodeError::UnknownFlags(8));
}

#[test]
fn signal_bits_depend_on_the_mark() {
    let flags_of = |mark: usize, bits: u8| {
        let mut bytes = bytes_of(&Message::Data(data(1, marks()[mark].1)));
        bytes[29] |= bits;
        correct(&mut bytes);
        parse(&bytes, &Newest::default()).map(|(_, message)| match message {
            Message::Data(packet) => (packet.data.flags, packet.data.signal),
            other => panic!("{other:?}"),
        })
    };
    let [none, representative, timetable, layered] = [0, 1, 6, 7];
    assert_eq!(flags_of(timetable, 8), Ok((Flags::REPAIR, Signal::Burst)));
    assert_eq!(flags_of(timetable, 24), Ok((Flags::REPAIR, Signal::SyncPoint)));
    assert_eq!(flags_of(layered, 8), Ok((Flags::REPAIR, Signal::Gains)));
    assert_eq!(flags_of(layered, 16), Ok((Flags::REPAIR, Signal::Gives)));
    assert_eq!(flags_of(representative, 64), Ok((Flags::REPAIR, Signal::Control)));
    assert_eq!(flags_of(none, 64), Err(ParseError::BadValue { field: "flags", value: 68 }));
    assert_eq!(flags_of(layered, 24), Err(ParseError::BadValue { field: "flags", value: 28 }));
}

fn layout(layouts: &'static [Layout], number: u8) -> &'static Layout {
    layouts.iter().find(|layout| layout.number == number).expect("a layout for every number")
}

fn walk(fields: &'static [Field], bits: Names, bytes: &[u8], at: &mut usize, counts: &mut Vec<u16>) {
    for Field { name, shape, .. } in flat(fields) {
        match shape {
            Shape::Count => counts.push(u16::from_be_bytes([bytes[*at], bytes[*at + 1]])),
            Shape::Optional(len) => *at += 1 + usize::from(bytes[*at]) * len,
            Shape::Text(_) => *at += 1 + usize::from(bytes[*at]),
            Shape::RareText(_) if bytes[*at] == 2 => *at += 2 + usize::from(bytes[*at + 1]),
            Shape::Rare(mark, len) if bytes[*at] == mark => *at += 1 + len,
            Shape::RareText(_) | Shape::Rare(..) => {}
            Shape::List(entry) => {
                for _ in 0..counts.remove(0) {
                    walk(entry, &[], bytes, at, &mut Vec::new());
                }
            }
            Shape::Choice(names) => assert!(names.iter().any(|&(number, _)| number == bytes[*at]), "{name}"),
            Shape::Flags(names) => {
                let known = names.iter().chain(bits).fold(0, |known, &(mask, _)| known | mask);
                assert_eq!(bytes[*at] & !known, 0, "{name}");
            }
            _ => {}
        }
        *at += shape.fixed_len().unwrap_or(0);
    }
}

#[test]
fn every_truncation_is_an_error() {
    for (name, message) in all() {
        let bytes = bytes_of(&message);
        for have in 0..bytes.len() {
            assert!(parse(&bytes[..have], &Newest::default()).is_err(), "{name} cut to {have}");
            // With a correct checksum, the parser must detect the truncation.
            let mut cut = bytes[..have].to_vec();
            let symbol_is_cut =
                matches!(&message, Message::Data(packet) if have >= bytes.len() - packet.payload.len());
            if have >= 16 && !symbol_is_cut {
                correct(&mut cut);
                let error = parse(&cut, &Newest::default()).expect_err(name);
                assert!(
                    matches!(error, ParseError::Truncated { need, have: flags_of, .. } if flags_of == have && need > have),
                    "{name} cut to {have}: {error}"
                );
            }
        }
    }
}

/// Corrects the checksum.
fn correct(bytes: &mut [u8]) {
    bytes[12..16].fill(0);
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32; // a 32-bit algorithm
    bytes[12..16].copy_from_slice(&crc.to_be_bytes());
}

#[test]
fn every_single_bit_flip_is_an_error() {
    for (name, message) in all() {
        let bytes = bytes_of(&message);
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&flipped, &Newest::default()).is_err(), "{name}, bit {bit}");
        }
    }
}

#[test]
fn trailing_bytes_are_an_error() {
    for (name, message) in all() {
        let mut bytes = bytes_of(&message);
        bytes.push(0);
        correct(&mut bytes);
        let read = parse(&bytes, &Newest::default());
        match message {
            Message::Data(packet) if packet.symbols > 0 => assert!(read.is_ok(), "{name}: a longer symbol"),
            _ => assert_eq!(read.expect_err(name), ParseError::Trailing(1), "{name}"),
        }
    }
}

#[test]
fn packet_of_another_protocol_is_refused_with_the_reason() {
    let bytes = bytes_of(&Message::Status(status()));
    let with = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        peek(&bytes)
    };
    assert_eq!(with(0, 0x17), Err(ParseError::NotOurs(0x17)));
    assert_eq!(with(1, 0x24), Err(ParseError::Version(2)));
    assert_eq!(with(1, 0x38), Err(ParseError::BadValue { field: "flags", value: 8 }));
    assert_eq!(with(2, 0), Err(ParseError::UnknownKind(0)));
    assert_eq!(with(2, 17), Err(ParseError::UnknownKind(17)));
    assert_eq!(with(3, 0x10), Err(ParseError::BadValue { field: "mark", value: 1 }));
    assert_eq!(with(3, 0x01), Err(ParseError::BadValue { field: "layer", value: 1 }));
    assert_eq!(peek(&bytes[..11]), Err(ParseError::Truncated { field: "header", need: 12, have: 11 }));
}

/// Returns the packet with these options inserted.
fn with_options(message: &Message<'_>, options: &[u8]) -> Vec<u8> {
    let plain = bytes_of(message);
    let body = if peek(&plain).expect("a packet").kind.is_feedback() { 20 } else { 16 };
    let mut bytes = [&plain[..body], options, &plain[body..]].concat();
    bytes[1] |= 2;
    correct(&mut bytes);
    bytes
}

#[test]
fn unknown_options_are_skipped_unless_they_must_be_understood() {
    for (name, message) in all() {
        let read = |options: &[u8]| {
            let bytes = with_options(&message, options);
            let newest = Newest { seq: Seq(90), sent_at: Time::from_nanos(7_000_000_000) };
            parse(&bytes, &newest).map(|(_, read)| assert_eq!(read, message, "{name}"))
        };
        assert_eq!(read(&[0]), Ok(()), "{name}: none");
        assert_eq!(read(&[7, 0, 0, 0x7f, 3, 1, 2, 3]), Ok(()), "{name}: padding and an unknown one");
        assert_eq!(read(&[2, 0x81, 0]), Err(ParseError::UnknownOption(0x81)), "{name}");
        assert!(
            matches!(read(&[2, 1, 9]), Err(ParseError::Truncated { .. })),
            "{name}: longer than the options"
        );
    }
}

#[test]
fn data_header_length_is_predicted_for_every_mark() {
    for (name, mark) in marks() {
        let mut packet = data(1, mark);
        for (rate, saved) in [(0.0, 2), (1e9, 0)] {
            packet.data.rate = rate;
            let mut out = Vec::new();
            encode_data(&mut out, SESSION, &packet).expect("it fits");
            assert_eq!(out.len() - SYMBOL.len(), data_header_len(&mark, Form::Open) - saved, "{name}");
        }
        // Marks of TFMCC contain an echo, and marks of GMCC contain the states of all layers.
        let most = if matches!(mark, Mark::Equation { .. } | Mark::Layered { .. }) { 49 } else { 42 };
        assert!(data_header_len(&mark, Form::Open) <= most, "{name}");
        assert!(data_header_len(&mark, Form::Sealed) - data_header_len(&mark, Form::Open) <= 28, "{name}");
    }
}

#[test]
fn announcement_with_too_small_a_packet_size_is_refused() {
    let mut bytes = bytes_of(&Message::Announce(announce()));
    bytes[114..116].copy_from_slice(&57_u16.to_be_bytes());
    correct(&mut bytes);
    let error = parse(&bytes, &Newest::default()).expect_err("too small");
    assert_eq!(error, ParseError::BadValue { field: "packet_size", value: 57 });
    let small = Message::Announce(Announce { packet_size: 57, ..announce() });
    let error = encode(&mut Vec::new(), SESSION, 0, &small, LIMIT).expect_err("too small");
    assert_eq!(error, EncodeError::TooSmall { field: "packet_size", value: 57, least: 58 });
}

#[test]
fn oversized_values_are_refused_and_leave_the_buffer_unchanged() {
    let too_large = receiver(1 << 32);
    let symbol = Payload { block: 0, symbol: 1 << 24 };
    let packet = data(1, Mark::None);
    let refused = [
        ("id", data(1, Mark::Acker { id: Some(too_large) })),
        ("symbol", DataPacket { data: Data { payload: symbol, ..packet.data }, ..packet }),
        ("layer", DataPacket { layer: Layer(16), ..packet }),
        ("seq", data(1 << 62, Mark::None)),
        ("rate", DataPacket { data: Data { rate: f32::NAN, ..packet.data }, ..packet }),
        ("mean", data(1, Mark::Representative { id: None, mean: -1.0, deviation: 0.0, rtt_max: 0.0 })),
    ];
    let mut out = b"what was there".to_vec();
    for (name, packet) in refused {
        match encode_data(&mut out, SESSION, &packet).expect_err(name) {
            EncodeError::TooLarge { field, .. } | EncodeError::NotANumber { field, .. } => {
                assert_eq!(field, name)
            }
            other => panic!("{name}: {other}"),
        }
        assert_eq!(out, b"what was there", "{name}");
    }
    let from_nobody_known = Message::Request(Request { from: too_large, ..request() });
    assert!(encode(&mut out, SESSION, 0, &from_nobody_known, LIMIT).is_err());
    assert_eq!(out, b"what was there");
}

#[test]
fn lists_of_a_status_share_the_length_limit() {
    let long = Status {
        scheduled: (0..1_000).map(|block| Scheduled { block, symbols: 1 }).collect(),
        confirmed: (1..1_000).map(receiver).collect(),
        lagging: vec![receiver(5)],
        dropped: vec![],
        withdrawn: None,
        withdrawals: vec![],
        ..status()
    };
    for limit in [300, 301, 302, 303, 1_200] {
        let mut out = vec![1, 2, 3];
        let fit =
            encode(&mut out, SESSION, 1, &Message::Status(long.clone()), limit).expect("the fixed part fits");
        assert!(out.len() - 3 <= limit && out.len() - 3 > limit - 6, "{limit}: {}", out.len() - 3);
        assert!(fit.scheduled > 5 && fit.confirmed > 5 && fit.lagging == 1 && fit.dropped == 0, "{fit:?}");
        let (_, read) = parse(&out[3..], &Newest::default()).expect("whole");
        let Message::Status(read) = read else { panic!("{read:?}") };
        assert_eq!(read.upper_seqs, long.upper_seqs, "never cut for the others");
        assert_eq!(read.scheduled, long.scheduled[..fit.scheduled]);
        assert_eq!(read.confirmed, long.confirmed[..fit.confirmed]);
    }
    let mut out = Vec::new();
    let error = encode(&mut out, SESSION, 1, &Message::Status(long), 60).expect_err("no room");
    assert!(matches!(error, EncodeError::TooLong { limit, need } if limit < 60 && need > limit), "{error}");
}

#[test]
fn packet_numbers_are_unwrapped_relative_to_the_newest() {
    let mut packet = data(0x3_0000_0005, Mark::None);
    packet.data.sent_at = Time::from_nanos(5_000_000_000_000_000);
    let mut out = Vec::new();
    encode_data(&mut out, SESSION, &packet).expect("it fits");
    let newest = Newest { seq: Seq(0x2_ffff_fff0), sent_at: packet.data.sent_at - Span::from_secs(60) };
    let (_, read) = parse(&out, &newest).expect("whole");
    assert_eq!(read, Message::Data(packet));
}

#[test]
fn newest_packet_number_and_time_never_decrease() {
    let mut newest = Newest::default();
    newest.learn(&data(9, Mark::None).data);
    newest.learn(&Data { seq: Seq(3), sent_at: Time::ZERO, ..data(0, Mark::None).data });
    assert_eq!(newest, Newest { seq: Seq(9), sent_at: data(0, Mark::None).data.sent_at });
}

#[test]
fn extreme_newest_packet_number_and_time_cause_no_error() {
    for (_, message) in from_source() {
        let newest = Newest { seq: Seq(u64::MAX), sent_at: Time::NEVER };
        assert!(parse(&bytes_of(&message), &newest).is_ok());
    }
}

proptest! {
    #[test]
    fn any_message_round_trips(message in any_message(), session: u32, seq: u32) {
        let mut out = Vec::new();
        encode(&mut out, SessionId(session), seq, &message, 65_535).expect("it fits");
        let (header, read) = parse(&out, &Newest::default()).expect("whole");
        prop_assert_eq!(read, message);
        prop_assert_eq!((header.session, header.seq), (SessionId(session), seq));
    }

    #[test]
    fn any_data_packet_round_trips_quantised(
        (data, symbols) in any_data(),
        layer in 0..16_u8,
        payload in prop::collection::vec(any::<u8>(), 0..200),
        (behind, since) in (-1_000_000..1_000_000_i64, -1_000_000..1_000_000_i64),
        nanos in 0..1_000_u64,
    ) {
        let data = Data { sent_at: data.sent_at + Span::from_nanos(nanos), ..data };
        let payload = if data.payload == Payload::NONE { &[] } else { &payload[..] };
        let packet = DataPacket { data, layer: Layer(layer), symbols, payload };
        let mut out = Vec::new();
        encode_data(&mut out, SESSION, &packet).expect("it fits");
        let micros = (data.sent_at.as_nanos() / 1_000).saturating_add_signed(since);
        let newest = Newest {
            seq: Seq(data.seq.0.saturating_add_signed(behind)),
            sent_at: Time::from_nanos(micros.saturating_mul(1_000)),
        };
        let (_, read) = parse(&out, &newest).expect("whole");
        prop_assert_eq!(read, Message::Data(DataPacket { data: data.quantised(), ..packet }));
    }

    #[test]
    fn quantised_values_are_sent_unchanged((data, _) in any_data(), content in any_content()) {
        prop_assert_eq!(data.quantised().quantised(), data.quantised());
        prop_assert_eq!(content.quantised(), content, "reports travel with all their digits");
    }

    #[test]
    fn rounding_of_marks_is_within_the_stated_error(mean in 1e3..1e12_f32, deviation in 1e3..1e12_f32, rtt_max in 1e-5..1e3_f32) {
        let mut out = Vec::new();
        encode_data(&mut out, SESSION, &data(1, Mark::Representative { id: None, mean, deviation, rtt_max })).expect("it fits");
        let (_, read) = parse(&out, &Newest::default()).expect("whole");
        let Message::Data(DataPacket { data: Data { mark: Mark::Representative { mean: m, deviation: d, rtt_max: r, .. }, .. }, .. }) = read else {
            panic!("{read:?}")
        };
        for (sent, got) in [(mean, m), (deviation, d), (rtt_max, r)] {
            prop_assert!((f64::from(got) / f64::from(sent) - 1.0).abs() <= half::ERROR, "{} became {}", sent, got);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..18_u8, flags in 0..16_u8) {
        if bytes.len() >= 16 {
            bytes[0] = 0xfc;
            bytes[1] = 0x30 | flags & !1;
            bytes[2] = kind;
            correct(&mut bytes);
        }
        if let Ok((header, message)) = parse(&bytes, &Newest::default()) {
            let mut again = Vec::new();
            encode(&mut again, header.session, header.seq, &message, 65_535).expect("what was read can be written");
            let (_, read) = parse(&again, &Newest::default()).expect("whole");
            prop_assert_eq!(read, message);
        }
    }
}
