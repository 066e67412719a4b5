//! Exceptions of the package.

use faircast_experiments::edit::EditError;
use faircast_experiments::repro::ReproError;
use faircast_experiments::run;
use faircast_experiments::scenario::{DiagnosticStyle, Diagnostics};
use pyo3::exceptions::{PyKeyError, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    faircast,
    ScenarioError,
    PyValueError,
    "A scenario with faults.\n\nAttributes\n----------\nfaults : list of dict\n    The faults, in the order of the text. Each has `message`, `label`, `help` (or None), `file`, `line` and `column`; lines and columns count from 1."
);
pyo3::create_exception!(
    faircast,
    RunError,
    pyo3::exceptions::PyRuntimeError,
    "A run that the simulator refuses."
);

/// Returns the exception for these faults of a scenario.
pub fn faulty(py: Python<'_>, faults: &Diagnostics) -> PyErr {
    let error = ScenarioError::new_err(faults.render(DiagnosticStyle::Plain).trim_end().to_owned());
    match listed(py, faults).and_then(|list| error.value(py).setattr("faults", list)) {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// Returns the diagnostics as a list of dictionaries.
pub fn listed<'py>(py: Python<'py>, faults: &Diagnostics) -> PyResult<Bound<'py, pyo3::types::PyList>> {
    let list = pyo3::types::PyList::empty(py);
    for fault in faults.iter() {
        let (line, column) = faults.position(fault);
        let dict = pyo3::types::PyDict::new(py);
        dict.set_item("message", &fault.message)?;
        dict.set_item("label", &fault.label)?;
        dict.set_item("help", fault.help.as_deref())?;
        dict.set_item("file", faults.file())?;
        dict.set_item("line", line)?;
        dict.set_item("column", column)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Returns the exception for a change of a scenario that cannot be made.
pub fn unchangeable(py: Python<'_>, error: &EditError) -> PyErr {
    let exception = ScenarioError::new_err(error.to_string());
    match exception.value(py).setattr("faults", pyo3::types::PyList::empty(py)) {
        Ok(()) => exception,
        Err(other) => other,
    }
}

/// Returns the exception for runs that failed.
pub fn failed(error: &run::RunError) -> PyErr {
    match error {
        run::RunError::NoMetric { .. } => PyKeyError::new_err(error.to_string()),
        run::RunError::Memory { refused } => PyMemoryError::new_err(format!(
            "{refused}; use fewer threads, simulate fewer receivers, or raise the limit: memory={}",
            refused.total.div_ceil(1_000_000_000) * 1_000_000_000
        )),
        run::RunError::Keep(_) => PyOSError::new_err(error.to_string()),
        _ => RunError::new_err(error.to_string()),
    }
}

/// Returns the exception for a figure that was not repeated.
pub fn not_repeated(py: Python<'_>, error: &ReproError) -> PyErr {
    match error {
        ReproError::Edit(error) => unchangeable(py, error),
        ReproError::Scenario(faults) => faulty(py, faults),
        ReproError::Run(error) => failed(error),
    }
}
