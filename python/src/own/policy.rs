//! Rate policies.

use super::{Parts, RATES, called, rate, result, seconds};
use faircast_core::own::OwnFactory;
use faircast_core::rate::{self, Congestion, PolicyFactory, RatePolicy};
use faircast_core::time::Rate;
use pyo3::prelude::*;

/// Operating point of a source.
#[pyclass(frozen, get_all, module = "faircast")]
pub struct Operating {
    rate: f64,
    rtt: f64,
    full_rtt: f64,
    deviation: f64,
    packet_size: u16,
}

impl From<rate::Operating> for Operating {
    fn from(at: rate::Operating) -> Operating {
        Operating {
            rate: at.rate.bps(),
            rtt: seconds(at.rtt),
            full_rtt: seconds(at.full_rtt),
            deviation: seconds(at.deviation),
            packet_size: at.packet_size,
        }
    }
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

impl PolicyFactory for Factory {
    fn policy(&self, options: &str) -> Box<dyn RatePolicy + Send> {
        let methods = self.0.create(0, options).and_then(|object| {
            called(|py| Ok((object.getattr(py, "on_tick")?, object.getattr(py, "on_congestion")?)))
        });
        Box::new(Policy { methods })
    }
}

/// A policy. Without methods, because an exception ends the run, the rate stays.
struct Policy {
    methods: Option<(Py<PyAny>, Py<PyAny>)>,
}

impl RatePolicy for Policy {
    fn on_tick(&mut self, at: rate::Operating) -> Rate {
        let Some((on_tick, _)) = &self.methods else { return at.rate };
        let next = called(|py| {
            let next = on_tick.bind(py).call1((Operating::from(at),))?;
            result(on_tick, &next, RATES, rate(&next))
        });
        next.unwrap_or(at.rate)
    }

    fn on_congestion(&mut self, at: rate::Operating, congestion: Congestion) -> Rate {
        let Some((_, on_congestion)) = &self.methods else { return at.rate };
        let next = called(|py| {
            let arguments = (Operating::from(at), congestion.level.bps(), congestion.keep);
            let next = on_congestion.bind(py).call1(arguments)?;
            result(on_congestion, &next, RATES, rate(&next))
        });
        next.map_or(at.rate, |next| next.min(at.rate))
    }
}
