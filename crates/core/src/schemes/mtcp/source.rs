//! MTCP's sender: the root of the tree. The smallest window of the tree limits its rate (paper 001, 3.1).

use super::child::{Group, Role};
use super::config::{Config, Mode, Repair};
use super::local::MIN_GAP;
use super::parent::{From, Parent, Use};
use super::store::Slot;
use crate::estimate::{Ewma, SendHistory};
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally, Windows};
use crate::packet::{Echo, Flags, Layer, Payload, Report, Signal};
use crate::rate::Pacer;
use crate::time::{Rate, Span, Time};

/// The source of an MTCP session.
#[derive(Debug, Clone)]
pub struct Source {
    parent: Parent,
    history: SendHistory,
    is_running: bool,
    pacer: Pacer,
    /// Mean duration of a round of the tree, in seconds. A round lasts from the sending of a packet until no node misses the
    /// packet.
    round: Ewma,
    /// The packet that measures the present round.
    measured: Option<(u64, Time)>,
    /// Number of slow starts at the latest check of the round.
    slow_starts: u64,
    last_departure: Time,
    /// Latest time at which the packets in flight filled the window. The window grows only while it is fully used.
    starved_at: Option<Time>,
    /// The smallest window of the tree at the latest check.
    least: f64,
    cuts: u64,
    starting: bool,
}

const ROUND_GAIN: f64 = 0.125;
/// The interval between packets without answering receivers.
const ALONE: Span = Span::from_secs(1);
/// Relative decrease of the smallest window that counts as a cut.
const CUT: f64 = 0.25;
/// Maximum sample of a round. Larger samples are errors of a clock or a receiver.
const MAX_ROUND: Span = Span::from_secs(60);

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        let mut source = Source {
            parent: Parent::new(config, Role::Sender, From::Parent),
            history: SendHistory::new(config.sending.history_packets),
            is_running: false,
            pacer: Pacer::new(config.sending.bounds.max, config.sending.catch_up),
            round: Ewma::new(ROUND_GAIN),
            measured: None,
            slow_starts: 0,
            last_departure: Time::ZERO,
            starved_at: None,
            least: 1.0,
            cuts: 0,
            starting: true,
        };
        source.adjust_pace(Time::ZERO);
        source
    }

    /// Returns the duration of a round of the tree; before the first sample, the assumed duration.
    fn round(&self) -> Span {
        let known = self.round.mean().map(Span::from_secs_f64);
        known.unwrap_or(self.parent.config.sending.initial_rtt).max(self.parent.config.sending.min_rtt)
    }

    /// Returns the smallest window of the tree.
    fn window(&self) -> f64 {
        let least = self.parent.min_window();
        if least.is_finite() { least } else { 1.0 }
    }

    fn window_rate(&self) -> Rate {
        Rate::of(u64::from(self.parent.config.sending.packet_size), self.round()) * self.window()
    }

    fn rate(&self) -> Rate {
        self.parent.config.sending.bounds.clamp(self.window_rate())
    }

    fn adjust_pace(&mut self, now: Time) {
        let free = match self.parent.config.pacing {
            Some(gain) => self.window_rate() * gain,
            None => Rate::UNLIMITED,
        };
        let pace = free.max(self.rate());
        self.pacer.set_rate(self.parent.config.sending.bounds.clamp(pace), now);
    }

    /// Returns the number of packets that may be sent now.
    fn allowance(&self) -> f64 {
        let out = match self.parent.config.mode {
            Mode::Transit => self.parent.transit(),
            Mode::Own => self.parent.end.saturating_sub(self.parent.needed()),
        };
        self.window() - out as f64
    }

    /// Returns whether the window limits the session.
    fn usage(&self, now: Time) -> Use {
        let starved = self.starved_at.is_some_and(|at| now.since(at) <= self.round());
        let closed = self.allowance() < 1.0;
        let limited = self.parent.config.sending.bounds.is_at_max(self.window_rate());
        if (starved || closed) && !limited { Use::Full } else { Use::Partial }
    }

    /// Updates rounds and pacing after an input that may have changed a window.
    fn settle(&mut self, now: Time) {
        if self.parent.window().slow_starts != self.slow_starts {
            // A round with lost packets is not timed (Karn's rule, RFC 6298, 3).
            (self.slow_starts, self.measured) = (self.parent.window().slow_starts, None);
        }
        if let Some((seq, at)) = self.measured
            && self.parent.has(Group::Session)
            && self.parent.low() > seq
        {
            self.measured = None;
            let sample = now.since(at);
            if sample <= MAX_ROUND {
                self.round.add(sample.as_secs_f64(), 0.0);
            }
        }
        let window = self.window();
        if window < self.least * (1.0 - CUT) {
            self.cuts += 1;
            self.starting = false;
        }
        self.starting &= self.parent.window().is_in_slow_start();
        self.least = window;
        self.parent.session_window = window;
        self.parent.session_round = self.round.mean().map_or(Span::ZERO, Span::from_secs_f64);
        self.adjust_pace(now);
    }

    fn start_again(&mut self, now: Time) {
        self.parent.start_again(now);
        self.round = Ewma::new(ROUND_GAIN);
        (self.measured, self.starved_at, self.starting) = (None, None, true);
        self.settle(now);
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.is_running = true;
        self.pacer.restart(cx.now);
        self.parent.started_at = cx.now;
    }

    fn departure(&self, layer: Layer) -> Departure {
        if layer != Layer(0) {
            return Departure::At(Time::NEVER);
        }
        let paced = self.pacer.departure();
        if self.parent.children.is_empty() {
            let alone = if self.parent.end == 0 { paced } else { self.last_departure + ALONE };
            return Departure::At(alone.max(paced));
        }
        if !self.parent.has_room(self.parent.end) {
            return Departure::AfterReport;
        }
        if self.allowance() >= 1.0 {
            return Departure::At(paced);
        }
        match self.parent.config.repair {
            Repair::Tree => Departure::AfterReport,
            Repair::Session => {
                let slowest = self.parent.config.sending.bounds.clamp(Rate::ZERO);
                let gap = slowest.span_of(u64::from(self.parent.config.sending.packet_size));
                Departure::At(paced.max(self.last_departure + gap))
            }
        }
    }

    fn on_departure(&mut self, _: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let now = cx.now;
        let seq = self.history.record(now);
        let stamp = |source: &Source| Stamp {
            seq,
            rate: source.rate(),
            flags: Flags::default(),
            signal: Signal::None,
            mark: source.parent.mark(),
        };
        if !self.is_running {
            return stamp(self);
        }
        let slot =
            Slot { sent_at: Some(now), here_at: now, local_at: Time::NEVER, size, payload: Payload::NONE };
        self.parent.put(seq.0, slot);
        // Sending to the local group is triggered by a deadline, which must be later than `now`.
        self.parent.wake_local(now + MIN_GAP);
        if self.measured.is_none() || self.parent.children.is_empty() {
            self.measured = Some((seq.0, now));
        }
        self.last_departure = now;
        self.pacer.book(now, size, self.round());
        if self.allowance() < 1.0 {
            self.starved_at = Some(now);
        }
        stamp(self)
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let now = cx.now;
        let echo = report.content.echo();
        if echo.seq >= self.history.next() {
            return;
        }
        if !self.is_running {
            if let Some(sample) = self.history.sample(echo, now).filter(|sample| *sample <= MAX_ROUND) {
                self.round.add(sample.as_secs_f64(), 0.0);
            }
            return;
        }
        let usage = self.usage(now);
        if self.parent.on_report(report, usage, now) {
            self.settle(now);
        }
        self.parent.pump(now, cx.effects);
    }

    fn deadline(&self) -> Time {
        if self.is_running { self.parent.deadline() } else { Time::NEVER }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if !self.is_running || now < self.parent.deadline() {
            return;
        }
        self.parent.on_deadline(now);
        self.settle(now);
        self.parent.pump(now, cx.effects);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Forget(receiver) => self.parent.forget(receiver, now),
            SourceControl::Members(members) => self.parent.expect(members),
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Limits(bounds) => self.parent.config.sending.bounds = bounds,
            // A sign of life has no effect: timeouts detect a silent group, and only acknowledgements open windows.
            SourceControl::SignOfLife => return,
        }
        self.settle(now);
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.rate(),
            rtt: self.round(),
            limiting: self.parent.limiting(),
            level: None,
            rtt_max: self.round(),
            cuts: self.cuts,
            tally: Tally {
                indications: self.parent.losses,
                events: self.parent.window().cuts,
                followed: self.cuts,
            },
            starting: self.starting,
        }
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= MAX_ROUND)
    }

    fn windows(&self) -> Option<Windows> {
        Some(self.parent.windows())
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn parent(&self) -> &Parent {
        &self.parent
    }
}
