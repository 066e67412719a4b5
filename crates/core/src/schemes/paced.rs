//! The common part of sources with one paced rate.
//!
//! ```text
//!   driver          start, departures, reports, deadlines, control
//!      |
//!   PacedSource     numbers and times packets, drops reports that cannot be, feeds start-up, rests while the application
//!      |            has nothing to send, ticks once a period
//!   PacedPolicy     whom to follow, what to say in packets, when to raise the rate and when to cut it
//! ```
//!
//! A source contains its policy, which owns the [`SendController`]. The policy is a type parameter, so the separation has no cost
//! at run time.
//!
//! The sources of PGMCC and MTCP are not policies of this kind: in them, acknowledgements release packets, and no tick raises a
//! rate.

use crate::node::{Cx, Departure, Observation, Source, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::SendController;
use crate::time::{Rate, Span, Time};

/// The decisions of one scheme.
pub trait PacedPolicy: Sized {
    /// The scheme's configuration.
    type Config;

    /// Creates the policy of a source that has not started.
    fn new(config: Self::Config) -> Self;
    /// Returns the controller of departures.
    fn controller(&self) -> &SendController;
    /// Returns the controller of departures, for changes.
    fn controller_mut(&mut self) -> &mut SendController;
    /// Returns the round-trip time of the path that the rate follows; before the first sample, the assumed round-trip time.
    fn rtt(&self) -> Span;
    /// Returns the signal and mark of a packet of `size` bytes that is sent now.
    fn stamp(&mut self, size: u16, now: Time) -> (Signal, Mark);
    /// Handles a report of any kind except signs of life, answers to the start-up and farewells.
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>);
    /// Updates the controller and raises the rate, once per period.
    fn on_tick(&mut self, period: Span, now: Time);
    /// Handles a receiver that left or is excluded: it cannot remain the representative.
    fn forget(&mut self, receiver: ReceiverId, now: Time);
    /// Handles a change of the group: removes all state about the old group's paths. The controller has already restarted.
    fn on_start_again(&mut self, now: Time);
    /// Returns `seen` with four more fields: the receiver that limits the rate, the level of this receiver, the number of cuts,
    /// and the tally.
    fn observe(&self, seen: Observation) -> Observation;

    /// Returns the time from one tick to the next.
    fn period(&self) -> Span {
        self.rtt()
    }
    /// Returns whether the source must wait for a report before it sends the next new packet.
    fn awaits_report(&self) -> bool {
        false
    }
    /// Returns whether the source is idle. The rate of an idle source can only fall.
    fn is_idle(&self) -> bool {
        self.controller().is_idle()
    }
    /// Returns whether reports of this receiver count. Farewells always count.
    fn accepts(&self, _from: ReceiverId, _now: Time) -> bool {
        true
    }
    /// Handles the start of the session. The controller has already started.
    fn on_start(&mut self, _now: Time) {}
    /// Handles the end of a pause of the application: the policy's timers continue where they stopped.
    fn on_resume(&mut self, _pause: Span, _now: Time) {}
    /// Records a sent packet.
    fn on_departed(&mut self, _now: Time) {}
    /// Records that a receiver has received this packet. Returns whether to perform the next tick now.
    fn on_arrived(&mut self, _seq: Seq, _now: Time) -> bool {
        false
    }
    /// Handles a round-trip sample from a receiver that does not report congestion.
    fn on_sample(&mut self, _from: ReceiverId, _sample: Span) {}
    /// Handles the end of a start-up, if the reason is an answer or a missing answer.
    fn on_started(&mut self, _now: Time) {}
    /// Returns the time of the next call of [`PacedPolicy::on_deadline`] for the policy's own timers, not for ticks and start-up.
    /// Ignored while the source is idle.
    fn deadline(&self) -> Time {
        Time::NEVER
    }
    /// Handles any deadline: a deadline of the policy, a tick, or a deadline of the start-up.
    fn on_deadline(&mut self, _now: Time) {}
    /// Handles a tick that found the source idle.
    fn on_idle(&mut self) {}
    /// Handles three inputs from the driver: the group's size, new limits, and signs of life.
    fn control(&mut self, _control: SourceControl, _now: Time) {}
    /// Completes the handling of a report or a deadline.
    fn finish(&mut self, _cx: &mut Cx<'_>) {}

    /// Handles a sign of life of any receiver.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller().sample(echo, now) else { return };
        self.on_sample(from, sample);
        self.controller_mut().on_alive(from, sample, now);
    }
}

/// The source of a scheme with one rate.
#[derive(Debug, Clone)]
pub struct PacedSource<P> {
    pub(super) policy: P,
    tick_at: Time,
}

impl<P: PacedPolicy> PacedSource<P> {
    /// Creates a source that has not started.
    pub fn new(config: P::Config) -> PacedSource<P> {
        PacedSource { policy: P::new(config), tick_at: Time::NEVER }
    }

    /// Performs a tick. A late tick does not delay the ticks after it (paper 000, 3.1.5 and appendix A).
    fn tick(&mut self, now: Time) {
        self.policy.on_tick(self.policy.period(), now);
        let period = self.policy.period();
        let next = self.tick_at + period;
        self.tick_at = if next > now { next } else { now + period };
    }

    /// Calls `feed`, and notifies the policy if this call has ended the start-up.
    fn feed_start_up(&mut self, now: Time, feed: impl FnOnce(&mut P)) {
        let starting = self.policy.controller().is_starting();
        feed(&mut self.policy);
        if starting && !self.policy.controller().is_starting() {
            self.policy.on_started(now);
        }
    }
}

impl<P: PacedPolicy> Source for PacedSource<P> {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.policy.controller_mut().start(cx.now);
        self.policy.on_start(cx.now);
        self.tick_at = cx.now + self.policy.period();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) if self.policy.awaits_report() => Departure::AfterReport,
            Layer(0) => Departure::At(self.policy.controller().departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    // Not inlined: otherwise the dispatch to the source of any scheme would have to save registers.
    #[inline(never)]
    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let now = cx.now;
        if let Some(pause) = self.policy.controller_mut().resume(now) {
            self.policy.on_resume(pause, now);
            self.tick_at = now + self.policy.period();
        }
        let (signal, mark) = self.policy.stamp(size, now);
        let rtt = self.policy.rtt();
        let departed = self.policy.controller_mut().depart(size, rtt, now);
        self.policy.on_departed(now);
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal, mark }
    }

    #[inline(never)]
    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        let controller = self.policy.controller_mut();
        if !controller.has_left(report.content.echo()) || controller.is_probed(report, now) {
            return;
        }
        let seq = report.content.echo().seq;
        controller.on_arrived(seq, now);
        if self.policy.on_arrived(seq, now) {
            self.tick_at = now;
        }
        match report.content {
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.policy.forget(from, now),
            _ if !self.policy.accepts(from, now) => return,
            ReportContent::Alive { echo }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.policy.on_alive(from, echo, now);
            }
            ReportContent::Received { echo, rate, loss } => self.feed_start_up(now, |policy| {
                let rate = Rate::from_bps(f64::from(rate));
                policy.controller_mut().on_received(from, echo, rate, loss, now);
                policy.on_alive(from, echo, now);
            }),
            _ => self.policy.on_report(report, cx),
        }
        self.policy.finish(cx);
    }

    fn deadline(&self) -> Time {
        if self.policy.is_idle() {
            return self.tick_at;
        }
        self.tick_at.min(self.policy.deadline()).min(self.policy.controller().deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            self.tick(now);
        }
        if self.policy.is_idle() {
            self.policy.on_idle();
            self.tick_at = self.policy.controller().rest_until(self.tick_at);
            return;
        }
        self.feed_start_up(now, |policy| policy.controller_mut().on_deadline(now));
        self.policy.on_deadline(now);
        self.policy.finish(cx);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.policy.controller_mut().control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.policy.forget(receiver, now),
            SourceControl::StartAgain => {
                self.policy.controller_mut().start_again(now);
                self.policy.on_start_again(now);
                self.tick_at = now + self.policy.period();
            }
            SourceControl::Members(_) | SourceControl::Limits(_) | SourceControl::SignOfLife => {
                self.policy.control(control, now);
            }
        }
    }

    fn observe(&self) -> Observation {
        let controller = self.policy.controller();
        self.policy.observe(Observation {
            rate: controller.pace(),
            rtt: self.policy.rtt(),
            limiting: None,
            level: None,
            rtt_max: controller.rtt_max(),
            cuts: 0,
            tally: Tally::default(),
            starting: controller.is_starting(),
        })
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.policy.controller().sample(echo, now)
    }
}
