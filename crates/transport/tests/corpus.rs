//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../fuzz/sessions.rs"]
mod sessions;

use faircast_transport::fuzzing;
use faircast_transport::object::{Entry, Kind, Manifest};
use std::fs;
use std::path::{Path, PathBuf};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn replay(target: &str, entry: impl Fn(&[u8])) {
    let mut replayed = 0;
    for file in fs::read_dir(folder(target)).expect("the corpus is part of the repository") {
        let path = file.expect("the folder can be read").path();
        println!("{}", path.display()); // shown when it panics
        entry(&fs::read(&path).expect("the file can be read"));
        replayed += 1;
    }
    assert!(replayed > 0, "no inputs for {target}");
}

#[test]
fn the_corpus_of_manifest_is_harmless() {
    replay("manifest", fuzzing::manifest);
}

#[test]
fn the_corpus_of_journal_is_harmless() {
    replay("journal", fuzzing::journal);
}

#[test]
fn the_corpus_of_sessions_is_harmless() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    replay("sessions", |input| sessions::sessions(input, scratch.path()));
}

fn manifest() -> Vec<u8> {
    let entry = |path: &str, kind| Entry { path: path.to_owned(), kind, mode: 0o644, mtime: -1 };
    let entries = vec![
        entry("some/dir", Kind::Dir),
        entry("some/dir/file", Kind::File { size: 1_000_000 }),
        entry("some/link", Kind::Symlink { target: "dir/file".into() }),
    ];
    Manifest::new(entries).expect("it is sound").encode()
}

/// Sessions by what the network does, as [`fuzzing::sessions`] describes it.
fn journeys() -> Vec<(&'static str, Vec<u8>)> {
    let steps = |setup: u8, steps: &[[u8; 2]]| {
        let mut input = vec![setup];
        input.extend(steps.iter().flatten());
        input
    };
    let (run, lose) = (2 | 3 << 2, 3 | 3 << 2);
    let mut changed = steps(0, &[[run, 0], [run, 0], [run, 0]]);
    for at in 0..12 {
        let mut change = [0; 60];
        change[16 + 3 * at] = 1 << (at % 8);
        changed.extend([run, 60]);
        changed.extend(change);
    }
    vec![
        ("whole", steps(0, &[[run, 0]; 40])),
        (
            "lossy",
            steps(0, &[[run, 0], [run, 0], [run, 0], [lose, 0], [run, 0], [lose, 0], [run, 0]].repeat(6)),
        ),
        ("nothing-gets-through", steps(0, &[[lose, 0]; 40])),
        ("congested", steps(0, &[[run | 0x80, 0]; 40])),
        ("floor", steps(1, &[[run | 0x80, 0]; 40])),
        ("drop", steps(2, &[[run | 0x80, 0]; 40])),
        ("changed", changed),
    ]
}

/// With `FAIRCAST_BLESS=1` the seeds are written.
#[test]
fn every_sample_is_in_the_corpus() {
    let stored = |target: &str, name: &str, input: &[u8]| {
        let path = folder(target).join(format!("sample-{name}"));
        if std::env::var("FAIRCAST_BLESS").as_deref() == Ok("1") {
            fs::create_dir_all(folder(target)).expect("the source tree can be written");
            fs::write(&path, input).expect("the source tree can be written");
        }
        assert!(
            fs::read(&path).is_ok_and(|found| found == input),
            "{} is stale: FAIRCAST_BLESS=1",
            path.display()
        );
    };
    stored("manifest", "tree", &manifest());
    stored("journal", "records", &(0..=255).cycle().take(40 * 9 + 17).collect::<Vec<u8>>());
    for (name, input) in journeys() {
        stored("sessions", name, &input);
    }
    // Every message of the wire format's own samples, at either side of a session under way.
    for file in fs::read_dir(folder("parse")).expect("the corpus is part of the repository") {
        let path = file.expect("the folder can be read").path();
        let name = path.file_name().expect("it was listed").to_string_lossy().into_owned();
        let bytes = fs::read(&path).expect("the file can be read");
        if !name.starts_with("sample-") || bytes.len() > 255 {
            continue;
        }
        let run = [2 | 3 << 2, 0];
        let mut input = [&[0][..], &run.repeat(6)].concat();
        for to in [0, 1] {
            input.extend([to, bytes.len() as u8]);
            input.extend(&bytes);
            input.extend(run);
        }
        stored("sessions", &name["sample-".len()..], &input);
    }
}
