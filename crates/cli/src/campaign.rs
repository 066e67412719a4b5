//! `campaign`: calls the Python package, because the engines of clusters are libraries of Python.

use crate::failure::Failure;
use crate::sim_usage::SimUsage;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The interpreter, from `PATH`. In an active virtual environment it is the environment's.
const PYTHON: &str = "python3";

/// Replaces this process by the command of the Python package.
///
/// # Errors
/// When Python or the package is not installed, or Python cannot be started.
pub fn run(words: &[OsString]) -> Result<(), Failure> {
    let mut import = Command::new(PYTHON);
    import
        .args(["-c", "import faircast.campaigns"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !import.status().is_ok_and(|status| status.success()) {
        return Err(SimUsage::NoPythonPackage.into());
    }
    let error = Command::new(PYTHON).args(["-m", "faircast", "campaign"]).args(words).exec();
    Err(Failure::system(format!("start {PYTHON}"))(error))
}
