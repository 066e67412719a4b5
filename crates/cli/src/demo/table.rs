//! What the demonstration says at its end.

use super::{Outcome, ReceiverOutcome};
use crate::units;
use std::io::{self, Write};

/// Write the result for people.
///
/// # Errors
/// When it cannot be written.
pub fn write(outcome: &Outcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:<12} {:<9} {:>9}  {:>14}  {:>7}  {:>8}",
        "receiver", "verified", "time", "goodput", "loss", "repaired"
    )?;
    for receiver in &outcome.receivers {
        writeln!(out, "{}", row(receiver))?;
    }
    let source = &outcome.source;
    writeln!(
        out,
        "\nsource: {} to {} in {}",
        units::bytes(source.bytes),
        units::count(outcome.receivers.len() as u64, "receiver"),
        units::seconds(source.seconds)
    )?;
    writeln!(
        out,
        "        {} to each, {} sent again or as repair",
        units::rate(source.goodput_bps),
        units::percent((source.repair_ratio - 1.0).max(0.0))
    )?;
    if let (Some(cpu), true) = (source.cpu_seconds, source.bytes > 0) {
        writeln!(out, "        {:.2} CPU seconds per GB", cpu * 1e9 / source.bytes as f64)?;
    }
    writeln!(out, "\nproven:")?;
    let equal = outcome.receivers.iter().filter(|receiver| receiver.equal).count();
    let all = outcome.receivers.len();
    writeln!(
        out,
        "  {} {equal} of {all} receivers hold the same {} as the source (BLAKE3 of each)",
        tick(equal == all),
        units::count(outcome.files, "file")
    )?;
    let seen = outcome.seen;
    let closed = seen.sealed > 0 && seen.open == 0 && seen.readable == 0;
    writeln!(
        out,
        "  {} a listener without the key saw {} sealed packets, {} open, {} with readable content",
        tick(closed),
        seen.sealed,
        seen.open,
        seen.readable
    )?;
    for failure in outcome.failures() {
        writeln!(out, "  no  {failure}")?;
    }
    writeln!(
        out,
        "\nnext:\n  faircast doctor                          on each host: is it fit?\n  \
         faircast keygen lab.key                  and copy the file to each host\n  \
         faircast recv --key lab.key --out DIR    on each receiver\n  \
         faircast send --key lab.key PATH         on the source"
    )
}

fn tick(good: bool) -> &'static str {
    if good { "yes" } else { "no " }
}

fn row(receiver: &ReceiverOutcome) -> String {
    let verified = if receiver.ok && receiver.equal { "yes" } else { "NO" };
    let note = match receiver.injected {
        Some(loss) => format!("   ({} loss on purpose)", units::percent(loss)),
        None => String::new(),
    };
    format!(
        "{:<12} {verified:<9} {:>9}  {:>14}  {:>7}  {:>8}{note}",
        receiver.host,
        units::seconds(receiver.seconds),
        units::rate(receiver.goodput_bps),
        units::percent(receiver.loss),
        receiver.repaired_blocks,
    )
}
