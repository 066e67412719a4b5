//! Real connections over the loopback between the example's server and clients.

use std::process::Command;

#[test]
fn hundred_clients_of_one_prefix_form_one_group() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let run = Command::new(cargo)
        .args(["run", "--quiet", "--offline", "--example", "server", "--", "demo"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs this test, so it can be started");
    let reported = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{reported}{}", String::from_utf8_lossy(&run.stderr));
    assert!(reported.contains("100 downloads"), "{reported}");
    assert!(reported.contains("prefix: 127.0.0.0, members: 100"), "{reported}");
    assert!(reported.contains("starts: 99"), "{reported}");
}
