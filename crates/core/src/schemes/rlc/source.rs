//! RLC's source: sends by the timetable (paper 004, 3).

use super::config::{Config, LAYERS, Points};
use super::timetable::{Phase, Timetable};
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Flags, Layer, Mark, Report, Seq, Signal};
use crate::rate::Bounds;
use crate::time::{Rate, Span, Time};

/// The source of an RLC session. It receives no feedback, and the rates of its layers are fixed.
///
/// A late source catches up within a limit and skips older packets. It also skips packets while the application has no data or
/// the socket is blocked.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    timetable: Timetable,
    /// Number of layers that are sent, given the configured maximum rate.
    sent: u8,
    /// Start of the timetable's first slot. `slots_before` is the number of slots before it.
    began: Time,
    slots_before: u64,
    streams: [Stream; LAYERS],
}

/// A layer.
#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    /// Number of the layer's next packet.
    next: Seq,
    /// Turn of the next packet in the timetable.
    turn: u64,
}

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        let mut source = Source {
            config,
            timetable: config.timetable(),
            sent: 1,
            began: Time::ZERO,
            slots_before: 0,
            streams: [Stream::default(); LAYERS],
        };
        source.sent = source.layers_within_limits();
        source
    }

    /// Returns the rate of layers 0 to `level` together; each layer doubles this rate.
    fn rate_of_level(&self, level: u8) -> Rate {
        self.config.base() * (1u64 << level) as f64
    }

    fn configured_layers(&self) -> u8 {
        self.config.layers.clamp(1, LAYERS as u8)
    }

    /// Returns the number of layers that the configured maximum rate permits; at least 1.
    fn layers_within_limits(&self) -> u8 {
        let max = self.config.sending.bounds.max;
        (1..self.configured_layers())
            .take_while(|&level| self.rate_of_level(level).bps() <= max.bps())
            .count() as u8
            + 1
    }

    fn time_of(&self, layer: Layer, turn: u64) -> Time {
        self.began + self.timetable.time_of(layer, turn)
    }

    /// Returns the time for which a late host catches up: the time of a few packets or a few milliseconds, whichever is longer.
    fn credit(&self) -> Span {
        let catch_up = self.config.sending.catch_up;
        let gap = self.timetable.slot() / (1 << (self.sent - 1));
        (gap * u64::from(catch_up.packets)).max(catch_up.span)
    }

    /// Returns the turn of a packet that is sent now. This is the layer's next turn if the catch-up limit permits it. Otherwise
    /// it is the oldest turn that the limit permits or, if there is no such turn, the latest turn that has passed.
    fn turn_at(&self, layer: Layer, now: Time) -> u64 {
        let due = self.streams[usize::from(layer.0)].turn;
        let oldest = now - self.credit();
        if self.time_of(layer, due) >= oldest {
            return due;
        }
        let latest = |by: Time| self.timetable.latest_turn(layer, by.since(self.began)).unwrap_or(0);
        let next = latest(oldest) + 1;
        if self.time_of(layer, next) <= now { next } else { next - 1 }.max(due)
    }

    fn signal(&self, layer: Layer, turn: u64) -> Signal {
        let slot = self.slots_before + turn / Timetable::packets(layer);
        if self.timetable.phase(slot) == Phase::Even {
            return Signal::None;
        }
        let cycle = slot / self.timetable.distance();
        let first_cycle = self.slots_before / self.timetable.distance();
        let is_last = turn == self.timetable.last_turn(layer, cycle - first_cycle);
        if is_last && self.is_point(layer.0, cycle + 1) { Signal::SyncPoint } else { Signal::Burst }
    }

    /// Returns whether a burst, counted from 1, ends in a synchronisation point of this level. The highest level has no points,
    /// because there is no further layer to join.
    fn is_point(&self, level: u8, burst: u64) -> bool {
        let spacing = match self.config.points {
            Points::Doubling => 1 << level,
            Points::Mcl => (2 << level) - 1,
            Points::Every => 1,
        };
        level + 1 < self.sent && burst.is_multiple_of(spacing * u64::from(self.config.bursts.max(1)))
    }

    /// Applies new limits of the rate, which may change the number of layers. If the rate of the base layer changes, a new
    /// timetable begins with a new cycle.
    fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.sending.bounds = bounds;
        let before = self.sent;
        self.sent = self.layers_within_limits();
        let timetable = self.config.timetable();
        if timetable == self.timetable {
            for layer in before..self.sent {
                let passed = self.timetable.latest_turn(Layer(layer), now.since(self.began));
                self.streams[usize::from(layer)].turn = passed.map_or(0, |turn| turn + 1);
            }
            return;
        }
        let due = self.streams[0].turn;
        self.began = self.time_of(Layer(0), due).max(now);
        self.slots_before += (due / timetable.distance() + 1) * timetable.distance();
        self.timetable = timetable;
        self.streams.iter_mut().for_each(|stream| stream.turn = 0);
    }

    fn is_sent(&self, layer: Layer) -> bool {
        layer.0 < self.sent
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.began = cx.now;
        // Probes before the start have used turns, but the timetable begins now.
        self.streams.iter_mut().for_each(|stream| stream.turn = 0);
    }

    fn departure(&self, layer: Layer) -> Departure {
        if !self.is_sent(layer) {
            return Departure::At(Time::NEVER);
        }
        Departure::At(self.time_of(layer, self.streams[usize::from(layer.0)].turn))
    }

    fn on_departure(&mut self, layer: Layer, _size: u16, cx: &mut Cx<'_>) -> Stamp {
        // A layer that does not exist never has a departure. Here it is mapped to the highest layer.
        let layer = Layer(layer.0.min(LAYERS as u8 - 1));
        let turn = self.turn_at(layer, cx.now);
        let slot = self.slots_before + turn / Timetable::packets(layer);
        let (rate, signal) = (self.layer_rate(layer), self.signal(layer, turn));
        let stream = &mut self.streams[usize::from(layer.0)];
        let seq = stream.next;
        *stream = Stream { next: seq.next(), turn: turn + 1 };
        Stamp { seq, rate, flags: Flags::default(), signal, mark: Mark::Timetable { slot: slot as u32 } }
    }

    fn on_report(&mut self, _report: &Report, _cx: &mut Cx<'_>) {}

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}

    fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Limits(bounds) => self.set_bounds(bounds, now),
            // The source stores no state about receivers, and no receiver limits the rate.
            SourceControl::Forget(_)
            | SourceControl::StartAgain
            | SourceControl::Members(_)
            | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.rate_of_level(self.sent - 1),
            rtt: self.config.sending.initial_rtt,
            limiting: None,
            level: None,
            rtt_max: self.config.sending.initial_rtt,
            cuts: 0,
            tally: Tally::default(),
            starting: false,
        }
    }

    fn layers(&self) -> u8 {
        self.configured_layers()
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        match layer {
            _ if !self.is_sent(layer) => Rate::ZERO,
            Layer(0) => self.rate_of_level(0),
            Layer(higher) => self.rate_of_level(higher - 1),
        }
    }
}
