use super::*;
use faircast_core::packet::{Layer, Signal};
use faircast_wire::Spacing;
use proptest::prelude::*;

/// The first packet of a table: No-Code, 16-bit identifiers, EXT_FDT, EXT_FTI, block 0, symbol 0.
const TABLE: &[u8] = &[
    0x10, 0x10, 8, 0, // version 1, C = 0; H; eight words; FEC Encoding ID 0
    0, 0, 0, 0, // no congestion control
    0x12, 0x34, 0, 0, // session 0x1234, object 0
    192, 0x20, 0, 7, // FLUTE 2, instance 7
    64, 4, 0, 0, 0, 0, 0x01, 0x02, 0, 0, 0x05, 0x78, 0, 0, 0x04,
    0x00, // 258 bytes, symbols of 1400, blocks of 1024
    0, 0, 0, 0, // block 0, symbol 0
    b'<', b'?',
];

fn table() -> Packet<'static> {
    let params = Params::NoCode { max_block: 1_024 };
    Packet {
        cci: &[0; 4],
        tsi: Some(0x1234),
        toi: Some(FDT_TOI),
        fec: Fec::NoCode,
        psi: 0,
        closing: Closing::Nothing,
        extensions: Extensions {
            fdt: Some(FdtHeader { version: FLUTE_VERSION, instance: 7 }),
            oti: Some(Oti { transfer_length: 258, symbol_size: 1_400, params }),
            ..Extensions::default()
        },
        payload_id: Some(PayloadId::default()),
        symbols: b"<?",
    }
}

fn bytes_of(packet: &Packet<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, packet).expect("it can be written");
    out
}

#[test]
fn table_has_the_layout_of_the_rfc() {
    assert_eq!(bytes_of(&table()), TABLE);
    assert_eq!(parse(TABLE), Ok(table()));
}

/// flute-alc 1.11.7 writes the same bytes and the same attribute.
#[test]
fn parameters_of_raptor_have_the_layout_of_the_rfc() {
    let params = Params::Raptor { blocks: 0x0203, sub_blocks: 1, alignment: 4 };
    let oti = Oti { transfer_length: 0x0102_0304_0506, symbol_size: 1_024, params };
    let extensions = Extensions { oti: Some(oti), ..Extensions::default() };
    let id = PayloadId { block: 0x0102, symbol: 0xfffe };
    let bytes = bytes_of(&Packet { fec: Fec::Raptor, extensions, payload_id: Some(id), ..table() });
    let extension = [64, 4, 1, 2, 3, 4, 5, 6, 0, 0, 4, 0, 2, 3, 1, 4];
    assert_eq!(bytes[3], 1);
    assert_eq!(bytes[12..], [&extension[..], &[1, 2, 0xff, 0xfe], b"<?"].concat());
    let file = File { transfer_length: Some(oti.transfer_length), oti: Some(oti), ..File::default() };
    let text = Fdt { files: vec![file], ..Fdt::default() }.encode();
    assert!(text.contains("FEC-OTI-Scheme-Specific-Info=\"AgMBBA==\""), "{text}");
}

#[test]
fn truncated_packet_is_refused_or_has_a_shorter_symbol() {
    let bytes = bytes_of(&table());
    let header = 4 * usize::from(bytes[2]);
    for have in 0..bytes.len() {
        match parse(&bytes[..have]) {
            Err(ParseError::Truncated { need, .. }) => assert!(need > have),
            Err(ParseError::HeaderLength { have: there, .. }) => {
                assert_eq!((have, have < header), (there, true))
            }
            // A header without symbols announces the end of a session.
            Ok(packet) if have == header => assert_eq!(packet.payload_id, None),
            Ok(packet) => assert_eq!(packet.symbols.len(), have - header - PayloadId::LEN),
            Err(other) => panic!("{have}: {other}"),
        }
    }
}

#[test]
fn identifiers_of_all_sizes_are_parsed() {
    for (s, o, h) in (0..2u8).flat_map(|s| (0..4).flat_map(move |o| (0..2).map(move |h| (s, o, h)))) {
        for c in 0..4u8 {
            let (cci, tsi, toi) = (4 * (c + 1), 4 * s + 2 * h, 4 * o + 2 * h);
            let words = (4 + cci + tsi + toi) / 4;
            let mut bytes = vec![0x10 | c << 2, s << 7 | o << 5 | h << 4, words, 6];
            bytes.extend(std::iter::repeat_n(3, cci.into()));
            bytes.extend(std::iter::repeat_n(1, tsi.into()));
            bytes.extend(std::iter::repeat_n(2, toi.into()));
            bytes.extend([9, 0, 1, 0, 42]);
            let packet = parse(&bytes).expect("whole");
            assert_eq!(packet.cci, vec![3; cci.into()]);
            let ones = |len: u8, digit: u128| (0..len).fold(0, |sum, _| sum << 8 | digit);
            assert_eq!(packet.tsi, (tsi > 0).then_some(ones(tsi, 1) as u64));
            assert_eq!(packet.toi, (toi > 0).then_some(ones(toi, 2)));
            assert_eq!(packet.payload_id, Some(PayloadId { block: 9, symbol: 256 }));
            assert_eq!(packet.symbols, [42]);
        }
    }
}

#[test]
fn unknown_extensions_are_skipped() {
    let mut bytes = vec![0x10, 0x10, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2];
    let none = [0, 1, 0, 0]; // EXT_NOP
    let authentication = [1, 2, 9, 9, 9, 9, 9, 9];
    let (unknown, fixed) = ([99, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [200, 1, 2, 3]);
    let time = [2, 4, 0xc0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 7, 7, 7, 7]; // with a word for others' use
    for extension in [&none[..], &authentication, &unknown, &fixed, &time, &[193, 3, 0, 0]] {
        bytes.extend(extension);
    }
    bytes[2] = (bytes.len() / 4) as u8;
    let extensions = parse(&bytes).expect("whole").extensions;
    let time = Times { current: Some((1, Some(1 << 31))), ..Times::default() };
    assert_eq!(extensions, Extensions { encoding: Some(3), time: Some(time), ..Extensions::default() });
}

#[test]
fn extension_with_an_invalid_length_is_an_error() {
    for (kind, words) in [(99, 2), (99, 0), (64, 1), (2, 0)] {
        let bytes = [0x10, 0x10, 4, 0, 0, 0, 0, 0, 0, 1, 0, 2, kind, words, 0x80, 0, 0, 0, 0, 0];
        assert_eq!(parse(&bytes), Err(ParseError::Extension { kind, words, left: 4 }));
    }
}

#[test]
fn other_versions_and_codes_are_refused() {
    assert_eq!(parse(&[0x20, 0x10, 3, 0]), Err(ParseError::Version(2)));
    assert_eq!(parse(&[0x10, 0x10, 3, 77]), Err(ParseError::UnknownFec(77)));
}

#[test]
fn oversized_values_are_not_encoded() {
    let mut out = vec![1];
    let refused = |packet: Packet<'_>, out: &mut Vec<u8>| encode(out, &packet).expect_err("it has no room");
    assert_eq!(refused(Packet { cci: &[0; 5], ..table() }, &mut out), EncodeError::Cci(5));
    let tsi = Some(1 << 48);
    let unfit = EncodeError::Identifiers { tsi, toi: Some(0) };
    assert_eq!(refused(Packet { tsi, ..table() }, &mut out), unfit);
    let payload_id = Some(PayloadId { block: 0, symbol: 1 << 16 });
    let unfit = EncodeError::PayloadId { block: 0, symbol: 1 << 16 };
    assert_eq!(refused(Packet { payload_id, ..table() }, &mut out), unfit);
    assert_eq!(refused(Packet { fec: Fec::RaptorQ, ..table() }, &mut out), EncodeError::Extension(64));
    assert_eq!(refused(Packet { payload_id: None, ..table() }, &mut out), EncodeError::NoPayloadId(2));
    assert_eq!(out, [1]);
}

#[test]
fn congestion_information_of_rlc_has_the_documented_layout() {
    let rlc = Rlc { layer: Layer(3), seq: 0x1234, signal: Signal::SyncPoint, slot: 0x00ab_cdef };
    let bytes = [0xab, 3, 0x12, 0x34, 0x18, 0xab, 0xcd, 0xef];
    assert_eq!(rlc.to_bytes(), bytes);
    assert_eq!(Rlc::from_bytes(&bytes), Some(rlc));
    assert_eq!(Rlc::from_bytes(&[0; 8]), None);
    assert_eq!(Rlc::from_bytes(&bytes[..4]), None);
}

#[test]
fn block_lengths_differ_by_at_most_one_symbol() {
    let oti = Oti { transfer_length: 10_001, symbol_size: 100, params: Params::NoCode { max_block: 30 } };
    let blocks = oti.blocks().expect("it can be cut");
    // 101 symbols in four blocks: one block of 26, three blocks of 25.
    assert_eq!((blocks.count(), blocks.symbols()), (4, 101));
    assert_eq!([0, 1, 3, 4].map(|block| blocks.len(block)), [26, 25, 25, 0]);
    assert_eq!([0, 1, 2, 3].map(|block| blocks.first(block)), [0, 26, 51, 76]);
    let params = Params::RaptorQ { blocks: 4, sub_blocks: 1, alignment: 4 };
    assert_eq!(Oti { params, ..oti }.blocks(), Some(blocks));
    let raptor = Params::Raptor { blocks: 4, sub_blocks: 1, alignment: 4 };
    assert_eq!(Oti { params: raptor, ..oti }.blocks(), Some(blocks));
    assert_eq!(Oti { transfer_length: 0, ..oti }.blocks().map(|blocks| blocks.is_empty()), Some(true));
    assert_eq!(Oti { symbol_size: 0, ..oti }.blocks(), None);
    assert_eq!(Oti { transfer_length: 300, params, ..oti }.blocks(), None, "more blocks than symbols");
}

const OTHERS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<fdt:FDT-Instance xmlns:fdt="urn:ietf:params:xml:ns:fdt" xmlns:x="urn:x" Expires="3900000000" x:more="1"
    Complete="true" FEC-OTI-FEC-Encoding-ID="0" FEC-OTI-Maximum-Source-Block-Length="64"
    FEC-OTI-Encoding-Symbol-Length="1400">
  <!-- what others add is skipped -->
  <x:Group>news</x:Group>
  <fdt:File Content-Location="file:///a%20b.txt" TOI="1" Content-Length="11" Content-MD5="XUFAKrxLKna5cZ2REBfFkg=="/>
  <fdt:File Content-Location="c&amp;d" TOI="2" Transfer-Length="20" Content-Encoding="gzip"
      FEC-OTI-Encoding-Symbol-Length="8"><x:y/></fdt:File>
</fdt:FDT-Instance>"#;

#[test]
fn table_of_another_implementation_is_parsed() {
    let fdt = Fdt::parse(OTHERS.as_bytes()).expect("it is a table");
    assert_eq!((fdt.expires, fdt.complete, fdt.files.len()), (3_900_000_000, true, 2));
    let [first, second] = fdt.files.as_slice() else { panic!("two files") };
    assert_eq!(
        (first.location.as_str(), first.toi, first.transfer_length()),
        ("file:///a%20b.txt", 1, Some(11))
    );
    let params = Params::NoCode { max_block: 64 };
    assert_eq!(first.oti, Some(Oti { transfer_length: 11, symbol_size: 1_400, params }));
    assert_eq!(first.md5.map(|md5| md5[0]), Some(0x5d));
    assert_eq!((second.location.as_str(), second.content_encoding.as_deref()), ("c&d", Some("gzip")));
    assert_eq!(second.oti, Some(Oti { transfer_length: 20, symbol_size: 8, params }));
}

#[test]
fn invalid_file_delivery_table_is_refused_with_a_reason() {
    let refused = |text: &str| Fdt::parse(text.as_bytes()).expect_err("it is no table");
    assert_eq!(refused("<html/>"), FdtError::NoInstance);
    let toi = FdtError::Missing { file: 0, name: "TOI" };
    assert_eq!(refused("<FDT-Instance Expires='1'><File Content-Location='a'/>"), toi);
    let value = FdtError::Value { file: 0, name: "TOI", value: "-1".into() };
    assert_eq!(refused("<FDT-Instance><File TOI='-1'/>"), value);
    assert!(matches!(refused("<FDT-Instance <"), FdtError::Xml(_)));
    assert_eq!(Fdt::parse(&[0xff]), Err(FdtError::NotUtf8(0)));
}

#[test]
fn document_with_xml_entities_is_refused() {
    let bomb = "<!DOCTYPE x [<!ENTITY a 'aaaaaaaa'>]><FDT-Instance><File TOI='1' Content-Location='&a;'/></FDT-Instance>";
    assert!(matches!(Fdt::parse(bomb.as_bytes()), Err(FdtError::Xml(_))));
}

fn oti() -> impl Strategy<Value = Oti> {
    let no_code = any::<u32>().prop_map(|max_block| Params::NoCode { max_block });
    let reed_solomon =
        any::<(u8, u8)>().prop_map(|(max_block, max_symbols)| Params::ReedSolomon { max_block, max_symbols });
    let raptor = any::<(u16, u8, u8)>().prop_map(|(blocks, sub_blocks, alignment)| Params::Raptor {
        blocks,
        sub_blocks,
        alignment,
    });
    let raptorq = any::<(u8, u16, u8)>().prop_map(|(blocks, sub_blocks, alignment)| Params::RaptorQ {
        blocks,
        sub_blocks,
        alignment,
    });
    (0..1u64 << 40, any::<u16>(), prop_oneof![no_code, raptor, reed_solomon, raptorq])
        .prop_map(|(transfer_length, symbol_size, params)| Oti { transfer_length, symbol_size, params })
}

prop_compose! {
    fn extensions(fec: Fec)(
        fdt in proptest::option::of((0..16u8, 0..1u32 << 20)),
        encoding in any::<Option<u8>>(),
        oti in proptest::option::of(oti()),
        time in any::<Option<(Option<(u32, Option<u32>)>, Option<u32>, Option<u32>)>>(),
    ) -> Extensions {
        Extensions {
            fdt: fdt.map(|(version, instance)| FdtHeader { version, instance }),
            encoding,
            oti: oti.filter(|oti| oti.fec() == fec),
            time: time.map(|(current, residual, changed)| Times { current, residual, changed }),
        }
    }
}

fn fec() -> impl Strategy<Value = Fec> {
    proptest::sample::select(&Fec::ALL)
}

proptest! {
    #[test]
    fn encoded_packets_round_trip(
        (fec, extensions) in fec().prop_flat_map(|fec| (Just(fec), extensions(fec))),
        c in 0..4usize,
        cci in any::<[u8; 16]>(),
        (tsi, tsi_bits) in (any::<u64>(), 16..=48u32),
        (toi, toi_bits) in (any::<u128>(), 16..=112u32),
        psi in 0..4u8,
        closing in proptest::sample::select(&[Closing::Nothing, Closing::Object, Closing::Session, Closing::Both]),
        (block, symbol) in (0..256u32, 0..256u32),
        symbols in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let (tsi, toi) = (Some(tsi & ((1 << tsi_bits) - 1)), Some(toi & ((1 << toi_bits) - 1)));
        let payload_id = Some(PayloadId { block, symbol });
        let cci = &cci[..4 * (c + 1)];
        let packet = Packet { cci, tsi, toi, fec, psi, closing, extensions, payload_id, symbols: &symbols };
        let bytes = bytes_of(&packet);
        prop_assert_eq!(parse(&bytes), Ok(packet));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        let _ = Fdt::parse(&bytes);
    }

    #[test]
    fn written_table_reads_back_unchanged(
        expires in any::<u64>(),
        complete in any::<bool>(),
        layering in proptest::option::of(("[a-z,=0-9&<\"']{1,20}", any::<u16>(), any::<bool>())),
        files in proptest::collection::vec(
            ("[a-zA-Z0-9%/.&<>\"' é\t\n\r-]{1,40}", any::<u32>(), any::<Option<[u8; 16]>>(), proptest::option::of(oti())),
            0..5,
        ),
    ) {
        let files = files.into_iter().map(|(location, toi, md5, oti)| File {
            location,
            toi: toi.into(),
            content_length: oti.map(|oti| oti.transfer_length),
            transfer_length: oti.map(|oti| oti.transfer_length),
            content_type: Some("text/plain".into()),
            content_encoding: None,
            md5,
            oti,
        });
        let layering = layering.map(|(scheme, packet_size, port)| {
            let spacing = if port { Spacing::Port } else { Spacing::Address };
            Layering { scheme, packet_size, spacing }
        });
        let fdt = Fdt { expires, complete, layering, files: files.collect() };
        prop_assert_eq!(Fdt::parse(fdt.encode().as_bytes()), Ok(fdt));
    }

    #[test]
    fn every_symbol_is_in_exactly_one_block(oti in oti()) {
        let Some(blocks) = oti.blocks() else { return Ok(()) };
        let near = (0..blocks.count().min(300)).chain(blocks.count().saturating_sub(3)..blocks.count());
        for block in near {
            prop_assert_eq!(blocks.first(block) + u64::from(blocks.len(block)), blocks.first(block + 1));
        }
        prop_assert_eq!(blocks.first(blocks.count()), blocks.symbols());
    }
}
