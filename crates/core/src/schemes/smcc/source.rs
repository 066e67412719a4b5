//! SMCC's source: a TFMCC source per layer, between fixed limits (paper 000, 4.1).

use super::config::{Config, Joins, LAYERS};
use crate::node::{Cx, Departure, Observation, Source as _, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, Report, ReportContent};
use crate::rate::Bounds;
use crate::schemes::tfmcc;
use crate::time::{Rate, Span, Time};

/// The source of an SMCC session.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    layers: Vec<Stream>,
}

/// A layer.
#[derive(Debug, Clone)]
struct Stream {
    control: tfmcc::Source,
    state: State,
    /// Time of the latest report of the layer; before the first report, the time at which the layer was switched on.
    received_at: Time,
}

/// Whether a layer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The layer was never sent.
    New,
    /// The layer was sent before.
    Off,
    On,
}

/// Duration without reports after which a layer is switched off. A layer's limiting receiver reports once per round trip.
const OFF_AFTER: Span = Span::from_secs(10);

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        let stream = |layer| {
            let mut control = config.control;
            control.sending.bounds = limits(&config, layer).unwrap_or(config.control.sending.bounds);
            if layer > 0 {
                control.least = config.least_of(layer);
                // The send histories grow on demand, but sixteen full histories would need much memory.
                control.sending.history_packets = control.sending.history_packets.min(1 << 16);
            }
            Stream { control: tfmcc::Source::new(control), state: State::New, received_at: Time::ZERO }
        };
        Source { config, layers: (0..config.layers.clamp(1, LAYERS as u8)).map(stream).collect() }
    }

    fn sent(&self) -> impl Iterator<Item = &Stream> {
        self.layers.iter().filter(|stream| stream.state == State::On)
    }

    fn stream(&self, layer: Layer) -> Option<&Stream> {
        self.layers.get(usize::from(layer.0)).filter(|stream| stream.state == State::On)
    }

    /// Switches on `layer` and the layers below it, because a receiver requests `layer`.
    fn switch_on(&mut self, layer: Layer, cx: &mut Cx<'_>) {
        for (layer, stream) in (0..=layer.0).zip(&mut self.layers) {
            if stream.state == State::On || limits(&self.config, layer).is_none() {
                continue;
            }
            match stream.state {
                State::New => stream.control.start(cx),
                _ => stream.control.control(SourceControl::StartAgain, cx.now),
            }
            (stream.state, stream.received_at) = (State::On, cx.now);
        }
    }

    /// Limits the rate of `layer` to `rate`, because a receiver that joins the layer can take no more of it.
    fn make_room(&mut self, layer: Layer, rate: Rate, now: Time) {
        // The base layer is excluded, because every new receiver joins the base layer and could stop it for all receivers.
        if self.config.joins == Joins::Early
            && layer > Layer(0)
            && rate.is_usable()
            && let Some(stream) = self.layers.get_mut(usize::from(layer.0))
        {
            stream.control.make_room(rate, now);
        }
    }

    fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.control.sending.bounds = bounds;
        for (layer, stream) in (0..).zip(&mut self.layers) {
            match limits(&self.config, layer) {
                Some(bounds) => stream.control.control(SourceControl::Limits(bounds), now),
                None if stream.state == State::On => stream.state = State::Off,
                None => {}
            }
        }
    }
}

/// Returns the limits of a layer; `None` if the maximum rate of the session leaves no rate for it.
fn limits(config: &Config, layer: u8) -> Option<Bounds> {
    let all = config.control.sending.bounds;
    let base = config.cap.max(all.min).min(all.max);
    if layer == 0 {
        return Some(Bounds { min: all.min, max: base });
    }
    let below = base.bps() + config.cap_below(layer).bps() - config.cap.bps();
    let left = Rate::from_bps(all.max.bps() - below);
    let min = config.slowest();
    (left.bps() > config.least_of(layer).bps()).then(|| Bounds { min, max: left.min(config.cap_of(layer)) })
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.switch_on(Layer(0), cx);
    }

    fn departure(&self, layer: Layer) -> Departure {
        // Each layer is controlled by a source that has only layer 0.
        self.stream(layer).map_or(Departure::At(Time::NEVER), |stream| stream.control.departure(Layer(0)))
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        // A layer that does not exist never has a departure.
        let highest = self.layers.len() - 1;
        self.layers[usize::from(layer.0).min(highest)].control.on_departure(Layer(0), size, cx)
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        if let ReportContent::Averaged { cause: Cause::Joining, rate, .. } = report.content {
            self.switch_on(report.layer, cx);
            return self.make_room(report.layer, Rate::from_bps(f64::from(rate)), cx.now);
        }
        let stream = self.layers.get_mut(usize::from(report.layer.0));
        let receives = |stream: &&mut Stream| stream.state == State::On || report.layer == Layer(0);
        if let Some(stream) = stream.filter(receives) {
            stream.received_at = cx.now;
            stream.control.on_report(report, cx);
        }
    }

    fn deadline(&self) -> Time {
        let controls = self.sent().map(|stream| stream.control.deadline());
        let silences = self.sent().skip(1).map(|stream| stream.received_at + OFF_AFTER);
        controls.chain(silences).min().unwrap_or(Time::NEVER)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        for (layer, stream) in self.layers.iter_mut().enumerate() {
            if stream.state != State::On {
                continue;
            }
            stream.control.on_deadline(cx);
            if layer > 0 && cx.now >= stream.received_at + OFF_AFTER {
                stream.state = State::Off;
            }
        }
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        if let SourceControl::Limits(bounds) = control {
            return self.set_bounds(bounds, now);
        }
        for stream in self.layers.iter_mut().filter(|stream| stream.state == State::On) {
            stream.control.control(control, now);
        }
    }

    /// Round-trip time and limiting receiver are those of the base layer.
    fn observe(&self) -> Observation {
        let base = self.layers[0].control.observe();
        let max = self.config.control.sending.bounds.max;
        let mut all = Observation { rate: Rate::ZERO, cuts: 0, tally: Tally::default(), ..base };
        for (layer, stream) in self.layers.iter().enumerate() {
            let seen = stream.control.observe();
            if stream.state == State::On || layer == 0 {
                all.rate = (all.rate + seen.rate).min(max);
                all.rtt_max = all.rtt_max.max(seen.rtt_max);
            }
            all.cuts += seen.cuts;
            all.tally.indications += seen.tally.indications;
            all.tally.events += seen.tally.events;
            all.tally.followed += seen.tally.followed;
        }
        all
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.layers[0].control.round_trip(echo, now)
    }

    fn layers(&self) -> u8 {
        self.layers.len() as u8
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        match self.stream(layer) {
            Some(stream) => stream.control.observe().rate,
            None if layer == Layer(0) => self.layers[0].control.observe().rate, // not started
            None => Rate::ZERO,
        }
    }
}
