//! Sessions one after the other in one process leave nothing behind.

#![allow(clippy::disallowed_methods, reason = "a test reads files")]

use faircast_transport::fuzzing::sessions;

/// Losses on the way; then the file has to arrive whole.
const LOSSY: &[u8] = &[0, 14, 0, 14, 0, 15, 0, 14, 0, 15, 0, 14, 0];

/// What the allocator may keep for itself, in kB.
const SLACK: u64 = 2_048;

/// This process's memory in use, in kB, threads and all.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it has this line");
    line.trim().trim_end_matches(" kB").parse().expect("a number of kB")
}

#[test]
fn a_thousand_sessions_one_after_another_leave_no_memory_behind() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let run = |count: usize| (0..count).for_each(|_| sessions(LOSSY, scratch.path(), |_| ()));
    run(200);
    let before = resident();
    run(800);
    let after = resident();
    println!("{before} kB after 200 sessions, {after} kB after 1,000");
    assert!(after < before + SLACK, "{before} kB after 200 sessions, {after} kB after 1,000");
}
