//! The last lines of a session for people.

use crate::{buffers, printer, units};
use faircast::event::{DryRunReport, HostOutcome, LayersReport};
use faircast::{ReceiveReport, SendReport};
use std::time::Duration;

/// Minimum number of refused packets that the summary reports. In normal operation, receivers of an earlier session cause smaller
/// numbers.
const MANY_REFUSED: u64 = 100;

/// Returns the summary of a `send` for people.
pub fn sent(report: &SendReport) -> Vec<String> {
    if let Some(result) = &report.dry_run {
        return vec![dry_run_summary(report, result)];
    }
    if report.rounds > 0 {
        return vec![format!(
            "sent {} of {} in {}: {} with {} repair; receivers send no feedback, so their outcome is known only at their own hosts",
            units::count(report.rounds, "round"),
            units::bytes(report.bytes),
            units::seconds(report.duration.as_secs_f64()),
            units::rate(report.goodput.bps() * report.rounds as f64),
            units::percent((report.repair_ratio / report.rounds as f64 - 1.0).max(0.0)),
        )];
    }
    // All layers send until the slowest receiver is complete. The sent volume is therefore no measure of repairs.
    let spent = match report.layers {
        0 | 1 => format!("{} repair", units::percent((report.repair_ratio - 1.0).max(0.0))),
        layers => format!("{:.1} times the content on {layers} layers", report.repair_ratio),
    };
    let headline = match report.verified {
        // The goodput is undefined without a complete receiver.
        0 => format!(
            "0 of {} verified after {}; the most complete receiver has {} of {}",
            units::count(report.receivers, "receiver"),
            units::seconds(report.duration.as_secs_f64()),
            units::bytes(report.moved_bytes),
            units::bytes(report.bytes),
        ),
        verified => format!(
            "sent {} to {} in {}: {}, {spent}, {verified} of {} verified",
            units::bytes(report.bytes),
            units::count(report.receivers, "receiver"),
            units::seconds(report.duration.as_secs_f64()),
            units::rate(report.goodput.bps()),
            report.receivers,
        ),
    };
    // Without receivers, there is no summary.
    let mut lines = match report.receivers {
        0 => Vec::new(),
        _ => vec![format!("{headline}{}", waited(report))],
    };
    lines.extend((0..).zip(&report.streams).map(|(layer, sent): (u8, _)| {
        let (bytes, blocks) = (units::bytes(sent.bytes), units::count(sent.blocks, "block"));
        format!("layer {layer}: {bytes} in {blocks}, {} dropped", sent.blocks_dropped)
    }));
    lines.extend(listed_hosts(report));
    if report.receipts.is_some() {
        lines.push(format!("{} of {}", report.signed, units::count(report.verified, "receipt")));
    }
    if !report.slow.is_empty() {
        lines.push(format!("slow: {}", report.slow.join(", ")));
    }
    if report.refused >= MANY_REFUSED {
        lines.push(format!(
            "refused {} (forged, replayed or damaged)",
            units::count(report.refused, "packet")
        ));
    }
    lines
}

/// Describes the result of a dry run.
fn dry_run_summary(report: &SendReport, result: &DryRunReport) -> String {
    let time = result.duration.map_or_else(String::new, |time| {
        format!(", {} at the maximum rate", units::seconds(time.as_secs_f64()))
    });
    let silent = match report.verified.saturating_sub(result.compared) {
        0 => String::new(),
        count => format!("; {} stated nothing", units::count(count, "receiver")),
    };
    format!(
        "dry run, nothing was written: a session would send {} of {} to {}{time}{silent}",
        units::bytes(result.needed_bytes),
        units::bytes(result.bytes),
        units::count(result.compared, "receiver"),
    )
}

/// Minimum waiting time that is reported.
const MIN_WAIT: Duration = Duration::from_secs(1);

/// Describes the waiting times before the start and at the end of the session.
fn waited(report: &SendReport) -> String {
    let wait = |time: Duration, what: &str| {
        (time >= MIN_WAIT).then(|| format!("; waited {} {what}", units::seconds(time.as_secs_f64())))
    };
    let before = wait(report.until_data, "before the start");
    let after = wait(report.waited, "for receivers at the end");
    before.into_iter().chain(after).collect()
}

/// Describes the outcomes of the listed hosts.
fn listed_hosts(report: &SendReport) -> Vec<String> {
    let outcomes = [
        (HostOutcome::Done, "have everything"),
        (HostOutcome::Incomplete, "joined and are incomplete"),
        (HostOutcome::Unanswered, "never answered"),
    ];
    let line = |(outcome, words): (HostOutcome, &str)| {
        let hosts = report.hosts.iter().filter(|host| host.outcome == outcome);
        let names: Vec<&str> = hosts.map(|host| host.host.as_str()).collect();
        (!names.is_empty())
            .then(|| format!("{} of {} {words}: {}", names.len(), report.hosts.len(), names.join(", ")))
    };
    outcomes.into_iter().filter_map(line).collect()
}

/// Returns the summary of a `recv` for people.
pub fn received(report: &ReceiveReport) -> Vec<String> {
    let packets = report.packets + report.lost;
    let loss = if packets == 0 { 0.0 } else { report.lost as f64 / packets as f64 };
    if report.stopped {
        return Vec::new();
    }
    if let Some(host) = &report.dry_run {
        let mut lines = vec![format!("dry run, nothing was written: {}", units::comparison(host))];
        lines.extend(report.warnings.iter().map(|text| printer::warning(text)));
        return lines;
    }
    let mut lines = vec![format!(
        "received {}, {} in {}: {}, loss {}, {} repaired{}",
        units::entries(report.files, report.links, report.directories),
        units::bytes(report.bytes),
        units::seconds(report.duration.as_secs_f64()),
        units::rate(report.goodput.bps()),
        units::percent(loss),
        units::count(report.repaired_blocks, "block"),
        if report.stopped { "" } else { ", all verified" },
    )];
    if report.deleted > 0 {
        lines.push(format!("deleted {} that the source does not have", units::count(report.deleted, "file")));
    }
    lines.extend(report.layers.map(|layers| {
        let LayersReport { of, highest, joins, leaves } = layers;
        format!(
            "joined up to {highest} of {of} layers ({}, {})",
            units::count(joins, "join"),
            units::count(leaves, "leave"),
        )
    }));
    lines.extend((0..).zip(&report.streams).map(|(layer, got): (u8, _)| {
        let to = got.to.as_ref().map_or_else(String::new, |to| format!(", in {to}"));
        let (bytes, joined) = (units::bytes(got.bytes), units::seconds(got.joined_for.as_secs_f64()));
        format!(
            "layer {layer}: {bytes}, {} lost, joined for {joined}{to}",
            units::count(got.blocks_lost, "block")
        )
    }));
    if report.forged_blocks > 0 {
        lines.push(printer::warning(&format!(
            "dropped {} that the source has not signed",
            units::count(report.forged_blocks, "block")
        )));
    }
    if report.dropped_local > 0 {
        lines.push(printer::warning(&buffers::dropped(report.dropped_local)));
    }
    lines.extend(report.warnings.iter().map(|text| printer::warning(text)));
    lines
}
