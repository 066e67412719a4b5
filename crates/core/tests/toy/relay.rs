//! A relay for tests: the receiver of a scheme towards the parent, and the source of the same scheme towards the children. The
//! relay sends no more packets than it has received.

use faircast_core::node::{
    Cx, Departure, Observation, Receiver, Relay, RelaySpec, Source, SourceControl, Stamp,
};
use faircast_core::packet::{Arrival, Data, Layer, ReceiverId, Report};
use faircast_core::schemes::{AnyReceiver, AnySource, Scheme};
use faircast_core::time::Time;

#[derive(Debug, Clone, Copy)]
pub struct ToyRelay(pub Scheme);

#[derive(Debug)]
struct Toy {
    receiver: AnyReceiver,
    source: AnySource,
    started: bool,
    /// Number of arrived packets that were not sent to the children yet.
    waiting: u64,
}

impl RelaySpec for ToyRelay {
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send> {
        Box::new(Toy { receiver: self.0.receiver(me), source: self.0.source(), started: false, waiting: 0 })
    }
}

impl Receiver for Toy {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if !self.started {
            self.started = true;
            self.source.start(cx);
        }
        self.waiting += 1;
        self.receiver.on_data(data, layer, arrival, cx);
    }

    fn deadline(&self) -> Time {
        self.receiver.deadline().min(self.source.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        self.receiver.on_deadline(cx);
        self.source.on_deadline(cx);
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.receiver.on_leave(cx);
    }
}

impl Relay for Toy {
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        self.source.on_report(report, cx);
    }

    fn departure(&self, layer: Layer) -> Departure {
        if self.started && self.waiting > 0 { self.source.departure(layer) } else { Departure::AfterReport }
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.waiting = self.waiting.saturating_sub(1);
        self.source.on_departure(layer, size, cx)
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.source.control(control, now);
    }

    fn observe(&self) -> Observation {
        self.source.observe()
    }
}
