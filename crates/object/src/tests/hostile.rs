use super::manifest::{check_path, fuzz};
use super::*;
use crate::links::stays_inside;
use proptest::prelude::*;

fn entry(path: &str, kind: Kind) -> Entry {
    Entry::new(path, kind, 0o644, 1)
}

/// Returns the bytes of a manifest with these entries, valid or not.
fn forged(entries: &[(&str, u8)]) -> Vec<u8> {
    let mut bytes = vec![1, entries.len() as u8];
    for (path, kind) in entries {
        bytes.extend([0, path.len() as u8]);
        bytes.extend(path.as_bytes());
        bytes.extend([*kind, 0, 0]);
        bytes.extend(if *kind == 0 { &[0][..] } else { &[] });
    }
    bytes
}

#[test]
fn manifest_is_encoded_as_the_expected_bytes() {
    let entries = vec![
        entry("dir", Kind::Dir),
        entry("dir/file", Kind::File { size: 300 }),
        Entry { mtime: -1, ..entry("link", Kind::Symlink { target: "dir".into() }) },
    ];
    let manifest = Manifest::new(entries).expect("it is sound");
    let expected: &[u8] = &[
        1, 3, // version, entries
        0, 3, b'd', b'i', b'r', 1, 0xa4, 3, 2, // mode 0o644, mtime 1
        3, 5, b'/', b'f', b'i', b'l', b'e', 0, 0xa4, 3, 2, 0xac, 2, // size 300
        0, 4, b'l', b'i', b'n', b'k', 2, 0xa4, 3, 1, 3, b'd', b'i', b'r',
    ];
    assert_eq!(manifest.encode(), expected);
    assert_eq!(Manifest::decode(expected), Ok(manifest));
}

#[test]
fn every_truncation_of_a_manifest_is_an_error() {
    let bytes = Manifest::new(vec![
        entry("a/file", Kind::File { size: u64::MAX >> 1 }),
        Entry { mtime: i64::MIN, ..entry("a/link", Kind::Symlink { target: "x".into() }) },
    ])
    .expect("it is sound")
    .encode();
    Manifest::decode(&bytes).expect("whole, it can be read");
    for have in 0..bytes.len() {
        assert!(Manifest::decode(&bytes[..have]).is_err(), "{have} bytes");
    }
    assert_eq!(Manifest::decode(&[&bytes[..], b"x"].concat()), Err(ManifestError::Trailing(1)));
}

/// Returns the bytes of a manifest of version 3 with a file of 5,000 bytes, a small file, and this chunk table.
fn chunked(table: &[u8]) -> Vec<u8> {
    let file = |name: u8, size: &[u8]| [&[0, 1, name, 0, 0xa4, 3, 2], size, &[0, 0]].concat();
    [&[3, 2, 2][..], &file(b'a', &[0x88, 0x27]), &file(b'b', &[9]), table].concat()
}

/// A chunk of `len` bytes.
fn chunk(len: u16) -> Vec<u8> {
    [&[len as u8 | 0x80, (len >> 7) as u8][..], &7u64.to_le_bytes()].concat()
}

#[test]
fn hostile_chunk_table_is_refused() {
    let sound = chunked(&[&[12][..], &chunk(4_000), &chunk(1_000)].concat());
    let manifest = Manifest::decode(&sound).expect("it is sound");
    let mut placed = Vec::new();
    let table = manifest.chunks().expect("it has chunks");
    table.each(manifest.entries(), |chunk, entry, at| placed.push((chunk.len, entry, at)));
    assert_eq!(placed, [(4_000, 0, 0), (1_000, 0, 4_000)]);
    assert_eq!(manifest.encode(), sound);
    for have in 0..sound.len() {
        assert!(Manifest::decode(&sound[..have]).is_err(), "{have} bytes");
    }
    let refused = |table: &[&[u8]], why| assert_eq!(Manifest::decode(&chunked(&table.concat())), Err(why));
    let wrong = ManifestError::Chunk { entry: 0 };
    refused(&[&[11], &chunk(5_000)], ManifestError::ChunkSizes(11));
    refused(&[&[23], &chunk(5_000)], ManifestError::ChunkSizes(23));
    refused(&[&[12], &chunk(5_001)], wrong.clone());
    refused(&[&[12], &chunk(4_000), &chunk(1_001)], wrong.clone());
    refused(&[&[12, 0], &[0; 8]], wrong);
    refused(&[&[12], &chunk(5_000), &chunk(9)], ManifestError::Trailing(10));
    refused(&[&[14]], ManifestError::Unneeded(3));
    let largest = |size: u64| {
        let entry = entry("a", Kind::File { size });
        let mut bytes = Manifest::new(vec![entry]).expect("it is sound").encode();
        bytes.extend([0, 0, 12]);
        bytes.splice(..1, [3, 2]);
        [bytes, chunk(16_383), chunk(16_383), chunk(16_383)].concat()
    };
    assert!(Manifest::decode(&largest(3 * 16_383)).is_ok());
    assert!(matches!(Manifest::decode(&largest(u64::MAX >> 1)), Err(ManifestError::Truncated { .. })));
}

#[test]
fn unsafe_manifest_paths_are_refused() {
    for (path, why) in [
        ("", PathError::Empty),
        ("/etc/passwd", PathError::Absolute),
        ("a//b", PathError::Empty),
        ("a/", PathError::Empty),
        ("..", PathError::Dots),
        ("a/../../b", PathError::Dots),
        ("./a", PathError::Dots),
        ("a\0b", PathError::Nul),
        (".faircast", PathError::Reserved),
        (".faircast/journal", PathError::Reserved),
    ] {
        assert_eq!(
            Manifest::decode(&forged(&[(path, 0)])),
            Err(ManifestError::Path { entry: 0, why }),
            "{path:?}"
        );
    }
    assert_eq!(check_path("x".repeat(256)), Err(PathError::TooLong));
    assert_eq!(check_path("x/".repeat(2048)), Err(PathError::TooLong));
    assert_eq!(check_path("a/.faircast/..b/..."), Ok(()));
    assert_eq!(check_path("x/".repeat(256) + "x"), Ok(()));
    assert_eq!(check_path("x/".repeat(257) + "x"), Err(PathError::TooDeep));
}

/// Maximum total duration of the checks. Only an algorithm of a higher complexity class takes longer.
const LONG: std::time::Duration = std::time::Duration::from_secs(20);

#[test]
fn checking_a_hostile_manifest_takes_bounded_time() {
    let begun = std::time::Instant::now();
    // First, files at the maximum depth; second, files each of whose paths begins with the path of the preceding file.
    let deep = "d/".repeat(255);
    let many = (0..60_000).map(|n| entry(&format!("{deep}{n:06}"), Kind::File { size: 1 })).collect();
    assert!(Manifest::new(many).is_ok());
    let nested = (1..=255).map(|len| entry(&"a".repeat(len), Kind::File { size: 1 })).collect();
    assert!(Manifest::new(nested).is_ok());
    // Paths through directories that have no entry. Each directory takes only two bytes of a path.
    let apart: Vec<_> =
        (0..2000).map(|n| entry(&format!("{n:04}/{}f", "d/".repeat(200)), Kind::File { size: 1 })).collect();
    assert!(matches!(Manifest::new(apart), Err(ManifestError::TooManyDirs { .. })));
    let few: Vec<_> =
        (0..300).map(|n| entry(&format!("{n:04}/{}f", "d/".repeat(200)), Kind::File { size: 1 })).collect();
    assert!(Manifest::new(few).is_ok());
    assert!(begun.elapsed() < LONG);
}

#[test]
fn manifest_entry_below_a_file_is_refused_in_any_order() {
    let file = |path: &str| entry(path, Kind::File { size: 1 });
    let refused = |paths: &[&str], entry, above: &str| {
        let found = Manifest::new(paths.iter().map(|path| file(path)).collect());
        assert_eq!(found, Err(ManifestError::BelowFile { entry, above: above.into() }), "{paths:?}");
    };
    refused(&["a", "a!", "a!b", "a/b"], 3, "a");
    refused(&["a", "a b", "a b/c", "a/b"], 2, "a b");
    refused(&["x/a", "x/a-1", "x/a-2", "x/a.d/e", "x/a/f"], 4, "x/a");
    let fine = ["a", "a!", "a!b", "b/a", "ba", "ba!/c"];
    assert!(Manifest::new(fine.iter().map(|path| file(path)).collect()).is_ok());
}

#[test]
fn duplicates_wrong_order_and_entries_below_files_are_refused() {
    let refused = |entries: &[(&str, u8)]| Manifest::decode(&forged(entries));
    assert_eq!(refused(&[("b", 0), ("a", 0)]), Err(ManifestError::Order { entry: 1 }));
    let below = ManifestError::BelowFile { entry: 2, above: "a".into() };
    let entries = vec![
        entry("a", Kind::Symlink { target: "/".into() }),
        entry("a-b", Kind::Dir),
        entry("a/etc", Kind::File { size: 1 }),
    ];
    assert_eq!(Manifest::new(entries), Err(below));
    let twice = vec![entry("a", Kind::Dir), entry("a", Kind::Dir)];
    assert_eq!(Manifest::new(twice), Err(ManifestError::Order { entry: 1 }));
    let stream = vec![entry("a", Kind::Stream), entry("b", Kind::Dir)];
    assert_eq!(Manifest::new(stream), Err(ManifestError::StreamNotAlone { entry: 0 }));
}

#[test]
fn manifest_with_out_of_range_numbers_is_refused() {
    assert_eq!(Manifest::decode(&[1, 0xff, 0xff, 0xff, 0x7f]), Err(ManifestError::TooMany(0xfff_ffff)));
    assert_eq!(Manifest::decode(&[4]), Err(ManifestError::Version(4)));
    let sizes = |n| entry(n, Kind::File { size: u64::MAX >> 1 });
    assert_eq!(Manifest::new(vec![sizes("a"), sizes("b")]), Err(ManifestError::Sizes));
    let mode = Entry { mode: 0o14755, ..entry("suid", Kind::Dir) };
    assert_eq!(Manifest::new(vec![mode]), Err(ManifestError::Mode { entry: 0, mode: 0o14755 }));
    let special = [1, 1, 0, 1, b'x', 1, 0xed, 0x13, 0]; // 0o4755, which version 1 has not
    assert_eq!(Manifest::decode(&special), Err(ManifestError::Mode { entry: 0, mode: 0o4755 }));
}

/// Returns the blocks of an object stream with this manifest and no content.
fn forged_object(bytes: &[u8]) -> (TransferId, Geometry, Vec<(Vec<u8>, Hash)>) {
    let len = bytes.len() as u32;
    let geometry =
        Geometry { stream_len: Some(len.into()), manifest_len: len, symbol_size: T, symbols_per_block: K };
    let blocks = bytes.chunks(CAPACITY).map(|data| (data.to_vec(), hash_of(data))).collect();
    (TransferId::of(bytes, &geometry), geometry, blocks)
}

#[test]
fn forged_manifest_is_refused_by_the_receiver() {
    let at = Scratch::new();
    let (transfer, geometry, blocks) = forged_object(&forged(&[("../escaped", 0)]));
    let mut store = Store::open(&at.path("out"), transfer, geometry, None).expect("opened");
    let put = store.put(0, &blocks[0].0, blocks[0].1);
    assert!(matches!(put, Err(ObjectError::Manifest(ManifestError::Path { why: PathError::Dots, .. }))));
    let (_, geometry, blocks) = forged_object(&forged(&[("file", 0)]));
    let mut store = Store::open(&at.path("other"), transfer, geometry, None).expect("opened");
    let put = store.put(0, &blocks[0].0, blocks[0].1);
    assert!(matches!(put, Err(ObjectError::OtherManifest { .. })));
}

#[test]
fn symbolic_links_that_lead_outside_the_tree_are_recognised() {
    for (path, target) in [("l", "a/b"), ("d/l", "../a"), ("d/e/l", "../../a/./b"), ("l", "."), ("l", "...")]
    {
        assert!(stays_inside(path, target), "{path} -> {target}");
    }
    for (path, target) in [
        ("l", "/etc"),
        ("l", ".."),
        ("d/l", "../../x"),
        ("d/l", "a/../../.."),
        ("l", "a/.."),
        ("d/l", "../.faircast/x"),
    ] {
        assert!(!stays_inside(path, target), "{path} -> {target}");
    }
}

#[test]
fn link_that_leads_outside_the_tree_is_skipped_and_named() {
    let at = Scratch::new();
    at.file("tree/file", b"1");
    symlink("/etc", at.path("tree/etc")).expect("linked");
    symlink("../../..", at.path("tree/up")).expect("linked");
    let finished = transfer(&at.path("tree"), &at.path("out")).expect("it arrives");
    let names: Vec<&str> = finished.skipped.iter().map(|link| link.path.as_str()).collect();
    assert_eq!(names, ["tree/etc", "tree/up"]);
    assert!(at.path("out/tree/etc").symlink_metadata().is_err());
}

#[test]
fn existing_link_in_place_of_a_directory_is_not_followed() {
    let at = Scratch::new();
    at.file("tree/dir/file", b"new");
    at.file("victim/file", b"old");
    fs::create_dir_all(at.path("out/tree")).expect("created");
    symlink(at.path("victim"), at.path("out/tree/dir")).expect("linked");
    let early = transfer(&at.path("tree"), &at.path("out"));
    assert!(matches!(early, Err(ObjectError::InTheWay { obstacle: Obstacle::Symlink, .. })), "{early:?}");
    // Now the link is created during the transfer, after the first check for obstacles.
    fs::remove_file(at.path("out/tree/dir")).expect("removed");
    let mut object = object(&at.path("tree"));
    let blocks = blocks(&mut object);
    let mut store = open(&at.path("out"), &object).expect("opened");
    put_all(&mut store, &blocks);
    symlink(at.path("victim"), at.path("out/tree/dir")).expect("linked");
    let late = store.finish(&root(object.geometry(), &blocks), Durability::Fast);
    assert!(matches!(late, Err(ObjectError::InTheWay { obstacle: Obstacle::Symlink, .. })), "{late:?}");
    assert_eq!(fs::read(at.path("victim/file")).expect("read"), b"old");
}

#[test]
fn link_in_place_of_a_file_is_replaced_without_following_it() {
    let at = Scratch::new();
    let source = at.file("source/file", b"new");
    let victim = at.file("victim", b"old");
    fs::create_dir(at.path("out")).expect("created");
    symlink(&victim, at.path("out/file")).expect("linked");
    transfer(&source, &at.path("out")).expect("it arrives");
    assert_eq!(fs::read(&victim).expect("read"), b"old");
    assert!(at.path("out/file").symlink_metadata().expect("there").is_file());
}

#[test]
fn state_directory_that_is_a_link_is_refused() {
    let at = Scratch::new();
    let source = at.file("source/file", b"new");
    fs::create_dir_all(at.path("victim")).expect("created");
    fs::create_dir_all(at.path("out")).expect("created");
    symlink(at.path("victim"), at.path("out/.faircast")).expect("linked");
    let refused = open(&at.path("out"), &object(&source));
    assert!(matches!(refused, Err(ObjectError::InTheWay { obstacle: Obstacle::Symlink, .. })));
    assert_eq!(fs::read_dir(at.path("victim")).expect("listed").count(), 0);
}

#[test]
fn file_does_not_replace_a_directory_and_vice_versa() {
    let at = Scratch::new();
    let source = at.file("source/name", b"new");
    fs::create_dir_all(at.path("out/name")).expect("created");
    let refused = transfer(&source, &at.path("out"));
    assert!(matches!(refused, Err(ObjectError::InTheWay { obstacle: Obstacle::Directory, .. })));
    at.file("out/source", b"a file");
    let refused = transfer(&at.path("source"), &at.path("out"));
    assert!(matches!(refused, Err(ObjectError::InTheWay { obstacle: Obstacle::File, .. })));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_decode_to_a_manifest_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz(&bytes);
        fuzz(&[&[1][..], &bytes].concat());
    }

    #[test]
    fn changed_manifest_decodes_to_a_manifest_or_an_error(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let mut bytes = Manifest::new(vec![
            entry("some/dir", Kind::Dir),
            entry("some/dir/file", Kind::File { size: 1_000_000 }),
            entry("some/link", Kind::Symlink { target: "dir/file".into() }),
        ]).expect("it is sound").encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        fuzz(&bytes);
    }

    #[test]
    fn manifest_round_trips_through_its_encoding(
        names in proptest::collection::btree_set("[a-c]{1,3}(/[a-cé]{1,2}){0,3}", 0..20), mtime in any::<i64>(), size in 0u64..1 << 50,
    ) {
        let all = names.iter().map(|name| {
            let leaf = !names.iter().any(|other| other.starts_with(&format!("{name}/")));
            let kind = if leaf { Kind::File { size } } else { Kind::Dir };
            Entry { mtime, ..entry(name, kind) }
        });
        let manifest = Manifest::new(all.collect()).expect("it is sound");
        prop_assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}
