//! The session in a trace, as far as a twin needs it.

use super::session::{Course, Cut, Point, Receiver, Session};
use crate::failure::{Failure, Usage};
use crate::qlog::{self, Member, Story};
use crate::sim_usage::SimUsage;
use serde_json::json;
use std::path::Path;

/// Reads the trace of a source or relay. A trace of several sessions needs the name of one.
///
/// # Errors
/// When the file is not a trace, or has no such session with all that a twin needs.
pub fn read(path: &Path, name: Option<&str>) -> Result<Session, Failure> {
    let unreadable = |reason: String| Usage::NotATrace { path: path.to_owned(), reason };
    let (about, story) = Story::read(path, None).map_err(|error| unreadable(error.to_string()))?;
    let traced = chosen(path, &story, name)?;
    let unfit = |why: &str| SimUsage::NoTwin { path: path.to_owned(), why: why.to_owned() };
    let lack = match traced.seconds {
        _ if traced.packet_bytes == 0 => {
            Some("its first event does not state the size of packets; an older version has written it")
        }
        None if story.is_full => Some("it ended at its maximum size, before the session"),
        None => Some("it has no event `session ended`: the file is truncated, or the command was killed"),
        Some(_) => None,
    };
    if let Some(why) = lack {
        return Err(unfit(why).into());
    }
    let session = session(traced, about.unreadable + story.dropped);
    session.lack().map_or(Ok(session), |why| Err(unfit(why).into()))
}

/// Returns the session of a source or relay with this name.
fn chosen<'a>(path: &Path, story: &'a Story, name: Option<&str>) -> Result<&'a qlog::Session, SimUsage> {
    let sources = || story.sessions.iter().filter(|one| one.counts.contains_key("session_started"));
    let named: Vec<_> =
        sources().filter(|one| name.is_none_or(|name| one.name == name || one.branch == name)).collect();
    if let [session] = named[..] {
        return Ok(session);
    }
    let called =
        |one: &qlog::Session| if one.branch.is_empty() { one.name.clone() } else { one.branch.clone() };
    let all = sources().map(called).collect::<Vec<_>>().join(", ");
    let why = match () {
        () if !all.is_empty() => format!("choose one session of the trace with --session: {all}"),
        () if story.sessions.is_empty() => "the trace has no sessions".to_owned(),
        () if story.sessions.iter().all(|one| one.role != "receiver") => "no session of it has begun to send".to_owned(),
        () => "it is the trace of a receiver, which does not measure round trips and the limits of the rate; use the trace of its source"
            .to_owned(),
    };
    Err(SimUsage::NoTwin { path: path.to_owned(), why })
}

/// Returns a session that has ended.
fn session(traced: &qlog::Session, missing: u64) -> Session {
    let seconds = traced.seconds.unwrap_or_default();
    Session {
        seconds,
        packets: traced.packets,
        packet_bytes: traced.packet_bytes,
        repair_ratio: traced.repair_ratio,
        layers: traced.layers,
        course: Some(Course {
            scheme: traced.scheme.clone(),
            max_bps: traced.max,
            points: points(traced, seconds),
        }),
        receivers: traced.members.values().filter_map(|one| receiver(one, traced.started)).collect(),
        missing,
    }
}

/// Returns the seconds of a session.
fn points(traced: &qlog::Session, seconds: f64) -> Vec<Point> {
    let mut from = traced.started;
    let points = qlog::progress(traced).into_iter().map(|progress| {
        let to = progress.elapsed.as_secs_f64();
        Point {
            from: std::mem::replace(&mut from, to),
            to,
            rate_bps: progress.rate.bps(),
            limited_by: progress.limited_by.and_then(|limit| json!(limit).as_str().map(str::to_owned)),
            host: progress.window_of.or(progress.representative),
            cuts: progress.cuts.into_iter().map(|cut| Cut { host: cut.host }).collect(),
        }
    });
    points.take_while(|point| point.from < traced.started + seconds).collect()
}

/// Returns a receiver that has left. A receiver that had already left under another ID counts no receivers.
fn receiver(one: &Member, started: f64) -> Option<Receiver> {
    let outcome = if one.is_done { "verified" } else { "incomplete" };
    let receiver = Receiver {
        host: one.host.clone(),
        outcome: outcome.to_owned(),
        receivers: one.receivers,
        loss: one.loss,
        rtt_ms: one.rtt_ms,
        congested_rtt_ms: one.congested_rtt_ms,
        joined_seconds: one.joined - started,
    };
    (one.receivers > 0 || !one.is_done).then_some(receiver)
}
