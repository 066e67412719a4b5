//! `sim run --trace`: the trace of a simulated run.

use super::running::refused;
use crate::failure::Failure;
use crate::qlog;
use crate::sim_usage::SimUsage;
use faircast_experiments::run::traced::{Traced, Value, trace};
use faircast_experiments::scenario::Scenario;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Creates the file of a trace.
///
/// # Errors
/// When the file cannot be created.
pub fn create(path: &Path) -> Result<(PathBuf, File), SimUsage> {
    let path = path.to_owned();
    match File::create(&path) {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(SimUsage::TraceUnwritable { path, source }),
    }
}

/// Runs the first point of a scenario with the first seed, and writes its trace.
///
/// # Errors
/// When the run was stopped, or the file cannot be written.
pub fn write(scenario: &Scenario, (path, file): (PathBuf, File), stop: &AtomicBool) -> Result<(), Failure> {
    let traced = trace(scenario, &|| stop.load(Ordering::Relaxed)).map_err(refused)?;
    let title = format!("faircast sim run {}: {}", env!("CARGO_PKG_VERSION"), scenario.title());
    let write = || {
        let mut file = BufWriter::new(file);
        file.write_all(&qlog::header(&title, "network", "", None))?;
        traced.events.iter().try_for_each(|event| file.write_all(&record(event)))?;
        file.flush()
    };
    write().map_err(Failure::system(format!("write the trace {}", path.display())))
}

fn record(event: &Traced) -> Vec<u8> {
    let mut data = vec![("role", "source".into()), ("at", event.at.into())];
    data.extend(event.fields.iter().map(|(name, value)| {
        let value = match value {
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Is(is) => (*is).into(),
        };
        (*name, value)
    }));
    qlog::Event { seconds: event.at, message: event.message, session: &event.session, data: &data }.record()
}
