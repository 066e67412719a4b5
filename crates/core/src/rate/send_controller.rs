//! The send controller of all rate-based sources: limits, pacing, the record of sent packets, start-up, and guards against rates
//! at which no packet is known to have arrived.
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

/// Parameters of sending that all schemes share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sending {
    /// Packet size "s" on the link, in bytes.
    pub packet_size: u16,
    /// Assumed round-trip time before the first sample (paper 000, 3.3).
    pub initial_rtt: Span,
    /// Minimum round-trip time for controlling the rate.
    pub min_rtt: Span,
    /// For this duration after its latest sample, a member counts for the largest round-trip time, with the median of its latest
    /// samples. `None`: the largest sample of all time counts, as in the paper.
    // Paper gap: 3.1.4 spreads reports over the largest round-trip time of the whole session. A single delay of one host would
    // slow down every election for the rest of the session.
    pub rtt_max_memory: Option<Span>,
    /// Start of the session.
    pub start: Start,
    /// The losses that receivers take for congestion.
    pub losses: Losses,
    /// Minimum and maximum rate.
    pub bounds: Bounds,
    /// Whether the rate stops growing while it is not fully used, and falls while the application has nothing to send.
    pub idle_guard: Guard,
    /// Whether the rate falls while no receiver sends a sign of life.
    pub silent_group_guard: Guard,
    /// Limit on catching up by a late host.
    pub catch_up: CatchUp,
    /// Number of packets whose sending times the source stores.
    pub history_packets: usize,
}

/// Start of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Start {
    /// The first rate is one packet per round-trip time; it grows by the scheme's increase, as in the paper.
    Linear,
    /// Rounds that double the rate.
    Doubling(Doubling),
}

/// The losses that receivers take for congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Losses {
    /// Every loss.
    All,
    /// The losses near which packets are queued on the path ([`crate::estimate::LossCauses`]).
    Queued,
}

impl Sending {
    /// Returns the parameters of the theses' simulations: packets of 1000 bytes and linear start. A silent group does not stop
    /// the source.
    pub fn published() -> Sending {
        let (packet_size, initial_rtt) = (1000, Span::from_millis(100));
        let slowest = Rate::of(u64::from(packet_size), initial_rtt * 10);
        Sending {
            packet_size,
            initial_rtt,
            min_rtt: Span::from_micros(100),
            rtt_max_memory: None,
            start: Start::Linear,
            losses: Losses::All,
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            idle_guard: Guard::On,
            silent_group_guard: Guard::Off,
            catch_up: CatchUp::default(),
            history_packets: 4096,
        }
    }

    /// Returns the parameters for a real network: doubling start, all guards, at least one packet per 8 s.
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

    /// Returns the rate of the first packets.
    // Paper gap: 3.1.5 does not state the initial rate. Here it is a packet per assumed round-trip time.
    pub fn initial_rate(&self) -> Rate {
        let rate = match self.start {
            Start::Linear => Rate::of(u64::from(self.packet_size), self.initial_rtt),
            Start::Doubling(doubling) => doubling.initial_rate(self.initial_rtt, self.packet_size),
        };
        self.bounds.clamp(rate)
    }

    /// Returns the parameters for packets of this size, with the same minimum packet rate.
    #[must_use]
    pub fn with_packet_size(mut self, bytes: u16) -> Sending {
        let span = self.bounds.min.span_of(u64::from(self.packet_size));
        self.bounds.min = Rate::of(u64::from(bytes), span);
        self.packet_size = bytes;
        self
    }
}

/// State of the sending side of a source.
#[derive(Debug, Clone)]
pub struct SendController {
    config: Sending,
    /// Rate that the scheme allows.
    rate: Rate,
    pacer: Pacer,
    history: SendHistory,
    /// Whether the session has started. Packets sent before the start are probes.
    is_running: bool,
    start_up: Option<StartUp>,
    /// Number of members that answer a start-up round; 0 if unknown.
    members: u32,
    rtt_max: GroupRtt,
    meter: SendMeter,
    last_departure: Time,
    idle: Option<Idle>,
    silence: Silence,
    /// Limit up to which the rate doubles again after a reduction without congestion.
    threshold: Option<Rate>,
}

/// State while the application has nothing to send.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Time,
    slower_at: Time,
}

/// State of the detection of a silent group.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// Sending time of the newest packet of which the source knows that any receiver has received it.
    confirmed_at: Time,
    /// Rate before the reductions that the present silence has caused, and time of the next reduction.
    lowered: Option<Lowered>,
    /// A loss that is revealed by a packet before this one belongs to an interruption of the path and is not congestion.
    over_at: Seq,
    /// Whether a silence has ended since the latest [`SendController::watch`].
    is_over: bool,
}

#[derive(Debug, Clone, Copy)]
struct Lowered {
    from: Rate,
    again_at: Time,
}

/// A sent packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departed {
    /// Packet number.
    pub seq: Seq,
    /// Rate stated in its header.
    pub rate: Rate,
    /// Start-up flags.
    pub flags: Flags,
}

/// Whether the rate may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// The rate may grow.
    Allowed,
    /// The rate stays: start-up still determines it, the application does not fully use it, or the group is silent.
    Frozen,
}

/// Maximum plausible round-trip time; a longer sample is an error of a clock or a receiver.
const MAX_RTT: Span = Span::from_secs(10);
/// Assumed round-trip time of a new group before its first answer.
const ASSUMED_RTT: Span = Span::from_millis(5);
/// Number of round trips without data after which the application is idle.
const IDLE_AFTER: u64 = 4;
/// Idle time after which the rate falls, as in TCP after a timeout (RFC 2861, 3; RFC 6298, 2.4): this number of round trips, but
/// at least `SLOWER_AFTER_LEAST`. The rate falls again whenever the same time has passed.
const SLOWER_AFTER: u64 = 10;
const SLOWER_AFTER_LEAST: Span = Span::from_secs(1);
/// Two limits of the renewed doubling, as fractions of the rate before the reductions: after idleness (RFC 2861, 3), and after
/// silence (RFC 5681, 3.1).
const AFTER_IDLENESS: f64 = 0.75;
const AFTER_SILENCE: f64 = 0.5;
/// The group counts as silent if the newest confirmed packet is this number of round trips old, but at least
/// `SILENT_AFTER_LEAST`. For comparison: at least one receiver of the group sends a sign of life four times a second.
const SILENT_AFTER: u64 = 10;
const SILENT_AFTER_LEAST: Span = Span::from_secs(1);
/// Maximum time between two packets to a silent group, so that the source detects the end of an interruption.
pub(crate) const PROBED_EVERY: Span = Span::from_millis(250);
/// Maximum number of packets after a gap until a receiver that tolerates reordering detects the gap.
const REORDERED: u64 = 4;
/// Time between two halvings of the rate while the group is silent: this number of round trips, but at least
/// `HALVED_EVERY_LEAST`.
const HALVED_EVERY: u64 = 4;
const HALVED_EVERY_LEAST: Span = Span::from_millis(250);

/// Returns the duration for which an application may be idle before the rate falls.
fn slower_after(rtt: Span) -> Span {
    (rtt * SLOWER_AFTER).max(SLOWER_AFTER_LEAST)
}

impl SendController {
    /// Creates a controller that has not started.
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

    /// Starts the session. From before the start, only measured round-trip times are used.
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

    /// Returns whether the session has started.
    pub const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Begins start-up over paths with the round-trip time `rtt`. If no start-up is configured, sets the rate to a packet per
    /// round trip.
    fn start_up_after(&mut self, rtt: Span, now: Time) {
        let packet_size = self.config.packet_size;
        let rate = match self.config.start {
            Start::Linear => Rate::of(u64::from(packet_size), rtt),
            Start::Doubling(doubling) => {
                let mut start_up = StartUp::new(doubling, packet_size, rtt);
                start_up.set_group(self.members as usize);
                self.start_up = Some(start_up);
                doubling.initial_rate(rtt, packet_size)
            }
        };
        self.set_rate(rate, now);
    }

    /// Starts a layer that was off, with the round-trip time of another layer.
    pub fn begin(&mut self, rtt: Span, now: Time) {
        self.rtt_max = GroupRtt::new(rtt, self.config.rtt_max_memory);
        self.start_up = None;
        self.threshold = None;
        self.start(now);
        self.start_up_after(rtt, now);
    }

    /// Returns the rate that the scheme allows.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the rate at which packets are actually sent, which may be below the permitted rate.
    pub const fn pace(&self) -> Rate {
        self.pacer.rate()
    }

    /// Returns the time of the next departure.
    pub const fn departure(&self) -> Time {
        self.pacer.departure()
    }

    /// Sends no packets until this time (LE-SBCC's silence). The source does not catch up for this time, and it does not count as
    /// unused.
    pub fn hold_until(&mut self, moment: Time, now: Time) {
        self.pacer.restart(self.pacer.departure().max(moment));
        self.meter.restart(now, self.rate, moment);
    }

    /// Returns the number of the next packet.
    pub const fn next_seq(&self) -> Seq {
        self.history.next()
    }

    /// Returns the sending time of packet `seq`; `None` if it is not stored.
    pub fn sent_at(&self, seq: Seq) -> Option<Time> {
        self.history.sent(seq)
    }

    /// Returns the configuration with the present limits.
    pub const fn config(&self) -> &Sending {
        &self.config
    }

    /// Returns the largest round-trip time of the group.
    pub fn rtt_max(&self) -> Span {
        self.rtt_max.get()
    }

    /// Returns `followed`, the round-trip time of the path that the rate follows; if `followed` is unknown, the largest
    /// round-trip time of the group. The result is at least the configured minimum.
    pub(crate) fn rtt_or_max(&self, followed: Option<Span>) -> Span {
        followed.unwrap_or(self.rtt_max()).max(self.config.min_rtt)
    }

    /// Returns whether the largest round-trip time is measured.
    pub fn rtt_is_known(&self) -> bool {
        self.rtt_max.is_known()
    }

    /// Returns whether start-up still determines the rate.
    pub const fn is_starting(&self) -> bool {
        self.start_up.is_some()
    }

    /// Returns whether the application has had nothing to send for some round trips.
    pub const fn is_idle(&self) -> bool {
        self.idle.is_some()
    }

    /// Sets the rate, clamped to the limits.
    pub fn set_rate(&mut self, rate: Rate, now: Time) {
        self.rate = self.config.bounds.clamp(rate);
        self.adjust_pace(now);
    }

    /// Returns the rate from which a cut starts, if the scheme would start from `level`, the throughput of a receiver. A source that
    /// its application limits starts from at least the rate that it has sent lately. No receiver of such a source can measure a
    /// capacity, and in a pause of the application it measures nearly nothing. The application needs the reduced rate, so the next
    /// cut starts from `level`.
    // Paper gap: 3.1.5 assumes a source that always has data. For a source that its application limits, RFC 7661, 4.4.1 starts a
    // cut of TCP from the data that were sent lately.
    pub fn cut_from(&self, level: Rate, now: Time) -> Rate {
        self.meter.limited(now, self.rate).map_or(level, |sent| sent.max(level))
    }

    /// Returns the rate that packet headers state.
    pub fn stated_rate(&self) -> Rate {
        self.config.bounds.clamp(self.rate)
    }

    fn adjust_pace(&mut self, now: Time) {
        let part = self.start_up.as_ref().map_or(1.0, StartUp::pace);
        self.pacer.set_rate(self.config.bounds.clamp(self.stated_rate() * part), now);
    }

    /// Handles driver inputs in the way that is the same for every scheme. The scheme itself handles two more tasks: the removal
    /// of its followed receiver ([`SourceControl::Forget`]) and the reset of its own measurements
    /// ([`SourceControl::StartAgain`]).
    pub fn control(&mut self, control: SourceControl, now: Time) {
        match control {
            SourceControl::Members(members) => self.set_group(members),
            SourceControl::Limits(bounds) => self.set_bounds(bounds, now),
            SourceControl::SignOfLife => self.confirm(now),
            SourceControl::Forget(receiver) => self.rtt_max.forget(receiver),
            SourceControl::StartAgain => {}
        }
    }

    /// Changes the minimum and the maximum rate.
    pub fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.bounds = bounds;
        self.set_rate(self.rate, now);
    }

    /// Sets the number of receivers that answer start-up rounds. In a small group, start-up waits for all of them.
    pub fn set_group(&mut self, members: usize) {
        self.members = u32::try_from(members).unwrap_or(u32::MAX);
        if let Some(start_up) = &mut self.start_up {
            start_up.set_group(members);
        }
    }

    /// Starts up again for a new group, if the configuration has a start-up.
    pub fn start_again(&mut self, now: Time) {
        let assumed = self.config.min_rtt.max(ASSUMED_RTT);
        self.rtt_max = GroupRtt::new(assumed, self.config.rtt_max_memory);
        self.threshold = None;
        self.silence.lowered = None;
        if let Start::Doubling(_) = self.config.start {
            self.start_up_after(assumed, now);
        }
    }

    /// Records that a packet of `size` bytes is sent now. A host that is late catches up at most the packets of `rtt`
    /// ([`CatchUp`]).
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

    /// Ends a pause of the application and returns the duration of the pause. The scheme's timers continue where they stopped.
    /// Must be called before [`SendController::depart`].
    pub fn resume(&mut self, now: Time) -> Option<Span> {
        let idle = self.idle.take()?;
        let pause = now.since(idle.since);
        if let Some(start_up) = &mut self.start_up {
            start_up.resume();
        }
        if pause >= SILENT_AFTER_LEAST / 2 {
            // During a long pause the receivers had little to answer, so the time of their silence begins now. A short pause does
            // not explain a silence.
            self.silence.confirmed_at = self.silence.confirmed_at.max(now);
        }
        self.meter.restart(now, self.rate, now);
        self.come_back(now);
        self.adjust_pace(now);
        Some(pause)
    }

    /// Starts doubling from the present rate to the threshold, if a reduction without congestion has set a threshold.
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
        start_up.set_group(self.members as usize);
        self.start_up = Some(start_up);
        self.set_rate(first, now);
    }

    /// Must be called once per round-trip time. Checks whether the application is idle or the group is silent, and lowers the
    /// rate in these states. Returns whether the scheme may raise the rate.
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

    /// Detects that the application has nothing to send, and lowers the rate while the application is idle.
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

    /// Halves the rate repeatedly while no recent packet has been confirmed. Returns whether the group is silent.
    // Paper gap: 3.1.5 interprets silence as a network without congestion, so a source without receivers would grow indefinitely.
    // The guard is off in `Sending::published`.
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

    /// Returns the time of the next [`SendController::watch`]. While the application is idle, this is the time of the next
    /// reduction of the rate, or [`Time::NEVER`] after the last reduction. Otherwise it is `tick_at`, the scheme's next tick.
    pub fn rest_until(&self, tick_at: Time) -> Time {
        match self.idle {
            Some(_) if self.rate.bps() <= self.config.initial_rate().bps() => Time::NEVER,
            Some(idle) => idle.slower_at.max(tick_at),
            None => tick_at,
        }
    }

    /// Records that packet `seq` has arrived at a receiver. If the packet ends a silence, the rate grows back by doubling.
    pub fn on_arrived(&mut self, seq: Seq, now: Time) {
        if let Some(confirmed_at) = self.confirmed_at(seq, now) {
            self.confirm(confirmed_at);
        }
    }

    /// Returns the sending time of packet `seq`; all packets sent until this time are confirmed. If `seq` is the newest packet,
    /// returns `now`.
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
            self.silence.is_over = true; // the next `watch` raises the rate
        }
    }

    /// Returns whether a loss revealed by packet `seq` belongs to an interruption, and so is not congestion.
    pub fn is_of_interruption(&self, seq: Seq) -> bool {
        seq < self.silence.over_at
    }

    /// Returns a sample of the round-trip time, from an answer to `echo` that arrives now. `None` for an unknown packet and for
    /// an implausible time.
    pub fn sample(&self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= MAX_RTT)
    }

    /// Returns whether `echo` is a packet that was sent.
    pub fn has_left(&self, echo: Echo) -> bool {
        echo.seq < self.history.next()
    }

    /// Adds a sample of a member's round-trip time to the estimate of the largest one.
    pub fn on_rtt(&mut self, from: ReceiverId, sample: Span, now: Time) {
        self.rtt_max.add(from, sample, now);
    }

    /// Adds a sample of the round-trip time, from an answer that is not a congestion report. The sample may set the initial rate
    /// of a start-up.
    pub fn on_alive(&mut self, from: ReceiverId, sample: Span, now: Time) {
        self.rtt_max.add(from, sample, now);
        let rtt_max = self.rtt_max.get();
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_rtt(rtt_max);
            self.make_progress(progress, now);
        }
    }

    /// Uses a report that arrives before the start of the session, but only as a sample of the round-trip time. Returns whether
    /// the session has not started.
    pub fn is_probed(&mut self, report: &Report, now: Time) -> bool {
        if !self.is_running
            && let Some(sample) = self.sample(report.content.echo(), now)
        {
            self.rtt_max.add(report.from, sample, now);
        }
        !self.is_running
    }

    /// Processes a receiver's answer to a start-up round ([`crate::packet::ReportContent::Received`]).
    pub fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_received(from, echo.seq, rate, loss, self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
    }

    /// Ends the start-up because of congestion. The scheme continues at the rate at which packets were actually sent.
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

    /// Returns the time of the next call of [`SendController::on_deadline`].
    pub fn deadline(&self) -> Time {
        match (&self.start_up, self.idle) {
            (Some(start_up), None) => start_up.deadline(),
            _ => Time::NEVER,
        }
    }

    /// Processes the deadline if it has passed.
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
