//! Writes events as a trace.

use super::fields::Fields;
use crate::outlet::Outlet;
use crate::qlog;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Beginning of the trace of this process.
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Maximum size of a trace, in bytes. The last record states that the trace has ended.
const MAX_BYTES: u64 = 1 << 30;

/// Writes each event as a record. The queue of the output is bounded; it counts records that do not fit.
#[derive(Debug)]
pub struct Recorder {
    out: Outlet,
    most: u64,
    /// Bytes of all records so far, with those beyond the maximum.
    bytes: AtomicU64,
}

impl Recorder {
    /// Begins a trace of a command.
    pub fn new(out: Outlet, command: &str) -> Recorder {
        BEGAN.get_or_init(Instant::now);
        let vantage = match command {
            "recv" => "client",
            "relay" => "network",
            _ => "server",
        };
        let title = format!("faircast {command} {}", env!("CARGO_PKG_VERSION"));
        let began = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
        let recorder = Recorder { out, most: MAX_BYTES, bytes: AtomicU64::new(0) };
        recorder.push(qlog::header(&title, vantage, &faircast::host_name(), Some(&began)));
        recorder
    }

    fn push(&self, record: Vec<u8>) {
        let len = record.len() as u64;
        let before = self.bytes.fetch_add(len, Ordering::Relaxed);
        if before + len <= self.most {
            self.out.push(record);
        } else if before <= self.most {
            self.out.push(record_of("trace ended", "bytes", before));
        }
    }
}

/// Returns the time since the beginning of the trace, in seconds.
fn elapsed() -> f64 {
    BEGAN.get().map_or(0.0, |began| began.elapsed().as_secs_f64())
}

/// Returns the record about `count` records that are missing.
pub fn dropped(count: u64) -> Vec<u8> {
    record_of("records dropped", "count", count)
}

/// Returns a record about the trace.
fn record_of(message: &str, name: &'static str, value: u64) -> Vec<u8> {
    qlog::Event { seconds: elapsed(), message, session: "", data: &[(name, value.into())] }.record()
}

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Fields { message, session, own, .. } = Fields::of(event);
        let event = qlog::Event { seconds: elapsed(), message: &message, session: &session, data: &own };
        self.push(event.record());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ends_at_its_maximum_size_with_a_record() {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let path = scratch.path().join("trace");
        let mut out = Outlet::tolerant(std::fs::File::create(&path).expect("the directory is ours"), dropped);
        let recorder = Recorder { out: out.clone(), most: 350, bytes: AtomicU64::new(0) };
        (0..10).for_each(|_| recorder.push([[b'x'; 99].as_slice(), b"\n"].concat()));
        out.finish().expect("the file is written");
        let text = std::fs::read_to_string(&path).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[3].contains("faircast:trace_ended") && lines[3].contains("\"bytes\":300"), "{text}");
    }
}
