//! A symbol number of a block on a layer never has two contents, even if files change during the session.

use super::*;
use crate::object::ObjectStream;
use faircast_core::rng::Rng;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const T: u16 = 64;
const K: u16 = 4;

/// Length of the content, bytes: more blocks than are cached for repairs.
const LEN: usize = 1_500 * 220;

/// Sent symbols, by layer, block and symbol number.
#[derive(Default)]
struct Left(BTreeMap<(u8, u32, u32), Vec<u8>>);

impl Left {
    /// Takes the next symbol of this layer; returns its block.
    fn take(
        &mut self,
        scheduler: &mut dyn Scheduler,
        layer: u8,
        seq: u64,
    ) -> Result<Option<u32>, ObjectError> {
        let Some(Chosen { place, payload, .. }) = scheduler.next(Layer(layer))? else { return Ok(None) };
        let first = self.0.entry((layer, place.block, place.symbol)).or_insert_with(|| payload.to_vec());
        assert_eq!(first, payload, "{place:?} on layer {layer} has two contents");
        let block = place.block;
        scheduler.sent(Seq(seq));
        scheduler.prepare(Layer(layer));
        Ok(Some(block))
    }
}

fn content() -> (BlockSource, PathBuf, TempDir) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("image");
    std::fs::write(&path, (0..LEN).map(|at| (at * at / 13) as u8).collect::<Vec<_>>()).expect("room");
    let object = ObjectStream::open(std::slice::from_ref(&path), T, K).expect("readable");
    (BlockSource::files(object), path, dir)
}

/// Overwrites bytes in place, and restores the size and time of the file.
fn change(path: &Path, at: u64) {
    let file = File::options().write(true).open(path).expect("our own file");
    let before = file.metadata().and_then(|meta| meta.modified()).expect("it has a time");
    file.write_all_at(b"other", at).expect("room for what was there");
    file.set_modified(before).expect("our own file");
}

fn assert_names(error: &ObjectError, path: &Path) {
    let message = error.to_string();
    assert!(
        message.contains(&*path.to_string_lossy()) && message.contains("same size and time"),
        "{message}"
    );
}

#[test]
fn source_sends_no_repairs_from_a_file_changed_in_place() {
    let (source, path, _dir) = content();
    let mut scheduler = of_blocks(source, 1);
    let (mut left, mut seq) = (Left::default(), 0);
    while left.take(&mut *scheduler, 0, seq).expect("nothing has changed").is_some() {
        seq += 1;
    }
    change(&path, 220 * 5);
    let by = |seq| Requester { seen: Seq(seq), held: None, wrong: false };
    assert!(scheduler.request(900, 1, &by(seq)));
    assert_eq!(left.take(&mut *scheduler, 0, seq).expect("that part is as it was"), Some(900));
    assert!(scheduler.request(5, 1, &by(seq)));
    let error = left.take(&mut *scheduler, 0, seq + 1).expect_err("it reads differently");
    assert_names(&error, &path);
}

/// Changes a block of a fountain in place; returns the resulting error and the changed file.
fn of_a_changed_fountain() -> (ObjectError, PathBuf) {
    let (source, path, _dir) = content();
    let mut scheduler = of_blocks(source, 3);
    scheduler.set_rate(1_000.0);
    scheduler.welcome();
    let mut left = Left::default();
    let changed_at = 3_000;
    for seq in 0..1_000_000 {
        if seq == changed_at {
            change(&path, 220 * 3);
        }
        match left.take(&mut *scheduler, (seq % 3) as u8, seq) {
            Ok(block) => assert!(block.is_some(), "a fountain does not end"),
            Err(error) => {
                assert!(seq >= changed_at);
                return (error, path);
            }
        }
    }
    panic!("the fountain did not come back to the block");
}

#[test]
fn fountain_stops_at_a_changed_block() {
    // The reader may check the file before its time is restored; the error then names the time.
    let mut tries = (0..20).map(|_| of_a_changed_fountain());
    let seen = tries.find(|(error, _)| !error.to_string().contains("(modified)"));
    let (error, path) = seen.expect("it looks at another moment mostly");
    assert_names(&error, &path);
}

#[test]
fn file_that_changes_during_hashing_is_detected() {
    let (mut source, path, _dir) = content();
    let mut bytes = Vec::new();
    source.read(7, &mut bytes).expect("readable");
    change(&path, 220 * 7 + 30);
    source.poll(Time::ZERO, Leisure::Yes).expect("the root takes what was read as it was");
    let error = source.read(7, &mut bytes).expect_err("it reads differently");
    assert_names(&error, &path);
}

/// Returns the blocks of files of 50 to 2,500 bytes: more blocks than are cached.
fn tree(rng: &mut Rng) -> (BlockSource, Vec<PathBuf>, TempDir) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let paths: Vec<PathBuf> = (0..260).map(|n| dir.path().join(format!("{n:03}"))).collect();
    for path in &paths {
        let bytes: Vec<u8> = (0..50 + rng.below(2_450)).map(|_| rng.bits() as u8).collect();
        std::fs::write(path, bytes).expect("room");
    }
    let object = ObjectStream::open(&paths, T, K).expect("readable");
    (BlockSource::files(object), paths, dir)
}

/// Files grow, vanish and change in place while receivers request blocks again.
#[test]
fn no_symbol_is_sent_with_two_contents_despite_withdrawals() {
    for (seed, layers) in (0..12).map(|seed| (seed, if seed % 3 == 0 { 2 } else { 1 })) {
        let mut rng = Rng::new(seed, 1);
        let (source, paths, _dir) = tree(&mut rng);
        let mut scheduler = of_blocks(source, layers);
        let mut left = Left::default();
        let by = |seq| Requester { seen: Seq(seq), held: None, wrong: false };
        let blocks = scheduler.status().blocks.expect("files have a length");
        for seq in 0..12_000 {
            if rng.chance(0.005) {
                let path = &paths[rng.below(200) as usize];
                match rng.below(3) {
                    0 => drop(std::fs::remove_file(path)),
                    1 if path.exists() => std::fs::write(path, [7; 3_000]).expect("room"),
                    2 if path.exists() => change(path, 20),
                    _ => {}
                }
            }
            if rng.chance(0.2) {
                scheduler.request(rng.below(blocks.into()) as u32, 1 + rng.below(4) as u16, &by(seq));
            }
            if rng.chance(0.02) {
                scheduler.look(Time::ZERO, Leisure::Yes, &|_| Rate::ZERO).expect("other files are left");
            }
            let layer = rng.below(layers.into()) as u8;
            left.take(&mut *scheduler, layer, seq).expect("other files are left");
        }
        assert!(scheduler.withdrawn().len() > 10, "{seed}: {:?}", scheduler.withdrawn());
        assert_eq!(scheduler.withdrawn().len(), scheduler.unsent().len());
    }
}
