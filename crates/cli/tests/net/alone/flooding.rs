//! Sessions in layers behind a bridge that forwards every group to all hosts.

use crate::kit::{Ended, Stage, print_line};
use faircast_testkit::{Bottleneck, Forwarding, Lab, Offloads, require_root};

const FILE: usize = 3_000_000;

/// Whether the session has reported the advice.
fn reported(ended: &Ended) -> bool {
    ended.all("warning").any(|line| line.to_string().contains("querier"))
}

/// RLC sends 64 Mbit/s on eight layers, independently of the memberships. The link to one receiver carries 10 Mbit/s.
///
/// Needs a kernel: a bridge floods groups into a token bucket.
#[test]
fn slow_receiver_of_flooded_groups_warns_and_completes() {
    let Some(root) = require_root() else { return };
    let plan = Lab::plan().receivers(2).offloads(Offloads::Off).forwarding(Forwarding::ToAll);
    let stage = Stage::new(&root, plan.bottleneck(0, Bottleneck::mbps(10.0).queue(50_000)));
    let file = stage.file("image", FILE);
    let receivers = stage.recv_everywhere(&[]);
    let source = stage.send(&[&file], &["--cc", "rlc", "--expect", "2"]);
    let ended: Vec<Ended> = receivers.into_iter().map(|receiver| receiver.succeeds(100)).collect();
    let source = source.succeeds(20);
    let seconds: Vec<f64> = ended.iter().map(|receiver| receiver.number("seconds")).collect();
    print_line(&format!("flooded: done after {seconds:.1?} s"));
    for host in ["r0", "r1"] {
        assert!(stage.has(host, &file), "{host} has other bytes");
    }
    assert!(reported(&ended[0]) && reported(&source), "{:?} {source:?}", ended[0]);
    assert!(!reported(&ended[1]), "{:?}", ended[1]);
}
