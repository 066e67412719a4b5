//! The papers' figures and tables.

use crate::errors::not_repeated;
use crate::running::{Watcher, stored};
use crate::table::Table;
use faircast_experiments::repro::{self, Judged, Pace, Settings, Tolerance};
use faircast_experiments::table::{Column, Table as TableOfResults};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Returns the claims as a table.
pub fn judged(name: &str, claims: &[Judged]) -> PyResult<Table> {
    let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
    let numbers = |of: &dyn Fn(&Judged) -> f64| Column::Number(claims.iter().map(of).collect());
    let texts = |of: &dyn Fn(&Judged) -> String| Column::Text(claims.iter().map(of).collect());
    let end = |claim: &Judged, which: usize| number(claim.interval.map(|ends| ends[which]));
    let limit = |claim: &Judged, which: usize| {
        let (low, high) = match claim.tolerance {
            Tolerance::Between(low, high) => (number(low), number(high)),
            Tolerance::Relative(_) => claim.tolerance.limits(claim.published),
        };
        if which == 0 { low } else { high }
    };
    let columns = [
        ("claim", texts(&|claim| claim.name.clone())),
        ("published", numbers(&|claim| number(claim.published))),
        ("measured", numbers(&|claim| number(claim.measured))),
        ("low", numbers(&|claim| end(claim, 0))),
        ("high", numbers(&|claim| end(claim, 1))),
        ("accepted_low", numbers(&|claim| limit(claim, 0))),
        ("accepted_high", numbers(&|claim| limit(claim, 1))),
        ("verdict", texts(&|claim| claim.verdict.word().to_owned())),
        ("note", texts(&|claim| claim.note.clone())),
    ];
    let columns = columns.map(|(name, column)| (name.to_owned(), column)).to_vec();
    Table::new(TableOfResults { name: name.to_owned(), columns })
}

/// Returns the figures and tables: identifier, description, and the name of the paper of each.
#[pyfunction]
pub fn entries() -> Vec<(String, String, String)> {
    let entry =
        |entry: &'static repro::Entry| (entry.id.clone(), entry.about.clone(), entry.document().name.clone());
    repro::entries().map(entry).collect()
}

/// Repeats a figure or table. Returns its claims, and its figures as names and SVG texts.
#[pyfunction]
#[pyo3(signature = (id, seeds = None, quick = false, threads = 0, alternatives = 0, kept = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are the keyword arguments of the Python function")]
pub fn reproduce(
    py: Python<'_>,
    id: &str,
    seeds: Option<Vec<u64>>,
    quick: bool,
    threads: usize,
    alternatives: usize,
    kept: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(Table, Vec<(String, String)>)> {
    let entry = repro::find(id).map_err(|error| PyKeyError::new_err(error.to_string()))?;
    let kept = kept.map(|directory| stored(&directory)).transpose()?;
    let settings = Settings {
        seeds,
        threads: NonZeroUsize::new(threads),
        pace: if quick { Pace::Quick } else { Pace::Full },
        alternatives,
        kept,
        ..Settings::default()
    };
    let watcher = Watcher::new(progress, false);
    let outcome = py.detach(|| repro::reproduce(entry, &settings, &watcher));
    let done = watcher.outcome(outcome)?.map_err(|error| not_repeated(py, &error))?;
    let figures = done.figures.iter().map(|(name, figure)| ((*name).to_owned(), figure.svg())).collect();
    Ok((judged("claims", &done.outcome.claims)?, figures))
}
