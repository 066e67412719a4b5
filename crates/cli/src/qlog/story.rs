//! The course of the sessions of a trace.

use super::read::{About, Event, NoTrace, read};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::net::SocketAddr;
use std::path::Path;

/// Time by which an event may be earlier than the event before it, in seconds.
const SAME: f64 = 1.0;

/// The sessions of a trace, in the order of their first events.
#[derive(Debug)]
pub struct Story {
    /// Sessions with at least one event.
    pub sessions: Vec<Session>,
    /// Place and number of the last session of each name, role, and branch or receiver.
    places: BTreeMap<(String, String, String), (usize, usize)>,
    /// The session time that is explained.
    moment: Option<f64>,
    /// Number of records that the writer dropped.
    pub dropped: u64,
    /// Whether the trace has ended at its maximum size.
    pub is_full: bool,
}

/// A session as one endpoint saw it.
#[derive(Debug, Default)]
pub struct Session {
    pub name: String,
    pub role: String,
    /// The group or host of a branch of a relay.
    pub branch: String,
    pub scheme: String,
    /// Session time of the first and the last event, and of the first packet.
    pub from: f64,
    pub started: f64,
    pub to: f64,
    pub samples: Vec<Sample>,
    pub cuts: Vec<Cut>,
    /// Losses on links of a simulation.
    pub losses: Vec<Loss>,
    /// Receivers by their IDs.
    pub members: BTreeMap<String, Member>,
    /// Numbers of events by name.
    pub counts: BTreeMap<String, u64>,
    /// Events of interest, as sentences: joins, ends, failures.
    pub notes: Vec<(f64, String)>,
    pub receivers: u64,
    /// Maximum number of layers, size of a packet in bytes, and configured maximum rate in bit/s, since the session has started.
    pub layers: u64,
    pub packet_bytes: u64,
    pub max: Option<f64>,
    /// Number of receivers that have verified all content, once the session has ended.
    pub verified: Option<u64>,
    /// Time from the first packet to completion at all receivers, once the session has ended, and packets and repairs until then.
    pub seconds: Option<f64>,
    pub packets: u64,
    pub repair_ratio: f64,
}

/// The rate since the last sample.
#[derive(Debug, Clone, Default)]
pub struct Sample {
    pub at: f64,
    /// Rates in bit/s. A receiver has no allowed rate.
    pub rate: f64,
    pub allowed: Option<f64>,
    pub limited_by: String,
    /// Duration for which windows held the source, in seconds, and the receiver that held it last.
    pub held: f64,
    pub window_of: String,
    /// The receiver that the scheme follows, and the round-trip time to it in milliseconds.
    pub limiting: String,
    pub rtt_ms: Option<f64>,
    pub starting: bool,
    pub layers: Option<u64>,
    /// Loss at a receiver.
    pub loss: Option<f64>,
    /// Length of the queue at the bottleneck in a simulation, in bytes.
    pub queue_bytes: Option<f64>,
    pub packets: u64,
    pub repairs: u64,
}

/// A rate cut.
#[derive(Debug, Clone, Default)]
pub struct Cut {
    pub at: f64,
    pub from: f64,
    pub to: f64,
    pub reason: String,
    /// The receiver whose report caused it. Without a report: the receiver that the scheme follows.
    pub receiver: String,
    pub rtt_ms: Option<f64>,
}

/// Packets that a link of a simulation has lost.
#[derive(Debug, Clone)]
pub struct Loss {
    pub at: f64,
    pub link: String,
    pub packets: u64,
    pub reason: String,
}

/// A receiver.
#[derive(Debug, Clone, Default)]
pub struct Member {
    pub host: String,
    pub address: Option<SocketAddr>,
    /// Number of verified bytes.
    pub bytes: u64,
    pub is_done: bool,
    /// Reason for which it left or was given up without the content.
    pub failure: Option<String>,
    /// Its last state before the moment, or of all: time, loss and rate.
    pub last: Option<(f64, f64, f64)>,
    /// Session time of its join.
    pub joined: f64,
    /// Once it has left: number of receivers that it speaks for, fraction of lost packets, and round-trip time, the least and that
    /// at congestion.
    pub receivers: u64,
    pub loss: f64,
    pub rtt_ms: Option<f64>,
    pub congested_rtt_ms: Option<f64>,
}

/// Reasons for which a member leaves without a failure.
const ENDINGS: [&str; 3] = ["done", "moved", "left"];

impl Story {
    /// Returns a story without sessions. `moment` is the session time that will be explained.
    const fn new(moment: Option<f64>) -> Story {
        Story { sessions: Vec::new(), places: BTreeMap::new(), moment, dropped: 0, is_full: false }
    }

    /// Reads a trace. `moment` is the session time that will be explained.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a trace.
    pub fn read(path: &Path, moment: Option<f64>) -> Result<(About, Story), NoTrace> {
        let file = File::open(path)?;
        let mut story = Story::new(moment);
        let about = read(BufReader::with_capacity(1 << 16, file), |event| story.add(&event))?;
        Ok((about, story))
    }

    /// Adds an event.
    fn add(&mut self, event: &Event) {
        if event.name == "records_dropped" {
            self.dropped += event.number("count").unwrap_or_default() as u64;
        }
        self.is_full |= event.name == "trace_ended";
        if event.session.is_empty() || event.name.is_empty() {
            return;
        }
        let role = event.text("role");
        let own = if role == "source" { "" } else { event.text("branch") };
        let own = if role == "receiver" { event.text("receiver") } else { own };
        let key = (event.session.clone(), role.to_owned(), own.to_owned());
        let known = self.places.get(&key).map(|(place, count)| (*place, *count));
        // The time of a session begins at zero: an earlier time belongs to a later session of the same name.
        let known = match known {
            Some((place, count)) if event.at() < self.sessions[place].to - SAME => Err(count + 1),
            Some((place, _)) => Ok(place),
            None => Err(1),
        };
        let place = known.unwrap_or_else(|count| {
            let number = if count > 1 { format!("#{count}") } else { String::new() };
            self.sessions.push(Session {
                name: format!("{}{number}", event.session),
                role: role.to_owned(),
                branch: event.text("branch").to_owned(),
                from: event.at(),
                ..Session::default()
            });
            let place = self.sessions.len() - 1;
            self.places.insert(key, (place, count));
            place
        });
        self.sessions[place].add(event, self.moment);
    }
}

impl Session {
    /// Returns the name of a receiver for people: of its host if that is known.
    pub fn host<'a>(&'a self, id: &'a str) -> &'a str {
        self.members.get(id).map(|member| member.host.as_str()).filter(|host| !host.is_empty()).unwrap_or(id)
    }

    /// Returns whether the endpoint sends.
    pub fn sends(&self) -> bool {
        self.samples.last().is_none_or(|sample| sample.allowed.is_some())
    }

    fn add(&mut self, event: &Event, moment: Option<f64>) {
        let at = event.at();
        self.to = self.to.max(at);
        *self.counts.entry(event.name.clone()).or_default() += 1;
        match event.name.as_str() {
            "session_started" => {
                self.scheme = event.text("scheme").to_owned();
                self.started = at;
                self.receivers = event.number("receivers").unwrap_or_default() as u64;
                self.layers = event.number("layers").unwrap_or_default() as u64;
                self.packet_bytes = event.number("packet_bytes").unwrap_or_default() as u64;
                self.max = event.number("max_bps");
            }
            "session_ended" => {
                self.receivers = event.number("receivers").map_or(self.receivers, |count| count as u64);
                self.verified = event.number("verified").map(|count| count as u64);
                self.seconds = event.number("seconds");
                self.packets = event.number("packets").unwrap_or_default() as u64;
                self.repair_ratio = event.number("repair_ratio").unwrap_or_default();
                let why = event.named("reason").map(|why| format!(": {why}")).unwrap_or_default();
                self.notes.push((at, format!("the session ended{why}")));
            }
            "rate_sampled" | "rate_received" => self.samples.push(Sample::of(event)),
            "rate_cut" => self.cuts.push(Cut::of(event)),
            "layers_changed" => {
                let (host, layers) = (event.text("receiver"), event.number("layers").unwrap_or_default());
                self.notes.push((at, format!("{host} has {layers} layers")));
            }
            "packets_lost" => self.losses.push(Loss {
                at,
                link: event.text("link").to_owned(),
                packets: event.number("packets").unwrap_or_default() as u64,
                reason: event.text("reason").to_owned(),
            }),
            "layers_left" | "layers_joined" => {
                let number = |name| event.number(name).unwrap_or_default();
                let (before, now) = (number("layers_before"), number("layers"));
                self.notes.push((at, format!("the receiver went from {before} to {now} layers")));
            }
            "member_joined" | "member_left" | "member_given_up" => {
                let host = event.named("host").unwrap_or_else(|| event.text("receiver").to_owned());
                let member = self.members.entry(event.text("receiver").to_owned()).or_default();
                member.host.clone_from(&host);
                member.address = event.text("address").parse().ok().or(member.address);
                member.is_done |= event.text("reason") == "done";
                match event.name.as_str() {
                    "member_joined" => member.joined = at,
                    _ => member.note_path(event),
                }
                let failure = event.named("reason").filter(|reason| !ENDINGS.contains(&reason.as_str()));
                member.failure = failure.filter(|_| event.name != "member_joined");
                let what = event.name.trim_start_matches("member_").replace('_', " ");
                let verb = if event.name == "member_given_up" { "was " } else { "" };
                let why = event.named("reason").map(|why| format!(" ({why})")).unwrap_or_default();
                self.notes.push((at, format!("{host} {verb}{what}{why}")));
            }
            "content_complete" => self.notes.push((at, "the content was complete".to_owned())),
            "receiver_failed" | "store_failed" => {
                self.notes.push((at, format!("the receiver failed: {}", event.text("reason"))));
            }
            "state" if event.text("way") != "sent" => {
                let member = self.members.entry(event.text("receiver").to_owned()).or_default();
                let loss = event.number("loss").unwrap_or_default();
                member.bytes = event.number("bytes").map_or(member.bytes, |bytes| bytes as u64);
                if moment.is_none_or(|moment| at <= moment) {
                    member.last = Some((at, loss, event.number("rate_bps").unwrap_or_default()));
                }
            }
            _ => {}
        }
    }
}

impl Member {
    /// Stores the path to a member that leaves.
    fn note_path(&mut self, event: &Event) {
        self.receivers = event.number("receivers").unwrap_or_default() as u64;
        self.loss = event.number("loss").unwrap_or_default();
        self.rtt_ms = event.number("rtt_ms");
        self.congested_rtt_ms = event.number("congested_rtt_ms");
    }
}

impl Sample {
    fn of(event: &Event) -> Sample {
        let count = |name| event.number(name).unwrap_or_default() as u64;
        Sample {
            at: event.at(),
            rate: event.number("rate_bps").unwrap_or_default(),
            allowed: event.number("allowed_bps"),
            limited_by: event.text("limited_by").to_owned(),
            held: event.number("held_ms").unwrap_or_default() / 1e3,
            window_of: event.text("window_of").to_owned(),
            limiting: event.text("limiting").to_owned(),
            rtt_ms: event.number("rtt_ms"),
            starting: event.is("starting"),
            layers: event.number("layers").map(|layers| layers as u64),
            loss: event.number("loss"),
            queue_bytes: event.number("queue_bytes"),
            packets: count("packets"),
            repairs: count("repairs"),
        }
    }
}

impl Cut {
    fn of(event: &Event) -> Cut {
        let receiver = event.named("receiver").or_else(|| event.named("limiting")).unwrap_or_default();
        Cut {
            at: event.at(),
            from: event.number("rate_before_bps").unwrap_or_default(),
            to: event.number("rate_bps").unwrap_or_default(),
            reason: event.text("reason").to_owned(),
            receiver,
            rtt_ms: event.number("rtt_ms"),
        }
    }
}
