//! The network that a session has seen: the limits of its rate, and the path to each receiver.

use super::session::{Point, Receiver, Session};
use std::collections::BTreeSet;

/// The path to a receiver.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Host name, as in the report.
    pub host: String,
    /// Name of the node in the scenario.
    pub node: String,
    /// Number of receivers: 1, or those below a relay.
    pub receivers: u64,
    /// Round-trip time without queues, in seconds.
    pub rtt: f64,
    /// Time of its join, in seconds after the start.
    pub joined: f64,
    /// Effect of the path on packets.
    pub limit: Limit,
}

/// Effect of a path on packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// It passes them.
    Nothing,
    /// It loses this fraction at random.
    Loss(f64),
    /// It has this rate (bit/s), and a queue for this time (s), which was full when packets were lost.
    Queue { rate: f64, delay: f64 },
    /// The receiver's host takes this rate (bit/s).
    Host { rate: f64 },
}

/// The limits of a session at its source.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AtSource {
    /// Rate limit (bit/s): the configured one, or that of the source's host.
    pub most: Option<f64>,
    /// Whether it is the configured one.
    pub configured: bool,
}

/// Losses below this fraction are ignored.
const FEW: f64 = 1e-4;
/// A queue is known by a round-trip time at congestion that exceeds the least by this part and by this time (s).
const QUEUED: (f64, f64) = (0.1, 0.002);
/// The limit by a receiver must have lasted for this part of the session; that by the source's program for a larger part, because
/// a rate that has just grown looks like one.
const LASTING: f64 = 0.1;
const MOST: f64 = 0.5;
/// Least round-trip time, in seconds.
const LEAST_RTT: f64 = 1e-4;
/// Part of a link's rate that the first estimate expects the session to use.
const USED: f64 = 0.9;

/// Returns the paths to the complete receivers.
pub fn paths(session: &Session) -> Vec<Path> {
    let mut names = BTreeSet::from(["source".to_owned(), "net".to_owned()]);
    let known: Vec<f64> = session.complete().filter_map(|one| one.rtt_ms).collect();
    let usual = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let path = |one: &Receiver| Path {
        host: one.host.clone(),
        node: node(&one.host, &mut names),
        receivers: one.receivers,
        rtt: (one.rtt_ms.unwrap_or(usual) / 1e3).clamp(LEAST_RTT, 60.0),
        joined: one.joined_seconds.max(0.0),
        limit: limit(session, one),
    };
    session.complete().map(path).collect()
}

/// Returns the limits at the source.
pub fn at_source(session: &Session) -> AtSource {
    if let Some(max) = session.course().max_bps.filter(|max| *max > 0.0) {
        return AtSource { most: Some(max), configured: true };
    }
    let is_idle = |point: &Point| point.limited_by.as_deref() == Some("application") && point.cuts.is_empty();
    AtSource { most: lasting(session, MOST, is_idle), configured: false }
}

/// Returns the rate of the fastest interval, in bit/s.
pub fn fastest(session: &Session) -> f64 {
    session.course().points.iter().map(|point| point.rate_bps).fold(0.0, f64::max)
}

fn limit(session: &Session, one: &Receiver) -> Limit {
    let is_its = |point: &Point| point.host.as_deref() == Some(&one.host);
    let is_held = |point: &Point| is_its(point) && point.limited_by.as_deref() == Some("window");
    if let Some(rate) = lasting(session, LASTING, is_held) {
        return Limit::Host { rate: rate / USED };
    }
    let loss = one.loss.clamp(0.0, 0.9);
    let delay = one.congested_rtt_ms.zip(one.rtt_ms).map_or(0.0, |(full, least)| (full - least) / 1e3);
    let (part, time) = QUEUED;
    let is_queue = delay > time && delay > part * one.rtt_ms.unwrap_or(0.0) / 1e3;
    let has_cut = session.course().points.iter().flat_map(|point| &point.cuts);
    let has_cut = has_cut.into_iter().any(|cut| cut.host.as_deref() == Some(&one.host));
    match lasting(session, LASTING, is_its).filter(|_| is_queue && has_cut) {
        Some(rate) => Limit::Queue { rate: rate * (1.0 - loss) / USED, delay },
        None if loss > FEW => Limit::Loss(loss),
        None => Limit::Nothing,
    }
}

/// Returns the mean rate in the intervals with a property, if they make up this part of the session.
fn lasting(session: &Session, part: f64, with: impl Fn(&Point) -> bool) -> Option<f64> {
    let points = &session.course().points;
    let length = |point: &Point| (point.to - point.from).max(0.0);
    let all: f64 = points.iter().map(length).sum();
    let those = || points.iter().filter(|point| with(point));
    let time: f64 = those().map(length).sum();
    let sent: f64 = those().map(|point| point.rate_bps * length(point)).sum();
    (time > 0.0 && time >= part * all && sent > 0.0).then(|| sent / time)
}

/// Returns a name for the node of a host, which no other node has.
fn node(host: &str, names: &mut BTreeSet<String>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let plain: String = host.chars().take(64).map(|c| if is_plain(c) { c } else { '_' }).collect();
    let plain = if plain.is_empty() { "host".to_owned() } else { plain };
    let numbered = (2..).map(|number| format!("{plain}-{number}"));
    let free = std::iter::once(plain.clone()).chain(numbered).find(|name| !names.contains(name));
    let free = free.expect("numbers do not end");
    names.insert(free.clone());
    free
}
