//! Incomplete transfers of a tree that has changed since the transfer was interrupted.

use super::overwrite::session;
use super::*;
use crate::FileWork;
use crate::host::disk::Disk;

/// Starts of two sessions, in nanoseconds since 1970.
const EARLIER: u64 = 1_800_000_000_000_000_000;
const LATER: u64 = EARLIER + 60_000_000_000;

/// Creates a tree, and an incomplete transfer of the tree without the last blocks. Returns the number of blocks.
fn begun(at: &Scratch) -> usize {
    at.file("tree/a", &content(3000, 1));
    at.file("tree/big", &content(20_000, 2));
    at.file("tree/c", &content(300, 3));
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks[..blocks.len() - 5]);
    blocks.len()
}

/// Begins a transfer of the present tree that takes over files of incomplete transfers.
fn adopted(at: &Scratch) -> (Store, ObjectStream, Vec<(Vec<u8>, Hash)>) {
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let (mut store, reported) =
        Store::begin(&crate::host::disk::SYSTEM, &at.path("out"), object.transfer(), object.geometry(), None)
            .expect("opened");
    assert!(reported.is_none() && store.may_adopt());
    for (index, (data, hash)) in (0..object.geometry().manifest_blocks()).zip(&blocks) {
        store.put(index, data, *hash).expect("stored");
    }
    store.adopt(&FileWork::default()).expect("it can be taken over");
    (store, object, blocks)
}

/// Stores the missing blocks and returns the number of bytes in them.
pub(super) fn put_missing(store: &mut Store, blocks: &[(Vec<u8>, Hash)]) -> usize {
    let mut bytes = 0;
    for index in store.missing().into_iter().flatten() {
        let (data, hash) = &blocks[index as usize];
        store.put(index, data, *hash).expect("stored");
        bytes += data.len();
    }
    bytes
}

#[test]
fn unchanged_files_of_an_incomplete_transfer_are_reused() {
    let at = Scratch::new();
    begun(&at);
    at.file("tree/a", &content(3100, 9));
    at.file("tree/b is new", &content(700, 4));
    let (mut store, object, blocks) = adopted(&at);
    let resumed = store.resumed_bytes();
    assert!(resumed > 18_000, "{resumed}");
    let moved = put_missing(&mut store, &blocks);
    // Bytes of new files, of missing blocks, and of blocks that contain bytes of several files.
    assert!(moved < 3100 + 700 + 300 + 10 * CAPACITY, "{moved}");
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    assert!(!at.path("out/.faircast").exists(), "nothing is left of the earlier run");
}

#[test]
fn adopted_blocks_survive_a_second_interruption() {
    let at = Scratch::new();
    begun(&at);
    at.file("tree/a", &content(3100, 9));
    let (store, object, blocks) = adopted(&at);
    let known = store.blocks_stored();
    drop(store);
    let mut store = open(&at.path("out"), &object).expect("opened again");
    assert_eq!(store.blocks_stored(), known);
    put_missing(&mut store, &blocks);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn adopted_blocks_with_changed_content_are_received_again() {
    let at = Scratch::new();
    begun(&at);
    at.file("tree/a", &content(3100, 9));
    // Different content with the same size and time.
    at.file("tree/big", &content(20_000, 7));
    let (mut store, object, blocks) = adopted(&at);
    put_missing(&mut store, &blocks);
    let root = root(object.geometry(), &blocks);
    assert!(matches!(store.check(&root), Err(ObjectError::Root { .. })));
    assert!(store.distrust().expect("it is given up") > 15_000);
    put_missing(&mut store, &blocks);
    store.finish(&root, Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn transfer_locked_by_another_receiver_is_not_adopted() {
    let at = Scratch::new();
    begun(&at);
    let earlier = object(&at.path("tree"));
    let other = open(&at.path("out"), &earlier).expect("another receiver goes on");
    at.file("tree/a", &content(3100, 9));
    let (store, _, _) = adopted(&at);
    assert_eq!(store.resumed_bytes(), 0);
    assert!(other.blocks_stored() > 50);
}

/// Begins a transfer of the present tree, from a source whose content the output directory has.
pub(super) fn sent_again(at: &Scratch) -> (Store, ObjectStream, Vec<(Vec<u8>, Hash)>) {
    let (mut store, object, blocks) = begun_again(at, &crate::host::disk::SYSTEM);
    for (index, (data, hash)) in (0..object.geometry().manifest_blocks()).zip(&blocks) {
        store.put(index, data, *hash).expect("stored");
    }
    store.adopt(&FileWork::default()).expect("it can be taken over");
    (store, object, blocks)
}

/// Sends the tree again, and opens a store for it on this disk.
pub(super) fn begun_again(at: &Scratch, disk: &Disk) -> (Store, ObjectStream, Vec<(Vec<u8>, Hash)>) {
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let (transfer, geometry) = (object.transfer(), object.geometry());
    let (store, reported) =
        Store::begin(disk, &at.path("out"), transfer, geometry, Some(session(LATER))).expect("opened");
    assert!(reported.is_none() && store.may_adopt());
    (store, object, blocks)
}

/// Creates a tree, and receives it.
pub(super) fn received(at: &Scratch) {
    for name in ["a", "b", "c", "d"] {
        at.file(&format!("tree/{name}"), &content(5000, name.as_bytes()[0]));
    }
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let mut store =
        Store::open(&at.path("out"), object.transfer(), object.geometry(), Some(session(EARLIER)))
            .expect("opened");
    put_all(&mut store, &blocks);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
}

#[test]
fn identical_tree_is_not_received_again() {
    let at = Scratch::new();
    received(&at);
    let (mut store, object, blocks) = sent_again(&at);
    assert_eq!(put_missing(&mut store, &blocks), 0);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn only_changed_files_are_received_again() {
    let at = Scratch::new();
    received(&at);
    at.file("tree/b", &content(5200, 9));
    std::fs::remove_file(at.path("out/tree/c")).expect("it is there");
    let (mut store, object, blocks) = sent_again(&at);
    let moved = put_missing(&mut store, &blocks);
    assert!((10_200..10_200 + 6 * CAPACITY).contains(&moved), "{moved}");
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn changed_content_with_the_old_time_is_received_again() {
    let at = Scratch::new();
    received(&at);
    let before =
        std::fs::metadata(at.path("out/tree/b")).and_then(|meta| meta.modified()).expect("it is there");
    std::fs::write(at.path("out/tree/b"), content(5000, 7)).expect("room");
    let file = std::fs::File::options().write(true).open(at.path("out/tree/b")).expect("it is there");
    file.set_modified(before).expect("its time is set");
    let (mut store, object, blocks) = sent_again(&at);
    let root = root(object.geometry(), &blocks);
    assert!(matches!(store.check(&root), Err(ObjectError::Root { .. })));
    store.distrust().expect("it is given up");
    put_missing(&mut store, &blocks);
    store.finish(&root, Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn links_are_not_taken_over() {
    let at = Scratch::new();
    received(&at);
    std::fs::rename(at.path("out/tree/b"), at.path("elsewhere")).expect("room");
    std::os::unix::fs::symlink(at.path("elsewhere"), at.path("out/tree/b")).expect("room for a link");
    let (mut store, _, blocks) = sent_again(&at);
    assert!((5000..5000 + 4 * CAPACITY).contains(&put_missing(&mut store, &blocks)));
}
