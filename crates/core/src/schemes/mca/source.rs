//! MCA's source: one of two filters, and the rate.

use super::bin::{Bin, Verdict};
use super::config::{Config, Gate, Mode};
use super::er::{Er, Situation};
use crate::estimate::{ControlClock, Ewma};
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::{CutGate, Growth, SendController};
use crate::time::{Rate, Span, Time};

/// The source of an MCA session.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    controller: SendController,
    control: ControlClock,
    filter: Filter,
    /// "RTT" and "sigma", in seconds.
    rtt: Ewma,
    /// Counts cuts; for Bin-CI also the last filter, "ATF".
    gate: CutGate,
    /// When a report or event last passed the filter: until a round-trip time later there is no growth.
    congested_at: Option<Time>,
    last_report: Option<(ReceiverId, Seq)>,
    tick_at: Time,
    tally: Tally,
}

#[derive(Debug, Clone)]
enum Filter {
    Bin(Bin),
    Er(Er),
}

const RTT_GAIN: f64 = 0.125;
/// Deviations in "SRTT", which is the period of growth and not a mean (seed 000, D.2, footnote 36).
const SRTT: u64 = 2;
/// Deviations in the last filter of Bin-CI.
const ATF: u64 = 4;

impl Filter {
    fn new(config: &Config) -> Filter {
        let sending = &config.sending;
        match config.mode {
            Mode::Bin => Filter::Bin(Bin::new(Rate::of(u64::from(sending.packet_size), sending.initial_rtt))),
            Mode::Er => Filter::Er(Er::new()),
        }
    }
}

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        Source {
            config,
            controller: SendController::new(config.sending),
            control: ControlClock::new(config.measuring.interval),
            filter: Filter::new(&config),
            rtt: Ewma::new(RTT_GAIN),
            gate: CutGate::default(),
            congested_at: None,
            last_report: None,
            tick_at: Time::NEVER,
            tally: Tally::default(),
        }
    }

    /// A receiver left or is excluded.
    fn forget(&mut self, receiver: ReceiverId) {
        match &mut self.filter {
            Filter::Bin(bin) => bin.forget(receiver),
            Filter::Er(er) => er.forget(receiver),
        }
    }

    /// The group is another one now.
    fn start_again(&mut self, now: Time) {
        self.filter = Filter::new(&self.config);
        self.rtt = Ewma::new(RTT_GAIN);
        self.controller.start_again(now);
        self.tick_at = now + self.srtt();
    }

    /// "RTT"; before a sample, what is assumed.
    fn mean_rtt(&self) -> Span {
        let mean = self.rtt.mean().map(Span::from_secs_f64);
        mean.unwrap_or(self.controller.rtt_max()).max(self.config.sending.shortest_rtt)
    }

    fn with_deviations(&self, deviations: u64) -> Span {
        self.mean_rtt() + Span::from_secs_f64(self.rtt.deviation()) * deviations
    }

    fn srtt(&self) -> Span {
        self.with_deviations(SRTT)
    }

    /// What a round-trip time adds to the rate: "S / SRTT".
    fn step(&self) -> Rate {
        Rate::of(u64::from(self.config.sending.packet_size), self.srtt())
    }

    /// The receiver that limits the rate, as far as the filter knows one.
    fn limiting(&self) -> Option<ReceiverId> {
        match &self.filter {
            Filter::Bin(bin) => bin.leader(),
            Filter::Er(er) => er.followed(),
        }
    }

    /// Every SRTT.
    // Seed gap: D.2 lets the rate grow while there is "no CE", D.3 also while reports are filtered out. Events that
    // MaxLPRF drops would stop all growth of a large group, so growth stops for those that pass.
    fn tick(&mut self, now: Time) {
        let srtt = self.srtt();
        let next = self.tick_at + srtt;
        self.tick_at = if next > now { next } else { now + srtt };
        let calm = self.congested_at.is_none_or(|at| now.since(at) >= srtt);
        let growth = self.controller.watch(srtt, now);
        let step = self.step();
        if let Filter::Bin(bin) = &mut self.filter {
            bin.decay(srtt, now);
        }
        if growth == Growth::Allowed && calm {
            self.controller.set_rate(self.controller.rate() + step, now);
            if let Filter::Bin(bin) = &mut self.filter {
                bin.on_increment(step);
            }
        }
    }

    // Seed gap: D.2 takes round-trip samples from reports of congestion only. Where a transport's receivers also show
    // that they are there, those of the limiting one count too.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller.sample(echo, now) else { return };
        let limiting = self.limiting();
        if limiting == Some(from) || (limiting.is_none() && !self.controller.is_starting()) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
        self.controller.on_alive(from, sample, now);
    }

    fn on_congested(&mut self, from: ReceiverId, echo: Echo, egress: Rate, cx: &mut Cx<'_>) {
        if self.last_report == Some((from, echo.seq)) || !egress.is_usable() {
            return;
        }
        self.last_report = Some((from, echo.seq));
        if self.controller.is_of_interruption(echo.seq) {
            return;
        }
        self.tally.indications += 1;
        if let Some(sample) = self.controller.sample(echo, cx.now) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
            self.controller.on_rtt(from, sample, cx.now);
        }
        let starting = self.controller.is_starting();
        self.controller.end_start_up();
        match self.config.mode {
            Mode::Bin => self.on_binary(from, cx),
            Mode::Er => self.on_explicit(from, egress, cx.now),
        }
        if starting {
            // Doubling may have gone far beyond the path: whatever the filter, go back to what arrived.
            let settled = self.controller.rate().min(egress * self.config.beta);
            self.controller.set_rate(settled, cx.now);
            self.congested_at = Some(cx.now);
        }
    }

    /// D.2: three filters, then a decrease that also takes back what was added since the event that should have
    /// passed.
    // Seed gap: D.2 prints that ATF passes an event when the latest one passed at most RTT + 4 sigma ago. It would then
    // never pass one again after a pause; LE-SBCC's filter and the next sentence of D.2 are the other way round.
    fn on_binary(&mut self, from: ReceiverId, cx: &mut Cx<'_>) {
        let (rate, window, epoch, least) =
            (self.controller.rate(), self.srtt(), self.with_deviations(ATF), self.step());
        let Filter::Bin(bin) = &mut self.filter else { return };
        match bin.on_report(from, rate, window, cx.now, cx.rng) {
            Verdict::Known => {}
            Verdict::Dropped => self.tally.events += 1,
            Verdict::Passed => {
                self.tally.events += 1;
                self.tally.followed += 1;
                self.congested_at = Some(cx.now);
                if self.gate.is_open(cx.now, epoch) {
                    // Seed gap: D.2's decrease may reach zero and below. Here a packet per SRTT is the least.
                    let lowered =
                        bin.lowered(rate, self.config.beta, self.config.excess).max(least).min(rate);
                    self.gate.close(cx.now);
                    self.controller.set_rate(lowered, cx.now);
                }
            }
        }
    }

    /// D.3: follow one receiver down to a part of its egress rate.
    fn on_explicit(&mut self, from: ReceiverId, egress: Rate, now: Time) {
        let (rate, srtt) = (self.controller.rate(), self.srtt());
        let at = Situation {
            rate,
            rtt: self.mean_rtt(),
            deviation: Span::from_secs_f64(self.rtt.deviation()),
            step: self.step(),
            now,
        };
        let Filter::Er(er) = &mut self.filter else { return };
        if !er.accept(from, egress, at) {
            return;
        }
        self.tally.events += 1;
        self.tally.followed += 1;
        self.congested_at = Some(now);
        let lowered = egress * self.config.beta;
        let open = self.config.gate == Gate::Off || self.gate.is_open(now, srtt);
        if open && lowered.bps() < rate.bps() {
            self.gate.close(now);
            self.controller.set_rate(lowered, now);
        }
    }

    fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        self.controller.on_received(from, echo, rate, loss, now);
        self.on_alive(from, echo, now);
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.controller.start(cx.now);
        self.tick_at = cx.now + self.srtt();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.controller.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        if self.controller.resume(cx.now).is_some() {
            self.tick_at = cx.now + self.srtt();
        }
        let rtt = self.mean_rtt();
        let gap = self.controller.pace().span_of(u64::from(size));
        let signal = self.control.on_departure(gap, rtt, cx.now);
        let rtt_max = self.controller.rtt_max().as_secs_f64() as f32;
        let departed = self.controller.depart(size, rtt, cx.now);
        let id = self.limiting();
        let (mean, deviation) = match &self.filter {
            Filter::Er(er) => {
                let mean = er.egress().mean().map_or(f32::INFINITY, |mean| mean as f32);
                (mean, er.egress().deviation() as f32)
            }
            Filter::Bin(_) => (f32::INFINITY, 0.0),
        };
        let mark = Mark::Representative { id, mean, deviation, rtt_max };
        Stamp { seq: departed.seq, rate: departed.rate, flags: departed.flags, signal, mark }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        if !self.controller.has_left(report.content.echo()) || self.controller.is_probed(report, now) {
            return;
        }
        self.controller.on_arrived(report.content.echo().seq, now);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.forget(from),
            ReportContent::Congested {
                echo,
                level,
                cause: Cause::Accumulation | Cause::Loss | Cause::Mark,
                ..
            } => self.on_congested(from, echo, bps(level), cx),
            ReportContent::Alive { echo }
            | ReportContent::Selective { echo, .. }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.on_alive(from, echo, now);
            }
            ReportContent::Received { echo, rate, loss } => {
                self.on_received(from, echo, bps(rate), loss, now)
            }
            _ => {} // this scheme's receivers do not say it
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
            self.tick(now);
        }
        if self.controller.is_idle() {
            self.tick_at = self.controller.rest_until(self.tick_at);
            return;
        }
        self.controller.on_deadline(now);
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        self.controller.control(control, now);
        match control {
            SourceControl::Forget(receiver) => self.forget(receiver),
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Members(_) | SourceControl::Limits(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        let level = match &self.filter {
            Filter::Er(er) => er.egress().mean().map(Rate::from_bps),
            Filter::Bin(_) => None,
        };
        Observation {
            rate: self.controller.pace(),
            rtt: self.mean_rtt(),
            limiting: self.limiting(),
            level,
            rtt_max: self.controller.rtt_max(),
            cuts: self.gate.cuts(),
            tally: self.tally,
            starting: self.controller.is_starting(),
        }
    }
}
