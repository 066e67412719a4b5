//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../../fuzz/replay.rs"]
#[allow(dead_code, reason = "other crates use the rest")]
mod replay;

use crate::manifest::chunks::{Chunk, ChunkSizes, Chunks};
use crate::{Attributes, Entry, Kind, Manifest, Owner};
use replay::{assert_stored, replay};
use std::sync::Arc;

#[test]
fn corpus_of_fuzz_target_manifest_causes_no_panic() {
    replay("manifest", super::manifest);
}

#[test]
fn corpus_of_fuzz_target_journal_causes_no_panic() {
    replay("journal", super::journal);
}

fn manifest() -> Vec<u8> {
    let entry = |path: &str, kind| Entry::new(path, kind, 0o644, -1);
    let entries = vec![
        entry("some/dir", Kind::Dir),
        entry("some/dir/file", Kind::File { size: 1_000_000 }),
        entry("some/link", Kind::Symlink { target: "dir/file".into() }),
    ];
    Manifest::new(entries).expect("it is sound").encode()
}

/// A manifest with all features of version 2.
fn manifest_with_metadata() -> Vec<u8> {
    let owner = |uid| Some(Arc::new(Owner { uid, gid: 100, user: "ann".into(), group: "users".into() }));
    let attributes = Attributes::new(vec![("user.note".into(), b"kept".to_vec())]).expect("they are sound");
    let attributes = Some(Arc::new(attributes));
    let entry = |path: &str, kind, mode| Entry::new(path, kind, mode, -1);
    let entries = vec![
        Entry { owner: owner(1000), attributes: attributes.clone(), ..entry("dir", Kind::Dir, 0o3775) },
        Entry { owner: owner(0), attributes, ..entry("dir/file", Kind::File { size: 1_000_000 }, 0o4755) },
        Entry::new("dir/more", Kind::HardLink { to: 1 }, 0, 0),
        Entry { owner: owner(1000), ..entry("link", Kind::Symlink { target: "/etc".into() }, 0o777) },
        entry("plain", Kind::File { size: 0 }, 0o644),
    ];
    Manifest::new(entries).expect("it is sound").encode()
}

/// A manifest of version 3.
fn manifest_with_chunks() -> Vec<u8> {
    let large = Entry::new("large", Kind::File { size: 5_000 }, 0o644, -1);
    let sizes = ChunkSizes::for_content(5_000).expect("not too many");
    let chunk = |len| Chunk { hash: u64::from(len) << 32, len };
    let chunks = Chunks { sizes, all: vec![chunk(1_024), chunk(3_976)] };
    Manifest::new(vec![large]).expect("it is sound").with_chunks(chunks).encode()
}

/// If `FAIRCAST_BLESS` is 1, writes the samples instead of comparing them.
#[test]
fn corpus_contains_every_generated_sample() {
    assert_stored("manifest", "tree", &manifest());
    assert_stored("manifest", "metadata", &manifest_with_metadata());
    assert_stored("manifest", "chunks", &manifest_with_chunks());
    assert_stored("journal", "records", &(0..=255).cycle().take(40 * 9 + 17).collect::<Vec<u8>>());
}
