//! Log lines as text, and as messages to the journal of systemd.

use super::fields::Fields;
use super::limiter::Limiter;
use crate::outlet::Outlet;
use crate::safe;
use crate::units;
use serde_json::Value;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line of text that begins with the time of day.
    Text,
    /// A datagram with fields, in the native protocol of the journal.
    Journal,
}

/// Writes events as log lines. A clone writes to the same output.
#[derive(Debug, Clone)]
pub struct Lines {
    out: Outlet,
    form: Form,
    began: Instant,
    limiter: Arc<Mutex<Limiter>>,
}

impl Lines {
    /// Writes to `out`.
    pub fn new(out: Outlet, form: Form) -> Lines {
        Lines { out, form, began: Instant::now(), limiter: Arc::default() }
    }

    /// Writes the numbers of all lines that were left out.
    pub fn finish(&self) {
        self.report_left_out(&mut self.limiter(), Duration::MAX);
    }

    /// Locks the limiter. A poisoned lock is safe: a thread that panics leaves a valid count.
    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the numbers of lines that were left out until now.
    fn report_left_out(&self, limiter: &mut Limiter, now: Duration) {
        while let Some((target, count)) = limiter.take_left_out(now) {
            let message = format!("{} left out, because there were too many", units::count(count, "line"));
            self.out.push(line(self.form, SystemTime::now(), &notice(target, message)));
        }
    }
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let now = self.began.elapsed();
        let mut limiter = self.limiter();
        let is_admitted = limiter.admits(event.metadata().target(), now);
        if is_admitted {
            self.report_left_out(&mut limiter, now);
        }
        drop(limiter);
        if is_admitted {
            self.out.push(line(self.form, SystemTime::now(), &Fields::of(event)));
        }
    }
}

/// Returns a message of the log about itself.
pub fn notice(target: &'static str, message: String) -> Fields {
    Fields { level: Level::WARN, target, message, session: String::new(), own: Vec::new() }
}

/// Returns an event as a log line.
pub fn line(form: Form, now: SystemTime, fields: &Fields) -> Vec<u8> {
    match form {
        Form::Text => {
            let time = humantime::format_rfc3339_millis(now);
            format!("{time} {} {}: {}\n", fields.level, fields.target, words(fields)).into_bytes()
        }
        Form::Journal => journal(fields),
    }
}

/// Returns the message with its fields in one line, without control characters.
fn words(fields: &Fields) -> String {
    let mut text = safe::name(&fields.message).into_owned();
    if !fields.session.is_empty() {
        add(&mut text, "session", &quoted(&fields.session));
    }
    for (name, value) in &fields.own {
        add(&mut text, name, &shown(value));
    }
    text
}

fn add(text: &mut String, name: &str, value: &str) {
    write!(text, " {name}={value}").expect("a string takes any text");
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => match (number.as_u64(), number.as_f64()) {
            (None, Some(number)) => ((number * 1e3).round() / 1e3).to_string(),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Puts a text into quotation marks if it is not a single word.
fn quoted(text: &str) -> String {
    let is_word = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c == '"' || c == '=');
    match is_word {
        true => safe::name(text).into_owned(),
        false => format!("\"{}\"", safe::name(&text.replace('\\', "\\\\").replace('"', "\\\""))),
    }
}

/// Returns an event in the native protocol of the journal. Each field is in one line, because no value has a line end.
fn journal(fields: &Fields) -> Vec<u8> {
    let priority = match fields.level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    };
    let mut text = format!(
        "PRIORITY={priority}\nSYSLOG_IDENTIFIER=faircast\nMESSAGE={}\nFAIRCAST_TARGET={}\n",
        words(fields),
        fields.target
    );
    let session = Some(("session", Value::from(fields.session.as_str())));
    let session = session.filter(|_| !fields.session.is_empty());
    for (name, value) in session.iter().chain(&fields.own) {
        let value = value.as_str().map_or_else(|| shown(value), |text| safe::name(text).into_owned());
        writeln!(text, "FAIRCAST_{}={value}", name.to_uppercase()).expect("a string takes any text");
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        Fields {
            level: Level::INFO,
            target: "faircast::join",
            message: "member left".to_owned(),
            session: "disk.img".to_owned(),
            own: vec![
                ("at", 1.23456.into()),
                ("host", "lab-07\n\u{1b}[2J".into()),
                ("reason", "no \"room\" left".into()),
                ("block", 7.into()),
            ],
        }
    }

    #[test]
    fn line_has_session_peer_and_cause_without_control_characters() {
        let moment = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500);
        let text = String::from_utf8(line(Form::Text, moment, &fields())).expect("text");
        assert_eq!(
            text,
            "1970-01-01T00:00:01.500Z INFO faircast::join: member left session=disk.img at=1.235 \
             host=\"lab-07\\u{a}\\u{1b}[2J\" reason=\"no \\\"room\\\" left\" block=7\n"
        );
    }

    #[test]
    fn journal_gets_one_line_for_each_field() {
        let text = String::from_utf8(line(Form::Journal, SystemTime::now(), &fields())).expect("text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 9, "{text}");
        assert_eq!(lines[..2], ["PRIORITY=6", "SYSLOG_IDENTIFIER=faircast"]);
        assert!(lines[2].starts_with("MESSAGE=member left session=disk.img at=1.235 "), "{text}");
        assert_eq!(lines[3], "FAIRCAST_TARGET=faircast::join");
        assert_eq!(lines[4..6], ["FAIRCAST_SESSION=disk.img", "FAIRCAST_AT=1.235"]);
        assert_eq!(lines[6], "FAIRCAST_HOST=lab-07\\u{a}\\u{1b}[2J");
    }
}
