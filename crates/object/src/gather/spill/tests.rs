use super::*;
use crate::{Geometry, seal_block};
use faircast_fec::{BlockEncoder, RepairSource};
use std::os::unix::fs::MetadataExt;

const T: usize = 64;
const K: u16 = 12;
const BLOCKS: u32 = 40;

/// Returns the encoder of a sealed block.
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

/// The record of symbols and its file. Planned operations are performed immediately.
struct Bench {
    gathering: Gathering,
    slots: Option<Slots>,
}

impl Bench {
    fn new(symbol_size: usize, limit: usize) -> Bench {
        Bench { gathering: Gathering::new(symbol_size, K, limit), slots: None }
    }

    fn with_room(self) -> Bench {
        self.with(tempfile::tempfile().expect("a temporary file"))
    }

    fn with(mut self, file: File) -> Bench {
        let room = SpillFile { disk: Disk::default(), file, path: "a temporary file".into() };
        self.slots = Some(self.gathering.give_room(room));
        self
    }

    fn perform(&mut self) -> Result<(), ObjectError> {
        loop {
            let operations = self.gathering.take_operations();
            if operations.is_empty() {
                return Ok(());
            }
            for operation in operations {
                let slots = self.slots.as_mut().expect("without a file nothing is planned");
                self.gathering.settle(slots.perform(operation)?);
            }
        }
    }

    fn add(&mut self, block: u32, symbols: u16, symbol: u32, payload: &[u8]) -> Added {
        let added = self.gathering.add(block, symbols, symbol, payload);
        self.perform().expect("there is room");
        added
    }

    /// Returns the number and the bytes of the first block that can be decoded.
    fn complete(&mut self) -> Option<(u32, Vec<u8>)> {
        self.gathering.begin_next();
        self.perform().expect("it can be read");
        let (block, symbols) = self.gathering.next_ready()?;
        let bytes = symbols.decode();
        match &bytes {
            Some(_) => self.gathering.on_decoded(block, &symbols),
            None => self.gathering.put_back(block, symbols),
        }
        self.perform().expect("there is room");
        Some((block, bytes?))
    }

    fn keep(&mut self, block: u32, bytes: Vec<u8>) {
        self.gathering.keep(block, bytes);
        self.perform().expect("there is room");
    }

    fn take_stored(&mut self, block: u32) -> Vec<u8> {
        self.gathering.recall(block);
        self.perform().expect("it can be read");
        let (taken, bytes) = self.gathering.next_recalled().expect("it is kept");
        assert_eq!(taken, block);
        bytes
    }
}

/// Sends the symbols of all blocks in turns, starting with symbol ID `first`, until all blocks are complete. Returns the number
/// of sent symbols, and the maximum number of bytes held in memory.
fn pour(bench: &mut Bench, first: u32) -> (u32, usize) {
    let mut encoders: Vec<BlockEncoder> = (0..BLOCKS).map(encoder).collect();
    let (mut missing, mut sent, mut most) = (BLOCKS, 0, 0);
    for id in first.. {
        for block in 0..BLOCKS {
            let payload = symbol(&mut encoders[block as usize], id);
            sent += 1;
            bench.add(block, K, id, &payload);
            if let Some((done, bytes)) = bench.complete() {
                assert_eq!((done, &bytes[..]), (block, encoders[block as usize].block()));
                missing -= 1;
            }
            most = most.max(bench.gathering.held);
        }
        if missing == 0 {
            return (sent, most);
        }
        assert!(id < first + 3 * u32::from(K), "{missing} blocks do not come together");
    }
    unreachable!("symbols end only with the test");
}

#[test]
fn interleaved_source_symbols_yield_blocks_without_decoding() {
    let mut bench = Bench::new(T, usize::MAX);
    assert_eq!(pour(&mut bench, 0).0, BLOCKS * u32::from(K));
    let gathering = &bench.gathering;
    assert_eq!((gathering.decoded, gathering.spilled, gathering.held), (0, 0, 0));
}

#[test]
fn small_memory_limit_yields_the_same_blocks_from_the_file() {
    for first in [0, 5, u32::from(K)] {
        let limit = 20 * STEP * T;
        let mut bench = Bench::new(T, limit).with_room();
        let (sent, most) = pour(&mut bench, first);
        assert!(sent <= BLOCKS * u32::from(K + 3), "{sent}");
        assert!(most <= limit + STEP * T, "{most} bytes in memory where {limit} are allowed");
        assert!(bench.gathering.spilled > 0);
        assert_eq!((bench.gathering.held, bench.gathering.writing), (0, 0));
    }
}

#[test]
fn excess_symbols_are_moved_from_memory_to_the_file() {
    let mut bench = Bench::new(T, 0);
    let payload = symbol(&mut encoder(7), 3);
    assert_eq!(bench.add(7, K, 3, &payload), Added::Kept);
    assert_eq!(bench.gathering.excess(), (STEP * T) as u64);
    bench = bench.with_room();
    assert_eq!(bench.gathering.excess(), (STEP * T) as u64, "until it is written it is in memory");
    bench.perform().expect("there is room");
    assert_eq!((bench.gathering.excess(), bench.gathering.held), (0, 0));
}

#[test]
fn placed_blocks_release_their_space_in_the_file() {
    const PAGE: usize = 4096;
    let mut bench = Bench::new(PAGE, 0).with_room();
    let on_disk = |bench: &Bench| {
        let slots = bench.slots.as_ref().expect("there is a file");
        slots.room.file.metadata().expect("an open file").blocks() * 512
    };
    for block in 0..3 {
        bench.keep(block, vec![1; usize::from(K) * PAGE]);
    }
    let before = on_disk(&bench);
    bench.take_stored(1);
    assert_eq!(before - on_disk(&bench), u64::from(K) * PAGE as u64);
}

#[test]
fn duplicate_and_mismatched_symbols_are_ignored() {
    let mut bench = Bench::new(T, 0).with_room();
    let payload = symbol(&mut encoder(7), 3);
    assert_eq!(bench.add(7, K, 3, &payload), Added::Kept);
    assert_eq!(bench.add(7, K, 3, &payload), Added::Useless);
    assert_eq!((bench.gathering.duplicates, bench.gathering.needed(7)), (1, Some(K - 1)));
    assert_eq!(bench.add(7, K - 1, 4, &payload), Added::Useless, "another shape");
    assert_eq!(bench.add(7, K, 4, &payload[1..]), Added::Useless, "another size");
}

#[test]
fn unplaced_blocks_wait_in_memory_or_in_file_slots() {
    for (limit, spilled) in [(usize::MAX, 0), (0, 2 * u64::from(K) * T as u64)] {
        let mut bench = Bench::new(T, limit).with_room();
        for block in [4, 2] {
            bench.keep(block, encoder(block).block().to_vec());
        }
        assert_eq!((bench.gathering.first_stored(), bench.gathering.spilled), (Some(2), spilled));
        let symbol = symbol(&mut encoder(4), 0);
        assert_eq!(bench.add(4, K, 0, &symbol), Added::Useless, "it is all there");
        for block in [2, 4] {
            assert_eq!(bench.take_stored(block), encoder(block).block());
        }
        assert_eq!((bench.gathering.first_stored(), bench.gathering.held), (None, 0));
    }
}

#[test]
fn number_of_recalled_blocks_that_are_not_taken_is_bounded() {
    let mut gathering = Gathering::new(T, K, usize::MAX);
    (0..10).for_each(|block| gathering.keep(block, encoder(block).block().to_vec()));
    let recalled = std::iter::from_fn(|| gathering.first_stored().inspect(|block| gathering.recall(*block)));
    assert_eq!(recalled.count(), RECALLED);
    gathering.next_recalled().expect("it was in memory");
    assert_eq!(gathering.first_stored(), Some(RECALLED as u32));
}

#[test]
fn write_of_symbols_to_a_full_disk_is_an_error() {
    // `/dev/full` is a device that is always full.
    let file = File::options().read(true).write(true).open("/dev/full").expect("Linux has it");
    let mut bench = Bench::new(T, 0).with(file);
    bench.gathering.add(1, K, 0, &symbol(&mut encoder(1), 0));
    let error = bench.perform().expect_err("there is no room");
    assert!(matches!(error, ObjectError::DiskFull { .. }), "{error}");
}

#[test]
fn blocks_before_the_oldest_needed_block_release_their_memory() {
    let mut bench = Bench::new(T, usize::MAX);
    for block in [3, 5, 9] {
        bench.add(block, K, 0, &symbol(&mut encoder(block), 0));
    }
    bench.gathering.drop_before(9);
    assert_eq!([3, 5, 9].map(|block| bench.gathering.needed(block).is_some()), [false, false, true]);
    assert_eq!(bench.gathering.held, STEP * T);
}

#[test]
fn complete_blocks_wait_within_the_memory_to_be_decoded() {
    let limit = 20 * STEP * T;
    let mut bench = Bench::new(T, limit).with_room();
    let mut encoders: Vec<BlockEncoder> = (0..BLOCKS).map(encoder).collect();
    let mut most = 0;
    for id in 1..=u32::from(K) {
        for block in 0..BLOCKS {
            let payload = symbol(&mut encoders[block as usize], id);
            bench.add(block, K, id, &payload);
            most = most.max(bench.gathering.held);
        }
    }
    assert!(most <= limit + STEP * T, "{most} bytes in memory where {limit} are allowed");
    assert!(bench.gathering.has_full() && bench.gathering.next_ready().is_none(), "no decoding has begun");
    for id in 0..=SPARE as u32 {
        let payload = symbol(&mut encoders[3], 20 + id);
        let added = if id < SPARE as u32 { Added::Kept } else { Added::Useless };
        assert_eq!(bench.add(3, K, 20 + id, &payload), added, "a complete block takes few more");
    }
    bench.gathering.drop_before(2);
    for block in 2..BLOCKS {
        assert_eq!(bench.complete(), Some((block, encoders[block as usize].block().to_vec())));
    }
    assert!(!bench.gathering.has_full());
    assert_eq!((bench.gathering.held, bench.gathering.being_read()), (0, 0));
}

/// A block that needs one more symbol than it has takes the symbols that arrive while it is decoded.
#[test]
fn symbols_arriving_during_a_failed_decoding_are_used() {
    for limit in [usize::MAX, 0] {
        let mut bench = Bench::new(T, limit).with_room();
        let mut encoder = encoder(7);
        let added = (1..=u32::from(K)).map(|id| bench.add(7, K, id, &symbol(&mut encoder, id))).last();
        assert_eq!(added, Some(Added::Complete));
        assert!(bench.gathering.begin_next());
        bench.perform().expect("it can be read");
        let (_, symbols) = bench.gathering.next_ready().expect("it has enough symbols");
        for (id, added) in [(20, Added::Kept), (3, Added::Kept), (21, Added::Kept), (22, Added::Useless)] {
            assert_eq!(bench.add(7, K, id, &symbol(&mut encoder, id)), added);
        }
        bench.gathering.put_back(7, symbols);
        bench.perform().expect("there is room");
        assert!(bench.gathering.has_full() && !bench.gathering.is_whole(7), "it has two more symbols");
        assert_eq!(bench.complete(), Some((7, encoder.block().to_vec())));
        assert_eq!(bench.gathering.held, 0);
    }
}
