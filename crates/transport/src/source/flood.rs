//! Limits the total rate of all layers on a network that carries every layer to every host. The limit is a total rate that
//! receivers behind full links can take.
//!
//! Receivers that have joined only the base layer report their losses ([`crate::membership::FLOODED`]). The losses have two
//! possible causes: all layers reach these receivers, or their link is too slow for the base layer alone. The source slows down
//! the other layers to find out which cause applies:
//!
//! ```text
//!   complaint ──> all layers together: what arrived there, and a little less ──> silence: it was flooding;
//!                          ^                                     │               grow slowly until the next complaint
//!                          └── complaint, fewer losses ──────────┤
//!                                                                └── as many losses as before: it was not;
//!                                                                    as before, and that receiver is not listened to for a while
//! ```
//!
//! A wrong or forged complaint thus slows the other receivers for some seconds only. After each such complaint, its receiver is
//! ignored for twice as long as before.

use faircast_core::packet::ReceiverId;
use faircast_core::time::{Rate, Span, Time};
use std::collections::BTreeMap;

/// Limit of the total rate, derived from complaints of receivers.
#[derive(Debug, Default)]
pub(super) struct Flood {
    /// Maximum rate of all layers together.
    limit: Option<Rate>,
    /// Receiver whose complaint is being tested, and its losses at the start of the test.
    trial: Option<Trial>,
    changed_at: Time,
    complained_at: Time,
    /// Receivers whose complaints were unjustified: the end of the period in which the receiver is ignored, and the number of
    /// such periods so far.
    ignored: BTreeMap<ReceiverId, (Time, u8)>,
}

#[derive(Debug, Clone, Copy)]
struct Trial {
    from: ReceiverId,
    loss: f64,
    steps: u8,
}

/// Reaction to a complaint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// No reaction.
    Nothing,
    /// Limits all layers together to this rate.
    Limit(Rate),
    /// Removes the limit: enhancement layers do not cause the losses.
    NotFlooded,
}

/// Delay until a change of the limit has an effect on the complaints. Complaints cover the losses of two seconds and are sent
/// once a second.
const SHOWS_AFTER: Span = Span::from_secs(4);
/// New limit, as a fraction of the rate that arrived at the receiver.
const MARGIN: f64 = 0.85;
/// From the second step on, losses must be at most this fraction of the losses in the first complaint. Otherwise, enhancement
/// layers are not the cause.
const BETTER: f64 = 0.7;
/// Duration without a complaint after which the limit grows.
const QUIET: Span = Span::from_secs(10);
const MORE: f64 = 1.1;
/// Multiple of the sending rate above which the limit does not grow.
const ROOM: f64 = 2.5;
/// Duration for which a receiver is ignored after its first unjustified complaint.
const IGNORED: Span = Span::from_secs(60);
const MAX_DOUBLINGS: u8 = 6;
/// Maximum number of ignored receivers. When it is reached, all complaints are ignored.
const MAX_IGNORED: usize = 64;

impl Flood {
    /// Returns the maximum rate of all layers together.
    pub(super) fn limit(&self) -> Rate {
        self.limit.unwrap_or(Rate::UNLIMITED)
    }

    /// Processes a complaint: a receiver that has joined only the base layer loses the fraction `loss` of its packets. `total` is
    /// the rate of all layers, `base` the rate of the base layer.
    pub(super) fn on_complaint(
        &mut self,
        from: ReceiverId,
        loss: f64,
        total: Rate,
        base: Rate,
        now: Time,
    ) -> Step {
        let ignored = self.ignored.get(&from).is_some_and(|(until, _)| now < *until);
        if ignored || self.ignored.len() >= MAX_IGNORED || !(0.0..=1.0).contains(&loss) {
            return Step::Nothing;
        }
        self.complained_at = now;
        if self.limit.is_some() && now.since(self.changed_at) < SHOWS_AFTER {
            return Step::Nothing;
        }
        let trial = *self.trial.get_or_insert(Trial { from, loss, steps: 0 });
        let nothing_left = total.bps() <= base.bps() * 1.05;
        let in_vain = trial.from == from && trial.steps >= 2 && loss > BETTER * trial.loss;
        if nothing_left || in_vain {
            self.give_up_on(from, now);
            return Step::NotFlooded;
        }
        let limit = Rate::from_bps((total.bps() * (1.0 - loss) * MARGIN).max(base.bps()));
        self.trial = Some(Trial { steps: trial.steps.saturating_add(1), ..trial });
        (self.limit, self.changed_at) = (Some(limit), now);
        Step::Limit(limit)
    }

    fn give_up_on(&mut self, from: ReceiverId, now: Time) {
        let (_, times) = self.ignored.get(&from).copied().unwrap_or_default();
        let until = now + IGNORED * (1 << times.min(MAX_DOUBLINGS));
        self.ignored.insert(from, (until, times.saturating_add(1)));
        (self.limit, self.trial, self.changed_at) = (None, None, now);
    }

    /// Raises the limit after a period without complaints; called once a second. `total` is the rate of all layers. Returns
    /// whether the limit has changed.
    pub(super) fn grow(&mut self, total: Rate, now: Time) -> bool {
        let Some(limit) = self.limit else { return false };
        let quiet = now.since(self.complained_at.max(self.changed_at)) >= QUIET;
        if !quiet || limit.bps() > ROOM * total.bps() {
            return false;
        }
        self.trial = None;
        (self.limit, self.changed_at) = (Some(limit * MORE), now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ReceiverId = ReceiverId::new(1).expect("not zero");
    const TWO: ReceiverId = ReceiverId::new(2).expect("not zero");
    const BASE: Rate = Rate::from_mbps(0.5);

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    fn mbps(rate: f64) -> Rate {
        Rate::from_mbps(rate)
    }

    fn limited(step: Step) -> f64 {
        let Step::Limit(rate) = step else { panic!("{step:?}") };
        rate.bps() / 1e6
    }

    #[test]
    fn flood_complaint_limits_all_layers_to_the_received_rate() {
        let mut flood = Flood::default();
        let limit = limited(flood.on_complaint(ONE, 0.7, mbps(64.0), BASE, at(1)));
        assert!((16.0..20.0).contains(&limit), "{limit}");
        assert_eq!(
            flood.on_complaint(TWO, 0.7, mbps(64.0), BASE, at(2)),
            Step::Nothing,
            "it does not show yet"
        );
        assert!(limited(flood.on_complaint(ONE, 0.1, mbps(16.0), BASE, at(6))) < 13.0);
    }

    #[test]
    fn rate_limit_grows_slowly_without_flood_complaints() {
        let mut flood = Flood::default();
        let limit = limited(flood.on_complaint(ONE, 0.7, mbps(64.0), BASE, at(0)));
        let grown = (1..=60).filter(|&second| flood.grow(mbps(16.0), at(second))).count();
        assert_eq!(grown, 6);
        assert!((flood.limit().bps() / 1e6 - limit * 1.1f64.powi(6)).abs() < 1e-6);
        (61..1000).for_each(|second| {
            flood.grow(mbps(1.0), at(second));
        });
        assert!(flood.limit().bps() < 64e6);
    }

    #[test]
    fn receiver_is_ignored_longer_after_each_unfounded_complaint() {
        let mut flood = Flood::default();
        let mut now = 0;
        let cycle = |flood: &mut Flood, mut now: u64| {
            let mut total = mbps(32.0);
            loop {
                match flood.on_complaint(ONE, 0.3, total, BASE, at(now)) {
                    Step::Limit(limit) => total = limit,
                    Step::NotFlooded => return now,
                    Step::Nothing => {}
                }
                now += 1;
                assert!(now < 2000, "it ends");
            }
        };
        now = cycle(&mut flood, now);
        assert!(now <= 12, "{now}");
        assert_eq!(flood.limit(), Rate::UNLIMITED);
        assert_eq!(flood.on_complaint(ONE, 0.3, mbps(32.0), BASE, at(now + 59)), Step::Nothing);
        now = cycle(&mut flood, now + 60);
        assert_eq!(flood.on_complaint(ONE, 0.3, mbps(32.0), BASE, at(now + 119)), Step::Nothing);
    }

    #[test]
    fn invalid_complaints_change_nothing() {
        let mut flood = Flood::default();
        for loss in [f64::NAN, -1.0, 1.5, f64::INFINITY] {
            assert_eq!(flood.on_complaint(ONE, loss, mbps(32.0), BASE, at(0)), Step::Nothing);
        }
    }
}
