//! The send controller, which all rate-based sources share: limits, pacing, the record of sent packets, start-up, and guards against rates
//! that the network does not confirm.
//!
//! ```text
//!   the scheme: whom to follow, when to grow, when to cut
//!        |  set_rate                      ^ growth, sample
//!        v                                |
//!   controller:  limits -> start-up's pace -> pacer -> numbered departures
//! ```

use super::pacer::CatchUp;
use super::start::{Doubling, Progress};
use super::{Pacer, StartUp};
use crate::bounds::{Bounds, Guard, SendMeter, Usage};
use crate::estimate::{GroupRtt, SendHistory};
use crate::node::SourceControl;
use crate::packet::{Echo, Flags, ReceiverId, Report, Seq};
use crate::time::{Rate, Span, Time};

/// How a source sends, whatever its scheme. A part of every scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sending {
    /// Packet size "s" in bytes, as it counts on the link.
    pub packet_size: u16,
    /// Round-trip time assumed before the first sample (paper 000, 3.3).
    pub initial_rtt: Span,
    /// No round-trip time counts as shorter than this when the rate is controlled.
    pub min_rtt: Span,
    /// How long a member counts for the largest round-trip time after its latest sample, and then with the least of its
    /// latest samples; `None` for the largest sample ever, as in the paper.
    // Paper gap: 3.1.4 spreads reports over the largest round-trip time ever seen, so one hiccup of one host would slow
    // every election for the rest of a session.
    pub rtt_max_memory: Option<Span>,
    /// How the session starts.
    pub start: Start,
    /// Lowest and highest rate.
    pub bounds: Bounds,
    /// Whether a rate that is not used is frozen and an idle source slows down.
    pub idle_guard: Guard,
    /// Whether the rate falls while no receiver gives any sign of life.
    pub silent_group_guard: Guard,
    /// How far a late host may catch up.
    pub catch_up: CatchUp,
    /// For how many packets the source remembers when they left.
    pub history_packets: usize,
}

/// How a session starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// One packet per round-trip time, then the scheme's own increase: the paper.
    Linear,
    /// In rounds that double the rate.
    Doubling(Doubling),
}

impl Sending {
    /// As the theses' simulations send: packets of 1000 bytes, linear start, never silenced by a silent group.
    pub fn published() -> Sending {
        let (packet_size, initial_rtt) = (1000, Span::from_millis(100));
        let slowest = Rate::of(u64::from(packet_size), initial_rtt * 10);
        Sending {
            packet_size,
            initial_rtt,
            min_rtt: Span::from_micros(100),
            rtt_max_memory: None,
            start: Start::Linear,
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            idle_guard: Guard::On,
            silent_group_guard: Guard::Off,
            catch_up: CatchUp::default(),
            history_packets: 4096,
        }
    }

    /// On a real network: doubling start, all guards, at least a packet per 8 s.
    pub fn transport(packet_size: u16) -> Sending {
        let slowest = Rate::of(u64::from(packet_size), Span::from_secs(8));
        Sending {
            packet_size,
            min_rtt: Span::from_millis(1),
            rtt_max_memory: Some(Span::from_secs(30)),
            start: Start::Doubling(Doubling::default()),
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            silent_group_guard: Guard::On,
            history_packets: 1 << 19,
            ..Sending::published()
        }
    }

    /// The rate of the first packets.
    // Paper gap: 3.1.5 leaves the initial rate open. Here it is a packet per assumed round-trip time.
    pub fn initial_rate(&self) -> Rate {
        let rate = match self.start {
            Start::Linear => Rate::of(u64::from(self.packet_size), self.initial_rtt),
            Start::Doubling(doubling) => doubling.initial_rate(self.initial_rtt, self.packet_size),
        };
        self.bounds.clamp(rate)
    }

    /// The same for packets of this size: the lowest packet rate stays.
    #[must_use]
    pub fn with_packet_size(mut self, bytes: u16) -> Sending {
        let span = self.bounds.min.span_of(u64::from(self.packet_size));
        self.bounds.min = Rate::of(u64::from(bytes), span);
        self.packet_size = bytes;
        self
    }
}

/// The state of a source's sending half.
#[derive(Debug, Clone)]
pub struct SendController {
    config: Sending,
    /// The rate that the scheme allows.
    rate: Rate,
    pacer: Pacer,
    history: SendHistory,
    /// Whether the session has started; before it, packets that leave are probes.
    is_running: bool,
    start_up: Option<StartUp>,
    /// The number of members that answer a start-up; 0 when it is unknown.
    members: usize,
    rtt_max: GroupRtt,
    meter: SendMeter,
    last_departure: Time,
    idle: Option<Idle>,
    silence: Silence,
    /// The rate up to which it comes back by doubling, after it was lowered without congestion.
    threshold: Option<Rate>,
}

/// The application has nothing to send.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Time,
    slower_at: Time,
}

/// Evidence that the group is present.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// When the newest packet left of which it is known that it arrived anywhere.
    confirmed_at: Time,
    /// The rate before it was lowered because nothing was confirmed, and when it is lowered again.
    lowered: Option<Lowered>,
    /// Losses of packets before this one were no congestion: nothing arrived for a while.
    over_at: Seq,
    /// It is over since the latest [`SendController::watch`].
    is_over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lowered {
    from: Rate,
    again_at: Time,
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departed {
    /// Its number.
    pub seq: Seq,
    /// The rate that its header states.
    pub rate: Rate,
    /// Flags of the start-up.
    pub flags: Flags,
}

/// Whether the rate may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It may.
    Allowed,
    /// Start-up still decides, the application does not use the rate, or the group is silent.
    Frozen,
}

/// Samples above this are mistakes of a clock or a receiver.
const MAX_RTT: Span = Span::from_secs(10);
/// When the group is another one, before its first answer.
const ASSUMED_RTT: Span = Span::from_millis(5);
/// The number of round trips without data after which it is idle.
const IDLE_AFTER: u64 = 4;
/// The rate falls when idle for this number of round trips, at least for this time, as TCP's does after a timeout (RFC 2861, 3; RFC 6298,
/// 2.4); and again each time that it has passed.
const SLOWER_AFTER: u64 = 10;
const SLOWER_AFTER_LEAST: Span = Span::from_secs(1);
/// The part of the rate up to which it comes back by doubling: after idleness (RFC 2861, 3), and after silence (RFC 5681,
/// 3.1).
const AFTER_IDLENESS: f64 = 0.75;
const AFTER_SILENCE: f64 = 0.5;
/// The group is silent when no packet that left at least this number of round trips ago, and at least this long ago, has been confirmed.
/// Some receiver sends a sign of life at least four times a second.
const SILENT_AFTER: u64 = 10;
const SILENT_AFTER_LEAST: Span = Span::from_secs(1);
/// And no slower than a packet in this time, or the end of an interruption would not be noticed.
pub(crate) const PROBED_EVERY: Span = Span::from_millis(250);
/// Receivers that allow for reordering detect a gap at most this number of packets late.
const REORDERED: u64 = 4;
/// While it is silent the rate is halved at intervals of this number of round trips, at least of this time.
const HALVED_EVERY: u64 = 4;
const HALVED_EVERY_LEAST: Span = Span::from_millis(250);

/// How long an application may be idle before it is slowed down.
fn slower_after(rtt: Span) -> Span {
    (rtt * SLOWER_AFTER).max(SLOWER_AFTER_LEAST)
}

impl SendController {
    /// An controller that has not started.
    pub fn new(config: Sending) -> SendController {
        let rate = config.initial_rate();
        let start_up = match config.start {
            Start::Linear => None,
            Start::Doubling(doubling) => Some(StartUp::new(doubling, config.packet_size, config.initial_rtt)),
        };
        SendController {
            config,
            rate,
            pacer: Pacer::new(rate, config.catch_up),
            history: SendHistory::new(config.history_packets),
            is_running: false,
            start_up,
            members: 0,
            rtt_max: GroupRtt::new(config.initial_rtt, config.rtt_max_memory),
            meter: SendMeter::new(Time::ZERO),
            last_departure: Time::ZERO,
            idle: None,
            silence: Silence { confirmed_at: Time::ZERO, lowered: None, over_at: Seq(0), is_over: false },
            threshold: None,
        }
    }

    /// The session starts now. Only round-trip times count from before it.
    pub fn start(&mut self, now: Time) {
        self.is_running = true;
        self.pacer.restart(now);
        self.meter = SendMeter::new(now);
        self.last_departure = now;
        self.idle = None;
        self.silence.confirmed_at = self.silence.confirmed_at.max(now);
        self.silence.lowered = None;
        if self.rtt_max.is_known() {
            self.start_up_after(self.rtt_max.get(), now);
        }
    }

    /// Whether the session has started.
    pub const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Start-up from its beginning, over paths of this round-trip time; where the configuration has none, at a packet per
    /// round trip.
    fn start_up_after(&mut self, rtt: Span, now: Time) {
        let packet_size = self.config.packet_size;
        let rate = match self.config.start {
            Start::Linear => Rate::of(u64::from(packet_size), rtt),
            Start::Doubling(doubling) => {
                let mut start_up = StartUp::new(doubling, packet_size, rtt);
                start_up.set_group(self.members);
                self.start_up = Some(start_up);
                doubling.initial_rate(rtt, packet_size)
            }
        };
        self.set_rate(rate, now);
    }

    /// A layer is switched on: it begins as a session does, over paths of which another layer knows this round-trip time.
    pub fn begin(&mut self, rtt: Span, now: Time) {
        self.rtt_max = GroupRtt::new(rtt, self.config.rtt_max_memory);
        self.start_up = None;
        self.threshold = None;
        self.start(now);
        self.start_up_after(rtt, now);
    }

    /// The rate that the scheme allows.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The rate at which packets really leave.
    pub const fn pace(&self) -> Rate {
        self.pacer.rate()
    }

    /// When the next packet may leave.
    pub const fn departure(&self) -> Time {
        self.pacer.departure()
    }

    /// Holds all packets until this moment (LE-SBCC's silence). No credit is given for the time until then, and it does not count as
    /// unused.
    pub fn hold_until(&mut self, moment: Time) {
        self.pacer.restart(self.pacer.departure().max(moment));
        self.meter = SendMeter::new(moment);
    }

    /// The number of the next packet.
    pub const fn next_seq(&self) -> Seq {
        self.history.next()
    }

    /// When packet `seq` left, while that is remembered.
    pub fn sent_at(&self, seq: Seq) -> Option<Time> {
        self.history.sent(seq)
    }

    /// How it was configured; limits as they are now.
    pub const fn config(&self) -> &Sending {
        &self.config
    }

    /// The largest round-trip time of the group.
    pub fn rtt_max(&self) -> Span {
        self.rtt_max.get()
    }

    /// This round-trip time of the followed path, or the largest without a sample; at least the configured minimum.
    pub(crate) fn rtt_or_max(&self, followed: Option<Span>) -> Span {
        followed.unwrap_or(self.rtt_max()).max(self.config.min_rtt)
    }

    /// Whether it comes from samples.
    pub fn rtt_is_known(&self) -> bool {
        self.rtt_max.is_known()
    }

    /// Whether start-up still decides the rate.
    pub const fn is_starting(&self) -> bool {
        self.start_up.is_some()
    }

    /// Whether the application has had nothing to send for some round trips.
    pub const fn is_idle(&self) -> bool {
        self.idle.is_some()
    }

    /// Another rate, moved into the limits.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        self.rate = self.config.bounds.clamp(rate);
        self.adjust_pace(now);
    }

    /// The rate that packet headers state.
    pub fn stated_rate(&self) -> Rate {
        self.config.bounds.clamp(self.rate)
    }

    fn adjust_pace(&mut self, now: Time) {
        let part = self.start_up.as_ref().map_or(1.0, StartUp::pace);
        self.pacer.set_rate(self.config.bounds.clamp(self.stated_rate() * part), now);
    }

    /// Handles driver inputs that concern every scheme alike. The receiver that a scheme follows ([`SourceControl::Forget`]) and its
    /// learned state ([`SourceControl::StartAgain`]) are its own matter.
    pub fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Members(members) => self.set_group(members),
            SourceControl::Limits(bounds) => self.set_bounds(bounds, now),
            SourceControl::SignOfLife => self.confirm(now),
            SourceControl::Forget(receiver) => self.rtt_max.forget(receiver),
            SourceControl::StartAgain => {}
        }
    }

    /// Change the lowest and the highest rate.
    pub fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.bounds = bounds;
        self.set_rate(self.rate, now);
    }

    /// Sets the number of receivers that take part and answer: start-up waits for all of a small group.
    pub fn set_group(&mut self, members: usize) {
        self.members = members;
        if let Some(start_up) = &mut self.start_up {
            start_up.set_group(members);
        }
    }

    /// The group has changed: starts up again, where the configuration does so at all.
    pub fn start_again(&mut self, now: Time) {
        let assumed = self.config.min_rtt.max(ASSUMED_RTT);
        self.rtt_max = GroupRtt::new(assumed, self.config.rtt_max_memory);
        self.threshold = None;
        self.silence.lowered = None;
        if let Start::Doubling(_) = self.config.start {
            self.start_up_after(assumed, now);
        }
    }

    /// A packet of `size` bytes leaves now; `rtt` limits how far a late host catches up.
    pub fn depart(&mut self, size: u16, rtt: Span, now: Time) -> Departed {
        if !self.is_running {
            let (seq, rate) = (self.history.record(now), self.stated_rate());
            return Departed { seq, rate, flags: Flags::default() };
        }
        self.adjust_pace(now);
        let rate = self.stated_rate();
        let seq = self.history.record(now);
        self.last_departure = now;
        self.meter.record(size);
        self.pacer.book(now, size, rtt);
        let rtt_max = self.rtt_max.get();
        let flags = match &mut self.start_up {
            Some(start_up) => start_up.on_departure(seq, size, rate, now, rtt_max),
            None => Flags::default(),
        };
        self.adjust_pace(now);
        Departed { seq, rate, flags }
    }

    /// The application sends again after a pause: returns its length. Timers of the scheme continue where they stopped. Called before
    /// [`SendController::depart`].
    pub fn resume(&mut self, now: Time) -> Option<Span> {
        let idle = self.idle.take()?;
        let pause = now.since(idle.since);
        if let Some(start_up) = &mut self.start_up {
            start_up.resume();
        }
        if pause >= SILENT_AFTER_LEAST / 2 {
            // Receivers had little to answer. A short pause is no excuse for silence.
            self.silence.confirmed_at = self.silence.confirmed_at.max(now);
        }
        self.meter = SendMeter::new(now);
        self.come_back(now);
        self.adjust_pace(now);
        Some(pause)
    }

    /// The rate was lowered without congestion: from where it is now it doubles up to the threshold.
    fn come_back(&mut self, now: Time) {
        let threshold = self.threshold.take();
        let Some(threshold) = threshold.filter(|threshold| threshold.bps() > self.rate.bps()) else { return };
        let Start::Doubling(doubling) = self.config.start else { return };
        if self.start_up.is_some() {
            return;
        }
        let rtt = self.rtt_max.get();
        let first = doubling.initial_rate(rtt, self.config.packet_size).max(self.rate).min(threshold);
        let mut start_up = StartUp::new(doubling, self.config.packet_size, rtt).up_to(threshold);
        start_up.set_group(self.members);
        self.start_up = Some(start_up);
        self.set_rate(first, now);
    }

    /// Once per round-trip time: watches for idleness and silence, lowers the rate where they last, and returns whether the scheme may
    /// raise it.
    pub fn watch(&mut self, rtt: Span, now: Time) -> Growth {
        self.watch_application(now, rtt);
        let silent = self.slow_down_in_silence(now, rtt);
        if std::mem::take(&mut self.silence.is_over) {
            self.come_back(now);
        }
        let usage = self.meter.usage(now, self.rate, rtt, self.config.packet_size);
        let guarded = self.config.idle_guard == Guard::On;
        let frozen = self.idle.is_some() || silent || (usage == Usage::Partial && guarded);
        self.set_rate(self.rate, now);
        if frozen || self.start_up.is_some() { Growth::Frozen } else { Growth::Allowed }
    }

    /// Notice that the application has nothing to send, and slow down while that lasts.
    fn watch_application(&mut self, now: Time, rtt: Span) {
        if self.config.idle_guard == Guard::Off {
            return;
        }
        let free_since = self.last_departure.max(self.pacer.departure());
        match &mut self.idle {
            None if now.since(free_since) > rtt * IDLE_AFTER => {
                let slower_at = free_since + slower_after(rtt);
                self.idle = Some(Idle { since: free_since, slower_at });
            }
            Some(idle) if now >= idle.slower_at => {
                idle.slower_at += slower_after(rtt);
                self.threshold = self.threshold.or(Some(self.rate * AFTER_IDLENESS));
                let floor = self.config.initial_rate().min(self.rate);
                self.rate = (self.rate * 0.5).max(floor);
            }
            _ => {}
        }
    }

    /// Stops growth and halves the rate repeatedly while no recent packet has been confirmed. Returns whether the group is silent.
    // Paper gap: 3.1.5 takes silence for a network without congestion, so a source without receivers would grow for
    // ever. The guard is off in `Sending::published`.
    fn slow_down_in_silence(&mut self, now: Time, rtt: Span) -> bool {
        let patience = (rtt * SILENT_AFTER).max(SILENT_AFTER_LEAST);
        if self.config.silent_group_guard == Guard::Off
            || self.idle.is_some()
            || now.since(self.silence.confirmed_at) < patience
        {
            return false;
        }
        let lowered = self.silence.lowered.get_or_insert(Lowered { from: self.rate, again_at: now });
        if now >= lowered.again_at {
            lowered.again_at = now + (rtt * HALVED_EVERY).max(HALVED_EVERY_LEAST);
            let least = Rate::of(u64::from(self.config.packet_size), PROBED_EVERY).min(self.rate);
            self.rate = self.config.bounds.clamp((self.rate * 0.5).max(least));
        }
        true
    }

    /// While idle, the next thing to do is to slow down: when; [`Time::NEVER`] once that is done. `tick_at` is when the
    /// scheme would call [`SendController::watch`] next.
    pub fn rest_until(&self, tick_at: Time) -> Time {
        match self.idle {
            Some(_) if self.rate.bps() <= self.config.initial_rate().bps() => Time::NEVER,
            Some(idle) => idle.slower_at.max(tick_at),
            None => tick_at,
        }
    }

    /// Packet `seq` has arrived somewhere. After silence the rate comes back, by doubling.
    pub fn on_arrived(&mut self, seq: Seq, now: Time) {
        if let Some(confirmed_at) = self.confirmed_at(seq, now) {
            self.confirm(confirmed_at);
        }
    }

    /// Returns the time up to which everything that left has arrived somewhere, if packet `seq` has: when nothing newer has left, there is
    /// nothing to confirm.
    pub fn confirmed_at(&self, seq: Seq, now: Time) -> Option<Time> {
        if seq.next() == self.next_seq() { Some(now) } else { self.sent_at(seq) }
    }

    fn confirm(&mut self, confirmed_at: Time) {
        if confirmed_at <= self.silence.confirmed_at {
            return;
        }
        self.silence.confirmed_at = confirmed_at;
        if let Some(lowered) = self.silence.lowered.take() {
            self.silence.over_at = Seq(self.next_seq().0 + REORDERED);
            self.threshold = Some(self.threshold.unwrap_or(Rate::ZERO).max(lowered.from * AFTER_SILENCE));
            self.silence.is_over = true; // no report raises the rate
        }
    }

    /// Whether a loss that packet `seq` has revealed is one of an interruption, in which nothing arrived: no congestion.
    pub fn is_of_interruption(&self, seq: Seq) -> bool {
        seq < self.silence.over_at
    }

    /// Returns a round-trip sample from an answer to `echo` that came now. `None` for an unknown packet and for an impossible time.
    pub fn sample(&self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= MAX_RTT)
    }

    /// Whether `echo` names a packet that has left.
    pub fn has_left(&self, echo: Echo) -> bool {
        echo.seq < self.history.next()
    }

    /// A round-trip sample counts for the largest one.
    pub fn on_rtt(&mut self, from: ReceiverId, sample: Span, now: Time) {
        self.rtt_max.add(from, sample, now);
    }

    /// The same from an answer that is no report of congestion: it may set the first rate of a start-up.
    pub fn on_alive(&mut self, from: ReceiverId, sample: Span, now: Time) {
        self.rtt_max.add(from, sample, now);
        let rtt_max = self.rtt_max.get();
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_rtt(rtt_max);
            self.make_progress(progress, now);
        }
    }

    /// Before the session has started, reports count as round-trip samples and nothing else. Whether this was one.
    pub fn is_probed(&mut self, report: &Report, now: Time) -> bool {
        if !self.is_running
            && let Some(sample) = self.sample(report.content.echo(), now)
        {
            self.rtt_max.add(report.from, sample, now);
        }
        !self.is_running
    }

    /// A receiver answers a round of the start-up ([`crate::packet::ReportContent::Received`]).
    pub fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_received(from, echo.seq, rate, loss, self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
    }

    /// Congestion ends the start-up: from now on the scheme decides, beginning at the rate at which packets left.
    pub fn end_start_up(&mut self) {
        self.threshold = None;
        if self.start_up.take().is_some() {
            self.rate = self.rate.min(self.pacer.rate());
        }
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

    /// When [`SendController::on_deadline`] wants to be called.
    pub fn deadline(&self) -> Time {
        match (&self.start_up, self.idle) {
            (Some(start_up), None) => start_up.deadline(),
            _ => Time::NEVER,
        }
    }

    /// The deadline may have passed.
    pub fn on_deadline(&mut self, now: Time) {
        if now < self.deadline() {
            return;
        }
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_deadline(self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
    }
}
