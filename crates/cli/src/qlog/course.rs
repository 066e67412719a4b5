//! The course of a session of a trace, as the progress of each second.

use super::story::{Sample, Session};
use faircast::Rate;
use faircast::event::{Counts, Limit, Progress, RateCut, Subscription};
use std::collections::BTreeMap;
use std::time::Duration;

/// Returns the progress of each second of a session.
pub fn progress(session: &Session) -> Vec<Progress> {
    let mut course = Vec::new();
    let mut counts = Counts::default();
    let mut cuts = session.cuts.iter().peekable();
    let mut samples = session.samples.iter().peekable();
    let (mut bits, mut from) = (0.0, session.started.max(session.from));
    while let Some(first) = samples.next() {
        let mut all = vec![first];
        all.extend(std::iter::from_fn(|| samples.next_if(|sample| sample.at < first.at.floor() + 1.0)));
        let last = all[all.len() - 1];
        let (began, bits_before) = (from, bits);
        for sample in &all {
            bits += sample.rate * (sample.at - from).max(0.0);
            from = from.max(sample.at);
        }
        let mean = if from > began { (bits - bits_before) / (from - began) } else { last.rate };
        let (limited_by, holder) = limit(&all, from - began);
        let listed: Vec<_> = std::iter::from_fn(|| cuts.next_if(|cut| cut.at <= last.at)).collect();
        counts.cuts += listed.len() as u64;
        counts.packets += all.iter().map(|sample| sample.packets).sum::<u64>();
        counts.repairs += all.iter().map(|sample| sample.repairs).sum::<u64>();
        let host = |id: &str| Some(session.host(id).to_owned()).filter(|host| !host.is_empty());
        let progress = Progress {
            elapsed: seconds(last.at),
            bytes: (bits / 8.0) as u64,
            moved_bytes: (bits / 8.0) as u64,
            rate: Rate::from_bps(mean),
            allowed: last.allowed.map(Rate::from_bps),
            rtt: last.rtt_ms.map(|rtt| seconds(rtt / 1e3)),
            loss: last.loss.unwrap_or_default(),
            representative: host(&last.limiting),
            receivers: session.receivers,
            layers: last.layers.map(|joined| Subscription { joined: joined as u8, of: joined as u8 }),
            limited_by,
            window_of: holder.and_then(host),
            cuts: listed
                .iter()
                .take(RateCut::LISTED)
                .map(|cut| RateCut {
                    at: seconds(cut.at),
                    from: Rate::from_bps(cut.from),
                    to: Rate::from_bps(cut.to),
                    host: host(&cut.receiver),
                    cause: CAUSES.iter().find(|cause| **cause == cut.reason).unwrap_or(&"congestion"),
                })
                .collect(),
            counts: Some(Box::new(counts)),
            ..Progress::default()
        };
        course.push(progress);
    }
    course
}

/// Causes of cuts.
const CAUSES: [&str; 8] =
    ["loss", "mark", "accumulation", "rate", "deadline", "report", "acknowledgement", "control"];

fn seconds(value: f64) -> Duration {
    Duration::try_from_secs_f64(value.max(0.0)).unwrap_or_default()
}

/// Minimum fraction of the time for which windows hold a source that they limit.
const HELD: f64 = 0.1;

/// Returns the limit of samples over `span` seconds: a window and its receiver, if windows held the source, otherwise the limit of most
/// samples.
fn limit<'a>(all: &[&'a Sample], span: f64) -> (Option<Limit>, Option<&'a str>) {
    let holder = all.iter().rev().map(|sample| sample.window_of.as_str()).find(|id| !id.is_empty());
    if holder.is_some() && all.iter().map(|sample| sample.held).sum::<f64>() >= HELD * span {
        return (Some(Limit::Window), holder);
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let others = all.iter().map(|sample| sample.limited_by.as_str()).filter(|name| *name != "window");
    others.for_each(|name| *counts.entry(name).or_default() += 1);
    let limit = match counts.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name) {
        Some("congestion") => Some(Limit::Congestion),
        Some("application") => Some(Limit::Application),
        Some("max") => Some(Limit::Max),
        _ => None,
    };
    (limit, None)
}
