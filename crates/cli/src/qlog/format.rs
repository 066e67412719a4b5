//! The format of traces: qlog (draft-ietf-quic-qlog-main-schema) as JSON text sequences (RFC 7464).
//!
//! The first record describes the trace. Each further record is an event with its time in milliseconds, its name, the name of its
//! session (`group_id`) and its data.

#![cfg_attr(
    not(any(feature = "tracing", feature = "simulator", test)),
    expect(dead_code, reason = "traces are only read")
)]

use crate::safe;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// URI of the event schema, which `docs/tracing.md` describes.
const EVENT_SCHEMA: &str = "https://github.com/faircast/faircast/112026/faircast";

/// Namespace of the names of faircast's own events.
pub const NAMESPACE: &str = "faircast";

/// Byte that begins a record.
pub const SEPARATOR: u8 = 0x1e;

/// Schema and format of the file.
pub const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";
const FORMAT: &str = "application/qlog+json-seq";

/// Returns the first record. `vantage` is the part of the host `host` as qlog names it. `began` is the time of day at which the
/// trace began; `None` for simulated time.
pub fn header(title: &str, vantage: &str, host: &str, began: Option<&str>) -> Vec<u8> {
    let reference = match began {
        Some(began) => json!({ "clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": began }),
        None => json!({ "clock_type": "simulated", "epoch": "unknown" }),
    };
    record(&json!({
        "file_schema": FILE_SCHEMA,
        "serialization_format": FORMAT,
        "title": title,
        "trace": {
            "vantage_point": { "name": host, "type": vantage, "flow": "unknown" },
            "common_fields": { "time_format": "relative_to_epoch", "reference_time": reference },
            "event_schemas": [EVENT_SCHEMA],
        },
    }))
}

/// An event of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Time since the beginning of the trace.
    pub seconds: f64,
    /// Name in words, as in "rate cut".
    pub message: &'a str,
    /// Name of the session; empty without a session.
    pub session: &'a str,
    /// Names and values of the data.
    pub data: &'a [(&'static str, Value)],
}

impl Event<'_> {
    /// Returns the event as a record.
    pub fn record(&self) -> Vec<u8> {
        record(self)
    }
}

impl Serialize for Event<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // Milliseconds with three decimals.
        map.serialize_entry("time", &((self.seconds * 1e6).round() / 1e3))?;
        map.serialize_entry("name", &format!("{NAMESPACE}:{}", self.message.replace(' ', "_")))?;
        if !self.session.is_empty() {
            map.serialize_entry("group_id", self.session)?;
        }
        map.serialize_entry("data", &Data(self.data))?;
        map.end()
    }
}

struct Data<'a>(&'a [(&'static str, Value)]);

impl Serialize for Data<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn record(value: &impl Serialize) -> Vec<u8> {
    let text = serde_json::to_string(value).expect("numbers and texts are JSON");
    format!("{}{}\n", char::from(SEPARATOR), safe::json(&text)).into_bytes()
}
