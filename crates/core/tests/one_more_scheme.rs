//! Test that a new scheme needs only a folder of its own and three lines in another file (`LINES`). The toy scheme of `toy/` is
//! added to a copy of the core, which must pass the test suites of the catalogue.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The file that lists the schemes.
const LIST: &str = "crates/core/src/schemes/mod.rs";

/// The added lines. Each pair is an existing line, and the line to be added after it.
const LINES: [(&str, &str); 3] = [
    ("pub mod tfmcc;", "pub mod toy;"),
    ("    Smcc => smcc,", "    /// Nowhere: a toy."),
    ("    /// Nowhere: a toy.", "    Toy => toy,"),
];

#[test]
fn new_scheme_needs_a_folder_and_fewer_than_ten_other_lines() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository");
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("one-more-scheme");
    let _ = fs::remove_dir_all(&copy);
    for part in ["src", "Cargo.toml", "clippy.toml", "tests/toy"] {
        copy_all(&root.join("crates/core").join(part), &copy.join("crates/core").join(part));
    }
    copy_all(&root.join("Cargo.lock"), &copy.join("Cargo.lock"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace's manifest");
    fs::write(copy.join("Cargo.toml"), alone(&manifest)).expect("room on the disk");
    let schemes = copy.join("crates/core/src/schemes");
    copy_all(&root.join("crates/core/tests/toy"), &schemes.join("toy"));

    let list = copy.join(LIST);
    let mut text = fs::read_to_string(&list).expect("the list");
    for (behind, line) in LINES {
        let place =
            text.find(behind).unwrap_or_else(|| panic!("{LIST} has a line {behind:?}")) + behind.len();
        text.insert_str(place, &format!("\n{line}"));
    }
    fs::write(&list, text).expect("room on the disk");
    assert!(LINES.len() < 10);

    let tests = ["schemes::conformance", "schemes::catalogue"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--offline", "--lib", "--package", "faircast-core"]);
    // Optimising the copy would take longer than the toy's tests in the suites.
    cargo.args(["--config", "profile.dev.package.faircast-core.opt-level=0"]);
    // Only the toy is tested: the suites of the original core already test the other schemes.
    cargo.env("FAIRCAST_SCHEME", "toy");
    // In this directory, other tests have already built the other crates.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
    cargo.arg("--").args(tests);
    let ran = cargo.current_dir(&copy).env("CARGO_TARGET_DIR", target).output().expect("cargo runs");
    let reported = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !reported.contains("running 0 tests"), "{reported}");
}

/// Returns the manifest of a workspace whose only member is the core, with a different version. With the same version, cargo
/// would later use builds of the copy for the original core.
fn alone(manifest: &str) -> String {
    let manifest = manifest.replace("default-members", "members-by-default");
    let manifest = manifest.replacen("\nversion = \"", "\nversion = \"9", 1);
    let start = manifest.find("\nmembers = [").expect("a workspace has members");
    let end = start + manifest[start..].find(']').expect("the list ends") + 1;
    format!("{}\nmembers = [\"crates/core\"]{}", &manifest[..start], &manifest[end..])
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).expect("a directory of the repository") {
            let entry = entry.expect("a directory of the repository");
            copy_all(&entry.path(), &to.join(entry.file_name()));
        }
    } else if from.exists() {
        fs::create_dir_all(to.parent().expect("it has a name")).expect("room on the disk");
        fs::copy(from, to).expect("room on the disk");
    }
}
