//! Arguments of `trace`.

use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

/// Explain the rates of sessions.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  faircast trace show send.sqlog --at 12.3")]
pub struct Trace {
    /// Command.
    #[command(subcommand)]
    pub command: TraceCommand,
}

/// The commands of `trace`.
#[derive(Debug, Subcommand)]
pub enum TraceCommand {
    /// Show the course of the sessions of a trace, or explain their rates at a moment
    Show(TraceShow),
}

/// Show the course of the sessions of a trace, or explain their rates at a moment.
///
/// `--trace` of `send`, `stream`, `recv` and `relay` writes traces, in the format qlog.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast trace show send.sqlog\n  \
    faircast trace show send.sqlog --at 12.3       why the rate was as it was\n  \
    faircast trace show send.sqlog --out rate.html a page for browsers")]
pub struct TraceShow {
    /// Trace
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Explain the rate at this time of the session, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = crate::values::span)]
    pub at: Option<Duration>,
    /// Show only this session
    #[arg(long, value_name = "NAME")]
    pub session: Option<String>,
    /// Also write a plot to this file: a page for browsers if its name ends in .html, a figure if it ends in .svg or .pdf
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}
