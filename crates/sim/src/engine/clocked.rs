//! Sources and senders with inexact clocks.

use crate::clock::Clock;
use faircast_core::node::{Cx, Departure, Observation, Source as _, SourceControl, Stamp, Windows};
use faircast_core::packet::{Echo, Layer, Report};
use faircast_core::schemes::AnySource;
use faircast_core::time::{Rate, Span, Time};
use faircast_unicast::cocoon::{Verdict, View};
use faircast_unicast::tcp::{self, RttEstimate};
use faircast_unicast::{AnySender, Feedback, Segment, Sender as _, SenderView};

/// A state machine and its clock. Times passed to and returned by the methods are times of the simulation.
#[derive(Debug)]
pub struct Clocked<T> {
    inner: T,
    clock: Clock,
}

impl<T> Clocked<T> {
    pub const fn new(inner: T, clock: Clock) -> Clocked<T> {
        Clocked { inner, clock }
    }

    /// Replaces the state machine, and keeps the clock.
    pub fn replace(&mut self, inner: T) {
        self.inner = inner;
    }

    /// Returns the reading of the clock.
    #[inline]
    pub fn reads(&self, now: Time) -> Time {
        self.clock.reads(now.as_nanos())
    }

    /// Calls the state machine with the time of its clock.
    #[inline]
    fn call<R>(&mut self, cx: &mut Cx<'_>, act: impl FnOnce(&mut T, &mut Cx<'_>) -> R) -> R {
        let now = cx.now;
        cx.now = self.clock.reads(now.as_nanos());
        let result = act(&mut self.inner, cx);
        cx.now = now;
        result
    }

    #[inline]
    fn moment(&self, reading: Time) -> Time {
        Time::from_nanos(self.clock.when(reading))
    }

    #[inline]
    fn moment_of(&self, departure: Departure) -> Departure {
        match departure {
            Departure::At(reading) => Departure::At(self.moment(reading)),
            Departure::AfterReport => Departure::AfterReport,
        }
    }
}

impl Clocked<AnySource> {
    pub fn start(&mut self, cx: &mut Cx<'_>) {
        self.call(cx, |source, cx| source.start(cx));
    }

    #[inline]
    pub fn departure(&self, layer: Layer) -> Departure {
        self.moment_of(self.inner.departure(layer))
    }

    #[inline]
    pub fn on_departure(&mut self, layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        self.call(cx, |source, cx| source.on_departure(layer, size, cx))
    }

    pub fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        self.call(cx, |source, cx| source.on_report(report, cx));
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        self.moment(self.inner.deadline())
    }

    pub fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        self.call(cx, |source, cx| source.on_deadline(cx));
    }

    pub fn control(&mut self, control: SourceControl, now: Time) {
        let now = self.reads(now);
        self.inner.control(control, now);
    }

    pub fn observe(&self) -> Observation {
        self.inner.observe()
    }

    pub fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.inner.round_trip(echo, self.reads(now))
    }

    pub fn windows(&self) -> Option<Windows> {
        self.inner.windows()
    }

    pub fn layer_rate(&self, layer: Layer) -> Rate {
        self.inner.layer_rate(layer)
    }
}

impl Clocked<AnySender> {
    pub fn start(&mut self, cx: &mut Cx<'_>) {
        self.call(cx, |sender, cx| sender.start(cx));
    }

    pub fn supply(&mut self, packets: u32, now: Time) {
        let now = self.reads(now);
        self.inner.supply(packets, now);
    }

    #[inline]
    pub fn departure(&self) -> Departure {
        self.moment_of(self.inner.departure())
    }

    #[inline]
    pub fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        self.call(cx, |sender, cx| sender.on_departure(cx))
    }

    #[inline]
    pub fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        self.call(cx, |sender, cx| sender.on_feedback(feedback, cx));
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        self.moment(self.inner.deadline())
    }

    pub fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        self.call(cx, |sender, cx| sender.on_deadline(cx));
    }

    pub fn cuts(&self) -> u32 {
        self.inner.cuts()
    }

    pub fn observe(&self) -> SenderView {
        self.inner.observe()
    }

    fn tcp(&self) -> Option<&tcp::Sender> {
        match &self.inner {
            AnySender::Tcp(sender) => Some(sender),
            _ => None,
        }
    }

    fn tcp_mut(&mut self) -> Option<&mut tcp::Sender> {
        match &mut self.inner {
            AnySender::Tcp(sender) => Some(sender),
            _ => None,
        }
    }

    /// Returns a coordinator's view of the sender; `None` for protocols other than TCP.
    pub fn view(&self) -> Option<View> {
        self.tcp().map(tcp::Sender::view)
    }

    pub fn round_trip(&self) -> Option<RttEstimate> {
        self.tcp().and_then(tcp::Sender::round_trip)
    }

    pub fn set_round_trip(&mut self, estimate: RttEstimate) {
        if let Some(sender) = self.tcp_mut() {
            sender.set_round_trip(estimate);
        }
    }

    pub fn cover(&mut self, before: u64) {
        if let Some(sender) = self.tcp_mut() {
            sender.cover(before);
        }
    }

    pub fn set_window(&mut self, window: f64, threshold: f64, cx: &mut Cx<'_>) {
        self.call(cx, |sender, cx| {
            if let AnySender::Tcp(sender) = sender {
                sender.set_window(window, threshold, cx);
            }
        });
    }

    pub fn obey(&mut self, verdict: &Verdict, cx: &mut Cx<'_>) {
        self.call(cx, |sender, cx| {
            if let AnySender::Tcp(sender) = sender {
                sender.obey(verdict, cx);
            }
        });
    }
}
