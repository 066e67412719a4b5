//! Changed files for receivers that have earlier versions.

use crate::kit::{Stage, must, noise, print_line};
use faircast_testkit::{Lab, require_root};
use std::fs;

const SIZE: usize = 20_000_000;

/// Needs a kernel: the packets of a session are counted by real sockets.
#[test]
fn only_changed_parts_of_an_image_are_sent() {
    let Some(root) = require_root() else { return };
    let stage = Stage::shared(&root, Lab::plan().receivers(3));
    let image = stage.file("image", SIZE);
    let receiver = stage.recv(0, "r0", &[]);
    stage.send(&[&image], &["--delta", "--expect", "1"]).succeeds(60);
    receiver.succeeds(20);

    // One receiver has the earlier version in its output directory, another one under another name, with bytes in front.
    let mut content = must(fs::read(&image));
    must(fs::create_dir(stage.path("old")));
    must(fs::write(stage.path("old/master"), [&b"in front"[..], &content].concat()));
    for at in (0..SIZE).step_by(SIZE / 20) {
        content[at..at + SIZE / 2_000].copy_from_slice(&noise("change", SIZE / 2_000));
    }
    must(fs::write(&image, &content));
    let receivers = [stage.recv(0, "r0", &[]), stage.recv(1, "r1", &["--reuse", &stage.text("old")])];
    let sent = stage.send(&[&image], &["--delta", "--expect", "2"]).succeeds(60);
    for (at, receiver) in receivers.into_iter().enumerate() {
        let got = receiver.succeeds(20);
        assert!(got.number("resumed_bytes") > 0.95 * SIZE as f64, "{got:?}");
        assert!(stage.has(&format!("r{at}"), &image));
    }
    let moved = sent.number("moved_bytes");
    print_line(&format!(
        "delta: {moved} of {SIZE} bytes for 1 % in 20 places; packets {}",
        sent.number("packets")
    ));
    // 1 %, the borders of the changes, and the first block, which contains the manifest.
    assert!(moved < 0.025 * SIZE as f64 + 360_000.0, "{sent:?}");

    // A receiver without an earlier version gets everything in the same session.
    content[SIZE / 2] ^= 1;
    must(fs::write(&image, &content));
    let receivers = stage.recv_everywhere(&[]);
    stage.send(&[&image], &["--delta", "--expect", "3"]).succeeds(60);
    receivers.into_iter().for_each(|receiver| drop(receiver.succeeds(20)));
    assert!((0..3).all(|at| stage.has(&format!("r{at}"), &image)));
}
