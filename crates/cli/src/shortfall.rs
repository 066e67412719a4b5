//! Failures of a `send` that ended with a report, because receivers or files are incomplete.

use crate::failure::Failure;
use crate::{units, wording};
use faircast::SendReport;
use faircast::event::reasons;

/// If the report states a failure, returns this failure.
pub fn sent_failure(report: &SendReport) -> Option<Failure> {
    (!report.ok).then(|| failure_kind(report)(sent_shortfall(report)))
}

/// Returns the kind of failure for the report of a failed session.
pub fn failure_kind(report: &SendReport) -> fn(String) -> Failure {
    match () {
        () if only_left_out(report) => Failure::LeftOut,
        () if report.unsent_count > 0 && report.dropped.is_empty() && are_all_served(report) => {
            Failure::WithoutFiles
        }
        () => Failure::Incomplete,
    }
}

/// Whether all receivers are complete, except for those that `--slow drop` has excluded.
fn only_left_out(report: &SendReport) -> bool {
    !report.dropped.is_empty() && report.unsent_count == 0 && are_all_served(report)
}

/// Whether all receivers, except for excluded ones, have all files that could be sent.
fn are_all_served(report: &SendReport) -> bool {
    let unsigned = report.receipts.as_ref().is_some_and(|receipts| !receipts.without_receipt.is_empty());
    let others = unsigned
        || !report.incomplete.is_empty()
        || !report.absent.is_empty()
        || !report.refused_hosts.is_empty()
        || report.stopped
        || report.missing > 0;
    !others && (report.verified > 0 || report.rounds > 0)
}

/// Describes the shortfall of a `send`, with advice.
pub fn sent_shortfall(report: &SendReport) -> String {
    let mut parts = Vec::new();
    if report.stopped && report.receivers == 0 {
        return "stopped; no receiver had joined".to_owned();
    }
    if report.stopped {
        parts.push("stopped".to_owned());
    }
    if report.missing > 0 {
        parts.push(format!(
            "{} of {} have joined",
            report.receivers,
            units::count(report.receivers + report.missing, "receiver")
        ));
    }
    if !report.absent.is_empty() {
        parts.push(format!("did not join: {}", report.absent.join(", ")));
    }
    if !report.refused_hosts.is_empty() {
        let hosts = named(report.refused_hosts.iter().map(|one| (&*one.host, &*one.reason)));
        parts.push(format!("refused to join: {hosts}"));
    }
    if !report.dropped.is_empty() {
        parts.push(format!("left out as too slow: {}", report.dropped.join(", ")));
    }
    let lacking = report.receipts.as_ref().map_or(&[][..], |receipts| &receipts.without_receipt);
    if !lacking.is_empty() {
        parts.push(format!(
            "without a valid receipt: {}",
            named(lacking.iter().map(|one| (&*one.host, &*one.reason)))
        ));
    }
    let is_sent =
        parts.is_empty() && report.incomplete.is_empty() && (report.verified > 0 || report.rounds > 0);
    if let Some(first) = report.unsent.first() {
        // The hint begins at the first semicolon.
        let (path, reason) = (&first.path, first.reason.replace("; ", ", "));
        let more = report.unsent_count - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("not sent: {path} ({reason}){more}"));
        if is_sent {
            let rest = if report.rounds > 0 {
                "everything else was sent"
            } else {
                "the receivers have everything else"
            };
            return format!(
                "{}; {rest}; send the missing files again when they can be read and no longer change",
                parts.join(", ")
            );
        }
    }
    if !report.incomplete.is_empty() || parts.is_empty() {
        let hosts = named(report.incomplete.iter().map(|one| (&*one.host, &*one.reason)));
        let named = if hosts.is_empty() { String::new() } else { format!(": {hosts}") };
        let dropped = report.dropped.len() as u64;
        parts.push(format!(
            "{} of {} incomplete{named}",
            report.receivers.saturating_sub(report.verified).saturating_sub(dropped),
            units::count(report.receivers, "receiver"),
        ));
    }
    let what = parts.join(", ");
    let advice = report.advice.map_or_else(String::new, |advice| format!("; {}", wording::advice(advice)));
    let only_unsigned = !lacking.is_empty() && parts.len() == 1 && report.incomplete.is_empty();
    match only_left_out(report) {
        _ if only_unsigned => {
            format!(
                "{what}; all receivers are complete: check `recv --sign-receipts` at these receivers, and the keys of `send --receipts`"
            )
        }
        true => format!("{what}; all other receivers are complete: send again only to these hosts"),
        false => format!("{what}{advice}; {}", remedy(report)),
    }
}

/// Returns the most important advice.
fn remedy(report: &SendReport) -> String {
    let lacks_key = report.refused_hosts.iter().filter(|one| one.reason.contains("key"));
    let lacks_key: Vec<&str> = lacks_key.map(|one| &*one.host).collect();
    if !lacks_key.is_empty() {
        return format!("give {} this session's key, and run both commands again", lacks_key.join(", "));
    }
    let first = report.incomplete.first();
    let is = |reason: &str| first.filter(|one| one.reason.starts_with(reason)).map(|one| &one.host);
    if let Some(host) = is(reasons::DISK_FULL) {
        return format!("free space on {host}, and run both commands again: receivers resume the transfer");
    }
    if let Some(host) = is(reasons::PERMISSION) {
        return format!(
            "let `recv` write on {host}, or choose another --out there, and run both commands again"
        );
    }
    if let Some(host) = is(reasons::OLDER) {
        return format!(
            "to replace the newer content on {host}, run `recv --overwrite` there and send again"
        );
    }
    if let Some(host) = is(reasons::OTHER_SOURCE) {
        return format!(
            "to replace the other content on {host}, run `recv --overwrite` there and send again"
        );
    }
    "run both commands again: receivers resume the transfer".to_owned()
}

/// Names receivers with their problems. The text has no semicolon, because the advice in a message begins at its first semicolon.
fn named<'a>(receivers: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let named = |(host, reason): (&str, &str)| format!("{host} ({})", reason.replace("; ", ", "));
    receivers.map(named).collect::<Vec<_>>().join(", ")
}
