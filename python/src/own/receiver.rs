//! Receivers of schemes.

use super::source::{Report, Representative, set_random};
use super::{Alarm, called, method, result};
use faircast_core::node::{self, Cx, Effect};
use faircast_core::packet::{self, Arrival, Cause, Echo, Layer, ReceiverId, ReportContent, Seq};
use faircast_core::time::{Span, Time};
use pyo3::intern;
use pyo3::prelude::*;

/// A data packet that has arrived at a receiver.
#[pyclass(frozen, get_all, module = "faircast")]
pub struct Data {
    seq: u64,
    sent_at: f64,
    rate: f32,
    size: u16,
    lost: u32,
    marked: bool,
    late: bool,
    mark: Option<Representative>,
}

/// A receiver. Without an object, because an exception ends the run, it sends no reports.
pub struct Receiver {
    object: Option<Object>,
    me: ReceiverId,
    deadline: Alarm,
    /// Number and arrival time of the newest packet.
    newest: (Seq, Time),
    /// Number of packets lost before the newest one.
    lost: u32,
    has_random: bool,
}

struct Object {
    object: Py<PyAny>,
    on_data: Py<PyAny>,
    on_deadline: Option<Py<PyAny>>,
}

impl Receiver {
    pub fn new(object: Option<Py<PyAny>>, me: ReceiverId) -> Receiver {
        let object = object.and_then(|object| {
            called(|py| {
                object.setattr(py, "me", me.get())?;
                let on_deadline = method(py, &object, "on_deadline");
                Ok(Object { on_data: object.getattr(py, "on_data")?, object, on_deadline })
            })
        });
        let newest = (Seq(0), Time::ZERO);
        Receiver { object, me, deadline: Alarm::new(), newest, lost: 0, has_random: false }
    }

    /// Calls a method of the object, reads its deadline, and sends the report that it returns.
    fn call(
        &mut self,
        cx: &mut Cx<'_>,
        method: impl FnOnce(&Object) -> Option<&Py<PyAny>>,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) {
        let Some((object, method)) = self.object.as_ref().and_then(|object| Some((object, method(object)?)))
        else {
            return;
        };
        let set_random_now = !std::mem::replace(&mut self.has_random, true);
        let report = called(|py| {
            if set_random_now {
                set_random(py, &object.object, cx.rng)?;
            }
            let answer = call(method.bind(py))?;
            if object.on_deadline.is_some() {
                self.deadline.read(object.object.bind(py), intern!(py, "deadline"), cx.now)?;
            }
            if answer.is_none() {
                return Ok(None);
            }
            result(method, &answer, "a Report or None", answer.extract::<Report>().ok()).map(Some)
        });
        if let Some(report) = report.flatten() {
            let content = self.content(&report, cx.now);
            cx.effects.push(Effect::Report(packet::Report { from: self.me, layer: Layer(0), content }));
        }
    }

    fn content(&self, report: &Report, now: Time) -> ReportContent {
        let (seq, arrived) = self.newest;
        let echo = Echo { seq, hold: now.since(arrived) };
        match report.kind.as_str() {
            "congested" => ReportContent::Congested {
                echo,
                level: report.level as f32,
                mean: report.mean as f32,
                cause: Cause::Loss,
            },
            "lost" => ReportContent::Lost {
                echo,
                first: Seq(seq.0.saturating_sub(u64::from(self.lost.max(1)))),
                count: report.count.max(1),
                loss: report.loss as f32,
            },
            _ => ReportContent::Alive { echo },
        }
    }
}

impl node::Receiver for Receiver {
    fn on_data(&mut self, data: &packet::Data, _layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if !arrival.late {
            (self.newest, self.lost) = ((data.seq, cx.now), arrival.lost);
        }
        let now = cx.now.as_secs_f64();
        let Arrival { size, lost, marked, late, .. } = arrival;
        let (seq, sent_at, rate) = (data.seq.0, data.sent_at.as_secs_f64(), data.rate);
        let mark = Representative::of(&data.mark);
        let packet = Data { seq, sent_at, rate, size, lost, marked, late, mark };
        self.call(cx, |object| Some(&object.on_data), |on_data| on_data.call1((packet, now)));
    }

    fn deadline(&self) -> Time {
        self.deadline.at
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline.at {
            return;
        }
        self.deadline.serve(now);
        self.call(
            cx,
            |object| object.on_deadline.as_ref(),
            |on_deadline| on_deadline.call1((now.as_secs_f64(),)),
        );
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        let (seq, arrived) = self.newest;
        let echo = Echo { seq, hold: cx.now.since(arrived).min(Span::from_secs(1)) };
        let content = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
        cx.effects.push(Effect::Report(packet::Report { from: self.me, layer: Layer(0), content }));
    }
}
