//! MCA's source: applies one of two filters to reports, and sets the rate.

use super::bin::{Bin, Verdict};
use super::config::{Config, Gate, Mode};
use super::er::{Er, Situation};
use crate::estimate::{ControlClock, Ewma};
use crate::node::{Cx, Observation, Tally};
use crate::packet::{Cause, Echo, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{CutGate, Growth, SendController};
use crate::schemes::paced::{PacedPolicy, PacedSource};
use crate::time::{Rate, Span, Time};

/// The source of an MCA session.
pub type Source = PacedSource<Policy>;

/// The decisions of an MCA source.
#[derive(Debug, Clone)]
pub struct Policy {
    config: Config,
    controller: SendController,
    control: ControlClock,
    filter: Filter,
    /// "RTT" and "sigma", in seconds.
    rtt: Ewma,
    /// Counts cuts. For Bin-CI the gate is also the last filter, "ATF".
    gate: CutGate,
    /// Time at which the latest report or event passed the filter. During the round-trip time after it, the rate does not grow.
    congested_at: Option<Time>,
    last_report: Option<(ReceiverId, Seq)>,
    tally: Tally,
}

#[derive(Debug, Clone)]
enum Filter {
    Bin(Bin),
    Er(Er),
}

const RTT_GAIN: f64 = 0.125;
/// Number of deviations in the period "SRTT", in which the rate grows by one step. It is not a mean, in spite of its name (paper
/// 000, D.2, footnote 36).
const SRTT: u64 = 2;
/// Number of deviations in the period of Bin-CI's last filter.
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

impl Policy {
    fn with_deviations(&self, deviations: u64) -> Span {
        self.rtt() + Span::from_secs_f64(self.rtt.deviation()) * deviations
    }

    fn srtt(&self) -> Span {
        self.with_deviations(SRTT)
    }

    /// Returns the increase of the rate per round-trip time, "S / SRTT".
    fn step(&self) -> Rate {
        Rate::of(u64::from(self.config.sending.packet_size), self.srtt())
    }

    /// Returns the receiver that limits the rate; `None` if the filter follows no receiver.
    fn limiting(&self) -> Option<ReceiverId> {
        match &self.filter {
            Filter::Bin(bin) => bin.leader(),
            Filter::Er(er) => er.followed(),
        }
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
        let reached = self.controller.cut_from(egress, cx.now);
        match self.config.mode {
            Mode::Bin => self.on_binary(from, cx),
            Mode::Er => self.on_explicit(from, egress, reached, cx.now),
        }
        if starting {
            // Doubling may have far exceeded the path's capacity. With either filter, the rate returns to the arrival rate.
            let settled = self.controller.rate().min(reached * self.config.beta);
            self.controller.set_rate(settled, cx.now);
            self.congested_at = Some(cx.now);
        }
    }

    /// D.2: applies three filters, then a decrease. The decrease also cancels the growth of the rate since the moment when an
    /// event should have passed.
    // Paper gap: in D.2 as printed, ATF passes an event when the latest one passed at most RTT + 4 sigma ago. After a pause it
    // would never pass an event again. LE-SBCC's filter and the next sentence of D.2 have the opposite condition, which is used
    // here.
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
                    // Paper gap: D.2's decrease may reach zero or a negative rate. Here the minimum is a packet per SRTT.
                    let lowered =
                        bin.lowered(rate, self.config.beta, self.config.excess).max(least).min(rate);
                    self.gate.close(cx.now);
                    self.controller.set_rate(lowered, cx.now);
                }
            }
        }
    }

    /// D.3: follows one receiver and lowers the rate to a fraction of `reached`: that receiver's egress rate, or the higher rate of
    /// a limited application ([`SendController::cut_from`]).
    fn on_explicit(&mut self, from: ReceiverId, egress: Rate, reached: Rate, now: Time) {
        let (rate, srtt) = (self.controller.rate(), self.srtt());
        let at = Situation {
            rate,
            rtt: self.rtt(),
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
        let lowered = reached * self.config.beta;
        let open = self.config.gate == Gate::Off || self.gate.is_open(now, srtt);
        if open && lowered.bps() < rate.bps() {
            self.gate.close(now);
            self.controller.set_rate(lowered, now);
        }
    }
}

impl PacedPolicy for Policy {
    type Config = Config;

    fn new(config: Config) -> Policy {
        Policy {
            config,
            controller: SendController::new(config.sending),
            control: ControlClock::new(config.measuring.interval),
            filter: Filter::new(&config),
            rtt: Ewma::new(RTT_GAIN),
            gate: CutGate::default(),
            congested_at: None,
            last_report: None,
            tally: Tally::default(),
        }
    }

    fn controller(&self) -> &SendController {
        &self.controller
    }

    fn controller_mut(&mut self) -> &mut SendController {
        &mut self.controller
    }

    /// Returns "RTT"; before the first sample, the assumed round-trip time.
    fn rtt(&self) -> Span {
        self.controller.rtt_or_max(self.rtt.mean().map(Span::from_secs_f64))
    }

    fn period(&self) -> Span {
        self.srtt()
    }

    fn stamp(&mut self, size: u16, now: Time) -> (Signal, Mark) {
        let gap = self.controller.pace().span_of(u64::from(size));
        let signal = self.control.on_departure(gap, self.rtt(), now);
        let (mean, deviation) = match &self.filter {
            Filter::Er(er) => {
                let mean = er.egress().mean().map_or(f32::INFINITY, |mean| mean as f32);
                (mean, er.egress().deviation() as f32)
            }
            Filter::Bin(_) => (f32::INFINITY, 0.0),
        };
        let rtt_max = self.controller.rtt_max().as_secs_f64() as f32;
        (signal, Mark::Representative { id: self.limiting(), mean, deviation, rtt_max })
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        match report.content {
            ReportContent::Congested {
                echo,
                level,
                cause: Cause::Accumulation | Cause::Loss | Cause::Mark,
                ..
            } => self.on_congested(report.from, echo, Rate::from_bps(f64::from(level)), cx),
            ReportContent::Selective { echo, .. } => self.on_alive(report.from, echo, cx.now),
            _ => {} // this scheme's receivers do not send it
        }
    }

    /// Raises the rate, every SRTT.
    // Paper gap: D.2 lets the rate grow while there is "no CE", D.3 also while reports are filtered out. In a large group, events
    // that MaxLPRF drops would stop all growth, so only events that pass stop it.
    fn on_tick(&mut self, srtt: Span, now: Time) {
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

    fn forget(&mut self, receiver: ReceiverId, _now: Time) {
        match &mut self.filter {
            Filter::Bin(bin) => bin.forget(receiver),
            Filter::Er(er) => er.forget(receiver),
        }
    }

    fn on_start_again(&mut self, _now: Time) {
        self.filter = Filter::new(&self.config);
        self.rtt = Ewma::new(RTT_GAIN);
    }

    fn observe(&self, seen: Observation) -> Observation {
        let level = match &self.filter {
            Filter::Er(er) => er.egress().mean().map(Rate::from_bps),
            Filter::Bin(_) => None,
        };
        Observation { limiting: self.limiting(), level, cuts: self.gate.cuts(), tally: self.tally, ..seen }
    }

    // Paper gap: D.2 takes round-trip samples from congestion reports only. If a transport's receivers also send signs of life,
    // those of the limiting receiver count too.
    fn on_sample(&mut self, from: ReceiverId, sample: Span) {
        let limiting = self.limiting();
        if limiting == Some(from) || (limiting.is_none() && !self.controller.is_starting()) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
    }
}
