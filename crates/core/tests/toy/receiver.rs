//! The toy scheme's receiver: it reports losses at once, and answers the rounds of a start-up.

use super::config::Config;
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, ReportContent, Data, Echo, Flags, Layer, ReceiverId, Report, Seq};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of the toy scheme.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    start_up: StartUpReceiver,
    round: Span,
}

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver { me, start_up: StartUpReceiver::default(), round: config.sending.initial_rtt }
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        cx.effects.push(Effect::Report(Report { from: self.me, layer: Layer(0), content }));
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, _layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.on_deadline(cx);
        if (data.flags.has(Flags::STARTING) || self.start_up.is_active()) && !arrival.late {
            self.start_up.on_data(data, arrival, self.round, TruncatedExponential::new(10.0), cx);
        }
        if arrival.lost > 0 {
            let first = Seq(data.seq.0.saturating_sub(u64::from(arrival.lost)));
            let echo = Echo { seq: data.seq, hold: Span::ZERO };
            self.send(ReportContent::Lost { echo, first, count: arrival.lost.min(1000) as u16, loss: 0.0 }, cx);
        }
    }

    fn deadline(&self) -> Time {
        self.start_up.deadline()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if let Some(content) = self.start_up.take_due(cx.now) {
            self.send(content, cx);
        }
    }
}
