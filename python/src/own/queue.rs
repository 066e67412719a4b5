//! Queue disciplines.

use super::{Alarm, Parts, called, method, result};
use faircast_aqm::spec::QueueFactory;
use faircast_aqm::{self as aqm, AnyDiscipline, Discipline, DropCause, Ecn, Offer, Watches};
use faircast_core::own::OwnFactory;
use faircast_core::rng::Rng;
use faircast_core::time::{Rate, Span, Time};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Decision about an arriving packet.
#[pyclass(eq, eq_int, frozen, from_py_object, hash, module = "faircast", rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    Accept,
    Mark,
    Drop,
    Overflow,
}

#[pymethods]
impl Decision {
    /// Pickles a decision by its name.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let name = match self {
            Decision::Accept => "ACCEPT",
            Decision::Mark => "MARK",
            Decision::Drop => "DROP",
            Decision::Overflow => "OVERFLOW",
        };
        let getattr = py.import("builtins")?.getattr("getattr")?;
        Ok((getattr, (py.get_type::<Decision>(), name).into_pyobject(py)?))
    }
}

/// A packet that arrives at a queue, and the state of the queue.
#[pyclass(frozen, get_all, module = "faircast")]
pub struct Packet {
    now: f64,
    size: u16,
    flow: u32,
    ecn: &'static str,
    waiting: u32,
    waiting_bytes: u64,
    idle_since: Option<f64>,
}

impl From<&Offer> for Packet {
    fn from(offer: &Offer) -> Packet {
        Packet {
            now: offer.now.as_secs_f64(),
            size: offer.size,
            flow: offer.flow,
            ecn: match offer.ecn {
                Ecn::NotEct => "not-ect",
                Ecn::Ect0 => "ect0",
                Ecn::Ect1 => "ect1",
                Ecn::Ce => "ce",
            },
            waiting: offer.waiting,
            waiting_bytes: offer.waiting_bytes,
            idle_since: offer.idle_since.map(Time::as_secs_f64),
        }
    }
}

/// The beginning of a packet's transmission.
#[pyclass(frozen, get_all, module = "faircast")]
pub struct Sent {
    now: f64,
    size: u16,
    flow: u32,
    waiting: u32,
    waiting_bytes: u64,
}

#[derive(Debug)]
pub struct Factory(pub Parts);

impl OwnFactory for Factory {
    fn version(&self) -> String {
        self.0.version()
    }

    fn check(&self, options: &str) -> Result<(), String> {
        self.0.check(options)
    }
}

impl QueueFactory for Factory {
    fn queue(&self, options: &str, rate: Rate, _delay: Span) -> AnyDiscipline {
        let object = self.0.create(0, options).and_then(|object| {
            called(|py| {
                object.setattr(py, "rate", rate.bps())?;
                Ok(Object {
                    on_arrival: object.getattr(py, "on_arrival")?,
                    on_departure: method(py, &object, "on_departure"),
                    on_timer: method(py, &object, "on_timer"),
                    object,
                    has_random: false,
                })
            })
        });
        let mut queue = Queue { object, timer: Alarm::new() };
        queue.read_timer(Time::ZERO);
        AnyDiscipline::AtArrival(Box::new(queue))
    }

    fn marks(&self, _options: &str) -> bool {
        let marks = |py: Python<'_>| self.0.classes[0].getattr(py, "marks")?.is_truthy(py);
        Python::attach(marks).unwrap_or(false)
    }
}

/// A discipline. Without an object, because an exception ends the run, all packets are accepted.
#[derive(Debug)]
struct Queue {
    object: Option<Object>,
    timer: Alarm,
}

#[derive(Debug)]
struct Object {
    object: Py<PyAny>,
    on_arrival: Py<PyAny>,
    on_departure: Option<Py<PyAny>>,
    on_timer: Option<Py<PyAny>>,
    has_random: bool,
}

impl Object {
    /// Gives the object a random generator that depends on the seed of the run.
    fn set_random(&mut self, py: Python<'_>, rng: &mut Rng) -> PyResult<()> {
        self.has_random = true;
        super::source::set_random(py, &self.object, rng)
    }
}

impl Queue {
    /// Reads the time of the next call of `on_timer`, which the object may have changed.
    fn read_timer(&mut self, now: Time) {
        let Some(Object { object, on_timer: Some(_), .. }) = &self.object else { return };
        called(|py| self.timer.read(object.bind(py), intern!(py, "timer"), now));
    }
}

impl Discipline for Queue {
    fn on_arrival(&mut self, offer: &Offer, rng: &mut Rng) -> aqm::Decision {
        let Some(object) = &mut self.object else { return aqm::Decision::Accept };
        let decision = called(|py| {
            if !object.has_random {
                object.set_random(py, rng)?;
            }
            let decision = object.on_arrival.call1(py, (Packet::from(offer),))?;
            let wants = "a Decision: ACCEPT, MARK, DROP or OVERFLOW";
            result(&object.on_arrival, decision.bind(py), wants, decision.extract(py).ok())
        });
        self.read_timer(offer.now);
        match decision {
            Some(Decision::Mark) => offer.warned(true),
            Some(Decision::Drop) => aqm::Decision::Drop(DropCause::Early),
            Some(Decision::Overflow) => aqm::Decision::Drop(DropCause::Overflow),
            Some(Decision::Accept) | None => aqm::Decision::Accept,
        }
    }

    fn set_rate(&mut self, rate: Rate) {
        if let Some(Object { object, .. }) = &self.object {
            called(|py| object.setattr(py, "rate", rate.bps()));
        }
    }

    fn timer(&self) -> Time {
        self.timer.at
    }

    fn on_timer(&mut self, queue: &Offer) {
        self.timer.serve(queue.now);
        if let Some(Object { on_timer: Some(on_timer), .. }) = &self.object {
            called(|py| on_timer.call1(py, (Packet::from(queue),)));
        }
        self.read_timer(queue.now);
    }

    fn watches(&self) -> Watches {
        match &self.object {
            Some(Object { on_departure: Some(_), .. }) => Watches::Departures,
            _ => Watches::Arrivals,
        }
    }

    fn on_departure(&mut self, departure: &aqm::Departure) {
        let Some(Object { on_departure: Some(on_departure), .. }) = &self.object else { return };
        let aqm::Departure { at, flow, size, waiting, waiting_bytes } = *departure;
        let sent = Sent { now: at.as_secs_f64(), size, flow, waiting, waiting_bytes };
        called(|py| on_departure.call1(py, (sent,)));
        self.read_timer(at);
    }
}
