use super::*;

/// Creates a source of two files. Returns its directory, its object stream, its blocks, and the path of the output directory.
fn prepared() -> (Scratch, ObjectStream, Vec<(Vec<u8>, Hash)>, PathBuf) {
    let at = Scratch::new();
    at.file("tree/one", &content(5000, 1));
    at.file("tree/two", &content(3000, 2));
    at.file("tree/none", b"");
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let out = at.path("out");
    (at, object, blocks, out)
}

fn state(out: &Path, object: &ObjectStream) -> PathBuf {
    out.join(".faircast").join(object.transfer().to_string())
}

fn finish(at: &Scratch, mut store: Store, object: &ObjectStream, blocks: &[(Vec<u8>, Hash)]) {
    put_all(&mut store, blocks);
    store.finish(&root(object.geometry(), blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    assert!(!at.path("out/.faircast").exists());
}

/// Part file of `tree/one`. The entries are `tree`, `tree/none`, `tree/one`, `tree/two`, counted from 0.
const ONE: &str = "parts/2";

#[test]
fn reopened_receiver_resumes_after_its_stored_blocks() {
    let (at, object, blocks, out) = prepared();
    for stop in [0, 1, 2, 20, blocks.len()] {
        let mut store = open(&out, &object).expect("opened");
        put_all(&mut store, &blocks[..stop]);
        drop(store);
        let store = open(&out, &object).expect("opened again");
        assert_eq!(store.resumed_blocks() as usize, stop);
        assert_eq!((0..stop as u32).filter(|&index| store.has(index)).count(), stop);
    }
    let store = open(&out, &object).expect("opened again");
    assert!(store.is_complete());
    finish(&at, store, &object, &blocks);
}

/// Environment variable of the child process in the next test. Its value is the directory in which the child works.
const DIE_IN: &str = "FAIRCAST_TEST_DIE_IN";

#[test]
fn suddenly_killed_receiver_loses_no_stored_block() {
    if let Some(at) = std::env::var_os(DIE_IN).map(PathBuf::from) {
        let mut object = object(&at.join("tree"));
        let mut store = open(&at.join("out"), &object).expect("opened");
        put_all(&mut store, &blocks(&mut object)[..20]);
        std::process::abort();
    }
    let (at, object, blocks, out) = prepared();
    let name =
        format!("{}::suddenly_killed_receiver", module_path!().split_once("::").expect("it has a crate").1);
    let exe = std::env::current_exe().expect("this test runs");
    let died = std::process::Command::new(exe).arg(name).env(DIE_IN, &at.0).output().expect("it starts");
    assert!(!died.status.success());
    let store = open(&out, &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), 20);
    finish(&at, store, &object, &blocks);
}

#[test]
fn published_transfer_whose_manifest_is_damaged_restarts() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks);
    drop(store);
    fs::write(state(&out, &object).join("published"), b"").expect("written");
    fs::write(state(&out, &object).join("head"), b"spoilt").expect("written");
    let store = open(&out, &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), 0);
    finish(&at, store, &object, &blocks);
}

#[test]
fn truncated_journal_loses_only_its_last_record() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..20]);
    drop(store);
    let journal = state(&out, &object).join("journal");
    let bytes = fs::read(&journal).expect("read");
    for cut in 1..=40 {
        fs::write(&journal, &bytes[..bytes.len() - cut]).expect("written");
        assert_eq!(open(&out, &object).expect("opened again").resumed_blocks(), 19, "{cut} bytes cut");
    }
    finish(&at, open(&out, &object).expect("opened again"), &object, &blocks);
}

#[test]
fn damaged_journal_record_loses_only_its_block() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..20]);
    drop(store);
    let journal = state(&out, &object).join("journal");
    let mut bytes = fs::read(&journal).expect("read");
    bytes[64 + 10 * 40 + 7] ^= 1;
    fs::write(&journal, bytes).expect("written");
    let store = open(&out, &object).expect("opened again");
    assert_eq!(store.missing(), [10..11, 20..blocks.len() as u32]);
    assert_eq!(store.spoiled_bytes(), 0, "without its record nobody knows that the block was there");
    finish(&at, store, &object, &blocks);
}

#[test]
fn damaged_stored_content_is_detected_and_received_again() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks);
    drop(store);
    let part = state(&out, &object).join(ONE);
    let mut bytes = fs::read(&part).expect("read");
    assert_eq!(bytes.len(), 5000);
    bytes[2500] ^= 1;
    fs::write(&part, &bytes[..4000]).expect("written");
    let store = open(&out, &object).expect("opened again");
    let lost: u32 = store.missing().iter().map(|run| run.end - run.start).sum();
    let bytes: u32 =
        store.missing().iter().flat_map(Clone::clone).map(|block| object.geometry().block_len(block)).sum();
    assert_eq!(store.spoiled_bytes(), u64::from(bytes));
    assert!((6..=7).contains(&lost), "a block with the changed byte and those of the last 1000: {lost}");
    finish(&at, store, &object, &blocks);
}

#[test]
fn deleted_part_file_is_received_again() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks);
    drop(store);
    fs::remove_file(state(&out, &object).join(ONE)).expect("removed");
    let store = open(&out, &object).expect("opened again");
    assert!(!store.is_complete());
    finish(&at, store, &object, &blocks);
}

#[test]
fn transfer_that_is_reopened_with_another_geometry_restarts() {
    let (_at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..20]);
    drop(store);
    let other = Geometry { symbols_per_block: K + 1, ..object.geometry() };
    let store = Store::open(&out, object.transfer(), other, None).expect("opened again");
    assert_eq!(store.resumed_blocks(), 0);
    assert_eq!(fs::read_dir(state(&out, &object).join("parts")).expect("listed").count(), 0);
}

#[test]
fn interrupted_publication_is_repeated() {
    // Creates the state of a store whose publication was interrupted after this number of renamed files.
    for renamed in 0..=3 {
        let (at, object, blocks, out) = prepared();
        let mut store = open(&out, &object).expect("opened");
        put_all(&mut store, &blocks);
        drop(store);
        let state = state(&out, &object);
        fs::write(state.join("parts/1"), b"").expect("written");
        fs::write(state.join("finishing"), b"").expect("written");
        fs::create_dir(out.join("tree")).expect("created");
        for (part, name) in [("1", "none"), ("2", "one"), ("3", "two")].into_iter().take(renamed) {
            let part = state.join("parts").join(part);
            fs::set_permissions(&part, fs::Permissions::from_mode(0o444)).expect("set");
            fs::rename(part, out.join("tree").join(name)).expect("renamed");
        }
        let store = open(&out, &object).expect("opened again");
        assert!(store.is_complete(), "{renamed} renamed");
        finish(&at, store, &object, &blocks);
    }
}

#[test]
fn steps_after_the_renaming_of_files_are_repeated() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks);
    drop(store);
    let state = state(&out, &object);
    fs::create_dir(out.join("tree")).expect("created");
    fs::write(state.join("parts/1"), b"").expect("written");
    for (part, name) in [("1", "none"), ("2", "one"), ("3", "two")] {
        fs::copy(at.path("tree").join(name), out.join("tree").join(name)).expect("copied");
        let time = at.path("tree").join(name).metadata().and_then(|meta| meta.modified()).expect("a time");
        fs::File::open(out.join("tree").join(name)).and_then(|f| f.set_modified(time)).expect("set");
        fs::remove_file(state.join("parts").join(part)).expect("removed");
    }
    fs::write(state.join("published"), b"").expect("written");
    let store = open(&out, &object).expect("opened again");
    assert!(store.is_complete());
    finish(&at, store, &object, &blocks);
}

#[test]
fn resumed_stream_retains_its_known_length() {
    let at = Scratch::new();
    let reader = Box::new(std::io::Cursor::new(content(2000, 3)));
    let mut object = ObjectStream::from_reader(reader, "stream", 1, &at.0, T, K).expect("it can be kept");
    let start = object.geometry();
    let all = blocks(&mut object);
    let mut store = Store::open(&at.path("out"), object.transfer(), start, None).expect("opened");
    put_all(&mut store, &all);
    drop(store);
    let store = Store::open(&at.path("out"), object.transfer(), start, None).expect("opened again");
    assert_eq!(store.geometry(), object.geometry());
    store.finish(&root(object.geometry(), &all), Durability::Fast).expect("it arrives");
    assert_eq!(fs::read(at.path("out/stream")).expect("read"), content(2000, 3));
}

#[test]
fn second_receiver_with_the_same_output_directory_is_refused() {
    let (at, object, _, out) = prepared();
    let first = open(&out, &object).expect("opened");
    assert!(matches!(open(&out, &object), Err(ObjectError::Busy { path }) if path == out));
    open(&at.path("other"), &object).expect("another directory is free");
    drop(first);
    open(&out, &object).expect("free again");
}

#[test]
fn finish_requires_all_blocks_and_the_right_root() {
    let (_at, object, blocks, out) = prepared();
    let right = root(object.geometry(), &blocks);
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..20]);
    let missing = blocks.len() as u32 - 20;
    assert!(
        matches!(store.finish(&right, Durability::Fast), Err(ObjectError::Incomplete { missing: m, .. }) if m == missing)
    );
    let mut store = open(&out, &object).expect("opened again");
    put_all(&mut store, &blocks);
    let wrong = hash_of(b"another root");
    assert!(
        matches!(store.finish(&wrong, Durability::Fast), Err(ObjectError::Root { found, .. }) if found == right)
    );
    assert!(!out.join("tree").exists());
}

#[test]
fn block_with_other_content_or_wrong_length_is_refused() {
    let (_at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..5]);
    let other = content(CAPACITY, 99);
    assert!(matches!(store.put(4, &other, hash_of(&other)), Err(ObjectError::Conflict { index: 4 })));
    let short = store.put(5, &other[1..], hash_of(&other[1..]));
    assert!(matches!(short, Err(ObjectError::BlockLength { index: 5, expected: 220, found: 219 })));
    let beyond = store.put(blocks.len() as u32, &other, hash_of(&other));
    assert!(matches!(beyond, Err(ObjectError::NoSuchBlock { .. })));
}

/// Returns content that differs from the source's content, and the hash of the returned content.
fn wrong(blocks: &[(Vec<u8>, Hash)], index: usize) -> (Vec<u8>, Hash) {
    let mut data = blocks[index].0.clone();
    data[17] ^= 1;
    let hash = hash_of(&data);
    (data, hash)
}

#[test]
fn distrust_drops_only_the_blocks_of_an_earlier_receiver() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..12]);
    let (data, hash) = wrong(&blocks, 12);
    store.put(12, &data, hash).expect("it cannot know");
    drop(store);
    let mut store = open(&out, &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), 13);
    for (index, (data, hash)) in (0..).zip(&blocks).skip(13) {
        store.put(index, data, *hash).expect("stored");
    }
    let right = root(object.geometry(), &blocks);
    assert!(matches!(store.check(&right), Err(ObjectError::Root { .. })));
    assert_eq!(store.distrust().expect("given up"), 13 * CAPACITY as u64);
    assert_eq!(store.missing().first(), Some(&(0..13)), "the manifest's block has content as well");
    drop(store);
    let store = open(&out, &object).expect("opened again");
    assert!((0..13).all(|index| !store.has(index)), "the next receiver does not take it up again");
    finish(&at, store, &object, &blocks);
}

#[test]
fn wrong_file_content_in_the_last_manifest_block_is_replaced() {
    let (at, object, blocks, out) = prepared();
    let border = object.geometry().manifest_blocks() as usize - 1;
    let mut spoiled = blocks.clone();
    *spoiled[border].0.last_mut().expect("a block has bytes") ^= 1;
    spoiled[border].1 = hash_of(&spoiled[border].0);
    let last = blocks.len() - 1;
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &spoiled[..last]);
    drop(store);
    let mut store = open(&out, &object).expect("opened again");
    let (data, hash) = &blocks[last];
    store.put(last as u32, data, *hash).expect("stored");
    store.distrust().expect("given up");
    assert!(!store.has(border as u32) && store.manifest().is_some());
    finish(&at, store, &object, &blocks);
}

#[test]
fn distrust_drops_all_blocks_without_an_earlier_receiver() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    for index in 0..blocks.len() {
        let (data, hash) = if index == 9 { wrong(&blocks, 9) } else { blocks[index].clone() };
        store.put(index as u32, &data, hash).expect("it cannot know");
    }
    store.distrust().expect("given up");
    assert_eq!((store.blocks_stored(), store.verified_bytes()), (0, 0));
    drop(store);
    let store = open(&out, &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), 0);
    finish(&at, store, &object, &blocks);
}

#[test]
fn manifest_block_that_contradicts_the_transfer_id_is_discarded() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    let (data, hash) = wrong(&blocks, 0);
    let stored = store.put(0, &data, hash);
    assert!(matches!(stored, Err(ObjectError::OtherManifest { .. })), "{stored:?}");
    drop(store);
    let store = open(&out, &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), 0);
    assert!(store.spoiled_bytes() > 0);
    finish(&at, store, &object, &blocks);
}

#[test]
fn published_transfer_with_a_wrong_journal_is_received_again() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    for index in 0..blocks.len() {
        let (data, hash) = if index == 9 { wrong(&blocks, 9) } else { blocks[index].clone() };
        store.put(index as u32, &data, hash).expect("it cannot know");
    }
    drop(store);
    fs::write(state(&out, &object).join("published"), b"").expect("written");
    let mut store = open(&out, &object).expect("opened again");
    assert!(store.is_complete());
    store.distrust().expect("given up");
    assert_eq!(store.blocks_stored(), 0);
    finish(&at, store, &object, &blocks);
}

#[test]
fn withdrawn_block_is_missing_until_received_again() {
    let (at, object, blocks, out) = prepared();
    let mut store = open(&out, &object).expect("opened");
    put_all(&mut store, &blocks[..20]);
    store.withdraw(7).expect("noted");
    store.withdraw(30).expect("it was not there");
    let missing = [7..8, 20..blocks.len() as u32];
    assert_eq!((store.missing(), store.verified_bytes()), (missing.to_vec(), 19 * CAPACITY as u64));
    drop(store);
    let mut store = open(&out, &object).expect("opened again");
    assert_eq!((store.missing(), store.spoiled_bytes()), (missing.to_vec(), 0));
    store.put(7, &blocks[7].0, blocks[7].1).expect("stored");
    drop(store);
    let store = open(&out, &object).expect("opened again");
    assert!(store.has(7));
    finish(&at, store, &object, &blocks);
}
