//! Arguments of `receipt`.

use crate::values;
use clap::{Args, Subcommand, ValueHint};
use faircast::Preserve;
use std::path::PathBuf;

/// About receipts: what receivers have signed (`recv --sign-receipts`), as a sender has written it (`send --report`).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  faircast receipt verify lab.json --keys lab-keys/")]
pub struct Receipt {
    /// What about them
    #[command(subcommand)]
    pub command: ReceiptCommand,
}

/// What can be asked about receipts.
#[derive(Debug, Subcommand)]
pub enum ReceiptCommand {
    /// Check the receipts of a report again, without the session
    Verify(ReceiptVerify),
}

/// Check the receipts of a report again, without the session: that their keys have signed, and with PATH that it was this content.
///
/// A receipt says that the holder of a key has verified the content, when by the clock of its host, and what the host calls itself.
/// It is about one session and one root: a hash over how the content was cut into blocks and the hashes of all of them, names, modes
/// and times among them. PATH is what was given to `send`, unchanged since then.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    faircast receipt verify lab.json\n  \
    faircast receipt verify lab.json --keys lab-keys/         the hosts' public keys\n  \
    faircast receipt verify lab.json --keys lab.keys disk.img\n\n\
    It exits with 1 when a receipt does not verify, when a key of --keys has signed nothing, or when the content is another.")]
pub struct ReceiptVerify {
    /// The report, in JSON (`send --report FILE`)
    #[arg(value_name = "REPORT", value_hint = ValueHint::FilePath)]
    pub report: PathBuf,
    /// The content that it should be about
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Each of these public keys must have signed, and no other counts: a file of them, or a directory of such files
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub keys: Option<PathBuf>,
    /// With PATH: what `send --preserve` was given
    #[arg(long, value_name = "ATTRIBUTES", value_parser = values::preserve, default_value = "", hide_default_value = true)]
    pub preserve: Preserve,
    /// Tell every receipt as JSON, one object a line
    #[arg(long)]
    pub json: bool,
}
