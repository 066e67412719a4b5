//! End-to-end tests: from files to an object stream, through blocks, into a store, and back to files.

use super::*;
use crate::block::hash_of;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

mod adopt;
mod devices;
mod direct;
mod existing;
mod hostile;
mod in_place;
mod journey;
mod links;
mod metadata;
mod overwrite;
mod planted;
mod resume;
mod reuse;
#[expect(clippy::single_range_in_vec_init, reason = "some files have one hole")]
mod sparse;
mod system;

/// Small blocks: a full block has 4 symbols of 64 bytes and holds 220 bytes of the object stream.
const T: u16 = 64;
const K: u16 = 4;
const CAPACITY: usize = 220;

/// A temporary directory, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("faircast-object-{}-{n}", std::process::id()));
        fs::create_dir(&path).expect("the temporary directory takes directories");
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies below the scratch directory")).expect("created");
        fs::write(&path, content).expect("written");
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000 + content.len() as u64, 123_456_789);
        fs::File::options().write(true).open(&path).and_then(|f| f.set_modified(time)).expect("time set");
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fn open_up(path: &Path) {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).ok();
            for child in fs::read_dir(path).into_iter().flatten().flatten() {
                if child.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open_up(&child.path());
                }
            }
        }
        open_up(&self.0);
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Returns pseudorandom-looking bytes that differ at every position.
fn content(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|n| (n as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ seed).collect()
}

fn object(path: &Path) -> ObjectStream {
    ObjectStream::open(&[path.to_path_buf()], T, K).expect("the source can be read")
}

/// Returns data and hash of all blocks of an object stream.
fn blocks(object: &mut ObjectStream) -> Vec<(Vec<u8>, Hash)> {
    let mut all = Vec::new();
    let mut buf = Vec::new();
    for index in 0.. {
        if object.geometry().blocks().is_some_and(|blocks| index >= blocks) {
            break;
        }
        match object.read_block(index, &mut buf).expect("the source can be read") {
            BlockRead::Data => all.push((buf.clone(), hash_of(&buf))),
            BlockRead::End => break,
        }
    }
    all
}

fn root(geometry: Geometry, blocks: &[(Vec<u8>, Hash)]) -> Hash {
    let mut hasher = RootHasher::new(geometry);
    for (index, (_, hash)) in (0..).zip(blocks) {
        hasher.push(index, *hash);
    }
    hasher.root().expect("all blocks are there")
}

fn open(out: &Path, object: &ObjectStream) -> Result<Store, ObjectError> {
    Store::open(out, object.transfer(), object.geometry(), None)
}

fn put_all(store: &mut Store, blocks: &[(Vec<u8>, Hash)]) {
    for (index, (data, hash)) in (0..).zip(blocks) {
        let put = store.put(index, data, *hash).expect("the block can be stored");
        assert_ne!(put, Put::NeedsManifest);
    }
}

/// Sends `source` into `out`.
fn transfer(source: &Path, out: &Path) -> Result<Finished, ObjectError> {
    let mut object = object(source);
    let blocks = blocks(&mut object);
    let mut store = open(out, &object)?;
    for (index, (data, hash)) in (0..).zip(&blocks) {
        store.put(index, data, *hash)?;
    }
    store.finish(&root(object.geometry(), &blocks), Durability::Fast)
}

/// Returns a description of each entry of a tree (kind, mode, time and content) by relative path.
fn picture(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut pending = vec![top.to_path_buf()];
    while let Some(path) = pending.pop() {
        let meta = path.symlink_metadata().expect("it was listed just now");
        let what = if meta.is_dir() {
            pending.extend(fs::read_dir(&path).expect("listed").map(|child| child.expect("listed").path()));
            "dir".to_owned()
        } else if meta.is_symlink() {
            format!("-> {}", fs::read_link(&path).expect("a link").display())
        } else {
            hash_of(&fs::read(&path).expect("read")).to_string()
        };
        let mode = if meta.is_symlink() { 0 } else { meta.mode() & 0o777 };
        let name = path.strip_prefix(top).expect("below the top").display().to_string();
        found.insert(name, format!("{what} {mode:o} {}.{:09}", meta.mtime(), meta.mtime_nsec()));
    }
    found
}

/// Returns whether this user is root. Root has all permissions, so a lack of permission cannot be tested.
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
