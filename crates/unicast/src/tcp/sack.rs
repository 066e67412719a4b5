//! Recovery by selective acknowledgements. The number of packets in the pipe (presumed to be in transit) determines whether a
//! packet may be sent; the scoreboard determines which packet.
//!
//! In ns-2's variant (Fall and Floyd 1996), each acknowledgement and each transmission changes a count of the packets in the
//! pipe. Every hole below the highest arrival counts as lost. In the variant of the standard (RFC 6675), the lost packets and the
//! number in the pipe are computed from the scoreboard.

use super::config::{Recovery, Shrinking};
use super::tcb::{ControlBlock, DUPLICATES, NONE, Origin, Reaction};
use crate::Ack;
use faircast_core::time::Time;
use std::collections::VecDeque;

/// The ranges of packets that arrived beyond the left edge (the first missing packet), and the state of a recovery. The number of
/// ranges can be as large as half of the window, so no query visits all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Scoreboard {
    /// Packets that arrived beyond the left edge, as separate ranges `from..to` in ascending order.
    ranges: VecDeque<(u32, u32)>,
    /// Packets in the ranges.
    held: u32,
    /// Holes below this packet were sent again.
    resent_to: u32,
    /// Number of packets in the ranges below `resent_to`.
    held_below: u32,
    /// Number of packets presumed to be in transit.
    pipe: i64,
    recovering: bool,
    /// Whether no new data has been acknowledged since the latest timeout. If so, duplicates are ignored.
    after_timeout: bool,
    /// Whether the urgent packet counts towards the pipe.
    counts: bool,
    /// Whether the last missing packet was sent again because no other packet could be sent (RFC 6675, 4, rule 4 of `NextSeg`).
    rescued: bool,
    /// State for a window that is reduced in proportion to arrivals; otherwise `None`.
    proportional: Option<Proportional>,
}

/// Reduction of the window in proportion to arrivals (RFC 6937, 3), in packets.
#[derive(Debug, Clone, Copy)]
struct Proportional {
    /// Number of packets that were outstanding when the recovery started (`RecoverFS`), at least one.
    start: u32,
    /// Number of packets that arrived since the start (`prr_delivered`), and number of packets sent since (`prr_out`).
    delivered: u32,
    out: u32,
    /// Number of packets that may be sent now (`sndcnt`).
    may: i64,
}

impl Proportional {
    /// Counts `packets` arrivals and updates `may`. `pipe` is the number of packets in transit, and `threshold` its target.
    fn on_delivered(&mut self, packets: u32, pipe: i64, threshold: f64) {
        self.delivered += packets;
        let (delivered, out, threshold) = (i64::from(self.delivered), i64::from(self.out), threshold as i64);
        self.may = if pipe > threshold {
            (delivered * threshold + i64::from(self.start) - 1) / i64::from(self.start) - out
        } else {
            // This is the growth of slow start.
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
        (self.held, self.held_below, self.resent_to) = (0, 0, 0);
    }

    /// Records that holes below `end` were sent again.
    fn set_resent_to(&mut self, end: u32) {
        if end < self.resent_to {
            (self.held_below, self.resent_to) = (0, 0);
        }
        let first = self.ranges.partition_point(|range| range.1 <= self.resent_to);
        let passed = self.ranges.range(first..).take_while(|range| range.0 < end);
        self.held_below += passed.map(|range| range.1.min(end) - range.0.max(self.resent_to)).sum::<u32>();
        self.resent_to = end;
    }

    pub(super) fn on_timeout(&mut self) {
        self.clear();
        self.recovering = false;
        self.after_timeout = true;
    }

    /// Returns whether the urgent packet is a hole of a recovery other than the first hole. The first hole is sent immediately.
    #[inline]
    pub(super) const fn is_hole_after_the_first(&self) -> bool {
        self.recovering && self.counts
    }

    /// Returns whether no arrival beyond the left edge is known.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.recovering
    }

    /// Finds the first packet whose retransmission is also lost, and schedules the packet for immediate sending. The packet
    /// already counts as being in the pipe. `find` searches a range of packets for it.
    pub(super) fn resend_lost(
        &mut self,
        tcb: &mut ControlBlock,
        find: impl FnOnce(std::ops::Range<u32>) -> Option<u32>,
    ) {
        if self.recovering
            && (tcb.urgent == NONE || self.counts)
            && let Some(first) = find(tcb.una..self.resent_to)
        {
            tcb.urgent = first;
            self.counts = false;
        }
    }

    /// Calls `call` for every packet in `from..to` that is not known to have arrived.
    pub(super) fn each_missing(&self, mut from: u32, to: u32, mut call: impl FnMut(u32)) {
        let first = self.ranges.partition_point(|range| range.1 <= from);
        for &(start, end) in self.ranges.range(first..) {
            if start >= to {
                break;
            }
            (from..start).for_each(&mut call);
            from = end;
        }
        (from..to).for_each(call);
    }

    /// Moves the left edge to `una`.
    fn advance(&mut self, una: u32) {
        while let Some(range) = self.ranges.front_mut().filter(|range| range.0 < una) {
            let passed = (range.0, range.1.min(una));
            range.0 = passed.1;
            if range.0 == range.1 {
                self.ranges.pop_front();
            }
            self.held -= passed.1 - passed.0;
            self.held_below -= below(passed, self.resent_to);
        }
    }

    /// Adds all blocks of an acknowledgement. Returns whether they contain new information.
    fn add_all(&mut self, ack: &Ack) -> bool {
        let mut news = false;
        for &(from, to) in &ack.blocks {
            news |= self.add(from.max(ack.next), to);
        }
        news
    }

    fn add(&mut self, from: u32, to: u32) -> bool {
        if from >= to {
            return false;
        }
        let first = self.ranges.partition_point(|range| range.1 < from);
        let mut new = (from, to);
        let mut end = first;
        while let Some(&known) = self.ranges.get(end).filter(|known| known.0 <= to) {
            if known.0 <= from && to <= known.1 {
                return false;
            }
            new = (new.0.min(known.0), new.1.max(known.1));
            self.held -= known.1 - known.0;
            self.held_below -= below(known, self.resent_to);
            end += 1;
        }
        self.held += new.1 - new.0;
        self.held_below += below(new, self.resent_to);
        if first == end {
            self.ranges.insert(first, new);
        } else {
            self.ranges[first] = new;
            if end > first + 1 {
                self.ranges.drain(first + 1..end);
            }
        }
        true
    }

    /// Returns the packet number below which all missing packets count as lost, because at least three packets above them have
    /// arrived (RFC 6675, 4, `IsLost`).
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

    /// Returns the number of packets in `una..max` that are in transit (RFC 6675, 4, `SetPipe`).
    pub(super) fn in_pipe(&self, una: u32, max: u32) -> u32 {
        let resent = self.resent_to.saturating_sub(una) - self.held_below;
        // Number of arrived packets above the lost packets: `DUPLICATES`, or all arrivals if there are fewer.
        let arrived = self.held.min(DUPLICATES);
        max.saturating_sub(self.lost_below().max(una)).saturating_sub(arrived) + resent
    }

    /// Returns the lowest packet that is missing below the highest arrival and was not sent again.
    fn next_hole(&self, una: u32) -> Option<u32> {
        let hole = self.resent_to.max(una);
        let first = self.ranges.partition_point(|range| range.1 <= hole);
        match *self.ranges.get(first)? {
            (from, to) if from <= hole => self.ranges.get(first + 1).map(|_| to),
            _ => Some(hole),
        }
    }

    /// Returns the highest missing packet of `una..max`.
    fn last_missing(&self, una: u32, max: u32) -> Option<u32> {
        let end = self.ranges.back().filter(|range| range.1 >= max).map_or(max, |range| range.0);
        end.checked_sub(1).filter(|seq| (una..max).contains(seq))
    }

    /// Processes an acknowledgement, which may be old.
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
        self.set_resent_to(tcb.una + 1);
        let config = &tcb.config;
        let by_and_by =
            config.recovery == Recovery::Scoreboard && config.shrinking == Shrinking::Proportional;
        let start = tcb.flight().max(1);
        self.proportional = by_and_by.then_some(Proportional { start, delivered: 0, out: 0, may: 0 });
    }

    /// Returns the number of packets that have arrived since the start of the connection.
    const fn arrived(&self, una: u32) -> u32 {
        una + self.held
    }

    fn on_ack_in_recovery(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        self.pipe -= 1;
        let before = self.arrived(tcb.una);
        if ack.next >= tcb.recover {
            tcb.recover = 0;
            self.recovering = false;
            if tcb.law.is_some() {
                // Arrivals beyond the packets of this recovery stay on the scoreboard (RFC 6675, 5.1).
                self.set_resent_to(0);
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

    /// Plans the next packets of a recovery, as many as may be sent: first holes, then new packets.
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
            // A hole that does not count as lost may be reordering; new packets are sent before it (RFC 6675, 4, rules 2 and 3 of
            // `NextSeg`).
            tcb.limit = nxt + 1;
        } else if by_board && !more && !self.rescued && self.next_hole(una).is_none() {
            self.rescued = true;
            self.counts = true;
            tcb.urgent = self.last_missing(una, max).unwrap_or(NONE);
        } else if let Some(hole) = self.next_hole(una).filter(|hole| *hole < end) {
            self.counts = true;
            tcb.urgent = hole;
        } else {
            tcb.limit = nxt.saturating_add(room.min(i64::from(u32::MAX)) as u32).min(end);
        }
    }

    /// Records that packet `seq` was sent; `Origin::Urgent` means that it fills a hole.
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
            self.set_resent_to(self.resent_to.max(seq + 1));
        }
        self.plan(tcb);
    }
}

/// Returns the number of packets in `range` with numbers below `end`.
fn below(range: (u32, u32), end: u32) -> u32 {
    range.1.min(end).saturating_sub(range.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::rng::Rng;
    use std::collections::BTreeSet;

    /// Computes the packets in the pipe and both holes from a plain set of arrived packets, by the rules of RFC 6675.
    fn counted(
        arrived: &BTreeSet<u32>,
        resent_to: u32,
        una: u32,
        max: u32,
    ) -> (u32, Option<u32>, Option<u32>) {
        let missing = |seq: &u32| !arrived.contains(seq);
        let is_lost = |seq: &u32| arrived.range(seq + 1..).count() >= DUPLICATES as usize;
        let on_their_way = (una..max).filter(|seq| missing(seq) && !is_lost(seq)).count();
        let resent = (una..resent_to).filter(missing).count();
        let hole =
            (resent_to.max(una)..max).find(|seq| missing(seq) && arrived.range(seq + 1..).next().is_some());
        ((on_their_way + resent) as u32, hole, (una..max).rev().find(missing))
    }

    #[test]
    fn scoreboard_agrees_with_a_plain_set_of_packets() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed, 3);
            let (mut board, mut arrived) = (Scoreboard::default(), BTreeSet::new());
            let (mut una, mut max) = (0, 1);
            for _ in 0..500 {
                match rng.below(8) {
                    0 => {
                        una += rng.below(u64::from(max - una) + 1) as u32;
                        arrived = arrived.split_off(&una);
                        board.advance(una);
                    }
                    1 => board.set_resent_to(una + rng.below(u64::from(max - una) + 1) as u32),
                    2 | 3 => max += 1 + rng.below(20) as u32,
                    _ => {
                        let from = una + 1 + rng.below(u64::from(max - una)) as u32;
                        let to = max.min(from + rng.below(5) as u32);
                        let news = board.add(from, to);
                        assert_eq!(news, (from..to).any(|seq| !arrived.contains(&seq)));
                        arrived.extend(from..to);
                    }
                }
                let (pipe, hole, last) = counted(&arrived, board.resent_to, una, max);
                assert_eq!(board.in_pipe(una, max), pipe);
                assert_eq!(board.next_hole(una), hole);
                assert_eq!(board.last_missing(una, max), last);
                assert_eq!(board.arrived(una), una + arrived.len() as u32);
            }
        }
    }
}
