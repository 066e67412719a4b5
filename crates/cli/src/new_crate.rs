//! `new-scheme` and `new-queue`: a crate with a congestion control or a queue discipline for the simulator.

use crate::failure::{Failure, unwritten};
use crate::sim_usage::SimUsage;
use clap::{Args, ValueHint};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `new-scheme` and `new-queue`.
#[derive(Debug, Args)]
pub struct NewCrate {
    /// Directory to create; its name becomes the name of the crate and of the scheme or queue
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Depend on the crates in this checkout of faircast instead of published crates
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub checkout: Option<PathBuf>,
}

/// Kinds of crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A congestion control.
    Scheme,
    /// A queue discipline.
    Queue,
}

/// Returns path and text of the files of a kind. `my-name` and `my_name` stand for the crate's name.
const fn files(kind: Kind) -> [(&'static str, &'static str); 6] {
    macro_rules! files {
        ($kind:literal) => {
            [
                ("Cargo.toml", include_str!("../templates/manifest.toml")),
                ("src/main.rs", include_str!("../templates/main.rs")),
                ("src/lib.rs", include_str!(concat!("../templates/", $kind, "/src/lib.rs"))),
                (
                    "tests/conformance.rs",
                    include_str!(concat!("../templates/", $kind, "/tests/conformance.rs")),
                ),
                ("scenario.toml", include_str!(concat!("../templates/", $kind, "/scenario.toml"))),
                ("README.md", include_str!(concat!("../templates/", $kind, "/README.md"))),
            ]
        };
    }
    match kind {
        Kind::Scheme => files!("scheme"),
        Kind::Queue => files!("queue"),
    }
}

/// Writes the files of a new crate.
///
/// # Errors
/// When the directory exists, its name cannot be the name of a crate, or a file cannot be written.
pub fn run(kind: Kind, typed: &NewCrate, out: &mut impl Write) -> Result<(), Failure> {
    let directory = &typed.directory;
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-');
    if !is_name {
        return Err(SimUsage::NotACrateName(name.to_owned()).into());
    }
    if directory.exists() {
        return Err(SimUsage::DirectoryExists(directory.clone()).into());
    }
    let from = match &typed.checkout {
        Some(checkout) => format!("path = \"{}", crates_of(checkout)?.display()),
        None => String::new(),
    };
    for (path, text) in files(kind) {
        let mut text = text.replace("my-name", name).replace("my_name", &name.replace('-', "_"));
        if path == "Cargo.toml" {
            text = text.lines().map(|line| dependency(line, &from) + "\n").collect();
        }
        let path = directory.join(path);
        let parent = path.parent().unwrap_or(directory);
        fs::create_dir_all(parent).map_err(Failure::system(format!("create {}", parent.display())))?;
        fs::write(&path, text).map_err(Failure::system(format!("write {}", path.display())))?;
    }
    let path = directory.display();
    writeln!(out, "wrote {path}\n\nnext:\n  cd {path}\n  cargo test\n  cargo run --release")
        .map_err(unwritten)
}

/// Returns the directory of the crates in a checkout.
fn crates_of(checkout: &Path) -> Result<PathBuf, Failure> {
    let crates = checkout.join("crates");
    let found = crates.canonicalize().ok().filter(|crates| crates.join("core/Cargo.toml").is_file());
    found.ok_or_else(|| SimUsage::NoCheckout(checkout.to_owned()).into())
}

/// Returns a line of the manifest with the source of its dependency: a path, or a version.
fn dependency(line: &str, from: &str) -> String {
    let Some((start, rest)) = line.split_once("FROM/") else { return line.to_owned() };
    let end = rest.find([' ', ',']).unwrap_or(rest.len());
    let source = match from {
        "" => format!("version = \"{}\"", env!("CARGO_PKG_VERSION")),
        from => format!("{from}/{}\"", &rest[..end]),
    };
    format!("{start}{source}{}", &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(
        kind: Kind,
        name: &str,
        checkout: Option<PathBuf>,
    ) -> Result<(tempfile::TempDir, PathBuf), Failure> {
        let room = tempfile::tempdir().expect("room on the disk");
        let directory = room.path().join(name);
        run(kind, &NewCrate { directory: directory.clone(), checkout }, &mut Vec::new())?;
        Ok((room, directory))
    }

    #[test]
    fn crate_has_the_name_of_its_directory() {
        for kind in [Kind::Scheme, Kind::Queue] {
            let (_room, directory) = made(kind, "wide-gaps", None).expect("a new directory");
            for (path, _) in files(kind) {
                let text = fs::read_to_string(directory.join(path)).expect("written");
                assert!(!text.contains("my-name") && !text.contains("my_name"), "{path}");
            }
            let manifest = fs::read_to_string(directory.join("Cargo.toml")).expect("written");
            let version = env!("CARGO_PKG_VERSION");
            assert!(manifest.contains("name = \"wide-gaps\""), "{manifest}");
            let features =
                format!("faircast-core = {{ version = \"{version}\", features = [\"conformance\"] }}");
            assert!(manifest.contains(&features), "{manifest}");
        }
    }

    #[test]
    fn bad_names_existing_directories_and_bad_checkouts_are_refused() {
        for name in ["Wide", "1st", "a_b", "a b"] {
            let error = made(Kind::Queue, name, None).expect_err("a bad name").to_string();
            assert!(error.contains("lower-case letters"), "{error}");
        }
        let room = tempfile::tempdir().expect("room on the disk");
        let typed = NewCrate { directory: room.path().to_owned(), checkout: None };
        run(Kind::Scheme, &typed, &mut Vec::new()).expect_err("it exists");
        let error = made(Kind::Scheme, "mine", Some(room.path().to_owned())).expect_err("an empty directory");
        assert!(error.to_string().contains("no checkout"), "{error}");
    }
}
