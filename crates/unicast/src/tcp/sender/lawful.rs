//! Behaviour of senders that have a [`law`](super::super::law), in addition to the common behaviour.

use super::{Recovery, Sender};
use crate::Ack;
use crate::tcp::law::{Law, Received, Seen};
use crate::tcp::sack::Scoreboard;
use crate::tcp::tcb::{ControlBlock, Reaction};
use faircast_core::node::Cx;
use faircast_core::time::Time;

/// Returns the number of packets in the pipe: computed from the scoreboard, or, if the scoreboard is empty, from the sent and
/// acknowledged packets.
fn inflight(tcb: &ControlBlock, board: &Scoreboard) -> u32 {
    if board.is_empty() { tcb.nxt.saturating_sub(tcb.una) } else { board.in_pipe(tcb.una, tcb.max) }
}

impl Sender {
    /// Returns the law; `None` for Vegas and for variants with Reno's rules.
    #[cfg(test)]
    pub(in crate::tcp) fn law(&self) -> Option<&Law> {
        self.tcb.law.as_deref()
    }

    /// Processes an acknowledgement of sent packets on an open connection.
    pub(super) fn on_ack_by_law(&mut self, ack: &Ack, echo: bool, cx: &mut Cx<'_>) {
        let now = cx.now;
        let (tcb, Recovery::Sack(board)) = (&mut self.tcb, &mut self.recovery) else { return };
        if ack.next < tcb.una || ack.syn {
            return; // old
        }
        let prior_inflight = inflight(tcb, board);
        let Some(law) = tcb.law.as_deref_mut() else { return };
        let rtt = tcb.timer.rtt.smoothed(&tcb.config);
        law.on_received(ack, &Received { now, rtt, una: tcb.una, nxt: tcb.nxt });
        if let Law::Bbr(bbr) = law {
            (tcb.una..ack.next).for_each(|seq| bbr.on_arrival(seq, now));
            for &(from, to) in &ack.blocks {
                let (from, to) = (from.max(ack.next), to.min(tcb.max));
                board.each_missing(from, to, |seq| bbr.on_arrival(seq, now));
            }
        }
        if echo && law.heeds_marks(now) {
            tcb.on_echo(ack.next);
        }
        board.on_ack(tcb, ack, echo, now);
        let mut law = tcb.law.take();
        if let Some(Law::Bbr(bbr)) = law.as_deref_mut() {
            board.resend_lost(tcb, |range| bbr.first_lost_again(range));
        }
        tcb.law = law;
        let inflight = inflight(tcb, board);
        let idle = tcb.nxt >= tcb.supply;
        let recovering = board.is_recovering();
        let after_timeout = tcb.reaction == Reaction::Timeout && tcb.una < tcb.recover;
        if let Some(Law::Bbr(bbr)) = tcb.law.as_deref_mut() {
            let seen = Seen { now, prior_inflight, inflight, recovering, after_timeout, idle };
            bbr.on_ack(&mut tcb.window, &seen, cx.rng);
        }
    }

    /// Records that packet `seq` was sent.
    pub(super) fn on_sent_by_law(&mut self, seq: u32, again: bool, now: Time) {
        let (tcb, Recovery::Sack(board)) = (&mut self.tcb, &self.recovery) else { return };
        let before = inflight(tcb, board).saturating_sub(1);
        let Some(law) = tcb.law.as_deref_mut() else { return };
        if let Law::Bbr(bbr) = law {
            bbr.on_sent(seq, tcb.una, before, again, now);
        }
        if let Some(gap) = law.gap(&tcb.window, tcb.timer.rtt.smoothed(&tcb.config)) {
            self.release = now + gap;
        }
    }
}
