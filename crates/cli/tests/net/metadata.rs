//! Metadata of files between hosts.

use crate::kit::{Ended, Stage, must};
use faircast_testkit::{Lab, require_root};
use rustix::fs::{AtFlags, CWD, Gid, Timespec, Timestamps, Uid, XattrFlags};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

const OWNER: (u32, u32) = (12345, 54321);
const TIME: i64 = 1_234_567_890;

/// Creates a tree with every kind of file and metadata.
fn tree(top: &Path) {
    let at = |name: &str| top.join(name);
    must(fs::create_dir_all(at("dir")));
    must(fs::write(at("dir/tool"), b"tool"));
    must(fs::hard_link(at("dir/tool"), at("again")));
    must(fs::write(top.join(OsStr::from_bytes(b"odd\xff")), b"odd"));
    must(symlink("/etc/hostname", at("absolute")));
    must(symlink("dir/tool", at("relative")));
    must(fs::create_dir_all(at("deep").join("d/".repeat(257))));
    let (uid, gid) = (Some(Uid::from_raw(OWNER.0)), Some(Gid::from_raw(OWNER.1)));
    for name in ["dir", "dir/tool", "relative"] {
        must(rustix::fs::chownat(CWD, at(name), uid, gid, AtFlags::SYMLINK_NOFOLLOW));
    }
    must(rustix::fs::lsetxattr(at("dir/tool"), "user.note", b"kept", XattrFlags::empty()));
    must(fs::set_permissions(at("dir/tool"), fs::Permissions::from_mode(0o6755)));
    must(fs::set_permissions(at("dir"), fs::Permissions::from_mode(0o3775)));
    let time = Timespec { tv_sec: TIME, tv_nsec: 5 };
    let times = Timestamps { last_access: time, last_modification: time };
    for name in ["dir/tool", "dir", "relative"] {
        must(rustix::fs::utimensat(CWD, at(name), &times, AtFlags::SYMLINK_NOFOLLOW));
    }
}

/// Returns mode, owner and time of the entry at this path.
fn of(path: &Path) -> (u32, (u32, u32), (i64, i64)) {
    let meta = must(path.symlink_metadata());
    (meta.mode() & 0o7777, (meta.uid(), meta.gid()), (meta.mtime(), meta.mtime_nsec()))
}

/// Needs a kernel: owners, modes and extended attributes of a file system.
#[test]
fn requested_metadata_arrives_and_unreadable_files_are_skipped() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(2));
    let source = stage.path("tree");
    tree(&source);
    let plain = stage.recv(0, "plain", &[]);
    let whole = stage.recv(1, "whole", &["--preserve", "all", "--numeric-owner"]);
    let sent = stage.send(&[&stage.text("tree")], &["--preserve", "all", "--expect", "2"]).ends(20);
    // A path with 257 nested directories cannot be sent. All other files are sent.
    sent.failed(5, "the path is below more than 256 directories");
    assert_eq!((&sent.done()["ok"], sent.number("verified")), (&false.into(), 2.0), "{sent:?}");
    assert_eq!(sent.done()["unsent_count"], 1, "{sent:?}");
    let (plain, whole) = (plain.succeeds(10), whole.succeeds(10));

    let (a, b) = (stage.path("plain/tree"), stage.path("whole/tree"));
    let me = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let then = (TIME, 5);
    assert_eq!(of(&a.join("dir/tool")), (0o755, me, then));
    assert_eq!(of(&b.join("dir/tool")), (0o6755, OWNER, then));
    assert_eq!(of(&a.join("dir")), (0o775, me, then));
    assert_eq!(of(&b.join("dir")), (0o3775, OWNER, then));
    assert_eq!((of(&a.join("relative")).2, of(&b.join("relative")).1), (then, OWNER));
    assert!(a.join("absolute").symlink_metadata().is_err(), "{plain:?}");
    assert_eq!(must(fs::read_link(b.join("absolute"))), Path::new("/etc/hostname"));
    for out in [&a, &b] {
        let number = |name: &str| must(out.join(name).metadata()).ino();
        assert_eq!(number("again"), number("dir/tool"));
        assert_eq!(must(fs::read(out.join(OsStr::from_bytes(b"odd\xff")))), b"odd");
    }
    let note = |path: &Path| {
        let mut value = [0; 10];
        let len = rustix::fs::lgetxattr(path.join("dir/tool"), "user.note", &mut value[..]).ok()?;
        Some(value[..len].to_vec())
    };
    assert_eq!((note(&a), note(&b)), (None, Some(b"kept".to_vec())));
    let reported = format!("{:?}", plain.done()["warnings"]);
    assert!(reported.contains("preserve setid") && reported.contains("leads out"), "{reported}");
    assert_eq!(whole.done()["warnings"].as_array().map(Vec::len), Some(0), "{whole:?}");

    // With --strict, no file is sent.
    let refused = stage.send(&[&stage.text("tree")], &["--strict"]).ends(10);
    refused.failed(3, "the path is below more than 256 directories");
}

/// Needs a kernel: names of files, and processes that print them.
#[test]
fn control_characters_in_names_follow_the_name_policy() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    must(fs::create_dir(stage.path("tree")));
    must(fs::write(stage.path("tree").join("red\u{1b}[31m\nerror: all is lost"), b"harmless"));
    let escape = stage.recv(0, "escape", &[]);
    let keep = stage.recv(1, "keep", &["--unsafe-names", "keep"]);
    let refuse = stage.recv(2, "refuse", &["--unsafe-names", "refuse"]);
    let sent = stage.send(&[&stage.text("tree")], &["--expect", "3"]).ends(20);
    sent.failed(1, "has control characters");
    let names = |out: &str| -> Vec<String> {
        let listed = must(fs::read_dir(stage.path(out).join("tree")));
        listed.map(|entry| must(entry).file_name().to_string_lossy().into_owned()).collect()
    };
    let escape = escape.succeeds(10);
    assert_eq!(names("escape"), ["red\\x1b[31m\\x0aerror: all is lost"]);
    let is_reported = |one: &serde_json::Value| format!("{one}").contains("1 name has control characters");
    assert!(escape.all("warning").any(is_reported), "{escape:?}");
    keep.succeeds(10);
    assert_eq!(names("keep"), ["red\u{1b}[31m\nerror: all is lost"]);
    refuse.ends(10).failed(3, "red\\x1b[31m\\x0aerror: all is lost\" has control characters receive it with --unsafe-names escape or keep");
    assert!(!stage.path("refuse/tree").exists());
}

/// Needs a kernel: symbolic links of a file system.
#[test]
fn links_that_leave_a_tree_are_named_and_followed_if_requested() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(1));
    must(fs::create_dir_all(stage.path("hub/blobs")));
    must(fs::create_dir_all(stage.path("hub/model/snapshot")));
    must(fs::write(stage.path("hub/blobs/weights"), vec![5; 300_000]));
    must(symlink("../../blobs/weights", stage.path("hub/model/snapshot/model")));
    let model = stage.text("hub/model");
    let warned = |sent: &Ended, words: &str| sent.all("warning").any(|one| format!("{one}").contains(words));

    let got = stage.recv(0, "links", &[]);
    let sent = stage.send(&[&model], &["--expect", "1"]).succeeds(20);
    assert!(
        warned(&sent, "--copy-unsafe-links") && warned(&sent, "leads to targets outside of the content"),
        "{sent:?}"
    );
    let got = got.succeeds(10);
    let counts = ["files", "links", "directories"].map(|name| got.number(name));
    assert_eq!(counts, [0.0, 1.0, 2.0], "{got:?}");

    let got = stage.recv(0, "content", &[]);
    let sent = stage.send(&[&model], &["--expect", "1", "--copy-unsafe-links"]).succeeds(20);
    assert!(!warned(&sent, "symbolic link"), "{sent:?}");
    got.succeeds(10);
    assert_eq!(must(fs::read(stage.path("content/model/snapshot/model"))), vec![5; 300_000]);
}
