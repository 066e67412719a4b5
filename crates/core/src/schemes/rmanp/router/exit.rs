//! An exit of an active router: its limit, the packets that wait for it, and the requests from receivers behind it (paper 003,
//! 2.3 and 2.4).

use super::config::Config;
use super::store::Store;
use crate::node::{Cx, Effect, Port, To, Verdict};
use crate::packet::{Body, Data, Flags, Mark, Packet, ReceiverId, ShortId};
use crate::schemes::rmanp::{Departures, Fusion, LowRates};
use crate::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// An exit through which a session's data is sent.
#[derive(Debug)]
pub(super) struct Exit {
    pub port: Port,
    /// One more than the number of the newest packet that was sent or waits.
    pub next: u64,
    /// The newest packets below `next` that were not sent and do not wait; at most `MAX`.
    skipped: VecDeque<u64>,
    /// Requested packets that this router does not store.
    asked: VecDeque<u64>,
    limit: Option<Rate>,
    limited_at: Time,
    /// Earliest time of the next packet under the limit.
    next_at: Time,
    /// "new_queue": packet numbers, and whether the gap before the packet has been reported.
    queue: VecDeque<(u64, bool)>,
    /// Packets to be repeated; they are sent before the queue.
    again: VecDeque<u64>,
    /// Whether the latest packet was dropped here. This router has reported the drop upstream.
    has_dropped: bool,
    /// Sources of acknowledgements behind the exit.
    pub children: Fusion<ReceiverId>,
    /// Whether all receivers behind the exit have left. A few packets still pass, so that a new receiver is detected.
    pub is_pruned: bool,
    probe_at: Time,
    pub low: LowRates,
    /// Size of the newest packet, bytes.
    pub size: u16,
    pub excluded: Option<(ShortId, Time)>,
    /// Smoothed time from a packet's arrival at the router until all receivers behind the exit have acknowledged it, in seconds.
    rtt: Option<f64>,
    pub data_at: Time,
    /// Sending rate that the newest packet states, in bit/s.
    rate: f32,
    pub departures: Departures,
    /// Time of the exit's first packet.
    pub since: Time,
}

/// Outcome of a packet at an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The verdict applies.
    Settled(Verdict),
    /// The packet is dropped because the queue is full. This is congestion.
    Overflow,
}

/// Interval of packets through an exit without receivers.
const PROBE: Span = Span::from_secs(1);
/// Assumed round-trip time before the first measurement, in seconds.
const FIRST_RTT: f64 = 1.0;
const GAIN: f64 = 0.125;
/// Maximum number of stored skipped packets, and of stored requested packets.
const MAX: usize = 100;

impl Exit {
    pub(super) fn new(port: Port, first: u64, now: Time) -> Exit {
        Exit {
            port,
            next: first,
            skipped: VecDeque::new(),
            asked: VecDeque::new(),
            limit: None,
            limited_at: now,
            next_at: now,
            queue: VecDeque::new(),
            again: VecDeque::new(),
            has_dropped: false,
            children: Fusion::new(),
            is_pruned: false,
            probe_at: now,
            low: LowRates::default(),
            size: 1,
            excluded: None,
            rtt: None,
            data_at: now,
            rate: f32::INFINITY,
            departures: Departures::default(),
            since: now,
        }
    }

    /// Returns the number of stored entries.
    pub(super) fn entries(&self) -> usize {
        1 + self.children.len() + self.skipped.len() + self.asked.len() + self.queue.len() + self.again.len()
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() || !self.again.is_empty()
    }

    /// Returns whether this receiver was excluded recently. The feedback of such a receiver is ignored.
    pub(super) fn has_excluded(&self, who: ReceiverId, now: Time) -> bool {
        let is_named = |id| id == ShortId::ALL || ReceiverId::from(id) == who;
        self.excluded.is_some_and(|(id, until)| now < until && is_named(id))
    }

    /// Returns the time at which the next waiting packet may be sent.
    pub(super) fn due(&self) -> Time {
        if self.waits() { self.next_at } else { Time::NEVER }
    }

    /// Sets a limit, unless the exit has a lower one.
    pub(super) fn restrict(&mut self, rate: Rate, now: Time) {
        if self.limit.is_some_and(|limit| limit.bps() <= rate.bps()) {
            return;
        }
        if self.limit.is_none() {
            self.next_at = now;
        }
        (self.limit, self.limited_at) = (Some(rate), now);
    }

    /// Raises the limit by this rate, because packets were acknowledged.
    pub(super) fn grow(&mut self, by: Rate) {
        if let Some(limit) = &mut self.limit {
            *limit = *limit + by;
        }
    }

    /// Removes the limit if no packet waits, because the congestion has ended (paper 003, 2.4). Returns whether it removed the
    /// limit.
    // Paper gap: a limit lasts for at least a round trip. Otherwise it would end before any packet could wait.
    pub(super) fn relax(&mut self, now: Time) -> bool {
        let rtt = Span::from_secs_f64(self.rtt.unwrap_or(FIRST_RTT));
        let ends = self.limit.is_some() && !self.waits() && now.since(self.limited_at) >= rtt;
        if ends {
            self.limit = None;
        }
        ends
    }

    /// Adds a sample of the time from a packet's arrival until all receivers behind the exit have acknowledged it.
    pub(super) fn on_sample(&mut self, sample: Span) {
        let secs = sample.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(secs, |rtt| rtt + GAIN * (secs - rtt)));
    }

    /// Processes a packet that is newer than all earlier packets at this exit.
    pub(super) fn on_new(&mut self, packet: &mut Packet, gap: bool, config: &Config, now: Time) -> Outcome {
        let Body::Data(data) = &mut packet.body else { return Outcome::Settled(Verdict::Pass) };
        let seq = data.seq.0;
        (self.rate, self.size) = (data.rate, packet.size.max(1));
        if self.is_pruned {
            if now < self.probe_at {
                return Outcome::Settled(Verdict::Drop);
            }
            self.probe_at = now + PROBE;
            self.next = seq;
        }
        let first = self.next.max(seq.saturating_sub(MAX as u64));
        self.skipped.extend(first..seq);
        self.next = seq.saturating_add(1);
        let gap = gap || std::mem::take(&mut self.has_dropped);
        self.relax(now);
        if self.limit.is_some() {
            if self.waits() || now < self.next_at {
                if self.queue.len() < usize::from(config.queue) {
                    self.queue.push_back((seq, gap));
                    return Outcome::Settled(Verdict::Hold);
                }
                self.has_dropped = true;
                self.skipped.push_back(seq);
                self.trim();
                return Outcome::Overflow;
            }
            self.pace(data, packet.size, now);
        }
        self.trim();
        data.flags = with_gap(data.flags, gap);
        self.address(data, now);
        Outcome::Settled(Verdict::Pass)
    }

    /// Processes a packet that is older than a packet which has already passed this exit. `is_requested` states whether this
    /// router has requested the older packet.
    pub(super) fn on_late(&mut self, packet: &mut Packet, is_requested: bool, now: Time) -> Verdict {
        let Body::Data(data) = &mut packet.body else { return Verdict::Pass };
        let seq = data.seq.0;
        let is_repair = data.flags.has(Flags::REPAIR);
        let is_asked = take(&mut self.asked, seq);
        let is_owed = !is_repair && take(&mut self.skipped, seq);
        // The upstream node repeats a packet without a request if an acknowledgement is late, because the last packet may have
        // been lost.
        let is_late = is_repair && !is_requested && self.children.least().is_some_and(|least| least <= seq);
        if !is_asked && !is_owed && !is_late {
            return Verdict::Drop;
        }
        if self.limit.is_some() {
            if self.waits() || now < self.next_at {
                self.again.push_back(seq);
                return Verdict::Hold;
            }
            self.pace(data, packet.size, now);
        }
        let flags = with_gap(data.flags, false);
        data.flags = if is_owed { flags } else { flags.with(Flags::REPAIR) };
        self.address(data, now);
        Verdict::Pass
    }

    /// Records a receiver's request for a packet that this router does not store.
    pub(super) fn wants(&mut self, seq: u64) {
        if !self.asked.contains(&seq) {
            if self.asked.len() >= MAX {
                self.asked.pop_front();
            }
            self.asked.push_back(seq);
        }
    }

    /// Returns whether this packet waits at the exit.
    pub(super) fn holds(&self, seq: u64) -> bool {
        self.again.contains(&seq) || self.queue.iter().any(|(queued, _)| *queued == seq)
    }

    /// Schedules the repetition of a stored packet, unless the packet already waits. Returns whether it was not waiting before.
    pub(super) fn repeat(&mut self, seq: u64) -> bool {
        let waits = self.holds(seq);
        if !waits && self.again.len() < MAX {
            self.again.push_back(seq);
        }
        !waits
    }

    /// Repeats the first packet that a receiver behind the exit lacks, if the exit sends nothing else: the last packets may have been
    /// lost, or dropped here.
    pub(super) fn repeat_late(&mut self, store: &mut Store, cx: &mut Cx<'_>) {
        let Some(least) = self.children.least().filter(|least| *least < self.next) else { return };
        if !self.waits() && self.departures.is_answer_due(cx.now) && store.get(least).is_some() {
            self.repeat(least);
            self.pump(store, cx);
        }
    }

    /// Sends the waiting packets that may be sent now: one packet if the exit has a limit, otherwise all packets.
    pub(super) fn pump(&mut self, store: &mut Store, cx: &mut Cx<'_>) {
        while self.waits() && (self.limit.is_none() || self.next_at <= cx.now) {
            let (seq, gap, is_again) = match self.again.pop_front() {
                Some(seq) => (seq, false, true),
                None => match self.queue.pop_front() {
                    Some((seq, gap)) => (seq, gap, false),
                    None => return,
                },
            };
            let Some(slot) = store.get_mut(seq) else { continue };
            let mut packet = slot.packet;
            let Body::Data(data) = &mut packet.body else { continue };
            if is_again {
                slot.repaired = Some((self.port, cx.now));
                // The stored packet states the rate of its first departure, which may be long ago.
                data.rate = data.rate.min(self.rate);
                data.flags = data.flags.with(Flags::REPAIR);
            }
            data.flags = with_gap(data.flags, gap);
            if self.limit.is_some() {
                self.pace(data, packet.size, cx.now);
            }
            self.address(data, cx.now);
            cx.effects.push(Effect::Send { to: To::Exit(self.port), packet });
        }
    }

    /// Computes the time of the next packet from the limit. Lowers the rate that this packet states to the limit.
    fn pace(&mut self, data: &mut Data, size: u16, now: Time) {
        let Some(limit) = self.limit else { return };
        data.rate = data.rate.min(limit.bps() as f32);
        self.next_at = now + limit.span_of(size.into()).max(Span::from_nanos(1));
    }

    /// Records the departure of a packet. Writes two statements for the receivers behind this exit into the packet: that the router
    /// accepts all feedback, and which receiver was excluded, if any.
    fn address(&mut self, data: &mut Data, now: Time) {
        self.departures.note(now);
        if let Mark::Floor { every, excluded, .. } = &mut data.mark {
            *every = 0.0;
            if let Some((id, until)) = self.excluded
                && now < until
            {
                *excluded = Some(id);
            }
        }
    }

    fn trim(&mut self) {
        while self.skipped.len() > MAX {
            self.skipped.pop_front();
        }
    }
}

/// Sets or clears the flag `GAP_SEEN`, which states that the gap before the packet was reported.
fn with_gap(flags: Flags, gap: bool) -> Flags {
    if gap { flags.with(Flags::GAP_SEEN) } else { Flags(flags.0 & !Flags::GAP_SEEN.0) }
}

fn take(list: &mut VecDeque<u64>, seq: u64) -> bool {
    let place = list.iter().position(|other| *other == seq);
    place.is_some_and(|place| list.remove(place).is_some())
}
