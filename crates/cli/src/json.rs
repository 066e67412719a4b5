//! JSON of a session: one object per line, with its type in `event`. Scripts depend on the names and units of the fields. Later
//! versions add fields, but never rename fields. Events and reports are types of the transport.

use crate::failure::{Failure, class_name};
use crate::safe;
use faircast::Event;
use serde::Serialize;
use std::io::{self, Write};

/// A line that is not an event of a session.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line<'a, R: Serialize = Failed> {
    /// A page for browsers, or metrics, are served.
    Page { url: &'a str },
    /// The error; a `done` with `"ok":false` follows.
    Error { class: &'a str, message: String, hint: Option<String> },
    /// The report of a session; always the last line.
    Done {
        #[serde(flatten)]
        report: &'a R,
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu_seconds: Option<Option<f64>>,
    },
}

/// The last line of a session without a report.
#[derive(Debug, Serialize)]
pub struct Failed {
    ok: bool,
}

impl<'a, R: Serialize> Line<'a, R> {
    /// Returns the last line of a session with this report. The CPU time is null if it is unknown.
    pub fn done(report: &'a R, cpu_seconds: Option<f64>) -> Line<'a, R> {
        Line::Done { report, cpu_seconds: Some(cpu_seconds) }
    }
}

impl<'a> Line<'a> {
    /// Returns the line about a page for browsers, or about metrics.
    pub const fn page(url: &'a str) -> Line<'a> {
        Line::Page { url }
    }
}

impl Line<'static> {
    /// Returns the line of an error.
    pub fn failure(failure: &Failure) -> Line<'static> {
        let (message, hint) = failure.what_and_hint();
        Line::Error { class: class_name(failure), message, hint }
    }

    /// Returns the last line of a session without a report.
    pub fn failed() -> Line<'static> {
        Line::Done { report: &Failed { ok: false }, cpu_seconds: None }
    }
}

/// A line with the number of its session.
#[derive(Debug, Serialize)]
pub struct Of<'a, L: Serialize> {
    /// The line.
    #[serde(flatten)]
    pub line: &'a L,
    /// Number of the session, from 1.
    pub session: u32,
}

/// Writes `line` as one line and flushes it, so that a reader receives it at once.
pub fn write(out: &mut (impl Write + ?Sized), line: &impl Serialize) -> io::Result<()> {
    out.write_all(self::line(line).as_bytes())?;
    out.flush()
}

/// Returns the line that replaces `count` dropped lines.
pub fn dropped(count: u64) -> Vec<u8> {
    line(&Event::Dropped { count }).into_bytes()
}

/// Returns `line` as JSON with a line end.
pub fn line(line: &impl Serialize) -> String {
    let text = serde_json::to_string(line).expect("numbers and texts are JSON");
    format!("{}\n", safe::json(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, docs};
    use faircast::alc::{AlcReceiveReport, AlcSendReport};
    use faircast::core::packet::ReceiverId;
    use faircast::event::{
        Busy, Condition, Counts, DryRunReport, Flow, HostComparison, HostOutcome, HostReport,
        IncompleteReceiver, Joining, LayersReport, Limit, Progress, Queues, RateCut, ReceiverState,
        RefusedPackets, RelayBelow, SlowAction, StreamReceived, Subscription, TransferName,
    };
    use faircast::norm::NormSendReport;
    use faircast::pgm::{PgmReceiveReport, PgmSendReport};
    use faircast::udpcast::{UdpcastReceiveReport, UdpcastSendReport};
    use faircast::{LeftOut, Rate, ReceiptReport, ReceiveReport, SendReport};
    use std::time::{Duration, UNIX_EPOCH};

    fn text(line: &impl Serialize) -> String {
        let mut out = Vec::new();
        write(&mut out, line).expect("a vector takes everything");
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    fn compared() -> HostComparison {
        HostComparison {
            receiver: "1f".into(),
            host: "lab-07".into(),
            held_bytes: 900,
            needed_bytes: 100,
            new_files: 1,
            changed_files: 2,
            deleted: 3,
        }
    }

    #[test]
    fn json_of_every_event_matches_the_stored_lines() {
        let id = ReceiverId::new(0x1f).expect("not zero");
        let events = [
            Event::Opened {
                group: "239.255.70.1:5777".parse().expect("a literal"),
                interface: "eth0".into(),
                local: "192.0.2.1".parse().expect("a literal"),
                alternatives: vec!["wlan0".into()],
            },
            Event::warning("a small buffer"),
            Event::Dropped { count: 12 },
            Event::Content {
                transfer: TransferName::Foreign("ab12".into()),
                files: 3,
                links: 1,
                directories: 2,
                bytes: Some(1000),
                resumed_bytes: 10,
            },
            Event::Joined {
                receiver: Some(id),
                host: "lab-07".into(),
                address: "192.0.2.7:40000".parse().expect("a literal"),
            },
            Event::Numbered { series: 0xfc, number: 7, name: Some("image".into()) },
            Event::Missed { series: 0xfc, host: "lab-2".into(), first: 3, last: 6 },
            Event::OtherSource {
                host: "lab-2".into(),
                address: "192.0.2.3:40000".parse().expect("a literal"),
                followed: "lab-1".into(),
            },
            Event::Busy {
                host: "lab-07".into(),
                address: "192.0.2.7:40000".parse().expect("a literal"),
                source: Some("lab-1".into()),
                content: Some("image".into()),
                until: Some(UNIX_EPOCH + Duration::from_secs(1_750_000_000)),
                done: false,
            },
            Event::Left { receiver: id, host: "lab-07".into(), verified: true, reason: None },
            Event::Receipt(ReceiptReport {
                receiver: "1f".into(),
                host: "lab-07".into(),
                key: "ab".into(),
                signed_at: 1_750_000_000,
                signature: "cd".into(),
                root: Some("ef".into()),
                valid: true,
                known: None,
            }),
            Event::Compared(compared()),
            Event::SlowReceiver {
                receiver: id,
                host: "lab-07".into(),
                rate: Rate::from_bps(1e7),
                action: SlowAction::Deferred,
            },
            Event::Layers(Subscription { joined: 3, of: 8 }),
            Event::Output { layer: 1, flow: Flow::Starts, bytes: 0, to: Some("out/stream.layer1".into()) },
            Event::Progress(Progress {
                elapsed: Duration::from_secs(1),
                bytes: 500,
                moved_bytes: 400,
                total_bytes: Some(1000),
                rate: Rate::from_bps(4e3),
                allowed: Some(Rate::from_bps(5e3)),
                rtt: Some(Duration::from_micros(1_500)),
                loss: 0.25,
                representative: Some("lab-07".into()),
                receivers: 3,
                verified: 1,
                joining: Some(Box::new(Joining {
                    joined: 1,
                    expected: Some(3),
                    absent: vec!["lab-08".into()],
                    failed: vec![IncompleteReceiver {
                        host: "lab-09".into(),
                        reason: "its disk is full".into(),
                    }],
                    seconds_to_start: Some(3_600),
                })),
                layers: Some(Subscription { joined: 3, of: 8 }),
                limited_by: Some(Limit::Window),
                window_of: Some("lab-07".into()),
                relays: vec![RelayBelow {
                    depth: 1,
                    host: "relay-b".into(),
                    address: "192.0.2.9:40000".parse().expect("a literal"),
                    receivers: 3,
                    done: 1,
                    rate: Rate::from_bps(4e3),
                }],
                busy: vec![Busy { host: "lab-09".into(), activity: "renaming files", percent: 62 }],
                cuts: vec![RateCut {
                    at: Duration::from_millis(700),
                    from: Rate::from_bps(8e3),
                    to: Rate::from_bps(5e3),
                    host: Some("lab-07".into()),
                    cause: "loss",
                }],
                queues: Some(Queues {
                    unwritten_bytes: 300,
                    socket_bytes: 2_304,
                    socket_size_bytes: 425_984,
                }),
                counts: Some(Box::new(Counts {
                    packets: 90,
                    lost: 0,
                    repairs: 4,
                    refused: 2,
                    refused_by: RefusedPackets { replayed: 2, ..RefusedPackets::default() },
                    dropped_local: 0,
                    cuts: 1,
                })),
            }),
            Event::Receivers {
                receivers: vec![ReceiverState {
                    receiver: id,
                    host: "lab-07".into(),
                    address: "192.0.2.7:40000".parse().expect("a literal"),
                    state: Condition::Failed,
                    verified_bytes: 400,
                    rate: Rate::from_bps(4e3),
                    loss: 0.25,
                    rtt: Some(Duration::from_micros(1_500)),
                    holds: false,
                    dropped_local: 6,
                    unwritten_bytes: 300,
                    repair_symbols: 3,
                    busy: Some(Busy { host: "lab-07".into(), activity: "renaming files", percent: 62 }),
                    receivers: 1,
                    done: 0,
                    reason: Some("silent".into()),
                }],
            },
        ];
        let lines: String = events.iter().map(text).collect();
        assert_eq!(lines, include_str!("../tests/events.ndjson"));
    }

    #[test]
    fn json_of_every_report_matches_the_stored_lines() {
        let streams = vec![StreamReceived { bytes: 9, blocks: 1, ..StreamReceived::default() }];
        let lines = [
            text(&Line::done(
                &SendReport {
                    receivers: 2,
                    verified: 1,
                    incomplete: vec![IncompleteReceiver { host: "lab-07".into(), reason: "silent".into() }],
                    hosts: vec![HostReport {
                        host: "lab-07".into(),
                        address: "192.0.2.7:5778".parse().expect("a literal"),
                        outcome: HostOutcome::Unanswered,
                    }],
                    unsent: vec![LeftOut { path: "a/secret".into(), reason: "no permission to read".into() }],
                    unsent_count: 1,
                    dry_run: Some(DryRunReport {
                        bytes: 1_000,
                        compared: 1,
                        needed_bytes: 100,
                        duration: Some(Duration::from_millis(250)),
                    }),
                    ..SendReport::default()
                },
                Some(0.5),
            )),
            text(&Line::done(
                &ReceiveReport {
                    ok: true,
                    files: 1,
                    bytes: 9,
                    lost: 2,
                    dry_run: Some(compared()),
                    layers: Some(LayersReport { of: 8, highest: 4, joins: 5, leaves: 2 }),
                    streams,
                    ..ReceiveReport::default()
                },
                None,
            )),
            text(&Line::done(&PgmSendReport { naks: 3, ..PgmSendReport::default() }, None)),
            text(&Line::done(&PgmReceiveReport { missed: 2, ..PgmReceiveReport::default() }, None)),
            text(&Line::done(&AlcSendReport { rounds: 3, ..AlcSendReport::default() }, None)),
            text(&Line::done(&AlcReceiveReport { known: 2, ..AlcReceiveReport::default() }, None)),
            text(&Line::done(&UdpcastSendReport::default(), None)),
            text(&Line::done(&UdpcastReceiveReport::default(), None)),
            text(&Line::done(&NormSendReport::default(), None)),
        ];
        assert_eq!(lines.concat(), include_str!("../tests/reports.ndjson"));
    }

    #[test]
    fn every_line_matches_the_schema_and_extra_fields_are_refused() {
        let schema = Schema::read();
        let lines =
            [include_str!("../tests/events.ndjson"), include_str!("../tests/reports.ndjson")].concat();
        let failure = Failure::LeftOut("left out".to_owned());
        let without = Failure::WithoutFiles("not sent".to_owned());
        let page = text(&Line::page("http://127.0.0.1:4000/"));
        let ends =
            page + &text(&Line::failure(&failure)) + &text(&Line::failure(&without)) + &text(&Line::failed());
        for line in lines.lines().chain(ends.lines()) {
            let value = serde_json::from_str(line).expect("JSON");
            schema.check_line(&value).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        let event = |name: &str| serde_json::json!({ "event": name, "message": "m" });
        assert_eq!(schema.check_line(&event("warning")), Ok(()));
        assert!(schema.check_line(&event("joined")).is_err());
        let mut more = event("warning");
        more["new"] = 1.into();
        assert!(schema.check_as("warning", &more).is_err_and(|error| error.contains("\"new\"")));
    }

    #[test]
    fn relay_events_contain_their_session_and_branch() {
        let schema = Schema::read();
        let mut line =
            serde_json::json!({ "event": "warning", "message": "m", "relayed": 0, "branch": null });
        assert_eq!(schema.check_relay_line(&line), Ok(()));
        assert!(schema.check_line(&line).is_err(), "a session has no such fields");
        line["branch"] = "eth1".into();
        assert!(schema.check_relay_line(&line).is_err());
        assert!(schema.check_relay_line(&serde_json::json!({ "event": "warning", "message": "m" })).is_err());
    }

    #[test]
    fn generated_json_page_is_up_to_date() {
        let (path, page) = (docs("json.md"), Schema::read().page());
        if std::env::var_os("FAIRCAST_BLESS").is_some() {
            std::fs::write(&path, &page).expect("docs/ is writable");
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(written == page, "docs/json.md is stale: FAIRCAST_BLESS=1 cargo test -p faircast-cli");
    }

    #[test]
    fn failure_prints_an_error_line_and_a_failed_done_line() {
        let failure = Failure::from(faircast::Error::Transfer(faircast::error::TransferError::Stopped));
        let lines = text(&Line::failure(&failure)) + &text(&Line::failed());
        assert_eq!(
            lines,
            "{\"event\":\"error\",\"class\":\"transfer\",\"message\":\"stopped\",\"hint\":null}\n\
             {\"event\":\"done\",\"ok\":false}\n"
        );
    }
}
