//! Arguments of `clean`.

use crate::values;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// List or remove partial files of receivers.
///
/// Receivers keep partial files to resume transfers. Partial files of abandoned transfers occupy their reserved space until they
/// are removed. Finished files and transfers in progress are never touched.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast clean --out /srv/images\n  \
    faircast clean --out /srv/images --remove                 older than a week\n  \
    faircast clean --out /srv/images --remove --older-than 0  all")]
pub struct Clean {
    /// Directory of the receivers (`recv --out`)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub out: PathBuf,
    /// Remove the listed data
    #[arg(long)]
    pub remove: bool,
    /// Select only data that was last written before this age: seconds, or days as in 7d [default: 7d with --remove,
    /// otherwise 0]
    #[arg(long, value_name = "AGE", value_parser = values::age)]
    pub older_than: Option<Duration>,
    /// Print JSON, one object per line
    #[arg(long)]
    pub json: bool,
}
