//! The sending half that all rate-based sources share: limits, pacing, the memory of what left, start-up, and guards
//! against rates that nothing in the network confirms.
//!
//! ```text
//!   the scheme: whom to follow, when to grow, when to cut
//!        |  set_rate                      ^ growth, sample
//!        v                                |
//!   outlet:  limits -> pressure -> start-up's pace -> pacer -> numbered departures
//! ```

use super::bounds::{Bounds, Guard, SendMeter, Usage};
use super::pacer::CatchUp;
use super::start::{Doubling, Progress};
use super::{Pacer, Pressure, StartUp};
use crate::estimate::{LargestRtt, SendHistory};
use crate::node::Control;
use crate::packet::{Echo, Flags, ReceiverId, Seq};
use crate::time::{Rate, Span, Time};

/// How a source sends, whatever its scheme. A part of every scheme's configuration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sending {
    /// Packet size "s" in bytes, as it counts on the link.
    pub packet_size: u16,
    /// Round-trip time assumed before the first sample (seed 000, 3.3).
    pub initial_rtt: Span,
    /// No round-trip time counts as shorter than this when the rate is controlled.
    pub shortest_rtt: Span,
    /// How long the largest round-trip time is remembered; `None` for ever, as in the seed.
    // Seed gap: 3.1.4 spreads reports over the largest round-trip time ever seen, so one hiccup of one host would slow
    // every election for the rest of a session. `Sending::transport` forgets after 5 to 10 s.
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
    /// One packet per round-trip time, then the scheme's own increase: the seed.
    Linear,
    /// In rounds that double the rate.
    Doubling(Doubling),
}

impl Sending {
    /// As the theses' simulations send: packets of 1000 bytes, linear start, never silenced by a silent group.
    pub fn seed() -> Sending {
        let (packet_size, initial_rtt) = (1000, Span::from_millis(100));
        let slowest = Rate::of(u64::from(packet_size), initial_rtt * 10);
        Sending {
            packet_size,
            initial_rtt,
            shortest_rtt: Span::from_micros(100),
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
            shortest_rtt: Span::from_millis(1),
            rtt_max_memory: Some(Span::from_secs(5)),
            start: Start::Doubling(Doubling::default()),
            bounds: Bounds { min: slowest, max: Rate::UNLIMITED },
            silent_group_guard: Guard::On,
            history_packets: 1 << 19,
            ..Sending::seed()
        }
    }

    /// The rate of the first packets.
    // Seed gap: 3.1.5 leaves the initial rate open. Here it is a packet per assumed round-trip time.
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
pub struct Outlet {
    config: Sending,
    /// What the scheme allows.
    rate: Rate,
    pressure: Pressure,
    pacer: Pacer,
    history: SendHistory,
    start_up: Option<StartUp>,
    rtt_max: LargestRtt,
    meter: SendMeter,
    last_departure: Time,
    idle: Option<Idle>,
    heard_at: Time,
    silent_since: Time,
}

/// The application has nothing to send.
#[derive(Debug, Clone, Copy)]
struct Idle {
    since: Time,
    slower_at: Time,
}

/// A packet that leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Departed {
    /// Its number.
    pub seq: Seq,
    /// The rate that it says it is sent at.
    pub rate: Rate,
    /// Flags of the start-up.
    pub flags: Flags,
}

/// Whether the rate may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// It may.
    Allowed,
    /// Start-up still decides, the application does not use the rate, or nobody is there.
    Frozen,
}

/// Samples above this are mistakes of a clock or a receiver.
const LONGEST_RTT: Span = Span::from_secs(10);
/// When the group is another one, before its first answer.
const ASSUMED_RTT: Span = Span::from_millis(5);
/// Idle or silent for so many round trips.
const IDLE_AFTER: u64 = 4;
const SLOWER_AFTER: u64 = 10;
const SILENT_AFTER: Span = Span::from_secs(2);

impl Outlet {
    /// An outlet that has not started.
    pub fn new(config: Sending) -> Outlet {
        let rate = config.initial_rate();
        let start_up = match config.start {
            Start::Linear => None,
            Start::Doubling(doubling) => Some(StartUp::new(doubling, config.packet_size, config.initial_rtt)),
        };
        Outlet {
            config,
            rate,
            pressure: Pressure::default(),
            pacer: Pacer::new(rate, config.catch_up),
            history: SendHistory::new(config.history_packets),
            start_up,
            rtt_max: LargestRtt::new(config.initial_rtt, config.rtt_max_memory),
            meter: SendMeter::new(Time::ZERO),
            last_departure: Time::ZERO,
            idle: None,
            heard_at: Time::ZERO,
            silent_since: Time::ZERO,
        }
    }

    /// The session starts now.
    pub fn start(&mut self, now: Time) {
        self.pacer.restart(now);
        self.meter = SendMeter::new(now);
        self.last_departure = now;
        self.on_sign_of_life(now);
    }

    /// A layer is switched on: it begins as a session does, over paths of which another layer knows this round-trip time.
    pub fn begin(&mut self, rtt: Span, now: Time) {
        self.start(now);
        self.idle = None;
        self.rtt_max = LargestRtt::new(rtt, self.config.rtt_max_memory);
        self.start_up = match self.config.start {
            Start::Linear => None,
            Start::Doubling(doubling) => Some(StartUp::new(doubling, self.config.packet_size, rtt)),
        };
        let packet = u64::from(self.config.packet_size);
        let rate = match self.config.start {
            Start::Linear => Rate::of(packet, rtt),
            Start::Doubling(doubling) => doubling.initial_rate(rtt, self.config.packet_size),
        };
        self.set_rate(rate, now);
    }

    /// What the scheme allows.
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

    /// Nothing leaves before this moment (LE-SBCC's silence); no credit is given for the time until then, and what was not
    /// sent meanwhile was not left unused.
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
        self.history.sent(seq).map(|(at, _)| at)
    }

    /// How it was configured; limits as they are now.
    pub const fn config(&self) -> &Sending {
        &self.config
    }

    /// The largest round-trip time of the group.
    pub fn rtt_max(&self) -> Span {
        self.rtt_max.get()
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

    /// The rate that packets say they are sent at.
    pub fn said_rate(&self) -> Rate {
        self.config.bounds.clamp(self.pressure.applied_to(self.rate))
    }

    fn adjust_pace(&mut self, now: Time) {
        let part = self.start_up.as_ref().map_or(1.0, StartUp::pace);
        self.pacer.set_rate(self.config.bounds.clamp(self.said_rate() * part), now);
    }

    /// What a driver says that concerns every scheme alike. Whom a scheme follows ([`Control::Forget`]) and what it has
    /// learned ([`Control::StartAgain`]) are its own matter.
    pub fn control(&mut self, control: Control, now: Time) {
        match control {
            Control::Members(members) => self.set_group(members),
            Control::Limits(bounds) => self.set_bounds(bounds, now),
            Control::SignOfLife => self.on_sign_of_life(now),
            Control::Forget(_) | Control::StartAgain => {}
        }
    }

    /// Change the lowest and the highest rate.
    pub fn set_bounds(&mut self, bounds: Bounds, now: Time) {
        self.config.bounds = bounds;
        self.set_rate(self.rate, now);
    }

    /// So many receivers take part and answer: start-up waits for all of a small group.
    pub fn set_group(&mut self, members: usize) {
        if let Some(start_up) = &mut self.start_up {
            start_up.set_group(members);
        }
    }

    /// The group is another one now: start up anew, where the configuration does so at all.
    pub fn start_again(&mut self, now: Time) {
        self.rtt_max = LargestRtt::new(self.config.shortest_rtt.max(ASSUMED_RTT), self.config.rtt_max_memory);
        if let Start::Doubling(doubling) = self.config.start {
            self.start_up = Some(StartUp::new(doubling, self.config.packet_size, self.rtt_max.get()));
            self.set_rate(doubling.initial_rate(self.rtt_max.get(), self.config.packet_size), now);
        }
    }

    /// A packet of `size` bytes leaves now; `rtt` limits how far a late host catches up.
    pub fn depart(&mut self, size: u16, rtt: Span, now: Time) -> Departed {
        self.pressure.recover(self.rate, now);
        self.adjust_pace(now);
        let rate = self.said_rate();
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

    /// The application sends again after a pause: how long that was. What the scheme timed goes on where it stopped.
    /// Called before [`Outlet::depart`].
    pub fn resume(&mut self, now: Time) -> Option<Span> {
        let idle = self.idle.take()?;
        if let Some(start_up) = &mut self.start_up {
            start_up.resume();
        }
        self.on_sign_of_life(now);
        self.meter = SendMeter::new(now);
        self.adjust_pace(now);
        Some(now.since(idle.since))
    }

    /// Once per round-trip time: watches for idleness and silence, lowers the rate where they last, and tells whether
    /// the scheme may raise it.
    pub fn watch(&mut self, rtt: Span, now: Time) -> Growth {
        self.pressure.recover(self.rate, now);
        self.watch_application(now, rtt);
        let silent = self.slow_down_in_silence(now, rtt);
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

    /// No sign of life from anybody: do not grow, and halve again and again. Tells whether the group is silent.
    // Seed gap: 3.1.5 takes silence for a network without congestion, so a source without receivers would grow for
    // ever. The guard is off in `Sending::seed`.
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

    /// While idle, the next thing to do is to slow down: when; [`Time::NEVER`] once that is done. `tick_at` is when the
    /// scheme would call [`Outlet::watch`] next.
    pub fn rest_until(&self, tick_at: Time) -> Time {
        match self.idle {
            Some(_) if self.rate.bps() <= self.config.initial_rate().bps() => Time::NEVER,
            Some(idle) => idle.slower_at.max(tick_at),
            None => tick_at,
        }
    }

    /// Something came from a receiver: the group is not silent.
    pub fn on_sign_of_life(&mut self, now: Time) {
        self.heard_at = self.heard_at.max(now);
        self.silent_since = self.heard_at;
    }

    /// A round-trip sample from an answer to `echo` that came now. `None` for an unknown packet, one sent again, and
    /// what cannot be true.
    pub fn sample(&self, echo: Echo, now: Time) -> Option<Span> {
        self.history.sample(echo, now).filter(|sample| *sample <= LONGEST_RTT)
    }

    /// Whether `echo` names a packet that has left.
    pub fn has_left(&self, echo: Echo) -> bool {
        echo.seq < self.history.next()
    }

    /// A round-trip sample counts for the largest one.
    pub fn on_rtt(&mut self, sample: Span, now: Time) {
        self.rtt_max.add(sample, now);
    }

    /// The same from an answer that is no report of congestion: it may set the first rate of a start-up.
    pub fn on_alive(&mut self, sample: Span, now: Time) {
        self.rtt_max.add(sample, now);
        let rtt_max = self.rtt_max.get();
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_rtt(rtt_max);
            self.make_progress(progress, now);
        }
    }

    /// A receiver answers a round of the start-up ([`crate::packet::Content::Received`]).
    pub fn on_received(&mut self, from: ReceiverId, echo: Echo, rate: Rate, loss: f32, now: Time) {
        if let Some(start_up) = &mut self.start_up {
            let progress = start_up.on_received(from, echo.seq, rate, loss, self.rate, &self.config.bounds);
            self.make_progress(progress, now);
        }
    }

    /// A receiver cannot take more than `rate` ([`crate::packet::Content::Sustainable`]).
    pub fn on_sustainable(&mut self, from: ReceiverId, rate: Rate, now: Time) {
        self.pressure.on_report(from, rate, self.said_rate(), now);
        self.set_rate(self.rate, now);
    }

    /// Congestion ends the start-up: from now on the scheme decides, beginning at the rate at which packets left.
    pub fn end_start_up(&mut self) {
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

    /// When [`Outlet::on_deadline`] wants to be called.
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
