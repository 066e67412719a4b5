//! The schemes, and their selection by name.
//!
//! Sources and receivers are stored as enums, so a driver needs neither generics nor a box, and each call takes one branch. To
//! add a scheme, add its folder and one line in the list below.

pub mod gmcc;
pub mod le_sbcc;
pub mod mca;
pub mod mca_plus;
pub mod mtcp;
pub mod ormcc;
pub mod own;
pub mod paced;
pub mod pgmcc;
pub mod raccoom;
pub mod rlc;
pub mod rmanp;
pub mod smcc;
pub mod tfmcc;

/// Generates all code with one part per scheme: the enums of configurations, sources and receivers, the catalogue, and the macro
/// `each!`. For example, `each!(self, AnySource, source => source.observe())` evaluates the expression for any scheme.
macro_rules! schemes {
    ($d:tt $($(#[$doc:meta])+ $variant:ident => $module:ident,)+) => {
        /// A scheme and its parameters.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Scheme {
            $($(#[$doc])+ $variant($module::Config),)+
            /// A scheme of another crate.
            Own(own::Config),
        }

        /// The source of any scheme.
        #[derive(Debug)]
        pub enum AnySource {
            $($(#[$doc])+ $variant($module::Source),)+
            /// The source of a scheme of another crate.
            Own(own::Source),
        }

        /// The receiver's part of any scheme.
        #[derive(Debug)]
        pub enum ReceiverPart {
            $($(#[$doc])+ $variant($module::Receiver),)+
            /// The receiver of a scheme of another crate.
            Own(own::Receiver),
        }

        /// All built-in schemes.
        pub const CATALOGUE: &[Entry] = &[$(<$module::Config as catalogue::Configure>::ENTRY,)+];

        impl Scheme {
            /// Returns the scheme of this name with the settings for real networks.
            fn named(name: &str) -> Option<Scheme> {
                $(if name == <$module::Config as catalogue::Configure>::ENTRY.name {
                    return Some(Scheme::$variant(catalogue::transport()));
                })+
                None
            }

            /// Creates a source.
            pub fn source(&self) -> AnySource {
                match self {
                    $(Scheme::$variant(config) => AnySource::$variant($module::Source::new(*config)),)+
                    Scheme::Own(config) => AnySource::Own(own::Source::new(*config)),
                }
            }

            /// Creates a receiver.
            pub fn receiver(&self, me: ReceiverId) -> AnyReceiver {
                let part = match self {
                    $(Scheme::$variant(config) => ReceiverPart::$variant($module::Receiver::new(me, config)),)+
                    Scheme::Own(config) => ReceiverPart::Own(own::Receiver::new(me, config)),
                };
                AnyReceiver { part, causes: self.sending().losses.causes() }
            }
        }

        macro_rules! each {
            ($d value:expr, $d any:ident, $d inner:pat => $d body:expr) => {
                match $d value {
                    $($d any::$variant($d inner) => $d body,)+
                    $d any::Own($d inner) => $d body,
                }
            };
        }
    };
}

schemes! { $
    /// Paper 000, chapter 3.
    Ormcc => ormcc,
    /// Paper 000, chapter 2.
    LeSbcc => le_sbcc,
    /// The building-block draft draft-ietf-rmt-bb-pgmcc-03.
    Pgmcc => pgmcc,
    /// Paper 000, appendix D.
    Mca => mca,
    /// Paper 000, chapter 5.
    McaPlus => mca_plus,
    /// RFC 4654.
    Tfmcc => tfmcc,
    /// Paper 000, chapter 4.
    Gmcc => gmcc,
    /// Paper 004.
    Rlc => rlc,
    /// Paper 000, chapter 4: the scheme with which GMCC is compared.
    Smcc => smcc,
    /// Paper 001.
    Mtcp => mtcp,
    /// Paper 002, chapter 3.
    Raccoom => raccoom,
    /// Paper 003.
    Rmanp => rmanp,
}

// The module must follow the list of schemes, because it uses the macro `each!` that the list defines.
#[cfg(test)]
pub(crate) mod bench;
pub mod catalogue;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod declare;
mod representative;
#[cfg(test)]
mod router_conformance;
#[cfg(test)]
mod star_tests;

pub use catalogue::{Entry, Feedback, LayerRates, StatedRate, Wire};

use crate::estimate::LossCauses;
use crate::node::{Cx, Departure, Observation, Receiver, Source, SourceControl, Stamp, Windows};
use crate::packet::{Arrival, Data, Echo, Layer, Order, ReceiverId, Report};
use crate::rate::Losses;
use crate::spec::SpecError;
use crate::time::{Rate, Span, Time};

impl Scheme {
    /// Reads a scheme of another crate; `None` if the text names no such scheme.
    fn own(text: &str) -> Option<Result<Scheme, SpecError>> {
        own::SCHEMES.read(text, ',').map(|own| own.map(|own| Scheme::Own(own::Config::new(own))))
    }
}

/// The receiver of any scheme.
#[derive(Debug)]
pub struct AnyReceiver {
    part: ReceiverPart,
    /// Decides which losses the scheme receives as losses; `None`: all.
    causes: Option<Box<LossCauses>>,
}

impl Losses {
    fn causes(self) -> Option<Box<LossCauses>> {
        match self {
            Losses::All => None,
            Losses::Queued => Some(Box::default()),
        }
    }
}

const _: () = assert!(size_of::<AnyReceiver>() <= 488, "a million of them are simulated");

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

    fn control(&mut self, control: SourceControl, now: Time) {
        each!(self, AnySource, source => source.control(control, now))
    }

    fn observe(&self) -> Observation {
        each!(self, AnySource, source => source.observe())
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        each!(self, AnySource, source => source.round_trip(echo, now))
    }

    fn layers(&self) -> u8 {
        each!(self, AnySource, source => source.layers())
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        each!(self, AnySource, source => source.layer_rate(layer))
    }

    fn windows(&self) -> Option<Windows> {
        each!(self, AnySource, source => source.windows())
    }
}

impl AnyReceiver {
    #[inline(never)]
    fn on_data_of_others(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        each!(&mut self.part, ReceiverPart, receiver => receiver.on_data(data, layer, arrival, cx))
    }

    #[inline(never)]
    fn deadline_of_others(&self) -> Time {
        each!(&self.part, ReceiverPart, receiver => receiver.deadline())
    }
}

impl Receiver for AnyReceiver {
    // Simulations have millions of ORMCC receivers. Their calls are inlined in the engine, without saving the registers that
    // other schemes need.
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        let arrival = match &mut self.causes {
            Some(causes) => causes.judge(data, arrival, cx.now),
            None => arrival,
        };
        match &mut self.part {
            ReceiverPart::Ormcc(receiver) => receiver.on_data(data, layer, arrival, cx),
            _ => self.on_data_of_others(data, layer, arrival, cx),
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        match &self.part {
            ReceiverPart::Ormcc(receiver) => receiver.deadline(),
            _ => self.deadline_of_others(),
        }
    }

    fn on_order(&mut self, order: &Order, cx: &mut Cx<'_>) {
        each!(&mut self.part, ReceiverPart, receiver => receiver.on_order(order, cx))
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        each!(&mut self.part, ReceiverPart, receiver => receiver.on_deadline(cx))
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        each!(&mut self.part, ReceiverPart, receiver => receiver.on_leave(cx))
    }

    fn suppressed(&self) -> u32 {
        each!(&self.part, ReceiverPart, receiver => receiver.suppressed())
    }
}
