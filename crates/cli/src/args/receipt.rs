//! Arguments of `receipt`.

use crate::values;
use clap::{Args, Subcommand, ValueHint};
use faircast::Preserve;
use std::path::PathBuf;

/// Inspect receipts: statements signed by receivers (`recv --sign-receipts`) in a report (`send --report`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast receipt verify lab.json --keys lab-keys/")]
pub struct Receipt {
    /// Command for receipts
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

/// Commands for receipts.
#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// Verify the receipts of a report, without the session
    Verify(ReceiptVerify),
}

/// Verify the signatures of the receipts in a report and, with PATH, that they cover this content.
///
/// A receipt states that the holder of a key has verified the content. It has the time at that host and the name of the host.
/// It is about one session and one root hash, which covers all blocks with names, modes and times. PATH is the unchanged argument
/// of `send`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast receipt verify lab.json\n  \
    faircast receipt verify lab.json --keys lab-keys/         public keys of the hosts\n  \
    faircast receipt verify lab.json --keys lab.keys disk.img\n\n\
    Exit code 1: a receipt is invalid, a key of --keys has no receipt, or the content differs.")]
pub struct ReceiptVerify {
    /// Report in JSON (`send --report FILE`)
    #[arg(value_name = "REPORT", value_hint = ValueHint::FilePath)]
    pub report: PathBuf,
    /// Content to compare
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Require a receipt of each of these public keys, and count no other key: a file, or a directory of files
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub keys: Option<PathBuf>,
    /// With PATH: the value of `send --preserve`
    #[arg(long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// Print every receipt as JSON, one object per line
    #[arg(long)]
    pub json: bool,
}
