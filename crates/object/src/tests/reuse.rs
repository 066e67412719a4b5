//! Files that changed since an earlier version: only their changed parts are received.

use super::*;
use crate::gather::assembly::{Added, Assembly};
use crate::gather::seeds::Seeds;
use faircast_core::rng::Rng;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::os::unix::fs::FileExt as _;

/// Blocks of 32 kB.
const SIZE: u16 = 512;
const SYMBOLS: u16 = 64;

/// The largest chunk of content up to 4 GiB.
const LARGEST: usize = 16 << 10;

fn random(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed, 1 << 40);
    (0..len).map(|_| rng.bits() as u8).collect()
}

fn object_with(path: &Path, delta: Delta) -> ObjectStream {
    let reading = Reading { delta, ..Reading::default() };
    ObjectStream::open_with(&[path.to_path_buf()], &reading, SIZE, SYMBOLS).expect("the source can be read")
}

/// A receiver after the search for content.
struct Receiver {
    store: Store,
    seeds: Option<Seeds>,
    object: ObjectStream,
    blocks: Vec<(Vec<u8>, Hash)>,
}

impl Receiver {
    /// Begins to receive `tree` into `out`, with content of `reuse`.
    fn new(at: &Scratch, mut object: ObjectStream, reuse: &[&str]) -> Receiver {
        let blocks = blocks(&mut object);
        let (mut store, reported) =
            Store::begin(&SYSTEM, &at.path("out"), object.transfer(), object.geometry(), None)
                .expect("opened");
        assert!(reported.is_none());
        store.reuse(reuse.iter().map(|path| at.path(path)).collect());
        for (index, (data, hash)) in (0..object.geometry().manifest_blocks()).zip(&blocks) {
            store.put(index, data, *hash).expect("stored");
        }
        store.adopt(&FileWork::default()).expect("it can be taken over");
        let seeds = store.take_seeds();
        Receiver { store, seeds, object, blocks }
    }

    /// Receives the missing symbols of all missing blocks. Returns their number of bytes.
    fn receive(&mut self) -> usize {
        let geometry = self.object.geometry();
        let mut assembly = Assembly::new(SIZE.into(), 1 << 30);
        self.seeds.take().into_iter().for_each(|seeds| assembly.seed(seeds));
        let mut moved = 0;
        for block in self.store.missing().into_iter().flatten() {
            let (data, hash) = &self.blocks[block as usize];
            let mut sealed = data.clone();
            let (symbols, _) = seal_block(&mut sealed, SIZE);
            let mut receive = |assembly: &mut Assembly| {
                for (n, symbol) in (0..).zip(sealed.chunks(SIZE.into())) {
                    match assembly.gather(block, symbols, n, symbol) {
                        Added::Useless => {}
                        Added::Kept => moved += symbol.len(),
                        Added::Complete => {
                            moved += symbol.len();
                            return assembly.take_gathered().and_then(|(_, mut all)| all.decode());
                        }
                    }
                }
                None
            };
            let mut bytes = receive(&mut assembly).expect("all symbols were sent");
            if verify_block(&bytes).is_err() {
                assembly.forget(block);
                bytes = receive(&mut assembly).expect("all symbols were sent");
            }
            assert_eq!(verify_block(&bytes), Ok((&data[..], *hash)));
            self.store.put(block, data, *hash).expect("stored");
        }
        assert_eq!(self.store.root(), Some(root(geometry, &self.blocks)), "all blocks are there");
        moved
    }

    fn finish(self, at: &Scratch) {
        let root = root(self.object.geometry(), &self.blocks);
        self.store.finish(&root, Durability::Fast).expect("it arrives");
        assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    }
}

/// Receives the tree with the chunk table, and checks that at most `most` bytes arrive after the manifest.
fn assert_moved(at: &Scratch, reuse: &[&str], most: usize) {
    let mut receiver = Receiver::new(at, object_with(&at.path("tree"), Delta::On), reuse);
    let moved = receiver.receive();
    assert!(moved <= most, "{moved} bytes, not {most}");
    receiver.finish(at);
}

/// Creates a tree with these contents of its large file at both ends.
fn tree(at: &Scratch, old: &[u8], new: &[u8]) {
    let old = at.file("out/tree/disk.img", old);
    fs::File::options()
        .write(true)
        .open(old)
        .and_then(|old| old.set_modified(SystemTime::UNIX_EPOCH))
        .expect("set");
    at.file("tree/disk.img", new);
    at.file("tree/small", b"a small file");
}

#[test]
fn only_changed_parts_of_a_file_are_received() {
    let old = random(1_000_000, 1);
    let changed = |at: usize| [&old[..at], b"other", &old[at + 5..]].concat();
    // A change costs its chunks, symbols at their borders, and the symbols with the trailers of their blocks.
    let each = 2 * LARGEST + 6 * usize::from(SIZE);
    for (new, most) in [
        (changed(500_000), each),
        (changed(0), each),
        ([b"inserted", &old[..]].concat(), each + 31 * usize::from(SIZE)),
        ([&old[..333_333], b"inserted", &old[333_333..]].concat(), each),
        ([&old[..333_333], &old[333_334..]].concat(), each),
        ([&old[..], &random(100_000, 2)].concat(), 100_000 + each + 4 * usize::from(SIZE)),
        (old[..600_000].to_vec(), each),
        ([&old[500_000..], &old[..500_000]].concat(), 2 * each),
    ] {
        let at = Scratch::new();
        tree(&at, &old, &new);
        assert_moved(&at, &["out"], most);
    }
}

#[test]
fn same_content_under_another_path_is_reused() {
    let (at, old) = (Scratch::new(), random(300_000, 3));
    at.file("tree/new/name", &old);
    at.file("tree/copy", &old);
    at.file("elsewhere/deep/old name", &old);
    assert_moved(&at, &["elsewhere", "absent"], 3 * usize::from(SIZE));
}

#[test]
fn parts_of_several_files_are_combined() {
    let (at, a, b) = (Scratch::new(), random(200_000, 4), random(200_000, 5));
    at.file("one", &a);
    at.file("many/two", &b);
    at.file("tree/both", &[&a[50_000..], &b[..150_000]].concat());
    assert_moved(&at, &["one", "many"], 4 * LARGEST);
}

#[test]
fn receiver_without_an_earlier_version_gets_everything() {
    let at = Scratch::new();
    at.file("tree/disk.img", &random(300_000, 6));
    std::fs::create_dir(at.path("empty")).expect("room");
    assert_moved(&at, &["empty"], 320_000);
}

#[test]
fn without_a_chunk_table_equal_files_of_that_name_are_reused() {
    let (at, same) = (Scratch::new(), random(300_000, 7));
    at.file("tree/deep/same", &same);
    at.file("tree/other", &random(50_000, 8));
    at.file("old/same", &same);
    at.file("old/other", &random(50_001, 8));
    let mut receiver = Receiver::new(&at, object_with(&at.path("tree"), Delta::Off), &["old"]);
    let moved = receiver.receive();
    assert!((50_000..53_000).contains(&moved), "{moved}");
    receiver.finish(&at);
}

#[test]
fn links_pipes_and_directories_are_not_searched() {
    let (at, old) = (Scratch::new(), random(100_000, 9));
    at.file("tree/a", &old);
    at.file("tree/b", &random(100_000, 10));
    at.file("tree/c", &random(100_000, 11));
    at.file("secret", &old);
    std::fs::create_dir_all(at.path("out/tree")).expect("room");
    symlink(at.path("secret"), at.path("out/tree/a")).expect("room for a link");
    mknodat(CWD, at.path("out/tree/b"), FileType::Fifo, Mode::RWXU, 0).expect("room for a pipe");
    std::fs::create_dir(at.path("old")).expect("room");
    symlink(at.path("secret"), at.path("old/link")).expect("room for a link");
    mknodat(CWD, at.path("old/pipe"), FileType::Fifo, Mode::RWXU, 0).expect("room for a pipe");
    let mut receiver = Receiver::new(&at, object_with(&at.path("tree"), Delta::On), &["old", "old/pipe"]);
    assert!(receiver.receive() > 260_000, "all, but for the content that arrives with the manifest");
    let warnings = receiver.store.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("old/pipe: neither a file"), "{warnings:?}");
}

/// Overwrites all part files, after the content that arrives with the manifest, as another program could.
fn spoil_parts(at: &Scratch) {
    for state in fs::read_dir(at.path("out/.faircast")).expect("it is there").flatten() {
        for part in fs::read_dir(state.path().join("parts")).into_iter().flatten().flatten() {
            let file = fs::File::options().write(true).open(part.path()).expect("its own file");
            let len = file.metadata().expect("its own file").len() as usize;
            file.write_all_at(&vec![7; len.saturating_sub(40_000)], 40_000).expect("written");
        }
    }
}

#[test]
fn blocks_whose_found_symbols_have_changed_are_received_whole() {
    let (at, old) = (Scratch::new(), random(500_000, 12));
    // A change in each block, so that no block is complete.
    let mut new = old.clone();
    (0..500_000).step_by(20_000).for_each(|at| new[at] ^= 1);
    tree(&at, &old, &new);
    let mut receiver = Receiver::new(&at, object_with(&at.path("tree"), Delta::On), &["out"]);
    assert!(receiver.store.resumed_bytes() < 50_000);
    spoil_parts(&at);
    let moved = receiver.receive();
    assert!((450_000..900_000).contains(&moved), "{moved}");
    receiver.finish(&at);
}

#[test]
fn interrupted_receiver_finds_chunks_again() {
    let (at, old) = (Scratch::new(), random(500_000, 17));
    let mut new = old.clone();
    (0..500_000).step_by(20_000).for_each(|at| new[at] ^= 1);
    tree(&at, &old, &new);
    let first = Receiver::new(&at, object_with(&at.path("tree"), Delta::On), &["out"]);
    let (object, blocks) = (first.object, first.blocks);
    let mut store = first.store;
    for index in [7, 9] {
        let (data, hash) = &blocks[index];
        store.put(index as u32, data, *hash).expect("stored");
    }
    drop(store);
    let (mut store, reported) =
        Store::begin(&SYSTEM, &at.path("out"), object.transfer(), object.geometry(), None).expect("opened");
    store.go_on(reported.expect("it was interrupted"), &FileWork::default()).expect("it goes on");
    assert!(store.may_adopt() && store.has(7) && store.has(9));
    store.adopt(&FileWork::default()).expect("it can be taken over");
    let seeds = store.take_seeds();
    let mut receiver = Receiver { store, seeds, object, blocks };
    let moved = receiver.receive();
    assert!(moved < 250_000, "{moved}");
    receiver.finish(&at);
}

#[test]
fn wrong_chunks_are_received_again_after_the_root_contradicts() {
    let (at, old) = (Scratch::new(), random(500_000, 13));
    tree(&at, &old, &random(500_000, 14));
    // The table states the chunks of the old file.
    let sent = object_with(&at.path("tree"), Delta::On);
    let old_tree = Scratch::new();
    old_tree.file("tree/disk.img", &old);
    let lie = object_with(&old_tree.path("tree"), Delta::On).manifest().chunks().expect("large").clone();
    let manifest = sent.manifest().clone().with_chunks(lie);
    let object = ObjectStream::of_manifest(manifest, at.path("tree"), SIZE, SYMBOLS);
    let mut receiver = Receiver::new(&at, object, &["out"]);
    assert!(receiver.store.resumed_bytes() > 400_000);
    let expected = root(receiver.object.geometry(), &receiver.blocks);
    for block in receiver.store.missing().into_iter().flatten() {
        let (data, hash) = &receiver.blocks[block as usize];
        receiver.store.put(block, data, *hash).expect("stored");
    }
    assert!(matches!(receiver.store.check(&expected), Err(ObjectError::Root { .. })));
    receiver.store.distrust().expect("it is given up");
    receiver.seeds = None;
    assert!(receiver.receive() > 400_000);
    receiver.finish(&at);
}

#[test]
fn table_is_sent_only_for_files_of_an_average_chunk() {
    let at = Scratch::new();
    at.file("tree/small", &random(4_095, 15));
    let small = object_with(&at.path("tree"), Delta::On);
    assert_eq!(small.manifest().encode()[0], 1, "older receivers can read it");
    at.file("tree/large", &random(4_096, 16));
    let large = object_with(&at.path("tree"), Delta::On);
    assert_eq!(large.manifest().encode()[0], 3);
    assert_eq!(object_with(&at.path("tree"), Delta::Off).manifest().encode()[0], 1);
    assert_eq!(Manifest::decode(&large.manifest().encode()).as_ref(), Ok(large.manifest()));
}
