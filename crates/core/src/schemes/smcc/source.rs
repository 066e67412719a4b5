//! SMCC's source.

use super::config::Config;
use crate::node::{Control, Cx, Departure, Observation, Stamp, Tally};
use crate::packet::{Layer, Mark, Report};
use crate::rate::Outlet;
use crate::time::Time;

/// The source of a session.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    outlet: Outlet,
}

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        Source { config, outlet: Outlet::new(config.sending) }
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.outlet.start(cx.now);
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.outlet.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let departed = self.outlet.depart(size, self.config.sending.initial_rtt, cx.now);
        let mark = Mark::Equation {
            suppress_above: f32::INFINITY,
            rtt_max: 0.0,
            round: 0,
            to: None,
            echo: 0,
            limiting: false,
        };
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, mark }
    }

    fn on_report(&mut self, _report: &Report, cx: &mut Cx<'_>) {
        self.outlet.on_sign_of_life(cx.now);
    }

    fn deadline(&self) -> Time {
        Time::NEVER
    }

    fn on_deadline(&mut self, _cx: &mut Cx<'_>) {}

    fn control(&mut self, control: Control, now: Time) {
        self.outlet.control(control, now);
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.outlet.pace(),
            rtt: self.config.sending.initial_rtt,
            limiting: None,
            level: None,
            rtt_max: self.outlet.rtt_max(),
            cuts: 0,
            tally: Tally::default(),
            starting: self.outlet.is_starting(),
        }
    }

    fn layers(&self) -> u8 {
        self.config.layers
    }
}
