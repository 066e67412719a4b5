//! State of the sessions of a command, for readers that may come at any time. Everything in it has a bound.
//!
//! Each change gets the next version. A reader names the version that it has, and gets what has changed since.

use crate::course::{History, Point, Versioned};
use faircast::event::{Condition, Counts, Progress, ReceiverState};
use faircast::{Event, ReceiverId};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of sessions; the oldest ones are forgotten.
pub(super) const MAX_SESSIONS: usize = 64;

/// Maximum number of points of a session.
pub(super) const MAX_POINTS: usize = 3_600;

/// Maximum number of receivers of a session, and of its notes.
pub(super) const MAX_RECEIVERS: usize = 10_000;
pub(super) const MAX_NOTES: usize = 100;

/// A session of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
pub struct Of {
    /// Number of the session.
    pub session: u64,
    /// At a relay: number of the branch; `None` for the upstream side.
    pub branch: Option<usize>,
}

/// The state of all sessions of a command.
#[derive(Debug)]
pub struct Model {
    /// Random name of this run of the command. A page that was loaded from another run starts anew.
    run: Arc<str>,
    command: &'static str,
    host: Arc<str>,
    version: u64,
    ended: bool,
    sessions: BTreeMap<Of, Session>,
    /// In a simulation: its flows and links.
    network: Option<Network>,
    /// Sums over all sessions, also over those that were forgotten.
    totals: BTreeMap<Side, Totals>,
    complete: u64,
    incomplete: u64,
}

/// The part of a host in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Source,
    Receiver,
}

impl Side {
    fn of(progress: &Progress) -> Side {
        if progress.allowed.is_some() { Side::Source } else { Side::Receiver }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Side::Source => "source",
            Side::Receiver => "receiver",
        }
    }
}

/// Counts of several sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) moved_bytes: u64,
    pub(super) counts: Counts,
}

/// Numbers of one side: of running sessions, and counts of all sessions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OfSide {
    pub(super) sessions: u64,
    /// Bytes per second.
    pub(super) rate: f64,
    pub(super) allowed: f64,
    pub(super) loss: f64,
    /// Seconds.
    pub(super) round_trip: f64,
    /// Largest traffic of others on the interface of a session, bytes per second; `None` if it is unknown.
    pub(super) other: Option<f64>,
    /// Bytes.
    pub(super) disk_queue: u64,
    pub(super) socket_queue: u64,
    pub(super) totals: Totals,
}

/// A copy of the numbers for metrics.
#[derive(Debug)]
pub struct Sample {
    pub(super) command: &'static str,
    pub(super) sides: BTreeMap<Side, OfSide>,
    pub(super) complete: u64,
    pub(super) incomplete: u64,
    pub(super) receivers: Vec<Arc<ReceiverState>>,
}

/// Traffic of an interface since the last progress of a session: sent by a source's host, received by a receiver's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traffic {
    pub(super) interface: String,
    /// All bytes, with the headers of Ethernet.
    pub(super) all_bps: f64,
    /// The bytes that are not this session's: of TCP, of other programs, and of other sessions. Traffic elsewhere on the path is
    /// unknown here.
    pub(super) other_bps: f64,
}

/// The network of a simulation.
#[derive(Debug)]
struct Network {
    about: Versioned<Value>,
    /// State after each step.
    steps: Vec<Versioned<Value>>,
}

#[derive(Debug)]
struct Session {
    version: u64,
    content: Option<Versioned<Event>>,
    /// At a receiver: its source.
    found: Option<Versioned<Event>>,
    progress: Option<Versioned<Progress>>,
    traffic: Option<Versioned<Traffic>>,
    points: History,
    receivers: BTreeMap<ReceiverId, Versioned<ReceiverState>>,
    /// The receivers in the order in which they came.
    order: Vec<ReceiverId>,
    notes: VecDeque<Versioned<Event>>,
    error: Option<Versioned<Value>>,
    end: Option<Versioned<Value>>,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            version: 0,
            content: None,
            found: None,
            progress: None,
            traffic: None,
            points: History::new(MAX_POINTS),
            receivers: BTreeMap::new(),
            order: Vec::new(),
            notes: VecDeque::new(),
            error: None,
            end: None,
        }
    }
}

/// Changes since a version.
#[derive(Debug, Serialize)]
pub struct Update {
    #[serde(serialize_with = "text")]
    run: Arc<str>,
    version: u64,
    /// The version of the reader: 0 if this update is the whole state.
    after: u64,
    command: &'static str,
    #[serde(serialize_with = "text")]
    host: Arc<str>,
    ended: bool,
    /// All sessions. Others were forgotten.
    all: Vec<Of>,
    sessions: Vec<SessionUpdate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<NetworkUpdate>,
}

#[derive(Debug, Serialize)]
struct NetworkUpdate {
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<Copied<Value>>,
    steps: Vec<Copied<Value>>,
}

/// A value of the model, without a copy of it.
#[derive(Debug)]
struct Copied<T>(Arc<T>);

impl<T: Serialize> Serialize for Copied<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

#[derive(Debug, Serialize)]
struct SessionUpdate {
    #[serde(flatten)]
    of: Of,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Copied<Event>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<Copied<Event>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<Copied<Progress>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traffic: Option<Copied<Traffic>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    points: Vec<Copied<Point>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    receivers: Vec<Copied<ReceiverState>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Copied<Event>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Copied<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<Copied<Value>>,
}

impl Model {
    /// Returns the state of a command without sessions.
    pub fn new(command: &'static str, run: &str) -> Model {
        let host = faircast::host_name().into();
        Model {
            run: run.into(),
            command,
            host,
            version: 0,
            ended: false,
            sessions: BTreeMap::new(),
            network: None,
            totals: BTreeMap::new(),
            complete: 0,
            incomplete: 0,
        }
    }

    /// Returns the version of the newest change.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the name of this run of the command.
    pub fn run(&self) -> Arc<str> {
        Arc::clone(&self.run)
    }

    /// Notes that the command ends.
    pub fn close(&mut self) {
        self.version += 1;
        self.ended = true;
    }

    /// Stores an event.
    pub fn note(&mut self, of: Of, event: &Event) {
        if let Event::Progress(progress) = event {
            return self.note_progress(of, Point::of(progress), progress);
        }
        let (session, version) = self.session(of);
        match event {
            Event::Receivers { receivers } => {
                let dropped: u64 = receivers.iter().map(|one| session.set(version, one.clone())).sum();
                self.totals.entry(Side::Source).or_default().counts.dropped_local += dropped;
            }
            Event::Left { receiver, verified, reason, .. } => {
                if let Some(Versioned(_, known)) = session.receivers.get(receiver) {
                    let state = if *verified { Condition::Done } else { Condition::Failed };
                    let done = if *verified { known.receivers } else { known.done };
                    let left = ReceiverState {
                        state,
                        done,
                        reason: reason.clone(),
                        busy: None,
                        ..(**known).clone()
                    };
                    session.set(version, left);
                }
                if !verified {
                    session.add_note(version, event);
                }
            }
            Event::Content { .. } => session.content = Some(Versioned::new(version, event.clone())),
            Event::Joined { .. } => session.found = Some(Versioned::new(version, event.clone())),
            Event::Warning { .. }
            | Event::SlowReceiver { .. }
            | Event::OtherSource { .. }
            | Event::Busy { .. }
            | Event::Dropped { .. } => session.add_note(version, event),
            _ => {}
        }
    }

    /// Stores the progress of a session, and its point.
    pub fn note_progress(&mut self, of: Of, point: Point, progress: &Progress) {
        let (session, version) = self.session(of);
        session.points.push(version, point);
        let last = session.progress.replace(Versioned::new(version, progress.clone()));
        let last = last.map(|Versioned(_, last)| Totals::of(&last)).unwrap_or_default();
        self.totals.entry(Side::of(progress)).or_default().add(Totals::of(progress), last);
    }

    /// Stores the traffic of a session's interface.
    pub fn note_traffic(&mut self, of: Of, traffic: Traffic) {
        let (session, version) = self.session(of);
        session.traffic = Some(Versioned::new(version, traffic));
    }

    /// Stores what a simulation consists of.
    #[cfg_attr(not(feature = "simulator"), expect(dead_code, reason = "only simulations have a network"))]
    pub fn describe(&mut self, about: Value) {
        self.version += 1;
        self.network = Some(Network { about: Versioned::new(self.version, about), steps: Vec::new() });
    }

    /// Stores the state of the network of a simulation after a step.
    #[cfg_attr(not(feature = "simulator"), expect(dead_code, reason = "only simulations have a network"))]
    pub fn add_step(&mut self, step: Value) {
        self.version += 1;
        if let Some(network) = self.network.as_mut().filter(|network| network.steps.len() < MAX_POINTS) {
            network.steps.push(Versioned::new(self.version, step));
        }
    }

    /// Stores the error or the report of a session. The report names receivers that are incomplete.
    pub fn end(&mut self, of: Of, line: Value) {
        let (session, version) = self.session(of);
        if line["event"] == "error" {
            session.error = Some(Versioned::new(version, line));
            return;
        }
        for one in line["incomplete"].as_array().into_iter().flatten() {
            let is_it =
                |known: &&Arc<ReceiverState>| known.state != Condition::Done && one["host"] == *known.host;
            let known = session.receivers.values().map(|Versioned(_, known)| known).find(is_it);
            if let Some(failed) = known.map(|known| ReceiverState {
                state: Condition::Failed,
                reason: one["reason"].as_str().map(str::to_owned),
                busy: None,
                ..(**known).clone()
            }) {
                session.set(version, failed);
            }
        }
        let is_first = session.end.is_none();
        let is_good = line["ok"] == true;
        if is_good {
            let complete = |Versioned(_, known): &Versioned<ReceiverState>| {
                (known.state == Condition::Receiving)
                    .then(|| ReceiverState { state: Condition::Done, ..(**known).clone() })
            };
            let complete: Vec<_> = session.receivers.values().filter_map(complete).collect();
            complete.into_iter().for_each(|one| _ = session.set(version, one));
        }
        let last = session.progress.as_ref().map(|Versioned(_, last)| &**last);
        let by_report = if line["receivers"].is_null() { Side::Receiver } else { Side::Source };
        let (side, seen) = (last.map_or(by_report, Side::of), last.map(Totals::of).unwrap_or_default());
        let at_end = (is_first && !line["packets"].is_null()).then(|| seen.at_end(&line));
        session.end = Some(Versioned::new(version, line));
        self.complete += u64::from(is_first && is_good);
        self.incomplete += u64::from(is_first && !is_good);
        if let Some(at_end) = at_end {
            self.totals.entry(side).or_default().add(at_end, seen);
        }
    }

    /// Returns the changes since a version; since 0, everything.
    pub fn update_since(&self, after: u64) -> Update {
        let changed = self.sessions.iter().filter(|(_, session)| session.version > after);
        Update {
            run: self.run(),
            version: self.version,
            after,
            command: self.command,
            host: Arc::clone(&self.host),
            ended: self.ended,
            all: self.sessions.keys().copied().collect(),
            sessions: changed.map(|(of, session)| session.update_since(*of, after)).collect(),
            network: self.network.as_ref().map(|network| network.update_since(after)),
        }
    }

    /// Returns a copy of the numbers for metrics.
    pub fn sample(&self) -> Sample {
        let of_side =
            |(side, totals): (&Side, &Totals)| (*side, OfSide { totals: *totals, ..OfSide::default() });
        let mut sides: BTreeMap<Side, OfSide> = self.totals.iter().map(of_side).collect();
        let running = self.sessions.values().filter(|session| session.end.is_none());
        for (session, progress) in running.clone().filter_map(|one| Some((one, &one.progress.as_ref()?.1))) {
            let side = sides.entry(Side::of(progress)).or_default();
            side.sessions += 1;
            side.rate += progress.rate.bps() / 8.0;
            side.allowed += progress.allowed.map_or(0.0, |rate| rate.bps() / 8.0);
            side.loss = side.loss.max(progress.loss);
            side.round_trip = side.round_trip.max(progress.rtt.unwrap_or_default().as_secs_f64());
            let other = session.traffic.as_ref().map(|Versioned(_, traffic)| traffic.other_bps / 8.0);
            side.other = side.other.into_iter().chain(other).reduce(f64::max);
            let queues = progress.queues.unwrap_or_default();
            side.disk_queue += queues.unwritten_bytes;
            side.socket_queue += queues.socket_bytes;
        }
        Sample {
            command: self.command,
            sides,
            complete: self.complete,
            incomplete: self.incomplete,
            receivers: running
                .flat_map(|session| session.order.iter().filter_map(|id| session.receivers.get(id)))
                .map(|Versioned(_, one)| Arc::clone(one))
                .collect(),
        }
    }

    /// Returns a session that changes, and the version of the change.
    fn session(&mut self, of: Of) -> (&mut Session, u64) {
        self.version += 1;
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&of) {
            let ended = self.sessions.iter().find(|(_, session)| session.end.is_some());
            let oldest = ended.or_else(|| self.sessions.iter().next()).map(|(of, _)| *of);
            oldest.and_then(|oldest| self.sessions.remove(&oldest));
        }
        let session = self.sessions.entry(of).or_default();
        session.version = self.version;
        (session, self.version)
    }
}

impl Totals {
    fn of(progress: &Progress) -> Totals {
        Totals {
            moved_bytes: progress.moved_bytes,
            counts: progress.counts.as_deref().copied().unwrap_or_default(),
        }
    }

    /// Returns the counts of the report of a session, and these counts where the report has none.
    fn at_end(self, report: &Value) -> Totals {
        let at_end = |name: &str, seen| report[name].as_u64().unwrap_or(seen);
        let Counts { packets, lost, repairs, refused, refused_by, dropped_local, cuts } = self.counts;
        let by_reason = serde_json::from_value(report["refused_by"].clone());
        Totals {
            moved_bytes: at_end("moved_bytes", self.moved_bytes),
            counts: Counts {
                packets: at_end("packets", packets),
                lost: at_end("lost", lost),
                repairs: at_end("repaired_blocks", repairs),
                refused: at_end("refused", refused),
                refused_by: by_reason.unwrap_or(refused_by),
                dropped_local: at_end("dropped_local", dropped_local),
                cuts: at_end("cuts", cuts),
            },
        }
    }

    /// Adds what a session has counted since `last`. A count that has fallen adds nothing.
    fn add(&mut self, now: Totals, last: Totals) {
        let Counts { packets, lost, repairs, refused, refused_by, dropped_local, cuts } = &mut self.counts;
        refused_by.add_since(&now.counts.refused_by, &last.counts.refused_by);
        for (total, now, last) in [
            (&mut self.moved_bytes, now.moved_bytes, last.moved_bytes),
            (packets, now.counts.packets, last.counts.packets),
            (lost, now.counts.lost, last.counts.lost),
            (repairs, now.counts.repairs, last.counts.repairs),
            (refused, now.counts.refused, last.counts.refused),
            (dropped_local, now.counts.dropped_local, last.counts.dropped_local),
            (cuts, now.counts.cuts, last.counts.cuts),
        ] {
            *total += now.saturating_sub(last);
        }
    }
}

impl<T> Versioned<T> {
    /// Returns the value if it has changed since a version.
    fn since(&self, after: u64) -> Option<Copied<T>> {
        (self.0 > after).then(|| Copied(Arc::clone(&self.1)))
    }
}

impl Network {
    fn update_since(&self, after: u64) -> NetworkUpdate {
        let new = self.steps.partition_point(|Versioned(version, _)| *version <= after);
        NetworkUpdate {
            about: self.about.since(after),
            steps: self.steps[new..].iter().filter_map(|step| step.since(after)).collect(),
        }
    }
}

impl Session {
    /// Stores the state of a receiver. Returns the number of datagrams that its host has dropped since the last state.
    fn set(&mut self, version: u64, state: ReceiverState) -> u64 {
        let known = self.receivers.get(&state.receiver).map(|Versioned(_, known)| known);
        if known.is_none() {
            if self.receivers.len() >= MAX_RECEIVERS {
                return 0;
            }
            self.order.push(state.receiver);
        }
        let dropped = state.dropped_local.saturating_sub(known.map_or(0, |known| known.dropped_local));
        if known.is_none_or(|known| **known != state) {
            self.receivers.insert(state.receiver, Versioned::new(version, state));
        }
        dropped
    }

    fn add_note(&mut self, version: u64, event: &Event) {
        if self.notes.len() == MAX_NOTES {
            self.notes.pop_front();
        }
        self.notes.push_back(Versioned::new(version, event.clone()));
    }

    fn update_since(&self, of: Of, after: u64) -> SessionUpdate {
        fn since<T>(value: &Option<Versioned<T>>, after: u64) -> Option<Copied<T>> {
            value.as_ref().and_then(|value| value.since(after))
        }
        let points = self.points.points().rev().map_while(|point| point.since(after));
        let mut points: Vec<_> = points.collect();
        points.reverse();
        SessionUpdate {
            of,
            content: since(&self.content, after),
            found: since(&self.found, after),
            progress: since(&self.progress, after),
            traffic: since(&self.traffic, after),
            points,
            receivers: self.receivers.values().filter_map(|one| one.since(after)).collect(),
            notes: self.notes.iter().filter_map(|note| note.since(after)).collect(),
            error: since(&self.error, after),
            end: since(&self.end, after),
        }
    }
}

impl Update {
    /// Returns the version that the reader has after this update.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the version with the name of the run, for a reader that comes again.
    pub fn id(&self) -> String {
        format!("{}-{}", self.run, self.version)
    }

    /// Whether the command has ended.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }
}
