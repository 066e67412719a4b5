//! TFMCC's receiver: calculates TCP's rate on its path, and reports it occasionally (RFC 4654, 5 and 6).

use super::clock::{Clock, Role};
use super::config::{Config, Discounting, FirstInterval, OneWay, Recovery, TimerLaw};
use super::history::History;
use super::{equation, timer};
use crate::estimate::Throughput;
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Data, Echo, Knows, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::time::{Rate, Span, Time};

/// A receiver of a TFMCC session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    settings: Settings,
    newest: Option<NewestHeader>,
    clock: Clock,
    role: Role,
    arrivals: Throughput,
    joined_at: Time,
    began: Began,
    /// Mean size of a packet, in bytes.
    size: f32,
    /// The time of the latest loss event, and half of the received rate at that time.
    cut: Option<(Time, Rate)>,
    /// Loss history; `None` before the first missing packet.
    history: Option<Box<History>>,
    report: Option<Planned>,
    /// Newest packet at the latest report.
    reported: Option<Seq>,
    suppressed: u32,
}

const _: () = assert!(size_of::<Receiver>() <= 424);

#[derive(Debug, Clone, Copy)]
struct Settings {
    timer: TimerLaw,
    one_way: OneWay,
    discounting: Discounting,
    first: FirstInterval,
    event: f32,
    recovery: Recovery,
    received_over: f32,
    slowest_gap: Span,
}

/// The newest packet.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    seq: Seq,
    at: Time,
    sent_at: Time,
    layer: Layer,
    /// Sending rate stated in its header, bit/s.
    rate: f32,
    suppress_above: f32,
    rtt_max: Span,
    stated_rtt_max: f32,
    round: u8,
}

/// A report that waits for its deadline.
#[derive(Debug, Clone, Copy)]
struct Planned {
    at: Time,
    /// Calculated rate at the time of planning, "X_fbr".
    rate: f32,
}

/// Range to which the largest round-trip time of a header is clamped.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));
/// Assumed largest round-trip time before a header states it.
const DEFAULT_RTT_MAX: Span = Span::from_millis(500);
/// Duration of a pause, in largest round-trip times, after which a receiver forgets its losses (RFC 4654, 6.1).
const FORGOTTEN_AFTER: u64 = 10;
/// Gain of the mean packet size.
const SIZE_GAIN: f32 = 1.0 / 16.0;
/// Four packets that arrive within less than this time count as a burst.
const MIN_SPAN: Span = Span::from_micros(20);
/// Minimum time for measuring a received rate.
const MIN_WINDOW: Span = Span::from_millis(2);

/// The latest beginning of the stream.
#[derive(Debug, Clone, Copy)]
struct Began {
    first: Seq,
    /// Number of packets that have arrived in order since the beginning.
    came: u32,
}

impl Began {
    /// Returns the number of lost packets that belong to the stream. A gap is detected some packets late, so it may precede the
    /// beginning of the stream.
    fn of_stream(self, lost: u32, by: Seq) -> u32 {
        let sent = (by.0.saturating_sub(self.first.0)).min(u64::from(u32::MAX)) as u32;
        lost.min(sent.saturating_sub(self.came - 1))
    }
}

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        let settings = Settings {
            timer: config.timer,
            one_way: config.one_way,
            discounting: config.discounting,
            first: config.first,
            event: config.event as f32,
            recovery: config.recovery,
            received_over: config.received_over as f32,
            slowest_gap: Span::from_secs(8),
        };
        Receiver {
            me,
            settings,
            newest: None,
            clock: Clock::new(config.sending.min_rtt),
            role: Role::Other,
            arrivals: Throughput::new(),
            joined_at: Time::ZERO,
            began: Began { first: Seq(0), came: 0 },
            size: 0.0,
            cut: None,
            history: None,
            report: None,
            reported: None,
            suppressed: 0,
        }
    }

    /// Returns the loss event rate; zero before a loss.
    pub fn loss(&self) -> f64 {
        let (Some(history), Some(newest)) = (&self.history, &self.newest) else { return 0.0 };
        history.rate(newest.seq, self.settings.discounting)
    }

    /// Returns the round-trip time; before a measurement, the largest round-trip time of the group.
    pub fn rtt(&self) -> Span {
        self.clock.rtt(self.rtt_max())
    }

    /// Returns whether this is the limiting receiver, according to the headers received so far.
    pub fn is_limiting(&self) -> bool {
        self.role == Role::Limiting
    }

    /// Returns the time of the latest loss event in the history.
    pub fn lost_at(&self) -> Option<Time> {
        self.cut.map(|(at, _)| at)
    }

    /// Removes all losses, so that start-up continues.
    pub fn forget_losses(&mut self) {
        (self.cut, self.history) = (None, None);
    }

    /// Sends a report now, regardless of the reports of other receivers.
    pub fn report_now(&mut self, cx: &mut Cx<'_>) {
        self.send(Knows::default(), cx);
    }

    fn rtt_max(&self) -> Span {
        self.newest.map_or(DEFAULT_RTT_MAX, |newest| newest.rtt_max)
    }

    /// Returns whether the history contains a loss event.
    pub fn has_loss(&self) -> bool {
        self.history.as_ref().is_some_and(|history| history.has_loss())
    }

    /// Returns the received rate ("X_recv") over this number of round-trip times before `latest`, the arrival time of a packet. A
    /// later pause of the source does not count, because it shows nothing about the path.
    fn received(&self, round_trips: f64, latest: Time) -> Rate {
        let four = self.arrivals.latest_four(latest).filter(|four| *four >= MIN_SPAN);
        let Some(four) = four else {
            // If too few packets have arrived to measure the rate, the rate stated by the source is used, if there is one.
            let stated = self.newest.map_or(0.0, |newest| f64::from(newest.rate));
            return if stated > 0.0 { Rate::from_bps(stated) } else { Rate::UNLIMITED };
        };
        let window = self.rtt().scaled(round_trips).max(four).max(MIN_WINDOW);
        let window = window.min(latest.since(self.joined_at));
        if four >= self.arrivals.covered() {
            return Rate::of(4 * self.size as u64, four); // the buckets do not cover four packets
        }
        self.arrivals.rate(latest, window.min(self.arrivals.covered()))
    }

    /// Returns the rate that this receiver would report now ("X_r").
    pub fn calculated(&self, now: Time) -> Rate {
        let size = f64::from(self.size);
        let rate = if self.has_loss() {
            equation::rate(size, self.rtt(), self.loss()).max(self.recovered(now))
        } else {
            let latest = self.newest.map_or(now, |newest| newest.at);
            self.received(f64::from(self.settings.received_over), latest) * 2.0
        };
        rate.max(Rate::of(size as u64, self.settings.slowest_gap))
    }

    /// Returns the rate to which TCP would have grown since the latest loss event; zero unless `Recovery::Tcp` is set.
    fn recovered(&self, now: Time) -> Rate {
        match (self.settings.recovery, self.cut) {
            (Recovery::Tcp, Some((at, half))) => {
                let round_trips = now.since(at).as_secs_f64() / self.rtt().as_secs_f64();
                half + Rate::of(self.size as u64, self.rtt()) * round_trips
            }
            _ => Rate::ZERO,
        }
    }

    /// Returns the duration within which losses count as one event.
    fn event(&self) -> Span {
        self.rtt().scaled(f64::from(self.settings.event))
    }

    /// Copies the header of a packet that is newer than all earlier ones.
    fn copy_header(&mut self, data: &Data, layer: Layer, now: Time) {
        let before = self.newest;
        let mut newest = before.unwrap_or(NewestHeader {
            seq: data.seq,
            at: now,
            sent_at: data.sent_at,
            layer,
            rate: 0.0,
            suppress_above: f32::INFINITY,
            rtt_max: DEFAULT_RTT_MAX,
            stated_rtt_max: f32::NAN,
            round: 0,
        });
        (newest.seq, newest.at, newest.sent_at, newest.layer) = (data.seq, now, data.sent_at, layer);
        newest.rate = if data.rate.is_finite() { data.rate.max(0.0) } else { 0.0 };
        let Mark::Equation { suppress_above, rtt_max, round, to, echo, limiting } = data.mark else {
            self.newest = Some(newest);
            return;
        };
        let other = newest.suppress_above != suppress_above;
        newest.suppress_above = suppress_above;
        let old_rtt_max = newest.rtt_max;
        if newest.stated_rtt_max != rtt_max && rtt_max.is_finite() {
            newest.stated_rtt_max = rtt_max;
            newest.rtt_max = Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1);
        }
        let new_round = before.is_none_or(|before| before.round != round);
        newest.round = round;
        self.newest = Some(newest);
        self.receive_echo(to, echo, limiting, data, now);
        if self.role == Role::Other {
            self.reconsider(other, old_rtt_max, now);
        }
        if new_round && self.role == Role::Other {
            self.report = None;
        }
    }

    fn receive_echo(&mut self, to: Option<ReceiverId>, echo: u32, limiting: bool, data: &Data, now: Time) {
        let me = to == Some(self.me);
        if me || limiting {
            let role = if me && limiting { Role::Limiting } else { Role::Other };
            if role != self.role {
                (self.role, self.report) = (role, None);
            }
        }
        let before = self.rtt();
        let first = !self.clock.is_measured();
        if me {
            if self.clock.measure(echo, data.sent_at, self.role, now)
                && first
                && let Some(history) = &mut self.history
            {
                let factor = self.clock.rtt(before).as_secs_f64() / before.as_secs_f64();
                history.rescale_first(factor);
            }
        } else if self.settings.one_way == OneWay::Followed {
            self.clock.follow(data.sent_at, now);
        }
    }

    /// Reschedules or drops the planned report of this receiver, according to a new header.
    fn reconsider(&mut self, other_limit: bool, old_rtt_max: Span, now: Time) {
        let Some(newest) = self.newest else { return };
        if newest.rtt_max != old_rtt_max
            && let Some(planned) = &mut self.report
        {
            let part = newest.rtt_max.as_secs_f64() / old_rtt_max.as_secs_f64();
            planned.at = now.max(now + planned.at.since(now).scaled(part));
        }
        if !other_limit || self.rtt() > newest.rtt_max {
            return;
        }
        if let Some(planned) = self.report {
            let rate = self.calculated(now).bps();
            if f64::from(newest.suppress_above) < rate || newest.suppress_above < planned.rate {
                self.report = None;
                self.suppressed += 1;
            }
        }
    }

    /// Plans a report for a new feedback round.
    fn plan(&mut self, pause: Span, cx: &mut Cx<'_>) {
        let Some(newest) = self.newest else { return };
        let rate = self.calculated(cx.now).bps();
        let part = if newest.rate > 0.0 { rate / f64::from(newest.rate) } else { 1.0 };
        let law = self.settings.timer;
        let delay = timer::delay(law, timer::longest(law, newest.rtt_max), part, cx.rng);
        let excess = pause.saturating_sub(newest.rtt_max);
        self.report = Some(Planned { at: cx.now + delay + excess.min(RTT_RANGE.1), rate: rate as f32 });
    }

    /// Plans the next report of the limiting receiver, which reports once per round-trip time.
    fn plan_next_of_limiting(&mut self, now: Time) {
        self.report = Some(Planned { at: now + self.rtt(), rate: 0.0 });
    }

    /// Processes packets that are found to be missing or lost when `data` arrives, or a mark on `data`.
    #[inline(never)]
    fn on_gap(&mut self, data: &Data, arrival: Arrival, before: NewestHeader, cx: &mut Cx<'_>) {
        let (rtt, rtt_max) = (self.rtt(), self.rtt_max());
        // The rate is measured over the round trip before the gap.
        let received = self.received(1.0, before.at);
        let (now, discounting) = (cx.now, self.settings.discounting);
        let (measured, event) = (self.clock.is_measured(), self.event());
        let history = self.history.get_or_insert_default();
        let is_first = !history.has_loss();
        if data.seq > before.seq.next() {
            history.miss(before.seq.next(), data.seq, before.at, now);
        }
        let mut begun = false;
        let lost = self.began.of_stream(arrival.lost, data.seq);
        if lost > 0 {
            begun |= history.lose(lost, data.seq, now, event, discounting);
        }
        history.excuse(self.began.of_stream(arrival.excused, data.seq));
        if arrival.marked {
            begun |= history.mark(data.seq, now, event, discounting);
        }
        if begun {
            self.cut = Some((now, received * 0.5));
        }
        if begun && is_first {
            let rtt = if measured { rtt } else { rtt_max };
            let size = f64::from(self.size);
            history.set_first(match self.settings.first {
                FirstInterval::Rfc4654 => equation::first_interval(size, received, rtt),
                FirstInterval::Rfc5348 => equation::first_interval_exactly(size, received, rtt),
            });
        }
    }

    /// Starts or restarts the stream. A restart discards all earlier state.
    fn begin(&mut self, seq: Seq, now: Time) {
        self.began = Began { first: seq, came: 0 };
        (self.joined_at, self.cut, self.history, self.report) = (now, None, None, None);
        self.arrivals = Throughput::new();
    }

    fn send(&mut self, besides: Knows, cx: &mut Cx<'_>) {
        let Some(newest) = self.newest else { return };
        let mut knows = besides;
        if self.clock.is_measured() {
            knows = knows.with(Knows::RTT);
        }
        if self.has_loss() {
            knows = knows.with(Knows::LOSS);
        }
        let rate = self.calculated(cx.now);
        if !rate.is_usable() {
            return; // there is no measurement yet
        }
        let content = ReportContent::Calculated {
            echo: Echo { seq: newest.seq, hold: cx.now.since(newest.at) },
            rate: rate.bps() as f32,
            stamp: Clock::stamp(cx.now),
            round: newest.round,
            knows,
        };
        self.reported = Some(newest.seq);
        cx.effects.push(Effect::Report(Report { from: self.me, layer: newest.layer, content }));
    }

    /// Returns whether a report is needed: the calculated rate is below the suppression rate, or the round-trip time is above the
    /// largest round-trip time of the group.
    fn has_reason(&self, newest: &NewestHeader, now: Time) -> bool {
        self.calculated(now).bps() < f64::from(newest.suppress_above) || self.rtt() > newest.rtt_max
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.deadline() <= cx.now {
            crate::node::Receiver::on_deadline(self, cx);
        }
        let now = cx.now;
        let before = match self.newest {
            Some(newest) if now.since(newest.at) <= newest.rtt_max * FORGOTTEN_AFTER => Some(newest),
            _ => {
                self.begin(data.seq, now);
                None
            }
        };
        let size = f32::from(arrival.size);
        self.size = if self.size > 0.0 { self.size + SIZE_GAIN * (size - self.size) } else { size };
        let newest = self.newest.is_none_or(|newest| data.seq > newest.seq);
        if !newest {
            let event = self.event();
            if let Some(history) = &mut self.history {
                history.find(data.seq, event);
            }
            self.arrivals.record(now, arrival.size);
            return;
        }
        self.began.came = self.began.came.saturating_add(1);
        if let Some(before) = before
            && (data.seq > before.seq.next() || arrival.lost > 0 || arrival.excused > 0 || arrival.marked)
        {
            self.on_gap(data, arrival, before, cx);
        }
        self.arrivals.record(now, arrival.size);
        let round = self.newest.map(|newest| newest.round);
        self.copy_header(data, layer, now);
        let wanted = self.rtt().scaled(f64::from(self.settings.received_over)) + MIN_WINDOW;
        if self.arrivals.covered() < wanted {
            self.arrivals.reach(wanted);
        }
        match self.role {
            Role::Limiting if self.report.is_none() => {
                self.send_as_limiting(cx);
            }
            Role::Other if before.is_none() || round != self.newest.map(|newest| newest.round) => {
                let pause = before.map_or(Span::ZERO, |before| now.since(before.at));
                self.plan(pause, cx);
            }
            _ => {}
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.report.map_or(Time::NEVER, |planned| planned.at)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if self.report.take_if(|planned| planned.at <= cx.now).is_none() {
            return;
        }
        let Some(newest) = self.newest else { return };
        match self.role {
            // Without further packets there is nothing new to report (RFC 5348, 6.2). The next packet triggers a report.
            Role::Limiting if self.reported == Some(newest.seq) => {}
            Role::Limiting => self.send_as_limiting(cx),
            Role::Other if self.has_reason(&newest, cx.now) => self.send(Knows::default(), cx),
            Role::Other => self.suppressed += 1,
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.report = None;
        if self.is_limiting() {
            self.send(Knows::LEAVING, cx);
        }
    }

    fn suppressed(&self) -> u32 {
        self.suppressed
    }
}

impl Receiver {
    fn send_as_limiting(&mut self, cx: &mut Cx<'_>) {
        self.send(Knows::default(), cx);
        self.plan_next_of_limiting(cx.now);
    }
}
