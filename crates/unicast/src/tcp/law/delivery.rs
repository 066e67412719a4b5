//! Samples of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation-00, 3), in packets.

use faircast_core::time::{Span, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// A sent packet that may be outstanding.
#[derive(Debug, Clone, Copy, Default)]
struct OutstandingPacket {
    sent_at: Time,
    /// Values of [`Delivery::first_sent_at`], [`Delivery::delivered_at`] and [`Delivery::delivered`] when the packet was sent.
    first_sent_at: Time,
    delivered_at: Time,
    delivered: u64,
    /// Whether its arrival is not counted yet.
    is_out: bool,
    was_sent_again: bool,
    app_limited: bool,
}

/// Sample of one acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Number of packets that it reports as arrived.
    pub newly: u32,
    /// Number of packets that had been delivered when the newest of these arrived packets was sent.
    pub prior_delivered: u64,
    /// Delivery rate in packets per second; `None` if the interval is too short.
    pub rate: Option<f64>,
    /// Round-trip time of the newest of these packets; `None` if the packet was retransmitted.
    pub rtt: Option<Span>,
    /// Whether the application limited the rate, rather than the network.
    pub app_limited: bool,
}

/// Delivery counters of a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Delivery {
    /// A ring of packets, indexed by packet number. Its length is a power of two.
    out: Vec<OutstandingPacket>,
    /// Retransmitted packets with the times of their retransmissions, in order of time. Entries after the first may be outdated,
    /// because the packet has arrived or was retransmitted again.
    again: VecDeque<(u32, Time)>,
    /// Number of packets delivered so far (`C.delivered`), and the time at which the latest delivery was reported.
    pub delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    /// Value of `delivered` up to which rate samples count as limited by the application; 0 if the application does not limit the
    /// rate.
    app_limited_to: u64,
    /// Latest time of sending among all packets that have arrived.
    latest: Time,
    /// The newest packet of this acknowledgement.
    newest: Option<OutstandingPacket>,
    newly: u32,
}

impl Delivery {
    /// Records that packet `seq` is sent. `una` is the first packet that may be outstanding; `inflight` packets were in the pipe
    /// before this packet.
    pub(super) fn on_sent(&mut self, seq: u32, una: u32, inflight: u32, again: bool, now: Time) {
        let span = (seq.max(una) - una.min(seq)) as usize + 1;
        if span > self.out.len() {
            self.widen(span.next_power_of_two().max(16), una);
        }
        if inflight == 0 {
            (self.first_sent_at, self.delivered_at) = (now, now);
        }
        let out = OutstandingPacket {
            sent_at: now,
            first_sent_at: self.first_sent_at,
            delivered_at: self.delivered_at,
            delivered: self.delivered,
            is_out: true,
            was_sent_again: again,
            app_limited: self.app_limited_to > 0,
        };
        let mask = self.out.len() - 1;
        self.out[seq as usize & mask] = out;
        if again {
            self.forget_again(una);
            self.again.push_back((seq, now));
        }
    }

    fn widen(&mut self, size: usize, una: u32) {
        let old = std::mem::replace(&mut self.out, vec![OutstandingPacket::default(); size]);
        for seq in una..una.saturating_add(old.len() as u32) {
            self.out[seq as usize & (size - 1)] = old[seq as usize & (old.len() - 1)];
        }
    }

    /// Records that packet `seq` has arrived. Further reports of the same arrival have no effect.
    pub(super) fn on_arrival(&mut self, seq: u32, now: Time) {
        let Some(mask) = self.out.len().checked_sub(1) else { return };
        let out = &mut self.out[seq as usize & mask];
        if !std::mem::take(&mut out.is_out) {
            return;
        }
        self.delivered += 1;
        self.delivered_at = now;
        self.latest = self.latest.max(out.sent_at);
        self.newly += 1;
        if self.newest.is_none_or(|newest| (out.delivered, out.sent_at) >= (newest.delivered, newest.sent_at))
        {
            self.newest = Some(*out);
        }
    }

    /// Returns the sample of an acknowledgement, after all its arrivals have been recorded. If the interval is shorter than the
    /// lowest round-trip time, the sample has no rate, because the rate would not reflect the path.
    pub(super) fn take_sample(&mut self, lowest: Option<Span>, now: Time) -> Option<Sample> {
        let newly = std::mem::take(&mut self.newly);
        let newest = self.newest.take()?;
        if self.app_limited_to > 0 && self.delivered > self.app_limited_to {
            self.app_limited_to = 0;
        }
        self.first_sent_at = newest.sent_at;
        let sending = newest.sent_at.since(newest.first_sent_at);
        let interval = sending.max(now.since(newest.delivered_at));
        let valid = interval > Span::ZERO && lowest.is_none_or(|lowest| interval >= lowest);
        let packets = (self.delivered - newest.delivered) as f64;
        Some(Sample {
            newly,
            prior_delivered: newest.delivered,
            rate: valid.then(|| packets / interval.as_secs_f64()),
            rtt: (!newest.was_sent_again).then(|| now.since(newest.sent_at)),
            app_limited: newest.app_limited,
        })
    }

    /// Returns the first packet of an unacknowledged range whose retransmission is also lost. A retransmission is lost if a
    /// packet has arrived that was sent more than `later` after the retransmission (as in RFC 8985).
    pub(super) fn first_lost_again(&mut self, range: Range<u32>, later: Span) -> Option<u32> {
        self.forget_again(range.start);
        let lost = self.again.iter().take_while(|(_, sent_at)| *sent_at + later < self.latest);
        let lost = lost.filter(|it| range.contains(&it.0) && self.is_out_since(it, range.start));
        lost.map(|(seq, _)| *seq).min()
    }

    fn forget_again(&mut self, una: u32) {
        while self.again.front().is_some_and(|it| !self.is_out_since(it, una)) {
            self.again.pop_front();
        }
    }

    /// Returns whether packet `seq` is still outstanding and its latest transmission is the retransmission at `sent_at`.
    fn is_out_since(&self, &(seq, sent_at): &(u32, Time), una: u32) -> bool {
        let Some(mask) = self.out.len().checked_sub(1) else { return false };
        let out = &self.out[seq as usize & mask];
        seq >= una && out.is_out && out.was_sent_again && out.sent_at == sent_at
    }

    /// Records that the application has no more data, while `inflight` packets are in the pipe.
    pub(super) fn limit(&mut self, inflight: u32) {
        self.app_limited_to = (self.delivered + u64::from(inflight)).max(1);
    }
}
