//! The filter of ER-CI: follows one receiver, the slowest it knows of (paper 000, D.3).

use crate::estimate::Ewma;
use crate::packet::ReceiverId;
use crate::time::{Rate, Span, Time};

/// State that does not grow with the group.
#[derive(Debug, Clone)]
pub(super) struct Er {
    followed: Option<Followed>,
    /// "V_fe" and "sigma_v", in bit/s.
    egress: Ewma,
}

/// The receiver whose report was accepted last, "R".
#[derive(Debug, Clone, Copy)]
struct Followed {
    id: ReceiverId,
    received_at: Time,
}

/// How the source stands when a report arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    pub rate: Rate,
    /// "RTT" and "sigma".
    pub rtt: Span,
    pub deviation: Span,
    /// The increase of the rate in a round-trip time, "S / SRTT".
    pub step: Rate,
    pub now: Time,
}

/// Weight of a new egress rate, one less "gamma".
const GAIN: f64 = 0.125;
/// Deviations of the egress rate that are significant.
const SIGNIFICANT: f64 = 3.0;
/// Deviations of the round-trip time that are waited for, `theta / (1 - theta)`.
const PATIENCE: u64 = 7;

impl Er {
    pub(super) const fn new() -> Er {
        Er { followed: None, egress: Ewma::new(GAIN) }
    }

    pub(super) const fn followed(&self) -> Option<ReceiverId> {
        match self.followed {
            Some(followed) => Some(followed.id),
            None => None,
        }
    }

    pub(super) const fn egress(&self) -> &Ewma {
        &self.egress
    }

    /// Whether this receiver's report is accepted; if so, it is followed from now on.
    // Paper gap: D.3 does not say whether refused reports enter the average. "Keep track of only one of the receivers"
    // is possible only if they do not.
    pub(super) fn accept(&mut self, from: ReceiverId, egress: Rate, at: Situation) -> bool {
        if !self.accepts(from, egress, at) {
            return false;
        }
        self.followed = Some(Followed { id: from, received_at: at.now });
        self.egress.add(egress.bps(), 0.0);
        true
    }

    /// The four conditions in the thesis's order.
    fn accepts(&self, from: ReceiverId, egress: Rate, at: Situation) -> bool {
        let (Some(followed), Some(mean)) = (self.followed, self.egress.mean()) else { return true };
        let margin = SIGNIFICANT * self.egress.deviation();
        let lost_touch = at.now.since(followed.received_at) > at.rtt + at.deviation * PATIENCE;
        let outgrew = at.rate.bps() >= mean + margin + at.step.bps();
        from == followed.id || egress.bps() < mean - margin || (lost_touch && outgrew)
    }

    /// This receiver is there no longer: the next report is as good as the first.
    pub(super) fn forget(&mut self, receiver: ReceiverId) {
        if self.followed() == Some(receiver) {
            *self = Er::new();
        }
    }
}
