//! The schemes, and how to choose one by name.
//!
//! Sources and receivers are stored as enums, so a driver needs neither generics nor a box, and a call
//! is one branch.

pub mod catalogue;
#[cfg(test)]
mod conformance;
pub mod ormcc;
#[cfg(test)]
mod star;

pub use catalogue::{CATALOGUE, Entry, Scheme, SchemeError};

use crate::node::{Cx, Departure, Observation, Receiver, Source, Stamp};
use crate::packet::{Arrival, Data, Layer, ReceiverId, Report};
use crate::rate::Bounds;
use crate::time::{Span, Time};

/// The source of any scheme.
#[derive(Debug, Clone)]
pub enum AnySource {
    /// [`ormcc`].
    Ormcc(ormcc::Source),
}

/// The receiver of any scheme.
#[derive(Debug, Clone)]
pub enum AnyReceiver {
    /// [`ormcc`].
    Ormcc(ormcc::Receiver),
}

impl AnySource {
    /// A receiver left or is excluded: it no longer limits the rate.
    pub fn forget(&mut self, receiver: ReceiverId) {
        match self {
            AnySource::Ormcc(source) => source.forget(receiver),
        }
    }

    /// The group is another one now: forget what was learned about the old one's paths, and start up anew.
    pub fn start_again(&mut self, now: Time) {
        match self {
            AnySource::Ormcc(source) => source.start_again(now),
        }
    }

    /// So many receivers take part and answer: start-up waits for all of a small group.
    pub fn set_group(&mut self, members: usize) {
        match self {
            AnySource::Ormcc(source) => source.set_group(members),
        }
    }

    /// Change the lowest and the highest rate.
    pub fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        match self {
            AnySource::Ormcc(source) => source.set_bounds(bounds, now),
        }
    }

    /// Something came from a receiver that is not a report to the scheme (a negative acknowledgement, a membership
    /// report): the group is not silent.
    pub fn on_sign_of_life(&mut self, now: Time) {
        match self {
            AnySource::Ormcc(source) => source.on_sign_of_life(now),
        }
    }

    /// The largest round-trip time of the group, as far as it is known: receivers spread their reports over it.
    pub fn rtt_max(&self) -> Span {
        match self {
            AnySource::Ormcc(source) => source.rtt_max(),
        }
    }
}

impl AnyReceiver {
    /// Congestion events so far that were not reported.
    pub fn suppressed(&self) -> u32 {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.counts().suppressed,
        }
    }
}

impl Source for AnySource {
    fn start(&mut self, cx: &mut Cx<'_>) {
        match self {
            AnySource::Ormcc(source) => source.start(cx),
        }
    }

    fn departure(&self, layer: Layer) -> Departure {
        match self {
            AnySource::Ormcc(source) => source.departure(layer),
        }
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        match self {
            AnySource::Ormcc(source) => source.on_departure(layer, size, cx),
        }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match self {
            AnySource::Ormcc(source) => source.on_report(report, cx),
        }
    }

    fn deadline(&self) -> Time {
        match self {
            AnySource::Ormcc(source) => source.deadline(),
        }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        match self {
            AnySource::Ormcc(source) => source.on_deadline(cx),
        }
    }

    fn observe(&self) -> Observation {
        match self {
            AnySource::Ormcc(source) => source.observe(),
        }
    }
}

impl Receiver for AnyReceiver {
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.on_data(data, layer, arrival, cx),
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.deadline(),
        }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.on_deadline(cx),
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        match self {
            AnyReceiver::Ormcc(receiver) => receiver.on_leave(cx),
        }
    }
}
