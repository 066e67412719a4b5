//! The fuzzer's corpus, replayed without the fuzzer.

#[path = "../../../fuzz/entries.rs"]
mod entries;

mod common;

use faircast_wire::doctor::{Key, Kind, LEN, Message};
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
fn corpus_of_fuzz_target_parse_causes_no_panic() {
    replay("parse", entries::parse);
}

#[test]
fn corpus_of_fuzz_target_source_open_causes_no_panic() {
    replay("source_open", entries::source_open);
}

#[test]
fn corpus_of_fuzz_target_receiver_open_causes_no_panic() {
    replay("receiver_open", entries::receiver_open);
}

#[test]
fn corpus_of_fuzz_target_key_file_causes_no_panic() {
    replay("key_file", entries::key_file);
}

#[test]
fn corpus_of_fuzz_target_doctor_causes_no_panic() {
    replay("doctor", entries::doctor);
}

/// With `FAIRCAST_BLESS=1` the corpus is written: one message of each kind, a padded message and a truncated message.
#[test]
fn every_doctor_message_is_in_the_corpus() {
    let path = |name: &str| folder("doctor").join(name);
    let mut all = Vec::new();
    for kind in Kind::ALL {
        let values = [1, 1 << 40, 200, u64::MAX];
        let message = Message { kind, step: 3, number: 70_000, test: 1 << 50, token: 9, values };
        let mut bytes = Vec::new();
        message.encode(&Key::of(None), if kind == Kind::Data { 300 } else { LEN }, &mut bytes);
        all.push((format!("{kind:?}").to_lowercase(), bytes));
    }
    all.push(("cut".to_owned(), all[0].1[..LEN - 1].to_vec()));
    for (name, bytes) in all {
        if std::env::var("FAIRCAST_BLESS").as_deref() == Ok("1") {
            fs::create_dir_all(folder("doctor")).expect("the source tree can be written");
            fs::write(path(&name), &bytes).expect("the source tree can be written");
        }
        assert!(fs::read(path(&name)).is_ok_and(|found| found == bytes), "{name} is stale: FAIRCAST_BLESS=1");
    }
}

/// With `FAIRCAST_BLESS=1` the initial inputs are written: each sample alone, and each sample as a datagram.
#[test]
fn corpus_contains_every_generated_sample() {
    for (name, message) in common::all() {
        let bytes = common::bytes_of(&message);
        let feedback = message.from().is_some();
        let datagram = [&[2, bytes.len() as u8][..], &bytes, &[1, 0, 0, 0, 5, 0]].concat();
        let target = if feedback { "source_open" } else { "receiver_open" };
        for (target, input) in [("parse", bytes), (target, datagram)] {
            let path = folder(target).join(format!("sample-{}", name.replace(' ', "-")));
            if std::env::var("FAIRCAST_BLESS").as_deref() == Ok("1") {
                fs::create_dir_all(folder(target)).expect("the source tree can be written");
                fs::write(&path, &input).expect("the source tree can be written");
            }
            assert!(
                fs::read(&path).is_ok_and(|found| found == input),
                "{} is stale: FAIRCAST_BLESS=1",
                path.display()
            );
        }
    }
}
