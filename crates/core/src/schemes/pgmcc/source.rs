//! PGMCC's source: runs the window and elects the acker.

use super::config::{Config, Measure};
use super::election::{load, replaces};
use super::timeout::Timeout;
use super::window::{CongestionWindow, WindowGrowth};
use crate::estimate::{GroupRtt, SendHistory};
use crate::node::{Cx, Departure, Observation, SourceControl, Stamp, Tally};
use crate::packet::{Cause, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, Signal};
use crate::rate::{Pacer, Start};
use crate::time::{Rate, Span, Time};

/// The source of a PGMCC session. Its state grows with the window, not with the number of receivers.
#[derive(Debug, Clone)]
pub struct Source {
    config: Config,
    window: CongestionWindow,
    timeout: Timeout,
    acker: Option<ReceiverId>,
    /// The former acker, whose acknowledgements may still be in the network.
    former: Option<ReceiverId>,
    /// The acker's load, "M_acker".
    load: f64,
    history: SendHistory,
    /// Whether the session has started. Packets sent before the start are probes.
    is_running: bool,
    rtt_max: GroupRtt,
    pacer: Pacer,
    timeout_at: Time,
    // The draft resets this count at each negative acknowledgement. With that rule, reports of other receivers would retain an
    // acker that has departed.
    /// Timeouts since the acker's last report, "RETRY".
    retries: u32,
    /// Latest time at which no token was left. The window grows only while it is fully used.
    starved_at: Option<Time>,
    last_departure: Time,
    /// Whether neither a loss nor a timeout has occurred since the start.
    starting: bool,
    cuts: u64,
    tally: Tally,
}

/// Number of consecutive timeouts after which the acker is given up.
const RETRIES: u32 = 2;
/// Maximum plausible round-trip time; a longer sample is an error of a clock or a receiver.
const MAX_RTT: Span = Span::from_secs(10);
/// Fraction of the window that serves as the threshold after a pause (RFC 2861).
const AFTER_PAUSE: f64 = 0.75;

impl Source {
    /// Creates a source that has not started.
    pub fn new(config: Config) -> Source {
        let sending = &config.sending;
        let mut source = Source {
            window: CongestionWindow::new(&config, first_threshold(&config)),
            timeout: Timeout::new(config.min_rto, config.first_rto, config.max_rto),
            acker: None,
            former: None,
            load: 0.0,
            history: SendHistory::new(sending.history_packets),
            is_running: false,
            rtt_max: GroupRtt::new(sending.initial_rtt, sending.rtt_max_memory),
            pacer: Pacer::new(sending.bounds.max, sending.catch_up),
            timeout_at: Time::NEVER,
            retries: 0,
            starved_at: None,
            last_departure: Time::ZERO,
            starting: true,
            cuts: 0,
            tally: Tally::default(),
            config,
        };
        source.adjust_pace(Time::ZERO);
        source
    }

    /// Returns the round-trip time to the acker; before the first sample, the assumed round-trip time.
    fn rtt(&self) -> Span {
        let sending = &self.config.sending;
        self.timeout.smoothed().unwrap_or(sending.initial_rtt).max(sending.min_rtt)
    }

    /// Returns the rate of one window per round-trip time.
    fn window_rate(&self) -> Rate {
        Rate::of(u64::from(self.config.sending.packet_size), self.rtt()) * self.window.size()
    }

    /// Returns the window's rate within the user's limits.
    fn rate(&self) -> Rate {
        self.config.sending.bounds.clamp(self.window_rate())
    }

    fn adjust_pace(&mut self, now: Time) {
        let free = match self.config.pacing {
            Some(gain) => self.window_rate() * gain,
            None => Rate::UNLIMITED,
        };
        let pace = free.max(self.rate());
        self.pacer.set_rate(self.config.sending.bounds.clamp(pace), now);
    }

    fn growth(&self, now: Time) -> WindowGrowth {
        let used = !self.window.has_token() || self.starved_at.is_some_and(|at| now.since(at) <= self.rtt());
        let limited = self.config.sending.bounds.is_at_max(self.window_rate());
        if used && !limited { WindowGrowth::Open } else { WindowGrowth::Hold }
    }

    /// Returns the round-trip sample of an echo. Samples of all receivers count for the largest round-trip time.
    fn sample(&mut self, from: ReceiverId, echo: Echo, now: Time) -> Option<Span> {
        let sample = self.history.sample(echo, now).filter(|sample| *sample <= MAX_RTT)?;
        self.rtt_max.add(from, sample, now);
        Some(sample)
    }

    /// Removes the acker. From then on, headers request offers from all receivers.
    fn reelect(&mut self) {
        self.former = self.acker.take().or(self.former);
        self.load = 0.0;
    }

    fn appoint(&mut self, from: ReceiverId, load: f64, sample: Option<Span>, now: Time) {
        if self.acker.is_none() {
            self.window.credit_unasked();
        } else {
            self.former = self.acker;
        }
        self.acker = Some(from);
        self.load = load;
        self.retries = 0;
        self.timeout.restart(sample);
        self.restart_timer(now);
    }

    fn restart_timer(&mut self, now: Time) {
        let waiting = self.window.in_flight() > 0;
        self.timeout_at = if waiting { now + self.timeout.span() } else { Time::NEVER };
    }

    /// Compares the load of a reporting receiver with the load of the acker (draft, 3.4).
    fn consider(&mut self, from: ReceiverId, echo: Echo, loss: f32, sample: Option<Span>, now: Time) {
        let (Some(rtt), true) = (sample, loss.is_finite()) else { return };
        let loss = f64::from(loss).clamp(0.0, 1.0);
        let distance = match self.config.measure {
            // The draft does not smooth samples. The acker sends a sample with each acknowledgement, so the acker's samples are
            // smoothed here. Otherwise noise would decide the election.
            Measure::Time if self.acker == Some(from) => self.timeout.smoothed().unwrap_or(rtt).as_secs_f64(),
            Measure::Time => rtt.as_secs_f64(),
            Measure::Packets => (self.history.next().0 - echo.seq.0) as f64,
        };
        let load = load(self.config.formula, distance, loss);
        match self.acker {
            None => self.appoint(from, load, sample, now),
            Some(acker) if acker == from => self.load = load,
            Some(_) if replaces(load, self.load, self.config.hysteresis) => {
                self.appoint(from, load, sample, now);
            }
            Some(_) => {}
        }
    }

    fn on_acknowledged(&mut self, from: ReceiverId, echo: Echo, bitmap: u32, loss: f32, now: Time) {
        let sample = self.sample(from, echo, now);
        let asked = [self.acker, self.former, self.window.designated(echo.seq)].contains(&Some(from));
        if asked {
            let before = self.window.size();
            let outcome = self.window.acknowledge(from, echo.seq, bitmap, self.growth(now));
            if self.acker == Some(from)
                && let Some(sample) = sample
            {
                self.timeout.sample(sample);
            }
            if outcome.acknowledged + outcome.lost > 0 {
                self.retries = 0;
                self.timeout.end_back_off();
                self.restart_timer(now);
            }
            if outcome.lost > 0 {
                self.on_loss(u64::from(outcome.lost), outcome.cut, before);
            }
        }
        self.consider(from, echo, loss, sample, now);
        self.adjust_pace(now);
    }

    /// Responds to losses or marks that the acker reports.
    fn on_loss(&mut self, packets: u64, cut: bool, before: f64) {
        self.tally.indications += packets;
        self.tally.events += 1;
        self.tally.followed += 1;
        self.starting = false;
        if cut {
            self.cuts += 1;
            self.window.set_threshold(self.threshold_after(before / 2.0));
        }
    }

    fn on_lost(&mut self, from: ReceiverId, report: (Seq, u16), echo: Echo, loss: f32, now: Time) {
        let (first, count) = report;
        let sample = self.sample(from, echo, now);
        if count > 0 && self.acker == Some(from) && self.window.designated(first) == Some(from) {
            // The acker sends this kind of report only for congestion marks.
            let before = self.window.size();
            let cut = self.window.on_mark(first);
            self.on_loss(u64::from(count), cut, before);
        } else if count > 0 {
            self.tally.indications += u64::from(count);
            self.tally.events += 1;
        }
        self.consider(from, echo, loss, sample, now);
        self.adjust_pace(now);
    }

    fn on_alive(&mut self, from: ReceiverId, echo: Echo, now: Time) {
        let sample = self.sample(from, echo, now);
        if let Some(sample) = sample
            && self.acker == Some(from)
        {
            self.timeout.sample(sample);
            self.adjust_pace(now);
        }
    }

    /// Responds to a timeout without an acknowledgement.
    fn time_out(&mut self, now: Time) {
        let before = self.window.size();
        self.window.restart();
        if self.retries == 0 {
            // Only the window before the first of consecutive timeouts shows the capacity of the path (RFC 5681, 3.1).
            self.window.set_threshold(self.threshold_after(before / 2.0));
        }
        self.timeout.back_off();
        self.retries += 1;
        self.cuts += 1;
        self.starting = false;
        if self.retries >= RETRIES {
            self.reelect();
        }
        self.timeout_at = Time::NEVER;
        self.adjust_pace(now);
    }

    /// Returns the window up to which growth is exponential after a cut to `half`.
    fn threshold_after(&self, half: f64) -> f64 {
        match self.config.sending.start {
            Start::Linear => self.config.ssthresh,
            Start::Doubling(_) => self.config.ssthresh.max(half),
        }
    }

    /// Shrinks the window after a pause longer than a timeout, because the path may have changed.
    fn resume(&mut self, now: Time) {
        let pause = now.since(self.last_departure);
        if self.window.in_flight() == 0
            && pause > self.timeout.span()
            && self.window.size() > self.config.ssthresh
        {
            if !self.starting {
                self.window.set_threshold(self.threshold_after(AFTER_PAUSE * self.window.size()));
            }
            self.window.shrink_to(self.config.ssthresh);
            self.adjust_pace(now);
        }
    }

    /// Returns the time at which a packet must be sent without a token, because of the minimum rate.
    fn due_by_lowest_rate(&self) -> Time {
        if self.window.has_token() || self.window.in_flight() == 0 {
            return Time::NEVER;
        }
        let sending = &self.config.sending;
        let slowest = sending.bounds.clamp(Rate::ZERO);
        self.last_departure + slowest.span_of(u64::from(sending.packet_size))
    }

    fn forget(&mut self, receiver: ReceiverId) {
        if self.acker == Some(receiver) {
            self.reelect();
            self.former = None;
        }
    }

    /// Resets the measurements, which belong to the paths to the former group.
    fn start_again(&mut self, now: Time) {
        self.reelect();
        self.window.restart();
        self.window.set_threshold(first_threshold(&self.config));
        self.timeout.forget();
        self.rtt_max = GroupRtt::new(self.config.sending.initial_rtt, self.config.sending.rtt_max_memory);
        (self.retries, self.starting, self.timeout_at) = (0, true, Time::NEVER);
        self.adjust_pace(now);
    }
}

/// Returns the initial window up to which growth is exponential.
fn first_threshold(config: &Config) -> f64 {
    match config.sending.start {
        Start::Linear => config.ssthresh,
        Start::Doubling(_) => f64::INFINITY,
    }
}

impl crate::node::Source for Source {
    fn start(&mut self, cx: &mut Cx<'_>) {
        self.is_running = true;
        self.pacer.restart(cx.now);
        self.last_departure = cx.now;
        if self.history.next() > Seq(0) {
            self.window.restart();
        }
        if self.rtt_max.is_known() {
            self.timeout.restart(Some(self.rtt_max.get()));
            self.adjust_pace(cx.now);
        }
    }

    fn departure(&self, _: Layer) -> Departure {
        if self.window.has_token() { Departure::At(self.pacer.departure()) } else { Departure::AfterReport }
    }

    fn on_departure(&mut self, _: Layer, size: u16, cx: &mut Cx<'_>) -> Stamp {
        let now = cx.now;
        if !self.is_running {
            let seq = self.history.record(now);
            self.window.depart(None);
            return Stamp {
                seq,
                rate: self.rate(),
                flags: Flags::default(),
                signal: Signal::None,
                mark: Mark::Acker { id: None },
            };
        }
        self.resume(now);
        self.adjust_pace(now);
        let seq = self.history.record(now);
        self.window.depart(self.acker);
        self.last_departure = now;
        self.pacer.book(now, size, self.rtt());
        if !self.window.has_token() {
            self.starved_at = Some(now);
        }
        if self.timeout_at.is_never() {
            self.restart_timer(now);
        }
        Stamp {
            seq,
            rate: self.rate(),
            flags: Flags::default(),
            signal: Signal::None,
            mark: Mark::Acker { id: self.acker },
        }
    }

    fn on_report(&mut self, report: &Report, cx: &mut Cx<'_>) {
        let (now, from) = (cx.now, report.from);
        if report.content.echo().seq >= self.history.next() {
            return;
        }
        if !self.is_running {
            self.sample(from, report.content.echo(), now);
            return;
        }
        match report.content {
            ReportContent::Selective { echo, bitmap, loss, .. } => {
                self.on_acknowledged(from, echo, bitmap, loss, now);
            }
            ReportContent::Lost { echo, first, count, loss } => {
                self.on_lost(from, (first, count), echo, loss, now)
            }
            ReportContent::Congested { cause: Cause::Leaving, .. } => self.forget(from),
            ReportContent::Alive { echo }
            | ReportContent::Congested { echo, cause: Cause::Heartbeat | Cause::Joining, .. } => {
                self.on_alive(from, echo, now);
            }
            _ => {} // this scheme's receivers do not send it
        }
    }

    fn deadline(&self) -> Time {
        if self.is_running { self.timeout_at.min(self.due_by_lowest_rate()) } else { Time::NEVER }
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if !self.is_running {
            return;
        }
        if now >= self.timeout_at {
            self.time_out(now);
        }
        if now >= self.due_by_lowest_rate() {
            while !self.window.has_token() && self.window.in_flight() > 0 {
                self.window.credit_oldest();
            }
        }
    }

    fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Forget(receiver) => {
                self.rtt_max.forget(receiver);
                self.forget(receiver);
            }
            SourceControl::StartAgain => self.start_again(now),
            SourceControl::Limits(bounds) => {
                self.config.sending.bounds = bounds;
                self.adjust_pace(now);
            }
            // Signs of life have no effect: timeouts detect a silent group, and only acknowledgements open the window.
            SourceControl::Members(_) | SourceControl::SignOfLife => {}
        }
    }

    fn observe(&self) -> Observation {
        let level = self.timeout.smoothed().filter(|_| self.acker.is_some() && self.load > 0.0);
        let bits = 8.0 * f64::from(self.config.sending.packet_size);
        Observation {
            rate: self.rate(),
            rtt: self.rtt(),
            limiting: self.acker,
            level: level
                .map(|_| Rate::from_bps(bits * SQUARE_ROOT_OF_1_5 / self.load))
                .filter(|rate| self.config.measure == Measure::Time && rate.bps() < MEANINGLESS),
            rtt_max: self.rtt_max.get(),
            cuts: self.cuts,
            tally: self.tally,
            starting: self.starting,
        }
    }

    fn round_trip(&self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= MAX_RTT)
    }
}

/// Rate in bit/s above which losses are too rare for TCP's formula.
const MEANINGLESS: f64 = 1e12;
/// Constant of TCP's formula: the throughput in packets per second is this value divided by the load.
const SQUARE_ROOT_OF_1_5: f64 = 1.224_744_871_391_589;

#[cfg(test)]
impl Source {
    pub(super) fn next_seq(&self) -> Seq {
        self.history.next()
    }

    pub(super) fn acker(&self) -> Option<ReceiverId> {
        self.acker
    }
}
