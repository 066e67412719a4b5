//! The toy scheme's source.

use super::config::Config;
use crate::node::{SourceControl, Cx, Departure, Observation, Stamp, Tally};
use crate::packet::{Layer, Mark, Report, ReportContent, Signal};
use crate::rate::{Growth, SendController};
use crate::time::{Rate, Span, Time};

/// The source of the toy scheme.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    controller: SendController,
    rtt: Span,
    tick_at: Time,
    cut_at: Time,
    cuts: u64,
}

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        Source {
            config,
            controller: SendController::new(config.sending),
            rtt: config.sending.initial_rtt,
            tick_at: Time::NEVER,
            cut_at: Time::ZERO,
            cuts: 0,
        }
    }

    fn cut(&mut self, now: Time) {
        self.controller.end_start_up();
        if now >= self.cut_at + self.rtt {
            self.controller.set_rate(self.controller.rate() * self.config.keep, now);
            (self.cut_at, self.cuts) = (now, self.cuts + 1);
        }
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        self.tick_at = cx.now + self.rtt;
    }

    fn departure(&self, layer: Layer) -> Departure {
        Departure::At(if layer == Layer(0) { self.controller.departure() } else { Time::NEVER })
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        if self.controller.resume(cx.now).is_some() {
            self.tick_at = cx.now + self.rtt;
        }
        let departed = self.controller.depart(size, self.rtt, cx.now);
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal: Signal::None, mark: Mark::None }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from, echo) = (cx.now, report.from, report.content.echo());
        if !self.controller.has_left(echo) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(echo.seq, now);
        let sample = self.controller.sample(echo, now);
        if let Some(sample) = sample {
            self.rtt = (self.rtt * 7 + sample) / 8;
            self.controller.on_rtt(from, sample, now);
        }
        match (report.content, sample) {
            (ReportContent::Lost { first: lost, .. }, _) if self.controller.is_of_interruption(lost) => {}
            (ReportContent::Lost { .. } | ReportContent::Congested { .. }, _) => self.cut(now),
            (ReportContent::Received { rate, loss, .. }, _) => {
                self.controller.on_received(from, echo, Rate::from_bps(f64::from(rate)), loss, now);
            }
            (_, Some(sample)) => self.controller.on_alive(from, sample, now),
            _ => {}
        }
    }

    fn deadline(&self) -> Time {
        if self.controller.is_idle() { self.tick_at } else { self.tick_at.min(self.controller.deadline()) }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            let next = self.tick_at + self.rtt;
            self.tick_at = if next > now { next } else { now + self.rtt };
            if self.controller.watch(self.rtt, now) == Growth::Allowed {
                let step = Rate::of(u64::from(self.config.sending.packet_size), self.rtt);
                self.controller.set_rate(self.controller.rate() + step, now);
            }
        }
        if self.controller.is_idle() {
            self.tick_at = self.controller.rest_until(self.tick_at);
            return;
        }
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        if control == SourceControl::StartAgain {
            self.controller.start_again(now);
            self.tick_at = now + self.rtt;
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.controller.pace(),
            rtt: self.rtt,
            limiting: None,
            level: None,
            rtt_max: self.controller.rtt_max(),
            cuts: self.cuts,
            tally: Tally { indications: self.cuts, events: self.cuts, followed: self.cuts },
            starting: self.controller.is_starting(),
        }
    }
}
