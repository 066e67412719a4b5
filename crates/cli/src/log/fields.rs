//! The values of an event of `tracing`.

use serde_json::Value;
use std::fmt::Debug;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// Maximum length of a text, in bytes. Longer texts are cut.
const MAX_TEXT: usize = 2_000;

/// An event, with the fields that all events have apart from its own fields.
#[derive(Debug)]
pub struct Fields {
    pub level: Level,
    pub target: &'static str,
    pub message: String,
    /// Name of the session.
    pub session: String,
    /// Own fields in their order, `role` and `at` included.
    pub own: Vec<(&'static str, Value)>,
}

impl Fields {
    /// Returns the values of an event.
    pub fn of(event: &Event<'_>) -> Fields {
        let metadata = event.metadata();
        let mut fields = Fields {
            level: *metadata.level(),
            target: metadata.target(),
            message: String::new(),
            session: String::new(),
            own: Vec::new(),
        };
        event.record(&mut fields);
        fields
    }

    fn text(&mut self, field: &Field, mut value: String) {
        if value.len() > MAX_TEXT {
            let end = (0..=MAX_TEXT).rev().find(|end| value.is_char_boundary(*end));
            value.truncate(end.unwrap_or_default());
            value.push('…');
        }
        match field.name() {
            "message" => self.message = value,
            "session" => self.session = value,
            name => self.own.push((name, value.into())),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field, value.to_owned());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.own.push((field.name(), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.own.push((field.name(), value.into()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.own.push((field.name(), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.own.push((field.name(), value.into()));
    }
}
