//! Fast retransmit and fast recovery: Tahoe, Reno and NewReno (RFC 5681, 3.2; RFC 6582).

use super::config::{Duplicates, Halving, Inflation, Variant};
use super::tcb::{ControlBlock, DUPLICATES, Reaction};
use crate::Ack;
use faircast_core::time::Time;

/// Recovery by duplicate and partial acknowledgements.
#[derive(Debug, Clone, Default)]
pub(super) struct FastRecovery {
    /// Whether a partial acknowledgement in this recovery has already restarted the timer (NewReno, "Impatient"; RFC 6582, 4).
    partial_seen: bool,
}

impl FastRecovery {
    /// Processes an acknowledgement of new data.
    #[inline]
    pub(super) fn on_advance(&mut self, tcb: &mut ControlBlock, ack: &Ack, echo: bool, now: Time) {
        if tcb.window.inflation() > 0 || tcb.reaction == Reaction::FastRetransmit {
            let in_recovery = tcb.reaction == Reaction::FastRetransmit;
            if tcb.config.variant == Variant::NewReno && in_recovery && ack.next < tcb.recover {
                return self.on_partial(tcb, ack.next, now);
            }
            leave_recovery(tcb, ack.next);
        }
        self.partial_seen = false;
        let newly = ack.next - tcb.una;
        tcb.advance(ack, echo, now);
        if !echo {
            tcb.grow(newly);
        }
    }

    /// Processes a partial acknowledgement: some packets that were outstanding when the loss was detected are still missing (RFC
    /// 6582, 3.2, step 3).
    fn on_partial(&mut self, tcb: &mut ControlBlock, next: u32, now: Time) {
        if !self.partial_seen {
            self.partial_seen = true;
            tcb.timer.restart(now);
        }
        let newly = next - tcb.una;
        let inflation = tcb.window.inflation();
        if inflation > newly {
            tcb.window.set_inflation(inflation - (newly - 1));
        } else {
            tcb.window.set((tcb.window.packets() - f64::from(newly - inflation)).max(1.0));
            tcb.window.set_inflation(1);
        }
        tcb.una = next;
        tcb.nxt = tcb.nxt.max(next);
        if tcb.timer.end_timing(next).is_some() {
            tcb.timer.rtt.end_backoff(&tcb.config);
        }
        tcb.urgent = next;
    }
}

fn leave_recovery(tcb: &mut ControlBlock, next: u32) {
    tcb.window.set_inflation(0);
    if tcb.reaction == Reaction::FastRetransmit && tcb.config.variant != Variant::Tahoe {
        tcb.reaction = Reaction::Recovered;
        if tcb.config.variant == Variant::NewReno && tcb.config.halving == Halving::Flight {
            // The first of the two alternatives in RFC 6582, 3.2, step 3.
            let flight = f64::from((tcb.max - next).max(1) + 1);
            tcb.window.set(tcb.window.threshold().min(flight));
        }
    }
}

/// Processes an acknowledgement without new data.
pub(super) fn on_duplicate(tcb: &mut ControlBlock, now: Time) {
    if tcb.una == tcb.max && (tcb.config.duplicates == Duplicates::Outstanding || tcb.una >= tcb.supply) {
        return; // nothing is out that could be missing
    }
    tcb.duplicates += 1;
    let always = tcb.config.inflation == Inflation::Always;
    let inflates = tcb.config.variant != Variant::Tahoe;
    if tcb.duplicates == DUPLICATES {
        on_third_duplicate(tcb, now);
        if inflates && always {
            tcb.window.set_inflation(DUPLICATES);
        }
    } else if tcb.duplicates > DUPLICATES && inflates && (always || tcb.reaction == Reaction::FastRetransmit)
    {
        tcb.window.set_inflation(tcb.window.inflation() + 1);
    }
}

fn on_third_duplicate(tcb: &mut ControlBlock, now: Time) {
    let amid = tcb.config.variant == Variant::Reno && tcb.reaction == Reaction::FastRetransmit;
    let tahoe = tcb.config.variant == Variant::Tahoe;
    if tcb.is_new_loss() || amid {
        tcb.recover = tcb.max;
        let half = tcb.half();
        if !tcb.is_covered() {
            tcb.reduce(half, if tahoe { 1.0 } else { half });
        } else if tahoe {
            tcb.reduce(tcb.window.threshold(), 1.0);
        }
    } else if tcb.reaction == Reaction::Reduced {
        // The window was already cut for this congestion event.
        if tahoe {
            tcb.reduce(tcb.window.threshold(), 1.0);
        }
    } else {
        return;
    }
    tcb.reaction = Reaction::FastRetransmit;
    tcb.timer.rewind(now);
    if tahoe {
        tcb.nxt = tcb.una;
    } else {
        tcb.urgent = tcb.una;
        tcb.window.set_inflation(DUPLICATES);
    }
}
