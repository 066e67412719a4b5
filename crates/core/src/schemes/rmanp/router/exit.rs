//! An exit of an active router: its limit, the packets that wait for it, and the requests from behind it (paper 003, 2.3 and 2.4).

use super::config::Config;
use super::store::Store;
use crate::node::{Cx, Effect, Port, To, Verdict};
use crate::packet::{Body, Data, Flags, Mark, Packet, ReceiverId, ShortId};
use crate::schemes::rmanp::{Fusion, LowRates};
use crate::time::{Rate, Span, Time};
use std::collections::VecDeque;

/// An exit that a session's data leaves by.
#[derive(Debug)]
pub(super) struct Exit {
    pub port: Port,
    /// Behind the newest packet that left or waits.
    pub next: u64,
    /// The newest packets before that one that neither left nor wait, up to a limit.
    skipped: VecDeque<u64>,
    /// Requested packets that are not here.
    asked: VecDeque<u64>,
    limit: Option<Rate>,
    limited_at: Time,
    /// With a limit: when the next packet may leave.
    next_at: Time,
    /// "new_queue": numbers, and whether the gap before has been reported.
    queue: VecDeque<(u64, bool)>,
    /// To be sent again; go first.
    again: VecDeque<u64>,
    /// The packet before the next one was dropped here, and upstream knows.
    has_dropped: bool,
    /// The sources of acknowledgements behind it.
    pub children: Fusion<ReceiverId>,
    /// All receivers behind it have left: packets leave only now and then, so that a new receiver is noticed.
    pub is_pruned: bool,
    probe_at: Time,
    pub low: LowRates,
    pub excluded: Option<(ShortId, Time)>,
    /// Smoothed time from a packet's arrival here until all behind the exit acknowledge it, in seconds.
    rtt: Option<f64>,
    pub data_at: Time,
    /// When the first packet left by it.
    pub since: Time,
}

/// The fate of a packet at an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// By the verdict.
    Settled(Verdict),
    /// The queue is full: it is dropped, which is congestion.
    Overflow,
}

/// The interval at which packets leave through an exit without receivers.
const PROBE: Span = Span::from_secs(1);
/// Before a round trip is measured.
const FIRST_RTT: f64 = 1.0;
const GAIN: f64 = 0.125;
/// The number of skipped packets, and of requested ones, that are remembered.
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
            excluded: None,
            rtt: None,
            data_at: now,
            since: now,
        }
    }

    /// Entries in its memory.
    pub(super) fn entries(&self) -> usize {
        1 + self.children.len() + self.skipped.len() + self.asked.len() + self.queue.len() + self.again.len()
    }

    pub(super) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    fn waits(&self) -> bool {
        !self.queue.is_empty() || !self.again.is_empty()
    }

    /// Returns whether this receiver was excluded a moment ago: its later feedback is ignored.
    pub(super) fn has_excluded(&self, who: ReceiverId, now: Time) -> bool {
        self.excluded.is_some_and(|(id, until)| now < until && ReceiverId::from(id) == who)
    }

    /// When something that waits may leave.
    pub(super) fn due(&self) -> Time {
        if self.waits() { self.next_at } else { Time::NEVER }
    }

    /// Sets a limit from now on, unless there is a lower one.
    pub(super) fn restrict(&mut self, rate: Rate, now: Time) {
        if self.limit.is_some_and(|limit| limit.bps() <= rate.bps()) {
            return;
        }
        if self.limit.is_none() {
            self.next_at = now;
        }
        (self.limit, self.limited_at) = (Some(rate), now);
    }

    /// Raises the limit by this rate because packets were acknowledged; it ends once nothing waits.
    pub(super) fn grow(&mut self, by: Rate) {
        if let Some(limit) = &mut self.limit {
            *limit = *limit + by;
        }
    }

    /// The congestion is over when what waited has left (paper 003, 2.4). Whether the limit was taken away.
    // Paper gap: a limit stays for a round trip, or it would end before anything could wait.
    pub(super) fn relax(&mut self, now: Time) -> bool {
        let rtt = Span::from_secs_f64(self.rtt.unwrap_or(FIRST_RTT));
        let ends = self.limit.is_some() && !self.waits() && now.since(self.limited_at) >= rtt;
        if ends {
            self.limit = None;
        }
        ends
    }

    /// All behind the exit have a packet that came at that moment.
    pub(super) fn on_sample(&mut self, sample: Span) {
        let secs = sample.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(secs, |rtt| rtt + GAIN * (secs - rtt)));
    }

    /// A packet is on its way through this exit that is newer than all before.
    pub(super) fn on_new(&mut self, packet: &mut Packet, gap: bool, config: &Config, now: Time) -> Outcome {
        let Body::Data(data) = &mut packet.body else { return Outcome::Settled(Verdict::Pass) };
        let seq = data.seq.0;
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

    /// A packet that is older than one that has left by this exit; `is_requested` when this router asked for it.
    pub(super) fn on_late(&mut self, packet: &mut Packet, is_requested: bool, now: Time) -> Verdict {
        let Body::Data(data) = &mut packet.body else { return Verdict::Pass };
        let seq = data.seq.0;
        let is_repair = data.flags.has(Flags::REPAIR);
        let is_asked = take(&mut self.asked, seq);
        let is_owed = !is_repair && take(&mut self.skipped, seq);
        // Upstream repeats packets without a request when an acknowledgement is late: the last packet may have been lost.
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

    /// A receiver behind the exit requests a packet that is not here.
    pub(super) fn wants(&mut self, seq: u64) {
        if !self.asked.contains(&seq) {
            if self.asked.len() >= MAX {
                self.asked.pop_front();
            }
            self.asked.push_back(seq);
        }
    }

    /// Whether this packet waits here.
    pub(super) fn holds(&self, seq: u64) -> bool {
        self.again.contains(&seq) || self.queue.iter().any(|(queued, _)| *queued == seq)
    }

    /// A packet that is here leaves again as soon as it may. Whether it was not to do so already.
    pub(super) fn repeat(&mut self, seq: u64) -> bool {
        let waits = self.holds(seq);
        if !waits && self.again.len() < MAX {
            self.again.push_back(seq);
        }
        !waits
    }

    /// Sends the packets that may leave by now: one where there is a limit, all that wait otherwise.
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

    /// Paces a packet at the limit's rate, and writes that rate into it.
    fn pace(&mut self, data: &mut Data, size: u16, now: Time) {
        let Some(limit) = self.limit else { return };
        data.rate = data.rate.min(limit.bps() as f32);
        self.next_at = now + limit.span_of(size.into()).max(Span::from_nanos(1));
    }

    /// Writes into packets the statements for receivers behind this exit: the router listens, and the excluded receiver.
    fn address(&self, data: &mut Data, now: Time) {
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

/// Returns the flags with or without the mark that the gap before a packet is reported.
fn with_gap(flags: Flags, gap: bool) -> Flags {
    if gap { flags.with(Flags::GAP_SEEN) } else { Flags(flags.0 & !Flags::GAP_SEEN.0) }
}

fn take(list: &mut VecDeque<u64>, seq: u64) -> bool {
    let place = list.iter().position(|other| *other == seq);
    place.is_some_and(|place| list.remove(place).is_some())
}
