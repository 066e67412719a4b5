//! Operations that the system refuses. These tests need privileges, and print a message if they lack them.

use super::*;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A small filesystem in memory.
struct Small(Scratch);

impl Small {
    fn mount(options: &str) -> Option<Small> {
        let at = Scratch::new();
        let mount = ["-t", "tmpfs", "-o", options, "faircast-test"];
        let mounted =
            Command::new("mount").args(mount).arg(&at.0).status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: mounting a small filesystem takes root");
        }
        mounted.then_some(Small(at))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.0.0).status().ok();
    }
}

#[test]
fn disk_that_is_too_small_is_reported_at_the_start() {
    let Some(small) = Small::mount("size=1m") else { return };
    let at = Scratch::new();
    let source = at.file("file", &content(2 << 20, 1));
    let mut object = ObjectStream::open(&[source], 1432, 64).expect("read");
    let blocks = blocks(&mut object);
    let mut store = open(&small.0.path("out"), &object).expect("opened");
    match store.put(0, &blocks[0].0, blocks[0].1) {
        Err(ObjectError::DiskFull { path, needed, available }) => {
            assert_eq!((path, needed), (small.0.path("out"), 2 << 20));
            assert!(available.is_some_and(|bytes| bytes < 1 << 20), "{available:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn error_distinguishes_missing_inodes_from_missing_bytes() {
    let Some(small) = Small::mount("size=8m,nr_inodes=12") else { return };
    let at = Scratch::new();
    for n in 0..10 {
        at.file(&format!("tree/{n}"), &content(500, n));
    }
    let mut object = ObjectStream::open(&[at.path("tree")], 1432, 16).expect("read");
    let blocks = blocks(&mut object);
    let mut store = open(&small.0.path("out"), &object).expect("opened");
    let full = (0..).zip(&blocks).try_for_each(|(n, (data, hash))| store.put(n, data, *hash).map(|_| ()));
    let error = full.expect_err("there are too few inodes").to_string();
    assert!(error.contains("inodes or a quota are used up"), "{error}");
    assert!(!error.contains("available"), "{error}");
}

#[test]
fn full_disk_is_reported_and_the_transfer_resumes() {
    let Some(small) = Small::mount("size=1m") else { return };
    let at = Scratch::new();
    // Small files are not preallocated.
    for n in 0..10 {
        at.file(&format!("tree/{n}"), &content(50_000, n));
    }
    let mut object = ObjectStream::open(&[at.path("tree")], 1432, 16).expect("read");
    let blocks = blocks(&mut object);
    let mut store = open(&small.0.path("out"), &object).expect("opened");
    store.put(0, &blocks[0].0, blocks[0].1).expect("the manifest fits");
    let filler = small.0.file("filler", &content(700_000, 0));
    let full =
        (1..).zip(&blocks[1..]).try_for_each(|(n, (data, hash))| store.put(n, data, *hash).map(|_| ()));
    assert!(matches!(full, Err(ObjectError::DiskFull { needed, .. }) if needed > 100_000), "{full:?}");
    drop(store);
    fs::remove_file(filler).expect("removed");
    // The lock may still be held by a child process that another test has forked, until the child executes its program.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let again = loop {
        match open(&small.0.path("out"), &object) {
            Err(ObjectError::Busy { .. }) if std::time::Instant::now() < end => std::thread::yield_now(),
            other => break other,
        }
    };
    let mut store = again.expect("opened again");
    assert!(store.resumed_blocks() > 5);
    put_all(&mut store, &blocks);
    store.finish(&root(object.geometry(), &blocks), Durability::Fast).expect("it arrives");
    assert_eq!(picture(&at.path("tree")), picture(&small.0.path("out/tree")));
}

#[test]
fn read_only_filesystem_is_reported() {
    let Some(small) = Small::mount("size=1m,ro") else { return };
    let at = Scratch::new();
    let source = at.file("file", b"1");
    let refused = open(&small.0.path("out"), &object(&source));
    assert!(matches!(refused, Err(ObjectError::ReadOnly { path }) if path == small.0.path("out")));
}

/// Environment variable that is set while this test binary runs one of its tests again as user nobody.
const AS_NOBODY: &str = "FAIRCAST_TEST_AS_NOBODY";

fn again_as_ordinary_user(test: &str) {
    let exe = std::env::current_exe().expect("this test runs");
    let own = Scratch::new();
    fs::set_permissions(&own.0, fs::Permissions::from_mode(0o777)).expect("set");
    let copy = own.path("tests");
    fs::copy(exe, &copy).expect("copied");
    let name = format!("{}::{test}", module_path!().split_once("::").expect("it has a crate").1);
    let mut again = Command::new(&copy);
    again
        .args(["--exact", &name, "--nocapture"])
        .env(AS_NOBODY, "1")
        .env("TMPDIR", &own.0)
        .uid(65534)
        .gid(65534);
    match again.output() {
        Ok(output) => {
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
            assert!(printed.contains("1 passed"), "{name} ran: {printed}");
        }
        Err(e) => eprintln!("skipped: cannot run as nobody: {e}"),
    }
}

#[test]
fn missing_permissions_are_named() {
    if is_root() {
        return again_as_ordinary_user("missing_permissions_are_named");
    }
    let at = Scratch::new();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("mode set");
    let source = at.file("source/file", b"1");
    let readable = object(&source);
    let other = at.file("source/other", b"2");
    mode(&source, 0);
    // All readable files are sent. Unreadable files are reported with the reason.
    let rest = object(&at.path("source"));
    let names: Vec<_> = rest.manifest().entries().iter().map(Entry::name).collect();
    assert_eq!(names, ["source", "source/other"]);
    let [unread] = rest.left_out() else { panic!("{:?}", rest.left_out()) };
    assert_eq!(unread.path, source.display().to_string());
    assert!(unread.reason.starts_with("no permission to read"), "{unread:?}");
    let strict = Reading { unreadable: Unreadable::Refuse, ..Reading::default() };
    for (path, reading) in [(at.path("source"), strict), (source.clone(), Reading::default())] {
        let refused = ObjectStream::open_with(&[path], &reading, T, K);
        assert!(matches!(refused, Err(ObjectError::Denied { path, .. }) if path == source));
    }
    // A directory that cannot be listed is left out; its siblings are sent.
    fs::create_dir(at.path("source/closed")).expect("created");
    mode(&at.path("source/closed"), 0);
    assert_eq!(object(&at.path("source")).left_out().len(), 2);
    assert!(other.exists());
    fs::create_dir(at.path("out")).expect("created");
    mode(&at.path("out"), 0o555);
    let refused = open(&at.path("out"), &readable);
    assert!(matches!(refused, Err(ObjectError::Denied { path, .. }) if path == at.path("out/.faircast")));
}

#[test]
fn ordinary_user_can_publish_and_replace_read_only_entries() {
    if is_root() {
        return again_as_ordinary_user("ordinary_user_can_publish_and_replace_read_only_entries");
    }
    let at = Scratch::new();
    at.file("tree/dir/file", &content(1000, 1));
    symlink("file", at.path("tree/dir/link")).expect("linked");
    for (name, mode) in [("tree/dir/file", 0o400), ("tree/dir", 0o555), ("tree", 0o500)] {
        fs::set_permissions(at.path(name), fs::Permissions::from_mode(mode)).expect("mode set");
    }
    for _ in 0..2 {
        transfer(&at.path("tree"), &at.path("out")).expect("it arrives");
        assert_eq!(picture(&at.path("tree")), picture(&at.path("out/tree")));
    }
}
