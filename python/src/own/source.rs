//! Sources of schemes. The native part numbers and paces packets and measures round-trip times; the Python class sets the rate.

use super::receiver::Receiver;
use super::{Alarm, Parts, RATES, attribute, called, method, rate, seconds};
use faircast_core::node::{self, Cx, Departure, Observation, SourceControl, Stamp, Tally};
use faircast_core::own::OwnFactory;
use faircast_core::packet::{self, Cause, Layer, Mark, ReceiverId, ReportContent, Signal};
use faircast_core::rate::{SendController, Sending};
use faircast_core::rng::Rng;
use faircast_core::schemes::own::SchemeFactory;
use faircast_core::time::{Rate, Span, Time};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashSet;

/// A report of a receiver.
#[pyclass(frozen, get_all, from_py_object, module = "faircast")]
#[derive(Debug, Clone)]
pub struct Report {
    pub(super) kind: String,
    pub(super) level: f64,
    pub(super) mean: f64,
    pub(super) loss: f64,
    pub(super) count: u16,
    receiver: u64,
    rtt: Option<f64>,
}

#[pymethods]
impl Report {
    #[new]
    #[pyo3(signature = (kind, *, level = 0.0, mean = 0.0, loss = 0.0, count = 1, receiver = 0, rtt = None))]
    fn new(
        kind: String,
        level: f64,
        mean: f64,
        loss: f64,
        count: i64,
        receiver: u64,
        rtt: Option<f64>,
    ) -> PyResult<Report> {
        if !["alive", "congested", "lost"].contains(&kind.as_str()) {
            let message =
                format!("no report is of the kind \"{kind}\"; use \"congested\", \"lost\" or \"alive\"");
            return Err(PyValueError::new_err(message));
        }
        for (name, value) in [("level", level), ("mean", mean), ("loss", loss), ("rtt", rtt.unwrap_or(0.0))] {
            if !value.is_finite() {
                return Err(PyValueError::new_err(format!("`{name}` is a finite number, not {value}")));
            }
        }
        let Ok(count) = u16::try_from(count) else {
            return Err(PyValueError::new_err(format!("`count` is from 0 to 65535, not {count}")));
        };
        Ok(Report { kind, level, mean, loss, count, receiver, rtt })
    }

    /// The arguments with which a report is pickled.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((&str,), Bound<'py, PyDict>)> {
        let options = PyDict::new(py);
        options.set_item("level", self.level)?;
        options.set_item("mean", self.mean)?;
        options.set_item("loss", self.loss)?;
        options.set_item("count", self.count)?;
        options.set_item("receiver", self.receiver)?;
        options.set_item("rtt", self.rtt)?;
        Ok(((&self.kind,), options))
    }
}

impl Report {
    /// Converts a report that has arrived at the source.
    fn of(report: &packet::Report, sample: Option<Span>) -> Report {
        let (mut level, mut mean, mut loss, mut count) = (0.0_f32, 0.0, 0.0, 1);
        let kind = match report.content {
            ReportContent::Congested { level: of_event, mean: of_events, .. } => {
                (level, mean) = (of_event, of_events);
                "congested"
            }
            ReportContent::Lost { loss: share, count: packets, .. } => {
                (loss, count) = (share, packets);
                "lost"
            }
            _ => "alive",
        };
        Report {
            kind: kind.to_owned(),
            level: level.into(),
            mean: mean.into(),
            loss: loss.into(),
            count,
            receiver: report.from.get(),
            rtt: sample.map(seconds),
        }
    }
}

/// The statement of a source to all receivers in every packet: the congestion representative and its statistics.
#[pyclass(frozen, get_all, from_py_object, module = "faircast")]
#[derive(Debug, Clone)]
pub struct Representative {
    receiver: Option<u64>,
    mean: f32,
    deviation: f32,
    rtt_max: f32,
}

#[pymethods]
impl Representative {
    #[new]
    #[pyo3(signature = (receiver, mean = 0.0, deviation = 0.0, rtt_max = 0.0))]
    fn new(receiver: Option<u64>, mean: f32, deviation: f32, rtt_max: f32) -> PyResult<Representative> {
        for (name, value) in [("mean", mean), ("deviation", deviation), ("rtt_max", rtt_max)] {
            if !value.is_finite() {
                return Err(PyValueError::new_err(format!("`{name}` is a finite number, not {value}")));
            }
        }
        Ok(Representative { receiver, mean, deviation, rtt_max })
    }

    /// The arguments with which a representative is pickled.
    const fn __getnewargs__(&self) -> (Option<u64>, f32, f32, f32) {
        (self.receiver, self.mean, self.deviation, self.rtt_max)
    }
}

impl Representative {
    /// Converts the mark of an arrived packet.
    pub(super) fn of(mark: &Mark) -> Option<Representative> {
        let Mark::Representative { id, mean, deviation, rtt_max } = *mark else { return None };
        Some(Representative { receiver: id.map(ReceiverId::get), mean, deviation, rtt_max })
    }

    fn mark(&self) -> Mark {
        let Representative { mean, deviation, rtt_max, .. } = *self;
        Mark::Representative { id: self.receiver.and_then(ReceiverId::new), mean, deviation, rtt_max }
    }
}

/// Gives an object a random generator that depends on the seed of the run.
pub(super) fn set_random(py: Python<'_>, object: &Py<PyAny>, rng: &mut Rng) -> PyResult<()> {
    let seed = rng.below(1 << 53);
    let random = py.import("random")?.getattr("Random")?.call1((seed,))?;
    object.setattr(py, "random", random)
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

impl SchemeFactory for Factory {
    fn source(&self, options: &str, sending: &Sending) -> Box<dyn node::Source + Send> {
        let controller = SendController::new(*sending);
        let object = self.0.create(0, options).and_then(|object| {
            called(|py| {
                object.setattr(py, "rate", controller.rate().bps())?;
                object.setattr(py, "rtt", seconds(sending.initial_rtt))?;
                object.setattr(py, "packet_size", sending.packet_size)?;
                Ok(Object { on_report: object.getattr(py, "on_report")?, object })
            })
        });
        let (rtt, mark) = (sending.initial_rtt, Mark::None);
        Box::new(Source {
            object,
            controller,
            rtt,
            deadline: Alarm::new(),
            mark,
            limiting: None,
            reporters: HashSet::new(),
            cuts: 0,
            has_random: false,
        })
    }

    fn receiver(&self, options: &str, _sending: &Sending, me: ReceiverId) -> Box<dyn node::Receiver + Send> {
        Box::new(Receiver::new(self.0.create(1, options), me))
    }
}

struct Object {
    object: Py<PyAny>,
    on_report: Py<PyAny>,
}

/// A source. Without an object, because an exception ends the run, the rate stays.
struct Source {
    object: Option<Object>,
    controller: SendController,
    rtt: Span,
    deadline: Alarm,
    mark: Mark,
    limiting: Option<ReceiverId>,
    /// The receivers whose reports have arrived.
    reporters: HashSet<ReceiverId>,
    cuts: u64,
    has_random: bool,
}

impl Source {
    /// Calls the object, and reads what it has set.
    fn call(&mut self, now: Time, call: impl FnOnce(Python<'_>, &Object) -> PyResult<()>) {
        let Some(object) = &self.object else { return };
        let read = called(|py| {
            call(py, object)?;
            let object = object.object.bind(py);
            self.deadline.read(object, intern!(py, "deadline"), now)?;
            let wants = "a Representative or None";
            let mark = attribute(object, intern!(py, "mark"), wants, |mark| {
                mark.extract::<Option<Representative>>().ok()
            })?;
            self.mark = mark.map_or(Mark::None, |mark| mark.mark());
            let wants = "None or the number of a receiver whose report has arrived";
            self.limiting = attribute(object, intern!(py, "limiting"), wants, |limiting| {
                let Some(limiting) = limiting.extract::<Option<u64>>().ok()? else { return Some(None) };
                ReceiverId::new(limiting).filter(|limiting| self.reporters.contains(limiting)).map(Some)
            })?;
            let wants = "a positive number of seconds";
            self.rtt = attribute(object, intern!(py, "rtt"), wants, |rtt| {
                rtt.extract().ok().filter(|rtt: &f64| rtt.is_finite() && *rtt > 0.0).map(Span::from_secs_f64)
            })?;
            attribute(object, intern!(py, "rate"), RATES, rate)
        });
        if let Some(rate) = read {
            self.set_rate(rate, now);
        }
    }

    fn set_rate(&mut self, rate: Rate, now: Time) {
        let before = self.controller.rate();
        if rate != before {
            self.cuts += u64::from(rate < before);
            self.controller.set_rate(rate, now);
            // The object sees the rate within its limits.
            let within = self.controller.rate();
            if let (true, Some(Object { object, .. })) = (within != rate, &self.object) {
                called(|py| object.setattr(py, intern!(py, "rate"), within.bps()));
            }
        }
    }
}

impl node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        let (now, set_random_now) = (cx.now, !std::mem::replace(&mut self.has_random, true));
        let rng = &mut *cx.rng;
        self.call(now, |py, object| {
            if set_random_now {
                set_random(py, &object.object, rng)?;
            }
            object.object.call_method1(py, "start", (now.as_secs_f64(),)).map(drop)
        });
    }

    fn departure(&self, layer: Layer) -> Departure {
        Departure::At(if layer == Layer(0) { self.controller.departure() } else { Time::NEVER })
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.controller.resume(cx.now);
        let departed = self.controller.depart(size, self.rtt, cx.now);
        Stamp {
            seq: departed.seq,
            rate: departed.rate,
            flags: departed.flags,
            signal: Signal::None,
            mark: self.mark,
        }
    }

    fn on_report(&mut self, report: &packet::Report, cx: &mut Cx<'_>) {
        let (now, from, echo) = (cx.now, report.from, report.content.echo());
        if !self.controller.has_left(echo) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(echo.seq, now);
        if let ReportContent::Congested { cause: Cause::Leaving, .. } = report.content {
            return self.control(SourceControl::Forget(from), now);
        }
        self.reporters.insert(from);
        let sample = self.controller.sample(echo, now);
        if let Some(sample) = sample {
            self.controller.on_rtt(from, sample, now);
        }
        let report = Report::of(report, sample);
        self.call(now, |py, object| object.on_report.call1(py, (report, now.as_secs_f64())).map(drop));
    }

    fn deadline(&self) -> Time {
        if self.controller.is_running() {
            self.deadline.at.min(self.controller.deadline())
        } else {
            Time::NEVER
        }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now >= self.deadline.at {
            self.deadline.serve(now);
            self.call(now, |py, object| {
                object.object.call_method1(py, "on_deadline", (now.as_secs_f64(),)).map(drop)
            });
        }
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.call(now, |py, object| {
                let Some(on_leave) = method(py, &object.object, "on_leave") else { return Ok(()) };
                on_leave.call1(py, (receiver.get(), now.as_secs_f64())).map(drop)
            }),
            SourceControl::StartAgain => self.controller.start_again(now),
            _ => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.rtt,
            limiting: self.limiting,
            level: None,
            rtt_max: self.controller.rtt_max(),
            cuts: self.cuts,
            tally: Tally { indications: self.cuts, events: self.cuts, followed: self.cuts },
            starting: self.controller.is_starting(),
        }
    }
}
