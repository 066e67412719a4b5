//! `faircast new-scheme` and `new-queue`: the new crates build, fulfil their contracts, and simulate their scenarios.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command, and returns its standard output.
fn run(command: &mut Command) -> String {
    let ran = command.output().expect("it starts");
    let output = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{command:?}: {output}{}", String::from_utf8_lossy(&ran.stderr));
    output
}

fn cargo(directory: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("new-crate"));
    cargo
}

/// Returns the value that the crate's program printed for a metric.
fn metric(printed: &str, name: &str) -> f64 {
    let line = printed.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name}: {printed}"))
}

#[test]
fn new_crates_build_fulfil_their_contracts_and_simulate() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("new-crates");
    let _ = fs::remove_dir_all(&room);
    for (command, name) in [("new-scheme", "mild-cuts"), ("new-queue", "early-drops")] {
        let directory = room.join(name);
        let faircast = &mut Command::new(env!("CARGO_BIN_EXE_faircast"));
        let printed = run(faircast.arg(command).arg(&directory).arg("--checkout").arg(&checkout));
        assert!(printed.contains("cargo run --release"), "{printed}");
        // The versions of the workspace, which this host has.
        fs::copy(checkout.join("Cargo.lock"), directory.join("Cargo.lock")).expect("room on the disk");
        let tested = run(cargo(&directory).args(["test", "--offline", "--quiet", "--test", "conformance"]));
        assert!(tested.contains("1 passed"), "{tested}");
        let printed = run(cargo(&directory).args(["run", "--offline", "--quiet"]));
        assert!(directory.join("results/metrics.csv").is_file(), "{printed}");
        match command {
            "new-scheme" => {
                let (multicast, tcp) = (metric(&printed, "multicast.rate"), metric(&printed, "tcp.rate"));
                assert!(multicast > 0.5e6 && tcp > 0.5e6 && multicast + tcp <= 4e6, "{printed}");
            }
            _ => assert!(metric(&printed, "tcp.lost") > 0.0, "{printed}"),
        }
    }
}
