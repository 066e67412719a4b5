//! Scenarios: reading, changes, and the points of a sweep.

use crate::errors::{faulty, listed, unchangeable};
use faircast_experiments::edit::Edit;
use faircast_experiments::scenario::{self, Setting, memory};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// A valid scenario. Its values do not change; `changed` returns a new scenario.
#[pyclass(frozen, module = "faircast._native")]
pub struct Scenario {
    pub scenario: Arc<scenario::Scenario>,
    memory: u64,
}

impl Scenario {
    fn of(py: Python<'_>, text: &str, file: &str, memory: u64) -> PyResult<Scenario> {
        let scenario = py
            .detach(|| scenario::Scenario::parse_within(text, file, memory))
            .map_err(|faults| faulty(py, &faults))?;
        Ok(Scenario { scenario: Arc::new(scenario), memory })
    }

    fn checked(&self, point: usize) -> PyResult<usize> {
        let points = self.scenario.points().len();
        if point < points {
            return Ok(point);
        }
        Err(PyIndexError::new_err(format!("point {point} does not exist; the sweep has {points} points")))
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    #[pyo3(signature = (text, file, memory = None))]
    fn parse(py: Python<'_>, text: &str, file: &str, memory: Option<u64>) -> PyResult<Scenario> {
        Scenario::of(py, text, file, memory.unwrap_or(memory::DEFAULT))
    }

    /// Parses a text that may name trace files, which `read` returns as texts.
    #[staticmethod]
    #[pyo3(signature = (text, file, memory, read))]
    fn load(
        py: Python<'_>,
        text: &str,
        file: &str,
        memory: Option<u64>,
        read: &Bound<'_, PyAny>,
    ) -> PyResult<Scenario> {
        let memory = memory.unwrap_or(memory::DEFAULT);
        // The parser reports a text that is not TOML.
        let edit = ["trace_file", "rates_file"].iter().any(|key| text.contains(key)).then(|| Edit::of(text));
        let Some(Ok(mut edit)) = edit else { return Scenario::of(py, text, file, memory) };
        edit.read_traces(|name| read.call1((name,))?.extract::<String>())?;
        Scenario::of(py, &edit.text(), file, memory)
    }

    /// Sets keys, given by their paths and TOML values, and parses the changed text.
    fn changed(&self, py: Python<'_>, settings: Vec<(String, String)>) -> PyResult<Scenario> {
        let change = || {
            let mut edit = Edit::of(self.scenario.text())?;
            settings.iter().try_for_each(|(path, value)| edit.set(path, value))?;
            Ok(edit.text())
        };
        let text = change().map_err(|error| unchangeable(py, &error))?;
        Scenario::of(py, &text, self.scenario.file(), self.memory)
    }

    /// Maximum memory of a run in bytes.
    #[getter]
    fn memory(&self) -> u64 {
        self.memory
    }

    #[getter]
    fn title(&self) -> &str {
        self.scenario.title()
    }

    #[getter]
    fn about(&self) -> &str {
        self.scenario.about()
    }

    #[getter]
    fn text(&self) -> &str {
        self.scenario.text()
    }

    #[getter]
    fn file(&self) -> &str {
        self.scenario.file()
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.scenario.seeds().to_vec()
    }

    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for point in self.scenario.points() {
            let dict = PyDict::new(py);
            for (axis, value) in &point.values {
                match value {
                    Setting::Number(number) => dict.set_item(axis, number)?,
                    Setting::Text(text) => dict.set_item(axis, text)?,
                }
            }
            list.append(dict)?;
        }
        Ok(list)
    }

    #[getter]
    fn groups(&self) -> Vec<String> {
        self.scenario.groups().map(str::to_owned).collect()
    }

    #[getter]
    fn claims(&self) -> usize {
        self.scenario.claims().len()
    }

    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(py, self.scenario.warnings())
    }

    fn duration(&self, point: usize) -> PyResult<f64> {
        self.checked(point).map(|point| self.scenario.duration(point))
    }

    fn fingerprint(&self, point: usize) -> PyResult<String> {
        self.checked(point).map(|point| self.scenario.fingerprint(point).to_owned())
    }

    fn metric_names(&self, point: usize) -> PyResult<Vec<String>> {
        self.checked(point).map(|point| self.scenario.metric_names(point).into_iter().collect())
    }
}

/// Returns the JSON Schema of scenarios, as text.
#[pyfunction]
pub fn schema() -> String {
    scenario::schema()
}

/// Returns the names of the templates.
#[pyfunction]
pub fn templates() -> Vec<&'static str> {
    scenario::TEMPLATES.iter().map(|template| template.name).collect()
}

/// Returns the text of a template.
#[pyfunction]
pub fn template(name: &str) -> PyResult<String> {
    match scenario::template(name) {
        Some(text) => Ok(text.to_owned()),
        None => {
            Err(PyKeyError::new_err(format!("no template `{name}`; there are {}", templates().join(", "))))
        }
    }
}
