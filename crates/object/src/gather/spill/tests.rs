use super::*;
use crate::{Geometry, seal_block};
use faircast_fec::{BlockEncoder, RepairSource};
use std::os::unix::fs::MetadataExt;

const T: usize = 64;
const K: u16 = 12;
const BLOCKS: u32 = 40;

/// A sealed block with its encoder.
fn encoder(block: u32) -> BlockEncoder {
    let geometry =
        Geometry { stream_len: None, manifest_len: 1, symbol_size: T as u16, symbols_per_block: K };
    let mut bytes = vec![block as u8; geometry.capacity() as usize];
    let (symbols, _) = seal_block(&mut bytes, T as u16);
    BlockEncoder::new(Shape::new(symbols, T as u16).expect("a shape"), bytes).expect("a sealed block")
}

fn symbol(encoder: &mut BlockEncoder, id: u32) -> Vec<u8> {
    if let Some(symbol) = encoder.source(id) {
        return symbol.to_vec();
    }
    let mut out = vec![0; T];
    encoder.repair(id, &mut out).expect("a repair symbol");
    out
}

fn room() -> Option<Room> {
    let file = tempfile::tempfile().expect("a temporary file");
    Some(Room { disk: Disk::default(), file, path: "a temporary file".into() })
}

/// Send the symbols from `first` on of all blocks in turns, until all are complete; how many symbols that took, and the
/// most bytes that were in memory.
fn pour(gathering: &mut Gathering, first: u32) -> (u32, usize) {
    let mut encoders: Vec<BlockEncoder> = (0..BLOCKS).map(encoder).collect();
    let (mut missing, mut sent, mut most) = (BLOCKS, 0, 0);
    for id in first.. {
        for block in 0..BLOCKS {
            let payload = symbol(&mut encoders[block as usize], id);
            sent += 1;
            if gathering.add(block, K, id, &payload).expect("there is room") == Added::Complete {
                let (done, bytes) = gathering.take().expect("complete");
                assert_eq!((done, &bytes[..]), (block, encoders[block as usize].block()));
                missing -= 1;
            }
            most = most.max(gathering.held);
        }
        if missing == 0 {
            return (sent, most);
        }
        assert!(id < first + 3 * u32::from(K), "{missing} blocks do not come together");
    }
    unreachable!("symbols end only with the test");
}

#[test]
fn source_symbols_in_turns_become_blocks_without_decoding() {
    let mut gathering = Gathering::new(T, K, usize::MAX, None);
    assert_eq!(pour(&mut gathering, 0).0, BLOCKS * u32::from(K));
    assert_eq!((gathering.decoded, gathering.spilled, gathering.held), (0, 0, 0));
}

#[test]
fn with_little_memory_the_same_blocks_come_from_the_file() {
    for first in [0, 5, u32::from(K)] {
        let limit = 20 * STEP * T;
        let mut gathering = Gathering::new(T, K, limit, room());
        let (sent, most) = pour(&mut gathering, first);
        assert!(sent <= BLOCKS * u32::from(K + 3), "{sent}");
        assert!(most <= limit + STEP * T, "{most} bytes in memory where {limit} are allowed");
        assert!(gathering.spilled > 0);
        assert_eq!(gathering.held, 0);
    }
}

#[test]
fn blocks_that_are_placed_give_their_space_back() {
    const PAGE: usize = 4096;
    let mut gathering = Gathering::new(PAGE, K, 0, room());
    let on_disk = |gathering: &Gathering| {
        let room = gathering.room.as_ref().expect("it was given");
        room.file.metadata().expect("an open file").blocks() * 512
    };
    for block in 0..3 {
        gathering.keep(block, vec![1; usize::from(K) * PAGE]).expect("room");
    }
    let before = on_disk(&gathering);
    gathering.take_kept(1).expect("it can be read").expect("it is kept");
    assert_eq!(before - on_disk(&gathering), u64::from(K) * PAGE as u64);
}

#[test]
fn a_symbol_that_came_before_is_useless_wherever_the_first_one_lies() {
    let mut gathering = Gathering::new(T, K, 0, room());
    let payload = symbol(&mut encoder(7), 3);
    assert_eq!(gathering.add(7, K, 3, &payload).expect("room"), Added::Kept);
    assert_eq!(gathering.add(7, K, 3, &payload).expect("room"), Added::Useless);
    assert_eq!((gathering.duplicates, gathering.needed(7)), (1, Some(K - 1)));
    assert_eq!(gathering.add(7, K - 1, 4, &payload).expect("room"), Added::Useless, "another shape");
    assert_eq!(gathering.add(7, K, 4, &payload[1..]).expect("room"), Added::Useless, "another size");
}

#[test]
fn blocks_that_cannot_be_placed_wait_in_memory_or_in_their_slots() {
    for (limit, spilled) in [(usize::MAX, 0), (0, 2 * u64::from(K) * T as u64)] {
        let mut gathering = Gathering::new(T, K, limit, room());
        for block in [4, 2] {
            gathering.keep(block, encoder(block).block().to_vec()).expect("room");
        }
        assert_eq!((gathering.first_kept(), gathering.spilled), (Some(2), spilled));
        let symbol = symbol(&mut encoder(4), 0);
        assert_eq!(gathering.add(4, K, 0, &symbol).expect("room"), Added::Useless, "it is all there");
        for block in [2, 4] {
            let bytes = gathering.take_kept(block).expect("it can be read").expect("it is kept");
            assert_eq!(bytes, encoder(block).block());
        }
        assert_eq!((gathering.first_kept(), gathering.held), (None, 0));
    }
}

#[test]
fn a_full_disk_is_an_error_that_loses_nothing() {
    // The device that is always full.
    let file = File::options().read(true).write(true).open("/dev/full").expect("Linux has it");
    let mut gathering =
        Gathering::new(T, K, 0, Some(Room { disk: Disk::default(), file, path: "/dev/full".into() }));
    let payload = symbol(&mut encoder(1), 0);
    let error = gathering.add(1, K, 0, &payload).expect_err("there is no room");
    assert!(matches!(error, ObjectError::DiskFull { .. }), "{error}");
    assert_eq!(gathering.needed(1), Some(K - 1), "the symbol is still there");
}

#[test]
fn what_is_too_old_gives_its_memory_back() {
    let mut gathering = Gathering::new(T, K, usize::MAX, None);
    for block in [3, 5, 9] {
        gathering.add(block, K, 0, &symbol(&mut encoder(block), 0)).expect("in memory");
    }
    gathering.drop_before(9);
    assert_eq!([3, 5, 9].map(|block| gathering.needed(block).is_some()), [false, false, true]);
    assert_eq!(gathering.held, STEP * T);
}
