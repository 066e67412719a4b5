//! A designated receiver: a receiver that aggregates the acknowledgements of other receivers (paper 002, 3.2).
//!
//! A designated receiver sends no data: its children receive the session's data directly.

use super::aggregate::{Aggregate, Aggregator};
use super::config::Config;
use super::receiver::Receiver;
use crate::node::{
    Cx, Departure, Effect, Effects, Observation, Relay, RelaySpec, SourceControl, Stamp, Tally,
};
use crate::packet::{
    Arrival, Cause, Data, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal,
};
use crate::time::{Rate, Span, Time};

/// A designated receiver of a RACCOOM session.
#[derive(Debug)]
pub(super) struct Designated {
    me: ReceiverId,
    receiver: Receiver,
    /// The children of this receiver. The key `None` is the receiver itself.
    children: Aggregator<Option<ReceiverId>>,
    layer: Layer,
    own: Effects,
    /// The announced number of children. `waits_until` ends the wait for the first reports of the children.
    expected: usize,
    waits_until: Time,
}

/// Maximum time after the first packet for which the receiver waits for the first reports of its children.
const PATIENCE: Span = Span::from_secs(3);

impl Designated {
    /// Creates a designated receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Designated {
        let receiver = Receiver::new(me, config);
        Designated {
            me,
            receiver,
            children: Aggregator::new(),
            layer: Layer(0),
            own: Effects::new(),
            expected: 0,
            waits_until: Time::NEVER,
        }
    }

    fn pass_on(&self, up: Option<Aggregate>, cx: &mut Cx<'_>) {
        // This receiver waits until all children have reported. Otherwise the source could mistake a near child for the farthest
        // one.
        let waits = self.children.len() < self.expected + 1 && cx.now < self.waits_until;
        if let Some(up) = up.filter(|up| !waits || up.lost > 0) {
            cx.effects.push(Effect::Report(Report {
                from: self.me,
                layer: self.layer,
                content: up.content(),
            }));
        }
    }

    /// Adds the reports about this receiver's own reception to the aggregation.
    fn take_own(&mut self, cx: &mut Cx<'_>) {
        let mut own = std::mem::take(&mut self.own);
        for effect in own.drain() {
            match effect {
                Effect::Report(Report { content: ReportContent::Newest { .. }, .. }) => {
                    let reported = self.receiver.entry(cx.now);
                    let up = reported.and_then(|reported| self.children.on_report(None, reported, cx.now));
                    self.pass_on(up, cx);
                }
                other => cx.effects.push(other),
            }
        }
        self.own = own;
    }
}

impl crate::node::Receiver for Designated {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        self.layer = layer;
        if self.waits_until.is_never() {
            self.waits_until = cx.now + PATIENCE;
        }
        let mut own = std::mem::take(&mut self.own);
        self.receiver.on_data(data, layer, arrival, &mut Cx { now: cx.now, rng: cx.rng, effects: &mut own });
        self.own = own;
        self.take_own(cx);
    }

    fn deadline(&self) -> Time {
        self.receiver.deadline()
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let mut own = std::mem::take(&mut self.own);
        self.receiver.on_deadline(&mut Cx { now: cx.now, rng: cx.rng, effects: &mut own });
        self.own = own;
        self.take_own(cx);
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.receiver.on_leave(cx);
    }
}

impl Relay for Designated {
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match report.content {
            ReportContent::Newest { .. } => {
                let Some(reported) = Aggregate::reported_by(&report.content) else { return };
                let up = self.children.on_report(Some(report.from), reported, cx.now);
                self.pass_on(up, cx);
            }
            ReportContent::Congested { cause: Cause::Leaving, .. } => {
                self.expected = self.expected.saturating_sub(1);
                let up = self.children.leave(Some(report.from));
                self.pass_on(up, cx);
            }
            // Reports of other kinds are forwarded to the source.
            _ => cx.effects.push(Effect::Report(*report)),
        }
    }

    fn departure(&self, _layer: Layer) -> Departure {
        Departure::At(Time::NEVER)
    }

    fn on_departure(&mut self, _layer: Layer, _size: u16, _cx: &mut Cx<'_>) -> Stamp {
        // The stamp requests no feedback, because a designated receiver sends no packets.
        Stamp {
            seq: Seq(0),
            rate: Rate::ZERO,
            flags: Flags::default(),
            signal: Signal::None,
            mark: Mark::TARGET,
        }
    }

    fn control(&mut self, control: SourceControl, _now: Time) {
        match control {
            SourceControl::Forget(receiver) => {
                self.expected = self.expected.saturating_sub(1);
                // The resulting change is forwarded with the next report.
                _ = self.children.leave(Some(receiver));
            }
            SourceControl::Members(children) => self.expected = children,
            SourceControl::StartAgain | SourceControl::Limits(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: Rate::ZERO,
            rtt: Span::ZERO,
            limiting: None,
            level: None,
            rtt_max: Span::ZERO,
            cuts: 0,
            tally: Tally::default(),
            starting: false,
        }
    }
}

impl RelaySpec for Config {
    fn relay(&self, me: ReceiverId) -> Box<dyn Relay + Send> {
        Box::new(Designated::new(me, self))
    }

    fn speaks_down(&self) -> bool {
        false
    }
}
