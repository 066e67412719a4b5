use super::*;
use proptest::prelude::*;

fn block(shape: Shape, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..shape.block_len()).map(|_| byte()).collect()
}

/// Removes the source symbols `lost`, adds `repairs` repair symbols with IDs from `first`, and decodes. Returns the original
/// block and the result.
fn after_losing(
    shape: Shape,
    lost: impl Fn(u32) -> bool,
    first: u32,
    repairs: u32,
) -> (Vec<u8>, Option<Vec<u8>>) {
    let original = block(shape, 1);
    let mut encoder = BlockEncoder::new(shape, original.clone()).expect("the block has its shape");
    let mut made = Vec::new();
    encoder.repair_batch(first, repairs, &mut made).expect("the ids are those of repairs");
    let size = usize::from(shape.symbol_size());
    let source = (0..).zip(original.chunks(size)).filter(|&(esi, _)| !lost(esi));
    let decoded = decode(shape, source.chain((first..).zip(made.chunks(size))));
    (original, decoded)
}

fn shape(symbols: u16, symbol_size: u16) -> Shape {
    Shape::new(symbols, symbol_size).expect("the test's shape is valid")
}

#[test]
fn block_is_complete_from_all_source_symbols() {
    let (original, decoded) = after_losing(shape(10, 16), |_| false, 10, 0);
    assert_eq!(decoded, Some(original));
}

#[test]
fn block_of_one_symbol_is_decoded_from_one_repair_symbol() {
    let (original, decoded) = after_losing(shape(1, 8), |_| true, 1, 1);
    assert_eq!(decoded, Some(original));
}

#[test]
fn block_is_decoded_from_repair_symbols_alone() {
    let (original, decoded) = after_losing(shape(100, 16), |_| true, 5_000, 103);
    assert_eq!(decoded, Some(original));
}

#[test]
fn block_is_decoded_from_repair_symbols_with_the_highest_ids() {
    let (original, decoded) = after_losing(shape(1024, 8), |esi| esi < 3, MAX_ESI - 5, 5);
    assert_eq!(decoded, Some(original));
}

#[test]
fn largest_block_is_decoded_with_the_highest_repair_symbol_ids() {
    let (original, decoded) = after_losing(shape(MAX_SYMBOLS, 8), |esi| esi < 30, MAX_ESI - 32, 32);
    assert_eq!(decoded, Some(original));
}

#[test]
fn too_few_symbols_give_no_block() {
    assert_eq!(after_losing(shape(100, 16), |esi| esi < 5, 100, 4).1, None);
    assert_eq!(after_losing(shape(100, 16), |esi| esi < 50, 100, 49).1, None);
}

#[test]
fn direct_and_general_decoding_give_the_same_block() {
    let shape = shape(300, 64);
    let original = block(shape, 3);
    let mut encoder = BlockEncoder::new(shape, original.clone()).expect("the block has its shape");
    for lost in 1..=20 {
        let mut made = Vec::new();
        encoder.repair_batch(300 + lost, lost + 2, &mut made).expect("the ids are those of repairs");
        let symbols = (lost..300).zip(original.chunks(64).skip(lost as usize));
        let all = symbols.chain((300 + lost..).zip(made.chunks(64)));
        let gathered = raptorq::test_access::both_ways(shape, all);
        assert_eq!(gathered, (Some(original.clone()), Some(original.clone())), "{lost} lost");
    }
}

#[test]
fn repair_symbol_is_equal_if_made_alone_or_in_a_batch() {
    let shape = shape(50, 24);
    let mut encoder = BlockEncoder::new(shape, block(shape, 2)).expect("the block has its shape");
    let (mut batch, mut one) = (Vec::new(), [0; 24]);
    encoder.repair_batch(50, 10, &mut batch).expect("the ids are those of repairs");
    for (esi, expected) in (50..).zip(batch.chunks(24)) {
        encoder.repair(esi, &mut one).expect("the id is that of a repair");
        assert_eq!(one, expected);
    }
}

#[test]
fn invalid_shapes_and_symbols_are_refused() {
    assert_eq!(Shape::new(0, 8), Err(FecError::Symbols(0)));
    assert_eq!(Shape::new(56_404, 8), Err(FecError::Symbols(56_404)));
    assert_eq!(Shape::new(1, 12), Err(FecError::SymbolSize(12)));
    for symbols in [0, 3, 8_193] {
        assert_eq!(Shape::raptor(symbols, 8), Err(FecError::RaptorSymbols(symbols)));
    }
    assert_eq!(Shape::raptor(4, 0), Err(FecError::SymbolSize(0)));
    let shape = shape(4, 8);
    assert_eq!(
        BlockEncoder::new(shape, vec![0; 31]).map(|_| ()),
        Err(FecError::BlockLength { expected: 32, found: 31 })
    );
    let mut encoder = BlockEncoder::new(shape, vec![0; 32]).expect("the block has its shape");
    assert_eq!(
        encoder.repair(3, &mut [0; 8]),
        Err(FecError::NotARepair { esi: 3, symbols: 4, end: MAX_ESI })
    );
    let beyond = FecError::NotARepair { esi: MAX_ESI, symbols: 4, end: MAX_ESI };
    assert_eq!(encoder.repair(MAX_ESI, &mut [0; 8]), Err(beyond));
    assert_eq!(encoder.repair(4, &mut [0; 7]), Err(FecError::Room { expected: 8, found: 7 }));
}

#[test]
fn invalid_and_repeated_symbols_are_ignored() {
    let original = block(shape(4, 8), 9);
    let junk = [(0, &[0u8; 3][..]), (u32::MAX, &[0u8; 8]), (MAX_ESI, &[0u8; 8])];
    let source: Vec<_> = (0..).zip(original.chunks(8)).collect();
    let twice = junk.into_iter().chain(source.iter().copied().take(3)).chain(source.iter().copied());
    assert_eq!(decode(shape(4, 8), twice), Some(original.clone()));
}

/// The numbers come from google/gofountain, commit 4928733: hashes (FNV-1a) of the symbols `K` to `K + 39` and of four later ones.
#[test]
fn raptor_symbols_are_those_of_another_implementation() {
    for (symbols, hash) in [
        (4, 0x3da4_412f_1d1a_0a00),
        (5, 0x41be_9d50_c5db_df37),
        (10, 0x8f6d_3b7c_c0e7_591e),
        (63, 0x128e_4ac2_20dc_4d4b),
        (101, 0xc8b4_ddfc_7156_0c24),
        (256, 0x039b_fb13_9f2b_e4ea),
        (257, 0x2053_ea49_c275_53fc),
        (500, 0x09e7_504b_d017_fd87),
        (1_024, 0x6f1d_a909_7f11_b702),
        (2_000, 0x4c81_4883_ddee_69b0_u64),
    ] {
        let shape = Shape::raptor(symbols, 8).expect("the test's shape is valid");
        let byte = |at: u32| (at.wrapping_mul(2_654_435_761).wrapping_add(12_345) >> 24) as u8;
        let block = (0..u32::from(symbols) * 8).map(byte).collect();
        let (mut encoder, mut made) =
            (BlockEncoder::new(shape, block).expect("the block has its shape"), Vec::new());
        encoder.repair_batch(symbols.into(), 40, &mut made).expect("the ids are those of repairs");
        for esi in [20_000, 40_000, 65_534, 65_535] {
            encoder.repair_batch(esi, 1, &mut made).expect("the id is that of a repair");
        }
        let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        assert_eq!(made.iter().fold(0xcbf2_9ce4_8422_2325, fnv), hash, "{symbols}");
    }
}

#[test]
fn all_symbols_of_a_raptor_block_have_its_symbol_size() {
    // Some symbols of a block of five are zero for any content.
    for symbols in 4..=12 {
        let shape = Shape::raptor(symbols, 3).expect("the test's shape is valid");
        let mut encoder = BlockEncoder::new(shape, block(shape, 1)).expect("the block has its shape");
        for esi in 2_000..2_400 {
            let mut made = Vec::new();
            encoder.repair_batch(esi, 1, &mut made).expect("the id is that of a repair");
            assert_eq!(made.len(), 3, "symbol {esi} of {symbols}");
        }
        let zeros = vec![0; shape.block_len()];
        let mut encoder = BlockEncoder::new(shape, zeros.clone()).expect("the block has its shape");
        let mut made = Vec::new();
        encoder.repair_batch(2_000, 60, &mut made).expect("the ids are those of repairs");
        assert_eq!(decode(shape, (2_000..).zip(made.chunks(3))), Some(zeros), "{symbols}");
    }
}

#[test]
fn raptor_symbols_have_numbers_of_16_bits() {
    let shape = Shape::raptor(4, 3).expect("the test's shape is valid");
    let mut encoder = BlockEncoder::new(shape, vec![7; 12]).expect("the block has its shape");
    assert_eq!(encoder.repair(65_535, &mut [0; 3]), Ok(()));
    let beyond = FecError::NotARepair { esi: 65_536, symbols: 4, end: 65_536 };
    assert_eq!(encoder.repair(65_536, &mut [0; 3]), Err(beyond));
    let junk = [(65_536, &[9; 3][..]), (0, &[7; 3])];
    assert_eq!(decode(shape, junk), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn block_is_decoded_from_any_k_plus_3_symbols(
        k in 1u16..=200, lost in proptest::collection::vec(any::<bool>(), 200), first in 0u32..1_000_000,
    ) {
        let gone = lost[..usize::from(k)].iter().filter(|&&l| l).count() as u32;
        let lost = |esi: u32| lost[esi as usize];
        // Decoding with K + 3 symbols fails about once in ten million blocks.
        let (original, decoded) = after_losing(shape(k, 8), lost, u32::from(k) + first, gone + 3);
        prop_assert_eq!(decoded, Some(original));
    }

    #[test]
    fn raptor_block_is_decoded_from_any_k_plus_40_symbols(
        k in 4u16..=200, size in 1u16..20, lost in proptest::collection::vec(any::<bool>(), 200), first in 0u32..60_000,
    ) {
        let gone = lost[..usize::from(k)].iter().filter(|&&l| l).count() as u32;
        let lost = |esi: u32| lost[esi as usize];
        let shape = Shape::raptor(k, size).expect("the test's shape is valid");
        let (original, decoded) = after_losing(shape, lost, u32::from(k) + first, gone + 40);
        prop_assert_eq!(decoded, Some(original));
    }
}
