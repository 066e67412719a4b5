//! Computes a hash of all code that determines the results of a build: the code through which a simulated packet passes.

#![allow(clippy::disallowed_methods, reason = "a build script reads files")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Directories next to this crate; missing if the crate is built outside of the repository.
const CODE: &[&str] = &[
    "../core/src",
    "../unicast/src",
    "../aqm/src",
    "../topology/src",
    "../sim/src",
    "src/run",
    "src/results",
    "src/scenario",
    "src/stats.rs",
    "src/table.rs",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let mut hash = blake3::Hasher::new();
    hash.update(env::var("CARGO_PKG_VERSION").map_err(io::Error::other)?.as_bytes());
    for part in CODE {
        let path = here.join(part);
        if path.exists() {
            println!("cargo:rerun-if-changed={}", path.display());
            add(&mut hash, part, &path)?;
        }
    }
    println!("cargo:rustc-env=FAIRCAST_CODE={}", &hash.finalize().to_hex()[..16]);
    Ok(())
}

/// Adds the content and the name of a file, or of all files in a directory, to the hash.
fn add(hash: &mut blake3::Hasher, name: &str, path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        return entries.iter().try_for_each(|entry| {
            add(hash, &format!("{name}/{}", entry.file_name().to_string_lossy()), &entry.path())
        });
    }
    let bytes = fs::read(path)?;
    hash.update(name.as_bytes()).update(&[0]).update(&(bytes.len() as u64).to_le_bytes()).update(&bytes);
    Ok(())
}
