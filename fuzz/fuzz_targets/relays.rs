#![no_main]

#[path = "../sessions.rs"]
#[allow(dead_code, reason = "every target uses a part")]
mod sessions;

use std::path::PathBuf;
use std::sync::LazyLock;

/// The scratch directory of this process. A file system in memory (`TMPDIR=/dev/shm`) makes the target ten times faster.
static SCRATCH: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("faircast-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("the temporary directory can be written");
    path
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| sessions::relays(input, &SCRATCH));
