//! PGMCC's receiver: acknowledges packets if it is the acker, otherwise reports losses after a random delay.

use super::config::Config;
use super::filter::Filter;
use crate::node::{Cx, Effect};
use crate::packet::{Arrival, Cause, Data, Echo, Layer, Mark, ReceiverId, Report, ReportContent, Seq};
use crate::time::{Span, Time};

/// A receiver of a PGMCC session.
#[derive(Debug, Clone)]
pub struct Receiver {
    me: ReceiverId,
    nak_backoff: Span,
    filter: Filter,
    /// The record of arrivals; `None` before the first packet.
    header: Option<NewestHeader>,
    /// Losses that are not reported yet.
    pending: Option<Losses>,
    /// Time at which this receiver offers to be the acker.
    offer_at: Time,
    ack_every: u8,
    /// Number of packets that wait for an acknowledgement; `ack_at` is the deadline for this acknowledgement.
    waiting: u8,
    ack_at: Time,
    acked_at: Time,
    suppressed: u32,
}

/// The newest packet and the arrivals among the last 32 packets.
#[derive(Debug, Clone, Copy)]
struct NewestHeader {
    newest: Seq,
    newest_at: Time,
    layer: Layer,
    acker: Option<ReceiverId>,
    /// Bit k is set if packet `newest - k` has arrived.
    arrived: u32,
    /// Bit k is set if packet `newest - k` counts as lost, or precedes the first packet.
    lost: u32,
}

impl NewestHeader {
    /// Returns the bits of the oldest packets that have neither arrived nor count as lost, at most this number.
    fn oldest_missing(&self, packets: u32) -> u32 {
        let missing = !self.arrived & !self.lost;
        let oldest_first = (0..32).rev().filter(|back| missing >> back & 1 == 1);
        oldest_first.take(packets as usize).fold(0, |bits, back| bits | 1 << back)
    }
}

/// The losses within one random delay. One report states all these losses.
#[derive(Debug, Clone, Copy)]
struct Losses {
    at: Time,
    first: Seq,
    count: u16,
}

/// If the latest acknowledgement is at least this old, a packet is acknowledged at once.
const ACK_SPACING: Span = Span::from_millis(1);
/// Duration without packets after which the stream counts as ended and pending feedback is dropped.
const STALE_AFTER: Span = Span::from_secs(10);

impl Receiver {
    /// Creates a receiver that has received nothing yet.
    pub fn new(me: ReceiverId, config: &Config) -> Receiver {
        Receiver {
            me,
            nak_backoff: config.nak_backoff,
            filter: Filter::new(config.loss_gain),
            header: None,
            pending: None,
            offer_at: Time::NEVER,
            ack_every: config.ack_every,
            waiting: 0,
            ack_at: Time::NEVER,
            acked_at: Time::ZERO,
            suppressed: 0,
        }
    }

    /// Returns the smoothed fraction of lost packets, 0 to 1.
    pub fn loss(&self) -> f64 {
        f64::from(self.filter.loss())
    }

    /// Returns whether the newest packet named this receiver as the acker.
    pub fn is_acker(&self) -> bool {
        self.header.is_some_and(|header| header.acker == Some(self.me))
    }

    /// Records a packet and returns whether it is new, not a duplicate.
    #[inline]
    fn note(&mut self, data: &Data, layer: Layer, arrival: Arrival, now: Time) -> bool {
        let acker = match data.mark {
            Mark::Acker { id: acker } => acker,
            _ => None,
        };
        let fresh = NewestHeader { newest: data.seq, newest_at: now, layer, acker, arrived: 1, lost: !1 };
        let Some(header) = &mut self.header else {
            self.header = Some(fresh);
            return true;
        };
        if data.seq > header.newest {
            let step = u32::try_from(data.seq.0 - header.newest.0).unwrap_or(u32::MAX);
            let arrived = header.arrived.checked_shl(step).unwrap_or(0) | 1;
            let lost = header.lost.checked_shl(step).unwrap_or(0);
            *header = NewestHeader { arrived, lost, ..fresh };
            if arrival.lost > 0 {
                self.count_losses(arrival.lost);
            }
            if arrival.excused > 0 {
                self.excuse(arrival.excused);
            }
            self.filter.received();
            return true;
        }
        let back = u32::try_from(header.newest.0 - data.seq.0).unwrap_or(u32::MAX);
        let bit = 1u32.checked_shl(back).unwrap_or(0);
        let news = bit != 0 && header.arrived & bit == 0;
        if news {
            header.arrived |= bit;
            if header.lost & bit == 0 {
                self.filter.received();
            } else {
                header.lost &= !bit;
                self.filter.found(back);
            }
        }
        news
    }

    /// Counts `lost` packets as lost: the oldest missing packets that were not counted yet.
    fn count_losses(&mut self, lost: u32) {
        self.filter.lost(lost);
        let Some(header) = &mut self.header else { return };
        header.lost |= header.oldest_missing(lost);
    }

    /// Acknowledges packets that congestion has not lost: the oldest missing packets that do not count as lost yet.
    fn excuse(&mut self, packets: u32) {
        let Some(header) = &mut self.header else { return };
        header.arrived |= header.oldest_missing(packets);
    }

    /// Schedules a report of losses, or adds the losses to the pending report.
    fn plan_report(&mut self, first: Seq, lost: u32, cx: &mut Cx<'_>) {
        let lost = u16::try_from(lost).unwrap_or(u16::MAX);
        match &mut self.pending {
            Some(losses) => {
                losses.count = losses.count.saturating_add(lost);
                self.suppressed += 1;
            }
            None => {
                let at = cx.now + self.nak_backoff.scaled(cx.rng.unit());
                self.pending = Some(Losses { at, first, count: lost });
            }
        }
    }

    fn echo(&self, header: &NewestHeader, now: Time) -> Echo {
        Echo { seq: header.newest, hold: now.since(header.newest_at) }
    }

    /// Acknowledges a new packet. The acknowledgement is delayed to cover further packets, if packets arrive fast and no packet
    /// is missing.
    fn acknowledge_soon(&mut self, arrival: Arrival, cx: &mut Cx<'_>) {
        let missing = self.header.is_some_and(|header| !header.arrived & !header.lost != 0);
        let special = missing || arrival.lost > 0 || arrival.late || arrival.marked;
        self.waiting += 1;
        if special || self.waiting >= self.ack_every || cx.now.since(self.acked_at) >= ACK_SPACING {
            self.acknowledge(cx);
        } else {
            self.ack_at = self.acked_at + ACK_SPACING;
        }
    }

    fn acknowledge(&mut self, cx: &mut Cx<'_>) {
        (self.waiting, self.ack_at, self.acked_at) = (0, Time::NEVER, cx.now);
        let Some(header) = &self.header else { return };
        let missing = !header.arrived & !header.lost;
        let behind = 32 - missing.leading_zeros();
        let content = ReportContent::Selective {
            echo: self.echo(header, cx.now),
            behind,
            bitmap: header.arrived,
            loss: self.filter.loss(),
        };
        self.send(content, cx);
    }

    fn report_losses(&self, first: Seq, count: u16, cx: &mut Cx<'_>) {
        let Some(header) = &self.header else { return };
        let echo = self.echo(header, cx.now);
        self.send(ReportContent::Lost { echo, first, count, loss: self.filter.loss() }, cx);
    }

    fn send(&self, content: ReportContent, cx: &mut Cx<'_>) {
        let layer = self.header.map_or(Layer::default(), |header| header.layer);
        cx.effects.push(Effect::Report(Report { from: self.me, layer, content }));
    }
}

impl crate::node::Receiver for Receiver {
    #[inline]
    fn on_data(&mut self, data: &Data, layer: Layer, arrival: Arrival, cx: &mut Cx<'_>) {
        if self.deadline() <= cx.now {
            crate::node::Receiver::on_deadline(self, cx);
        }
        let news = self.note(data, layer, arrival, cx.now);
        let Some(header) = &self.header else { return };
        match header.acker {
            Some(_) => self.offer_at = Time::NEVER,
            None if self.offer_at.is_never() => {
                self.offer_at = cx.now + self.nak_backoff.scaled(cx.rng.unit());
            }
            None => {}
        }
        if header.acker == Some(self.me) {
            if self.pending.take().is_some() {
                self.suppressed += 1; // acknowledgements report the same losses
            }
            if arrival.marked {
                self.filter.lost(1);
                self.report_losses(data.seq, 1, cx);
            }
            if news {
                self.acknowledge_soon(arrival, cx);
            }
            return;
        }
        if self.waiting > 0 {
            self.acknowledge(cx); // the last packets that named this receiver
        }
        if arrival.lost > 0 {
            let first = Seq(data.seq.0.saturating_sub(u64::from(arrival.lost)));
            self.plan_report(first, arrival.lost, cx);
        } else if arrival.marked {
            self.filter.lost(1);
            self.plan_report(data.seq, 1, cx);
        }
    }

    #[inline]
    fn deadline(&self) -> Time {
        self.pending.map_or(Time::NEVER, |losses| losses.at).min(self.offer_at).min(self.ack_at)
    }

    fn on_deadline(&mut self, cx: &mut Cx<'_>) {
        if self.ack_at <= cx.now {
            self.acknowledge(cx);
        }
        let stale = self.header.is_none_or(|header| cx.now.since(header.newest_at) > STALE_AFTER);
        let due = self.pending.take_if(|losses| losses.at <= cx.now);
        let offers = self.offer_at <= cx.now;
        if offers {
            self.offer_at = Time::NEVER;
        }
        match due {
            _ if stale => {}
            Some(losses) => self.report_losses(losses.first, losses.count, cx),
            None if offers => {
                let next = self.header.map_or(Seq(0), |header| header.newest.next());
                self.report_losses(next, 0, cx);
            }
            None => {}
        }
    }

    fn on_leave(&mut self, cx: &mut Cx<'_>) {
        (self.pending, self.offer_at, self.ack_at) = (None, Time::NEVER, Time::NEVER);
        let (Some(header), true) = (&self.header, self.is_acker()) else { return };
        let echo = self.echo(header, cx.now);
        self.send(ReportContent::Congested { echo, level: 0.0, mean: 0.0, cause: Cause::Leaving }, cx);
    }

    fn suppressed(&self) -> u32 {
        self.suppressed
    }
}
