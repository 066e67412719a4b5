//! The record of a session, for a report that is a page.

use super::document;
use super::model::{Model, Of, Update};
use faircast::Event;
use serde::Serialize;
use serde_json::{Value, to_value};

/// Events of a session, within the bounds of the live page.
#[derive(Debug)]
pub struct Record(Model);

impl Record {
    /// Begins the record of a command. Returns `None` in a build without pages.
    pub fn new(command: &'static str) -> Option<Record> {
        Some(Record(Model::new(command, "report")))
    }

    /// Stores an event.
    pub fn note(&mut self, event: &Event) {
        self.0.note(Of::default(), event);
    }

    /// Stores one of the last lines of the session: its error, or its end.
    pub fn end(&mut self, line: &impl Serialize) {
        self.0.end(Of::default(), json(line));
    }

    /// Returns the page with the record and a report, as one file.
    pub fn page(&self, report: &impl Serialize) -> String {
        saved(&self.0.update_since(0), Some(json(report)))
    }
}

/// Returns the page with a state and a report, as one file.
pub fn saved(state: &Update, report: Option<Value>) -> String {
    let mut state = json(state);
    state["saved"] = Value::Bool(true);
    state["ended"] = Value::Bool(true);
    if let Some(report) = report {
        state["report"] = report;
    }
    document::saved(&state)
}

fn json(value: &impl Serialize) -> Value {
    to_value(value).expect("numbers and texts are JSON")
}
