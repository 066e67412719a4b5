//! RMANP's receiver: acknowledges packets, requests missing ones, reports congestion (paper 003, 2).

use super::config::{Answers, Begin, Config, Repair};
use super::requests::{Overdue, Requests};
use crate::node::{Cx, Effect};
use crate::packet::{
    Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, ShortId,
};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of an RMANP session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    received: Option<Received>,
    missing: Requests,
    /// Time of the congestion report `reported`; [`Time::NEVER`] if it is unset.
    reported_at: Time,
    reported: Congestion,
    /// Deadline of the next acknowledgement.
    ack_at: Time,
    /// Number of packets that wait for an acknowledgement. `acked_at` is the time of the latest acknowledgement.
    waiting: u8,
    acked_at: Time,
    start_up: StartUpReceiver,
    is_excluded: bool,
    suppressed: u32,
    requests: u8,
    repair: Repair,
    begin: Begin,
    few: bool,
    /// Number of packets per acknowledgement.
    together: u8,
    decrease: f32,
    law: TruncatedExponential,
}

/// The newest packet and the fields of its header.
#[derive(Debug, Clone, Copy)]
struct Received {
    newest: u64,
    newest_at: Time,
    layer: Layer,
    /// Bit k is set if packet `newest - k` has arrived.
    bitmap: u32,
    /// Sending rate of the latest packet, which may be a repair, in bit/s.
    rate: f32,
    rtt_max: Span,
    /// Interval between acknowledgements; zero for an acknowledgement per packet.
    every: Span,
}

#[derive(Debug, Clone, Copy)]
struct Congestion {
    rate: f32,
    /// Packet that revealed the congestion.
    seq: u64,
}

/// Maximum number of stored missing packets: the size of an active router's cache (paper 003, 3).
const MAX_MISSING: usize = 100;
/// Maximum number of ranges that one call requests.
const RANGES: usize = 1;
/// Duration without packets after which the stream counts as ended and pending feedback is dropped.
const STALE_AFTER: Span = Span::from_secs(10);
/// Range to which the round-trip times of headers are clamped.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));
const MAX_TURN: f64 = 60.0;
/// Number of packets per acknowledgement with limited feedback. `ACK_SPACING` is the maximum time between acknowledgements.
const TOGETHER: u8 = 4;
const ACK_SPACING: Span = Span::from_millis(1);

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            me,
            received: None,
            missing: Requests::default(),
            reported_at: Time::NEVER,
            reported: Congestion { rate: 0.0, seq: 0 },
            ack_at: Time::NEVER,
            waiting: 0,
            acked_at: Time::ZERO,
            start_up: StartUpReceiver::default(),
            is_excluded: false,
            suppressed: 0,
            requests: config.requests,
            repair: config.repair,
            begin: config.begin,
            few: config.answers == Answers::Few,
            together: if config.answers == Answers::Few { TOGETHER } else { config.together },
            decrease: config.decrease as f32,
            law: config.delay_law,
        }
    }

    /// Records a packet. Returns whether it is the newest one.
    fn note(&mut self, data: &Data, layer: Layer, now: Time) -> bool {
        let seq = data.seq.0;
        let mut fresh = Received {
            newest: seq,
            newest_at: now,
            layer,
            bitmap: 1,
            rate: data.rate,
            rtt_max: RTT_RANGE.1,
            every: Span::ZERO,
        };
        if let Mark::Floor { rtt_max, every, .. } = data.mark {
            if rtt_max.is_finite() {
                fresh.rtt_max = Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1);
            }
            if every.is_finite() && every > 0.0 {
                fresh.every = Span::from_secs_f64(f64::from(every).min(MAX_TURN));
            }
        }
        let Some(received) = &mut self.received else {
            if self.begin == Begin::AtStart && seq > 0 {
                // All packets before the first arrival count as lost, but are not reported as congestion.
                self.missing.note(0..seq, true, MAX_MISSING);
                self.missing.declare(u32::MAX, now);
            }
            self.received = Some(fresh);
            return true;
        };
        if seq <= received.newest {
            let back = u32::try_from(received.newest - seq).unwrap_or(u32::MAX);
            received.bitmap |= 1u32.checked_shl(back).unwrap_or(0);
            received.rate = data.rate;
            self.missing.fill(seq, now);
            return false;
        }
        let step = u32::try_from(seq - received.newest).unwrap_or(u32::MAX);
        fresh.bitmap = received.bitmap.checked_shl(step).unwrap_or(0) | 1;
        self.missing.note(received.newest + 1..seq, data.flags.has(Flags::GAP_SEEN), MAX_MISSING);
        *received = fresh;
        true
    }

    /// Processes congestion that this packet reveals by a gap or a mark.
    fn note_congestion(&mut self, data: &Data, arrival: Arrival, cx: &mut Cx<'_>) {
        let is_news = arrival.lost > 0 && self.missing.declare(arrival.lost, cx.now);
        if is_news || arrival.marked {
            self.congested(data.rate, data.seq.0, cx);
        }
    }

    /// Schedules a report of congestion that no other node has reported.
    fn congested(&mut self, sent_rate: f32, seq: u64, cx: &mut Cx<'_>) {
        let rate = self.decrease * sent_rate;
        let Some(received) = self.received else { return };
        if !rate.is_finite() || rate < 0.0 {
            return;
        }
        if !self.reported_at.is_never() {
            // A report is already pending, so only the lower of the two rates is reported.
            self.suppressed += 1;
            self.reported.rate = self.reported.rate.min(rate);
            return;
        }
        self.reported = Congestion { rate, seq };
        self.reported_at = cx.now;
        if received.every > Span::ZERO {
            self.reported_at = cx.now + self.law.delay(received.rtt_max * 2, cx.rng);
        }
    }

    /// Sends pending feedback.
    fn speak(&mut self, cx: &mut Cx<'_>) {
        let Some(received) = self.received else { return };
        let (now, from, layer) = (cx.now, self.me, received.layer);
        let mut say = |content| cx.effects.push(Effect::Report(Report { from, layer, content }));
        if self.ack_at <= now {
            (self.ack_at, self.acked_at, self.waiting) = (Time::NEVER, now, 0);
            say(self.acknowledgement(received, now));
        }
        // Lost packets are not requested if no node would repair them.
        let is_repaired = self.repair == Repair::Tree || received.every == Span::ZERO;
        let overdue = if self.repair == Repair::Tree { Overdue::AskAgain } else { Overdue::GiveUp };
        let echo = Echo { seq: Seq(received.newest), hold: now.since(received.newest_at) };
        let requests = if is_repaired { self.requests } else { 0 };
        let is_overdue = self.missing.take_due(now, RANGES, requests, overdue, |range| {
            let count = (range.end - range.start).min(u16::MAX.into()) as u16;
            say(ReportContent::Lost { echo, first: Seq(range.start), count, loss: 0.0 });
        });
        if is_overdue && self.repair == Repair::Tree && self.reported_at.is_never() {
            // No other node can detect the loss of a repair (paper 003, 2.1).
            self.reported = Congestion { rate: self.decrease * received.rate, seq: received.newest };
            self.reported_at = now;
        }
        if self.reported_at <= now {
            self.reported_at = Time::NEVER;
            let mean = if self.decrease > 0.0 { self.reported.rate / self.decrease } else { 0.0 };
            let seq = Seq(self.reported.seq.min(received.newest));
            let hold = if seq == echo.seq { echo.hold } else { Span::MAX };
            let (echo, level, cause) = (Echo { seq, hold }, self.reported.rate, Cause::Loss);
            say(ReportContent::Congested { echo, level, mean, cause });
        }
        if let Some(content) = self.start_up.take_due(now) {
            say(content);
        }
    }

    /// Returns an acknowledgement of all arrived packets.
    fn acknowledgement(&self, received: Received, now: Time) -> ReportContent {
        let acked = self.missing.first().unwrap_or(received.newest + 1);
        let behind = u32::try_from(received.newest + 1 - acked).unwrap_or(u32::MAX);
        let echo = Echo { seq: Seq(received.newest), hold: now.since(received.newest_at) };
        ReportContent::Selective { echo, behind, bitmap: received.bitmap, loss: 0.0 }
    }

    /// Schedules an acknowledgement. With limited feedback, only packets that arrive fast share an acknowledgement.
    fn acknowledge_soon(&mut self, arrival: Arrival, now: Time) {
        self.waiting = self.waiting.saturating_add(1);
        let is_special = arrival.lost > 0 || arrival.marked || arrival.late;
        let is_slow = self.few && now.since(self.acked_at) >= ACK_SPACING;
        if is_special || is_slow || self.waiting >= self.together {
            self.ack_at = now;
        } else if self.few && self.ack_at.is_never() {
            self.ack_at = self.acked_at + ACK_SPACING;
        }
    }

    fn exclude(&mut self, cx: &mut Cx<'_>) {
        self.is_excluded = true;
        self.fall_silent();
        cx.effects.push(Effect::Leave);
    }

    fn fall_silent(&mut self) {
        (self.ack_at, self.reported_at) = (Time::NEVER, Time::NEVER);
        self.missing = Requests::default();
        self.start_up.cancel();
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.is_excluded {
            return;
        }
        let is_newest = self.note(data, layer, cx.now);
        if let Mark::Floor { excluded: Some(id), .. } = data.mark
            && (id == ShortId::ALL || Some(id) == ShortId::of(self.me))
        {
            return self.exclude(cx);
        }
        let Some(received) = self.received else { return };
        if is_newest && self.few && data.rate <= self.reported.rate && !self.reported_at.is_never() {
            // The source has reduced its rate to the rate that this receiver would request, so another node has reported this
            // congestion (paper 003, 2.3).
            self.reported_at = Time::NEVER;
            self.suppressed += 1;
        }
        self.note_congestion(data, arrival, cx);
        if (data.flags.has(Flags::STARTING) || self.start_up.is_active()) && !arrival.late {
            self.start_up.on_data(data, arrival, received.rtt_max, self.law, cx);
        }
        if received.every == Span::ZERO {
            self.acknowledge_soon(arrival, cx.now);
        } else if self.ack_at.is_never() {
            self.ack_at = cx.now + received.every.scaled(cx.rng.unit()).max(Span::from_micros(1));
        }
        self.speak(cx);
    }

    fn deadline(&self) -> Time {
        self.ack_at.min(self.reported_at).min(self.missing.due()).min(self.start_up.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        let stale = self.received.is_none_or(|received| now.since(received.newest_at) > STALE_AFTER);
        if stale && self.repair == Repair::Session {
            // The delivery handles packets that are missing at the end of a stream.
            self.fall_silent();
            return;
        }
        let is_turn = self.ack_at <= now;
        self.speak(cx);
        if let (true, Some(received)) = (is_turn, self.received)
            && received.every > Span::ZERO
            && !stale
        {
            self.ack_at = now + received.every.scaled(0.5 + cx.rng.unit()).max(Span::from_micros(1));
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        self.fall_silent();
        let Some(received) = self.received else { return };
        let echo = Echo { seq: Seq(received.newest), hold: cx.now.since(received.newest_at) };
        let content = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
        cx.effects.push(Effect::Report(Report { from: self.me, layer: received.layer, content }));
    }

    fn suppressed(&self) -> u32 {
        self.suppressed
    }
}
