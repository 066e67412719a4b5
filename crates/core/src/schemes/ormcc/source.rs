//! ORMCC's source: follows one receiver and adapts the rate to it alone.

use super::config::{AcrossSwitch, Config, Start, SwitchOn};
use crate::estimate::{Ewma, LargestRtt, SendHistory};
use crate::node::{Cx, Departure, Observation, Stamp};
use crate::packet::{Cause, Content, Echo, Flags, Layer, Mark, ReceiverId, Report, Seq};
use crate::rate::bounds::{Bounds, Guard, SendMeter, Usage};
use crate::rate::start::Progress;
use crate::rate::{Aimd, CutGate, Operating, Pacer, Pressure, RatePolicy, StartUp};
use crate::time::{Rate, Span, Time};

/// The source of an ORMCC session. Its state does not depend on the number of receivers.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    policy: Aimd,
    /// The rate that the scheme allows, "lambda".
    rate: Rate,
    pressure: Pressure,
    pacer: Pacer,
    history: SendHistory,
    start_up: Option<StartUp>,
    representative: Option<ReceiverId>,
    /// Whether it is known to be active; otherwise everybody may report.
    standing: Standing,
    /// Its throughput at congestion, "E(mu_cr)" and deviation.
    level: Ewma,
    rtt: Ewma,
    rtt_max: LargestRtt,
    /// How long the representative takes to report once its bottleneck is full, "T^cr".
    response: Ewma,
    check: Option<Check>,
    grace_until: Time,
    gate: CutGate,
    last_report: Option<(ReceiverId, Seq)>,
    tick_at: Time,
    meter: SendMeter,
    last_departure: Time,
    idle: Option<Idle>,
    heard_at: Time,
    silent_since: Time,
}

/// Whether the source trusts its representative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Valid,
    Invalid,
}

/// The bottleneck is taken for full since `since`; without a report until `expires` the representative is inactive.
#[derive(Debug, Clone, Copy)]
struct Check {
    since: Time,
    expires: Time,
}

/// The application has nothing to send.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Time,
    slower_at: Time,
}

/// Deviations above the mean at which the bottleneck counts as full (seed 000, 3.1.3).
const FULL: f64 = 4.0;
/// Deviations of the response time that are waited for (seed 000, 3.1.3).
const PATIENCE: f64 = 8.0;
/// Initial deviation of a level, as a part of the level.
const FIRST_DEVIATION: f64 = 0.25;
const RTT_GAIN: f64 = 0.125;
const RESPONSE_GAIN: f64 = 0.125;
/// Samples above this are mistakes of a clock or a receiver.
const LONGEST_RTT: Span = Span::from_secs(10);
/// When the group is another one, before its first answer.
const ASSUMED_RTT: Span = Span::from_millis(5);
/// Idle or silent for so many round trips.
const IDLE_AFTER: u64 = 4;
const SLOWER_AFTER: u64 = 10;
const SILENT_AFTER: Span = Span::from_secs(2);

impl Source {
    /// A source that has not started.
    pub fn new(config: Config) -> Source {
        let rate = config.initial_rate();
        let start_up = match config.start {
            Start::Linear => None,
            Start::Doubling(doubling) => Some(StartUp::new(doubling, config.packet_size, config.initial_rtt)),
        };
        Source {
            config,
            policy: Aimd { beta: config.beta },
            rate,
            pressure: Pressure::default(),
            pacer: Pacer::new(rate, config.catch_up),
            history: SendHistory::new(config.history_packets),
            start_up,
            representative: None,
            standing: Standing::Invalid,
            level: Ewma::new(config.alpha_source),
            rtt: Ewma::new(RTT_GAIN),
            rtt_max: LargestRtt::new(config.initial_rtt, config.rtt_max_memory),
            response: Ewma::new(RESPONSE_GAIN),
            check: None,
            grace_until: Time::ZERO,
            gate: CutGate::default(),
            last_report: None,
            tick_at: Time::NEVER,
            meter: SendMeter::new(Time::ZERO),
            last_departure: Time::ZERO,
            idle: None,
            heard_at: Time::ZERO,
            silent_since: Time::ZERO,
        }
    }

    /// A receiver left or is excluded: it is not followed any longer.
    pub fn forget(&mut self, receiver: ReceiverId) {
        if self.representative == Some(receiver) {
            self.representative = None;
            self.distrust();
        }
    }

    /// The group is another one now (a slow part was set aside, or is served at last): what was learned about the old one's
    /// paths does not hold. Starts up anew where the configuration does so at all.
    pub fn start_again(&mut self, now: Time) {
        self.representative = None;
        self.distrust();
        self.level = Ewma::new(self.config.alpha_source);
        self.rtt = Ewma::new(RTT_GAIN);
        self.response = Ewma::new(RESPONSE_GAIN);
        self.rtt_max = LargestRtt::new(self.config.shortest_rtt.max(ASSUMED_RTT), self.config.rtt_max_memory);
        if let Start::Doubling(doubling) = self.config.start {
            let start_up = StartUp::new(doubling, self.config.packet_size, self.rtt_max.get());
            self.start_up = Some(start_up);
            self.set_rate(doubling.initial_rate(self.rtt_max.get(), self.config.packet_size), now);
        }
        self.tick_at = now + self.control_rtt();
    }

    /// So many receivers take part and answer.
    pub fn set_group(&mut self, members: usize) {
        if let Some(start_up) = &mut self.start_up {
            start_up.set_group(members);
        }
    }

    /// Change the lowest and the highest rate.
    pub fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.bounds = bounds;
        self.set_rate(self.rate, now);
    }

    /// Something came from a receiver that is not for the scheme (a negative acknowledgement, a membership
    /// report): the group is not silent.
    pub fn on_sign_of_life(&mut self, now: Time) {
        self.heard_at = self.heard_at.max(now);
        self.silent_since = self.heard_at;
    }

    /// The largest round-trip time that counts now.
    pub fn rtt_max(&self) -> Span {
        self.rtt_max.get()
    }

    /// The round-trip time that times the rate: the representative's; before there is one, the largest.
    fn control_rtt(&self) -> Span {
        let followed = self.rtt.mean().map(Span::from_secs_f64);
        followed.unwrap_or(self.rtt_max.get()).max(self.config.shortest_rtt)
    }

    fn set_rate(&mut self, rate: Rate, now: Time) {
        self.rate = self.config.bounds.clamp(rate);
        self.pace(now);
    }

    /// The rate that packets say they are sent at.
    fn said_rate(&self) -> Rate {
        self.config.bounds.clamp(self.pressure.applied_to(self.rate))
    }

    fn pace(&mut self, now: Time) {
        let pace = self.start_up.as_ref().map_or(1.0, StartUp::pace);
        self.pacer.set_rate(self.config.bounds.clamp(self.said_rate() * pace), now);
    }

    fn make_progress(&mut self, progress: Progress, now: Time) {
        match progress {
            Progress::Stay => {}
            Progress::Continue(rate) => self.set_rate(rate, now),
            Progress::Over(rate) => {
                self.start_up = None;
                self.set_rate(rate, now);
            }
        }
    }

    /// Headers say from now on that everybody may report. Who was followed is remembered: a report from it
    /// makes it valid again.
    fn distrust(&mut self) {
        self.standing = Standing::Invalid;
        self.check = None;
    }

    /// Every round-trip time (seed 000, 3.1.5 and appendix B.1).
    fn tick(&mut self, now: Time) {
        let rtt = self.control_rtt();
        let next = self.tick_at + rtt;
        self.tick_at = if next > now { next } else { now + rtt };
        self.pressure.recover(self.rate, now);
        self.watch_application(now, rtt);
        let silent = self.slow_down_in_silence(now, rtt);
        let usage = self.meter.usage(now, self.rate, rtt, self.config.packet_size);
        let frozen = self.idle.is_some() || silent || (usage == Usage::Partial && self.guards_idleness());
        if self.start_up.is_none() && !frozen && self.gate.is_open(now, rtt) {
            let at = Operating { rate: self.rate, rtt, packet_size: self.config.packet_size };
            let raised = self.policy.on_tick(at);
            self.set_rate(raised, now);
            self.watch_representative(now, rtt);
        } else {
            self.set_rate(self.rate, now);
        }
    }

    /// The rate has come to where the representative's bottleneck should be full: begin to wait for its report.
    fn watch_representative(&mut self, now: Time, rtt: Span) {
        let Some(mean) = self.level.mean() else { return };
        let full = mean + FULL * self.level.deviation();
        if self.standing == Standing::Valid && self.check.is_none() && self.rate.bps() >= full {
            self.check = Some(Check { since: now, expires: now + self.patience(rtt) });
        }
    }

    /// "T_max": how long the representative may take to report from a full bottleneck.
    // Seed gap: 3.1.3 has no value before the first response time. Here it is 16 largest round-trip times, at least
    // 2 s; afterwards at least two round-trip times.
    fn patience(&self, rtt: Span) -> Span {
        match self.response.mean() {
            Some(mean) => Span::from_secs_f64(mean + PATIENCE * self.response.deviation()).max(rtt * 2),
            None => (self.rtt_max.get() * 16).max(Span::from_secs(2)),
        }
    }

    fn guards_idleness(&self) -> bool {
        self.config.idle_guard == Guard::On
    }

    /// Notice that the application has nothing to send, and slow down while that lasts.
    fn watch_application(&mut self, now: Time, rtt: Span) {
        if !self.guards_idleness() {
            return;
        }
        let free_since = self.last_departure.max(self.pacer.departure());
        match &mut self.idle {
            None if now.since(free_since) > rtt * IDLE_AFTER => {
                self.idle = Some(Idle { since: free_since, slower_at: free_since + rtt * SLOWER_AFTER });
            }
            Some(idle) if now >= idle.slower_at => {
                idle.slower_at += rtt * SLOWER_AFTER;
                let floor = self.config.initial_rate().min(self.rate);
                self.rate = (self.rate * 0.5).max(floor);
            }
            _ => {}
        }
    }

    /// The application sends again: what was timed goes on where it stopped.
    fn resume(&mut self, now: Time) {
        let Some(idle) = self.idle.take() else { return };
        let pause = now.since(idle.since);
        if let Some(check) = &mut self.check {
            check.since += pause;
            check.expires += pause;
        }
        if let Some(start_up) = &mut self.start_up {
            start_up.resume();
        }
        self.on_sign_of_life(now);
        self.meter = SendMeter::new(now);
        self.tick_at = now + self.control_rtt();
        self.pace(now);
    }

    /// No sign of life from anybody: do not grow, and halve again and again. Tells whether the group is silent.
    // Seed gap: 3.1.5 takes silence for a network without congestion, so a source without receivers would grow for
    // ever. The guard is off in `Config::seed`.
    fn slow_down_in_silence(&mut self, now: Time, rtt: Span) -> bool {
        let patience = (rtt * SLOWER_AFTER).max(SILENT_AFTER);
        if self.config.silent_group_guard == Guard::Off
            || self.idle.is_some()
            || now.since(self.heard_at) < patience
        {
            return false;
        }
        if now.since(self.silent_since) >= patience * 2 {
            self.silent_since += patience;
            self.rate = self.config.bounds.clamp(self.rate * 0.5);
        }
        true
    }

    /// A round-trip sample from any receiver's answer.
    fn sample(&mut self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= LONGEST_RTT)
    }

    /// A receiver that is not necessarily followed is alive.
    // Seed gap: 3.1.6 knows samples from congestion reports only. Where a transport's receivers also show that they are
    // there, those of the representative count too; otherwise a fast path would be timed by its last congestion for
    // minutes.
    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let Some(sample) = self.sample(echo, now) else { return };
        self.rtt_max.add(sample, now);
        if self.representative == Some(from) || (self.representative.is_none() && self.start_up.is_none()) {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
        let rtt_max = self.rtt_max.get();
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_rtt(rtt_max);
            self.make_progress(progress, now);
        }
    }

    fn on_congested(&mut self, from: ReceiverId, echo: Echo, level: Rate, mean: Rate, now: Time) {
        if self.last_report == Some((from, echo.seq)) || !level.is_usable() {
            return;
        }
        let sample = self.sample(echo, now);
        let accepted = if self.representative == Some(from) {
            self.on_congestion_of_representative(level, sample, now);
            true
        } else {
            self.elect(from, level, mean, sample, now)
        };
        if accepted {
            self.last_report = Some((from, echo.seq));
            if let Some(sample) = sample {
                self.rtt_max.add(sample, now);
            }
            self.cut(level, now);
        }
    }

    fn on_congestion_of_representative(&mut self, level: Rate, sample: Option<Span>, now: Time) {
        self.standing = Standing::Valid;
        if let Some(check) = self.check.take() {
            let waited = now.since(check.since).as_secs_f64();
            self.response.add(waited, waited / 2.0);
        }
        self.level.add(level.bps(), level.bps() * FIRST_DEVIATION);
        if let Some(sample) = sample {
            self.rtt.add(sample.as_secs_f64(), 0.0);
        }
    }

    /// Whether this receiver becomes the representative, and if so, make it that (seed 000, 3.1.3 and appendix B.1).
    // Seed gap: appendix B.1 starts with a largest round-trip time of 0, which would make the grace period and the
    // receivers' delays 0. Here the assumed round-trip time stands in until the first sample.
    fn elect(&mut self, from: ReceiverId, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if self.standing == Standing::Invalid {
            self.grace_until = now + self.rtt_max.get() * 2;
        } else if !self.is_worse(level, mean, sample, now) {
            return false;
        }
        self.representative = Some(from);
        self.standing = Standing::Valid;
        self.check = None;
        let (value, guess) = (level.bps(), level.bps() * FIRST_DEVIATION);
        match (self.config.across_switch, self.level.mean()) {
            (AcrossSwitch::Continue, _) => self.level.add(value, guess),
            (AcrossSwitch::Restart, None) => self.level.restart(value, guess),
            (AcrossSwitch::Restart, Some(_)) => self.level.restart(value, guess.min(self.level.deviation())),
        }
        if let Some(sample) = sample {
            self.rtt.restart(sample.as_secs_f64(), 0.0);
        }
        true
    }

    /// Whether a receiver is more congested than the representative: farther away within the grace period, else slower.
    fn is_worse(&self, level: Rate, mean: Rate, sample: Option<Span>, now: Time) -> bool {
        if now < self.grace_until {
            return sample.is_some_and(|sample| sample > self.control_rtt());
        }
        let value = match self.config.switch_on {
            SwitchOn::Sample => level,
            SwitchOn::Average => mean,
        };
        let followed = self.level.mean().unwrap_or(f64::INFINITY);
        value.bps() < followed - self.level.deviation()
    }

    /// At most once per round-trip time: down to a part of the throughput at congestion (seed 000, 3.1.5).
    fn cut(&mut self, level: Rate, now: Time) {
        if self.start_up.take().is_some() {
            self.rate = self.rate.min(self.pacer.rate());
        }
        let rtt = self.control_rtt();
        if !self.gate.is_open(now, rtt) {
            return;
        }
        let at = Operating { rate: self.rate, rtt, packet_size: self.config.packet_size };
        let lowered = self.policy.on_congestion(at, level);
        self.gate.close(now);
        self.check = None;
        self.set_rate(lowered, now);
    }

    fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_received(from, echo.seq, rate, loss, self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
        self.on_alive(from, echo, now);
    }

    fn on_sustainable(&mut self, from: ReceiverId, rate: Rate, now: Time) {
        self.pressure.on_report(from, rate, self.said_rate(), now);
        self.set_rate(self.rate, now);
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.pacer.restart(cx.now);
        self.meter = SendMeter::new(cx.now);
        self.last_departure = cx.now;
        self.on_sign_of_life(cx.now);
        self.tick_at = cx.now + self.control_rtt();
    }

    fn departure(&self, layer: Layer) -> Departure {
        match layer {
            Layer(0) => Departure::At(self.pacer.departure()),
            _ => Departure::At(Time::NEVER),
        }
    }

    fn on_departure(&mut self, _layer: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let now = cx.now;
        self.resume(now);
        self.pressure.recover(self.rate, now);
        self.pace(now);
        let rate = self.said_rate();
        let seq = self.history.record(now);
        self.last_departure = now;
        self.meter.record(size);
        let rtt_max = self.rtt_max.get();
        self.pacer.book(now, size, self.control_rtt());
        let flags = match &mut self.start_up {
            Some(start_up) => start_up.on_departure(seq, size, rate, now, rtt_max),
            None => Flags::default(),
        };
        self.pace(now);
        let id = self.representative.filter(|_| self.standing == Standing::Valid);
        let (mean, deviation) = match (id, self.level.mean()) {
            (Some(_), Some(mean)) => (mean as f32, self.level.deviation() as f32),
            _ => (f32::INFINITY, 0.0),
        };
        let mark = Mark::Representative { id, mean, deviation, rtt_max: rtt_max.as_secs_f64() as f32 };
        Stamp { seq, rate, flags, mark }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        if echo_of(&report.content).is_some_and(|echo| echo.seq >= self.history.next()) {
            return;
        }
        self.on_sign_of_life(now);
        let bps = |rate: f32| Rate::from_bps(f64::from(rate));
        match report.content {
            Content::Congested { cause: Cause::Leaving, .. } => self.forget(from),
            Content::Congested { echo, level, mean, cause: Cause::Loss | Cause::Mark } => {
                self.on_congested(from, echo, bps(level), bps(mean), now);
            }
            Content::Alive(echo)
            | Content::Selective { echo, .. }
            | Content::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.on_alive(from, echo, now);
            }
            Content::Received { echo, rate, loss } => self.on_received(from, echo, bps(rate), loss, now),
            Content::Sustainable { rate, .. } => self.on_sustainable(from, bps(rate), now),
            Content::Lost { .. } => {}
        }
    }

    fn deadline(&self) -> Time {
        if self.idle.is_some() {
            return self.tick_at;
        }
        let check = self.check.map_or(Time::NEVER, |check| check.expires);
        let start_up = self.start_up.as_ref().map_or(Time::NEVER, StartUp::deadline);
        self.tick_at.min(check).min(start_up)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        if now >= self.tick_at {
            self.tick(now);
        }
        if self.idle.is_some() {
            return self.rest();
        }
        if self.check.is_some_and(|check| now >= check.expires) {
            self.distrust();
        }
        if let Some(start_up) = &mut self.start_up
            && now >= start_up.deadline()
        {
            let progress = start_up.on_deadline(self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
    }

    fn observe(&self) -> Observation {
        Observation {
            rate: self.pacer.rate(),
            rtt: self.control_rtt(),
            limiting: self.representative.filter(|_| self.standing == Standing::Valid),
            level: self.level.mean().map(Rate::from_bps),
            cuts: self.gate.cuts(),
            starting: self.start_up.is_some(),
        }
    }
}

impl Source {
    /// While idle, the next thing to do is to slow down; once that is done, nothing.
    fn rest(&mut self) {
        if let Some(idle) = self.idle {
            let slow = self.rate.bps() <= self.config.initial_rate().bps();
            self.tick_at = if slow { Time::NEVER } else { idle.slower_at.max(self.tick_at) };
        }
    }
}

#[cfg(test)]
impl Source {
    pub(super) fn history_next(&self) -> Seq {
        self.history.next()
    }

    pub(super) fn sent(&self, seq: Seq) -> Option<Time> {
        self.history.sent(seq).map(|(at, _)| at)
    }

    pub(super) fn check_since(&self) -> Option<Time> {
        self.check.map(|check| check.since)
    }

    pub(super) fn patience_now(&self) -> Span {
        self.patience(self.control_rtt())
    }
}

/// The packet that a report answers.
fn echo_of(content: &Content) -> Option<Echo> {
    match *content {
        Content::Alive(echo)
        | Content::Congested { echo, .. }
        | Content::Received { echo, .. }
        | Content::Selective { echo, .. }
        | Content::Sustainable { echo, .. } => Some(echo),
        Content::Lost { .. } => None,
    }
}
