//! The receiver's part of the doubling start-up ([`super::start`]): it measures a round, and answers after the end of the round
//! is flagged.
//!
//! In a large group, receivers delay their answers at random, as they delay congestion reports. Slow receivers answer earlier, so
//! only a few receivers answer. In a small group the source waits for all members, which answer at once.

use crate::node::Cx;
use crate::packet::{Arrival, Data, Echo, Flags, ReportContent, Seq};
use crate::suppress::TruncatedExponential;
use crate::time::{Rate, Span, Time};

/// A receiver's state during a source's start-up. It needs memory only until the first packet after the start-up.
#[derive(Debug, Clone, Default)]
pub struct StartUpReceiver {
    running: Option<Box<StartUp>>,
}

/// The current round, and the answer to the preceding one.
#[derive(Debug, Clone, Copy, Default)]
struct StartUp {
    round: RoundReception,
    answer: Option<Answer>,
}

/// The packets of a start-up round that have arrived.
#[derive(Debug, Clone, Copy, Default)]
struct RoundReception {
    rate: f32,
    first: Seq,
    first_at: Time,
    last_at: Time,
    /// Number of bytes received after the first packet, so that `bytes / (last_at - first_at)` is a rate.
    bytes: u64,
    packets: u32,
    lost: u32,
}

/// A delayed answer to a start-up round.
#[derive(Debug, Clone, Copy)]
struct Answer {
    at: Time,
    seq: Seq,
    event_at: Time,
    sent: f32,
    received: f32,
    loss: f32,
}

/// Minimum number of packets of a round that a receiver answers.
const FEWEST: u32 = 4;
/// Fraction of the sending rate. A receiver whose arrival rate is lower answers early.
const NOTICEABLY_LESS: f32 = 0.85;
/// Factor on the delay of an early answer. A delay that is a quarter shorter is enough to precede other answers. The shorter
/// delay still leaves a round trip, in which the first answer can suppress most of 10,000 other answers.
const SOON: f64 = 0.75;

impl StartUpReceiver {
    /// Returns whether packets without start-up flags must be processed.
    #[inline]
    pub const fn is_active(&self) -> bool {
        self.running.is_some()
    }

    /// Processes a packet of a start-up, or the first packet after it. The packet must not be late.
    #[inline(never)]
    pub fn on_data(
        &mut self,
        data: &Data,
        arrival: Arrival,
        rtt_max: Span,
        law: TruncatedExponential,
        cx: &mut Cx<'_>,
    ) {
        if !data.flags.has(Flags::STARTING) {
            self.running = None;
            return;
        }
        self.running.get_or_insert_default().on_data(data, arrival, rtt_max, law, cx);
    }

    /// Returns the arrival rate of the round that ended with the packet at `ended_at`. `None` if no round ended with this packet,
    /// or if packets of the round were lost.
    pub fn whole_round(&self, ended_at: Time) -> Option<f32> {
        self.answer()
            .filter(|answer| answer.event_at == ended_at && answer.loss == 0.0)
            .map(|answer| answer.received)
    }

    /// Returns the deadline of the pending answer.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.answer().map_or(Time::NEVER, |answer| answer.at)
    }

    /// Removes and returns the answer whose deadline has passed, if any.
    pub fn take_due(&mut self, now: Time) -> Option<ReportContent> {
        let due = self.running.as_mut()?.answer.take_if(|answer| answer.at <= now)?;
        let echo = Echo { seq: due.seq, hold: now.since(due.event_at) };
        Some(ReportContent::Received { echo, rate: due.received, loss: due.loss })
    }

    /// Drops the pending answer.
    pub fn cancel(&mut self) {
        if let Some(running) = &mut self.running {
            running.answer = None;
        }
    }

    #[inline]
    fn answer(&self) -> Option<Answer> {
        self.running.as_ref()?.answer
    }
}

impl StartUp {
    /// Processes a packet of a start-up.
    fn on_data(
        &mut self,
        data: &Data,
        arrival: Arrival,
        rtt_max: Span,
        law: TruncatedExponential,
        cx: &mut Cx<'_>,
    ) {
        if self.answer.is_some_and(|answer| answer.is_settled_by(data)) {
            self.answer = None;
        }
        if self.round.packets == 0 || differs(self.round.rate, data.rate) {
            self.round = RoundReception {
                rate: data.rate,
                first: data.seq,
                first_at: cx.now,
                ..RoundReception::default()
            };
        } else {
            self.round.bytes += u64::from(arrival.size);
        }
        self.round.packets += 1;
        // A gap is detected some packets late, so losses before the round may be revealed within it. Such losses do not count for
        // the round.
        let sent = (data.seq.0.saturating_sub(self.round.first.0) + 1).min(u64::from(u32::MAX)) as u32;
        let missing = sent.saturating_sub(self.round.packets);
        self.round.lost = self.round.lost.saturating_add(arrival.lost).min(missing);
        self.round.last_at = cx.now;
        if data.flags.has(Flags::ROUND_END) && self.round.packets >= FEWEST {
            self.answer = self.answer_to(data, rtt_max, law, cx);
            self.round = RoundReception {
                packets: 1,
                first: data.seq,
                first_at: cx.now,
                rate: data.rate,
                ..RoundReception::default()
            };
        }
    }

    fn answer_to(
        &self,
        data: &Data,
        rtt_max: Span,
        law: TruncatedExponential,
        cx: &mut Cx<'_>,
    ) -> Option<Answer> {
        let round = &self.round;
        let received = Rate::of(round.bytes, round.last_at.since(round.first_at));
        if !received.is_usable() {
            return None;
        }
        let received = received.bps() as f32;
        let loss = round.lost as f32 / (round.packets as f32 + round.lost as f32);
        let hurry = if received < NOTICEABLY_LESS * round.rate { SOON } else { 1.0 };
        let at = if data.flags.has(Flags::EVERYBODY) {
            cx.now // no answer suppresses another one
        } else {
            cx.now + law.delay((rtt_max * 2).scaled(hurry), cx.rng)
        };
        Some(Answer { at, seq: data.seq, event_at: cx.now, sent: round.rate, received, loss })
    }
}

impl Answer {
    /// Returns whether the source has ended the round and sends at a rate that this answer would hardly lower.
    fn is_settled_by(&self, data: &Data) -> bool {
        differs(self.sent, data.rate) && data.rate * NOTICEABLY_LESS <= 2.0 * self.received
    }
}

/// Returns whether two rates differ by more than rounding and limits explain.
fn differs(a: f32, b: f32) -> bool {
    (a - b).abs() > 0.01 * a.max(b)
}
