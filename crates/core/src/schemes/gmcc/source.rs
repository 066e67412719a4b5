//! GMCC's source: runs its layers concurrently and occasionally shifts bandwidth between them.

use super::config::Config;
use super::layer::{Kind, LayerControl, RateChange, Representative};
use super::shift::Shift;
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, LayerStates, ReceiverId, Report, ReportContent};
use crate::rate::{Bounds, Sending, Start};
use crate::time::{Rate, Span, Time};

/// The source of a GMCC session. Its state grows with the number of layers, not with the number of receivers.
#[derive(Debug)]
pub struct Source {
    config: Config,
    layers: Vec<LayerControl>,
    shift: Shift,
}

/// Packet interval of an enhancement layer at its minimum rate. Configured minimum rates apply only to the base layer.
const SLOWEST: Span = Span::from_secs(8);

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        let count = config.layers.clamp(1, LayerStates::LAYERS);
        let layers = (0..count).map(|layer| LayerControl::new(&config, sending_of(&config, Layer(layer))));
        Source { config, layers: layers.collect(), shift: Shift::new(&config) }
    }

    fn get(&self, layer: Layer) -> Option<&LayerControl> {
        self.layers.get(usize::from(layer.0)).filter(|control| control.is_on())
    }

    fn states(&self) -> LayerStates {
        let all = (0..).zip(&self.layers);
        all.fold(LayerStates::default(), |all, (layer, control)| all.with(Layer(layer), control.standing()))
    }

    /// Handles a request for `layer`. Switches this layer on if all lower layers are on.
    fn on_joining(&mut self, layer: Layer, from: ReceiverId, now: Time) {
        let index = usize::from(layer.0);
        let below = self.layers.iter().take(index).all(LayerControl::is_on);
        let rtt = self.layers[0].control_rtt();
        match self.layers.get_mut(index) {
            Some(control) if !control.is_on() && below && index > 0 => {
                control.switch_on(&self.config, from, rtt, now);
            }
            _ => {}
        }
    }

    fn on_averaged(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let ReportContent::Averaged { echo, mean, deviation, samples, rate, cause } = report.content else {
            return;
        };
        let sound = |number: f32| number.is_finite() && number >= 0.0;
        if !sound(mean) || !sound(deviation) {
            return;
        }
        let kind = match cause {
            Cause::Loss | Cause::Mark => Kind::Loss,
            Cause::Heartbeat | Cause::Joining => Kind::Heartbeat,
            Cause::Leaving | Cause::Accumulation => return,
        };
        let rate = Some(Rate::from_bps(f64::from(rate))).filter(|rate| rate.is_usable());
        let reported = Representative {
            id: report.from,
            mean: f64::from(mean),
            deviation: f64::from(deviation),
            samples: samples.min(u16::from(self.config.samples)),
            rate,
        };
        let index = usize::from(report.layer.0);
        let below = self.layers[..index].iter().fold(Rate::ZERO, |sum, control| sum + control.lambda());
        if self.layers[index].on_averaged(reported, kind, echo, below, cx.now) == RateChange::Cut {
            self.shift.on_cut(report.layer, &self.layers, cx.rng);
        }
    }

    /// Updates the values that depend on rates: the shifted bandwidth, and the limits of enhancement layers.
    fn settle(&mut self, now: Time) {
        self.share_limits(now);
        self.shift.apply(&mut self.layers, now);
    }

    /// Distributes the maximum rate of the session over the layers: the limit of each layer is the rate that the lower layers do
    /// not use.
    fn share_limits(&mut self, now: Time) {
        let Bounds { min, max } = self.config.sending.bounds;
        if !max.is_usable() {
            return;
        }
        let mut left = max.bps();
        for (layer, control) in (0..).zip(&mut self.layers) {
            let min = if layer == 0 { min } else { slowest(&self.config, min) };
            let bounds = Bounds { min, max: Rate::from_bps(left.max(min.min(max).bps())) };
            if control.controller.config().bounds != bounds {
                control.set_bounds(bounds, now);
            }
            if control.is_on() {
                left -= control.lambda().bps();
            }
        }
    }

    fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.sending.bounds = bounds;
        for (layer, control) in (0..).zip(&mut self.layers) {
            let bounds = sending_of(&self.config, Layer(layer)).bounds;
            control.set_bounds(bounds, now);
        }
    }

    fn on(&self) -> impl Iterator<Item = &LayerControl> {
        self.layers.iter().filter(|control| control.is_on())
    }
}

/// Returns the minimum rate of an enhancement layer.
fn slowest(config: &Config, min: Rate) -> Rate {
    Rate::of(u64::from(config.sending.packet_size), SLOWEST).min(min)
}

fn sending_of(config: &Config, layer: Layer) -> Sending {
    let mut sending = config.sending;
    if config.control == super::LayerScheme::Pgmcc {
        sending.start = Start::Linear; // a window opens by itself
    }
    if layer.0 > 0 {
        sending.bounds.min = slowest(config, sending.bounds.min);
    }
    sending
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.layers[0].open_session(cx.now);
        self.settle(cx.now);
    }

    fn departure(&self, layer: Layer) -> Departure {
        self.get(layer).map_or(Departure::At(Time::NEVER), LayerControl::departure)
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let states = self.states();
        let signal = self.shift.signal(layer);
        let above = crate::node::Source::layer_rate(self, Layer(layer.0 + 1));
        let control = &mut self.layers[usize::from(layer.0)];
        control.on_departure(cx.now);
        let departed = control.controller.depart(size, control.control_rtt(), cx.now);
        let mark = control.mark(above, states);
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal, mark }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from, layer) = (cx.now, report.from, report.layer);
        if !self.layers[0].is_on() {
            if layer == Layer(0) {
                self.layers[0].controller.is_probed(report, now);
            }
            return;
        }
        if let ReportContent::Averaged { cause: Cause::Joining, .. } = report.content {
            self.on_joining(layer, from, now);
        }
        let Some(control) = self.layers.get_mut(usize::from(layer.0)).filter(|control| control.is_on())
        else {
            return;
        };
        if !control.controller.has_left(report.content.echo()) {
            return;
        }
        control.controller.on_arrived(report.content.echo().seq, now);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            ReportContent::Averaged { cause: Cause::Leaving, .. }
            | ReportContent::Congested { cause: Cause::Leaving, .. } => control.forget(from, now),
            ReportContent::Averaged { .. } => self.on_averaged(report, cx),
            ReportContent::Received { echo, rate, loss } => {
                control.controller.on_received(from, echo, bps(rate), loss, now);
                control.on_alive(from, echo, now);
            }
            ReportContent::Selective { echo, bitmap, .. } => {
                if control.on_selective(from, echo, bitmap, now) == RateChange::Cut {
                    self.shift.on_cut(layer, &self.layers, cx.rng);
                }
            }
            ReportContent::Alive { echo } => control.on_alive(from, echo, now),
            ReportContent::Congested { .. }
            | ReportContent::Lost { .. }
            | ReportContent::Calculated { .. }
            | ReportContent::Acknowledged { .. }
            | ReportContent::Summary { .. }
            | ReportContent::Answered { .. }
            | ReportContent::Newest { .. } => {}
        }
        self.settle(now);
    }

    fn deadline(&self) -> Time {
        let each = (0..).zip(&self.layers).filter(|(_, control)| control.is_on());
        each.map(|(layer, control)| control.deadline(Layer(layer))).min().unwrap_or(Time::NEVER)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < crate::node::Source::deadline(self) {
            return;
        }
        for (layer, control) in (0..).zip(&mut self.layers) {
            if control.is_on() {
                control.on_deadline(Layer(layer), now);
            }
        }
        self.shift.check(&self.layers);
        self.settle(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Forget(receiver) => {
                self.layers.iter_mut().for_each(|layer| layer.forget(receiver, now))
            }
            SourceControl::StartAgain => {
                for (layer, control) in (0..).zip(&mut self.layers) {
                    control.start_again(&self.config, Layer(layer), now);
                }
            }
            SourceControl::Limits(bounds) => self.set_bounds(bounds, now),
            SourceControl::Members(members) => self.layers[0].controller.set_group(members),
            SourceControl::SignOfLife => {
                self.layers.iter_mut().for_each(|layer| layer.controller.control(control, now));
            }
        }
        self.shift.check(&self.layers);
        self.settle(now);
    }

    fn observe(&self) -> Observation {
        let base = &self.layers[0];
        let sum = |of: fn(&Tally) -> u64| self.layers.iter().map(|control| of(&control.tally)).sum();
        Observation {
            rate: (0..self.layers())
                .map(|layer| self.layer_rate(Layer(layer)))
                .fold(Rate::ZERO, |a, b| a + b),
            rtt: base.control_rtt(),
            limiting: base.followed().map(|followed| followed.id),
            level: base.followed().and_then(|followed| followed.rate),
            rtt_max: self.on().map(|control| control.controller.rtt_max()).max().unwrap_or(Span::ZERO),
            cuts: self.layers.iter().map(|control| control.gate.cuts()).sum(),
            tally: Tally {
                indications: sum(|tally| tally.indications),
                events: sum(|tally| tally.events),
                followed: sum(|tally| tally.followed),
            },
            starting: base.controller.is_starting(),
        }
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.layers[0].controller.sample(echo, now)
    }

    fn layers(&self) -> u8 {
        self.layers.len() as u8
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        match self.get(layer) {
            Some(control) => control.controller.pace(),
            None if layer == Layer(0) => self.layers[0].controller.pace(), // not started
            None => Rate::ZERO,
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn control_of(&self, layer: usize) -> &LayerControl {
        &self.layers[layer]
    }

    pub(super) fn gaining(&self) -> Option<Layer> {
        self.shift.gaining()
    }
}
