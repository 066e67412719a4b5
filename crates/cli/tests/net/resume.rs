//! Receivers and sources that crash and restart.

use crate::kit::{Ended, Stage, must, print_line};
use faircast_testkit::{Lab, LabPlan, Offloads, Sampler, require_root};
use faircast_transport::object::{Geometry, Store, seal_block, verify_block};
use faircast_wire::TransferId;
use std::path::Path;
use std::time::Duration;

const FILE: usize = 10_000_000;

/// Maximum rate of the source. It is low enough that a crash occurs before the end of the transfer.
const RATE: [&str; 2] = ["--max", "20M"];

fn plan() -> LabPlan {
    Lab::plan().receivers(3).offloads(Offloads::Off)
}

/// Checks that a restarted receiver fetched at most 2 % of its stored data again. Returns the number of stored bytes.
fn resumed(ended: &Ended) -> f64 {
    let stored = ended.number("resumed_bytes");
    assert!(stored > 0.2 * FILE as f64, "only {stored} bytes were kept: {ended:?}");
    let again = ended.number("refetched_bytes");
    assert!(again <= 0.02 * stored, "{again} of {stored} bytes were fetched again: {ended:?}");
    stored
}

/// Returns the maximum number of bytes on the link to a receiver that lacks `missing` bytes of the file. The maximum includes 2 %
/// of the file, headers, and other packets of the session.
fn carried_at_most(missing: f64) -> f64 {
    let headers = 1500.0 / 1400.0;
    (missing + 0.02 * FILE as f64) * headers + 300_000.0
}

/// Needs a kernel: a process is killed.
#[test]
fn crashed_receiver_resumes_within_the_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let mut receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &RATE);
    let mut victim = receivers.remove(1);
    victim.reaches(0.5, 20);
    victim.crashes();
    let again = stage.recv(1, "r1", &[]);
    let back = again.succeeds(30);
    let source = source.succeeds(30);
    let stored = resumed(&back);
    receivers.into_iter().for_each(|other| {
        let other = other.succeeds(10);
        assert_eq!(other.number("resumed_bytes"), 0.0, "{other:?}");
        let due = FILE as f64 * 8.0 / 20e6;
        assert!(other.number("seconds") < due * 1.25 + 0.5, "it was disturbed: {other:?}");
    });
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
    // Only content that was sent while the receiver was absent is sent again.
    assert!(source.number("repair_ratio") < 1.25, "{source:?}");
    print_line(&format!(
        "receiver crashed at half: kept {:.1} MB, fetched again {} B, session {:.1} s, sent/needed {:.3}",
        stored / 1e6,
        back.number("refetched_bytes"),
        source.number("seconds"),
        source.number("repair_ratio"),
    ));
}

/// Needs a kernel: processes are killed.
#[test]
fn crashed_receiver_resumes_after_a_restart_of_its_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let mut receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &RATE);
    receivers[0].reaches(0.5, 20);
    source.crashes();
    receivers.into_iter().for_each(super::kit::Running::crashes);
    let receivers = stage.recv_everywhere(&[]);
    let sampler = super::kit::must(Sampler::start(stage.lab.receiver(0), Duration::from_millis(100)));
    let source = stage.send(&[&file], &RATE).succeeds(30);
    let ended: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(10)).collect();
    let samples = super::kit::must(sampler.stop());
    let carried = (samples[samples.len() - 1].rx_bytes - samples[0].rx_bytes) as f64;
    let stored = ended.iter().map(resumed).fold(f64::INFINITY, f64::min);
    let most = carried_at_most(FILE as f64 - stored);
    assert!(carried <= most, "{carried} bytes were carried to a receiver that kept {stored}: {source:?}");
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
    print_line(&format!("all crashed at half: kept {:.1} MB, carried {:.1} MB", stored / 1e6, carried / 1e6));
}

/// Needs a kernel: a process is killed.
#[test]
fn running_receivers_resume_after_a_restart_of_their_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let mut receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &RATE);
    receivers[0].reaches(0.5, 20);
    source.crashes();
    let sampler = super::kit::must(Sampler::start(stage.lab.receiver(0), Duration::from_millis(100)));
    let source = stage.send(&[&file], &RATE).succeeds(30);
    let samples = super::kit::must(sampler.stop());
    let ended: Vec<_> = receivers.into_iter().map(|receiver| receiver.succeeds(10)).collect();
    let carried = (samples[samples.len() - 1].rx_bytes - samples[0].rx_bytes) as f64;
    assert!(carried <= carried_at_most(0.5 * FILE as f64), "{carried} bytes: {source:?} {ended:?}");
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
    print_line(&format!("source crashed at half, receivers ran on: carried {:.1} MB", carried / 1e6));
}

/// Needs a kernel: a process is killed.
#[test]
fn sealed_session_survives_a_restarted_source() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let key = crate::security::key(&stage, "lab.key");
    let mut receivers = stage.recv_everywhere(&["--key", &key]);
    let flags = ["--key", key.as_str(), RATE[0], RATE[1]];
    let source = stage.send(&[&file], &flags);
    receivers[0].reaches(0.3, 20);
    source.crashes();
    stage.send(&[&file], &flags).succeeds(30);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(10)));
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
}

/// Needs a kernel: a signal stops a process.
#[test]
fn stopped_receiver_does_not_delay_other_receivers() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let mut receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &RATE);
    let mut stopped = receivers.remove(1);
    stopped.reaches(0.3, 20);
    stopped.task.interrupt();
    let stopped = stopped.ends(5);
    assert_eq!(stopped.code, 1, "{stopped:?}");
    let source = source.ends(20);
    assert_eq!(source.code, 1, "a known receiver has not got everything: {source:?}");
    assert_eq!(source.done()["incomplete"][0]["host"], "r1", "{source:?}");
    assert_eq!(source.done()["incomplete"][0]["reason"], "the receiver was stopped", "{source:?}");
    assert!(source.number("seconds") < FILE as f64 * 8.0 / 20e6 * 1.3 + 1.0, "it waited: {source:?}");
    receivers.into_iter().for_each(|other| drop(other.succeeds(5)));
}

/// Opens the store that a receiver left in this directory. The store's journal contains the block geometry.
fn left_store(out: &Path) -> Store {
    let states = must(std::fs::read_dir(out.join(".faircast"))).map(must);
    let state = states.map(|state| state.path()).find(|path| path.is_dir()).expect("a transfer is under way");
    let name = state.file_name().and_then(|name| name.to_str()).expect("a transfer's name");
    let transfer: TransferId = must(name.parse());
    let journal = must(std::fs::read(state.join("journal")));
    // The block geometry follows a magic word of eight bytes and the transfer ID; see the module `journal`.
    let geometry = &journal[24..41];
    let number =
        |from: usize, to: usize| geometry[from..to].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let geometry = Geometry {
        stream_len: Some(number(1, 9)),
        manifest_len: number(9, 13) as u32,
        symbol_size: number(13, 15) as u16,
        symbols_per_block: number(15, 17) as u16,
    };
    must(Store::open(out, faircast_transport::object::geometry::TransferId(transfer.0), geometry, None))
}

/// Needs a kernel: a process is killed and its files are changed.
#[test]
fn corrupted_stored_blocks_are_fetched_again_in_the_session() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, plan());
    let file = stage.file("image", FILE);
    let mut receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &RATE);
    let mut victim = receivers.remove(1);
    victim.reaches(0.4, 20);
    victim.crashes();
    let mut store = left_store(&stage.path("r1"));
    let block =
        (1..store.geometry().blocks().expect("a file")).find(|block| store.has(*block)).expect("some came");
    let mut other = vec![7; store.geometry().block_len(block) as usize];
    seal_block(&mut other, store.geometry().symbol_size);
    let (data, hash) = must(verify_block(&other));
    must(store.withdraw(block));
    must(store.put(block, data, hash));
    drop(store);
    let healed = stage.recv(1, "r1", &[]).succeeds(60);
    let source = source.succeeds(60);
    receivers.into_iter().for_each(|other| drop(other.succeeds(10)));
    for host in ["r0", "r1", "r2"] {
        assert!(stage.has(host, &file), "{host}");
    }
    let again = healed.number("refetched_bytes");
    assert!(again > 0.2 * FILE as f64, "{healed:?}");
    let reported = healed
        .all("warning")
        .any(|event| event["message"].as_str().is_some_and(|reported| reported.contains("requested again")));
    assert!(reported, "{healed:?}");
    print_line(&format!(
        "poisoned at 0.4: {again} B fetched again, session {:.1} s",
        source.number("seconds")
    ));
}
