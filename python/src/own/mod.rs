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
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
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
    object.getattr(py, name).ok().filter(|method| !method.is_none(py))
}

/// Maximum rate that a class may set, in bit/s. Each packet is simulated, so a rate that grows without limit would end no run.
const MAX_RATE: f64 = 1e12;

/// Reads an attribute of an object, with `read`, which returns `None` for values of a wrong type or size. The error names the class,
/// the attribute and the value, and `wants`.
fn attribute<T>(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, PyString>,
    wants: &str,
    read: impl FnOnce(&Bound<'_, PyAny>) -> Option<T>,
) -> PyResult<T> {
    let value = object.getattr(name)?;
    match read(&value) {
        Some(read) => Ok(read),
        None => Err(PyValueError::new_err(format!(
            "`{}.{name}` is {}, but it must be {wants}",
            object.get_type().name()?,
            value.repr()?
        ))),
    }
}

/// Checks the result of a method, as [`attribute`] does.
fn result<T>(method: &Py<PyAny>, value: &Bound<'_, PyAny>, wants: &str, read: Option<T>) -> PyResult<T> {
    let py = value.py();
    if let Some(read) = read {
        return Ok(read);
    }
    let name = method.getattr(py, "__qualname__")?.to_string();
    let name = name.rsplit("<locals>.").next().unwrap_or_default();
    let message = format!("`{name}` returned {}, but it must return {wants}", value.repr()?);
    let is_number = value.extract::<f64>().is_ok();
    Err(if is_number { PyValueError::new_err(message) } else { PyTypeError::new_err(message) })
}

/// The values that [`rate`] takes.
const RATES: &str = "a number from 0 to 1e12 (bit/s)";

/// Converts a rate in bit/s.
fn rate(value: &Bound<'_, PyAny>) -> Option<Rate> {
    value.extract().ok().filter(|rate| (0.0..=MAX_RATE).contains(rate)).map(Rate::from_bps)
}

/// The time of the next call of a method, which an object sets as an attribute.
#[derive(Debug)]
struct Alarm {
    at: Time,
    /// The value at the last call. The object must set a later time for another call.
    served: Option<Time>,
}

impl Alarm {
    /// Creates an alarm without a call.
    const fn new() -> Alarm {
        Alarm { at: Time::NEVER, served: None }
    }

    /// Reads the attribute: seconds; infinite or None for never. A time that has passed is now.
    fn read(&mut self, object: &Bound<'_, PyAny>, name: &Bound<'_, PyString>, now: Time) -> PyResult<()> {
        let at = attribute(object, name, "a time in seconds, or None for never", |value| {
            let seconds: f64 = if value.is_none() { f64::INFINITY } else { value.extract().ok()? };
            (!seconds.is_nan()).then_some(seconds)
        })?;
        let at = if at < 1e9 { Time::from_secs_f64(at.max(0.0)) } else { Time::NEVER };
        self.at = if self.served.is_some_and(|served| at <= served) { Time::NEVER } else { at.max(now) };
        Ok(())
    }

    /// Registers that the method is called now.
    fn serve(&mut self, now: Time) {
        (self.served, self.at) = (Some(now), Time::NEVER);
    }
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}
