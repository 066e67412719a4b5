//! Replay of the stored inputs of the fuzz targets, unchanged and with random changes.

use faircast_core::rng::Rng;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the folder with the inputs of a target.
pub fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Checks that this input is stored. `FAIRCAST_BLESS=1` stores it.
pub fn assert_stored(target: &str, name: &str, input: &[u8]) {
    let path = folder(target).join(format!("sample-{name}"));
    if std::env::var("FAIRCAST_BLESS").as_deref() == Ok("1") {
        fs::create_dir_all(folder(target)).expect("the source tree can be written");
        fs::write(&path, input).expect("the source tree can be written");
    }
    let is_current = fs::read(&path).is_ok_and(|found| found == input);
    assert!(is_current, "{} is stale: FAIRCAST_BLESS=1", path.display());
}

/// Replays every stored input of a target.
pub fn replay(target: &str, entry: impl Fn(&[u8])) {
    let mut replayed = 0;
    for file in fs::read_dir(folder(target)).expect("the corpus is part of the repository") {
        let path = file.expect("the folder can be read").path();
        println!("{}", path.display()); // visible if `entry` panics
        entry(&fs::read(&path).expect("the file can be read"));
        replayed += 1;
    }
    assert!(replayed > 0, "no inputs for {target}");
}

/// Returns a stored input with a few random changes. Unlike a fuzzer, it does not consider code coverage.
fn changed(rng: &mut Rng, stored: &[Vec<u8>]) -> Vec<u8> {
    let mut pick = |most: usize| rng.below(most.max(1) as u64) as usize;
    let mut input = stored[pick(stored.len())].clone();
    for _ in 0..1 + pick(8) {
        let (at, len) = (pick(input.len()), 1 + pick(12));
        match pick(5) {
            0 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte = pick(256) as u8),
            1 => input.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 1 << pick(8)),
            2 => drop(input.drain(at..(at + len).min(input.len()))),
            3 => {
                let other = &stored[pick(stored.len())];
                let from = pick(other.len());
                input.splice(at..at, other[from..].iter().copied().take(len));
            }
            _ => drop(input.splice(at..at, (0..len).map(|_| pick(256) as u8).collect::<Vec<_>>())),
        }
    }
    input.truncate(2_000);
    input
}

/// Passes randomly changed inputs of a target to `entry`. `FAIRCAST_INPUTS` sets their number, and `FAIRCAST_SEED` the first
/// random seed.
pub fn assert_harmless_when_changed(target: &str, entry: impl Fn(&[u8])) {
    let from_env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seed, count) = (from_env("FAIRCAST_SEED").unwrap_or(1), from_env("FAIRCAST_INPUTS").unwrap_or(100));
    let mut paths: Vec<_> = fs::read_dir(folder(target))
        .expect("the corpus is part of the repository")
        .map(|file| file.expect("the folder can be read").path())
        .collect();
    paths.sort();
    let stored: Vec<_> = paths.iter().map(|path| fs::read(path).expect("the file can be read")).collect();
    for number in seed..seed + count {
        let input = changed(&mut Rng::new(number, 0), &stored);
        println!("FAIRCAST_SEED={number} FAIRCAST_INPUTS=1: {input:?}"); // visible if `entry` panics
        entry(&input);
    }
}
