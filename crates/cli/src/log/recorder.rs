//! Writes events as a trace.

use super::fields::Fields;
use crate::outlet::Outlet;
use crate::qlog;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Beginning of the trace of this process.
static BEGAN: OnceLock<Instant> = OnceLock::new();

/// Writes each event as a record. The queue of the output is bounded; it counts records that do not fit.
#[derive(Debug)]
pub struct Recorder {
    out: Outlet,
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
        out.push(qlog::header(&title, vantage, &faircast::host_name(), Some(&began)));
        Recorder { out }
    }
}

/// Returns the time since the beginning of the trace, in seconds.
fn elapsed() -> f64 {
    BEGAN.get().map_or(0.0, |began| began.elapsed().as_secs_f64())
}

/// Returns the record about `count` records that are missing.
pub fn dropped(count: u64) -> Vec<u8> {
    let data = [("count", count.into())];
    qlog::Event { seconds: elapsed(), message: "records dropped", session: "", data: &data }.record()
}

impl<S: Subscriber> Layer<S> for Recorder {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Fields { message, session, own, .. } = Fields::of(event);
        let event = qlog::Event { seconds: elapsed(), message: &message, session: &session, data: &own };
        self.out.push(event.record());
    }
}
