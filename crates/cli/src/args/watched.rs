//! Options of a source that watches a directory.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The directory to watch.
#[derive(Debug, Clone, Args)]
pub struct Watched {
    /// Send each file and directory that is completed in this directory (closed after writing, moved into it, or unchanged for
    /// 5 s) in a numbered session of its own, until stopped. `recv --serve` names missing numbers. Hidden and temporary names
    /// are skipped
    #[arg(help_heading = "Files", long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with_all = ["paths", "name", "start_at", "delete", "report", "wire"])]
    pub watch: Option<PathBuf>,
    /// With --watch: move sent files and directories into this directory, on the same file system. Without it they stay, and
    /// are sent again only after a change
    #[arg(help_heading = "Files", long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "watch")]
    pub sent_to: Option<PathBuf>,
}
