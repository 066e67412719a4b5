//! Tables at the end of the demonstration.

#[cfg(feature = "simulator")]
use super::simulated;
use super::{DemoOutcome, ReceiverOutcome, SourceOutcome};
use crate::units;
use std::io::{self, Write};

/// Writes the result as text.
///
/// # Errors
/// When the output cannot be written.
pub fn write(outcome: &DemoOutcome, out: &mut impl Write) -> io::Result<()> {
    writeln!(out)?;
    #[cfg(feature = "simulator")]
    if !outcome.simulated.is_empty() {
        writeln!(out, "{}", simulated::grid(&outcome.simulated).text())?;
    }
    transfer(outcome, out)?;
    if outcome.ok { next(out) } else { Ok(()) }
}

/// Writes the results of the transfer.
///
/// # Errors
/// When the output cannot be written.
pub fn transfer(outcome: &DemoOutcome, out: &mut impl Write) -> io::Result<()> {
    receivers(&outcome.receivers, out)?;
    if outcome.source.bytes > 0 {
        source(&outcome.source, &outcome.receivers, out)?;
    }
    proven(outcome, out)
}

fn receivers(all: &[ReceiverOutcome], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<12} {:<9} {:>9}  {:>14}  {:>7}  {:>15}",
        "receiver", "verified", "time", "goodput", "loss", "repaired blocks"
    )?;
    all.iter().try_for_each(|receiver| writeln!(out, "{}", row(receiver)))
}

fn row(receiver: &ReceiverOutcome) -> String {
    let verified = if receiver.ok && receiver.equal { "yes" } else { "NO" };
    let full = if receiver.dropped_local > 0 { ", its buffer overflowed" } else { "" };
    let note = match receiver.stopped_seconds {
        Some(stopped) => format!("   (stopped for {}{full})", units::seconds(stopped)),
        None => String::new(),
    };
    format!(
        "{:<12} {verified:<9} {:>9}  {:>14}  {:>7}  {:>15}{note}",
        receiver.host,
        units::seconds(receiver.seconds),
        units::rate(receiver.goodput_bps),
        units::percent(receiver.loss),
        receiver.repaired_blocks,
    )
}

fn source(source: &SourceOutcome, receivers: &[ReceiverOutcome], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nsource: {} sent once for all {} in {}: {} to each, {} more for repair",
        units::bytes(source.bytes),
        units::count(receivers.len() as u64, "receiver"),
        units::seconds(source.seconds),
        units::rate(source.goodput_bps),
        units::percent((source.repair_ratio - 1.0).max(0.0))
    )?;
    let gigabytes = source.bytes as f64 / 1e9;
    let cpu: Vec<f64> = receivers.iter().filter_map(|receiver| receiver.cpu_seconds).collect();
    if let (Some(at_source), false) = (source.cpu_seconds, cpu.is_empty()) {
        let mean = cpu.iter().sum::<f64>() / cpu.len() as f64;
        let (at_source, mean) = (at_source / gigabytes, mean / gigabytes);
        writeln!(out, "CPU seconds per GB: {at_source:.2} at the source, {mean:.2} at a receiver")?;
    }
    Ok(())
}

fn proven(outcome: &DemoOutcome, out: &mut impl Write) -> io::Result<()> {
    let equal = outcome.receivers.iter().filter(|receiver| receiver.equal).count();
    let all = outcome.receivers.len();
    writeln!(
        out,
        "\nproven:\n  {} {equal} of {all} receivers hold the same {} as the source (BLAKE3 of each)",
        tick(equal == all),
        units::count(outcome.files, "file")
    )?;
    let seen = outcome.seen;
    writeln!(
        out,
        "  {} a listener without the key saw {} sealed packets, {} open, {} with readable content",
        tick(seen.is_closed()),
        seen.sealed,
        seen.open,
        seen.readable
    )?;
    outcome.failures().try_for_each(|failure| writeln!(out, "  {} {failure}", tick(false)))
}

fn next(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nnext:\n  faircast doctor                          on each host, to check it\n  \
         faircast keygen lab.key                  and copy the file to each host\n  \
         faircast recv --key lab.key --out DIR    on each receiver\n  \
         faircast send --key lab.key PATH         on the source"
    )?;
    #[cfg(feature = "simulator")]
    writeln!(
        out,
        "  faircast sim new dumbbell > lab.toml     a scenario to simulate; `faircast repro list`: the papers'"
    )?;
    Ok(())
}

fn tick(good: bool) -> &'static str {
    if good { "yes" } else { "no " }
}
