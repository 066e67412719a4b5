//! State of one layer at the source: its representative, its rate, and whether the layer is switched on (paper 000, 4.1.2 and
//! 4.1.3).

use super::acks::{Acknowledged, Halved};
use super::conditions::Estimate;
use super::config::{Config, Joins, LayerScheme, Timed};
use crate::estimate::Ewma;
use crate::node::{Departure, Tally};
use crate::packet::{Echo, Layer, LayerState, LayerStates, Mark, ReceiverId, Seq, ShortId};
use crate::rate::{
    AnyPolicy, Bounds, Congestion, CutGate, Growth, Operating, RatePolicy, SendController, Sending,
};
use crate::time::{Rate, Span, Time};

/// The state of one layer. Its size does not depend on the number of receivers.
#[derive(Debug)]
pub(super) struct LayerControl {
    mode: Mode,
    pub(super) controller: SendController,
    policy: AnyPolicy,
    /// PGMCC's window. With [`LayerScheme::Pgmcc`] it replaces the policy.
    acks: Option<Box<Acknowledged>>,
    keep: f64,
    on_throughput: bool,
    /// Determines whether a cut is calculated from the rate of this layer, or of all layers that the reporting receiver has
    /// joined.
    joins: Joins,
    /// Number of samples in each statistic, "N".
    wanted: u8,
    min_beat: Span,
    timed: Timed,
    /// The present or last representative.
    representative: Option<Representative>,
    rtt: Ewma,
    updates: u8,
    /// Arrival time of the latest report of the representative.
    received_at: Time,
    pub(super) gate: CutGate,
    tick_at: Time,
    last_loss: Option<(ReceiverId, Seq)>,
    /// The part of the controller's rate that was shifted to the layer, in bit/s; negative if it was shifted away.
    shift: f64,
    pub(super) tally: Tally,
}

/// The state of a layer at the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Nothing is sent.
    Off,
    /// The rate follows the representative. Only the base layer may have no representative yet.
    On,
    /// The representative is silent, so all receivers are requested to report.
    Seek { since: Time },
    /// No receiver answered the request, so one packet is sent per round-trip time.
    Low { since: Time },
}

/// A representative, and the content of its newest report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Representative {
    pub(super) id: ReceiverId,
    /// Mean "Theta" and standard deviation "Theta^sigma" of "n" samples.
    pub(super) mean: f64,
    pub(super) deviation: f64,
    pub(super) samples: u16,
    /// Arrival rate of the layer at the representative, if it was reported.
    pub(super) rate: Option<Rate>,
}

/// Whether a report has lowered the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateChange {
    Nothing,
    Cut,
}

/// A report of losses, or a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Loss,
    Heartbeat,
}

/// Numbers of missed heartbeats before each step: `SILENT` before all receivers are requested to report, `SEEKING` more before
/// the rate is lowered, and `LOW` more before the layer is switched off.
const SILENT: u64 = 8;
const SEEKING: u64 = 4;
const LOW: u64 = 20;
const RTT_GAIN: f64 = 0.125;
/// With early joins: number of samples that a receiver needs to replace the representative.
pub(super) const SOON: u16 = 3;
/// Ratio of the rate after a cut to the rate before it, as in the paper.
const HALF: f64 = 0.5;

impl Representative {
    /// Returns the statistics as an estimate for comparisons.
    pub(super) fn estimate(&self) -> Estimate {
        let count = f64::from(self.samples.max(1));
        Estimate { mean: self.mean, error: self.deviation / count.sqrt() }
    }

    /// Returns whether the statistics are empty.
    fn knows_nothing(&self) -> bool {
        self.samples == 0 || self.mean <= 0.0
    }
}

impl LayerControl {
    /// Creates a layer that is off.
    pub(super) fn new(config: &Config, sending: Sending) -> LayerControl {
        let on_throughput = config.control == LayerScheme::Ormcc;
        LayerControl {
            mode: Mode::Off,
            controller: SendController::new(sending),
            policy: config.policy_choice().policy_after(sending.start),
            acks: (config.control == LayerScheme::Pgmcc).then(|| Box::new(Acknowledged::new(config))),
            keep: if on_throughput { config.beta } else { HALF },
            on_throughput,
            joins: config.joins,
            wanted: config.samples,
            min_beat: config.min_beat,
            timed: config.timed,
            representative: None,
            rtt: Ewma::new(RTT_GAIN),
            updates: 0,
            received_at: Time::ZERO,
            gate: CutGate::default(),
            tick_at: Time::NEVER,
            last_loss: None,
            shift: 0.0,
            tally: Tally::default(),
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Returns whether the layer is on, past its start-up, and has a rate that can be shifted.
    // Paper gap: 4.1.4.3 shifts rates. A layer that is controlled by a window has no rate of the policy, and shifts nothing.
    pub(super) fn is_steady(&self) -> bool {
        self.is_on() && !self.controller.is_starting() && self.acks.is_none()
    }

    pub(super) fn departure(&self) -> Departure {
        match &self.acks {
            Some(acks) if !acks.has_token() => Departure::AfterReport,
            _ => Departure::At(self.controller.departure()),
        }
    }

    pub(super) fn deadline(&self, layer: Layer) -> Time {
        let timeout = self.acks.as_ref().map_or(Time::NEVER, |acks| acks.deadline());
        if self.controller.is_idle() {
            return self.tick_at.min(timeout);
        }
        self.tick_at.min(self.step_at(layer)).min(self.controller.deadline()).min(timeout)
    }

    pub(super) fn on_deadline(&mut self, layer: Layer, now: Time) {
        if now < self.deadline(layer) {
            return;
        }
        if let Some(acks) = &mut self.acks
            && now >= acks.deadline()
        {
            acks.time_out();
            self.gate.close(now);
            self.follow_window(now);
        }
        if now >= self.tick_at {
            self.tick(now);
        }
        if !self.controller.is_idle() {
            self.controller.on_deadline(now);
            self.step(layer, now);
        }
    }

    /// Switches the base layer on at the start of the session, without a representative.
    pub(super) fn open_session(&mut self, now: Time) {
        self.mode = Mode::On;
        self.controller.start(now);
        self.tick_at = now + self.control_rtt();
    }

    /// Switches the layer on at the request of a receiver. The receiver becomes the layer's representative (paper 000, 4.1.3).
    pub(super) fn switch_on(&mut self, config: &Config, from: ReceiverId, rtt: Span, now: Time) {
        self.mode = Mode::On;
        self.policy = config.policy_choice().policy_after(config.sending.start);
        self.rtt = Ewma::new(RTT_GAIN);
        self.controller.begin(rtt, now);
        self.tick_at = now + self.control_rtt();
        self.shift = 0.0;
        if let Some(acks) = &mut self.acks {
            acks.restart();
        }
        let nothing = Representative { id: from, mean: 0.0, deviation: 0.0, samples: 0, rate: None };
        self.follow(nothing, None, now);
    }

    /// Switches the layer off, because it has no receivers.
    fn switch_off(&mut self) {
        self.mode = Mode::Off;
        self.representative = None;
        self.tick_at = Time::NEVER;
        self.shift = 0.0;
    }

    /// Returns the representative if the layer currently follows it.
    pub(super) fn followed(&self) -> Option<&Representative> {
        self.representative.as_ref().filter(|_| self.mode == Mode::On)
    }

    /// Returns the layer's state, as sent in headers.
    pub(super) fn standing(&self) -> LayerState {
        match (self.mode, self.followed()) {
            (Mode::Off, _) => LayerState::Off,
            (_, Some(followed)) if followed.samples >= u16::from(self.wanted) => LayerState::Settled,
            (_, Some(_)) => LayerState::Followed,
            (_, None) => LayerState::Open,
        }
    }

    /// Returns the mark that packets of the layer carry.
    // Paper gap: 4.1.2 broadcasts the statistics of representatives. Here each packet carries the statistics of its own layer.
    // For all layers, packets state only whether they are on and have a representative, and the rate of the next higher layer.
    // Receivers that have not joined a layer need nothing else.
    pub(super) fn mark(&self, above: Rate, states: LayerStates) -> Mark {
        let (id, estimate) = match self.followed() {
            Some(followed) => (Some(followed.id), followed.estimate()),
            None => (None, Estimate { mean: f64::INFINITY, error: 0.0 }),
        };
        Mark::Layered {
            id: id.and_then(ShortId::of),
            mean: estimate.mean as f32,
            error: estimate.error as f32,
            rtt: self.control_rtt().as_secs_f64() as f32,
            above: (above.bps() as f32).into(),
            updates: self.updates,
            states,
        }
    }

    /// Returns the layer's "SRTT": the representative's smoothed round-trip time. Before its first sample, returns the largest
    /// round-trip time of the group. If that is unknown too, returns the assumed round-trip time.
    pub(super) fn control_rtt(&self) -> Span {
        self.controller.rtt_or_max(self.rtt.mean().map(Span::from_secs_f64))
    }

    /// Returns the interval between heartbeats of the representative.
    fn beat(&self) -> Span {
        self.control_rtt().max(self.min_beat)
    }

    /// Returns the rate that the layer's policy has set, without the shifted part.
    pub(super) fn lambda(&self) -> Rate {
        Rate::from_bps((self.controller.rate().bps() - self.shift).max(1.0))
    }

    fn set_lambda(&mut self, lambda: Rate, now: Time) {
        self.controller.set_rate(Rate::from_bps(lambda.bps() + self.shift), now);
    }

    /// Sets the rate that is shifted to the layer, in bit/s. The rate is negative for the layer that loses bandwidth.
    pub(super) fn set_shift(&mut self, shift: f64, now: Time) {
        if shift != self.shift {
            let lambda = self.lambda().bps();
            self.controller.set_rate(Rate::from_bps(lambda + shift), now);
            self.shift = self.controller.rate().bps() - lambda;
        }
    }

    fn operating(&self) -> Operating {
        Operating {
            rate: self.lambda(),
            rtt: self.control_rtt(),
            full_rtt: self.control_rtt(),
            deviation: Span::from_secs_f64(self.rtt.deviation()),
            packet_size: self.controller.config().packet_size,
        }
    }

    /// Sets the rate from the window, if the layer is controlled by a window.
    fn follow_window(&mut self, now: Time) {
        if let Some(acks) = &self.acks {
            let rate = acks.rate(self.controller.config().packet_size, self.control_rtt());
            self.set_lambda(rate, now);
        }
    }

    /// Handles an acknowledgement.
    pub(super) fn on_selective(
        &mut self,
        from: ReceiverId,
        echo: Echo,
        bitmap: u32,
        now: Time,
    ) -> RateChange {
        self.on_alive(from, echo, now);
        let rtt = self.control_rtt();
        let sample = self.controller.sample(echo, now);
        let is_followed = self.followed().is_some_and(|followed| followed.id == from);
        let Some(acks) = &mut self.acks else { return RateChange::Nothing };
        if is_followed {
            self.received_at = now;
        }
        let halved = acks.on_selective(from, echo.seq, bitmap, sample.filter(|_| is_followed), rtt, now);
        self.follow_window(now);
        match halved {
            Halved::No => RateChange::Nothing,
            Halved::Yes => {
                self.gate.close(now);
                RateChange::Cut
            }
        }
    }

    /// Records a sent packet.
    pub(super) fn on_departure(&mut self, now: Time) {
        self.policy.on_departure();
        let id = self.followed().map(|followed| followed.id);
        if let Some(acks) = &mut self.acks {
            acks.on_departure(id, now);
        }
        let Some(pause) = self.controller.resume(now) else { return };
        self.received_at += pause;
        if let Mode::Seek { since } | Mode::Low { since } = &mut self.mode {
            *since += pause;
        }
        self.tick_at = now + self.control_rtt();
    }

    /// Performs the update that is due once per round-trip time (paper 000, 4.1.2).
    fn tick(&mut self, now: Time) {
        let rtt = self.control_rtt();
        let next = self.tick_at + rtt;
        self.tick_at = if next > now { next } else { now + rtt };
        let growth = self.controller.watch(rtt, now);
        let grows = matches!(self.mode, Mode::On | Mode::Seek { .. });
        if growth == Growth::Allowed && grows && self.acks.is_none() && self.gate.is_open(now, rtt) {
            let raised = self.policy.on_tick(self.operating());
            self.set_lambda(raised, now);
        }
        if self.controller.is_idle() {
            self.tick_at = self.controller.rest_until(self.tick_at);
        }
    }

    /// Returns the time at which continued silence of the representative causes the next step.
    fn step_at(&self, layer: Layer) -> Time {
        if self.controller.is_idle() {
            return Time::NEVER;
        }
        match self.mode {
            Mode::On if self.representative.is_some() => self.received_at + self.beat() * SILENT,
            Mode::Seek { since } => since + self.beat() * SEEKING,
            Mode::Low { since } if layer.0 > 0 => since + self.beat() * LOW,
            _ => Time::NEVER,
        }
    }

    /// Performs the next step after a period of silence: requests reports of all receivers, lowers the rate, then switches the
    /// layer off (paper 000, 4.1.3). The base layer is never switched off.
    fn step(&mut self, layer: Layer, now: Time) {
        if now < self.step_at(layer) {
            return;
        }
        match self.mode {
            Mode::On => self.seek(now),
            Mode::Seek { .. } => {
                self.mode = Mode::Low { since: now };
                if let Some(acks) = &mut self.acks {
                    acks.restart();
                }
                let packet = u64::from(self.controller.config().packet_size);
                self.set_lambda(self.lambda().min(Rate::of(packet, self.beat())), now);
            }
            Mode::Low { .. } => self.switch_off(),
            Mode::Off => {}
        }
    }

    /// Sets the headers so that every receiver may report.
    fn seek(&mut self, now: Time) {
        self.mode = Mode::Seek { since: now };
    }

    /// Handles the departure of a receiver. If it was the representative, all receivers are requested to report.
    pub(super) fn forget(&mut self, receiver: ReceiverId, now: Time) {
        if self.followed().is_some_and(|followed| followed.id == receiver) {
            self.representative = None;
            self.seek(now);
        }
    }

    /// Restarts the layer after a change of the group.
    pub(super) fn start_again(&mut self, config: &Config, layer: Layer, now: Time) {
        if !self.is_on() {
            return;
        }
        if self.representative.take().is_some() {
            self.seek(now);
        }
        self.rtt = Ewma::new(RTT_GAIN);
        self.policy = config.policy_choice().policy_after(config.sending.start);
        if layer.0 == 0 {
            self.controller.start_again(now);
        }
        if let Some(acks) = &mut self.acks {
            acks.restart();
        }
        self.tick_at = now + self.control_rtt();
    }

    pub(super) fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        let lambda = self.lambda();
        self.shift = 0.0;
        self.controller.set_bounds(bounds, now);
        self.controller.set_rate(lambda, now);
    }

    /// Handles a receiver's report of its congestion level.
    pub(super) fn on_averaged(
        &mut self,
        report: Representative,
        kind: Kind,
        echo: Echo,
        below: Rate,
        now: Time,
    ) -> RateChange {
        if kind == Kind::Loss && self.last_loss == Some((report.id, echo.seq)) {
            return RateChange::Nothing;
        }
        let sample = self.controller.sample(echo, now);
        self.tally.indications += u64::from(kind == Kind::Loss);
        match self.followed().copied() {
            Some(followed) if followed.id == report.id => self.renew(followed, report, kind, sample, now),
            Some(followed) if !self.is_worse(&report, &followed) => return RateChange::Nothing,
            _ => self.follow(report, sample, now),
        }
        if let Some(sample) = sample {
            match kind {
                Kind::Loss => self.controller.on_rtt(report.id, sample, now),
                Kind::Heartbeat => self.controller.on_alive(report.id, sample, now),
            }
        }
        if kind == Kind::Heartbeat {
            return RateChange::Nothing;
        }
        self.last_loss = Some((report.id, echo.seq));
        if self.controller.is_of_interruption(echo.seq) {
            return RateChange::Nothing;
        }
        self.tally.events += 1;
        self.tally.followed += 1;
        self.cut(report.rate, below, now)
    }

    /// Returns whether the sender of `report` should replace the representative (paper 000, 4.1.2).
    fn is_worse(&self, report: &Representative, followed: &Representative) -> bool {
        if followed.knows_nothing() {
            return !report.knows_nothing();
        }
        let enough = match self.joins {
            Joins::Compared => u16::from(self.wanted),
            Joins::Early => SOON.min(self.wanted.into()),
        };
        report.samples >= enough && report.estimate().replaces(followed.estimate())
    }

    /// Handles a report of the representative.
    fn renew(
        &mut self,
        followed: Representative,
        report: Representative,
        kind: Kind,
        sample: Option<Span>,
        now: Time,
    ) {
        let changed = Representative { rate: None, ..followed } != Representative { rate: None, ..report };
        let counts = self.joins == Joins::Compared || kind == Kind::Loss;
        if changed && counts {
            self.count_update();
        }
        self.representative = Some(report);
        self.received_at = now;
        if let Some(sample) = sample
            && (kind == Kind::Loss || self.times_all())
        {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
    }

    /// Returns whether reports other than those of losses give samples of the round-trip time.
    fn times_all(&self) -> bool {
        self.timed == Timed::All || self.acks.is_some() || self.rtt.mean().is_none()
    }

    fn follow(&mut self, report: Representative, sample: Option<Span>, now: Time) {
        self.representative = Some(report);
        self.mode = Mode::On;
        self.received_at = now;
        self.count_update();
        if let Some(sample) = sample {
            self.rtt.restart(sample.as_secs_f64(), 0.0);
        }
        if let Some(acks) = &mut self.acks {
            acks.follow(sample, now);
        }
    }

    /// Counts an update of the statistics. The number zero is sent only before the first representative, so the count skips zero.
    fn count_update(&mut self) {
        self.updates = self.updates.checked_add(1).unwrap_or(1);
    }

    /// Cuts the rate, at most once per round-trip time (paper 000, 4.1.2).
    // Paper gap: 4.1.2 halves the rate of the layer. A receiver of several layers then loses less than half of its total rate.
    // With `Joins::Early`, half of the total is subtracted from its highest layer, down to a packet per round-trip time.
    fn cut(&mut self, throughput: Option<Rate>, below: Rate, now: Time) -> RateChange {
        self.controller.end_start_up();
        if self.acks.is_some() || !self.gate.is_open(now, self.control_rtt()) {
            return RateChange::Nothing;
        }
        let own = self.lambda();
        let throughput = throughput.filter(|_| self.on_throughput);
        let level = throughput.map_or(own, |level| self.controller.cut_from(level, now));
        let lowered = self.policy.on_congestion(self.operating(), Congestion { level, keep: self.keep });
        self.gate.close(now);
        let lowered = match self.joins {
            Joins::Compared => lowered,
            Joins::Early => {
                let kept = lowered.bps() / own.bps();
                let share = Rate::from_bps((own.bps() + below.bps()) * kept - below.bps());
                let packet = Rate::of(self.controller.config().packet_size.into(), self.control_rtt());
                lowered.min(share.max(packet))
            }
        };
        self.set_lambda(lowered, now);
        RateChange::Cut
    }

    /// Records that a receiver of the layer is alive.
    pub(super) fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.controller.sample(echo, now) else { return };
        if self.times_all() && self.followed().is_some_and(|followed| followed.id == from) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
        if let Mode::Low { .. } = self.mode {
            // The receivers have lost no packets recently, so the layer returns to its state before the first representative.
            (self.mode, self.representative) = (Mode::On, None);
        }
        self.controller.on_alive(from, sample, now);
    }

    #[cfg(test)]
    pub(super) fn mode(&self) -> Mode {
        self.mode
    }
}
