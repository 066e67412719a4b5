//! The sender, by the rules of RFC 5348, 4, or of ns-2.35's `tfrc.cc`.

use super::{Config, Rules};
use crate::tcp::{Smoothed, Switch};
use crate::{Feedback, RateReport, Segment, SegmentFlags, SenderView};
use faircast_core::node::{Cx, Departure};
use faircast_core::rate::formula::Path;
use faircast_core::time::{Rate, Span, Time};

/// Clock tick of the TCP timeout that ns-2's TFRC estimates, in seconds.
const TICK: f64 = 0.1;

/// ns-2's rate before the first report, in bytes per second.
const FIRST_RATE: f64 = 300.0;

/// Maximum time between packets, in seconds, "t_mbi" (RFC 5348, 4.3).
const MAX_GAP: f64 = 64.0;

/// Minimum round-trip time, in seconds. Without a minimum, rates could be infinite.
const SHORTEST: f64 = 1e-6;

/// A TFRC sender.
#[derive(Debug, Clone)]
pub struct Sender {
    config: Config,
    open: bool,
    slow_start: bool,
    /// Whether the next packets request an immediate report.
    urgent: bool,
    supply: u32,
    next: u32,
    /// Number of reports and silences so far.
    rounds: u32,
    /// Three values in bytes per second: the allowed rate, the rate that still rises towards it, and the rise per packet.
    rate: f64,
    ramp: f64,
    step: f64,
    /// Limit of the allowed rate that results from the received rate, in bytes per second.
    limit: f64,
    /// The largest received rate of this round trip and of the preceding round trip (RFC 5348, 4.3, "X_recv_set").
    latest: [f64; 2],
    /// The smoothed round-trip time in seconds; the smoothed square root of the round-trip time; the square root of the newest
    /// round-trip time.
    rtt: f64,
    root: f64,
    newest_root: f64,
    tcp: Smoothed,
    loss: f64,
    changed_at: Time,
    next_at: Time,
    silence_at: Time,
    limited_at: Option<Time>,
    sent: u64,
    cuts: u32,
    silences: u32,
}

impl Sender {
    /// Creates a flow that has not started.
    pub fn new(config: Config) -> Sender {
        let size = f64::from(config.packet_size);
        let rate = if config.rules == Rules::Ns235 { FIRST_RATE } else { size };
        Sender {
            config,
            open: false,
            slow_start: true,
            urgent: true,
            supply: 0,
            next: 0,
            rounds: 0,
            rate,
            ramp: rate,
            step: 0.0,
            limit: 0.0,
            latest: [0.0; 2],
            rtt: 0.0,
            root: 0.0,
            newest_root: 0.0,
            tcp: Smoothed::default(),
            loss: 0.0,
            changed_at: Time::ZERO,
            next_at: Time::ZERO,
            silence_at: Time::NEVER,
            limited_at: None,
            sent: 0,
            cuts: 0,
            silences: 0,
        }
    }

    fn size(&self) -> f64 {
        f64::from(self.config.packet_size)
    }

    /// Returns the initial rate in bytes per second: four packets per round trip, or fewer for large packets (RFC 3390).
    fn initial_rate(&self) -> f64 {
        let packets = match self.config.packet_size {
            0..=1095 => 4.0,
            1096..2190 => 3.0,
            _ => 2.0,
        };
        packets * self.size() / self.rtt
    }

    /// Returns whether the application had no data to send at some time in the latest one and a half round trips.
    fn was_limited(&self, now: Time) -> bool {
        let limited = |at: Time| now.since(at).as_secs_f64() < 1.5 * self.rtt;
        self.next >= self.supply || self.limited_at.is_some_and(limited)
    }

    /// Returns the equation's rate, in bytes per second.
    fn fair(&self) -> f64 {
        let rtt = Span::from_secs_f64(self.rtt);
        let path = Path::new(self.config.packet_size, rtt);
        let path = match self.config.rules {
            Rules::Ns235 => {
                Path { timeout: Span::from_secs_f64(self.tcp.timeout_ticks() as f64 * TICK), ..path }
            }
            Rules::Rfc5348 => path,
        };
        path.tcp_rate(self.loss).bps() / 8.0
    }

    /// Adds a round-trip sample of `secs` seconds.
    fn sample(&mut self, secs: f64) {
        let keep = if self.config.rules == Rules::Ns235 { 0.95 } else { 0.9 };
        self.newest_root = secs.sqrt();
        if self.rtt > 0.0 {
            self.rtt = keep * self.rtt + (1.0 - keep) * secs;
            self.root = keep * self.root + (1.0 - keep) * self.newest_root;
        } else {
            self.rtt = secs;
            self.root = self.newest_root;
        }
        self.tcp.add(((secs / TICK + 0.5) as i64).max(1));
    }

    fn on_report(&mut self, report: &RateReport, cx: &mut Cx<'_>) {
        let now = cx.now;
        let secs = now.since(report.echo + report.hold).as_secs_f64();
        if secs <= 0.0 {
            return;
        }
        self.rounds += 1;
        self.urgent = false;
        self.sample(secs.max(SHORTEST));
        self.loss = f64::from(report.loss);
        let before = self.rate;
        let first = self.silence_is_first();
        match self.config.rules {
            Rules::Ns235 => self.adapt_as_ns(f64::from(report.received), first, now),
            Rules::Rfc5348 => self.adapt(f64::from(report.received), first, now),
        }
        self.cuts += u32::from(self.rate < before);
        self.restart_silence(now);
    }

    /// Returns whether the report that was just counted is the first report.
    fn silence_is_first(&self) -> bool {
        self.rounds == 1 + self.silences
    }

    /// Adapts the allowed rate to a report (RFC 5348, 4.2 and 4.3).
    fn adapt(&mut self, received: f64, first: bool, now: Time) {
        let size = self.size();
        if first {
            self.rate = self.initial_rate();
            self.latest = [f64::INFINITY, 0.0];
            self.limit = f64::INFINITY;
            self.changed_at = now;
            return;
        }
        if self.was_limited(now) {
            // The application limited the received rate. This rate therefore gives no information about the path and must not
            // lower the maximum.
            self.latest[0] = self.latest[0].max(received);
        } else {
            self.latest = [received, if self.latest[0].is_finite() { self.latest[0] } else { 0.0 }];
        }
        self.limit = 2.0 * self.latest[0].max(self.latest[1]);
        if self.loss > 0.0 {
            self.slow_start = false;
            self.rate = self.fair().min(self.limit).max(size / MAX_GAP);
        } else if now.since(self.changed_at).as_secs_f64() >= self.rtt {
            self.rate = (2.0 * self.rate).min(self.limit).max(self.initial_rate());
            self.changed_at = now;
        }
    }

    fn adapt_as_ns(&mut self, received: f64, first: bool, now: Time) {
        self.limit = if self.rounds > 1 { 2.0 * received } else { 0.0 };
        let fair = self.fair();
        if first || (self.slow_start && self.loss <= 0.0) {
            self.start_slowly_as_ns(now);
            self.next_at = now; // a packet leaves with every report
        } else if self.slow_start {
            self.slow_start = false;
            self.rate = fair;
            self.ramp = fair;
        } else {
            let least = self.size() / self.rtt;
            let mut most = self.limit.max(least);
            if fair > self.rate {
                if self.was_limited(now) {
                    most = self.limit.max(self.initial_rate());
                }
                let round_trips = (now.since(self.changed_at).as_secs_f64() / self.rtt).min(2.0);
                self.rate = (self.rate + least * round_trips).min(most.min(fair));
            } else {
                self.rate = fair.min(most);
            }
            self.changed_at = now;
        }
    }

    fn start_slowly_as_ns(&mut self, now: Time) {
        let (size, initial) = (self.size(), self.initial_rate());
        let small = self.limit < initial && self.was_limited(now);
        let old = self.rate;
        if self.rounds <= 2 || (self.limit > 0.0 && small) {
            self.rate = old.max(initial);
        } else if self.limit <= 0.0 {
            self.rate = size / self.rtt;
        } else if old < self.limit && now.since(self.changed_at).as_secs_f64() > self.rtt {
            self.rate = (2.0 * old).min(self.limit).max(size / self.rtt);
        } else if old > self.limit {
            self.rate = self.limit / 2.0;
        } else {
            return;
        }
        self.ramp = old.min(self.rate);
        self.step = (self.rate - self.ramp) / (self.rate * self.rtt / size);
        self.changed_at = now;
    }

    /// Restarts the nofeedback timer (RFC 5348, 4.3, step 6).
    fn restart_silence(&mut self, now: Time) {
        let round_trips = if self.config.rules == Rules::Ns235 { 2.0 } else { 4.0 };
        let secs = (round_trips * self.rtt).max(2.0 * self.size() / self.rate);
        self.silence_at = now + Span::from_secs_f64(secs);
    }

    /// Halves the rate after a long time without a report (RFC 5348, 4.4). The rate of an idle sender stays at least the initial
    /// rate.
    fn on_silence(&mut self, now: Time) {
        let floor = if self.rtt > 0.0 && self.next >= self.supply { self.initial_rate() } else { 0.0 };
        let floor = floor.max(self.size() / MAX_GAP);
        if self.rate > floor {
            self.rate = (self.rate / 2.0).max(floor);
            self.cuts += 1;
        }
        self.ramp = self.ramp.min(self.rate);
        self.latest = [self.latest[0].min(self.rate), 0.0];
        self.rounds += 1;
        self.silences += 1;
        self.urgent = true;
        self.restart_silence(now);
        if self.config.rules == Rules::Ns235 {
            self.next_at = self.next_at.min(now);
        }
    }

    /// Returns the time between this packet and the next one, in seconds.
    fn gap(&mut self) -> f64 {
        let mut rate = self.rate;
        if self.config.rules == Rules::Ns235 && self.slow_start && self.rounds > 2 && self.ramp < rate {
            self.ramp += self.step;
            rate = self.ramp;
        } else if self.newest_root > 0.0 {
            rate *= self.root / self.newest_root; // RFC 5348, 4.5
        }
        (self.size() / rate).min(MAX_GAP)
    }
}

impl crate::Sender for Sender {
    fn start(&mut self, cx: &mut Cx<'_>) {
        if !self.open {
            self.open = true;
            self.next_at = cx.now;
        }
    }

    fn supply(&mut self, packets: u32, now: Time) {
        if self.open && self.next >= self.supply && self.next > 0 {
            self.limited_at = Some(now);
        }
        self.supply = packets.max(self.next);
    }

    fn departure(&self) -> Departure {
        if self.open && self.next < self.supply {
            Departure::At(self.next_at)
        } else {
            Departure::AfterReport
        }
    }

    fn on_departure(&mut self, cx: &mut Cx<'_>) -> Segment {
        if self.silence_at.is_never() {
            let secs = 2.0 * self.size() / self.rate;
            self.silence_at = cx.now + Span::from_secs_f64(secs);
        }
        let mut flags = SegmentFlags::in_round(self.rounds);
        if self.urgent {
            flags = flags.with(SegmentFlags::URGENT);
        }
        if self.config.ecn == Switch::On {
            flags = flags.with(SegmentFlags::ECT);
        }
        let seq = self.next;
        self.next += 1;
        self.sent += 1;
        self.next_at = cx.now + Span::from_secs_f64(self.gap());
        Segment { seq, flags, sent_at: cx.now, rtt: Span::from_secs_f64(self.rtt) }
    }

    fn on_feedback(&mut self, feedback: &Feedback, cx: &mut Cx<'_>) {
        if let (Feedback::Rate(report), true) = (feedback, self.open) {
            self.on_report(report, cx);
        }
    }

    fn deadline(&self) -> Time {
        self.silence_at
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if cx.now >= self.silence_at {
            self.on_silence(cx.now);
        }
    }

    #[inline]
    fn cuts(&self) -> u32 {
        self.cuts
    }

    fn observe(&self) -> SenderView {
        SenderView {
            rtt: Span::from_secs_f64(self.rtt),
            rate: Rate::from_bps(self.rate * 8.0),
            sent: self.sent,
            cuts: u64::from(self.cuts),
            timeouts: u64::from(self.silences),
            ..SenderView::default()
        }
    }
}
