//! RACCOOM's receiver: it acknowledges packets and reports its highest lost packet.

use super::aggregate::Aggregate;
use super::config::{Answers, Config};
use crate::node::{Cx, Effect};
use crate::packet::{
    Arrival, Cause, Data, Echo, Flags, Layer, Mark, ReceiverId, Report, ReportContent, Seq, ShortId,
};
use crate::rate::StartUpReceiver;
use crate::suppress::TruncatedExponential;
use crate::time::{Span, Time};

/// A receiver of a RACCOOM session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    header: Option<NewestHeader>,
    /// One more than the number of the highest lost packet; 0 without a loss. Later acknowledgements repeat this number.
    past_lost: u64,
    /// With `Answers::Few`: number of packets that wait for a common acknowledgement. `ack_at` is the deadline of this
    /// acknowledgement.
    waiting: u8,
    ack_at: Time,
    acked_at: Time,
    /// With `Answers::Few`: time of the next report of this receiver if it is not the target.
    turn_at: Time,
    /// With `Answers::Few`: time at which the receiver reports a loss that no cut has answered.
    loss_at: Time,
    start_up: StartUpReceiver,
    ack_every: u8,
    law: TruncatedExponential,
    /// Whether the receiver acknowledges a few packets together even with `Answers::All`. A router below the source may request
    /// this.
    thins: bool,
    suppressed: u32,
}

/// The newest packet, and a record of the latest 64 packets.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    newest: Seq,
    newest_at: Time,
    layer: Layer,
    /// Bit k: the packet `newest - k` has arrived, or counts as lost.
    known: u64,
    target: Option<ShortId>,
    /// A cut has answered the losses of packets before this one.
    cut: u64,
    rtt_max: Span,
    /// Interval between reports of receivers other than the target; zero if all receivers acknowledge each packet.
    every: Span,
}

/// If the latest acknowledgement is at least this old, a packet is acknowledged at once.
const ACK_SPACING: Span = Span::from_millis(1);
/// Duration without packets after which the stream counts as ended, and pending feedback is obsolete.
const STALE_AFTER: Span = Span::from_secs(10);
/// Range of the round-trip times in headers. `MAX_TURN` is the maximum interval between two reports of a receiver, in seconds.
const RTT_RANGE: (Span, Span) = (Span::from_micros(100), Span::from_secs(10));
const MAX_TURN: f64 = 60.0;

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            me,
            header: None,
            past_lost: 0,
            waiting: 0,
            ack_at: Time::NEVER,
            acked_at: Time::ZERO,
            turn_at: Time::NEVER,
            loss_at: Time::NEVER,
            start_up: StartUpReceiver::default(),
            ack_every: config.ack_every,
            law: config.delay_law,
            thins: config.answers == Answers::Few,
            suppressed: 0,
        }
    }

    /// Records a packet; returns whether it is the newest one.
    fn note(&mut self, data: &Data, layer: Layer, arrival: Arrival, now: Time) -> bool {
        let mut fresh = NewestHeader {
            newest: data.seq,
            newest_at: now,
            layer,
            known: u64::MAX,
            target: None,
            cut: 0,
            rtt_max: RTT_RANGE.1,
            every: Span::ZERO,
        };
        if let Mark::Target { id, since_cut, rtt_max, every } = data.mark {
            fresh.target = id;
            fresh.cut = match since_cut {
                u16::MAX => 0,
                behind => data.seq.0.saturating_sub(behind.into()),
            };
            if rtt_max.is_finite() {
                fresh.rtt_max = Span::from_secs_f64(f64::from(rtt_max)).clamp(RTT_RANGE.0, RTT_RANGE.1);
            }
            if every.is_finite() && every > 0.0 {
                fresh.every = Span::from_secs_f64(f64::from(every).min(MAX_TURN));
            }
        }
        let Some(header) = &mut self.header else {
            self.header = Some(fresh);
            return true;
        };
        let is_newest = data.seq > header.newest;
        if is_newest {
            let step = u32::try_from(data.seq.0 - header.newest.0).unwrap_or(u32::MAX);
            let known = header.known.checked_shl(step).unwrap_or(0) | 1;
            *header = NewestHeader { known, ..fresh };
        } else {
            let back = u32::try_from(header.newest.0 - data.seq.0).unwrap_or(u32::MAX);
            header.known |= 1u64.checked_shl(back).unwrap_or(0);
        }
        self.note_losses(arrival);
        if arrival.marked {
            self.past_lost = self.past_lost.max(data.seq.0.saturating_add(1));
        }
        is_newest
    }

    /// Counts more packets as lost: the oldest of the missing packets that do not count as lost yet. Excused losses are not
    /// reported.
    fn note_losses(&mut self, arrival: Arrival) {
        let (lost, counts) = (arrival.lost.max(arrival.excused), arrival.lost > 0);
        let (Some(header), true) = (&mut self.header, lost > 0) else { return };
        let mut missing = !header.known;
        if missing == 0 && counts {
            // The lost packets are older than the record.
            self.past_lost = self.past_lost.max(header.newest.0.saturating_sub(63));
        }
        for _ in 0..lost.min(u64::BITS) {
            let Some(place) = missing.checked_ilog2() else { break };
            missing &= !(1 << place);
            header.known |= 1 << place;
            if counts {
                self.past_lost = self.past_lost.max((header.newest.0 + 1).saturating_sub(place.into()));
            }
        }
    }

    fn answer(&mut self, cx: &mut Cx<'_>) {
        (self.waiting, self.ack_at, self.acked_at, self.loss_at) = (0, Time::NEVER, cx.now, Time::NEVER);
        let Some(header) = &self.header else { return };
        let layer = header.layer;
        if let Some(content) = self.content(cx.now) {
            cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
        }
    }

    /// Returns the progress of this receiver.
    pub(super) fn content(&self, now: Time) -> Option<ReportContent> {
        let header = self.header.as_ref()?;
        let echo = Echo { seq: header.newest, hold: now.since(header.newest_at) };
        let of = ShortId::of(self.me);
        Some(ReportContent::Newest { echo, past_lost: Seq(self.past_lost), of })
    }

    /// Returns the progress as an entry of an aggregator.
    pub(super) fn entry(&self, now: Time) -> Option<Aggregate> {
        self.content(now).and_then(|content| Aggregate::reported_by(&content))
    }

    /// With `Answers::Few`: returns whether this receiver must acknowledge each packet.
    fn is_target(&self) -> bool {
        self.header.is_some_and(|header| header.target.is_some() && header.target == ShortId::of(self.me))
    }

    fn acknowledge_soon(&mut self, arrival: Arrival, cx: &mut Cx<'_>) {
        self.turn_at = Time::NEVER;
        self.waiting += 1;
        let special = arrival.lost > 0 || arrival.marked;
        if special || self.waiting >= self.ack_every || cx.now.since(self.acked_at) >= ACK_SPACING {
            self.answer(cx);
        } else {
            self.ack_at = self.acked_at + ACK_SPACING;
        }
    }

    /// With `Answers::Few`: schedules the reports of a receiver other than the target.
    fn take_turns(&mut self, arrival: Arrival, cx: &mut Cx<'_>) {
        let Some(header) = self.header else { return };
        if self.waiting > 0 {
            self.answer(cx); // the last ones for which it was the target
        }
        if self.turn_at.is_never() {
            self.turn_at = cx.now + header.every.scaled(cx.rng.unit());
        }
        if self.past_lost <= header.cut {
            self.suppressed += u32::from(!self.loss_at.is_never());
            self.loss_at = Time::NEVER; // a cut has answered it
        } else if (arrival.lost > 0 || arrival.marked) && self.loss_at.is_never() {
            self.loss_at = cx.now + self.law.delay(header.rtt_max * 2, cx.rng);
        }
    }
}

impl crate::node::Receiver for Receiver {
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.deadline() <= cx.now {
            crate::node::Receiver::on_deadline(self, cx);
        }
        let is_newest = self.note(data, layer, arrival, cx.now);
        let Some(header) = self.header else { return };
        if (data.flags.has(Flags::STARTING) || self.start_up.is_active()) && !arrival.late {
            self.start_up.on_data(data, arrival, header.rtt_max, self.law, cx);
        }
        let reports = is_newest || arrival.lost > 0 || arrival.marked;
        if header.every == Span::ZERO && !self.thins {
            if reports {
                self.answer(cx);
            }
        } else if header.every == Span::ZERO || self.is_target() {
            if reports {
                self.acknowledge_soon(arrival, cx);
            }
        } else {
            self.take_turns(arrival, cx);
        }
    }

    fn deadline(&self) -> Time {
        self.ack_at.min(self.turn_at).min(self.loss_at).min(self.start_up.deadline())
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now;
        if now < self.deadline() {
            return;
        }
        let stale = self.header.is_none_or(|header| now.since(header.newest_at) > STALE_AFTER);
        if self.turn_at <= now {
            let every = self.header.map_or(Span::ZERO, |header| header.every);
            // After the end of a stream no reports are needed. If another packet arrives, it schedules reports again.
            self.turn_at = if stale || every == Span::ZERO {
                Time::NEVER
            } else {
                now + every.scaled(0.5 + cx.rng.unit()).max(Span::from_micros(1))
            };
            self.ack_at = now;
        }
        if self.loss_at <= now || self.ack_at <= now {
            (self.loss_at, self.ack_at) = (Time::NEVER, Time::NEVER);
            if !stale {
                self.answer(cx);
            }
        }
        if let Some(content) = self.start_up.take_due(now) {
            let layer = self.header.map_or(Layer::default(), |header| header.layer);
            cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        (self.ack_at, self.turn_at, self.loss_at) = (Time::NEVER, Time::NEVER, Time::NEVER);
        self.start_up.cancel();
        let Some(header) = &self.header else { return };
        let echo = Echo { seq: header.newest, hold: cx.now.since(header.newest_at) };
        let content = ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving };
        cx.effects.push(Effect::Report(Report { from: self.me, layer: header.layer, content }));
    }

    fn suppressed(&self) -> u32 {
        self.suppressed
    }
}
