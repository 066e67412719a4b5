//! Networks that lose, delay, repeat and damage packets.

use crate::kit::{Ended, Stage, tell};
use faircast_testkit::{Lab, require_root};

const FILE: usize = 5_000_000;

/// Symbols sent beyond the fewest that can do, at most.
const SENT_MORE: f64 = 1.10;

fn through(receivers: u16, at_receivers: &str, at_source: &[&str]) -> (Ended, Vec<Ended>) {
    let root = require_root().expect("the caller has asked");
    let stage = Stage::shared(&root, Lab::plan().receivers(receivers));
    let file = stage.file("image", FILE);
    let listening: Vec<_> = (0..usize::from(receivers))
        .map(|at| stage.recv(at, &format!("r{at}"), &["--faults", &format!("{at_receivers},seed={at}")]))
        .collect();
    let count = receivers.to_string();
    let flags: Vec<_> = ["--expect", &count].iter().chain(at_source).copied().collect();
    let source = stage.send(&[&file], &flags).succeeds(90);
    let ended: Vec<_> = listening.into_iter().map(|receiver| receiver.succeeds(20)).collect();
    for host in 0..receivers {
        assert!(stage.has(&format!("r{host}"), &file), "r{host} has other bytes");
    }
    let lost = ended.iter().map(|r| r.number("lost") / (r.number("lost") + r.number("packets")));
    tell(&format!(
        "{receivers} x {at_receivers:<28} feedback {:<10}: {:6.2} s, sent/needed {:.3}, lost {:.2} % at most",
        at_source.last().unwrap_or(&"whole"),
        source.number("seconds"),
        source.number("repair_ratio"),
        lost.fold(0.0, f64::max) * 100.0,
    ));
    (source, ended)
}

/// Kernel: the program's own sockets, timers and disk under loss.
#[test]
fn a_loss_of_one_in_a_hundred_is_repaired() {
    if require_root().is_none() {
        return;
    }
    let (source, receivers) = through(4, "loss=0.01", &[]);
    // Four receivers lose different packets; one repair symbol serves all of a block's losers.
    assert!(source.number("repair_ratio") < 1.06, "{source:?}");
    assert!(receivers.iter().all(|r| r.number("repaired_blocks") > 0.0), "{receivers:?}");
}

/// Kernel: the program's own sockets, timers and disk under loss.
#[test]
fn a_loss_of_one_in_twenty_costs_little_more_than_it_must() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(1, "loss=0.05", &[]);
    assert!(source.number("repair_ratio") <= SENT_MORE / 0.95, "{source:?}");
    let (source, _) = through(4, "loss=0.05", &[]);
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.05 / 0.95, "{source:?}");
}

/// Kernel: the program's own sockets, timers and disk under loss.
#[test]
fn a_loss_of_one_in_five_costs_little_more_than_it_must() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(1, "loss=0.2", &[]);
    assert!(source.number("repair_ratio") <= SENT_MORE / 0.8, "{source:?}");
    // The unluckiest of four counts, and one that lags behind asks for what the others have got.
    let (source, _) = through(4, "loss=0.2", &[]);
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.1 / 0.8, "{source:?}");
}

/// Kernel: the program's own sockets, timers and disk while packets overtake.
#[test]
fn reordered_packets_are_not_taken_for_lost_ones() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(4, "reorder=0.05", &[]);
    assert!(source.number("repair_ratio") < 1.05, "{source:?}");
}

/// Kernel: the program's own sockets, timers and disk while packets are repeated.
#[test]
fn packets_that_come_twice_change_nothing() {
    if require_root().is_none() {
        return;
    }
    let (source, receivers) = through(4, "dup=0.05", &[]);
    assert!(source.number("repair_ratio") < 1.02, "{source:?}");
    assert!(receivers.iter().all(|r| r.number("bytes") == FILE as f64), "{receivers:?}");
}

/// Kernel: the program's own sockets, timers and disk while packets are damaged.
#[test]
fn damaged_packets_are_refused_and_repaired() {
    if require_root().is_none() {
        return;
    }
    let (_, receivers) = through(4, "corrupt=0.001", &[]);
    assert!(receivers.iter().all(|r| r.number("bytes") == FILE as f64), "{receivers:?}");
}

/// Kernel: the program's own sockets and timers at both ends.
#[test]
fn feedback_may_suffer_as_much_as_data() {
    if require_root().is_none() {
        return;
    }
    let feedback = ["--faults", "loss=0.2,dup=0.05,reorder=0.05,corrupt=0.001,seed=9"];
    let (source, _) = through(4, "loss=0.05,dup=0.01,reorder=0.02,corrupt=0.001", &feedback);
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.05 / 0.95, "{source:?}");
}
