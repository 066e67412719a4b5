//! The check for the permission to build networks.

use crate::task::run;
use std::io::Write;
use std::sync::OnceLock;
use std::time::Duration;

/// Proof that this process may create namespaces. [`require_root`] returns it.
#[derive(Debug, Clone, Copy)]
pub struct Root(());

/// Returns the permission to build networks. Otherwise prints the reason and returns `None`; the test should then return.
///
/// # Panics
/// Panics instead of skipping if the environment variable `CI` is `true`.
pub fn require_root() -> Option<Root> {
    static POSSIBLE: OnceLock<Result<(), String>> = OnceLock::new();
    let Err(reason) = POSSIBLE.get_or_init(possible) else { return Some(Root(())) };
    let name = std::thread::current().name().unwrap_or("a test").to_string();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{name} cannot be skipped with CI=true: {reason}");
    // Writes directly to standard error, because the test harness discards the output of passing tests.
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {reason}");
    None
}

fn possible() -> Result<(), String> {
    // SAFETY: geteuid has no preconditions and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Err("needs root to make network namespaces".into());
    }
    let limit = Duration::from_secs(10);
    for (program, version) in [("ip", "-V"), ("tc", "-V"), ("ethtool", "--version"), ("sysctl", "--version")]
    {
        run(program, &[version], limit).map_err(|e| format!("needs {program}: {e}"))?;
    }
    let probe = format!("fcprobe{}", std::process::id());
    run("ip", &["netns", "add", &probe], limit)
        .and_then(|_| run("ip", &["netns", "del", &probe], limit))
        .map(drop)
        .map_err(|e| format!("root here may not make network namespaces: {e}"))
}
