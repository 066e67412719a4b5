//! Pacing of a source: its congestion-control scheme, or a fixed rate without feedback.

use faircast_core::node::{Cx, Departure, Observation, Source, SourceControl, Stamp, Tally};
use faircast_core::packet::{Echo, Flags, Layer, Mark, Report, Seq, Signal};
use faircast_core::rate::{CatchUp, Pacer};
use faircast_core::schemes::{AnySource, Scheme};
use faircast_core::time::{Rate, Span, Time};

/// Maximum amount of data that a delayed host may send at once to catch up.
const CATCH_UP: CatchUp = CatchUp { packets: 2, span: Span::from_millis(25) };

/// Assumed round-trip time without feedback, for the interval of status messages.
const RTT: Span = Span::from_millis(100);

/// Decides the departures and marks of packets.
#[expect(clippy::large_enum_variant, reason = "there is one per session")]
pub(super) enum Pace {
    Scheme(AnySource),
    Fixed(FixedRate),
}

/// Sends packets at a fixed rate, with the packet numbers and marks that receivers of a scheme expect.
pub(super) struct FixedRate {
    pacer: Pacer,
    next: Seq,
    mark: Mark,
}

impl Pace {
    /// Creates the source side of the scheme, or a fixed rate if given.
    pub(super) fn new(scheme: &Scheme, fixed: Option<Rate>) -> Pace {
        match fixed {
            None => Pace::Scheme(scheme.source()),
            Some(rate) => Pace::Fixed(FixedRate {
                pacer: Pacer::new(rate, CATCH_UP),
                next: Seq(0),
                mark: scheme.mark(),
            }),
        }
    }
}

impl FixedRate {
    fn depart(&mut self, size: u16, now: Time) -> Stamp {
        self.pacer.book(now, size, Span::ZERO);
        let seq = self.next;
        self.next = seq.next();
        Stamp { seq, rate: self.pacer.rate(), flags: Flags::default(), signal: Signal::None, mark: self.mark }
    }

    const fn observe(&self) -> Observation {
        Observation {
            rate: self.pacer.rate(),
            rtt: RTT,
            limiting: None,
            level: None,
            rtt_max: RTT,
            cuts: 0,
            tally: Tally { indications: 0, events: 0, followed: 0 },
            starting: false,
        }
    }
}

impl Source for Pace {
    fn start(&mut self, cx: &mut Cx<'_>) {
        match self {
            Pace::Scheme(source) => source.start(cx),
            Pace::Fixed(fixed) => fixed.pacer.restart(cx.now),
        }
    }

    fn departure(&self, layer: Layer) -> Departure {
        match self {
            Pace::Scheme(source) => source.departure(layer),
            Pace::Fixed(fixed) => Departure::At(fixed.pacer.departure()),
        }
    }

    fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        match self {
            Pace::Scheme(source) => source.on_departure(layer, size, cx),
            Pace::Fixed(fixed) => fixed.depart(size, cx.now),
        }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        if let Pace::Scheme(source) = self {
            source.on_report(report, cx);
        }
    }

    fn deadline(&self) -> Time {
        match self {
            Pace::Scheme(source) => source.deadline(),
            Pace::Fixed(_) => Time::NEVER,
        }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if let Pace::Scheme(source) = self {
            source.on_deadline(cx);
        }
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        if let Pace::Scheme(source) = self {
            source.control(control, now);
        }
    }

    fn observe(&self) -> Observation {
        match self {
            Pace::Scheme(source) => source.observe(),
            Pace::Fixed(fixed) => fixed.observe(),
        }
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        match self {
            Pace::Scheme(source) => source.round_trip(echo, now),
            Pace::Fixed(_) => None,
        }
    }

    fn layers(&self) -> u8 {
        match self {
            Pace::Scheme(source) => source.layers(),
            Pace::Fixed(_) => 1,
        }
    }

    fn layer_rate(&self, layer: Layer) -> Rate {
        match self {
            Pace::Scheme(source) => source.layer_rate(layer),
            Pace::Fixed(fixed) if layer == Layer(0) => fixed.pacer.rate(),
            Pace::Fixed(_) => Rate::ZERO,
        }
    }
}
