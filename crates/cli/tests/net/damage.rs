//! Networks that lose, delay, repeat and damage packets.

use crate::kit::{Ended, Stage, print_line};
use faircast_testkit::{Damage, Lab, Tally, require_root};

const FILE: usize = 5_000_000;

/// Maximum ratio of the number of sent symbols to the minimum number that is needed.
const SENT_MORE: f64 = 1.10;

/// Checks that a network has caused every requested kind of damage, and no other kind.
fn has_done(asked: Damage, done: &[Tally]) {
    let sum = |of: fn(&Tally) -> u64| done.iter().map(of).sum::<u64>();
    let kinds = [
        (asked.loss, sum(|it| it.lost)),
        (asked.duplicate, sum(|it| it.duplicated)),
        (asked.reorder, sum(|it| it.reordered)),
        (asked.corrupt, sum(|it| it.corrupted)),
    ];
    assert!(kinds.iter().all(|(part, count)| (*part > 0.0) == (*count > 0)), "{asked:?}: {done:?}");
}

fn through(receivers: u16, at_receivers: Damage, at_source: Option<Damage>) -> (Ended, Vec<Ended>) {
    let root = require_root().expect("the caller has asked");
    let mut plan = Lab::plan().receivers(receivers).damage(0..receivers, at_receivers);
    if let Some(damage) = at_source {
        plan = plan.damage_feedback(damage);
    }
    let stage = Stage::shared(&root, plan);
    let file = stage.file("image", FILE);
    let listening = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &["--expect", &receivers.to_string()]).succeeds(90);
    let ended: Vec<_> = listening.into_iter().map(|receiver| receiver.succeeds(20)).collect();
    for host in 0..receivers {
        assert!(stage.has(&format!("r{host}"), &file), "r{host} has other bytes");
    }
    let done: Vec<_> = stage.lab.receivers().iter().map(|node| stage.lab.damaged(node)).collect();
    has_done(at_receivers, &done);
    if let Some(damage) = at_source {
        has_done(damage, &[stage.lab.damaged(stage.lab.sender())]);
    }
    let lost = ended.iter().map(|r| r.number("lost") / (r.number("lost") + r.number("packets")));
    print_line(&format!(
        "{receivers} x {at_receivers:?}, feedback {at_source:?}: {:6.2} s, sent/needed {:.3}, lost {:.2} % at most",
        source.number("seconds"),
        source.number("repair_ratio"),
        lost.fold(0.0, f64::max) * 100.0,
    ));
    (source, ended)
}

/// Needs a kernel: the program's own sockets, timers and disk under loss.
#[test]
fn loss_of_one_percent_is_repaired() {
    if require_root().is_none() {
        return;
    }
    let (source, receivers) = through(4, Damage::loss(0.01), None);
    // Four receivers lose different packets. One repair symbol serves all receivers that lack a symbol of its block.
    assert!(source.number("repair_ratio") < 1.06, "{source:?}");
    assert!(receivers.iter().all(|r| r.number("repaired_blocks") > 0.0), "{receivers:?}");
}

/// Needs a kernel: the program's own sockets, timers and disk under loss.
#[test]
fn repairs_of_five_percent_loss_are_near_the_minimum() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(1, Damage::loss(0.05), None);
    assert!(source.number("repair_ratio") <= SENT_MORE / 0.95, "{source:?}");
    let (source, _) = through(4, Damage::loss(0.05), None);
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.05 / 0.95, "{source:?}");
}

/// Needs a kernel: the program's own sockets, timers and disk under loss.
#[test]
fn repairs_of_twenty_percent_loss_are_near_the_minimum() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(1, Damage::loss(0.2), None);
    assert!(source.number("repair_ratio") <= SENT_MORE / 0.8, "{source:?}");
    // The receiver with the most losses determines the number of repair symbols. In addition, a receiver that lags behind
    // requests data that all other receivers have.
    let (source, _) = through(4, Damage::loss(0.2), None);
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.1 / 0.8, "{source:?}");
}

/// Needs a kernel: the program's own sockets, timers and disk while packets overtake others.
#[test]
fn reordered_packets_are_not_counted_as_lost() {
    if require_root().is_none() {
        return;
    }
    let (source, _) = through(4, Damage { reorder: 0.05, ..Damage::default() }, None);
    assert!(source.number("repair_ratio") < 1.05, "{source:?}");
}

/// Needs a kernel: the program's own sockets, timers and disk while packets are repeated.
#[test]
fn duplicate_packets_cause_no_repairs_and_no_extra_bytes() {
    if require_root().is_none() {
        return;
    }
    let (source, receivers) = through(4, Damage { duplicate: 0.05, ..Damage::default() }, None);
    assert!(source.number("repair_ratio") < 1.02, "{source:?}");
    assert!(receivers.iter().all(|r| r.number("bytes") == FILE as f64), "{receivers:?}");
}

/// Needs a kernel: the program's own sockets, timers and disk while packets are damaged.
#[test]
fn damaged_packets_are_refused_and_their_content_is_repaired() {
    if require_root().is_none() {
        return;
    }
    let (_, receivers) = through(4, Damage { corrupt: 0.001, ..Damage::default() }, None);
    assert!(receivers.iter().all(|r| r.number("bytes") == FILE as f64), "{receivers:?}");
}

/// Needs a kernel: the program's own sockets and timers at both ends.
#[test]
fn damaged_feedback_does_not_end_the_session() {
    if require_root().is_none() {
        return;
    }
    let data = Damage { loss: 0.05, duplicate: 0.01, reorder: 0.02, corrupt: 0.001 };
    let feedback = Damage { loss: 0.2, duplicate: 0.05, reorder: 0.05, corrupt: 0.02 };
    let (source, _) = through(4, data, Some(feedback));
    assert!(source.number("repair_ratio") <= SENT_MORE * 1.05 / 0.95, "{source:?}");
}
