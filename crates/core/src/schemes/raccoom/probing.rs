//! Probing for the shortest round trip. If queues never drain, late joiners cannot measure an empty path.

use crate::time::{Span, Time};

/// The schedule of probes, in which the source briefly lowers its rate, and the samples of the present probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probing {
    /// Duration without a round trip near the shortest one after which a probe starts.
    after: Option<Span>,
    /// Start of that duration.
    since: Time,
    /// End of the present probe, and the shortest round trip so far.
    looking: Option<(Time, Option<Span>)>,
}

/// The action after a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ProbeAction {
    /// No action.
    No,
    /// A probe starts: the rate is lowered.
    Begins,
    /// The probe continues: the law is not applied.
    Lasts,
    /// The probe has ended, with this shortest round trip.
    Over(Option<Span>),
}

/// Factor of the shortest round trip up to which a path counts as empty.
const NEAR: f64 = 1.01;
/// Minimum duration of a probe, which otherwise lasts two round trips.
const MIN: Span = Span::from_millis(200);
const ROUND_TRIPS: u64 = 2;

impl Probing {
    pub const fn new(after: Option<Span>) -> Probing {
        Probing { after, since: Time::ZERO, looking: None }
    }

    /// Cancels a probe and restarts the wait for the next one.
    pub fn restart(&mut self, now: Time) {
        (self.since, self.looking) = (now, None);
    }

    /// Handles a round-trip sample; `shortest` is the shortest known round trip.
    pub fn sample(&mut self, rtt: Span, shortest: Span, now: Time) -> ProbeAction {
        if let Some((until, seen)) = &mut self.looking {
            *seen = Some(seen.map_or(rtt, |seen| seen.min(rtt)));
            let (until, seen) = (*until, *seen);
            if now < until {
                return ProbeAction::Lasts;
            }
            self.restart(now);
            return ProbeAction::Over(seen);
        }
        if rtt <= shortest.scaled(NEAR) {
            self.since = now;
        }
        match self.after {
            Some(after) if now.since(self.since) > after => {
                self.looking = Some((now + (rtt * ROUND_TRIPS).max(MIN), None));
                ProbeAction::Begins
            }
            _ => ProbeAction::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probing_starts_if_queues_do_not_drain_and_takes_the_minimum() {
        let mut probing = Probing::new(Some(Span::from_secs(10)));
        let (short, long) = (Span::from_millis(100), Span::from_millis(180));
        let at = Time::from_secs_f64;
        assert_eq!(probing.sample(short, short, at(5.0)), ProbeAction::No);
        assert_eq!(probing.sample(long, short, at(14.9)), ProbeAction::No);
        assert_eq!(probing.sample(long, short, at(15.1)), ProbeAction::Begins);
        assert_eq!(probing.sample(long, short, at(15.2)), ProbeAction::Lasts);
        assert_eq!(probing.sample(Span::from_millis(130), short, at(15.3)), ProbeAction::Lasts);
        assert_eq!(probing.sample(long, short, at(15.5)), ProbeAction::Over(Some(Span::from_millis(130))));
        assert_eq!(probing.sample(long, short, at(25.0)), ProbeAction::No, "the time begins anew");
    }
}
