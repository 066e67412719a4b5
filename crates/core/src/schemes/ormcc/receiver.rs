//! ORMCC's receiver: it measures its throughput at congestion, and suppresses reports that the source does not need.

use super::config::Config;
use crate::estimate::Throughput;
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span, Time};

/// A receiver of an ORMCC session. Fields that are used for every packet are adjacent in memory.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Receiver {
    /// Content of the newest header; `None` before the first packet.
    newest: Option<NewestHeader>,
    last_arrival: Time,
    /// Throughput may be measured over the time since this moment: the time of the join, or the end of start-up.
    measure_from: Time,
    me: ReceiverId,
    /// Mean throughput at congestion, "E(mu)", in bit/s.
    mean: Option<f32>,
    counts: Counts,
    arrivals: Throughput,
    settings: Settings,
    pending: Option<Pending>,
    start_up: StartUpReceiver,
    joined_at: Time,
    last_report: Option<Time>,
}

const _: () = assert!(size_of::<Receiver>() <= 384);

/// Numbers of reports sent and suppressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Congestion reports sent.
    pub sent: u32,
    /// Congestion events that were not reported.
    pub suppressed: u32,
}

#[derive(Debug, Clone, Copy)]
struct Settings {
    alpha: f32,
    reports_per_rtt: Option<u16>,
    spread_packets: Option<u8>,
    trac_window: Span,
    trac_least: Span,
    law: TruncatedExponential,
}

/// The newest packet's header.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    seq: Seq,
    layer: Layer,
    representative: Option<ReceiverId>,
    mean: f32,
    deviation: f32,
    /// Largest round-trip time as stated in the header, in seconds; `rtt_max` is the same value clamped to `RTT_RANGE`.
    stated_rtt_max: f32,
    rtt_max: Span,
}

/// The state before the first header.
impl Default for NewestHeader {
    fn default() -> NewestHeader {
        NewestHeader {
            seq: Seq(0),
            layer: Layer::default(),
            representative: None,
            mean: f32::INFINITY,
            deviation: 0.0,
            stated_rtt_max: f32::NAN,
            rtt_max: DEFAULT_RTT_MAX,
        }
    }
}

/// A congestion report that waits for its deadline.
#[derive(Debug, Clone, Copy)]
struct Pending {
    at: Time,
    event_at: Time,
    /// Duration without packets after which the report is dropped.
    stale_after: Span,
    seq: Seq,
    level: f32,
    cause: Cause,
}

/// The shortest time over which start-up measures throughput.
const MIN_WINDOW: Span = Span::from_millis(5);
/// Assumed largest round-trip time before a header states it.
const DEFAULT_RTT_MAX: Span = Span::from_millis(100);
/// Range to which the largest round-trip time in a header is clamped.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));
/// Number of largest round-trip times without packets after which a pending report is dropped.
const STALE_AFTER: u64 = 10;

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        let settings = Settings {
            alpha: config.alpha_receiver as f32,
            reports_per_rtt: config.reports_per_rtt,
            spread_packets: config.spread_packets,
            trac_window: config.trac_window,
            trac_least: config.trac_least,
            law: config.delay_law,
        };
        Receiver {
            me,
            settings,
            newest: None,
            mean: None,
            arrivals: Throughput::new(),
            joined_at: Time::ZERO,
            measure_from: Time::ZERO,
            last_arrival: Time::ZERO,
            last_report: None,
            pending: None,
            start_up: StartUpReceiver::default(),
            counts: Counts::default(),
        }
    }

    /// Returns the numbers of reports sent and suppressed so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the mean throughput at congestion; `None` before the first congestion.
    pub fn mean(&self) -> Option<Rate> {
        self.mean.map(|mean| Rate::from_bps(f64::from(mean)))
    }

    /// Returns whether this receiver is the representative according to the newest header.
    pub fn is_representative(&self) -> bool {
        self.newest.is_some_and(|newest| newest.representative == Some(self.me))
    }

    /// Returns whether this receiver may report: it is the representative, it is slower than the representative, or no
    /// representative is valid (paper 000, 3.1.4).
    // Paper gap: appendix B.2 compares averages only and would silence the representative itself. The introduction of chapter 3
    // lets the representative send.
    fn may_report(&self) -> bool {
        let (Some(newest), Some(mean)) = (&self.newest, self.mean) else { return false };
        match newest.representative {
            None => true,
            Some(representative) => representative == self.me || mean < newest.mean - newest.deviation,
        }
    }

    fn rtt_max(&self) -> Span {
        self.newest.map_or(DEFAULT_RTT_MAX, |newest| newest.rtt_max)
    }

    /// Copies the header, unless a newer header was copied before.
    #[inline]
    fn copy_header(&mut self, data: &Data, layer: Layer, now: Time) {
        let newest = match &mut self.newest {
            Some(newest) if data.seq <= newest.seq => return,
            Some(newest) => newest,
            None => {
                (self.joined_at, self.measure_from) = (now, now);
                self.newest.insert(NewestHeader::default())
            }
        };
        (newest.seq, newest.layer) = (data.seq, layer);
        let Mark::Representative { id, mean, deviation, rtt_max } = data.mark else {
            (newest.representative, newest.mean, newest.deviation) = (None, f32::INFINITY, 0.0);
            return;
        };
        (newest.representative, newest.mean, newest.deviation) = (id, mean, deviation);
        if rtt_max != newest.stated_rtt_max && rtt_max.is_finite() {
            newest.stated_rtt_max = rtt_max;
            newest.rtt_max = Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1);
        }
    }

    /// Returns the throughput at congestion, measured up to now; `None` if too few packets have arrived to measure it.
    // Paper gap: 3.1.1 does not define the measurement within the first second. Here the window starts at the join, or at the end
    // of start-up. It is at least a largest round-trip time and the time of four packets. During start-up this minimum is the
    // window.
    fn throughput_at_congestion(&self, now: Time) -> Option<Rate> {
        let four = self.arrivals.latest_four(now)?;
        let Settings { trac_window, trac_least, .. } = self.settings;
        let most = trac_least.max(self.rtt_max()).max(four * 4).min(trac_window);
        let least = self.rtt_max().max(four).max(MIN_WINDOW).min(most);
        let window = now.since(self.measure_from).max(least).min(most);
        let present = now.since(self.joined_at);
        (present >= window).then(|| self.arrivals.rate(now, window)).filter(|rate| rate.is_usable())
    }

    #[inline(never)]
    fn on_congestion(&mut self, data: &Data, cause: Cause, cx: &mut Cx<'_>) {
        let Some(level) = self.throughput_at_congestion(cx.now) else { return };
        let level = level.bps() as f32;
        let mean = self.mean.map_or(level, |mean| mean + self.settings.alpha * (level - mean));
        self.mean = Some(mean);
        let stale_after = self.rtt_max() * STALE_AFTER;
        let event = Pending { at: cx.now, event_at: cx.now, stale_after, seq: data.seq, level, cause };
        if !self.may_report() || self.speaks_too_often(cx.now) {
            self.counts.suppressed += 1;
        } else if self.is_representative() {
            self.pending = None;
            self.report(event, cx);
        } else if self.pending.is_none() {
            let longest = self.spread(cx.now);
            let delay = self.settings.law.delay(longest, cx.rng);
            let stale_after = stale_after.max(longest);
            self.pending = Some(Pending { at: cx.now + delay, stale_after, ..event });
        }
    }

    /// Returns the maximum delay of reports from receivers other than the representative. It is long enough for the arrival of a
    /// header that makes delayed reports unnecessary.
    fn spread(&self, now: Time) -> Span {
        let rounds = self.rtt_max() * 2;
        let (Some(packets), Some(four)) = (self.settings.spread_packets, self.arrivals.latest_four(now))
        else {
            return rounds;
        };
        rounds.max((four * u64::from(packets) / 4).min(self.settings.trac_window))
    }

    fn speaks_too_often(&self, now: Time) -> bool {
        let (Some(limit), Some(last)) = (self.settings.reports_per_rtt, self.last_report) else {
            return false;
        };
        now.since(last) < self.rtt_max() / u64::from(limit.max(1))
    }

    fn report(&mut self, event: Pending, cx: &mut Cx<'_>) {
        let Some(mean) = self.mean else { return };
        self.counts.sent += 1;
        self.last_report = Some(cx.now);
        let echo = Echo { seq: event.seq, hold: cx.now.since(event.event_at) };
        self.send(ReportContent::Congested { echo, level: event.level, mean, cause: event.cause }, cx);
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        let layer = self.newest.map_or(Layer::default(), |newest| newest.layer);
        cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
    }

    /// Drops the pending report if a header has made it unnecessary.
    #[inline]
    fn reconsider(&mut self) {
        if self.pending.is_some() && !self.may_report() {
            self.pending = None;
            self.counts.suppressed += 1;
        }
    }
}

impl crate::node::Receiver for Receiver {
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.pending.is_some() || self.start_up.deadline() <= cx.now {
            crate::node::Receiver::on_deadline(self, cx);
        }
        self.copy_header(data, layer, cx.now);
        self.arrivals.record(cx.now, arrival.size);
        self.last_arrival = cx.now;
        let starting = data.flags.has(Flags::STARTING);
        if (starting || self.start_up.is_active()) && !arrival.late {
            if starting {
                self.measure_from = cx.now;
            }
            let (rtt_max, law) = (self.rtt_max(), self.settings.law);
            self.start_up.on_data(data, arrival, rtt_max, law, cx);
        }
        if self.arrivals.covered() < self.settings.trac_window {
            let present = cx.now.since(self.measure_from);
            self.arrivals.reach(now_wanted(present, self.rtt_max(), self.settings.trac_window));
        }
        self.reconsider();
        match arrival {
            Arrival { lost: 1.., .. } => self.on_congestion(data, Cause::Loss, cx),
            Arrival { marked: true, .. } => self.on_congestion(data, Cause::Mark, cx),
            _ => {}
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        let report = self.pending.map_or(Time::NEVER, |pending| pending.at);
        report.min(self.start_up.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let silence = cx.now.since(self.last_arrival);
        if let Some(due) = self.pending.take_if(|pending| pending.at <= cx.now) {
            if silence > due.stale_after || !self.may_report() {
                self.counts.suppressed += 1;
            } else {
                self.report(due, cx);
            }
        }
        if let Some(content) = self.start_up.take_due(cx.now)
            && silence <= self.rtt_max() * STALE_AFTER
        {
            self.send(content, cx);
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.pending = None;
        self.start_up.cancel();
        let (Some(newest), true) = (self.newest, self.is_representative()) else { return };
        let (echo, level) =
            (Echo { seq: newest.seq, hold: cx.now.since(self.last_arrival) }, self.mean.unwrap_or(0.0));
        self.send(ReportContent::Congested { echo, level, mean: level, cause: Cause::Leaving }, cx);
    }

    fn suppressed(&self) -> u32 {
        self.counts.suppressed
    }
}

/// Returns the duration for which arrivals must be stored to measure throughput.
fn now_wanted(present: Span, rtt_max: Span, window: Span) -> Span {
    present.max(rtt_max * 2).max(MIN_WINDOW * 2).min(window)
}
