//! MTCP's receiver: acknowledges arrived packets to its parent.

use super::config::Config;
use super::inbound::Inbound;
use crate::node::Cx;
use crate::packet::{Arrival, Cause, Data, Layer, Order, ReceiverId, ReportContent};
use crate::time::Time;

/// A receiver of an MTCP session, without children.
#[derive(Debug, Clone)]
pub struct Receiver {
    inbound: Inbound,
}

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver { inbound: Inbound::new(me, config) }
    }
}

/// Reports a congestion mark, or a departure.
pub(super) fn congested(inbound: &Inbound, cause: Cause, cx: &mut Cx<'_>) {
    let echo = inbound.echo(cx.now);
    inbound.send(ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause }, cx);
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, _: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.on_deadline(cx);
        let news = self.inbound.take(data, cx.now);
        if arrival.marked {
            congested(&self.inbound, Cause::Mark, cx);
        }
        if self.inbound.is_due(news, cx.now) {
            self.inbound.acknowledge(cx);
        }
    }

    fn on_order(&mut self, order: &Order, cx: &mut Cx<'_>) {
        if self.inbound.on_order(order, cx) {
            self.inbound.acknowledge(cx);
        }
    }

    fn deadline(&self) -> Time {
        self.inbound.deadline()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if self.inbound.on_deadline(cx) {
            self.inbound.acknowledge(cx);
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        if self.inbound.end() > 0 {
            congested(&self.inbound, Cause::Leaving, cx);
        }
    }
}
