//! Recovery by selective acknowledgements: what is in the pipe decides whether a packet may leave, the scoreboard which.
//!
//! In ns-2's way (Fall and Floyd 1996) the pipe is counted with every acknowledgement and packet, and every hole below the
//! highest arrival is lost. In the standard's way (RFC 6675) both follow from the scoreboard.

use super::config::{Recovery, Shrinking};
use super::tcb::{ControlBlock, DUPLICATES, NONE, Origin, Reaction};
use crate::time::Time;
use crate::unicast::Ack;

/// What the receiver has beyond the left edge, and the state of a recovery.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    /// Packets that arrived, `from..to`, ascending and apart.
    ranges: Vec<(u32, u32)>,
    /// Holes below this were sent again.
    resent_to: u32,
    /// Packets thought to be on their way.
    pipe: i64,
    recovering: bool,
    /// The timer ran out, and nothing new was acknowledged since: duplicates mean nothing.
    after_timeout: bool,
    /// The urgent packet counts for the pipe.
    counts: bool,
    /// The last packet was sent again because nothing else could be (RFC 6675, 4, rule 4 of `NextSeg`).
    rescued: bool,
    /// What may leave in this recovery, where the window comes down in proportion.
    proportional: Option<Proportional>,
}

/// A window that comes down in proportion to what arrives (RFC 6937, 3), in packets.
#[derive(Debug, Clone, Copy)]
struct Proportional {
    /// Packets that were out when the recovery began (`RecoverFS`), at least one.
    start: u32,
    /// Those that have arrived since (`prr_delivered`), and left (`prr_out`).
    delivered: u32,
    out: u32,
    /// Those that may leave now (`sndcnt`).
    may: i64,
}

impl Proportional {
    /// So many have arrived; `pipe` are on their way, and `threshold` shall be.
    fn on_delivered(&mut self, packets: u32, pipe: i64, threshold: f64) {
        self.delivered += packets;
        let (delivered, out, threshold) = (i64::from(self.delivered), i64::from(self.out), threshold as i64);
        self.may = if pipe > threshold {
            (delivered * threshold + i64::from(self.start) - 1) / i64::from(self.start) - out
        } else {
            // As slow start would.
            let bound = (delivered - out).max(i64::from(packets)) + 1;
            bound.min(threshold - pipe)
        };
    }
}

impl Scoreboard {
    pub(super) const fn is_recovering(&self) -> bool {
        self.recovering
    }

    fn clear(&mut self) {
        self.ranges.clear();
        self.resent_to = 0;
    }

    pub(super) fn on_timeout(&mut self) {
        self.clear();
        self.recovering = false;
        self.after_timeout = true;
    }

    /// Whether the urgent packet is one of a recovery, but not the first, which leaves at once.
    #[inline]
    pub(super) const fn is_hole_after_the_first(&self) -> bool {
        self.recovering && self.counts
    }

    /// Nothing beyond the left edge is known to have arrived.
    pub(super) const fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.recovering
    }

    /// The first packet of those sent again that is lost once more leaves at once; it is in the pipe already.
    pub(super) fn resend_lost(&mut self, tcb: &mut ControlBlock, mut is_lost: impl FnMut(u32) -> bool) {
        let mut first = NONE;
        self.each_missing(tcb.una, self.resent_to, |seq| {
            if first == NONE && is_lost(seq) {
                first = seq;
            }
        });
        if self.recovering && first != NONE && (tcb.urgent == NONE || self.counts) {
            tcb.urgent = first;
            self.counts = false;
        }
    }

    /// Calls for every packet of `from..to` that is not known to have arrived.
    pub(super) fn each_missing(&self, mut from: u32, to: u32, mut call: impl FnMut(u32)) {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        for &(start, end) in &self.ranges[first..] {
            if start >= to {
                break;
            }
            (from..start).for_each(&mut call);
            from = end;
        }
        (from..to).for_each(call);
    }

    /// The left edge moved to `una`.
    fn advance(&mut self, una: u32) {
        self.ranges.retain_mut(|range| {
            range.0 = range.0.max(una);
            range.0 < range.1
        });
    }

    /// Whether this says anything new.
    fn add_all(&mut self, ack: &Ack) -> bool {
        let mut news = false;
        for &(from, to) in &ack.blocks {
            news |= self.add(from.max(ack.next), to);
        }
        news
    }

    fn add(&mut self, mut from: u32, mut to: u32) -> bool {
        if from >= to {
            return false;
        }
        let first = self.ranges.partition_point(|range| range.1 < from);
        let last = first + self.ranges[first..].partition_point(|range| range.0 <= to);
        if first == last {
            self.ranges.insert(first, (from, to));
            return true;
        }
        if self.ranges[first].0 <= from && to <= self.ranges[first].1 {
            return false;
        }
        from = from.min(self.ranges[first].0);
        to = to.max(self.ranges[last - 1].1);
        self.ranges[first] = (from, to);
        self.ranges.drain(first + 1..last);
        true
    }

    /// Missing packets below this are lost: at least three above them have arrived (RFC 6675, 4, `IsLost`).
    fn lost_below(&self) -> u32 {
        let mut needed = DUPLICATES;
        for &(from, to) in self.ranges.iter().rev() {
            if to - from >= needed {
                return to - needed;
            }
            needed -= to - from;
        }
        0
    }

    /// Packets of `from..to` that have not arrived.
    fn missing(&self, from: u32, to: u32) -> u32 {
        let arrived = |range: &(u32, u32)| range.1.min(to).saturating_sub(range.0.max(from));
        to.saturating_sub(from) - self.ranges.iter().map(arrived).sum::<u32>()
    }

    /// Packets on their way of those in `una..max` (RFC 6675, 4, `SetPipe`).
    pub(super) fn in_pipe(&self, una: u32, max: u32) -> u32 {
        let resent = self.missing(una, self.resent_to.max(una));
        self.missing(self.lost_below().max(una), max) + resent
    }

    /// The lowest packet missing below the highest arrival that was not sent again.
    fn next_hole(&self, una: u32) -> Option<u32> {
        let mut hole = self.resent_to.max(una);
        for &(from, to) in &self.ranges {
            if hole < from {
                return Some(hole);
            }
            hole = hole.max(to);
        }
        None
    }

    /// An acknowledgement, old ones included.
    pub(super) fn on_ack(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        if ack.next < tcb.una || ack.syn {
            return;
        }
        if self.recovering {
            self.on_ack_in_recovery(tcb, ack, echo, now);
        } else if ack.next > tcb.una {
            self.after_timeout = false;
            if tcb.config.recovery == Recovery::Scoreboard {
                self.advance(ack.next);
                self.add_all(ack);
            } else {
                self.clear();
            }
            let newly = ack.next - tcb.una;
            tcb.advance(ack, echo, now);
            if !echo {
                tcb.grow(newly);
            }
        } else if !self.after_timeout && self.add_all(ack) {
            tcb.duplicates += 1;
            let by_board = tcb.config.recovery == Recovery::Scoreboard && self.lost_below() > tcb.una;
            if tcb.duplicates == DUPLICATES || by_board {
                self.start_recovery(tcb, now);
            }
        }
    }

    fn start_recovery(&mut self, tcb: &mut ControlBlock, now: Time) {
        if tcb.is_new_loss() {
            tcb.recover = tcb.max;
            if !tcb.is_covered() {
                let half = tcb.half();
                tcb.reduce(half, half);
            }
        } else if tcb.reaction != Reaction::Reduced {
            return;
        }
        self.pipe = i64::from(tcb.flight()) - i64::from(DUPLICATES);
        tcb.reaction = Reaction::FastRetransmit;
        tcb.duplicates = DUPLICATES;
        tcb.timer.rewind(now);
        tcb.urgent = tcb.una;
        self.recovering = true;
        self.counts = false;
        self.rescued = false;
        self.resent_to = tcb.una + 1;
        let config = &tcb.config;
        let by_and_by =
            config.recovery == Recovery::Scoreboard && config.shrinking == Shrinking::Proportional;
        let start = tcb.flight().max(1);
        self.proportional = by_and_by.then_some(Proportional { start, delivered: 0, out: 0, may: 0 });
    }

    /// Packets that have arrived, from the first of the connection on.
    fn arrived(&self, una: u32) -> u32 {
        una + self.ranges.iter().map(|(from, to)| to - from).sum::<u32>()
    }

    fn on_ack_in_recovery(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        self.pipe -= 1;
        let before = self.arrived(tcb.una);
        if ack.next >= tcb.recover {
            tcb.recover = 0;
            self.recovering = false;
            if tcb.law.is_some() {
                // What arrived beyond the recovery stays known (RFC 6675, 5.1).
                self.resent_to = 0;
                self.advance(ack.next);
                self.add_all(ack);
            } else {
                self.clear();
            }
            tcb.advance(ack, echo, now);
            return;
        }
        if ack.next > tcb.una {
            tcb.una = ack.next;
            tcb.nxt = tcb.nxt.max(ack.next);
            self.advance(ack.next);
            self.add_all(ack);
            self.pipe -= 1; // what was sent again has left the pipe too
            tcb.timer.rtt.end_backoff(&tcb.config);
            tcb.timer.restart(now);
        } else {
            self.add_all(ack);
        }
        if self.proportional.is_some() {
            let pipe = i64::from(self.in_pipe(tcb.una, tcb.max));
            let packets = self.arrived(tcb.una) - before;
            if let Some(it) = &mut self.proportional {
                it.on_delivered(packets, pipe, tcb.window.threshold());
            }
        }
    }

    /// What may leave in a recovery: first holes, then new packets.
    pub(super) fn plan(&mut self, tcb: &mut ControlBlock) {
        if !self.recovering {
            return;
        }
        let (una, nxt, max) = (tcb.una, tcb.nxt, tcb.max);
        let end = una.saturating_add(tcb.config.receiver_window);
        let by_board = tcb.config.recovery == Recovery::Scoreboard;
        let more = nxt < end.min(tcb.supply);
        if tcb.urgent != NONE && !self.counts {
            return;
        }
        tcb.limit = nxt;
        tcb.urgent = NONE;
        if by_board {
            self.pipe = i64::from(self.in_pipe(una, max));
        }
        let room = match self.proportional {
            Some(it) => it.may,
            None => i64::from(tcb.window.packets() as u32) - self.pipe,
        };
        if room <= 0 {
            return;
        }
        if by_board && more && self.next_hole(una).is_none_or(|hole| hole >= self.lost_below()) {
            // New packets go before holes that may be mere reordering (RFC 6675, 4, rules 2 and 3 of `NextSeg`).
            tcb.limit = nxt + 1;
        } else if by_board && !more && !self.rescued && self.next_hole(una).is_none() {
            let last = (una..max).rev().find(|seq| self.missing(*seq, *seq + 1) > 0);
            self.rescued = true;
            self.counts = true;
            tcb.urgent = last.unwrap_or(NONE);
        } else if let Some(hole) = self.next_hole(una).filter(|hole| *hole < end) {
            self.counts = true;
            tcb.urgent = hole;
        } else {
            tcb.limit = nxt.saturating_add(room.min(i64::from(u32::MAX)) as u32).min(end);
        }
    }

    /// Packet `seq` has left; `Origin::Urgent` for a hole.
    #[inline]
    pub(super) fn on_sent(&mut self, tcb: &mut ControlBlock, seq: u32, origin: Origin) {
        if !self.recovering {
            return;
        }
        if self.counts || origin == Origin::Window {
            self.pipe += 1;
        }
        if let Some(it) = &mut self.proportional {
            (it.out, it.may) = (it.out + 1, it.may - 1);
        }
        if origin == Origin::Urgent {
            self.counts = true; // only the first one does not count
            self.resent_to = self.resent_to.max(seq + 1);
        }
        self.plan(tcb);
    }
}
