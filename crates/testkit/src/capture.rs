//! Packet captures and their analysis by tshark.

use crate::error::KitError;
use crate::node::Node;
use crate::task::{Task, run};
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// A running packet capture.
#[derive(Debug)]
pub struct Capture {
    task: Task,
    file: PathBuf,
}

impl Capture {
    /// Captures the packets on the interface of a host into a file. `filter` is a libpcap filter; if empty, it matches all
    /// packets.
    ///
    /// # Errors
    /// Fails if tcpdump cannot be started or does not capture within 10 s.
    pub fn start(node: &Node, filter: &str, file: &Path) -> Result<Capture, KitError> {
        let path = file.to_string_lossy();
        let mut args =
            vec!["-i", Node::INTERFACE, "-U", "--immediate-mode", "-B", "16384", "-Z", "root", "-w", &path];
        args.extend(filter.split_whitespace());
        let mut task = node.start("tcpdump", &args)?;
        task.wait_for("listening on", Duration::from_secs(10))?;
        Ok(Capture { task, file: file.into() })
    }

    /// Stops the capture and returns its file.
    ///
    /// # Errors
    /// Fails if tcpdump does not end, or ends with an error.
    pub fn stop(mut self) -> Result<PathBuf, KitError> {
        std::thread::sleep(Duration::from_millis(100)); // for packets in the queues of the kernel
        self.task.interrupt();
        self.task.finish(Duration::from_secs(10))?.ok()?;
        Ok(self.file)
    }
}

/// Returns the named fields of the packets that match a display filter: one row for each packet.
///
/// # Errors
/// Fails if tshark fails, for example on an unknown field.
pub fn fields(file: &Path, filter: &str, names: &[&str]) -> Result<Vec<Vec<String>>, KitError> {
    let path = file.to_string_lossy();
    let mut args = vec!["-n", "-r", &*path, "-Y", filter, "-T", "fields"];
    args.extend(names.iter().flat_map(|name| ["-e", *name]));
    let out = run("tshark", &args, LIMIT)?;
    Ok(out.stdout.lines().map(|line| line.split('\t').map(str::to_string).collect()).collect())
}

/// Returns the malformed packets and errors that tshark finds in a capture, one line each. `more` contains further arguments of
/// tshark, such as `-X lua_script:FILE` for a dissector.
///
/// # Errors
/// Fails if tshark fails.
pub fn warnings(file: &Path, more: &[&str]) -> Result<Vec<String>, KitError> {
    let path = file.to_string_lossy();
    let filter = "_ws.malformed || _ws.expert.severity == error";
    let mut args = vec!["-n", "-r", &*path, "-Y", filter];
    args.extend(more);
    Ok(run("tshark", &args, LIMIT)?.stdout.lines().map(str::to_string).collect())
}
