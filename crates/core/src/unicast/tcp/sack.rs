//! Recovery by selective acknowledgements: what is in the pipe decides whether a packet may leave, the scoreboard which.
//!
//! In ns-2's way (Fall and Floyd 1996) the pipe is counted with every acknowledgement and packet, and every hole below the
//! highest arrival is lost. In the standard's way (RFC 6675) both follow from the scoreboard.

use super::config::Recovery;
use super::sender::{DUPLICATES, Origin, Reaction, Sender};
use crate::time::Time;
use crate::unicast::Ack;

/// What the receiver has beyond the left edge, and the state of a recovery.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
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
}

impl Board {
    fn clear(&mut self) {
        self.ranges.clear();
        self.resent_to = 0;
    }

    pub(super) fn on_timeout(&mut self) {
        self.clear();
        self.recovering = false;
        self.after_timeout = true;
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
    fn in_pipe(&self, una: u32, max: u32) -> u32 {
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
}

impl Sender {
    fn board(&mut self) -> &mut Board {
        self.sack.get_or_insert_default()
    }

    pub(super) fn on_sack(&mut self, ack: &Ack, echo: bool, now: Time) {
        if ack.next < self.una || ack.syn {
            return;
        }
        if self.board().recovering {
            self.on_sack_in_recovery(ack, echo, now);
        } else if ack.next > self.una {
            self.board().after_timeout = false;
            if self.config.recovery == Recovery::Scoreboard {
                self.board().advance(ack.next);
                self.board().add_all(ack);
            } else {
                self.board().clear();
            }
            let newly = ack.next - self.una;
            self.advance(ack, echo, now);
            if !echo {
                self.grow(newly);
            }
        } else if !self.board().after_timeout && self.board().add_all(ack) {
            self.duplicates += 1;
            let una = self.una;
            let by_board = self.config.recovery == Recovery::Scoreboard && self.board().lost_below() > una;
            if self.duplicates == DUPLICATES || by_board {
                self.start_recovery(now);
            }
        }
    }

    fn start_recovery(&mut self, now: Time) {
        if self.is_new_loss() {
            self.recover = self.max;
            let half = self.half();
            let out = i64::from(self.max - self.una);
            self.cut(half, half);
            self.board().pipe = out - i64::from(DUPLICATES);
        } else if self.reaction == Reaction::Echo {
            let out = i64::from(self.max - self.una);
            self.board().pipe = out - i64::from(DUPLICATES);
        } else {
            return;
        }
        self.reaction = Reaction::FastRetransmit;
        self.duplicates = DUPLICATES;
        self.rewind(now);
        let una = self.una;
        self.urgent = una;
        let board = self.board();
        board.recovering = true;
        board.counts = false;
        board.rescued = false;
        board.resent_to = una + 1;
    }

    fn on_sack_in_recovery(&mut self, ack: &Ack, echo: bool, now: Time) {
        self.board().pipe -= 1;
        if ack.next >= self.recover {
            self.recover = 0;
            self.board().recovering = false;
            self.board().clear();
            self.advance(ack, echo, now);
        } else if ack.next > self.una {
            self.una = ack.next;
            self.nxt = self.nxt.max(ack.next);
            let board = self.board();
            board.advance(ack.next);
            board.add_all(ack);
            board.pipe -= 1; // what was sent again has left the pipe too
            self.rtt.end_backoff(&self.config);
            self.restart_timer(now);
        } else {
            self.board().add_all(ack);
        }
    }

    /// What may leave in a recovery: first holes, then new packets.
    pub(super) fn plan_recovery(&mut self) {
        let (una, nxt) = (self.una, self.nxt);
        let end = una.saturating_add(self.config.receiver_window);
        let window = i64::from(self.cwnd as u32);
        let pending = self.urgent != u32::MAX;
        let by_board = self.config.recovery == Recovery::Scoreboard;
        let max = self.max;
        let more = nxt < end.min(self.supply);
        let Some(board) = self.sack.as_deref_mut().filter(|board| board.recovering) else {
            return;
        };
        if pending && !board.counts {
            return;
        }
        self.limit = nxt;
        self.urgent = u32::MAX;
        if by_board {
            board.pipe = i64::from(board.in_pipe(una, max));
        }
        let room = window - board.pipe;
        if room <= 0 {
            return;
        }
        if by_board && more && board.next_hole(una).is_none_or(|hole| hole >= board.lost_below()) {
            // New packets go before holes that may be mere reordering (RFC 6675, 4, rules 2 and 3 of `NextSeg`).
            self.limit = nxt + 1;
        } else if by_board && !more && !board.rescued && board.next_hole(una).is_none() {
            let last = (una..max).rev().find(|seq| board.missing(*seq, *seq + 1) > 0);
            board.rescued = true;
            board.counts = true;
            self.urgent = last.unwrap_or(u32::MAX);
        } else if let Some(hole) = board.next_hole(una).filter(|hole| *hole < end) {
            board.counts = true;
            self.urgent = hole;
        } else {
            self.limit = nxt.saturating_add(room.min(i64::from(u32::MAX)) as u32).min(end);
        }
    }

    /// Packet `seq` has left; `Origin::Urgent` for a hole.
    #[inline]
    pub(super) fn on_sack_sent(&mut self, seq: u32, origin: Origin) {
        let board = self.board();
        if !board.recovering {
            return;
        }
        if board.counts || origin == Origin::Window {
            board.pipe += 1;
        }
        if origin == Origin::Urgent {
            board.counts = true; // only the first one does not count
            board.resent_to = board.resent_to.max(seq + 1);
        }
        self.plan_recovery();
    }
}
