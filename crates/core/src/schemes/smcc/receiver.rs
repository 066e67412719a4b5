//! SMCC's receiver: calculates TCP's rate over all its layers, and reports for each layer the rate that the lower layers leave
//! (paper 000, 4.1).

use super::config::{Config, Joins, LAYERS, Lower};
use super::rejoin_delay::RejoinDelays;
use crate::node::{Cx, Effect, Effects, Receiver as _};
use crate::packet::{Arrival, Cause, Data, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::schemes::tfmcc;
use crate::time::{Rate, Span, Time};

/// A receiver of an SMCC session.
#[derive(Debug, Clone)]
pub struct Receiver(Box<ReceiverState>);

#[derive(Debug, Clone)]
struct ReceiverState {
    me: ReceiverId,
    config: Config,
    /// One rate calculator per subscribed layer. All calculators process the packets of all layers as one sequence, so they
    /// calculate the same rate. But each calculator reads only the headers of its own layer.
    calculators: Vec<tfmcc::Receiver>,
    seen: [Option<NewestPacket>; LAYERS],
    /// Number of packets of all layers so far, including lost ones: the packet number in the common sequence.
    packets: u64,
    /// Time for which the estimate has been above the rate needed for another layer.
    above: RoundsAbove,
    wait: Option<Wait>,
    /// Start of the period in which the estimate leaves too little rate for the highest layer.
    short_since: Option<Time>,
    visits: RejoinDelays,
    /// Number of times that losses were forgotten because no further losses followed.
    forgotten: u8,
    /// No layer is joined before this time, because no packets of a joined layer arrived.
    hold_until: Time,
    /// Effects requested by the calculators.
    effects: Effects,
}

const _: () = assert!(size_of::<Receiver>() <= 8);

/// The newest packet of a layer.
#[derive(Debug, Clone, Copy)]
struct NewestPacket {
    seq: Seq,
    at: Time,
    /// Sending rate stated in its header, bit/s.
    rate: f32,
}

/// The period in which the estimate exceeds the rate needed for another layer: its start, and the number of the highest layer's
/// feedback rounds that began in it.
#[derive(Debug, Clone, Copy, Default)]
struct RoundsAbove {
    round: Option<u8>,
    begun: u8,
    since: Option<Time>,
}

/// State of the requests for a layer from which no packet has arrived.
#[derive(Debug, Clone, Copy)]
struct Wait {
    asks: u8,
    next_at: Time,
}

/// Maximum number of requests for a layer without packets. After these requests the layer is left.
const MAX_ASKS: u8 = 20;
/// Minimum time between requests for a layer.
const ASK_EVERY: Span = Span::from_millis(100);
/// Duration without joins after no packets of a joined layer have arrived.
const HOLD_OFF: Span = Span::from_secs(30);
/// Duration of silence after which the highest layer counts as switched off, if other layers still arrive.
const SILENT_AFTER: Span = Span::from_secs(4);
/// Number of round-trip times after which a receiver without losses joins a layer.
const JOINS_AFTER: u64 = 4;
/// Number of round-trip times with too little remaining rate after which a layer is left. Leaving earlier would cost more than it
/// saves, because one loss event may lower the estimate for a moment.
const LEAVES_AFTER: u64 = 4;
/// Losses are forgotten after this number of round-trip times without further losses, but not before this duration. This happens
/// at most `MAX_FORGOTTEN` times, and only if the highest layer is at most `FORGETS_UP_TO`.
const QUIET: (u64, Span) = (8, Span::from_millis(500));
const MAX_FORGOTTEN: u8 = 2;
const FORGETS_UP_TO: u8 = 1;
/// With `Lower::Rates`, another layer is joined if TCP's rate exceeds the total rate of the layers by this factor.
const CLEARLY: f64 = 1.25;

impl Receiver {
    /// Creates a receiver that has received no packet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        let mut calculators = Vec::with_capacity(usize::from(config.layers));
        calculators.push(tfmcc::Receiver::new(me, &config.control));
        Receiver(Box::new(ReceiverState {
            me,
            config: *config,
            calculators,
            seen: [None; LAYERS],
            packets: 0,
            above: RoundsAbove::default(),
            wait: None,
            short_since: None,
            visits: RejoinDelays::default(),
            forgotten: 0,
            hold_until: Time::ZERO,
            effects: Effects::new(),
        }))
    }

    /// Returns the highest subscribed layer.
    pub fn level(&self) -> u8 {
        self.0.level()
    }

    /// Returns TCP's rate, calculated over all layers of this receiver.
    pub fn estimate(&self, now: Time) -> Rate {
        self.0.estimate(now)
    }
}

impl ReceiverState {
    fn level(&self) -> u8 {
        self.calculators.len() as u8 - 1
    }

    fn estimate(&self, now: Time) -> Rate {
        self.calculators[usize::from(self.level())].calculated(now)
    }

    /// Returns the total rate of the layers below `layer`, in bit/s.
    fn below(&self, layer: u8) -> f64 {
        let cap = self.config.cap_below(layer).bps();
        match self.config.lower {
            Lower::Caps => cap,
            Lower::Rates => {
                let seen = self.seen[..usize::from(layer)].iter().flatten();
                seen.map(|seen| f64::from(seen.rate)).sum::<f64>().min(cap)
            }
        }
    }

    /// Returns the rate that TCP's rate must exceed before another layer is joined.
    fn enough(&self) -> f64 {
        match self.config.lower {
            Lower::Caps => self.config.cap_up_to(self.level()).bps(),
            Lower::Rates => {
                let all = self.below(self.level() + 1);
                (all * CLEARLY).max(all + self.least(self.level() + 1))
            }
        }
    }

    /// Returns the minimum rate at which `layer` is sent, in bit/s.
    fn least(&self, layer: u8) -> f64 {
        if self.config.least > 0.0 { self.config.least_of(layer).bps() } else { 0.0 }
    }

    /// Returns the part of `rate` that the lower layers leave for `layer`.
    fn left_for(&self, layer: u8, rate: f64) -> f64 {
        (rate - self.below(layer)).max(self.config.least_of(layer).bps())
    }

    /// Calls a layer's calculator and sends its reports as reports of the layer.
    fn calculate(&mut self, layer: u8, cx: &mut Cx<'_>, act: impl FnOnce(&mut tfmcc::Receiver, &mut Cx<'_>)) {
        let mut effects = std::mem::take(&mut self.effects);
        let inner = &mut Cx { now: cx.now, rng: cx.rng, effects: &mut effects };
        act(&mut self.calculators[usize::from(layer)], inner);
        for effect in effects.drain() {
            if let (Effect::Report(report), Some(seen)) = (effect, self.seen[usize::from(layer)]) {
                cx.effects.push(Effect::Report(self.translated(report, layer, seen, cx.now)));
            }
        }
        self.effects = effects;
    }

    fn translated(&self, mut report: Report, layer: u8, seen: NewestPacket, now: Time) -> Report {
        report.layer = Layer(layer);
        *report.content.echo_mut() = Echo { seq: seen.seq, hold: now.since(seen.at) };
        if let ReportContent::Calculated { rate, .. } = &mut report.content {
            *rate = self.left_for(layer, f64::from(*rate)) as f32;
        }
        report
    }

    /// Converts the header of a layer for its calculator, which uses the total rate of all layers.
    fn header(&self, mark: Mark, layer: u8) -> Mark {
        match mark {
            Mark::Equation { suppress_above, rtt_max, round, to, echo, limiting } => {
                let suppress_above = suppress_above + self.below(layer) as f32;
                Mark::Equation { suppress_above, rtt_max, round, to, echo, limiting }
            }
            _ => Mark::None,
        }
    }

    /// Joins or leaves a layer, depending on the estimate. `round` is the feedback round of a packet of the highest layer.
    fn consider(&mut self, round: Option<u8>, cx: &mut Cx<'_>) {
        let (level, estimate) = (self.level(), self.estimate(cx.now).bps());
        if level > 0 && estimate < self.below(level) + self.least(level) {
            let since = *self.short_since.get_or_insert(cx.now);
            if cx.now >= since + self.calculators[usize::from(level)].rtt() * self.leaves_after() {
                return self.leave(cx);
            }
        } else {
            self.short_since = None;
        }
        let Some(round) = round else { return };
        let may_join = level + 1 < self.config.layers
            && self.wait.is_none()
            && cx.now >= self.hold_until
            && (self.config.joins == Joins::Rounds || self.visits.may_join(level + 1, cx.now));
        if !may_join || estimate <= self.enough() {
            self.above = RoundsAbove { round: Some(round), ..RoundsAbove::default() };
        } else if self.is_starting() {
            let calculator = &self.calculators[usize::from(level)];
            let since = *self.above.since.get_or_insert(cx.now);
            if cx.now >= since + calculator.rtt() * JOINS_AFTER {
                self.join(cx);
            }
        } else if self.above.round != Some(round) {
            let begun = self.above.round.map_or(0, |_| self.above.begun + 1);
            self.above = RoundsAbove { round: Some(round), begun, ..self.above };
            // The second round begins, so the estimate was above the limit during the whole first round.
            if begun >= 2 {
                self.join(cx);
            }
        }
    }

    /// Returns the number of round-trip times with too little remaining rate before a layer is left.
    fn leaves_after(&self) -> u64 {
        if self.config.joins == Joins::Early { LEAVES_AFTER } else { 0 }
    }

    /// Returns whether no losses have occurred or all losses are forgotten.
    fn is_starting(&self) -> bool {
        self.config.joins == Joins::Early && !self.calculators[usize::from(self.level())].has_loss()
    }

    /// Forgets losses in the lowest layers if no further losses follow. These layers are slow, so such losses are due to the
    /// start-up of other flows, and this receiver continues its own start-up.
    fn forget_start(&mut self, now: Time) {
        if self.config.joins != Joins::Early
            || self.forgotten == MAX_FORGOTTEN
            || self.level() > FORGETS_UP_TO
        {
            return;
        }
        let highest = &self.calculators[usize::from(self.level())];
        let quiet = (highest.rtt() * QUIET.0).max(QUIET.1);
        if highest.lost_at().is_some_and(|at| now >= at + quiet) {
            self.forgotten += 1;
            self.calculators.iter_mut().for_each(tfmcc::Receiver::forget_losses);
        }
    }

    fn join(&mut self, cx: &mut Cx<'_>) {
        let calculator = self.calculators[usize::from(self.level())].clone();
        self.calculators.push(calculator);
        let level = self.level();
        self.seen[usize::from(level)] = None;
        self.above = RoundsAbove::default();
        self.visits.on_join(level, cx.now);
        cx.effects.push(Effect::Subscribe(Layer(level)));
        self.wait = Some(Wait { asks: 0, next_at: cx.now });
        self.ask(cx);
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        let level = self.level();
        self.calculate(level, cx, |calculator, cx| calculator.on_leave(cx));
        self.calculators.pop();
        self.visits.on_leave(level, cx.now);
        (self.above, self.wait, self.short_since) = (RoundsAbove::default(), None, None);
        cx.effects.push(Effect::Subscribe(Layer(level - 1)));
    }

    /// Requests the highest layer, which may be off, from the source.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(wait) = &mut self.wait else { return };
        if cx.now < wait.next_at {
            return;
        }
        if wait.asks == MAX_ASKS {
            self.hold_until = cx.now + HOLD_OFF;
            return self.leave(cx);
        }
        let level = self.calculators.len() as u8 - 1;
        let rtt = self.calculators[usize::from(level)].rtt();
        *wait = Wait { asks: wait.asks + 1, next_at: cx.now + rtt.max(ASK_EVERY) };
        // No packet of the layer has arrived, so the echo cannot name a packet for a round-trip sample.
        let echo = Echo { seq: Seq(0), hold: Span::MAX };
        let rate = self.left_for(level, self.estimate(cx.now).bps()) as f32;
        let content = ReportContent::Averaged {
            echo,
            mean: 0.0,
            deviation: 0.0,
            samples: 0,
            rate,
            cause: Cause::Joining,
        };
        cx.effects.push(Effect::Report(Report { from: self.me, layer: Layer(level), content }));
    }

    /// Processes a packet of `layer`. If `layer` is the highest layer, stops the requests for it. Otherwise requests the highest
    /// layer if that layer has been silent for a long time.
    fn watch_highest(&mut self, layer: Layer, cx: &mut Cx<'_>) {
        let level = self.level();
        if layer.0 == level {
            self.wait = None;
        } else if self.wait.is_none()
            && self.seen[usize::from(level)].is_some_and(|seen| cx.now.since(seen.at) > SILENT_AFTER)
        {
            self.wait = Some(Wait { asks: 0, next_at: cx.now });
            self.ask(cx);
        }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        let member = &mut *self.0;
        // The common sequence has no number for a late packet.
        if layer.0 > member.level() || arrival.late {
            return;
        }
        member.packets += 1 + u64::from(arrival.lost);
        let rate = if data.rate.is_finite() { data.rate.max(0.0) } else { 0.0 };
        member.seen[usize::from(layer.0)] = Some(NewestPacket { seq: data.seq, at: cx.now, rate });
        let level = member.level();
        let rates = member.seen[..=usize::from(level)].iter().flatten();
        let rate = rates.map(|seen| seen.rate).sum();
        for calculator in 0..=level {
            let mark = if calculator == layer.0 { member.header(data.mark, calculator) } else { Mark::None };
            let seen = Data { seq: Seq(member.packets), rate, mark, ..*data };
            let layer = Layer(calculator);
            member.calculate(calculator, cx, |receiver, cx| receiver.on_data(&seen, layer, arrival, cx));
        }
        if member.wait.is_some() && layer.0 == level && member.config.joins == Joins::Early {
            member.calculate(level, cx, tfmcc::Receiver::report_now);
        }
        member.watch_highest(layer, cx);
        member.forget_start(cx.now);
        let round = match data.mark {
            Mark::Equation { round, .. } if layer.0 == level => Some(round),
            _ => None,
        };
        member.consider(round, cx);
    }

    fn deadline(&self) -> Time {
        let reports = self.0.calculators.iter().map(|calculator| calculator.deadline());
        let ask = self.0.wait.map_or(Time::NEVER, |wait| wait.next_at);
        reports.min().unwrap_or(Time::NEVER).min(ask)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let member = &mut *self.0;
        for layer in 0..=member.level() {
            member.calculate(layer, cx, |calculator, cx| calculator.on_deadline(cx));
        }
        member.ask(cx);
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        for layer in (0..=self.0.level()).rev() {
            self.0.calculate(layer, cx, |calculator, cx| calculator.on_leave(cx));
        }
    }

    fn suppressed(&self) -> u32 {
        self.0.calculators.iter().map(|calculator| calculator.suppressed()).sum()
    }
}
