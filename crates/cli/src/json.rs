//! What a session tells, as JSON: one object a line, `event` says which. The names and units are a
//! format that scripts rely on; fields are added, never renamed.

use crate::failure::{Failure, class_name};
use faircast_transport::event::{
    Flow, LayersReport, Limit, Progress, StreamReceived, StreamSent, Subscription,
};
use faircast_transport::{Event, ReceiveReport, SendReport};
use serde::Serialize;
use std::io::{self, Write};

/// One line.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Line<'a> {
    /// The sockets are open.
    Opened { group: String, interface: &'a str, local: String, alternatives: &'a [String] },
    /// Worth knowing, not fatal.
    Warning { message: &'a str },
    /// The content is known; `bytes` is null for a stream.
    Content { transfer: &'a str, files: u64, bytes: Option<u64>, resumed_bytes: u64 },
    /// A receiver has joined, or the session was found.
    Joined { receiver: &'a str, host: &'a str, address: String },
    /// A receiver is done, or gone.
    Left { receiver: &'a str, host: &'a str, verified: bool, reason: Option<&'a str> },
    /// A receiver cannot keep up.
    Slow { receiver: &'a str, host: &'a str, rate_bps: f64, action: &'a str },
    /// Layers were joined or left.
    Layers { joined: u8, of: u8 },
    /// A layer of a live stream `comes` or `stops`; `to` is null when nobody wants it.
    Output { layer: u8, flow: &'static str, bytes: u64, to: Option<&'a str> },
    /// Once a second; `layers` is null in a session at one rate. `limited_by` is `congestion`, `window` (of the receiver on
    /// the host `window_of`), `application` or `max`, and null where it is not known.
    Progress {
        seconds: f64,
        bytes: u64,
        total_bytes: Option<u64>,
        rate_bps: f64,
        allowed_bps: Option<f64>,
        rtt_ms: Option<f64>,
        loss: f64,
        representative: Option<&'a str>,
        receivers: u64,
        verified: u64,
        layers: Option<Joined>,
        limited_by: Option<&'static str>,
        window_of: Option<&'a str>,
    },
    /// What went wrong; a `done` with `"ok":false` follows.
    Error { class: &'a str, message: String, hint: Option<String> },
    /// The end of a `send` or `stream`, or of a `recv`.
    Done(Done<'a>),
}

/// How a session ended; always the last line.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Done<'a> {
    /// Of a source.
    Sent {
        ok: bool,
        receivers: u64,
        missing: u64,
        verified: u64,
        bytes: u64,
        seconds: f64,
        start_seconds: f64,
        goodput_bps: f64,
        repair_ratio: f64,
        packets: u64,
        cuts: u64,
        incomplete: Vec<Incomplete<'a>>,
        slow: &'a [String],
        refused: u64,
        streams: Vec<SentStream>,
        cpu_seconds: Option<f64>,
    },
    /// Of a receiver.
    Received {
        ok: bool,
        files: u64,
        bytes: u64,
        seconds: f64,
        goodput_bps: f64,
        resumed_bytes: u64,
        refetched_bytes: u64,
        packets: u64,
        lost: u64,
        symbol_ratio: f64,
        repaired_blocks: u64,
        refused: u64,
        dropped_local: u64,
        warnings: &'a [String],
        layers: Option<Layers>,
        streams: Vec<ReceivedStream<'a>>,
        cpu_seconds: Option<f64>,
    },
    /// Of either end of a session over PGM.
    Pgm(crate::pgm::Done),
    /// Of either end of a session over ALC.
    Alc(crate::alc::Done),
    /// It did not come to a report.
    Failed { ok: bool },
}

/// A receiver that does not have everything.
#[derive(Debug, Serialize)]
pub struct Incomplete<'a> {
    host: &'a str,
    reason: &'a str,
}

/// The layers of a session that a receiver has joined.
#[derive(Debug, Serialize)]
pub struct Joined {
    joined: u8,
    of: u8,
}

/// What a receiver did with the layers of a session.
#[derive(Debug, Serialize)]
pub struct Layers {
    of: u8,
    highest: u8,
    joins: u64,
    leaves: u64,
}

/// What was sent on a layer of a live stream.
#[derive(Debug, Serialize)]
pub struct SentStream {
    bytes: u64,
    blocks: u64,
    blocks_dropped: u64,
}

/// What has come of a layer of a live stream.
#[derive(Debug, Serialize)]
pub struct ReceivedStream<'a> {
    bytes: u64,
    blocks: u64,
    blocks_lost: u64,
    seconds: f64,
    to: Option<&'a str>,
}

impl From<&StreamSent> for SentStream {
    fn from(&StreamSent { bytes, blocks, blocks_dropped }: &StreamSent) -> SentStream {
        SentStream { bytes, blocks, blocks_dropped }
    }
}

impl<'a> From<&'a StreamReceived> for ReceivedStream<'a> {
    fn from(got: &'a StreamReceived) -> ReceivedStream<'a> {
        let &StreamReceived { bytes, blocks, blocks_lost, seconds, .. } = got;
        ReceivedStream { bytes, blocks, blocks_lost, seconds, to: got.to.as_deref() }
    }
}

impl From<Subscription> for Joined {
    fn from(Subscription { joined, of }: Subscription) -> Joined {
        Joined { joined, of }
    }
}

impl From<LayersReport> for Layers {
    fn from(LayersReport { of, highest, joins, leaves }: LayersReport) -> Layers {
        Layers { of, highest, joins, leaves }
    }
}

impl<'a> Line<'a> {
    /// An event of a session.
    pub fn of(event: &'a Event) -> Line<'a> {
        match event {
            Event::Opened { group, interface, local, alternatives } => {
                Line::Opened { group: group.to_string(), interface, local: local.to_string(), alternatives }
            }
            Event::Warning(message) => Line::Warning { message },
            Event::Content { transfer, files, bytes, resumed_bytes } => {
                Line::Content { transfer, files: *files, bytes: *bytes, resumed_bytes: *resumed_bytes }
            }
            Event::Joined { receiver, host, address } => {
                Line::Joined { receiver, host, address: address.to_string() }
            }
            Event::Left { receiver, host, verified, reason } => {
                Line::Left { receiver, host, verified: *verified, reason: reason.as_deref() }
            }
            Event::SlowReceiver { receiver, host, rate_bps, action } => {
                Line::Slow { receiver, host, rate_bps: *rate_bps, action }
            }
            Event::Layers(Subscription { joined, of }) => Line::Layers { joined: *joined, of: *of },
            Event::Output { layer, flow, bytes, to } => {
                let flow = match flow {
                    Flow::Comes => "comes",
                    Flow::Stops => "stops",
                };
                Line::Output { layer: *layer, flow, bytes: *bytes, to: to.as_deref() }
            }
            Event::Progress(progress) => Line::progress(progress),
        }
    }

    fn progress(progress: &'a Progress) -> Line<'a> {
        Line::Progress {
            seconds: progress.seconds,
            bytes: progress.bytes,
            total_bytes: progress.total_bytes,
            rate_bps: progress.rate_bps,
            allowed_bps: progress.allowed_bps,
            rtt_ms: progress.rtt_ms,
            loss: progress.loss,
            representative: progress.representative.as_deref(),
            receivers: progress.receivers,
            verified: progress.verified,
            layers: progress.layers.map(Joined::from),
            limited_by: progress.limited_by.as_ref().map(Limit::word),
            window_of: match &progress.limited_by {
                Some(Limit::Window(host)) => Some(host),
                _ => None,
            },
        }
    }

    /// The end of a `send` or `stream`.
    pub fn sent(report: &'a SendReport, cpu_seconds: Option<f64>) -> Line<'a> {
        Line::Done(Done::Sent {
            ok: report.ok,
            receivers: report.receivers,
            missing: report.missing,
            verified: report.verified,
            bytes: report.bytes,
            seconds: report.seconds,
            start_seconds: report.start_seconds,
            goodput_bps: report.goodput_bps,
            repair_ratio: report.repair_ratio,
            packets: report.packets,
            cuts: report.cuts,
            incomplete: report.incomplete.iter().map(|(host, reason)| Incomplete { host, reason }).collect(),
            slow: &report.slow,
            refused: report.refused,
            streams: report.streams.iter().map(SentStream::from).collect(),
            cpu_seconds,
        })
    }

    /// The end of a `recv`.
    pub fn received(report: &'a ReceiveReport, cpu_seconds: Option<f64>) -> Line<'a> {
        Line::Done(Done::Received {
            ok: report.ok,
            files: report.files,
            bytes: report.bytes,
            seconds: report.seconds,
            goodput_bps: report.goodput_bps,
            resumed_bytes: report.resumed_bytes,
            refetched_bytes: report.refetched_bytes,
            packets: report.packets,
            lost: report.lost,
            symbol_ratio: report.symbol_ratio,
            repaired_blocks: report.repaired_blocks,
            refused: report.refused,
            dropped_local: report.dropped_local,
            warnings: &report.warnings,
            layers: report.layers.map(Layers::from),
            streams: report.streams.iter().map(ReceivedStream::from).collect(),
            cpu_seconds,
        })
    }

    /// What went wrong.
    pub fn failure(failure: &Failure) -> Line<'static> {
        let (message, hint) = failure.what_and_hint();
        Line::Error { class: class_name(failure.class()), message, hint }
    }

    /// The last line of a session that did not come to a report.
    pub fn failed() -> Line<'static> {
        Line::Done(Done::Failed { ok: false })
    }
}

/// Write `line` as one line, and flush it, so that a reader sees it at once.
pub fn write(out: &mut (impl Write + ?Sized), line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &Line<'_>) -> String {
        let mut out = Vec::new();
        write(&mut out, line).expect("a vector takes everything");
        String::from_utf8(out).expect("JSON is UTF-8")
    }

    #[test]
    fn every_event_keeps_its_shape() {
        let events = [
            Event::Opened {
                group: "239.255.70.1:5777".parse().expect("a literal"),
                interface: "eth0".into(),
                local: "192.0.2.1".parse().expect("a literal"),
                alternatives: vec!["wlan0".into()],
            },
            Event::Warning("a small buffer".into()),
            Event::Content { transfer: "ab12".into(), files: 3, bytes: Some(1000), resumed_bytes: 10 },
            Event::Joined {
                receiver: "1f".into(),
                host: "lab-07".into(),
                address: "192.0.2.7:40000".parse().expect("a literal"),
            },
            Event::Left { receiver: "1f".into(), host: "lab-07".into(), verified: true, reason: None },
            Event::SlowReceiver {
                receiver: "1f".into(),
                host: "lab-07".into(),
                rate_bps: 1e7,
                action: "deferred",
            },
            Event::Layers(Subscription { joined: 3, of: 8 }),
            Event::Output { layer: 1, flow: Flow::Comes, bytes: 0, to: Some("out/stream.layer1".into()) },
            Event::Progress(Progress {
                seconds: 1.0,
                bytes: 500,
                total_bytes: Some(1000),
                rate_bps: 4e3,
                allowed_bps: Some(5e3),
                rtt_ms: Some(1.5),
                loss: 0.25,
                representative: Some("lab-07".into()),
                receivers: 3,
                verified: 1,
                layers: Some(Subscription { joined: 3, of: 8 }),
                limited_by: Some(Limit::Window("lab-07".into())),
            }),
        ];
        let lines: String = events.iter().map(|event| text(&Line::of(event))).collect();
        assert_eq!(lines, include_str!("../tests/events.ndjson"));
    }

    #[test]
    fn the_last_line_of_a_source_has_every_field_of_its_report() {
        let report = SendReport {
            ok: false,
            receivers: 2,
            verified: 1,
            incomplete: vec![("lab-07".into(), "silent".into())],
            ..SendReport::default()
        };
        assert_eq!(
            text(&Line::sent(&report, Some(0.5))),
            "{\"event\":\"done\",\"ok\":false,\"receivers\":2,\"missing\":0,\"verified\":1,\"bytes\":0,\"seconds\":0.0,\
             \"start_seconds\":0.0,\"goodput_bps\":0.0,\"repair_ratio\":0.0,\"packets\":0,\"cuts\":0,\
             \"incomplete\":[{\"host\":\"lab-07\",\"reason\":\"silent\"}],\"slow\":[],\"refused\":0,\
             \"streams\":[],\"cpu_seconds\":0.5}\n"
        );
    }

    #[test]
    fn the_last_line_of_a_receiver_has_every_field_of_its_report() {
        let layers = Some(LayersReport { of: 8, highest: 4, joins: 5, leaves: 2 });
        let streams = vec![StreamReceived { bytes: 9, blocks: 1, ..StreamReceived::default() }];
        let report =
            ReceiveReport { ok: true, files: 1, bytes: 9, lost: 2, layers, streams, ..Default::default() };
        assert_eq!(
            text(&Line::received(&report, None)),
            "{\"event\":\"done\",\"ok\":true,\"files\":1,\"bytes\":9,\"seconds\":0.0,\"goodput_bps\":0.0,\
             \"resumed_bytes\":0,\"refetched_bytes\":0,\"packets\":0,\"lost\":2,\"symbol_ratio\":0.0,\
             \"repaired_blocks\":0,\"refused\":0,\"dropped_local\":0,\"warnings\":[],\
             \"layers\":{\"of\":8,\"highest\":4,\"joins\":5,\"leaves\":2},\
             \"streams\":[{\"bytes\":9,\"blocks\":1,\"blocks_lost\":0,\"seconds\":0.0,\"to\":null}],\
             \"cpu_seconds\":null}\n"
        );
    }

    #[test]
    fn a_failure_is_an_error_and_then_a_done_that_is_not_ok() {
        let failure = Failure::from(faircast_transport::Error::Stopped);
        let lines = text(&Line::failure(&failure)) + &text(&Line::failed());
        assert_eq!(
            lines,
            "{\"event\":\"error\",\"class\":\"transfer\",\"message\":\"stopped\",\"hint\":null}\n\
             {\"event\":\"done\",\"ok\":false}\n"
        );
    }
}
