//! Owners, special bits, attributes, hard links, names that are not text, and unreadable files.

use super::manifest::fuzz;
use super::*;
use crate::metadata::{ACCESS_ACL, MAX_ATTRIBUTE_SETS, MAX_NAMES, MAX_OWNERS, MAX_SET, MAX_VALUE};
use proptest::prelude::*;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

fn entry(path: &str, kind: Kind) -> Entry {
    Entry::new(path, kind, 0o644, 1)
}

fn file(path: &str) -> Entry {
    entry(path, Kind::File { size: 1 })
}

fn owner(uid: u32, gid: u32) -> Arc<Owner> {
    Arc::new(Owner { uid, gid, user: String::new(), group: String::new() })
}

fn set(name: &str, value: &[u8]) -> Arc<Attributes> {
    Arc::new(Attributes::new(vec![(name.into(), value.into())]).expect("it is sound"))
}

/// Sends `source` into `out`. The source selects the metadata `sent`, and the receiver the metadata `wanted`.
fn transfer_with(source: &Path, out: &Path, sent: &Preserve, wanted: &Preserve) -> Finished {
    let reading = Reading { preserve: sent.clone(), ..Reading::default() };
    let mut object = ObjectStream::open_with(&[source.to_path_buf()], &reading, T, K).expect("readable");
    let blocks = blocks(&mut object);
    let mut store = open(out, &object).expect("opened").preserving(wanted.clone(), OwnersBy::Name);
    put_all(&mut store, &blocks);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives")
}

/// Receives an object with this manifest. The content of each file is zeros.
fn receive_forged(out: &Path, manifest: &Manifest, wanted: Preserve) -> Finished {
    let mut bytes = manifest.encode();
    let manifest_len = bytes.len() as u32;
    bytes.resize(bytes.len() + manifest.content_len() as usize, 0);
    let stream_len = Some(bytes.len() as u64);
    let geometry = Geometry { stream_len, manifest_len, symbol_size: T, symbols_per_block: K };
    let blocks: Vec<_> = bytes.chunks(CAPACITY).map(|data| (data.to_vec(), hash_of(data))).collect();
    let transfer = TransferId::of(&bytes[..manifest_len as usize], &geometry);
    let mut store =
        Store::open(out, transfer, geometry, None).expect("opened").preserving(wanted, OwnersBy::Number);
    put_all(&mut store, &blocks);
    store.finish(&root(geometry, &blocks), Durability::Fast).expect("it arrives")
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("it is there").mode() & 0o7777
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1000];
    let len = rustix::fs::lgetxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path, name, value, rustix::fs::XattrFlags::empty())
        .expect("the filesystem has them");
}

/// Returns an access control list with entries for the owner, user 12345, the group, the mask, and others.
fn acl() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 12345), (4, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(permissions.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

#[test]
fn owners_and_attributes_are_encoded_as_the_expected_bytes() {
    let sent = Owner { uid: 300, gid: 5, user: "ann".into(), group: String::new() };
    let attributes = Some(set("user.a", b"v"));
    let entries = vec![
        Entry { owner: Some(Arc::new(sent)), attributes: attributes.clone(), mode: 0o4755, ..file("a") },
        Entry::new("b", Kind::HardLink { to: 0 }, 0, 0),
        Entry { attributes, path: OsStr::from_bytes(b"c\xff").into(), ..file("") },
    ];
    let manifest = Manifest::new(entries).expect("it is sound");
    let expected: &[u8] = &[
        2, 3, // version, entries
        0, 1, b'a', 0, 0xed, 0x13, 2, 1, // mode 0o4755, mtime 1, size 1
        1, 0xac, 2, 5, 3, b'a', b'n', b'n', 0, // owner 1 is new: 300, 5, "ann", ""
        1, 1, 6, b'u', b's', b'e', b'r', b'.', b'a', 1, b'v', // set 1 is new
        0, 1, b'b', 4, 0, 0, 0, 0, 0, // one more name of entry 0
        0, 2, b'c', 0xff, 0, 0xa4, 3, 2, 1, 0, 1, // no owner, set 1
    ];
    assert_eq!(manifest.encode(), expected);
    assert_eq!(Manifest::decode(expected), Ok(manifest));
    for have in 0..expected.len() {
        assert!(Manifest::decode(&expected[..have]).is_err(), "{have} bytes");
    }
}

#[test]
fn version_2_is_refused_for_a_manifest_that_does_not_need_it() {
    let manifest = Manifest::new(vec![file("a")]).expect("it is sound");
    let mut bytes = manifest.encode();
    assert_eq!(bytes[0], 1);
    bytes[0] = 2;
    bytes.extend([0, 0]); // no owner, no attributes
    assert_eq!(Manifest::decode(&bytes), Err(ManifestError::Unneeded(2)));
    let not_text = [1, 1, 0, 1, 0xff, 1, 0, 0];
    assert_eq!(Manifest::decode(&not_text), Err(ManifestError::NotUtf8 { entry: 0 }));
}

#[test]
fn hard_link_may_refer_only_to_an_earlier_file_of_its_manifest() {
    let link = |to| Entry::new("m", Kind::HardLink { to }, 0, 0);
    let refused = |entries| assert_eq!(Manifest::new(entries), Err(ManifestError::HardLink { entry: 1 }));
    assert!(Manifest::new(vec![file("a"), link(0)]).is_ok());
    refused(vec![entry("a", Kind::Dir), link(0)]);
    refused(vec![entry("a", Kind::Symlink { target: "/etc/shadow".into() }), link(0)]);
    refused(vec![file("a"), link(1)]);
    refused(vec![file("a"), link(2), file("z")]);
    refused(vec![file("a"), link(u32::MAX)]);
    refused(vec![file("a"), Entry { mode: 0o4755, ..link(0) }]);
    refused(vec![file("a"), Entry { owner: Some(owner(0, 0)), ..link(0) }]);
    let twice = vec![file("a"), link(0), Entry { path: "n".into(), ..link(1) }];
    assert_eq!(Manifest::new(twice), Err(ManifestError::HardLink { entry: 2 }));
}

#[test]
fn manifest_with_invalid_owners_or_attributes_is_refused() {
    let refused =
        |e: Entry, why| assert_eq!(Manifest::new(vec![e]), Err(ManifestError::Metadata { entry: 0, why }));
    refused(Entry { owner: Some(owner(u32::MAX, 0)), ..file("a") }, MetadataError::NoId);
    refused(Entry { owner: Some(owner(0, u32::MAX)), ..file("a") }, MetadataError::NoId);
    let named = |user: &str| Arc::new(Owner { user: user.into(), ..(*owner(1, 1)).clone() });
    for name in ["a:b", "a/b", "a\nb", &"x".repeat(256)] {
        refused(Entry { owner: Some(named(name)), ..file("a") }, MetadataError::OwnerName);
    }
    let new = |name: &str, value: &[u8]| Attributes::new(vec![(name.into(), value.into())]);
    for name in
        ["user.", "system.nfs4_acl", "os2.x", "", "user", "user.a\0b", &format!("user.{}", "x".repeat(251))]
    {
        assert_eq!(new(name, b""), Err(MetadataError::AttributeName), "{name:?}");
    }
    assert_eq!(new(ACCESS_ACL, b"anything"), Err(MetadataError::Acl));
    assert_eq!(new(ACCESS_ACL, &acl()[..acl().len() - 1]), Err(MetadataError::Acl));
    assert!(new(ACCESS_ACL, &acl()).is_ok());
    assert_eq!(Attributes::new(Vec::new()), Err(MetadataError::Count(0)));
    let pair = |name: &str| (format!("user.{name}"), Vec::new());
    assert_eq!(Attributes::new(vec![pair("b"), pair("a")]), Err(MetadataError::AttributeName));
    assert_eq!(Attributes::new(vec![pair("a"), pair("a")]), Err(MetadataError::AttributeName));
}

#[test]
fn size_and_number_of_attributes_and_owners_are_bounded() {
    let value = |len| Attributes::new(vec![("user.a".into(), vec![0; len])]);
    assert!(value(MAX_VALUE).is_ok());
    assert_eq!(value(MAX_VALUE + 1), Err(MetadataError::TooLong));
    let many = |count: usize, len| {
        Attributes::new((0..count).map(|n| (format!("user.{n:04}"), vec![0; len])).collect())
    };
    assert!(many(MAX_NAMES, 1).is_ok());
    assert_eq!(many(MAX_NAMES + 1, 1), Err(MetadataError::Count(MAX_NAMES as u64 + 1)));
    assert_eq!(many(3, MAX_SET / 3), Err(MetadataError::TooLong));
    // Many files share one set of attributes, which takes few bytes in the manifest and many bytes on the disk.
    let large = Arc::new(value(MAX_VALUE).expect("it is sound"));
    let with_it = |n| Entry { attributes: Some(Arc::clone(&large)), ..file(&format!("{n:05}")) };
    assert!(Manifest::new((0..4000).map(with_it).collect()).is_ok());
    assert_eq!(Manifest::new((0..4100).map(with_it).collect()), Err(ManifestError::TooManyAttributes));
    let owners = |count: u32| {
        let all = (0..count).map(|n| Entry { owner: Some(owner(n, 0)), ..file(&format!("{n:05}")) });
        Manifest::decode(&Manifest::new(all.collect()).expect("it is sound").encode()).err()
    };
    let too_many = |entry, most| Some(ManifestError::Metadata { entry, why: MetadataError::TooMany(most) });
    assert_eq!(owners(MAX_OWNERS as u32), None);
    assert_eq!(owners(MAX_OWNERS as u32 + 1), too_many(MAX_OWNERS, MAX_OWNERS));
    let sets = (0..=MAX_ATTRIBUTE_SETS as u32).map(|n: u32| Entry {
        attributes: Some(set("user.n", &n.to_le_bytes())),
        ..file(&format!("{n:05}"))
    });
    let bytes = Manifest::new(sets.collect()).expect("it is sound").encode();
    assert_eq!(Manifest::decode(&bytes).err(), too_many(MAX_ATTRIBUTE_SETS, MAX_ATTRIBUTE_SETS));
}

#[test]
fn hard_links_are_restored_and_their_content_is_sent_once() {
    let at = Scratch::new();
    let first = at.file("tree/b", &content(3000, 1));
    fs::hard_link(&first, at.path("tree/c")).expect("linked");
    fs::create_dir(at.path("tree/a")).expect("created");
    fs::hard_link(&first, at.path("tree/a/d")).expect("linked");
    let object = object(&at.path("tree"));
    assert_eq!(object.manifest().content_len(), 3000);
    // An existing object under one of these names is replaced, even if it is a hard link to another file.
    let victim = at.file("victim", b"old");
    fs::create_dir_all(at.path("out/tree")).expect("created");
    fs::hard_link(&victim, at.path("out/tree/c")).expect("linked");
    for again in 0..2 {
        let finished = transfer(&at.path("tree"), &at.path("out")).expect("it arrives");
        assert_eq!(
            (finished.entries.files, finished.bytes, finished.warnings),
            (3, 3000, vec![]),
            "time {again}"
        );
        let number = |name: &str| at.path(name).metadata().expect("it is there").ino();
        let all = ["out/tree/a/d", "out/tree/b", "out/tree/c"].map(number);
        assert!(all[0] == all[1] && all[1] == all[2], "{all:?}");
        assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
        assert!(!at.path("out/.faircast").exists());
    }
    assert_eq!(fs::read(victim).expect("read"), b"old");
}

#[test]
fn names_that_are_not_utf8_arrive_unchanged() {
    let at = Scratch::new();
    let odd = |name: &[u8]| OsStr::from_bytes(name).to_os_string();
    fs::create_dir_all(at.path("tree").join(odd(b"dir\xff"))).expect("created");
    fs::write(at.path("tree").join(odd(b"dir\xff/\xc3(")), b"content").expect("written");
    symlink(odd(b"dir\xff/\xc3("), at.path("tree").join(odd(b"\xfe"))).expect("linked");
    transfer(&at.path("tree"), &at.path("out")).expect("it arrives");
    assert_eq!(fs::read(at.path("out/tree").join(odd(b"\xfe"))).expect("through the link"), b"content");
    // The name of the sent tree itself is not UTF-8.
    let top = at.path("").join(odd(b"top\xff"));
    fs::create_dir(&top).expect("created");
    fs::write(top.join("file"), b"1").expect("written");
    transfer(&top, &at.path("out")).expect("it arrives");
    assert_eq!(fs::read(at.path("out").join(odd(b"top\xff")).join("file")).expect("it is there"), b"1");
}

#[test]
fn unreadable_entries_are_left_out_and_named_unless_forbidden() {
    let at = Scratch::new();
    at.file("tree/good", b"1");
    let deep = at.path("tree").join("d/".repeat(257));
    fs::create_dir_all(&deep).expect("created");
    let paths = [at.path("tree"), at.path("none")];
    let object = ObjectStream::open(&paths, T, K).expect("something is left");
    let reasons: Vec<_> = object.left_out().iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(reasons, ["no such file or directory", "the path is below more than 256 directories"]);
    assert_eq!(object.left_out()[0].path, at.path("none").display().to_string());
    assert!(object.manifest().entries().iter().any(|entry| entry.path == "tree/good"));
    let strict = Reading { unreadable: Unreadable::Refuse, ..Reading::default() };
    let refused = ObjectStream::open_with(&paths, &strict, T, K);
    assert!(matches!(refused, Err(ObjectError::Name { why: PathError::TooDeep, .. })), "{refused:?}");
    assert!(ObjectStream::open_with(&[at.path("tree/good")], &strict, T, K).is_ok());
}

#[test]
fn attributes_arrive_only_if_source_and_receiver_select_them() {
    let at = Scratch::new();
    let source = at.file("tree/file", b"1");
    set_attribute(&source, "user.note", b"kept");
    set_attribute(&at.path("tree"), "user.dir", b"too");
    set_attribute(&source, ACCESS_ACL, &acl());
    let (none, all) = (Preserve::nothing(), Preserve::nothing().and(Aspect::Xattrs).and(Aspect::Acls));
    for (sent, wanted, out) in [(&none, &all, "a"), (&all, &none, "b")] {
        transfer_with(&at.path("tree"), &at.path(out), sent, wanted);
        assert_eq!(attribute(&at.path(out).join("tree/file"), "user.note"), None);
        assert_eq!(attribute(&at.path(out).join("tree/file"), ACCESS_ACL), None);
    }
    let finished = transfer_with(&at.path("tree"), &at.path("c"), &all, &all);
    assert_eq!(finished.warnings, Vec::<String>::new());
    let file = at.path("c/tree/file");
    assert_eq!(attribute(&file, "user.note").as_deref(), Some(&b"kept"[..]));
    assert_eq!(attribute(&at.path("c/tree"), "user.dir").as_deref(), Some(&b"too"[..]));
    assert_eq!(attribute(&file, ACCESS_ACL), Some(acl()));
    assert_eq!((mode(&file), mtimes(&file)), (mode(&source), mtimes(&source)));
    transfer_with(&at.path("tree"), &at.path("d"), &all, &Preserve::nothing().and(Aspect::Xattrs));
    assert_eq!(attribute(&at.path("d/tree/file"), "user.note").as_deref(), Some(&b"kept"[..]));
    assert_eq!(attribute(&at.path("d/tree/file"), ACCESS_ACL), None);
}

fn mtimes(path: &Path) -> (i64, i64) {
    let meta = path.metadata().expect("it is there");
    (meta.mtime(), meta.mtime_nsec())
}

#[test]
fn hostile_manifest_sets_no_special_bits_owners_or_attributes() {
    let at = Scratch::new();
    let me = rustix::process::geteuid().as_raw();
    let (mine, others) = (owner(me, rustix::process::getegid().as_raw()), owner(me + 1, 54321));
    let attributes = Some(set("user.x", b"1"));
    let all = vec![
        Entry { mode: 0o7755, owner: Some(Arc::clone(&mine)), attributes, ..file("mine") },
        Entry { mode: 0o7755, owner: Some(Arc::clone(&others)), ..file("others") },
        Entry { mode: 0o7755, ..file("nobody's") },
        Entry { mode: 0o1777, ..entry("dir", Kind::Dir) },
        entry("link", Kind::Symlink { target: "/etc".into() }),
    ];
    let manifest = Manifest::new(all).expect("it is sound");
    let finished = receive_forged(&at.path("a"), &manifest, Preserve::nothing());
    for name in ["mine", "others", "nobody's"] {
        let meta = at.path("a").join(name).metadata().expect("it is there");
        assert_eq!((meta.mode() & 0o7777, meta.uid()), (0o755, me), "{name}");
    }
    assert_eq!((mode(&at.path("a/dir")), attribute(&at.path("a/mine"), "user.x")), (0o777, None));
    assert_eq!((finished.skipped.len(), at.path("a/link").exists()), (1, false));
    assert!(finished.warnings.iter().any(|line| line.contains("preserve setid")), "{:?}", finished.warnings);
    // The receiver applies special bits but no owners: a file whose owner differs from the source's does not get the bits.
    let finished = receive_forged(&at.path("b"), &manifest, Preserve::nothing().and(Aspect::Setid));
    assert_eq!(
        ["mine", "others", "nobody's"].map(|name| mode(&at.path("b").join(name))),
        [0o7755, 0o1755, 0o1755]
    );
    assert_eq!(mode(&at.path("b/dir")), 0o1777);
    assert!(
        finished.warnings.iter().any(|line| line.contains("the file has another owner")),
        "{:?}",
        finished.warnings
    );
    // Links that lead out of the output directory are made if the receiver wants them, but no file is written through such a
    // link.
    receive_forged(&at.path("c"), &manifest, Preserve::nothing().and(Aspect::Links));
    assert_eq!(fs::read_link(at.path("c/link")).expect("a link"), Path::new("/etc"));
    let through = Manifest::new(vec![entry("link", Kind::Dir), file("link/file")]).expect("it is sound");
    let bytes = through.encode();
    let len = bytes.len() as u32;
    let geometry = Geometry {
        stream_len: Some(u64::from(len) + 1),
        manifest_len: len,
        symbol_size: T,
        symbols_per_block: K,
    };
    let mut store =
        Store::open(&at.path("c"), TransferId::of(&bytes, &geometry), geometry, None).expect("opened");
    let data = [&bytes[..], &[0]].concat();
    let put = store.put(0, &data, hash_of(&data));
    assert!(matches!(put, Err(ObjectError::InTheWay { obstacle: Obstacle::Symlink, .. })), "{put:?}");
}

#[test]
fn receiver_that_runs_as_root_restores_owners() {
    if !is_root() {
        eprintln!("skipped: giving files away takes root");
        return;
    }
    let at = Scratch::new();
    let all = vec![
        Entry { mode: 0o6755, owner: Some(owner(12345, 54321)), ..file("file") },
        Entry { mode: 0o2770, owner: Some(owner(12346, 54321)), ..entry("dir", Kind::Dir) },
        Entry { owner: Some(owner(12347, 54321)), ..entry("link", Kind::Symlink { target: "file".into() }) },
        Entry { attributes: Some(set("trusted.x", b"1")), ..file("trusted") },
    ];
    let manifest = Manifest::new(all).expect("it is sound");
    let finished = receive_forged(&at.path("out"), &manifest, Preserve::everything());
    assert_eq!(finished.warnings, Vec::<String>::new());
    let found = |name: &str| {
        let meta = at.path("out").join(name).symlink_metadata().expect("it is there");
        (meta.uid(), meta.gid())
    };
    assert_eq!(
        [found("file"), found("dir"), found("link")],
        [(12345, 54321), (12346, 54321), (12347, 54321)]
    );
    assert_eq!([mode(&at.path("out/file")), mode(&at.path("out/dir"))], [0o6755, 0o2770]);
    // Selecting users' attributes does not select attributes that belong to another aspect.
    receive_forged(&at.path("b"), &manifest, Preserve::nothing().and(Aspect::Xattrs));
    assert_eq!(attribute(&at.path("b/trusted"), "trusted.x"), None);
}

#[test]
fn preserve_option_round_trips_as_text() {
    assert_eq!("owner, xattrs".parse(), Ok(Preserve::nothing().and(Aspect::Owner).and(Aspect::Xattrs)));
    assert_eq!("all".parse(), Ok(Preserve::everything()));
    assert_eq!(Preserve::everything().to_string().parse(), Ok(Preserve::everything()));
    assert_eq!("owners".parse::<Preserve>(), Err(UnknownAspect("owners".into())));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn version_2_bytes_decode_to_a_manifest_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz(&[&[2][..], &bytes].concat());
    }

    #[test]
    fn changed_version_2_manifest_decodes_or_is_an_error(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let attributes = Some(set("user.a", b"value"));
        let mut bytes = Manifest::new(vec![
            Entry { owner: Some(owner(7, 8)), attributes: attributes.clone(), ..entry("dir", Kind::Dir) },
            Entry { owner: Some(owner(7, 9)), ..file("dir/file") },
            Entry::new("dir/more", Kind::HardLink { to: 1 }, 0, 0),
            Entry { owner: Some(owner(7, 8)), attributes, mode: 0o4711, ..file("last") },
        ]).expect("it is sound").encode();
        let at = at.index(bytes.len());
        bytes[at] = to;
        fuzz(&bytes);
    }

    #[test]
    fn version_2_manifest_round_trips_through_its_encoding(
        names in proptest::collection::btree_set(proptest::collection::vec(0x80u8..=0xff, 1..4), 1..20),
        owners in proptest::collection::vec(0u32..3, 20), values in proptest::collection::vec(0u8..3, 20),
        modes in proptest::collection::vec(0u32..=0o7777, 20),
    ) {
        let all = names.iter().enumerate().map(|(n, name)| {
            let path: OsString = OsStr::from_bytes(name).into();
            let owner = (owners[n] > 0).then(|| owner(owners[n], 0));
            let attributes = (values[n] > 0).then(|| set("user.v", &[values[n]]));
            Entry { owner, attributes, mode: modes[n], path, ..file("") }
        });
        let manifest = Manifest::new(all.collect()).expect("it is sound");
        prop_assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
}
