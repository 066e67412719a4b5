//! Tests of the block sink.

use super::*;
use crate::config::Durability;
use crate::error::StorageError;
use crate::object::{ObjectStream, Store, seal_block, verify_block};
use crate::worker::Job;
use std::path::Path;
use std::sync::Mutex;

/// Returns a sink with all blocks of a file, and its parameters.
fn with_all(dir: &Path) -> (BlockSink, TransferId, Geometry, Vec<Vec<u8>>) {
    std::fs::write(dir.join("file"), [7; 3_000]).expect("room");
    let (mut sink, transfer, geometry, blocks) = opened(dir, &["file"]);
    fill(&mut sink, &blocks);
    (sink, transfer, geometry, blocks)
}

/// Returns a sink for these files, and their blocks.
fn opened(dir: &Path, files: &[&str]) -> (BlockSink, TransferId, Geometry, Vec<Vec<u8>>) {
    opened_by(dir, files, (1 << 20, &Worker::at_once()))
}

fn opened_by(
    dir: &Path,
    files: &[&str],
    by: (usize, &Worker),
) -> (BlockSink, TransferId, Geometry, Vec<Vec<u8>>) {
    let files: Vec<_> = files.iter().map(|name| dir.join(name)).collect();
    let mut object = ObjectStream::open(&files, 64, 8).expect("readable");
    let (transfer, geometry) = (object.transfer(), object.geometry());
    let out = Destination::Directory(dir.join("out"));
    let blocks = (0..geometry.blocks().expect("it has a length")).map(|block| {
        let mut bytes = Vec::new();
        object.read_block(block, &mut bytes).expect("readable");
        seal_block(&mut bytes, 64);
        bytes
    });
    let blocks: Vec<_> = blocks.collect();
    let sink =
        BlockSink::open(&out, transfer, geometry, None, Admitting::default(), by, (&Disk::default(), dir))
            .expect("opened");
    (sink, transfer, geometry, blocks)
}

/// A block of a live stream.
fn sealed() -> Vec<u8> {
    let mut bytes = vec![1; 28];
    seal_block(&mut bytes, 16);
    bytes
}

fn fill(sink: &mut BlockSink, blocks: &[Vec<u8>]) {
    (0..).zip(blocks).for_each(|(index, bytes)| put(sink, index, bytes));
}

fn put(sink: &mut BlockSink, index: u32, bytes: &[u8]) {
    let (_, hash) = verify_block(bytes).expect("sealed");
    assert_eq!(sink.put(index, bytes.to_vec(), hash).expect("room"), StoreResult::Kept);
}

#[test]
fn blocks_received_before_the_manifest_survive_a_takeover() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| dir.path().join(name);
    let big: Vec<u8> = (0..9_000_u32).map(|n| (n / 7) as u8).collect();
    std::fs::write(at("big"), &big).expect("room");
    std::fs::write(at("a"), [1; 300]).expect("room");
    let (mut earlier, _, _, blocks) = opened(dir.path(), &["a", "big"]);
    fill(&mut earlier, &blocks[..blocks.len() - 3]);
    drop(earlier);

    std::fs::write(at("a"), [2; 900]).expect("room");
    let (mut sink, _, geometry, blocks) = opened(dir.path(), &["a", "big"]);
    let last = blocks.len() as u32 - 1;
    put(&mut sink, last, &blocks[last as usize]);
    fill(&mut sink, &blocks[..geometry.manifest_blocks() as usize]);
    assert_eq!(sink.poll().expect("it is taken over"), Polled::Prepared);
    assert!(sink.has(last) && sink.has(last / 2) && !sink.has(last - 1));
    for (index, bytes) in (0..).zip(&blocks) {
        if !sink.has(index) {
            put(&mut sink, index, bytes);
        }
    }
    let mut all = crate::object::RootHasher::new(geometry);
    for (index, bytes) in (0..).zip(&blocks) {
        all.push(index, verify_block(bytes).expect("sealed").1);
    }
    let root = all.root().expect("all are there").0;
    let ending = sink.finish(last + 1, root, Durability::Fast).expect("all blocks are right");
    assert!(matches!(ending, Ending::Done(_)), "{ending:?}");
    assert_eq!(std::fs::read(at("out/big")).expect("it has its name"), big);
}

#[test]
fn sink_is_behind_while_blocks_wait_for_the_manifest() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("file"), [7; 9_000]).expect("room");
    let jobs: Arc<Mutex<Vec<Job>>> = Arc::default();
    let worker = Worker::new({
        let jobs = Arc::clone(&jobs);
        move |_, job| jobs.lock().expect("nobody panics").push(job)
    });
    let work = || std::mem::take(&mut *jobs.lock().expect("nobody panics")).into_iter().for_each(|job| job());
    let (mut sink, _, geometry, blocks) = opened_by(dir.path(), &["file"], (1 << 14, &worker));
    work();
    sink.poll().expect("it is opened");
    let manifest = geometry.manifest_blocks();
    (0..manifest + 6).for_each(|block| put(&mut sink, block, &blocks[block as usize]));
    assert!(sink.is_behind(0), "six blocks are more than an eighth of the memory");
    for _ in 0..3 {
        work();
        sink.poll().expect("it is stored");
    }
    assert!(!sink.is_behind(0));
    assert_eq!(sink.blocks(), manifest + 6, "no block has to come again");
}

/// Short content may be stored, read and published in one call.
#[test]
fn entries_and_title_of_published_content_remain_available() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (mut sink, _, geometry, blocks) = with_all(dir.path());
    let mut all = crate::object::RootHasher::new(geometry);
    for (index, bytes) in (0..).zip(&blocks) {
        all.push(index, verify_block(bytes).expect("sealed").1);
    }
    let root = all.root().expect("all are there").0;
    let ending = sink.finish(blocks.len() as u32, root, Durability::Fast).expect("all blocks are right");
    assert!(matches!(ending, Ending::Done(_)), "{ending:?}");
    assert_eq!(sink.entries().map(|entries| entries.files), Some(1));
    assert_eq!(sink.title().as_deref(), Some("file"));
}

#[test]
fn warnings_are_returned_for_immediately_published_content() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("file"), [7; 300]).expect("room");
    let (mut sink, _, geometry, blocks) = opened(dir.path(), &["file"]);
    fill(&mut sink, &blocks);
    let ContentSink::Files(storage) = &mut sink.to else { panic!("its blocks go to files") };
    storage.files().expect("no job has them").warnings().push("a name was escaped".to_owned());
    let mut all = crate::object::RootHasher::new(geometry);
    for (index, bytes) in (0..).zip(&blocks) {
        all.push(index, verify_block(bytes).expect("sealed").1);
    }
    let root = all.root().expect("all are there").0;
    let ending = sink.finish(blocks.len() as u32, root, Durability::Fast).expect("all blocks are right");
    assert!(matches!(ending, Ending::Done(_)), "{ending:?}");
    let warnings = sink.take_warnings();
    assert!(warnings.iter().any(|text| text.contains("escaped")), "{warnings:?}");
}

#[test]
fn content_with_a_wrong_root_hash_fails_after_two_more_fetches() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (mut sink, transfer, geometry, blocks) = with_all(dir.path());
    for _ in 0..2 {
        let ending = sink.finish(blocks.len() as u32, [1; 32], Durability::Fast).expect("it tries again");
        assert!(matches!(ending, Ending::Anew));
        assert_eq!((sink.blocks(), sink.verified_bytes()), (0, 0));
        assert!(sink.take_warnings()[0].contains("requested again"));
        fill(&mut sink, &blocks);
    }
    let error = sink.finish(blocks.len() as u32, [1; 32], Durability::Fast).expect_err("that is enough");
    assert!(matches!(error, Error::Storage(StorageError::Object(ObjectError::Root { .. }))), "{error}");
    drop(sink);
    let store = Store::open(&dir.path().join("out"), transfer, geometry, None).expect("opened again");
    assert_eq!(store.resumed_blocks(), 0);
}

#[test]
fn live_stream_creates_its_output_directory() {
    let geometry = Geometry { stream_len: None, manifest_len: 0, symbol_size: 16, symbols_per_block: 4 };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = Destination::Directory(dir.path().join("not/there/yet"));
    let id = TransferId([7; 16]);
    let mut sink = BlockSink::open(
        &out,
        id,
        geometry,
        Some(0),
        Admitting::default(),
        (1 << 20, &Worker::at_once()),
        (&Disk::default(), dir.path()),
    )
    .expect("it is made");
    assert_eq!(sink.put(0, sealed(), Hash([2; 32])).expect("room"), StoreResult::Kept);
    assert!(dir.path().join("not/there/yet/stream-07070707").is_file());
}

#[test]
fn memory_of_a_live_stream_does_not_grow_with_written_blocks() {
    let geometry = Geometry { stream_len: None, manifest_len: 0, symbol_size: 16, symbols_per_block: 4 };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let out = Destination::Directory(dir.path().to_owned());
    let mut sink = BlockSink::open(
        &out,
        TransferId([7; 16]),
        geometry,
        Some(0),
        Admitting::default(),
        (1 << 20, &Worker::at_once()),
        (&Disk::default(), dir.path()),
    )
    .expect("opened");
    let hash = Hash([2; 32]);
    let mut write = |blocks: std::ops::Range<u32>| {
        let all = || {
            blocks.for_each(|block| {
                assert_eq!(sink.put(block, sealed(), hash).expect("room"), StoreResult::Kept);
                sink.take_spent();
            });
        };
        allocation_counter::measure(all).bytes_current
    };
    write(0..100);
    assert_eq!(write(100..20_000), 0, "bytes more than after a hundred blocks");
}
