//! Reads traces. A record that is damaged or incomplete is counted, and the others are used.

use super::format::{FILE_SCHEMA, NAMESPACE, SEPARATOR};
use serde_json::{Map, Value};
use std::io::{self, BufRead, Read};

/// Maximum length of a record, in bytes.
const MAX_RECORD: u64 = 1 << 20;

/// Number of faults that are described.
const DESCRIBED: usize = 3;

/// An event of a trace.
#[derive(Debug)]
pub struct Event {
    /// Time since the beginning of the trace, in seconds.
    pub seconds: f64,
    /// Name without its namespace, as in `rate_cut`.
    pub name: String,
    /// Name of the session; empty without a session.
    pub session: String,
    data: Map<String, Value>,
}

impl Event {
    /// Returns a text of the data, or an empty text.
    pub fn text(&self, name: &str) -> &str {
        self.data.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns a text of the data, unless it is empty.
    pub fn named(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Returns a number of the data.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.data.get(name).and_then(Value::as_f64)
    }

    /// Returns whether a value of the data is true.
    pub fn is(&self, name: &str) -> bool {
        self.data.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the time of the session, in seconds. An event without this time has the time of the trace.
    pub fn at(&self) -> f64 {
        self.number("at").unwrap_or(self.seconds)
    }
}

/// Description of a trace, and the faults of its file.
#[derive(Debug, Default)]
pub struct About {
    /// The command that wrote the trace, and its version.
    pub title: String,
    /// The host of the command.
    pub host: String,
    /// Time of day at which the trace began; empty for a simulation.
    pub began: String,
    /// Number of events.
    pub events: u64,
    /// Number of records that could not be read.
    pub unreadable: u64,
    /// Descriptions of the first of them.
    pub faults: Vec<String>,
}

/// Reason why a file is not a trace.
#[derive(Debug, thiserror::Error)]
pub enum NoTrace {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file has no records.
    #[error("it does not begin with a record of a JSON text sequence")]
    NoSequence,
    /// The first record is no header.
    #[error("its first record does not describe a trace in the format qlog")]
    NoHeader,
}

/// Reads a trace, and passes its events to `take`.
///
/// # Errors
/// When the file cannot be read, or is not a trace.
pub fn read(mut file: impl BufRead, mut take: impl FnMut(Event)) -> Result<About, NoTrace> {
    let mut about = About::default();
    let mut byte = 1_u64;
    let mut record = Vec::new();
    let mut is_first = true;
    if file.fill_buf()?.first() != Some(&SEPARATOR) {
        return Err(NoTrace::NoSequence);
    }
    file.consume(1);
    loop {
        let begin = byte;
        let Some(next) = next_record(&mut file, &mut record)? else {
            return if is_first { Err(NoTrace::NoHeader) } else { Ok(about) };
        };
        byte += next.len;
        let text: &[u8] = if next.is_too_long { &[] } else { &record };
        let value = serde_json::from_slice::<Value>(text);
        if std::mem::take(&mut is_first) {
            header(value.unwrap_or_default(), &mut about).ok_or(NoTrace::NoHeader)?;
            continue;
        }
        if record.iter().all(u8::is_ascii_whitespace) && !next.is_too_long {
            continue;
        }
        // A record without its line end may be cut off within a number (RFC 7464, 2.4).
        let is_cut = next.is_last && !record.ends_with(b"\n");
        match value.ok().filter(|_| !is_cut).and_then(event) {
            Some(event) => {
                about.events += 1;
                take(event);
            }
            None => {
                about.unreadable += 1;
                if about.faults.len() < DESCRIBED {
                    let why = match (next.is_too_long, is_cut) {
                        (true, _) => "is longer than any record of a trace",
                        (_, true) => "is cut off; the command may have been killed",
                        _ => "is damaged",
                    };
                    about.faults.push(format!("the record at byte {begin} {why}"));
                }
            }
        }
    }
}

/// A record that was read.
struct Next {
    /// Number of bytes up to the next record.
    len: u64,
    is_too_long: bool,
    is_last: bool,
}

/// Reads the next record, without its separators; returns `None` at the end of the file.
fn next_record(file: &mut impl BufRead, record: &mut Vec<u8>) -> io::Result<Option<Next>> {
    record.clear();
    let mut next = Next { len: 0, is_too_long: false, is_last: false };
    loop {
        let read = file.by_ref().take(MAX_RECORD).read_until(SEPARATOR, record)? as u64;
        next.len += read;
        if record.last() == Some(&SEPARATOR) {
            record.pop();
            return Ok(Some(next));
        }
        if read < MAX_RECORD {
            next.is_last = true;
            return Ok(Some(next).filter(|next| next.len > 0));
        }
        next.is_too_long = true;
        record.clear();
    }
}

/// Reads the first record; returns `None` if it does not describe a trace.
fn header(value: Value, about: &mut About) -> Option<()> {
    if value["file_schema"] != FILE_SCHEMA {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let trace = &value["trace"];
    about.title = text(&value["title"]);
    about.host = text(&trace["vantage_point"]["name"]);
    about.began = text(&trace["common_fields"]["reference_time"]["wall_clock_time"]);
    Some(())
}

/// Returns the event of a record. Events of other namespaces have no name.
fn event(value: Value) -> Option<Event> {
    let Value::Object(mut fields) = value else { return None };
    let seconds = fields.get("time")?.as_f64()? / 1e3;
    let (space, name) = fields.get("name")?.as_str()?.split_once(':')?;
    let name = if space == NAMESPACE { name.to_owned() } else { String::new() };
    let session = fields.get("group_id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let Some(Value::Object(data)) = fields.remove("data") else { return None };
    Some(Event { seconds, name, session, data })
}

#[cfg(test)]
mod tests {
    use super::super::format as qlog;
    use super::*;

    fn trace() -> Vec<u8> {
        let mut bytes = qlog::header("faircast send 1", "server", "alpha", Some("2026-11-30T01:02:03Z"));
        for (seconds, session) in [(0.5, "disk.img"), (1.25, "")] {
            let data = [("at", 0.25.into()), ("host", "lab-07\u{1e}\n".into())];
            bytes.extend(qlog::Event { seconds, message: "rate cut", session, data: &data }.record());
        }
        bytes
    }

    fn all(bytes: &[u8]) -> Result<(About, Vec<Event>), NoTrace> {
        let mut events = Vec::new();
        let about = read(bytes, |event| events.push(event))?;
        Ok((about, events))
    }

    #[test]
    fn written_records_are_read_again() {
        let (about, events) = all(&trace()).expect("it is a trace");
        assert_eq!((about.title.as_str(), about.host.as_str()), ("faircast send 1", "alpha"));
        assert_eq!((about.began.as_str(), about.events, about.unreadable), ("2026-11-30T01:02:03Z", 2, 0));
        assert_eq!((events[0].seconds, events[1].seconds), (0.5, 1.25));
        assert_eq!((events[0].name.as_str(), events[0].session.as_str()), ("rate_cut", "disk.img"));
        assert_eq!((events[0].text("host"), events[0].at()), ("lab-07\u{1e}\n", 0.25));
    }

    #[test]
    fn every_truncation_leaves_the_whole_records() {
        let bytes = trace();
        let ends: Vec<usize> = (1..=bytes.len()).filter(|end| bytes[end - 1] == b'\n').collect();
        assert_eq!(ends.len(), 3);
        for len in 0..bytes.len() {
            let whole = ends.iter().filter(|end| **end <= len).count();
            match all(&bytes[..len]) {
                Ok((about, events)) => {
                    assert_eq!(events.len(), whole.saturating_sub(1), "{len}");
                    let is_between = ends.contains(&len) || ends.contains(&(len - 1)) || whole == 0;
                    assert_eq!(about.unreadable == 0, is_between, "{len}: {about:?}");
                }
                Err(_) => assert_eq!(whole, 0, "{len}"),
            }
        }
    }

    #[test]
    fn damaged_and_endless_records_are_counted() {
        let mut bytes = trace();
        let end = bytes.len();
        bytes.extend(b"\x1e{\"time\":1}\n\x1e[1,2\n\x1e\n\x1e");
        bytes.resize(bytes.len() + 3 * MAX_RECORD as usize, b'1');
        bytes.extend(&trace()[..]);
        let (about, events) = all(&bytes).expect("it is a trace");
        assert_eq!((events.len(), about.unreadable), (4, 4), "{about:?}");
        assert_eq!(about.faults.len(), DESCRIBED);
        assert_eq!(about.faults[0], format!("the record at byte {} is damaged", end + 1));
        assert!(about.faults[2].contains("longer"), "{about:?}");
    }

    #[test]
    fn other_files_are_refused() {
        for other in [&b""[..], b"{}", b"\x1e{\"file_schema\":\"other\"}\n", b"\x1e"] {
            assert!(all(other).is_err(), "{other:?}");
        }
    }
}
