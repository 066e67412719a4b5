//! Files of the output directory that have the content of a later session stay in place.

use super::adopt::{begun_again, put_missing, received, sent_again};
use super::*;
use crate::FileWork;
use crate::host::disk::{Disk, Failure, Faults, Op, Verdict};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A disk whose read with this number fails.
struct FailingRead(AtomicU32);

impl Faults for FailingRead {
    fn before(&self, op: &Op<'_>) -> Verdict {
        let is_counted = matches!(op, Op::Read) && self.0.load(Relaxed) > 0;
        match is_counted && self.0.fetch_sub(1, Relaxed) == 1 {
            true => Verdict::Fails(Failure::Broken),
            false => Verdict::Done,
        }
    }
}

/// Returns the identity and the time of the latest change of each file of the output directory.
fn inodes(at: &Scratch) -> BTreeMap<String, (u64, i64, i64)> {
    let files = picture(&at.path("out/tree")).into_keys().map(|name| {
        let about = fs::symlink_metadata(at.path("out/tree").join(&name)).expect("it is there");
        (name, (about.ino(), about.ctime(), about.ctime_nsec()))
    });
    files.filter(|(name, _)| !name.is_empty()).collect()
}

/// Returns the files whose inode is another one than before.
fn replaced(before: &BTreeMap<String, (u64, i64, i64)>, at: &Scratch) -> Vec<String> {
    let now = inodes(at);
    before.keys().filter(|name| now[*name].0 != before[*name].0).cloned().collect()
}

/// Writes other content of the same size into a received file, and sets its old time.
fn write_secretly(at: &Scratch, name: &str) {
    let path = at.path("out/tree").join(name);
    let before = fs::metadata(&path).and_then(|about| about.modified()).expect("it is there");
    fs::write(&path, content(5000, 7)).expect("room");
    let file = fs::File::options().write(true).open(&path).expect("it is there");
    file.set_modified(before).expect("its time is set");
}

fn finish(mut store: Store, object: &ObjectStream, blocks: &[(Vec<u8>, Hash)], at: &Scratch) {
    put_missing(&mut store, blocks);
    store.finish(&root(object.geometry(), blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    assert_eq!(
        fs::read_dir(at.path("out/.faircast")).expect("the record").count(),
        1,
        "only the record is left"
    );
}

#[test]
fn unchanged_files_keep_their_inodes_and_get_other_modes() {
    let at = Scratch::new();
    received(&at);
    let before = inodes(&at);
    at.file("tree/b", &content(5200, 9));
    fs::set_permissions(at.path("tree/c"), fs::Permissions::from_mode(0o640)).expect("set");
    let (store, object, blocks) = sent_again(&at);
    let parts = at.path("out/.faircast").join(object.transfer().to_string()).join("parts");
    assert_eq!(fs::read_dir(parts).expect("the store is open").count(), 0, "no file was copied");
    finish(store, &object, &blocks, &at);
    assert_eq!(replaced(&before, &at), ["b"]);
    let now = inodes(&at);
    assert_eq!((now["a"], now["d"]), (before["a"], before["d"]), "nothing was changed about them");
}

#[test]
fn only_files_with_wrong_content_are_replaced() {
    let at = Scratch::new();
    received(&at);
    write_secretly(&at, "b");
    let before = inodes(&at);
    let (mut store, object, blocks) = sent_again(&at);
    let checked = store.check(&root(object.geometry(), &blocks));
    store.give_up(&checked.expect_err("the content is another one")).expect("it is given up");
    finish(store, &object, &blocks, &at);
    assert_eq!(replaced(&before, &at), ["b"]);
}

#[test]
fn file_that_changes_after_its_verification_is_received_again() {
    // The file shares blocks with unchanged files, and with a changed one.
    for new in [None, Some("a")] {
        let at = Scratch::new();
        received(&at);
        new.into_iter().for_each(|name| drop(at.file(&format!("tree/{name}"), &content(5100, 9))));
        let (mut store, object, blocks) = sent_again(&at);
        put_missing(&mut store, &blocks);
        write_secretly(&at, "b");
        let before = inodes(&at);
        let root = root(object.geometry(), &blocks);
        let failed = store.finish_as(&root, Durability::Fast, &FileWork::default());
        let error = failed.expect_err("a file has changed");
        assert!(error.to_string().contains("out/tree/b: changed"), "{error}");
        assert!(replaced(&before, &at).is_empty(), "nothing is published");
        store.give_up(&error).expect("it is given up");
        let missing: usize = store.missing().into_iter().flatten().map(|n| blocks[n as usize].0.len()).sum();
        assert!((5000..5000 + 2 * CAPACITY).contains(&missing), "{missing}");
        finish(store, &object, &blocks, &at);
        assert_eq!(replaced(&before, &at), [&new.into_iter().collect::<Vec<_>>()[..], &["b"]].concat());
    }
}

#[test]
fn file_that_changed_is_not_copied_to_a_part_file() {
    for is_gone in [false, true] {
        let at = Scratch::new();
        received(&at);
        at.file("tree/b", &content(5200, 9));
        let (mut store, object, blocks) = sent_again(&at);
        match is_gone {
            true => fs::remove_file(at.path("out/tree/a")).expect("it is there"),
            false => write_secretly(&at, "a"),
        }
        // The first block of b has the end of a, and the ledger has the hashes of the rest of a.
        let root = root(object.geometry(), &blocks);
        let mut receive = || {
            for index in store.missing().into_iter().flatten() {
                store.put(index, &blocks[index as usize].0, blocks[index as usize].1)?;
            }
            store.finish_as(&root, Durability::Fast, &FileWork::default())
        };
        let error = receive().expect_err("a has changed");
        assert!(
            matches!(&error, ObjectError::ChangedInPlace { path } if *path == at.path("out/tree/a")),
            "{error}"
        );
        store.give_up(&error).expect("it is given up");
        finish(store, &object, &blocks, &at);
    }
}

#[test]
fn interrupted_session_leaves_files_in_place_and_continues() {
    let at = Scratch::new();
    received(&at);
    let (before, old) = (inodes(&at), picture(&at.path("out/tree")));
    at.file("tree/b", &content(5200, 9));
    at.file("tree/d", &content(5200, 9));
    let (mut store, object, blocks) = sent_again(&at);
    let missing: Vec<u32> = store.missing().into_iter().flatten().collect();
    for index in &missing[..missing.len() / 2] {
        store.put(*index, &blocks[*index as usize].0, blocks[*index as usize].1).expect("stored");
    }
    let stored = store.blocks_stored();
    drop(store);
    assert_eq!((inodes(&at), picture(&at.path("out/tree"))), (before.clone(), old));
    let store = open(&at.path("out"), &object).expect("opened again");
    assert_eq!(store.blocks_stored(), stored);
    finish_without_record(store, &object, &blocks, &at);
    assert_eq!(replaced(&before, &at), ["b", "d"]);
}

fn finish_without_record(mut store: Store, object: &ObjectStream, blocks: &[(Vec<u8>, Hash)], at: &Scratch) {
    put_missing(&mut store, blocks);
    store.finish(&root(object.geometry(), blocks), Durability::Synced).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn files_with_other_names_stay_only_if_all_names_are_received() {
    let at = Scratch::new();
    at.file("tree/a", &content(5000, 1));
    fs::hard_link(at.path("tree/a"), at.path("tree/e")).expect("linked");
    received(&at);
    let before = inodes(&at);
    assert_eq!(before["a"], before["e"]);
    // The file c has a snapshot, and d is a second name of b at the receiver only.
    fs::hard_link(at.path("out/tree/c"), at.path("snapshot")).expect("linked");
    // While the file is open, no other file gets its inode.
    let _removed = fs::File::open(at.path("out/tree/d")).expect("it is there");
    fs::remove_file(at.path("out/tree/d")).expect("it was there");
    fs::hard_link(at.path("out/tree/b"), at.path("out/tree/d")).expect("linked");
    at.file("tree/d", &content(5000, b'b'));
    let (store, object, blocks) = sent_again(&at);
    finish(store, &object, &blocks, &at);
    assert_eq!(replaced(&before, &at), ["b", "c", "d"]);
    let now = inodes(&at);
    assert_eq!((now["a"], now["e"]), (before["a"], before["e"]));
    assert_eq!(fs::metadata(at.path("snapshot")).expect("it stays").ino(), before["c"].0);
    // A name that the receiver lacks is made as before.
    fs::remove_file(at.path("out/tree/e")).expect("it was there");
    let (store, object, blocks) = sent_again(&at);
    finish(store, &object, &blocks, &at);
    let now = inodes(&at);
    assert_eq!(now["a"], now["e"]);
}

#[test]
fn transfer_completes_if_a_file_in_place_cannot_be_read() {
    let mut given_up = 0;
    for read in 1..=6 {
        let at = Scratch::new();
        received(&at);
        let faults = Arc::new(FailingRead(AtomicU32::new(0)));
        let disk = Disk::with_faults(Arc::clone(&faults) as Arc<dyn Faults>);
        let (mut store, object, blocks) = begun_again(&at, &disk);
        faults.0.store(read, Relaxed);
        let learn = |store: &mut Store| {
            (0..object.geometry().manifest_blocks())
                .zip(&blocks)
                .try_for_each(|(index, (data, hash))| store.put(index, data, *hash).map(drop))
        };
        let learnt = learn(&mut store);
        faults.0.store(0, Relaxed);
        match learnt {
            Err(error @ ObjectError::ChangedInPlace { .. }) => {
                given_up += 1;
                store.give_up(&error).expect("it is given up");
                assert!(store.missing().into_iter().flatten().next() == Some(0), "it has no manifest");
                learn(&mut store).expect("the disk can be read again");
            }
            Err(_) => continue, // of another file
            Ok(()) => {}
        }
        store.adopt(&FileWork::default()).expect("it can be taken over");
        finish(store, &object, &blocks, &at);
    }
    assert!(given_up > 0, "no read was of a file in place");
}
