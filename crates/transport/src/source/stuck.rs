//! Members that are alive but will never complete.
//!
//! A member that lacks symbols requests them. A member is stuck if it reports missing symbols but requests none, although the
//! source has sent all content and is idle. With `--slow drop`, the source drops a stuck member. With `--slow floor`, or when the
//! expected number of receivers are complete, the source stops waiting for it. Otherwise the idle timeout applies.

use super::{Phase, SourceSession};
use crate::config::SlowReceiverPolicy;
use crate::event::Event;
use crate::members::{MemberRecord, Mute, Pace};
use faircast_core::node::SourceControl;
use faircast_core::packet::{ReceiverId, Seq};
use faircast_core::time::{Rate, Span, Time};
use faircast_wire::Activity;

/// Time since which a source has been idle after it has sent all content.
#[derive(Debug, Default)]
pub(super) struct Rest {
    since: Option<Time>,
    /// Number of the next packet at that time.
    next: Seq,
}

impl Rest {
    /// Updates the state; returns the duration of the idle period.
    fn look(&mut self, is_idle: bool, next: Seq, now: Time) -> Span {
        if !is_idle || next != self.next {
            (self.since, self.next) = (None, next);
        }
        if !is_idle {
            return Span::ZERO;
        }
        now.since(*self.since.get_or_insert(now))
    }
}

impl SourceSession {
    /// Leaves out members that are incomplete but request nothing; called once a second. A working member sends a request at
    /// least once in `asks_within`.
    pub(super) fn leave_out_stuck(&mut self, asks_within: Span, idle_timeout: Span, now: Time) {
        let status = self.scheduler.status();
        let all_left = status.blocks.is_some_and(|blocks| blocks == status.complete_to);
        let is_idle = all_left && self.scheduler.is_idle() && !self.scheduler.has_work();
        let rested = self.rest.look(is_idle, self.next_seqs[0], now);
        if rested < asks_within || self.scheduler.source_is_finished().is_some() {
            return;
        }
        let may_leave = self.setup.slow != SlowReceiverPolicy::Follow || self.has_expected();
        let is_stuck = |member: &MemberRecord| {
            let is_waited_for = member.pace == Pace::Together && !member.is_finished();
            // A host that works on files sends no requests during this work. The source waits for it while the work progresses.
            let is_stalled = may_leave && now.since(member.further_at) >= idle_timeout;
            let works = member.activity.0 != Activity::Network && !is_stalled;
            // A member that has all blocks gets more time, because it still places its files.
            let soon = may_leave && member.blocks_missing > 0;
            let is_there = is_waited_for && !member.is_relay && member.mute == Mute::No;
            is_there && !works && (soon || rested >= idle_timeout)
        };
        let stuck: Vec<ReceiverId> =
            self.members.iter().filter(|(_, member)| is_stuck(member)).map(|(id, _)| id).collect();
        for id in stuck {
            self.leave_out(id, now);
        }
    }

    fn leave_out(&mut self, id: ReceiverId, now: Time) {
        self.members.set_stuck(id);
        if matches!(self.setup.slow, SlowReceiverPolicy::Drop(_)) {
            return self.set_aside(id, Rate::ZERO, now);
        }
        self.members.set_pace(id, Pace::Gone);
        self.windows.forget(id);
        self.control(SourceControl::Forget(id), now);
        if let Some(member) = self.members.get(id) {
            let host = member.host.clone();
            let reason = Some(super::feedback::reason(member));
            self.events.push_back(Event::Left { receiver: id, host, verified: false, reason });
        }
    }

    /// Whether the expected number of receivers are complete.
    pub(super) fn has_expected(&self) -> bool {
        self.setup.expect.is_some_and(|expected| self.members.verified() >= u64::from(expected))
    }

    /// Returns the number of members for which the session waits. Once the expected number of receivers have completed, the
    /// session does not wait for silent members (such as a relay whose children have moved). It waits for other members for as
    /// long again as the session took to reach that point, and at least for the idle timeout.
    pub(super) fn outstanding(&mut self, now: Time) -> usize {
        if !self.has_expected() {
            self.clocks.expected_at = None;
            return self.members.unfinished();
        }
        let met_at = *self.clocks.expected_at.get_or_insert(now);
        let took = met_at.since(self.clocks.started.unwrap_or(met_at));
        let has_ended =
            self.phase == Phase::Sending && now.since(met_at) >= took.max(self.setup.idle_timeout);
        if has_ended { 0 } else { self.members.counted_on() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_starts_at_the_last_sent_packet() {
        let mut rest = Rest::default();
        let at = |second| Time::ZERO + Span::from_secs(second);
        assert_eq!(rest.look(false, Seq(5), at(1)), Span::ZERO);
        assert_eq!(rest.look(true, Seq(9), at(2)), Span::ZERO);
        assert_eq!(rest.look(true, Seq(9), at(7)), Span::from_secs(5));
        assert_eq!(rest.look(true, Seq(10), at(8)), Span::ZERO, "somebody has asked meanwhile");
        assert_eq!(rest.look(true, Seq(10), at(9)), Span::from_secs(1));
        assert_eq!(rest.look(false, Seq(10), at(10)), Span::ZERO);
    }
}
