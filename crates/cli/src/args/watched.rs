//! Options of a source that watches a directory.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The directory to watch.
#[derive(Debug, Clone, Args)]
pub struct Watched {
    /// With --one-way: send each file that is completed in this directory (closed after writing, or moved into it) in a numbered
    /// session of its own, until stopped. `recv --one-way --serve` names missing numbers. Hidden and temporary files are skipped
    #[arg(help_heading = "Sending without feedback", long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "one_way", conflicts_with_all = ["paths", "name", "start_at", "delete"])]
    pub watch: Option<PathBuf>,
    /// With --watch: move sent files into this directory, on the same file system. Without it they stay, and are sent again
    /// only after a change
    #[arg(help_heading = "Sending without feedback", long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "watch")]
    pub sent_to: Option<PathBuf>,
}
