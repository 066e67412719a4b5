//! The schemes, and how to choose one by name.
//!
//! Sources and receivers are stored as enums, so a driver needs neither generics nor a box, and a call
//! is one branch.

pub mod catalogue;
#[cfg(test)]
mod conformance;
pub mod gmcc;
pub mod le_sbcc;
pub mod mca;
pub mod mca_plus;
pub mod ormcc;
pub mod pgmcc;
pub mod rlc;
pub mod smcc;
#[cfg(test)]
mod star;
pub mod tfmcc;

pub use catalogue::{CATALOGUE, COMMON, Entry, Opt, Scheme, SchemeError};

use crate::node::{Control, Cx, Departure, Observation, Receiver, Source, Stamp};
use crate::packet::{Arrival, Data, Layer, Report};
use crate::time::{Rate, Time};

/// Does the same for every scheme: `each!(self, AnySource, source => source.observe())`. The one list of schemes.
macro_rules! each {
    ($value:expr, $any:ident, $inner:pat => $body:expr) => {
        match $value {
            $any::Ormcc($inner) => $body,
            $any::LeSbcc($inner) => $body,
            $any::Pgmcc($inner) => $body,
            $any::Mca($inner) => $body,
            $any::McaPlus($inner) => $body,
            $any::Tfmcc($inner) => $body,
            $any::Gmcc($inner) => $body,
            $any::Rlc($inner) => $body,
            $any::Smcc($inner) => $body,
        }
    };
}
use each;

/// The source of any scheme.
#[derive(Debug, Clone)]
pub enum AnySource {
    /// [`ormcc`].
    Ormcc(ormcc::Source),
    /// [`le_sbcc`].
    LeSbcc(le_sbcc::Source),
    /// [`pgmcc`].
    Pgmcc(pgmcc::Source),
    /// [`mca`].
    Mca(mca::Source),
    /// [`mca_plus`].
    McaPlus(mca_plus::Source),
    /// [`tfmcc`].
    Tfmcc(tfmcc::Source),
    /// [`gmcc`].
    Gmcc(gmcc::Source),
    /// [`rlc`].
    Rlc(rlc::Source),
    /// [`smcc`].
    Smcc(smcc::Source),
}

/// The receiver of any scheme.
#[derive(Debug, Clone)]
pub enum AnyReceiver {
    /// [`ormcc`].
    Ormcc(ormcc::Receiver),
    /// [`le_sbcc`].
    LeSbcc(le_sbcc::Receiver),
    /// [`pgmcc`].
    Pgmcc(pgmcc::Receiver),
    /// [`mca`].
    Mca(mca::Receiver),
    /// [`mca_plus`].
    McaPlus(mca_plus::Receiver),
    /// [`tfmcc`].
    Tfmcc(tfmcc::Receiver),
    /// [`gmcc`].
    Gmcc(gmcc::Receiver),
    /// [`rlc`].
    Rlc(rlc::Receiver),
    /// [`smcc`].
    Smcc(smcc::Receiver),
}

const _: () = assert!(size_of::<AnyReceiver>() <= 608, "a million of them are simulated");

impl Source for AnySource {
    fn start(&mut self, cx: &mut Cx<'_>) {
        each!(self, AnySource, source => source.start(cx))
    }

    fn departure(&self, layer: Layer) -> Departure {
        each!(self, AnySource, source => source.departure(layer))
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        each!(self, AnySource, source => source.on_departure(layer, size, cx))
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        each!(self, AnySource, source => source.on_report(report, cx))
    }

    fn deadline(&self) -> Time {
        each!(self, AnySource, source => source.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        each!(self, AnySource, source => source.on_deadline(cx))
    }

    fn control(&mut self, control: Control, now: Time) {
        each!(self, AnySource, source => source.control(control, now))
    }

    fn observe(&self) -> Observation {
        each!(self, AnySource, source => source.observe())
    }

    fn layers(&self) -> u8 {
        each!(self, AnySource, source => source.layers())
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        each!(self, AnySource, source => source.layer_rate(layer))
    }
}

impl AnyReceiver {
    #[inline(never)]
    fn on_data_of_others(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        each!(self, AnyReceiver, receiver => receiver.on_data(data, layer, arrival, cx))
    }

    #[inline(never)]
    fn deadline_of_others(&self) -> Time {
        each!(self, AnyReceiver, receiver => receiver.deadline())
    }
}

impl Receiver for AnyReceiver {
    // ORMCC's receivers are simulated by the million: their path is inlined in the engine, without the others' registers.
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.on_data(data, layer, arrival, cx),
            other => other.on_data_of_others(data, layer, arrival, cx),
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.deadline(),
            other => other.deadline_of_others(),
        }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        each!(self, AnyReceiver, receiver => receiver.on_deadline(cx))
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        each!(self, AnyReceiver, receiver => receiver.on_leave(cx))
    }

    fn suppressed(&self) -> u32 {
        each!(self, AnyReceiver, receiver => receiver.suppressed())
    }
}
