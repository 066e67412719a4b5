//! Arguments of `clean`.

use crate::values;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// List what receivers have begun and not finished in a directory, and remove it.
///
/// Unfinished content stays, so that whoever receives it again goes on where it was. What nobody sends any more stays as well, with
/// the room that was reserved for it. Finished files are never touched, nor what a receiver is at work on.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast clean --out /srv/images\n  \
    faircast clean --out /srv/images --remove               what is a week old\n  \
    faircast clean --out /srv/images --remove --older-than 0     all of it")]
pub struct Clean {
    /// The directory that receivers were given by --out
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, default_value = ".")]
    pub out: PathBuf,
    /// Remove what is listed
    #[arg(long)]
    pub remove: bool,
    /// Only what was not written to for so long: seconds, or days, as in 7d [default: 7d with --remove, else 0]
    #[arg(long, value_name = "AGE", value_parser = values::age)]
    pub older_than: Option<Duration>,
    /// One object a line, for programs
    #[arg(long)]
    pub json: bool,
}
