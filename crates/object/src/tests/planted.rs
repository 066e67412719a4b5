//! Files that another program has placed in the state directory of a receiver, and trees that take more space than allowed.

use super::*;
use crate::Admission;

/// Creates a store with all blocks of a tree except the last block. Returns the object stream and the blocks of the tree.
fn begun(at: &Scratch) -> (ObjectStream, Vec<(Vec<u8>, Hash)>) {
    at.file("tree/a", &content(1000, 1));
    at.file("tree/b", &content(1000, 2));
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks[..blocks.len() - 1]);
    (object, blocks)
}

fn state(at: &Scratch) -> PathBuf {
    let mut states = fs::read_dir(at.path("out/.faircast")).expect("listed");
    states.next().expect("one transfer").expect("listed").path()
}

/// Opens the store again, stores the missing blocks, and checks the received tree.
fn go_on(at: &Scratch, object: &ObjectStream, blocks: &[(Vec<u8>, Hash)]) {
    let mut store = open(&at.path("out"), object).expect("opened again");
    put_all(&mut store, blocks);
    store.finish(&root(object.geometry(), blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
}

#[test]
fn part_file_with_a_hard_link_is_not_written() {
    let at = Scratch::new();
    let (object, blocks) = begun(&at);
    let other = at.file("other", b"of somebody else");
    for part in fs::read_dir(state(&at).join("parts")).expect("listed") {
        let part = part.expect("listed").path();
        fs::remove_file(&part).expect("removed");
        fs::hard_link(&other, &part).expect("linked");
    }
    go_on(&at, &object, &blocks);
    assert_eq!(fs::read(&other).expect("it is there"), b"of somebody else");
}

#[test]
fn hard_link_made_to_a_part_file_during_a_transfer_is_an_error() {
    let at = Scratch::new();
    let (object, blocks) = begun(&at);
    let mut store = open(&at.path("out"), &object).expect("opened again");
    let part =
        fs::read_dir(state(&at).join("parts")).expect("listed").next().expect("one").expect("listed").path();
    fs::hard_link(&part, at.path("other")).expect("linked");
    let last = blocks.len() as u32 - 1;
    let (data, hash) = &blocks[last as usize];
    let put = store.put(last, data, *hash);
    let finished =
        put.and_then(|_| store.finish(&root(object.geometry(), &blocks), Durability::Fast).map(|_| ()));
    let error = finished.expect_err("the part has another name");
    assert!(matches!(error, ObjectError::InTheWay { obstacle: Obstacle::NotOwn, .. }), "{error}");
}

#[test]
fn journal_that_is_no_file_or_has_a_hard_link_is_replaced() {
    for kind in ["link", "pipe"] {
        let at = Scratch::new();
        let (object, blocks) = begun(&at);
        let journal = state(&at).join("journal");
        let other = at.file("other", b"of somebody else");
        fs::remove_file(&journal).expect("removed");
        match kind {
            "link" => fs::hard_link(&other, &journal).expect("linked"),
            _ => rustix::fs::mknodat(
                rustix::fs::CWD,
                &journal,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RWXU,
                0,
            )
            .expect("made"),
        }
        go_on(&at, &object, &blocks);
        assert_eq!(fs::read(&other).expect("it is there"), b"of somebody else");
    }
}

#[test]
fn directories_names_and_attributes_count_towards_the_quota() {
    let at = Scratch::new();
    for n in 0..100 {
        fs::create_dir_all(at.path(&format!("tree/{n}"))).expect("created");
    }
    at.file("tree/file", &content(100, 1));
    let mut object = object(&at.path("tree"));
    let footprint = object.manifest().footprint();
    assert!((101 * 4096..103 * 4096 + 1000).contains(&footprint), "{footprint}");
    let blocks = blocks(&mut object);
    let receive = |most: u64| {
        let out = at.path(&most.to_string());
        let admission = Admission { most: Some(most), ..super::overwrite::session(1) };
        let mut store = Store::open(&out, object.transfer(), object.geometry(), Some(admission))?;
        for (index, (data, hash)) in (0..).zip(&blocks) {
            store.put(index, data, *hash)?;
        }
        store.finish(&root(object.geometry(), &blocks), Durability::Fast)
    };
    assert!(matches!(receive(footprint - 1), Err(ObjectError::TooManyEntries { entries: 102, .. })));
    assert!(!at.path(&(footprint - 1).to_string()).join("tree").exists());
    receive(footprint).expect("it is allowed");
}

#[test]
fn hard_links_are_restored_after_an_interrupted_publication() {
    let at = Scratch::new();
    at.file("tree/a", &content(1000, 1));
    fs::hard_link(at.path("tree/a"), at.path("tree/b")).expect("linked");
    fs::hard_link(at.path("tree/a"), at.path("tree/c")).expect("linked");
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks);
    drop(store);
    // Creates the state after a power failure that occurred after the second of three names was made.
    let (state, out) = (state(&at), at.path("out/tree"));
    fs::write(state.join("finishing"), b"").expect("marked");
    fs::create_dir(&out).expect("created");
    fs::rename(state.join("parts/1"), out.join("a")).expect("renamed");
    fs::hard_link(out.join("a"), out.join("b")).expect("linked");
    fs::hard_link(out.join("a"), state.join("parts/3")).expect("linked");
    let store = open(&at.path("out"), &object).expect("opened again");
    assert_eq!(store.resumed_blocks(), blocks.len() as u32, "nothing travels again");
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    let number = |name: &str| out.join(name).metadata().expect("it is there").ino();
    assert_eq!((number("b"), number("c")), (number("a"), number("a")));
    assert_eq!(picture(&at.path("tree")), picture(&out));
}
