//! The filter of ER-CI: it follows the slowest receiver among those that have reported (paper 000, D.3).

use crate::estimate::Ewma;
use crate::packet::ReceiverId;
use crate::time::{Rate, Span, Time};

/// The filter's state. It does not grow with the group.
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

/// The source's state at the arrival of a report.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    pub rate: Rate,
    /// "RTT" and "sigma".
    pub rtt: Span,
    pub deviation: Span,
    /// The increase of the rate per round-trip time, "S / SRTT".
    pub step: Rate,
    pub now: Time,
}

/// Weight of a new sample of the egress rate, `1 - gamma`.
const GAIN: f64 = 0.125;
/// Number of deviations. An egress rate that differs from the mean by more is significantly different.
const SIGNIFICANT: f64 = 3.0;
/// Number of deviations of the round-trip time in the timeout for a report of the followed receiver, `theta / (1 - theta)`. After
/// the timeout the filter may follow another receiver.
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

    /// Returns whether this receiver's report is accepted. From then on, the filter follows the receiver of an accepted report.
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

    /// Evaluates the four conditions in the thesis's order.
    fn accepts(&self, from: ReceiverId, egress: Rate, at: Situation) -> bool {
        let (Some(followed), Some(mean)) = (self.followed, self.egress.mean()) else { return true };
        let margin = SIGNIFICANT * self.egress.deviation();
        let lost_touch = at.now.since(followed.received_at) > at.rtt + at.deviation * PATIENCE;
        let outgrew = at.rate.bps() >= mean + margin + at.step.bps();
        from == followed.id || egress.bps() < mean - margin || (lost_touch && outgrew)
    }

    /// Removes a receiver that left. If the filter followed this receiver, the next report is treated as the first.
    pub(super) fn forget(&mut self, receiver: ReceiverId) {
        if self.followed() == Some(receiver) {
            *self = Er::new();
        }
    }
}
