//! The compiled programs in the repository match their sources.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

fn package() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sha256(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the notes that `bpf/build` has written: pairs of hash and file, and the compiler.
fn noted() -> (Vec<(String, String)>, String) {
    let text = std::fs::read_to_string(package().join("object/cocoon.bpf.sum")).expect("bpf/build writes it");
    let mut lines: Vec<&str> = text.lines().collect();
    let compiler = lines.pop().expect("the last line is the compiler").to_owned();
    let pairs = lines.iter().map(|line| {
        let (hash, file) = line.split_once("  ").expect("lines of sha256sum");
        (hash.to_owned(), file.to_owned())
    });
    (pairs.collect(), compiler)
}

#[test]
fn object_was_compiled_from_the_current_sources() {
    let (pairs, _) = noted();
    let sources = std::fs::read_dir(package().join("bpf")).expect("there is one").count();
    assert_eq!(pairs.len(), sources + 1, "bpf/build notes all files");
    for (hash, file) in pairs {
        let directory = if file.ends_with(".o") { "object" } else { "bpf" };
        let found = sha256(&package().join(directory).join(&file));
        assert_eq!(found, hash, "{file} has changed since the object was compiled: make bpf");
    }
}

#[test]
fn recompilation_gives_the_same_object() {
    let (_, compiler) = noted();
    let version = Command::new("clang").arg("--version").output();
    let has_headers = Path::new("/usr/include/bpf/bpf_helpers.h").exists();
    let Some(version) = version.ok().filter(|it| it.status.success() && has_headers) else {
        eprintln!("skipped: recompilation_gives_the_same_object: needs clang and libbpf-dev");
        return;
    };
    let here = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
    let object = std::env::temp_dir().join(format!("faircast-cocoon-{}.o", std::process::id()));
    let built = Command::new(package().join("bpf/build")).arg(&object).output().expect("bash is there");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let (made, kept) = (sha256(&object), sha256(&package().join("object/cocoon.bpf.o")));
    let _ = std::fs::remove_file(object.with_extension("sum"));
    std::fs::remove_file(&object).expect("it was just made");
    if here == compiler {
        assert_eq!(made, kept, "{here} makes another object of the same sources");
    } else {
        eprintln!("not compared: the object is by {compiler}, here is {here}");
    }
}
