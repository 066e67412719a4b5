//! Congestion control and queues that are Python classes.
//!
//! A registered class is a factory of the simulator: each flow or link gets an object. The thread of a run holds the interpreter's
//! lock for the whole run ([`crate::running::Watcher`]), so that a call costs little more than the Python code in it.

mod policy;
mod queue;
mod receiver;
mod source;

use faircast_core::own::OwnFactory;
use faircast_core::rate::POLICIES;
use faircast_core::schemes::own::SCHEMES;
use faircast_core::spec::SpecError;
use faircast_core::time::{Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::{Cell, RefCell};

pub use policy::Operating;
pub use queue::{Decision, Packet, Sent};
pub use receiver::Data;
pub use source::{Report, Representative};

/// Registers a class as rate policy, queue, or pair of source and receiver.
#[pyfunction]
pub fn register(
    kind: &str,
    name: &str,
    classes: Vec<Py<PyAny>>,
    arguments: Py<PyAny>,
    version: String,
) -> PyResult<()> {
    let parts = Parts { classes, arguments, version };
    let registered = match kind {
        "policy" => POLICIES.register(name, Box::new(policy::Factory(parts))),
        "queue" => faircast_aqm::spec::QUEUES.register(name, Box::new(queue::Factory(parts))),
        _ => SCHEMES.register(name, Box::new(source::Factory(parts))),
    };
    registered.map_err(|error: SpecError| PyValueError::new_err(error.to_string()))
}

/// The registered classes.
#[derive(Debug)]
struct Parts {
    classes: Vec<Py<PyAny>>,
    /// Python function of classes and the text of the options: returns the keyword arguments for each class.
    arguments: Py<PyAny>,
    version: String,
}

impl OwnFactory for Parts {
    fn version(&self) -> String {
        self.version.clone()
    }

    fn check(&self, options: &str) -> Result<(), String> {
        Python::attach(|py| {
            self.arguments(py, options).map(drop).map_err(|error| error.value(py).to_string())
        })
    }
}

impl Parts {
    fn arguments<'py>(&self, py: Python<'py>, options: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let classes: Vec<_> = self.classes.iter().map(|class| class.clone_ref(py)).collect();
        self.arguments.call1(py, (classes, options))?.bind(py).extract()
    }

    /// Creates an object of the class at this place.
    fn create(&self, place: usize, options: &str) -> Option<Py<PyAny>> {
        called(|py| {
            let arguments = self.arguments(py, options)?;
            self.classes[place].call(py, (), arguments.get(place))
        })
    }
}

thread_local! {
    static EXCEPTION: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static HAS_RAISED: Cell<bool> = const { Cell::new(false) };
}

/// Returns the first exception of a class in a run of this thread, and forgets it.
pub fn take_exception() -> Option<PyErr> {
    HAS_RAISED.set(false);
    EXCEPTION.take()
}

/// Returns whether a class has raised an exception in a run of this thread.
pub fn has_raised() -> bool {
    HAS_RAISED.get()
}

/// Calls a method of a class. Returns `None` if the method, or an earlier one in this run, has raised an exception.
fn called<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    if has_raised() {
        return None;
    }
    Python::attach(call)
        .map_err(|exception| {
            HAS_RAISED.set(true);
            EXCEPTION.set(Some(exception));
        })
        .ok()
}

/// Returns the method of this name; `None` if the class has none.
fn method(py: Python<'_>, object: &Py<PyAny>, name: &str) -> Option<Py<PyAny>> {
    object.getattr(py, name).ok()
}

/// Converts a rate that a class has returned.
fn rate(bits_per_second: f64, from: &str) -> PyResult<Rate> {
    if bits_per_second.is_finite() && bits_per_second >= 0.0 {
        return Ok(Rate::from_bps(bits_per_second));
    }
    Err(PyValueError::new_err(format!(
        "{from} is {bits_per_second}, but a rate is a positive number in bit/s"
    )))
}

/// Converts a time that a class has set, in seconds; infinite for never.
fn time(seconds: f64) -> Time {
    if seconds < 1e9 { Time::from_secs_f64(seconds.max(0.0)) } else { Time::NEVER }
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}
